//! Requests (MPI-5.0 sections 3.7 and 12.3.5).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | all calls that complete, test, start or free requests |
//! | [`arguments`] | the checked arguments of collective calls, which a request may keep |
//! | [`copied`] | copies of elements, which a request keeps |
//! | [`unfinished`] | what `--check` reports of requests |
//! | [`general`] | requests of operations that the program carries out itself (section 13.2) |
//!
//! A call that starts an operation gives it a handle by [`made`], whatever kind of operation it is.

pub(crate) mod arguments;
pub(crate) mod copied;
pub(crate) mod general;
pub(crate) mod unfinished;

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use longshore::{Class, Pointed, Receiving, Sending, Waitable};

use crate::communicator::promise::Length;
use crate::communicator::{Comm, envelope};
use crate::edge::arg::{Address, List, Room};
use crate::edge::constants::{ERR_IN_STATUS, REQUEST_NULL, SUCCESS, UNDEFINED};
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, Kind, Object, borrow, find, insert, remove};
use crate::edge::lock::lock;
use crate::edge::made;
use crate::edge::status::Status;
use crate::objects::codes;
use crate::request::arguments::Started;
use crate::request::copied::Copied;
use crate::request::general::General;
use crate::request::unfinished::{inserted, note_free, watched};

/// A request.
pub struct Request {
    operation: Mutex<Operation>,
    /// What a persistent request starts. It outlives its operations.
    plan: Option<Plan>,
    /// The object whose error handler gets the errors of the operation.
    raiser: Raiser,
    /// The communicator of a message, which may be freed before the request completes.
    comm: Option<Arc<Comm>>,
    /// The operation of the program, if it is one: it completes while a call waits for it.
    general: Option<Arc<General>>,
}

/// Starts the operation of a persistent request.
pub type Plan = Box<dyn Fn() -> Result<Operation> + Send + Sync>;

/// What a request stands for.
pub enum Operation {
    Send(Sending<Pointed>),
    /// A receive, and the length that was promised for it.
    Receive(Receiving<Pointed>, Option<Box<Length>>),
    /// A send and a receive, which complete together, the length that was promised for the receive,
    /// and the memory of the send if that is a copy.
    Exchange {
        both: Box<(Sending<Pointed>, Receiving<Pointed>)>,
        length: Option<Box<Length>>,
        _copy: Option<Copied>,
    },
    /// Sends from copies, which complete together.
    Flush(Vec<Sending<Pointed>>, Vec<Copied>),
    /// An operation on a window.
    Rma(longshore::Request<()>),
    /// A collective call.
    Collective(Started),
    /// An access to a file.
    File(Box<longshore_file::Request<Pointed>>),
    /// An operation of the program.
    General(Arc<General>),
    /// An operation that has completed, and its outcome.
    Complete(Outcome),
    /// None: a persistent request that isn't started.
    Inactive,
}

/// The status of an access to a file.
pub fn status_of(moved: longshore_file::Status) -> Status {
    let mut status = Status::EMPTY;
    status.set_own(moved.bytes as i64);
    status
}

/// What an operation came to.
pub struct Outcome {
    status: Status,
    fault: Option<Fault>,
}

impl Outcome {
    fn of(ended: longshore::Result<Status>) -> Outcome {
        match ended {
            Ok(status) => Outcome { status, fault: None },
            Err(error) => {
                let message = error.message();
                Outcome::failed(Fault::from(error), message)
            }
        }
    }

    /// The outcome of an operation that failed, with the source and the tag of the message that it
    /// had matched.
    fn failed(fault: Fault, message: Option<(c_int, c_int)>) -> Outcome {
        Outcome { status: Status::failed(fault.code(), message), fault: Some(fault) }
    }
}

impl Object for Request {
    const KIND: Kind = Kind::Request;
    const CLASS: Class = Class::Request;
    const NULL: Handle = REQUEST_NULL;

    fn predefined(_: Handle) -> Option<Arc<Request>> {
        None
    }
}

/// A handle of an operation that has started. Its errors are raised on `raiser`; `comm` is the
/// communicator of a message.
pub fn made(operation: Operation, raiser: Raiser, comm: Option<Arc<Comm>>) -> Result<Handle> {
    // There is none while the thread ends.
    let mut spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
    let is_free = spare.as_mut().is_some_and(|spare| Arc::get_mut(spare).is_some());
    let made = match spare.filter(|_| is_free) {
        Some(mut spare) => {
            if let Some(request) = Arc::get_mut(&mut spare) {
                *lock_own(&mut request.operation) = operation;
                (request.raiser, request.comm) = (raiser, comm);
            }
            spare
        }
        None => {
            let operation = Mutex::new(operation);
            let made = Request { operation, plan: None, raiser, comm, general: None };
            return inserted(Arc::new(made));
        }
    };
    insert(made)
}

thread_local! {
    /// Requests that have ended, whose memory serves later ones of the thread. Nobody else has a
    /// reference to them.
    static SPARE: RefCell<Vec<Arc<Request>>> = const { RefCell::new(Vec::new()) };
}

/// The most requests whose memory a thread keeps.
const SPARES: usize = 1024;

/// Keeps the memory of a request that has ended, and whose handle is freed.
fn keep(mut request: Arc<Request>) {
    // Another call may still have a reference to it.
    let Some(Request { plan: None, comm, general: None, .. }) = Arc::get_mut(&mut request) else {
        return;
    };
    // Dropped first: the communicator may be freed with it, which calls functions of the program.
    drop(comm.take());
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARES {
            spare.push(request);
        }
    });
}

/// The content of a lock that no other thread can have.
fn lock_own<T>(lock: &mut Mutex<T>) -> &mut T {
    lock.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// The one handle of all operations that were complete at once, with an empty status, as short
/// sends are. None of them can fail, so no call has to look at one.
static ENDED: OnceLock<Handle> = OnceLock::new();

/// The handle of an operation that was complete at once, with an empty status.
pub fn ended() -> Result<Handle> {
    match ENDED.get() {
        Some(ended) => Ok(*ended),
        None => {
            let ended = complete(Status::EMPTY)?;
            if made::is_checked() {
                // Each of them has to be completed.
                return Ok(ended);
            }
            Ok(*ENDED.get_or_init(|| ended))
        }
    }
}

fn has_ended(handle: Handle) -> bool {
    ENDED.get() == Some(&handle)
}

/// A handle of an operation that was complete at once, with a status of its own.
pub fn complete(status: Status) -> Result<Handle> {
    made(Operation::complete(status), Raiser::Own, None)
}

/// A handle of a persistent request, which isn't started.
pub fn persistent(plan: Plan, raiser: Raiser, comm: Arc<Comm>) -> Result<Handle> {
    inserted(Arc::new_cyclic(|request| {
        let plan = Some(watched(plan, request.clone()));
        let (operation, comm) = (Mutex::new(Operation::Inactive), Some(comm));
        Request { operation, plan, raiser, comm, general: None }
    }))
}

/// A handle of an operation of the program.
pub fn grequest_start(
    query: Address,
    free: Address,
    cancel: Address,
    extra: Address,
) -> Result<Handle> {
    let general = General::new(query, free, cancel, extra);
    let operation = Mutex::new(Operation::General(general.clone()));
    let (raiser, general) = (Raiser::Own, Some(general));
    inserted(Arc::new(Request { operation, plan: None, raiser, comm: None, general }))
}

/// The operation of the program is complete.
pub fn grequest_complete(request: Handle) -> Result<()> {
    match &find::<Request>(request)?.general {
        Some(general) => general.complete(),
        None => {
            let what = "the request isn't a generalized one: MPI_Grequest_start makes those";
            Err(Fault::new(Class::Request, what.to_owned()))
        }
    }
}

impl Request {
    /// Whether it is a persistent request that isn't started.
    fn is_inactive(&self) -> Result<bool> {
        Ok(matches!(*self.operation()?, Operation::Inactive))
    }

    /// Starts the operation of a persistent request.
    pub fn start(&self) -> Result<()> {
        let refused = |why: &str| Err(Fault::new(Class::Request, why.to_owned()));
        let Some(plan) = &self.plan else {
            return refused("the request isn't persistent: only those can be started");
        };
        let mut operation = self.operation()?;
        match *operation {
            Operation::Inactive => *operation = plan().map_err(|e| e.on(self.raiser))?,
            _ => {
                self.report_start();
                return refused("the request is active: complete it before it is started again");
            }
        }
        Ok(())
    }

    /// The operation, for one call at a time.
    fn operation(&self) -> Result<MutexGuard<'_, Operation>> {
        match self.operation.try_lock() {
            Ok(operation) => Ok(operation),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let what = "another call waits for this request, or it is in the array twice";
                Err(Fault::new(Class::Request, what.to_owned()))
            }
        }
    }
}

impl Operation {
    /// An operation that was complete at once.
    pub fn complete(status: Status) -> Operation {
        Operation::Complete(Outcome { status, fault: None })
    }

    /// What a call waits for; `None` if it is complete.
    fn waitable(&self) -> Option<&dyn Waitable> {
        match self {
            Operation::Send(sending) => Some(sending),
            Operation::Receive(receiving, _) => Some(receiving),
            Operation::Exchange { both, .. } => Some(&**both),
            Operation::Flush(sends, _) => Some(sends),
            Operation::Rma(request) => Some(request),
            Operation::Collective(started) => Some(started.waitable()),
            Operation::File(access) => Some(access.waitable()),
            Operation::General(_) | Operation::Complete(_) | Operation::Inactive => None,
        }
    }

    /// The operation of the program, if it isn't complete.
    fn open_general(&self) -> Option<&General> {
        match self {
            Operation::General(general) if !general.is_complete() => Some(general),
            _ => None,
        }
    }

    /// Ends an operation that is complete, if no function of the program runs meanwhile.
    fn end(&mut self, comm: Option<&Comm>) -> Option<Outcome> {
        let ended = match self {
            Operation::Receive(receiving, length) => receive(receiving, length.as_deref(), comm),
            Operation::Send(sending) => sending.complete().map(|()| Status::EMPTY),
            Operation::Exchange { .. } | Operation::Rma(_) | Operation::Complete(_) => {
                return Some(mem::replace(self, Operation::Inactive).finish(comm));
            }
            _ => return None,
        };
        *self = Operation::Inactive;
        Some(Outcome::of(ended))
    }

    /// The outcome of an operation that is complete.
    fn finish(self, comm: Option<&Comm>) -> Outcome {
        let ended = match self {
            Operation::Complete(outcome) => return outcome,
            Operation::General(general) => {
                return match general.end() {
                    Ok(status) => Outcome { status, fault: None },
                    Err(fault) => Outcome::failed(fault, None),
                };
            }
            Operation::File(access) => {
                return match access.wait() {
                    Ok((_, moved)) => Outcome { status: status_of(moved), fault: None },
                    Err(error) => Outcome::failed(error.into(), None),
                };
            }
            Operation::Inactive => Ok(Status::NONE),
            Operation::Send(mut sending) => sending.complete().map(|()| Status::EMPTY),
            Operation::Receive(mut receiving, length) => {
                receive(&mut receiving, length.as_deref(), comm)
            }
            Operation::Exchange { mut both, length, .. } => {
                let (sending, receiving) = &mut *both;
                let sent = sending.complete();
                sent.and(receive(receiving, length.as_deref(), comm))
            }
            Operation::Flush(sends, _copies) => {
                let sent = sends.into_iter().try_for_each(|sending| sending.wait().map(drop));
                sent.map(|()| Status::EMPTY)
            }
            Operation::Rma(request) => request.wait().map(|()| Status::EMPTY),
            Operation::Collective(started) => started.wait().map(|()| Status::EMPTY),
        };
        Outcome::of(ended)
    }
}

/// Ends a receive, and looks at the length that was promised for it.
fn receive(
    receiving: &mut Receiving<Pointed>,
    length: Option<&Length>,
    comm: Option<&Comm>,
) -> longshore::Result<Status> {
    let status = envelope::received(comm, &receiving.complete()?);
    if let (Some(comm), Some(length)) = (comm, length) {
        length.look_at(comm, &status);
    }
    Ok(status)
}

/// The active requests of a call.
struct Batch<'a> {
    handles: &'a [Handle],
    /// Those to look at, in the order of the call's array.
    active: Few<Active>,
    /// The number of those that were complete at once.
    ended: usize,
}

/// An active request, of which no other call can have the operation meanwhile. A call that frees a
/// request needs its operation, so the request stays as long as this one has that. It stays until
/// the end of the call, too: programs complete a request once.
struct Active {
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

    fn len(&self) -> usize {
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
    fn of(handles: &'a [Handle]) -> Result<Batch<'a>> {
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
    fn len(&self) -> usize {
        self.active.len() + self.ended
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a call waits for, of the active request of an index; `None` if that is complete.
    fn waitable(&self, index: usize) -> Option<&dyn Waitable> {
        self.active.get(index)?.waitable()
    }

    /// Waits until all requests are complete.
    fn complete_all(&self) -> Result<()> {
        longshore::wait_all_by(self.active.len(), |index| self.waitable(index))?;
        while self.active.iter().any(|active| active.open_general().is_some()) {
            longshore::test_some(&[])?;
            general::pause();
        }
        Ok(())
    }

    /// The places of the complete requests. A call that waits does so until one is.
    fn complete(&self, until: Until) -> Result<Vec<usize>> {
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
    fn ending(mut self, places: impl Iterator<Item = usize>) -> Ending {
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
struct Ending {
    active: Few<Active>,
    /// The index of the first that no place has passed.
    next: usize,
}

impl Ending {
    /// The active request of a place, which is above the earlier ones; `None` if that of the place
    /// is null, inactive, or was complete at once.
    #[inline]
    fn at(&mut self, place: usize) -> Option<&mut Active> {
        while self.active.get(self.next)?.at < place {
            self.next += 1;
        }
        self.active.get_mut(self.next).filter(|active| active.at == place)
    }
}

/// How long a call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
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

/// Takes the outcome of a complete request.
fn take(request: &Request) -> Result<Outcome> {
    let operation = mem::replace(&mut *request.operation()?, Operation::Inactive);
    Ok(operation.finish(request.comm.as_deref()))
}

/// Ends the one complete request of a call, whose error is the call's.
fn end_one(handle: &mut Handle, active: Option<&mut Active>, status: Room<Status>) -> Result<()> {
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
fn end_several(
    handles: &mut [Handle],
    mut active: Ending,
    places: impl Iterator<Item = usize>,
    statuses: Room<Status>,
) -> Result<()> {
    let mut failed: Option<(Fault, Raiser, usize)> = None;
    for (index, place) in places.enumerate() {
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

pub fn wait(request: &mut Handle, status: Room<Status>) -> Result<()> {
    let handles = [*request];
    let batch = Batch::of(&handles)?;
    batch.complete_all()?;
    end_one(request, batch.ending(0..1).at(0), status)
}

pub fn test(request: &mut Handle, flag: Room<c_int>, status: Room<Status>) -> Result<()> {
    let handles = [*request];
    let batch = Batch::of(&handles)?;
    let is_complete = batch.is_empty() || !batch.complete(Until::Now)?.is_empty();
    write(flag, c_int::from(is_complete), "flag")?;
    if is_complete { end_one(request, batch.ending(0..1).at(0), status) } else { Ok(()) }
}

pub fn waitall(count: usize, requests: Room<Handle>, statuses: Room<Status>) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    batch.complete_all()?;
    end_several(handles, batch.ending(0..count), 0..count, statuses)
}

pub fn testall(
    count: usize,
    requests: Room<Handle>,
    flag: Room<c_int>,
    statuses: Room<Status>,
) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    let are_complete = batch.complete(Until::Now)?.len() == batch.len();
    write(flag, c_int::from(are_complete), "flag")?;
    if !are_complete {
        return Ok(());
    }
    end_several(handles, batch.ending(0..count), 0..count, statuses)
}

/// Writes a result that counts even if the call fails later.
fn write<T: Copy>(room: Room<T>, value: T, name: &'static str) -> Result<()> {
    room.slice(1, name)?[0] = value;
    Ok(())
}

pub fn waitany(
    count: usize,
    requests: Room<Handle>,
    index: Room<c_int>,
    status: Room<Status>,
) -> Result<()> {
    any(count, requests, status, Until::Some, |first| write(index, first.1, "indx"))
}

pub fn testany(
    count: usize,
    requests: Room<Handle>,
    index: Room<c_int>,
    flag: Room<c_int>,
    status: Room<Status>,
) -> Result<()> {
    any(count, requests, status, Until::Now, |(is_there, first)| {
        write(index, first, "indx")?;
        write(flag, c_int::from(is_there), "flag")
    })
}

/// Ends the first complete request of an array, if there is one. Tells first whether there is one,
/// or no request at all, and its index.
fn any(
    count: usize,
    requests: Room<Handle>,
    status: Room<Status>,
    until: Until,
    tell: impl FnOnce((bool, c_int)) -> Result<()>,
) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        Status::NONE.put(status.get(0));
        return tell((true, UNDEFINED));
    }
    match batch.complete(until)?.first() {
        None => tell((false, UNDEFINED)),
        Some(&first) => {
            tell((true, first as c_int))?;
            let mut ending = batch.ending(first..first + 1);
            end_one(&mut handles[first], ending.at(first), status)
        }
    }
}

pub fn waitsome(
    count: usize,
    requests: Room<Handle>,
    outcount: Room<c_int>,
    indices: Room<c_int>,
    statuses: Room<Status>,
) -> Result<()> {
    some(count, requests, (outcount, indices), statuses, Until::Some)
}

pub fn testsome(
    count: usize,
    requests: Room<Handle>,
    outcount: Room<c_int>,
    indices: Room<c_int>,
    statuses: Room<Status>,
) -> Result<()> {
    some(count, requests, (outcount, indices), statuses, Until::Now)
}

/// Ends all complete requests of an array, and tells their number and indices.
fn some(
    count: usize,
    requests: Room<Handle>,
    (outcount, indices): (Room<c_int>, Room<c_int>),
    statuses: Room<Status>,
    until: Until,
) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        return write(outcount, UNDEFINED, "outcount");
    }
    let complete = batch.complete(until)?;
    write_indices(&complete, count, indices)?;
    write(outcount, complete.len() as c_int, "outcount")?;
    let ending = batch.ending(complete.iter().copied());
    end_several(handles, ending, complete.into_iter(), statuses)
}

fn write_indices(complete: &[usize], count: usize, indices: Room<c_int>) -> Result<()> {
    let room = indices.slice(count, "array_of_indices")?;
    complete.iter().zip(room).for_each(|(index, place)| *place = *index as c_int);
    Ok(())
}

/// The status of a complete request, which stays.
fn peek(handle: Handle) -> Result<Status> {
    if handle == REQUEST_NULL {
        return Ok(Status::NONE);
    }
    if has_ended(handle) {
        return Ok(Status::EMPTY);
    }
    let request = find::<Request>(handle)?;
    if request.is_inactive()? {
        return Ok(Status::NONE);
    }
    if let Some(general) = &request.general {
        return general.query();
    }
    let outcome = take(&request)?;
    let status = outcome.status;
    *request.operation()? = Operation::Complete(outcome);
    Ok(status)
}

pub fn request_get_status(request: Handle, status: Room<Status>) -> Result<bool> {
    let handles = [request];
    let batch = Batch::of(&handles)?;
    if !batch.is_empty() && batch.complete(Until::Now)?.is_empty() {
        return Ok(false);
    }
    drop(batch);
    peek(request)?.put(status.get(0));
    Ok(true)
}

pub fn request_get_status_all(
    count: usize,
    requests: List<Handle>,
    statuses: Room<Status>,
) -> Result<bool> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.complete(Until::Now)?.len() < batch.len() {
        return Ok(false);
    }
    drop(batch);
    for (index, handle) in handles.iter().enumerate() {
        peek(*handle)?.put(statuses.get(index));
    }
    Ok(true)
}

pub fn request_get_status_any(
    count: usize,
    requests: List<Handle>,
    status: Room<Status>,
) -> Result<(c_int, bool)> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        Status::NONE.put(status.get(0));
        return Ok((UNDEFINED, true));
    }
    let Some(&first) = batch.complete(Until::Now)?.first() else { return Ok((UNDEFINED, false)) };
    drop(batch);
    peek(handles[first])?.put(status.get(0));
    Ok((first as c_int, true))
}

pub fn request_get_status_some(
    count: usize,
    requests: List<Handle>,
    indices: Room<c_int>,
    statuses: Room<Status>,
) -> Result<c_int> {
    let handles = requests.slice(count, "array_of_requests")?;
    let batch = Batch::of(handles)?;
    if batch.is_empty() {
        return Ok(UNDEFINED);
    }
    let complete = batch.complete(Until::Now)?;
    drop(batch);
    write_indices(&complete, count, indices)?;
    for (index, place) in complete.iter().enumerate() {
        peek(handles[*place])?.put(statuses.get(index));
    }
    Ok(complete.len() as c_int)
}

/// Operations whose request is freed, until they are complete.
static FREED: Mutex<Vec<Operation>> = Mutex::new(Vec::new());

/// Collective calls are neither freed nor cancelled (MPI-5.0 section 6.12).
const COMPLETE_IT: &str = "the request is of a collective call: complete it";

/// Frees a request. Its operation goes on.
pub fn request_free(handle: &mut Handle) -> Result<()> {
    if has_ended(*handle) {
        *handle = REQUEST_NULL;
        return Ok(());
    }
    let request = find::<Request>(*handle)?;
    let mut operation = request.operation()?;
    if let Operation::Rma(rma) = &*operation {
        return rma.free().map_err(|error| Fault::from(error).on(request.raiser));
    }
    if let Operation::Collective(_) = &*operation {
        return Err(Fault::new(Class::Request, COMPLETE_IT.to_owned()));
    }
    remove::<Request>(handle)?;
    if let Operation::General(general) = &*operation {
        return general.release();
    }
    let mut freed = lock(&FREED);
    if operation.waitable().is_some() {
        note_free(&operation);
        freed.push(mem::replace(&mut *operation, Operation::Inactive));
    }
    let complete = {
        let waitables: Vec<&dyn Waitable> = freed.iter().filter_map(Operation::waitable).collect();
        longshore::test_some(&waitables)?
    };
    // The operations before an index that goes away keep theirs.
    complete.into_iter().rev().for_each(|index| drop(freed.remove(index)));
    Ok(())
}

/// Cancels a receive that no message has matched. Other messages complete as usual.
pub fn cancel(handle: &mut Handle) -> Result<()> {
    let request = find::<Request>(*handle)?;
    if let Some(general) = &request.general {
        return general.cancel();
    }
    let mut operation = request.operation()?;
    match &mut *operation {
        Operation::Receive(receiving, _) => {
            if receiving.withdraw() {
                let mut status = Status::EMPTY;
                status.set_cancelled(true);
                *operation = Operation::Complete(Outcome { status, fault: None });
            }
            Ok(())
        }
        Operation::Collective(_) => Err(Fault::new(Class::Request, COMPLETE_IT.to_owned())),
        Operation::Rma(rma) => rma.cancel().map_err(|error| Fault::from(error).on(request.raiser)),
        _ => Ok(()),
    }
}

pub fn status_get_source(status: &Status) -> Result<c_int> {
    Ok(status.source)
}

pub fn status_get_tag(status: &Status) -> Result<c_int> {
    Ok(status.tag)
}

pub fn status_get_error(status: &Status) -> Result<c_int> {
    Ok(status.error)
}

pub fn status_set_source(status: &mut Status, source: c_int) -> Result<()> {
    status.source = source;
    Ok(())
}

pub fn status_set_tag(status: &mut Status, tag: c_int) -> Result<()> {
    status.tag = tag;
    Ok(())
}

pub fn status_set_error(status: &mut Status, error: c_int) -> Result<()> {
    status.error = error;
    Ok(())
}

pub fn status_set_cancelled(status: &mut Status, cancelled: bool) -> Result<()> {
    status.set_cancelled(cancelled);
    Ok(())
}

pub fn test_cancelled(status: &Status) -> Result<bool> {
    Ok(status.is_cancelled())
}
