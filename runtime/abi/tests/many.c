/* Many of a thing at once: pieces of MPI_Alloc_mem, windows, attachments of a dynamic window, and
   communicators. They share mappings of the segment, of which a process may have some 65,000. An
   argument is another number of each: ci/steps/many runs it with 100,000. */
#include "check.h"

/* The mappings of the segment that this process has. */
static long mappings(void) {
  char line[4096];
  long found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found += strstr(line, "memfd:longshore") != 0;
  if (maps) fclose(maps);
  return found;
}

/* Ends the job if the second half took much longer than the first. */
static void is_linear(const char *what, double first, double whole) {
  if (!me) printf("%s: %.2f s\n", what, whole);
  if (whole - first > 4 * first + 1) {
    fprintf(stderr, "%s: half took %.2f s and the rest %.2f s\n", what, first, whole - first);
    MPI_Abort(MPI_COMM_WORLD, 99);
  }
}

static void pieces(int n) {
  int **all = malloc(n * sizeof *all);
  long before = mappings();
  double start = MPI_Wtime(), half = 0;
  for (int i = 0; i < n; i++) {
    if (i == n / 2) half = MPI_Wtime() - start;
    OK(MPI_Alloc_mem(100, MPI_INFO_NULL, &all[i]));
    for (int j = 0; j < 25; j++) all[i][j] = i + j;
  }
  is_linear("pieces", half, MPI_Wtime() - start);
  CHECK(mappings() - before < 20 + n / 100);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 25; j++) CHECK(all[i][j] == i + j);
  for (int i = 0; i < n; i++) OK(MPI_Free_mem(all[i]));
  free(all);
}

/* Pieces that take ranges of their own, and after the last range the C library's memory. */
static void large_pieces(int n) {
  char **all = malloc(n * sizeof *all);
  double start = MPI_Wtime(), half = 0;
  for (int i = 0; i < n; i++) {
    if (i == n / 2) half = MPI_Wtime() - start;
    OK(MPI_Alloc_mem(16384, MPI_INFO_NULL, &all[i]));
    memset(all[i], i % 128, 4);
  }
  is_linear("pieces of 16 KiB", half, MPI_Wtime() - start);
  for (int i = 0; i < n; i++) CHECK(all[i][0] == i % 128 && all[i][3] == i % 128);
  for (int i = 0; i < n; i++) OK(MPI_Free_mem(all[i]));
  free(all);
}

static void duplicates(int n) {
  MPI_Comm *all = malloc((unsigned)n * sizeof *all);
  double start = MPI_Wtime(), half = 0;
  for (int i = 0; i < n; i++) {
    if (i == n / 2) half = MPI_Wtime() - start;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &all[i]));
  }
  is_linear("communicators", half, MPI_Wtime() - start);
  for (int i = 0; i < n; i += n / 3 + 1) {
    int one = 1, sum;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all[i]));
    CHECK(sum == size);
  }
  for (int i = 0; i < n; i++) OK(MPI_Comm_free(&all[i]));
  free(all);
}

/* Each rank's directory is a range, so that all ranges may be taken. The error names the limit. */
static void dynamic_windows(int n) {
  MPI_Win *all = malloc(n * sizeof *all);
  int made = 0, code = MPI_SUCCESS;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  while (made < n && (code = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &all[made])) == MPI_SUCCESS) made++;
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    CHECK(class == MPI_ERR_NO_MEM && strstr(text, "65536 ranges") && made > 60000 / size);
    char *large = malloc(64 << 20);
    CHECK(large);
    free(large);
  }
  if (!me) printf("dynamic windows: %d\n", made);
  for (int i = 0; i < made; i++) OK(MPI_Win_free(&all[i]));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  free(all);
}

/* Windows without memory, over memory of the program, and with memory in the segment. */
static void windows(int n) {
  MPI_Win *all = malloc(n * sizeof *all);
  int *memory = calloc(n, sizeof *memory), next = (me + 1) % size, before = (me + size - 1) % size;
  int **base = malloc(n * sizeof *base);
  long mapped = mappings();
  double start = MPI_Wtime(), half = 0;
  for (int i = 0; i < n; i++) {
    if (i == n / 2) half = MPI_Wtime() - start;
    base[i] = &memory[i];
    switch (i % 3) {
      case 0: OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all[i])); break;
      case 1: OK(MPI_Win_create(&memory[i], sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all[i])); break;
      default: OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base[i], &all[i])); *base[i] = 0;
    }
  }
  is_linear("windows", half, MPI_Wtime() - start);
  CHECK(mappings() - mapped < 60 + n / 10);
  for (int i = n - 3; i < n; i++) {
    int value = 1000 * me + i;
    OK(MPI_Win_fence(0, all[i]));
    if (i % 3) OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, all[i]));
    OK(MPI_Win_fence(0, all[i]));
    CHECK(i % 3 == 0 || *base[i] == 1000 * before + i);
  }
  for (int i = 0; i < n; i++) OK(MPI_Win_free(&all[i]));
  free(base), free(memory), free(all);
}

static void attachments(int n) {
  MPI_Win win;
  char *memory = malloc(64 * (size_t)n);
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  double start = MPI_Wtime(), half = 0;
  for (int i = 0; i < n; i++) {
    if (i == n / 2) half = MPI_Wtime() - start;
    /* Descending addresses, each attachment before all others. */
    OK(MPI_Win_attach(win, memory + 64 * (size_t)(n - 1 - i), 32));
  }
  is_linear("attachments", half, MPI_Wtime() - start);
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(win, memory + 16, 64));
  for (int i = 0; i < n; i++) OK(MPI_Win_detach(win, memory + 64 * (size_t)i));
  OK(MPI_Win_free(&win));
  free(memory);
}

/* Messages of as many tags that wait for their receives, and then receives that wait for theirs. */
static void messages(int n) {
  int next = (me + 1) % size, before = (me + size - 1) % size, got, *all = malloc(n * sizeof(int));
  MPI_Request *requests = malloc(n * sizeof(MPI_Request));
  for (int i = 0; i < n; i++) OK(MPI_Send(&i, 1, MPI_INT, next, i, MPI_COMM_WORLD));
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime(), half = 0;
  for (int i = 0; i < n; i++) {
    if (i == n / 2) half = MPI_Wtime() - start;
    OK(MPI_Recv(&got, 1, MPI_INT, i % 2 ? before : MPI_ANY_SOURCE, n - 1 - i, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE));
    CHECK(got == n - 1 - i);
  }
  is_linear("unexpected messages", half, MPI_Wtime() - start);
  for (int i = 0; i < n; i++)
    OK(MPI_Irecv(&all[i], 1, MPI_INT, i % 2 ? before : MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
                 &requests[i]));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = n; i-- > 0;) OK(MPI_Send(&i, 1, MPI_INT, next, i, MPI_COMM_WORLD));
  OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < n; i++) CHECK(all[i] == i);
  free(all), free(requests);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int n = argc > 1 ? atoi(argv[1]) : 0;
  messages(n ? n : 10000);
  pieces(n ? n : 20000);
  windows(n ? n : size < 3 ? 600 : 60);
  attachments(n ? n : 10000);
  large_pieces(n ? n : 1000);
  duplicates(n ? n : 500);
  dynamic_windows(n ? n : 100);
  /* The allocator of the program has mappings left. */
  char *large = malloc(64 << 20);
  CHECK(large);
  free(large);
  return end();
}
