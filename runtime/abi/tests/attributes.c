/* Attributes: copies, deletes, their order, callbacks that fail, and refused frees. */
#include "check.h"

static int deleted[8], deletes, copies, refuse;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)keyval;
  copies++;
  *(void **)out = (char *)in + 1;
  *flag = *(int *)extra;
  return refuse ? MPI_ERR_KEYVAL : MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)extra;
  if (refuse) return MPI_ERR_OTHER;
  deleted[deletes++ % 8] = (int)(intptr_t)value;
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  int one, two, extra = 1, flag;
  void *value;
  MPI_Comm comm, dup;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_create_keyval(copy, delete, &one, &extra));
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &two, 0));
  OK(MPI_Comm_set_attr(comm, one, (void *)100));
  OK(MPI_Comm_set_attr(comm, two, (void *)200));
  OK(MPI_Comm_get_attr(comm, one, &value, &flag));
  CHECK(flag && value == (void *)100);
  OK(MPI_Comm_dup(comm, &dup));
  CHECK(copies == 1);
  OK(MPI_Comm_get_attr(dup, one, &value, &flag));
  CHECK(flag && value == (void *)101);
  OK(MPI_Comm_get_attr(dup, two, &value, &flag));
  CHECK(!flag);
  /* A new value deletes the old one. */
  OK(MPI_Comm_set_attr(comm, one, (void *)110));
  CHECK(deletes == 1 && deleted[0] == 100);
  /* A keyval that is freed lives on in its attributes. */
  int freed = one;
  OK(MPI_Comm_free_keyval(&freed));
  CHECK(freed == MPI_KEYVAL_INVALID);
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(comm, one, 0));
  OK(MPI_Comm_get_attr(comm, one, &value, &flag));
  CHECK(flag && value == (void *)110);
  freed = one;
  OK(MPI_Comm_free_keyval(&freed));
  /* A copy that fails makes no dup, a delete that fails leaves the communicator usable. */
  refuse = 1;
  MPI_Comm third = MPI_COMM_NULL;
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_dup(comm, &third));
  FAILS(MPI_ERR_OTHER, MPI_Comm_free(&comm));
  CHECK(comm != MPI_COMM_NULL);
  FAILS(MPI_ERR_OTHER, MPI_Comm_delete_attr(comm, two));
  refuse = 0;
  int n;
  OK(MPI_Comm_size(comm, &n));
  /* The last attribute that was set is deleted first. */
  deletes = 0;
  OK(MPI_Comm_free(&comm));
  CHECK(deletes == 2 && deleted[0] == 200 && deleted[1] == 110);
  OK(MPI_Comm_free(&dup));
  CHECK(deletes == 3 && deleted[2] == 101);
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, one, &value, &flag));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_get_attr(MPI_COMM_WORLD, 987654, &value, &flag));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value));

  /* Predefined types have attributes, and keyvals are of one kind. */
  int of_type;
  MPI_Datatype copied;
  OK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &of_type, 0));
  FAILS(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, of_type, 0));
  OK(MPI_Type_set_attr(MPI_INT, of_type, &n));
  OK(MPI_Type_dup(MPI_INT, &copied));
  OK(MPI_Type_get_attr(copied, of_type, &value, &flag));
  CHECK(flag && value == &n);
  OK(MPI_Type_free(&copied));
  OK(MPI_Type_delete_attr(MPI_INT, of_type));
  OK(MPI_Type_free_keyval(&of_type));

  /* The attributes of MPI_COMM_SELF are deleted when MPI ends. */
  deletes = 0;
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, two, (void *)300));
  OK(MPI_Finalize());
  return deletes == 1 && deleted[0] == 300 ? 0 : 1;
}
