/* Halo exchange. A plate of numbers is divided into columns, one block for each rank. In each step
   a rank puts its outer columns into its neighbours' blocks. A column is a vector, whose stride
   counts doubles and not bytes, so it is right at ranks of any machine. */
#include "example.h"

enum { ROWS = 8, OWN = 4, WIDTH = OWN + 2, STEPS = 20 };

/* The first value of a cell, by its row and its column in the whole plate. */
static double first(int row, int column) { return (row * 31 + column * 17) % 97; }

/* One step: each cell of a row becomes the mean of itself and its neighbours. The result is rounded
   to a multiple of 1/1024, so that it doesn't depend on the machine's arithmetic. */
static void relax(double *field, int width) {
  for (int row = 0; row < ROWS; row++) {
    double *cell = field + row * width, left = cell[0];
    for (int at = 1; at < width - 1; at++) {
      double sum = left + 2 * cell[at] + cell[at + 1];
      left = cell[at];
      cell[at] = (double)(long)(sum * 256) / 1024;
    }
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int west = me ? me - 1 : MPI_PROC_NULL, east = me + 1 < size ? me + 1 : MPI_PROC_NULL;
  double *field;
  MPI_Win win;
  MPI_Win_allocate(ROWS * WIDTH * sizeof *field, sizeof *field, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &field, &win);
  MPI_Datatype column;
  MPI_Type_vector(ROWS, 1, WIDTH, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int row = 0; row < ROWS; row++)
    for (int at = 0; at < OWN; at++) field[row * WIDTH + at + 1] = first(row, me * OWN + at);

  for (int step = 0; step < STEPS; step++) {
    MPI_Win_fence(0, win);
    MPI_Put(field + 1, 1, column, west, OWN + 1, 1, column, win);
    MPI_Put(field + OWN, 1, column, east, 0, 1, column, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    relax(field, WIDTH);
  }

  /* The same on one rank. */
  int width = size * OWN + 2, right = 1;
  double *whole = calloc((size_t)ROWS * width, sizeof *whole);
  for (int row = 0; row < ROWS; row++)
    for (int at = 1; at < width - 1; at++) whole[row * width + at] = first(row, at - 1);
  for (int step = 0; step < STEPS; step++) relax(whole, width);
  for (int row = 0; row < ROWS; row++)
    for (int at = 1; at <= OWN; at++)
      right &= field[row * WIDTH + at] == whole[row * width + me * OWN + at];
  free(whole);
  MPI_Type_free(&column);
  MPI_Win_free(&win);
  return end("every value equals that of a serial computation", right);
}
