/* Collective calls on long data in memory that the system doesn't copy for other processes
   (memfd_secret), at some ranks or all. They go by message then. */
#define _GNU_SOURCE
#include "check.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

enum { LONG = 10007 }; /* ints of a long block */

static int element(int from, int to, int at) { return (from * 16 + to) * 100000 + at; }

/* Memory for a block of each rank. It is secret if that is wanted, and if the system has such
   memory. */
static int *memory(int is_secret) {
  size_t bytes = (size_t)LONG * size * sizeof(int);
  int file = is_secret ? (int)syscall(SYS_memfd_secret, 0) : -1;
  void *found = MAP_FAILED;
  if (file >= 0) {
    CHECK(ftruncate(file, (off_t)bytes) == 0);
    found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
  }
  if (found == MAP_FAILED)
    found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(found != MAP_FAILED);
  return found;
}

static void fill(int *block, int from, int to) {
  for (int at = 0; at < LONG; at++) block[at] = element(from, to, at);
}

static int is_block(const int *block, int from, int to) {
  for (int at = 0; at < LONG; at++)
    if (block[at] != element(from, to, at)) return 0;
  return 1;
}

/* Whether these are the sums of the ranks' ints. */
static int is_sum(const int *sums) {
  for (int at = 0; at < LONG; at++) {
    int sum = 0;
    for (int from = 0; from < size; from++) sum += element(from, 0, at);
    if (sums[at] != sum) return 0;
  }
  return 1;
}

static void exchange(int *data, int *room) {
  MPI_Comm world = MPI_COMM_WORLD;
  for (int root = 0; root < size; root++) {
    fill(data, me == root ? root : 99, 0);
    OK(MPI_Bcast(data, LONG, MPI_INT, root, world));
    CHECK(is_block(data, root, 0));
    fill(data, me, 0);
    OK(MPI_Gather(data, LONG, MPI_INT, room, LONG, MPI_INT, root, world));
    for (int from = 0; from < size && me == root; from++)
      CHECK(is_block(room + from * LONG, from, 0));
    OK(MPI_Reduce(data, room, LONG, MPI_INT, MPI_SUM, root, world));
    CHECK(me != root || is_sum(room));
    memcpy(room, data, LONG * sizeof(int));
    OK(MPI_Reduce(me == root ? MPI_IN_PLACE : room, room, LONG, MPI_INT, MPI_SUM, root, world));
    CHECK(me != root || is_sum(room));
    for (int to = 0; to < size; to++) fill(data + to * LONG, root, to);
    OK(MPI_Scatter(data, LONG, MPI_INT, room, LONG, MPI_INT, root, world));
    CHECK(is_block(room, root, me));
  }
  fill(data, me, 0);
  OK(MPI_Allgather(data, LONG, MPI_INT, room, LONG, MPI_INT, world));
  for (int from = 0; from < size; from++) CHECK(is_block(room + from * LONG, from, 0));
  OK(MPI_Allreduce(data, room, LONG, MPI_INT, MPI_SUM, world));
  CHECK(is_sum(room));
  OK(MPI_Allreduce(MPI_IN_PLACE, data, LONG, MPI_INT, MPI_SUM, world));
  CHECK(is_sum(data));
  for (int to = 0; to < size; to++) fill(data + to * LONG, me, to);
  OK(MPI_Alltoall(data, LONG, MPI_INT, room, LONG, MPI_INT, world));
  for (int from = 0; from < size; from++) CHECK(is_block(room + from * LONG, from, me));
  for (int to = 0; to < size; to++) fill(data + to * LONG, me, 0);
  OK(MPI_Reduce_scatter_block(data, room, LONG, MPI_INT, MPI_SUM, world));
  CHECK(is_sum(room));
  OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, data, LONG, MPI_INT, MPI_SUM, world));
  CHECK(is_sum(data));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int *plain[2] = {memory(0), memory(0)}, *secret[2] = {memory(1), memory(1)};
  exchange(plain[0], plain[1]);
  /* The data of one rank, its room, both; then those of all ranks. */
  for (int which = 0; which < 4; which++) {
    int is_one = which == 3 || me == size - 1;
    int *data = is_one && which != 1 ? secret[0] : plain[0];
    int *room = is_one && which != 0 ? secret[1] : plain[1];
    exchange(data, room);
    exchange(plain[0], plain[1]);
  }
  return end();
}
