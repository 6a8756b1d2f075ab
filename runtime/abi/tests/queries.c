/* What datatypes are called, how long they are, which ones match sizes and kinds of Fortran, and
   how much of them a status counts (MPI-5.0 sections 3.2.5, 3.3.2 and 5.1). */
#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* A predefined type has the name and the size that C has for it, and can't be freed. */
static void predefined(void) {
  struct pair_of_float { float value; int index; };
  struct pair_of_double { double value; int index; };
  struct pair_of_long { long value; int index; };
  struct pair_of_short { short value; int index; };
  struct pair_of_long_double { long double value; int index; };
  struct { MPI_Datatype type; const char *name; size_t bytes, extent; } all[] = {
#define ONE(name, c) {name, #name, sizeof(c), sizeof(c)}
#define PAIR(name, c, pair) {name, #name, sizeof(c) + sizeof(int), sizeof(pair)}
      ONE(MPI_CHAR, char), ONE(MPI_SIGNED_CHAR, signed char), ONE(MPI_UNSIGNED_CHAR, unsigned char),
      ONE(MPI_BYTE, char), ONE(MPI_PACKED, char), ONE(MPI_WCHAR, wchar_t), ONE(MPI_SHORT, short),
      ONE(MPI_UNSIGNED_SHORT, short), ONE(MPI_INT, int), ONE(MPI_UNSIGNED, int), ONE(MPI_LONG, long),
      ONE(MPI_UNSIGNED_LONG, long), ONE(MPI_LONG_LONG_INT, long long),
      ONE(MPI_UNSIGNED_LONG_LONG, long long), ONE(MPI_FLOAT, float), ONE(MPI_DOUBLE, double),
      ONE(MPI_LONG_DOUBLE, long double), ONE(MPI_C_BOOL, bool), ONE(MPI_INT8_T, int8_t),
      ONE(MPI_INT16_T, int16_t), ONE(MPI_INT32_T, int32_t), ONE(MPI_INT64_T, int64_t),
      ONE(MPI_UINT8_T, int8_t), ONE(MPI_UINT16_T, int16_t), ONE(MPI_UINT32_T, int32_t),
      ONE(MPI_UINT64_T, int64_t), ONE(MPI_AINT, MPI_Aint), ONE(MPI_COUNT, MPI_Count),
      ONE(MPI_OFFSET, MPI_Offset), ONE(MPI_C_COMPLEX, float complex),
      ONE(MPI_C_DOUBLE_COMPLEX, double complex), ONE(MPI_C_LONG_DOUBLE_COMPLEX, long double complex),
      PAIR(MPI_FLOAT_INT, float, struct pair_of_float), PAIR(MPI_DOUBLE_INT, double, struct pair_of_double),
      PAIR(MPI_LONG_INT, long, struct pair_of_long), PAIR(MPI_SHORT_INT, short, struct pair_of_short),
      PAIR(MPI_LONG_DOUBLE_INT, long double, struct pair_of_long_double),
      {MPI_2INT, "MPI_2INT", 2 * sizeof(int), 2 * sizeof(int)},
      ONE(MPI_CHARACTER, char), ONE(MPI_INTEGER, int), ONE(MPI_LOGICAL, int), ONE(MPI_REAL, float),
      ONE(MPI_DOUBLE_PRECISION, double), ONE(MPI_COMPLEX, float complex),
      ONE(MPI_DOUBLE_COMPLEX, double complex), ONE(MPI_2REAL, float[2]),
      ONE(MPI_2DOUBLE_PRECISION, double[2]), ONE(MPI_2INTEGER, int[2]), ONE(MPI_INTEGER1, char),
      ONE(MPI_INTEGER2, char[2]), ONE(MPI_INTEGER4, char[4]), ONE(MPI_INTEGER8, char[8]),
      ONE(MPI_INTEGER16, char[16]), ONE(MPI_REAL2, char[2]), ONE(MPI_REAL4, char[4]),
      ONE(MPI_REAL8, char[8]), ONE(MPI_REAL16, char[16]), ONE(MPI_COMPLEX4, char[4]),
      ONE(MPI_COMPLEX8, char[8]), ONE(MPI_COMPLEX16, char[16]), ONE(MPI_COMPLEX32, char[32]),
      ONE(MPI_LOGICAL1, char), ONE(MPI_LOGICAL2, char[2]), ONE(MPI_LOGICAL4, char[4]),
      ONE(MPI_LOGICAL8, char[8]), ONE(MPI_LOGICAL16, char[16]), ONE(MPI_CXX_BOOL, bool),
      ONE(MPI_CXX_FLOAT_COMPLEX, float complex), ONE(MPI_CXX_DOUBLE_COMPLEX, double complex),
      ONE(MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex),
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char name[MPI_MAX_OBJECT_NAME];
    int length, n, a, b, c, combiner;
    MPI_Aint lb, extent;
    OK(MPI_Type_get_name(all[i].type, name, &length));
    if (strcmp(name, all[i].name)) fprintf(stderr, "%s is called %s\n", all[i].name, name);
    CHECK(!strcmp(name, all[i].name) && length == (int)strlen(name));
    OK(MPI_Type_size(all[i].type, &n));
    OK(MPI_Type_get_extent(all[i].type, &lb, &extent));
    if (n != (int)all[i].bytes || extent != (MPI_Aint)all[i].extent)
      fprintf(stderr, "%s has %d bytes, extent %d\n", name, n, (int)extent);
    CHECK(n == (int)all[i].bytes && !lb && extent == (MPI_Aint)all[i].extent);
    OK(MPI_Type_get_true_extent(all[i].type, &lb, &extent));
    CHECK(!lb && extent >= (MPI_Aint)all[i].bytes && extent <= (MPI_Aint)all[i].extent);
    OK(MPI_Type_get_envelope(all[i].type, &a, &b, &c, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED && !a && !b && !c);
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(all[i].type, 0, 0, 0, NULL, NULL, NULL));
    MPI_Datatype type = all[i].type;
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
    CHECK(type == all[i].type);
    /* They need no commit, and dups of them have none of their names. */
    OK(MPI_Send(NULL, 0, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Type_dup(type, &type));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(!name[0] && !length);
    OK(MPI_Type_free(&type));
  }
  CHECK(MPI_LONG_LONG_INT == MPI_LONG_LONG && MPI_C_COMPLEX == MPI_C_FLOAT_COMPLEX);
}

static void names(void) {
  MPI_Datatype type;
  char name[MPI_MAX_OBJECT_NAME], longest[2 * MPI_MAX_OBJECT_NAME];
  int length;
  OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length));
  CHECK(!strcmp(name, "MPI_DATATYPE_NULL") && length == 17);
  OK(MPI_Type_contiguous(2, MPI_INT, &type));
  memset(longest, 'x', sizeof longest);
  longest[MPI_MAX_OBJECT_NAME - 1] = 0;
  OK(MPI_Type_set_name(type, longest));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(!strcmp(name, longest) && length == MPI_MAX_OBJECT_NAME - 1);
  /* A longer one is cut. */
  longest[MPI_MAX_OBJECT_NAME - 1] = 'x';
  longest[sizeof longest - 1] = 0;
  OK(MPI_Type_set_name(type, longest));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(length == MPI_MAX_OBJECT_NAME - 1 && (int)strlen(name) == length);
  OK(MPI_Type_set_name(type, ""));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK(!length && !name[0]);
  FAILS(MPI_ERR_ARG, MPI_Type_set_name(type, NULL));
  FAILS(MPI_ERR_ARG, MPI_Type_get_name(type, NULL, &length));
  FAILS(MPI_ERR_ARG, MPI_Type_get_name(type, name, NULL));
  FAILS(MPI_ERR_TYPE, MPI_Type_set_name(MPI_DATATYPE_NULL, "null"));
  OK(MPI_Type_free(&type));
  /* Predefined types can be renamed. */
  OK(MPI_Type_set_name(MPI_SHORT, "small"));
  OK(MPI_Type_get_name(MPI_SHORT, name, &length));
  CHECK(!strcmp(name, "small"));
  OK(MPI_Type_set_name(MPI_SHORT, "MPI_SHORT"));
}

static void sizes(void) {
  MPI_Datatype type, again;
  int n, a, b, c, combiner, given[2];
  struct { int class, bytes; } known[] = {
      {MPI_TYPECLASS_INTEGER, 1}, {MPI_TYPECLASS_INTEGER, 2}, {MPI_TYPECLASS_INTEGER, 4},
      {MPI_TYPECLASS_INTEGER, 8}, {MPI_TYPECLASS_REAL, 4}, {MPI_TYPECLASS_REAL, 8},
      {MPI_TYPECLASS_COMPLEX, 8}, {MPI_TYPECLASS_COMPLEX, 16},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    OK(MPI_Type_match_size(known[i].class, known[i].bytes, &type));
    OK(MPI_Type_size(type, &n));
    CHECK(n == known[i].bytes);
    OK(MPI_Type_match_size(known[i].class, known[i].bytes, &again));
    CHECK(type == again);
    /* It is a predefined type, no dup of one. */
    OK(MPI_Type_get_envelope(type, &a, &b, &c, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED);
  }
  FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 0, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_INTEGER, -4, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_match_size(12345, 4, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, NULL));

  OK(MPI_Type_create_f90_real(6, 37, &type));
  OK(MPI_Type_size(type, &n));
  CHECK(n == 4);
  OK(MPI_Type_get_envelope(type, &a, &b, &c, &combiner));
  CHECK(combiner == MPI_COMBINER_F90_REAL && a == 2 && !b && !c);
  OK(MPI_Type_get_contents(type, 2, 0, 0, given, NULL, NULL));
  CHECK(given[0] == 6 && given[1] == 37);
  OK(MPI_Type_create_f90_real(6, 37, &again));
  CHECK(type == again);
  OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type));
  OK(MPI_Type_size(type, &n));
  CHECK(n == 8);
  OK(MPI_Type_get_contents(type, 2, 0, 0, given, NULL, NULL));
  CHECK(given[0] == 15 && given[1] == MPI_UNDEFINED);
  OK(MPI_Type_create_f90_complex(MPI_UNDEFINED, 30, &type));
  OK(MPI_Type_size(type, &n));
  CHECK(n == 8);
  OK(MPI_Type_get_envelope(type, &a, &b, &c, &combiner));
  CHECK(combiner == MPI_COMBINER_F90_COMPLEX && a == 2);
  OK(MPI_Type_get_contents(type, 2, 0, 0, given, NULL, NULL));
  CHECK(given[0] == MPI_UNDEFINED && given[1] == 30);
  int range[] = {1, 2, 3, 4, 5, 9, 10, 18}, bytes[] = {1, 1, 2, 2, 4, 4, 8, 8};
  for (int i = 0; i < 8; i++) {
    OK(MPI_Type_create_f90_integer(range[i], &type));
    OK(MPI_Type_size(type, &n));
    CHECK(n == bytes[i]);
    OK(MPI_Type_get_envelope(type, &a, &b, &c, &combiner));
    CHECK(combiner == MPI_COMBINER_F90_INTEGER && a == 1);
    OK(MPI_Type_get_contents(type, 1, 0, 0, given, NULL, NULL));
    CHECK(given[0] == range[i]);
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  }
  /* They count as predefined: no commit is needed, and types are made of them. */
  short value[2] = {7, 0};
  OK(MPI_Type_create_f90_integer(4, &type));
  OK(MPI_Sendrecv(value, 1, type, 0, 0, value + 1, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(value[1] == 7);
  OK(MPI_Type_contiguous(2, type, &again));
  OK(MPI_Type_get_contents(again, 1, 0, 1, given, NULL, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  OK(MPI_Type_free(&again));
  FAILS(MPI_ERR_ARG, MPI_Type_create_f90_real(400, 5000, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_f90_real(-2, 5, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_f90_integer(1000, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_f90_integer(-1, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_f90_complex(400, 5000, &type));

  struct { MPI_Datatype value, index, pair; } pairs[] = {
      {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT}, {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
      {MPI_LONG, MPI_INT, MPI_LONG_INT}, {MPI_INT, MPI_INT, MPI_2INT},
      {MPI_SHORT, MPI_INT, MPI_SHORT_INT}, {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
      {MPI_BYTE, MPI_BYTE, MPI_DATATYPE_NULL},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    OK(MPI_Type_get_value_index(pairs[i].value, pairs[i].index, &type));
    CHECK(type == pairs[i].pair);
  }
  FAILS(MPI_ERR_TYPE, MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &type));
}

/* Counts and elements of what a call received, and of what a program sets. */
static void statuses(void) {
  MPI_Datatype pair, empty, triple;
  MPI_Status status;
  int n, flag, lengths[2] = {1, 1};
  MPI_Count large;
  MPI_Aint offsets[2] = {0, 4};
  MPI_Datatype members[2] = {MPI_INT, MPI_SHORT};
  OK(MPI_Type_create_struct(2, lengths, offsets, members, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Type_contiguous(0, MPI_INT, &empty));
  OK(MPI_Type_commit(&empty));
  OK(MPI_Type_contiguous(3, pair, &triple));
  OK(MPI_Type_commit(&triple));
  /* A program may set a status that it only declares. */
  memset(&status, 0x5a, sizeof status);
  for (int set = 0; set < 9; set++) {
    OK(MPI_Status_set_elements(&status, pair, set));
    OK(MPI_Get_elements(&status, pair, &n));
    CHECK(n == set);
    OK(MPI_Get_elements_c(&status, pair, &large));
    CHECK(large == set);
    OK(MPI_Get_elements_x(&status, pair, &large));
    CHECK(large == set);
    OK(MPI_Get_count(&status, pair, &n));
    CHECK(n == (set % 2 ? MPI_UNDEFINED : set / 2));
    OK(MPI_Get_count_c(&status, pair, &large));
    CHECK(large == (set % 2 ? MPI_UNDEFINED : set / 2));
    OK(MPI_Get_elements(&status, triple, &n));
    CHECK(n == set);
    OK(MPI_Get_count(&status, triple, &n));
    CHECK(n == (set % 6 ? MPI_UNDEFINED : set / 6));
    OK(MPI_Get_count(&status, MPI_BYTE, &n));
    CHECK(n == set / 2 * 6 + set % 2 * 4);
    OK(MPI_Status_set_elements_x(&status, MPI_DOUBLE, set));
    OK(MPI_Get_count(&status, MPI_DOUBLE, &n));
    CHECK(n == set);
  }
  OK(MPI_Status_set_elements(&status, MPI_BYTE, 0));
  OK(MPI_Get_count(&status, empty, &n));
  CHECK(n == 0);
  OK(MPI_Get_elements(&status, empty, &n));
  CHECK(n == 0);
  OK(MPI_Get_count(&status, triple, &n));
  CHECK(n == 0);
  OK(MPI_Status_set_elements(&status, empty, 0));
  OK(MPI_Get_count(&status, MPI_INT, &n));
  CHECK(n == 0);
  FAILS(MPI_ERR_COUNT, MPI_Status_set_elements(&status, MPI_INT, -1));
  FAILS(MPI_ERR_TYPE, MPI_Status_set_elements(&status, MPI_DATATYPE_NULL, 1));
  FAILS(MPI_ERR_TYPE, MPI_Get_count(&status, MPI_DATATYPE_NULL, &n));
  FAILS(MPI_ERR_TYPE, MPI_Get_elements(&status, MPI_DATATYPE_NULL, &n));
  FAILS(MPI_ERR_ARG, MPI_Get_count(&status, MPI_INT, NULL));
  /* More than an int counts. */
  MPI_Count huge = (MPI_Count)1 << 33;
  OK(MPI_Status_set_elements_c(&status, MPI_INT, huge));
  OK(MPI_Get_count(&status, MPI_INT, &n));
  CHECK(n == MPI_UNDEFINED);
  OK(MPI_Get_elements(&status, MPI_INT, &n));
  CHECK(n == MPI_UNDEFINED);
  OK(MPI_Get_count_c(&status, MPI_INT, &large));
  CHECK(large == huge);
  OK(MPI_Get_elements_c(&status, MPI_INT, &large));
  CHECK(large == huge);
  OK(MPI_Status_set_elements_x(&status, pair, huge));
  OK(MPI_Get_elements_x(&status, pair, &large));
  CHECK(large == huge);

  /* The fields of a status, which a program can set. */
  MPI_Status empty_status;
  memset(&empty_status, 0, sizeof empty_status);
  OK(MPI_Status_set_source(&empty_status, 5));
  OK(MPI_Status_set_tag(&empty_status, 6));
  OK(MPI_Status_set_error(&empty_status, MPI_ERR_TAG));
  OK(MPI_Status_set_elements(&empty_status, MPI_INT, 3));
  CHECK(empty_status.MPI_SOURCE == 5 && empty_status.MPI_TAG == 6 && empty_status.MPI_ERROR == MPI_ERR_TAG);
  OK(MPI_Status_get_source(&empty_status, &n));
  CHECK(n == 5);
  OK(MPI_Status_get_tag(&empty_status, &n));
  CHECK(n == 6);
  OK(MPI_Status_get_error(&empty_status, &n));
  CHECK(n == MPI_ERR_TAG);
  OK(MPI_Test_cancelled(&empty_status, &flag));
  CHECK(!flag);
  OK(MPI_Status_set_cancelled(&empty_status, 7));
  OK(MPI_Test_cancelled(&empty_status, &flag));
  CHECK(flag);
  OK(MPI_Status_set_cancelled(&empty_status, 0));
  OK(MPI_Test_cancelled(&empty_status, &flag));
  CHECK(!flag);
  OK(MPI_Get_count(&empty_status, MPI_INT, &n));
  CHECK(n == 3);
  OK(MPI_Type_free(&triple));
  OK(MPI_Type_free(&empty));
  OK(MPI_Type_free(&pair));
}

static void addresses(void) {
  char array[32] = {0};
  MPI_Aint first, last;
  OK(MPI_Get_address(array, &first));
  OK(MPI_Get_address(array + 31, &last));
  CHECK(MPI_Aint_diff(last, first) == 31 && MPI_Aint_diff(first, last) == -31);
  CHECK(MPI_Aint_add(first, 31) == last && MPI_Aint_add(last, -31) == first);
  OK(MPI_Get_address(MPI_BOTTOM, &first));
  CHECK(!first);
  FAILS(MPI_ERR_ARG, MPI_Get_address(array, NULL));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  predefined();
  names();
  sizes();
  statuses();
  addresses();
  return end();
}
