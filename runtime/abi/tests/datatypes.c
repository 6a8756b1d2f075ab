/* Datatypes: constructors, bounds, envelopes and contents, counts, packing. */
#include "check.h"

static void bounds(MPI_Datatype type, MPI_Count size_, MPI_Count lb, MPI_Count extent) {
  MPI_Count size, low, length;
  OK(MPI_Type_size_c(type, &size));
  OK(MPI_Type_get_extent_c(type, &low, &length));
  CHECK(size == size_ && low == lb && length == extent);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  MPI_Datatype type, other, types[2] = {MPI_INT, MPI_DOUBLE};
  int n, lengths[2] = {2, 1}, places[2] = {0, 4};
  MPI_Aint offsets[2] = {0, 8};
  OK(MPI_Type_contiguous(0, MPI_INT, &type));
  bounds(type, 0, 0, 0);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_vector(3, 2, 4, MPI_INT, &type));
  bounds(type, 24, 0, 40);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_vector(2, 1, -3, MPI_SHORT, &type));
  bounds(type, 4, -6, 8);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_indexed(2, lengths, places, MPI_SHORT, &type));
  bounds(type, 6, 0, 10);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_create_struct(2, lengths, offsets, types, &type));
  bounds(type, 16, 0, 16);
  OK(MPI_Type_create_resized(type, -8, 64, &other));
  bounds(other, 16, -8, 64);
  MPI_Aint lb, extent;
  OK(MPI_Type_get_true_extent(other, &lb, &extent));
  CHECK(lb == 0 && extent == 16);
  OK(MPI_Type_free(&other));
  /* A type that isn't committed can't be used, and one that is freed lives on in others. */
  int position = 0;
  char packed[64];
  struct { int a[2]; double b; } value = {{1, 2}, 3.5}, back;
  FAILS(MPI_ERR_TYPE, MPI_Pack(&value, 1, type, packed, 64, &position, MPI_COMM_WORLD));
  OK(MPI_Type_dup(type, &other));
  OK(MPI_Type_commit(&type));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_commit(&other));
  OK(MPI_Type_commit(&other));
  OK(MPI_Pack_size(1, other, MPI_COMM_WORLD, &n));
  CHECK(n >= 16);
  OK(MPI_Pack(&value, 1, other, packed, 64, &position, MPI_COMM_WORLD));
  CHECK(position >= 16);
  position = 0;
  memset(&back, 0, sizeof back);
  OK(MPI_Unpack(packed, 64, &position, &back, 1, other, MPI_COMM_WORLD));
  CHECK(!memcmp(&value, &back, sizeof back));
  MPI_Aint at = 0;
  OK(MPI_Pack_external("external32", &value, 1, other, packed, 64, &at));
  CHECK(at == 16 && packed[3] == 1 && packed[7] == 2);
  at = 0;
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_Pack_external("none", &value, 1, other, packed, 64, &at));
  FAILS(MPI_ERR_TRUNCATE, MPI_Pack_external("external32", &value, 1, other, packed, 8, &at));

  int integers, addresses, datatypes, combiner, given[8];
  OK(MPI_Type_get_envelope(other, &integers, &addresses, &datatypes, &combiner));
  CHECK(combiner == MPI_COMBINER_DUP && datatypes == 1 && !integers && !addresses);
  MPI_Datatype child;
  OK(MPI_Type_get_contents(other, 0, 0, 1, 0, 0, &child));
  OK(MPI_Type_get_envelope(child, &integers, &addresses, &datatypes, &combiner));
  CHECK(combiner == MPI_COMBINER_STRUCT && integers == 3 && addresses == 2 && datatypes == 2);
  MPI_Aint where[2];
  OK(MPI_Type_get_contents(child, 8, 2, 2, given, where, types));
  CHECK(given[0] == 2 && given[1] == 2 && given[2] == 1 && where[1] == 8);
  CHECK(types[0] == MPI_INT && types[1] == MPI_DOUBLE);
  FAILS(MPI_ERR_ARG, MPI_Type_get_contents(child, 2, 2, 2, given, where, types));
  FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 0, 0, 0, given, where, types));
  OK(MPI_Type_get_envelope(MPI_INT, &integers, &addresses, &datatypes, &combiner));
  CHECK(combiner == MPI_COMBINER_NAMED);
  OK(MPI_Type_free(&child));

  /* A darray by default has the ABI's constant in its contents. */
  int sizes[1] = {8}, cyclic[1] = {MPI_DISTRIBUTE_CYCLIC};
  int dargs[1] = {MPI_DISTRIBUTE_DFLT_DARG}, grid[1] = {2};
  OK(MPI_Type_create_darray(2, 1, 1, sizes, cyclic, dargs, grid, MPI_ORDER_C, MPI_INT, &type));
  OK(MPI_Type_get_contents(type, 8, 0, 1, given, 0, types));
  CHECK(given[4] == MPI_DISTRIBUTE_CYCLIC && given[5] == MPI_DISTRIBUTE_DFLT_DARG);
  OK(MPI_Type_free(&type));
  int starts[2] = {1, 1}, full[2] = {4, 6}, part[2] = {2, 3};
  OK(MPI_Type_create_subarray(2, full, part, starts, MPI_ORDER_FORTRAN, MPI_INT, &type));
  bounds(type, 24, 0, 96);
  OK(MPI_Type_free(&type));
  part[0] = 5;
  FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, full, part, starts, MPI_ORDER_C, MPI_INT, &type));

  /* Counts beyond those of ints. */
  MPI_Count huge = (MPI_Count)5 << 32;
  OK(MPI_Type_contiguous_c(huge, MPI_SHORT, &type));
  bounds(type, 2 * huge, 0, 2 * huge);
  OK(MPI_Type_size(type, &n));
  CHECK(n == MPI_UNDEFINED);
  OK(MPI_Type_free(&type));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, 0));

  /* Kinds of Fortran are one handle for equal parameters. */
  OK(MPI_Type_create_f90_real(6, 30, &type));
  OK(MPI_Type_create_f90_real(6, 30, &child));
  CHECK(type == child);
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  CHECK(type != MPI_DATATYPE_NULL);
  OK(MPI_Type_size(type, &n));
  CHECK(n == 8);
  OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type));
  CHECK(type == MPI_DOUBLE_INT);

  MPI_Status status;
  memset(&status, 0, sizeof status);
  OK(MPI_Status_set_elements(&status, other, 4));
  OK(MPI_Get_elements(&status, other, &n));
  CHECK(n == 4);
  OK(MPI_Get_count(&status, other, &n));
  CHECK(n == MPI_UNDEFINED);
  OK(MPI_Status_set_elements_c(&status, other, 3 * huge));
  MPI_Count large;
  OK(MPI_Get_count_c(&status, other, &large));
  CHECK(large == huge);
  OK(MPI_Get_count(&status, other, &n));
  CHECK(n == MPI_UNDEFINED);
  char name[MPI_MAX_OBJECT_NAME];
  OK(MPI_Type_get_name(MPI_INT, name, &n));
  CHECK(!strcmp(name, "MPI_INT"));
  OK(MPI_Type_get_name(other, name, &n));
  CHECK(!n);
  OK(MPI_Type_set_name(other, "mine"));
  OK(MPI_Type_get_name(other, name, &n));
  CHECK(!strcmp(name, "mine"));
  OK(MPI_Type_free(&other));
  return end();
}
