/* Ranks that make different collective calls: one report, though the job ends at every rank. */
// run: -n 3 --check
// once: check: rule 8: ranks make different collective calls on one communicator
// says: at runtime/abi/tests/texts/mismatch.c:14:
// says: at runtime/abi/tests/texts/mismatch.c:16:
#include <mpi.h>
#include <stddef.h>

int main(void) {
  int rank;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) {
    MPI_Bcast(&rank, 1, MPI_INT, 1, MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
