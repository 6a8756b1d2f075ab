/* Attributes of windows and types, their callbacks, and what callbacks may do (MPI-5.0 section
   7.7). */
#include "check.h"

static int copies, deletes, refuse, last_deleted;
static void *last_extra;

static int copy_type(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)keyval;
  int n;
  /* The handle is that of the old type, and calls on it work. */
  if (MPI_Type_size(type, &n) != MPI_SUCCESS) return MPI_ERR_OTHER;
  copies++;
  last_extra = extra;
  *(void **)out = (char *)in + n;
  *flag = 1;
  return refuse ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static int delete_type(MPI_Datatype type, int keyval, void *value, void *extra) {
  (void)type, (void)keyval, (void)extra;
  if (refuse) return MPI_ERR_INTERN;
  deletes++;
  last_deleted = (int)(intptr_t)value;
  return MPI_SUCCESS;
}

static int delete_win(MPI_Win win, int keyval, void *value, void *extra) {
  (void)keyval, (void)extra;
  MPI_Group group;
  if (refuse) return MPI_ERR_INTERN;
  /* The window is still there. */
  if (MPI_Win_get_group(win, &group) != MPI_SUCCESS) return MPI_ERR_OTHER;
  MPI_Group_free(&group);
  deletes++;
  last_deleted = (int)(intptr_t)value;
  return MPI_SUCCESS;
}

static void types(void) {
  int key, other, flag, extra;
  void *value;
  MPI_Datatype type, dup, third;
  OK(MPI_Type_create_keyval(copy_type, delete_type, &key, &extra));
  OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &other, NULL));
  CHECK(key != other && key != MPI_KEYVAL_INVALID);
  OK(MPI_Type_contiguous(2, MPI_INT, &type));
  OK(MPI_Type_get_attr(type, key, &value, &flag));
  CHECK(!flag);
  OK(MPI_Type_set_attr(type, key, (void *)100));
  OK(MPI_Type_set_attr(type, other, (void *)200));
  OK(MPI_Type_dup(type, &dup));
  CHECK(copies == 1 && last_extra == &extra);
  OK(MPI_Type_get_attr(dup, key, &value, &flag));
  CHECK(flag && value == (void *)108);
  OK(MPI_Type_get_attr(dup, other, &value, &flag));
  CHECK(!flag);
  /* Other constructors copy no attributes. */
  OK(MPI_Type_contiguous(2, type, &third));
  OK(MPI_Type_get_attr(third, key, &value, &flag));
  CHECK(!flag && copies == 1);
  OK(MPI_Type_free(&third));
  refuse = 1;
  /* The calls return the very code that the functions returned. */
  CHECK(MPI_Type_dup(type, &third) == MPI_ERR_INTERN);
  CHECK(MPI_Type_delete_attr(type, key) == MPI_ERR_INTERN);
  CHECK(MPI_Type_set_attr(type, key, (void *)1) == MPI_ERR_INTERN);
  CHECK(MPI_Type_free(&type) == MPI_ERR_INTERN && type != MPI_DATATYPE_NULL);
  refuse = 0;
  OK(MPI_Type_get_attr(type, key, &value, &flag));
  CHECK(flag && value == (void *)100);
  OK(MPI_Type_delete_attr(type, key));
  CHECK(deletes == 1 && last_deleted == 100);
  OK(MPI_Type_get_attr(type, key, &value, &flag));
  CHECK(!flag);
  OK(MPI_Type_free(&type));
  CHECK(deletes == 1);
  OK(MPI_Type_free(&dup));
  CHECK(deletes == 2 && last_deleted == 108);
  OK(MPI_Type_free_keyval(&other));
  OK(MPI_Type_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
  FAILS(MPI_ERR_KEYVAL, MPI_Type_free_keyval(&key));
  FAILS(MPI_ERR_KEYVAL, MPI_Type_set_attr(MPI_INT, MPI_KEYVAL_INVALID, NULL));
  FAILS(MPI_ERR_KEYVAL, MPI_Type_get_attr(MPI_INT, MPI_KEYVAL_INVALID, &value, &flag));
  FAILS(MPI_ERR_KEYVAL, MPI_Type_delete_attr(MPI_INT, MPI_KEYVAL_INVALID));
  FAILS(MPI_ERR_TYPE, MPI_Type_get_attr(MPI_DATATYPE_NULL, key, &value, &flag));
  FAILS(MPI_ERR_ARG, MPI_Type_create_keyval(copy_type, delete_type, NULL, NULL));
  FAILS(MPI_ERR_ARG, MPI_Type_free_keyval(NULL));
}

static void windows(void) {
  int key, dup_key, flag, *base;
  void *value;
  MPI_Win win;
  OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_win, &key, NULL));
  OK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &dup_key, NULL));
  OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_get_attr(win, key, &value, &flag));
  CHECK(!flag);
  OK(MPI_Win_set_attr(win, key, (void *)7));
  OK(MPI_Win_set_attr(win, dup_key, NULL));
  OK(MPI_Win_get_attr(win, dup_key, &value, &flag));
  CHECK(flag && !value);
  deletes = 0;
  OK(MPI_Win_set_attr(win, key, (void *)8));
  CHECK(deletes == 1 && last_deleted == 7);
  /* Keyvals of another kind, and those that are predefined, are refused. */
  int of_comm;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &of_comm, NULL));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_set_attr(win, of_comm, NULL));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_get_attr(win, of_comm, &value, &flag));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_free_keyval(&of_comm));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_set_attr(win, MPI_WIN_BASE, NULL));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_delete_attr(win, MPI_WIN_SIZE));
  FAILS(MPI_ERR_KEYVAL, MPI_Win_get_attr(win, MPI_TAG_UB, &value, &flag));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WIN_BASE, &value, &flag));
  FAILS(MPI_ERR_ARG, MPI_Win_get_attr(win, key, NULL, &flag));
  FAILS(MPI_ERR_ARG, MPI_Win_get_attr(win, key, &value, NULL));
  OK(MPI_Comm_free_keyval(&of_comm));
  /* The delete function refuses the free, and the window goes on. */
  refuse = 1;
  CHECK(MPI_Win_delete_attr(win, key) == MPI_ERR_INTERN);
  CHECK(MPI_Win_free(&win) == MPI_ERR_INTERN && win != MPI_WIN_NULL);
  refuse = 0;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  /* The keyval may be freed first. */
  OK(MPI_Win_free_keyval(&key));
  OK(MPI_Win_free_keyval(&dup_key));
  OK(MPI_Win_free(&win));
  CHECK(deletes == 2 && last_deleted == 8);
}

/* A callback that uses attributes of the same object itself. */
static int chained, chain_key;

static int delete_chained(MPI_Comm comm, int keyval, void *value, void *extra) {
  void *other;
  int flag;
  (void)keyval, (void)extra;
  chained++;
  /* Another attribute of the communicator can be read, and one more can be deleted. */
  if (MPI_Comm_get_attr(comm, chain_key, &other, &flag) != MPI_SUCCESS) return MPI_ERR_OTHER;
  if (flag && value == (void *)2 && MPI_Comm_delete_attr(comm, chain_key) != MPI_SUCCESS) return MPI_ERR_OTHER;
  return MPI_SUCCESS;
}

static void nested(void) {
  MPI_Comm comm;
  int key;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_chained, &chain_key, NULL));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_chained, &key, NULL));
  OK(MPI_Comm_set_attr(comm, chain_key, (void *)1));
  OK(MPI_Comm_set_attr(comm, key, (void *)2));
  OK(MPI_Comm_free(&comm));
  CHECK(chained == 2);
  OK(MPI_Comm_free_keyval(&key));
  OK(MPI_Comm_free_keyval(&chain_key));
}

/* The predefined attributes of the world. */
static void predefined(void) {
  int *value, flag, keys[] = {MPI_TAG_UB, MPI_IO, MPI_HOST, MPI_WTIME_IS_GLOBAL, MPI_UNIVERSE_SIZE, MPI_APPNUM, MPI_LASTUSEDCODE};
  for (int i = 0; i < 7; i++) {
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, keys[i], &value, &flag));
    if (keys[i] == MPI_TAG_UB) CHECK(flag && *value >= 32767);
    if (keys[i] == MPI_LASTUSEDCODE) CHECK(flag && *value >= MPI_ERR_LASTCODE);
    if (keys[i] == MPI_UNIVERSE_SIZE && flag) CHECK(*value >= size);
    if (keys[i] == MPI_HOST && flag) CHECK(*value == MPI_PROC_NULL || (*value >= 0 && *value < size));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, keys[i], &value));
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(MPI_COMM_WORLD, keys[i]));
    int key = keys[i];
    FAILS(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));
  }
  /* The greatest tag can be used, and the next one can't. */
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
  MPI_Status status;
  OK(MPI_Sendrecv(NULL, 0, MPI_INT, 0, *value, NULL, 0, MPI_INT, 0, *value, MPI_COMM_SELF, &status));
  CHECK(status.MPI_TAG == *value);
  if (*value < 0x7fffffff) FAILS(MPI_ERR_TAG, MPI_Send(NULL, 0, MPI_INT, 0, *value + 1, MPI_COMM_SELF));
  /* A dup has the predefined attributes, too. */
  MPI_Comm dup;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
  OK(MPI_Comm_get_attr(dup, MPI_TAG_UB, &value, &flag));
  CHECK(flag && *value >= 32767);
  OK(MPI_Comm_free(&dup));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  types();
  windows();
  nested();
  predefined();
  return end();
}
