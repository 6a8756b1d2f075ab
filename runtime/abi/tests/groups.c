/* Groups and communicators. */
#include "check.h"

int main(int argc, char **argv) {
  begin(&argc, &argv);
  MPI_Group world, some, other, none;
  int n, rank, result, ranks[3] = {0, MPI_PROC_NULL, 0}, there[3];
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_size(world, &n));
  CHECK(n == size);
  OK(MPI_Group_incl(world, 1, ranks, &some));
  OK(MPI_Group_rank(some, &rank));
  CHECK(rank == (me == 0 ? 0 : MPI_UNDEFINED));
  OK(MPI_Group_translate_ranks(some, 3, ranks, world, there));
  CHECK(there[0] == 0 && there[1] == MPI_PROC_NULL && there[2] == 0);
  OK(MPI_Group_difference(some, world, &none));
  CHECK(none == MPI_GROUP_EMPTY);
  OK(MPI_Group_free(&none));
  OK(MPI_Group_incl(world, 0, 0, &none));
  CHECK(none == MPI_GROUP_EMPTY);
  OK(MPI_Group_excl(world, 1, ranks, &other));
  OK(MPI_Group_union(some, other, &none));
  OK(MPI_Group_compare(none, world, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&none));
  int all[1][3] = {{size - 1, 0, -1}};
  OK(MPI_Group_range_incl(world, 1, all, &none));
  OK(MPI_Group_compare(none, world, &result));
  CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
  int wrong[1] = {size};
  MPI_Group bad;
  FAILS(MPI_ERR_RANK, MPI_Group_incl(world, 1, wrong, &bad));
  FAILS(MPI_ERR_ARG, MPI_Group_incl(world, -1, wrong, &bad));
  FAILS(MPI_ERR_ARG, MPI_Group_incl(world, 1, 0, &bad));

  MPI_Comm dup, half, made;
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Comm_compare(dup, MPI_COMM_WORLD, &result));
  CHECK(result == MPI_CONGRUENT);
  OK(MPI_Comm_compare(dup, dup, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Comm_set_name(dup, "a dup"));
  OK(MPI_Comm_get_name(dup, name, &length));
  CHECK(!strcmp(name, "a dup") && length == 5);
  OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
  CHECK(!strcmp(name, "MPI_COMM_NULL"));
  OK(MPI_Comm_split(dup, me % 2, -me, &half));
  OK(MPI_Comm_rank(half, &rank));
  OK(MPI_Comm_size(half, &n));
  CHECK(rank == n - 1 - me / 2);
  OK(MPI_Comm_free(&half));
  CHECK(half == MPI_COMM_NULL);
  OK(MPI_Comm_split(dup, MPI_UNDEFINED, 0, &half));
  CHECK(half == MPI_COMM_NULL);
  FAILS(MPI_ERR_ARG, MPI_Comm_split(dup, -5, 0, &half));
  OK(MPI_Comm_create(dup, some, &made));
  CHECK((made == MPI_COMM_NULL) == (me != 0));
  if (me == 0) {
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_create_group(dup, some, 3, &made));
    OK(MPI_Comm_disconnect(&made));
  }
  OK(MPI_Comm_split_type(dup, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half));
  OK(MPI_Comm_size(half, &n));
  CHECK(n >= 1);
  OK(MPI_Comm_free(&half));
  FAILS(MPI_ERR_ARG, MPI_Comm_split_type(dup, 12345, 0, MPI_INFO_NULL, &half));
  int flag;
  OK(MPI_Comm_test_inter(dup, &flag));
  CHECK(!flag);
  FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(dup, &n));
  MPI_Info info, used;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
  OK(MPI_Comm_set_info(dup, info));
  OK(MPI_Comm_get_info(dup, &used));
  OK(MPI_Info_get_nkeys(used, &n));
  /* Beside the hint that was given, the info names the kinds of memory. */
  CHECK(n == 2);
  OK(MPI_Info_free(&used));
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_free(&dup));
  OK(MPI_Group_free(&none));
  OK(MPI_Group_free(&other));
  OK(MPI_Group_free(&some));
  OK(MPI_Group_free(&world));
  return end();
}
