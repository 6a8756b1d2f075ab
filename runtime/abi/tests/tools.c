/* The interface of tools can be used at any time. It has no variables, categories and events. */
#include "check.h"

/* Tools have no error handlers: a call returns its code, which is a class. */
#define RETURNS(code, call) CHECK((call) == (code))

static void numbers(void) {
  int n = -1;
  RETURNS(MPI_SUCCESS, MPI_T_cvar_get_num(&n));
  CHECK(n == 0);
  n = -1;
  RETURNS(MPI_SUCCESS, MPI_T_pvar_get_num(&n));
  CHECK(n == 0);
  n = -1;
  RETURNS(MPI_SUCCESS, MPI_T_category_get_num(&n));
  CHECK(n == 0);
  n = -1;
  RETURNS(MPI_SUCCESS, MPI_T_event_get_num(&n));
  CHECK(n == 0);
  n = -1;
  RETURNS(MPI_SUCCESS, MPI_T_source_get_num(&n));
  CHECK(n == 0);
  n = -1;
  RETURNS(MPI_SUCCESS, MPI_T_category_changed(&n));
  CHECK(n == 0);
}

/* Nothing has an index or a name. Results that the caller doesn't want may be null. */
static void nothing(void) {
  int n;
  MPI_Count time;
  MPI_T_cvar_handle variable;
  MPI_T_event_registration event;
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  RETURNS(MPI_T_ERR_INVALID_INDEX,
          MPI_T_pvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_cvars(0, 1, &n));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_pvars(0, 1, &n));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_events(0, 1, &n));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_categories(0, 1, &n));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_num_events(0, &n));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(0, &time));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_handle_alloc(0, NULL, &variable, &n));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &event));
  RETURNS(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("none", &n));
  RETURNS(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("none", MPI_T_PVAR_CLASS_TIMER, &n));
  RETURNS(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("none", &n));
  RETURNS(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("none", &n));
  RETURNS(MPI_T_ERR_INVALID, MPI_T_cvar_get_index(NULL, &n));
  RETURNS(MPI_T_ERR_INVALID, MPI_T_pvar_get_index(NULL, MPI_T_PVAR_CLASS_TIMER, &n));
  RETURNS(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(NULL));
  RETURNS(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &n));
  RETURNS(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL));
}

static void sessions(void) {
  MPI_T_pvar_session session, other, ended;
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  int n;
  RETURNS(MPI_SUCCESS, MPI_T_pvar_session_create(&session));
  RETURNS(MPI_SUCCESS, MPI_T_pvar_session_create(&other));
  CHECK(session != MPI_T_PVAR_SESSION_NULL && session != other);
  RETURNS(MPI_SUCCESS, MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
  RETURNS(MPI_SUCCESS, MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
  RETURNS(MPI_SUCCESS, MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
  RETURNS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_start(session, MPI_T_PVAR_HANDLE_NULL));
  RETURNS(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &n));
  RETURNS(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, handle, &n));
  ended = session;
  RETURNS(MPI_SUCCESS, MPI_T_pvar_session_free(&session));
  CHECK(session == MPI_T_PVAR_SESSION_NULL);
  RETURNS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&ended));
  RETURNS(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
  RETURNS(MPI_SUCCESS, MPI_T_pvar_session_free(&other));
}

int main(int argc, char **argv) {
  int provided = -1, n, length;
  char text[MPI_MAX_ERROR_STRING];
  RETURNS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&n));
  RETURNS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
  RETURNS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_index(NULL, &n));
  RETURNS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_category_get_cvars(0, -1, NULL));
  RETURNS(MPI_SUCCESS, MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  numbers();
  begin(&argc, &argv);
  RETURNS(MPI_SUCCESS, MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  CHECK(provided == MPI_THREAD_SINGLE);
  RETURNS(MPI_SUCCESS, MPI_T_init_thread(MPI_THREAD_SINGLE + 1, &provided));
  CHECK(provided == MPI_THREAD_FUNNELED);
  RETURNS(MPI_SUCCESS, MPI_T_finalize());
  numbers();
  nothing();
  sessions();
  OK(MPI_Error_string(MPI_T_ERR_INVALID_NAME, text, &length));
  CHECK(strncmp(text, "MPI_T_ERR_INVALID_NAME: ", 24) == 0);
  RETURNS(MPI_SUCCESS, MPI_T_finalize());
  OK(MPI_Barrier(MPI_COMM_WORLD));
  int code = end();
  numbers();
  RETURNS(MPI_SUCCESS, MPI_T_finalize());
  RETURNS(MPI_T_ERR_NOT_INITIALIZED, MPI_T_category_changed(&n));
  return code;
}
