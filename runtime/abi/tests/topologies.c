/* Topologies: grids, graphs, and graphs of which each rank knows its neighbours (MPI-5.0 chapter
 * 8). */
#include "check.h"

static void grids(void) {
  int dims[2] = {0, 0}, periods[2] = {0, 1}, coords[2], got[2], got_periods[2], rank, ndims, kind;
  MPI_Comm grid, dup, row;
  OK(MPI_Dims_create(size, 2, dims));
  OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
  OK(MPI_Topo_test(grid, &kind));
  CHECK(kind == MPI_CART);
  OK(MPI_Cartdim_get(grid, &ndims));
  CHECK(ndims == 2);
  OK(MPI_Cart_get(grid, 2, got, got_periods, coords));
  CHECK(got[0] == dims[0] && got[1] == dims[1] && got_periods[0] == 0 && got_periods[1] == 1);
  OK(MPI_Comm_rank(grid, &rank));
  CHECK(coords[0] == rank / dims[1] && coords[1] == rank % dims[1]);
  for (int each = 0; each < size; each++) {
    int back;
    OK(MPI_Cart_coords(grid, each, 2, coords));
    OK(MPI_Cart_rank(grid, coords, &back));
    CHECK(back == each);
    /* A periodic coordinate may be any number. */
    coords[1] -= 3 * dims[1];
    OK(MPI_Cart_rank(grid, coords, &back));
    CHECK(back == each);
    coords[0] = dims[0];
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(grid, coords, &back));
  }
  int before, after, one = rank, sum;
  for (int direction = 0; direction < 2; direction++) {
    OK(MPI_Cart_shift(grid, direction, 1, &before, &after));
    MPI_Sendrecv(&rank, 1, MPI_INT, after, 7, &one, 1, MPI_INT, before, 7, grid, MPI_STATUS_IGNORE);
    CHECK(before == MPI_PROC_NULL || one == before);
  }
  OK(MPI_Cart_coords(grid, rank, 2, coords));
  OK(MPI_Cart_shift(grid, 0, 1, &before, &after));
  CHECK((before == MPI_PROC_NULL) == (coords[0] == 0));
  CHECK((after == MPI_PROC_NULL) == (coords[0] == dims[0] - 1));
  OK(MPI_Cart_shift(grid, 0, -1, &one, &sum));
  CHECK(one == after && sum == before);
  OK(MPI_Cart_shift(grid, 1, 0, &before, &after));
  CHECK(before == rank && after == rank);
  /* A dup has the topology, and a split has none. */
  OK(MPI_Comm_dup(grid, &dup));
  OK(MPI_Topo_test(dup, &kind));
  CHECK(kind == MPI_CART);
  OK(MPI_Comm_free(&dup));
  OK(MPI_Comm_split(grid, 0, 0, &dup));
  OK(MPI_Topo_test(dup, &kind));
  CHECK(kind == MPI_UNDEFINED);
  OK(MPI_Comm_free(&dup));
  /* Rows, and grids of one rank without dimensions. */
  int remain[2] = {0, 1}, none[2] = {0, 0};
  OK(MPI_Cart_sub(grid, remain, &row));
  OK(MPI_Comm_size(row, &sum));
  CHECK(sum == dims[1]);
  OK(MPI_Cart_get(row, 1, got, got_periods, coords + 1));
  CHECK(got[0] == dims[1] && got_periods[0] == 1 && coords[1] == rank % dims[1]);
  OK(MPI_Comm_free(&row));
  OK(MPI_Cart_sub(grid, none, &row));
  OK(MPI_Comm_size(row, &sum));
  OK(MPI_Cartdim_get(row, &ndims));
  CHECK(sum == 1 && ndims == 0);
  OK(MPI_Cart_rank(row, NULL, &one));
  CHECK(one == 0);
  FAILS(MPI_ERR_ARG, MPI_Cart_shift(row, 0, 1, &before, &after));
  OK(MPI_Comm_free(&row));
  FAILS(MPI_ERR_ARG, MPI_Cart_shift(grid, 2, 1, &before, &after));
  FAILS(MPI_ERR_ARG, MPI_Cart_shift(grid, -1, 1, &before, &after));
  FAILS(MPI_ERR_RANK, MPI_Cart_coords(grid, size, 2, coords));
  FAILS(MPI_ERR_ARG, MPI_Cart_coords(grid, 0, 1, coords));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(grid, &one, &sum));
  OK(MPI_Comm_free(&grid));
}

/* Ranks outside of a grid get no communicator. */
static void small_grids(void) {
  MPI_Comm grid;
  int one = 1, period = 0, many = size + 1, negative = -1, rank;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &period, 0, &grid));
  CHECK((grid == MPI_COMM_NULL) == (me != 0));
  if (grid != MPI_COMM_NULL)
    OK(MPI_Comm_free(&grid));
  OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &grid));
  CHECK((grid == MPI_COMM_NULL) == (me != 0));
  if (grid != MPI_COMM_NULL)
    OK(MPI_Comm_free(&grid));
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, &many, &period, 0, &grid));
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, &negative, &period, 0, &grid));
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, -1, &one, &period, 0, &grid));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &rank));
  FAILS(MPI_ERR_COMM, MPI_Cartdim_get(MPI_COMM_NULL, &rank));
  OK(MPI_Cart_map(MPI_COMM_WORLD, 1, &one, &period, &rank));
  CHECK(rank == (me ? MPI_UNDEFINED : 0));
}

static void graphs(void) {
  /* A star, whose centre is rank 0. */
  int *index = malloc(size * sizeof(int)), *edges = malloc(2 * size * sizeof(int)), nodes, count;
  for (int node = 0; node < size; node++) {
    index[node] = size - 1 + node;
    if (node > 0) {
      edges[node - 1] = node;
      edges[size - 2 + node] = 0;
    }
  }
  MPI_Comm star;
  OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &star));
  OK(MPI_Topo_test(star, &nodes));
  CHECK(nodes == MPI_GRAPH);
  OK(MPI_Graphdims_get(star, &nodes, &count));
  CHECK(nodes == size && count == 2 * size - 2);
  int *got = malloc(3 * size * sizeof(int));
  OK(MPI_Graph_get(star, size, count, got, got + size));
  CHECK(!memcmp(got, index, size * sizeof(int)));
  OK(MPI_Graph_neighbors_count(star, me, &count));
  CHECK(count == (me == 0 ? size - 1 : 1));
  OK(MPI_Graph_neighbors(star, me, count, got));
  for (int i = 0; i < count; i++)
    CHECK(got[i] == (me == 0 ? i + 1 : 0));
  FAILS(MPI_ERR_RANK, MPI_Graph_neighbors_count(star, size, &count));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(star, &count));
  OK(MPI_Comm_free(&star));
  OK(MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &nodes));
  CHECK(nodes == me);
  int wrong[2] = {1, 0}, outside = size, end = 1;
  FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, &end, &outside, 0, &star));
  if (size > 1)
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 2, wrong, edges, 0, &star));
  FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, size + 1, index, edges, 0, &star));
  OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &star));
  CHECK(star == MPI_COMM_NULL);
  free(got);
  free(edges);
  free(index);
}

static void check_ring(MPI_Comm ring, int weighted) {
  int in, out, is_weighted, from = -1, to = -1, weights[2] = {-1, -1};
  OK(MPI_Topo_test(ring, &in));
  CHECK(in == MPI_DIST_GRAPH);
  OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &is_weighted));
  CHECK(in == 1 && out == 1 && !is_weighted == !weighted);
  OK(MPI_Dist_graph_neighbors(ring, 1, &from, weights, 1, &to, weights + 1));
  CHECK(from == (me + size - 1) % size && to == (me + 1) % size);
  CHECK(weights[0] == (weighted ? from + 1 : -1) && weights[1] == (weighted ? me + 1 : -1));
  OK(MPI_Dist_graph_neighbors(ring, 1, &from, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
}

static void rings(void) {
  int next = (me + 1) % size, before = (me + size - 1) % size, one = 1;
  int in = before + 1, out = me + 1, outside = size, negative = -1;
  MPI_Comm ring;
  MPI_Info none = MPI_INFO_NULL;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &in, 1, &next, &out, none, 0, &ring));
  check_ring(ring, 1);
  OK(MPI_Comm_free(&ring));
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                    MPI_UNWEIGHTED, none, 0, &ring));
  check_ring(ring, 0);
  OK(MPI_Comm_free(&ring));
  /* Each rank gives the edge of the rank before it. */
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &before, &one, &me, &in, none, 0, &ring));
  check_ring(ring, 1);
  OK(MPI_Comm_free(&ring));
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, MPI_WEIGHTS_EMPTY, none, 0, &ring));
  OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &one));
  CHECK(in == 0 && out == 0 && one);
  OK(MPI_Comm_free(&ring));
  /* One rank's error is an error at all ranks. */
  one = 1;
  int last = me == size - 1, code, class;
  code = MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &one, last ? &outside : &next,
                               MPI_UNWEIGHTED, none, 0, &ring);
  OK(MPI_Error_class(code, &class));
  CHECK(class == (last ? MPI_ERR_RANK : MPI_ERR_ARG));
  FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &negative, &next, MPI_UNWEIGHTED,
                                           none, 0, &ring));
  FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1,
                                                    &next, &one, none, 0, &ring));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &in, &out, &one));
  /* A rank that is twice its own source and once its own destination would wait for ever. */
  int twice[2] = {me, me}, sent = me, taken[2];
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, twice, MPI_UNWEIGHTED, 1, &me, MPI_UNWEIGHTED,
                                    none, 0, &ring));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&sent, 1, MPI_INT, taken, 1, MPI_INT, ring));
  OK(MPI_Comm_free(&ring));
  if (size > 1) {
    /* Only the last rank gives weights. */
    int *weights = last ? &in : MPI_UNWEIGHTED;
    one = in = 1;
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, weights, 1, &next,
                                                      weights, none, 0, &ring));
    FAILS(MPI_ERR_ARG,
          MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &before, &one, &me, weights, none, 0, &ring));
  }
}

/* Sizes of grids of many nodes, of which one is the greatest prime that an int can be. */
static void sizes(void) {
  int prime[3] = {0, 0, 0}, square[2] = {0, 0}, power[3] = {0, 0, 0};
  OK(MPI_Dims_create(2147483647, 3, prime));
  CHECK(prime[0] == 2147483647 && prime[1] == 1 && prime[2] == 1);
  OK(MPI_Dims_create(46337 * 46337, 2, square));
  CHECK(square[0] == 46337 && square[1] == 46337);
  OK(MPI_Dims_create(1 << 30, 3, power));
  CHECK(power[0] == 1 << 10 && power[1] == 1 << 10 && power[2] == 1 << 10);
  /* The largest size and the smallest differ as little as possible. */
  int close[3] = {0, 0, 0};
  OK(MPI_Dims_create(7488, 3, close));
  CHECK(close[0] == 26 && close[1] == 18 && close[2] == 16);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  grids();
  small_grids();
  graphs();
  rings();
  sizes();
  return end();
}
