/* Null, freed and foreign handles raise the error of their kind, and handles have integers. */
#include "check.h"

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int n, flag;
  MPI_Group group, other;
  FAILS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &n));
  FAILS(MPI_ERR_COMM, MPI_Comm_size((MPI_Comm)MPI_INT, &n));
  FAILS(MPI_ERR_COMM, MPI_Comm_size((MPI_Comm)(intptr_t)0x12345, &n));
  FAILS(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &n));
  FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &n));
  FAILS(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
  FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
  FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL));
  FAILS(MPI_ERR_FILE, MPI_File_get_atomicity(MPI_FILE_NULL, &flag));
  FAILS(MPI_ERR_SESSION, MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &n));

  /* A freed handle stays recognisable. */
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  other = group;
  OK(MPI_Group_free(&group));
  CHECK(group == MPI_GROUP_NULL);
  FAILS(MPI_ERR_GROUP, MPI_Group_size(other, &n));
  FAILS(MPI_ERR_GROUP, MPI_Group_free(&other));
  MPI_Datatype type, freed;
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  freed = type;
  FAILS(MPI_ERR_COMM, MPI_Comm_size((MPI_Comm)type, &n));
  CHECK(MPI_Type_fromint(MPI_Type_toint(type)) == type && MPI_Type_toint(type) >= 4096);
  OK(MPI_Type_free(&type));
  FAILS(MPI_ERR_TYPE, MPI_Type_size(freed, &n));
  CHECK(MPI_Type_toint(MPI_INT) == (int)(intptr_t)MPI_INT);
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);

  /* Predefined objects can't be freed. */
  MPI_Comm world = MPI_COMM_WORLD;
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&world));
  CHECK(world == MPI_COMM_WORLD);
  type = MPI_DOUBLE;
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&type));
  FAILS(MPI_ERR_ARG, MPI_Group_free(0));

  /* Functions that aren't written check their arguments before they say so. */
  MPI_Comm cart;
  int dims[1] = {1}, periods[1] = {0};
  FAILS(MPI_ERR_COMM, MPI_Cart_create(MPI_COMM_NULL, 1, dims, periods, 0, &cart));
  FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, 0));
  return end();
}
