/* A layout that only its owner knows. The last rank keeps readings at byte offsets of its own. A
   type of byte offsets is right on the machine where it was made, and is refused as a target type
   at unlike ones. So the owner makes the type, and sends the type itself to the others. */
#include "example.h"
#include <string.h>

enum { LENGTH = 20, TAG = 1 };

struct reading {
  int id;
  double value;
  short quality;
};

static struct reading reading(int rank) {
  return (struct reading){7000 + rank, 0.125 * rank, (short)(-2 - rank)};
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int owner = size - 1, right = 1, lengths[3] = {1, 1, 1};
  MPI_Datatype members[3] = {MPI_INT, MPI_DOUBLE, MPI_SHORT}, here, there;
  MPIX_Type_create_simple_struct(3, lengths, members, &here);
  MPI_Type_commit(&here);
  char *memory;
  MPI_Win win;
  MPI_Win_allocate(me == owner ? LENGTH * size : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);

  if (me == owner) {
    MPI_Datatype packed;
    MPI_Aint places[3] = {0, 6, 16};
    MPI_Type_create_struct(3, lengths, places, members, &packed);
    MPI_Type_commit(&packed);
    for (int rank = 0; rank < owner; rank++) MPIX_Type_send(packed, rank, TAG, MPI_COMM_WORLD);
    MPI_Type_free(&packed);
  } else {
    MPIX_Type_recv(&there, owner, TAG, MPI_COMM_WORLD);
  }
  MPI_Win_fence(0, win);
  if (me != owner) {
    struct reading mine = reading(me);
    MPI_Put(&mine, 1, here, owner, LENGTH * me, 1, there, win);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

  for (int rank = 0; me == owner && rank < owner; rank++) {
    struct reading expected = reading(rank), got;
    memcpy(&got.id, memory + LENGTH * rank, sizeof got.id);
    memcpy(&got.value, memory + LENGTH * rank + 6, sizeof got.value);
    memcpy(&got.quality, memory + LENGTH * rank + 16, sizeof got.quality);
    right &= got.id == expected.id && got.value == expected.value;
    right &= got.quality == expected.quality;
  }
  if (me != owner) MPI_Type_free(&there);
  MPI_Type_free(&here);
  MPI_Win_free(&win);
  return end("each member lies at the owner's offset for it", right);
}
