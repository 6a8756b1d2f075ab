/* Packed datatypes and communicators, and what an unpacked communicator can be used for. */
#include "check.h"
#include <mpix.h>

static char packed[4096];

/* Checks that the message of a code has words in it. */
static void says(int code, int class, const char *words) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  FAILS(class, code);
  OK(MPI_Error_string(code, text, &length));
  if (!strstr(text, words)) fprintf(stderr, "no \"%s\" in: %s\n", words, text);
  CHECK(strstr(text, words));
}

static int compared(MPI_Comm one, MPI_Comm other) {
  int result = -1, turned = -1;
  OK(MPIX_Comm_compare(one, other, &result));
  OK(MPIX_Comm_compare(other, one, &turned));
  CHECK(result == turned);
  return result;
}

static MPI_Comm unpacked(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  int position = 0, back = 0;
  OK(MPIX_Pack(NULL, 1, MPI_DATATYPE_NULL, packed, sizeof packed, &position, comm));
  OK(MPIX_Unpack(packed, position, &back, NULL, 1, NULL, &made));
  CHECK(back == position && made != MPI_COMM_NULL);
  return made;
}

/* Each row of the table of arguments, and combinations that aren't in it. */
static void arguments(void) {
  int size_of_type, size_of_comm, size_of_data, position = 0, before;
  double values[4] = {1, 2, 3, 4}, got[4] = {0};
  MPI_Datatype column, type = MPI_DATATYPE_NULL, no_type = MPI_DATATYPE_NULL;
  MPI_Comm comm = MPI_COMM_NULL, no_comm = MPI_COMM_NULL, world = MPI_COMM_WORLD;
  OK(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &column));
  /* A datatype, committed or not; a communicator; data. */
  OK(MPIX_Pack_size(1, column, MPI_COMM_NULL, &size_of_type));
  OK(MPIX_Pack(NULL, 1, column, packed, sizeof packed, &position, MPI_COMM_NULL));
  CHECK(position == size_of_type && memcmp(packed, "MDT1;P;00000", 12) == 0);
  OK(MPIX_Pack_size(1, MPI_DATATYPE_NULL, world, &size_of_comm));
  OK(MPIX_Pack(NULL, 1, MPI_DATATYPE_NULL, packed, sizeof packed, &position, world));
  CHECK(position == size_of_type + size_of_comm && memcmp(packed + size_of_type, "MCM1;", 5) == 0);
  FAILS(MPI_ERR_TYPE, MPIX_Pack_size(1, column, world, &size_of_data));
  OK(MPI_Type_commit(&column));
  OK(MPIX_Pack_size(1, column, world, &size_of_data));
  CHECK(size_of_data == 16);
  OK(MPIX_Pack(values, 1, column, packed, sizeof packed, &position, world));
  CHECK(position == size_of_type + size_of_comm + 16);

  int end_of_data = position;
  char text[64];
  position = 0;
  /* Both handles are null: the packed object says which of them it is. */
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &type, &comm));
  CHECK(type != MPI_DATATYPE_NULL && comm == MPI_COMM_NULL && position == size_of_type);
  OK(MPIX_Type_print(type, text, sizeof text));
  CHECK(strcmp(text, "U1(V:d:2:1:2)") == 0);
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &no_type, &comm));
  CHECK(no_type == MPI_DATATYPE_NULL && position == size_of_type + size_of_comm);
  CHECK(compared(comm, world) == MPI_IDENT);
  /* An unpacked type is committed. The data has the representation of its communicator, which may
     be the unpacked one. */
  OK(MPIX_Unpack(packed, sizeof packed, &position, got, 1, &type, &world));
  CHECK(position == end_of_data && got[0] == 1 && got[1] == 0 && got[2] == 3 && got[3] == 0);
  position -= 16;
  got[0] = got[2] = 0;
  OK(MPIX_Unpack(packed, sizeof packed, &position, got, 1, &type, &comm));
  CHECK(position == end_of_data && got[0] == 1 && got[2] == 3);

  /* A null address is a null handle that isn't set. */
  MPI_Datatype again = MPI_DATATYPE_NULL;
  position = 0;
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &again, NULL));
  CHECK(again != MPI_DATATYPE_NULL && position == size_of_type);
  FAILS(MPI_ERR_TYPE, MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &no_type, NULL));
  before = 0;
  FAILS(MPI_ERR_TYPE, MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, NULL, &no_comm));
  CHECK(before == 0 && position == size_of_type && no_type == MPI_DATATYPE_NULL && no_comm == MPI_COMM_NULL);
  OK(MPI_Type_free(&again));

  for (int count = 0; count <= 2; count += 2) {
    int size = 0, place = 0;
    says(MPIX_Pack_size(count, MPI_DATATYPE_NULL, world, &size), MPI_ERR_ARG, "with a null handle");
    says(MPIX_Pack_size(count, column, MPI_COMM_NULL, &size), MPI_ERR_ARG, "pass 1");
    says(MPIX_Unpack(packed, sizeof packed, &place, NULL, count, &no_type, &no_comm), MPI_ERR_ARG, "pass 1");
  }
  FAILS(MPI_ERR_COUNT, MPIX_Pack_size(-1, column, MPI_COMM_NULL, &before));
  before = 0;
  says(MPIX_Pack(NULL, 1, MPI_DATATYPE_NULL, packed, sizeof packed, &before, MPI_COMM_NULL), MPI_ERR_ARG, "both null");
  says(MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, NULL, NULL), MPI_ERR_ARG, "both null");
  says(MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, &type, NULL), MPI_ERR_ARG, "set the handle to null");
  says(MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, &no_type, &world), MPI_ERR_ARG, "set the handle to null");
  FAILS(MPI_ERR_BUFFER, MPIX_Pack(NULL, 1, column, packed, sizeof packed, &before, world));
  FAILS(MPI_ERR_BUFFER, MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, &column, &world));
  /* Data of zero bytes need no address. */
  OK(MPIX_Pack(NULL, 0, column, packed, sizeof packed, &before, world));
  OK(MPIX_Unpack(packed, sizeof packed, &before, NULL, 0, &column, &world));
  CHECK(before == 0);
  before = sizeof packed - 8;
  says(MPIX_Pack(NULL, 1, column, packed, sizeof packed, &before, MPI_COMM_NULL), MPI_ERR_TRUNCATE, "the buffer of 4096 has 8");
  CHECK(before == sizeof packed - 8);
  before = 2 * sizeof packed;
  says(MPIX_Pack(NULL, 1, column, packed, sizeof packed, &before, MPI_COMM_NULL), MPI_ERR_ARG, "past the end");
  says(MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, &no_type, &no_comm), MPI_ERR_ARG, "past the end");
  CHECK(before == 2 * sizeof packed);
  before = -1;
  FAILS(MPI_ERR_ARG, MPIX_Pack(NULL, 1, column, packed, sizeof packed, &before, MPI_COMM_NULL));
  before = 0;
  FAILS(MPI_ERR_TRUNCATE, MPIX_Unpack(packed, 20, &before, NULL, 1, &no_type, NULL));
  packed[20] ^= 1;
  FAILS(MPI_ERR_TYPE, MPIX_Unpack(packed, sizeof packed, &before, NULL, 1, &no_type, NULL));
  CHECK(before == 0 && no_type == MPI_DATATYPE_NULL);
  /* The version with large counts. */
  MPI_Count large, place = 0;
  OK(MPIX_Pack_size_c(1, column, MPI_COMM_NULL, &large));
  OK(MPIX_Pack_c(NULL, 1, column, packed, sizeof packed, &place, MPI_COMM_NULL));
  CHECK(large == size_of_type && place == large);
  place = 0;
  OK(MPIX_Unpack_c(packed, sizeof packed, &place, NULL, 1, &again, &no_comm));
  OK(MPI_Type_free(&again));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_free(&column));
  OK(MPI_Comm_free(&comm));
  CHECK(comm == MPI_COMM_NULL);
}

/* MPI's own calls keep their errors: a null handle selects nothing there. */
static void the_standards_calls(void) {
  int position = 0, size, result;
  double value = 1;
  MPI_Comm comm = unpacked(MPI_COMM_WORLD);
  FAILS(MPI_ERR_COMM, MPI_Pack_size(1, MPI_DOUBLE, MPI_COMM_NULL, &size));
  FAILS(MPI_ERR_TYPE, MPI_Pack_size(1, MPI_DATATYPE_NULL, MPI_COMM_WORLD, &size));
  FAILS(MPI_ERR_COMM, MPI_Pack(&value, 1, MPI_DOUBLE, packed, sizeof packed, &position, MPI_COMM_NULL));
  FAILS(MPI_ERR_TYPE, MPI_Pack(&value, 1, MPI_DATATYPE_NULL, packed, sizeof packed, &position, MPI_COMM_WORLD));
  FAILS(MPI_ERR_COMM, MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
  OK(MPI_Comm_free(&comm));
}

static void an_unpacked_communicator(void) {
  MPI_Comm comm = unpacked(MPI_COMM_WORLD), other = unpacked(MPI_COMM_SELF), dup, freed;
  int size, position = 0, result, value = 0;
  const char *only = "can only be given to MPIX_Comm_compare";
  says(MPI_Comm_size(comm, &size), MPI_ERR_COMM, only);
  says(MPI_Comm_dup(comm, &dup), MPI_ERR_COMM, only);
  says(MPI_Send(&value, 1, MPI_INT, 0, 0, comm), MPI_ERR_COMM, only);
  says(MPIX_Pack_size(1, MPI_DATATYPE_NULL, comm, &size), MPI_ERR_COMM, only);
  says(MPIX_Pack(&value, 1, MPI_INT, packed, sizeof packed, &position, comm), MPI_ERR_COMM, only);
  CHECK(compared(comm, comm) == MPI_IDENT && compared(other, MPI_COMM_SELF) == MPI_IDENT);
  freed = comm;
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free(&other));
  FAILS(MPI_ERR_COMM, MPIX_Comm_compare(freed, MPI_COMM_WORLD, &result));
  FAILS(MPI_ERR_COMM, MPIX_Comm_compare(MPI_COMM_NULL, MPI_COMM_WORLD, &result));
  FAILS(MPI_ERR_COMM, MPI_Comm_free(&freed));
}

static void comparisons(void) {
  MPI_Comm dup, turned, part, copy;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &turned));
  OK(MPI_Comm_split(MPI_COMM_WORLD, me == 0 ? 0 : MPI_UNDEFINED, 0, &part));
  copy = unpacked(dup);
  CHECK(compared(copy, dup) == MPI_IDENT && compared(copy, MPI_COMM_WORLD) == MPI_CONGRUENT);
  OK(MPI_Comm_free(&copy));
  copy = unpacked(turned);
  CHECK(compared(copy, MPI_COMM_WORLD) == (size == 1 ? MPI_CONGRUENT : MPI_SIMILAR));
  if (part != MPI_COMM_NULL && size > 1) {
    /* Not the same processes, but their data can be converted. */
    CHECK(compared(copy, part) == MPIX_ARCH_EQUIV);
    /* Two communicators of this job compare by MPI's rules. */
    CHECK(compared(turned, part) == MPI_UNEQUAL);
  }
  OK(MPI_Comm_free(&copy));
  if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
  OK(MPI_Comm_free(&turned));
  OK(MPI_Comm_free(&dup));
  if (size == 1) return;
  /* An intercommunicator has two groups: its packed form would have one. */
  MPI_Comm half, inter;
  int bytes;
  OK(MPI_Comm_split(MPI_COMM_WORLD, me % 2, 0, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 0, &inter));
  FAILS(MPI_ERR_COMM, MPIX_Pack_size(1, MPI_DATATYPE_NULL, inter, &bytes));
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_free(&half));
}

/* The contents of an unpacked type, and types of byte displacements and of parameters. */
static void types(void) {
  int position = 0, integers, addresses, types, combiner, start[3];
  MPI_Aint places[2] = {0, 8};
  int lengths[2] = {1, 2};
  MPI_Datatype record, members[2] = {MPI_CHAR, MPI_DOUBLE}, vector, kind, got = MPI_DATATYPE_NULL, inner;
  OK(MPI_Type_vector(2, 3, 4, MPI_INT, &vector));
  OK(MPI_Type_create_struct(2, lengths, places, members, &record));
  OK(MPI_Type_create_f90_integer(5, &kind));
  OK(MPIX_Pack(NULL, 1, vector, packed, sizeof packed, &position, MPI_COMM_NULL));
  OK(MPIX_Pack(NULL, 1, record, packed, sizeof packed, &position, MPI_COMM_NULL));
  OK(MPIX_Pack(NULL, 1, kind, packed, sizeof packed, &position, MPI_COMM_NULL));
  OK(MPIX_Pack(NULL, 1, MPI_LONG, packed, sizeof packed, &position, MPI_COMM_NULL));
  position = 0;
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &got, NULL));
  OK(MPI_Type_get_envelope(got, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_VECTOR && integers == 3 && types == 1);
  OK(MPI_Type_get_contents(got, 3, 0, 1, start, NULL, &inner));
  CHECK(start[0] == 2 && start[1] == 3 && start[2] == 4 && inner == MPI_INT);
  OK(MPI_Type_free(&got));
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &got, NULL));
  OK(MPI_Type_get_envelope(got, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_STRUCT && addresses == 2);
  OK(MPI_Type_free(&got));
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &got, NULL));
  CHECK(got == kind);
  got = MPI_DATATYPE_NULL;
  OK(MPIX_Unpack(packed, sizeof packed, &position, NULL, 1, &got, NULL));
  CHECK(got == MPI_LONG);
  OK(MPI_Type_free(&vector));
  OK(MPI_Type_free(&record));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  arguments();
  the_standards_calls();
  an_unpacked_communicator();
  comparisons();
  types();
  return end();
}
