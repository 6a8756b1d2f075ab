"""The watchdog names the line of a script whose call has released the lock of Python."""
# run: -n 2 --watchdog 2 --timeout 3 --stacks=off
# says: (tag 7, at runtime/abi/tests/texts/hang.py:17
# never: .rs:
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "support"))
import mpi  # noqa: E402

mpi.Init(None, None)
rank, value = ctypes.c_int(), ctypes.c_int()
mpi.Comm_rank(mpi.COMM_WORLD, ctypes.byref(rank))
peer = 1 - rank.value
word = ctypes.byref(value), 1, mpi.INT
mpi.Recv(*word, peer, 7, mpi.COMM_WORLD, mpi.STATUS_IGNORE)
mpi.Finalize()
