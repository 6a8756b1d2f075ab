"""Prints what the package has and where."""

import os

from longshore import __version__, path

command = path("bin/longshore")
print("longshore", __version__)
for name, file in [
    ("command", command),
    ("library", path("lib/libmpi_abi.so.1")),
    ("headers", os.path.dirname(path("include/mpi.h"))),
    ("compiler's wrapper", os.path.join(os.path.dirname(command), "mpicc")),
    ("launcher", os.path.join(os.path.dirname(command), "mpiexec")),
    ("libfabric, unless the system's serves", path("lib/libfabric.so.1")),
]:
    print(f"{name}: {file}")
