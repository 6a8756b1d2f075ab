/* MPI_THREAD_MULTIPLE: eight threads with windows, communicators and requests of their own, while
   others wait (MPI-5.0 section 11.6). */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 20 };

static MPI_Comm comms[THREADS];
static pthread_barrier_t together;

static int next(void) { return (me + 1) % size; }
static int last(void) { return (me + size - 1) % size; }

/* Operations on a window that is this thread's. */
static void windows(int thread, MPI_Comm comm)
{
    MPI_Win win;
    long *base, value, old, one = 1, sum;
    OK(MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(base, 0, 4 * sizeof(long));
    OK(MPI_Barrier(comm));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 1; i <= ROUNDS; i++) {
        value = 1000 * thread + i;
        OK(MPI_Put(&value, 1, MPI_LONG, next(), 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(next(), win));
        OK(MPI_Get(&old, 1, MPI_LONG, next(), 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(next(), win));
        CHECK(old == value);
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 2, MPI_SUM, win));
        OK(MPI_Win_flush_all(win));
        CHECK(old >= 0 && old < (long)size * ROUNDS);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(comm));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(&sum, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    CHECK(sum == (long)size * ROUNDS);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, next(), 3, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[0] == value && base[3] == value);
    OK(MPI_Win_free(&win));
}

/* Messages and collective calls on a communicator that is this thread's. */
static void messages(int thread, MPI_Comm comm)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int out[2], in[2], sum, done;
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 2; k++) {
            out[k] = 100 * thread + 10 * i + k;
            OK(MPI_Irecv(&in[k], 1, MPI_INT, last(), k, comm, &requests[k]));
        }
        for (int k = 0; k < 2; k++)
            OK(MPI_Isend(&out[k], 1, MPI_INT, next(), k, comm, &requests[2 + k]));
        if (i % 2 == 0) {
            OK(MPI_Waitall(4, requests, statuses));
        } else {
            do
                OK(MPI_Testall(4, requests, &done, statuses));
            while (!done);
        }
        CHECK(in[0] == out[0] && in[1] == out[1]);
        OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == size * (size - 1) / 2);
    }
}

static void *work(void *argument)
{
    int thread = *(int *)argument, sum, one = 1;
    MPI_Comm dup, half;
    /* All threads make communicators and windows at once, each on a parent of its own. */
    pthread_barrier_wait(&together);
    for (int i = 0; i < 3; i++) {
        OK(MPI_Comm_dup(comms[thread], &dup));
        OK(MPI_Comm_split(dup, me % 2, me, &half));
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half));
        CHECK(sum == (size + 1 - me % 2) / 2);
        OK(MPI_Comm_free(&half));
        windows(thread, dup);
        messages(thread, dup);
        OK(MPI_Comm_free(&dup));
    }
    return NULL;
}

/* A thread that waits for a message while the others go on. */
static void *wait_for(void *argument)
{
    int got = 0;
    MPI_Status status;
    (void)argument;
    OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &status));
    CHECK(got == 4711);
    return NULL;
}

/* One window that all threads use. */
static MPI_Win shared;

static void *share(void *argument)
{
    int thread = *(int *)argument;
    long value = thread, got;
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Put(&value, 1, MPI_LONG, next(), thread, 1, MPI_LONG, shared));
        OK(MPI_Win_flush(next(), shared));
        OK(MPI_Get(&got, 1, MPI_LONG, next(), thread, 1, MPI_LONG, shared));
        OK(MPI_Win_flush(next(), shared));
        CHECK(got == value);
    }
    return NULL;
}

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, body, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    int provided, token = 4711, is_main;
    long *base;
    pthread_t waiting;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Query_thread(&provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&is_main));
    CHECK(is_main);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(pthread_barrier_init(&together, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    CHECK(pthread_create(&waiting, NULL, wait_for, NULL) == 0);
    run(work);
    OK(MPI_Win_allocate(THREADS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                        &shared));
    OK(MPI_Win_lock_all(0, shared));
    run(share);
    OK(MPI_Win_unlock_all(shared));
    OK(MPI_Win_free(&shared));
    OK(MPI_Send(&token, 1, MPI_INT, 0, 99, MPI_COMM_SELF));
    CHECK(pthread_join(waiting, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        OK(MPI_Comm_free(&comms[i]));
    return end();
}
