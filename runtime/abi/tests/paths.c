/* Names of files are any bytes, and a file is deleted wherever the process is by then. */
#include <string.h>
#include <unistd.h>
#include "check.h"

static int calls;

static void note(MPI_File *file, int *code, ...) {
  CHECK(*file == MPI_FILE_NULL && *code != MPI_SUCCESS);
  calls++;
}

int main(int argc, char **argv) {
  char folder[200], name[64], full[300];
  int process = (int)getpid(), amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  const char *temporary = getenv("TMPDIR");
  MPI_File file;
  MPI_Info info;
  MPI_Datatype pair;
  MPI_Aint extent;
  MPI_Errhandler handler;
  int flag;
  char value[300];
  begin(&argc, &argv);
  OK(MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD));
  snprintf(folder, sizeof folder, "%s", temporary ? temporary : "/tmp");
  /* No UTF-8. */
  snprintf(name, sizeof name, "longshore-\xff\xfe-%d", process);
  snprintf(full, sizeof full, "%s/%s", folder, name);
  CHECK(chdir(folder) == 0);
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "filename", "another"));
  OK(MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
  OK(MPI_Info_free(&info));
  CHECK(access(full, F_OK) == 0);
  /* The hint filename is the name, whatever was given. */
  OK(MPI_File_get_info(file, &info));
  OK(MPI_Info_get(info, "filename", (int)sizeof value - 1, value, &flag));
  CHECK(flag && !strncmp(value, "longshore-", 10));
  OK(MPI_Info_free(&info));
  /* A type that isn't committed has an extent. */
  OK(MPI_Type_contiguous(2, MPI_INT, &pair));
  OK(MPI_File_get_type_extent(file, pair, &extent));
  CHECK(extent == 2 * sizeof(int));
  OK(MPI_Type_free(&pair));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(chdir("/") == 0);
  OK(MPI_File_close(&file));
  CHECK(access(full, F_OK) != 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  /* The handler of a file gets the error of its close: the file is gone already. */
  OK(MPI_File_open(MPI_COMM_WORLD, full, amode, MPI_INFO_NULL, &file));
  OK(MPI_File_create_errhandler(note, &handler));
  OK(MPI_File_set_errhandler(file, handler));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0)
    CHECK(unlink(full) == 0);
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_close(&file));
  CHECK(calls == 1 && file == MPI_FILE_NULL);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0) {
    OK(MPI_File_open(MPI_COMM_SELF, full, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    OK(MPI_File_delete(full, MPI_INFO_NULL));
    CHECK(access(full, F_OK) != 0);
  }
  return end();
}
