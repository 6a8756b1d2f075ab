/* One rank's fault fails a collective call of files at all ranks, and none waits for ever. */
#include <string.h>
#include <unistd.h>
#include "check.h"

/* The rank with the fault is the last one, which no other rank hears of by the first. */
#define BAD (me == size - 1)

static char path[256];
static MPI_File file;

static int refuse(void *memory, MPI_Datatype type, int count, void *place, MPI_Offset position, void *extra) {
  (void)memory, (void)type, (void)count, (void)place, (void)position, (void)extra;
  return MPI_ERR_OTHER;
}

static int copy(void *memory, MPI_Datatype type, int count, void *place, MPI_Offset position, void *extra) {
  int bytes;
  (void)position;
  OK(MPI_Type_size(type, &bytes));
  memcpy(extra ? place : memory, extra ? memory : place, (size_t)count * (size_t)bytes);
  return MPI_SUCCESS;
}

static int same_extent(MPI_Datatype type, MPI_Aint *extent, void *extra) {
  MPI_Aint lb;
  (void)extra;
  return MPI_Type_get_extent(type, &lb, extent);
}

static void view(const char *datarep) {
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, datarep, MPI_INFO_NULL));
}

/* Each collective access fails with `class`, if one rank gives other arguments than the others. */
static void accesses(int class, void *buf, MPI_Datatype type) {
  int mine[2] = {me, me};
  void *given = BAD ? buf : mine;
  MPI_Datatype kind = BAD ? type : MPI_INT;
  FAILS(class, MPI_File_write_at_all(file, 2 * me, given, 2, kind, MPI_STATUS_IGNORE));
  FAILS(class, MPI_File_read_at_all(file, 2 * me, given, 2, kind, MPI_STATUS_IGNORE));
  FAILS(class, MPI_File_write_all(file, given, 2, kind, MPI_STATUS_IGNORE));
  FAILS(class, MPI_File_read_all(file, given, 2, kind, MPI_STATUS_IGNORE));
  FAILS(class, MPI_File_write_ordered(file, given, 2, kind, MPI_STATUS_IGNORE));
  FAILS(class, MPI_File_read_ordered(file, given, 2, kind, MPI_STATUS_IGNORE));
  OK(MPI_File_write_at_all_begin(file, 2 * me, given, 2, kind));
  FAILS(class, MPI_File_write_at_all_end(file, given, MPI_STATUS_IGNORE));
  OK(MPI_File_read_at_all_begin(file, 2 * me, given, 2, kind));
  FAILS(class, MPI_File_read_at_all_end(file, given, MPI_STATUS_IGNORE));
  OK(MPI_File_write_all_begin(file, given, 2, kind));
  FAILS(class, MPI_File_write_all_end(file, given, MPI_STATUS_IGNORE));
  OK(MPI_File_read_all_begin(file, given, 2, kind));
  FAILS(class, MPI_File_read_all_end(file, given, MPI_STATUS_IGNORE));
  OK(MPI_File_write_ordered_begin(file, given, 2, kind));
  FAILS(class, MPI_File_write_ordered_end(file, given, MPI_STATUS_IGNORE));
  OK(MPI_File_read_ordered_begin(file, given, 2, kind));
  FAILS(class, MPI_File_read_ordered_end(file, given, MPI_STATUS_IGNORE));
}

/* The program's conversion functions fail at one rank. */
static void conversions(void) {
  static int to_file;
  int data[2] = {me, me};
  MPI_Status status;
  OK(MPI_Register_datarep("writes", NULL, BAD ? refuse : copy, same_extent, &to_file));
  OK(MPI_Register_datarep("reads", BAD ? refuse : copy, NULL, same_extent, NULL));
  view("writes");
  FAILS(MPI_ERR_CONVERSION, MPI_File_write_at_all(file, 2 * me, data, 2, MPI_INT, &status));
  OK(MPI_File_write_at_all_begin(file, 2 * me, data, 2, MPI_INT));
  FAILS(MPI_ERR_CONVERSION, MPI_File_write_at_all_end(file, data, &status));
  view("native");
  OK(MPI_File_write_at_all(file, 2 * me, data, 2, MPI_INT, &status));
  view("reads");
  /* A read fails after the exchange, at its own rank. A split call returns that at its end. */
  FAILS(BAD ? MPI_ERR_CONVERSION : MPI_SUCCESS, MPI_File_read_at_all(file, 2 * me, data, 2, MPI_INT, &status));
  OK(MPI_File_read_at_all_begin(file, 2 * me, data, 2, MPI_INT));
  FAILS(BAD ? MPI_ERR_CONVERSION : MPI_SUCCESS, MPI_File_read_at_all_end(file, data, &status));
  /* All ranks name the same representation. */
  if (size > 1)
    FAILS(MPI_ERR_NOT_SAME, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, BAD ? "reads" : "native", MPI_INFO_NULL));
  view("native");
}

/* Calls that aren't accesses. */
static void others(void) {
  int number = me;
  MPI_Status status;
  MPI_Offset offset;
  MPI_File other = MPI_FILE_NULL;
  MPI_Info info, gone;
  OK(MPI_Info_create(&info));
  gone = info;
  OK(MPI_Info_free(&info));
  OK(MPI_Info_create(&info));
  FAILS(MPI_ERR_TYPE, MPI_File_set_view(file, 0, BAD ? MPI_DATATYPE_NULL : MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  FAILS(MPI_ERR_ARG, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, BAD ? NULL : "native", MPI_INFO_NULL));
  FAILS(MPI_ERR_INFO, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", BAD ? gone : MPI_INFO_NULL));
  FAILS(MPI_ERR_INFO, MPI_File_set_info(file, BAD ? gone : info));
  FAILS(MPI_ERR_ARG, MPI_File_open(MPI_COMM_WORLD, BAD ? NULL : path, MPI_MODE_RDWR, MPI_INFO_NULL, &other));
  CHECK(other == MPI_FILE_NULL);
  FAILS(MPI_ERR_INFO, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, BAD ? gone : info, &other));
  FAILS(MPI_ERR_ARG, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, BAD ? NULL : &other));
  OK(MPI_File_set_info(file, info));
  OK(MPI_Info_free(&info));
  FAILS(MPI_ERR_ARG, MPI_File_seek_shared(file, 0, BAD ? 12345 : MPI_SEEK_SET));
  OK(MPI_File_get_position_shared(file, &offset));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  /* A rank whose split call hasn't ended. */
  OK(MPI_File_write_at_all_begin(file, me, &number, 1, MPI_INT));
  if (!BAD)
    OK(MPI_File_write_at_all_end(file, &number, &status));
  FAILS(MPI_ERR_IO, MPI_File_sync(file));
  FAILS(MPI_ERR_IO, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  FAILS(MPI_ERR_IO, MPI_File_close(&file));
  CHECK(file != MPI_FILE_NULL);
  if (BAD)
    OK(MPI_File_write_at_all_end(file, &number, &status));
  OK(MPI_File_sync(file));
}

int main(int argc, char **argv) {
  int process = (int)getpid(), mine[2] = {me, me};
  const char *folder = getenv("TMPDIR");
  MPI_Datatype pair;
  begin(&argc, &argv);
  OK(MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD));
  snprintf(path, sizeof path, "%s/longshore-refused-%d", folder ? folder : "/tmp", process);
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  view("native");
  OK(MPI_Type_contiguous(1, MPI_INT, &pair));
  accesses(MPI_ERR_TYPE, mine, pair);
  accesses(MPI_ERR_TYPE, mine, MPI_DATATYPE_NULL);
  accesses(MPI_ERR_BUFFER, NULL, MPI_INT);
  accesses(MPI_ERR_BUFFER, MPI_IN_PLACE, MPI_INT);
  OK(MPI_Type_free(&pair));
  conversions();
  others();
  OK(MPI_File_close(&file));
  return end();
}
