/* A signal that interrupts system calls, all the time: no call fails for it. The handler is set
   without SA_RESTART, so that each system call that it interrupts ends with EINTR. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include <sys/time.h>

#include "check.h"

enum { ROUNDS = 5, LONG = 1 << 18 };

static volatile sig_atomic_t ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

static void tick_every(int microseconds)
{
    struct sigaction action;
    struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm dup;
    MPI_Win win;
    char *base, *text;
    int last = 0;
    tick_every(700);
    begin(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    CHECK((text = malloc(LONG)) != NULL);
    memset(text, me, LONG);
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Win_allocate(LONG, 1, MPI_INFO_NULL, dup, &base, &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(text, LONG, MPI_CHAR, (me + 1) % size, 0, LONG, MPI_CHAR, win));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        CHECK(base[LONG - 1] == (me + size - 1) % size);
        OK(MPI_Win_free(&win));
        OK(MPI_Win_create(text, LONG, 1, MPI_INFO_NULL, dup, &win));
        OK(MPI_Win_free(&win));
        OK(MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % size, 0, &last, 1, MPI_INT,
                        (me + size - 1) % size, 0, dup, MPI_STATUS_IGNORE));
        CHECK(last == (me + size - 1) % size);
        OK(MPI_Barrier(dup));
    }
    OK(MPI_Comm_free(&dup));
    CHECK(ticks > 0);
    free(text);
    return end();
}
