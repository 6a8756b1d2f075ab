/* One program of many: rank 0 makes an operation on rank 1, and the program loads or stores beside
 * it, in order or not. ci/steps/loads says which of them have a race.
 *
 *     case CALL SIDE DEED SYNC WINDOW THREAD ORDER
 *
 *     CALL    put, get, accumulate, fetch, get_accumulate
 *     SIDE    target: rank 1 touches its window; origin, result: rank 0 touches that memory
 *     DEED    load, store, byte, from, to: the latter are copies
 *     SYNC    fence, pscw, lock, flush, local
 *     WINDOW  create, allocate
 *     THREAD  main, other
 *     ORDER   after, beside: whether the deed comes after what ends the operation */
#include "../check.h"
#include <pthread.h>

enum { COUNT = 8 };
static int origin[COUNT], result[COUNT], other[COUNT], *window;
static const char *call, *side, *deed, *synchronisation;
static int after;
static MPI_Win win;

static int is(const char *word, const char *name) { return strcmp(word, name) == 0; }

/* The memory that the program touches. */
static int *touched(void) {
  return is(side, "target") ? window : is(side, "origin") ? origin : result;
}

static void *touch(void *sum) {
  int *memory = touched();
  if (is(deed, "load"))
    for (int i = 0; i < COUNT; i++) *(int *)sum += memory[i];
  else if (is(deed, "store"))
    for (int i = 0; i < COUNT; i++) memory[i] = i;
  else if (is(deed, "byte"))
    ((char *)memory)[is(side, "target") ? 4 * COUNT - 1 : 0] = 1;
  else if (is(deed, "from"))
    memcpy(other, memory, sizeof other);
  else
    memcpy(memory, other, sizeof other);
  return NULL;
}

/* The rank that touches memory does, if this is when. */
static void may_touch(int now, int threaded) {
  int sum = 0;
  if (now != after || me != is(side, "target")) return;
  if (!threaded) {
    touch(&sum);
  } else {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, touch, &sum) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
  }
}

static void operate(void) {
  if (is(call, "put"))
    OK(MPI_Put(origin, COUNT, MPI_INT, 1, 0, COUNT, MPI_INT, win));
  else if (is(call, "get"))
    OK(MPI_Get(result, COUNT, MPI_INT, 1, 0, COUNT, MPI_INT, win));
  else if (is(call, "accumulate"))
    OK(MPI_Accumulate(origin, COUNT, MPI_INT, 1, 0, COUNT, MPI_INT, MPI_SUM, win));
  else if (is(call, "fetch"))
    OK(MPI_Fetch_and_op(origin, result, MPI_INT, 1, COUNT - 1, MPI_SUM, win));
  else
    OK(MPI_Get_accumulate(origin, COUNT, MPI_INT, result, COUNT, MPI_INT, 1, 0, COUNT, MPI_INT,
                          MPI_SUM, win));
}

int main(int argc, char **argv) {
  CHECK(argc == 8);
  call = argv[1], side = argv[2], deed = argv[3], synchronisation = argv[4];
  int threaded = is(argv[6], "other");
  after = is(argv[7], "after");
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size == 2);
  int at_target = is(side, "target");
  int *memory = calloc(COUNT, sizeof *memory);
  CHECK(memory != NULL);
  if (is(argv[5], "create")) {
    window = memory;
    OK(MPI_Win_create(window, sizeof(int[COUNT]), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                      &win));
  } else {
    OK(MPI_Win_allocate(sizeof(int[COUNT]), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window,
                        &win));
  }
  for (int i = 0; i < COUNT; i++) window[i] = i;
  OK(MPI_Barrier(MPI_COMM_WORLD));

  if (is(synchronisation, "fence")) {
    OK(MPI_Win_fence(0, win));
    if (me == 0) operate();
    may_touch(0, threaded);
    OK(MPI_Win_fence(0, win));
    may_touch(1, threaded);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  } else if (is(synchronisation, "pscw")) {
    MPI_Group world, peer;
    int rank = 1 - me;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &rank, &peer));
    if (me == 0) {
      OK(MPI_Win_start(peer, 0, win));
      operate();
    } else {
      OK(MPI_Win_post(peer, 0, win));
    }
    may_touch(0, threaded);
    OK(me == 0 ? MPI_Win_complete(win) : MPI_Win_wait(win));
    may_touch(1, threaded);
    OK(MPI_Group_free(&peer));
    OK(MPI_Group_free(&world));
  } else if (is(synchronisation, "lock")) {
    /* The target's own lock excludes the origin's only if both want it so. */
    int type = at_target && !after ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
    OK(MPI_Win_lock(type, 1, 0, win));
    if (me == 0) operate();
    if (!at_target) may_touch(0, threaded);
    if (at_target && me == 1) may_touch(after, threaded);
    OK(MPI_Win_unlock(1, win));
    if (!at_target) may_touch(1, threaded);
  } else {
    OK(MPI_Win_lock_all(0, win));
    if (me == 0) {
      operate();
      if (!at_target) may_touch(0, threaded);
      if (is(synchronisation, "local")) OK(MPI_Win_flush_local(1, win));
      else OK(MPI_Win_flush(1, win));
      if (!at_target) may_touch(1, threaded);
      OK(MPI_Send(&size, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
    } else {
      if (at_target) may_touch(0, threaded);
      OK(MPI_Recv(&size, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      if (at_target) may_touch(1, threaded);
    }
    OK(MPI_Win_unlock_all(win));
  }
  OK(MPI_Win_free(&win));
  free(memory);
  return end();
}
