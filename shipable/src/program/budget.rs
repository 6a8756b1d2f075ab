//! Limits on the memory that lowering takes.

use std::sync::Arc;

use super::op::{Body, Loop, Op, OpStart, Ops};
use crate::error::{Error, Result};

/// The bytes that a program may still take. Operations are charged before they are copied or
/// tabulated, and refunded when they are joined. While lowering runs, it holds at most two to three
/// times the charged bytes.
pub(super) struct Budget {
    pub(super) left: u64,
    /// The bytes at the start, for the error message.
    pub(super) most: u64,
}

impl Budget {
    /// Charges for `count` values of a type.
    pub(super) fn take<T>(&mut self, count: usize) -> Result<()> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let too_large = Error::TooLarge { most: self.most };
        self.left = self.left.checked_sub(bytes).ok_or(too_large)?;
        Ok(())
    }

    /// Refunds `count` values that were charged.
    pub(super) fn give_back<T>(&mut self, count: usize) {
        self.left += (count * size_of::<T>()) as u64;
    }

    /// A loop over operations. Copying it is cheap, because the body is shared.
    pub(super) fn looped(&mut self, ops: Ops, count: u64, stride: i64) -> Result<Op> {
        self.take::<OpStart>(ops.len())?;
        // An `Arc` stores two counts beside its value.
        self.take::<(Op, Body, [usize; 2])>(1)?;
        Ok(Op::Loop(Loop { start: 0, count, stride, body: Arc::new(Body::new(ops)) }))
    }

    pub(super) fn once(&mut self, ops: Ops) -> Result<Op> {
        self.looped(ops, 1, 0)
    }
}
