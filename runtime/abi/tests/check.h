/* What the tests in C have in common: a check that ends the job, and one of an error's class. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 99);                                           \
    }                                                                          \
  } while (0)

/* Checks that a call fails with an error of a class. */
#define FAILS(class, call)                                                      \
  do {                                                                          \
    int code_ = (call), class_ = -1;                                            \
    MPI_Error_class(code_, &class_);                                            \
    if (class_ != (class)) {                                                    \
      fprintf(stderr, "%s:%d: %s has class %d, not %s\n", __FILE__, __LINE__,   \
              #call, class_, #class);                                           \
      MPI_Abort(MPI_COMM_WORLD, 99);                                            \
    }                                                                           \
  } while (0)

/* Checks that a call succeeds. */
#define OK(call) FAILS(MPI_SUCCESS, call)

static int me, size;

/* Begins a test whose errors return. */
static inline void begin(int *argc, char ***argv) {
  OK(MPI_Init(argc, argv));
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int end(void) {
  OK(MPI_Finalize());
  return 0;
}

/* Meets all ranks, by a window. */
static inline void meet(MPI_Win win) {
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

#endif
