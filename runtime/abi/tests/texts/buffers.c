/* Two uses of one buffer under way. Uses that only read, columns beside each other, and operations
   that are complete are right. */
// run: -n 2 --check
// says: check: buffers: two operations of rank 0 that are under way use the same memory
// says: check:   receive at runtime/abi/tests/texts/buffers.c:28:3 writes it
// says: check:   send at runtime/abi/tests/texts/buffers.c:29:3 reads it
// says: check:   both use bytes 4..8 of the first one's memory
// says: check:   receive at runtime/abi/tests/texts/buffers.c:35:3 writes it
// says: check:   receive at runtime/abi/tests/texts/buffers.c:36:3 writes it
// says: check:   bcast at runtime/abi/tests/texts/buffers.c:39:3 writes it
// says: check:   allreduce at runtime/abi/tests/texts/buffers.c:40:3 writes it
// says: check:   receive at runtime/abi/tests/texts/buffers.c:50:5 writes it
// says: check:   receive at runtime/abi/tests/texts/buffers.c:51:5 writes it
// once: check: 7 reports
#include <mpi.h>
#include <stddef.h>

int main(void) {
  int rank, other, value[4] = {1, 2, 3, 4}, got[4], grid[4][2];
  MPI_Request requests[4];
  MPI_Datatype column;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  MPI_Type_vector(4, 1, 2, MPI_INT, &column);
  MPI_Type_commit(&column);
  // A send of memory that a receive fills.
  MPI_Irecv(got, 2, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(got + 1, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(got + 2, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(value, 2, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  // A receive that waits, into memory of another receive.
  MPI_Isend(value, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(got, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Sendrecv(value, 1, MPI_INT, other, 3, got, 1, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  // Collective calls.
  MPI_Ibcast(got, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(value, got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  // Persistent receives, whose second start is right.
  MPI_Recv_init(got, 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &requests[0]);
  for (int i = 0; i < 2; i++) {
    MPI_Start(&requests[0]);
    MPI_Send(value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }
  if (rank == 0) {
    MPI_Start(&requests[0]);
    MPI_Irecv(got, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
    MPI_Send(value, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  // Right: columns beside each other, and two sends from one place.
  MPI_Irecv(&grid[0][0], 1, column, other, 6, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&grid[0][1], 1, column, other, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(value, 4, MPI_INT, other, 6, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(value, 4, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&column);
  MPI_Finalize();
  return 0;
}
