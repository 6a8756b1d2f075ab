/* The waits of --stats are counted by the program's lines. */
// run: -n 2 --stats
// says: at runtime/abi/tests/texts/stats.c:12, by
// says: at runtime/abi/tests/texts/stats.c:13, by
// never: .rs:
#include <mpi.h>
#include <stddef.h>

int main(void) {
  MPI_Init(NULL, NULL);
  for (int round = 0; round < 3; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
