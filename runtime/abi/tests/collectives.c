/* Blocking collective calls with their edge cases, and operations of the program (MPI-5.0
   chapter 6). */
#include "check.h"

static int *ints(int n, int value)
{
    int *all = malloc((n + 1) * sizeof(int));
    for (int i = 0; i < n; i++)
        all[i] = value;
    return all;
}

static void equal_blocks(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    for (int root = 0; root < size; root++) {
        int value[2] = {me == root ? 40 + root : -1, me == root ? 7 : -1};
        OK(MPI_Bcast(value, 2, MPI_INT, root, world));
        CHECK(value[0] == 40 + root && value[1] == 7);
        /* What is insignificant isn't looked at. */
        int *all = ints(size, -1);
        OK(MPI_Gather(&me, 1, MPI_INT, me == root ? all : NULL, me == root ? 1 : -4,
                      me == root ? MPI_INT : MPI_DATATYPE_NULL, root, world));
        for (int i = 0; i < size; i++)
            CHECK(all[i] == (me == root ? i : -1));
        if (me == root)
            all[root] = root;
        OK(MPI_Gather(me == root ? MPI_IN_PLACE : &me, me == root ? -1 : 1,
                      me == root ? MPI_DATATYPE_NULL : MPI_INT, all, 1, MPI_INT, root, world));
        int got = -1;
        OK(MPI_Scatter(me == root ? all : NULL, 1, me == root ? MPI_INT : MPI_DATATYPE_NULL, &got,
                       1, MPI_INT, root, world));
        CHECK(got == me);
        OK(MPI_Scatter(all, 1, MPI_INT, me == root ? MPI_IN_PLACE : (void *)&got, 1, MPI_INT, root,
                       world));
        CHECK(got == me);
        free(all);
    }
    int *all = ints(size, -1), *out = ints(size, me);
    OK(MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, world));
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i);
    for (int i = 0; i < size; i++)
        all[i] = i == me ? 10 * me : -1;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, world));
    for (int i = 0; i < size; i++)
        CHECK(all[i] == 10 * i);
    OK(MPI_Alltoall(out, 1, MPI_INT, all, 1, MPI_INT, world));
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i);
    for (int i = 0; i < size; i++)
        all[i] = 100 * me + i;
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, world));
    for (int i = 0; i < size; i++)
        CHECK(all[i] == 100 * i + me);
    free(all);
    free(out);
}

/* Blocks of a matrix, which lie in each other's gaps: the usual way to gather subarrays. */
static void interleaved_blocks(void)
{
    MPI_Datatype column, narrow;
    OK(MPI_Type_vector(4, 1, size, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &narrow));
    OK(MPI_Type_commit(&narrow));
    int mine[4] = {me, me, me, me}, *matrix = ints(4 * size, -1);
    int *counts = ints(size, 1), *places = ints(size, 0);
    /* In reverse order, so that displacements aren't in the order of ranks. */
    for (int i = 0; i < size; i++)
        places[i] = size - 1 - i;
    OK(MPI_Gatherv(mine, 4, MPI_INT, matrix, counts, places, narrow, 0, MPI_COMM_WORLD));
    for (int i = 0; i < 4 * size; i++)
        CHECK(matrix[i] == (me == 0 ? size - 1 - i % size : -1));
    memset(mine, 0xff, sizeof mine);
    OK(MPI_Scatterv(matrix, counts, places, narrow, mine, 4, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(mine[0] == me && mine[3] == me);
    /* Blocks that begin closer to each other than their length: two rows of two. */
    MPI_Datatype rows, close;
    OK(MPI_Type_vector(2, 2, 2 * size, MPI_INT, &rows));
    OK(MPI_Type_create_resized(rows, 0, sizeof(int), &close));
    OK(MPI_Type_commit(&close));
    for (int i = 0; i < size; i++)
        places[i] = 2 * i;
    OK(MPI_Gatherv(mine, 4, MPI_INT, matrix, counts, places, close, 0, MPI_COMM_WORLD));
    for (int i = 0; i < 4 * size && me == 0; i++)
        CHECK(matrix[i] == i % (2 * size) / 2);
    OK(MPI_Type_free(&rows));
    OK(MPI_Type_free(&close));
    /* Displacements below 0. */
    for (int i = 0; i < size; i++)
        places[i] = i - size;
    int *line = ints(2 * size, -1);
    OK(MPI_Allgatherv(&me, 1, MPI_INT, line + size, counts, places, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK(line[i] == i && line[size + i] == -1);
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, line + size, counts, places, MPI_INT,
                      MPI_COMM_WORLD));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&narrow));
    free(line);
    free(places);
    free(counts);
    free(matrix);
}

static void varying_blocks(void)
{
    /* Rank i sends j numbers to rank j, with a gap after each block. */
    int *sends = ints(size, 0), *at = ints(size, 0), *takes = ints(size, me), *to = ints(size, 0);
    int total = 0;
    for (int i = 0; i < size; i++) {
        sends[i] = i;
        at[i] = total;
        total += i + 1;
        to[i] = i * (me + 1);
    }
    int *out = ints(total, me), *in = ints(size * (me + 1), -1);
    OK(MPI_Alltoallv(out, sends, at, MPI_INT, in, takes, to, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        for (int j = 0; j <= me; j++)
            CHECK(in[i * (me + 1) + j] == (j < me ? i : -1));
    /* Symmetric counts in place. */
    int *one = ints(size, 1);
    for (int i = 0; i < size; i++) {
        to[i] = i;
        out[i] = 100 * me + i;
    }
    OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, one, to, MPI_INT,
                     MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK(out[i] == 100 * i + me);
    /* Types of their own: ints to even ranks, as bytes of the same number to odd ones. */
    MPI_Datatype *types = malloc(size * sizeof *types), *taken = malloc(size * sizeof *taken);
    for (int i = 0; i < size; i++) {
        types[i] = i % 2 ? MPI_DOUBLE : MPI_INT;
        taken[i] = me % 2 ? MPI_DOUBLE : MPI_INT;
        at[i] = to[i] = 8 * i;
    }
    char *bytes = calloc(size + 1, 8), *got = calloc(size + 1, 8);
    for (int i = 0; i < size; i++) {
        if (i % 2)
            *(double *)(bytes + 8 * i) = me + 0.5;
        else
            *(int *)(bytes + 8 * i) = me;
    }
    OK(MPI_Alltoallw(bytes, one, at, types, got, one, to, taken, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++)
        CHECK(me % 2 ? *(double *)(got + 8 * i) == i + 0.5 : *(int *)(got + 8 * i) == i);
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, got, one, to, taken, MPI_COMM_SELF));
    free(bytes);
    free(got);
    free(types);
    free(taken);
    free(one);
    free(in);
    free(out);
    free(to);
    free(takes);
    free(at);
    free(sends);
}

/* 2 x 2 matrices, whose product isn't commutative. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*datatype, &lb, &extent);
    CHECK(extent == 4 * sizeof(long));
    long *a = in, *b = inout;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                     a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static void multiply_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype)
{
    int number = (int)*count;
    multiply(in, inout, &number, datatype);
}

static void of_rank(int rank, long *matrix)
{
    long m[4] = {1, rank + 1, rank % 2, 1};
    memcpy(matrix, m, sizeof m);
}

static void reductions(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int sum = size * (size - 1) / 2, total = -1, commutes;
    for (int root = 0; root < size; root++) {
        total = -1;
        OK(MPI_Reduce(&me, me == root ? &total : NULL, 1, MPI_INT, MPI_SUM, root, world));
        CHECK(total == (me == root ? sum : -1));
        total = me;
        OK(MPI_Reduce(me == root ? MPI_IN_PLACE : &me, me == root ? &total : NULL, 1, MPI_INT,
                      MPI_MAX, root, world));
        CHECK(me != root || total == size - 1);
    }
    OK(MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, world));
    CHECK(total == sum);
    total = me;
    OK(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_MIN, world));
    CHECK(total == 0);
    struct {
        double value;
        int at;
    } pair = {me == size - 1 ? 9.5 : 1.5, me}, best;
    OK(MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, world));
    CHECK(best.value == 9.5 && best.at == size - 1);
    OK(MPI_Scan(&me, &total, 1, MPI_INT, MPI_SUM, world));
    CHECK(total == me * (me + 1) / 2);
    total = -1;
    OK(MPI_Exscan(&me, me ? &total : NULL, 1, MPI_INT, MPI_SUM, world));
    CHECK(total == (me ? me * (me - 1) / 2 : -1));
    total = me;
    OK(MPI_Exscan(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, world));
    CHECK(total == (me ? me * (me - 1) / 2 : 0));

    int *all = ints(2 * size, me), got[2] = {-1, -1}, *counts = ints(size, 1);
    OK(MPI_Reduce_scatter_block(all, got, 2, MPI_INT, MPI_SUM, world));
    CHECK(got[0] == sum && got[1] == sum);
    for (int i = 0; i < size; i++)
        all[i] = i;
    counts[0] = 0;
    counts[size - 1] = size > 1 ? 2 : 1;
    OK(MPI_Reduce_scatter(all, got, counts, MPI_INT, MPI_MAX, world));
    CHECK(size == 1 || got[0] == (me ? me - 1 : sum));
    for (int i = 0; i < 2 * size; i++)
        all[i] = i;
    OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, all, 2, MPI_INT, MPI_SUM, world));
    CHECK(all[0] == size * 2 * me && all[1] == size * (2 * me + 1));
    int low[2] = {1, 2}, high[2] = {10, 20};
    OK(MPI_Reduce_local(low, high, 2, MPI_INT, MPI_SUM));
    CHECK(high[0] == 11 && high[1] == 22);
    free(counts);
    free(all);

    MPI_Datatype matrix;
    OK(MPI_Type_contiguous(4, MPI_LONG, &matrix));
    OK(MPI_Type_commit(&matrix));
    for (int large = 0; large < 2; large++) {
        MPI_Op product;
        if (large)
            OK(MPI_Op_create_c(multiply_large, 0, &product));
        else
            OK(MPI_Op_create(multiply, 0, &product));
        OK(MPI_Op_commutative(product, &commutes));
        CHECK(!commutes);
        long own[4], found[4], due[4], next[4];
        of_rank(me, own);
        of_rank(size - 1, due);
        for (int rank = size - 2; rank >= 0; rank--) {
            int one = 1;
            of_rank(rank, next);
            multiply(next, due, &one, &matrix);
        }
        OK(MPI_Allreduce(own, found, 1, matrix, product, world));
        CHECK(memcmp(found, due, sizeof due) == 0);
        OK(MPI_Scan(own, found, 1, matrix, product, world));
        CHECK(me < size - 1 || memcmp(found, due, sizeof due) == 0);
        MPI_Op old = product;
        OK(MPI_Op_free(&product));
        CHECK(product == MPI_OP_NULL);
        FAILS(MPI_ERR_OP, MPI_Allreduce(own, found, 1, matrix, old, MPI_COMM_SELF));
    }
    OK(MPI_Op_commutative(MPI_SUM, &commutes));
    CHECK(commutes);
    OK(MPI_Type_free(&matrix));
}

static void no_elements(void)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int *none = ints(size, 0);
    OK(MPI_Bcast(NULL, 0, MPI_INT, 0, world));
    OK(MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, world));
    OK(MPI_Gatherv(NULL, 0, MPI_INT, NULL, none, none, MPI_INT, 0, world));
    OK(MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, world));
    OK(MPI_Alltoallv(NULL, none, none, MPI_INT, NULL, none, none, MPI_INT, world));
    OK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
    OK(MPI_Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
    OK(MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, world));
    free(none);
}

/* Errors that all ranks make alike. */
static void errors(void)
{
    int value = 1, other = 2;
    MPI_Op op = MPI_SUM;
    MPI_Comm self = MPI_COMM_SELF;
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, -9, self));
    FAILS(MPI_ERR_COUNT, MPI_Bcast(&value, -1, MPI_INT, 0, self));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, self));
    FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, self));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&value, &other, 1, MPI_INT, MPI_OP_NULL, self));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&value, &other, 1, MPI_INT, MPI_REPLACE, self));
    FAILS(MPI_ERR_OP, MPI_Allreduce(&value, &other, 1, MPI_FLOAT, MPI_BAND, self));
    FAILS(MPI_ERR_OP, MPI_Op_free(&op));
    op = MPI_OP_NULL;
    FAILS(MPI_ERR_OP, MPI_Op_free(&op));
    FAILS(MPI_ERR_ARG, MPI_Op_create(NULL, 1, &op));
    FAILS(MPI_ERR_COUNT, MPI_Allgather(&value, -1, MPI_INT, &other, 1, MPI_INT, self));
    FAILS(MPI_ERR_TYPE, MPI_Allgather(&value, 1, MPI_DATATYPE_NULL, &other, 1, MPI_INT, self));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM));
    /* MPI_IN_PLACE where it has no meaning. */
    int one = 1, four = 4;
    MPI_Datatype type = MPI_INT;
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(&value, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce(&value, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(&value, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, self));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(&value, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, self));
    FAILS(MPI_ERR_BUFFER, MPI_Gatherv(&value, 1, MPI_INT, MPI_IN_PLACE, &one, &four, MPI_INT, 0, self));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(&value, &one, &four, MPI_INT, MPI_IN_PLACE, &one, &four, MPI_INT, self));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallw(&value, &one, &four, &type, MPI_IN_PLACE, &one, &four, &type, self));
    /* A displacement from MPI_BOTTOM makes no address of it, forwards or backwards. */
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallw(NULL, &one, &four, &type, &value, &one, &four, &type, self));
    int before = -4;
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallw(NULL, &one, &before, &type, &value, &one, &four, &type, self));
    FAILS(MPI_ERR_BUFFER, MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, self));
    OK(MPI_Send(MPI_IN_PLACE, 0, MPI_INT, MPI_PROC_NULL, 0, self));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    equal_blocks();
    interleaved_blocks();
    varying_blocks();
    reductions();
    no_elements();
    errors();
    return end();
}
