//! The synchronisation calls of a window (MPI-5.0 section 12.5). Each is a function of the window's
//! parts; [`Core`](super::core::Core) gives its errors their place.

pub(super) mod fence;
pub(super) mod flush;
pub(super) mod lock;
pub(super) mod notify;
pub(super) mod poison;
pub(super) mod pscw;
