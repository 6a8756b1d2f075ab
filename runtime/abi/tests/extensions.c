/* What mpix.h declares. */
#include "check.h"
#include <mpix.h>

int main(int argc, char **argv) {
  begin(&argc, &argv);
  char mine[64], theirs[64], text[64];
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, me, mine, sizeof mine));
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, (me + 1) % size, theirs, sizeof theirs));
  CHECK(mine[0] && theirs[0]);
  FAILS(MPI_ERR_RANK, MPIX_Comm_representation(MPI_COMM_WORLD, size, mine, sizeof mine));
  MPI_Datatype record, types[2] = {MPI_CHAR, MPI_DOUBLE};
  int lengths[2] = {1, 2}, flag;
  OK(MPIX_Type_create_simple_struct(2, lengths, types, &record));
  OK(MPIX_Type_is_portable(record, &flag));
  CHECK(flag);
  struct { char name; double values[2]; } local;
  MPI_Aint lb, extent;
  OK(MPI_Type_get_extent(record, &lb, &extent));
  CHECK(lb == 0 && extent == sizeof local);
  OK(MPIX_Type_print(record, text, sizeof text));
  CHECK(strchr(text, 'd'));
  OK(MPI_Type_free(&record));
  MPI_Aint places[2] = {0, 8};
  OK(MPI_Type_create_struct(2, lengths, places, types, &record));
  OK(MPIX_Type_is_portable(record, &flag));
  CHECK(!flag);
  OK(MPI_Type_free(&record));
  FAILS(MPI_ERR_TYPE, MPIX_Type_is_portable(MPI_DATATYPE_NULL, &flag));
  return end();
}
