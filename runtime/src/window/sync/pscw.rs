//! Start and complete, post and wait (MPI-5.0 section 12.5.2).

use crate::assert::Assert;
use crate::check::Caller;
use crate::control::Tally;
use crate::counter;
use crate::engine::State;
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::job::Activity;
use crate::window::access::check_usable;
use crate::window::parts::Parts;
use crate::window::peers::Target;
use crate::window::state::{Access, EpochState, Step};
use crate::window::sync::fence::check_asserts;
use crate::window::sync::flush::settle;
use crate::window::waiting::{ask, remark};

/// Opens an access epoch to a group, once each of its ranks has posted.
pub(in crate::window) fn start(parts: &Parts, group: &Group, assert: Assert) -> Result<()> {
    let (process, peers, epochs) = (parts.process(), parts.peers(), parts.epochs());
    process.ready()?;
    assert.allowed("start", Assert::NOCHECK)?;
    let targets = peers.members(group)?;
    let before = epochs.state();
    epochs.step(Step::Start(targets.len() as u32))?;
    let posted = |target: &Target| {
        let count = next(target, Tally::Posts);
        // With NOCHECK the program promises that the posts were made.
        assert.contains(Assert::NOCHECK)
            || peers.control().heard(Tally::Posts, target.rank, count, false)
    };
    if all(parts, &targets, posted) {
        process.oblige().inspect_err(|_| epochs.restore(before))?;
    } else {
        let waited = process.during(Activity::Start, parts.id(), parts.at(), || {
            await_tallies(parts, Tally::Posts, &targets)
        });
        waited.map_err(|error| {
            epochs.restore(before);
            parts.checking().unmatched(error, "start", peers, &targets)
        })?;
    }
    parts.checking().note_start(peers, &targets, assert);
    for &rank in &targets {
        let target = peers.of(rank);
        use_up(target, Tally::Posts);
        target.epochs.access.set(Access::Started);
    }
    epochs.open(targets);
    Ok(())
}

/// Ends the access epoch: its operations are done, and the targets learn it.
pub(in crate::window) fn complete(parts: &Parts, caller: Caller) -> Result<()> {
    let state = parts.epochs().state();
    parts.epochs().step(Step::Complete)?;
    let settled = settle(parts, None, Some(caller));
    for rank in parts.epochs().close() {
        let target = parts.peers().of(rank);
        target.epochs.access.set(Access::Closed);
        signal(parts, Tally::Completes, target);
    }
    settled.map_err(|error| error.within(|| state.to_string()))
}

/// Exposes this rank's window to a group.
pub(in crate::window) fn post(parts: &Parts, group: &Group, assert: Assert) -> Result<()> {
    let (peers, epochs) = (parts.peers(), parts.epochs());
    parts.process().ready()?;
    assert.allowed("post", Assert::NOCHECK | Assert::NOSTORE | Assert::NOPUT)?;
    check_usable(epochs.state())?;
    if epochs.is_posted() {
        return Err(ErrorKind::Epoch(POSTED_TWICE).into());
    }
    await_unlocked(parts)?;
    let origins = peers.members(group)?;
    check_asserts(parts, assert, false)?;
    epochs.forget_stores();
    peers.control().set_exposed(true);
    peers.control().set_no_put(assert.contains(Assert::NOPUT));
    parts.checking().note_post(peers, &origins, assert);
    // The signal's release makes this rank's stores visible before the post.
    origins.iter().for_each(|&rank| signal(parts, Tally::Posts, peers.of(rank)));
    epochs.expose(origins);
    Ok(())
}

/// Rule 6 at the owner. An unlock that travels by message may arrive later than the next act of
/// its sender, but before the sender's answer to a question.
fn await_unlocked(parts: &Parts) -> Result<()> {
    let (peers, own) = (parts.peers(), parts.peers().rank());
    if parts.epochs().state() == (EpochState::LockAll { unchecked: false }) {
        // Whether or not the own lock has been needed so far.
        return Err(ErrorKind::LockedWindow { by: own }.into());
    }
    while let Some(by) = peers.control().locker(own) {
        let locker = peers.of(by);
        // Ranks that share this rank's control block unlock there.
        if by != own && !locker.shares_control() {
            let ping = |state: &mut State, number| {
                state.start_ping(locker.peer, parts.id(), number);
            };
            let is_unlocked = || peers.control().locker(own) != Some(by);
            let lost = ask(parts, Activity::Post, locker, ping, || locker.peer, is_unlocked)?;
            lost.map_or(Ok(()), Err)?;
            if is_unlocked() {
                continue;
            }
        }
        return Err(ErrorKind::LockedWindow { by }.into());
    }
    Ok(())
}

/// Waits until all ranks of the post's group have completed.
pub(in crate::window) fn wait(parts: &Parts) -> Result<()> {
    let (process, peers, epochs) = (parts.process(), parts.peers(), parts.epochs());
    check_usable(epochs.state())?;
    let waited = epochs.with_posted(|origins| -> Result<()> {
        let origins = origins.ok_or(ErrorKind::Epoch(WAIT_WITHOUT))?;
        if all(parts, origins, |origin| has_completed(parts, origin)) {
            return process.oblige();
        }
        let waited = process.during(Activity::Wait, parts.id(), parts.at(), || {
            await_tallies(parts, Tally::Completes, origins)
        });
        waited.map_err(|error| parts.checking().unmatched(error, "wait", peers, origins))
    });
    if epochs.is_posted() {
        end_exposure(parts);
    }
    waited
}

/// Whether all ranks of the post's group have completed. If so, the exposure has ended.
pub(in crate::window) fn test(parts: &Parts) -> Result<bool> {
    let (process, peers, epochs) = (parts.process(), parts.peers(), parts.epochs());
    check_usable(epochs.state())?;
    let done = epochs.with_posted(|origins| -> Result<bool> {
        let origins = origins.ok_or(ErrorKind::Epoch(WAIT_WITHOUT))?;
        let is_done = || all(parts, origins, |origin| has_completed(parts, origin));
        if is_done() {
            return process.oblige().map(|()| true);
        }
        process.poll()?;
        let mut engine = process.engine();
        for &rank in origins {
            let origin = peers.of(rank);
            match engine.state().gone(origin.peer) {
                Some(gone) if !has_completed(parts, origin) => return Err(gone),
                _ => {}
            }
        }
        let is_done = is_done();
        let poisoned = engine.state().poisoned(parts.id());
        match poisoned.or_else(|| engine.state().broken()).filter(|_| !is_done) {
            Some(error) => Err(error),
            None => Ok(is_done),
        }
    });
    // As after a wait: an origin that is gone never completes.
    if !matches!(done, Ok(false)) && epochs.is_posted() {
        end_exposure(parts);
    }
    done
}

fn has_completed(parts: &Parts, origin: &Target) -> bool {
    let count = next(origin, Tally::Completes);
    parts.peers().control().heard(Tally::Completes, origin.rank, count, false)
}

fn end_exposure(parts: &Parts) {
    let peers = parts.peers();
    let origins = parts.epochs().end_exposure();
    parts.checking().note_exposure_end(peers, &origins);
    for rank in origins {
        use_up(peers.of(rank), Tally::Completes);
    }
    peers.control().set_exposed(false);
    peers.control().set_no_put(false);
}

/// The number of posts, or completes, of a rank once one more is there than this rank has used up.
fn next(of: &Target, tally: Tally) -> u32 {
    counter::next(of.epochs.tallies.used[tally as usize].get())
}

/// Uses up one more post, or complete, of a rank.
fn use_up(of: &Target, tally: Tally) {
    of.epochs.tallies.used[tally as usize].set(next(of, tally));
}

fn all(parts: &Parts, ranks: &[u32], is: impl Fn(&Target) -> bool) -> bool {
    ranks.iter().all(|&rank| is(parts.peers().of(rank)))
}

/// Waits for one more post, or complete, of each rank.
fn await_tallies(parts: &Parts, tally: Tally, ranks: &[u32]) -> Result<()> {
    let (process, control) = (parts.process(), parts.peers().control());
    let mut left = ranks.iter().map(|&rank| parts.peers().of(rank)).peekable();
    let heard =
        |target: &Target, arming| control.heard(tally, target.rank, next(target, tally), arming);
    while let Some(target) = left.peek() {
        if process.spin(|| heard(target, false)) {
            left.next();
            continue;
        }
        process.wait(|state, arming| {
            while let Some(target) = left.peek() {
                if !heard(target, arming) {
                    if arming {
                        process.note_wait(Some(target.peer));
                        remark(parts);
                    }
                    // If any of them died, this wait can't end, and a living one may have left for
                    // that reason. Messages of the dead were taken in before it was given up.
                    let lost = left.clone().find_map(|target| {
                        let gone = state.gone(target.peer)?;
                        (!heard(target, false)).then_some(gone)
                    });
                    let lost = lost.or_else(|| state.poisoned(parts.id()));
                    return lost.map(Err);
                }
                left.next();
            }
            Some(Ok(()))
        })?;
    }
    Ok(())
}

/// Signals a post or complete to a rank, after the operations before it.
fn signal(parts: &Parts, tally: Tally, to: &Target) {
    let peers = parts.peers();
    if to.shares_control() || peers.is_own(to) {
        let signalled = &to.epochs.tallies.signalled[tally as usize];
        signalled.set(counter::next(signalled.get()));
        return peers.control().signal(tally, to.rank, peers.rank(), signalled.get());
    }
    let mut engine = parts.process().engine();
    if tally == Tally::Completes {
        let (nocheck, caller) = parts.checking().started();
        engine.state().note_complete(parts.id(), to.peer, nocheck, caller);
    }
    engine.state().start_signal(to.peer, parts.id(), tally);
    engine.progress();
}

const POSTED_TWICE: &str =
    "a {post} while the window is exposed: call {wait} for the first one before (rule 4)";
const WAIT_WITHOUT: &str = "a {wait} or {test} without a {post}: call {post} before it (rule 4)";
