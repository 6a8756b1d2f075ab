/* A file that describes itself: a packed communicator, a packed datatype, and packed data. Each
   rank writes one in its own representation. The next rank, perhaps on another machine, reads it
   and knows nothing but the file. */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <unistd.h>

enum { ROWS = 5, COLUMNS = 4, TAG = 1 };

/* The matrix of a rank, by row. Its values are exact, also where a machine computes with more bits
   than a double has. */
static double entry(int rank, int at) { return (rank + 1) * 0.125 + at; }

/* Writes the first two columns of this rank's matrix. */
static int write_object(const char *path) {
  double matrix[ROWS * COLUMNS];
  MPI_Datatype columns;
  int of_comm, of_type, of_data, position = 0;
  for (int at = 0; at < ROWS * COLUMNS; at++) matrix[at] = entry(me, at);
  MPI_Type_vector(ROWS, 2, COLUMNS, MPI_DOUBLE, &columns);
  MPI_Type_commit(&columns);
  /* Data that is packed in a communicator of one rank has that rank's representation. */
  MPIX_Pack_size(1, MPI_DATATYPE_NULL, MPI_COMM_SELF, &of_comm);
  MPIX_Pack_size(1, columns, MPI_COMM_NULL, &of_type);
  MPIX_Pack_size(1, columns, MPI_COMM_SELF, &of_data);
  int bytes = of_comm + of_type + of_data;
  char *object = malloc(bytes);
  MPIX_Pack(NULL, 1, MPI_DATATYPE_NULL, object, bytes, &position, MPI_COMM_SELF);
  MPIX_Pack(NULL, 1, columns, object, bytes, &position, MPI_COMM_NULL);
  MPIX_Pack(matrix, 1, columns, object, bytes, &position, MPI_COMM_SELF);
  MPI_Type_free(&columns);
  FILE *file = fopen(path, "wbx");
  int right = file && fwrite(object, 1, position, file) == (size_t)position;
  if (file) right &= fclose(file) == 0;
  free(object);
  return right;
}

/* Reads the object of a rank. Packed data stands after its communicator and its datatype. */
static int read_object(const char *path, int rank) {
  double matrix[ROWS * COLUMNS] = {0};
  MPI_Comm writer = MPI_COMM_NULL;
  MPI_Datatype columns = MPI_DATATYPE_NULL;
  char object[4096];
  int position = 0, right = 1, result;
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  int bytes = (int)fread(object, 1, sizeof object, file);
  fclose(file);
  MPIX_Unpack(object, bytes, &position, NULL, 1, NULL, &writer);
  MPIX_Unpack(object, bytes, &position, NULL, 1, &columns, NULL);
  MPIX_Unpack(object, bytes, &position, matrix, 1, &columns, &writer);
  for (int at = 0; at < ROWS * COLUMNS; at++)
    right &= matrix[at] == (at % COLUMNS < 2 ? entry(rank, at) : 0);
  MPIX_Comm_compare(writer, MPI_COMM_SELF, &result);
  right &= result == (rank == me ? MPI_IDENT : MPIX_ARCH_EQUIV);
  MPI_Type_free(&columns);
  MPI_Comm_free(&writer);
  return right && position == bytes;
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int before = (me + size - 1) % size, after = (me + 1) % size;
  /* The process of rank 0 tells apart jobs that run at the same time. */
  int job = (int)getpid();
  MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD);
  char mine[64], theirs[64];
  snprintf(mine, sizeof mine, "/tmp/longshore-object-%d-%d", job, me);
  snprintf(theirs, sizeof theirs, "/tmp/longshore-object-%d-%d", job, before);
  int right = write_object(mine);
  /* The file of the rank before is there once it says so. */
  char ready = 1, other;
  MPI_Sendrecv(&ready, 1, MPI_CHAR, after, TAG, &other, 1, MPI_CHAR, before, TAG, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  right &= read_object(theirs, before);
  remove(theirs);
  return end("the object of the rank before it describes itself", right);
}
