/* The predefined types by their codes in the notation. A type that a library lacks is undefined, or
 * has size 0. */
#include <mpi.h>

typedef struct {
    const char *code;
    MPI_Datatype type;
} basic_t;

static basic_t basics[] = {
    {"c", MPI_CHAR}, {"sc", MPI_SIGNED_CHAR}, {"uc", MPI_UNSIGNED_CHAR}, {"b", MPI_BYTE}, {"P", MPI_PACKED},
    {"w", MPI_WCHAR}, {"s", MPI_SHORT}, {"us", MPI_UNSIGNED_SHORT}, {"i", MPI_INT}, {"u", MPI_UNSIGNED},
    {"l", MPI_LONG}, {"ul", MPI_UNSIGNED_LONG}, {"ll", MPI_LONG_LONG}, {"ull", MPI_UNSIGNED_LONG_LONG},
    {"f", MPI_FLOAT}, {"d", MPI_DOUBLE}, {"LD", MPI_LONG_DOUBLE}, {"B", MPI_C_BOOL}, {"i8", MPI_INT8_T},
    {"i16", MPI_INT16_T}, {"i32", MPI_INT32_T}, {"i64", MPI_INT64_T}, {"u8", MPI_UINT8_T}, {"u16", MPI_UINT16_T},
    {"u32", MPI_UINT32_T}, {"u64", MPI_UINT64_T}, {"AI", MPI_AINT}, {"CO", MPI_COUNT}, {"OF", MPI_OFFSET},
    {"fC", MPI_C_FLOAT_COMPLEX}, {"dC", MPI_C_DOUBLE_COMPLEX}, {"ldC", MPI_C_LONG_DOUBLE_COMPLEX},
    {"I", MPI_INTEGER}, {"R", MPI_REAL}, {"D", MPI_DOUBLE_PRECISION}, {"X2", MPI_COMPLEX},
    {"DX2", MPI_DOUBLE_COMPLEX}, {"L", MPI_LOGICAL}, {"CH", MPI_CHARACTER}, {"fi", MPI_FLOAT_INT},
    {"di", MPI_DOUBLE_INT}, {"li", MPI_LONG_INT}, {"ii", MPI_2INT}, {"si", MPI_SHORT_INT},
    {"ldi", MPI_LONG_DOUBLE_INT}, {"P2R", MPI_2REAL}, {"P2DP", MPI_2DOUBLE_PRECISION}, {"P2I", MPI_2INTEGER},
#ifdef MPI_INTEGER1
    {"I1", MPI_INTEGER1},
#endif
#ifdef MPI_INTEGER2
    {"I2", MPI_INTEGER2},
#endif
#ifdef MPI_INTEGER4
    {"I4", MPI_INTEGER4},
#endif
#ifdef MPI_INTEGER8
    {"I8", MPI_INTEGER8},
#endif
#ifdef MPI_INTEGER16
    {"I16", MPI_INTEGER16},
#endif
#ifdef MPI_REAL2
    {"R2", MPI_REAL2},
#endif
#ifdef MPI_REAL4
    {"R4", MPI_REAL4},
#endif
#ifdef MPI_REAL8
    {"R8", MPI_REAL8},
#endif
#ifdef MPI_REAL16
    {"R16", MPI_REAL16},
#endif
#ifdef MPI_LOGICAL1
    {"L1", MPI_LOGICAL1},
#endif
#ifdef MPI_LOGICAL2
    {"L2", MPI_LOGICAL2},
#endif
#ifdef MPI_LOGICAL4
    {"L4", MPI_LOGICAL4},
#endif
#ifdef MPI_LOGICAL8
    {"L8", MPI_LOGICAL8},
#endif
#ifdef MPI_LOGICAL16
    {"L16", MPI_LOGICAL16},
#endif
#ifdef MPI_COMPLEX4
    {"C4", MPI_COMPLEX4},
#endif
#ifdef MPI_COMPLEX8
    {"C8", MPI_COMPLEX8},
#endif
#ifdef MPI_COMPLEX16
    {"C16", MPI_COMPLEX16},
#endif
#ifdef MPI_COMPLEX32
    {"C32", MPI_COMPLEX32},
#endif
#ifdef MPI_CXX_BOOL
    {"cB", MPI_CXX_BOOL},
#endif
#ifdef MPI_CXX_FLOAT_COMPLEX
    {"cfC", MPI_CXX_FLOAT_COMPLEX},
#endif
#ifdef MPI_CXX_DOUBLE_COMPLEX
    {"cdC", MPI_CXX_DOUBLE_COMPLEX},
#endif
#ifdef MPI_CXX_LONG_DOUBLE_COMPLEX
    {"cldC", MPI_CXX_LONG_DOUBLE_COMPLEX},
#endif
};
enum { BASICS = sizeof basics / sizeof basics[0] };
