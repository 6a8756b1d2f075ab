/* Ranks send each other far more short messages than they have received, and then receive them. */
#include "check.h"

enum { MESSAGES = 10000, TAGS = 7 };

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int to = (me + 1) % size, from = (me + size - 1) % size;
  for (long at = 0; at < MESSAGES; at++)
    OK(MPI_Send(&at, 1, MPI_LONG, to, (int)(at % TAGS), MPI_COMM_WORLD));
  for (long at = 0; at < MESSAGES; at++) {
    long got = -1;
    int tag = (int)(at % TAGS);
    OK(MPI_Recv(&got, 1, MPI_LONG, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(got == at);
  }
  return end();
}
