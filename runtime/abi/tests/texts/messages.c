/* Messages whose types or lengths aren't those of their receives, and one that is never received.
   Right ones beside them: equal types by other constructors, packed data, shorter messages. */
// run: -n 2 --check
// once: check: messages: the types of a message aren't those of its receive
// says: check:   sent by rank 0 at runtime/abi/tests/texts/messages.c:29:5: 2 MPI_INT
// says: check:   received by rank 1 at runtime/abi/tests/texts/messages.c:43:5: 2 MPI_FLOAT
// once: check: messages: a message is longer than the buffer of its receive
// says: check:   sent by rank 0 at runtime/abi/tests/texts/messages.c:30:5: 8 bytes
// says: check:   received by rank 1 at runtime/abi/tests/texts/messages.c:45:5: room for 4 bytes
// once: check: messages: a message was sent and never received
// says: check:   sent by rank 0 at runtime/abi/tests/texts/messages.c:36:5, to rank 1 with tag 5
// once: check: 3 reports
#include <mpi.h>
#include <stddef.h>

int main(void) {
  int rank, value[4] = {1, 2, 3, 4}, got[4], other[4];
  float reals[2];
  char packed[64];
  MPI_Datatype pair;
  MPI_Request request;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    int at = 0;
    MPI_Send(value, 2, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Send(value, 2, MPI_INT, 1, 1, MPI_COMM_WORLD);
    MPI_Send(value, 2, MPI_INT, 1, 2, MPI_COMM_WORLD);
    MPI_Send(value, 3, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Pack(value, 2, MPI_INT, packed, sizeof packed, &at, MPI_COMM_WORLD);
    MPI_Send(packed, at, MPI_PACKED, 1, 4, MPI_COMM_WORLD);
    MPI_Isend(value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &request);
    MPI_Send(value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Message message;
    MPI_Irecv(got, 2, pair, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(other, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Recv(reals, 2, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(other, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(other, 1, pair, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(other, 2, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&pair);
  MPI_Finalize();
  return 0;
}
