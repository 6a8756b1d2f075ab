/* A table of structs on each rank, filled by the rank before it. A long has four bytes or eight,
   and the members lie at other places on other machines. MPIX_Type_create_simple_struct makes a
   type that is right on all of them: it has the members, and each machine places them as its C
   compiler does. */
#include "example.h"

enum { RECORDS = 3 };

struct particle {
  signed char species;
  short charge;
  double position[3];
  long seen;
};

static struct particle particle(int maker, int number) {
  return (struct particle){(signed char)(maker - number),
                           (short)(-300 * (maker + 1) + number),
                           {0.5 * (number + 1), -2.25 * (number + 1), 1024.0 * maker},
                           1000000L * maker + number};
}

static int equal(const struct particle *one, const struct particle *other) {
  int same = one->species == other->species && one->charge == other->charge;
  for (int axis = 0; axis < 3; axis++) same &= one->position[axis] == other->position[axis];
  return same && one->seen == other->seen;
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int before = (me + size - 1) % size, next = (me + 1) % size;
  int lengths[4] = {1, 1, 3, 1};
  MPI_Datatype members[4] = {MPI_SIGNED_CHAR, MPI_SHORT, MPI_DOUBLE, MPI_LONG}, record;
  MPIX_Type_create_simple_struct(4, lengths, members, &record);
  MPI_Type_commit(&record);

  struct particle *table, mine[RECORDS];
  MPI_Win win;
  /* A displacement counts records of the target, however long they are there. */
  MPI_Win_allocate(sizeof mine, sizeof *table, MPI_INFO_NULL, MPI_COMM_WORLD, &table, &win);
  for (int number = 0; number < RECORDS; number++) mine[number] = particle(me, number);
  MPI_Win_fence(0, win);
  MPI_Put(mine, RECORDS, record, next, 0, RECORDS, record, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

  int right = 1;
  for (int number = 0; number < RECORDS; number++) {
    struct particle expected = particle(before, number);
    right &= equal(table + number, &expected);
  }
  MPI_Type_free(&record);
  MPI_Win_free(&win);
  return end("every record equals the one that the rank before put", right);
}
