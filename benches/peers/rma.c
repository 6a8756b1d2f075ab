/* The rows of benches/src/rma.rs, on whatever MPI it is compiled with: two ranks, an allocated window.
 * Prints "row median_us" lines, tab-separated, on rank 0. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(rank, &core);
    sched_setaffinity(0, sizeof core, &core);

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
    long long added = 1, seen, expected = 0;
    double *operands = calloc(MOST, 1);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Win_lock_all(0, window);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER && rank == 0; i++) {
            MPI_Fetch_and_op(&added, &seen, MPI_INT64_T, other, 0, MPI_SUM, window);
            MPI_Win_flush(other, window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    row("fetch_and_op", rank, took);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER && rank == 0; i++) {
            MPI_Compare_and_swap(&added, &expected, &seen, MPI_INT64_T, other, 1, window);
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
    free(operands);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER && rank == 0; i++) {
            MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
            MPI_Win_flush(other, window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    row("put8+flush", rank, took);

    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER && rank == 0; i++) {
            MPI_Get(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
            MPI_Win_flush(other, window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    row("get8+flush", rank, took);
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);

    const int types[] = {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED};
    const char *locks[] = {"lock+put8+unlock", "lock+put8+unlock, shared"};
    for (int type = 0; type < 2; type++) {
        for (int round = 0; round < ROUNDS; round++) {
            double start = MPI_Wtime();
            for (int i = 0; i < INNER && rank == 0; i++) {
                MPI_Win_lock(types[type], other, 0, window);
                MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
                MPI_Win_unlock(other, window);
            }
            took[round] = (MPI_Wtime() - start) / INNER;
        }
        row(locks[type], rank, took);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Group all, both;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &both);
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER; i++) {
            MPI_Win_post(both, 0, window);
            MPI_Win_start(both, 0, window);
            MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
            MPI_Win_complete(window);
            MPI_Win_wait(window);
        }
        took[round] = (MPI_Wtime() - start) / INNER;
    }
    row("post+start+put8+complete+wait", rank, took);
    MPI_Group_free(&both);
    MPI_Group_free(&all);

    /* Put and flush on a created window whose owner computes for 200 ms. */
    double created[512];
    MPI_Win other_window;
    MPI_Win_create(created, sizeof created, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &other_window);
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (rank == 0) {
            usleep(10000);
            MPI_Win_lock_all(0, other_window);
            MPI_Win_flush(1, other_window);
            start = MPI_Wtime();
            MPI_Put(&value, 1, MPI_DOUBLE, 1, round, 1, MPI_DOUBLE, other_window);
            MPI_Win_flush(1, other_window);
            took[round] = MPI_Wtime() - start;
            MPI_Win_unlock_all(other_window);
        } else {
            while (MPI_Wtime() - start < 0.2) {}
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&other_window);
    qsort(took, 5, sizeof *took, by_value);
    if (rank == 0) printf("put8+flush, computing target\t%.4f\n", took[2] * 1e6);

    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
