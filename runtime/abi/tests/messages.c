/* Messages: blocking sends and receives, probes, and their edge cases (MPI-5.0 chapter 3). */
#include "check.h"

/* Each rank sends to the next, and receives from the one before. */
static void ring(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size;
    int out[3] = {me, me + 1, me + 2}, in[5] = {-1, -1, -1, -1, -1}, count;
    MPI_Status status;
    OK(MPI_Sendrecv(out, 3, MPI_INT, next, 7, in, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                    MPI_COMM_WORLD, &status));
    CHECK(in[0] == before && in[2] == before + 2 && in[3] == -1);
    CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 7);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 3);
    MPI_Count large;
    OK(MPI_Get_count_c(&status, MPI_INT, &large));
    CHECK(large == 3);

    /* Longer than what is sent at once. */
    int n = 300000, *long_out = malloc(n * sizeof(int)), *long_in = malloc(n * sizeof(int));
    for (int i = 0; i < n; i++)
        long_out[i] = me * n + i;
    OK(MPI_Sendrecv(long_out, n, MPI_INT, next, 0, long_in, n, MPI_INT, before, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(long_in[0] == before * n && long_in[n - 1] == before * n + n - 1);
    OK(MPI_Sendrecv_replace(long_out, n, MPI_INT, next, 1, before, 1, MPI_COMM_WORLD, &status));
    CHECK(memcmp(long_out, long_in, n * sizeof(int)) == 0 && status.MPI_SOURCE == before);
    free(long_out);
    free(long_in);
}

static void replace_strided(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size;
    MPI_Datatype even;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &even));
    OK(MPI_Type_commit(&even));
    int data[6] = {me, -1, me, -2, me, -3};
    OK(MPI_Sendrecv_replace(data, 1, even, next, 0, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(data[0] == before && data[1] == -1 && data[4] == before && data[5] == -3);
    OK(MPI_Type_free(&even));
}

static void null_process(void)
{
    int value = 5, count;
    MPI_Status status;
    OK(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(value == 5 && count == 0);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Message message;
    OK(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(&value, 1, MPI_INT, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL);
    int flag = 0;
    OK(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
    CHECK(flag && message == MPI_MESSAGE_NO_PROC);
    MPI_Request request;
    OK(MPI_Imrecv(&value, 1, MPI_INT, &message, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == MPI_PROC_NULL);
}

static void probes(void)
{
    double out[3] = {0.5, 1.5, 2.5}, in[3];
    int count, flag;
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    OK(MPI_Iprobe(0, 9, MPI_COMM_SELF, &flag, &status));
    CHECK(!flag);
    OK(MPI_Send(out, 3, MPI_DOUBLE, 0, 9, MPI_COMM_SELF));
    OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &status));
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == 3 && status.MPI_SOURCE == 0 && status.MPI_TAG == 9);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == 24);
    OK(MPI_Iprobe(0, 9, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    CHECK(flag);
    OK(MPI_Mprobe(0, 9, MPI_COMM_SELF, &message, &status));
    /* The message is taken: no other probe finds it. */
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &status));
    CHECK(!flag);
    OK(MPI_Mrecv(in, 3, MPI_DOUBLE, &message, &status));
    CHECK(in[2] == 2.5 && message == MPI_MESSAGE_NULL);
    FAILS(MPI_ERR_REQUEST, MPI_Mrecv(in, 3, MPI_DOUBLE, &message, &status));
    OK(MPI_Send(out, 2, MPI_DOUBLE, 0, 9, MPI_COMM_SELF));
    do
        OK(MPI_Improbe(0, 9, MPI_COMM_SELF, &flag, &message, &status));
    while (!flag);
    OK(MPI_Imrecv(in, 3, MPI_DOUBLE, &message, &request));
    CHECK(message == MPI_MESSAGE_NULL);
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == 2 && request == MPI_REQUEST_NULL);
}

static void counts(void)
{
    /* No elements, at no address. */
    MPI_Status status;
    int count, pair[2] = {1, 2}, in[4];
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 0);
    /* A part of an element. */
    MPI_Datatype three;
    OK(MPI_Type_contiguous(3, MPI_INT, &three));
    OK(MPI_Type_commit(&three));
    OK(MPI_Send(pair, 2, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(in, 1, three, 0, 0, MPI_COMM_SELF, &status));
    OK(MPI_Get_count(&status, three, &count));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, three, &count));
    CHECK(count == 2 && in[1] == 2);
    /* More than 2^31 elements that have no data. */
    MPI_Datatype nothing;
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    OK(MPI_Send_c(pair, (MPI_Count)1 << 40, nothing, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv_c(in, (MPI_Count)1 << 40, nothing, 0, 0, MPI_COMM_SELF, &status));
    /* Absolute addresses. */
    MPI_Aint at;
    OK(MPI_Get_address(&in[2], &at));
    MPI_Datatype there;
    OK(MPI_Type_create_hindexed(1, (int[]){2}, &at, MPI_INT, &there));
    OK(MPI_Type_commit(&there));
    OK(MPI_Send(pair, 2, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(MPI_BOTTOM, 1, there, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    CHECK(in[2] == 1 && in[3] == 2);
    OK(MPI_Type_free(&there));
    OK(MPI_Type_free(&nothing));
    OK(MPI_Type_free(&three));
}

static void errors(void)
{
    int value = 0;
    MPI_Status status;
    MPI_Datatype uncommitted;
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    FAILS(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, uncommitted, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_SELF));
    FAILS(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL));
    FAILS(MPI_ERR_BUFFER, MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_INT, 5, 0, MPI_COMM_SELF, &status));
    FAILS(MPI_ERR_RANK, MPI_Probe(5, 0, MPI_COMM_SELF, &status));
    OK(MPI_Type_free(&uncommitted));
    /* A freed type and a freed communicator. */
    MPI_Datatype freed_type;
    OK(MPI_Type_contiguous(2, MPI_INT, &freed_type));
    OK(MPI_Type_commit(&freed_type));
    MPI_Datatype old_type = freed_type;
    OK(MPI_Type_free(&freed_type));
    FAILS(MPI_ERR_TYPE, MPI_Send(&value, 1, old_type, 0, 0, MPI_COMM_SELF));
    MPI_Comm dup;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    MPI_Comm old = dup;
    OK(MPI_Comm_free(&dup));
    FAILS(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, 0, 0, old));
    /* A message that is too long, after which others arrive. */
    int two[2] = {8, 9};
    OK(MPI_Send(two, 2, MPI_INT, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &status));
    OK(MPI_Send(two, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &status));
    CHECK(value == 8);
}

/* Messages of the null process have no elements, so their type may be null. */
static void typeless(void) {
  MPI_Status status;
  MPI_Request requests[4];
  MPI_Message message;
  MPI_Datatype none = MPI_DATATYPE_NULL;
  int flag;
  OK(MPI_Recv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  OK(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  OK(MPI_Bsend(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  OK(MPI_Sendrecv(NULL, 0, none, MPI_PROC_NULL, 0, NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
  OK(MPI_Sendrecv_replace(NULL, 0, none, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
  OK(MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, &status));
  OK(MPI_Mrecv(NULL, 0, none, &message, &status));
  OK(MPI_Irecv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Recv_init(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2]));
  OK(MPI_Ssend_init(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]));
  OK(MPI_Startall(2, requests + 2));
  OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
  OK(MPI_Request_free(&requests[2]));
  OK(MPI_Request_free(&requests[3]));
  FAILS(MPI_ERR_TYPE, MPI_Recv(NULL, 0, none, me, 0, MPI_COMM_WORLD, &status));
  FAILS(MPI_ERR_TYPE, MPI_Isend(NULL, 0, none, me, 0, MPI_COMM_WORLD, &requests[0]));
  FAILS(MPI_ERR_TYPE, MPI_Recv_init(NULL, 0, none, me, 0, MPI_COMM_WORLD, &requests[0]));
  FAILS(MPI_ERR_TYPE, MPI_Sendrecv_replace(NULL, 0, none, MPI_PROC_NULL, 0, me, 0, MPI_COMM_WORLD, &status));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    ring();
    replace_strided();
    null_process();
    probes();
    counts();
    errors();
    typeless();
    return end();
}
