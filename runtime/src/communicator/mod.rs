//! Communicators: groups of ranks in contexts of their own (MPI-5.0 chapter 7).
//!
//! Left out: intercommunicators, infos and virtual topologies (MPI-5.0 sections 7.4.4, 7.6 and chapter 8), nonblocking dup.

mod agree;
mod announce;
mod collective;
mod create;
mod varying;

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use shipable::Architecture;

use crate::check::Caller;
use crate::engine::{Channel, Context};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::group::{Comparison, Group};
use crate::job::Activity;
use crate::object::{Cacheable, Card, attributes, error_handling, sealed};
use crate::process::{Meeting, Process};

pub(crate) use agree::told;
pub use create::SplitType;

/// In a receive: from any rank.
pub const ANY_SOURCE: i32 = -2;

/// In a receive: with any tag.
pub const ANY_TAG: i32 = -1;

/// A group of ranks that talk to each other, and to nobody else: what is sent on one communicator is received on that one.
///
/// [`Rank::world`](crate::Rank::world) is all ranks of the job. Others are made of it: [`dup`](Communicator::dup),
/// [`split`](Communicator::split), [`create`](Communicator::create) and their like. Ranks are those of the communicator in
/// all calls. The two that are there from the start are named MPI_COMM_WORLD and MPI_COMM_SELF. One that is dropped without [`free`](Communicator::free) keeps its shared memory until the end of the job.
///
/// ```
/// let rank = longshore::init()?;
/// let world = rank.world();
/// let squares = world.allgather(&[world.rank() * world.rank()])?;
/// assert_eq!(squares.len(), world.size() as usize);
/// // The ranks of like architecture among themselves.
/// let alike = world.split_type(Some(longshore::SplitType::Architecture), 0)?.unwrap();
/// assert!(alike.size() <= world.size());
/// alike.free()?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Communicator {
    shared: Arc<Shared>,
}

pub(crate) const FREED: ErrorKind =
    ErrorKind::CommunicatorHandle("freed: use communicators before they are freed");
pub(crate) const FIRST: ErrorKind = ErrorKind::CommunicatorHandle(
    "there from the start: only communicators that were made can be freed",
);

/// What a communicator shares with the windows that are made on it.
struct Shared {
    process: Arc<Process>,
    context: Context,
    group: Group,
    /// This process's rank.
    rank: u32,
    /// Where the ranks meet; made when they first do.
    meeting: OnceLock<Meeting>,
    /// What packed buffers are in; found when it is first asked for.
    packed: OnceLock<Architecture>,
    card: Card,
    /// Whether it is freed, for those that share it.
    freed: AtomicBool,
}

impl sealed::Cacheable for Communicator {}
impl Cacheable for Communicator {}

impl Communicator {
    pub(crate) fn world(process: Arc<Process>, meeting: Meeting) -> Communicator {
        let (rank, size) = (process.me().rank, process.me().size);
        let world = Self::new(process, Context::WORLD, Group::of_job(size, rank), rank);
        let _ = world.shared.meeting.set(meeting);
        world.set_name("MPI_COMM_WORLD");
        world
    }

    /// The communicator of this process alone.
    pub(crate) fn alone(process: Arc<Process>) -> Communicator {
        let me = process.me().rank;
        let alone = Self::new(process, Context::SELF, Group::new(vec![me], me), 0);
        alone.set_name("MPI_COMM_SELF");
        alone
    }

    fn new(process: Arc<Process>, context: Context, group: Group, rank: u32) -> Communicator {
        let card = Card::new(process.names());
        Self::with_card(process, context, group, rank, card)
    }

    fn with_card(
        process: Arc<Process>,
        context: Context,
        group: Group,
        rank: u32,
        card: Card,
    ) -> Communicator {
        let (meeting, packed, freed) = (OnceLock::new(), OnceLock::new(), AtomicBool::new(false));
        let shared = Shared { process, context, group, rank, meeting, packed, card, freed };
        Communicator { shared: Arc::new(shared) }
    }

    attributes!(Communicator);
    error_handling!();

    pub(crate) fn card(&self) -> &Card {
        &self.shared.card
    }

    pub(crate) fn clear_attributes(&self) -> Result<()> {
        self.card().clear(None)
    }

    /// The same communicator, for what is made on it and outlives the caller's.
    pub(crate) fn share(&self) -> Communicator {
        Communicator { shared: self.shared.clone() }
    }

    /// Whether calls can be made on it.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        match self.shared.freed.load(Ordering::Relaxed) {
            true => Err(FREED.into()),
            false => self.process().ready(),
        }
    }

    /// This process's rank.
    pub fn rank(&self) -> i32 {
        self.shared.rank as i32
    }

    /// How many ranks there are.
    pub fn size(&self) -> i32 {
        self.shared.group.size()
    }

    /// Its processes, in the order of their ranks (MPI-5.0 section 7.3.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let last = rank.world().group().incl(&[rank.world().size() - 1])?;
    /// assert_eq!(last.size(), 1);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// How it relates to another one of this process (MPI-5.0 section 7.4.1): [`Comparison::Ident`] if they are one and the
    /// same, [`Comparison::Congruent`] or [`Comparison::Similar`] by their groups, else [`Comparison::Unequal`].
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().compare(rank.world()), longshore::Comparison::Ident);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn compare(&self, other: &Communicator) -> Comparison {
        let same = Arc::ptr_eq(&self.shared.process, &other.shared.process);
        if same && self.shared.context == other.shared.context {
            return Comparison::Ident;
        }
        match self.group().compare(other.group()) {
            Comparison::Ident => Comparison::Congruent,
            other => other,
        }
    }

    pub(crate) fn packed(&self) -> &OnceLock<Architecture> {
        &self.shared.packed
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.shared.process
    }

    /// What it is called in the job, by its members.
    pub(crate) fn number(&self) -> u32 {
        self.shared.context.number()
    }

    /// The context of a channel of this communicator.
    pub(crate) fn context(&self, channel: Channel) -> u32 {
        self.shared.context.of(channel)
    }

    /// The process with a rank of this communicator, or none for PROC_NULL (rule 27).
    pub(crate) fn member(&self, rank: i32) -> Result<Option<u32>> {
        self.shared.group.member(rank)
    }

    /// Returns once all ranks have called it (MPI-5.0 section 6.3).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.world().barrier()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// A rank that died before it came here: PROC_ABORTED.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        self.barrier_as(Activity::Barrier, Location::caller())
    }

    pub(crate) fn barrier_as(&self, activity: Activity, caller: Caller) -> Result<()> {
        let process = self.process();
        let met = || {
            self.ready()?;
            process.during(activity, 0, || {
                let found = match activity {
                    Activity::Finalize => self.announce_end(caller)?,
                    _ => self.announce(|| "barrier".to_owned(), caller).map(|()| None)?,
                };
                // Who leaves before has left those that still wait for its announcement.
                self.meet(self.meeting()?)?;
                found.map_or(Ok(()), Err)
            })
        };
        met().map_err(|error| self.raise(error.at(|| self.place("barrier"))))
    }

    /// Where the ranks meet. All have to ask for it together the first time.
    fn meeting(&self) -> Result<&Meeting> {
        match self.shared.meeting.get() {
            Some(meeting) => Ok(meeting),
            None => {
                let meeting = self.make_meeting()?;
                Ok(self.shared.meeting.get_or_init(|| meeting))
            }
        }
    }

    /// Returns once all ranks have come to this meeting.
    pub(crate) fn meet(&self, meeting: &Meeting) -> Result<()> {
        self.process().meet(meeting, self.group(), self.rank() as u32)
    }

    /// Has the communicator's error handler deal with an error of a call on it.
    pub(crate) fn raise(&self, error: Error) -> Error {
        self.card().raise(self.process(), error)
    }

    /// The same with its place.
    pub(crate) fn raised(&self, error: Error, call: &'static str) -> Error {
        self.raise(error.at(|| self.place(call)))
    }

    pub(crate) fn place(&self, call: &'static str) -> Place {
        Place { call, rank: self.process().me().rank, ..Place::default() }
    }

    /// Where a call that was to reach a rank failed.
    pub(crate) fn toward(&self, call: &'static str, target: i32) -> Place {
        let process = self.member(target).ok().flatten();
        Place { target: Some(target), process, ..self.place(call) }
    }
}

#[cfg(test)]
mod tests {
    use crate::rank::Rank;
    use crate::sim::{Options, run, run_shared};
    use crate::window::{Info, Window};

    #[test]
    fn what_is_freed_gives_its_memory_back() {
        let body = |rank: Rank| {
            let world = rank.world();
            let next = || {
                world.barrier().unwrap();
                let segment = world.process().segment();
                let range = (world.rank() == 0).then(|| segment.allocate(64).unwrap());
                if let Some(range) = range {
                    segment.free(range).unwrap();
                }
                world.barrier().unwrap();
                range.map(|range| range.offset)
            };
            let make_and_free = || {
                let dup = world.dup().unwrap();
                dup.barrier().unwrap();
                dup.free().unwrap();
            };
            // The first messages between two ranks take memory for good.
            make_and_free();
            let before = next();
            (0..3).for_each(|_| make_and_free());
            assert_eq!(next(), before);
            let kept = world.dup().unwrap();
            kept.barrier().unwrap();
            assert_eq!(next() == before, world.rank() != 0);
            rank.finalize().unwrap();
        };
        run_shared(3, &Options::default(), body).unwrap();
    }

    #[test]
    fn communicators_and_windows_are_made_one_at_a_time() {
        let body = |rank: Rank| {
            let world = rank.world();
            let other = (world.rank() == 0).then(|| world.process().begin_making().unwrap());
            let info = Info::default();
            let refused = [
                world.dup().err().unwrap(),
                Window::allocate(world, 8, 8, &info).err().unwrap(),
                Window::allocate_shared(world, 8, 8, &info).err().unwrap(),
                world.create_group(world.group(), 0).err().unwrap(),
            ];
            for error in refused {
                assert!(error.to_string().contains("make one at a time"), "{error}");
            }
            drop(other);
            world.dup().unwrap().free().unwrap();
            Window::allocate(world, 8, 8, &info).unwrap().free().unwrap();
            if world.process().hosts().hold(world.group()) {
                Window::allocate_shared(world, 8, 8, &info).unwrap().free().unwrap();
            }
            rank.finalize().unwrap();
        };
        run(2, &Options::default(), body).unwrap();
    }
}
