//! Typed memory that a stream is unpacked into as its frames arrive.

use shipable::{Partial, SharedProgram};

use crate::error::{Result, conversion};
use crate::memory::Lease;

/// Elements in memory, and how far they have been unpacked.
pub(super) struct Scatter {
    program: SharedProgram,
    count: u64,
    lease: Lease,
    partial: Partial,
}

impl Scatter {
    pub(super) fn new(program: SharedProgram, count: u64, lease: Lease) -> Scatter {
        Scatter { program, count, lease, partial: Partial::default() }
    }

    /// Unpacks the stream's bytes from `position` on.
    ///
    /// # Errors
    /// A value that this rank's representation can't hold.
    pub(super) fn take(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.lease
            .span()
            .unpack(&self.program, self.count, position, data, &mut self.partial)
            .map_err(conversion)
    }
}
