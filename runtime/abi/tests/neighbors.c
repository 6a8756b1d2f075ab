/* Collective calls among neighbours (MPI-5.0 section 8.6), on grids and graphs, in all forms. */
#include "check.h"

/* Makes a call among neighbours: one that waits, one with a request, or a persistent one. */
#define MAKE(form, name, comm, ...)                                             \
    do {                                                                        \
        MPI_Request it_;                                                        \
        if ((form) == 0)                                                        \
            OK(MPI_Neighbor_##name(__VA_ARGS__, comm));                         \
        else if ((form) == 1) {                                                 \
            OK(MPI_Ineighbor_##name(__VA_ARGS__, comm, &it_));                  \
            OK(MPI_Wait(&it_, MPI_STATUS_IGNORE));                              \
        } else {                                                                \
            OK(MPI_Neighbor_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &it_)); \
            for (int round_ = 0; round_ < 3; round_++) {                        \
                OK(MPI_Start(&it_));                                            \
                OK(MPI_Wait(&it_, MPI_STATUS_IGNORE));                          \
            }                                                                   \
            OK(MPI_Request_free(&it_));                                         \
        }                                                                       \
    } while (0)

/* On a grid of one dimension, the block of the rank before comes first. */
static void line(int form, int is_periodic)
{
    MPI_Comm grid;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_periodic, 0, &grid));
    int before, next, out[2] = {10 * me, 10 * me + 1}, in[2] = {-1, -1};
    OK(MPI_Cart_shift(grid, 0, 1, &before, &next));
    MAKE(form, allgather, grid, &me, 1, MPI_INT, in, 1, MPI_INT);
    CHECK(in[0] == (before == MPI_PROC_NULL ? -1 : before));
    CHECK(in[1] == (next == MPI_PROC_NULL ? -1 : next));
    MAKE(form, alltoall, grid, out, 1, MPI_INT, in, 1, MPI_INT);
    CHECK(in[0] == (before == MPI_PROC_NULL ? -1 : 10 * before + 1));
    CHECK(in[1] == (next == MPI_PROC_NULL ? -1 : 10 * next));

    int counts[2] = {1, 1}, displs[2] = {3, 1}, spread[4] = {-1, -1, -1, -1};
    MAKE(form, allgatherv, grid, &me, 1, MPI_INT, spread, counts, displs, MPI_INT);
    CHECK(spread[3] == (before == MPI_PROC_NULL ? -1 : before));
    CHECK(spread[1] == (next == MPI_PROC_NULL ? -1 : next));
    CHECK(spread[0] == -1 && spread[2] == -1);
    int from[4] = {0, 10 * me + 1, 0, 10 * me};
    MAKE(form, alltoallv, grid, from, counts, displs, MPI_INT, spread, counts, displs, MPI_INT);
    CHECK(spread[3] == (before == MPI_PROC_NULL ? -1 : 10 * before + 1));
    CHECK(spread[1] == (next == MPI_PROC_NULL ? -1 : 10 * next));
    /* A type for each neighbour: an int to the rank before, and a double to the next one. */
    struct both {
        double real;
        int number;
    } given = {me + 0.5, me}, taken = {-1, -1};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, back[2] = {MPI_DOUBLE, MPI_INT};
    MPI_Aint places[2] = {sizeof(double), 0}, behind[2] = {0, sizeof(double)};
    MAKE(form, alltoallw, grid, &given, counts, places, types, &taken, counts, behind, back);
    CHECK(taken.real == (before == MPI_PROC_NULL ? -1 : before + 0.5));
    CHECK(taken.number == (next == MPI_PROC_NULL ? -1 : next));
    /* Nothing. */
    MAKE(form, allgather, grid, NULL, 0, MPI_INT, NULL, 0, MPI_INT);
    OK(MPI_Comm_free(&grid));
}

/* A torus: in a dimension of two ranks, both neighbours are the same. */
static void torus(int form)
{
    if (size % 2)
        return;
    MPI_Comm grid;
    int dims[3] = {2, size / 2, 1}, periods[3] = {1, 1, 1}, ranks[6], out[6], in[6];
    OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid));
    for (int i = 0; i < 3; i++)
        OK(MPI_Cart_shift(grid, i, 1, &ranks[2 * i], &ranks[2 * i + 1]));
    for (int i = 0; i < 6; i++)
        out[i] = 10 * me + i;
    MAKE(form, alltoall, grid, out, 1, MPI_INT, in, 1, MPI_INT);
    /* What comes from the rank before was sent to the rank after, and the other way round. */
    for (int i = 0; i < 6; i++)
        CHECK(in[i] == 10 * ranks[i] + (i ^ 1));
    OK(MPI_Comm_free(&grid));
}

/* Rank r sends to all higher ranks. */
static void stairs(int form)
{
    MPI_Comm graph;
    int ranks[64], ones[64], displs[64], in[64], n = size - 1 - me;
    for (int i = 0; i < size; i++) {
        ranks[i] = i;
        ones[i] = 1;
        displs[i] = i;
        in[i] = -1;
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, me, ranks, MPI_UNWEIGHTED, n, ranks + me + 1,
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
    MAKE(form, allgatherv, graph, &me, 1, MPI_INT, in, ones, displs, MPI_INT);
    for (int i = 0; i < size; i++)
        CHECK(in[i] == (i < me ? i : -1));
    OK(MPI_Comm_free(&graph));
    /* A graph that all ranks know: a star. */
    int index[64], edges[128];
    for (int i = 0; i < size; i++)
        index[i] = size - 1 + i;
    for (int i = 0; i < size - 1; i++) {
        edges[i] = i + 1;
        edges[size - 1 + i] = 0;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
    /* Node i has its edges after those of node i - 1. */
    for (int i = 0; i < size; i++)
        in[i] = -1;
    MAKE(form, allgather, graph, &me, 1, MPI_INT, in, 1, MPI_INT);
    for (int i = 0; i < size - 1; i++)
        CHECK(in[i] == (me == 0 ? i + 1 : i == 0 ? 0 : -1));
    OK(MPI_Comm_free(&graph));
}

static void errors(void)
{
    MPI_Comm grid;
    MPI_Request it = MPI_REQUEST_NULL;
    int one = 1, in[2];
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TOPOLOGY,
          MPI_Ineighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &it));
    OK(MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &grid));
    OK(MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, grid));
    FAILS(MPI_ERR_TYPE, MPI_Neighbor_allgather(&me, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, grid));
    FAILS(MPI_ERR_COUNT, MPI_Neighbor_allgather(&me, -1, MPI_INT, in, 1, MPI_INT, grid));
    FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(in, 1, MPI_INT, NULL, 1, MPI_INT, grid));
    CHECK(it == MPI_REQUEST_NULL);
    OK(MPI_Comm_free(&grid));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int form = 0; form < 3; form++) {
        line(form, 0);
        line(form, 1);
        torus(form);
        stairs(form);
    }
    errors();
    return end();
}
