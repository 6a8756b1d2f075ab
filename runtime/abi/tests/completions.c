/* Every call that completes or asks for requests, with null and inactive ones among them, ready and
   buffered sends, and requests that several calls share (MPI-5.0 sections 3.4, 3.7 and 3.9). */
#include "check.h"

static int is_empty(const MPI_Status *status) {
  int n = -1, flag = 1;
  OK(MPI_Get_count(status, MPI_BYTE, &n));
  OK(MPI_Test_cancelled(status, &flag));
  return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && n == 0 && !flag;
}

/* Null and inactive requests: all versions return at once, with empty statuses. */
static void inactive(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3], status;
  int value = 0, flag = 0, index = 5, count = 5, indices[3];
  OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]));
  OK(MPI_Wait(&requests[1], &status));
  CHECK(is_empty(&status) && requests[1] != MPI_REQUEST_NULL);
  OK(MPI_Test(&requests[1], &flag, &status));
  CHECK(flag && is_empty(&status));
  OK(MPI_Waitall(3, requests, statuses));
  for (int i = 0; i < 3; i++) CHECK(is_empty(&statuses[i]));
  OK(MPI_Testall(3, requests, &flag, statuses));
  CHECK(flag);
  OK(MPI_Waitany(3, requests, &index, &status));
  CHECK(index == MPI_UNDEFINED && is_empty(&status));
  index = 5, flag = 0;
  OK(MPI_Testany(3, requests, &index, &flag, &status));
  CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
  OK(MPI_Waitsome(3, requests, &count, indices, statuses));
  CHECK(count == MPI_UNDEFINED);
  count = 5;
  OK(MPI_Testsome(3, requests, &count, indices, statuses));
  CHECK(count == MPI_UNDEFINED);
  OK(MPI_Request_get_status(requests[1], &flag, &status));
  CHECK(flag && is_empty(&status));
  index = 5, flag = 0;
  OK(MPI_Request_get_status_any(3, requests, &index, &flag, &status));
  CHECK(flag && index == MPI_UNDEFINED && is_empty(&status));
  OK(MPI_Request_get_status_some(3, requests, &count, indices, statuses));
  CHECK(count == MPI_UNDEFINED);
  flag = 0;
  OK(MPI_Request_get_status_all(3, requests, &flag, statuses));
  CHECK(flag && is_empty(&statuses[0]));
  OK(MPI_Waitany(0, NULL, &index, &status));
  CHECK(index == MPI_UNDEFINED);
  OK(MPI_Waitsome(0, NULL, &count, indices, MPI_STATUSES_IGNORE));
  CHECK(count == MPI_UNDEFINED);
  OK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
  CHECK(flag);
  OK(MPI_Startall(0, NULL));
  FAILS(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
  FAILS(MPI_ERR_REQUEST, MPI_Cancel(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  CHECK(requests[1] == MPI_REQUEST_NULL);
  FAILS(MPI_ERR_ARG, MPI_Waitany(-1, requests, &index, &status));
  FAILS(MPI_ERR_ARG, MPI_Testsome(-1, requests, &count, indices, statuses));
  FAILS(MPI_ERR_ARG, MPI_Wait(NULL, &status));
  FAILS(MPI_ERR_ARG, MPI_Test(&requests[0], NULL, &status));
}

/* Some of several are there. */
static void partly(void) {
  MPI_Request requests[4], others[4];
  MPI_Status status, statuses[4];
  int in[4] = {-1, -1, -1, -1}, out[4] = {10, 11, 12, 13}, flag, index, count, indices[4], n;
  for (int i = 0; i < 4; i++)
    OK(MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]));
  OK(MPI_Cancel(&requests[2]));
  OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
  OK(MPI_Testall(4, requests, &flag, statuses));
  CHECK(!flag);
  OK(MPI_Testany(4, requests, &index, &flag, &status));
  CHECK(!flag && index == MPI_UNDEFINED);
  OK(MPI_Testsome(4, requests, &count, indices, statuses));
  CHECK(count == 0);
  OK(MPI_Request_get_status_any(4, requests, &index, &flag, &status));
  CHECK(!flag);
  OK(MPI_Request_get_status_some(4, requests, &count, indices, statuses));
  CHECK(count == 0);
  OK(MPI_Send(&out[3], 1, MPI_INT, 0, 3, MPI_COMM_SELF));
  memcpy(others, requests, sizeof others);
  do OK(MPI_Request_get_status_any(4, requests, &index, &flag, &status));
  while (!flag);
  CHECK(index == 3 && status.MPI_TAG == 3 && !memcmp(others, requests, sizeof others));
  OK(MPI_Request_get_status_some(4, requests, &count, indices, statuses));
  CHECK(count == 1 && indices[0] == 3 && statuses[0].MPI_TAG == 3 && requests[3] != MPI_REQUEST_NULL);
  OK(MPI_Request_get_status_all(4, requests, &flag, statuses));
  CHECK(!flag);
  /* All is all or nothing: no request is completed. */
  OK(MPI_Testall(4, requests, &flag, statuses));
  CHECK(!flag && requests[3] != MPI_REQUEST_NULL);
  OK(MPI_Waitany(4, requests, &index, &status));
  OK(MPI_Get_count(&status, MPI_INT, &n));
  CHECK(index == 3 && in[3] == 13 && n == 1 && requests[3] == MPI_REQUEST_NULL);
  OK(MPI_Send(&out[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF));
  OK(MPI_Send(&out[1], 1, MPI_INT, 0, 1, MPI_COMM_SELF));
  for (int done = 0; done < 2; done += count) {
    OK(MPI_Waitsome(4, requests, &count, indices, statuses));
    for (int i = 0; i < count; i++) CHECK(indices[i] < 2 && statuses[i].MPI_TAG == indices[i]);
  }
  CHECK(in[0] == 10 && in[1] == 11 && in[2] == -1);
}

/* Sends of every mode, blocking and with requests. */
static void modes(void) {
  int next = (me + 1) % size, before = (me + size - 1) % size, out[6], in[6];
  MPI_Request requests[12];
  char *attached, *detached;
  int bytes, length = 6 * (sizeof(int) + MPI_BSEND_OVERHEAD);
  attached = malloc(length);
  OK(MPI_Buffer_attach(attached, length));
  for (int i = 0; i < 6; i++) {
    out[i] = 10 * me + i, in[i] = -1;
    OK(MPI_Irecv(&in[i], 1, MPI_INT, before, i, MPI_COMM_WORLD, &requests[i]));
  }
  /* A ready send needs its receive. */
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Rsend(&out[0], 1, MPI_INT, next, 0, MPI_COMM_WORLD));
  OK(MPI_Irsend(&out[1], 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[7]));
  OK(MPI_Bsend(&out[2], 1, MPI_INT, next, 2, MPI_COMM_WORLD));
  OK(MPI_Ibsend(&out[3], 1, MPI_INT, next, 3, MPI_COMM_WORLD, &requests[8]));
  OK(MPI_Issend(&out[4], 1, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[9]));
  OK(MPI_Ssend(&out[5], 1, MPI_INT, next, 5, MPI_COMM_WORLD));
  requests[6] = MPI_REQUEST_NULL;
  OK(MPI_Waitall(10, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < 6; i++) CHECK(in[i] == 10 * before + i);
  OK(MPI_Buffer_detach(&detached, &bytes));
  CHECK(detached == attached && bytes == length);
  free(attached);
  /* To nobody, in every mode. */
  OK(MPI_Rsend(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  OK(MPI_Ssend(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  OK(MPI_Isend(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Issend(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Irsend(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2]));
  OK(MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]));
  MPI_Status statuses[4];
  OK(MPI_Waitall(4, requests, statuses));
  CHECK(statuses[3].MPI_SOURCE == MPI_PROC_NULL && statuses[3].MPI_TAG == MPI_ANY_TAG);
}

/* Persistent requests are started again, alone and together, and freed. */
static void persistent(void) {
  int next = (me + 1) % size, before = (me + size - 1) % size, out = -1, in = -1;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  OK(MPI_Send_init(&out, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Recv_init(&in, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &requests[1]));
  for (int round = 0; round < 5; round++) {
    out = 100 * round + me;
    OK(MPI_Startall(2, requests));
    if (round == 1) CHECK(MPI_Start(&requests[1]) != MPI_SUCCESS);
    OK(MPI_Waitall(2, requests, statuses));
    CHECK(in == 100 * round + before && statuses[1].MPI_SOURCE == before);
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  CHECK(requests[1] == MPI_REQUEST_NULL);
}

/* What comes in which order: by order of sending, whatever the receives ask for. */
static void order(void) {
  enum { MANY = 200 };
  int next = (me + 1) % size, before = (me + size - 1) % size, in[MANY];
  MPI_Request requests[2 * MANY];
  static int out[MANY];
  for (int i = 0; i < MANY; i++)
    OK(i % 3 ? MPI_Irecv(&in[i], 1, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[i])
             : MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]));
  for (int i = 0; i < MANY; i++) {
    out[i] = i;
    OK(MPI_Isend(&out[i], 1, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[MANY + i]));
  }
  OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < MANY; i++) CHECK(in[i] == i);
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  inactive();
  partly();
  modes();
  persistent();
  order();
  return end();
}
