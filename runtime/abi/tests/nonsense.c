/* Wrong handles of every sort, in every position of many calls: each raises an error, and none
   crashes. Then calls with random handles, counts and ranks on real memory. */
#include "check.h"
#include <stdint.h>

#define EACH(bad) for (int i = 0; i < COUNT && ((bad) = (void *)wrong[i], 1); i++)

enum { COUNT = 24 };
static intptr_t wrong[COUNT];
static char memory[4096];

static uint64_t state = 12345;

static unsigned next(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(state >> 33);
}

/* Calls that take one handle of a kind, which is wrong. */
static void wrong_ones(void) {
  void *bad;
  int n, flag;
  MPI_Aint lb, extent;
  MPI_Comm comm;
  MPI_Group group;
  MPI_Info info;
  MPI_Datatype type;
  EACH(bad) {
    CHECK(MPI_Comm_rank(bad, &n) != 0);
    CHECK(MPI_Comm_dup(bad, &comm) != 0);
    CHECK(MPI_Comm_group(bad, &group) != 0);
    CHECK(MPI_Comm_set_name(bad, "x") != 0);
    comm = bad;
    CHECK(MPI_Comm_free(&comm) != 0);
    CHECK(MPI_Comm_set_attr(bad, MPI_TAG_UB, 0) != 0);
    CHECK(MPI_Comm_call_errhandler(bad, 5) != 0);
    CHECK(MPI_Group_size(bad, &n) != 0);
    CHECK(MPI_Group_union(bad, MPI_GROUP_EMPTY, &group) != 0);
    CHECK(MPI_Type_get_extent(bad, &lb, &extent) != 0);
    CHECK(MPI_Type_dup(bad, &type) != 0);
    CHECK(MPI_Type_contiguous(2, bad, &type) != 0);
    type = bad;
    CHECK(MPI_Type_commit(&type) != 0 && MPI_Type_free(&type) != 0);
    CHECK(MPI_Info_set(bad, "a", "b") != 0);
    CHECK(MPI_Info_dup(bad, &info) != 0);
    CHECK(MPI_Win_fence(0, bad) != 0);
    CHECK(MPI_Win_flush(0, bad) != 0);
    CHECK(MPI_Win_post(bad, 0, bad) != 0);
    CHECK(MPI_Win_test(bad, &flag) != 0);
    CHECK(MPI_Put(memory, 1, MPI_INT, 0, 0, 1, MPI_INT, bad) != 0);
    CHECK(MPI_Fetch_and_op(memory, memory + 8, MPI_INT, 0, 0, MPI_SUM, bad) != 0);
    CHECK(MPI_Errhandler_free((MPI_Errhandler *)&bad) != 0);
    CHECK(MPI_File_get_size(bad, &(MPI_Offset){0}) != 0);
  }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  MPI_Win win;
  MPI_Group freed;
  MPI_Datatype pair;
  char *base;
  OK(MPI_Comm_group(MPI_COMM_SELF, &freed));
  MPI_Group stale = freed;
  OK(MPI_Group_free(&freed));
  intptr_t some[COUNT] = {0, 1, -1, 4095, 4096, 4097, 0x100, 0x108, 0x110, 0x118, 0x120, 0x128, 0x130,
                          0x180, 0x200, 0x20, 0x2ff, 0x7fffffff, (intptr_t)memory, (intptr_t)memory + 1,
                          (intptr_t)stale, (intptr_t)stale + 1, (intptr_t)stale - 4, (intptr_t)1 << 30};
  memcpy(wrong, some, sizeof wrong);
  wrong_ones();

  OK(MPI_Type_vector(3, 1, 2, MPI_SHORT, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Win_allocate(256, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  OK(MPI_Win_lock_all(0, win));
  MPI_Datatype types[] = {MPI_INT, MPI_BYTE, MPI_CHAR, MPI_DOUBLE, MPI_DOUBLE_INT, pair, MPI_DATATYPE_NULL, (MPI_Datatype)stale};
  MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_NO_OP, MPI_MAXLOC, MPI_BXOR, MPI_OP_NULL, (MPI_Op)win};
  int done = 0;
  for (int i = 0; i < 20000; i++) {
    int count = (int)(next() % 12) - 2, target_count = (int)(next() % 12) - 2;
    int rank = next() % 8 ? 0 : (int)(next() % 7) - 4;
    MPI_Aint disp = (MPI_Aint)(next() % 300) - 20;
    MPI_Datatype one = types[next() % 8], other = next() % 3 ? one : types[next() % 8];
    MPI_Op op = ops[next() % 7];
    char *from = memory + next() % 512, *to = memory + 2048 + next() % 512, *from2 = memory + 1024;
    int code = 0;
    switch (next() % 9) {
    case 0: code = MPI_Put(from, count, one, rank, disp, target_count, other, win); break;
    case 1: code = MPI_Get(to, count, one, rank, disp, target_count, other, win); break;
    case 2: code = MPI_Accumulate(from, count, one, rank, disp, target_count, other, op, win); break;
    case 3: code = MPI_Get_accumulate(from, count, one, to, count, one, rank, disp, target_count, other, op, win); break;
    case 4: code = MPI_Fetch_and_op(from, to, one, rank, disp, op, win); break;
    case 5: code = MPI_Compare_and_swap(from, from2, to, one, rank, disp, win); break;
    case 6: code = MPI_Win_flush(rank, win); break;
    case 7: code = MPI_Put_c(from, count, one, rank, disp, target_count, other, win); break;
    case 8: code = next() % 2 ? MPI_Win_flush_local_all(win) : MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win); break;
    }
    int class;
    OK(MPI_Error_class(code, &class));
    done += code == 0;
  }
  CHECK(done > 1000);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_free(&win));
  OK(MPI_Type_free(&pair));
  return end();
}
