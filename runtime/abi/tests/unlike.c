/* What ranks of unlike machines may do together. ci/steps/abi runs it with like ranks, and
   ci/steps/unlike-c with ranks of several architectures in one job. */
#include "check.h"
#include <limits.h>
#include <stddef.h>
#include <mpix.h>

/* Whether a rank has this rank's data representation. */
static int is_like(int rank) {
  char mine[64], theirs[64];
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, me, mine, sizeof mine));
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, rank, theirs, sizeof theirs));
  return !strcmp(mine, theirs);
}

/* What decides whether data are the same at a rank as at this one: the byte order, and how C places
   a double. */
enum { MOST = 64 };
static int big[MOST], places[MOST];

static void learn(void) {
  struct placed {
    char before;
    double value;
  };
  int one = 1, mine[2] = {*(char *)&one == 0, offsetof(struct placed, value)}, all[2 * MOST];
  CHECK(size <= MOST);
  OK(MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD));
  for (int rank = 0; rank < size; rank++) {
    big[rank] = all[2 * rank];
    places[rank] = all[2 * rank + 1];
  }
}

/* Checks an error: its class, and words of its message. */
static void says(int code, int expected, const char *words) {
  char text[MPI_MAX_ERROR_STRING];
  int length, class;
  OK(MPI_Error_class(code, &class));
  OK(MPI_Error_string(code, text, &length));
  if (class != expected || !strstr(text, words)) {
    fprintf(stderr, "class %d, not %d, or no \"%s\" in: %s\n", class, expected, words, text);
    MPI_Abort(MPI_COMM_WORLD, 99);
  }
}

struct record {
  char name;
  long count;
  double values[2];
};

static MPI_Datatype record_type(void) {
  MPI_Datatype type, types[3] = {MPI_CHAR, MPI_LONG, MPI_DOUBLE};
  int lengths[3] = {1, 1, 2};
  OK(MPIX_Type_create_simple_struct(3, lengths, types, &type));
  OK(MPI_Type_commit(&type));
  MPI_Aint lb, extent;
  OK(MPI_Type_get_extent(type, &lb, &extent));
  CHECK(lb == 0 && extent == sizeof(struct record));
  return type;
}

/* Each rank puts a struct into the window of every rank, and gets it back. */
static void records(void) {
  struct record *base, mine = {(char)('a' + me), -5 - me, {0.25 + me, -0x1p900}}, back;
  MPI_Win win;
  MPI_Datatype type = record_type();
  OK(MPI_Win_allocate(size * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  OK(MPI_Win_fence(0, win));
  for (int rank = 0; rank < size; rank++) OK(MPI_Put(&mine, 1, type, rank, me, 1, type, win));
  OK(MPI_Win_fence(0, win));
  for (int rank = 0; rank < size; rank++) {
    CHECK(base[rank].name == 'a' + rank && base[rank].count == -5 - rank);
    CHECK(base[rank].values[0] == 0.25 + rank && base[rank].values[1] == -0x1p900);
  }
  OK(MPI_Win_fence(0, win));
  for (int rank = 0; rank < size; rank++) {
    memset(&back, 0, sizeof back);
    OK(MPI_Get(&back, 1, type, rank, me, 1, type, win));
    OK(MPI_Win_fence(0, win));
    CHECK(back.name == mine.name && back.count == mine.count && back.values[1] == -0x1p900);
  }
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  OK(MPI_Type_free(&type));
  OK(MPI_Win_free(&win));
}

/* A type whose displacements are bytes is right where C places all of its items alike. The message
   of its refusal names its constructor, the item that lies elsewhere, and what to do. */
static void bytes(void) {
  double *base, mine[2] = {1.5, 2.5};
  MPI_Win win;
  MPI_Datatype type;
  int next = (me + 1) % size;
  OK(MPI_Win_allocate(32, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  OK(MPI_Type_create_hvector(2, 1, 16, MPI_DOUBLE, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  int code = MPI_Put(mine, 2, MPI_DOUBLE, next, 0, 1, type, win);
  if (places[next] == places[me]) {
    OK(code);
  } else {
    says(code, MPI_ERR_TYPE, "hvector");
    says(code, MPI_ERR_TYPE, "MPI_DOUBLE has 8 bytes aligned to");
    says(code, MPI_ERR_TYPE, "MPIX_Type_send");
  }
  OK(MPI_Win_unlock(next, win));
  /* The target builds it, and sends it. */
  MPI_Datatype theirs;
  int before = (me + size - 1) % size;
  OK(MPIX_Type_send(type, before, 5, MPI_COMM_WORLD));
  OK(MPIX_Type_recv(&theirs, next, 5, MPI_COMM_WORLD));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(mine, 2, MPI_DOUBLE, next, 1, 1, theirs, win));
  OK(MPI_Win_fence(0, win));
  CHECK(base[1] == 1.5 && base[3] == 2.5);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Accumulate(mine, 2, MPI_DOUBLE, next, 1, 1, theirs, MPI_SUM, win));
  OK(MPI_Win_fence(0, win));
  CHECK(base[1] == 3 && base[3] == 5);
  OK(MPI_Win_fence(0, win));
  double got[2] = {0, 0};
  OK(MPI_Get(got, 2, MPI_DOUBLE, next, 1, 1, theirs, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK(got[0] == 3 && got[1] == 5);
  /* It describes the memory of its builder, and no other. */
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(mine, 1, theirs, next, 1, 2, MPI_DOUBLE, win));
  if (size > 1) {
    code = MPI_Put(mine, 2, MPI_DOUBLE, me, 1, 1, theirs, win);
    says(code, MPI_ERR_TYPE, "MPI_Type_create_hvector(2, 1, 16, MPI_DOUBLE) was built at process");
  }
  OK(MPI_Put(mine, 2, MPI_DOUBLE, MPI_PROC_NULL, 1, 1, theirs, win));
  OK(MPI_Win_unlock_all(win));
  FAILS(MPI_ERR_TYPE, MPI_Send(mine, 1, theirs, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  MPI_Datatype kept = theirs;
  OK(MPI_Type_free(&theirs));
  CHECK(theirs == MPI_DATATYPE_NULL);
  FAILS(MPI_ERR_TYPE, MPI_Type_free(&kept));
  FAILS(MPI_ERR_TYPE, MPIX_Type_send(kept, next, 5, MPI_COMM_WORLD));
  FAILS(MPI_ERR_RANK, MPIX_Type_send(type, size, 5, MPI_COMM_WORLD));
  OK(MPIX_Type_send(type, MPI_PROC_NULL, 5, MPI_COMM_WORLD));
  FAILS(MPI_ERR_TAG, MPIX_Type_recv(&theirs, next, -7, MPI_COMM_WORLD));
  OK(MPI_Type_free(&type));
  FAILS(MPI_ERR_TYPE, MPIX_Type_send(MPI_DATATYPE_NULL, next, 5, MPI_COMM_WORLD));
  OK(MPI_Win_free(&win));
}

/* A value that the target's type can't hold is refused, with its index and itself. */
static void values(void) {
  long *base, mine[3] = {1, 2, LONG_MAX};
  MPI_Win win;
  OK(MPI_Win_allocate(24, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  int unit = sizeof *base;
  for (int rank = 0; rank < size; rank++) {
    int their_unit = unit;
    OK(MPI_Bcast(&their_unit, 1, MPI_INT, rank, MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    int code = MPI_Put(mine, 3, MPI_LONG, rank, 0, 3, MPI_LONG, win);
    int end = MPI_Win_flush(rank, win);
    if (unit > their_unit) {
      int failed = code == MPI_SUCCESS ? end : code;
      says(failed, MPI_ERR_CONVERSION, "9223372036854775807");
      says(failed, MPI_ERR_CONVERSION, "element 2 (MPI_LONG)");
    } else {
      OK(code);
      OK(end);
    }
    OK(MPI_Win_unlock(rank, win));
  }
  OK(MPI_Win_free(&win));
}

/* Types of one length match between ranks at which they have the same bytes, and only equal
   signatures between others. */
static void lengths(void) {
  int *base, mine = 0x01020304, got = 0, next = (me + 1) % size, before = (me + size - 1) % size;
  MPI_Win win;
  OK(MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
  int code = MPI_Put(&mine, 4, MPI_BYTE, next, 0, 1, MPI_INT, win);
  if (big[next] == big[me]) OK(code);
  else says(code, MPI_ERR_TYPE, "signatures differ");
  OK(MPI_Win_unlock(next, win));
  OK(MPI_Win_free(&win));
  MPI_Request request;
  MPI_Status status;
  OK(MPI_Isend(&mine, 4, MPI_BYTE, next, 1, MPI_COMM_WORLD, &request));
  code = MPI_Recv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &status);
  if (big[before] == big[me]) {
    OK(code);
    CHECK(got == mine);
    int count;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(count == 1);
  } else {
    says(code, MPI_ERR_TYPE, "4 MPI_BYTE at the origin, 1 MPI_INT at the target");
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  /* Not if only the length is right for a part of an element. */
  OK(MPI_Isend(&mine, 3, MPI_BYTE, next, 1, MPI_COMM_WORLD, &request));
  FAILS(MPI_ERR_TYPE, MPI_Recv(&got, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &status));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  /* A collective call needs all ranks to be alike. */
  int all_like = 1;
  for (int rank = 0; rank < size; rank++) all_like &= is_like(rank);
  char text[4] = {1, 2, 3, 4};
  if (me == 0) code = MPI_Bcast(&mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
  else code = MPI_Bcast(text, 4, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (all_like || me == 0) {
    OK(code);
    if (me) CHECK(!memcmp(text, &mine, 4));
  } else {
    says(code, MPI_ERR_TYPE, "4 bytes of other types");
  }
  /* Packed data are right at any rank. */
  char packed[64];
  int position = 0;
  double values[2] = {0.5, me}, there[2];
  OK(MPI_Pack(values, 2, MPI_DOUBLE, packed, 64, &position, MPI_COMM_WORLD));
  OK(MPI_Isend(packed, position, MPI_PACKED, next, 2, MPI_COMM_WORLD, &request));
  OK(MPI_Recv(there, 2, MPI_DOUBLE, before, 2, MPI_COMM_WORLD, &status));
  CHECK(there[0] == 0.5 && there[1] == before);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Ranks that share memory have one representation. */
static void shared(void) {
  MPI_Comm near;
  MPI_Group mine, all;
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
  int count, like = 0;
  OK(MPI_Comm_size(near, &count));
  OK(MPI_Comm_group(near, &mine));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
  for (int rank = 0; rank < count; rank++) {
    int there;
    OK(MPI_Group_translate_ranks(mine, 1, &rank, all, &there));
    CHECK(is_like(there));
  }
  for (int rank = 0; rank < size; rank++) like += is_like(rank);
  CHECK(count == like);
  long *base, *first;
  MPI_Win win;
  MPI_Aint length;
  int unit;
  OK(MPI_Win_allocate_shared(sizeof *base, sizeof *base, MPI_INFO_NULL, near, &base, &win));
  OK(MPI_Win_shared_query(win, 0, &length, &unit, &first));
  CHECK(length == sizeof *base && unit == sizeof *base);
  OK(MPI_Win_free(&win));
  OK(MPI_Group_free(&mine));
  OK(MPI_Group_free(&all));
  OK(MPI_Comm_free(&near));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  char name[64];
  OK(MPIX_Comm_representation(MPI_COMM_WORLD, me, name, sizeof name));
  learn();
  records();
  bytes();
  values();
  lengths();
  shared();
  printf("rank %d of %d, %s: ok\n", me, size, name);
  return end();
}
