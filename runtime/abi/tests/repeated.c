/* Repeated collective calls keep their memory: they cause no page faults. */
#define _GNU_SOURCE
#include <sys/resource.h>

#include "check.h"

enum { COUNT = 32 << 10, CALLS = 20 };

static long data[COUNT], room[COUNT];
static long *all, *parts;

static void bcast(void) { OK(MPI_Bcast(data, COUNT, MPI_LONG, 0, MPI_COMM_WORLD)); }
static void reduce(void) { OK(MPI_Reduce(data, room, COUNT, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD)); }
static void allreduce(void) { OK(MPI_Allreduce(data, room, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)); }
static void scan(void) { OK(MPI_Scan(data, room, COUNT, MPI_LONG, MPI_SUM, MPI_COMM_WORLD)); }
static void allgather(void) { OK(MPI_Allgather(data, COUNT, MPI_LONG, all, COUNT, MPI_LONG, MPI_COMM_WORLD)); }
static void alltoall(void) { OK(MPI_Alltoall(parts, COUNT, MPI_LONG, all, COUNT, MPI_LONG, MPI_COMM_WORLD)); }
static void gather(void) { OK(MPI_Gather(data, COUNT, MPI_LONG, all, COUNT, MPI_LONG, 0, MPI_COMM_WORLD)); }

static long faults(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_minflt;
}

/* A page fault of a call's own would occur in each of the calls, and for each page. */
static void repeat(const char *name, void (*call)(void)) {
  for (int i = 0; i < 5; i++) call();
  long before = faults();
  for (int i = 0; i < CALLS; i++) call();
  long caused = faults() - before;
  if (caused >= CALLS * 8) fprintf(stderr, "%s: %ld page faults in %d calls\n", name, caused, CALLS);
  CHECK(caused < CALLS * 8);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  size_t bytes = sizeof data * (size_t)size;
  all = malloc(bytes), parts = malloc(bytes);
  CHECK(all && parts);
  memset(all, 1, bytes), memset(parts, 1, bytes), memset(data, 1, sizeof data), memset(room, 1, sizeof room);
  repeat("bcast", bcast);
  repeat("reduce", reduce);
  repeat("allreduce", allreduce);
  repeat("scan", scan);
  repeat("allgather", allgather);
  repeat("alltoall", alltoall);
  repeat("gather", gather);
  free(all), free(parts);
  return end();
}
