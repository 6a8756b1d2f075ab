/* Files: what is written is read, whatever the call, and errors come by the handler of files. */
#include <string.h>
#include <unistd.h>
#include "check.h"

static char path[256];

/* A path that all ranks have in common. */
static void name(const char *what) {
  int process = (int)getpid();
  const char *folder = getenv("TMPDIR");
  OK(MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD));
  snprintf(path, sizeof path, "%s/longshore-files-%d-%s", folder ? folder : "/tmp", process, what);
}

static MPI_File opened(const char *what, int amode) {
  MPI_File file;
  name(what);
  OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
  return file;
}

#define SCRATCH (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE)

static void counted(MPI_Status *status, MPI_Datatype type, int expected) {
  int count = -1;
  OK(MPI_Get_count(status, type, &count));
  CHECK(count == expected);
}

/* The calls that read and write at offsets and pointers. */
static void accesses(void) {
  MPI_File file = opened("accesses", SCRATCH);
  MPI_Status status;
  MPI_Request requests[2];
  MPI_Offset offset;
  int mine[4], back[4], i, flag;
  for (i = 0; i < 4; i++)
    mine[i] = me * 100 + i;
  OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at(file, 4 * me, mine, 4, MPI_INT, &status));
  counted(&status, MPI_INT, 4);
  OK(MPI_File_read_at(file, 4 * me, back, 4, MPI_INT, &status));
  CHECK(!memcmp(mine, back, sizeof mine));
  OK(MPI_File_sync(file));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_File_get_size(file, &offset));
  CHECK(offset == 8 + 16 * size);
  OK(MPI_File_read_at_all(file, 4 * ((me + 1) % size), back, 4, MPI_INT, &status));
  CHECK(back[3] == (me + 1) % size * 100 + 3);
  OK(MPI_File_write_at_all(file, 4 * me, mine, 4, MPI_INT, &status));
  OK(MPI_File_seek(file, 4 * me, MPI_SEEK_SET));
  OK(MPI_File_read(file, back, 2, MPI_INT, &status));
  OK(MPI_File_get_position(file, &offset));
  CHECK(offset == 4 * me + 2 && back[1] == mine[1]);
  OK(MPI_File_get_byte_offset(file, offset, &offset));
  CHECK(offset == 8 + 4 * (4 * me + 2));
  OK(MPI_File_seek(file, -2, MPI_SEEK_CUR));
  OK(MPI_File_read_all(file, back, 4, MPI_INT, &status));
  counted(&status, MPI_INT, 4);
  OK(MPI_File_seek(file, 4 * me, MPI_SEEK_SET));
  OK(MPI_File_write(file, mine, 2, MPI_INT, &status));
  OK(MPI_File_write_all(file, mine + 2, 2, MPI_INT, &status));
  /* The file ends within the elements. */
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_File_seek(file, -1, MPI_SEEK_END));
  OK(MPI_File_read(file, back, 4, MPI_INT, &status));
  counted(&status, MPI_INT, 1);
  CHECK(back[0] == (size - 1) * 100 + 3);
  /* With requests, beside one of a message. */
  OK(MPI_File_iwrite_at(file, 4 * me, mine, 4, MPI_INT, &requests[0]));
  OK(MPI_Irecv(NULL, 0, MPI_INT, me, 7, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Send(NULL, 0, MPI_INT, me, 7, MPI_COMM_WORLD));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  OK(MPI_File_iread_at(file, 4 * me, back, 4, MPI_INT, &requests[0]));
  OK(MPI_Wait(&requests[0], &status));
  counted(&status, MPI_INT, 4);
  CHECK(!memcmp(mine, back, sizeof mine));
  OK(MPI_File_seek(file, 4 * me, MPI_SEEK_SET));
  OK(MPI_File_iread(file, back, 4, MPI_INT, &requests[0]));
  OK(MPI_Waitany(1, requests, &i, &status));
  CHECK(i == 0);
  OK(MPI_File_seek(file, 4 * me, MPI_SEEK_SET));
  OK(MPI_File_iwrite_all(file, mine, 4, MPI_INT, &requests[0]));
  for (flag = 0; !flag;)
    OK(MPI_Test(&requests[0], &flag, &status));
  counted(&status, MPI_INT, 4);
  OK(MPI_File_iread_at_all(file, 4 * me, back, 4, MPI_INT, &requests[0]));
  OK(MPI_Wait(&requests[0], &status));
  /* Split collective calls. */
  OK(MPI_File_write_at_all_begin(file, 4 * me, mine, 4, MPI_INT));
  FAILS(MPI_ERR_IO, MPI_File_read_all_begin(file, back, 4, MPI_INT));
  FAILS(MPI_ERR_IO, MPI_File_close(&file));
  OK(MPI_File_write_at_all_end(file, mine, &status));
  counted(&status, MPI_INT, 4);
  OK(MPI_File_seek(file, 4 * me, MPI_SEEK_SET));
  OK(MPI_File_read_all_begin(file, back, 4, MPI_INT));
  OK(MPI_File_read_all_end(file, back, &status));
  CHECK(!memcmp(mine, back, sizeof mine));
  FAILS(MPI_ERR_IO, MPI_File_read_all_end(file, back, &status));
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL && access(path, F_OK) != 0);
}

/* The shared pointer, and the order of ranks. */
static void shared(void) {
  MPI_File file = opened("shared", SCRATCH);
  MPI_Status status;
  MPI_Request request;
  MPI_Offset offset;
  int i, *all = calloc((size_t)size * 3, sizeof *all), mine[3] = {me, me, me};
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_ordered(file, mine, 1 + me % 2, MPI_INT, &status));
  counted(&status, MPI_INT, 1 + me % 2);
  OK(MPI_File_get_position_shared(file, &offset));
  CHECK(offset == size + size / 2);
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_ordered(file, all, 1 + me % 2, MPI_INT, &status));
  CHECK(all[0] == me && (me % 2 == 0 || all[1] == me));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_File_write_shared(file, mine, 1, MPI_INT, &status));
  OK(MPI_File_iwrite_shared(file, mine, 1, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_File_seek_shared(file, -2 * size, MPI_SEEK_END));
  if (me == 0) {
    int *seen = calloc((size_t)size, sizeof *seen);
    for (i = 0; i < 2 * size; i++) {
      if (i % 2)
        OK(MPI_File_read_shared(file, all, 1, MPI_INT, &status));
      else {
        OK(MPI_File_iread_shared(file, all, 1, MPI_INT, &request));
        OK(MPI_Wait(&request, &status));
      }
      seen[all[0]]++;
    }
    for (i = 0; i < size; i++)
      CHECK(seen[i] == 2);
    free(seen);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  OK(MPI_File_write_ordered_begin(file, mine, 3, MPI_INT));
  OK(MPI_File_write_ordered_end(file, mine, &status));
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_ordered_begin(file, all, 3, MPI_INT));
  OK(MPI_File_read_ordered_end(file, all, &status));
  CHECK(all[0] == me && all[2] == me);
  OK(MPI_File_close(&file));
  free(all);
}

/* A matrix whose columns the ranks write together. */
static void columns(const char *datarep, MPI_Aint item) {
  enum { ROWS = 50 };
  MPI_File file = opened(datarep, SCRATCH);
  MPI_Datatype column, tile, got_etype, got_filetype;
  MPI_Aint extent;
  MPI_Offset disp, length;
  MPI_Status status;
  MPI_Info info;
  long mine[ROWS], back[ROWS];
  char text[MPI_MAX_DATAREP_STRING];
  int i, flag, sizes[2] = {ROWS, size}, part[2] = {ROWS, 1}, starts[2] = {0, me};
  for (i = 0; i < ROWS; i++)
    mine[i] = i * 1000 - me;
  OK(MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, MPI_LONG, &column));
  OK(MPI_Type_commit(&column));
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "romio_cb_write", "enable"));
  OK(MPI_Info_set(info, "cb_nodes", "2"));
  OK(MPI_File_set_view(file, 16, MPI_LONG, column, datarep, info));
  OK(MPI_Info_free(&info));
  OK(MPI_File_get_info(file, &info));
  OK(MPI_Info_get(info, "cb_nodes", MPI_MAX_DATAREP_STRING - 1, text, &flag));
  CHECK(flag && !strcmp(text, "2"));
  OK(MPI_Info_free(&info));
  OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
  CHECK(extent == item);
  OK(MPI_File_write_all(file, mine, ROWS, MPI_LONG, &status));
  counted(&status, MPI_LONG, ROWS);
  OK(MPI_File_get_size(file, &length));
  CHECK(length == 16 + item * ROWS * size);
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at_all(file, 0, back, ROWS, MPI_LONG, &status));
  CHECK(!memcmp(mine, back, sizeof mine));
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at(file, 0, back, ROWS, MPI_LONG, &status));
  CHECK(!memcmp(mine, back, sizeof mine));
  counted(&status, MPI_LONG, ROWS);
  OK(MPI_File_get_view(file, &disp, &got_etype, &got_filetype, text));
  CHECK(disp == 16 && got_etype == MPI_LONG && !strcmp(text, datarep));
  OK(MPI_Type_contiguous(1, got_filetype, &tile));
  OK(MPI_Type_free(&tile));
  OK(MPI_Type_free(&got_filetype));
  OK(MPI_Type_free(&column));
  OK(MPI_File_close(&file));
}

/* The bytes of external32 are big-endian, and a value that doesn't fit is refused. */
static void external32(void) {
  MPI_File file = opened("external32", SCRATCH);
  unsigned char bytes[4];
  long value = 0x01020304, large = 1L << (8 * sizeof(long) - 2), back = -1;
  OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
  if (me == 0)
    OK(MPI_File_write_at(file, 0, &value, 1, MPI_LONG, MPI_STATUS_IGNORE));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  OK(MPI_File_read_at_all(file, 0, bytes, 4, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3 && bytes[3] == 4);
  OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
  OK(MPI_File_read_at(file, 0, &back, 1, MPI_LONG, MPI_STATUS_IGNORE));
  CHECK(back == value);
  if (sizeof(long) == 8) {
    FAILS(MPI_ERR_CONVERSION, MPI_File_write_at_all(file, me, me == 0 ? &large : &value, 1, MPI_LONG, MPI_STATUS_IGNORE));
    if (me > 0) {
      OK(MPI_File_read_at(file, me, &back, 1, MPI_LONG, MPI_STATUS_IGNORE));
      CHECK(back == value);
    }
  }
  OK(MPI_File_close(&file));
}

/* A representation of the program: all bits are inverted. */
static int inverted, extents;

static int invert(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  unsigned char *from = extra ? memory : file, *to = extra ? file : memory;
  int i, bytes;
  CHECK(position == 0);
  OK(MPI_Type_size(type, &bytes));
  for (i = 0; i < count * bytes; i++)
    to[i] = (unsigned char)~from[i];
  inverted++;
  return MPI_SUCCESS;
}

static int writing;

static int to_file(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  CHECK(extra == &writing);
  return invert(memory, type, count, file, position, extra);
}

static int from_file(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  CHECK(extra == &writing);
  return invert(memory, type, count, file, position, NULL);
}

static int same_extent(MPI_Datatype type, MPI_Aint *extent, void *extra) {
  MPI_Aint lb;
  (void)extra;
  extents++;
  return MPI_Type_get_extent(type, &lb, extent);
}

static int wide(MPI_Datatype type, MPI_Aint *extent, void *extra) {
  (void)type, (void)extra;
  *extent = 16;
  return MPI_SUCCESS;
}

static void registered(void) {
  MPI_File file = opened("registered", SCRATCH);
  MPI_Datatype etype, filetype;
  MPI_Offset disp;
  MPI_Request request;
  MPI_Status status;
  int mine[3] = {me, -me, 7}, back[4] = {0};
  char text[MPI_MAX_DATAREP_STRING];
  OK(MPI_Register_datarep("inverted", from_file, to_file, same_extent, &writing));
  OK(MPI_Register_datarep_c("plain", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, same_extent, NULL));
  OK(MPI_Register_datarep("wide", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, wide, NULL));
  FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, same_extent, NULL));
  FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("native", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, same_extent, NULL));
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "wide", MPI_INFO_NULL));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "inverted", MPI_INFO_NULL));
  OK(MPI_File_get_view(file, &disp, &etype, &filetype, text));
  CHECK(!strcmp(text, "inverted") && extents > 0);
  OK(MPI_File_write_at_all(file, 3 * me, mine, 3, MPI_INT, &status));
  counted(&status, MPI_INT, 3);
  OK(MPI_File_iread_at(file, 3 * me, back, 3, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  counted(&status, MPI_INT, 3);
  CHECK(!memcmp(mine, back, sizeof mine) && inverted == 2);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  /* The file ends after the elements of the last rank. */
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at(file, 3 * (size - 1), back, 4, MPI_INT, &status));
  counted(&status, MPI_INT, 3);
  CHECK(back[2] == 7 && back[3] == 0);
  OK(MPI_File_read_at_all_begin(file, 3 * me, back, 3, MPI_INT));
  OK(MPI_File_read_at_all_end(file, back, &status));
  CHECK(!memcmp(mine, back, sizeof mine));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL));
  OK(MPI_File_read_at(file, 3 * me, back, 3, MPI_INT, &status));
  CHECK(back[0] == ~me && back[2] == ~7);
  OK(MPI_File_close(&file));
}

static int calls, last;
static MPI_File seen;

static void note(MPI_File *file, int *code, ...) {
  calls++;
  last = *code;
  seen = *file;
}

static void faults(void) {
  MPI_File file = (MPI_File)(intptr_t)77;
  MPI_Errhandler handler, got;
  MPI_Datatype backwards, odd;
  MPI_Aint displacements[2] = {8, 0};
  int number[2] = {0}, lengths[2] = {1, 1};
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(file == MPI_FILE_NULL);
  FAILS(MPI_ERR_BAD_FILE, MPI_File_open(MPI_COMM_WORLD, "/tmp", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete("/no/such/file", MPI_INFO_NULL));
  FAILS(MPI_ERR_COMM, MPI_File_open(MPI_COMM_NULL, "missing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  name("faults");
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path, 1 << 20, MPI_INFO_NULL, &file));
  if (size > 1) {
    int amode = MPI_MODE_CREATE | (me ? MPI_MODE_RDWR : MPI_MODE_WRONLY);
    FAILS(MPI_ERR_NOT_SAME, MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
  }
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_ACCESS, MPI_File_read(file, number, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ACCESS, MPI_File_read_at_all(file, 0, number, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_COUNT, MPI_File_write_at(file, 0, number, -1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_write_at(file, -1, number, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TYPE, MPI_File_write_at(file, 0, number, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, 0, 12345));
  FAILS(MPI_ERR_ARG, MPI_File_set_size(file, -1));
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "unheard of", MPI_INFO_NULL));
  FAILS(MPI_ERR_ARG, MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_Type_create_hindexed(2, lengths, displacements, MPI_INT, &backwards));
  OK(MPI_Type_commit(&backwards));
  FAILS(MPI_ERR_IO, MPI_File_set_view(file, 0, MPI_INT, backwards, "native", MPI_INFO_NULL));
  OK(MPI_Type_free(&backwards));
  OK(MPI_Type_contiguous(3, MPI_SHORT, &odd));
  FAILS(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_INT, odd, "native", MPI_INFO_NULL));
  OK(MPI_Type_commit(&odd));
  FAILS(MPI_ERR_TYPE, MPI_File_set_view(file, 0, MPI_INT, odd, "native", MPI_INFO_NULL));
  OK(MPI_File_set_view(file, 0, odd, odd, "native", MPI_INFO_NULL));
  FAILS(MPI_ERR_TYPE, MPI_File_write(file, number, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_Type_free(&odd));
  /* The handler of this file. */
  OK(MPI_File_create_errhandler(note, &handler));
  OK(MPI_File_set_errhandler(file, handler));
  calls = 0;
  FAILS(MPI_ERR_ACCESS, MPI_File_read(file, number, 1, MPI_SHORT, MPI_STATUS_IGNORE));
  CHECK(calls == 1 && seen == file);
  FAILS(MPI_ERR_ACCESS, last);
  OK(MPI_File_call_errhandler(file, MPI_ERR_IO));
  CHECK(calls == 2 && last == MPI_ERR_IO);
  OK(MPI_File_get_errhandler(file, &got));
  CHECK(got != MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_File_close(&file));
  FAILS(MPI_ERR_FILE_EXISTS, MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
  FAILS(MPI_ERR_READ_ONLY, MPI_File_write_shared(file, number, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read_at(file, 0, number, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(file, 0, MPI_SEEK_SET));
  FAILS(MPI_ERR_ARG, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_close(&file));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (me == 0)
    OK(MPI_File_delete(path, MPI_INFO_NULL));
}

/* What a file is. */
static void queries(void) {
  MPI_File file = opened("queries", SCRATCH);
  MPI_Group group, world;
  MPI_Offset length;
  int amode, flag, comparison;
  OK(MPI_File_get_amode(file, &amode));
  CHECK(amode == SCRATCH);
  OK(MPI_File_get_group(file, &group));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_compare(group, world, &comparison));
  CHECK(comparison == MPI_IDENT);
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
  OK(MPI_File_set_size(file, 1000));
  OK(MPI_File_preallocate(file, 500));
  OK(MPI_File_get_size(file, &length));
  CHECK(length == 1000);
  OK(MPI_File_preallocate(file, 5000));
  OK(MPI_File_get_size(file, &length));
  CHECK(length == 5000);
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(!flag);
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag);
  CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
  OK(MPI_File_close(&file));
}

/* In atomic mode a reader sees all of a write or nothing of it. */
static void atomic(void) {
  enum { INTS = 3000, ROUNDS = 20 };
  MPI_File file = opened("atomic", SCRATCH);
  MPI_Datatype every;
  MPI_Info info;
  int round, i, *data = calloc(INTS, sizeof *data);
  /* An access is thousands of calls of the system, which are atomic only one by one. */
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "romio_ds_read", "disable"));
  OK(MPI_Type_create_resized(MPI_INT, 0, 8 * sizeof(int), &every));
  OK(MPI_Type_commit(&every));
  OK(MPI_File_set_view(file, 0, MPI_INT, every, "native", info));
  OK(MPI_Type_free(&every));
  OK(MPI_Info_free(&info));
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_write_at_all(file, 0, data, me ? 0 : INTS, MPI_INT, MPI_STATUS_IGNORE));
  for (round = 0; round < ROUNDS; round++) {
    if (me % 2 == 0) {
      for (i = 0; i < INTS; i++)
        data[i] = me * ROUNDS + round;
      OK(MPI_File_write_at(file, 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_read_at(file, 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE));
      for (i = 1; i < INTS; i++)
        CHECK(data[i] == data[0]);
    }
  }
  free(data);
  OK(MPI_File_close(&file));
}

/* Calls on the null file. */
static void null(void) {
  int number = 0;
  MPI_File file = MPI_FILE_NULL;
  MPI_Request request;
  MPI_Errhandler handler, got;
  FAILS(MPI_ERR_FILE, MPI_File_close(&file));
  FAILS(MPI_ERR_FILE, MPI_File_sync(MPI_FILE_NULL));
  FAILS(MPI_ERR_FILE, MPI_File_read(MPI_FILE_NULL, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_iread_c(MPI_FILE_NULL, &number, 1, MPI_INT, &request));
  CHECK(request == MPI_REQUEST_NULL);
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  OK(MPI_File_create_errhandler(note, &handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  calls = 0;
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(calls == 1 && seen == MPI_FILE_NULL);
  FAILS(MPI_ERR_FILE, MPI_File_sync(MPI_FILE_NULL));
  CHECK(calls == 2);
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  OK(MPI_Errhandler_free(&handler));
}

int main(int argc, char **argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  /* The handlers of communicators end the job. That of files returns. */
  null();
  accesses();
  shared();
  columns("native", sizeof(long));
  columns("internal", 8);
  columns("external32", 4);
  external32();
  registered();
  faults();
  queries();
  atomic();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  return end();
}
