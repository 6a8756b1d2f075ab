/* Requests that are left at finalize, with the lines that made them, and an active one that is
   started again. What is freed, and what only notes tell of, isn't reported. */
// run: -n 2 --check
// says: check: requests: a request was never completed, at rank 0 (3 of them)
// says: check: requests: a request was never completed, at rank 1
// says: check:   made at runtime/abi/tests/texts/requests.c:27:
// says: check:   made at runtime/abi/tests/texts/requests.c:32:
// once: check: requests: a persistent request was started and never completed
// says: check:   made at runtime/abi/tests/texts/requests.c:39:
// once: check: requests: a persistent request was never freed
// says: check:   made at runtime/abi/tests/texts/requests.c:45:
// once: check: requests: rank 0 starts a persistent request that is active
// says: check:   started again at runtime/abi/tests/texts/requests.c:42:
// once: check: 5 reports
// never: note
#include <mpi.h>
#include <stddef.h>

int main(void) {
  int rank, value = 1, got[3];
  MPI_Request request, started, idle;
  MPI_Group group;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    for (int i = 0; i < 3; i++) {
      MPI_Isend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    }
  } else {
    for (int i = 0; i < 3; i++) MPI_Recv(&got[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Ibarrier(MPI_COMM_SELF, &request);
  }
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Isend(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(got, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) {
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &started);
    MPI_Start(&started);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Start(&started);
  } else {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Recv_init(got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &idle);
  }
  MPI_Finalize();
  return 0;
}
