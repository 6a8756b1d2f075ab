/* The reports of --check name lines of the program, also of a function that others call. */
// run: -n 2 --check
// says: MPI_Put by rank 1 at runtime/abi/tests/texts/conflict.c:14:
// says: MPI_Put by rank 0 at runtime/abi/tests/texts/conflict.c:14:
// says: made at runtime/abi/tests/texts/conflict.c:22:
// never: .rs:
#include <mpi.h>
#include <stddef.h>

static double value;

/* Two ranks put to the same place. */
static void store(MPI_Win win) {
  MPI_Put(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
}

int main(void) {
  MPI_Win win;
  void *memory;
  MPI_Init(NULL, NULL);
  /* It isn't freed, which is reported too. */
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  store(win);
  MPI_Win_fence(0, win);
  MPI_Finalize();
  return 0;
}
