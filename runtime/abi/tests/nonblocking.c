/* Collective calls with requests, and persistent ones (MPI-5.0 sections 6.12 and 6.13): each call
   in both forms, several at a time, and their edge cases. */
#include "check.h"

enum { CALLS = 17, LONG = 3000 };

/* The memory of all calls, and what they come to. */
static int *data, *all, *out, *room[CALLS], *counts, *displs, *bytes;
static MPI_Datatype *types;

static int *ints(int n, int value)
{
    int *them = malloc((n + 1) * sizeof(int));
    for (int i = 0; i < n; i++)
        them[i] = value;
    return them;
}

/* The operation that keeps its left operand, so that its result depends on the order of ranks. */
static void keep_left(void *left, void *right, int *n, MPI_Datatype *type)
{
    int length;
    MPI_Type_size(*type, &length);
    CHECK(length == sizeof(int));
    for (int i = 0; i < *n; i++)
        ((int *)right)[i] = ((int *)left)[i];
}

static MPI_Op first;

/* Starts call number `call`, or makes a request that starts it. */
static int make(int call, int lasts, MPI_Comm comm, MPI_Request *it)
{
    int root = size / 2, *r = room[call];
    MPI_Info none = MPI_INFO_NULL;
    switch (call) {
    case 0:
        return lasts ? MPI_Barrier_init(comm, none, it) : MPI_Ibarrier(comm, it);
    case 1:
        return lasts ? MPI_Bcast_init(r, LONG, MPI_INT, root, comm, none, it)
                     : MPI_Ibcast(r, LONG, MPI_INT, root, comm, it);
    case 2:
        return lasts ? MPI_Gather_init(&me, 1, MPI_INT, r, 1, MPI_INT, root, comm, none, it)
                     : MPI_Igather(&me, 1, MPI_INT, r, 1, MPI_INT, root, comm, it);
    case 3:
        return lasts ? MPI_Gatherv_init(&me, 1, MPI_INT, me == root ? r : NULL, counts, displs,
                                        MPI_INT, root, comm, none, it)
                     : MPI_Igatherv(&me, 1, MPI_INT, me == root ? r : NULL, counts, displs,
                                    MPI_INT, root, comm, it);
    case 4:
        return lasts ? MPI_Scatter_init(all, 1, MPI_INT, r, 1, MPI_INT, root, comm, none, it)
                     : MPI_Iscatter(all, 1, MPI_INT, r, 1, MPI_INT, root, comm, it);
    case 5:
        return lasts ? MPI_Scatterv_init(all, counts, displs, MPI_INT, r, 1, MPI_INT, root, comm,
                                         none, it)
                     : MPI_Iscatterv(all, counts, displs, MPI_INT, r, 1, MPI_INT, root, comm, it);
    case 6:
        return lasts ? MPI_Allgather_init(&me, 1, MPI_INT, r, 1, MPI_INT, comm, none, it)
                     : MPI_Iallgather(&me, 1, MPI_INT, r, 1, MPI_INT, comm, it);
    case 7:
        return lasts ? MPI_Allgatherv_init(&me, 1, MPI_INT, r, counts, displs, MPI_INT, comm,
                                           none, it)
                     : MPI_Iallgatherv(&me, 1, MPI_INT, r, counts, displs, MPI_INT, comm, it);
    case 8:
        return lasts ? MPI_Alltoall_init(out, 1, MPI_INT, r, 1, MPI_INT, comm, none, it)
                     : MPI_Ialltoall(out, 1, MPI_INT, r, 1, MPI_INT, comm, it);
    case 9:
        return lasts ? MPI_Alltoallv_init(out, counts, displs, MPI_INT, r, counts, displs,
                                          MPI_INT, comm, none, it)
                     : MPI_Ialltoallv(out, counts, displs, MPI_INT, r, counts, displs, MPI_INT,
                                      comm, it);
    case 10:
        return lasts ? MPI_Alltoallw_init(out, counts, bytes, types, r, counts, bytes, types,
                                          comm, none, it)
                     : MPI_Ialltoallw(out, counts, bytes, types, r, counts, bytes, types, comm,
                                      it);
    case 11:
        return lasts ? MPI_Reduce_init(data, r, LONG, MPI_INT, MPI_SUM, root, comm, none, it)
                     : MPI_Ireduce(data, r, LONG, MPI_INT, MPI_SUM, root, comm, it);
    case 12:
        return lasts ? MPI_Allreduce_init(data, r, LONG, MPI_INT, first, comm, none, it)
                     : MPI_Iallreduce(data, r, LONG, MPI_INT, first, comm, it);
    case 13:
        return lasts ? MPI_Scan_init(data, r, 2, MPI_INT, MPI_SUM, comm, none, it)
                     : MPI_Iscan(data, r, 2, MPI_INT, MPI_SUM, comm, it);
    case 14:
        return lasts ? MPI_Exscan_init(data, me ? r : NULL, 2, MPI_INT, MPI_SUM, comm, none, it)
                     : MPI_Iexscan(data, me ? r : NULL, 2, MPI_INT, MPI_SUM, comm, it);
    case 15:
        return lasts ? MPI_Reduce_scatter_block_init(all, r, 1, MPI_INT, MPI_SUM, comm, none, it)
                     : MPI_Ireduce_scatter_block(all, r, 1, MPI_INT, MPI_SUM, comm, it);
    default:
        return lasts ? MPI_Reduce_scatter_init(all, r, counts, MPI_INT, MPI_MAX, comm, none, it)
                     : MPI_Ireduce_scatter(all, r, counts, MPI_INT, MPI_MAX, comm, it);
    }
}

/* Clears the rooms before the calls of a round. */
static void clear(int round)
{
    for (int i = 0; i < LONG; i++)
        data[i] = me + 1 + round;
    for (int i = 0; i < size; i++) {
        all[i] = 10 * i + round;
        out[i] = 100 * me + i + round;
    }
    for (int call = 0; call < CALLS; call++)
        for (int i = 0; i < LONG; i++)
            room[call][i] = call == 1 && me == size / 2 ? 5 + round : -1;
}

static void compare(int round)
{
    int root = size / 2, sum = 0, sums = 0;
    for (int rank = 0; rank < size; rank++) {
        sum += rank + 1 + round;
        if (rank < me)
            sums += rank + 1 + round;
    }
    for (int i = 0; i < size; i++) {
        CHECK(room[2][i] == (me == root ? i : -1));
        CHECK(room[3][i] == (me == root ? i : -1));
        CHECK(room[6][i] == i && room[7][i] == i);
        for (int call = 8; call <= 10; call++)
            CHECK(room[call][i] == 100 * i + me + round);
    }
    for (int i = 0; i < LONG; i += LONG - 1) {
        CHECK(room[1][i] == 5 + round);
        CHECK(room[11][i] == (me == root ? sum : -1));
        CHECK(room[12][i] == 1 + round);
    }
    CHECK(room[4][0] == 10 * me + round && room[5][0] == room[4][0]);
    CHECK(room[13][1] == sums + me + 1 + round && room[14][1] == (me ? sums : -1));
    CHECK(room[15][0] == size * (10 * me + round) && room[16][0] == 10 * me + round);
}

static void at_once(void)
{
    MPI_Request requests[CALLS];
    MPI_Status statuses[CALLS];
    clear(0);
    for (int call = 0; call < CALLS; call++)
        OK(make(call, 0, MPI_COMM_WORLD, &requests[call]));
    /* A call that waits, in the midst of them. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Waitall(CALLS, requests, statuses));
    compare(0);
    for (int call = 0; call < CALLS; call++) {
        int n;
        CHECK(requests[call] == MPI_REQUEST_NULL);
        OK(MPI_Get_count(&statuses[call], MPI_INT, &n));
        CHECK(n == 0);
    }
    /* One by one, as they complete. */
    clear(3);
    for (int call = 0; call < CALLS; call++)
        OK(make(call, 0, MPI_COMM_WORLD, &requests[call]));
    for (int done = 0; done < CALLS; done++) {
        int index, flag = 0;
        if (done % 2)
            OK(MPI_Waitany(CALLS, requests, &index, MPI_STATUS_IGNORE));
        else
            while (!flag)
                OK(MPI_Testany(CALLS, requests, &index, &flag, MPI_STATUS_IGNORE));
        CHECK(index != MPI_UNDEFINED && requests[index] == MPI_REQUEST_NULL);
    }
    compare(3);
}

/* Persistent calls, which ranks start in different orders. */
static void again(void)
{
    MPI_Request requests[CALLS];
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    clear(0);
    for (int call = 0; call < CALLS; call++)
        OK(make(call, 1, comm, &requests[call]));
    OK(MPI_Comm_free(&comm));
    for (int round = 0; round < 4; round++) {
        clear(round);
        for (int i = 0; i < CALLS; i++)
            OK(MPI_Start(&requests[me % 2 ? CALLS - 1 - i : i]));
        OK(MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE));
        compare(round);
    }
    for (int call = 0; call < CALLS; call++) {
        OK(MPI_Request_free(&requests[call]));
        CHECK(requests[call] == MPI_REQUEST_NULL);
    }
}

static void in_place(void)
{
    int *r = ints(size, -1), root = size - 1, value = me + 1;
    MPI_Request it;
    r[me] = me;
    OK(MPI_Iallgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, r, 1, MPI_INT, MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++)
        CHECK(r[i] == i);
    OK(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    CHECK(value == size);
    value = 1;
    OK(MPI_Ireduce(me == root ? MPI_IN_PLACE : &value, me == root ? &value : NULL, 1, MPI_INT,
                   MPI_SUM, root, MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    CHECK(value == (me == root ? size : 1));
    for (int i = 0; i < size; i++)
        r[i] = 10 * me + i;
    OK(MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, r, counts, displs, MPI_INT,
                      MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++)
        CHECK(r[i] == 10 * i + me);
    /* Rank 0 of an exclusive scan in place keeps its operands. */
    value = me + 1;
    OK(MPI_Iexscan(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    CHECK(value == (me ? me * (me + 1) / 2 : 1));
    /* The block of the root stays where it is, and counts may be 0. */
    OK(MPI_Iscatter(r, 1, MPI_INT, me == root ? MPI_IN_PLACE : &value, 1, MPI_INT, root,
                    MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    CHECK(me == root || value == 10 * me + root);
    OK(MPI_Ibcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    OK(MPI_Ialltoall_c(NULL, 0, MPI_INT, NULL, 0, MPI_INT, MPI_COMM_WORLD, &it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    free(r);
}

/* What is freed while a call is under way stays until its end. */
static void freed_objects(void)
{
    int *values = ints(2 * LONG, me), *sums = ints(2 * LONG, -1);
    MPI_Request it;
    MPI_Comm comm;
    MPI_Datatype every_other;
    MPI_Op op;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Op_create(keep_left, 0, &op));
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Ibcast(values, LONG, every_other, 0, comm, &it));
    MPI_Request reduction;
    int number = me + 7;
    OK(MPI_Iallreduce(&number, sums, 1, MPI_INT, op, comm, &reduction));
    OK(MPI_Type_free(&every_other));
    OK(MPI_Op_free(&op));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Wait(&reduction, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    CHECK(values[0] == 0 && values[1] == me && values[2 * LONG - 2] == 0);
    CHECK(sums[0] == 7);
    free(values);
    free(sums);
}

static void errors(void)
{
    MPI_Request it = MPI_REQUEST_NULL;
    int value = 0, flag;
    FAILS(MPI_ERR_COMM, MPI_Ibarrier(MPI_COMM_NULL, &it));
    FAILS(MPI_ERR_ARG, MPI_Ibarrier(MPI_COMM_SELF, NULL));
    FAILS(MPI_ERR_ROOT, MPI_Ibcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD, &it));
    FAILS(MPI_ERR_ROOT, MPI_Bcast_init(&value, 1, MPI_INT, -1, MPI_COMM_SELF, MPI_INFO_NULL, &it));
    FAILS(MPI_ERR_COUNT, MPI_Ibcast(&value, -1, MPI_INT, 0, MPI_COMM_SELF, &it));
    FAILS(MPI_ERR_COUNT, MPI_Iallgather(&value, 1, MPI_INT, &value, -1, MPI_INT, MPI_COMM_SELF, &it));
    FAILS(MPI_ERR_TYPE, MPI_Ibcast(&value, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_SELF, &it));
    FAILS(MPI_ERR_BUFFER, MPI_Ibcast(NULL, 1, MPI_INT, 0, MPI_COMM_SELF, &it));
    FAILS(MPI_ERR_OP, MPI_Iallreduce(&value, &flag, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_SELF, &it));
    FAILS(MPI_ERR_INFO,
          MPI_Bcast_init(&value, 1, MPI_INT, 0, MPI_COMM_SELF, (MPI_Info)MPI_OP_NULL, &it));
    CHECK(it == MPI_REQUEST_NULL);
    /* An operation that isn't defined on the type is an error of the call, which all ranks get. */
    double real = 1, total;
    OK(MPI_Iallreduce(&real, &total, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD, &it));
    FAILS(MPI_ERR_OP, MPI_Wait(&it, MPI_STATUS_IGNORE));
    CHECK(it == MPI_REQUEST_NULL);
    /* Collective requests are neither freed nor cancelled. */
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &it));
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&it));
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&it));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &it));
    OK(MPI_Start(&it));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&it));
    OK(MPI_Request_get_status(it, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&it));
}

/* The others need this rank's part of the call while it waits for something else. */
static void progress(void)
{
    MPI_Request it;
    int got = 0;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &it));
    if (me == 0) {
        for (int rank = 1; rank < size; rank++)
            OK(MPI_Recv(&got, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Wait(&it, MPI_STATUS_IGNORE));
        OK(MPI_Send(&me, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    data = ints(LONG, 0);
    all = ints(size, 0);
    out = ints(size, 0);
    counts = ints(size, 1);
    displs = ints(size, 0);
    bytes = ints(size, 0);
    types = malloc(size * sizeof *types);
    for (int i = 0; i < size; i++) {
        displs[i] = i;
        bytes[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    for (int call = 0; call < CALLS; call++)
        room[call] = ints(LONG, 0);
    OK(MPI_Op_create(keep_left, 0, &first));
    at_once();
    again();
    in_place();
    freed_objects();
    errors();
    progress();
    OK(MPI_Op_free(&first));
    for (int call = 0; call < CALLS; call++)
        free(room[call]);
    free(data);
    free(all);
    free(out);
    free(counts);
    free(displs);
    free(bytes);
    free(types);
    return end();
}
