/* Compiled with each program that `mpicc --check` links. */
#include "loads.h"
