/* No function opens a file yet. Each says so by the handler of files, and the job goes on. */
#include "check.h"

static int calls, last;
static MPI_File seen;

static void note(MPI_File *file, int *code, ...) {
  calls++;
  last = *code;
  seen = *file;
}

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state) {
  (void)type, (void)extent, (void)state;
  return MPI_SUCCESS;
}

/* Calls that open a file or need none. */
static void without_a_file(void) {
  MPI_File file = (MPI_File)(intptr_t)77;
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
        MPI_File_open(MPI_COMM_WORLD, "missing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(file == MPI_FILE_NULL);
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_delete("missing", MPI_INFO_NULL));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
        MPI_Register_datarep("mine", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, NULL));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION,
        MPI_Register_datarep_c("mine", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent_of, NULL));
  FAILS(MPI_ERR_COMM, MPI_File_open(MPI_COMM_NULL, "missing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
}

/* Calls on a file, of which there is only the null one. */
static void on_a_file(void) {
  char text[MPI_MAX_DATAREP_STRING] = "native";
  int memory[1] = {0}, number;
  MPI_Offset offset;
  MPI_Aint extent;
  MPI_Count count;
  MPI_Group group;
  MPI_Info info;
  MPI_Datatype type;
  MPI_Request request;
  MPI_File file = MPI_FILE_NULL;
  FAILS(MPI_ERR_FILE, MPI_File_close(&file));
  FAILS(MPI_ERR_FILE, MPI_File_get_amode(MPI_FILE_NULL, &number));
  FAILS(MPI_ERR_FILE, MPI_File_get_atomicity(MPI_FILE_NULL, &number));
  FAILS(MPI_ERR_FILE, MPI_File_get_byte_offset(MPI_FILE_NULL, 0, &offset));
  FAILS(MPI_ERR_FILE, MPI_File_get_group(MPI_FILE_NULL, &group));
  FAILS(MPI_ERR_FILE, MPI_File_get_info(MPI_FILE_NULL, &info));
  FAILS(MPI_ERR_FILE, MPI_File_get_position(MPI_FILE_NULL, &offset));
  FAILS(MPI_ERR_FILE, MPI_File_get_position_shared(MPI_FILE_NULL, &offset));
  FAILS(MPI_ERR_FILE, MPI_File_get_size(MPI_FILE_NULL, &offset));
  FAILS(MPI_ERR_FILE, MPI_File_get_type_extent(MPI_FILE_NULL, MPI_INT, &extent));
  FAILS(MPI_ERR_FILE, MPI_File_get_type_extent_c(MPI_FILE_NULL, MPI_INT, &count));
  FAILS(MPI_ERR_FILE, MPI_File_get_view(MPI_FILE_NULL, &offset, &type, &type, text));
  FAILS(MPI_ERR_FILE, MPI_File_iread(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_c(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_all(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_all_c(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_at(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_at_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_at_all(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_at_all_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_shared(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iread_shared_c(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_c(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_all(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_all_c(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_at(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_at_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_at_all(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_at_all_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_shared(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_iwrite_shared_c(MPI_FILE_NULL, memory, 0, MPI_INT, &request));
  FAILS(MPI_ERR_FILE, MPI_File_preallocate(MPI_FILE_NULL, 0));
  FAILS(MPI_ERR_FILE, MPI_File_read(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_all(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_all_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_all_begin(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_read_all_begin_c(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_read_all_end(MPI_FILE_NULL, memory, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_at(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_at_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_at_all(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_at_all_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_at_all_begin(MPI_FILE_NULL, 0, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_read_at_all_begin_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_read_at_all_end(MPI_FILE_NULL, memory, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_ordered(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_ordered_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_ordered_begin(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_read_ordered_begin_c(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_read_ordered_end(MPI_FILE_NULL, memory, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_shared(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_read_shared_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_seek(MPI_FILE_NULL, 0, 0));
  FAILS(MPI_ERR_FILE, MPI_File_seek_shared(MPI_FILE_NULL, 0, 0));
  FAILS(MPI_ERR_FILE, MPI_File_set_atomicity(MPI_FILE_NULL, 1));
  FAILS(MPI_ERR_FILE, MPI_File_set_info(MPI_FILE_NULL, MPI_INFO_ENV));
  FAILS(MPI_ERR_FILE, MPI_File_set_size(MPI_FILE_NULL, 0));
  FAILS(MPI_ERR_FILE, MPI_File_set_view(MPI_FILE_NULL, 0, MPI_INT, MPI_INT, text, MPI_INFO_NULL));
  FAILS(MPI_ERR_FILE, MPI_File_sync(MPI_FILE_NULL));
  FAILS(MPI_ERR_FILE, MPI_File_write(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_all(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_all_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_all_begin(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_write_all_begin_c(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_write_all_end(MPI_FILE_NULL, memory, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_at(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_at_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_at_all(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_at_all_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_at_all_begin(MPI_FILE_NULL, 0, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_write_at_all_begin_c(MPI_FILE_NULL, 0, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_write_at_all_end(MPI_FILE_NULL, memory, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_ordered(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_ordered_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_ordered_begin(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_write_ordered_begin_c(MPI_FILE_NULL, memory, 0, MPI_INT));
  FAILS(MPI_ERR_FILE, MPI_File_write_ordered_end(MPI_FILE_NULL, memory, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_shared(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_FILE, MPI_File_write_shared_c(MPI_FILE_NULL, memory, 0, MPI_INT, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
  MPI_Errhandler handler, got;
  MPI_File file;
  OK(MPI_Init(&argc, &argv));
  /* The handlers of communicators end the job. That of files returns. */
  without_a_file();
  on_a_file();
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
  CHECK(got == MPI_ERRORS_RETURN);
  OK(MPI_File_create_errhandler(note, &handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_open(MPI_COMM_SELF, "x", MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  CHECK(calls == 1 && seen == MPI_FILE_NULL);
  FAILS(MPI_ERR_UNSUPPORTED_OPERATION, last);
  FAILS(MPI_ERR_FILE, MPI_File_sync(MPI_FILE_NULL));
  CHECK(calls == 2);
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  return end();
}
