"""Longshore: one-sided communication between unlike machines, by MPI's standard ABI.

The package has the commands longshore, mpicc, mpicxx and mpiexec, and the library libmpi_abi.
``python -m longshore`` prints where they are.
"""

import os
from importlib.metadata import files, version

__version__ = version("longshore")


def path(name):
    """The path of an installed file, such as "lib/libmpi_abi.so.1"."""
    for file in files("longshore"):
        place = os.path.realpath(file.locate())
        if place.endswith("/" + name):
            return place
    raise FileNotFoundError(f"longshore {__version__} has no file {name}: install the package anew")
