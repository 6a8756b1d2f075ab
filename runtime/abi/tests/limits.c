/* Calls under a limit on the address space: errors of class NO_MEM, with the bytes that were asked
   for and the limit. When it is raised, the calls work. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

/* The bytes of address space that this process has. */
static rlim_t now(void) {
  unsigned long pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  CHECK(statm && fscanf(statm, "%lu", &pages) == 1);
  fclose(statm);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Checks the error of a call, which names the limit and at least so many bytes. */
static void refused(int code, rlim_t limit, unsigned long long bytes) {
  char text[MPI_MAX_ERROR_STRING], words[64];
  int class = -1, length;
  OK(MPI_Error_class(code, &class));
  OK(MPI_Error_string(code, text, &length));
  snprintf(words, sizeof words, "address space is %llu bytes", (unsigned long long)limit);
  const char *at = strstr(text, " bytes ");
  while (at && at > text && at[-1] >= '0' && at[-1] <= '9') at--;
  if (class != MPI_ERR_NO_MEM || !strstr(text, words) || !at || strtoull(at, NULL, 10) < bytes) {
    fprintf(stderr, "class %d: %s\n", class, text);
    MPI_Abort(MPI_COMM_WORLD, 99);
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  struct rlimit before, low;
  MPI_Win win;
  void *base;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(!getrlimit(RLIMIT_AS, &before));
  low = before;
  /* The first object, for whose handle there must be a table: of 64 MiB, or of some 8 MiB where
     pointers have 4 bytes. */
  low.rlim_cur = now() + (sizeof(void *) == 8 ? 32 << 20 : 4 << 20);
  CHECK(!setrlimit(RLIMIT_AS, &low));
  refused(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), low.rlim_cur, 1 << 20);
  CHECK(!setrlimit(RLIMIT_AS, &before));
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_free(&win));
  /* More memory than there may be. */
  low.rlim_cur = now() + (32 << 20);
  CHECK(!setrlimit(RLIMIT_AS, &low));
  refused(MPI_Win_allocate(64 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), low.rlim_cur, 64 << 20);
  CHECK(!setrlimit(RLIMIT_AS, &before));
  OK(MPI_Win_allocate(64 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_free(&win));
  return end();
}
