//! Window flavors and memory models (MPI-5.0 sections 12.2, 12.2.7 and 12.4).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The call that made a window, which decides where its memory comes from: the attribute
/// MPI_WIN_CREATE_FLAVOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Flavor {
    /// The program provides the memory: [`Window::create`](crate::Window::create).
    Create,
    /// The window allocates the memory: [`Window::allocate`](crate::Window::allocate).
    Allocate,
    /// The window allocates memory that all its ranks can load from and store to:
    /// [`Window::allocate_shared`](crate::Window::allocate_shared).
    Shared,
    /// The program attaches and detaches memory later:
    /// [`Window::create_dynamic`](crate::Window::create_dynamic).
    Dynamic,
}

/// The memory model of a window (MPI-5.0 section 12.4): the attribute MPI_WIN_MODEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// A public and a private copy, which synchronisation makes equal: MPI_WIN_SEPARATE.
    Separate,
    /// One copy, which all ranks access: MPI_WIN_UNIFIED.
    Unified,
}

impl Flavor {
    /// The name of the call that makes windows of this flavor.
    pub(crate) fn call(self) -> &'static str {
        match self {
            Flavor::Create => "create",
            Flavor::Allocate => "allocate",
            Flavor::Shared => "allocate_shared",
            Flavor::Dynamic => "create_dynamic",
        }
    }

    /// The name of that call in C.
    pub(crate) fn mpi_call(self) -> &'static str {
        match self {
            Flavor::Create => "MPI_Win_create",
            Flavor::Allocate => "MPI_Win_allocate",
            Flavor::Shared => "MPI_Win_allocate_shared",
            Flavor::Dynamic => "MPI_Win_create_dynamic",
        }
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flavor::Create => "MPI_WIN_FLAVOR_CREATE",
            Flavor::Allocate => "MPI_WIN_FLAVOR_ALLOCATE",
            Flavor::Shared => "MPI_WIN_FLAVOR_SHARED",
            Flavor::Dynamic => "MPI_WIN_FLAVOR_DYNAMIC",
        })
    }
}
