// checked
// run: --check -n 2
// once: check: rule 23, window 1 of rank 1: accesses to the same bytes that nothing orders
// says: stored.c:22:5: bytes 0..4
// says: stored.c:24:13: bytes 0..4
// once: check: buffers: rank 0 stores to memory of an operation under way
// says: stored.c:22:5 reads it
// says: stored.c:25:10
// says: check:   both use bytes 0..4 of the operation's memory; store after
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, *value = malloc(sizeof *value), *memory;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  *value = rank;
  MPI_Win_fence(0, window);
  if (rank == 0)
    MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
  else
    *memory = 7;
  *value = 5;
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Win_free(&window);
  free(value);
  MPI_Finalize();
  return 0;
}
