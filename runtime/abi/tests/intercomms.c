/* Intercommunicators (MPI-5.0 sections 6.2.2 and 7.6): how they are made, messages, and every
   collective call, between the first ranks and the others. */
#include "check.h"

static MPI_Comm both;
/* The size of the other group, this rank and the size of its own group, and the number of the first
   rank of the other group. */
static int there, mine, here, first, is_low;

static int *ints(int n, int value)
{
    int *them = malloc((n + 1) * sizeof(int));
    for (int i = 0; i < n; i++)
        them[i] = value;
    return them;
}

static void make(void)
{
    int low = (size + 1) / 2, flag, n, result;
    MPI_Comm part;
    MPI_Group group, remote;
    is_low = me < low;
    OK(MPI_Comm_split(MPI_COMM_WORLD, is_low, 0, &part));
    OK(MPI_Comm_rank(part, &mine));
    OK(MPI_Comm_size(part, &here));
    /* The second rank leads the higher group, if there is one. */
    int other = size - low > 1 ? 1 : 0, leader = is_low ? 0 : other;
    MPI_Comm peer = mine == leader ? MPI_COMM_WORLD : MPI_COMM_NULL;
    OK(MPI_Intercomm_create(part, leader, peer, is_low ? low + other : 0, 5, &both));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_test_inter(both, &flag));
    CHECK(flag);
    OK(MPI_Comm_remote_size(both, &there));
    CHECK(there == size - here);
    OK(MPI_Comm_size(both, &n));
    CHECK(n == here);
    OK(MPI_Comm_rank(both, &n));
    CHECK(n == mine);
    first = is_low ? low : 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Comm_remote_group(both, &remote));
    int zero = 0;
    OK(MPI_Group_translate_ranks(remote, 1, &zero, group, &n));
    CHECK(n == first);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&remote));
    OK(MPI_Comm_compare(both, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_UNEQUAL);
}

static void messages(void)
{
    int to = mine % there, got = -1;
    MPI_Request request;
    MPI_Status status;
    /* Each rank gets one message of every rank that has it as its partner. */
    OK(MPI_Isend(&me, 1, MPI_INT, to, 3, both, &request));
    for (int from = 0; from < there; from++) {
        if (from % here != mine)
            continue;
        OK(MPI_Probe(MPI_ANY_SOURCE, 3, both, &status));
        OK(MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 3, both, &status));
        CHECK(got == first + status.MPI_SOURCE && status.MPI_SOURCE < there);
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_RANK, MPI_Send(&me, 1, MPI_INT, there, 3, both));
    OK(MPI_Sendrecv(&me, 1, MPI_INT, mine < there ? mine : MPI_PROC_NULL, 4, &got, 1, MPI_INT,
                    mine < there ? mine : MPI_PROC_NULL, 4, both, &status));
    CHECK(mine >= there || got == first + mine);
}

/* A rooted call, from the last rank of the lower group or of the higher one. */
static void rooted(int low_has_root)
{
    int has_root = is_low == low_has_root, last = (has_root ? here : there) - 1;
    int root = !has_root ? last : mine == last ? MPI_ROOT : MPI_PROC_NULL;
    int is_root = root == MPI_ROOT, *all = ints(there, -1), value = is_root ? 77 : -1;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    OK(MPI_Bcast(root == MPI_PROC_NULL ? NULL : &value, 1, root == MPI_PROC_NULL ? none : MPI_INT,
                 root, both));
    CHECK(value == (root == MPI_PROC_NULL ? -1 : 77));
    OK(MPI_Gather(&me, 1, has_root ? none : MPI_INT, all, 1, is_root ? MPI_INT : none, root, both));
    for (int i = 0; i < there; i++)
        CHECK(all[i] == (is_root ? first + i : -1));
    int *counts = ints(there, 1), *displs = ints(there, 0);
    for (int i = 0; i < there; i++) {
        displs[i] = there - 1 - i;
        all[i] = -1;
    }
    OK(MPI_Gatherv(&me, 1, has_root ? none : MPI_INT, all, counts, displs, is_root ? MPI_INT : none,
                   root, both));
    for (int i = 0; i < there; i++)
        CHECK(all[i] == (is_root ? first + there - 1 - i : -1));
    for (int i = 0; i < there; i++)
        all[i] = 50 + i;
    value = -1;
    OK(MPI_Scatter(all, 1, is_root ? MPI_INT : none, &value, 1, has_root ? none : MPI_INT, root,
                   both));
    CHECK(value == (has_root ? -1 : 50 + mine));
    value = -1;
    OK(MPI_Scatterv(all, counts, displs, is_root ? MPI_INT : none, &value, 1,
                    has_root ? none : MPI_INT, root, both));
    CHECK(value == (has_root ? -1 : 50 + here - 1 - mine));
    value = -1;
    int one = 1;
    OK(MPI_Reduce(has_root ? NULL : &one, is_root ? &value : NULL, 1, MPI_INT, MPI_SUM, root, both));
    CHECK(value == (is_root ? there : -1));
    /* With requests, and again and again. */
    MPI_Request requests[2];
    value = is_root ? 5 : -1;
    int sum = -1;
    OK(MPI_Bcast_init(&value, 1, MPI_INT, root, both, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 3; round++) {
        value = is_root ? 5 + round : -1;
        OK(MPI_Start(&requests[1]));
        OK(MPI_Ireduce(&one, is_root ? &sum : NULL, 1, MPI_INT, MPI_SUM, root, both, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(value == (root == MPI_PROC_NULL ? -1 : 5 + round));
        CHECK(sum == (is_root ? there : -1));
    }
    OK(MPI_Request_free(&requests[1]));
    free(all);
    free(counts);
    free(displs);
}

static void all_to_all(void)
{
    int *all = ints(there, -1), *out = ints(there, 0), *counts = ints(there, 1);
    int *displs = ints(there, 0), *bytes = ints(there, 0);
    MPI_Datatype *types = malloc(there * sizeof *types);
    MPI_Request request;
    for (int i = 0; i < there; i++) {
        displs[i] = i;
        bytes[i] = i * (int)sizeof(int);
        out[i] = 100 * me + first + i;
        types[i] = MPI_INT;
    }
    OK(MPI_Barrier(both));
    OK(MPI_Ibarrier(both, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int form = 0; form < 6; form++) {
        for (int i = 0; i < there; i++)
            all[i] = -1;
        switch (form) {
        case 0:
            OK(MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, both));
            break;
        case 1:
            OK(MPI_Iallgatherv(&me, 1, MPI_INT, all, counts, displs, MPI_INT, both, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            break;
        case 2:
            OK(MPI_Alltoall(out, 1, MPI_INT, all, 1, MPI_INT, both));
            break;
        case 3:
            OK(MPI_Alltoallv(out, counts, displs, MPI_INT, all, counts, displs, MPI_INT, both));
            break;
        case 4:
            OK(MPI_Alltoallw(out, counts, bytes, types, all, counts, bytes, types, both));
            break;
        default:
            OK(MPI_Ialltoall(out, 1, MPI_INT, all, 1, MPI_INT, both, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        for (int i = 0; i < there; i++)
            CHECK(all[i] == (form < 2 ? first + i : 100 * (first + i) + me));
    }
    free(all);
    free(out);
    free(counts);
    free(displs);
    free(bytes);
    free(types);
}

static void reductions(void)
{
    int sum = -1, theirs = 0, n = here * there;
    for (int i = 0; i < there; i++)
        theirs += first + i;
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK(sum == theirs);
    MPI_Request request;
    OK(MPI_Iallreduce(&me, &sum, 1, MPI_INT, MPI_MAX, both, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == first + there - 1);
    /* As many operands as both groups can divide. */
    int *data = ints(n, 0), *got = ints(n, -1), *counts = ints(here, there);
    for (int i = 0; i < n; i++)
        data[i] = i;
    OK(MPI_Reduce_scatter_block(data, got, there, MPI_INT, MPI_SUM, both));
    for (int i = 0; i < there; i++)
        CHECK(got[i] == there * (mine * there + i));
    OK(MPI_Reduce_scatter(data, got, counts, MPI_INT, MPI_MAX, both));
    for (int i = 0; i < there; i++)
        CHECK(got[i] == mine * there + i);
    free(data);
    free(got);
    free(counts);
}

static void derived(void)
{
    MPI_Comm dup, part, merged;
    int result, n, rank, sum;
    MPI_Request request;
    OK(MPI_Comm_dup(both, &dup));
    OK(MPI_Comm_compare(both, dup, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_remote_size(dup, &n));
    CHECK(n == there);
    OK(MPI_Barrier(dup));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_idup(both, &dup, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_MIN, dup));
    CHECK(sum == first);
    OK(MPI_Comm_free(&dup));
    /* The first ranks of both groups, and the others if both have some. */
    OK(MPI_Comm_split(both, mine > 0, 0, &part));
    if (mine == 0 || there > 1) {
        OK(MPI_Comm_remote_size(part, &n));
        CHECK(n == (mine == 0 ? 1 : there - 1));
        int got = -1;
        OK(MPI_Allreduce(&me, &got, 1, MPI_INT, MPI_MIN, part));
        CHECK(got == first + (mine > 0));
        OK(MPI_Comm_free(&part));
    } else
        CHECK(part == MPI_COMM_NULL);
    MPI_Group group, own;
    int zero = 0;
    OK(MPI_Comm_group(both, &group));
    OK(MPI_Group_incl(group, 1, &zero, &own));
    OK(MPI_Comm_create(both, own, &part));
    CHECK((part == MPI_COMM_NULL) == (mine != 0));
    if (mine == 0) {
        OK(MPI_Comm_remote_size(part, &n));
        CHECK(n == 1);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&own));
    /* In either order, and in any if both groups give the same. */
    for (int form = 0; form < 4; form++) {
        int high = form < 2 ? is_low == form : form == 2;
        OK(MPI_Intercomm_merge(both, high, &merged));
        OK(MPI_Comm_test_inter(merged, &result));
        OK(MPI_Comm_size(merged, &n));
        OK(MPI_Comm_rank(merged, &rank));
        CHECK(!result && n == size);
        if (form < 2)
            CHECK(rank == mine + (high ? there : 0));
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged));
        CHECK(sum == size * (size - 1) / 2);
        OK(MPI_Comm_free(&merged));
    }
}

static void from_groups(void)
{
    MPI_Group world, local, remote;
    MPI_Comm made;
    int low[3] = {0, size / 2 - 1, 1}, high[3] = {size / 2, size - 1, 1}, n;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, me < size / 2 ? &low : &high, &local));
    OK(MPI_Group_range_incl(world, 1, me < size / 2 ? &high : &low, &remote));
    OK(MPI_Intercomm_create_from_groups(local, 0, remote, 0, "longshore:test", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &made));
    OK(MPI_Comm_remote_size(made, &n));
    CHECK(n == (me < size / 2 ? size - size / 2 : size / 2));
    OK(MPI_Barrier(made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&remote));
}

static void errors(void)
{
    int value = 1, out, dims = 1;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Win win;
    void *base;
    FAILS(MPI_ERR_COMM, MPI_Scan(&value, &out, 1, MPI_INT, MPI_SUM, both));
    FAILS(MPI_ERR_COMM, MPI_Exscan(&value, &out, 1, MPI_INT, MPI_SUM, both));
    FAILS(MPI_ERR_COMM, MPI_Win_allocate(8, 1, MPI_INFO_NULL, both, &base, &win));
    FAILS(MPI_ERR_COMM, MPI_Cart_create(both, 1, &dims, &dims, 0, &comm));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, there, both));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, both));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_create(both, 0, MPI_COMM_WORLD, 0, 0, &comm));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &comm));
    CHECK(comm == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int value;
    MPI_Comm comm = MPI_COMM_NULL;
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &value));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_SELF, 0, &comm));
    FAILS(MPI_ERR_RANK, MPI_Intercomm_create(MPI_COMM_WORLD, size, MPI_COMM_WORLD, 0, 0, &comm));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_NULL, 0, 0, &comm));
    /* A group with itself. */
    FAILS(MPI_ERR_COMM, MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_SELF, 0, 0, &comm));
    FAILS(MPI_ERR_TAG, MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 0, -1, &comm));
    CHECK(comm == MPI_COMM_NULL);
    if (size > 1) {
        make();
        messages();
        rooted(1);
        rooted(0);
        all_to_all();
        reductions();
        derived();
        from_groups();
        errors();
        OK(MPI_Comm_free(&both));
    }
    return end();
}
