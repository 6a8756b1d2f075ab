//! Paths of calls by pointer. Such a call's memory must stay until it is complete.
#![allow(unsafe_code)]

use longshore::{Assert, Op, Result};

use crate::side::Side;

pub fn fetch_and_op(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let (long, epoch) = (side.rank.type_of::<i64>()?, side.window.raw());
    let (one, mut old) = (1i64, 0i64);
    epoch.lock_all(Assert::NONE)?;
    for _ in 0..calls {
        let (from, to) = ((&raw const one).cast(), (&raw mut old).cast());
        // SAFETY: both numbers outlive the flush.
        unsafe { epoch.fetch_and_op(from, to, &long, 1, 0, Op::Sum)? };
        epoch.flush(1)?;
    }
    epoch.unlock_all()
}

pub fn compare_and_swap(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let (long, epoch) = (side.rank.type_of::<i64>()?, side.window.raw());
    let (new, compare, mut old) = (1i64, 0i64, 0i64);
    epoch.lock_all(Assert::NONE)?;
    for _ in 0..calls {
        let (new, compare) = ((&raw const new).cast(), (&raw const compare).cast());
        // SAFETY: the three numbers outlive the flush.
        unsafe { epoch.compare_and_swap(new, compare, (&raw mut old).cast(), &long, 1, 0)? };
        epoch.flush(1)?;
    }
    epoch.unlock_all()
}
