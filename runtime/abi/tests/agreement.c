/* A wrong argument of one rank to a collective call is an error at all ranks: none waits. */
#include "check.h"

static void window(void)
{
    MPI_Win win;
    int base[4], is_last = me == size - 1;
    FAILS(MPI_ERR_SIZE, MPI_Win_create(base, is_last ? -1 : (MPI_Aint)sizeof base, 1, MPI_INFO_NULL,
                                       MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_BASE, MPI_Win_create(is_last ? NULL : base, sizeof base, 1, MPI_INFO_NULL,
                                       MPI_COMM_WORLD, &win));
    FAILS(MPI_ERR_DISP, MPI_Win_create(base, sizeof base, is_last ? 0 : 1, MPI_INFO_NULL,
                                       MPI_COMM_WORLD, &win));
    OK(MPI_Win_create(is_last ? NULL : base, is_last ? 0 : sizeof base, 1, MPI_INFO_NULL,
                      MPI_COMM_WORLD, &win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    window();
    return end();
}
