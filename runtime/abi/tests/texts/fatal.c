/* An error that ends the job names the line of its call, also without --check. */
// run: -n 1
// says: MPI_Send at runtime/abi/tests/texts/fatal.c:10:
// never: .rs:
#include <mpi.h>
#include <stddef.h>

int main(void) {
  MPI_Init(NULL, NULL);
  MPI_Send(NULL, 0, MPI_INT, 99, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
