/* A fault in the arguments of one rank fails a collective call at all ranks, and none waits for
   ever. Files have their own test. */
#include <mpix.h>
#include "check.h"

/* The rank with the fault is the last one. */
#define BAD (me == size - 1)

/* The text of the last error of a rank without a fault names the rank with one. */
static void names_it(int code) {
  char text[MPI_MAX_ERROR_STRING], rank[32];
  int length;
  OK(MPI_Error_string(code, text, &length));
  snprintf(rank, sizeof rank, "rank %d", size - 1);
  CHECK(BAD || strstr(text, rank));
}

static int refuse(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)keyval, (void)extra, (void)in, (void)out, (void)flag;
  return MPI_ERR_OTHER;
}

/* The making of communicators. */
static void communicators(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_SELF;
  MPI_Group all;
  MPI_Info gone, info;
  int keyval, dims[1] = {BAD ? 0 : 1}, periods[1] = {0}, indices[1] = {0};
  OK(MPI_Info_create(&info));
  gone = info;
  OK(MPI_Info_free(&info));
  int code = MPI_Comm_split(comm, BAD ? -7 : 0, 0, &made);
  FAILS(MPI_ERR_ARG, code);
  names_it(code);
  CHECK(made == MPI_COMM_NULL);
  FAILS(MPI_ERR_ARG, MPI_Comm_split(comm, 0, 0, BAD ? NULL : &made));
  FAILS(MPI_ERR_ARG, MPI_Comm_split_type(comm, BAD ? 12345 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
  code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, BAD ? gone : MPI_INFO_NULL, &made);
  FAILS(MPI_ERR_INFO, code);
  names_it(code);
  FAILS(MPI_ERR_INFO, MPI_Comm_dup_with_info(comm, BAD ? gone : MPI_INFO_NULL, &made));
  OK(MPI_Comm_group(comm, &all));
  FAILS(MPI_ERR_GROUP, MPI_Comm_create(comm, BAD ? MPI_GROUP_NULL : all, &made));
  OK(MPI_Group_free(&all));
  FAILS(MPI_ERR_DIMS, MPI_Cart_create(comm, 1, dims, periods, 0, &made));
  FAILS(MPI_ERR_ARG, MPI_Graph_create(comm, BAD ? -1 : 1, indices, indices, 0, &made));
  /* A copy function that fails at one rank. */
  OK(MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
  if (BAD)
    OK(MPI_Comm_set_attr(comm, keyval, NULL));
  FAILS(MPI_ERR_OTHER, MPI_Comm_dup(comm, &made));
  if (BAD)
    OK(MPI_Comm_delete_attr(comm, keyval));
  OK(MPI_Comm_free_keyval(&keyval));
  OK(MPI_Comm_dup(comm, &made));
  OK(MPI_Barrier(made));
  OK(MPI_Comm_free(&made));
}

static void agreements(MPI_Comm comm) {
  int flag = 3;
  MPI_Comm made;
  MPI_Request request = MPI_REQUEST_NULL;
  FAILS(MPI_ERR_ARG, MPIX_Comm_agree(comm, BAD ? NULL : &flag));
  flag = 6;
  OK(MPIX_Comm_agree(comm, &flag));
  CHECK(flag == 6);
  FAILS(MPI_ERR_ARG, MPIX_Comm_shrink(comm, BAD ? NULL : &made));
  int code = MPIX_Comm_iagree(comm, BAD ? NULL : &flag, &request);
  if (!BAD) {
    OK(code);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    names_it(code);
  }
  FAILS(MPI_ERR_BUFFER, code);
  OK(MPIX_Comm_shrink(comm, &made));
  OK(MPI_Comm_free(&made));
}

/* Accept, connect and spawn. The root is the rank with the fault, or another one. */
static void joins(MPI_Comm comm) {
  MPI_Comm both = MPI_COMM_SELF;
  MPI_Info info, gone;
  int root = size - 1;
  char port[MPI_MAX_PORT_NAME] = "none", *words[] = {"x", NULL};
  OK(MPI_Info_create(&info));
  gone = info;
  OK(MPI_Info_free(&info));
  int code = MPI_Comm_accept(BAD ? NULL : port, MPI_INFO_NULL, root, comm, &both);
  FAILS(MPI_ERR_ARG, code);
  names_it(code);
  CHECK(both == MPI_COMM_NULL);
  FAILS(MPI_ERR_PORT, MPI_Comm_accept(port, MPI_INFO_NULL, root, comm, &both));
  FAILS(MPI_ERR_ARG, MPI_Comm_connect(BAD ? NULL : port, MPI_INFO_NULL, root, comm, &both));
  if (BAD || me == 0)
    OK(MPI_Open_port(MPI_INFO_NULL, port));
  FAILS(MPI_ERR_ARG, MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, BAD ? NULL : &both));
  FAILS(MPI_ERR_INFO, MPI_Comm_connect(port, BAD ? gone : MPI_INFO_NULL, root, comm, &both));
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "timeout", "soon"));
  code = MPI_Comm_connect(port, info, root, comm, &both);
  FAILS(MPI_ERR_INFO_VALUE, code);
  names_it(code);
  OK(MPI_Info_free(&info));
  code = MPI_Comm_spawn(BAD ? NULL : "x", words, 1, MPI_INFO_NULL, root, comm, &both, MPI_ERRCODES_IGNORE);
  FAILS(MPI_ERR_ARG, code);
  names_it(code);
  FAILS(MPI_ERR_INFO, MPI_Comm_spawn("x", words, 1, BAD ? gone : MPI_INFO_NULL, root, comm, &both, MPI_ERRCODES_IGNORE));
  FAILS(MPI_ERR_ROOT, MPI_Comm_spawn("x", words, 1, MPI_INFO_NULL, size, comm, &both, MPI_ERRCODES_IGNORE));
  char *odd[] = {"\xff", NULL};
  FAILS(MPI_ERR_ARG, MPI_Comm_spawn("\xff", words, 1, MPI_INFO_NULL, root, comm, &both, MPI_ERRCODES_IGNORE));
  FAILS(MPI_ERR_ARG, MPI_Comm_spawn("x", odd, 1, MPI_INFO_NULL, root, comm, &both, MPI_ERRCODES_IGNORE));
  if (size > 1) {
    code = MPI_Comm_accept(port, MPI_INFO_NULL, BAD ? 0 : root, comm, &both);
    FAILS(MPI_ERR_RMA_SYNC, code);
    names_it(code);
  }
  if (BAD || me == 0)
    OK(MPI_Close_port(port));
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  communicators(MPI_COMM_WORLD);
  agreements(MPI_COMM_WORLD);
  joins(MPI_COMM_WORLD);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  return end();
}
