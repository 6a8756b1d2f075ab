/* Reductions by operations of the program that don't commute, on types with gaps, in every call and
   in place, and the versions of collective calls with large counts (MPI-5.0 sections 6.9 and 6.10).
*/
#include "check.h"

/* An element is a range of ranks: adjacent ranges combine to their union, all others to an error.
   It lies between gaps, which no call touches. */
typedef struct {
  int gap;
  int first, last;
  int tail;
} Range;

static MPI_Datatype range;
static int calls;

static void unite(void *in, void *inout, int *count, MPI_Datatype *type) {
  char *left = in, *right = inout;
  MPI_Aint lb, extent;
  CHECK(*type == range);
  OK(MPI_Type_get_extent(*type, &lb, &extent));
  CHECK(extent == sizeof(Range));
  calls++;
  for (int i = 0; i < *count; i++, left += extent, right += extent) {
    Range *a = (Range *)left, *b = (Range *)right;
    b->first = a->last + 1 == b->first ? a->first : -1000;
  }
}

static void unite_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
  int number = (int)*count;
  unite(in, inout, &number, type);
}

enum { MANY = 3 };

static void fill(Range *all, int n) {
  for (int i = 0; i < n; i++) all[i] = (Range){77, me, me, 88};
}

static int is(const Range *all, int n, int first, int last) {
  for (int i = 0; i < n; i++)
    if (all[i].first != first || all[i].last != last || all[i].gap != 77 || all[i].tail != 88) return 0;
  return 1;
}

static void ordered(MPI_Op op) {
  MPI_Comm world = MPI_COMM_WORLD;
  Range *in = malloc(MANY * size * sizeof *in), *out = malloc(MANY * size * sizeof *out);
  int *counts = malloc(size * sizeof *counts), total = 0;
  for (int root = 0; root < size; root++) {
    fill(in, MANY), fill(out, MANY);
    OK(MPI_Reduce(in, me == root ? out : NULL, MANY, range, op, root, world));
    CHECK(is(in, MANY, me, me) && (me == root ? is(out, MANY, 0, size - 1) : is(out, MANY, me, me)));
    fill(in, MANY);
    OK(MPI_Reduce(me == root ? MPI_IN_PLACE : in, me == root ? in : NULL, MANY, range, op, root, world));
    CHECK(me != root || is(in, MANY, 0, size - 1));
  }
  fill(in, MANY), fill(out, MANY);
  OK(MPI_Allreduce(in, out, MANY, range, op, world));
  CHECK(is(out, MANY, 0, size - 1) && is(in, MANY, me, me));
  OK(MPI_Allreduce(MPI_IN_PLACE, in, MANY, range, op, world));
  CHECK(is(in, MANY, 0, size - 1));
  fill(in, MANY), fill(out, MANY);
  OK(MPI_Scan(in, out, MANY, range, op, world));
  CHECK(is(out, MANY, 0, me));
  OK(MPI_Scan(MPI_IN_PLACE, in, MANY, range, op, world));
  CHECK(is(in, MANY, 0, me));
  fill(in, MANY), fill(out, MANY);
  OK(MPI_Exscan(in, out, MANY, range, op, world));
  CHECK(me == 0 ? is(out, MANY, 0, 0) : is(out, MANY, 0, me - 1));
  OK(MPI_Exscan(MPI_IN_PLACE, in, MANY, range, op, world));
  CHECK(me == 0 ? is(in, MANY, 0, 0) : is(in, MANY, 0, me - 1));
  fill(in, MANY * size), fill(out, MANY);
  OK(MPI_Reduce_scatter_block(in, out, MANY, range, op, world));
  CHECK(is(out, MANY, 0, size - 1));
  /* Rank i gets i % 3 elements. */
  for (int i = 0; i < size; i++) total += counts[i] = i % 3;
  fill(in, total), fill(out, MANY);
  OK(MPI_Reduce_scatter(in, out, counts, range, op, world));
  CHECK(is(out, me % 3, 0, size - 1) && is(out + me % 3, MANY - me % 3, me, me));
  OK(MPI_Reduce_scatter(MPI_IN_PLACE, in, counts, range, op, world));
  CHECK(is(in, me % 3, 0, size - 1));
  /* No elements: no call of the operation. */
  calls = 0;
  OK(MPI_Allreduce(in, out, 0, range, op, world));
  CHECK(!calls);
  Range a = {77, 0, 4, 88}, b = {77, 5, 9, 88};
  OK(MPI_Reduce_local(&a, &b, 1, range, op));
  CHECK(is(&b, 1, 0, 9) && calls == 1);
  FAILS(MPI_ERR_OP, MPI_Reduce_local(&a, &b, 1, range, MPI_OP_NULL));
  free(counts);
  free(out);
  free(in);
}

static void operations(void) {
  MPI_Op op, large;
  int commutes;
  OK(MPI_Op_create(unite, 0, &op));
  OK(MPI_Op_create_c(unite_large, 0, &large));
  OK(MPI_Op_commutative(op, &commutes));
  CHECK(!commutes);
  ordered(op);
  ordered(large);
  OK(MPI_Op_free(&op));
  OK(MPI_Op_free(&large));
  OK(MPI_Op_create(unite, 1, &op));
  OK(MPI_Op_commutative(op, &commutes));
  CHECK(commutes);
  OK(MPI_Op_free(&op));
  MPI_Op all[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
  for (int i = 0; i < 8; i++) {
    OK(MPI_Op_commutative(all[i], &commutes));
    CHECK(commutes);
    FAILS(MPI_ERR_OP, MPI_Op_free(&all[i]));
  }
  FAILS(MPI_ERR_OP, MPI_Op_commutative(MPI_OP_NULL, &commutes));
  FAILS(MPI_ERR_ARG, MPI_Op_create_c(NULL, 1, &op));
  FAILS(MPI_ERR_ARG, MPI_Op_create(unite, 1, NULL));
}

/* The versions with large counts do what the others do. */
static void large(void) {
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Count *ones = malloc(size * sizeof *ones);
  MPI_Aint *places = malloc(size * sizeof *places), *bytes = malloc(size * sizeof *bytes);
  MPI_Datatype *types = malloc(size * sizeof *types);
  int *all = malloc(size * sizeof *all), *out = malloc(size * sizeof *out), got = -1, sum = size * (size - 1) / 2;
  for (int i = 0; i < size; i++) {
    ones[i] = 1, places[i] = size - 1 - i, bytes[i] = i * (MPI_Aint)sizeof(int), types[i] = MPI_INT, out[i] = 10 * me + i;
  }
  got = me == 0 ? 5 : -1;
  OK(MPI_Bcast_c(&got, 1, MPI_INT, 0, world));
  CHECK(got == 5);
  OK(MPI_Gather_c(&me, 1, MPI_INT, all, 1, MPI_INT, size - 1, world));
  if (me == size - 1) for (int i = 0; i < size; i++) CHECK(all[i] == i);
  OK(MPI_Scatter_c(all, 1, MPI_INT, &got, 1, MPI_INT, size - 1, world));
  CHECK(got == me);
  OK(MPI_Gatherv_c(&me, 1, MPI_INT, all, ones, places, MPI_INT, 0, world));
  if (me == 0) for (int i = 0; i < size; i++) CHECK(all[i] == size - 1 - i);
  OK(MPI_Scatterv_c(all, ones, places, MPI_INT, &got, 1, MPI_INT, 0, world));
  CHECK(got == me);
  OK(MPI_Allgather_c(&me, 1, MPI_INT, all, 1, MPI_INT, world));
  for (int i = 0; i < size; i++) CHECK(all[i] == i);
  OK(MPI_Allgatherv_c(&me, 1, MPI_INT, all, ones, places, MPI_INT, world));
  for (int i = 0; i < size; i++) CHECK(all[i] == size - 1 - i);
  OK(MPI_Alltoall_c(out, 1, MPI_INT, all, 1, MPI_INT, world));
  for (int i = 0; i < size; i++) CHECK(all[i] == 10 * i + me);
  OK(MPI_Alltoallv_c(out, ones, places, MPI_INT, all, ones, places, MPI_INT, world));
  for (int i = 0; i < size; i++) CHECK(all[size - 1 - i] == 10 * i + size - 1 - me);
  OK(MPI_Alltoallw_c(out, ones, bytes, types, all, ones, bytes, types, world));
  for (int i = 0; i < size; i++) CHECK(all[i] == 10 * i + me);
  OK(MPI_Reduce_c(&me, &got, 1, MPI_INT, MPI_SUM, 0, world));
  CHECK(me || got == sum);
  OK(MPI_Allreduce_c(&me, &got, 1, MPI_INT, MPI_SUM, world));
  CHECK(got == sum);
  OK(MPI_Scan_c(&me, &got, 1, MPI_INT, MPI_SUM, world));
  CHECK(got == me * (me + 1) / 2);
  OK(MPI_Exscan_c(&me, &got, 1, MPI_INT, MPI_SUM, world));
  CHECK(!me || got == me * (me - 1) / 2);
  for (int i = 0; i < size; i++) out[i] = i;
  OK(MPI_Reduce_scatter_c(out, &got, ones, MPI_INT, MPI_SUM, world));
  CHECK(got == size * me);
  OK(MPI_Reduce_scatter_block_c(out, &got, 1, MPI_INT, MPI_SUM, world));
  CHECK(got == size * me);
  OK(MPI_Reduce_local_c(out, all, 1, MPI_INT, MPI_MAX));
  FAILS(MPI_ERR_COUNT, MPI_Bcast_c(&got, -1, MPI_INT, 0, MPI_COMM_SELF));
  ones[0] = -1;
  FAILS(MPI_ERR_COUNT, MPI_Allgatherv_c(&me, 1, MPI_INT, all, ones, places, MPI_INT, MPI_COMM_SELF));
  free(out), free(all), free(types), free(bytes), free(places), free(ones);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  MPI_Datatype members;
  OK(MPI_Type_create_indexed_block(1, 2, (int[]){1}, MPI_INT, &members));
  OK(MPI_Type_create_resized(members, 0, sizeof(Range), &range));
  OK(MPI_Type_commit(&range));
  OK(MPI_Type_free(&members));
  operations();
  large();
  OK(MPI_Type_free(&range));
  return end();
}
