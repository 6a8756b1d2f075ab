/* A hash table over all ranks, without a server: ranks claim slots by MPI_Compare_and_swap and
   count by MPI_Accumulate. Both are atomic between ranks of any machines. */
#include "example.h"
#include <stdint.h>

enum { SLOTS = 64, DRAWS = 100, KEYS = 40 };

/* The draw of a rank: a key from 1 to KEYS. */
static uint64_t draw(int rank, int number) {
  uint64_t x = (uint64_t)rank * DRAWS + (uint64_t)number + 1;
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return (x ^ (x >> 31)) % KEYS + 1;
}

/* Counts a key. A slot is two words: a key, 0 while it is free, and its count. */
static void count(uint64_t key, MPI_Win win) {
  uint64_t all = (uint64_t)size * SLOTS, slot = key * UINT64_C(0x9e3779b97f4a7c15) % all;
  /* The accumulate may read it until the window is unlocked. */
  static const uint64_t one = 1;
  uint64_t free_key = 0, found;
  for (;; slot = (slot + 1) % all) {
    int rank = (int)(slot / SLOTS);
    MPI_Aint place = 2 * (MPI_Aint)(slot % SLOTS);
    MPI_Compare_and_swap(&key, &free_key, &found, MPI_UINT64_T, rank, place, win);
    MPI_Win_flush(rank, win);
    if (found != 0 && found != key) continue;
    MPI_Accumulate(&one, 1, MPI_UINT64_T, rank, place + 1, 1, MPI_UINT64_T, MPI_SUM, win);
    return;
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  uint64_t *table;
  MPI_Win win;
  MPI_Win_allocate(2 * SLOTS * sizeof *table, sizeof *table, MPI_INFO_NULL, MPI_COMM_WORLD, &table,
                   &win);
  MPI_Win_lock_all(0, win);
  for (int number = 0; number < DRAWS; number++) count(draw(me, number), win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);

  /* Each key is in one slot, with the number of its draws. */
  uint64_t mine[KEYS + 1] = {0}, found[KEYS + 1], expected[KEYS + 1] = {0};
  MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
  for (int slot = 0; slot < SLOTS; slot++)
    if (table[2 * slot]) mine[table[2 * slot]] += table[2 * slot + 1];
  MPI_Win_unlock(me, win);
  MPI_Allreduce(mine, found, KEYS + 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  int right = 1;
  for (int rank = 0; rank < size; rank++)
    for (int number = 0; number < DRAWS; number++) expected[draw(rank, number)]++;
  for (int key = 0; key <= KEYS; key++) right &= found[key] == expected[key];
  MPI_Win_free(&win);
  return end("each key has as many counts as draws", right);
}
