//! Long blocks of collective calls, which the ranks of a board read from each other's memory.
//!
//! Each rank posts the place of its block. The others let the system copy it from there to where
//! the program wants it, and then settle the exchange. A rank leaves its block as it is until the
//! ranks that need it have settled. If one of them can't read it, the block goes by message.
//!
//! In a reduction each rank combines one slice of the elements, piece by piece, in the order of
//! ranks. Then it posts the place of its result, for the ranks that need it. Of two ranks, each one
//! that needs the result combines all elements. Like ranks get the same bits from the same
//! operands.

use std::ops::Range;
use std::pin::pin;

use longshore_transport::Offer;
use shipable::reduce::Reduction;

use super::Communicator;
use super::board::Board;
use super::calls::Ongoing;
use super::participants::finish;
use super::posts::{Posts, made};
use super::shapes::Shape;
use super::slices::equal_slices;
use crate::bytes::Bytes;
use crate::engine::Channel;
use crate::error::{ErrorKind, Result};
use crate::job::Routes;
use crate::memory::Span;

/// Bytes of operands that a rank copies from all others at a time: as many as stay in its
/// second-level cache (docs/tuning.md, "Long blocks of collective calls").
const PIECES: u64 = 256 << 10;

/// How a rank's block goes to others by the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Its bytes are posted.
    Posted,
    /// Its place is posted.
    Offered,
}

/// The operands of a reduction of which each rank combines a slice.
pub(super) struct Operands<'a> {
    pub reduction: &'a Reduction,
    /// The shape of all operands, as the general steps announce it.
    pub shape: Shape,
    /// This rank's operands.
    pub mine: Span,
}

/// Where a reduction leaves its result.
pub(super) struct Target {
    /// This rank's room; `None` if it needs no result.
    pub room: Option<Span>,
    /// Whether the operands are in the room.
    pub in_place: bool,
    /// The rank that needs the results; `None` for all ranks.
    pub root: Option<u32>,
}

impl Communicator {
    /// How blocks of a shape go by the board; `None` if they go by the general steps.
    pub(super) fn mode(&self, board: &Board, at: Ongoing, shape: &Shape) -> Option<Mode> {
        match shape.bytes <= board.longest_posted(at.call) {
            true => Some(Mode::Posted),
            false if at.channel == Channel::Started => None,
            false => (!at.call.is_prefix() && self.may_offer()).then_some(Mode::Offered),
        }
    }

    /// Whether the system lets this rank read the memory of all others, as far as it knows.
    fn may_offer(&self) -> bool {
        let (process, own) = (self.process(), self.process().me().rank);
        let memory = process.peer_memory();
        let may_read = |&peer: &u32| peer == own || memory.may_read(peer);
        process.routes() == Routes::Best && self.group().processes().iter().all(may_read)
    }

    /// Sends their blocks to the ranks of these bits, which couldn't read them.
    pub(super) fn send_refused(
        &self,
        at: Ongoing,
        bits: u32,
        block: impl Fn(u32) -> Option<Span>,
    ) -> Result<()> {
        if bits == 0 {
            return Ok(());
        }
        let long = |rank| {
            let block = block(rank).ok_or_else(|| ErrorKind::Collective)?;
            Ok((rank, self.long_of_bytes(block, block.len())?))
        };
        let ranks = (0..u32::BITS).filter(|rank| bits >> rank & 1 == 1);
        let long = ranks.map(long).collect::<Result<Vec<_>>>()?;
        let sent = long.iter().map(|(rank, long)| long.sent_to(self.group().process(*rank)));
        finish(pin!(self.participants(at).transfer(sent, None.into_iter()))).map(drop)
    }

    /// A reduction to a root, or to all ranks, of long operands.
    ///
    /// Of two ranks each combines all that it needs. Slices would take as many copies, and one
    /// exchange more.
    pub(super) fn reduce_offered(
        &self,
        board: &Board,
        at: Ongoing,
        operands: &Operands<'_>,
        target: &Target,
    ) -> Option<Result<()>> {
        match board.size() {
            2 => self.reduce_alone(board, at, operands, (&(0..operands.shape.bytes), target)),
            _ => self.reduce_slices_offered(board, at, operands, target),
        }
    }

    /// A reduction of which each rank combines a slice of the elements.
    fn reduce_slices_offered(
        &self,
        board: &Board,
        at: Ongoing,
        operands: &Operands<'_>,
        target: &Target,
    ) -> Option<Result<()>> {
        let Operands { reduction, shape, mine } = operands;
        let (own, size) = (self.rank() as usize, self.group().size() as u64);
        let slice = |rank| {
            let mut slices = equal_slices(shape.bytes, reduction.element().max(1), size);
            slices.nth(rank as usize).unwrap_or(0..0)
        };
        let ours = slice(own as u32);
        let part = |of: Span, slice: &Range<u64>| of.part(slice.start, slice.end - slice.start);
        // The general steps may still need operands that are in place.
        let room = target.room.filter(|_| !target.in_place);
        let mut kept = Bytes::default();
        if room.is_none() {
            kept = Bytes::stale((ours.end - ours.start) as usize).ok()?;
        }
        Span::with_bytes(&mut kept, |kept| {
            let result = room.map_or(Some(kept), |room| part(room, &ours))?;
            let mut is_combined = false;
            let combined = self.exchanged(board, at, |posts| {
                posts.offer_all(shape, *mine)?;
                let Some(places) = posts.places(shape)? else { return Ok(false) };
                is_combined = combine(posts, &places, operands, &ours, result);
                // All of them wait for the strings of all.
                posts.have_met();
                Ok(true)
            })?;
            let posts = combined.and_then(|()| {
                let posts = Posts::begin(self, board, at);
                posts.inspect_err(|_| self.process().take_offers_back())
            });
            let posts = match posts {
                Ok(posts) => posts?,
                Err(error) => return Some(Err(error)),
            };
            let spread = || {
                posts.offer_result(shape, is_combined.then_some(result))?;
                let Some(places) = posts.places(shape)? else { return Ok(false) };
                if let Some(room) = target.room {
                    let take = |rank| {
                        let room = part(room, &slice(rank));
                        room.is_some_and(|room| posts.pull(rank, &places[rank as usize], 0, room))
                    };
                    if !posts.others().all(take) {
                        posts.refuse();
                        return if target.in_place { Err(overwritten()) } else { Ok(false) };
                    }
                    if target.in_place {
                        part(room, &ours).map(|room| room.copy_run(0, result, 0, room.len()));
                    }
                }
                match target.root {
                    None => posts.settle_all(),
                    Some(root) if root as usize == own => {
                        posts.settle();
                        Ok(true)
                    }
                    Some(root) => Ok(posts.await_settled(root..root + 1)? == 0),
                }
            };
            let outcome = spread();
            if outcome.is_ok() {
                posts.keep_offer();
            }
            made(outcome)
        })
    }

    /// A reduction of long operands of which each rank that has a room combines `slice` by itself,
    /// into all of the room.
    pub(super) fn reduce_alone(
        &self,
        board: &Board,
        at: Ongoing,
        operands: &Operands<'_>,
        (slice, target): (&Range<u64>, &Target),
    ) -> Option<Result<()>> {
        let mut kept = Bytes::default();
        if target.in_place {
            // The operands must stay until no rank needs them, nor the general steps.
            kept = Bytes::stale((slice.end - slice.start) as usize).ok()?;
        }
        Span::with_bytes(&mut kept, |kept| {
            self.exchanged(board, at, |posts| {
                posts.offer_all(&operands.shape, operands.mine)?;
                let Some(room) = target.room else {
                    let root = target.root.unwrap_or_default();
                    return Ok(posts.await_settled(root..root + 1)? == 0);
                };
                let result = if target.in_place { kept } else { room };
                let Some(places) = posts.places(&operands.shape)? else { return Ok(false) };
                if !combine(posts, &places, operands, slice, result) {
                    return Ok(false);
                }
                if target.root.is_some() {
                    posts.settle();
                } else if !posts.settle_all()? {
                    return Ok(false);
                }
                Ok(!target.in_place || room.copy_run(0, result, 0, result.len()))
            })
        })
    }
}

/// The error of a rank that couldn't read the results after it had overwritten its operands.
fn overwritten() -> crate::error::Error {
    ErrorKind::Collective.into()
}

/// Combines a slice of the operands of all ranks, in the order of ranks, to `result`. Returns false
/// if the system doesn't copy some of them, or there is no memory for them.
fn combine(
    posts: &Posts<'_>,
    places: &[Offer],
    Operands { reduction, mine, .. }: &Operands<'_>,
    slice: &Range<u64>,
    result: Span,
) -> bool {
    let (own, last) = (posts.rank(), places.len() as u32 - 1);
    let element = reduction.element().max(1);
    let most = PIECES / u64::from(last);
    let piece = (most - most % element).max(element).min(slice.end - slice.start);
    let Ok(mut room) = Bytes::stale((piece * u64::from(last)) as usize) else { return false };
    // An operation leaves its result where its second operand is. So each rank's operands are
    // copied to memory of this call, and the last one's to the result's.
    let combined = |room: Span, start: u64| {
        let bytes = piece.min(slice.end - start);
        let copy = |rank: u32| match rank == last {
            true => result.part(start - slice.start, bytes),
            false => room.part(piece * u64::from(rank), bytes),
        };
        let pull = |rank| Some(posts.pull(rank, &places[rank as usize], start, copy(rank)?));
        if !posts.others().all(|rank| pull(rank) == Some(true)) {
            return None;
        }
        let mine = mine.part(start, bytes)?;
        let mut low = if own == 0 { mine } else { copy(0)? };
        for rank in 1..=last {
            let high = copy(rank)?;
            let is_there = rank != own || high.copy_run(0, mine, 0, bytes);
            if !is_there || !high.combine_run(reduction, 0, low, bytes) {
                return None;
            }
            low = high;
        }
        Some(())
    };
    Span::with_bytes(&mut room, |room| {
        let mut starts = slice.clone().step_by(piece.max(1) as usize);
        starts.all(|start| combined(room, start).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::Call;
    use crate::job::Checking;
    use crate::rank::Rank;
    use crate::sim::{Options, run_shared};

    const CALLS: [&str; 5] = ["bcast", "gather", "alltoall", "allreduce", "scan"];

    /// How blocks of so many bytes go in each of the calls by a board, and whether the system
    /// copies the memory of all ranks, which an emulator may not let it. `None` without a board, as
    /// ranks of several hosts are.
    fn modes(routes: Routes, bytes: u64) -> Option<([Option<Mode>; 5], bool)> {
        // Under an adversary and checks all data go by message.
        let check = Checking::Off;
        let options = Options { routes, adversary: None, check, ..Options::default() };
        let body = |rank: Rank| {
            let world = rank.world();
            let found = world.board().unwrap().map(|board| {
                let call = |name| Ongoing { call: Call::new(name), ..world.current_call() };
                let modes = CALLS.map(|name| world.mode(board, call(name), &Shape::new(1, bytes)));
                (modes, (0..2).all(|peer| world.process().peer_memory().may_read(peer)))
            });
            rank.finalize().unwrap();
            found
        };
        run_shared(2, &options, body).unwrap().remove(0)
    }

    #[test]
    fn long_blocks_are_offered_where_the_system_copies_them() {
        let (posted, offered) = (Some(Mode::Posted), Some(Mode::Offered));
        if let Some((short, _)) = modes(Routes::Best, 4096) {
            assert_eq!(short, [posted; 5]);
        }
        if let Some((long, true)) = modes(Routes::Best, 1 << 20) {
            assert_eq!(long, [offered, offered, offered, offered, None]);
        }
        if let Some((long, _)) = modes(Routes::Message, 1 << 20) {
            assert_eq!(long, [None; 5]);
        }
    }
}
