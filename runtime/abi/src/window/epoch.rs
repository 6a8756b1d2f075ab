//! Synchronisation of windows (MPI-5.0 sections 12.4 and 12.5).
#![deny(unsafe_code)]

use std::ffi::c_int;

use longshore::{Assert, Class, LockType, PROC_NULL};

use crate::communicator::group::Group;
use crate::edge::fault::{Fault, Result};
use crate::window::Win;

fn assert(bits: c_int) -> Result<Assert> {
    let wrong = |_| Fault::new(Class::Assert, format!("the assert is {bits}"));
    Ok(Assert::from_bits(u32::try_from(bits).map_err(wrong)?)?)
}

pub fn win_fence(bits: c_int, win: &Win) -> Result<()> {
    let assert = assert(bits)?;
    Ok(win.with(|window| window.raw().fence(assert))??)
}

pub fn win_start(group: &Group, bits: c_int, win: &Win) -> Result<()> {
    let assert = assert(bits)?;
    Ok(win.with(|window| window.raw().start(group.inner(), assert))??)
}

pub fn win_complete(win: &Win) -> Result<()> {
    Ok(win.with(|window| window.raw().complete())??)
}

pub fn win_post(group: &Group, bits: c_int, win: &Win) -> Result<()> {
    let assert = assert(bits)?;
    Ok(win.with(|window| window.post(group.inner(), assert))??)
}

pub fn win_wait(win: &Win) -> Result<()> {
    Ok(win.with(|window| window.wait())??)
}

pub fn win_test(win: &Win) -> Result<bool> {
    Ok(win.with(|window| window.test())??)
}

/// A lock of the null process is an epoch in which nothing can be accessed.
pub fn win_lock(lock_type: c_int, rank: c_int, bits: c_int, win: &Win) -> Result<()> {
    let (lock_type, assert) = (LockType::from_number(lock_type)?, assert(bits)?);
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(win.with(|window| window.raw().lock(rank, lock_type, assert))??)
}

pub fn win_unlock(rank: c_int, win: &Win) -> Result<()> {
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(win.with(|window| window.raw().unlock(rank))??)
}

pub fn win_lock_all(bits: c_int, win: &Win) -> Result<()> {
    let assert = assert(bits)?;
    Ok(win.with(|window| window.raw().lock_all(assert))??)
}

pub fn win_unlock_all(win: &Win) -> Result<()> {
    Ok(win.with(|window| window.raw().unlock_all())??)
}

pub fn win_flush_all(win: &Win) -> Result<()> {
    Ok(win.with(|window| window.raw().flush_all())??)
}

pub fn win_flush_local_all(win: &Win) -> Result<()> {
    Ok(win.with(|window| window.raw().flush_local_all())??)
}

pub fn win_flush(rank: c_int, win: &Win) -> Result<()> {
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(win.with(|window| window.raw().flush(rank))??)
}

pub fn win_flush_local(rank: c_int, win: &Win) -> Result<()> {
    if rank == PROC_NULL {
        return Ok(());
    }
    Ok(win.with(|window| window.raw().flush_local(rank))??)
}

pub fn win_sync(win: &Win) -> Result<()> {
    Ok(win.with(|window| window.raw().sync())??)
}
