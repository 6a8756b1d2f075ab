/* Windows over large allocations of the C library, which have pages of their own (MPI-5.0 section
   12.2.1). No thread of the library's makes progress here, so a rank that computes answers no
   message. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "check.h"

enum { COUNT = 100003, BYTES = COUNT * sizeof(long) };

static MPI_Win create(void *memory, MPI_Aint bytes) {
  MPI_Win win;
  OK(MPI_Win_create(memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  return win;
}

/* Whether shared memory is mapped at an address. */
static int is_shared(void *address) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512], access[5];
  uintptr_t first, end;
  int shared = -1;
  CHECK(maps != NULL);
  while (fgets(line, sizeof line, maps))
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &end, access) == 3 &&
        first <= (uintptr_t)address && (uintptr_t)address < end)
      shared = access[3] == 's';
  fclose(maps);
  return shared;
}

/* Whether the whole memory of other ranks is reached directly. */
static int is_reached(MPI_Win win) {
  MPI_Aint there;
  int unit;
  void *base;
  OK(MPI_Win_shared_query(win, (me + 1) % size, &there, &unit, &base));
  return base != NULL;
}

/* Rank 0 operates on both ends of rank 1's window, while rank 1 makes no call. */
static void reach(MPI_Win win, long *memory, long count) {
  volatile long *seen = memory;
  long value = 7, got = 0, old = 0;
  memory[0] = memory[count - 1] = 1;
  meet(win);
  if (me == 0 && size > 1) {
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    for (long at = 0; at < count; at += count - 1) {
      OK(MPI_Get(&got, 1, MPI_LONG, 1, at, 1, MPI_LONG, win));
      OK(MPI_Win_flush(1, win));
      OK(MPI_Put(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, win));
      OK(MPI_Win_flush(1, win));
      OK(MPI_Fetch_and_op(&value, &old, MPI_LONG, 1, at, MPI_SUM, win));
      OK(MPI_Win_flush(1, win));
      CHECK(got == 1 && old == 7);
      OK(MPI_Accumulate(&value, 1, MPI_LONG, 1, at, 1, MPI_LONG, MPI_SUM, win));
      OK(MPI_Win_flush(1, win));
    }
    OK(MPI_Win_unlock(1, win));
  }
  if (me == 1)
    while (seen[0] != 21 || seen[count - 1] != 21)
      ;
  meet(win);
  memory[0] = 0;
  memory[count - 1] = count - 1;
}

static void check_all(const long *memory, long count) {
  for (long i = 0; i < count; i++)
    CHECK(memory[i] == i);
}

/* A window over all of an allocation, which keeps what it has. */
static void whole(long *memory, long count) {
  CHECK(memory != NULL);
  for (long i = 0; i < count; i++)
    memory[i] = i;
  MPI_Win win = create(memory, count * sizeof(long));
  CHECK(is_reached(win) && is_shared(memory) == (size > 1) && is_shared(memory + count - 1) == (size > 1));
  reach(win, memory, count);
  OK(MPI_Win_free(&win));
  CHECK(!is_shared(memory) && !is_shared(memory + count - 1));
  check_all(memory, count);
  free(memory);
}

static void every_allocation(void) {
  for (long count = 1 << 15; count < 1 << 20; count = count * 3 + 1)
    whole(malloc(count * sizeof(long)), count);
  whole(calloc(COUNT, sizeof(long)), COUNT);
  whole(realloc(malloc(BYTES / 2), BYTES), COUNT);
  for (size_t alignment = 32; alignment <= 1 << 18; alignment *= 2) {
    void *memory;
    CHECK(posix_memalign(&memory, alignment, BYTES) == 0);
    whole(memory, COUNT);
  }
}

/* Windows over parts of one allocation, and the first one freed before the others. */
static void parts(void) {
  long *memory = malloc(BYTES);
  for (long i = 0; i < COUNT; i++)
    memory[i] = i;
  /* The start is recognized, so a small part moves. */
  MPI_Win start = create(memory, 10 * sizeof(long));
  CHECK(is_reached(start) && !is_shared(memory + COUNT - 1));
  MPI_Win within = create(memory + 3, 4 * sizeof(long));
  CHECK(is_reached(within));
  /* All of it doesn't move any more. Messages reach it. */
  MPI_Win all = create(memory, BYTES);
  OK(MPI_Win_free(&start));
  reach(within, memory + 3, 4);
  memory[3] = 3, memory[6] = 6;
  OK(MPI_Win_free(&within));
  OK(MPI_Win_free(&all));
  check_all(memory, COUNT);
  all = create(memory, BYTES);
  within = create(memory + 1, BYTES - sizeof(long));
  CHECK(is_reached(all) && is_reached(within));
  OK(MPI_Win_free(&all));
  reach(within, memory + 1, COUNT - 1);
  memory[1] = 1, memory[COUNT - 1] = COUNT - 1;
  OK(MPI_Win_free(&within));
  check_all(memory, COUNT);
  free(memory);
}

/* Operations of every kind, again and again, in a partial page and across its end. */
static void edges(void) {
  long *memory = malloc(BYTES), *own = memory + 5, count = COUNT - 10, old;
  int next = (me + 1) % size, page = (int)(sysconf(_SC_PAGESIZE) / sizeof(long));
  /* The first element that is reached directly: all ranks' allocations begin alike in a page. */
  int first = page - (int)((uintptr_t)own / sizeof(long) % page);
  MPI_Win win = create(own, count * sizeof(long));
  MPI_Request request;
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  for (long i = 0; i < count; i++)
    own[i] = 0;
  meet(win);
  OK(MPI_Win_lock_all(0, win));
  for (long round = 1; round < 100; round++) {
    long out[] = {round, round + 1, round + 2, round + 3}, in[4] = {0}, one = 1;
    /* Other numbers of elements, in the partial page, in whole ones, and in both. */
    int items = 1 + round % 4;
    for (int at = first - 9; at < first + 9; at += 3) {
      OK(MPI_Put(out, items, MPI_LONG, next, at, items, MPI_LONG, win));
      OK(MPI_Win_flush(next, win));
      OK(MPI_Get(in, items, MPI_LONG, next, at, items, MPI_LONG, win));
      OK(MPI_Win_flush(next, win));
      CHECK(memcmp(in, out, items * sizeof(long)) == 0);
      OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, next, at, MPI_SUM, win));
      OK(MPI_Win_flush(next, win));
      CHECK(old == round);
      long new = -1, compare = round + 1;
      OK(MPI_Compare_and_swap(&new, &compare, &old, MPI_LONG, next, at, win));
      OK(MPI_Win_flush(next, win));
      CHECK(old == round + 1);
      OK(MPI_Get_accumulate(NULL, 0, MPI_LONG, in, items, MPI_LONG, next, at, items, MPI_LONG, MPI_NO_OP, win));
      OK(MPI_Win_flush(next, win));
      CHECK(in[0] == -1 && (items == 1 || in[items - 1] == out[items - 1]));
      OK(MPI_Rput(out, 2, MPI_LONG, next, at, 2, MPI_LONG, win, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    /* An accumulate by message comes before the direct one that follows it. */
    OK(MPI_Accumulate(out, 4, MPI_LONG, next, first - 2, 4, MPI_LONG, MPI_REPLACE, win));
    OK(MPI_Accumulate(&one, 1, MPI_LONG, next, first + 1, 1, MPI_LONG, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, next, first + 1, MPI_SUM, win));
    OK(MPI_Win_flush(next, win));
    CHECK(old == round + 4);
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(out, 2, MPI_LONG, next, count - 1, 2, MPI_LONG, win));
    FAILS(MPI_ERR_DISP, MPI_Put(out, 1, MPI_LONG, next, -1, 1, MPI_LONG, win));
  }
  OK(MPI_Win_unlock_all(win));
  meet(win);
  for (long i = 0; i < count; i++)
    CHECK((own[i] == 0) == (i < first - 9 || i > first + 9));
  OK(MPI_Win_free(&win));
  free(memory);
}

/* A child has a copy that it can free, even when other windows have its pages of the segment. */
static void forked(void) {
  enum { WINDOWS = 4 };
  long *memory = malloc(BYTES);
  int go[2], status;
  char byte = 0;
  for (long i = 0; i < COUNT; i++)
    memory[i] = i;
  MPI_Win win = create(memory, BYTES), others[WINDOWS];
  CHECK(pipe(go) == 0);
  pid_t child = fork();
  if (child == 0) {
    /* The first page isn't touched before the words that free reads. */
    memory[COUNT - 1] = -1;
    if (read(go[0], &byte, 1) != 1)
      _exit(1);
    free(memory);
    _exit(0);
  }
  OK(MPI_Win_free(&win));
  check_all(memory, COUNT);
  for (int i = 0; i < WINDOWS; i++) {
    void *given;
    OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &given, &others[i]));
    memset(given, 0x55, BYTES);
  }
  CHECK(write(go[1], &byte, 1) == 1);
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  CHECK(close(go[0]) == 0 && close(go[1]) == 0);
  for (int i = 0; i < WINDOWS; i++)
    OK(MPI_Win_free(&others[i]));
  free(memory);
}

/* A program that frees its memory before the window breaks a rule. What it has there later is its
   own all the same. */
static void freed_early(void) {
  long *memory = malloc(BYTES);
  int status;
  MPI_Win win = create(memory, BYTES);
  meet(win);
  free(memory);
  /* Mostly at the same address. */
  long *other = malloc(BYTES);
  for (long i = 0; i < COUNT; i++)
    other[i] = i;
  CHECK(!is_shared(other));
  pid_t child = fork();
  if (child == 0) {
    int same = 1;
    for (long i = 0; i < COUNT; i++)
      same &= other[i] == i;
    free(other);
    _exit(!same);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  MPI_Win later = create(other, BYTES);
  CHECK(is_reached(later));
  reach(later, other, COUNT);
  OK(MPI_Win_free(&win));
  reach(later, other, COUNT);
  OK(MPI_Win_free(&later));
  check_all(other, COUNT);
  free(other);
}

/* realloc may not extend memory into what others have. */
static void extended(void) {
  long *memory = malloc(BYTES), *given;
  MPI_Win win = create(memory, BYTES), beside;
  OK(MPI_Win_allocate(BYTES, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &given, &beside));
  for (long i = 0; i < COUNT; i++)
    memory[i] = given[i] = i;
  meet(beside);
  if (me == 0) {
    memory = realloc(memory, 50 * (size_t)BYTES);
    CHECK(memory != NULL);
    memset(memory + COUNT, 0x55, 49 * (size_t)BYTES);
  }
  meet(beside);
  check_all(memory, COUNT);
  check_all(given, COUNT);
  OK(MPI_Win_free(&win));
  OK(MPI_Win_free(&beside));
  check_all(memory, COUNT);
  memory = realloc(memory, BYTES);
  free(memory);
  /* Shorter memory keeps what it has. */
  memory = malloc(BYTES);
  for (long i = 0; i < COUNT; i++)
    memory[i] = i;
  win = create(memory, BYTES);
  meet(win);
  memory = realloc(memory, BYTES / 2);
  CHECK(memory != NULL);
  check_all(memory, COUNT / 2);
  OK(MPI_Win_free(&win));
  check_all(memory, COUNT / 2);
  free(memory);
}

/* Words before a memory that look like the C library's do no harm. */
static void imitated(void) {
  enum { PAGES = 64 };
  size_t page = sysconf(_SC_PAGESIZE);
  char *block = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(block != MAP_FAILED);
  for (int lies = 0; lies < 6; lies++) {
    for (size_t i = 0; i < PAGES * page; i++)
      block[i] = (char)(i % 251);
    size_t *words = (size_t *)(block + page + 64) - 2, size_there = (PAGES - 1) * page - 48;
    words[0] = (size_t[]){48, page + 48, page + 48, 47, 48, (size_t)-16}[lies];
    words[1] = (size_t[]){2, 2, 3, 2, 6, 2}[lies] |
               (size_t[]){size_there, size_there, size_there, size_there, size_there, page}[lies];
    size_t kept[] = {words[0], words[1]};
    size_t bytes = 10 * page;
    MPI_Win win = create(words + 2, (MPI_Aint)bytes);
    meet(win);
    OK(MPI_Win_free(&win));
    CHECK(words[0] == kept[0] && words[1] == kept[1]);
    for (size_t i = 0; i < PAGES * page; i++)
      CHECK((char *)words <= block + i && block + i < (char *)(words + 2) ? 1 : block[i] == (char)(i % 251));
  }
  CHECK(munmap(block, PAGES * page) == 0);
}

int main(int argc, char **argv) {
  CHECK(setenv("LONGSHORE_PROGRESS", "off", 1) == 0);
#ifdef __GLIBC__
  /* Allocations of 128 KiB get mappings of their own, whatever was freed before. */
  CHECK(mallopt(M_MMAP_THRESHOLD, 128 << 10) == 1);
#endif
  begin(&argc, &argv);
#ifdef __GLIBC__
  every_allocation();
  parts();
  forked();
  freed_early();
  extended();
#endif
  edges();
  imitated();
  return end();
}
