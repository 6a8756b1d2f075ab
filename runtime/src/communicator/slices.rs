//! Predefined reductions of long operands: each rank combines one slice of the elements.
//!
//! 1. In the messages of the call's algorithm the ranks announce their operands. So all of them
//!    learn that the operands match, or get the error of one of them.
//! 2. Each rank gets its slice of every other rank's operands, from memory to memory, and combines
//!    them in the order of ranks.
//! 3. The results stay where they are (reduce_scatter), or go to the root's room (reduce) or to
//!    those of all ranks (allreduce).
//!
//! So the ranks share the work. Operands that aren't one run of memory are packed before they are
//! announced, so that a rank without memory for that can still say so. Only operands that have the
//! same bytes at all ranks are announced. One rank combines all operands of an element, so all
//! ranks get the same bits.

use std::ops::Range;
use std::sync::Arc;

use shipable::reduce::Reduction;
use shipable::{View, ViewMut};

use super::Communicator;
use super::blocks::steps;
use super::calls::Ongoing;
use super::message::{Block, Long, Side, parted};
use super::participants::Sent;
use crate::bytes::Bytes;
use crate::engine::Landing;
use crate::error::{ErrorKind, Result};
use crate::origin::Elementwise;

/// The operands of a rank, which it has announced, and how they are combined.
pub(super) struct Announced {
    pub operands: Stream,
    pub reduction: Reduction,
    /// The signature of all operands.
    pub signature: u128,
    /// The slice of each rank: a range of the packed bytes, which are as many at all ranks.
    pub slices: Vec<Range<u64>>,
}

/// Slices of `length` bytes that end with whole elements, and are about equal.
pub(super) fn equal_slices(
    length: u64,
    element: u64,
    ranks: u64,
) -> impl Iterator<Item = Range<u64>> {
    let count = length / element;
    let (least, more) = (count / ranks, count % ranks);
    // The first ranks have one element more.
    let start = move |rank: u64| (rank * least + rank.min(more)) * element;
    (0..ranks).map(move |rank| start(rank)..start(rank + 1))
}

/// Elements as the bytes of their packed stream.
pub(super) enum Stream {
    /// They lie in memory as they travel.
    Run(Elementwise),
    Packed(Bytes),
}

impl Stream {
    /// A slice of the bytes.
    fn slice(&self, communicator: &Communicator, slice: &Range<u64>) -> Result<Long> {
        match self {
            Stream::Run(all) => communicator.long_run(all, slice),
            Stream::Packed(bytes) => communicator.long_bytes(bytes, slice),
        }
    }
}

/// Combines packed elements with as many others.
fn combine(reduction: &Reduction, from: &[u8], into: &mut Bytes) -> Result<()> {
    if from.len() != into.len() {
        return Err(ErrorKind::Collective.into());
    }
    let elements = into.len() as u64 / reduction.element().max(1);
    Ok(reduction.combine(View::new(from), &mut ViewMut::new(into), elements)?)
}

impl Communicator {
    /// Combines this rank's slice of all ranks' operands.
    pub(super) async fn combine_slice(&self, at: Ongoing, announced: &Announced) -> Result<Bytes> {
        let own = self.rank() as usize;
        let Announced { operands, reduction, slices, .. } = announced;
        let mut parts = self.parts_of_slice(at, announced).await?;
        parts[own] = Bytes::stale((slices[own].end - slices[own].start) as usize)?;
        operands.slice(self, &slices[own])?.read(&mut parts[own])?;
        let mut parts = parts.into_iter();
        let mut total = parts.next().unwrap_or_default();
        // MPI_MAX and MPI_MIN of zeros and NaN depend on which operand comes first.
        for mut part in parts {
            combine(reduction, &total, &mut part)?;
            total = part;
        }
        Ok(total)
    }

    /// Sends each rank its slice of this rank's operands. Returns the other ranks' parts of this
    /// rank's slice, by rank.
    async fn parts_of_slice(&self, at: Ongoing, announced: &Announced) -> Result<Vec<Bytes>> {
        let Announced { operands, slices, .. } = announced;
        let (size, own) = (slices.len(), self.rank() as usize);
        let process = |rank: usize| self.group().process(rank as u32);
        let participants = self.participants(at);
        let mut parts: Vec<Bytes> = slices.iter().map(|_| Bytes::default()).collect();
        for together in steps(own, size) {
            let slice = |&(to, _): &(usize, usize)| {
                Ok(operands.slice(self, &slices[to])?.sent_to(process(to)))
            };
            let sent = together.iter().map(slice).collect::<Result<Vec<_>>>()?;
            let landings = together.iter().map(|&(_, from)| (process(from), Landing::Bytes));
            let heard = participants.transfer(sent.into_iter(), landings).await?;
            together.iter().zip(heard).for_each(|(&(_, from), part)| parts[from] = part);
        }
        Ok(parts)
    }

    /// Sends this rank's slice of the result to the room of `root`, or to those of all ranks, and
    /// takes in the others.
    pub(super) async fn spread_slices(
        &self,
        at: Ongoing,
        mine: Bytes,
        announced: &Announced,
        (room, root): (Side<'_>, Option<u32>),
    ) -> Result<()> {
        let Announced { signature, slices, .. } = announced;
        let (size, own) = (slices.len(), self.rank() as usize);
        let process = |rank: usize| self.group().process(rank as u32);
        let gets = |rank: usize| root.is_none_or(|root| root as usize == rank);
        let mine = Arc::new(mine);
        let length = slices.last().map_or(0, |slice| slice.end);
        let checked = || -> Result<_> {
            let all = room.resolve(self)?;
            all.check_disjoint()?;
            self.check_match(&all, all.count, *signature, length)?;
            Ok(all)
        };
        let (room, refused) = gets(own).then(checked).map_or((None, None), parted);
        let run = room.as_ref().filter(|all| self.is_run(all));
        let participants = self.participants(at);
        let mut parts: Vec<Arc<Bytes>> = slices.iter().map(|_| Arc::default()).collect();
        for together in steps(own, size) {
            let (mut sent, mut landings) = (Vec::new(), Vec::new());
            for &(to, from) in &together {
                if gets(to) {
                    sent.push(Sent::of(process(to), mine.clone()));
                }
                if gets(own) {
                    let run = run.map(|all| self.long_run(all, &slices[from])).transpose()?;
                    let landing = match &run {
                        Some(run) => run.landing(),
                        None if room.is_some() => Landing::Bytes,
                        None => Landing::Nothing,
                    };
                    landings.push((process(from), landing));
                }
            }
            let heard = participants.transfer(sent.into_iter(), landings.into_iter()).await?;
            for (&(_, from), part) in together.iter().zip(heard) {
                parts[from] = Arc::new(part);
            }
        }
        refused.map_or(Ok(()), Err)?;
        let Some(room) = &room else { return Ok(()) };
        if run.is_some() {
            return self.long_run(room, &slices[own])?.write(&mine);
        }
        parts[own] = mine;
        let mut whole = Bytes::with_room(parts.iter().map(|part| part.len()).sum())?;
        parts.iter().try_for_each(|part| whole.extend(part))?;
        self.unpack_bare(Block::of(room), *signature, &whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_all_bytes_and_differ_by_one_element_at_most() {
        for (count, ranks) in [(0, 1), (0, 3), (1, 3), (7, 3), (9, 3), (1000, 7)] {
            for element in [1, 8, 12] {
                let slices = Vec::from_iter(equal_slices(count * element, element, ranks));
                assert_eq!(slices.len() as u64, ranks);
                let mut end = 0;
                for slice in &slices {
                    assert_eq!(slice.start, end);
                    end = slice.end;
                    let elements = (end - slice.start) / element;
                    assert!((count / ranks..=count.div_ceil(ranks)).contains(&elements));
                }
                assert_eq!(end, count * element);
            }
        }
    }
}
