"""A rank that waits for long serves its peers, also while another thread has Python's lock."""
# run: -n 2
# once: the message was taken in time
import ctypes
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "support"))
import mpi  # noqa: E402

mpi.Init(None, None)
rank, value, request = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
mpi.Comm_rank(mpi.COMM_WORLD, ctypes.byref(rank))
word = ctypes.byref(value), 1, mpi.INT
mpi.Barrier(mpi.COMM_WORLD)
if rank.value == 0:
    mpi.Irecv(*word, 1, 1, mpi.COMM_WORLD, ctypes.byref(request))
    # A function of PyDLL runs with the lock.
    holder = threading.Timer(0.2, ctypes.PyDLL(None).sleep, [3])
    holder.start()
    mpi.Recv(*word, 1, 2, mpi.COMM_WORLD, mpi.STATUS_IGNORE)
    mpi.Wait(ctypes.byref(request), mpi.STATUS_IGNORE)
    holder.join()
else:
    time.sleep(1)
    begin = time.monotonic()
    mpi.Ssend(*word, 0, 1, mpi.COMM_WORLD)
    if time.monotonic() - begin < 1:
        print("the message was taken in time")
    mpi.Send(*word, 0, 2, mpi.COMM_WORLD)
mpi.Finalize()
