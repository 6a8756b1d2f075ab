"""Errors that a script meets speak C: MPI's names for types and handles."""
# run: -n 1
# says: MPI_COMM_NULL was passed: a communicator is needed
# says: use MPI_INT at the target, or MPI_DOUBLE at the origin
# says: make it between two calls of MPI_Win_fence
# says: (MPI_Put at rank 0
# never: (put at
# never: Datatype::
# never: the handle is null
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "support"))
import mpi  # noqa: E402


def show(code):
    text, length = ctypes.create_string_buffer(1024), ctypes.c_int()
    mpi.Error_string(code, text, ctypes.byref(length))
    print(text.value.decode())


mpi.Init(None, None)
mpi.Comm_set_errhandler(mpi.COMM_SELF, mpi.ERRORS_RETURN)
show(mpi.Barrier(mpi.COMM_NULL))
win, memory = ctypes.c_void_p(), ctypes.c_void_p()
size = ctypes.c_ssize_t(64)
places = ctypes.byref(memory), ctypes.byref(win)
mpi.Win_allocate(size, 8, mpi.INFO_NULL, mpi.COMM_WORLD, *places)
mpi.Win_set_errhandler(win, mpi.ERRORS_RETURN)
mpi.Win_fence(0, win)
value = ctypes.c_double()
show(mpi.Put(ctypes.byref(value), 1, mpi.INT, 0, ctypes.c_ssize_t(0), 1, mpi.DOUBLE, win))
mpi.Win_fence(0, win)
mpi.Win_lock(mpi.LOCK_SHARED, 0, 0, win)
mpi.Win_unlock(0, win)
show(mpi.Put(ctypes.byref(value), 1, mpi.DOUBLE, 0, ctypes.c_ssize_t(0), 1, mpi.DOUBLE, win))
mpi.Win_free(ctypes.byref(win))
mpi.Finalize()
