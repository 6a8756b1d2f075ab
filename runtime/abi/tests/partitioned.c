/* Partitioned messages (MPI-5.0 section 4.2). Each rank sends to the next one, also to itself. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { ALL = 480, ROUNDS = 3 };

static int to, from;

static void fill(int *data, int round) {
  for (int i = 0; i < ALL; i++) data[i] = me * 10000 + round * 1000 + i;
}

static int is_filled(const int *data, int first, int count, int round) {
  for (int i = first; i < first + count; i++)
    if (data[i] != from * 10000 + round * 1000 + i) return 0;
  return 1;
}

/* Sender and receiver divide the same elements as they like. */
static void divided(int sent, int received) {
  int data[ALL] = {0}, room[ALL], flag;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  OK(MPI_Psend_init(data, sent, ALL / sent, MPI_INT, to, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
  OK(MPI_Precv_init(room, received, ALL / received, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  for (int round = 0; round < ROUNDS; round++) {
    fill(data, round);
    memset(room, -1, sizeof room);
    OK(MPI_Parrived(requests[1], 0, &flag));
    CHECK(flag);
    OK(MPI_Startall(2, requests));
    for (int i = sent; i-- > 0;) OK(MPI_Pready(i, requests[0]));
    for (int i = 0; i < received; i++) {
      do OK(MPI_Parrived(requests[1], i, &flag));
      while (!flag);
      CHECK(is_filled(room, i * (ALL / received), ALL / received, round));
    }
    OK(MPI_Waitall(2, requests, statuses));
    CHECK(statuses[1].MPI_SOURCE == from && statuses[1].MPI_TAG == 5);
    int count;
    OK(MPI_Get_count(&statuses[1], MPI_INT, &count));
    CHECK(count == ALL);
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
}

/* A part ends between two elements of the receiver's, whose type is another one. */
static void types(void) {
  int data[ALL] = {0}, room[2 * ALL];
  MPI_Request requests[2];
  MPI_Datatype vector, whole;
  OK(MPI_Type_vector(32, 1, 2, MPI_INT, &vector));
  OK(MPI_Type_create_resized(vector, 0, 64 * sizeof(int), &whole));
  OK(MPI_Type_commit(&whole));
  OK(MPI_Type_free(&vector));
  OK(MPI_Psend_init(data, 10, 48, MPI_INT, to, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
  OK(MPI_Precv_init(room, 5, 3, whole, from, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  OK(MPI_Type_free(&whole));
  for (int round = 0; round < ROUNDS; round++) {
    fill(data, round);
    memset(room, -1, sizeof room);
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready_range(0, 9, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < ALL; i++) {
      CHECK(room[2 * i] == from * 10000 + round * 1000 + i);
      CHECK(room[2 * i + 1] == -1);
    }
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
}

/* Matching is in the order of the calls that prepare, and apart from that of other messages. */
static void matching(void) {
  int one[2] = {me, me + 1}, two[2] = {me + 2, me + 3}, plain = me + 4, got[2], more[2], it;
  MPI_Request requests[4];
  OK(MPI_Psend_init(one, 2, 1, MPI_INT, to, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
  OK(MPI_Psend_init(two, 2, 1, MPI_INT, to, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  OK(MPI_Precv_init(got, 2, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]));
  OK(MPI_Precv_init(more, 1, 2, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]));
  OK(MPI_Start(&requests[3]));
  OK(MPI_Start(&requests[1]));
  int list[2] = {1, 0};
  OK(MPI_Pready_list(2, list, requests[1]));
  MPI_Request plainly;
  OK(MPI_Isend(&plain, 1, MPI_INT, to, 7, MPI_COMM_WORLD, &plainly));
  OK(MPI_Recv(&it, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(it == from + 4);
  OK(MPI_Wait(&plainly, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
  CHECK(more[0] == from + 2 && more[1] == from + 3);
  OK(MPI_Start(&requests[0]));
  OK(MPI_Start(&requests[2]));
  OK(MPI_Pready_range(0, 1, requests[0]));
  OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
  CHECK(got[0] == from && got[1] == from + 1);
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < 4; i++) OK(MPI_Request_free(&requests[i]));
}

/* Long partitions of several threads, while another thread waits. */
enum { THREADS = 4, LONG = 100000 };

static int *part_of_threads;
static MPI_Request of_threads;

static void *work(void *argument) {
  int number = (int)(size_t)argument;
  usleep(1000 * (unsigned)(THREADS - number));
  for (int i = 0; i < LONG; i++) part_of_threads[number * LONG + i] = me + number * LONG + i;
  OK(MPI_Pready(number, of_threads));
  return NULL;
}

static void threads(void) {
  part_of_threads = calloc(THREADS * LONG, sizeof(int));
  int *room = calloc(THREADS * LONG, sizeof(int));
  MPI_Request receive;
  pthread_t started[THREADS];
  CHECK(part_of_threads && room);
  OK(MPI_Psend_init(part_of_threads, THREADS, LONG, MPI_INT, to, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &of_threads));
  OK(MPI_Precv_init(room, THREADS, LONG, MPI_INT, from, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  for (int round = 0; round < ROUNDS; round++) {
    OK(MPI_Start(&receive));
    OK(MPI_Start(&of_threads));
    for (size_t i = 0; i < THREADS; i++) CHECK(pthread_create(&started[i], NULL, work, (void *)i) == 0);
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    MPI_Request active = of_threads;
    OK(MPI_Wait(&active, MPI_STATUS_IGNORE));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(started[i], NULL) == 0);
    for (int i = 0; i < THREADS * LONG; i++) CHECK(room[i] == from + i);
    memset(room, 0, sizeof(int) * THREADS * LONG);
  }
  OK(MPI_Request_free(&of_threads));
  OK(MPI_Request_free(&receive));
  free(part_of_threads), free(room);
}

/* The receiver waits for one partition before the sender makes the next one ready. */
static void in_turn(void) {
  int data[2] = {1, 2}, room[2] = {0, 0}, flag = 0;
  MPI_Request send, receive;
  OK(MPI_Psend_init(data, 2, 1, MPI_INT, to, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(room, 2, 1, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  OK(MPI_Start(&send));
  OK(MPI_Start(&receive));
  OK(MPI_Pready(1, send));
  while (!flag) OK(MPI_Parrived(receive, 1, &flag));
  CHECK(room[1] == 2);
  OK(MPI_Parrived(receive, 0, &flag));
  CHECK(!flag);
  OK(MPI_Test(&send, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Pready(0, send));
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  CHECK(room[0] == 1);
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

/* Partitions without elements arrive as well, once they are ready. */
static void empty(void) {
  int flag;
  MPI_Request send, receive;
  OK(MPI_Psend_init(NULL, 2, 0, MPI_INT, to, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(NULL, 2, 0, MPI_INT, from, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  OK(MPI_Start(&receive));
  OK(MPI_Parrived(receive, 0, &flag));
  CHECK(!flag);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Start(&send));
  OK(MPI_Pready_range(0, 1, send));
  do OK(MPI_Parrived(receive, 1, &flag));
  while (!flag);
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

static void refused(void) {
  int data[4] = {0}, flag;
  MPI_Request send, receive, other;
  MPI_Status status;
  OK(MPI_Psend_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, send));
  OK(MPI_Start(&send));
  OK(MPI_Start(&receive));
  FAILS(MPI_ERR_ARG, MPI_Pready(2, send));
  FAILS(MPI_ERR_ARG, MPI_Pready(-1, send));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, receive));
  FAILS(MPI_ERR_REQUEST, MPI_Parrived(send, 0, &flag));
  FAILS(MPI_ERR_ARG, MPI_Parrived(receive, 2, &flag));
  OK(MPI_Pready_range(0, 1, send));
  FAILS(MPI_ERR_ARG, MPI_Pready(1, send));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&receive, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  OK(MPI_Send_init(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &other));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, other));
  OK(MPI_Request_free(&other));
  other = MPI_REQUEST_NULL;
  OK(MPI_Parrived(other, 0, &flag));
  CHECK(flag);
  FAILS(MPI_ERR_ARG, MPI_Psend_init(data, -1, 1, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  FAILS(MPI_ERR_RANK, MPI_Precv_init(data, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  FAILS(MPI_ERR_TAG, MPI_Psend_init(data, 1, 1, MPI_INT, to, -2, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  FAILS(MPI_ERR_RANK, MPI_Psend_init(data, 1, 1, MPI_INT, size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));

  /* Both ends give other numbers of elements. The next round of other requests isn't disturbed. */
  OK(MPI_Psend_init(data, 2, 2, MPI_INT, to, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(data, 3, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  OK(MPI_Start(&receive));
  OK(MPI_Start(&send));
  OK(MPI_Pready_range(0, 1, send));
  FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&receive, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

/* A communicator that is freed goes on in its requests. */
static void freed(void) {
  int data = me, room = -1;
  MPI_Comm comm;
  MPI_Request requests[2];
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Psend_init(&data, 1, 1, MPI_INT, to, 0, comm, MPI_INFO_NULL, &requests[0]));
  OK(MPI_Precv_init(&room, 1, 1, MPI_INT, from, 0, comm, MPI_INFO_NULL, &requests[1]));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Startall(2, requests));
  OK(MPI_Pready(0, requests[0]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(room == from);
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
}

int main(int argc, char **argv) {
  int provided;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  to = (me + 1) % size, from = (me + size - 1) % size;
  int numbers[] = {1, 2, 3, 8, 10, 480};
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 6; j++) divided(numbers[i], numbers[j]);
  types();
  matching();
  threads();
  in_turn();
  empty();
  refused();
  freed();
  return end();
}
