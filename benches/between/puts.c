/* Puts of rank 0 to the last rank, which is on another host:
 *     puts latency      microseconds of a put of 8 bytes with its flush
 *     puts rate         GB/s of puts of 1 MiB, 32 to a flush
 *     puts computing    microseconds of a put of an int with its flush. The last rank computes, and
 *                       makes no call until the end
 * Prints the median of the measurements. The other ranks wait in a barrier, and so does the last
 * one unless it computes. ci/between runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, MOST = 2000 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  int rate = !strcmp(what, "rate"), computing = !strcmp(what, "computing");
  int me, size, last, rounds = rate ? 20 : computing ? 300 : MOST;
  char *base, *data = calloc(MIB, 1);
  double times[MOST];
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  last = size - 1;
  if (!data || (!rate && !computing && strcmp(what, "latency"))) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Win_allocate(MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  memset(base, 0, MIB);
  MPI_Win_lock_all(0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    for (int round = -rounds / 10; round < rounds; round++) {
      int value = round < 0 ? 0 : round + 1, puts = rate ? 32 : 1;
      double begin = MPI_Wtime();
      for (int put = 0; put < puts; put++) {
        if (rate) MPI_Put(data, MIB, MPI_BYTE, last, 0, MIB, MPI_BYTE, win);
        else if (computing) MPI_Put(&value, 1, MPI_INT, last, 0, 1, MPI_INT, win);
        else MPI_Put(data, 8, MPI_BYTE, last, 0, 8, MPI_BYTE, win);
      }
      MPI_Win_flush(last, win);
      if (round >= 0) times[round] = (MPI_Wtime() - begin) / puts;
    }
    qsort(times, rounds, sizeof *times, ascending);
    double median = times[rounds / 2];
    printf("%.3f\n", rate ? MIB / median / 1e9 : median * 1e6);
  } else if (me == last && computing) {
    /* The last value ends the work. No call of MPI is made until then. */
    volatile int *seen = (volatile int *)base;
    volatile double sum = 0;
    while (*seen != rounds)
      for (int step = 1; step < 1000; step++) sum = sum + 1.0 / step;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  free(data);
  return MPI_Finalize();
}
