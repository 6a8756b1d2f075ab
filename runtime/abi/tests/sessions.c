/* A program with sessions only. It leaves its job when it exits. */
#include "check.h"

static int calls, last;
static MPI_Comm seen;

static void note(MPI_Comm *comm, int *code, ...) {
  calls++;
  last = *code;
  seen = *comm;
}

static void note_session(MPI_Session *session, int *code, ...) {
  calls += *session == MPI_SESSION_NULL ? 10 : 100;
  last = *code;
}

/* A group without processes makes no communicator, and no other rank calls. */
static void of_nobody(MPI_Group group) {
  MPI_Comm comm = MPI_COMM_WORLD;
  OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
  comm = MPI_COMM_WORLD;
  OK(MPI_Intercomm_create_from_groups(group, 0, MPI_GROUP_EMPTY, 0, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
  comm = MPI_COMM_WORLD;
  OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, group, 0, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
}

/* The handler of the object that a call would make gets the error of the call. */
static void handled(MPI_Group group) {
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Session session;
  MPI_Errhandler handler, of_sessions;
  MPI_Info info;
  OK(MPI_Comm_create_errhandler(note, &handler));
  OK(MPI_Session_create_errhandler(note_session, &of_sessions));
  FAILS(MPI_ERR_GROUP, MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  FAILS(MPI_ERR_GROUP, MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, handler, &comm));
  CHECK(calls == 1 && seen == MPI_COMM_NULL);
  FAILS(MPI_ERR_GROUP, last);
  FAILS(MPI_ERR_RANK,
        MPI_Intercomm_create_from_groups(group, 0, group, 1000, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  FAILS(MPI_ERR_RANK, MPI_Intercomm_create_from_groups(group, 0, group, -5, "x", MPI_INFO_NULL, handler, &comm));
  CHECK(calls == 2);
  FAILS(MPI_ERR_RANK, last);
  /* So is a level of threads that doesn't exist. */
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SEVERAL"));
  FAILS(MPI_ERR_INFO_VALUE, MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
  CHECK(session == MPI_SESSION_NULL);
  FAILS(MPI_ERR_INFO_VALUE, MPI_Session_init(info, of_sessions, &session));
  CHECK(calls == 12);
  OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_FUNNELED"));
  OK(MPI_Session_init(info, of_sessions, &session));
  OK(MPI_Session_finalize(&session));
  OK(MPI_Info_free(&info));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Errhandler_free(&of_sessions));
}

/* The buffer of a session serves the communicators that come from it. */
static void buffered(MPI_Session session, MPI_Comm comm) {
  static char memory[MPI_BSEND_OVERHEAD + 64], own[MPI_BSEND_OVERHEAD + 8];
  int sent = me + 1, got = 0, next = (me + 1) % size, last = (me + size - 1) % size, bytes;
  void *address;
  MPI_Comm dup;
  MPI_Request request;
  MPI_Count large;
  OK(MPI_Comm_dup(comm, &dup));
  OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(&sent, 1, MPI_INT, next, 0, dup));
  OK(MPI_Session_attach_buffer(session, memory, sizeof memory));
  FAILS(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, memory, sizeof memory));
  OK(MPI_Bsend(&sent, 1, MPI_INT, next, 0, dup));
  OK(MPI_Recv(&got, 1, MPI_INT, last, 0, dup, MPI_STATUS_IGNORE));
  CHECK(got == last + 1);
  OK(MPI_Session_flush_buffer(session));
  OK(MPI_Session_iflush_buffer(session, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  /* A buffer of the communicator comes first. */
  char long_message[64] = {0};
  OK(MPI_Comm_attach_buffer(dup, own, sizeof own));
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(long_message, 64, MPI_CHAR, next, 0, dup));
  OK(MPI_Comm_detach_buffer(dup, &address, &bytes));
  OK(MPI_Bsend(long_message, 64, MPI_CHAR, next, 0, dup));
  OK(MPI_Recv(long_message, 64, MPI_CHAR, last, 0, dup, MPI_STATUS_IGNORE));
  OK(MPI_Session_detach_buffer(session, &address, &bytes));
  CHECK(address == memory && bytes == (int)sizeof memory);
  OK(MPI_Session_attach_buffer_c(session, memory, sizeof memory));
  OK(MPI_Session_detach_buffer_c(session, &address, &large));
  CHECK(address == memory && large == (MPI_Count)sizeof memory);
  OK(MPI_Session_attach_buffer(session, memory, sizeof memory));
  OK(MPI_Comm_free(&dup));
}

int main(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Win win;
  int n, length = 0;
  char name[MPI_MAX_PSET_NAME_LEN];
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
  CHECK(n >= 2);
  OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, 0));
  OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
  CHECK(!strcmp(name, "mpi://WORLD") && length == 12);
  FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name));
  FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL));
  OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  of_nobody(group);
  handled(group);
  OK(MPI_Comm_create_from_group(group, "a test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  OK(MPI_Comm_rank(comm, &me));
  OK(MPI_Comm_size(comm, &size));
  buffered(session, comm);
  int *base, value = me, next = (me + 1) % size;
  OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[0] == (me + size - 1) % size);
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Group_free(&group));
  OK(MPI_Session_finalize(&session));
  CHECK(session == MPI_SESSION_NULL);
  int flag;
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  /* Another session may begin. */
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Session_finalize(&session));
  return 0;
}
