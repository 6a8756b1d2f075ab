/* Errors speak C: MPI's names for types, handles and calls. */
// run: -n 1
// says: 1: MPI_COMM_NULL was passed: a communicator is needed
// says: 2: MPI_INT is predefined: it can't be freed
// says: 3: MPI_Type_vector(2, 1, 2, MPI_INT) isn't committed: call MPI_Type_commit first
// says: 4: no rank 9 in a communicator or group of 1: use one from 0 up
// says: and below 1, or MPI_PROC_NULL
// says: 5: tag MPI_ANY_TAG is only for receives
// says: 6: the signatures differ: 1 MPI_INT at the origin, 1 MPI_DOUBLE at the target:
// says: use MPI_INT at the target, or MPI_DOUBLE at the origin
// says: 7: a predefined operation: MPI_BXOR isn't defined on MPI_DOUBLE, a floating-point type
// says: 8: lock type 77 doesn't exist: use MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE
// says: 9: MPI_Type_create_struct(2, {1, 1}, {0, 8}, {MPI_INT, MPI_DOUBLE})
// says: 10: a compare-and-swap: MPI_DOUBLE is a floating-point type: use an integer
// says: 11: the error handler was created for a communicator, not a window
// says: 12: an operation needs an access epoch to its target: make it between two calls of
// says: MPI_Win_fence, of MPI_Win_lock and MPI_Win_unlock, or of MPI_Win_start and MPI_Win_complete
// says: (MPI_Put at rank 0, target 0, window 1
// says: 13: an MPI_Win_complete without an MPI_Win_start: call MPI_Win_start before it (rule 4)
// says: 14: an MPI_Win_wait or MPI_Win_test without an MPI_Win_post: call MPI_Win_post before it
// says: (MPI_Bcast at rank 0
// never: (put at
// never: Datatype::
// never: repr(C)
// never: of kind
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void print(int number, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  /* The name of the call and of the class come before. */
  const char *start = strstr(text, ": MPI_ERR_"), *end = start ? strstr(start + 2, ": ") : NULL;
  printf("%d: %s\n", number, end ? end + 2 : text);
}

static void handler(MPI_Comm *comm, int *code, ...) {
  (void)comm, (void)code;
}

int main(void) {
  MPI_Datatype datatype = MPI_INT, vector, record;
  MPI_Errhandler errhandler;
  MPI_Aint places[] = {0, 8};
  int value[4] = {0}, lengths[] = {1, 1};
  double real = 0, other = 0;
  MPI_Win win;
  void *memory;
  MPI_Init(NULL, NULL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  print(1, MPI_Barrier(MPI_COMM_NULL));
  print(2, MPI_Type_free(&datatype));
  MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
  print(3, MPI_Send(value, 1, vector, 0, 0, MPI_COMM_WORLD));
  print(4, MPI_Send(value, 1, MPI_INT, 9, 0, MPI_COMM_WORLD));
  print(5, MPI_Send(value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD));
  MPI_Win_fence(0, win);
  print(6, MPI_Put(value, 1, MPI_INT, 0, 0, 1, MPI_DOUBLE, win));
  MPI_Win_fence(0, win);
  print(7, MPI_Allreduce(&real, &other, 1, MPI_DOUBLE, MPI_BXOR, MPI_COMM_WORLD));
  print(8, MPI_Win_lock(77, 0, 0, win));
  MPI_Type_create_struct(2, lengths, places, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &record);
  MPI_Type_commit(&record);
  print(9, MPI_Allreduce(MPI_IN_PLACE, value, 1, record, MPI_SUM, MPI_COMM_WORLD));
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  print(10, MPI_Compare_and_swap(&real, &other, &other, MPI_DOUBLE, 0, 0, win));
  MPI_Win_unlock(0, win);
  MPI_Comm_create_errhandler(handler, &errhandler);
  print(11, MPI_Win_set_errhandler(win, errhandler));
  print(12, MPI_Put(value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  print(13, MPI_Win_complete(win));
  print(14, MPI_Win_wait(win));
  print(15, MPI_Bcast(value, 1, MPI_INT, 7, MPI_COMM_WORLD));
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
