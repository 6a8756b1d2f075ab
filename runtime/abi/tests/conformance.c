/* What public conformance tests do, and programs with them, beyond the other tests. */
#include "check.h"

/* A program that sets the handler of MPI_COMM_WORLD gets the errors that belong to no object, until
   it sets that of MPI_COMM_SELF. */
static int handled;

static void note(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  handled++;
}

static void handlers(void) {
  MPI_Datatype type;
  MPI_Errhandler noting;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
  OK(MPI_Comm_create_errhandler(note, &noting));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, noting));
  OK(MPI_Errhandler_free(&noting));
  FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
  CHECK(handled == 1);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

/* A rank may free a communicator before the others do, and while it receives on it. */
static void freed_early(void) {
  MPI_Comm dup;
  MPI_Request request;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Barrier(dup));
  if (size > 1 && me == 0) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Ssend(NULL, 0, MPI_INT, 1, 0, dup));
    OK(MPI_Comm_free(&dup));
  } else if (me == 1) {
    OK(MPI_Irecv(NULL, 0, MPI_INT, 0, 0, dup, &request));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_Comm_free(&dup));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
}

/* The status of a receive that failed names the message. */
static void truncated(void) {
  int three[3] = {1, 2, 3}, two[2], one;
  MPI_Request requests[2], sent[2];
  MPI_Status statuses[2];
  OK(MPI_Irecv(two, 2, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Irecv(&one, 1, MPI_INT, me, 6, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Isend(three, 3, MPI_INT, me, 5, MPI_COMM_WORLD, &sent[0]));
  OK(MPI_Isend(three, 1, MPI_INT, me, 6, MPI_COMM_WORLD, &sent[1]));
  FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
  FAILS(MPI_ERR_TRUNCATE, statuses[0].MPI_ERROR);
  CHECK(statuses[0].MPI_SOURCE == me && statuses[0].MPI_TAG == 5);
  CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_TAG == 6 && one == 1);
  OK(MPI_Waitall(2, sent, MPI_STATUSES_IGNORE));
  /* A test that finds an error has found an end. */
  int flag = 0, code;
  OK(MPI_Irecv(&one, 1, MPI_INT, me, 7, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(three, 3, MPI_INT, me, 7, MPI_COMM_WORLD, &sent[0]));
  while ((code = MPI_Test(&requests[0], &flag, statuses)) == MPI_SUCCESS)
    CHECK(!flag);
  FAILS(MPI_ERR_TRUNCATE, code);
  CHECK(flag && requests[0] == MPI_REQUEST_NULL);
  OK(MPI_Wait(&sent[0], MPI_STATUS_IGNORE));
  OK(MPI_Irecv(&one, 1, MPI_INT, me, 8, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Isend(three, 3, MPI_INT, me, 8, MPI_COMM_WORLD, &requests[1]));
  flag = 0;
  while ((code = MPI_Testall(2, requests, &flag, statuses)) == MPI_SUCCESS)
    CHECK(!flag);
  FAILS(MPI_ERR_IN_STATUS, code);
  CHECK(flag && requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
}

/* One buffer for data and result is refused, unless the types place the elements. */
static void aliases(void) {
  int both[16] = {1}, results[16];
  MPI_Request request;
  MPI_Datatype first, second;
  FAILS(MPI_ERR_BUFFER, MPI_Allreduce(both, both, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
  FAILS(MPI_ERR_BUFFER, MPI_Gather(both, 1, MPI_INT, both, 1, MPI_INT, 0, MPI_COMM_SELF));
  FAILS(MPI_ERR_BUFFER, MPI_Iscan(both, both, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request));
  FAILS(MPI_ERR_BUFFER,
        MPI_Alltoall_init(both, 1, MPI_INT, both, 1, MPI_INT, MPI_COMM_SELF, MPI_INFO_NULL, &request));
  FAILS(MPI_ERR_BUFFER, MPI_Reduce_local(both, both, 1, MPI_INT, MPI_SUM));
  FAILS(MPI_ERR_BUFFER, MPI_Allgather(both + 1, 2, MPI_INT, both, 2, MPI_INT, MPI_COMM_SELF));
  FAILS(MPI_ERR_BUFFER, MPI_Allgatherv(both + 2, 2, MPI_INT, both, (int[]){2}, (int[]){1}, MPI_INT, MPI_COMM_SELF));
  FAILS(MPI_ERR_BUFFER, MPI_Scatterv(both, (int[]){2}, (int[]){3}, MPI_INT, both + 4, 2, MPI_INT, 0, MPI_COMM_SELF));
  OK(MPI_Allgatherv(both, 2, MPI_INT, both, (int[]){2}, (int[]){2}, MPI_INT, MPI_COMM_SELF));
  OK(MPI_Exscan(both, both, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
  if (size > 1)
    FAILS(MPI_ERR_BUFFER, MPI_Exscan(both, both, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  OK(MPI_Allreduce(both, both, 0, MPI_INT, MPI_SUM, MPI_COMM_SELF));
  OK(MPI_Allreduce(MPI_IN_PLACE, both, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
  OK(MPI_Allgather(both, 1, MPI_INT, results, 1, MPI_INT, MPI_COMM_SELF));
  OK(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){0}, MPI_INT, &first));
  OK(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){4}, MPI_INT, &second));
  OK(MPI_Type_commit(&first));
  OK(MPI_Type_commit(&second));
  OK(MPI_Allgather(both, 1, first, both, 1, second, MPI_COMM_SELF));
  CHECK(both[1] == both[0] && results[0] == 1);
  OK(MPI_Type_free(&first));
  OK(MPI_Type_free(&second));
}

static int refuse_comm(MPI_Comm old, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)old, (void)keyval, (void)extra, (void)in, (void)out, (void)flag;
  return MPI_ERR_OTHER;
}

static int refuse_type(MPI_Datatype old, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)old, (void)keyval, (void)extra, (void)in, (void)out, (void)flag;
  return MPI_ERR_OTHER;
}

/* A call that fails leaves a null handle where it would have left an object's. */
static void nulls(void) {
  int keyval, sides[2] = {size + 1, 2}, periods[2] = {0, 0};
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Datatype type = MPI_INT, old;
  MPI_Request request;
  OK(MPI_Comm_create_keyval(refuse_comm, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
  FAILS(MPI_ERR_OTHER, MPI_Comm_dup(MPI_COMM_SELF, &comm));
  CHECK(comm == MPI_COMM_NULL);
  OK(MPI_Comm_delete_attr(MPI_COMM_SELF, keyval));
  OK(MPI_Comm_free_keyval(&keyval));
  OK(MPI_Type_contiguous(2, MPI_INT, &old));
  OK(MPI_Type_create_keyval(refuse_type, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL));
  OK(MPI_Type_set_attr(old, keyval, NULL));
  FAILS(MPI_ERR_OTHER, MPI_Type_dup(old, &type));
  CHECK(type == MPI_DATATYPE_NULL);
  OK(MPI_Type_free(&old));
  OK(MPI_Type_free_keyval(&keyval));
  comm = MPI_COMM_WORLD;
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periods, 0, &comm) != MPI_SUCCESS);
  CHECK(comm == MPI_COMM_NULL);
  memset(&request, 0x55, sizeof request);
  FAILS(MPI_ERR_RANK, MPI_Isend(&keyval, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &request));
  CHECK(request == MPI_REQUEST_NULL);
}

/* Logical operations take the types of addresses, counts and offsets, as elsewhere. */
static void logical(void) {
  MPI_Count count = 3, all = 0;
  MPI_Offset offset = 0, any = 1;
  OK(MPI_Allreduce(&count, &all, 1, MPI_COUNT, MPI_LAND, MPI_COMM_WORLD));
  OK(MPI_Allreduce(&offset, &any, 1, MPI_OFFSET, MPI_LOR, MPI_COMM_WORLD));
  CHECK(all != 0 && any == 0);
}

/* Programs count with MPI_CHAR, as C does with char, in reductions as in accumulates. */
static void counted_chars(void) {
  char mine[3] = {(char)(me + 1), 1, 'a'}, all[3], most = 0;
  OK(MPI_Allreduce(mine, all, 3, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD));
  CHECK(all[0] == size * (size + 1) / 2 && all[1] == size && all[2] == (char)('a' * size));
  OK(MPI_Allreduce(mine, &most, 1, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD));
  CHECK(most == size);
  OK(MPI_Allreduce(mine + 1, &most, 1, MPI_CHAR, MPI_LAND, MPI_COMM_WORLD));
  CHECK(most == 1);
  mine[0] = (char)-1;
  mine[1] = 1;
  OK(MPI_Reduce_local(mine, mine + 1, 1, MPI_CHAR, MPI_MAX));
  CHECK(mine[1] == (mine[0] < 1 ? 1 : mine[0]));
  FAILS(MPI_ERR_OP, MPI_Allreduce(mine, all, 1, MPI_CHAR, MPI_MAXLOC, MPI_COMM_SELF));
}

/* Accumulates of no items have no types that could differ. */
static void nothing(void) {
  int memory[2] = {7, 8}, value = 1;
  MPI_Win win;
  MPI_Datatype empty;
  OK(MPI_Type_contiguous(0, MPI_INT, &empty));
  OK(MPI_Type_commit(&empty));
  OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Accumulate(&value, 0, MPI_DOUBLE, me, 0, 0, MPI_INT, MPI_SUM, win));
  OK(MPI_Accumulate(&value, 1, empty, me, 0, 0, MPI_DOUBLE, MPI_SUM, win));
  OK(MPI_Get_accumulate(NULL, 0, MPI_INT, NULL, 2, empty, me, 0, 1, empty, MPI_SUM, win));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(&value, 1, MPI_INT, me, 0, 0, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_fence(0, win));
  CHECK(memory[0] == 7 && memory[1] == 8);
  OK(MPI_Win_free(&win));
  OK(MPI_Type_free(&empty));
}

/* An operation may reach from one attachment into the next. */
static void attachments(void) {
  static int memory[12];
  int values[6] = {1, 2, 3, 4, 5, 6}, got[6] = {0};
  MPI_Aint there[7], mine;
  MPI_Win win;
  int next = (me + 1) % size;
  CHECK(size <= 7);
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_attach(win, memory, 16));
  OK(MPI_Win_attach(win, memory + 4, 16));
  OK(MPI_Get_address(memory, &mine));
  OK(MPI_Allgather(&mine, 1, MPI_AINT, there, 1, MPI_AINT, MPI_COMM_WORLD));
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Put(values, 6, MPI_INT, next, there[next] + 4, 6, MPI_INT, win));
  OK(MPI_Win_flush(next, win));
  OK(MPI_Get(got, 6, MPI_INT, next, there[next] + 4, 6, MPI_INT, win));
  OK(MPI_Win_flush(next, win));
  CHECK(memcmp(got, values, sizeof values) == 0);
  MPI_Put(values, 6, MPI_INT, next, there[next] + 12, 6, MPI_INT, win);
  FAILS(MPI_ERR_RMA_RANGE, MPI_Win_flush(next, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_detach(win, memory));
  OK(MPI_Win_detach(win, memory + 4));
  OK(MPI_Win_free(&win));
}

/* Hints change, and a rank without memory has no address. */
static void hints(void) {
  const char *keys[] = {"no_locks", "same_size", "same_disp_unit", "alloc_shared_noncontig"};
  char text[8];
  int *base, unit, flag, length;
  MPI_Aint bytes;
  MPI_Win win;
  MPI_Info info;
  OK(MPI_Win_allocate_shared(me == 0 ? 0 : 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  for (int i = 0; i < 8; i++) {
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, keys[i / 2], i % 2 ? "false" : "true"));
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    length = sizeof text;
    OK(MPI_Info_get_string(info, keys[i / 2], &length, text, &flag));
    CHECK(flag && strcmp(text, i % 2 ? "false" : "true") == 0);
    OK(MPI_Info_free(&info));
    /* That no rank locks is a promise, which the program may break. */
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_unlock_all(win));
  }
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &base));
  CHECK(bytes == 0 && base == NULL);
  OK(MPI_Win_shared_query(win, size - 1, &bytes, &unit, &base));
  CHECK(size == 1 || (bytes == 4 && base != NULL));
  OK(MPI_Win_free(&win));
}

/* A type with two names has the first that MPI lists. */
static void names(void) {
  char name[MPI_MAX_OBJECT_NAME];
  int length;
  OK(MPI_Type_get_name(MPI_LONG_LONG, name, &length));
  CHECK(strcmp(name, "MPI_LONG_LONG_INT") == 0);
  OK(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length));
  CHECK(strcmp(name, "MPI_C_COMPLEX") == 0);
}

int main(int argc, char **argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  handlers();
  freed_early();
  truncated();
  aliases();
  nulls();
  logical();
  counted_chars();
  nothing();
  attachments();
  hints();
  names();
  return end();
}
