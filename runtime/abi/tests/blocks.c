/* Collective calls with long blocks, which go from memory to memory: of types that only their
   length makes alike, in strided memory, in place, and beside short blocks. */
#include "check.h"

enum { LONG = 10007 }; /* ints of a long block */

static int element(int from, int to, int at) { return (from * 16 + to) * 100000 + at; }

static int *ints(size_t count) {
  int *memory = malloc((count + 1) * sizeof *memory);
  CHECK(memory);
  for (size_t at = 0; at <= count; at++) memory[at] = -1;
  return memory;
}

static void fill(int *block, int from, int to, int length) {
  for (int at = 0; at < length; at++) block[at] = element(from, to, at);
}

static int is_block(const int *block, int from, int to, int length, int step) {
  for (int at = 0; at < length; at++)
    if (block[at * step] != element(from, to, at)) return 0;
  return 1;
}

/* The ints from one rank to another. */
static int length(int from, int to) { return (from + 2 * to) % 3 == 0 ? 5 : LONG; }

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int bytes = LONG * (int)sizeof(int);
  int *mine = ints(LONG), *room = ints((size_t)LONG * size), *data = ints((size_t)LONG * size);

  for (int root = 0; root < size; root++) {
    fill(mine, me == root ? root : 99, 0, LONG);
    if (me == root)
      OK(MPI_Bcast(mine, bytes, MPI_BYTE, root, MPI_COMM_WORLD));
    else
      OK(MPI_Bcast(mine, LONG, MPI_INT, root, MPI_COMM_WORLD));
    CHECK(is_block(mine, root, 0, LONG, 1));
  }

  fill(mine, me, 0, LONG);
  OK(MPI_Allgather(mine, bytes, MPI_BYTE, room, LONG, MPI_INT, MPI_COMM_WORLD));
  for (int from = 0; from < size; from++) CHECK(is_block(room + from * LONG, from, 0, LONG, 1));

  for (int to = 0; to < size; to++) fill(data + to * LONG, me, to, LONG);
  OK(MPI_Alltoall(data, LONG, MPI_INT, room, bytes, MPI_BYTE, MPI_COMM_WORLD));
  for (int from = 0; from < size; from++) CHECK(is_block(room + from * LONG, from, me, LONG, 1));
  OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, data, LONG, MPI_INT, MPI_COMM_WORLD));
  CHECK(memcmp(data, room, (size_t)bytes * size) == 0);

  /* Every second int, in the blocks of each rank. */
  MPI_Datatype strided, sparse;
  OK(MPI_Type_vector(LONG, 1, 2, MPI_INT, &strided));
  OK(MPI_Type_create_resized(strided, 0, 2 * (MPI_Aint)bytes, &sparse));
  OK(MPI_Type_commit(&sparse));
  int *wide = ints(2 * (size_t)LONG * size);
  OK(MPI_Allgather(mine, LONG, MPI_INT, wide, 1, sparse, MPI_COMM_WORLD));
  for (int from = 0; from < size; from++) {
    CHECK(is_block(wide + 2 * from * LONG, from, 0, LONG, 2));
    CHECK(wide[2 * from * LONG + 1] == -1);
  }

  /* Long and short blocks. */
  int counts[64], places[64], taken[64], from_places[64], total = 0, in = 0;
  CHECK(size <= 64);
  for (int other = 0; other < size; other++) {
    counts[other] = length(me, other), places[other] = total, total += counts[other];
    taken[other] = length(other, me), from_places[other] = in, in += taken[other];
  }
  int *given = ints((size_t)total), *got = ints((size_t)in);
  for (int to = 0; to < size; to++) fill(given + places[to], me, to, counts[to]);
  MPI_Request request;
  OK(MPI_Ialltoallv(given, counts, places, MPI_INT, got, taken, from_places, MPI_INT, MPI_COMM_WORLD, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int from = 0; from < size; from++) CHECK(is_block(got + from_places[from], from, me, taken[from], 1));
  CHECK(got[in] == -1);

  /* A rank without room fails, and the others get all blocks. */
  int is_short = size > 1 && me == size - 1;
  int code = MPI_Allgather(mine, LONG, MPI_INT, room, LONG - is_short, MPI_INT, MPI_COMM_WORLD), class = MPI_SUCCESS;
  MPI_Error_class(code, &class);
  CHECK(is_short ? class != MPI_SUCCESS : class == MPI_SUCCESS);
  for (int from = 0; from < size && !is_short; from++) CHECK(is_block(room + from * LONG, from, 0, LONG, 1));

  OK(MPI_Type_free(&strided));
  OK(MPI_Type_free(&sparse));
  free(mine), free(room), free(data), free(wide), free(given), free(got);
  return end();
}
