/* A circle of receives: the watchdog's report names the program's lines. */
// run: -n 2 --watchdog 2 --timeout 3 --stacks=off
// says: (tag 7, at runtime/abi/tests/texts/hang.c:11:
// never: .rs:
#include <mpi.h>
#include <stddef.h>

static void await(int rank) {
  int value;
  /* Nobody sends. */
  MPI_Recv(&value, 1, MPI_INT, rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(void) {
  int rank;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  await(1 - rank);
  MPI_Finalize();
  return 0;
}
