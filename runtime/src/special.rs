//! Ranks and tags with a meaning of their own, which errors print by name.

/// As the source of a receive: a message from any rank matches.
pub const ANY_SOURCE: i32 = -2;

/// As the tag of a receive: a message with any tag matches.
pub const ANY_TAG: i32 = -1;

/// The null process: communication with this rank does nothing (MPI-5.0 section 3.10).
///
/// Beware: its value is -1. At rank 0, `world.rank() - 1` is therefore no error, and the call
/// silently does nothing. This is useful at the edge of a domain. On a ring, use `(me + size - 1) %
/// size`.
pub const PROC_NULL: i32 = -1;
