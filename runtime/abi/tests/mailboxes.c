/* Windows over a few bytes of the heap or the stack, which share a page with other data. Operations
   on them go by the target's mailbox while it waits, and by messages while it computes. */
#include <stdint.h>

#include "check.h"

/* A run in an emulator takes fewer. */
#ifndef EXCHANGES
#define EXCHANGES 3000
#endif

static MPI_Win create(void *memory, MPI_Aint bytes) {
  MPI_Win win;
  OK(MPI_Win_create(memory, bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  return win;
}

/* All ranks use the windows of all others at once, so each answers while it asks. */
static void together(MPI_Win win, volatile int64_t *memory) {
  for (int at = 0; at < 4 + size; at++) memory[at] = 0;
  meet(win);
  OK(MPI_Win_lock_all(0, win));
  for (int64_t round = 1; round <= EXCHANGES; round++) {
    int to = (me + 1 + round % (size > 1 ? size - 1 : 1)) % size;
    int64_t one = 1, old = -1, got = -1, mine = -round;
    OK(MPI_Put(&round, 1, MPI_INT64_T, to, 4 + me, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(to, win));
    OK(MPI_Get(&got, 1, MPI_INT64_T, to, 4 + me, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(to, win));
    CHECK(got == round);
    OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, to, 0, MPI_SUM, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Accumulate(&round, 1, MPI_INT64_T, to, 2, 1, MPI_INT64_T, MPI_MAX, win));
    OK(MPI_Win_flush(to, win));
    CHECK(old >= 0 && old < (int64_t)EXCHANGES * size);
    /* This rank alone writes here, so each swap succeeds. */
    OK(MPI_Compare_and_swap(&mine, &round, &old, MPI_INT64_T, to, 4 + me, win));
    OK(MPI_Win_flush(to, win));
    CHECK(old == round);
  }
  OK(MPI_Win_unlock_all(win));
  meet(win);
  int64_t sums[2] = {memory[0], memory[1]}, all[2];
  OK(MPI_Allreduce(sums, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
  CHECK(all[0] == (int64_t)EXCHANGES * size && all[1] == all[0]);
  CHECK(size < 3 || memory[2] > EXCHANGES - size);
}

/* The last rank computes for a while, and makes no call meanwhile. */
static void while_it_computes(MPI_Win win, volatile int64_t *memory) {
  memory[0] = 0;
  meet(win);
  if (me != size - 1) {
    int64_t one = 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win));
    for (int k = 0; k < 200; k++) {
      OK(MPI_Accumulate(&one, 1, MPI_INT64_T, size - 1, 0, 1, MPI_INT64_T, MPI_SUM, win));
      OK(MPI_Win_flush(size - 1, win));
    }
    OK(MPI_Win_unlock(size - 1, win));
  } else {
    double end = MPI_Wtime() + 0.01;
    while (MPI_Wtime() < end) continue;
  }
  meet(win);
  CHECK(me != size - 1 || memory[0] == 200 * (size - 1));
}

/* What doesn't fit a mailbox, or must be refused, behaves as everywhere. */
static void rest(MPI_Win win, int64_t *memory) {
  int64_t values[5] = {1, 2, 3, 4, 5}, got[5] = {0};
  int to = (me + 1) % size, class = 0;
  meet(win);
  OK(MPI_Win_lock_all(0, win));
  for (int count = 0; count <= 5; count++)
    for (int again = 0; again < 3; again++) {
      OK(MPI_Put(values, count, MPI_INT64_T, to, 0, count, MPI_INT64_T, win));
      OK(MPI_Win_flush(to, win));
      OK(MPI_Get(got, count, MPI_INT64_T, to, 0, count, MPI_INT64_T, win));
      OK(MPI_Win_flush(to, win));
      for (int at = 0; at < count; at++) CHECK(got[at] == values[at]);
    }
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  int code = MPI_Put(values, 1, MPI_INT64_T, to, 100, 1, MPI_INT64_T, win);
  if (code == MPI_SUCCESS) code = MPI_Win_flush(to, win);
  OK(MPI_Error_class(code, &class));
  CHECK(class == MPI_ERR_RMA_RANGE);
  OK(MPI_Win_unlock_all(win));
  meet(win);
  CHECK(memory[4] == 5);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int64_t stack[4 + 64] = {0}, *heap = calloc(4 + size, sizeof *heap);
  CHECK(size <= 64 && heap != NULL);
  MPI_Win of_stack = create(stack, sizeof stack);
  MPI_Win of_heap = create(heap, (4 + size) * (MPI_Aint)sizeof *heap);
  together(of_heap, heap);
  together(of_stack, stack);
  while_it_computes(of_heap, heap);
  rest(of_stack, stack);
  together(of_heap, heap);
  OK(MPI_Win_free(&of_stack));
  OK(MPI_Win_free(&of_heap));
  free(heap);
  return end();
}
