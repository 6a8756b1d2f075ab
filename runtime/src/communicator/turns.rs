//! The turns of calls with requests on a board of their own.
//!
//! Several such calls of a communicator may be under way. All ranks start them in one order, and
//! each call uses the board only after the one before has ended at this rank: the ranks need
//! nothing of a later call to complete an earlier one. So a start never waits, and no slot is
//! overwritten that another rank may still read.
//!
//! Ranks start persistent calls in any order. So each of these calls has a board of its own, on
//! which its rounds take turns.
//!
//! The first call in turn makes the board, by messages. If the ranks can't have one, their calls go
//! by messages.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use super::Communicator;
use super::board::{self, Board, Form};
use super::calls::{Call, Ongoing};
use super::participants::Participants;
use crate::engine::Channel;
use crate::error::Result;
use crate::process::Process;

/// The calls that take turns, and their board.
#[derive(Default)]
pub(super) struct Turns {
    /// The board, if the ranks have one; made in the first turn.
    board: OnceLock<Option<Board>>,
    /// The turns of calls that haven't ended, in the order of their starts.
    open: Mutex<VecDeque<i32>>,
}

impl Turns {
    /// The board, once it is made.
    pub(super) fn board(&self) -> Option<&Board> {
        self.board.get()?.as_ref()
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<i32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the board, outside of any call. The last rank to do so frees its memory.
    pub(super) fn leave(&self, process: &Process) -> Result<()> {
        match self.board() {
            Some(board) if board.leave() => Ok(process.segment().free(board.place())?),
            _ => Ok(()),
        }
    }
}

/// The place of a persistent call among the calls with requests. Its rounds take turns.
pub(super) struct Reserved {
    process: Arc<Process>,
    /// The number of the call, whichever its round.
    pub number: i32,
    /// The number of rounds.
    rounds: AtomicU32,
    turns: Turns,
}

impl Reserved {
    pub(super) fn new(process: Arc<Process>, number: i32) -> Reserved {
        Reserved { process, number, rounds: AtomicU32::new(0), turns: Turns::default() }
    }

    /// Begins a round. Returns its number, which is its turn.
    pub(super) fn begin_round(&self) -> i32 {
        (self.rounds.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & (u32::MAX >> 1)) as i32
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // At the end of the job its memory goes with the segment.
        if !self.process.is_over() {
            let _ = self.turns.leave(&self.process);
        }
    }
}

/// The turn of a call that hasn't ended. It ends when dropped.
struct Turn {
    communicator: Communicator,
    number: i32,
}

impl Turn {
    fn has_come(&self) -> bool {
        self.communicator.turns().open().front() == Some(&self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.communicator.turns().open().retain(|open| *open != self.number);
    }
}

impl Communicator {
    /// Begins a collective call with a request. It is counted apart from those that wait: calls of
    /// one kind don't match those of the other (MPI-5.0 section 6.12).
    pub(super) fn begin_started(&self, call: Call) -> Ongoing {
        let (number, turn) = match &self.reserved {
            Some(reserved) => (reserved.number, reserved.begin_round()),
            None => {
                let number = self.next_started();
                (number, number)
            }
        };
        Ongoing { channel: Channel::Started, number, turn, call }
    }

    /// A reference to the communicator whose calls with requests all take one place in the order
    /// of such calls: the next one. So ranks may start them in any order, relative to other calls
    /// (MPI-5.0 section 6.13, persistent collective calls). Collective, as a call with a request.
    ///
    /// Each of these calls has to be complete before the next one is started, and all ranks make
    /// the same ones. The reference is [kept](Communicator::keep) when the communicator is freed.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::Op;
    ///
    /// let world = rank.world();
    /// let (sums, maxima) = (world.reserve(), world.reserve());
    /// for round in 0..2 {
    ///     // The ranks start the two calls in different orders.
    ///     let (first, second) = match world.rank() % 2 {
    ///         0 => ((&sums, Op::Sum), (&maxima, Op::Max)),
    ///         _ => ((&maxima, Op::Max), (&sums, Op::Sum)),
    ///     };
    ///     let start = |(of, op): (&longshore::Communicator, Op)| {
    ///         of.iallreduce(vec![world.rank() + round], vec![0], op)
    ///     };
    ///     let started = [start(first)?, start(second)?];
    ///     for collective in started {
    ///         collective.wait()?;
    ///     }
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Start")]
    #[doc(alias = "MPI_Bcast_init")]
    #[doc(alias = "MPI_Allreduce_init")]
    pub fn reserve(&self) -> Communicator {
        let number = self.next_started();
        let reserved = Reserved::new(self.shared.process.clone(), number);
        Communicator { reserved: Some(Arc::new(reserved)), ..self.keep() }
    }

    /// The turns of the calls with requests that are started by this reference.
    pub(super) fn turns(&self) -> &Turns {
        self.reserved.as_ref().map_or(&self.shared.turns, |reserved| &reserved.turns)
    }

    /// Another reference to the communicator, whose calls take the same place.
    pub(super) fn share_place(&self) -> Communicator {
        Communicator { reserved: self.reserved.clone(), ..self.share() }
    }

    /// The steps of a call with a request, in its turn if it uses a board.
    pub(super) fn in_turn<S>(
        &self,
        at: Ongoing,
        steps: S,
    ) -> impl Future<Output = Result<()>> + Send + use<S>
    where
        S: Future<Output = Result<()>> + Send,
    {
        let turn = self.takes_turns(at.call).then(|| {
            let turn = Turn { communicator: self.share_place(), number: at.turn };
            self.turns().open().push_back(at.turn);
            turn
        });
        async move {
            if let Some(turn) = &turn {
                let has_come = |_: &mut Context<'_>| match turn.has_come() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                };
                poll_fn(has_come).await;
                turn.communicator.make_board_of_turns(at).await?;
            }
            let outcome = steps.await;
            drop(turn);
            outcome
        }
    }

    /// Whether a call that starts now may use the board at once: all earlier ones have ended here.
    pub(super) fn is_first_in_turn(&self) -> bool {
        self.turns().board().is_some() && self.turns().open().is_empty()
    }

    /// Whether the ranks of a call with a request use a board. All of them decide alike.
    fn takes_turns(&self, call: Call) -> bool {
        let size = self.group().size() as u32;
        let may = !self.is_inter() && !call.is_of_neighbors() && board::has_board(size);
        may && self.group().is_on_one(self.process().hosts())
    }

    async fn make_board_of_turns(&self, at: Ongoing) -> Result<()> {
        let board = &self.turns().board;
        if board.get().is_some() {
            return Ok(());
        }
        let (group, rank) = (self.group(), self.rank() as u32);
        let size = group.size() as u32;
        let (channel, tag, form) = match &self.reserved {
            // A message of the call by which it isn't made comes later.
            Some(reserved) => (at.channel, reserved.number, Form::of_persistent(size)),
            None => (Channel::Board, 1, Form::STARTED),
        };
        let context = self.context(channel);
        let all = Participants::new(self.process(), group, rank, context, tag).returning();
        let made = self.make_board(all, form).await?;
        let _ = board.set(made);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shipable::Class;
    use shipable::reduce::Op;

    use super::*;
    use crate::job::Checking;
    use crate::rank::Rank;
    use crate::sim::{Options, run_shared};

    /// Options of ranks on one host, also where the tests of others run on several.
    fn on_one_host(ranks: usize) -> Options {
        Options { hosts: vec![0; ranks], ..Options::default() }
    }

    fn has_board(communicator: &Communicator) -> bool {
        communicator.turns().board().is_some()
    }

    #[test]
    fn calls_with_requests_of_one_host_use_a_board() {
        for size in [2, 3, 8] {
            let body = |rank: Rank| {
                let world = rank.world();
                let sum = world.iallreduce(vec![world.rank()], vec![0], Op::Sum).unwrap();
                assert_eq!(sum.wait().unwrap().1, [size * (size - 1) / 2]);
                assert!(has_board(world));
                // The rounds of a persistent call, of more than a board has slots.
                let reserved = world.reserve();
                for round in 0..40 {
                    let all = vec![-1; size as usize];
                    let all = reserved.iallgather(vec![world.rank() + round], all).unwrap();
                    assert!(all.wait().unwrap().1.into_iter().eq(round..round + size));
                }
                assert!(has_board(&reserved));
                rank.finalize().unwrap();
            };
            run_shared(size as u32, &on_one_host(size as usize), body).unwrap();
        }
    }

    #[test]
    fn starts_without_a_free_slot_return() {
        let body = |rank: Rank| {
            let world = rank.world();
            let (me, mut ready) = (world.rank(), [0]);
            if me == 1 {
                // The root has started all of its calls.
                world.recv(&mut ready, 0, 0).unwrap();
            }
            let start = |call| {
                let root = if call % 5 == 4 { 1 } else { 0 };
                let data = if me == root { vec![call; 100] } else { vec![-1; 100] };
                world.ibcast(data, root).unwrap()
            };
            let started: Vec<_> = (0..50).map(start).collect();
            if me == 0 {
                world.send(&[1], 1, 0).unwrap();
            }
            // The last call first.
            for (call, started) in (0..50).zip(started).rev() {
                assert_eq!(started.wait().unwrap(), [call; 100]);
            }
            assert!(has_board(world));
            rank.finalize().unwrap();
        };
        run_shared(2, &on_one_host(2), body).unwrap();
    }

    #[test]
    fn persistent_calls_have_boards_of_their_own() {
        let body = |rank: Rank| {
            let world = rank.world();
            let me = world.rank();
            let calls: Vec<_> = (0..6).map(|_| world.reserve()).collect();
            for round in 0..5 {
                // Each rank starts them in another order.
                let order = (0..6).map(|call| (call * [1, 5, 1][me as usize] + me) % 6);
                let start = |call: i32| {
                    let of = &calls[call as usize];
                    (call, of.iscan(vec![call + round], vec![0], Op::Sum).unwrap())
                };
                for (call, started) in order.map(start).collect::<Vec<_>>() {
                    assert_eq!(started.wait().unwrap().1, [(call + round) * (me + 1)]);
                }
            }
            assert!(calls.iter().all(has_board));
            rank.finalize().unwrap();
        };
        run_shared(3, &on_one_host(3), body).unwrap();
    }

    #[test]
    fn boards_of_dropped_persistent_calls_are_freed() {
        let body = |rank: Rank| {
            let world = rank.world();
            let make = || {
                let reserved = world.reserve();
                reserved.ibarrier().unwrap().wait().unwrap();
                assert!(has_board(&reserved));
                reserved
            };
            let ranges = || {
                world.barrier().unwrap();
                let ranges = world.process().segment().ranges().len();
                world.barrier().unwrap();
                ranges
            };
            // The first messages between two ranks allocate memory that is never freed.
            drop(make());
            let before = ranges();
            (0..3).for_each(|_| drop(make()));
            assert_eq!(ranges(), before);
            let kept = make();
            assert_eq!(ranges(), before + 1);
            drop(kept);
            rank.finalize().unwrap();
        };
        run_shared(2, &on_one_host(2), body).unwrap();
    }

    #[test]
    fn different_calls_on_a_board_are_refused() {
        let body = |rank: Rank| {
            let world = rank.world();
            let sum = world.iallreduce(vec![1], vec![0], Op::Sum).unwrap();
            sum.wait().unwrap();
            let error = match world.rank() {
                0 => world.iallreduce(vec![1], vec![0], Op::Max).unwrap().wait().unwrap_err(),
                _ => world.iallgather(vec![1], vec![0; 2]).unwrap().wait().unwrap_err(),
            };
            assert_eq!(error.class(), Class::RmaSync, "{error}");
            let text = error.to_string();
            assert!(text.contains("allreduce by MPI_MAX (call 2)"), "{text}");
            assert!(text.contains("allgather (call 2)"), "{text}");
        };
        // The checks would find it first.
        let options = Options { check: Checking::Off, ..on_one_host(2) };
        run_shared(2, &options, body).unwrap();
    }
}
