/* Makes calls of the C interface, which are counted: PATH is a name of the table below. A job of
   one rank takes the way of all ranks that are reached directly. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLES = 4096 };

static double value = 1.5, before;
static int64_t one = 1, none, old;

static void put(MPI_Win win, MPI_Aint at)
{
    MPI_Put(&value, 1, MPI_DOUBLE, 0, at, 1, MPI_DOUBLE, win);
}

static void get(MPI_Win win, MPI_Aint at)
{
    MPI_Get(&value, 1, MPI_DOUBLE, 0, at, 1, MPI_DOUBLE, win);
}

static void flush(MPI_Win win, MPI_Aint at)
{
    put(win, at);
    MPI_Win_flush(0, win);
}

static void accumulate(MPI_Win win, MPI_Aint at)
{
    MPI_Accumulate(&value, 1, MPI_DOUBLE, 0, at, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

static void get_accumulate(MPI_Win win, MPI_Aint at)
{
    MPI_Get_accumulate(&value, 1, MPI_DOUBLE, &before, 1, MPI_DOUBLE, 0, at, 1, MPI_DOUBLE,
                       MPI_SUM, win);
    MPI_Win_flush(0, win);
}

static void fetch_and_op(MPI_Win win, MPI_Aint at)
{
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, at, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

static void compare_and_swap(MPI_Win win, MPI_Aint at)
{
    MPI_Compare_and_swap(&one, &none, &old, MPI_INT64_T, 0, at, win);
    MPI_Win_flush(0, win);
}

static const struct {
    const char *name;
    void (*call)(MPI_Win, MPI_Aint);
} paths[] = {
    {"put", put},
    {"get", get},
    {"flush", flush},
    {"accumulate", accumulate},
    {"get_accumulate", get_accumulate},
    {"fetch_and_op", fetch_and_op},
    {"compare_and_swap", compare_and_swap},
};

int main(int argc, char **argv)
{
    MPI_Win win;
    double *base;
    size_t path = 0, count = sizeof paths / sizeof *paths;
    if (argc != 3)
        return 2;
    long calls = atol(argv[2]);
    while (path < count && strcmp(paths[path].name, argv[1]) != 0)
        path++;
    if (path == count)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(DOUBLES * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                     &win);
    MPI_Win_lock_all(0, win);
    for (long i = 0; i < calls; i++)
        paths[path].call(win, i % DOUBLES);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
