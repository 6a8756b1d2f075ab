/* The rows of benches/src/rma.rs, on whatever MPI it is compiled with: two ranks, an allocated window.
 * Prints "row median_us" lines, tab-separated, on rank 0. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, INNER = 2000 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void row(const char *name, int rank, double *per_call) {
    qsort(per_call, ROUNDS, sizeof *per_call, by_value);
    if (rank == 0) printf("%s\t%.4f\n", name, per_call[ROUNDS / 2] * 1e6);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(rank, &one);
    sched_setaffinity(0, sizeof one, &one);

    double *base, value = 1.5, took[ROUNDS];
    MPI_Win window;
    MPI_Win_allocate(4096, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    int other = 1 - rank;

    MPI_Win_fence(0, window);
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER; i++) MPI_Win_fence(0, window);
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    row("fence", rank, took);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER; i++) {
            MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
            MPI_Win_fence(0, window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    row("put8+fence", rank, took);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER; i++)
            MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
        took[round] = (MPI_Wtime() - start) / INNER;
        MPI_Win_fence(0, window);
    }
    row("put8", rank, took);

    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
