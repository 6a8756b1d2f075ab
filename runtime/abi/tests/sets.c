/* Groups and communicators: every operation on groups, arguments that are refused, and
   communicators that are made in several ways (MPI-5.0 chapter 7). */
#include "check.h"

static void compares(MPI_Group one, MPI_Group other, int due) {
  int result;
  OK(MPI_Group_compare(one, other, &result));
  CHECK(result == due);
}

static void groups(void) {
  MPI_Group world, reversed, even, odd, some, other;
  int n, rank, *ranks = malloc(2 * size * sizeof *ranks), *there = malloc(2 * size * sizeof *ranks);
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (int i = 0; i < size; i++) ranks[i] = size - 1 - i;
  OK(MPI_Group_incl(world, size, ranks, &reversed));
  compares(world, reversed, size > 1 ? MPI_SIMILAR : MPI_IDENT);
  OK(MPI_Group_rank(reversed, &rank));
  CHECK(rank == size - 1 - me);
  for (int i = 0; i < size; i++) ranks[i] = i;
  OK(MPI_Group_translate_ranks(world, size, ranks, reversed, there));
  for (int i = 0; i < size; i++) CHECK(there[i] == size - 1 - i);
  /* Ranges, forwards, backwards and with steps. */
  int range[1][3] = {{0, size - 1, 2}}, back[1][3] = {{size - 1, 0, -1}}, two[2][3] = {{0, 0, 1}, {size - 1, size - 1, 5}};
  OK(MPI_Group_range_incl(world, 1, range, &even));
  OK(MPI_Group_range_excl(world, 1, range, &odd));
  OK(MPI_Group_size(even, &n));
  CHECK(n == (size + 1) / 2);
  OK(MPI_Group_size(odd, &n));
  CHECK(n == size / 2);
  OK(MPI_Group_range_incl(world, 1, back, &some));
  compares(some, reversed, MPI_IDENT);
  OK(MPI_Group_free(&some));
  if (size > 1) {
    OK(MPI_Group_range_incl(world, 2, two, &some));
    OK(MPI_Group_size(some, &n));
    CHECK(n == 2);
    OK(MPI_Group_free(&some));
  }
  OK(MPI_Group_range_incl(world, 0, NULL, &some));
  CHECK(some == MPI_GROUP_EMPTY);
  OK(MPI_Group_range_excl(world, 0, NULL, &some));
  compares(some, world, MPI_IDENT);
  OK(MPI_Group_free(&some));
  OK(MPI_Group_excl(world, 0, NULL, &some));
  compares(some, world, MPI_IDENT);
  OK(MPI_Group_free(&some));
  /* Sets. The order is that of the first group. */
  OK(MPI_Group_union(odd, even, &some));
  compares(some, world, size > 1 ? MPI_SIMILAR : MPI_IDENT);
  OK(MPI_Group_intersection(reversed, even, &other));
  OK(MPI_Group_size(other, &n));
  CHECK(n == (size + 1) / 2);
  compares(other, even, n > 1 ? MPI_SIMILAR : MPI_IDENT);
  OK(MPI_Group_free(&other));
  OK(MPI_Group_intersection(even, odd, &other));
  CHECK(other == MPI_GROUP_EMPTY);
  OK(MPI_Group_difference(world, odd, &other));
  compares(other, even, MPI_IDENT);
  OK(MPI_Group_free(&other));
  OK(MPI_Group_difference(world, MPI_GROUP_EMPTY, &other));
  compares(other, world, MPI_IDENT);
  OK(MPI_Group_free(&other));
  OK(MPI_Group_union(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, &other));
  CHECK(other == MPI_GROUP_EMPTY);
  compares(MPI_GROUP_EMPTY, MPI_GROUP_EMPTY, MPI_IDENT);
  compares(MPI_GROUP_EMPTY, world, MPI_UNEQUAL);
  OK(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
  CHECK(rank == MPI_UNDEFINED);
  OK(MPI_Group_size(MPI_GROUP_EMPTY, &n));
  CHECK(n == 0);
  OK(MPI_Group_translate_ranks(even, 1, ranks, odd, there));
  CHECK(there[0] == MPI_UNDEFINED);
  OK(MPI_Group_translate_ranks(world, 0, NULL, odd, NULL));
  /* What is wrong. */
  MPI_Group none = MPI_GROUP_NULL;
  ranks[0] = ranks[1] = 0;
  FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 2, ranks, &none));
  FAILS(MPI_ERR_RANK, MPI_Group_excl(world, 2, ranks, &none));
  ranks[0] = size;
  FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 1, ranks, &none));
  FAILS(MPI_ERR_RANK, MPI_Group_excl(world, 1, ranks, &none));
  FAILS(MPI_ERR_RANK, MPI_Group_translate_ranks(world, 1, ranks, even, there));
  ranks[0] = -1;
  FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 1, ranks, &none));
  FAILS(MPI_ERR_RANK, MPI_Group_translate_ranks(world, 1, ranks, even, there));
  FAILS(MPI_ERR_ARG, MPI_Group_excl(world, -1, ranks, &none));
  int zero[1][3] = {{0, 0, 0}}, outside[1][3] = {{0, size, 1}}, twice[2][3] = {{0, 0, 1}, {0, 0, 1}};
  CHECK(MPI_Group_range_incl(world, 1, zero, &none) != MPI_SUCCESS);
  CHECK(MPI_Group_range_incl(world, 1, outside, &none) != MPI_SUCCESS);
  CHECK(MPI_Group_range_incl(world, 2, twice, &none) != MPI_SUCCESS);
  CHECK(MPI_Group_range_excl(world, 1, zero, &none) != MPI_SUCCESS);
  CHECK(MPI_Group_range_excl(world, 1, outside, &none) != MPI_SUCCESS);
  FAILS(MPI_ERR_GROUP, MPI_Group_union(MPI_GROUP_NULL, world, &none));
  FAILS(MPI_ERR_GROUP, MPI_Group_union(world, MPI_GROUP_NULL, &none));
  FAILS(MPI_ERR_GROUP, MPI_Group_intersection(MPI_GROUP_NULL, world, &none));
  FAILS(MPI_ERR_GROUP, MPI_Group_difference(world, MPI_GROUP_NULL, &none));
  FAILS(MPI_ERR_GROUP, MPI_Group_compare(world, MPI_GROUP_NULL, &n));
  FAILS(MPI_ERR_GROUP, MPI_Group_incl(MPI_GROUP_NULL, 0, NULL, &none));
  FAILS(MPI_ERR_GROUP, MPI_Group_rank(MPI_GROUP_NULL, &n));
  FAILS(MPI_ERR_GROUP, MPI_Group_free(&none));
  FAILS(MPI_ERR_COMM, MPI_Comm_group(MPI_COMM_NULL, &none));
  FAILS(MPI_ERR_ARG, MPI_Group_size(world, NULL));
  none = MPI_GROUP_EMPTY;
  OK(MPI_Group_free(&none));
  CHECK(none == MPI_GROUP_NULL);
  OK(MPI_Group_free(&some));
  OK(MPI_Group_free(&even));
  OK(MPI_Group_free(&odd));
  OK(MPI_Group_free(&reversed));
  OK(MPI_Group_free(&world));
  free(ranks);
  free(there);
}

/* Sums the numbers of a communicator's ranks, so that it is known to work. */
static int sum_of(MPI_Comm comm) {
  int rank, sum;
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  return sum;
}

static void made(void) {
  MPI_Comm comm, other, third;
  MPI_Group world, part;
  int n, rank, result, first[1] = {0}, flag;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  /* The same group in another order is similar, with fewer ranks unequal. */
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comm));
  OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
  CHECK(result == (size > 1 ? MPI_SIMILAR : MPI_CONGRUENT));
  OK(MPI_Comm_rank(comm, &rank));
  CHECK(rank == size - 1 - me && sum_of(comm) == size * (size - 1) / 2);
  OK(MPI_Comm_compare(comm, MPI_COMM_SELF, &result));
  CHECK(result == (size > 1 ? MPI_UNEQUAL : MPI_CONGRUENT));
  /* Equal keys keep the order of ranks. */
  OK(MPI_Comm_split(comm, rank % 2, 5, &other));
  OK(MPI_Comm_rank(other, &rank));
  CHECK(rank == (size - 1 - me) / 2);
  OK(MPI_Comm_free(&other));
  OK(MPI_Comm_free(&comm));
  /* Only the group's ranks call. */
  OK(MPI_Group_excl(world, 1, first, &part));
  if (me > 0) {
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, part, 17, &comm));
    OK(MPI_Comm_size(comm, &n));
    CHECK(n == size - 1 && sum_of(comm) == (size - 1) * (size - 2) / 2);
    OK(MPI_Comm_free(&comm));
  }
  OK(MPI_Comm_create(MPI_COMM_WORLD, part, &comm));
  CHECK((comm == MPI_COMM_NULL) == (me == 0));
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
  CHECK(comm == MPI_COMM_NULL);
  /* Each half makes a communicator of its own in one call. */
  int half[1][3] = {{me % 2, size - 1 - (size - 1 - me % 2) % 2, 2}};
  MPI_Group mine;
  OK(MPI_Group_range_incl(world, 1, half, &mine));
  OK(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
  OK(MPI_Comm_rank(comm, &rank));
  CHECK(rank == me / 2);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Group_free(&mine));
  /* Hints, dups with hints, and names, which dups don't take over. */
  MPI_Info info, used;
  char value[MPI_MAX_INFO_VAL], name[MPI_MAX_OBJECT_NAME];
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_assert_no_any_source", "true"));
  OK(MPI_Info_set(info, "unknown", "hint"));
  OK(MPI_Comm_set_name(MPI_COMM_WORLD, "all of them"));
  OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_get_info(comm, &used));
  OK(MPI_Info_get(used, "mpi_assert_no_any_source", MPI_MAX_INFO_VAL, value, &flag));
  CHECK(!flag || !strcmp(value, "true"));
  OK(MPI_Info_free(&used));
  OK(MPI_Comm_get_name(comm, name, &n));
  CHECK(!n && !name[0]);
  OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &n));
  CHECK(!strcmp(name, "all of them"));
  OK(MPI_Comm_set_name(MPI_COMM_WORLD, "MPI_COMM_WORLD"));
  OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &n));
  CHECK(!strcmp(name, "MPI_COMM_SELF"));
  OK(MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &other));
  CHECK(sum_of(other) == size * (size - 1) / 2);
  OK(MPI_Comm_free(&other));
  /* A message on one communicator isn't received on another of the same ranks. */
  int next = (me + 1) % size, before = (me + size - 1) % size, got = -1, one = 1, two = 2;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  MPI_Request requests[2];
  OK(MPI_Isend(&one, 1, MPI_INT, next, 0, comm, &requests[0]));
  OK(MPI_Isend(&two, 1, MPI_INT, next, 0, other, &requests[1]));
  OK(MPI_Recv(&got, 1, MPI_INT, before, 0, other, MPI_STATUS_IGNORE));
  CHECK(got == 2);
  OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
  CHECK(got == 1);
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Comm_free(&other));
  /* Freed while a receive of it waits, which a later message ends. */
  OK(MPI_Comm_dup(comm, &third));
  OK(MPI_Irecv(&got, 1, MPI_INT, before, 3, third, &requests[0]));
  OK(MPI_Isend(&me, 1, MPI_INT, next, 3, third, &requests[1]));
  OK(MPI_Comm_free(&third));
  CHECK(third == MPI_COMM_NULL);
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(got == before);
  OK(MPI_Comm_free(&comm));
  /* What is wrong. */
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&comm));
  FAILS(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &comm));
  FAILS(MPI_ERR_COMM, MPI_Comm_split(MPI_COMM_NULL, 0, 0, &comm));
  FAILS(MPI_ERR_COMM, MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_NULL, &result));
  FAILS(MPI_ERR_COMM, MPI_Comm_rank(MPI_COMM_NULL, &rank));
  FAILS(MPI_ERR_COMM, MPI_Comm_set_name(MPI_COMM_NULL, "none"));
  FAILS(MPI_ERR_COMM, MPI_Comm_get_info(MPI_COMM_NULL, &used));
  FAILS(MPI_ERR_COMM, MPI_Comm_remote_group(MPI_COMM_WORLD, &mine));
  FAILS(MPI_ERR_GROUP, MPI_Comm_create(MPI_COMM_SELF, MPI_GROUP_NULL, &comm));
  FAILS(MPI_ERR_GROUP, MPI_Comm_create_group(MPI_COMM_SELF, MPI_GROUP_NULL, 0, &comm));
  FAILS(MPI_ERR_TAG, MPI_Comm_create_group(MPI_COMM_WORLD, world, -1, &comm));
  FAILS(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_SELF, 0, 0, NULL));
  FAILS(MPI_ERR_ARG, MPI_Comm_dup(MPI_COMM_SELF, NULL));
  other = MPI_COMM_SELF;
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&other));
  FAILS(MPI_ERR_COMM, MPI_Comm_disconnect(&other));
  OK(MPI_Group_free(&part));
  OK(MPI_Group_free(&world));
}

/* More communicators than a table of fixed size would hold, some at a time. */
static void many(void) {
  enum { MANY = 300 };
  static MPI_Comm all[MANY];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < MANY; i++) OK(MPI_Comm_dup(i ? all[i - 1] : MPI_COMM_WORLD, &all[i]));
    CHECK(sum_of(all[MANY - 1]) == size * (size - 1) / 2);
    for (int i = 0; i < MANY; i++) OK(MPI_Comm_free(&all[i]));
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  groups();
  made();
  many();
  return end();
}
