/* A displacement in elements of a window whose unit is 1: the report has the unit that is right.
   The same displacement in a window of unit 8 is no fault. */
// run: -n 2 --check
// once: check: rule 14, window 1 of rank 0: an item that isn't aligned to its type
// says: runtime/abi/tests/texts/unit.c:24:9: MPI_DOUBLE, aligned to 8 bytes, at byte 1
// says: make the window with displacement unit 8, which makes it byte 8
// never: window 2 of rank
#include <mpi.h>
#include <stddef.h>

int main(void) {
  double value = 1;
  int rank;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int unit = 1; unit <= 8; unit += 7) {
    MPI_Win win;
    void *memory;
    MPI_Win_allocate(64, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    if (rank == 1) {
      MPI_Put(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
      for (int times = 0; times < 3; times++) {
        MPI_Put(&value, 1, MPI_DOUBLE, 0, times + 1, 1, MPI_DOUBLE, win);
      }
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
  }
  MPI_Finalize();
  return 0;
}
