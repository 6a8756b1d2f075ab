//! The outcome of an access (MPI-5.0 section 14.4).

/// The outcome of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The bytes of the elements that were read or written, as they are in this rank's memory.
    /// Fewer than the elements have if the file ended.
    pub bytes: u64,
}
