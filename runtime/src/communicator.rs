//! The communicator of all ranks, and its collective calls.
//!
//! Left out: other communicators, collective calls but barrier and allgather (MPI-5.0 chapters 6 and 7).

use std::sync::Arc;

use shipable::Element;

use crate::barrier::Barrier;
use crate::engine::{Channel, Landing, Message, Pattern, Source};
use crate::error::{ErrorKind, Place, Result};
use crate::job::Activity;
use crate::process::Process;

/// The rank to which an operation does nothing (MPI-5.0 section 3.10).
pub const PROC_NULL: i32 = -1;

/// In a receive: from any rank.
pub const ANY_SOURCE: i32 = -2;

/// In a receive: with any tag.
pub const ANY_TAG: i32 = -1;

/// A group of ranks that talk to each other: all ranks of the job.
///
/// ```
/// let rank = longshore::init()?;
/// let world = rank.world();
/// let squares = world.allgather(&[world.rank() * world.rank()])?;
/// assert_eq!(squares.len(), world.size() as usize);
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Communicator {
    process: Arc<Process>,
    id: u32,
    barrier: Arc<Barrier>,
}

impl Communicator {
    pub(crate) fn world(process: Arc<Process>, barrier: Barrier) -> Communicator {
        Communicator { process, id: 0, barrier: Arc::new(barrier) }
    }

    /// This process's rank.
    pub fn rank(&self) -> i32 {
        self.process.me().rank as i32
    }

    /// How many ranks there are.
    pub fn size(&self) -> i32 {
        self.process.me().size as i32
    }

    /// Where its ranks meet.
    pub(crate) fn meeting(&self) -> &Arc<Barrier> {
        &self.barrier
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The context of a channel of this communicator.
    pub(crate) fn context(&self, channel: Channel) -> u32 {
        channel.context(self.id)
    }

    /// A rank of this communicator, or none for PROC_NULL (rule 27).
    pub(crate) fn member(&self, rank: i32) -> Result<Option<u32>> {
        member(rank, self.process.me().size)
    }

    /// Returns once all ranks have called it (MPI-5.0 section 6.3).
    ///
    /// # Errors
    /// A rank that died before it came here: PROC_ABORTED.
    pub fn barrier(&self) -> Result<()> {
        self.process.ready()?;
        self.barrier_as(Activity::Barrier)
    }

    pub(crate) fn barrier_as(&self, activity: Activity) -> Result<()> {
        let met = self.process.during(activity, 0, || self.process.meet(&self.barrier));
        met.map_err(|error| error.at(|| self.place("barrier")))
    }

    /// Everyone's elements, by rank (MPI-5.0 section 6.7). All give equally many.
    ///
    /// # Errors
    /// As [`barrier`](Communicator::barrier); a rank that gives more or fewer: TRUNCATE or TYPE.
    pub fn allgather<T: Element>(&self, mine: &[T]) -> Result<Vec<T>> {
        self.process.ready()?;
        self.process.during(Activity::Allgather, 0, || self.gather(mine))
    }

    fn gather<T: Element>(&self, mine: &[T]) -> Result<Vec<T>> {
        let Ok(size) = usize::try_from(self.size()) else { return Ok(Vec::new()) };
        let mut all = mine.repeat(size);
        // In step k everyone sends to the rank k after it: no rank is flooded.
        for step in 0..size as i32 {
            let to = (self.rank() + step) % self.size();
            let from = (self.rank() + self.size() - step) % self.size();
            let block = from as usize * mine.len();
            let part = &mut all[block..block + mine.len()];
            let status = self.exchange(mine, to, part, from, Channel::Internal)?;
            if status.count != mine.len() as i64 {
                let what = format!("it gave {} elements of {} due", status.count, mine.len());
                return Err(ErrorKind::Protocol { peer: from as u32, what }.into());
            }
        }
        Ok(all)
    }

    /// Everyone's bytes, by rank: each as many as it likes.
    pub(crate) fn allgather_bytes(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let ranks = 0..self.process.me().size;
        let context = self.context(Channel::Internal);
        let mine: Arc<[u8]> = mine.into();
        let message = || Message {
            context,
            tag: BYTES,
            length: mine.len() as u64,
            signature: 0,
            source: Source::Bytes(mine.clone()),
        };
        let mut engine = self.process.engine();
        let receives: Vec<_> = (ranks.clone())
            .map(|from| Pattern { context, source: Some(from), tag: Some(BYTES) })
            .map(|pattern| engine.state().start_receive(pattern, Landing::Bytes))
            .collect();
        let sends = ranks.map(|to| engine.state().start_send(to, message())).collect();
        drop(engine);
        let gather = |sends: Result<Vec<Option<u64>>>| {
            for number in sends?.into_iter().flatten() {
                self.process.wait_with_all(|state| state.take_sent(number))?;
            }
            let take =
                |&number: &u64| self.process.wait_with_all(|state| state.take_received(number));
            receives.iter().map(|number| take(number).map(|delivery| delivery.bytes)).collect()
        };
        let gathered: Result<_> = gather(sends);
        if gathered.is_err() {
            let mut engine = self.process.engine();
            receives.iter().for_each(|&number| engine.state().abandon(number));
        }
        gathered
    }

    pub(crate) fn place(&self, call: &'static str) -> Place {
        Place { call, rank: self.process.me().rank, ..Place::default() }
    }
}

/// The tag of messages of bytes for this crate's own use; elements go with 0.
const BYTES: i32 = 1;

/// A rank of a communicator of `size`, or none for PROC_NULL (rule 27).
#[inline]
pub(crate) fn member(rank: i32, size: u32) -> Result<Option<u32>> {
    match u32::try_from(rank) {
        Ok(rank) if rank < size => Ok(Some(rank)),
        _ if rank == PROC_NULL => Ok(None),
        _ => Err(ErrorKind::Rank { rank, size }.into()),
    }
}
