/* Checks of the tests in C: one that fails says where, and ends the job with status 1. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

/* The call returns an error of this class. */
#define FAILS(class, call)                                                                         \
    do {                                                                                           \
        int code_ = (call), class_ = MPI_SUCCESS;                                                  \
        MPI_Error_class(code_, &class_);                                                           \
        if (class_ != (class)) {                                                                   \
            char text_[MPI_MAX_ERROR_STRING] = "";                                                 \
            int length_;                                                                           \
            MPI_Error_string(code_, text_, &length_);                                              \
            fprintf(stderr, "%s:%d: %s is of class %d: %s\n", __FILE__, __LINE__, #call, class_,   \
                    text_);                                                                        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                          \
        }                                                                                          \
    } while (0)

/* The call succeeds. */
#define OK(call) FAILS(MPI_SUCCESS, call)

static int me, size;

static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

static int end(void)
{
    MPI_Finalize();
    return 0;
}

#endif
