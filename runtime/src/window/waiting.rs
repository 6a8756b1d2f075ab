//! Waiting of a window's calls: for room, for the network, and for what a target answers.

use std::sync::Arc;

use super::parts::Parts;
use super::peers::Target;
use crate::engine::{State, Ticket};
use crate::error::{Error, Result};
use crate::job::Activity;
use crate::observe::At;

/// Waits until one more operation on a process may be in flight.
#[inline]
pub(super) fn await_room(parts: &Parts, activity: Activity, peer: u32) -> Result<()> {
    match parts.flight().has_room(peer) {
        true => Ok(()),
        false => await_end(parts, activity, peer),
    }
}

/// Waits until an operation on a process has ended. The next one counts as a call that may wait
/// only if it waits for longer than a glance.
#[cold]
fn await_end(parts: &Parts, activity: Activity, peer: u32) -> Result<()> {
    let (process, room) = (parts.process(), || parts.flight().has_room(peer));
    let mut poll = |state: &mut State, arming: bool| {
        let outcome = room().then_some(Ok(()));
        if outcome.is_none() && arming {
            process.note_wait(Some(peer));
            remark(parts);
        }
        outcome.or_else(|| state.gone(peer).map(Err))
    };
    if let Some(outcome) = process.glance(&mut poll) {
        return outcome;
    }
    let at = At { peer: Some(peer), ..parts.at() };
    process.observed(activity, at, || process.wait_longer(poll))
}

/// Says before a sleep which window waits, and at which source line under `--check`.
pub(super) fn remark(parts: &Parts) {
    parts.process().remark(|| {
        let window = parts.process().windows().text(parts.id());
        match parts.checking().caller() {
            Some(caller) => format!("{window}, at {caller}"),
            None => window,
        }
    });
}

/// Waits for an event that needs no call of the peer's. An access that fails is waited for until
/// its peer counts as lost.
pub(super) fn await_network(
    parts: &Parts,
    peer: u32,
    mut poll: impl FnMut(&mut State) -> Option<Result<()>>,
) -> Result<()> {
    let process = parts.process();
    // Mostly the event has happened, and the network needn't be polled.
    if let Some(outcome) = poll(process.engine().state()) {
        return outcome;
    }
    process.wait(|state, arming| {
        let outcome = poll(state);
        if outcome.is_none() && arming {
            process.note_wait(Some(peer));
            remark(parts);
        }
        outcome.or_else(|| state.gone(peer).map(Err))
    })
}

/// Waits until all operations of this rank are done.
pub(super) fn await_all(parts: &Parts) -> Result<()> {
    let (process, ledger) = (parts.process(), parts.flight().ledger());
    // A target that has done all stays so, since nothing is issued meanwhile.
    let mut from = 0;
    process.wait(|_, arming| {
        let Some(laggard) = ledger.laggard(from) else { return Some(Ok(())) };
        from = laggard;
        if arming {
            process.note_wait(Some(laggard));
            remark(parts);
        }
        None
    })
}

/// Waits for an event at one target, where `awaited` is the rank of the job on which it depends.
pub(super) fn await_target<T>(
    parts: &Parts,
    activity: Activity,
    target: &Target,
    awaited: impl Fn() -> u32,
    poll: impl Fn(&State) -> Option<T>,
) -> Result<T> {
    let process = parts.process();
    let mut poll = |state: &mut State, arming| {
        if arming {
            process.note_wait(Some(awaited()));
            remark(parts);
        }
        poll(state).map(Ok)
    };
    let at = At { peer: Some(target.peer), ..parts.at() };
    if parts.observed().is_some_and(|observed| observed.traces) {
        return process.during(activity, target.peer, at, || process.wait(poll));
    }
    // Mostly the target answers at once. Reading the clock twice would take a fifth of that time.
    if let Some(outcome) = process.glance(&mut poll) {
        if let Some(observed) = parts.observed() {
            observed.count_glance(process, activity, at);
        }
        return outcome;
    }
    process.during(activity, target.peer, at, || process.wait_longer(poll))
}

/// As [`await_target`], for a call whose event at the target has happened before it.
pub(super) fn find_done(parts: &Parts, activity: Activity, target: &Target) -> Result<()> {
    let process = parts.process();
    let at = At { peer: Some(target.peer), ..parts.at() };
    match parts.observed() {
        Some(observed) if observed.traces => {
            process.during(activity, target.peer, at, || process.oblige())
        }
        Some(observed) => {
            observed.count_glance(process, activity, at);
            process.oblige()
        }
        None => process.oblige(),
    }
}

/// Sends a request to a target by `start`, and waits for its answer, or until `is_needless`: the
/// error is the target's refusal. The answer depends on the rank of the job that `awaited` gives.
pub(super) fn ask(
    parts: &Parts,
    activity: Activity,
    target: &Target,
    start: impl FnOnce(&mut State, u64),
    awaited: impl Fn() -> u32,
    is_needless: impl Fn() -> bool,
) -> Result<Option<Error>> {
    let process = parts.process();
    let ticket = Arc::new(Ticket::default());
    {
        let mut engine = process.engine();
        let state = engine.state();
        if let Some(gone) = state.gone(target.peer) {
            return Err(gone);
        }
        process.check_job()?;
        let number = parts.flight().ledger().issue(target.peer);
        state.ticket(parts.operation(target.peer, number), ticket.clone());
        start(state, number);
        engine.progress();
    }
    let is_over = |_: &State| (ticket.is_done() || is_needless()).then_some(());
    if let Err(error) = await_target(parts, activity, target, awaited, is_over) {
        // While the job goes on, the other operations go on too.
        if process.check_job().is_err() {
            process.give_up(parts.id());
        }
        return Err(error);
    }
    let refused = ticket.take_failure();
    if refused.is_some() {
        // A target that is gone has failed the ledger too, where nothing else is open on it.
        parts.flight().take_failure(Some(target.peer));
    }
    Ok(refused)
}

/// Waits until no operation of this rank is in flight, whatever becomes of the job.
#[inline]
pub(super) fn drain(parts: &Parts) {
    if parts.flight().is_shipped() {
        drain_engine(parts);
    }
}

#[cold]
fn drain_engine(parts: &Parts) {
    let (process, flight) = (parts.process(), parts.flight());
    let settled = if flight.ledger().is_settled() { Ok(()) } else { await_all(parts) };
    match settled {
        // Memory may still be lent although the targets have answered.
        Ok(()) if flight.is_lent() => process.let_go(parts.id()),
        Ok(()) => {}
        // The job is being ended: no operation is answered any more.
        Err(_) => process.give_up(parts.id()),
    }
    // Checked operations are confirmed by the calls that wait for them; this one doesn't.
    flight.land(process.checks());
}
