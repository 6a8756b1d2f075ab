/* What mpix.h declares. */
#include "check.h"
#include <mpix.h>

/* The entries of a type. Each call returns as many as there is room for. */
static void elements(void) {
  int count, combiner, lengths[3] = {-7, -7, -7};
  MPI_Aint places[3] = {-7, -7, -7};
  MPI_Datatype types[3], two, vector, record, resized;
  int blocks[2] = {1, 2}, starts[2] = {0, 4};
  OK(MPIX_Type_count(MPI_DOUBLE, &count));
  CHECK(count == 1);
  OK(MPIX_Type_elements(MPI_DOUBLE, &count, &combiner, NULL, NULL, types));
  CHECK(count == 1 && combiner == MPI_COMBINER_NAMED && types[0] == MPI_DOUBLE);

  OK(MPI_Type_indexed(2, blocks, starts, MPI_INT, &two));
  OK(MPIX_Type_count(two, &count));
  CHECK(count == 2);
  OK(MPIX_Type_elements(two, &count, &combiner, lengths, places, types));
  CHECK(count == 2 && combiner == MPI_COMBINER_INDEXED && types[0] == MPI_INT);
  CHECK(lengths[0] == 1 && lengths[1] == 2 && lengths[2] == -7 && places[0] == 0 && places[1] == 4);
  /* The count comes in, too. No array is needed for none. */
  count = 1;
  places[1] = -7;
  OK(MPIX_Type_elements(two, &count, &combiner, lengths, places, types));
  CHECK(count == 1 && places[0] == 0 && places[1] == -7);
  count = 0;
  OK(MPIX_Type_elements(two, &count, &combiner, NULL, NULL, NULL));
  CHECK(count == 0 && combiner == MPI_COMBINER_INDEXED);
  count = -1;
  FAILS(MPI_ERR_COUNT, MPIX_Type_elements(two, &count, &combiner, lengths, places, types));
  count = 2;
  FAILS(MPI_ERR_ARG, MPIX_Type_elements(two, &count, &combiner, NULL, places, types));
  FAILS(MPI_ERR_ARG, MPIX_Type_elements(two, &count, NULL, lengths, places, types));
  FAILS(MPI_ERR_TYPE, MPIX_Type_count(MPI_DATATYPE_NULL, &count));
  CHECK(count == 2);

  /* A vector's count is the constructor's, though one entry is filled in. */
  OK(MPI_Type_vector(4, 3, 5, two, &vector));
  OK(MPIX_Type_count(vector, &count));
  OK(MPIX_Type_elements(vector, &count, &combiner, lengths, places, types));
  CHECK(count == 4 && combiner == MPI_COMBINER_VECTOR && lengths[0] == 3 && places[0] == 5);
  CHECK(types[0] != two);
  OK(MPI_Type_free(&types[0]));
  /* The markers of bounds that MPI removed are null. */
  OK(MPI_Type_create_resized(two, -8, 64, &resized));
  OK(MPIX_Type_count(resized, &count));
  OK(MPIX_Type_elements(resized, &count, &combiner, lengths, places, types));
  CHECK(count == 3 && combiner == MPI_COMBINER_RESIZED && places[0] == -8 && places[2] == 56);
  CHECK(types[0] == MPI_DATATYPE_NULL && types[2] == MPI_DATATYPE_NULL);
  OK(MPI_Type_free(&types[1]));
  OK(MPI_Type_free(&resized));
  OK(MPI_Type_free(&vector));

  /* A block that is too long for an int is one for the version with large counts. */
  MPI_Count many = 1, length, place;
  OK(MPI_Type_contiguous_c((MPI_Count)1 << 31, MPI_CHAR, &vector));
  count = 1;
  FAILS(MPI_ERR_TYPE, MPIX_Type_elements(vector, &count, &combiner, lengths, places, types));
  OK(MPIX_Type_elements_c(vector, &many, &combiner, &length, &place, types));
  CHECK(many == 1 && length == (MPI_Count)1 << 31 && types[0] == MPI_CHAR);
  OK(MPI_Type_free(&vector));

  /* A loop that descends ends with basic types. */
  MPI_Aint offsets[2] = {0, 512};
  MPI_Datatype members[2] = {two, MPI_DOUBLE}, pending[16];
  int basics[2] = {0, 0}, left = 1, freed = 0;
  OK(MPI_Type_create_struct(2, blocks, offsets, members, &record));
  pending[0] = record;
  while (left > 0) {
    MPI_Datatype type = pending[--left], found[4];
    int sizes[4], entries;
    MPI_Aint where[4];
    OK(MPIX_Type_count(type, &entries));
    CHECK(entries <= 4);
    for (int at = 0; at < 4; at++) found[at] = MPI_DATATYPE_NULL;
    OK(MPIX_Type_elements(type, &entries, &combiner, sizes, where, found));
    if (combiner == MPI_COMBINER_NAMED) {
      CHECK(found[0] == type);
      basics[type == MPI_DOUBLE]++;
    } else {
      for (int at = 0; at < entries; at++)
        if (found[at] != MPI_DATATYPE_NULL) pending[left++] = found[at];
      OK(MPI_Type_free(&type));
      freed++;
    }
  }
  CHECK(basics[0] == 1 && basics[1] == 1 && freed == 2);
  OK(MPI_Type_free(&two));
}

static char calls[16];
static MPI_Aint extents;

static void noted(char mark, MPI_Datatype type) {
  MPI_Aint lb, extent;
  /* The handle is still valid. */
  OK(MPI_Type_get_extent(type, &lb, &extent));
  extents += extent;
  calls[strlen(calls)] = mark;
}

static void first(MPI_Datatype type) { noted('1', type); }
static void second(MPI_Datatype type) { noted('2', type); }

static int refusals;

static int refuse(MPI_Datatype type, int keyval, void *value, void *extra) {
  (void)type, (void)keyval, (void)value, (void)extra;
  calls[strlen(calls)] = 'd';
  return refusals-- > 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* Handlers are called at each free that no delete function refuses, in the order of their
   registration. */
static void free_handlers(void) {
  MPI_Datatype pair, dup;
  int keyval;
  FAILS(MPI_ERR_ARG, MPIX_Type_free_handler(NULL));
  OK(MPIX_Type_free_handler(first));
  OK(MPI_Type_contiguous(2, MPI_DOUBLE, &pair));
  OK(MPI_Type_dup(pair, &dup));
  OK(MPI_Type_free(&pair));
  CHECK(strcmp(calls, "1") == 0 && extents == 2 * sizeof(double));
  OK(MPIX_Type_free_handler(second));
  OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, refuse, &keyval, NULL));
  OK(MPI_Type_set_attr(dup, keyval, NULL));
  refusals = 1;
  FAILS(MPI_ERR_OTHER, MPI_Type_free(&dup));
  CHECK(strcmp(calls, "1d") == 0);
  OK(MPI_Type_free(&dup));
  CHECK(strcmp(calls, "1dd12") == 0 && extents == 6 * sizeof(double));
  OK(MPI_Type_free_keyval(&keyval));
  /* A predefined type is never freed. */
  MPI_Datatype predefined = MPI_DOUBLE;
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&predefined));
  CHECK(strcmp(calls, "1dd12") == 0);
}

static int freed;

static void count_freed(MPI_Datatype type) {
  (void)type;
  freed++;
}

/* A type that another rank built is a target type, and nothing else. */
static void a_received_type(void) {
  MPI_Datatype pair, theirs, other = MPI_DATATYPE_NULL;
  double values[2] = {1, 2}, *base;
  char room[256];
  int position = 0, number;
  MPI_Aint lb, extent;
  MPI_Win win;
  OK(MPI_Type_contiguous(2, MPI_DOUBLE, &pair));
  FAILS(MPI_ERR_TYPE, MPIX_Type_send(pair, 0, 0, MPI_COMM_SELF));
  OK(MPI_Type_commit(&pair));
  OK(MPIX_Type_send(pair, 0, 0, MPI_COMM_SELF));
  OK(MPIX_Type_recv(&theirs, 0, 0, MPI_COMM_SELF));
  OK(MPI_Type_free(&pair));
  OK(MPI_Win_allocate(16, 8, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_fence(0, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(values, 1, theirs, 0, 0, 1, theirs, win));
  OK(MPI_Put(values, 2, MPI_DOUBLE, 0, 0, 1, theirs, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(base[0] == 1 && base[1] == 2);
  OK(MPI_Win_free(&win));
  FAILS(MPI_ERR_TYPE, MPI_Send(values, 1, theirs, 0, 0, MPI_COMM_SELF));
  FAILS(MPI_ERR_TYPE, MPI_Recv(values, 1, theirs, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TYPE, MPIX_Type_send(theirs, 0, 0, MPI_COMM_SELF));
  FAILS(MPI_ERR_TYPE, MPI_Pack(values, 1, theirs, room, sizeof room, &position, MPI_COMM_SELF));
  FAILS(MPI_ERR_TYPE, MPIX_Pack(NULL, 1, theirs, room, sizeof room, &position, MPI_COMM_NULL));
  FAILS(MPI_ERR_TYPE, MPI_Type_get_extent(theirs, &lb, &extent));
  FAILS(MPI_ERR_TYPE, MPI_Type_size(theirs, &number));
  FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(theirs, &number, &number, &number, &number));
  FAILS(MPI_ERR_TYPE, MPIX_Type_count(theirs, &number));
  FAILS(MPI_ERR_TYPE, MPI_Type_dup(theirs, &other));
  FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(2, theirs, &other));
  FAILS(MPI_ERR_TYPE, MPI_Type_commit(&theirs));
  /* Its end is one of a datatype. */
  OK(MPIX_Type_free_handler(count_freed));
  OK(MPI_Type_free(&theirs));
  CHECK(freed == 1 && theirs == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  elements();
  a_received_type();
  free_handlers();
  char mine[64], theirs[64], text[64];
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, me, mine, sizeof mine));
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, (me + 1) % size, theirs, sizeof theirs));
  CHECK(mine[0] && theirs[0]);
  FAILS(MPI_ERR_RANK, MPIX_Comm_representation(MPI_COMM_WORLD, size, mine, sizeof mine));
  MPI_Datatype record, types[2] = {MPI_CHAR, MPI_DOUBLE};
  int lengths[2] = {1, 2}, flag;
  OK(MPIX_Type_create_simple_struct(2, lengths, types, &record));
  OK(MPIX_Type_is_portable(record, &flag));
  CHECK(flag);
  struct { char name; double values[2]; } local;
  MPI_Aint lb, extent;
  OK(MPI_Type_get_extent(record, &lb, &extent));
  CHECK(lb == 0 && extent == sizeof local);
  OK(MPIX_Type_print(record, text, sizeof text));
  CHECK(strchr(text, 'd'));
  OK(MPI_Type_free(&record));
  MPI_Aint places[2] = {0, 8};
  OK(MPI_Type_create_struct(2, lengths, places, types, &record));
  OK(MPIX_Type_is_portable(record, &flag));
  CHECK(!flag);
  OK(MPI_Type_free(&record));
  FAILS(MPI_ERR_TYPE, MPIX_Type_is_portable(MPI_DATATYPE_NULL, &flag));
  return end();
}
