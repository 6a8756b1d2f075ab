/* Operations on windows, and the calls that synchronise them. */
#include "check.h"

int main(int argc, char **argv) {
  begin(&argc, &argv);
  MPI_Win win;
  long *base, value, old, compare;
  int next = (me + 1) % size, before = (me + size - 1) % size;
  OK(MPI_Win_allocate(64 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  memset(base, 0, 64 * sizeof(long));

  /* Fences. */
  long four[4] = {me, me + 10, me + 20, me + 30};
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
  OK(MPI_Put(four, 4, MPI_LONG, next, 2, 4, MPI_LONG, win));
  OK(MPI_Put(four, 4, MPI_LONG, MPI_PROC_NULL, 0, 4, MPI_LONG, win));
  OK(MPI_Put(0, 0, MPI_LONG, next, 0, 0, MPI_LONG, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[2] == before && base[5] == before + 30 && base[6] == 0);
  FAILS(MPI_ERR_ASSERT, MPI_Win_fence(1 << 20, win));

  /* Signatures of equal length match between like ranks. */
  char bytes[2 * sizeof(long)];
  memset(bytes, 3, sizeof bytes);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(bytes, sizeof bytes, MPI_BYTE, next, 12, 2, MPI_LONG, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(bytes, 3, MPI_BYTE, next, 12, 1, MPI_LONG, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(!memcmp(&base[12], bytes, sizeof bytes));

  /* A derived type of absolute addresses, from MPI_BOTTOM. */
  MPI_Datatype type;
  MPI_Aint address;
  OK(MPI_Get_address(&four[2], &address));
  OK(MPI_Type_create_hindexed_block(1, 1, &address, MPI_LONG, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(MPI_BOTTOM, 1, type, next, 9, 1, MPI_LONG, win));
  /* A type may be freed while an operation uses it. */
  OK(MPI_Type_free(&type));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[9] == before + 20);

  /* Locks. */
  OK(MPI_Win_lock_all(0, win));
  value = 1;
  for (int i = 0; i < 10; i++) {
    OK(MPI_Fetch_and_op(&value, &old, MPI_LONG, 0, 20, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    CHECK(old >= 0 && old < 10 * size);
  }
  OK(MPI_Accumulate(&value, 1, MPI_LONG, 0, 21, 1, MPI_LONG, MPI_SUM, win));
  OK(MPI_Win_flush_all(win));
  OK(MPI_Win_unlock_all(win));
  meet(win);
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
  OK(MPI_Fetch_and_op(0, &old, MPI_LONG, 0, 20, MPI_NO_OP, win));
  OK(MPI_Win_flush(0, win));
  CHECK(old == 10 * size);
  OK(MPI_Get_accumulate(0, 0, MPI_DATATYPE_NULL, &old, 1, MPI_LONG, 0, 21, 1, MPI_LONG, MPI_NO_OP, win));
  OK(MPI_Win_unlock(0, win));
  CHECK(old == size);
  compare = 0, value = me + 1;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, MPI_MODE_NOCHECK, win));
  OK(MPI_Compare_and_swap(&value, &compare, &old, MPI_LONG, next, 30, win));
  OK(MPI_Win_unlock(next, win));
  CHECK(old == 0);
  meet(win);
  CHECK(base[30] == before + 1);
  OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
  OK(MPI_Win_flush(MPI_PROC_NULL, win));
  OK(MPI_Win_unlock(MPI_PROC_NULL, win));

  /* Programs count with MPI_CHAR. */
  char letter = 1, sum[1];
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win));
  ((char *)base)[40 * sizeof(long)] = 5;
  OK(MPI_Get_accumulate(&letter, 1, MPI_CHAR, sum, 1, MPI_CHAR, me, 40, 1, MPI_CHAR, MPI_SUM, win));
  OK(MPI_Win_unlock(me, win));
  CHECK(sum[0] == 5 && ((char *)base)[40 * sizeof(long)] == 6);

  /* Posts and starts. */
  MPI_Group world, to, from;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, 1, &next, &to));
  OK(MPI_Group_incl(world, 1, &before, &from));
  OK(MPI_Win_post(from, 0, win));
  OK(MPI_Win_start(to, 0, win));
  value = 77 + me;
  OK(MPI_Put(&value, 1, MPI_LONG, next, 50, 1, MPI_LONG, win));
  OK(MPI_Win_complete(win));
  int flag = 0;
  while (!flag) OK(MPI_Win_test(win, &flag));
  CHECK(base[50] == 77 + before);
  OK(MPI_Group_free(&from));
  OK(MPI_Group_free(&to));
  OK(MPI_Group_free(&world));

  /* Errors. A window that is exposed refuses locks. */
  meet(win);
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(1, 0, 0, win));
  FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_LONG, size, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_COUNT, MPI_Put(&value, -1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_BUFFER, MPI_Put(0, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_OP_NULL, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&value, 1, MPI_LONG, 0, 64, 1, MPI_LONG, win));
  FAILS(MPI_ERR_DISP, MPI_Put(&value, 1, MPI_LONG, 0, -1, 1, MPI_LONG, win));
  OK(MPI_Win_unlock(0, win));
  OK(MPI_Win_free(&win));
  return end();
}
