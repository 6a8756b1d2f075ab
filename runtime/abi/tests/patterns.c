/* What programs do with windows: locks and lists built from atomics, transposes by types, windows
   that overlap, mixed epochs, many operations, origins by address (MPI-5.0 chapter 12). */
#include "check.h"
#include <stddef.h>

static int next, before;

/* A queue lock whose waiters spin in their own memory, of compare-and-swap, swap and put. */
static void queue_lock(void) {
  enum { BLOCKED, NEXT, TAIL, COUNTER, WORDS };
  MPI_Win win;
  int *base, nobody = -1, mine = me, one = 1, zero = 0, old, there;
  OK(MPI_Win_allocate(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_lock_all(0, win));
  base[BLOCKED] = 0, base[NEXT] = -1, base[TAIL] = -1, base[COUNTER] = 0;
  OK(MPI_Win_sync(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < 20; i++) {
    OK(MPI_Accumulate(&one, 1, MPI_INT, me, BLOCKED, 1, MPI_INT, MPI_REPLACE, win));
    OK(MPI_Accumulate(&nobody, 1, MPI_INT, me, NEXT, 1, MPI_INT, MPI_REPLACE, win));
    OK(MPI_Win_flush(me, win));
    OK(MPI_Fetch_and_op(&mine, &old, MPI_INT, 0, TAIL, MPI_REPLACE, win));
    OK(MPI_Win_flush(0, win));
    if (old != -1) {
      OK(MPI_Accumulate(&mine, 1, MPI_INT, old, NEXT, 1, MPI_INT, MPI_REPLACE, win));
      OK(MPI_Win_flush(old, win));
      do {
        OK(MPI_Fetch_and_op(NULL, &there, MPI_INT, me, BLOCKED, MPI_NO_OP, win));
        OK(MPI_Win_flush(me, win));
      } while (there);
    }
    /* The lock protects an increment that isn't atomic. */
    OK(MPI_Get(&there, 1, MPI_INT, size - 1, COUNTER, 1, MPI_INT, win));
    OK(MPI_Win_flush(size - 1, win));
    there++;
    OK(MPI_Put(&there, 1, MPI_INT, size - 1, COUNTER, 1, MPI_INT, win));
    OK(MPI_Win_flush(size - 1, win));
    OK(MPI_Compare_and_swap(&nobody, &mine, &old, MPI_INT, 0, TAIL, win));
    OK(MPI_Win_flush(0, win));
    if (old != me) {
      do {
        OK(MPI_Fetch_and_op(NULL, &there, MPI_INT, me, NEXT, MPI_NO_OP, win));
        OK(MPI_Win_flush(me, win));
      } while (there == -1);
      OK(MPI_Accumulate(&zero, 1, MPI_INT, there, BLOCKED, 1, MPI_INT, MPI_REPLACE, win));
      OK(MPI_Win_flush(there, win));
    }
  }
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == size - 1) CHECK(base[COUNTER] == 20 * size);
  OK(MPI_Win_free(&win));
}

/* A list in memory that each rank attaches an element at a time. */
static void linked_list(void) {
  typedef struct { int rank; int value; MPI_Aint place; } Node;
  enum { EACH = 8 };
  MPI_Win win;
  Node *mine[EACH];
  MPI_Aint head, tail;
  int tail_rank = 0, visited = 0;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  for (int i = 0; i < EACH; i++) {
    OK(MPI_Alloc_mem(sizeof(Node), MPI_INFO_NULL, &mine[i]));
    mine[i]->rank = -1, mine[i]->value = 100 * me + i, mine[i]->place = 0;
    OK(MPI_Win_attach(win, mine[i], sizeof(Node)));
  }
  OK(MPI_Get_address(mine[0], &head));
  OK(MPI_Bcast(&head, 1, MPI_AINT, 0, MPI_COMM_WORLD));
  tail = head;
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = me == 0; i < EACH; i++) {
    MPI_Aint place;
    OK(MPI_Get_address(mine[i], &place));
    for (int done = 0; !done;) {
      int none = -1, found;
      OK(MPI_Compare_and_swap(&me, &none, &found, MPI_INT, tail_rank, tail, win));
      OK(MPI_Win_flush(tail_rank, win));
      MPI_Aint at = MPI_Aint_add(tail, offsetof(Node, place)), there;
      if (found == -1) {
        OK(MPI_Accumulate(&place, 1, MPI_AINT, tail_rank, at, 1, MPI_AINT, MPI_REPLACE, win));
        OK(MPI_Win_flush(tail_rank, win));
        tail_rank = me, tail = place, done = 1;
      } else {
        do {
          OK(MPI_Fetch_and_op(NULL, &there, MPI_AINT, tail_rank, at, MPI_NO_OP, win));
          OK(MPI_Win_flush(tail_rank, win));
        } while (!there);
        tail_rank = found, tail = there;
      }
    }
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  int rank = 0;
  for (MPI_Aint at = head; at; visited++) {
    Node node;
    OK(MPI_Get(&node, sizeof node, MPI_BYTE, rank, at, sizeof node, MPI_BYTE, win));
    OK(MPI_Win_flush(rank, win));
    CHECK(node.value / 100 == rank);
    rank = node.rank, at = node.place;
  }
  CHECK(visited == EACH * size);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < EACH; i++) {
    OK(MPI_Win_detach(win, mine[i]));
    OK(MPI_Free_mem(mine[i]));
  }
  OK(MPI_Win_free(&win));
}

/* Matrices are put as rows and arrive as columns. */
static void transpose(void) {
  enum { N = 20, M = 30 };
  MPI_Win win;
  int matrix[N][M], *base;
  MPI_Datatype column, columns, row, resized;
  for (int i = 0; i < N * M; i++) matrix[i / M][i % M] = 1000 * me + i;
  OK(MPI_Type_vector(M, 1, N, MPI_INT, &column));
  OK(MPI_Type_create_hvector(N, 1, sizeof(int), column, &columns));
  OK(MPI_Type_commit(&columns));
  OK(MPI_Type_create_resized(column, 0, sizeof(int), &resized));
  OK(MPI_Type_commit(&resized));
  OK(MPI_Type_contiguous(M, MPI_INT, &row));
  OK(MPI_Type_commit(&row));
  OK(MPI_Win_allocate(N * M * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  for (int way = 0; way < 4; way++) {
    memset(base, 0xff, N * M * sizeof(int));
    OK(MPI_Win_fence(0, win));
    switch (way) {
    case 0: OK(MPI_Put(matrix, N * M, MPI_INT, next, 0, 1, columns, win)); break;
    case 1: OK(MPI_Put(matrix, N, row, next, 0, N, resized, win)); break;
    case 2: OK(MPI_Accumulate(matrix, N, row, next, 0, 1, columns, MPI_REPLACE, win)); break;
    case 3:
      for (int i = 0; i < N; i++) OK(MPI_Put(matrix[i], 1, row, next, i, 1, resized, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < N; i++)
      for (int j = 0; j < M; j++) CHECK(base[j * N + i] == 1000 * before + i * M + j);
  }
  int got[M][N];
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get(got, 1, columns, next, 0, N * M, MPI_INT, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  int straight[N * M];
  OK(MPI_Get(straight, N * M, MPI_INT, next, 0, N * M, MPI_INT, win));
  OK(MPI_Win_unlock(next, win));
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) CHECK(got[j][i] == straight[i * M + j]);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_free(&win));
  OK(MPI_Type_free(&row));
  OK(MPI_Type_free(&resized));
  OK(MPI_Type_free(&columns));
  OK(MPI_Type_free(&column));
}

/* Several windows over the same memory, of several communicators and of parts of it. */
static void overlapping(void) {
  enum { MANY = 6 };
  MPI_Win wins[MANY];
  long *memory;
  OK(MPI_Alloc_mem(64 * sizeof *memory, MPI_INFO_NULL, &memory));
  for (int i = 0; i < 64; i++) memory[i] = -1;
  for (int i = 0; i < MANY; i++)
    OK(MPI_Win_create(memory + i, (64 - i) * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]));
  for (int i = 0; i < MANY; i++) OK(MPI_Win_fence(0, wins[i]));
  for (int i = 0; i < MANY; i++) {
    long value = 10 * me + i;
    OK(MPI_Put(&value, 1, MPI_LONG, next, 2 * i, 1, MPI_LONG, wins[i]));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[i]));
  }
  for (int i = 0; i < MANY; i++) CHECK(memory[3 * i] == 10 * before + i);
  CHECK(memory[1] == -1 && memory[2] == -1);
  for (int i = 0; i < MANY; i++) OK(MPI_Win_free(&wins[i]));
  OK(MPI_Free_mem(memory));
}

/* One window in all kinds of epochs, one after the other and several at a time. */
static void mixed(void) {
  MPI_Win win, other;
  MPI_Group world, to, from;
  int *base, *second, value = me, got = -1;
  OK(MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &second, &other));
  OK(MPI_Win_get_group(win, &world));
  OK(MPI_Group_incl(world, 1, &next, &to));
  OK(MPI_Group_incl(world, 1, &before, &from));
  for (int round = 0; round < 10; round++) {
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, win));
    CHECK(base[0] == before + 1000 * round);
    OK(MPI_Win_post(from, MPI_MODE_NOPUT, win));
    OK(MPI_Win_start(to, 0, win));
    OK(MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK(got == me + 1000 * round);
    /* A window isn't exposed and locked at a time. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    /* Another window may be in an epoch of another kind meanwhile. */
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, other));
    OK(MPI_Put(&round, 1, MPI_INT, next, 1, 1, MPI_INT, win));
    OK(MPI_Put(&round, 1, MPI_INT, next, 1, 1, MPI_INT, other));
    OK(MPI_Win_unlock_all(other));
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    CHECK(base[1] == round);
    OK(MPI_Win_unlock(me, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    value += 1000;
  }
  /* Post and start in either order, and complete before the other side waits. */
  for (int round = 0; round < 4; round++) {
    if (size > 1) {
      int peer = me ^ 1, in_pair = peer < size;
      MPI_Group pair;
      if (in_pair) {
        OK(MPI_Group_incl(world, 1, &peer, &pair));
        if (me % 2 == 0) {
          OK(MPI_Win_start(pair, 0, win));
          OK(MPI_Put(&me, 1, MPI_INT, peer, 2, 1, MPI_INT, win));
          OK(MPI_Win_complete(win));
        } else {
          OK(MPI_Win_post(pair, 0, win));
          OK(MPI_Win_wait(win));
          CHECK(base[2] == peer);
        }
        OK(MPI_Group_free(&pair));
      }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Group_free(&to));
  OK(MPI_Group_free(&from));
  OK(MPI_Group_free(&world));
  OK(MPI_Win_free(&other));
  OK(MPI_Win_free(&win));
}

/* Many small operations in an epoch, of all ranks to all, and long ones. */
static void many(void) {
  enum { EACH = 1500, LONG = 300000 };
  MPI_Win win;
  int *base, *got = malloc(EACH * sizeof *got), *out = malloc(LONG * sizeof *out);
  OK(MPI_Win_allocate((EACH * size + LONG) * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_fence(0, win));
  for (int i = 0; i < EACH; i++) {
    int peer = (me + i) % size;
    out[i] = 10000 * me + i;
    OK(MPI_Put(&out[i], 1, MPI_INT, peer, EACH * me + i, 1, MPI_INT, win));
  }
  OK(MPI_Win_fence(0, win));
  for (int rank = 0; rank < size; rank++)
    for (int i = (me + size - rank % size) % size; i < EACH; i += size) CHECK(base[EACH * rank + i] == 10000 * rank + i);
  for (int i = 0; i < EACH; i++)
    OK(MPI_Get(&got[i], 1, MPI_INT, (me + i) % size, EACH * me + i, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  for (int i = 0; i < EACH; i++) CHECK(got[i] == 10000 * me + i);
  for (int i = 0; i < LONG; i++) out[i] = me + i;
  OK(MPI_Put(out, LONG, MPI_INT, next, EACH * size, LONG, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  CHECK(base[EACH * size] == before && base[EACH * size + LONG - 1] == before + LONG - 1);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Accumulate(out, LONG, MPI_INT, next, EACH * size, LONG, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[EACH * size + 5] == 2 * (before + 5) && base[EACH * size + LONG - 1] == 2 * (before + LONG - 1));
  OK(MPI_Win_free(&win));
  free(out);
  free(got);
}

/* All ranks contend for one exclusive lock, and read by shared ones. */
static void contention(void) {
  MPI_Win win;
  long *base, value;
  OK(MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  base[0] = base[1] = 0;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < 50; i++) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    value++;
    OK(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    OK(MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    long both[2];
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(both, 2, MPI_LONG, 0, 0, 2, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    CHECK(both[0] == both[1] && both[0] > i);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) CHECK(base[0] == 50L * size);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_free(&win));
}

/* Accumulates of one origin to one place happen in order, those to all places are atomic. */
static void ordered(void) {
  MPI_Win win;
  int *base, old = -7;
  OK(MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  memset(base, 0, 4 * sizeof(int));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
  int values[3] = {5, 6, 7}, results[3];
  for (int i = 0; i < 3; i++)
    OK(MPI_Get_accumulate(&values[i], 1, MPI_INT, &results[i], 1, MPI_INT, next, 0, 1, MPI_INT, MPI_REPLACE, win));
  OK(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &old, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_NO_OP, win));
  OK(MPI_Win_unlock(next, win));
  CHECK(results[0] == 0 && results[1] == 5 && results[2] == 6 && old == 7);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 100; i++) {
    int all[3] = {1, 1, 1};
    OK(MPI_Accumulate(all, 3, MPI_INT, i % size, 1, 3, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_flush_local(i % size, win));
  }
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  int due = 0;
  for (int i = me; i < 100; i += size) due += size;
  CHECK(base[1] == due && base[2] == due && base[3] == due);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_free(&win));
}

/* Sizes and units that differ between ranks, no memory at some, and memory at MPI_BOTTOM. */
static void uneven(void) {
  MPI_Win win;
  short values[8] = {0}, got = -1;
  int bytes = me % 2 ? 0 : (int)sizeof values;
  OK(MPI_Win_create(me % 2 ? MPI_BOTTOM : values, bytes, me % 4 == 0 ? 2 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_fence(0, win));
  short value = 7;
  if (next % 2 == 0) OK(MPI_Put(&value, 1, MPI_SHORT, next, next % 4 == 0 ? 3 : 6, 1, MPI_SHORT, win));
  OK(MPI_Put(&value, 0, MPI_SHORT, next, 0, 0, MPI_SHORT, win));
  OK(MPI_Win_fence(0, win));
  if (me % 2 == 0) CHECK(values[3] == 7 && values[2] == 0);
  if (next % 2 == 0) OK(MPI_Get(&got, 1, MPI_SHORT, next, next % 4 == 0 ? 3 : 6, 1, MPI_SHORT, win));
  OK(MPI_Win_fence(0, win));
  if (next % 2 == 0) CHECK(got == 7);
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  next = (me + 1) % size, before = (me + size - 1) % size;
  queue_lock();
  linked_list();
  transpose();
  overlapping();
  mixed();
  many();
  contention();
  ordered();
  uneven();
  return end();
}
