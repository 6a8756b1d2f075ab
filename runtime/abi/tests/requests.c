/* Requests: their completion in all versions, freeing and cancelling (MPI-5.0 section 3.7). */
#include "check.h"

static void each_to_each(void)
{
    MPI_Request *requests = malloc(2 * size * sizeof(MPI_Request));
    MPI_Status *statuses = malloc(2 * size * sizeof(MPI_Status));
    int *in = malloc(size * 2000 * sizeof(int)), *out = malloc(2000 * sizeof(int)), count;
    for (int i = 0; i < 2000; i++)
        out[i] = me;
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Irecv(in + 2000 * peer, 2000, MPI_INT, peer, 4, MPI_COMM_WORLD, &requests[peer]));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Isend(out, 2000, MPI_INT, peer, 4, MPI_COMM_WORLD, &requests[size + peer]));
    OK(MPI_Waitall(2 * size, requests, statuses));
    for (int peer = 0; peer < size; peer++) {
        CHECK(requests[peer] == MPI_REQUEST_NULL && requests[size + peer] == MPI_REQUEST_NULL);
        CHECK(in[2000 * peer] == peer && in[2000 * peer + 1999] == peer);
        CHECK(statuses[peer].MPI_SOURCE == peer && statuses[peer].MPI_TAG == 4);
        OK(MPI_Get_count(&statuses[peer], MPI_INT, &count));
        CHECK(count == 2000);
    }
    /* By any, until none is left. */
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Irecv(in + peer, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, &requests[peer]));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Send(&me, 1, MPI_INT, peer, 5, MPI_COMM_WORLD));
    int index, seen = 0;
    MPI_Status status;
    for (;;) {
        OK(MPI_Waitany(size, requests, &index, &status));
        if (index == MPI_UNDEFINED)
            break;
        CHECK(status.MPI_SOURCE == index && in[index] == index);
        seen++;
    }
    CHECK(seen == size && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    /* By some. */
    int *indices = malloc(size * sizeof(int)), number, flag;
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Irecv(in + peer, 1, MPI_INT, peer, 6, MPI_COMM_WORLD, &requests[peer]));
    for (int peer = 0; peer < size; peer++)
        OK(MPI_Isend(&me, 1, MPI_INT, peer, 6, MPI_COMM_WORLD, &requests[size + peer]));
    for (seen = 0; seen < size; seen += number) {
        OK(MPI_Waitsome(size, requests, &number, indices, statuses));
        CHECK(number >= 1 && number <= size);
        for (int i = 0; i < number; i++)
            CHECK(statuses[i].MPI_SOURCE == indices[i] && in[indices[i]] == indices[i]);
    }
    OK(MPI_Waitsome(size, requests, &number, indices, MPI_STATUSES_IGNORE));
    CHECK(number == MPI_UNDEFINED);
    do
        OK(MPI_Testall(2 * size, requests, &flag, MPI_STATUSES_IGNORE));
    while (!flag);
    OK(MPI_Testsome(2 * size, requests, &number, indices, statuses));
    CHECK(number == MPI_UNDEFINED);
    OK(MPI_Testany(2 * size, requests, &index, &flag, &status));
    CHECK(flag && index == MPI_UNDEFINED);
    free(indices);
    free(out);
    free(in);
    free(statuses);
    free(requests);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void null_requests(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int flag = 0, count = 5;
    memset(&status, 0x55, sizeof status);
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(flag && count == 0);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(flag);
    /* Statuses of no operation are written with their error. */
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_ERROR == MPI_SUCCESS);
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Testany(1, &request, &count, &flag, &status));
    CHECK(status.MPI_ERROR == MPI_SUCCESS && flag && count == MPI_UNDEFINED);
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Request_get_status_any(1, &request, &count, &flag, &status));
    CHECK(status.MPI_ERROR == MPI_SUCCESS && flag && count == MPI_UNDEFINED);
    /* Others keep the error that the program has there. */
    status.MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Isend(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_ERROR == MPI_ERR_OTHER);
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&request));
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&request));
    FAILS(MPI_ERR_ARG, MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE));
    FAILS(MPI_ERR_ARG, MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE));
}

static void one_by_one(void)
{
    MPI_Request request, old;
    MPI_Status status;
    int flag, in = 0, out = 7, count;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(!flag && request != MPI_REQUEST_NULL);
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(!flag);
    OK(MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF));
    do
        OK(MPI_Request_get_status(request, &flag, &status));
    while (!flag);
    /* The request is still there. */
    CHECK(request != MPI_REQUEST_NULL && in == 7 && status.MPI_TAG == 1);
    old = request;
    OK(MPI_Test(&request, &flag, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(flag && request == MPI_REQUEST_NULL && count == 1);
    FAILS(MPI_ERR_REQUEST, MPI_Wait(&old, &status));

    /* A pair of one call. */
    OK(MPI_Isendrecv(&out, 1, MPI_INT, 0, 2, &in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_TAG == 2 && status.MPI_SOURCE == 0);

    /* A synchronous send isn't complete before a receive has matched it. */
    OK(MPI_Issend(&out, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &request));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(!flag);
    OK(MPI_Recv(&in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &status));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 2, MPI_COMM_SELF, &request));
    OK(MPI_Ssend(&out, 1, MPI_INT, 0, 2, MPI_COMM_SELF));
    OK(MPI_Wait(&request, &status));

    /* Cancelled, so that a later message goes to another receive. */
    in = 0;
    int other = 0;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag && request == MPI_REQUEST_NULL);
    OK(MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF));
    OK(MPI_Recv(&other, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &status));
    CHECK(other == 7 && in == 0);
    /* Cancelled too late: the message is there. */
    OK(MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF));
    OK(MPI_Probe(0, 3, MPI_COMM_SELF, &status));
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag && in == 7);
}

static void freed_while_in_use(void)
{
    MPI_Request request;
    MPI_Status status;
    MPI_Comm dup;
    static int long_out[200000], long_in[200000];
    int next = (me + 1) % size, before = (me + size - 1) % size, flag, done = 0;
    for (int i = 0; i < 200000; i++)
        long_out[i] = me + i;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    /* A receive goes on when its request is freed. */
    OK(MPI_Irecv(long_in, 200000, MPI_INT, before, 0, dup, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Isend(long_out, 200000, MPI_INT, next, 0, dup, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* Messages don't overtake each other, so the long one is there when this one is. */
    OK(MPI_Send(&me, 1, MPI_INT, next, 0, dup));
    OK(MPI_Recv(&done, 1, MPI_INT, before, 0, dup, &status));
    CHECK(done == before);
    /* Calls make progress until the last element is there. */
    while (((volatile int *)long_in)[199999] != before + 199999)
        OK(MPI_Iprobe(0, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    CHECK(long_in[0] == before && long_in[199999] == before + 199999);
    /* The communicator and the type of a request may be freed before it completes. */
    MPI_Datatype pair;
    MPI_Request requests[2];
    int in[2] = {-1, -1}, out[2] = {me, me};
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Irecv(in, 1, pair, before, 1, dup, &requests[0]));
    OK(MPI_Isend(out, 1, pair, next, 1, dup, &requests[1]));
    OK(MPI_Type_free(&pair));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in[0] == before && in[1] == before);
}

static void failures(void)
{
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int in[3] = {-1, -1, -1}, two[2] = {5, 6}, class, index, flag, number, indices[3];
    /* The second message is too long for its receive. */
    for (int round = 0; round < 4; round++) {
        OK(MPI_Irecv(&in[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]));
        OK(MPI_Irecv(&in[1], 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]));
        requests[2] = MPI_REQUEST_NULL;
        OK(MPI_Send(two, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
        OK(MPI_Send(two, 2, MPI_INT, 0, 1, MPI_COMM_SELF));
        if (round == 0) {
            FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(3, requests, statuses));
        } else if (round == 1) {
            /* One alone may be there first. */
            do
                OK(MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE));
            while (!flag);
            FAILS(MPI_ERR_IN_STATUS, MPI_Waitsome(3, requests, &number, indices, statuses));
            CHECK(number == 2 && indices[0] == 0 && indices[1] == 1);
        } else if (round == 2) {
            OK(MPI_Wait(&requests[0], &statuses[0]));
            FAILS(MPI_ERR_TRUNCATE, MPI_Waitany(3, requests, &index, &statuses[1]));
            CHECK(index == 1 && requests[1] == MPI_REQUEST_NULL);
            continue;
        } else {
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
            CHECK(requests[1] == MPI_REQUEST_NULL);
            continue;
        }
        CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && in[0] == 5);
        OK(MPI_Error_class(statuses[1].MPI_ERROR, &class));
        CHECK(class == MPI_ERR_TRUNCATE && requests[1] == MPI_REQUEST_NULL);
    }
    /* One request twice in an array. */
    OK(MPI_Irecv(&in[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]));
    requests[1] = requests[0];
    FAILS(MPI_ERR_REQUEST, MPI_Waitall(2, requests, statuses));
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
}

/* Short sends are complete at once, and may share one request. Each call takes such an array. */
static void short_sends(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size, flag, index, number, indices[5];
    int got = -1, *in = malloc(100000 * sizeof(int)), *out = calloc(100000, sizeof(int));
    MPI_Request all[5];
    MPI_Status statuses[5], status;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 4; i++)
            OK(MPI_Isend(&me, 1, MPI_INT, next, 10 + i, MPI_COMM_WORLD, &all[i]));
        OK(MPI_Irecv(&got, 1, MPI_INT, before, 14, MPI_COMM_WORLD, &all[4]));
        OK(MPI_Request_get_status(all[0], &flag, &status));
        CHECK(flag && all[0] != MPI_REQUEST_NULL);
        OK(MPI_Cancel(&all[1]));
        OK(MPI_Request_free(&all[2]));
        CHECK(all[2] == MPI_REQUEST_NULL && all[3] != MPI_REQUEST_NULL);
        if (round == 0) {
            OK(MPI_Testall(5, all, &flag, statuses));
            CHECK(!flag && all[0] != MPI_REQUEST_NULL);
            OK(MPI_Testsome(5, all, &number, indices, statuses));
            CHECK(number == 3 && indices[0] == 0 && indices[1] == 1 && indices[2] == 3);
        } else if (round == 1) {
            OK(MPI_Waitany(5, all, &index, &status));
            CHECK(index == 0 && all[0] == MPI_REQUEST_NULL && all[1] != MPI_REQUEST_NULL);
            OK(MPI_Get_count(&status, MPI_INT, &number));
            OK(MPI_Test_cancelled(&status, &flag));
            CHECK(number == 0 && !flag);
        } else if (round == 2) {
            OK(MPI_Wait(&all[3], &status));
            OK(MPI_Test(&all[1], &flag, MPI_STATUS_IGNORE));
            CHECK(flag && all[3] == MPI_REQUEST_NULL && all[1] == MPI_REQUEST_NULL);
        }
        /* No receive is complete before. */
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Send(&round, 1, MPI_INT, next, 14, MPI_COMM_WORLD));
        OK(MPI_Waitall(5, all, round % 2 ? statuses : MPI_STATUSES_IGNORE));
        for (int i = 0; i < 5; i++)
            CHECK(all[i] == MPI_REQUEST_NULL);
        CHECK(got == round);
        for (int i = 0; i < 4; i++) {
            OK(MPI_Recv(&got, 1, MPI_INT, before, 10 + i, MPI_COMM_WORLD, &status));
            CHECK(got == before);
        }
    }
    /* Beside a send that waits for its receiver. */
    OK(MPI_Isend(&me, 1, MPI_INT, next, 15, MPI_COMM_WORLD, &all[0]));
    OK(MPI_Isend(out, 100000, MPI_INT, next, 16, MPI_COMM_WORLD, &all[1]));
    OK(MPI_Irecv(in, 100000, MPI_INT, before, 16, MPI_COMM_WORLD, &all[2]));
    OK(MPI_Irecv(&got, 1, MPI_INT, before, 15, MPI_COMM_WORLD, &all[3]));
    OK(MPI_Waitall(4, all, statuses));
    CHECK(got == before && in[99999] == 0 && statuses[2].MPI_SOURCE == before);
    OK(MPI_Isendrecv(&me, 1, MPI_INT, next, 17, &got, 1, MPI_INT, before, 17, MPI_COMM_WORLD, all));
    OK(MPI_Wait(all, &status));
    CHECK(got == before && status.MPI_SOURCE == before && status.MPI_TAG == 17);
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    null_requests();
    short_sends();
    one_by_one();
    each_to_each();
    freed_while_in_use();
    failures();
    return end();
}
