/* Operations that ranks of one byte order make directly and others by message: both are atomic
   together, and long double arrives whichever formats the ranks have. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <float.h>
#include <mpix.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifndef EXCHANGES
#define EXCHANGES 3000
#endif

/* All ranks count at rank 0 at the same time: no count is lost. */
static void counts(void) {
  long long *base, one = 1, old, found;
  MPI_Win win;
  OK(MPI_Win_allocate(3 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  memset(base, 0, 3 * sizeof *base);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < EXCHANGES; i++) {
    OK(MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, 0, 0, MPI_SUM, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    CHECK(old >= i && old < (long long)EXCHANGES * size);
  }
  /* A swap succeeds for one rank at a time. */
  for (int i = 0; i < EXCHANGES / 10; i++) {
    long long seen = 0, next;
    for (;;) {
      next = seen + 1;
      OK(MPI_Compare_and_swap(&next, &seen, &found, MPI_LONG_LONG, 0, 2, win));
      OK(MPI_Win_flush(0, win));
      if (found == seen) break;
      seen = found;
    }
  }
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    CHECK(base[0] == (long long)EXCHANGES * size && base[1] == base[0]);
    CHECK(base[2] == (long long)(EXCHANGES / 10) * size);
    OK(MPI_Win_unlock(0, win));
  }
  OK(MPI_Win_free(&win));
}

/* Each rank puts the same types to all ranks in turn, so that what it has learnt of a like target
   can't be taken for the others. */
static void formats(void) {
  struct mixed {
    int number;
    double value;
  } mine = {me, 0.5 + me}, *base;
  long double *wide, far = 0.25L + me;
  MPI_Win win, wides;
  MPI_Datatype type, types[2] = {MPI_INT, MPI_DOUBLE};
  int lengths[2] = {1, 1};
  OK(MPIX_Type_create_simple_struct(2, lengths, types, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Win_allocate(size * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_allocate(size * sizeof *wide, sizeof *wide, MPI_INFO_NULL, MPI_COMM_WORLD, &wide, &wides));
  for (int round = 0; round < 3; round++) {
    mine.value += 1;
    far += 1;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_fence(0, wides));
    for (int rank = 0; rank < size; rank++) {
      OK(MPI_Put(&mine, 1, type, rank, me, 1, type, win));
      OK(MPI_Put(&far, 1, MPI_LONG_DOUBLE, rank, me, 1, MPI_LONG_DOUBLE, wides));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, wides));
    for (int rank = 0; rank < size; rank++) {
      CHECK(base[rank].number == rank && base[rank].value == 1.5 + rank + round);
      CHECK(wide[rank] == 1.25L + rank + round);
    }
    /* Sums of long double, and an integer after them in the same place. */
    long double one = 1;
    long long last = 7 + round, *place = (long long *)&wide[0];
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, wides));
    OK(MPI_Accumulate(&one, 1, MPI_LONG_DOUBLE, 0, me, 1, MPI_LONG_DOUBLE, MPI_SUM, wides));
    OK(MPI_Win_unlock_all(wides));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int rank = 0; me == 0 && rank < size; rank++) CHECK(wide[rank] == 2.25L + rank + round);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (me == size - 1) {
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, wides));
      OK(MPI_Accumulate(&one, 1, MPI_LONG_DOUBLE, 0, 0, 1, MPI_LONG_DOUBLE, MPI_REPLACE, wides));
      OK(MPI_Accumulate(&last, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_REPLACE, wides));
      OK(MPI_Win_unlock(0, wides));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (me == 0) CHECK(*place == 7 + round);
  }
  OK(MPI_Type_free(&type));
  OK(MPI_Win_free(&win));
  OK(MPI_Win_free(&wides));
}

/* Memory of the program: short operations go by its owner's mailbox or by message, and long ones
   are copied by the system while the owner computes. */
static void created(void) {
  enum { LONG = 8192 };
  double *memory = calloc(LONG, sizeof *memory), *mine = malloc(LONG * sizeof *mine);
  double *back = malloc(LONG * sizeof *back), one = 1, old;
  int next = (me + 1) % size, before = (me + size - 1) % size;
  MPI_Win win;
  OK(MPI_Win_create(memory, LONG * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < LONG; i++) mine[i] = me * 1000 + i + round;
    memset(back, 0, LONG * sizeof *back);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, LONG, MPI_DOUBLE, next, 0, LONG, MPI_DOUBLE, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < LONG; i++) CHECK(memory[i] == before * 1000 + i + round);
    OK(MPI_Get(back, LONG, MPI_DOUBLE, next, 0, LONG, MPI_DOUBLE, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(!memcmp(back, mine, LONG * sizeof *back));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    for (int i = 1; i <= 20; i++) {
      OK(MPI_Put(&mine[i], 1, MPI_DOUBLE, next, i, 1, MPI_DOUBLE, win));
      OK(MPI_Win_flush(next, win));
      OK(MPI_Fetch_and_op(&one, &old, MPI_DOUBLE, next, 0, MPI_SUM, win));
      OK(MPI_Win_flush(next, win));
      CHECK(old == me * 1000 + round + i - 1);
    }
    OK(MPI_Win_unlock(next, win));
  }
  OK(MPI_Win_free(&win));
  free(memory);
  free(mine);
  free(back);
}

enum { MOST = 1000 };

/* Memory whose types have different sizes or formats on related machines. What follows the longs
   shows whether a put writes more than the target has. */
struct part {
  long double wide[MOST];
  long words[MOST], last;
  int owner;
};

/* Computes until a peer raises a number in this rank's memory. */
static void compute_until(const volatile int *number, int wanted) {
  while (*number < wanted) nanosleep(&(struct timespec){0, 100000}, NULL);
}

/* Puts to and gets from the parts of all ranks, whose displacements are given, in turn. Short ones
   go by mailbox or message, and the system copies long ones while their target computes. */
static void move_parts(MPI_Win win, struct part *part, const long long *places) {
  static long double wide[MOST], wide_back[MOST];
  static long words[MOST], words_back[MOST];
  const int counts[] = {1, 4, 100, MOST};
  int *steps;
  MPI_Win turns;
  OK(MPI_Win_allocate(sizeof *steps, sizeof *steps, MPI_INFO_NULL, MPI_COMM_WORLD, &steps, &turns));
  *steps = 0;
  for (int step = 0; step < 3 * size; step++) {
    int count = counts[step % 4];
    for (int i = 0; i < MOST; i++) {
      part->wide[i] = me + i + 0.25L;
      part->words[i] = me * 100000 + i;
    }
    part->last = -1;
    part->owner = me;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (me == step % size) {
      int owner;
      OK(MPI_Win_lock_all(0, win));
      for (int round = 0; round < 9; round++) {
        int rank = round % size;
        MPI_Aint wide_at = places[3 * rank], words_at = places[3 * rank + 1];
        MPI_Aint owner_at = places[3 * rank + 2];
        /* A rank with short pointers can't name all places of another one. */
        if (owner_at != places[3 * rank + 2]) continue;
        /* By data of a type that both represent alike, the origin learns where the part lies. */
        OK(MPI_Get(&owner, 1, MPI_INT, rank, owner_at, 1, MPI_INT, win));
        OK(MPI_Win_flush(rank, win));
        CHECK(owner == rank);
        OK(MPI_Get(wide_back, count, MPI_LONG_DOUBLE, rank, wide_at, count, MPI_LONG_DOUBLE, win));
        OK(MPI_Get(words_back, count, MPI_LONG, rank, words_at, count, MPI_LONG, win));
        OK(MPI_Win_flush(rank, win));
        for (int i = 0; i < count; i++) {
          CHECK(wide_back[i] == rank + i + 0.25L + (round >= size));
          CHECK(words_back[i] == rank * 100000 + i + (round >= size));
        }
        for (int i = 0; i < count; i++) {
          wide[i] = rank + i + 1.25L;
          words[i] = rank * 100000 + i + 1;
        }
        OK(MPI_Put(wide, count, MPI_LONG_DOUBLE, rank, wide_at, count, MPI_LONG_DOUBLE, win));
        OK(MPI_Put(words, count, MPI_LONG, rank, words_at, count, MPI_LONG, win));
        OK(MPI_Win_flush(rank, win));
      }
      OK(MPI_Win_unlock_all(win));
      OK(MPI_Win_lock_all(0, turns));
      for (int rank = 0; rank < size; rank++) {
        int next = step + 1;
        OK(MPI_Put(&next, 1, MPI_INT, rank, 0, 1, MPI_INT, turns));
      }
      OK(MPI_Win_unlock_all(turns));
    }
    compute_until(steps, step + 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(part->last == -1);
    for (int i = 0; i < MOST; i++) {
      long put = part->words[i] - (me * 100000 + i);
      CHECK(i < count ? put == 0 || put == 1 : put == 0);
      CHECK(part->wide[i] == me + i + 0.25L + put);
    }
  }
  OK(MPI_Win_free(&turns));
}

/* Memory of the program, attached to a dynamic window and in a created one. */
static void parts(void) {
  struct part *part = malloc(sizeof *part);
  long long mine[3], *places = malloc(3 * size * sizeof *places);
  MPI_Win win;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_attach(win, part, sizeof *part));
  mine[0] = (uintptr_t)part->wide;
  mine[1] = (uintptr_t)part->words;
  mine[2] = (uintptr_t)&part->owner;
  OK(MPI_Allgather(mine, 3, MPI_LONG_LONG, places, 3, MPI_LONG_LONG, MPI_COMM_WORLD));
  move_parts(win, part, places);
  OK(MPI_Win_detach(win, part));
  OK(MPI_Win_free(&win));
  OK(MPI_Win_create(part, sizeof *part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  mine[0] = 0;
  mine[1] = offsetof(struct part, words);
  mine[2] = offsetof(struct part, owner);
  OK(MPI_Allgather(mine, 3, MPI_LONG_LONG, places, 3, MPI_LONG_LONG, MPI_COMM_WORLD));
  move_parts(win, part, places);
  OK(MPI_Win_free(&win));
  free(places);
  free(part);
}

/* Data of equal length match as bytes, unless they would have been converted: not where the ranks'
   formats of the sent type differ. */
static void lengths(void) {
  int one = 1, numbers[4] = {1, 2, 3, 4}, *all = malloc(3 * size * sizeof *all);
  int next = (me + 1) % size, before = (me + size - 1) % size;
  int mine[3] = {*(char *)&one, LDBL_MANT_DIG, sizeof(long double)};
  char bytes[sizeof numbers + 16];
  long double wide[300] = {me};
  char room[sizeof wide * 2];
  OK(MPI_Allgather(mine, 3, MPI_INT, all, 3, MPI_INT, MPI_COMM_WORLD));
  const int *there = &all[3 * before];
  for (int round = 0; round < 3; round++) {
    MPI_Request request;
    OK(MPI_Isend(numbers, 4, MPI_INT, next, 0, MPI_COMM_WORLD, &request));
    int class = MPI_SUCCESS;
    int code = MPI_Recv(bytes, 16, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    CHECK(class == (mine[0] == there[0] ? MPI_SUCCESS : MPI_ERR_TYPE));
    if (class == MPI_SUCCESS) CHECK(!memcmp(bytes, numbers, sizeof numbers));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* Short ones go at once, and long ones are announced. */
    int count = round == 0 ? 1 : 300;
    OK(MPI_Isend(wide, count, MPI_LONG_DOUBLE, next, 1, MPI_COMM_WORLD, &request));
    code = MPI_Recv(room, sizeof room, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    CHECK(class == (memcmp(mine, there, sizeof mine) ? MPI_ERR_TYPE : MPI_SUCCESS));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  free(all);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  counts();
  formats();
  created();
  parts();
  lengths();
  return end();
}
