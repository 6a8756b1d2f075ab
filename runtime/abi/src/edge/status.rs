//! Statuses: what a receive came to (MPI-5.0 sections 3.2.5 and 20.2).

use std::ffi::c_int;

use crate::edge::constants::{ANY_SOURCE, ANY_TAG, PROC_NULL, SUCCESS};

/// MPI_Status.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    /// The length of the data in bytes, in two halves since a status has no alignment of 8; whether
    /// the operation was cancelled; the rank of the job whose representation the bytes have, plus
    /// one.
    internal: [c_int; 5],
}

impl Status {
    /// The status of an operation that has none of its own, such as a send.
    pub const EMPTY: Status =
        Status { source: ANY_SOURCE, tag: ANY_TAG, error: SUCCESS, internal: [0; 5] };

    /// The status of a request that is null or inactive: an empty one, whose error is
    /// MPI_SUCCESS (MPI-5.0 section 3.7.3).
    pub const NONE: Status = Status { internal: [0, 0, 0, 0, 1], ..Status::EMPTY };

    /// The status of a receive from no process.
    pub const PROC_NULL: Status =
        Status { source: PROC_NULL, tag: ANY_TAG, error: SUCCESS, internal: [0; 5] };

    /// The status of a message of `bytes` bytes, in the representation of a process of the job.
    pub fn new(source: c_int, tag: c_int, bytes: i64, process: Option<u32>) -> Status {
        let mut status = Status { source, tag, ..Status::EMPTY };
        status.set_bytes(bytes);
        status.internal[3] = process.map_or(0, |process| process as c_int + 1);
        status
    }

    /// The status of an operation that failed, with the source and the tag of the message if it is
    /// a receive that had matched one.
    pub fn failed(error: c_int, message: Option<(c_int, c_int)>) -> Status {
        let (source, tag) = message.unwrap_or((ANY_SOURCE, ANY_TAG));
        Status { source, tag, error, ..Status::EMPTY }
    }

    /// The process of the job in whose representation the bytes are counted; `None` for this one.
    pub fn process(&self) -> Option<c_int> {
        self.internal[3].checked_sub(1).filter(|process| *process >= 0)
    }

    /// The length of the data, in bytes.
    pub fn bytes(&self) -> i64 {
        (i64::from(self.internal[1]) << 32) | i64::from(self.internal[0] as u32)
    }

    fn set_bytes(&mut self, bytes: i64) {
        self.internal[0] = bytes as c_int;
        self.internal[1] = (bytes >> 32) as c_int;
    }

    /// Sets the length of data of this process. Nothing else is looked at, since programs set the
    /// statuses that they declare.
    pub fn set_own(&mut self, bytes: i64) {
        self.set_bytes(bytes);
        self.internal[3] = 0;
    }

    /// Whether the operation was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = c_int::from(cancelled);
    }

    /// Copies a status as calls that complete one operation do, which leave the error as it is
    /// (MPI-5.0 section 3.2.5). That of no operation is copied with its error.
    pub fn put(self, place: Option<&mut Status>) {
        if let Some(place) = place {
            let is_none = self.internal[4] != 0;
            *place = match is_none {
                true => Status::EMPTY,
                false => Status { error: place.error, ..self },
            };
        }
    }
}
