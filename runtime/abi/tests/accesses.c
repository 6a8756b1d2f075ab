/* Operations on windows: null processes, zero counts, wrong epochs and arguments, requests, types
   that are freed while in use, and the results of atomic operations (MPI-5.0 chapter 12). */
#include "check.h"

static MPI_Win win;
static int next;

/* Calls that are out of order are refused, and leave the window usable. */
static void order(void) {
  long value = 1, result = 0, compare = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Get(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Accumulate(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Fetch_and_op(&value, &result, MPI_LONG, next, 0, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Compare_and_swap(&value, &compare, &result, MPI_LONG, next, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Rput(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win, &request));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(next, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local(next, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(next, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
  int flag;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag));
  FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
  FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, -7, 0, win));
  FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(12345, next, 0, win));
  FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, next, -1, win));
  FAILS(MPI_ERR_ASSERT, MPI_Win_fence(-1, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  OK(MPI_Win_flush(next, win));
  OK(MPI_Win_flush_local_all(win));
  OK(MPI_Win_sync(win));
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(next, win));
  OK(MPI_Win_unlock_all(win));
}

/* Arguments that are wrong, in an epoch. None touches memory. */
static void arguments(void) {
  long value = 1, result = 0, compare = 0;
  int small = 1;
  MPI_Datatype type;
  OK(MPI_Type_contiguous(1, MPI_LONG, &type));
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_COUNT, MPI_Put(&value, -1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_COUNT, MPI_Put(&value, 1, MPI_LONG, next, 0, -1, MPI_LONG, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_DATATYPE_NULL, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, type, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_TYPE, MPI_Get(&value, 1, MPI_LONG, next, 0, 1, type, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_LONG, next, 0, 2, MPI_LONG, win));
  FAILS(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RANK, MPI_Get(&value, 1, MPI_LONG, MPI_ANY_SOURCE, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_DISP, MPI_Put(&value, 1, MPI_LONG, next, -1, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, next, 16, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(&value, 1, MPI_LONG, next, 1 << 30, 1, MPI_LONG, win));
  FAILS(MPI_ERR_BUFFER, MPI_Put(NULL, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_BUFFER, MPI_Put(MPI_IN_PLACE, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(&value, MPI_IN_PLACE, MPI_LONG, next, 0, MPI_SUM, win));
  FAILS(MPI_ERR_BUFFER, MPI_Compare_and_swap(&value, MPI_IN_PLACE, &result, MPI_LONG, next, 0, win));
  FAILS(MPI_ERR_WIN, MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_WIN_NULL));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_OP_NULL, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_NO_OP, win));
  double real = 1, old;
  FAILS(MPI_ERR_OP, MPI_Accumulate(&real, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, MPI_BAND, win));
  FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&real, &real, &old, MPI_DOUBLE, next, 0, win));
  FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&value, &compare, &result, type, next, 0, win));
  FAILS(MPI_ERR_TYPE, MPI_Fetch_and_op(&value, &result, MPI_DATATYPE_NULL, next, 0, MPI_SUM, win));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(&small, 1, MPI_INT, next, 0, 1, MPI_FLOAT, MPI_SUM, win));
  /* Nothing at all, and nothing to nobody. */
  OK(MPI_Put(NULL, 0, MPI_LONG, next, 0, 0, MPI_LONG, win));
  OK(MPI_Get(NULL, 0, MPI_LONG, next, 16, 0, MPI_LONG, win));
  OK(MPI_Accumulate(NULL, 0, MPI_LONG, next, 0, 0, MPI_LONG, MPI_SUM, win));
  OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, NULL, 0, MPI_LONG, next, 0, 0, MPI_LONG, MPI_SUM, win));
  OK(MPI_Put_c(&value, (MPI_Count)0, MPI_LONG, next, 0, (MPI_Count)0, MPI_LONG, win));
  /* A 32-bit origin has no memory for them. */
  MPI_Count huge = (MPI_Count)1 << 40;
  int wrong = sizeof(void *) == 4 ? MPI_ERR_BUFFER : MPI_ERR_RMA_RANGE;
  FAILS(wrong, MPI_Get_c(&value, huge, MPI_BYTE, next, 0, huge, MPI_BYTE, win));
  value = 5;
  OK(MPI_Put(&value, 1, MPI_LONG, MPI_PROC_NULL, 77, 1, MPI_LONG, win));
  OK(MPI_Get(&value, 1, MPI_LONG, MPI_PROC_NULL, 77, 1, MPI_LONG, win));
  OK(MPI_Accumulate(&value, 1, MPI_LONG, MPI_PROC_NULL, 77, 1, MPI_LONG, MPI_SUM, win));
  OK(MPI_Fetch_and_op(&value, &result, MPI_LONG, MPI_PROC_NULL, 77, MPI_SUM, win));
  OK(MPI_Compare_and_swap(&value, &compare, &result, MPI_LONG, MPI_PROC_NULL, 77, win));
  OK(MPI_Win_flush(MPI_PROC_NULL, win));
  OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
  CHECK(value == 5 && result == 0);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win));
  OK(MPI_Win_unlock(MPI_PROC_NULL, win));
  OK(MPI_Type_free(&type));
}

/* Requests, by every call that ends them. */
static void requests(long *base) {
  long values[4] = {10, 11, 12, 13}, got[4] = {0};
  MPI_Request requests[4];
  MPI_Status statuses[4];
  int index, flag = 0, count, indices[4];
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Rput(values, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, requests));
  CHECK(requests[0] != MPI_REQUEST_NULL);
  OK(MPI_Wait(requests, statuses));
  CHECK(requests[0] == MPI_REQUEST_NULL);
  for (int i = 0; i < 4; i++)
    OK(MPI_Rput(values + i, 1, MPI_LONG, next, i, 1, MPI_LONG, win, requests + i));
  OK(MPI_Waitall(4, requests, statuses));
  for (int i = 0; i < 4; i++) CHECK(requests[i] == MPI_REQUEST_NULL);
  OK(MPI_Win_flush(next, win));
  for (int i = 0; i < 4; i++)
    OK(MPI_Rget(got + i, 1, MPI_LONG, next, i, 1, MPI_LONG, win, requests + i));
  OK(MPI_Waitany(4, requests, &index, statuses));
  CHECK(got[index] == 10 + index && requests[index] == MPI_REQUEST_NULL);
  OK(MPI_Waitsome(4, requests, &count, indices, statuses));
  CHECK(count >= 1);
  while (!flag) OK(MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE));
  for (int i = 0; i < 4; i++) CHECK(got[i] == 10 + i);
  OK(MPI_Raccumulate(values, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_SUM, win, requests));
  for (flag = 0; !flag;) OK(MPI_Test(requests, &flag, MPI_STATUS_IGNORE));
  OK(MPI_Win_flush(next, win));
  OK(MPI_Rget_accumulate(NULL, 0, MPI_DATATYPE_NULL, got, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_NO_OP,
                         win, requests));
  OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
  CHECK(got[0] == 20);
  OK(MPI_Rput(values, 1, MPI_LONG, next, 0, 1, MPI_LONG, win, requests));
  /* MPI-5.0 section 12.3.5: requests of windows can't be freed or cancelled. */
  FAILS(MPI_ERR_REQUEST, MPI_Request_free(requests));
  FAILS(MPI_ERR_REQUEST, MPI_Cancel(requests));
  OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(base[0] == 10);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Atomic operations: what they return, and what they leave. */
static void atomics(long *base) {
  long one = 1, result = -1, compare, swapped = 40;
  OK(MPI_Win_fence(0, win));
  base[0] = 7;
  base[1] = 0;
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  OK(MPI_Fetch_and_op(NULL, &result, MPI_LONG, next, 0, MPI_NO_OP, win));
  OK(MPI_Win_flush_local(next, win));
  CHECK(result == 7);
  OK(MPI_Fetch_and_op(&one, &result, MPI_LONG, next, 0, MPI_REPLACE, win));
  OK(MPI_Win_flush(next, win));
  CHECK(result == 7);
  compare = 2;
  OK(MPI_Compare_and_swap(&swapped, &compare, &result, MPI_LONG, next, 0, win));
  OK(MPI_Win_flush(next, win));
  CHECK(result == 1);
  compare = 1;
  OK(MPI_Compare_and_swap(&swapped, &compare, &result, MPI_LONG, next, 0, win));
  OK(MPI_Win_flush(next, win));
  CHECK(result == 1);
  OK(MPI_Get_accumulate(&one, 1, MPI_LONG, &result, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_MAX, win));
  OK(MPI_Win_unlock(next, win));
  CHECK(result == 40);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(base[0] == 40);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  /* All ranks count at rank 0. */
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 50; i++) OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) CHECK(base[1] == 50L * size);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A type may be freed as soon as the call has returned that uses it. */
static void freed(long *base) {
  long values[4] = {1, 2, 3, 4};
  MPI_Datatype pair, kept;
  OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &pair));
  OK(MPI_Type_commit(&pair));
  kept = pair;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(values, 1, pair, next, 8, 1, pair, win));
  OK(MPI_Type_free(&pair));
  FAILS(MPI_ERR_TYPE, MPI_Put(values, 1, kept, next, 8, 1, kept, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[8] == 1 && base[10] == 3);
  /* An origin by absolute addresses. */
  MPI_Aint place;
  int one = 1;
  OK(MPI_Get_address(values + 3, &place));
  OK(MPI_Type_create_hindexed(1, &one, &place, MPI_LONG, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(MPI_BOTTOM, 1, pair, next, 9, 1, MPI_LONG, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[9] == 4);
  OK(MPI_Type_free(&pair));
}

/* Start and post, with groups of every size. */
static void groups(long *base) {
  MPI_Group all, mine, before;
  int last = (me + size - 1) % size, flag = 0;
  long value = 100 + me;
  OK(MPI_Win_get_group(win, &all));
  OK(MPI_Group_incl(all, 1, &next, &mine));
  OK(MPI_Group_incl(all, 1, &last, &before));
  OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
  OK(MPI_Win_wait(win));
  OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  OK(MPI_Win_complete(win));
  FAILS(MPI_ERR_GROUP, MPI_Win_post(MPI_GROUP_NULL, 0, win));
  FAILS(MPI_ERR_GROUP, MPI_Win_start(MPI_GROUP_NULL, 0, win));
  OK(MPI_Win_post(before, MPI_MODE_NOSTORE, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_post(before, 0, win));
  OK(MPI_Win_start(mine, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_start(mine, 0, win));
  OK(MPI_Put(&value, 1, MPI_LONG, next, 3, 1, MPI_LONG, win));
  OK(MPI_Group_free(&mine));
  OK(MPI_Win_complete(win));
  while (!flag) OK(MPI_Win_test(win, &flag));
  CHECK(base[3] == 100 + last);
  OK(MPI_Group_free(&before));
  OK(MPI_Group_free(&all));
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  next = (me + 1) % size;
  long *base;
  OK(MPI_Win_allocate(16 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  order();
  arguments();
  requests(base);
  atomics(base);
  freed(base);
  groups(base);
  OK(MPI_Win_free(&win));
  FAILS(MPI_ERR_WIN, MPI_Win_free(&win));
  return end();
}
