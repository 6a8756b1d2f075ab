//! Predefined reductions of long operands: each rank combines one slice of the elements.
//!
//! 1. In the messages of the call's algorithm the ranks announce their operands. So all of them
//!    learn that the operands match, or get the error of one of them.
//! 2. Each rank gets its slice of every other rank's operands, from memory to memory, and combines
//!    them in the order of ranks.
//! 3. The results stay where they are (reduce_scatter), or go to the rooms of all ranks
//!    (allreduce).
//!
//! So the ranks share the work, and no operands are packed. Only ranks among which nothing is
//! converted announce operands. One rank combines all operands of an element, so all ranks get the
//! same bits.

use std::ops::Range;
use std::sync::Arc;

use shipable::reduce::Reduction;
use shipable::{View, ViewMut};

use super::Communicator;
use super::blocks::steps;
use super::calls::Ongoing;
use super::message::{Block, Side};
use super::participants::Sent;
use crate::bytes::Bytes;
use crate::engine::Landing;
use crate::error::{ErrorKind, Result};
use crate::origin::Elementwise;

/// The operands of a rank, which it has announced, and how they are combined.
pub(super) struct Announced {
    pub operands: Elementwise,
    pub reduction: Reduction,
    /// The bytes of the packed operands. They are the same at all ranks.
    pub length: u64,
}

impl Announced {
    /// Slices of about equal length, one for each rank: ranges of the packed bytes.
    pub(super) fn equal_slices(&self, ranks: u64) -> Vec<Range<u64>> {
        equal_slices(self.length, self.reduction.element().max(1), ranks)
    }
}

/// Slices of `length` bytes that end with whole elements.
fn equal_slices(length: u64, element: u64, ranks: u64) -> Vec<Range<u64>> {
    let count = length / element;
    let (least, more) = (count / ranks, count % ranks);
    // The first ranks have one element more.
    let start = |rank: u64| (rank * least + rank.min(more)) * element;
    (0..ranks).map(|rank| start(rank)..start(rank + 1)).collect()
}

/// Elements as the bytes of their packed stream.
enum Stream<'a> {
    /// They lie in memory as they travel.
    Run(&'a Communicator, &'a Elementwise),
    Packed(Bytes),
}

impl Stream<'_> {
    /// A slice as the data of a message.
    fn sent(&self, to: u32, slice: &Range<u64>) -> Result<Sent> {
        match self {
            Stream::Run(communicator, all) => Ok(communicator.long_run(all, slice)?.sent_to(to)),
            Stream::Packed(bytes) => {
                Ok(Sent::of(to, Arc::new(Bytes::copy_of(part(bytes, slice))?)))
            }
        }
    }

    /// Combines a slice with as many packed elements of another rank.
    fn combine_into(
        &self,
        slice: &Range<u64>,
        reduction: &Reduction,
        packed: &mut Bytes,
    ) -> Result<()> {
        if packed.len() as u64 != slice.end - slice.start {
            return Err(ErrorKind::Collective.into());
        }
        match self {
            Stream::Run(communicator, all) => {
                let run = communicator.long_run(all, slice)?;
                run.combine_into(reduction, packed).then_some(()).ok_or(ErrorKind::Collective)?;
            }
            Stream::Packed(bytes) => combine(reduction, part(bytes, slice), packed)?,
        }
        Ok(())
    }

    /// A copy of a slice.
    fn copy(&self, slice: &Range<u64>) -> Result<Bytes> {
        match self {
            Stream::Run(communicator, all) => {
                let mut bytes = Bytes::stale((slice.end - slice.start) as usize)?;
                communicator.long_run(all, slice)?.read(&mut bytes)?;
                Ok(bytes)
            }
            Stream::Packed(bytes) => Bytes::copy_of(part(bytes, slice)),
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

/// A range of a packed stream, which is in memory.
fn part<'a>(bytes: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
}

impl Communicator {
    /// Combines this rank's slice of all ranks' operands. The outer error is one of the exchange,
    /// the inner one is this rank's.
    pub(super) async fn combine_slice(
        &self,
        at: Ongoing,
        announced: &Announced,
        slices: &[Range<u64>],
    ) -> Result<Result<Bytes>> {
        let own = self.rank() as usize;
        let Announced { operands, reduction, .. } = announced;
        let stream = match self.is_run(operands) {
            true => Stream::Run(self, operands),
            false => Stream::Packed(self.pack_bare(Block::of(operands))?),
        };
        let mut parts = self.parts_of_slice(at, &stream, slices).await?;
        let mut total = || {
            if parts.len() == 1 {
                return stream.copy(&slices[own]);
            }
            // Predefined operations commute: the lower ranks' total may come second. So this rank's
            // operands, which must stay, are never overwritten.
            let first = usize::from(own == 0);
            let mut total = std::mem::take(&mut parts[first]);
            for rank in (0..parts.len()).filter(|rank| *rank != first) {
                match rank == own {
                    true => stream.combine_into(&slices[own], reduction, &mut total)?,
                    false => combine(reduction, &parts[rank], &mut total)?,
                }
            }
            Ok(total)
        };
        Ok(total())
    }

    /// Sends each rank its slice of this rank's operands. Returns the other ranks' parts of this
    /// rank's slice, by rank.
    async fn parts_of_slice(
        &self,
        at: Ongoing,
        operands: &Stream<'_>,
        slices: &[Range<u64>],
    ) -> Result<Vec<Bytes>> {
        let (size, own) = (slices.len(), self.rank() as usize);
        let process = |rank: usize| self.group().process(rank as u32);
        let participants = self.participants(at);
        let mut parts: Vec<Bytes> = slices.iter().map(|_| Bytes::default()).collect();
        for together in steps(own, size) {
            let sent = together.iter().map(|&(to, _)| operands.sent(process(to), &slices[to]));
            let sent = sent.collect::<Result<Vec<_>>>()?;
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
        result: Result<Bytes>,
        announced: &Announced,
        slices: &[Range<u64>],
        (room, root): (Side<'_>, Option<u32>),
    ) -> Result<()> {
        let (size, own) = (slices.len(), self.rank() as usize);
        let process = |rank: usize| self.group().process(rank as u32);
        let gets = |rank: usize| root.is_none_or(|root| root as usize == rank);
        // The other ranks wait for the slice. After an error they get none: an error there, too.
        let (mine, failed) = match result {
            Ok(mine) => (mine, None),
            Err(error) => (Bytes::default(), Some(error)),
        };
        let mine = Arc::new(mine);
        let checked = || {
            let all = room.resolve(self)?;
            all.check_disjoint()?;
            let Announced { operands, length, .. } = announced;
            let signature = operands.signature(operands.count)?;
            self.check_match(&all, all.count, signature, *length)?;
            Ok(all)
        };
        let (room, refused) = match gets(own).then(checked).transpose() {
            Ok(room) => (room, None),
            Err(error) => (None, Some(error)),
        };
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
                    landings.push((process(from), run.map_or(Landing::Bytes, |run| run.landing())));
                }
            }
            let heard = participants.transfer(sent.into_iter(), landings.into_iter()).await?;
            for (&(_, from), part) in together.iter().zip(heard) {
                parts[from] = Arc::new(part);
            }
        }
        failed.or(refused).map_or(Ok(()), Err)?;
        let Some(room) = &room else { return Ok(()) };
        if run.is_some() {
            return self.long_run(room, &slices[own])?.write(&mine);
        }
        parts[own] = mine;
        let mut whole = Bytes::with_room(parts.iter().map(|part| part.len()).sum())?;
        parts.iter().try_for_each(|part| whole.extend(part))?;
        let operands = &announced.operands;
        self.unpack_bare(Block::of(room), operands.signature(operands.count)?, &whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_all_bytes_and_differ_by_one_element_at_most() {
        for (count, ranks) in [(0, 1), (0, 3), (1, 3), (7, 3), (9, 3), (1000, 7)] {
            for element in [1, 8, 12] {
                let slices = equal_slices(count * element, element, ranks);
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
