/* Versions, names, memory, clocks, and what may be called when. */
#include "check.h"

int main(int argc, char **argv) {
  int flag, version, subversion, length, level;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  OK(MPI_Get_version(&version, &subversion));
  CHECK(version == 5 && subversion == 0);
  OK(MPI_Abi_get_version(&version, &subversion));
  CHECK(version == 1 && subversion == 0);
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
  CHECK(level == MPI_THREAD_MULTIPLE);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  OK(MPI_Query_thread(&level));
  CHECK(level == MPI_THREAD_MULTIPLE);
  OK(MPI_Is_thread_main(&flag));
  CHECK(flag);
  FAILS(MPI_ERR_OTHER, MPI_Init(0, 0));
  OK(MPI_Get_library_version(text, &length));
  CHECK((int)strlen(text) == length && strstr(text, "Longshore") == text);
  char name[MPI_MAX_PROCESSOR_NAME];
  OK(MPI_Get_processor_name(name, &length));
  CHECK((int)strlen(name) == length && length > 0);
  double before = MPI_Wtime();
  CHECK(MPI_Wtime() >= before && MPI_Wtick() > 0);
  char *memory;
  OK(MPI_Alloc_mem(100, MPI_INFO_NULL, &memory));
  memset(memory, 1, 100);
  OK(MPI_Free_mem(memory));
  OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &memory));
  OK(MPI_Free_mem(memory));
  FAILS(MPI_ERR_ARG, MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory));
  FAILS(MPI_ERR_ARG, MPI_Initialized(0));
  MPI_Aint address;
  OK(MPI_Get_address(text, &address));
  CHECK(address == (MPI_Aint)(intptr_t)text);
  CHECK(MPI_Aint_add(address, 5) == address + 5 && MPI_Aint_diff(address, address - 7) == 7);
  OK(MPI_Get_address(MPI_BOTTOM, &address));
  CHECK(address == 0);
  int *bound;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag));
  CHECK(flag && *bound >= 32767);
  MPI_Comm parent;
  OK(MPI_Comm_get_parent(&parent));
  CHECK(parent == MPI_COMM_NULL);
  /* No program has this name. */
  char *words[] = {"one", "two", NULL};
  parent = MPI_COMM_WORLD;
  FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("./no such program", words, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                                      &parent, MPI_ERRCODES_IGNORE));
  CHECK(parent == MPI_COMM_NULL);
  FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("./no such program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                      MPI_COMM_SELF, &parent, MPI_ERRCODES_IGNORE));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  /* Other ranks than the root have no command and no arguments. */
  char *nothing = me != 0 ? (char *)8 : "./no such program";
  char **none = me != 0 ? (char **)8 : words;
  FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn(nothing, none, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &parent,
                                      MPI_ERRCODES_IGNORE));
  OK(MPI_Finalize());
  OK(MPI_Finalized(&flag));
  CHECK(flag);
  OK(MPI_Initialized(&flag));
  CHECK(flag);
  return 0;
}
