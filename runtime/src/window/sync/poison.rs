//! Windows in whose epochs a rank panicked.
//!
//! A rank that catches its panic and goes on has left an epoch open, whose closing call its peers
//! wait for. Its later calls would pair off with earlier ones of theirs. So no rank synchronises
//! the window any more: each call returns an error instead of waiting.

use crate::window::claim::release;
use crate::window::parts::Parts;
use crate::window::state::EpochState;

/// This rank has panicked within an epoch, whose operations are over. Releases its locks, and lets
/// the other ranks know if it goes on.
pub(in crate::window) fn poison(parts: &Parts) {
    let me = parts.process().me().rank;
    if parts.epochs().state().over().is_none() {
        let communicator = parts.peers().communicator();
        // Under `--check`, the others announce the fence that closes the epoch.
        let skips = matches!(parts.epochs().state(), EpochState::Fence(_));
        let announced = communicator.skip_announcement(skips);
        parts.process().poison(parts.id(), announced, communicator.group());
        end(parts, me);
    }
}

/// This rank learns that another one has poisoned the window, or reports its own panic once more.
pub(in crate::window) fn poisoned(parts: &Parts, by: u32) {
    parts.process().tell_poisoned();
    let announced = parts.process().engine().state().announced_at(parts.id());
    parts.peers().communicator().catch_up(announced);
    if !matches!(parts.epochs().state(), EpochState::Freed | EpochState::Poisoned(_)) {
        end(parts, by);
    }
}

/// Ends all epochs of this rank.
fn end(parts: &Parts, by: u32) {
    parts.peers().named().for_each(|target| release(parts, target));
    if parts.epochs().is_posted() {
        // A lock of this window is no error of its origin any more.
        parts.peers().control().set_exposed(false);
        parts.peers().control().set_no_put(false);
    }
    parts.epochs().poison(by);
}
