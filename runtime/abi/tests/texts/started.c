/* Nonblocking collective calls with unlike roots: a report, and no data. */
// run: -n 2 --check
// once: check: rule 8: ranks make different collective calls on one communicator
// says: check:   rank 0: ibcast with root 0 at runtime/abi/tests/texts/started.c:16:
// says: check:   rank 1: ibcast with root 1 at runtime/abi/tests/texts/started.c:16:
// never: delivered
#include <mpi.h>
#include <stdio.h>

int main(void) {
  int rank, value;
  MPI_Request request;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  value = rank;
  MPI_Ibcast(&value, 1, MPI_INT, rank, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  printf("delivered\n");
  MPI_Finalize();
  return 0;
}
