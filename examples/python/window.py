from array import array
from mpi4py import MPI

world = MPI.COMM_WORLD
me, size = world.Get_rank(), world.Get_size()
window = MPI.Win.Allocate(8 * size, 8, comm=world)
mine = memoryview(window).cast("d")
window.Fence()
for target in range(size):
    window.Put(array("d", [me + 0.5]), target, target=(me, 1, MPI.DOUBLE))
window.Fence()
print("rank", me, "has", list(mine))
world.Barrier()

# Each rank raises the first number of rank 0 by one.
one, before = array("d", [1]), array("d", [0])
window.Lock_all()
window.Fetch_and_op(one, before, 0, 0, MPI.SUM)
window.Flush(0)
window.Unlock_all()
world.Barrier()
if me == 0:
    print("the number is", mine[0])
mine.release()
window.Free()
