//! Requests (MPI-5.0 sections 3.7 and 12.3.5).
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | [`Request`] and its [`Operation`]; calls that free and cancel requests, and those of statuses |
//! | [`batch`] | the requests of a call that completes or tests them |
//! | [`completion`] | the calls that complete and test requests (sections 3.7.3 and 3.7.5) |
//! | [`arguments`] | the checked arguments of collective calls, which a request may keep |
//! | [`copied`] | copies of elements, which a request keeps |
//! | [`unfinished`] | what `--check` reports of requests |
//! | [`general`] | requests of operations that the program carries out itself (section 13.2) |
//!
//! A call that starts an operation gives it a handle by [`made`], whatever kind of operation it is.

pub(crate) mod arguments;
mod batch;
pub(crate) mod completion;
pub(crate) mod copied;
pub(crate) mod general;
pub(crate) mod unfinished;

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use longshore::{Class, Partitioned, Pointed, Receiving, Sending, Waitable};

use crate::communicator::promise::Length;
use crate::communicator::{Comm, envelope};
use crate::edge::arg::Address;
use crate::edge::constants::REQUEST_NULL;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, Kind, Object, find, insert, remove};
use crate::edge::lock::lock;
use crate::edge::made;
use crate::edge::status::Status;
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
    /// The partitions of a message, which threads make ready while a call waits for it.
    partitions: Option<Partitioned>,
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
    /// A partitioned message, and its status.
    Partitioned(Box<(Partitioned, Status)>),
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
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
    if let Some(mut spare) = spare {
        if let Some(request) = Arc::get_mut(&mut spare) {
            *lock_own(&mut request.operation) = operation;
            (request.raiser, request.comm) = (raiser, comm);
            return insert(spare);
        }
    }
    let (plan, general, partitions) = (None, None, None);
    let operation = Mutex::new(operation);
    inserted(Arc::new(Request { operation, plan, raiser, comm, general, partitions }))
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
    prepared(plan, None, raiser, comm)
}

/// A handle of the request of a partitioned message, which isn't started.
pub fn partitioned(
    plan: Plan,
    partitions: Partitioned,
    raiser: Raiser,
    comm: Arc<Comm>,
) -> Result<Handle> {
    prepared(plan, Some(partitions), raiser, comm)
}

fn prepared(
    plan: Plan,
    partitions: Option<Partitioned>,
    raiser: Raiser,
    comm: Arc<Comm>,
) -> Result<Handle> {
    inserted(Arc::new_cyclic(|request| {
        let plan = Some(watched(plan, request.clone()));
        let (operation, comm) = (Mutex::new(Operation::Inactive), Some(comm));
        Request { operation, plan, raiser, comm, general: None, partitions }
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
    let (plan, comm, partitions) = (None, None, None);
    inserted(Arc::new(Request { operation, plan, raiser, comm, general, partitions }))
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
    /// The partitions of its message, if it has some.
    pub fn partitions(&self) -> Option<&Partitioned> {
        self.partitions.as_ref()
    }

    /// The object whose error handler gets its errors.
    pub fn raiser(&self) -> Raiser {
        self.raiser
    }

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
            Operation::Partitioned(parts) => Some(&parts.0),
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
            Operation::Partitioned(parts) => parts.0.end().map(|()| parts.1),
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

/// Takes the outcome of a complete request.
fn take(request: &Request) -> Result<Outcome> {
    let operation = mem::replace(&mut *request.operation()?, Operation::Inactive);
    Ok(operation.finish(request.comm.as_deref()))
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
