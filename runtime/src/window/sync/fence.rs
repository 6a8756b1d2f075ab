//! Fences (MPI-5.0 section 12.5.1).

use crate::assert::Assert;
use crate::error::{ErrorKind, Result};
use crate::job::Activity;
use crate::window::parts::Parts;
use crate::window::promise::broken;
use crate::window::state::{EpochState, Step};
use crate::window::sync::flush::settle;

/// A fence: all operations of this rank are done, then all ranks meet. Without NOSUCCEED it opens
/// the next epoch.
///
/// Whether or not it fails, no operation of this rank is in flight when it returns. A fence that is
/// refused, for its asserts or its place, does nothing.
pub(in crate::window) fn fence(parts: &Parts, assert: Assert) -> Result<()> {
    let (process, peers, epochs) = (parts.process(), parts.peers(), parts.epochs());
    if let Err(error) = process.ready() {
        process.give_up(parts.id());
        return Err(error);
    }
    let (before, used) = (epochs.state(), epochs.is_used());
    assert.allowed_to_fence()?;
    if epochs.is_posted() {
        return Err(ErrorKind::Epoch(EXPOSED).into());
    }
    epochs.step(Step::Fence { succeeds: !assert.contains(Assert::NOSUCCEED) })?;
    process.note(Activity::Fence, parts.id());
    let asserted = check_asserts(parts, assert, used);
    epochs.forget_stores();
    let settled = settle(parts, None, None);
    // Puts of the epoch that ends arrive until the meeting is over. Puts of the next epoch arrive
    // before this rank sees that it is. Neither are refused for a NOPUT about the other epoch.
    let control = peers.control();
    let (promised, no_put) = (control.is_no_put(), assert.contains(Assert::NOPUT));
    if promised && !no_put {
        control.set_no_put(false);
    }
    let announced = match process.checks() {
        true => parts.checking().announce_fence(peers, assert).inspect_err(|_| {
            if epochs.is_fenced() {
                epochs.restore(before);
            }
        }),
        false => Ok(()),
    };
    let met = announced.and_then(|()| peers.meet(parts.id()));
    if no_put && !promised {
        control.set_no_put(true);
    }
    process.note(Activity::Computing, 0);
    if met.is_err() {
        // Without all ranks no epoch begins.
        epochs.restore(EpochState::Closed);
    }
    let settled = settled.map_err(|error| error.within(|| before.to_string()));
    // A call that fails is one error to the handler: the gravest one.
    met.and(settled).and(asserted)
}

/// Rule 9, as far as this rank can tell.
pub(super) fn check_asserts(parts: &Parts, assert: Assert, used: bool) -> Result<()> {
    if assert.contains(Assert::NOSTORE) && parts.epochs().has_stored() {
        broken(parts, STORED)?;
    }
    if assert.contains(Assert::NOPRECEDE) && used {
        broken(parts, PRECEDED)?;
    }
    Ok(())
}

const STORED: &str = "NOSTORE, but this rank has stored to its window since the last synchronisation (rule 9): leave out \
     the assert";
const PRECEDED: &str = "NOPRECEDE, but this rank has issued operations since the last fence (rule 9): leave out the assert";
const EXPOSED: &str =
    "a {fence} while the window is exposed by a {post}: call {wait} first (rule 3)";
