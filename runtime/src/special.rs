//! Ranks and tags with a meaning of their own, which errors print by name. Their values are those
//! of MPI's standard ABI.

/// As the source of a receive: a message from any rank matches.
pub const ANY_SOURCE: i32 = -1;

/// As the tag of a receive: a message with any tag matches.
pub const ANY_TAG: i32 = -2;

/// As the root of a call on an intercommunicator: this rank is the root. The others of its group
/// give [`PROC_NULL`], and those of the other group its rank (MPI-5.0 section 6.2.3).
pub const ROOT: i32 = -4;

/// The null process: communication with this rank does nothing (MPI-5.0 section 3.10).
///
/// It serves at the edge of a domain, where a neighbour is missing. On a ring, use `(me + size - 1)
/// % size`.
pub const PROC_NULL: i32 = -3;
