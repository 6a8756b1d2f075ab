//! Promises about the messages of a communicator, which its hints make (MPI-5.0 section 7.4.4).
//! `--check` reports those that turn out false. The messages arrive all the same.
//!
//! `mpi_assert_allow_overtaking` allows an order that MPI otherwise forbids, so no program can
//! break it. Left out: the order in which persistent collective calls start.

use std::ffi::c_int;

use longshore::job::Topic;

use crate::communicator::hints::{EXACT_LENGTH, KEYS, NO_ANY_SOURCE, NO_ANY_TAG};
use crate::communicator::{Comm, envelope};
use crate::edge::constants::{ANY_SOURCE, ANY_TAG, PROC_NULL};
use crate::edge::status::Status;
use crate::edge::{line, state};

/// Looks at the source and the tag of a receive or a probe.
#[inline]
pub fn look_at_wildcards(comm: &Comm, source: c_int, tag: c_int) {
    if tag == ANY_TAG && comm.promises().include(NO_ANY_TAG) {
        report(comm, NO_ANY_TAG, || "the call takes MPI_ANY_TAG".to_owned());
    }
    if source == ANY_SOURCE && comm.promises().include(NO_ANY_SOURCE) {
        report(comm, NO_ANY_SOURCE, || "the call takes MPI_ANY_SOURCE".to_owned());
    }
}

/// The room of a receive, which its message was promised to fill.
pub struct Length {
    count: i64,
    datatype: longshore::Type,
}

impl Length {
    /// The room of a receive that starts, if the communicator has the promise and `--check` is on.
    #[inline]
    pub fn promised(comm: &Comm, count: i64, datatype: &longshore::Type) -> Option<Box<Length>> {
        let is_promised = comm.promises().include(EXACT_LENGTH) && is_checked();
        is_promised.then(|| Box::new(Length { count, datatype: datatype.clone() }))
    }

    /// Looks at the message that has come.
    pub fn look_at(&self, comm: &Comm, status: &Status) {
        look_at_length(comm, self.count, &self.datatype, status);
    }
}

/// Looks at the length of a message that was received.
#[inline]
pub fn look_at_length(comm: &Comm, count: i64, datatype: &longshore::Type, status: &Status) {
    if comm.promises().include(EXACT_LENGTH) && status.source != PROC_NULL {
        compare(comm, count, datatype, status);
    }
}

/// Compares the length of a message with the room for it, in the sender's representation.
#[cold]
fn compare(comm: &Comm, count: i64, datatype: &longshore::Type, status: &Status) {
    let Ok(architecture) = envelope::representation(status) else { return };
    let Ok(bounds) = datatype.datatype().bounds(&architecture) else { return };
    let (bytes, room) = (status.bytes(), count.saturating_mul(bounds.size));
    if bytes != room {
        report(comm, EXACT_LENGTH, || {
            format!("a message of {bytes} bytes came into room for {room}")
        });
    }
}

fn is_checked() -> bool {
    state::get().is_some_and(|state| state.rank().is_checked())
}

/// Reports a promise that the call under way breaks, under `--check`.
#[cold]
fn report(comm: &Comm, key: usize, how: impl FnOnce() -> String) {
    let Some(rank) = state::get().map(state::State::rank).filter(|rank| rank.is_checked()) else {
        return;
    };
    let place = line::of_call(true).map_or(String::new(), |line| format!(" at {line}"));
    rank.report(Topic::Messages, &format!("promise {}{place}", KEYS[key]), || {
        let (name, me) = (comm.card().name(), comm.inner().rank());
        let of = if name.is_empty() { String::new() } else { format!(" {name}") };
        Some(format!(
            "check: a promise for communicator{of} turns out false at its rank {me}\n\
             check:   {}=true, and {}{place}\n",
            KEYS[key],
            how()
        ))
    });
}
