/* Right programs under --check: threads make collective calls on objects of their own in another
   order at each rank. MPI orders the calls on each communicator and window only (MPI-5.0 sections
   6.14 and 12.5). */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { ROUNDS = 10 };

static MPI_Comm comms[2];
static MPI_Win wins[2];

static void pause_ms(int ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000L };
    while (nanosleep(&time, &time) != 0) {}
}

/* The two threads come to their calls at different times, and in opposite orders at odd and even
   ranks. */
static void *fences(void *arg)
{
    int thread = *(int *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if ((thread + me + i) % 2) pause_ms(3);
        OK(MPI_Win_fence(0, wins[thread]));
        OK(MPI_Put(&me, 1, MPI_INT, (me + 1) % size, 0, 1, MPI_INT, wins[thread]));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[thread]));
    }
    return NULL;
}

static void *barriers(void *arg)
{
    int thread = *(int *)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if ((thread + me + i) % 2) pause_ms(3);
        OK(MPI_Barrier(comms[thread]));
    }
    return NULL;
}

/* A window of MPI_COMM_WORLD in one thread, MPI_COMM_WORLD itself in the other one. */
static void *both(void *arg)
{
    return *(int *)arg ? fences(arg) : barriers(arg);
}

static void in_threads(void *(*body)(void *))
{
    pthread_t thread;
    int zero = 0, one = 1;
    CHECK(pthread_create(&thread, NULL, body, &one) == 0);
    body(&zero);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    int level, *base;
    setenv("LONGSHORE_CHECK", "fail", 1);
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(level == MPI_THREAD_MULTIPLE);
    for (int i = 0; i < 2; i++) {
        OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &wins[i]));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    }
    in_threads(fences);
    in_threads(barriers);
    OK(MPI_Comm_free(&comms[0]));
    comms[0] = MPI_COMM_WORLD;
    in_threads(both);
    OK(MPI_Win_free(&wins[0]));
    OK(MPI_Win_free(&wins[1]));
    OK(MPI_Comm_free(&comms[1]));
    return end();
}
