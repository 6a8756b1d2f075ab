/* Every operation on every type it takes: reductions of messages and of windows agree with C's
   operators, and refuse the types that they don't take (MPI-5.0 sections 6.9.2 and 12.3.4). */
#include "check.h"
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { ELEMENTS = 3 };

static MPI_Win win;
static char *base;
static MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
static const char *names[] = {"MAX", "MIN", "SUM", "PROD", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR"};

/* Applies an operation by all calls that do, and checks what they return. */
static void apply(MPI_Datatype type, int op, const void *in, const void *there, const void *due, size_t bytes) {
  char local[64], got[64], all[64];
  size_t total = bytes * ELEMENTS;
  memcpy(local, there, total);
  OK(MPI_Reduce_local(in, local, ELEMENTS, type, ops[op]));
  if (memcmp(local, due, total)) fprintf(stderr, "%s of %zu bytes\n", names[op], bytes);
  CHECK(!memcmp(local, due, total));
  /* Rank 0 has the one operand, the others the other: of two ranks all results are known. */
  OK(MPI_Allreduce(in, all, ELEMENTS, type, ops[op], MPI_COMM_SELF));
  CHECK(!memcmp(all, in, total));
  memcpy(base, there, total);
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  memset(got, 0x77, sizeof got);
  OK(MPI_Get_accumulate(in, ELEMENTS, type, got, ELEMENTS, type, 0, 0, ELEMENTS, type, ops[op], win));
  OK(MPI_Win_flush(0, win));
  CHECK(!memcmp(got, there, total) && !memcmp(base, due, total));
  memcpy(base, there, total);
  OK(MPI_Accumulate(in, ELEMENTS, type, 0, 0, ELEMENTS, type, ops[op], win));
  OK(MPI_Win_flush(0, win));
  CHECK(!memcmp(base, due, total));
  memcpy(base, there, total);
  memset(got, 0x77, sizeof got);
  OK(MPI_Fetch_and_op(in, got, type, 0, 0, ops[op], win));
  OK(MPI_Win_unlock(0, win));
  CHECK(!memcmp(got, there, bytes) && !memcmp(base, due, bytes));
  CHECK(!memcmp(base + bytes, (const char *)there + bytes, bytes));
}

static void refused(MPI_Datatype type, int op) {
  char in[64] = {0}, out[64] = {0};
  FAILS(MPI_ERR_OP, MPI_Reduce_local(in, out, 1, type, ops[op]));
  FAILS(MPI_ERR_OP, MPI_Allreduce(in, out, 1, type, ops[op], MPI_COMM_SELF));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(in, 1, type, 0, 0, 1, type, ops[op], win));
  FAILS(MPI_ERR_OP, MPI_Fetch_and_op(in, out, type, 0, 0, ops[op], win));
  OK(MPI_Win_unlock(0, win));
}

#define NUMBER(c, a, b, op)                                                        \
  (op == 0 ? (a > b ? a : b) : op == 1 ? (a < b ? a : b) : op == 2 ? (c)(a + b) : (c)(a * b))
#define LOGICAL(c, a, b, op) ((c)(op == 4 ? (a && b) : op == 5 ? (a || b) : (!a != !b)))
#define BITS(c, a, b, op) ((c)(op == 7 ? (a & b) : op == 8 ? (a | b) : (a ^ b)))

/* Integers. */
#define INTEGERS(type, c)                                                        \
  do {                                                                           \
    c in_[ELEMENTS] = {3, 0, (c)-5}, there_[ELEMENTS] = {7, 9, 2}, due_[ELEMENTS]; \
    for (int op_ = 0; op_ < 10; op_++) {                                         \
      for (int i_ = 0; i_ < ELEMENTS; i_++)                                      \
        due_[i_] = op_ < 4   ? NUMBER(c, in_[i_], there_[i_], op_)               \
                   : op_ < 7 ? LOGICAL(c, in_[i_], there_[i_], op_)              \
                             : BITS(c, in_[i_], there_[i_], op_);                \
      apply(type, op_, in_, there_, due_, sizeof(c));                            \
    }                                                                            \
  } while (0)

#define REALS(type, c)                                                     \
  do {                                                                           \
    static c in_[ELEMENTS] = {3, 0.5, -5}, there_[ELEMENTS] = {7, 9, 2}, due_[ELEMENTS]; \
    for (int op_ = 0; op_ < 10; op_++) {                                         \
      if (op_ >= 4) {                                                            \
        refused(type, op_);                                                      \
        continue;                                                                \
      }                                                                          \
      for (int i_ = 0; i_ < ELEMENTS; i_++) due_[i_] = NUMBER(c, in_[i_], there_[i_], op_); \
      apply(type, op_, in_, there_, due_, sizeof(c));                            \
    }                                                                            \
  } while (0)

#define COMPLEX(type, c)                                                         \
  do {                                                                           \
    c in_[ELEMENTS] = {3 + 1 * I, 0.5, -5 * I}, there_[ELEMENTS] = {7, 9 * I, 2 - I}, due_[ELEMENTS]; \
    for (int op_ = 0; op_ < 10; op_++) {                                         \
      if (op_ != 2 && op_ != 3) {                                                \
        refused(type, op_);                                                      \
        continue;                                                                \
      }                                                                          \
      for (int i_ = 0; i_ < ELEMENTS; i_++) due_[i_] = op_ == 2 ? in_[i_] + there_[i_] : in_[i_] * there_[i_]; \
      apply(type, op_, in_, there_, due_, sizeof(c));                            \
    }                                                                            \
  } while (0)

static void arithmetic(void) {
  INTEGERS(MPI_INT, int);
  INTEGERS(MPI_LONG, long);
  INTEGERS(MPI_SHORT, short);
  INTEGERS(MPI_UNSIGNED_SHORT, unsigned short);
  INTEGERS(MPI_UNSIGNED, unsigned);
  INTEGERS(MPI_UNSIGNED_LONG, unsigned long);
  INTEGERS(MPI_LONG_LONG, long long);
  INTEGERS(MPI_UNSIGNED_LONG_LONG, unsigned long long);
  INTEGERS(MPI_SIGNED_CHAR, signed char);
  INTEGERS(MPI_UNSIGNED_CHAR, unsigned char);
  INTEGERS(MPI_INT8_T, int8_t);
  INTEGERS(MPI_INT16_T, int16_t);
  INTEGERS(MPI_INT32_T, int32_t);
  INTEGERS(MPI_INT64_T, int64_t);
  INTEGERS(MPI_UINT8_T, uint8_t);
  INTEGERS(MPI_UINT16_T, uint16_t);
  INTEGERS(MPI_UINT32_T, uint32_t);
  INTEGERS(MPI_UINT64_T, uint64_t);
  INTEGERS(MPI_AINT, MPI_Aint);
  INTEGERS(MPI_COUNT, MPI_Count);
  INTEGERS(MPI_OFFSET, MPI_Offset);
  REALS(MPI_FLOAT, float);
  REALS(MPI_DOUBLE, double);
  COMPLEX(MPI_C_FLOAT_COMPLEX, float complex);
  COMPLEX(MPI_C_DOUBLE_COMPLEX, double complex);
}

/* Comparisons that fail: the origin's value is the first operand, as MPI_Reduce_local's inbuf, and
   remains. */
#define UNORDERED(type, c)                                                       \
  do {                                                                           \
    c in_[ELEMENTS], there_[ELEMENTS];                                           \
    memset(in_, 0, sizeof in_), memset(there_, 0, sizeof there_);                \
    in_[0] = NAN, in_[1] = 1, in_[2] = 0;                                        \
    there_[0] = 1, there_[1] = NAN, there_[2] = -(c)0;                           \
    for (int op = 0; op < 2; op++) {                                             \
      apply(type, op, in_, there_, in_, sizeof(c));                              \
      apply(type, op, there_, in_, there_, sizeof(c));                           \
    }                                                                            \
  } while (0)

static void unordered(void) {
  UNORDERED(MPI_FLOAT, float);
  UNORDERED(MPI_DOUBLE, double);
  UNORDERED(MPI_LONG_DOUBLE, long double);
}

/* Truth values, bytes and text. */
static void others(void) {
  bool in[ELEMENTS] = {true, false, true}, there[ELEMENTS] = {true, true, false}, due[ELEMENTS];
  for (int op = 0; op < 10; op++) {
    if (op < 4 || op > 6) {
      refused(MPI_C_BOOL, op);
      continue;
    }
    for (int i = 0; i < ELEMENTS; i++) due[i] = LOGICAL(bool, in[i], there[i], op);
    apply(MPI_C_BOOL, op, in, there, due, sizeof(bool));
  }
  unsigned char bytes[ELEMENTS] = {0x0f, 0xf0, 0x55}, old[ELEMENTS] = {0x3c, 0xff, 0xaa}, result[ELEMENTS];
  for (int op = 0; op < 10; op++) {
    if (op < 7) {
      refused(MPI_BYTE, op);
      continue;
    }
    for (int i = 0; i < ELEMENTS; i++) result[i] = BITS(unsigned char, bytes[i], old[i], op);
    apply(MPI_BYTE, op, bytes, old, result, 1);
  }
  for (int op = 0; op < 10; op++) refused(MPI_WCHAR, op);
  for (int op = 0; op < 10; op++) refused(MPI_DOUBLE_INT, op);
}

#define PAIRS(type, c)                                                              \
  do {                                                                              \
    struct { c value; int index; } in_[2], there_[2], got_[2];                      \
    memset(in_, 0, sizeof in_), memset(there_, 0, sizeof there_), memset(got_, 0, sizeof got_); \
    in_[0].value = 3, in_[0].index = 9, in_[1].value = 4, in_[1].index = 2;         \
    there_[0].value = 3, there_[0].index = 5, there_[1].value = 1, there_[1].index = 1; \
    memcpy(got_, there_, sizeof there_);                                            \
    OK(MPI_Reduce_local(in_, got_, 2, type, MPI_MAXLOC));                           \
    CHECK(got_[0].value == 3 && got_[0].index == 5 && got_[1].value == 4 && got_[1].index == 2); \
    memcpy(got_, there_, sizeof there_);                                            \
    OK(MPI_Reduce_local(in_, got_, 2, type, MPI_MINLOC));                           \
    CHECK(got_[0].value == 3 && got_[0].index == 5 && got_[1].value == 1 && got_[1].index == 1); \
    memcpy(base, there_, sizeof there_);                                            \
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));                                \
    OK(MPI_Accumulate(in_, 2, type, 0, 0, 2, type, MPI_MAXLOC, win));               \
    OK(MPI_Win_unlock(0, win));                                                     \
    memcpy(got_, base, sizeof got_);                                                \
    CHECK(got_[0].value == 3 && got_[0].index == 5 && got_[1].value == 4 && got_[1].index == 2); \
    FAILS(MPI_ERR_OP, MPI_Reduce_local(in_, got_, 2, MPI_INT, MPI_MAXLOC));         \
  } while (0)

/* Derived types: accumulates take those of one predefined type. */
static void derived(void) {
  MPI_Datatype even, mixed, members[2] = {MPI_INT, MPI_DOUBLE};
  int in[4] = {1, 2, 3, 4}, lengths[2] = {1, 1}, out[4] = {0};
  MPI_Aint offsets[2] = {0, 8};
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &even));
  OK(MPI_Type_commit(&even));
  OK(MPI_Type_create_struct(2, lengths, offsets, members, &mixed));
  OK(MPI_Type_commit(&mixed));
  for (int i = 0; i < 4; i++) ((int *)base)[i] = 10 * i;
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  OK(MPI_Accumulate(in, 2, MPI_INT, 0, 0, 1, even, MPI_SUM, win));
  OK(MPI_Get_accumulate(in, 1, even, out, 2, MPI_INT, 0, 0, 1, even, MPI_SUM, win));
  OK(MPI_Win_flush(0, win));
  CHECK(out[0] == 1 && out[1] == 22);
  int *now = (int *)base;
  CHECK(now[0] == 2 && now[1] == 10 && now[2] == 25 && now[3] == 30);
  CHECK(MPI_Accumulate(in, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win) != MPI_SUCCESS);
  CHECK(MPI_Fetch_and_op(in, out, even, 0, 0, MPI_SUM, win) != MPI_SUCCESS);
  CHECK(MPI_Compare_and_swap(in, in, out, even, 0, 0, win) != MPI_SUCCESS);
  OK(MPI_Accumulate(in, 1, even, 0, 0, 1, even, MPI_REPLACE, win));
  OK(MPI_Win_unlock(0, win));
  CHECK(now[0] == 1 && now[2] == 3);
  CHECK(MPI_Reduce_local(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM) != MPI_SUCCESS);
  OK(MPI_Type_free(&mixed));
  OK(MPI_Type_free(&even));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  OK(MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  arithmetic();
  unordered();
  others();
  PAIRS(MPI_2INT, int);
  PAIRS(MPI_FLOAT_INT, float);
  PAIRS(MPI_DOUBLE_INT, double);
  PAIRS(MPI_LONG_INT, long);
  PAIRS(MPI_SHORT_INT, short);
  derived();
  OK(MPI_Win_free(&win));
  return end();
}
