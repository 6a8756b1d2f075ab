/* The rows of benches/src/rma.rs, on whatever MPI it is compiled with: two ranks, an allocated window.
 * Prints "row median_us" lines, tab-separated, on rank 0. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 41, INNER = 2000, MOST = 1 << 20 };

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
    MPI_Win_allocate(MOST, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
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

    /* Passive target, each call completed by a flush; the target is inside of MPI. */
    long long one = 1, seen, expected = 0;
    double *operands = calloc(MOST, 1);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_lock_all(0, window);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER && rank == 0; i++) {
            MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, other, 0, MPI_SUM, window);
            MPI_Win_flush(other, window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    row("fetch_and_op", rank, took);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER && rank == 0; i++) {
            MPI_Compare_and_swap(&one, &expected, &seen, MPI_INT64_T, other, 1, window);
            MPI_Win_flush(other, window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    row("compare_and_swap", rank, took);

    const int sizes[] = {8, 1024, 8192, 65536, MOST};
    const char *names[] = {"accumulate 8 B", "accumulate 1 KiB", "accumulate 8 KiB",
                           "accumulate 64 KiB", "accumulate 1 MiB"};
    for (int size = 0; size < 5; size++) {
        int count = sizes[size] / sizeof(double), calls = sizes[size] > 8192 ? 50 : INNER;
        for (int round = 0; round < ROUNDS; round++) {
            double start = MPI_Wtime();
            for (int i = 0; i < calls && rank == 0; i++) {
                MPI_Accumulate(operands, count, MPI_DOUBLE, other, 0, count, MPI_DOUBLE, MPI_SUM, window);
                MPI_Win_flush(other, window);
            }
            took[round] = (MPI_Wtime() - start) / calls;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        row(names[size], rank, took);
    }
    MPI_Win_unlock_all(window);
    free(operands);

    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
