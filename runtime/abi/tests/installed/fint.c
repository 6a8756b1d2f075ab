/* MPI_Fint and the conversions between handles and Fortran's integers, by mpix_fint.h. */

#include <mpi.h>
#include <mpix_fint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int line, int holds) {
  if (!holds) {
    fprintf(stderr, "fint.c:%d: a handle came back as another one\n", line);
    exit(1);
  }
}
#define CHECK(condition) check(__LINE__, condition)

int main(int argc, char **argv) {
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Fint number;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  number = MPI_Comm_c2f(comm);
  CHECK(MPI_Comm_f2c(number) == comm && MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
  MPI_Type_contiguous(3, MPI_INT, &type);
  CHECK(MPI_Type_f2c(MPI_Type_c2f(type)) == type);
  CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
  CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
  CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
  CHECK(MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_NULL)) == MPI_INFO_NULL);
  CHECK(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
  MPI_Type_free(&type);
  MPI_Comm_free(&comm);
  return MPI_Finalize();
}
