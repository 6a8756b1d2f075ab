/* The rows of benches/src/rma.rs, on whatever MPI it is compiled with: two ranks, each on a core of its own.
 * Rank 0 prints lines of row, lowest and median microseconds, and nanoseconds of a cache line before and after. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 41, INNER = 2000, MOST = 4 << 20 };

static int rank, other;
static MPI_Win line;
static volatile long long *mine;
static double last;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of a cache line from core to core: put on one side, looked for on the other. */
static double distance(void) {
    static long long trip = 0;
    double lowest = 1e9;
    for (int block = 0; block < 10; block++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, line);
        double start = MPI_Wtime();
        for (int i = 0; i < 30; i++) {
            trip++;
            if (rank == 0) {
                MPI_Put(&trip, 1, MPI_INT64_T, other, 0, 1, MPI_INT64_T, line);
                MPI_Win_flush(other, line);
            }
            while (*mine < trip) MPI_Win_sync(line);
            if (rank != 0) {
                MPI_Put(&trip, 1, MPI_INT64_T, other, 0, 1, MPI_INT64_T, line);
                MPI_Win_flush(other, line);
            }
        }
        double took = (MPI_Wtime() - start) / 30 / 2 * 1e9;
        MPI_Win_unlock_all(line);
        if (took < lowest) lowest = took;
    }
    return lowest;
}

static void row(const char *name, double *per_call, int rounds) {
    MPI_Barrier(MPI_COMM_WORLD);
    double before = last;
    last = distance();
    qsort(per_call, rounds, sizeof *per_call, by_value);
    if (rank == 0) {
        double low = per_call[rounds / 20] * 1e6, median = per_call[rounds / 2] * 1e6;
        printf("%s\t%.5f\t%.5f\t%.1f\t%.1f\n", name, low, median, before, last);
        fflush(stdout);
    }
}

/* A row of what rank 0 does, or both do. */
#define ROW(name, calls, both, body)                                        \
    do {                                                                    \
        for (int round = 0; round < ROUNDS; round++) {                      \
            double start = MPI_Wtime();                                     \
            for (int i = 0; i < (calls) && ((both) || rank == 0); i++) body \
            took[round] = (MPI_Wtime() - start) / (calls);                  \
        }                                                                   \
        row(name, took, ROUNDS);                                            \
    } while (0)

static int calls_of(int bytes) { return bytes <= 8192 ? INNER : bytes <= 65536 ? 200 : 16; }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(rank, &core);
    sched_setaffinity(0, sizeof core, &core);
    other = 1 - rank;

    long long *word;
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &line);
    *word = 0;
    mine = word;
    last = distance();

    double *base, value = 1.5, took[ROUNDS];
    MPI_Win window;
    MPI_Win_allocate(MOST, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);

    MPI_Win_fence(0, window);
    ROW("fence", INNER, 1, { MPI_Win_fence(0, window); });
    ROW("put8+fence", INNER, 1, {
        MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
        MPI_Win_fence(0, window);
    });
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int i = 0; i < INNER; i++) MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
        took[round] = (MPI_Wtime() - start) / INNER;
        MPI_Win_fence(0, window);
    }
    row("put8", took, ROUNDS);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);

    /* Passive target, each call completed by a flush; the target is inside of MPI. */
    long long added = 1, seen, expected = 0;
    double *operands = calloc(MOST, 1);
    MPI_Win_lock_all(0, window);
    ROW("fetch_and_op", INNER, 0, {
        MPI_Fetch_and_op(&added, &seen, MPI_INT64_T, other, 0, MPI_SUM, window);
        MPI_Win_flush(other, window);
    });
    ROW("compare_and_swap", INNER, 0, {
        MPI_Compare_and_swap(&added, &expected, &seen, MPI_INT64_T, other, 1, window);
        MPI_Win_flush(other, window);
    });
    const int sizes[] = {8, 1 << 10, 8 << 10, 64 << 10, 1 << 20, MOST};
    const char *names[] = {"accumulate 8 B",    "accumulate 1 KiB", "accumulate 8 KiB",
                           "accumulate 64 KiB", "accumulate 1 MiB", "accumulate 4 MiB"};
    for (int size = 0; size < 6; size++) {
        int count = sizes[size] / sizeof(double);
        ROW(names[size], calls_of(sizes[size]), 0, {
            MPI_Accumulate(operands, count, MPI_DOUBLE, other, 0, count, MPI_DOUBLE, MPI_SUM, window);
            MPI_Win_flush(other, window);
        });
    }
    ROW("put8+flush", INNER, 0, {
        MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
        MPI_Win_flush(other, window);
    });
    ROW("get8+flush", INNER, 0, {
        MPI_Get(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
        MPI_Win_flush(other, window);
    });
    MPI_Win_unlock_all(window);

    const int types[] = {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED};
    const char *locks[] = {"lock+put8+unlock", "lock+put8+unlock, shared"};
    for (int type = 0; type < 2; type++)
        ROW(locks[type], INNER, 0, {
            MPI_Win_lock(types[type], other, 0, window);
            MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
            MPI_Win_unlock(other, window);
        });

    MPI_Group all, both;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &other, &both);
    ROW("post+start+put8+complete+wait", INNER, 1, {
        MPI_Win_post(both, 0, window);
        MPI_Win_start(both, 0, window);
        MPI_Put(&value, 1, MPI_DOUBLE, other, i % 512, 1, MPI_DOUBLE, window);
        MPI_Win_complete(window);
        MPI_Win_wait(window);
    });
    MPI_Group_free(&both);
    MPI_Group_free(&all);
    MPI_Win_free(&window);

    /* Memory of the program's own. */
    double *own = calloc(1 << 20, 1);
    MPI_Win created;
    MPI_Win_create(own, 1 << 20, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    MPI_Win_lock_all(0, created);
    const int lengths[] = {8, 4 << 10, 1 << 20};
    const char *puts[] = {"created: put8+flush", "created: put 4 KiB+flush", "created: put 1 MiB+flush"};
    for (int size = 0; size < 3; size++) {
        int count = lengths[size] / sizeof(double);
        ROW(puts[size], calls_of(lengths[size]) / 4, 0, {
            MPI_Put(operands, count, MPI_DOUBLE, other, 0, count, MPI_DOUBLE, created);
            MPI_Win_flush(other, created);
        });
    }
    MPI_Win_unlock_all(created);

    /* Put and flush to its owner, which computes for 200 ms, and looks at their end whether the value is there. */
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (rank == 0) {
            usleep(10000);
            MPI_Win_lock_all(0, created);
            MPI_Win_flush(1, created);
            start = MPI_Wtime();
            MPI_Put(&value, 1, MPI_DOUBLE, 1, round, 1, MPI_DOUBLE, created);
            MPI_Win_flush(1, created);
            took[round] = MPI_Wtime() - start;
            MPI_Win_unlock_all(created);
        } else {
            while (MPI_Wtime() - start < 0.2) {}
        }
        int there = ((volatile double *)own)[round] == value;
        MPI_Bcast(&there, 1, MPI_INT, 1, MPI_COMM_WORLD);
        if (!there) took[round] = 0.2;
    }
    row("created: put8+flush, computing target", took, 5);
    MPI_Win_free(&created);
    free(own);
    free(operands);

    MPI_Win_free(&line);
    MPI_Finalize();
    return 0;
}
