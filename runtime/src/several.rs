//! Waiting for several requests at once (MPI-5.0 section 3.7.5): sends, receives, and operations on
//! windows.

use std::sync::Arc;

use std::panic::Location;

use crate::engine::State;
use crate::error::{ErrorKind, Result};
use crate::job::Activity;
use crate::observe::At;
use crate::process::Process;
use sealed::{Frame, Maker};

/// A request that [`wait_all`], [`wait_some`] and [`test_some`] can wait for: a
/// [`Sending`](crate::Sending), a [`Receiving`](crate::Receiving) or a
/// [`Request`](crate::Request).
///
/// These calls only find out which requests are complete. The `wait` of a complete request then
/// returns at once, with its memory or its error.
///
/// A pair of requests is complete when both are, and a vector when all are.
pub trait Waitable: sealed::Waitable {}

impl<A: sealed::Waitable, B: sealed::Waitable> sealed::Waitable for (A, B) {
    fn is_complete(&self, Frame(state): Frame<'_>) -> bool {
        self.0.is_complete(Frame(state)) && self.1.is_complete(Frame(state))
    }

    fn process(&self) -> Option<Maker<'_>> {
        self.0.process()
    }

    fn awaited(&self) -> Option<u32> {
        self.0.awaited()
    }
}

impl<A: Waitable, B: Waitable> Waitable for (A, B) {}

impl<W: sealed::Waitable> sealed::Waitable for Vec<W> {
    fn is_complete(&self, Frame(state): Frame<'_>) -> bool {
        self.iter().all(|request| request.is_complete(Frame(state)))
    }

    fn process(&self) -> Option<Maker<'_>> {
        self.first()?.process()
    }

    fn awaited(&self) -> Option<u32> {
        self.first()?.awaited()
    }
}

impl<W: Waitable> Waitable for Vec<W> {}

pub(crate) mod sealed {
    use std::sync::Arc;

    use crate::engine::State;
    use crate::process::Process;

    /// The engine's state, hidden from users.
    pub struct Frame<'a>(pub(crate) &'a State);

    /// The process that made a request, hidden from users.
    pub struct Maker<'a>(pub(crate) &'a Arc<Process>);

    pub trait Waitable {
        /// Whether the request has completed, with success or with an error.
        fn is_complete(&self, state: Frame<'_>) -> bool;

        /// The process that made the request; `None` for no request.
        fn process(&self) -> Option<Maker<'_>>;

        /// The rank of the job that it waits for, if that is one.
        fn awaited(&self) -> Option<u32>;
    }
}

/// Waits until all requests are complete (MPI_Waitall).
///
/// ```
/// use longshore::wait_all;
///
/// # let rank = longshore::init()?;
/// let world = rank.world();
/// let (me, size) = (world.rank(), world.size());
/// let (next, before) = ((me + 1) % size, (me + size - 1) % size);
/// let receiving = world.irecv(vec![-1; 10_000], before, 0)?;
/// let sending = world.isend(vec![me; 10_000], next, 0)?;
/// wait_all(&[&receiving, &sending])?;
/// assert_eq!(receiving.wait()?.0, vec![before; 10_000]);
/// sending.wait()?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// REQUEST for requests of different ranks. PROC_ABORTED if the job is being aborted. An error of a
/// request is returned by the request's own `wait`.
#[track_caller]
#[doc(alias = "MPI_Waitall")]
pub fn wait_all(requests: &[&dyn Waitable]) -> Result<()> {
    wait_all_by(requests.len(), |index| requests.get(index).copied())
}

/// [`wait_all`] for the requests that `request` returns by their index below `count`. One that it
/// doesn't return counts as complete.
///
/// `request` is called while the rank's communication is locked. It makes no call of this crate,
/// and returns the same request for an index each time.
///
/// ```
/// # let rank = longshore::init()?;
/// let alone = rank.alone();
/// let receives = [Some(alone.irecv(vec![0], 0, 0)?), None];
/// alone.send(&[7], 0, 0)?;
/// longshore::wait_all_by(2, |index| Some(receives[index].as_ref()?))?;
/// let [Some(receive), None] = receives else { unreachable!() };
/// assert_eq!(receive.wait()?.0, [7]);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`wait_all`].
#[track_caller]
pub fn wait_all_by<'a>(
    count: usize,
    request: impl Fn(usize) -> Option<&'a dyn Waitable>,
) -> Result<()> {
    let Some(process) = process_of(count, &request)? else { return Ok(()) };
    let mut complete = 0;
    let mut first = |state: &State| {
        while complete < count {
            match request(complete) {
                Some(request) if !is_complete(request, state) => return Some(request),
                _ => complete += 1,
            }
        }
        None
    };
    process.during(Activity::Requests, 0, At::of(Location::caller()), || {
        process.wait_or_find(|state, arming| {
            let Some(first) = first(state) else { return Some(Ok(())) };
            if arming {
                process.note_wait(first.awaited());
                process.remark(|| remark(count, &request, state));
            }
            None
        })
    })
}

/// Waits until at least one request is complete, and returns the indices of all that are
/// (MPI_Waitsome, MPI_Waitany). Without requests it returns none at once.
///
/// ```
/// use longshore::wait_some;
///
/// # let rank = longshore::init()?;
/// let alone = rank.alone();
/// let receives = [alone.irecv(vec![0], 0, 0)?, alone.irecv(vec![0], 0, 1)?];
/// alone.send(&[7], 0, 1)?;
/// assert_eq!(wait_some(&[&receives[0], &receives[1]])?, [1]);
/// let [first, second] = receives;
/// assert_eq!(second.wait()?.0, [7]);
/// first.cancel()?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`wait_all`].
#[track_caller]
#[doc(alias = "MPI_Waitany")]
#[doc(alias = "MPI_Waitsome")]
pub fn wait_some(requests: &[&dyn Waitable]) -> Result<Vec<usize>> {
    wait_some_by(requests.len(), |index| requests.get(index).copied())
}

/// [`wait_some`] for the requests that `request` returns by their index below `count`. One that it
/// doesn't return is left out.
///
/// `request` is called while the rank's communication is locked. It makes no call of this crate,
/// and returns the same request for an index each time.
///
/// ```
/// # let rank = longshore::init()?;
/// let alone = rank.alone();
/// let receives = [None, Some(alone.irecv(vec![0], 0, 0)?)];
/// alone.send(&[7], 0, 0)?;
/// assert_eq!(longshore::wait_some_by(2, |index| Some(receives[index].as_ref()?))?, [1]);
/// # drop(receives);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`wait_all`].
#[track_caller]
pub fn wait_some_by<'a>(
    count: usize,
    request: impl Fn(usize) -> Option<&'a dyn Waitable>,
) -> Result<Vec<usize>> {
    let Some(process) = process_of(count, &request)? else { return Ok(Vec::new()) };
    let some = |state: &State| Some(complete(count, &request, state)).filter(|it| !it.is_empty());
    process.during(Activity::Requests, 0, At::of(Location::caller()), || {
        // Not of those only that are complete already: in a loop of such calls, a request that
        // is complete often would keep the others from being noticed.
        process.wait(|state, arming| {
            let complete = some(state);
            if complete.is_none() && arming {
                // Any rank may end the wait, unless there is only one request.
                let mut all = (0..count).filter_map(&request);
                let only = all.next().filter(|_| all.next().is_none());
                process.note_wait(only.and_then(|it| it.awaited()));
                process.remark(|| remark(count, &request, state));
            }
            complete.map(Ok)
        })
    })
}

/// The indices of all requests that are complete (MPI_Testsome, MPI_Testall, MPI_Testany). Makes
/// progress, and doesn't wait.
///
/// ```
/// # let rank = longshore::init()?;
/// let alone = rank.alone();
/// let receiving = alone.irecv(vec![0], 0, 0)?;
/// assert!(longshore::test_some(&[&receiving])?.is_empty());
/// alone.send(&[7], 0, 0)?;
/// while longshore::test_some(&[&receiving])?.is_empty() {
///     // Other work.
/// }
/// receiving.wait()?;
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`wait_all`].
#[doc(alias = "MPI_Testall")]
#[doc(alias = "MPI_Testany")]
#[doc(alias = "MPI_Testsome")]
pub fn test_some(requests: &[&dyn Waitable]) -> Result<Vec<usize>> {
    test_some_by(requests.len(), |index| requests.get(index).copied())
}

/// [`test_some`] for the requests that `request` returns by their index below `count`. One that it
/// doesn't return is left out.
///
/// `request` is called while the rank's communication is locked. It makes no call of this crate,
/// and returns the same request for an index each time.
///
/// ```
/// # let rank = longshore::init()?;
/// let receives = [None, Some(rank.alone().irecv(vec![0], 0, 0)?)];
/// assert!(longshore::test_some_by(2, |index| Some(receives[index].as_ref()?))?.is_empty());
/// # drop(receives);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`wait_all`].
pub fn test_some_by<'a>(
    count: usize,
    request: impl Fn(usize) -> Option<&'a dyn Waitable>,
) -> Result<Vec<usize>> {
    let Some(process) = process_of(count, &request)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    process.test(|state| {
        found = complete(count, &request, state);
        !found.is_empty()
    })?;
    Ok(found)
}

fn is_complete(request: &dyn Waitable, state: &State) -> bool {
    request.is_complete(Frame(state))
}

fn complete<'a>(
    count: usize,
    request: &impl Fn(usize) -> Option<&'a dyn Waitable>,
    state: &State,
) -> Vec<usize> {
    let is_there = |index: &usize| request(*index).is_some_and(|it| is_complete(it, state));
    (0..count).filter(is_there).collect()
}

fn remark<'a>(
    count: usize,
    request: &impl Fn(usize) -> Option<&'a dyn Waitable>,
    state: &State,
) -> String {
    let (mut all, mut complete, mut next) = (0, 0, None);
    for request in (0..count).filter_map(request) {
        all += 1;
        match is_complete(request, state) {
            true => complete += 1,
            false => next = next.or(Some(request)),
        }
    }
    let of = next.and_then(|next| next.awaited());
    let of = of.map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
    format!("{complete} of {all} complete; the next one is of {of}")
}

/// The process that made the requests; `None` without requests.
fn process_of<'a>(
    count: usize,
    request: &impl Fn(usize) -> Option<&'a dyn Waitable>,
) -> Result<Option<&'a Arc<Process>>> {
    let mut processes = (0..count).filter_map(|index| Some(request(index)?.process()?.0));
    let Some(process) = processes.next() else { return Ok(None) };
    if processes.any(|other| !Arc::ptr_eq(process, other)) {
        return Err(ErrorKind::Request("the requests are of different ranks").into());
    }
    process.ready()?;
    Ok(Some(process))
}
