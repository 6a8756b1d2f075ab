/* Windows over memory of the program's own: the library changes no page of it, and other ranks
   reach it all the same (MPI-5.0 section 12.2.1). No thread of the library's makes progress here,
   so a rank that computes answers no message. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 100003, BYTES = COUNT * sizeof(long) };

static MPI_Win create(void *memory, MPI_Aint bytes) {
  MPI_Win win;
  OK(MPI_Win_create(memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  return win;
}

/* Pages of the program's own, which nothing has touched. */
static void *map(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
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

/* The memory of this process that is resident. */
static long resident(void) {
  long all = 0, pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  CHECK(statm != NULL && fscanf(statm, "%ld %ld", &all, &pages) == 2);
  fclose(statm);
  return pages * sysconf(_SC_PAGESIZE);
}

static pthread_mutex_t ended = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_end(void *argument) {
  pthread_mutex_lock(&ended);
  pthread_mutex_unlock(&ended);
  return argument;
}

static pthread_t start_thread(void) {
  pthread_t thread;
  pthread_mutex_lock(&ended);
  CHECK(pthread_create(&thread, NULL, wait_for_end, NULL) == 0);
  return thread;
}

static void end_thread(pthread_t thread) {
  pthread_mutex_unlock(&ended);
  CHECK(pthread_join(thread, NULL) == 0);
}

/* Whether the system copies memory between processes: emulators don't. */
static int copies(void) {
  long from = 7, to = 0;
  struct iovec ours = {&to, sizeof to}, theirs = {&from, sizeof from};
  return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == sizeof to && to == 7;
}

/* Pages are private, whether the program has threads or not, and memory keeps what it has. */
static void stays_private(void) {
  long *memory = malloc(BYTES);
  for (long i = 0; i < COUNT; i++)
    memory[i] = i;
  for (int threads = 0; threads < 2; threads++) {
    pthread_t thread = threads ? start_thread() : pthread_self();
    MPI_Win win = create(memory, BYTES);
    CHECK(is_shared(memory + COUNT / 2) == 0 && is_shared(memory) == 0);
    meet(win);
    OK(MPI_Win_free(&win));
    CHECK(is_shared(memory + COUNT / 2) == 0);
    if (threads)
      end_thread(thread);
  }
  for (long i = 0; i < COUNT; i++)
    CHECK(memory[i] == i);
  free(memory);
}

/* mremap extends memory after its window by pages of the program's own, and not by what other
   ranks have. A thread exists when the window is freed. */
static void remapped(void) {
  enum { LEN = 1 << 20 };
  char *memory = map(LEN), *given;
  MPI_Win win = create(memory, LEN), beside;
  memset(memory, 2, LEN);
  OK(MPI_Win_allocate(LEN, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &given, &beside));
  memset(given, 1, LEN);
  pthread_t thread = start_thread();
  meet(beside);
  OK(MPI_Win_free(&win));
  if (me == 0) {
    memory = mremap(memory, LEN, 4 * LEN, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < LEN; i++)
      CHECK(memory[i] == 2);
    memset(memory, 3, 4 * LEN);
  }
  meet(beside);
  for (int i = 0; i < LEN; i++)
    CHECK(given[i] == 1);
  end_thread(thread);
  OK(MPI_Win_free(&beside));
  CHECK(munmap(memory, me == 0 ? 4 * LEN : LEN) == 0);
}

/* mremap takes memory with pages before and after the window, during its life and after it. */
static void remapped_around(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (int early = 0; early < 2; early++) {
    char *memory = map(8 * page);
    memory[3 * page] = 7;
    MPI_Win win = create(memory + 2 * page, 4 * (MPI_Aint)page);
    meet(win);
    if (!early)
      OK(MPI_Win_free(&win));
    memory = mremap(memory, 8 * page, 16 * page, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED && memory[3 * page] == 7);
    if (early)
      OK(MPI_Win_free(&win));
    CHECK(munmap(memory, 16 * page) == 0);
  }
}

/* Advice and locks hold during the window's life, and after it. */
static void advised(void) {
  enum { LEN = 1 << 16 };
  char *memory = map(LEN);
  int status;
  memset(memory, 5, LEN);
  CHECK(madvise(memory, LEN, MADV_WIPEONFORK) == 0);
  MPI_Win win = create(memory, LEN);
  for (int free = 0; free < 2; free++) {
    pid_t child = fork();
    if (child == 0)
      _exit(memory[0] != 0 || memory[LEN - 1] != 0);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(memory[0] == 5 && memory[LEN - 1] == 5);
    CHECK(madvise(memory, LEN, MADV_DONTNEED) == 0);
    CHECK(memory[0] == 0 && memory[LEN - 1] == 0);
    memset(memory, 5, LEN);
    if (!free)
      OK(MPI_Win_free(&win));
  }
  CHECK(munmap(memory, LEN) == 0);
}

static volatile long *ticks;
static volatile long handled;

static void tick(int number) {
  (void)number;
  ticks[0]++;
  handled++;
}

/* Stores of a signal handler, while windows are made and freed. */
static void interrupted(void) {
  struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  ticks = map(1 << 16);
  handled = 0;
  struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART}, before;
  CHECK(sigaction(SIGALRM, &action, &before) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0);
  for (int round = 0; round < 50; round++) {
    MPI_Win win = create((void *)ticks, 1 << 16);
    OK(MPI_Win_free(&win));
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && sigaction(SIGALRM, &before, NULL) == 0);
  CHECK(ticks[0] == handled);
  CHECK(munmap((void *)ticks, 1 << 16) == 0);
}

static volatile int stops;

static void *count_up(void *argument) {
  volatile long *counter = argument;
  long counted = 0;
  while (!stops) {
    *counter = ++counted;
    if (*counter != counted)
      return NULL;
  }
  return argument;
}

/* Stores of a thread, in a program whose threads have a name like the library's. */
static void stored_by_a_thread(void) {
  long *memory = map(1 << 16);
  void *kept;
  pthread_t thread;
  CHECK(prctl(PR_SET_NAME, "longshore-test") == 0);
  stops = 0;
  CHECK(pthread_create(&thread, NULL, count_up, memory + 100) == 0);
  for (int round = 0; round < 30; round++) {
    MPI_Win win = create(memory, 1 << 16);
    OK(MPI_Win_free(&win));
  }
  stops = 1;
  CHECK(pthread_join(thread, &kept) == 0 && kept != NULL);
  CHECK(prctl(PR_SET_NAME, "pages") == 0);
  CHECK(munmap(memory, 1 << 16) == 0);
}

/* Says why direct reads aren't tested, once. */
static void no_direct(const char *what) {
  if (me == 0)
    printf("no direct reads are tested: %s: %s\n", what, strerror(errno));
}

#if defined(SYS_io_setup) && defined(SYS_io_submit) && defined(SYS_io_getevents)
enum { READS = 4, READ = 1 << 18 };

/* A file of random bytes, open for direct reads, and a context for these; -1 where the system
   refuses one of them. */
static int open_direct(const char *bytes, aio_context_t *context) {
  char name[] = "/var/tmp/longshore-pages-XXXXXX";
  int file = mkstemp(name), direct;
  CHECK(file >= 0 && write(file, bytes, READS * READ) == READS * READ && fsync(file) == 0);
  CHECK(close(file) == 0);
  direct = open(name, O_RDONLY | O_DIRECT);
  if (direct < 0)
    no_direct("open with O_DIRECT");
  CHECK(unlink(name) == 0);
  if (direct >= 0 && syscall(SYS_io_setup, READS, context) != 0) {
    no_direct("io_setup");
    CHECK(close(direct) == 0);
    return -1;
  }
  return direct;
}

/* Direct reads into memory are under way while windows over it are made and freed. */
static void read_directly(void) {
  enum { LEN = READS * READ };
  char *memory = map(LEN), *bytes = malloc(LEN);
  aio_context_t context = 0;
  for (int i = 0; i < LEN; i++)
    bytes[i] = (char)rand();
  int file = open_direct(bytes, &context), may_read = file >= 0;
  /* All ranks make the windows. */
  for (int round = 0; round < 30; round++) {
    struct iocb reads[READS], *all[READS];
    struct io_event events[READS];
    MPI_Win win;
    memset(memory, 0, LEN);
    if (round % 3 == 0)
      win = create(memory, LEN);
    for (int i = 0; may_read && i < READS; i++) {
      memset(&reads[i], 0, sizeof reads[i]);
      reads[i].aio_fildes = (unsigned)file;
      reads[i].aio_lio_opcode = IOCB_CMD_PREAD;
      reads[i].aio_buf = (uintptr_t)(memory + i * READ);
      reads[i].aio_nbytes = READ;
      reads[i].aio_offset = i * READ;
      all[i] = &reads[i];
    }
    long begun = may_read ? syscall(SYS_io_submit, context, (long)READS, all) : 0;
    if (may_read && begun != READS) {
      CHECK(round == 0 && begun < 0);
      no_direct("io_submit");
      may_read = 0;
    }
    if (round % 3 != 0)
      win = create(memory, LEN);
    if (round % 3 != 2)
      OK(MPI_Win_free(&win));
    if (may_read)
      CHECK(syscall(SYS_io_getevents, context, (long)READS, (long)READS, events, NULL) == READS);
    for (int i = 0; may_read && i < READS; i++)
      CHECK(events[i].res == READ);
    CHECK(!may_read || memcmp(memory, bytes, LEN) == 0);
    if (round % 3 == 2)
      OK(MPI_Win_free(&win));
    CHECK(!may_read || memcmp(memory, bytes, LEN) == 0);
  }
  if (file >= 0)
    CHECK(syscall(SYS_io_destroy, context) == 0 && close(file) == 0);
  CHECK(munmap(memory, LEN) == 0);
  free(bytes);
}
#else
static void read_directly(void) {
  errno = ENOSYS;
  no_direct("io_submit");
}
#endif

/* A child that the C library doesn't know of has its own copy. */
static void forked(void) {
  long *memory = malloc(BYTES);
  int status;
  for (long i = 0; i < COUNT; i++)
    memory[i] = i;
  MPI_Win win = create(memory, BYTES);
#ifdef SYS_fork
  pid_t child = (pid_t)syscall(SYS_fork);
#else
  pid_t child = fork();
#endif
  if (child == 0) {
    memset(memory, 1, BYTES);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  for (long i = 0; i < COUNT; i++)
    CHECK(memory[i] == i);
  meet(win);
  OK(MPI_Win_free(&win));
  free(memory);
}

/* A window touches no page that the program hasn't touched. */
static void sparse(void) {
  long bytes = sizeof(void *) > 4 ? 1L << 30 : 1L << 27, before;
  char *memory = map((size_t)bytes), value = 9;
  before = resident();
  MPI_Win win = create(memory, bytes);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_BYTE, (me + 1) % size, bytes / sizeof(long) - 1, 1, MPI_BYTE, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(memory[bytes - (long)sizeof(long)] == 9);
  CHECK(resident() - before < 16 << 20);
  OK(MPI_Win_free(&win));
  CHECK(resident() - before < 16 << 20);
  CHECK(munmap(memory, (size_t)bytes) == 0);
}

/* Many windows over the same memory cost the same each. */
static void many(void) {
  enum { WINDOWS = 500 };
  static MPI_Win wins[WINDOWS];
  long *memory = calloc(COUNT, sizeof(long)), value = me + 1;
  int next = (me + 1) % size;
  for (int i = 0; i < WINDOWS; i++)
    wins[i] = create(memory + i, 10 * sizeof(long));
  for (int i = 0; i < WINDOWS; i += 10) {
    OK(MPI_Win_fence(0, wins[i]));
    OK(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, wins[i]));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, wins[i]));
    CHECK(memory[i] == (me + size - 1) % size + 1);
  }
  for (int i = 0; i < WINDOWS; i++)
    OK(MPI_Win_free(&wins[i]));
  free(memory);
}

/* Says that rank 1 makes no call from here on, and waits at rank 0 for that. */
static void leave(volatile int *gone, int round) {
  if (me == 1)
    *gone = round;
  while (me == 0 && size > 1 && *gone != round)
    ;
}

/* A word that ranks 0 and 1 share. */
static volatile int *shared_word(MPI_Win *win) {
  MPI_Aint bytes;
  int unit;
  volatile int *own, *word;
  OK(MPI_Win_allocate_shared(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&own, win));
  OK(MPI_Win_shared_query(*win, size > 1, &bytes, &unit, (void *)&word));
  *own = 0;
  meet(*win);
  return word;
}

/* Long puts and gets to a rank that makes no call: of one run, and of the blocks of a vector, each
   long enough that the system copies it. */
static void computing(void) {
  enum { BLOCK = 4096 / sizeof(long), BLOCKS = 20 };
  MPI_Win words;
  volatile int *gone = shared_word(&words);
  long *memory = malloc(BYTES), *out = malloc(BYTES), *in = malloc(BYTES);
  volatile long *seen = memory;
  MPI_Datatype blocks;
  OK(MPI_Type_vector(BLOCKS, BLOCK, 2 * BLOCK, MPI_LONG, &blocks));
  OK(MPI_Type_commit(&blocks));
  for (long i = 0; i < COUNT; i++)
    memory[i] = -1, out[i] = i, in[i] = -1;
  MPI_Win win = create(memory, BYTES);
  meet(win);
  leave(gone, 1);
  for (int round = 0; me == 0 && size > 1 && round < 3; round++) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    OK(MPI_Put(out, 1, blocks, 1, 3, 1, blocks, win));
    OK(MPI_Put(out, BLOCK * BLOCKS, MPI_LONG, 1, 3, 1, blocks, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get(in, BLOCK * BLOCKS, MPI_LONG, 1, 3, 1, blocks, win));
    OK(MPI_Win_flush(1, win));
    for (long i = 0; i < BLOCK * BLOCKS; i++)
      CHECK(in[i] == i);
    OK(MPI_Get(in, 3 * BLOCK, MPI_LONG, 1, 3, 3 * BLOCK, MPI_LONG, win));
    OK(MPI_Win_flush(1, win));
    for (long i = 0; i < 3 * BLOCK; i++)
      CHECK(in[i] == (i < BLOCK ? i : i < 2 * BLOCK ? -1 : i - BLOCK));
    OK(MPI_Put(out, COUNT - 60000, MPI_LONG, 1, 60000, COUNT - 60000, MPI_LONG, win));
    OK(MPI_Win_unlock(1, win));
  }
  if (me == 1)
    while (seen[COUNT - 1] != COUNT - 60001)
      ;
  meet(win);
  if (me == 1)
    for (long i = 60000; i < COUNT; i++)
      CHECK(memory[i] == i - 60000);
  OK(MPI_Win_free(&win));
  OK(MPI_Win_free(&words));
  OK(MPI_Type_free(&blocks));
  free(memory);
  free(out);
  free(in);
}

/* Attached memory, of the program's own and of MPI_Alloc_mem, of a rank that makes no call. Of the
   latter any operation reaches it. */
static void attached(void) {
  MPI_Win win, words;
  volatile int *gone = shared_word(&words);
  long *memory, *out = malloc(BYTES), *in = malloc(BYTES);
  for (long i = 0; i < COUNT; i++)
    out[i] = i;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  for (int allocates = 0; allocates < 2; allocates++) {
    if (allocates)
      OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
    else
      memory = malloc(BYTES);
    memset(memory, -1, BYTES);
    volatile long *seen = memory;
    MPI_Aint place = 0;
    OK(MPI_Win_attach(win, memory, BYTES));
    OK(MPI_Get_address(memory, &place));
    OK(MPI_Bcast(&place, 1, MPI_AINT, size > 1, MPI_COMM_WORLD));
    meet(win);
    leave(gone, 1 + allocates);
    if (me == 0 && size > 1) {
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
      OK(MPI_Put(out, COUNT - 2, MPI_LONG, 1, place + (MPI_Aint)sizeof(long), COUNT - 2, MPI_LONG, win));
      OK(MPI_Win_flush(1, win));
      OK(MPI_Get(in, COUNT - 1, MPI_LONG, 1, place, COUNT - 1, MPI_LONG, win));
      OK(MPI_Win_flush(1, win));
      CHECK(in[0] == -1 && memcmp(in + 1, out, BYTES - 2 * sizeof(long)) == 0);
      if (allocates) {
        OK(MPI_Accumulate(out + 1, 1, MPI_LONG, 1, place, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_flush(1, win));
      }
      OK(MPI_Put(out + 7, COUNT / 2, MPI_LONG, 1, place + COUNT / 2 * (MPI_Aint)sizeof(long), COUNT / 2, MPI_LONG, win));
      OK(MPI_Win_unlock(1, win));
    }
    if (me == 1) {
      while (seen[COUNT - 2] != COUNT / 2 - 1 + 7)
        ;
      CHECK(!allocates || memory[0] == 0);
    }
    meet(win);
    OK(MPI_Win_detach(win, memory));
    meet(win);
    if (me == 0 && size > 1) {
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
      OK(MPI_Put(out, COUNT / 2, MPI_LONG, 1, place, COUNT / 2, MPI_LONG, win));
      FAILS(MPI_ERR_RMA_RANGE, MPI_Win_unlock(1, win));
    }
    meet(win);
    if (allocates)
      OK(MPI_Free_mem(memory));
    else
      free(memory);
  }
  OK(MPI_Win_free(&win));
  OK(MPI_Win_free(&words));
  free(out);
  free(in);
}

/* Operations of every kind, again and again, short and long. */
static void mixed(void) {
  enum { LONGS = 2000 };
  long *memory = calloc(COUNT, sizeof(long)), *own = memory + 5, count = COUNT - 10, old;
  long *out = malloc(LONGS * sizeof(long)), *in = malloc(LONGS * sizeof(long));
  int next = (me + 1) % size;
  MPI_Win win = create(own, count * (MPI_Aint)sizeof(long));
  MPI_Request request;
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  meet(win);
  OK(MPI_Win_lock_all(0, win));
  for (long round = 1; round < 100; round++) {
    long one = 1;
    int items = round % 10 == 0 ? LONGS : 1 + (int)round % 4;
    for (int i = 0; i < items; i++)
      out[i] = round + i;
    for (int at = 0; at < 60; at += 20) {
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
      OK(MPI_Rput(out, items, MPI_LONG, next, at, items, MPI_LONG, win, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(out, 2, MPI_LONG, next, count - 1, 2, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(out, LONGS, MPI_LONG, next, count - LONGS + 1, LONGS, MPI_LONG, win));
    FAILS(MPI_ERR_DISP, MPI_Put(out, 1, MPI_LONG, next, -1, 1, MPI_LONG, win));
  }
  OK(MPI_Win_unlock_all(win));
  meet(win);
  for (int i = 0; i < 5; i++)
    CHECK(memory[i] == 0 && memory[COUNT - 1 - i] == 0);
  OK(MPI_Win_free(&win));
  free(memory);
  free(out);
  free(in);
}

/* Short operations of every kind on two attachments of the program's own and one of MPI_Alloc_mem,
   in turn, and after some of them were detached and attached again. */
static void attached_short(void) {
  enum { LONGS = 100, TIMES = 40, ROUNDS = 6 };
  MPI_Aint own[3], theirs[3];
  long *memory[3], out[8], in[8], old;
  int next = (me + 1) % size, before = (me + size - 1) % size;
  MPI_Win win;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  for (int i = 0; i < 2; i++)
    memory[i] = calloc(LONGS, sizeof(long));
  OK(MPI_Alloc_mem(LONGS * sizeof(long), MPI_INFO_NULL, &memory[2]));
  for (int i = 0; i < 3; i++) {
    OK(MPI_Win_attach(win, memory[i], LONGS * sizeof(long)));
    OK(MPI_Get_address(memory[i], &own[i]));
  }
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 3; i++)
      memset(memory[i], 0, LONGS * sizeof(long));
    OK(MPI_Sendrecv(own, 3, MPI_AINT, before, 0, theirs, 3, MPI_AINT, next, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    meet(win);
    OK(MPI_Win_lock_all(0, win));
    for (long time = 1; time <= TIMES; time++) {
      int items = 1 + (int)time % 2;
      for (int i = 0; i < 3; i++) {
        MPI_Aint at = theirs[i] + 8 * (MPI_Aint)sizeof(long);
        for (int k = 0; k < items; k++)
          out[k] = time + k, in[k] = -1;
        OK(MPI_Put(out, items, MPI_LONG, next, at, items, MPI_LONG, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Get(in, items, MPI_LONG, next, at, items, MPI_LONG, win));
        OK(MPI_Win_flush(next, win));
        CHECK(memcmp(in, out, items * sizeof(long)) == 0);
        /* The same number of bytes of another type. */
        char bytes[2 * sizeof(long)];
        OK(MPI_Get(bytes, items * (int)sizeof(long), MPI_BYTE, next, at, items * (int)sizeof(long),
                   MPI_BYTE, win));
        OK(MPI_Win_flush(next, win));
        CHECK(memcmp(bytes, out, items * sizeof(long)) == 0);
        /* Longer than the operands of a mailbox, but not than its answer. */
        OK(MPI_Get(in, 4, MPI_LONG, next, at, 4, MPI_LONG, win));
        OK(MPI_Win_flush(next, win));
        CHECK(memcmp(in, out, items * sizeof(long)) == 0);
        OK(MPI_Accumulate(out, items, MPI_LONG, next, at, items, MPI_LONG, MPI_SUM, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Get_accumulate(out, items, MPI_LONG, in, items, MPI_LONG, next, at, items, MPI_LONG,
                              MPI_SUM, win));
        OK(MPI_Win_flush(next, win));
        CHECK(in[0] == 2 * out[0] && (items < 2 || in[1] == 2 * out[1]));
        OK(MPI_Fetch_and_op(out, &old, MPI_LONG, next, at, MPI_REPLACE, win));
        OK(MPI_Win_flush(next, win));
        CHECK(old == 3 * out[0]);
        long new = -time, compare = out[0];
        OK(MPI_Compare_and_swap(&new, &compare, &old, MPI_LONG, next, at, win));
        OK(MPI_Win_flush(next, win));
        CHECK(old == out[0]);
      }
    }
    OK(MPI_Win_unlock_all(win));
    meet(win);
    for (int i = 0; i < 3; i++)
      CHECK(memory[i][8] == -TIMES && memory[i][7] == 0 && memory[i][12] == 0);
    /* Detached memory is refused, whatever has known it, and takes no byte. */
    int gone = round % 3;
    OK(MPI_Win_detach(win, memory[gone]));
    memset(memory[gone], 5, LONGS * sizeof(long));
    meet(win);
    MPI_Aint at = theirs[gone] + 8 * (MPI_Aint)sizeof(long);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    OK(MPI_Put(out, 1, MPI_LONG, next, at, 1, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Win_flush(next, win));
    OK(MPI_Accumulate(out, 1, MPI_LONG, next, at, 1, MPI_LONG, MPI_SUM, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Win_flush(next, win));
    OK(MPI_Get(in, 1, MPI_LONG, next, at, 1, MPI_LONG, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Win_unlock(next, win));
    meet(win);
    for (size_t i = 0; i < LONGS * sizeof(long); i++)
      CHECK(((char *)memory[gone])[i] == 5);
    OK(MPI_Win_attach(win, memory[gone], LONGS * sizeof(long)));
  }
  OK(MPI_Win_free(&win));
  free(memory[0]);
  free(memory[1]);
  OK(MPI_Free_mem(memory[2]));
}

int main(int argc, char **argv) {
  CHECK(setenv("LONGSHORE_PROGRESS", "off", 1) == 0);
  begin(&argc, &argv);
  stays_private();
  remapped();
  remapped_around();
  advised();
  interrupted();
  stored_by_a_thread();
  read_directly();
  forked();
  sparse();
  many();
  if (copies()) {
    computing();
    attached();
  }
  mixed();
  attached_short();
  return end();
}
