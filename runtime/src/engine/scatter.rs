//! Typed memory that a stream is unpacked into as its frames arrive.

use std::sync::Arc;

use shipable::{Partial, Program};

use super::keep::Keep;
use crate::error::{Result, conversion};
use crate::memory::Span;

/// Elements in memory, and how far they have been unpacked.
pub(super) struct Scatter {
    program: Arc<Program>,
    count: u64,
    span: Span,
    partial: Partial,
    _keep: Keep,
}

impl Scatter {
    pub(super) fn new(program: Arc<Program>, count: u64, span: Span, keep: Keep) -> Scatter {
        Scatter { program, count, span, partial: Partial::default(), _keep: keep }
    }

    /// Unpacks the stream's bytes from `position` on.
    ///
    /// # Errors
    /// A value that this rank's representation can't hold.
    pub(super) fn take(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.span
            .unpack(&self.program, self.count, position, data, &mut self.partial)
            .map_err(conversion)
    }
}
