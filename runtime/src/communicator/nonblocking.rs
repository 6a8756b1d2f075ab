//! Collective calls with requests (MPI-5.0 section 6.12). A request owns the memory of its call
//! until it completes.
//!
//! The ranks of a communicator make these calls in one order. They may make other collective calls
//! meanwhile. Under `--check`, the first steps of a call compare it with those of the other ranks.

mod reduction;

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;
use std::task::Poll;

use super::Communicator;
use super::calls::{Call, Ongoing};
use super::message::Side;
use crate::bytes::Bytes;
use crate::check::order::Sample;
use crate::error::{ErrorKind, Result};
use crate::given::{Given, Kept, Taken};
use crate::job::Activity;
use crate::memory::Memory;
use crate::observe::At;
use crate::process::Schedule;
use crate::several::Waitable;
use crate::several::sealed::{self, Frame, Maker};

/// A collective call under way. It owns the memory of the call, and [`wait`](Collective::wait)
/// returns that. If it is dropped, the call goes on, in later calls of this rank.
///
/// The call makes progress in every call of this rank that waits or tests.
#[must_use = "`wait` returns the memory of the call"]
pub struct Collective<R> {
    communicator: Communicator,
    call: &'static str,
    state: State,
    back: Back<R>,
}

/// How far a call has come.
enum State {
    /// It was complete at its start.
    Ended(Result<()>),
    Scheduled(Arc<Schedule>),
}

impl State {
    fn has_ended(&self) -> bool {
        match self {
            State::Ended(_) => true,
            State::Scheduled(schedule) => schedule.has_ended(),
        }
    }

    /// The outcome of a call that has ended.
    fn outcome(self) -> Result<()> {
        match self {
            State::Ended(outcome) => outcome,
            State::Scheduled(schedule) => schedule.take_outcome(),
        }
    }
}

/// What gives the memory of a call back. The steps of the call must no longer use it.
pub(super) enum Back<R> {
    /// The data and the room.
    Both(Shared, Shared, fn(Shared, Shared) -> Option<R>),
    By(Box<dyn FnOnce() -> Option<R> + Send>),
}

impl<R> Back<R> {
    pub(super) fn by(back: impl FnOnce() -> Option<R> + Send + 'static) -> Back<R> {
        Back::By(Box::new(back))
    }

    fn take(self) -> Option<R> {
        match self {
            Back::Both(data, room, back) => back(data, room),
            Back::By(back) => back(),
        }
    }
}

/// What a call with a request holds, and how it gives it back.
pub(super) struct Held<H, R> {
    /// What the steps of the call use.
    pub memory: H,
    pub back: Back<R>,
    pub sample: Option<Sample>,
}

impl<R> Collective<R> {
    /// Whether the call is complete, so that [`wait`](Collective::wait) returns at once. Makes
    /// progress.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[track_caller]
    #[doc(alias = "MPI_Test")]
    pub fn test(&self) -> Result<bool> {
        let has_ended = self.communicator.process().test(|_| self.state.has_ended());
        let caller = Location::caller();
        has_ended.map_err(|error| self.communicator.raised(error, self.call, caller))
    }

    /// Waits until the call is complete, and returns its memory.
    ///
    /// # Errors
    /// Those of the call. The memory is dropped then.
    #[track_caller]
    #[doc(alias = "MPI_Wait")]
    pub fn wait(self) -> Result<R> {
        let caller = Location::caller();
        let process = self.communicator.process();
        let wait = || -> Result<()> {
            if self.state.has_ended() {
                return Ok(());
            }
            process.ready()?;
            process.during(Activity::Requests, 0, At::of(caller), || {
                process.wait(|_, _| self.state.has_ended().then_some(Ok(())))
            })
        };
        let outcome = wait().and_then(|()| self.state.outcome());
        outcome.map_err(|error| self.communicator.raised(error, self.call, caller))?;
        self.back.take().ok_or_else(|| ErrorKind::Aborting { by: None }.into())
    }
}

impl<R> sealed::Waitable for Collective<R> {
    fn is_complete(&self, _: Frame<'_>) -> bool {
        self.state.has_ended()
    }

    fn process(&self) -> Option<Maker<'_>> {
        Some(Maker(self.communicator.process()))
    }

    fn awaited(&self) -> Option<u32> {
        None
    }
}

impl<R> Waitable for Collective<R> {}

/// The memory of a call, which its steps hold as well.
pub(super) type Shared = Arc<Taken<Kept>>;

pub(super) fn taken<M: Memory>(given: Given<M>, communicator: &Communicator) -> Result<Shared> {
    Ok(Arc::new(Taken::kept(given, communicator.process())?))
}

pub(super) fn side(taken: &Taken<Kept>) -> Side<'_> {
    Side { what: taken.what(), span: taken.memory.span() }
}

/// The memory as it was given. The steps must no longer use it.
pub(super) fn back<M: Memory>(taken: Shared) -> Option<M> {
    Arc::into_inner(taken)?.memory.give_back()
}

fn both_back<M: Memory, N: Memory>(data: Shared, room: Shared) -> Option<(M, N)> {
    Some((back(data)?, back(room)?))
}

/// An attempt at a call that has no short way.
pub(super) fn no_short<H>(_: &Communicator, _: Ongoing, _: &H) -> Option<Result<()>> {
    None
}

impl Communicator {
    /// Starts a call. `hold` returns what the call holds. `short` is an attempt at it, as
    /// [`short`](super::short) describes them, and `general` are its steps otherwise.
    #[track_caller]
    pub(super) fn start<H, R, F>(
        &self,
        (name, call): (&'static str, Call),
        hold: impl FnOnce(&Communicator, Ongoing) -> Result<Held<H, R>>,
        short: impl Fn(&Communicator, Ongoing, &H) -> Option<Result<()>> + Send + Sync + 'static,
        general: impl FnOnce(Communicator, Ongoing, H) -> F + Send + 'static,
    ) -> Result<Collective<R>>
    where
        H: Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let caller = Location::caller();
        let started = || {
            self.ready()?;
            let at = self.begin_started(call);
            if let Some(root) = call.root() {
                self.check_root(root)?;
            }
            let Held { memory, back, sample } = hold(self, at)?;
            let collective = |state| {
                let communicator = self.share();
                Ok(Collective { communicator, call: name, state, back })
            };
            let checks = self.process().checks();
            let first = match !checks && self.is_first_in_turn() {
                true => self.attempt(at, || short(self, at, &memory)),
                false => Poll::Pending,
            };
            if let Poll::Ready(Some(outcome)) = first {
                drop(memory);
                return collective(State::Ended(outcome));
            }
            let own = self.share_place();
            let steps = async move {
                let attempted = match first {
                    Poll::Ready(left) => left,
                    Poll::Pending => {
                        poll_fn(|_| own.attempt(at, || short(&own, at, &memory))).await
                    }
                };
                match attempted {
                    Some(outcome) => outcome,
                    // Boxed where they are needed, since they are long to move.
                    None => Box::pin(general(own, at, memory)).await,
                }
            };
            let schedule = match checks {
                true => {
                    let mine = self.started_announcement((name, call), sample, caller);
                    let compared = self.share_place().compared(at, mine, steps);
                    self.process().schedule(self.in_turn(at, Box::pin(compared)))
                }
                false => self.process().schedule(self.in_turn(at, steps)),
            };
            collective(State::Scheduled(schedule))
        };
        started().map_err(|error| self.raised(error, name, caller))
    }

    /// Starts a call that works on a revoked communicator and after failures, so that it isn't
    /// announced to the other ranks and has no number among other calls. `make` gets this
    /// communicator, for the steps to own, and returns the steps, and what gives the memory back
    /// after them.
    #[track_caller]
    pub(super) fn start_surviving<R, S, G>(
        &self,
        name: &'static str,
        make: impl FnOnce(Communicator) -> Result<(S, G)>,
    ) -> Result<Collective<R>>
    where
        S: Future<Output = Result<()>> + Send + 'static,
        G: FnOnce() -> Option<R> + Send + 'static,
    {
        let caller = Location::caller();
        let started = || -> Result<Collective<R>> {
            let (steps, back) = make(self.share())?;
            let state = State::Scheduled(self.process().schedule(steps));
            Ok(Collective { communicator: self.share(), call: name, state, back: Back::by(back) })
        };
        started().map_err(|error| self.raised(error, name, caller))
    }

    /// Starts a call with the data and the room of this rank.
    #[track_caller]
    pub(super) fn start_both<M, N, F>(
        &self,
        name_and_call: (&'static str, Call),
        (data, room): (Given<M>, Given<N>),
        short: impl Fn(&Communicator, Ongoing, Side<'_>, Side<'_>) -> Option<Result<()>>
        + Send
        + Sync
        + 'static,
        general: impl FnOnce(Communicator, Ongoing, Shared, Shared) -> F + Send + 'static,
    ) -> Result<Collective<(M, N)>>
    where
        M: Memory,
        N: Memory,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let caller = Location::caller();
        let hold = |own: &Communicator, Ongoing { call, .. }: Ongoing| {
            let (data, room) = (taken(data, own)?, taken(room, own)?);
            let sample = own.sample_started(call, side(&data), side(&room));
            own.note_use(call.name(), side(&data), false, caller);
            own.note_use(call.name(), side(&room), true, caller);
            let back = Back::Both(data.clone(), room.clone(), both_back);
            Ok(Held { memory: (data, room), back, sample })
        };
        self.start(
            name_and_call,
            hold,
            move |own, at, (data, room)| short(own, at, side(data), side(room)),
            |own, at, (data, room)| general(own, at, data, room),
        )
    }

    /// Starts a barrier: the call is complete after all ranks have started it. See
    /// [`barrier`](Communicator::barrier).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let meeting = rank.world().ibarrier()?;
    /// while !meeting.test()? {
    ///     // Other work.
    /// }
    /// meeting.wait()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`barrier`](Communicator::barrier), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ibarrier")]
    pub fn ibarrier(&self) -> Result<Collective<()>> {
        self.start(
            ("ibarrier", const { Call::new("barrier") }),
            |_, _| Ok(Held { memory: (), back: Back::by(|| Some(())), sample: None }),
            |own, at, ()| own.short_barrier(at),
            async move |own, at, ()| {
                own.participants(at).allgather(Bytes::default()).await.map(drop)
            },
        )
    }

    /// Starts to send the root's data to all ranks. See [`bcast`](Communicator::bcast).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let data = if rank.world().rank() == 0 { vec![0.5, 1.5] } else { vec![0.0; 2] };
    /// let limits = rank.world().ibcast(data, 0)?;
    /// // Other work.
    /// assert_eq!(limits.wait()?, [0.5, 1.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`bcast`](Communicator::bcast), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ibcast")]
    pub fn ibcast<M: Memory>(&self, data: impl Into<Given<M>>, root: i32) -> Result<Collective<M>> {
        let caller = Location::caller();
        let hold = |own: &Communicator, Ongoing { call, .. }: Ongoing| {
            let data = taken(data.into(), own)?;
            let sample = own.sample_started(call, side(&data), side(&data));
            own.note_use("bcast", side(&data), own.rank() != root, caller);
            let held = data.clone();
            Ok(Held { memory: data, back: Back::by(move || back(held)), sample })
        };
        self.start(
            ("ibcast", const { Call::new("bcast") }.with_root(root)),
            hold,
            move |own, at, data| own.short_bcast(at, side(data), root),
            async move |own, at, data| own.bcast_steps(at, side(&data), root).await,
        )
    }

    /// Starts to collect equal blocks of data from all ranks at `root`. See
    /// [`gather`](Communicator::gather).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let room = vec![0; if world.rank() == 0 { world.size() as usize } else { 0 }];
    /// let (_, all) = world.igather(vec![world.rank()], room, 0)?.wait()?;
    /// assert!(all.iter().copied().eq(0..all.len() as i32));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`gather`](Communicator::gather), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Igather")]
    pub fn igather<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        root: i32,
    ) -> Result<Collective<(M, N)>> {
        let (call, both) = (
            ("igather", const { Call::new("gather") }.with_root(root)),
            (data.into(), room.into()),
        );
        self.start_both(
            call,
            both,
            move |own, at, data, room| own.short_gather(at, data, room, Some(root)),
            async move |own, at, data, room| {
                own.gather_steps(at, side(&data), side(&room), None, root).await
            },
        )
    }

    /// Starts to collect blocks of their own lengths from all ranks at `root`. See
    /// [`gatherv`](Communicator::gatherv).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let ranges: Vec<_> = (0..i64::from(world.size())).map(|rank| rank..rank + 1).collect();
    /// let room = vec![0; if world.rank() == 0 { world.size() as usize } else { 0 }];
    /// let (_, all) = world.igatherv(vec![world.rank()], room, &ranges, 0)?.wait()?;
    /// assert!(all.iter().copied().eq(0..all.len() as i32));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`gatherv`](Communicator::gatherv), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Igatherv")]
    pub fn igatherv<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        ranges: &[Range<i64>],
        root: i32,
    ) -> Result<Collective<(M, N)>> {
        let ranges = ranges.to_vec();
        let (call, both) = (
            ("igatherv", const { Call::new("gatherv") }.with_root(root)),
            (data.into(), room.into()),
        );
        self.start_both(
            call,
            both,
            |_, _, _, _| None,
            async move |own, at, data, room| {
                own.gather_steps(at, side(&data), side(&room), Some(&ranges), root).await
            },
        )
    }

    /// Starts to collect equal blocks of data from all ranks at every rank. See
    /// [`allgather`](Communicator::allgather).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let room = vec![0; world.size() as usize];
    /// let (_, all) = world.iallgather(vec![world.rank()], room)?.wait()?;
    /// assert_eq!(all, Vec::from_iter(0..world.size()));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allgather`](Communicator::allgather), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iallgather")]
    pub fn iallgather<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
    ) -> Result<Collective<(M, N)>> {
        let (call, both) =
            (("iallgather", const { Call::new("allgather") }), (data.into(), room.into()));
        self.start_both(
            call,
            both,
            move |own, at, data, room| own.short_gather(at, data, room, None),
            async move |own, at, data, room| {
                own.allgather_steps(at, side(&data), side(&room), None).await
            },
        )
    }

    /// Starts to collect blocks of their own lengths from all ranks at every rank. See
    /// [`allgatherv`](Communicator::allgatherv).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let ranges: Vec<_> = (0..i64::from(world.size())).map(|rank| rank..rank + 1).collect();
    /// let room = vec![0; world.size() as usize];
    /// let (_, all) = world.iallgatherv(vec![world.rank()], room, &ranges)?.wait()?;
    /// assert_eq!(all, Vec::from_iter(0..world.size()));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`allgatherv`](Communicator::allgatherv), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iallgatherv")]
    pub fn iallgatherv<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        ranges: &[Range<i64>],
    ) -> Result<Collective<(M, N)>> {
        let ranges = ranges.to_vec();
        let (call, both) =
            (("iallgatherv", const { Call::new("allgatherv") }), (data.into(), room.into()));
        self.start_both(
            call,
            both,
            |_, _, _, _| None,
            async move |own, at, data, room| {
                own.allgather_steps(at, side(&data), side(&room), Some(&ranges)).await
            },
        )
    }

    /// Starts to send each rank its block of the root's data. See
    /// [`scatter`](Communicator::scatter).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let parts = if world.rank() == 0 { Vec::from_iter(0..world.size()) } else { vec![] };
    /// let (_, mine) = world.iscatter(parts, vec![0], 0)?.wait()?;
    /// assert_eq!(mine, [world.rank()]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scatter`](Communicator::scatter), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iscatter")]
    pub fn iscatter<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
        root: i32,
    ) -> Result<Collective<(M, N)>> {
        let (call, both) = (
            ("iscatter", const { Call::new("scatter") }.with_root(root)),
            (data.into(), room.into()),
        );
        self.start_both(
            call,
            both,
            move |own, at, data, room| own.short_scatter(at, data, room, root),
            async move |own, at, data, room| {
                own.scatter_steps(at, side(&data), None, side(&room), root).await
            },
        )
    }

    /// Starts to send each rank its block, of its own length, of the root's data. See
    /// [`scatterv`](Communicator::scatterv).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let ranges: Vec<_> = (0..i64::from(world.size())).map(|rank| rank..rank + 1).collect();
    /// let parts = if world.rank() == 0 { Vec::from_iter(0..world.size()) } else { vec![] };
    /// let (_, mine) = world.iscatterv(parts, &ranges, vec![0], 0)?.wait()?;
    /// assert_eq!(mine, [world.rank()]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`scatterv`](Communicator::scatterv), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Iscatterv")]
    pub fn iscatterv<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        ranges: &[Range<i64>],
        room: impl Into<Given<N>>,
        root: i32,
    ) -> Result<Collective<(M, N)>> {
        let ranges = ranges.to_vec();
        let (call, both) = (
            ("iscatterv", const { Call::new("scatterv") }.with_root(root)),
            (data.into(), room.into()),
        );
        self.start_both(
            call,
            both,
            |_, _, _, _| None,
            async move |own, at, data, room| {
                own.scatter_steps(at, side(&data), Some(&ranges), side(&room), root).await
            },
        )
    }

    /// Starts to send block j of each rank's data to rank j. See
    /// [`alltoall`](Communicator::alltoall).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let (given, room) = (vec![me; size as usize], vec![-1; size as usize]);
    /// let (_, from) = rank.world().ialltoall(given, room)?.wait()?;
    /// assert_eq!(from, Vec::from_iter(0..size));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`alltoall`](Communicator::alltoall), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ialltoall")]
    pub fn ialltoall<M: Memory, N: Memory>(
        &self,
        data: impl Into<Given<M>>,
        room: impl Into<Given<N>>,
    ) -> Result<Collective<(M, N)>> {
        let (call, both) =
            (("ialltoall", const { Call::new("alltoall") }), (data.into(), room.into()));
        self.start_both(
            call,
            both,
            move |own, at, data, room| own.short_alltoall(at, data, room),
            async move |own, at, data, room| {
                own.alltoall_steps(at, (side(&data), None), (side(&room), None)).await
            },
        )
    }

    /// Starts to send each rank a block of its own length, and to receive such blocks. See
    /// [`alltoallv`](Communicator::alltoallv).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let ranges: Vec<_> = (0..i64::from(size)).map(|rank| rank..rank + 1).collect();
    /// let (given, room) = (vec![me; size as usize], vec![-1; size as usize]);
    /// let exchange = rank.world().ialltoallv((given, &ranges), (room, &ranges))?;
    /// assert_eq!(exchange.wait()?.1, Vec::from_iter(0..size));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`alltoallv`](Communicator::alltoallv), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ialltoallv")]
    pub fn ialltoallv<M: Memory, N: Memory>(
        &self,
        (data, given): (impl Into<Given<M>>, &[Range<i64>]),
        (room, taken): (impl Into<Given<N>>, &[Range<i64>]),
    ) -> Result<Collective<(M, N)>> {
        let (given, taken) = (given.to_vec(), taken.to_vec());
        let call = ("ialltoallv", const { Call::new("alltoallv") });
        self.start_both(
            call,
            (data.into(), room.into()),
            |_, _, _, _| None,
            async move |own, at, data, room| {
                let (data, room) =
                    ((side(&data), Some(&given[..])), (side(&room), Some(&taken[..])));
                own.alltoall_steps(at, data, room).await
            },
        )
    }

    /// Starts to send each rank data of its own memory and type, and to receive such data. See
    /// [`alltoallw`](Communicator::alltoallw).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Given;
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let given = (0..size).map(|to| Given::from(vec![me * to]));
    /// let taken = (0..size).map(|_| Given::from(vec![-1]));
    /// let (_, from) = rank.world().ialltoallw(given, taken)?.wait()?;
    /// assert!(from.concat().into_iter().eq((0..size).map(|from| from * me)));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`alltoallw`](Communicator::alltoallw), when the call is waited for.
    #[track_caller]
    #[doc(alias = "MPI_Ialltoallw")]
    pub fn ialltoallw<M: Memory, N: Memory>(
        &self,
        given: impl IntoIterator<Item = Given<M>>,
        taken: impl IntoIterator<Item = Given<N>>,
    ) -> Result<Collective<(Vec<M>, Vec<N>)>> {
        let call = ("ialltoallw", const { Call::new("alltoallw") });
        self.start_all(call, given, taken, |own, at, given, taken| async move {
            own.alltoallw_steps(at, &sides(&given), &sides(&taken)).await
        })
    }

    /// Starts a call with several memories.
    #[track_caller]
    pub(super) fn start_all<M, N, S>(
        &self,
        name_and_call: (&'static str, Call),
        given: impl IntoIterator<Item = Given<M>>,
        room: impl IntoIterator<Item = Given<N>>,
        steps: impl FnOnce(Communicator, Ongoing, Vec<Shared>, Vec<Shared>) -> S + Send + 'static,
    ) -> Result<Collective<(Vec<M>, Vec<N>)>>
    where
        M: Memory,
        N: Memory,
        S: Future<Output = Result<()>> + Send + 'static,
    {
        let caller = Location::caller();
        let hold = |own: &Communicator, Ongoing { call, .. }: Ongoing| {
            let given = given.into_iter().map(|given| taken(given, own));
            let given = given.collect::<Result<Vec<_>>>()?;
            let room = room.into_iter().map(|given| taken(given, own));
            let room = room.collect::<Result<Vec<_>>>()?;
            given.iter().for_each(|it| own.note_use(call.name(), side(it), false, caller));
            room.iter().for_each(|it| own.note_use(call.name(), side(it), true, caller));
            let memory = (given.clone(), room.clone());
            let back = Back::by(move || {
                let given: Option<_> = given.into_iter().map(back).collect();
                Some((given?, room.into_iter().map(back).collect::<Option<_>>()?))
            });
            Ok(Held { memory, back, sample: None })
        };
        self.start(name_and_call, hold, no_short, |own, at, (given, room)| {
            steps(own, at, given, room)
        })
    }
}

pub(super) fn sides(taken: &[Shared]) -> Vec<Side<'_>> {
    taken.iter().map(|taken| side(taken)).collect()
}

#[cfg(test)]
mod tests {
    use shipable::reduce::Op;

    use super::*;
    use crate::job::Checking;
    use crate::rank::Rank;
    use crate::sim::{Options, run_shared};

    #[test]
    fn calls_whose_data_are_there_end_at_their_start() {
        let body = |rank: Rank| {
            let world = rank.world();
            let me = world.rank();
            // This makes the board.
            world.ibarrier().unwrap().wait().unwrap();
            let early = (me == 1).then(|| {
                let sum = world.iallreduce(vec![me], vec![0], Op::Sum).unwrap();
                assert!(!sum.state.has_ended());
                world.send(&[0], 0, 0).unwrap();
                sum
            });
            let sum = early.unwrap_or_else(|| {
                world.recv(&mut [0], 1, 0).unwrap();
                let sum = world.iallreduce(vec![me], vec![0], Op::Sum).unwrap();
                assert!(matches!(sum.state, State::Ended(Ok(()))));
                sum
            });
            assert_eq!(sum.wait().unwrap(), (vec![me], vec![1]));
            rank.finalize().unwrap();
        };
        // Data go by message under checks, and are late under an adversary.
        let (hosts, check) = (vec![0; 2], Checking::Off);
        let options = Options { hosts, check, adversary: None, ..Options::default() };
        run_shared(2, &options, body).unwrap();
    }
}
