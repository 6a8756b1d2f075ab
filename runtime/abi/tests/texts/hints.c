/* Misspelt keys of MPI and of Longshore get a suggestion, and keys of the program's own don't. */
// run: -n 1 --check
// once: info key "no_lock" at runtime/abi/tests/texts/hints.c:14:
// says: is unknown, and has no effect: did you mean no_locks?
// says: did you mean target_types?
// never: program_colour
#include <mpi.h>
#include <stddef.h>

int main(void) {
  MPI_Info info;
  MPI_Init(NULL, NULL);
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_lock", "true");
  MPI_Info_set(info, "no_locks", "true");
  MPI_Info_set(info, "Target-types", "strict");
  MPI_Info_set(info, "program_colour", "red");
  MPI_Info_free(&info);
  MPI_Finalize();
  return 0;
}
