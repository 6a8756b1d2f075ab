/* Windows of all flavors: their attributes, memory, infos, and refused frees. */
#include "check.h"

static void flavor(MPI_Win win, int expected, void *base, MPI_Aint bytes, int unit) {
  int *got, *got_unit, flag;
  MPI_Aint *got_size;
  void *got_base;
  OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &got, &flag));
  CHECK(flag && *got == expected);
  OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &got_base, &flag));
  CHECK(flag && got_base == base);
  OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &got_size, &flag));
  CHECK(flag && *got_size == bytes);
  OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &got_unit, &flag));
  CHECK(flag && *got_unit == unit);
  OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &got, &flag));
  CHECK(flag && *got == MPI_WIN_UNIFIED);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  MPI_Win win;
  long *base, *there;
  int unit, next = (me + 1) % size;
  MPI_Aint bytes;
  OK(MPI_Win_allocate(80, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  flavor(win, MPI_WIN_FLAVOR_ALLOCATE, base, 80, 8);
  OK(MPI_Win_shared_query(win, me, &bytes, &unit, &there));
  CHECK(there == base && bytes == 80 && unit == 8);
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  OK(MPI_Win_set_name(win, "sea"));
  OK(MPI_Win_get_name(win, name, &length));
  CHECK(!strcmp(name, "sea") && length == 3);
  OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
  CHECK(!strcmp(name, "MPI_WIN_NULL"));
  MPI_Group group;
  int n;
  OK(MPI_Win_get_group(win, &group));
  OK(MPI_Group_size(group, &n));
  CHECK(n == size);
  OK(MPI_Group_free(&group));
  MPI_Info info;
  int flag;
  OK(MPI_Win_get_info(win, &info));
  length = sizeof name;
  OK(MPI_Info_get_string(info, "target_types", &length, name, &flag));
  CHECK(flag && !strcmp(name, "same_layout"));
  OK(MPI_Win_set_info(win, info));
  OK(MPI_Info_free(&info));
  /* A refused free leaves the window as it was. */
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));
  CHECK(win != MPI_WIN_NULL);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);

  OK(MPI_Win_allocate_shared(me ? 8 : 16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  flavor(win, MPI_WIN_FLAVOR_SHARED, base, me ? 8 : 16, 8);
  OK(MPI_Win_fence(0, win));
  base[0] = me;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_shared_query(win, next, &bytes, &unit, &there));
  CHECK(there[0] == next && bytes == (next ? 8 : 16));
  OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &there));
  CHECK(there[0] == 0 && bytes == 16);
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Win_free(&win));

  /* Memory of the program keeps its address. */
  double values[4] = {0.5 + me, 1, 2, 3}, got = 0;
  OK(MPI_Win_create(values, sizeof values, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  flavor(win, MPI_WIN_FLAVOR_CREATE, values, sizeof values, sizeof *values);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get(&got, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(got == 0.5 + next);
  OK(MPI_Win_free(&win));
  OK(MPI_Win_create(MPI_BOTTOM, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_free(&win));

  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  flavor(win, MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1);
  OK(MPI_Win_attach(win, values, sizeof values));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, values + 1, 8));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, values + 1));
  MPI_Aint address;
  OK(MPI_Get_address(values, &address));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
  OK(MPI_Get(&got, 1, MPI_DOUBLE, me, MPI_Aint_add(address, 8), 1, MPI_DOUBLE, win));
  OK(MPI_Win_unlock(me, win));
  CHECK(got == 1);
  OK(MPI_Win_detach(win, values));
  OK(MPI_Win_free(&win));

  FAILS(MPI_ERR_SIZE, MPI_Win_create(values, -1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  FAILS(MPI_ERR_DISP, MPI_Win_create(values, 8, 0, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  FAILS(MPI_ERR_COMM, MPI_Win_create(values, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win));
  return end();
}
