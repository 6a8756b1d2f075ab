/* Objects that aren't freed are notes, which are printed when they are chosen, and no faults. */
// run: -n 1 --check=fail,notes
// says: check: note: a group was never freed, at rank 0
// says: check:   made at runtime/abi/tests/texts/notes.c:23:
// says: check: note: a datatype was never freed, at rank 0 (2 of them)
// says: check: note: a communicator was never freed
// says: check:   made at runtime/abi/tests/texts/notes.c:25:
// says: check: note: rank 0 frees the request of a receive that is under way
// once: check: no fault, 4 remarks
// never: MPI_Info_free
// never: longshore:
#include <mpi.h>
#include <stddef.h>

int main(void) {
  int value = 1, got;
  MPI_Request request;
  MPI_Group group;
  MPI_Datatype pair;
  MPI_Comm twin;
  MPI_Info info;
  MPI_Init(NULL, NULL);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  for (int i = 0; i < 2; i++) MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Comm_dup(MPI_COMM_WORLD, &twin);
  MPI_Info_create(&info);
  MPI_Info_free(&info);
  MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return got != 1;
}
