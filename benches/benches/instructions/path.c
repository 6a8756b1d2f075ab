/* Makes calls of the C interface, which are counted: PATH is put, get or flush. A job of one rank
   takes the way of all ranks that are reached directly. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBLES = 4096 };

int main(int argc, char **argv)
{
    MPI_Win win;
    double *base, value = 1.5;
    if (argc != 3)
        return 2;
    long calls = atol(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(DOUBLES * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                     &win);
    MPI_Win_lock_all(0, win);
    if (strcmp(argv[1], "put") == 0) {
        for (long i = 0; i < calls; i++)
            MPI_Put(&value, 1, MPI_DOUBLE, 0, i % DOUBLES, 1, MPI_DOUBLE, win);
    } else if (strcmp(argv[1], "get") == 0) {
        for (long i = 0; i < calls; i++)
            MPI_Get(&value, 1, MPI_DOUBLE, 0, i % DOUBLES, 1, MPI_DOUBLE, win);
    } else {
        for (long i = 0; i < calls; i++) {
            MPI_Put(&value, 1, MPI_DOUBLE, 0, i % DOUBLES, 1, MPI_DOUBLE, win);
            MPI_Win_flush(0, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
