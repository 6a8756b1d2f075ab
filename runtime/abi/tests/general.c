/* Generalized requests: operations that the program carries out (MPI-5.0 section 13.2). */
#include <pthread.h>

#include "check.h"

typedef struct {
  int queries, frees, cancels, fails, complete;
  MPI_Request request;
} Work;

static int query(void *extra, MPI_Status *status) {
  Work *work = extra;
  work->queries++;
  OK(MPI_Status_set_elements(status, MPI_INT, 3));
  OK(MPI_Status_set_cancelled(status, work->cancels > 0));
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = 42;
  return work->fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int release(void *extra) {
  ((Work *)extra)->frees++;
  return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
  Work *work = extra;
  work->cancels++;
  work->complete = complete;
  return MPI_SUCCESS;
}

static void begin_work(Work *work) {
  memset(work, 0, sizeof *work);
  OK(MPI_Grequest_start(query, release, cancel, work, &work->request));
}

static void *finish(void *work) {
  OK(MPI_Grequest_complete(((Work *)work)->request));
  return NULL;
}

static void alone(void) {
  Work work;
  MPI_Status status;
  int flag = 1, count;
  begin_work(&work);
  OK(MPI_Test(&work.request, &flag, &status));
  CHECK(!flag && work.queries == 0);
  OK(MPI_Grequest_complete(work.request));
  OK(MPI_Request_get_status(work.request, &flag, &status));
  CHECK(flag && work.queries == 1 && work.frees == 0 && status.MPI_TAG == 42);
  OK(MPI_Wait(&work.request, &status));
  CHECK(work.request == MPI_REQUEST_NULL && work.queries == 2 && work.frees == 1);
  OK(MPI_Get_count(&status, MPI_INT, &count));
  CHECK(count == 3 && status.MPI_TAG == 42 && status.MPI_SOURCE == MPI_UNDEFINED);
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(!flag);
}

static void refused(void) {
  Work work;
  MPI_Request null = MPI_REQUEST_NULL;
  int number;
  begin_work(&work);
  work.fails = 1;
  OK(MPI_Grequest_complete(work.request));
  /* The call returns the very code that the function returned. */
  CHECK(MPI_Wait(&work.request, MPI_STATUS_IGNORE) == MPI_ERR_OTHER);
  CHECK(work.frees == 1 && work.request == MPI_REQUEST_NULL);
  FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(null));
  begin_work(&work);
  work.fails = 1;
  OK(MPI_Grequest_complete(work.request));
  MPI_Status status;
  CHECK(MPI_Waitall(1, &work.request, &status) == MPI_ERR_IN_STATUS);
  CHECK(status.MPI_ERROR == MPI_ERR_OTHER);
  MPI_Request receive;
  OK(MPI_Irecv(&number, 1, MPI_INT, me, 0, MPI_COMM_WORLD, &receive));
  FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(receive));
  OK(MPI_Cancel(&receive));
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
}

static void ended_early(void) {
  Work work;
  MPI_Status status;
  int flag;
  begin_work(&work);
  MPI_Request copy = work.request;
  OK(MPI_Cancel(&work.request));
  CHECK(work.cancels == 1 && !work.complete);
  OK(MPI_Grequest_complete(copy));
  OK(MPI_Cancel(&work.request));
  CHECK(work.complete);
  OK(MPI_Wait(&work.request, &status));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(flag);
  /* A complete operation is freed with its request, without a query. */
  begin_work(&work);
  OK(MPI_Grequest_complete(work.request));
  OK(MPI_Request_free(&work.request));
  CHECK(work.request == MPI_REQUEST_NULL && work.frees == 1 && work.queries == 0);
}

/* Another thread ends the operation while this one waits. */
static void mixed(void) {
  for (int way = 0; way < 3; way++) {
    Work work;
    pthread_t thread;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int number = -1, index, next = (me + 1) % size, before = (me + size - 1) % size;
    begin_work(&work);
    OK(MPI_Irecv(&number, 1, MPI_INT, before, way, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&me, 1, MPI_INT, next, way, MPI_COMM_WORLD, &requests[2]));
    requests[1] = work.request;
    CHECK(pthread_create(&thread, NULL, finish, &work) == 0);
    switch (way) {
    case 0:
      OK(MPI_Waitall(3, requests, statuses));
      CHECK(statuses[1].MPI_TAG == 42 && statuses[0].MPI_TAG == 0);
      break;
    case 1:
      for (int i = 0; i < 3; i++)
        OK(MPI_Waitany(3, requests, &index, &statuses[0]));
      OK(MPI_Waitany(3, requests, &index, &statuses[0]));
      CHECK(index == MPI_UNDEFINED);
      break;
    default:
      OK(MPI_Wait(&requests[1], &statuses[1]));
      OK(MPI_Waitall(3, requests, statuses));
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(number == before && work.queries == 1 && work.frees == 1);
  }
}

static MPI_Request other;

/* A function of the program may use the other requests of the call that runs it. */
static int query_other(void *extra, MPI_Status *status) {
  int flag = 1;
  OK(MPI_Request_get_status(other, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Cancel(&other));
  return query(extra, status);
}

static void uses_another(void) {
  for (int way = 0; way < 3; way++) {
    Work work;
    MPI_Request requests[2];
    int number, indices[2], count = 1;
    memset(&work, 0, sizeof work);
    OK(MPI_Irecv(&number, 1, MPI_INT, me, 7, MPI_COMM_WORLD, &requests[0]));
    other = requests[0];
    OK(MPI_Grequest_start(query_other, release, cancel, &work, &requests[1]));
    OK(MPI_Grequest_complete(requests[1]));
    switch (way) {
    case 0:
      OK(MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE));
      break;
    case 1:
      OK(MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE));
      break;
    default:
      OK(MPI_Waitany(2, requests, indices, MPI_STATUS_IGNORE));
    }
    CHECK(count == 1 && indices[0] == 1 && requests[1] == MPI_REQUEST_NULL && work.frees == 1);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
  }
}

int main(int argc, char **argv) {
  int provided;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  alone();
  refused();
  ended_early();
  mixed();
  uses_another();
  return end();
}
