//! The requests of a call that completes or tests them, while the call has their operations.
//!
//! A [`Batch`] has the active requests of the call's array. [`Batch::ending`] takes the operations
//! that are to be ended, and gives the others back. [`end_one`] and [`end_several`] write the
//! outcomes.

use std::ffi::c_int;
use std::mem;
use std::sync::MutexGuard;

use longshore::Waitable;

use crate::edge::arg::Room;
use crate::edge::constants::{ERR_IN_STATUS, REQUEST_NULL, SUCCESS};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, borrow, remove};
use crate::edge::status::Status;
use crate::objects::codes;
use crate::request::general::{self, General};
use crate::request::{Operation, Outcome, Request, has_ended, keep};

/// The active requests of a call.
pub(super) struct Batch<'a> {
    handles: &'a [Handle],
    /// Those to look at, in the order of the call's array.
    active: Few<Active>,
    /// The number of those that were complete at once.
    ended: usize,
}

/// An active request, of which no other call can have the operation meanwhile. A call that frees a
/// request needs its operation, so the request stays as long as this one has that. It stays until
/// the end of the call, too: programs complete a request once.
pub(super) struct Active {
    /// Its place in the call's array.
    at: usize,
    request: &'static Request,
    /// `None` once the call has waited.
    operation: Option<MutexGuard<'static, Operation>>,
    /// The outcome of an operation that has ended.
    outcome: Option<Outcome>,
    /// An operation that is complete and still has to be ended. Apart, so that the others are short
    /// to move.
    complete: Option<Box<Operation>>,
}

/// A list, mostly of one element, which needs no allocation.
struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few { first: None, more: Vec::new() }
    }
}

impl<T> Few<T> {
    /// Appends an element. `most` is the number of elements to come.
    fn push(&mut self, element: T, most: usize) {
        if self.first.is_none() {
            self.first = Some(element);
            return;
        }
        if self.more.is_empty() {
            self.more.reserve(most);
        }
        self.more.push(element);
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(index) => self.more.get(index),
        }
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match index.checked_sub(1) {
            None => self.first.as_mut(),
            Some(index) => self.more.get_mut(index),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.more)
    }
}

impl<'a> Batch<'a> {
    pub(super) fn of(handles: &'a [Handle]) -> Result<Batch<'a>> {
        let mut batch = Batch { handles, active: Few::default(), ended: 0 };
        for (at, &handle) in handles.iter().enumerate() {
            if handle == REQUEST_NULL {
                continue;
            }
            if has_ended(handle) {
                batch.ended += 1;
                continue;
            }
            let request = borrow::<Request>(handle)?;
            let operation = request.operation()?;
            if !matches!(*operation, Operation::Inactive) {
                let operation = Some(operation);
                let active = Active { at, request, operation, outcome: None, complete: None };
                batch.active.push(active, handles.len() - at);
            }
        }
        Ok(batch)
    }

    /// The number of active requests.
    pub(super) fn len(&self) -> usize {
        self.active.len() + self.ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a call waits for, of the active request of an index; `None` if that is complete.
    fn waitable(&self, index: usize) -> Option<&dyn Waitable> {
        self.active.get(index)?.waitable()
    }

    /// Waits until all requests are complete.
    pub(super) fn complete_all(&self) -> Result<()> {
        longshore::wait_all_by(self.active.len(), |index| self.waitable(index))?;
        while self.active.iter().any(|active| active.open_general().is_some()) {
            longshore::test_some(&[])?;
            general::pause();
        }
        Ok(())
    }

    /// The places of the complete requests. A call that waits does so until one is.
    pub(super) fn complete(&self, until: Until) -> Result<Vec<usize>> {
        let active = &self.active;
        let waitable = |index| self.waitable(index);
        let is_any_over = || active.iter().any(Active::is_over);
        // Another thread may complete an operation of the program meanwhile, and wakes no rank.
        let is_any_general = active.iter().any(Active::is_general);
        let found = match until {
            Until::Some if self.ended > 0 || is_any_over() => {
                longshore::test_some_by(active.len(), waitable)?
            }
            Until::Some if !is_any_general => longshore::wait_some_by(active.len(), waitable)?,
            Until::Some => loop {
                let found = longshore::test_some_by(active.len(), waitable)?;
                if !found.is_empty() || is_any_over() {
                    break found;
                }
                general::pause();
            },
            Until::Now => longshore::test_some_by(active.len(), waitable)?,
        };
        let mut complete = Vec::new();
        if self.ended > 0 {
            let ended = (0..).zip(self.handles).filter(|(_, handle)| has_ended(**handle));
            complete.extend(ended.map(|(at, _)| at));
        }
        complete.extend(found.into_iter().filter_map(|index| Some(active.get(index)?.at)));
        complete.extend(active.iter().filter(|active| active.is_over()).map(|active| active.at));
        complete.sort_unstable();
        Ok(complete)
    }

    /// The active requests, of which those of some places are to be ended, in this order. The end
    /// of a message or of an operation on a window is part of this. The operations of the others
    /// are given back: functions of the program run from now on, which may use these requests.
    pub(super) fn ending(mut self, places: impl Iterator<Item = usize>) -> Ending {
        let mut places = places.peekable();
        for active in self.active.iter_mut() {
            while places.next_if(|place| *place < active.at).is_some() {}
            if let Some(mut operation) = active.operation.take() {
                if places.peek() == Some(&active.at) {
                    active.outcome = operation.end(active.request.comm.as_deref());
                    if active.outcome.is_none() {
                        let complete = mem::replace(&mut *operation, Operation::Inactive);
                        active.complete = Some(Box::new(complete));
                    }
                }
            }
        }
        Ending { active: self.active, next: 0 }
    }
}

impl Active {
    fn waitable(&self) -> Option<&dyn Waitable> {
        self.operation.as_ref()?.waitable()
    }

    /// The operation of the program, if it isn't complete.
    fn open_general(&self) -> Option<&General> {
        self.operation.as_ref()?.open_general()
    }

    /// Whether it is an operation of the program.
    fn is_general(&self) -> bool {
        matches!(self.operation.as_deref(), Some(Operation::General(_)))
    }

    /// Whether the operation is complete, and no call waits for it.
    fn is_over(&self) -> bool {
        self.waitable().is_none() && self.open_general().is_none()
    }
}

/// Active requests that are being ended.
pub(super) struct Ending {
    active: Few<Active>,
    /// The index of the first that no place has passed.
    next: usize,
}

impl Ending {
    /// The active request of a place, which is above the earlier ones; `None` if that of the place
    /// is null, inactive, or was complete at once.
    #[inline]
    pub(super) fn at(&mut self, place: usize) -> Option<&mut Active> {
        while self.active.get(self.next)?.at < place {
            self.next += 1;
        }
        self.active.get_mut(self.next).filter(|active| active.at == place)
    }
}

/// How long a call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Not at all.
    Now,
    /// Until a request is complete.
    Some,
}

/// Ends a complete request: its handle becomes null, or it is inactive if it is persistent.
fn end(handle: &mut Handle, active: Option<&mut Active>) -> Result<(Outcome, Raiser)> {
    let ended = active.filter(|active| active.outcome.is_some() || active.complete.is_some());
    let Some(Active { request, outcome, complete, .. }) = ended else {
        let mut status = Status::NONE;
        if has_ended(*handle) {
            (*handle, status) = (REQUEST_NULL, Status::EMPTY);
        }
        return Ok((Outcome { status, fault: None }, Raiser::Own));
    };
    // Removed first: the end may call functions of the program.
    let removed = if request.plan.is_none() { Some(remove::<Request>(handle)?) } else { None };
    let finish = |operation: Box<Operation>| operation.finish(request.comm.as_deref());
    let outcome = outcome.take().or_else(|| complete.take().map(finish));
    let outcome = outcome.unwrap_or(Outcome { status: Status::NONE, fault: None });
    let raiser = request.raiser;
    if let Some(removed) = removed {
        keep(removed);
    }
    Ok((outcome, raiser))
}

/// Ends the one complete request of a call, whose error is the call's.
pub(super) fn end_one(
    handle: &mut Handle,
    active: Option<&mut Active>,
    status: Room<Status>,
) -> Result<()> {
    let (outcome, raiser) = end(handle, active)?;
    outcome.status.put(status.get(0));
    outcome.fault.map_or(Ok(()), |fault| Err(fault.on(raiser)))
}

/// The code of a fault for a status, with its message.
fn kept(fault: &Fault) -> c_int {
    match fault.message() {
        Some(text) => codes::of_fault(fault, format!("{}: {text}", codes::name(fault.code()))),
        None => fault.code(),
    }
}

/// Ends several complete requests. If one has failed, the error says so, and each status has the
/// error of its request (MPI-5.0 section 3.7.5).
pub(super) fn end_several(
    handles: &mut [Handle],
    mut active: Ending,
    places: impl Iterator<Item = usize>,
    statuses: Room<Status>,
) -> Result<()> {
    let mut failed: Option<(Fault, Raiser, usize)> = None;
    for (index, place) in places.enumerate() {
        if has_ended(handles[place]) && failed.is_none() {
            handles[place] = REQUEST_NULL;
            Status::EMPTY.put(statuses.get(index));
            continue;
        }
        let (Outcome { mut status, fault }, raiser) = end(&mut handles[place], active.at(place))?;
        if let Some(fault) = fault {
            if statuses.get(index).is_some() {
                status.error = kept(&fault);
            }
            if failed.is_none() {
                // The requests before it have succeeded.
                let before = (0..index).filter_map(|index| statuses.get(index));
                before.for_each(|status| status.error = SUCCESS);
                failed = Some((fault, raiser, place));
            }
        }
        match (&failed, statuses.get(index)) {
            (None, room) => status.put(room),
            (Some(_), Some(room)) => *room = status,
            (Some(_), None) => {}
        }
    }
    let Some((fault, raiser, place)) = failed else { return Ok(()) };
    let message = fault.message().unwrap_or("its status has the error");
    let message = format!("request {place} of the array has failed: {message}");
    Err(Fault::coded(ERR_IN_STATUS, Some(message)).on(raiser))
}
