/* Windows that are created over memory of MPI_Alloc_mem, of malloc and of arrays (MPI-5.0 sections
   10.2 and 12.2.1). */
#define _DEFAULT_SOURCE
#include <sys/mman.h>

#include "check.h"

static int next(void) { return (me + 1) % size; }
static int last(void) { return (me + size - 1) % size; }

/* Puts and gets, and atomic operations in the same epoch, all over memory of so many longs. */
static void use(long *memory, long count, int is_direct)
{
    MPI_Win win;
    long sum = 0, old, one = 1;
    for (long i = 0; i < count; i++)
        memory[i] = -1;
    OK(MPI_Win_create(memory, count * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                      &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (is_direct) {
        MPI_Aint there;
        int unit;
        long *base;
        OK(MPI_Win_shared_query(win, next(), &there, &unit, &base));
        CHECK(base != NULL && there == (MPI_Aint)(count * sizeof(long)));
    }
    long *out = malloc(count * sizeof(long)), *in = malloc(count * sizeof(long));
    for (long i = 0; i < count; i++)
        out[i] = me * count + i;
    meet(win);
    /* One by one from both ends, then all at once. */
    OK(MPI_Win_lock_all(0, win));
    for (long i = 0; i < count && i < 600; i++) {
        OK(MPI_Put(&out[i], 1, MPI_LONG, next(), i, 1, MPI_LONG, win));
        long end = count - 1 - i;
        OK(MPI_Put(&out[end], 1, MPI_LONG, next(), end, 1, MPI_LONG, win));
    }
    OK(MPI_Win_flush(next(), win));
    OK(MPI_Get(in, 1, MPI_LONG, next(), 0, 1, MPI_LONG, win));
    OK(MPI_Get(in + 1, 1, MPI_LONG, next(), count - 1, 1, MPI_LONG, win));
    OK(MPI_Win_flush(next(), win));
    CHECK(in[0] == out[0] && in[1] == out[count - 1]);
    OK(MPI_Put(out, (int)count, MPI_LONG, next(), 0, (int)count, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
    meet(win);
    for (long i = 0; i < count; i++)
        CHECK(memory[i] == last() * count + i);
    meet(win);
    /* Accumulates stay in the order of their calls, whatever bytes they touch. */
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Accumulate(out, (int)count, MPI_LONG, next(), 0, (int)count, MPI_LONG, MPI_REPLACE,
                          win));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, next(), count / 2, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, next(), 0, MPI_SUM, win));
        OK(MPI_Win_flush(next(), win));
        CHECK(old == out[0] + (count / 2 == 0));
    }
    OK(MPI_Win_unlock(next(), win));
    meet(win);
    for (long i = 0; i < count; i++)
        sum += memory[i] - (last() * count + i);
    CHECK(sum == 2);
    /* Bytes outside of the window are refused. */
    FAILS(MPI_ERR_RMA_RANGE, (MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win),
                              MPI_Put(out, 1, MPI_LONG, next(), count, 1, MPI_LONG, win)));
    OK(MPI_Win_unlock(next(), win));
    OK(MPI_Win_free(&win));
    for (long i = 0; i < count; i++)
        memory[i] = i;
    free(out);
    free(in);
}

static void allocated(void)
{
    long *memory, got = 0;
    MPI_Win win;
    OK(MPI_Alloc_mem(20000 * sizeof(long), MPI_INFO_NULL, &memory));
    use(memory, 20000, 1);
    /* A part of it, which begins anywhere. */
    use(memory + 77, 333, 1);
    use(memory + 19999, 1, 1);
    OK(MPI_Win_create(memory + 5, 80, 8, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    FAILS(MPI_ERR_BASE, MPI_Free_mem(memory + 1));
    OK(MPI_Free_mem(memory));
    FAILS(MPI_ERR_BASE, MPI_Free_mem(memory));
    /* The window has its memory until it is freed. */
    memory[5] = 7;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Get(&got, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    CHECK(got == 7);
    OK(MPI_Win_free(&win));
}

static void own(void)
{
    static long array[5000];
    long few[3];
    use(few, 3, 0);
    use(array, 5000, 0);
    for (long count = 1; count < 2000000; count = count * 7 + 3) {
        long *memory = malloc(count * sizeof(long));
        use(memory, count, 0);
        for (long i = 0; i < count; i++)
            CHECK(memory[i] == i);
        free(memory);
    }
}

/* Two windows over the same memory, the one freed before the other. */
static void twice(void)
{
    enum { COUNT = 10000 };
    long *memory = calloc(COUNT, sizeof(long)), value = me + 1;
    MPI_Win first, second;
    OK(MPI_Win_create(memory, COUNT * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                      &first));
    OK(MPI_Win_create(memory + 4000, 4000 * sizeof(long), sizeof(long), MPI_INFO_NULL,
                      MPI_COMM_WORLD, &second));
    meet(first);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, first));
    OK(MPI_Put(&value, 1, MPI_LONG, next(), 4001, 1, MPI_LONG, first));
    OK(MPI_Win_unlock(next(), first));
    OK(MPI_Win_free(&first));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, second));
    OK(MPI_Put(&value, 1, MPI_LONG, next(), 2, 1, MPI_LONG, second));
    OK(MPI_Win_unlock(next(), second));
    meet(second);
    CHECK(memory[4001] == last() + 1 && memory[4002] == last() + 1);
    OK(MPI_Win_free(&second));
    CHECK(memory[4001] == last() + 1 && memory[4002] == last() + 1 && memory[0] == 0);
    free(memory);
}

/* A program that unmaps its memory before it frees the window breaks a rule, but doesn't crash. */
static void unmapped(void)
{
    enum { BYTES = 1 << 20 };
    MPI_Win win;
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    OK(MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    meet(win);
    CHECK(munmap(memory, BYTES / 2) == 0);
    OK(MPI_Win_free(&win));
    CHECK(munmap(memory, BYTES) == 0);
}

/* Long operations that begin and end anywhere in a page. */
static void straddling(void) {
  enum { INTS = 60000 };
  MPI_Win win;
  int *memory = malloc((INTS + 20) * sizeof *memory), *out = malloc(INTS * sizeof *out), *in = malloc(INTS * sizeof *in);
  int next = (me + 1) % size, before = (me + size - 1) % size;
  for (int at = 1; at < 8; at += 3) {
    for (int i = 0; i < INTS + 20; i++) memory[i] = -1;
    for (int i = 0; i < INTS; i++) out[i] = me * INTS + i, in[i] = -1;
    /* At any distance from the start of a page, by bytes and by ints. */
    OK(MPI_Win_create(memory + at, (INTS + 10) * sizeof *memory, at == 1 ? 1 : sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Aint disp = at == 1 ? 2 * sizeof *memory : 2;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(out, INTS, MPI_INT, next, disp, INTS, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < INTS; i++) CHECK(memory[at + 2 + i] == before * INTS + i);
    CHECK(memory[at + 1] == -1 && memory[at + 2 + INTS] == -1 && memory[0] == -1);
    OK(MPI_Get(in, INTS, MPI_INT, next, disp, INTS, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < INTS; i++) CHECK(in[i] == me * INTS + i);
    /* Without a byte beyond the end. */
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(out, INTS, MPI_INT, next, at == 1 ? 44 : 11, INTS, MPI_INT, win));
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Win_free(&win));
  }
  free(in);
  free(out);
  free(memory);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    allocated();
    own();
    twice();
    unmapped();
    straddling();
    return end();
}
