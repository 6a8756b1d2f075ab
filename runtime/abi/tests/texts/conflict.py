"""The reports of --check name lines of a script, and so does the error that ends its job."""
# run: -n 2 --check
# says: MPI_Put by rank 1 at runtime/abi/tests/texts/conflict.py:16
# says: MPI_Send at runtime/abi/tests/texts/conflict.py:27 failed
# never: .rs:
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "support"))
import mpi  # noqa: E402


def store(win):
    value = ctypes.c_double(1.5)
    mpi.Put(ctypes.byref(value), 1, mpi.DOUBLE, 0, ctypes.c_ssize_t(0), 1, mpi.DOUBLE, win)


mpi.Init(None, None)
win, memory = ctypes.c_void_p(), ctypes.c_void_p()
size = ctypes.c_ssize_t(64)
places = ctypes.byref(memory), ctypes.byref(win)
mpi.Win_allocate(size, 8, mpi.INFO_NULL, mpi.COMM_WORLD, *places)
mpi.Win_fence(0, win)
store(win)
mpi.Win_fence(0, win)
mpi.Send(ctypes.byref(size), 1, mpi.INT, 99, 0, mpi.COMM_WORLD)
