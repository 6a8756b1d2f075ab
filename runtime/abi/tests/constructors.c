/* The constructors of datatypes: bounds, envelopes and contents in both versions, edge cases, and
   arguments that are refused (MPI-5.0 section 5.1). */
#include "check.h"

static MPI_Datatype pair;

/* The bounds of a type, which it then frees. */
static void bounds(MPI_Datatype type, MPI_Count bytes, MPI_Count lb, MPI_Count extent,
                   MPI_Count true_lb, MPI_Count true_extent) {
  MPI_Count number, low, length;
  MPI_Aint short_low, short_length;
  int n;
  OK(MPI_Type_size_c(type, &number));
  CHECK(number == bytes);
  OK(MPI_Type_size_x(type, &number));
  CHECK(number == bytes);
  OK(MPI_Type_size(type, &n));
  CHECK(n == (bytes > 0x7fffffff ? MPI_UNDEFINED : (int)bytes));
  OK(MPI_Type_get_extent_c(type, &low, &length));
  CHECK(low == lb && length == extent);
  OK(MPI_Type_get_extent_x(type, &low, &length));
  CHECK(low == lb && length == extent);
  OK(MPI_Type_get_true_extent_c(type, &low, &length));
  CHECK(low == true_lb && length == true_extent);
  OK(MPI_Type_get_true_extent_x(type, &low, &length));
  CHECK(low == true_lb && length == true_extent);
  if (sizeof(MPI_Aint) == 8) {
    OK(MPI_Type_get_extent(type, &short_low, &short_length));
    CHECK(short_low == lb && short_length == extent);
    OK(MPI_Type_get_true_extent(type, &short_low, &short_length));
    CHECK(short_low == true_lb && short_length == true_extent);
  }
  OK(MPI_Type_free(&type));
  CHECK(type == MPI_DATATYPE_NULL);
}

/* What a type was made of. */
static int integers[32], n_integers, n_addresses, n_datatypes;
static MPI_Aint addresses[8];
static MPI_Datatype datatypes[8];

/* Checks that the contents of a type come with all counts as its envelope says, and are refused
   with one less of each kind. */
static void contents(MPI_Datatype type, int combiner, int ints, int aints, int types) {
  int found;
  OK(MPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_datatypes, &found));
  CHECK(found == combiner && n_integers == ints && n_addresses == aints && n_datatypes == types);
  memset(integers, 0x55, sizeof integers);
  if (ints) FAILS(MPI_ERR_ARG, MPI_Type_get_contents(type, ints - 1, aints, types, integers, addresses, datatypes));
  if (aints) FAILS(MPI_ERR_ARG, MPI_Type_get_contents(type, ints, aints - 1, types, integers, addresses, datatypes));
  if (types) FAILS(MPI_ERR_ARG, MPI_Type_get_contents(type, ints, aints, types - 1, integers, addresses, datatypes));
  OK(MPI_Type_get_contents(type, ints, aints, types, ints ? integers : NULL, aints ? addresses : NULL, datatypes));
  CHECK(integers[ints] == 0x55555555);
}

/* The same in the version with large counts. */
static MPI_Count counts[16];

static void contents_c(MPI_Datatype type, int combiner, MPI_Count ints, MPI_Count aints, MPI_Count large,
                       MPI_Count types) {
  int found;
  MPI_Count a, b, c, d;
  OK(MPI_Type_get_envelope_c(type, &a, &b, &c, &d, &found));
  CHECK(found == combiner && a == ints && b == aints && c == large && d == types);
  if (large)
    FAILS(MPI_ERR_ARG, MPI_Type_get_contents_c(type, ints, aints, large - 1, types, integers, addresses, counts, datatypes));
  OK(MPI_Type_get_contents_c(type, ints, aints, large, types, integers, addresses, counts, datatypes));
}

static void of_one_block(void) {
  MPI_Datatype type;
  OK(MPI_Type_contiguous(3, pair, &type));
  contents(type, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
  CHECK(integers[0] == 3);
  OK(MPI_Type_free(&datatypes[0]));
  bounds(type, 24, 0, 48, 0, 44);
  OK(MPI_Type_contiguous_c(3, MPI_CHAR, &type));
  contents_c(type, MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1);
  CHECK(counts[0] == 3 && datatypes[0] == MPI_CHAR);
  bounds(type, 3, 0, 3, 0, 3);
  OK(MPI_Type_contiguous(0, pair, &type));
  contents(type, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
  OK(MPI_Type_free(&datatypes[0]));
  bounds(type, 0, 0, 0, 0, 0);
  OK(MPI_Type_dup(pair, &type));
  contents(type, MPI_COMBINER_DUP, 0, 0, 1);
  CHECK(datatypes[0] != MPI_DATATYPE_NULL);
  OK(MPI_Type_free(&datatypes[0]));
  bounds(type, 8, 0, 16, 0, 12);
  OK(MPI_Type_dup(MPI_DOUBLE, &type));
  contents(type, MPI_COMBINER_DUP, 0, 0, 1);
  CHECK(datatypes[0] == MPI_DOUBLE);
  bounds(type, 8, 0, 8, 0, 8);
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous_c(-1, MPI_INT, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_dup(MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, NULL));
  FAILS(MPI_ERR_ARG, MPI_Type_dup(MPI_INT, NULL));
}

static void strided(void) {
  MPI_Datatype type;
  OK(MPI_Type_vector(3, 2, 4, MPI_INT, &type));
  contents(type, MPI_COMBINER_VECTOR, 3, 0, 1);
  CHECK(integers[0] == 3 && integers[1] == 2 && integers[2] == 4 && datatypes[0] == MPI_INT);
  bounds(type, 24, 0, 40, 0, 40);
  OK(MPI_Type_vector_c(3, 2, 4, MPI_INT, &type));
  contents_c(type, MPI_COMBINER_VECTOR, 0, 0, 3, 1);
  CHECK(counts[0] == 3 && counts[1] == 2 && counts[2] == 4);
  bounds(type, 24, 0, 40, 0, 40);
  OK(MPI_Type_vector(3, 1, -2, MPI_INT, &type));
  bounds(type, 12, -16, 20, -16, 20);
  OK(MPI_Type_vector(3, 1, 0, MPI_INT, &type));
  bounds(type, 12, 0, 4, 0, 4);
  OK(MPI_Type_vector(0, 5, 7, MPI_INT, &type));
  bounds(type, 0, 0, 0, 0, 0);
  OK(MPI_Type_vector(4, 0, 7, MPI_INT, &type));
  bounds(type, 0, 0, 0, 0, 0);
  OK(MPI_Type_create_hvector(2, 1, -10, MPI_SHORT, &type));
  contents(type, MPI_COMBINER_HVECTOR, 2, 1, 1);
  CHECK(integers[0] == 2 && integers[1] == 1 && addresses[0] == -10);
  bounds(type, 4, -10, 12, -10, 12);
  OK(MPI_Type_create_hvector_c(2, 1, 10, MPI_SHORT, &type));
  contents_c(type, MPI_COMBINER_HVECTOR, 0, 0, 3, 1);
  CHECK(counts[0] == 2 && counts[1] == 1 && counts[2] == 10);
  bounds(type, 4, 0, 12, 0, 12);
  FAILS(MPI_ERR_COUNT, MPI_Type_vector(-1, 1, 1, MPI_INT, &type));
  FAILS(MPI_ERR_COUNT, MPI_Type_create_hvector(-1, 1, 1, MPI_INT, &type));
  /* A block's length that is negative is refused, with whichever class. */
  CHECK(MPI_Type_vector(1, -1, 1, MPI_INT, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &type) != MPI_SUCCESS);
  FAILS(MPI_ERR_TYPE, MPI_Type_vector(1, 1, 1, MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_create_hvector(1, 1, 1, MPI_DATATYPE_NULL, &type));
}

static void indexed(void) {
  MPI_Datatype type;
  int lengths[3] = {2, 0, 1}, places[3] = {5, 100, -1};
  MPI_Aint offsets[3] = {20, 1000, -4};
  MPI_Count large[3] = {2, 0, 1}, where[3] = {5, 100, -1}, bytes[3] = {20, 1000, -4};
  OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type));
  contents(type, MPI_COMBINER_INDEXED, 7, 0, 1);
  CHECK(integers[0] == 3 && !memcmp(integers + 1, lengths, sizeof lengths) && !memcmp(integers + 4, places, sizeof places));
  bounds(type, 12, -4, 32, -4, 32);
  OK(MPI_Type_indexed_c(3, large, where, MPI_INT, &type));
  contents_c(type, MPI_COMBINER_INDEXED, 0, 0, 7, 1);
  CHECK(counts[0] == 3 && counts[1] == 2 && counts[4] == 5 && counts[6] == -1);
  bounds(type, 12, -4, 32, -4, 32);
  OK(MPI_Type_create_hindexed(3, lengths, offsets, MPI_INT, &type));
  contents(type, MPI_COMBINER_HINDEXED, 4, 3, 1);
  CHECK(integers[0] == 3 && integers[1] == 2 && integers[3] == 1 && !memcmp(addresses, offsets, sizeof offsets));
  bounds(type, 12, -4, 32, -4, 32);
  OK(MPI_Type_create_hindexed_c(3, large, bytes, MPI_INT, &type));
  contents_c(type, MPI_COMBINER_HINDEXED, 0, 0, 7, 1);
  CHECK(counts[0] == 3 && counts[1] == 2 && counts[4] == 20 && counts[6] == -4);
  bounds(type, 12, -4, 32, -4, 32);
  OK(MPI_Type_create_indexed_block(3, 2, places, MPI_SHORT, &type));
  contents(type, MPI_COMBINER_INDEXED_BLOCK, 5, 0, 1);
  CHECK(integers[0] == 3 && integers[1] == 2 && !memcmp(integers + 2, places, sizeof places));
  bounds(type, 12, -2, 206, -2, 206);
  OK(MPI_Type_create_indexed_block_c(3, 2, where, MPI_SHORT, &type));
  contents_c(type, MPI_COMBINER_INDEXED_BLOCK, 0, 0, 5, 1);
  CHECK(counts[0] == 3 && counts[1] == 2 && counts[2] == 5 && counts[4] == -1);
  bounds(type, 12, -2, 206, -2, 206);
  OK(MPI_Type_create_hindexed_block(3, 1, offsets, MPI_SHORT, &type));
  contents(type, MPI_COMBINER_HINDEXED_BLOCK, 2, 3, 1);
  CHECK(integers[0] == 3 && integers[1] == 1 && !memcmp(addresses, offsets, sizeof offsets));
  bounds(type, 6, -4, 1006, -4, 1006);
  OK(MPI_Type_create_hindexed_block_c(3, 1, bytes, MPI_SHORT, &type));
  contents_c(type, MPI_COMBINER_HINDEXED_BLOCK, 0, 0, 5, 1);
  CHECK(counts[0] == 3 && counts[1] == 1 && counts[3] == 1000);
  bounds(type, 6, -4, 1006, -4, 1006);
  /* No blocks, of no memory either. */
  OK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &type));
  contents(type, MPI_COMBINER_INDEXED, 1, 0, 1);
  bounds(type, 0, 0, 0, 0, 0);
  OK(MPI_Type_create_hindexed(0, NULL, NULL, MPI_INT, &type));
  bounds(type, 0, 0, 0, 0, 0);
  OK(MPI_Type_create_indexed_block(0, 3, NULL, MPI_INT, &type));
  bounds(type, 0, 0, 0, 0, 0);
  OK(MPI_Type_create_hindexed_block(0, 3, NULL, MPI_INT, &type));
  bounds(type, 0, 0, 0, 0, 0);
  FAILS(MPI_ERR_ARG, MPI_Type_indexed(1, NULL, places, MPI_INT, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_indexed(1, lengths, NULL, MPI_INT, &type));
  FAILS(MPI_ERR_COUNT, MPI_Type_indexed(-1, lengths, places, MPI_INT, &type));
  FAILS(MPI_ERR_COUNT, MPI_Type_create_hindexed(-1, lengths, offsets, MPI_INT, &type));
  FAILS(MPI_ERR_COUNT, MPI_Type_create_indexed_block(-1, 1, places, MPI_INT, &type));
  FAILS(MPI_ERR_COUNT, MPI_Type_create_hindexed_block(-1, 1, offsets, MPI_INT, &type));
  lengths[1] = -1;
  CHECK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_create_hindexed(3, lengths, offsets, MPI_INT, &type) != MPI_SUCCESS);
  FAILS(MPI_ERR_TYPE, MPI_Type_indexed(1, lengths, places, MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_create_hindexed(1, lengths, offsets, MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_create_indexed_block(1, 1, places, MPI_DATATYPE_NULL, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_create_hindexed_block(1, 1, offsets, MPI_DATATYPE_NULL, &type));
}

static void structs(void) {
  MPI_Datatype type, members[3] = {MPI_CHAR, pair, MPI_DOUBLE};
  int lengths[3] = {3, 1, 2};
  MPI_Aint offsets[3] = {0, 4, 24};
  MPI_Count large[3] = {3, 1, 2}, bytes[3] = {0, 4, 24};
  OK(MPI_Type_create_struct(3, lengths, offsets, members, &type));
  contents(type, MPI_COMBINER_STRUCT, 4, 3, 3);
  CHECK(integers[0] == 3 && !memcmp(integers + 1, lengths, sizeof lengths) && !memcmp(addresses, offsets, sizeof offsets));
  CHECK(datatypes[0] == MPI_CHAR && datatypes[2] == MPI_DOUBLE);
  OK(MPI_Type_free(&datatypes[1]));
  /* A resized member sets the bounds alone: those that are set count before those that are not. */
  bounds(type, 27, 4, 16, 0, 40);
  OK(MPI_Type_create_struct_c(3, large, bytes, members, &type));
  contents_c(type, MPI_COMBINER_STRUCT, 0, 0, 7, 3);
  CHECK(counts[0] == 3 && counts[1] == 3 && counts[4] == 0 && counts[6] == 24);
  OK(MPI_Type_free(&datatypes[1]));
  bounds(type, 27, 4, 16, 0, 40);
  /* Padding at the end, as C has. */
  MPI_Datatype two[2] = {MPI_INT, MPI_CHAR};
  int ones[2] = {1, 1};
  MPI_Aint at[2] = {0, 4};
  OK(MPI_Type_create_struct(2, ones, at, two, &type));
  bounds(type, 5, 0, 8, 0, 5);
  OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &type));
  contents(type, MPI_COMBINER_STRUCT, 1, 0, 0);
  bounds(type, 0, 0, 0, 0, 0);
  FAILS(MPI_ERR_COUNT, MPI_Type_create_struct(-1, ones, at, two, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_struct(2, ones, at, NULL, &type));
  two[1] = MPI_DATATYPE_NULL;
  FAILS(MPI_ERR_TYPE, MPI_Type_create_struct(2, ones, at, two, &type));
  two[1] = MPI_CHAR;
  ones[0] = -1;
  CHECK(MPI_Type_create_struct(2, ones, at, two, &type) != MPI_SUCCESS);

  OK(MPI_Type_create_resized(MPI_INT, -4, 16, &type));
  contents(type, MPI_COMBINER_RESIZED, 0, 2, 1);
  CHECK(addresses[0] == -4 && addresses[1] == 16 && datatypes[0] == MPI_INT);
  bounds(type, 4, -4, 16, 0, 4);
  OK(MPI_Type_create_resized_c(MPI_INT, -4, 16, &type));
  contents_c(type, MPI_COMBINER_RESIZED, 0, 0, 2, 1);
  CHECK(counts[0] == -4 && counts[1] == 16);
  bounds(type, 4, -4, 16, 0, 4);
  OK(MPI_Type_create_resized(MPI_INT, 0, 0, &type));
  bounds(type, 4, 0, 0, 0, 4);
  OK(MPI_Type_create_resized(MPI_INT, 0, -8, &type));
  bounds(type, 4, 0, -8, 0, 4);
  FAILS(MPI_ERR_TYPE, MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 8, &type));
}

static void arrays(void) {
  MPI_Datatype type;
  int sizes[2] = {4, 6}, part[2] = {2, 3}, starts[2] = {1, 2};
  MPI_Count large[2] = {4, 6}, subsizes[2] = {2, 3}, from[2] = {1, 2};
  OK(MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_INT, &type));
  contents(type, MPI_COMBINER_SUBARRAY, 8, 0, 1);
  CHECK(integers[0] == 2 && integers[1] == 4 && integers[3] == 2 && integers[6] == 2 && integers[7] == MPI_ORDER_C);
  bounds(type, 24, 0, 96, 32, 36);
  OK(MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_FORTRAN, MPI_INT, &type));
  contents(type, MPI_COMBINER_SUBARRAY, 8, 0, 1);
  CHECK(integers[7] == MPI_ORDER_FORTRAN);
  bounds(type, 24, 0, 96, 36, 40);
  OK(MPI_Type_create_subarray_c(2, large, subsizes, from, MPI_ORDER_C, MPI_INT, &type));
  contents_c(type, MPI_COMBINER_SUBARRAY, 2, 0, 6, 1);
  CHECK(integers[0] == 2 && integers[1] == MPI_ORDER_C && counts[0] == 4 && counts[2] == 2 && counts[5] == 2);
  bounds(type, 24, 0, 96, 32, 36);
  FAILS(MPI_ERR_DIMS, MPI_Type_create_subarray(0, sizes, part, starts, MPI_ORDER_C, MPI_INT, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(-1, sizes, part, starts, MPI_ORDER_C, MPI_INT, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, NULL, part, starts, MPI_ORDER_C, MPI_INT, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, part, starts, 99, MPI_INT, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_DATATYPE_NULL, &type));
  for (int wrong = 0; wrong < 4; wrong++) {
    int s[2] = {4, 6}, p[2] = {2, 3}, f[2] = {1, 2};
    if (wrong == 0) s[0] = 0;
    if (wrong == 1) p[1] = 0;
    if (wrong == 2) f[0] = -1;
    if (wrong == 3) f[1] = 4;
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, s, p, f, MPI_ORDER_C, MPI_INT, &type));
  }

  int gsizes[2] = {10, 8}, psizes[2] = {2, 3};
  int distribs[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, dargs[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  MPI_Count global[2] = {10, 8}, total = 0, bytes;
  for (int rank = 0; rank < 6; rank++) {
    OK(MPI_Type_create_darray(6, rank, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type));
    contents(type, MPI_COMBINER_DARRAY, 12, 0, 1);
    CHECK(integers[0] == 6 && integers[1] == rank && integers[2] == 2 && integers[3] == 10);
    CHECK(integers[5] == MPI_DISTRIBUTE_BLOCK && integers[7] == MPI_DISTRIBUTE_DFLT_DARG && integers[8] == 2);
    CHECK(integers[9] == 2 && integers[10] == 3 && integers[11] == MPI_ORDER_C);
    OK(MPI_Type_size_c(type, &bytes));
    total += bytes;
    OK(MPI_Type_free(&type));
  }
  CHECK(total == 320);
  OK(MPI_Type_create_darray_c(6, 1, 2, global, distribs, dargs, psizes, MPI_ORDER_FORTRAN, MPI_INT, &type));
  contents_c(type, MPI_COMBINER_DARRAY, 10, 0, 2, 1);
  CHECK(integers[2] == 2 && integers[3] == MPI_DISTRIBUTE_BLOCK && integers[9] == MPI_ORDER_FORTRAN);
  CHECK(counts[0] == 10 && counts[1] == 8);
  OK(MPI_Type_free(&type));
  distribs[0] = MPI_DISTRIBUTE_NONE;
  CHECK(MPI_Type_create_darray(6, 0, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type) != MPI_SUCCESS);
  psizes[0] = 1;
  OK(MPI_Type_create_darray(3, 0, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type));
  OK(MPI_Type_free(&type));
  CHECK(MPI_Type_create_darray(4, 0, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_create_darray(3, 3, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type) != MPI_SUCCESS);
  CHECK(MPI_Type_create_darray(3, -1, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type) != MPI_SUCCESS);
  FAILS(MPI_ERR_DIMS, MPI_Type_create_darray(3, 0, 0, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type));
  FAILS(MPI_ERR_ARG, MPI_Type_create_darray(3, 0, 2, gsizes, distribs, dargs, psizes, 7, MPI_INT, &type));
  FAILS(MPI_ERR_TYPE, MPI_Type_create_darray(3, 0, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_DATATYPE_NULL, &type));
  distribs[1] = 99;
  FAILS(MPI_ERR_ARG, MPI_Type_create_darray(3, 0, 2, gsizes, distribs, dargs, psizes, MPI_ORDER_C, MPI_INT, &type));
}

/* Counts beyond those of ints. Each type has the contents of the version that made it. */
static void large(void) {
  MPI_Datatype type, outer;
  MPI_Count huge = (MPI_Count)3 << 31, one = 1;
  int a, b, c, combiner;
  OK(MPI_Type_contiguous_c(huge, MPI_CHAR, &type));
  contents_c(type, MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1);
  CHECK(counts[0] == huge);
  FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(type, &a, &b, &c, &combiner));
  FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(type, 1, 0, 1, integers, addresses, datatypes));
  /* A type made from it in the version of ints has contents in both versions. */
  OK(MPI_Type_contiguous(2, type, &outer));
  contents(outer, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
  contents_c(datatypes[0], MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1);
  contents(outer, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
  OK(MPI_Type_free(&datatypes[0]));
  bounds(outer, 2 * huge, 0, 2 * huge, 0, 2 * huge);
  bounds(type, huge, 0, huge, 0, huge);
  OK(MPI_Type_vector_c(2, 1, huge, MPI_INT, &type));
  bounds(type, 8, 0, 4 * huge + 4, 0, 4 * huge + 4);
  OK(MPI_Type_create_hindexed_c(1, &one, &huge, MPI_INT, &type));
  bounds(type, 4, huge, 4, huge, 4);
  OK(MPI_Type_create_resized_c(MPI_INT, -huge, 2 * huge, &type));
  bounds(type, 4, -huge, 2 * huge, 0, 4);
  /* Products that no count can hold: such types can be made, but not used. */
  MPI_Count top = (MPI_Count)1 << 62, none;
  OK(MPI_Type_contiguous_c(top, MPI_DOUBLE, &type));
  CHECK(MPI_Type_commit(&type) != MPI_SUCCESS && MPI_Type_size_c(type, &none) != MPI_SUCCESS);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_vector_c(4, 1, top, MPI_DOUBLE, &type));
  CHECK(MPI_Type_commit(&type) != MPI_SUCCESS && MPI_Type_get_extent_c(type, &none, &none) != MPI_SUCCESS);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_get_envelope(MPI_INT, &a, &b, &c, &combiner));
  CHECK(!a && !b && !c && combiner == MPI_COMBINER_NAMED);
  contents_c(pair, MPI_COMBINER_VECTOR, 3, 0, 0, 1);
}

/* Commits, frees, and types of freed types. */
static void lives(void) {
  MPI_Datatype type = MPI_INT, outer, stale;
  OK(MPI_Type_commit(&type));
  CHECK(type == MPI_INT);
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  CHECK(type == MPI_INT);
  type = MPI_DATATYPE_NULL;
  FAILS(MPI_ERR_TYPE, MPI_Type_commit(&type));
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  FAILS(MPI_ERR_ARG, MPI_Type_commit(NULL));
  FAILS(MPI_ERR_ARG, MPI_Type_free(NULL));
  OK(MPI_Type_contiguous(2, MPI_INT, &type));
  OK(MPI_Type_vector(2, 1, 2, type, &outer));
  stale = type;
  OK(MPI_Type_free(&type));
  FAILS(MPI_ERR_TYPE, MPI_Type_commit(&stale));
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&stale));
  int n;
  FAILS(MPI_ERR_TYPE, MPI_Type_size(stale, &n));
  FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, stale, &type));
  OK(MPI_Type_commit(&outer));
  int out[6] = {1, 2, 3, 4, 5, 6}, in[4] = {0};
  OK(MPI_Sendrecv(out, 1, outer, 0, 0, in, 4, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(in[0] == 1 && in[1] == 2 && in[2] == 5 && in[3] == 6);
  /* The contents are new references, which are committed or not as the type was. */
  contents(outer, MPI_COMBINER_VECTOR, 3, 0, 1);
  MPI_Datatype child = datatypes[0];
  contents(outer, MPI_COMBINER_VECTOR, 3, 0, 1);
  OK(MPI_Type_free(&datatypes[0]));
  OK(MPI_Type_free(&outer));
  OK(MPI_Type_commit(&child));
  OK(MPI_Send(out, 1, child, MPI_PROC_NULL, 0, MPI_COMM_SELF));
  OK(MPI_Type_free(&child));
}

/* Types of types, deep and in great number. */
static void many(void) {
  enum { MANY = 2000 };
  MPI_Datatype type, next;
  OK(MPI_Type_contiguous(1, MPI_INT, &type));
  for (int i = 0; i < 60; i++) {
    OK(MPI_Type_contiguous(1, type, &next));
    OK(MPI_Type_free(&type));
    type = next;
  }
  OK(MPI_Type_commit(&type));
  int out = 5, in = 0;
  OK(MPI_Sendrecv(&out, 1, type, 0, 0, &in, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(in == 5);
  OK(MPI_Type_free(&type));
  static MPI_Datatype all[MANY];
  for (int i = 0; i < MANY; i++) {
    OK(MPI_Type_vector(1 + i % 7, 1, 2, MPI_INT, &all[i]));
    OK(MPI_Type_commit(&all[i]));
  }
  for (int i = 0; i < MANY; i++) bounds(all[i], 4 * (1 + i % 7), 0, 8 * (i % 7) + 4, 0, 8 * (i % 7) + 4);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  /* Two ints with a gap between them and one behind: its extent is 16. */
  MPI_Datatype gap;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &gap));
  OK(MPI_Type_create_resized(gap, 0, 16, &pair));
  OK(MPI_Type_free(&gap));
  of_one_block();
  strided();
  indexed();
  structs();
  arrays();
  OK(MPI_Type_free(&pair));
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair));
  large();
  lives();
  many();
  OK(MPI_Type_free(&pair));
  return end();
}
