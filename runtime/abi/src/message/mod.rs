//! Messages between two processes (MPI-5.0 chapter 3).
//!
//! | file | holds |
//! |---|---|
//! | [`p2p`] | sends and receives, with requests too |
//! | [`buffered`] | buffered sends, and the buffers of objects (section 3.6) |
//! | [`probe`] | probes, and the messages that matched probes take (section 3.8) |
//! | [`persistent`] | persistent messages (section 3.9) |
//! | [`partitioned`] | partitioned messages (section 4.2) |
//!
//! A call that starts an operation hands it to [`request`](crate::request), which completes it. The
//! status of a message comes from [`envelope`](crate::communicator::envelope).

pub(crate) mod buffered;
pub(crate) mod p2p;
pub(crate) mod partitioned;
pub(crate) mod persistent;
pub(crate) mod probe;
