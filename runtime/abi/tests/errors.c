/* Error handlers, classes, codes and strings. */
#include "check.h"

static int calls, last;
static MPI_Comm seen;

static void note(MPI_Comm *comm, int *code, ...) {
  calls++;
  last = *code;
  seen = *comm;
}

static void note_window(MPI_Win *win, int *code, ...) {
  calls += 10;
  last = *code;
  (void)win;
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int n, class, code, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Errhandler handler, got;
  MPI_Comm dup;
  OK(MPI_Comm_create_errhandler(note, &handler));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Comm_set_errhandler(dup, handler));
  OK(MPI_Comm_get_errhandler(dup, &got));
  CHECK(got != MPI_ERRHANDLER_NULL);
  OK(MPI_Errhandler_free(&got));
  /* The communicator keeps a handler whose handle is freed. */
  OK(MPI_Errhandler_free(&handler));
  CHECK(handler == MPI_ERRHANDLER_NULL);
  FAILS(MPI_ERR_ARG, MPI_Comm_split(dup, -5, 0, &seen));
  CHECK(calls == 1 && seen == dup);
  FAILS(MPI_ERR_ARG, last);
  OK(MPI_Comm_call_errhandler(dup, MPI_ERR_TAG));
  CHECK(calls == 2 && last == MPI_ERR_TAG);
  /* A new communicator has the handler of the one that it comes from. */
  MPI_Comm child;
  OK(MPI_Comm_dup(dup, &child));
  OK(MPI_Comm_call_errhandler(child, MPI_ERR_RANK));
  CHECK(calls == 3 && seen == child);
  OK(MPI_Comm_free(&child));
  OK(MPI_Comm_free(&dup));
  OK(MPI_Win_create_errhandler(note_window, &handler));
  FAILS(MPI_ERR_ARG, MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
  FAILS(MPI_ERR_ARG, MPI_Comm_create_errhandler(0, &got));

  OK(MPI_Error_class(MPI_ERR_RANK, &class));
  CHECK(class == MPI_ERR_RANK);
  OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
  CHECK((int)strlen(text) == length && strstr(text, "MPI_ERR_TRUNCATE"));
  FAILS(MPI_ERR_ARG, MPI_Error_class(12345, &class));

  /* Each code has the text of its own error, whatever fails after it. */
  int first = MPI_Comm_rank(MPI_COMM_NULL, &n), second = MPI_Comm_size(MPI_COMM_NULL, &n);
  CHECK(first != second && first <= MPI_ERR_LASTCODE && second <= MPI_ERR_LASTCODE);
  FAILS(MPI_ERR_COMM, first);
  FAILS(MPI_ERR_COMM, second);
  OK(MPI_Error_string(first, text, &length));
  CHECK(strstr(text, "MPI_ERR_COMM") && strstr(text, "MPI_Comm_rank") && (int)strlen(text) == length);
  OK(MPI_Error_string(second, text, &length));
  CHECK(strstr(text, "MPI_ERR_COMM") && strstr(text, "MPI_Comm_size"));
  CHECK(MPI_Comm_rank(MPI_COMM_NULL, &n) == first);
  OK(MPI_Error_string(MPI_ERR_COMM, text, &length));
  CHECK(strstr(text, "MPI_ERR_COMM") && !strstr(text, "MPI_Comm_"));
  /* Texts of errors long ago are lost, but their classes aren't. */
  for (int tag = 1; tag <= 300; tag++)
    FAILS(MPI_ERR_TAG, MPI_Send(NULL, 0, MPI_INT, me, -100 - tag, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, first);
  OK(MPI_Error_string(first, text, &length));
  CHECK(strstr(text, "MPI_ERR_COMM"));

  /* A request that fails takes the place of one text, not of two. */
  first = MPI_Comm_rank(MPI_COMM_NULL, &n);
  for (int more = 1; more <= 100; more++) {
    char sent[128] = "", got_it;
    MPI_Request requests[2];
    OK(MPI_Irecv(&got_it, 1, MPI_CHAR, me, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(sent, 1 + more, MPI_CHAR, me, 0, MPI_COMM_WORLD, &requests[1]));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  }
  OK(MPI_Error_string(first, text, &length));
  CHECK(strstr(text, "MPI_Comm_rank"));
  /* A number is no code if its class were MPI_SUCCESS. */
  FAILS(MPI_ERR_ARG, MPI_Error_class(first >> 7 << 7, &class));

  int *last_used, flag;
  OK(MPI_Add_error_class(&class));
  CHECK(class > MPI_ERR_LASTCODE);
  OK(MPI_Add_error_code(class, &code));
  OK(MPI_Add_error_string(code, "the tide is out"));
  OK(MPI_Error_class(code, &n));
  CHECK(n == class);
  OK(MPI_Error_string(code, text, &length));
  CHECK(!strcmp(text, "the tide is out"));
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last_used, &flag));
  CHECK(flag && *last_used >= code);
  FAILS(MPI_ERR_ARG, MPI_Add_error_string(MPI_ERR_RANK, "no"));
  FAILS(MPI_ERR_ARG, MPI_Remove_error_code(code));
  OK(MPI_Remove_error_string(code));
  OK(MPI_Remove_error_code(code));
  OK(MPI_Remove_error_class(class));
  FAILS(MPI_ERR_ARG, MPI_Error_class(code, &class));

  MPI_Win win;
  char *base;
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, handler));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  CHECK(calls == 13);
  FAILS(MPI_ERR_RMA_SYNC, last);
  OK(MPI_Win_free(&win));
  OK(MPI_Errhandler_free(&handler));
  return end();
}
