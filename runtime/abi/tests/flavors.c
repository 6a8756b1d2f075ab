/* Windows of each flavor: attached memory, absolute types, queries, alignments, and refused
   arguments (MPI-5.0 section 12.2). */
#include "check.h"

/* Memory that comes and goes, and types whose displacements are addresses. */
static void dynamic(void) {
  MPI_Win win;
  /* So much lies in the upper half of memory on 32-bit machines. */
  long *memory = malloc(1 << 20), value[2] = {3, 4}, got[2] = {0, 0};
  MPI_Aint address, *there = malloc(size * sizeof *there);
  int next = (me + 1) % size, one[2] = {1, 1};
  for (int i = 0; i < 8; i++) memory[i] = i;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Get_address(memory, &address));
  OK(MPI_Allgather(&address, 1, MPI_AINT, there, 1, MPI_AINT, MPI_COMM_WORLD));
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(got, 1, MPI_LONG, me, address, 1, MPI_LONG, win) ||
                               MPI_Win_flush(me, win) ? MPI_ERR_RMA_RANGE : MPI_SUCCESS);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_attach(win, memory, 8 * sizeof *memory));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, memory, 8));
  FAILS(MPI_ERR_SIZE, MPI_Win_attach(win, memory, -1));
  FAILS(MPI_ERR_BASE, MPI_Win_attach(win, NULL, 8));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  /* The target's displacement is MPI_BOTTOM, and the type has its addresses. */
  MPI_Aint places[2] = {MPI_Aint_add(there[next], sizeof *memory),
                        MPI_Aint_add(there[next], 5 * sizeof *memory)};
  MPI_Datatype type;
  OK(MPI_Type_create_hindexed(2, one, places, MPI_LONG, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  OK(MPI_Get(got, 2, MPI_LONG, next, 0, 1, type, win));
  OK(MPI_Win_flush(next, win));
  CHECK(got[0] == 1 && got[1] == 5);
  OK(MPI_Put(value, 2, MPI_LONG, next, 0, 1, type, win));
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_sync(win));
  CHECK(memory[1] == 3 && memory[5] == 4 && memory[0] == 0);
  OK(MPI_Type_free(&type));
  OK(MPI_Win_detach(win, memory));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(win, memory));
  /* Memory may still be attached when the window is freed. */
  OK(MPI_Win_attach(win, memory, 8));
  OK(MPI_Win_free(&win));
  free(memory);
  free(there);
}

/* Only dynamic windows take attachments. */
static void fixed(void) {
  MPI_Win win;
  long *base, *there, mine[2] = {me, -me};
  MPI_Aint bytes;
  int unit;
  OK(MPI_Win_create(me ? mine : NULL, me ? sizeof mine : 0, 1 + me, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(win, mine, sizeof mine));
  OK(MPI_Win_shared_query(win, me, &bytes, &unit, &there));
  CHECK(bytes == (MPI_Aint)(me ? sizeof mine : 0) && unit == 1 + me);
  FAILS(MPI_ERR_RANK, MPI_Win_shared_query(win, size, &bytes, &unit, &there));
  OK(MPI_Win_free(&win));
  OK(MPI_Win_allocate(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_free(&win));
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
  OK(MPI_Info_set(info, "no_locks", "maybe"));
  OK(MPI_Info_set(info, "unknown", "hint"));
  OK(MPI_Win_allocate(64, 8, info, MPI_COMM_WORLD, &base, &win));
  CHECK((intptr_t)base % 4096 == 0);
  OK(MPI_Win_free(&win));
  OK(MPI_Alloc_mem(100, info, &base));
  CHECK((intptr_t)base % 4096 == 0);
  OK(MPI_Free_mem(base));
  OK(MPI_Info_free(&info));
  OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &base));
  OK(MPI_Free_mem(base));
  FAILS(MPI_ERR_ARG, MPI_Alloc_mem(8, MPI_INFO_NULL, NULL));
  FAILS(MPI_ERR_SIZE, MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  FAILS(MPI_ERR_DISP, MPI_Win_allocate(8, -1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  FAILS(MPI_ERR_COMM, MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win));
}

/* A handler of the window's own gets its errors. */
static int calls;

static void handler(MPI_Win *win, int *code, ...) {
  int class;
  OK(MPI_Error_class(*code, &class));
  calls += *win != MPI_WIN_NULL && class == MPI_ERR_RMA_SYNC;
}

static void handlers(void) {
  MPI_Win win;
  MPI_Errhandler mine, got;
  long *base;
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_get_errhandler(win, &got));
  CHECK(got == MPI_ERRORS_ARE_FATAL);
  OK(MPI_Win_create_errhandler(handler, &mine));
  OK(MPI_Win_set_errhandler(win, mine));
  OK(MPI_Errhandler_free(&mine));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  CHECK(calls == 1);
  OK(MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC));
  CHECK(calls == 2);
  OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  dynamic();
  fixed();
  handlers();
  return end();
}
