//! How a window came to be, which decides what may be done with it (MPI-5.0 sections 12.2 and 12.2.7).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of call that made a window, with which its memory goes: the attribute MPI_WIN_CREATE_FLAVOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Flavor {
    /// Over memory of the program's own: [`Window::create`](crate::Window::create).
    Create,
    /// With memory of its own: [`Window::allocate`](crate::Window::allocate).
    Allocate,
    /// With memory that all its ranks load from and store to:
    /// [`Window::allocate_shared`](crate::Window::allocate_shared).
    Shared,
    /// Over memory that comes and goes: [`Window::create_dynamic`](crate::Window::create_dynamic).
    Dynamic,
}

/// How a window's memory and what the others see of it go together (MPI-5.0 section 12.4): the attribute MPI_WIN_MODEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// A public copy and a private one, which synchronisation makes the same: MPI_WIN_SEPARATE.
    Separate,
    /// One memory for both: MPI_WIN_UNIFIED.
    Unified,
}

impl Flavor {
    /// The call that makes such windows.
    pub(crate) fn call(self) -> &'static str {
        match self {
            Flavor::Create => "create",
            Flavor::Allocate => "allocate",
            Flavor::Shared => "allocate_shared",
            Flavor::Dynamic => "create_dynamic",
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
