/* Persistent messages (MPI-5.0 section 3.9), and the immediate exchange in place. */
#include "check.h"

enum { LONG = 5000, ROUNDS = 20 };

static void rounds(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size, done;
    int *out = malloc(LONG * sizeof(int)), *in = malloc(LONG * sizeof(int));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Recv_init(in, LONG, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Send_init(out, LONG, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]));
    /* Inactive requests are complete, and stay. */
    OK(MPI_Waitall(2, requests, statuses));
    CHECK(requests[0] != MPI_REQUEST_NULL && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
    OK(MPI_Waitany(2, requests, &done, statuses));
    CHECK(done == MPI_UNDEFINED);
    OK(MPI_Test(&requests[0], &done, statuses));
    CHECK(done);
    for (int round = 0; round < ROUNDS; round++) {
        out[0] = out[LONG - 1] = 100 * me + round;
        if (round % 2)
            OK(MPI_Startall(2, requests));
        else {
            OK(MPI_Start(&requests[0]));
            OK(MPI_Start(&requests[1]));
        }
        FAILS(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
        OK(MPI_Waitall(2, requests, statuses));
        CHECK(in[0] == 100 * before + round && in[LONG - 1] == in[0]);
        CHECK(statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == 1);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    CHECK(requests[0] == MPI_REQUEST_NULL);
    free(in);
    free(out);
}

static void modes(void)
{
    char room[4096];
    int value = 1, in = 0, length;
    void *back;
    MPI_Request sends[4], receive;
    MPI_Datatype pair;
    OK(MPI_Buffer_attach(room, sizeof room));
    OK(MPI_Send_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &sends[0]));
    OK(MPI_Ssend_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &sends[1]));
    OK(MPI_Bsend_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &sends[2]));
    OK(MPI_Rsend_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &sends[3]));
    OK(MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &receive));
    for (int mode = 0; mode < 4; mode++) {
        value = 10 + mode;
        OK(MPI_Start(&receive));
        OK(MPI_Start(&sends[mode]));
        OK(MPI_Wait(&sends[mode], MPI_STATUS_IGNORE));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        CHECK(in == 10 + mode);
    }
    OK(MPI_Buffer_detach(&back, &length));
    /* An active receive is cancelled, and can be started again. */
    MPI_Status status;
    int cancelled;
    OK(MPI_Start(&receive));
    OK(MPI_Cancel(&receive));
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled && receive != MPI_REQUEST_NULL);
    /* A freed request goes on. */
    OK(MPI_Start(&receive));
    OK(MPI_Request_free(&receive));
    OK(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
    for (int mode = 0; mode < 4; mode++)
        OK(MPI_Request_free(&sends[mode]));
    /* The type and the communicator of a request may be freed before it is. */
    MPI_Comm dup;
    MPI_Request both[2];
    int two[2] = {4, 5}, room_for_two[2];
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Send_init(two, 1, pair, 0, 0, dup, &both[0]));
    OK(MPI_Recv_init(room_for_two, 1, pair, 0, 0, dup, &both[1]));
    OK(MPI_Type_free(&pair));
    OK(MPI_Startall(2, both));
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(room_for_two[1] == 5);
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    OK(MPI_Comm_free(&dup));
    /* The null process. */
    OK(MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &receive));
    OK(MPI_Start(&receive));
    OK(MPI_Wait(&receive, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    OK(MPI_Request_free(&receive));
}

static void errors(void)
{
    int value = 0, room;
    MPI_Request request = MPI_REQUEST_NULL;
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Irecv(&room, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&request));
    OK(MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TYPE, MPI_Send_init(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_COMM, MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &request));
    FAILS(MPI_ERR_BUFFER, MPI_Send_init(NULL, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
    /* A wrong rank or tag is refused by the call that has it, not by a later start. */
    FAILS(MPI_ERR_RANK, MPI_Send_init(&value, 1, MPI_INT, 1, 0, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_RANK, MPI_Bsend_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_RANK, MPI_Recv_init(&value, 1, MPI_INT, -9, 0, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_TAG, MPI_Ssend_init(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_TAG, MPI_Recv_init(&value, 1, MPI_INT, 0, -9, MPI_COMM_SELF, &request));
    OK(MPI_Startall(0, NULL));
}

/* Both messages have the same memory, and both ranks begin at once. */
static void replace(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size;
    int *data = malloc(LONG * sizeof(int));
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < LONG; i++)
        data[i] = me;
    OK(MPI_Isendrecv_replace(data, LONG, MPI_INT, next, 2, before, 2, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_SOURCE == before && data[0] == before && data[LONG - 1] == before);
    OK(MPI_Isendrecv_replace(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                             &request));
    OK(MPI_Wait(&request, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && data[0] == before);
    free(data);
}

static void duplicate(void)
{
    int result;
    MPI_Comm dup, with_info;
    MPI_Request requests[2];
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &requests[0]));
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &with_info, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Comm_compare(dup, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Barrier(with_info));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&with_info));
    FAILS(MPI_ERR_COMM, MPI_Comm_idup(MPI_COMM_NULL, &dup, &requests[0]));
}

/* Rank 0 starts a duplicate before it sends the message for which the others wait before theirs. */
static void duplicate_in_any_order(void)
{
    int rank, flag = 0, token = 7;
    MPI_Comm dup;
    MPI_Request request;
    if (me == 0) {
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request));
        /* The handle has an error handler from the start. */
        OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
        if (size > 1) {
            FAILS(MPI_ERR_COMM, MPI_Comm_rank(dup, &rank));
            MPI_Comm copy = dup;
            FAILS(MPI_ERR_COMM, MPI_Comm_free(&copy));
            FAILS(MPI_ERR_REQUEST, MPI_Request_free(&request));
            OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
        }
        for (int to = 1; to < size; to++)
            OK(MPI_Send(&token, 1, MPI_INT, to, 3, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_rank(dup, &rank));
    CHECK(rank == me);
    if (me == 0) {
        MPI_Errhandler handler;
        OK(MPI_Comm_get_errhandler(dup, &handler));
        CHECK(handler == MPI_ERRORS_RETURN);
        OK(MPI_Errhandler_free(&handler));
    }
    OK(MPI_Comm_free(&dup));
}

static int refuse_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_ERR_OTHER;
}

/* A copy function that fails does so in the call itself, before another rank is involved. */
static void duplicate_with_attributes(void)
{
    int keyval, refusing, found, *value;
    static int mine = 5;
    MPI_Comm dup;
    MPI_Request request;
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &refusing, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &mine));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request));
    /* The duplicate has what the original had at the call. */
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_attr(dup, keyval, &value, &found));
    CHECK(found && *value == 5);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, refusing, &mine));
    FAILS(MPI_ERR_OTHER, MPI_Comm_idup(MPI_COMM_WORLD, &dup, &request));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, refusing));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_free_keyval(&refusing));
}

/* A request keeps its communicator, whatever the program does with the handle. */
static void freed_communicator(void)
{
    int next = (me + 1) % size, before = (me + size - 1) % size;
    int out = me, in = -1, copied = -1, sum = -1;
    char room[4096];
    MPI_Request requests[5];
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Recv_init(&in, 1, MPI_INT, before, 1, comm, &requests[0]));
    OK(MPI_Recv_init(&copied, 1, MPI_INT, before, 2, comm, &requests[1]));
    OK(MPI_Send_init(&out, 1, MPI_INT, next, 1, comm, &requests[2]));
    OK(MPI_Bsend_init(&out, 1, MPI_INT, next, 2, comm, &requests[3]));
    OK(MPI_Allreduce_init(&out, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[4]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Buffer_attach(room, sizeof room));
    for (int round = 0; round < 3; round++) {
        out = me + 100 * round;
        OK(MPI_Startall(5, requests));
        OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
        CHECK(in == before + 100 * round && copied == in);
        CHECK(sum == size * (size - 1) / 2 + 100 * round * size);
    }
    for (int i = 0; i < 5; i++)
        OK(MPI_Request_free(&requests[i]));
    void *attached;
    int length;
    OK(MPI_Buffer_detach(&attached, &length));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    rounds();
    modes();
    errors();
    replace();
    duplicate();
    duplicate_in_any_order();
    duplicate_with_attributes();
    freed_communicator();
    return end();
}
