/* Communicators after failures, without any failure: tests of real deaths are in Rust. */
#include "check.h"
#include <mpix.h>

static void agreements(MPI_Comm comm) {
  int rank, ranks, flag = 7;
  MPI_Request requests[2];
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Comm_size(comm, &ranks));
  OK(MPIX_Comm_agree(comm, &flag));
  CHECK(flag == 7);
  flag = rank == ranks - 1 ? 5 : 6;
  OK(MPIX_Comm_agree(comm, &flag));
  CHECK(flag == (ranks == 1 ? 5 : 4));
  /* Two are under way, and the flags are read when they start. */
  int first = 12 | rank << 8, second = rank == 0 ? 3 : 2;
  OK(MPIX_Comm_iagree(comm, &first, &requests[0]));
  OK(MPIX_Comm_iagree(comm, &second, &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(first == 12 && second == (ranks == 1 ? 3 : 2));
  FAILS(MPI_ERR_ARG, MPIX_Comm_agree(comm, NULL));
  FAILS(MPI_ERR_BUFFER, MPIX_Comm_iagree(comm, NULL, &requests[0]));
  FAILS(MPI_ERR_COMM, MPIX_Comm_agree(MPI_COMM_NULL, &flag));
}

static void failures(MPI_Comm comm) {
  MPI_Group failed;
  int members, acked = -1;
  OK(MPIX_Comm_get_failed(comm, &failed));
  OK(MPI_Group_size(failed, &members));
  CHECK(members == 0);
  OK(MPI_Group_free(&failed));
  OK(MPIX_Comm_ack_failed(comm, 1, &acked));
  CHECK(acked == 0);
  OK(MPIX_Comm_failure_ack(comm));
  OK(MPIX_Comm_failure_get_acked(comm, &failed));
  OK(MPI_Group_free(&failed));
}

static void revocation(MPI_Comm comm) {
  MPI_Comm dup, again, other;
  MPI_Request request;
  int flag, result, rank;
  char text[MPI_MAX_ERROR_STRING];
  OK(MPI_Comm_dup(comm, &dup));
  OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
  OK(MPIX_Comm_is_revoked(dup, &flag));
  CHECK(!flag);
  OK(MPI_Barrier(comm));
  OK(MPI_Comm_rank(dup, &rank));
  if (rank == 0)
    OK(MPIX_Comm_revoke(dup));
  do
    OK(MPIX_Comm_is_revoked(dup, &flag));
  while (!flag);
  FAILS(MPIX_ERR_REVOKED, MPI_Barrier(dup));
  FAILS(MPIX_ERR_REVOKED, MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, dup));
  FAILS(MPIX_ERR_REVOKED, MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, dup, MPI_STATUS_IGNORE));
  FAILS(MPIX_ERR_REVOKED, MPI_Comm_dup(dup, &other));
  OK(MPI_Error_string(MPIX_ERR_REVOKED, text, &result));
  CHECK(!strcmp(text, "MPIX_ERR_REVOKED"));
  agreements(dup);
  OK(MPIX_Comm_shrink(dup, &again));
  OK(MPI_Comm_compare(dup, again, &result));
  CHECK(result == MPI_CONGRUENT);
  OK(MPI_Barrier(again));
  OK(MPIX_Comm_ishrink(dup, &other, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Barrier(other));
  OK(MPI_Comm_free(&again));
  OK(MPI_Comm_free(&other));
  OK(MPI_Comm_free(&dup));
}

/* A window goes on after its communicator is revoked. */
static void windows(MPI_Comm comm) {
  MPI_Comm dup;
  MPI_Win win;
  int rank, ranks, *memory;
  OK(MPI_Comm_dup(comm, &dup));
  OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
  OK(MPI_Comm_rank(dup, &rank));
  OK(MPI_Comm_size(dup, &ranks));
  OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, dup, &memory, &win));
  *memory = -1;
  OK(MPI_Win_fence(0, win));
  if (rank == 0)
    OK(MPIX_Comm_revoke(dup));
  OK(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  CHECK(*memory == (rank + ranks - 1) % ranks);
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_free(&dup));
}

/* The revocation of MPI_COMM_SELF leaves ports, and that of MPI_COMM_WORLD leaves the end. */
static void predefined(void) {
  MPI_Comm own, both;
  char port[MPI_MAX_PORT_NAME] = "";
  OK(MPI_Comm_dup(MPI_COMM_SELF, &own));
  if (me == 0)
    OK(MPI_Open_port(MPI_INFO_NULL, port));
  OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
  OK(MPIX_Comm_revoke(MPI_COMM_SELF));
  if (size > 1 && me < 2) {
    if (me == 0)
      OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, own, &both));
    else
      OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, own, &both));
    /* Messages under way are complete after it. */
    int got[30000], sent[30000];
    MPI_Request requests[2];
    for (int i = 0; i < 30000; i++)
      got[i] = -1, sent[i] = i + me;
    OK(MPI_Irecv(got, 30000, MPI_INT, 0, 0, both, &requests[0]));
    OK(MPI_Isend(sent, 30000, MPI_INT, 0, 0, both, &requests[1]));
    OK(MPI_Comm_disconnect(&both));
    CHECK(got[0] == 1 - me && got[29999] == 29999 + 1 - me);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  OK(MPI_Comm_free(&own));
  /* A rank may be in the barrier yet when the first one has left it. */
  int code = MPI_Barrier(MPI_COMM_WORLD);
  if (code != MPI_SUCCESS)
    FAILS(MPIX_ERR_REVOKED, code);
  if (me == 0)
    OK(MPIX_Comm_revoke(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  agreements(MPI_COMM_WORLD);
  agreements(MPI_COMM_SELF);
  failures(MPI_COMM_WORLD);
  revocation(MPI_COMM_WORLD);
  revocation(MPI_COMM_SELF);
  windows(MPI_COMM_WORLD);
  predefined();
  return end();
}
