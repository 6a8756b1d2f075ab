/* What the examples have in common: the rank, and the check of a result. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <mpi.h>
#include <mpix.h>
#include <stdio.h>
#include <stdlib.h>

static int me, size;

static inline void begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Ends the program. The job fails if `right` is false at any rank. */
static inline int end(const char *what, int right) {
  char machine[64];
  MPIX_Comm_representation(MPI_COMM_WORLD, me, machine, sizeof machine);
  printf("rank %d, %s: %s: %s\n", me, machine, what, right ? "yes" : "NO");
  MPI_Finalize();
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
