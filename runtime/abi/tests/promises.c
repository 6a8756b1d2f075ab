/* Hints and asserts that turn out false: the call works, as with other libraries. */
#include "check.h"

#define LENGTH 4

static MPI_Info with(const char *key, const char *value) {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, key, value));
  return info;
}

static int value_of(MPI_Win win, const char *key, const char *expected) {
  char text[64] = "";
  int flag, length = sizeof text;
  MPI_Info info;
  OK(MPI_Win_get_info(win, &info));
  OK(MPI_Info_get_string(info, key, &length, text, &flag));
  OK(MPI_Info_free(&info));
  return flag && strcmp(text, expected) == 0;
}

/* A window that isn't to be locked is locked. */
static void locked(void) {
  int *base, next = (me + 1) % size, value = me + 1;
  MPI_Win win;
  MPI_Info info = with("no_locks", "true");
  OK(MPI_Win_allocate_shared(LENGTH * sizeof *base, sizeof *base, info, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Info_free(&info));
  CHECK(value_of(win, "no_locks", "true"));
  OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  base[0] = 7;
  OK(MPI_Win_sync(win));
  OK(MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(base[0] == 7 && base[1] == (me + size - 1) % size + 1);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  OK(MPI_Put(&value, 1, MPI_INT, next, 2, 1, MPI_INT, win));
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Win_free(&win));
}

/* Sizes, units and hints that were to be the same differ. */
static void different(void) {
  const char *keys[] = {"same_size", "same_disp_unit"};
  int *base, next = (me + 1) % size, unit = next == 0 ? 1 : 4, value = 5;
  MPI_Win win;
  for (int i = 0; i < 2; i++) {
    MPI_Info info = with(keys[i], "true");
    OK(MPI_Win_allocate((LENGTH + me) * sizeof *base, me == 0 ? 1 : 4, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    CHECK(size == 1 || value_of(win, keys[i], "false"));
    base[LENGTH - 1] = 0;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT, next, (LENGTH - 1) * 4 / unit, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(base[LENGTH - 1] == 5);
    OK(MPI_Win_free(&win));
  }
  const char *values[][2] = {
      {"no_locks", me == 0 ? "true" : "false"},
      {"accumulate_ops", me == 0 ? "same_op" : "same_op_no_op"},
      {"accumulate_ordering", me == 0 ? "none" : "rar,waw"},
      {"alloc_shared_noncontig", me == 0 ? "true" : "false"},
      {"mpi_minimum_memory_alignment", me == 0 ? "128" : "64"},
  };
  for (int i = 0; i < 5; i++) {
    MPI_Info info = with(values[i][0], values[i][1]);
    OK(MPI_Win_allocate_shared(LENGTH * sizeof *base, 1, info, MPI_COMM_WORLD, &base, &win));
    CHECK(size == 1 || i == 4 || value_of(win, values[i][0], i == 1 ? "same_op_no_op" : i == 2 ? "rar,waw" : "false"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    CHECK(size == 1 || i != 0 || value_of(win, "no_locks", "false"));
    OK(MPI_Win_free(&win));
  }
}

/* Fences and posts with asserts that aren't true. */
static void asserted(void) {
  int memory[LENGTH] = {0}, next = (me + 1) % size, last = (me + size - 1) % size, value = me + 1;
  MPI_Win win;
  MPI_Group world, to, from;
  OK(MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_fence(MPI_MODE_NOPUT, win));
  OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win));
  CHECK(memory[0] == last + 1);
  /* The fence has opened no epoch, which is more than a promise. */
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, win));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, 1, &next, &to));
  OK(MPI_Group_incl(world, 1, &last, &from));
  OK(MPI_Win_post(from, MPI_MODE_NOPUT | MPI_MODE_NOSTORE, win));
  OK(MPI_Win_start(to, 0, win));
  OK(MPI_Accumulate(&value, 1, MPI_INT, next, 2, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));
  CHECK(memory[2] == last + 1);
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&to));
  OK(MPI_Group_free(&from));
  OK(MPI_Win_free(&win));
}

/* Receives that hints of a communicator exclude. */
static void received(void) {
  const char *keys[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length", "mpi_assert_allow_overtaking"};
  int next = (me + 1) % size, last = (me + size - 1) % size, values[2] = {me + 1, 0}, got[4] = {0}, flag = 0, count;
  MPI_Info info, used;
  MPI_Comm comm;
  MPI_Status status;
  MPI_Request requests[2];
  MPI_Message message;
  OK(MPI_Info_create(&info));
  for (int i = 0; i < 4; i++)
    OK(MPI_Info_set(info, keys[i], "true"));
  OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
  OK(MPI_Comm_set_name(comm, "strict"));
  OK(MPI_Comm_get_info(comm, &used));
  for (int i = 0; i < 4; i++) {
    char text[8];
    OK(MPI_Info_get(used, keys[i], 7, text, &flag));
    CHECK(flag && strcmp(text, "true") == 0);
  }
  OK(MPI_Info_free(&used));
  /* What the hints allow isn't reported. */
  OK(MPI_Sendrecv(values, 1, MPI_INT, next, 3, got, 1, MPI_INT, last, 3, comm, &status));
  OK(MPI_Recv(got, 4, MPI_INT, MPI_PROC_NULL, 3, comm, &status));
  CHECK(got[0] == last + 1);
  OK(MPI_Sendrecv(values, 1, MPI_INT, next, 3, got, 1, MPI_INT, last, MPI_ANY_TAG, comm, &status));
  CHECK(got[0] == last + 1 && status.MPI_TAG == 3);
  OK(MPI_Irecv(got, 1, MPI_INT, MPI_ANY_SOURCE, 4, comm, &requests[0]));
  OK(MPI_Isend(values, 1, MPI_INT, next, 4, comm, &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(got[0] == last + 1);
  OK(MPI_Irecv(got, 4, MPI_INT, last, 5, comm, &requests[0]));
  OK(MPI_Isend(values, 1, MPI_INT, next, 5, comm, &requests[1]));
  OK(MPI_Wait(&requests[0], &status));
  OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  OK(MPI_Get_count(&status, MPI_INT, &count));
  CHECK(got[0] == last + 1 && count == 1);
  OK(MPI_Isend(values, 2, MPI_INT, next, 6, comm, &requests[0]));
  OK(MPI_Mprobe(last, 6, comm, &message, &status));
  OK(MPI_Mrecv(got, 3, MPI_INT, &message, &status));
  OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  CHECK(got[0] == last + 1 && got[1] == 0);
  /* A promise that is taken back. */
  for (int i = 0; i < 3; i++)
    OK(MPI_Info_set(info, keys[i], "false"));
  OK(MPI_Comm_set_info(comm, info));
  OK(MPI_Comm_set_name(comm, "lenient"));
  OK(MPI_Sendrecv(values, 1, MPI_INT, next, 7, got, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
  CHECK(got[0] == last + 1);
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  locked();
  different();
  asserted();
  received();
  return end();
}
