/* Notes on messages: a receive from any rank that could have got another message, and two ranks
   that send to each other first. Ordered ones beside them get none. */
// run: -n 3 --check=fail,notes
// once: check: note: a receive from any rank could have matched two senders
// says: at runtime/abi/tests/texts/timing.c:24:7
// says: check: note: two ranks send to each other before they receive
// says: at runtime/abi/tests/texts/timing.c:39:5
// says: check: no fault, 
// never: timing.c:30
// never: longshore:
#include <mpi.h>
#include <stddef.h>

int main(void) {
  int rank, value = 1, got, other;
  MPI_Request request;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // Two messages, which nothing orders.
  if (rank != 0) {
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  } else {
    for (int i = 0; i < 2; i++) {
      MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  // Two messages, the second of which is sent after the first was received.
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  other = 3 - rank;
  if (rank != 0) {
    // Only buffers let both go on.
    MPI_Send(&value, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // A receive is there.
    MPI_Irecv(&got, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &request);
    MPI_Send(&value, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&value, 1, MPI_INT, other, 4, &got, 1, MPI_INT, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2) MPI_Send(&value, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
