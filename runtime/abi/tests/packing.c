/* Packing: sizes, positions, truncation, external32, types with addresses and without data
   (MPI-5.0 sections 5.2 and 5.3). */
#include "check.h"

static void native(void) {
  MPI_Comm world = MPI_COMM_WORLD;
  struct { int a; char b[5]; double c; } out = {7, "abcd", 2.5}, in;
  char buffer[128];
  int position = 0, bytes, total = 0;
  MPI_Count large;
  int counts[3] = {1, 5, 1};
  MPI_Datatype types[3] = {MPI_INT, MPI_CHAR, MPI_DOUBLE};
  void *from[3] = {&out.a, out.b, &out.c}, *to[3] = {&in.a, in.b, &in.c};
  memset(&in, 0, sizeof in);
  for (int i = 0; i < 3; i++) {
    OK(MPI_Pack_size(counts[i], types[i], world, &bytes));
    OK(MPI_Pack_size_c(counts[i], types[i], world, &large));
    CHECK(bytes > 0 && large == bytes);
    total += bytes;
    OK(MPI_Pack(from[i], counts[i], types[i], buffer, sizeof buffer, &position, world));
    CHECK(position <= total);
  }
  int end = position;
  position = 0;
  for (int i = 0; i < 3; i++)
    OK(MPI_Unpack(buffer, end, &position, to[i], counts[i], types[i], world));
  CHECK(position == end && in.a == 7 && !strcmp(in.b, "abcd") && in.c == 2.5);
  /* Packed data travel as such, and are received as what they are, or the other way round. */
  memset(&in, 0, sizeof in);
  char there[128];
  MPI_Status status;
  int next = (me + 1) % size, before = (me + size - 1) % size, n;
  OK(MPI_Sendrecv(buffer, end, MPI_PACKED, next, 0, there, sizeof there, MPI_PACKED, before, 0, world, &status));
  OK(MPI_Get_count(&status, MPI_PACKED, &n));
  CHECK(n == end);
  position = 0;
  for (int i = 0; i < 3; i++)
    OK(MPI_Unpack(there, n, &position, to[i], counts[i], types[i], world));
  CHECK(in.a == 7 && in.c == 2.5);
  /* No room, positions that are wrong, and what is left as it was. */
  position = 0;
  MPI_Count at = 4;
  CHECK(MPI_Pack(&out.c, 1, MPI_DOUBLE, buffer, 7, &position, world) != MPI_SUCCESS && position == 0);
  CHECK(MPI_Unpack(buffer, 7, &position, &in.c, 1, MPI_DOUBLE, world) != MPI_SUCCESS && position == 0);
  CHECK(MPI_Pack_c(&out.c, 1, MPI_DOUBLE, buffer, 11, &at, world) != MPI_SUCCESS && at == 4);
  position = -1;
  CHECK(MPI_Pack(&out.c, 1, MPI_DOUBLE, buffer, 64, &position, world) != MPI_SUCCESS);
  position = 65;
  CHECK(MPI_Pack(&out.c, 1, MPI_DOUBLE, buffer, 64, &position, world) != MPI_SUCCESS);
  CHECK(MPI_Unpack(buffer, 64, &position, &in.c, 1, MPI_DOUBLE, world) != MPI_SUCCESS);
  position = 0;
  FAILS(MPI_ERR_COUNT, MPI_Pack(&out.c, -1, MPI_DOUBLE, buffer, 64, &position, world));
  FAILS(MPI_ERR_COUNT, MPI_Unpack(buffer, 64, &position, &in.c, -1, MPI_DOUBLE, world));
  FAILS(MPI_ERR_COUNT, MPI_Pack_size(-1, MPI_DOUBLE, world, &bytes));
  FAILS(MPI_ERR_TYPE, MPI_Pack(&out.c, 1, MPI_DATATYPE_NULL, buffer, 64, &position, world));
  FAILS(MPI_ERR_TYPE, MPI_Unpack(buffer, 64, &position, &in.c, 1, MPI_DATATYPE_NULL, world));
  FAILS(MPI_ERR_TYPE, MPI_Pack_size(1, MPI_DATATYPE_NULL, world, &bytes));
  FAILS(MPI_ERR_COMM, MPI_Pack(&out.c, 1, MPI_DOUBLE, buffer, 64, &position, MPI_COMM_NULL));
  FAILS(MPI_ERR_COMM, MPI_Unpack(buffer, 64, &position, &in.c, 1, MPI_DOUBLE, MPI_COMM_NULL));
  FAILS(MPI_ERR_COMM, MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_NULL, &bytes));
  FAILS(MPI_ERR_BUFFER, MPI_Pack(NULL, 1, MPI_DOUBLE, buffer, 64, &position, world));
  FAILS(MPI_ERR_BUFFER, MPI_Pack(&out.c, 1, MPI_DOUBLE, NULL, 64, &position, world));
  FAILS(MPI_ERR_BUFFER, MPI_Unpack(buffer, 64, &position, NULL, 1, MPI_DOUBLE, world));
  FAILS(MPI_ERR_ARG, MPI_Pack(&out.c, 1, MPI_DOUBLE, buffer, 64, NULL, world));
  FAILS(MPI_ERR_ARG, MPI_Pack_size(1, MPI_DOUBLE, world, NULL));
  /* Nothing. */
  OK(MPI_Pack_size(0, MPI_DOUBLE, world, &bytes));
  OK(MPI_Pack(NULL, 0, MPI_DOUBLE, NULL, 0, &position, world));
  OK(MPI_Unpack(NULL, 0, &position, NULL, 0, MPI_DOUBLE, world));
  CHECK(position == 0);
}

static void derived(void) {
  MPI_Datatype column, absolute;
  int matrix[4][4], got[4][4], position = 0, bytes, one = 1;
  char buffer[256];
  for (int i = 0; i < 16; i++) matrix[i / 4][i % 4] = i;
  memset(got, 0, sizeof got);
  OK(MPI_Type_vector(4, 1, 4, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  OK(MPI_Pack_size(2, column, MPI_COMM_SELF, &bytes));
  CHECK(bytes >= 32 && bytes <= 256);
  OK(MPI_Pack(&matrix[0][1], 1, column, buffer, bytes, &position, MPI_COMM_SELF));
  int end = position;
  position = 0;
  /* Packed as a column and unpacked as ints: the signature counts. */
  OK(MPI_Unpack(buffer, end, &position, got[2], 4, MPI_INT, MPI_COMM_SELF));
  for (int i = 0; i < 4; i++) CHECK(got[2][i] == 4 * i + 1);
  /* A part of it. */
  position = 0;
  memset(got, 0, sizeof got);
  OK(MPI_Unpack(buffer, end, &position, got[1], 2, MPI_INT, MPI_COMM_SELF));
  OK(MPI_Unpack(buffer, end, &position, got[3], 2, MPI_INT, MPI_COMM_SELF));
  CHECK(got[1][1] == 5 && got[3][0] == 9 && position == end);
  /* From MPI_BOTTOM, by addresses. */
  MPI_Aint place;
  OK(MPI_Get_address(&matrix[3][3], &place));
  OK(MPI_Type_create_hindexed(1, &one, &place, MPI_INT, &absolute));
  OK(MPI_Type_commit(&absolute));
  position = 0;
  OK(MPI_Pack(MPI_BOTTOM, 1, absolute, buffer, sizeof buffer, &position, MPI_COMM_SELF));
  matrix[3][3] = -1;
  position = 0;
  OK(MPI_Unpack(buffer, sizeof buffer, &position, MPI_BOTTOM, 1, absolute, MPI_COMM_SELF));
  CHECK(matrix[3][3] == 15);
  OK(MPI_Type_free(&absolute));
  OK(MPI_Type_free(&column));
}

static void external(void) {
  unsigned char buffer[64], due[14] = {0, 0, 0, 5, 0xff, 0xfe, 0x40, 4, 0, 0, 0, 0, 0, 0};
  int value = 5, value_back = 0;
  short small = -2, small_back = 0;
  double real = 2.5, real_back = 0;
  MPI_Aint at = 0, bytes;
  MPI_Count large, position = 0;
  OK(MPI_Pack_external("external32", &value, 1, MPI_INT, buffer, sizeof buffer, &at));
  OK(MPI_Pack_external("external32", &small, 1, MPI_SHORT, buffer, sizeof buffer, &at));
  OK(MPI_Pack_external("external32", &real, 1, MPI_DOUBLE, buffer, sizeof buffer, &at));
  CHECK(at == 14 && !memcmp(buffer, due, 14));
  at = 0;
  OK(MPI_Unpack_external("external32", buffer, 14, &at, &value_back, 1, MPI_INT));
  OK(MPI_Unpack_external("external32", buffer, 14, &at, &small_back, 1, MPI_SHORT));
  OK(MPI_Unpack_external("external32", buffer, 14, &at, &real_back, 1, MPI_DOUBLE));
  CHECK(at == 14 && value_back == 5 && small_back == -2 && real_back == 2.5);
  real_back = value_back = 0;
  OK(MPI_Unpack_external_c("external32", buffer, 14, &position, &value_back, 1, MPI_INT));
  CHECK(position == 4 && value_back == 5);
  /* Logicals of one width keep their bits, so a .TRUE. of another compiler stays what it is. */
  int logical = -1, logical_back = 0;
  unsigned char truth = 5, truth_back = 0;
  at = 0;
  OK(MPI_Pack_external("external32", &logical, 1, MPI_LOGICAL, buffer, sizeof buffer, &at));
  OK(MPI_Pack_external("external32", &truth, 1, MPI_C_BOOL, buffer, sizeof buffer, &at));
  CHECK(at == 5 && !memcmp(buffer, "\xff\xff\xff\xff\5", 5));
  at = 0;
  OK(MPI_Unpack_external("external32", buffer, 5, &at, &logical_back, 1, MPI_LOGICAL));
  OK(MPI_Unpack_external("external32", buffer, 5, &at, &truth_back, 1, MPI_C_BOOL));
  CHECK(at == 5 && logical_back == -1 && truth_back == 5);
  /* Sizes of external32, which aren't those of C. */
  struct { MPI_Datatype type; int bytes; } sizes[] = {
      {MPI_CHAR, 1}, {MPI_SHORT, 2}, {MPI_INT, 4}, {MPI_LONG, 4}, {MPI_LONG_LONG, 8}, {MPI_FLOAT, 4},
      {MPI_DOUBLE, 8}, {MPI_LONG_DOUBLE, 16}, {MPI_C_BOOL, 1}, {MPI_WCHAR, 2}, {MPI_INT16_T, 2},
      {MPI_AINT, 8}, {MPI_COUNT, 8}, {MPI_OFFSET, 8}, {MPI_C_DOUBLE_COMPLEX, 16}, {MPI_BYTE, 1},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    OK(MPI_Pack_external_size("external32", 3, sizes[i].type, &bytes));
    OK(MPI_Pack_external_size_c("external32", 3, sizes[i].type, &large));
    if (bytes != 3 * sizes[i].bytes) fprintf(stderr, "type %d: %d bytes\n", (int)i, (int)bytes);
    CHECK(bytes == 3 * sizes[i].bytes && large == bytes);
  }
  MPI_Datatype mixed;
  int lengths[2] = {1, 2};
  MPI_Aint offsets[2] = {0, 8};
  MPI_Datatype members[2] = {MPI_CHAR, MPI_LONG};
  OK(MPI_Type_create_struct(2, lengths, offsets, members, &mixed));
  OK(MPI_Type_commit(&mixed));
  OK(MPI_Pack_external_size("external32", 2, mixed, &bytes));
  CHECK(bytes == 18);
  struct { char a[8]; long b[2]; } out = {{'x'}, {-1, 123456}}, in = {{0}, {0, 0}};
  at = 0;
  OK(MPI_Pack_external("external32", &out, 1, mixed, buffer, sizeof buffer, &at));
  CHECK(at == 9 && buffer[0] == 'x' && buffer[1] == 0xff && buffer[4] == 0xff && buffer[8] == 0x40);
  at = 0;
  OK(MPI_Unpack_external("external32", buffer, 9, &at, &in, 1, mixed));
  CHECK(in.a[0] == 'x' && in.b[0] == -1 && in.b[1] == 123456);
  OK(MPI_Type_free(&mixed));
  at = 0;
  CHECK(MPI_Pack_external("external32", &real, 1, MPI_DOUBLE, buffer, 7, &at) != MPI_SUCCESS && at == 0);
  CHECK(MPI_Unpack_external("external32", buffer, 7, &at, &real, 1, MPI_DOUBLE) != MPI_SUCCESS && at == 0);
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_Pack_external_size("native32", 1, MPI_INT, &bytes));
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_Unpack_external("native32", buffer, 4, &at, &value, 1, MPI_INT));
  FAILS(MPI_ERR_ARG, MPI_Pack_external(NULL, &value, 1, MPI_INT, buffer, 64, &at));
  FAILS(MPI_ERR_COUNT, MPI_Pack_external_size("external32", -1, MPI_INT, &bytes));
  FAILS(MPI_ERR_COUNT, MPI_Pack_external("external32", &value, -1, MPI_INT, buffer, 64, &at));
  FAILS(MPI_ERR_TYPE, MPI_Pack_external_size("external32", 1, MPI_DATATYPE_NULL, &bytes));
  FAILS(MPI_ERR_TYPE, MPI_Unpack_external("external32", buffer, 4, &at, &value, 1, MPI_DATATYPE_NULL));
}

/* Lengths that no int has. */
static void large(void) {
  MPI_Count bytes, huge = (MPI_Count)3 << 31;
  MPI_Aint short_bytes = 0;
  int n;
  OK(MPI_Pack_size_c(huge, MPI_INT, MPI_COMM_WORLD, &bytes));
  CHECK(bytes >= 4 * huge);
  OK(MPI_Pack_external_size_c("external32", huge, MPI_INT, &bytes));
  CHECK(bytes == 4 * huge);
  OK(MPI_Pack_size(1 << 30, MPI_INT, MPI_COMM_WORLD, &n));
  CHECK(n == MPI_UNDEFINED);
  if (sizeof(MPI_Aint) == 8) {
    OK(MPI_Pack_external_size("external32", 1 << 30, MPI_INT, &short_bytes));
    CHECK(short_bytes / 4 == 1 << 30);
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  native();
  derived();
  external();
  large();
  return end();
}
