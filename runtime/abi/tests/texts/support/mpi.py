"""MPI's calls by ctypes, for the scripts of this folder."""

import ctypes
import os

_library = ctypes.CDLL(os.environ["LONGSHORE_TEST_LIBRARY"])
with open(os.environ["LONGSHORE_TEST_CONSTANTS"]) as _lines:
    _constants = dict(line.split() for line in _lines)


def __getattr__(name):
    """A function, or a constant as a handle."""
    if name in _constants:
        return ctypes.c_void_p(int(_constants[name]))
    return getattr(_library, "MPI_" + name)
