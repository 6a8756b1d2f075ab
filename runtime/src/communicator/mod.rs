//! Communicators: groups of ranks, each with a context of its own (MPI-5.0 chapter 7).
//!
//! Left out: info of communicators (MPI-5.0 section 7.4.4), virtual topologies (chapter 8) but for
//! exchanges with neighbours, and nonblocking dup.

mod agreement;
mod announce;
mod blocks;
mod board;
mod calls;
mod collective;
mod create;
mod failures;
mod inter;
mod joining;
mod likeness;
mod meeting;
mod message;
mod neighbors;
mod nonblocking;
mod offers;
mod operator;
mod participants;
mod partitioned;
mod places;
mod posts;
mod reduction;
mod shapes;
mod short;
mod slices;
mod turns;
mod varying;

use std::panic::Location;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use shipable::Architecture;

use crate::bytes::Bytes;
use crate::check::Caller;
use crate::engine::{Channel, Context, Revocable};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::group::{Comparison, Group};
use crate::job::Activity;
use crate::object::{Cacheable, Card, attributes, error_handling, sealed};
use crate::observe::At;
use crate::process::{Meeting, Process};

use agreement::Agreement;
use board::Board;
pub(crate) use calls::Call;
use calls::Calls;
pub use create::SplitType;
use inter::Inter;
pub use joining::{Spawn, Spawned};
use likeness::Likeness;
pub use neighbors::Neighbors;
pub use nonblocking::Collective;
pub use operator::{Operator, SharedOperator, UserOp};
use participants::finish;
pub(crate) use participants::told;
use partitioned::PartNumbers;
pub use partitioned::Partitioned;
use turns::{Reserved, Turns};

pub use crate::special::{ANY_SOURCE, ANY_TAG, ROOT};

/// A group of ranks that communicate in a context of their own: a message sent on one communicator
/// is received only on that communicator.
///
/// [`Rank::world`](crate::Rank::world) is the communicator of all ranks of the job. Further ones
/// are derived from it by [`dup`](Communicator::dup), [`split`](Communicator::split),
/// [`create`](Communicator::create) and similar calls. In all calls, ranks are numbered in the
/// communicator. The two initial communicators are named MPI_COMM_WORLD and MPI_COMM_SELF.
///
/// Communicators should be freed with [`free`](Communicator::free). A communicator that is only
/// dropped keeps its shared memory until the job ends.
///
/// ```
/// let rank = longshore::init()?;
/// let world = rank.world();
/// let squares = world.allgather(&[world.rank() * world.rank()])?;
/// assert_eq!(squares.len(), world.size() as usize);
/// // The ranks that have the representation of this rank.
/// let alike = world.split_type(Some(longshore::SplitType::Architecture), 0)?.unwrap();
/// assert!(alike.size() <= world.size());
/// alike.free()?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Communicator {
    shared: Arc<Shared>,
    /// The place of its calls with requests, if they all have the same; see
    /// [`reserve`](Communicator::reserve).
    reserved: Option<Arc<Reserved>>,
    /// Whether the communicator's free leaves this reference usable; see
    /// [`keep`](Communicator::keep).
    is_kept: bool,
}

pub(crate) const FREED: ErrorKind =
    ErrorKind::CommunicatorHandle("freed: use communicators before they are freed");
pub(crate) const FIRST: ErrorKind = ErrorKind::CommunicatorHandle(
    "there from the start: only communicators that were made can be freed",
);

/// The state that a communicator shares with the windows made on it.
struct Shared {
    process: Arc<Process>,
    context: Context,
    group: Group,
    /// This process's rank.
    rank: u32,
    /// The other group, of an intercommunicator.
    inter: Option<Inter>,
    /// The barrier of the ranks; made at its first use.
    meeting: OnceLock<Meeting>,
    /// The board of the ranks, if they have one; made at its first use.
    board: OnceLock<Option<Board>>,
    /// The calls with requests, and their board.
    turns: Turns,
    /// The representation of packed buffers, if that isn't this process's; determined at its first
    /// use.
    packed: OnceLock<Option<Architecture>>,
    /// What the members have in common; determined at its first use.
    likeness: OnceLock<Likeness>,
    card: Card,
    calls: Calls,
    /// The numbers of partitions that this process sends.
    partitions: PartNumbers,
    /// The announcements of calls, under `--check`.
    agreement: Mutex<Agreement>,
    /// Why calls fail: [`HAS_ENDED`], [`IS_REVOKED`], or both. Windows made on it go on.
    ended: AtomicU8,
}

/// The communicator is freed.
const HAS_ENDED: u8 = 1;

/// The communicator is revoked.
const IS_REVOKED: u8 = 2;

impl Revocable for Shared {
    fn revoke(&self) {
        self.ended.fetch_or(IS_REVOKED, Ordering::Relaxed);
    }
}

impl sealed::Cacheable for Communicator {}
impl Cacheable for Communicator {}

impl Communicator {
    pub(crate) fn world(process: Arc<Process>, meeting: Meeting) -> Communicator {
        let me = *process.me();
        let group = Group::of_world(me.world(), me.rank);
        let world = Self::new(process, Context::WORLD, group, me.rank - me.first);
        let _ = world.shared.meeting.set(meeting);
        world.set_name("MPI_COMM_WORLD");
        world
    }

    /// MPI_COMM_SELF of this process.
    pub(crate) fn alone(process: Arc<Process>) -> Communicator {
        let me = process.me().rank;
        let alone = Self::new(process, Context::SELF, Group::new(vec![me], me), 0);
        alone.set_name("MPI_COMM_SELF");
        alone
    }

    fn new(process: Arc<Process>, context: Context, group: Group, rank: u32) -> Communicator {
        let card = Card::new(process.names());
        Self::with_card(process, context, (group, rank, None), card)
    }

    fn with_card(
        process: Arc<Process>,
        context: Context,
        (group, rank, inter): (Group, u32, Option<Inter>),
        card: Card,
    ) -> Communicator {
        let (meeting, packed, ended) = (OnceLock::new(), OnceLock::new(), AtomicU8::new(0));
        let (calls, agreement) = (Calls::default(), Mutex::default());
        let partitions = PartNumbers::default();
        let shared = Shared {
            process,
            context,
            group,
            rank,
            inter,
            meeting,
            board: OnceLock::new(),
            turns: Turns::default(),
            likeness: OnceLock::new(),
            packed,
            card,
            calls,
            partitions,
            agreement,
            ended,
        };
        let made = Communicator { shared: Arc::new(shared), reserved: None, is_kept: false };
        let object: Weak<dyn Revocable> = Arc::<Shared>::downgrade(&made.shared);
        let (number, members) = (made.number(), made.everyone().0.clone());
        made.process().engine().state().open_communicator(number, members, object);
        made
    }

    attributes!(Communicator);
    error_handling!();

    pub(crate) fn card(&self) -> &Card {
        &self.shared.card
    }

    pub(crate) fn clear_attributes(&self) -> Result<()> {
        self.card().close()
    }

    /// Another reference to the communicator, for a holder that may outlive this one, such as a
    /// handle of a program in C. Both are freed by the [`free`](Communicator::free) of one.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let (dup, world) = (rank.world().dup()?, rank.world().share());
    /// assert_eq!(world.compare(rank.world()), longshore::Comparison::Ident);
    /// let other = dup.share();
    /// dup.free()?;
    /// assert!(other.barrier().is_err());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn share(&self) -> Communicator {
        Communicator { shared: self.shared.clone(), reserved: None, is_kept: false }
    }

    /// Another reference to the communicator, which stays usable for messages and for calls with
    /// requests when the communicator is freed. A persistent request needs one: the free of the
    /// communicator takes effect only after its requests (MPI-5.0 section 7.4.3).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let dup = rank.world().dup()?;
    /// let kept = dup.keep();
    /// dup.free()?;
    /// kept.ibarrier()?.wait()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn keep(&self) -> Communicator {
        Communicator { is_kept: true, ..self.share() }
    }

    /// Returns an error if the communicator is freed or the rank is finalized.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        match self.shared.ended.load(Ordering::Relaxed) {
            0 => self.process().ready(),
            _ => self.after_end(),
        }
    }

    /// Whether [`ready`](Communicator::ready) has no error, and the communicator isn't freed.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed) == 0 && self.process().is_ready()
    }

    /// The outcome of [`ready`](Communicator::ready) once the communicator is freed or revoked.
    #[cold]
    #[inline(never)]
    fn after_end(&self) -> Result<()> {
        self.present()?;
        if self.has_been_revoked() {
            return Err(ErrorKind::Revoked.into());
        }
        Ok(())
    }

    /// Returns an error if the communicator is freed or the rank is finalized: for calls that a
    /// revoked communicator has.
    pub(crate) fn present(&self) -> Result<()> {
        match self.has_ended() && !self.is_kept {
            true => Err(FREED.into()),
            false => self.process().ready(),
        }
    }

    /// Whether the communicator is revoked, as far as this rank knows.
    pub(crate) fn has_been_revoked(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed) & IS_REVOKED != 0
    }

    /// Whether the communicator is freed.
    fn has_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed) & HAS_ENDED != 0
    }

    /// The rank of this process in the communicator.
    #[doc(alias = "MPI_Comm_rank")]
    pub fn rank(&self) -> i32 {
        self.shared.rank as i32
    }

    /// The number of ranks.
    #[doc(alias = "MPI_Comm_size")]
    pub fn size(&self) -> i32 {
        self.shared.group.size()
    }

    /// The processes of the communicator, in the order of their ranks (MPI-5.0 section 7.3.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let last = rank.world().group().incl(&[rank.world().size() - 1])?;
    /// assert_eq!(last.size(), 1);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Comm_group")]
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// Compares this communicator with another one of this process (MPI-5.0 section 7.4.1).
    ///
    /// Returns [`Comparison::Ident`] for the same communicator, [`Comparison::Congruent`] for equal
    /// groups, [`Comparison::Similar`] for the same processes in another order, and
    /// [`Comparison::Unequal`] otherwise.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert_eq!(rank.world().compare(rank.world()), longshore::Comparison::Ident);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Comm_compare")]
    pub fn compare(&self, other: &Communicator) -> Comparison {
        let same = Arc::ptr_eq(&self.shared.process, &other.shared.process);
        if same && self.shared.context == other.shared.context {
            return Comparison::Ident;
        }
        let groups = match (&self.shared.inter, &other.shared.inter) {
            (None, None) => self.group().compare(other.group()),
            (Some(_), Some(_)) => {
                let ours = self.group().compare(other.group());
                let theirs = self.peers().compare(other.peers());
                match (ours, theirs) {
                    (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
                    (Comparison::Ident, theirs) => theirs,
                    (ours, _) => ours,
                }
            }
            _ => Comparison::Unequal,
        };
        match groups {
            Comparison::Ident => Comparison::Congruent,
            other => other,
        }
    }

    /// The data representation of the process at a rank.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// assert_eq!(world.representation(world.rank())?, *rank.architecture());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK for a rank outside the communicator, or PROC_NULL.
    #[track_caller]
    #[doc(alias = "MPIX_Comm_representation")]
    pub fn representation(&self, rank: i32) -> Result<Architecture> {
        let found = || {
            let outside =
                || ErrorKind::Rank { rank, size: self.peers().size() as u32, null: false };
            let process = self.member(rank)?.ok_or_else(outside)?;
            Ok(self.process().engine().state().stream(process))
        };
        let caller = Location::caller();
        found().map_err(|error: Error| {
            self.raise(error.at(|| self.toward("representation", rank)), caller)
        })
    }

    pub(crate) fn packed(&self) -> &OnceLock<Option<Architecture>> {
        &self.shared.packed
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.shared.process
    }

    /// The number of the communicator's context, which its members use as its name.
    pub(crate) fn number(&self) -> u32 {
        self.shared.context.number()
    }

    /// The context id of one channel of this communicator.
    pub(crate) fn context(&self, channel: Channel) -> u32 {
        self.shared.context.of(channel)
    }

    /// The process at a rank of this communicator, of the remote group of an intercommunicator;
    /// `None` for PROC_NULL (rule 27).
    pub(crate) fn member(&self, rank: i32) -> Result<Option<u32>> {
        self.peers().member(rank)
    }

    /// Returns after all ranks have called it (MPI-5.0 section 6.3). Collective.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.world().barrier()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED if a rank died before it called `barrier`. COMM if the communicator is freed.
    #[track_caller]
    #[doc(alias = "MPI_Barrier")]
    pub fn barrier(&self) -> Result<()> {
        self.barrier_as(Activity::Barrier, Location::caller())
    }

    pub(crate) fn barrier_as(&self, activity: Activity, caller: Caller) -> Result<()> {
        self.meet_as(activity, caller).map_err(|error| self.raised(error, "barrier", caller))
    }

    /// The barrier of finalize, on MPI_COMM_WORLD. If the barrier can't succeed, since ranks have
    /// died in a job that survives that, or since the communicator is revoked, the survivors agree
    /// instead.
    pub(crate) fn meet_to_end(&self, caller: Caller) -> Result<()> {
        let mut met = self.meet_as(Activity::Finalize, caller);
        if self.has_failed() && (self.process().survives() || self.has_been_revoked()) {
            // A rank that has passed the barrier leaves, and the others don't wait for it.
            met = self.meet_survivors(caller);
        }
        met.map_err(|error| self.raised(error, "finalize", caller))
    }

    fn meet_as(&self, activity: Activity, caller: Caller) -> Result<()> {
        let process = self.process();
        let ends = activity == Activity::Finalize;
        let met = || {
            self.ready()?;
            process.during(activity, 0, At::of(caller), || {
                let found = match activity {
                    Activity::Finalize => self.announce_end(caller)?,
                    _ => self.announce(|| "barrier".to_owned(), caller).map(|()| None)?,
                };
                let at = self.begin(Call::new(if ends { "finalize" } else { "barrier" }));
                // A rank that leaves the barrier early can't affect the announcements of the
                // others.
                match self.is_inter() || self.has_ended() {
                    false => self.meet(self.meeting()?)?,
                    true => {
                        let all = self.participants(at);
                        finish(pin!(all.allgather(Bytes::default()))).map(drop)?;
                    }
                }
                if ends {
                    // Nothing later would find that the calls of the ranks differed.
                    process.engine().progress();
                    self.end_call(at, Ok(()))?;
                    let board = self.shared.board.get().and_then(Option::as_ref);
                    if let Some(other) = board.and_then(Board::last_surplus) {
                        return Err(self.mismatch(other));
                    }
                }
                found.map_or(Ok(()), Err)
            })
        };
        met()
    }

    /// The communicator's barrier. The first call is collective, since it makes the barrier.
    fn meeting(&self) -> Result<&Meeting> {
        match self.shared.meeting.get() {
            Some(meeting) => Ok(meeting),
            None => {
                let meeting = self.make_meeting()?;
                Ok(self.shared.meeting.get_or_init(|| meeting))
            }
        }
    }

    /// Returns after all ranks have entered this barrier.
    pub(crate) fn meet(&self, meeting: &Meeting) -> Result<()> {
        self.process().meet(meeting, self.group(), self.rank() as u32, None)
    }

    /// Returns after all ranks have entered this barrier of a window.
    #[inline]
    pub(crate) fn meet_at(&self, meeting: &Meeting, window: u32) -> Result<()> {
        self.process().meet(meeting, self.group(), self.rank() as u32, Some(window))
    }

    /// Passes an error of the call at a source line to the communicator's error handler.
    pub(crate) fn raise(&self, error: Error, caller: Caller) -> Error {
        self.card().raise(self.process(), error.seen_at(caller, String::new))
    }

    /// Adds the place to an error and passes it to the communicator's error handler.
    pub(crate) fn raised(&self, error: Error, call: &'static str, caller: Caller) -> Error {
        self.raise(error.at(|| self.place(call)), caller)
    }

    pub(crate) fn place(&self, call: &'static str) -> Place {
        Place { call, rank: self.process().me().rank, ..Place::default() }
    }

    /// The place of a failed call that addressed a rank.
    pub(crate) fn toward(&self, call: &'static str, target: i32) -> Place {
        let process = self.member(target).ok().flatten();
        Place { target: Some(target), process, ..self.place(call) }
    }
}

#[cfg(test)]
mod tests {
    use crate::rank::Rank;
    use crate::sim::{Options, run_shared};

    #[test]
    fn free_returns_the_memory_of_a_barrier_and_of_a_board() {
        let body = |rank: Rank| {
            let world = rank.world();
            let ranges = || {
                world.barrier().unwrap();
                let ranges = world.process().segment().ranges().len();
                world.barrier().unwrap();
                ranges
            };
            let make_and_free = || {
                let dup = world.dup().unwrap();
                dup.barrier().unwrap();
                dup.bcast(&mut [dup.rank()], 0).unwrap();
                dup.free().unwrap();
            };
            // The first messages between two ranks allocate memory that is never freed.
            make_and_free();
            let before = ranges();
            (0..3).for_each(|_| make_and_free());
            assert_eq!(ranges(), before);
            let kept = world.dup().unwrap();
            kept.barrier().unwrap();
            assert_eq!(ranges(), before + 1);
            kept.bcast(&mut [kept.rank()], 0).unwrap();
            assert_eq!(ranges(), before + 2);
            rank.finalize().unwrap();
        };
        run_shared(3, &Options::default(), body).unwrap();
    }

    #[test]
    fn no_two_ranks_give_one_number() {
        let body = |rank: Rank| {
            let world = rank.world();
            let process = world.process();
            let number = |_| [process.number_context().unwrap(), process.number_window().unwrap()];
            let mine: Vec<[u32; 2]> = (0..3).map(number).collect();
            let all = world.tell(&mine).unwrap().concat();
            for kind in 0..2 {
                let mut numbers: Vec<u32> = all.iter().map(|both| both[kind]).collect();
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), 9, "{all:?}");
            }
            world.dup().unwrap().free().unwrap();
            rank.finalize().unwrap();
        };
        run_shared(3, &Options::default(), body).unwrap();
    }
}
