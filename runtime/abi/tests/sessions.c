/* A program with sessions only. It leaves its job when it exits. */
#include "check.h"

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
  OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  OK(MPI_Comm_create_from_group(group, "a test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  OK(MPI_Comm_rank(comm, &me));
  OK(MPI_Comm_size(comm, &size));
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
