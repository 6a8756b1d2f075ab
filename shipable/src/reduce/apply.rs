//! Reductions of typed memory. Contiguous elements are combined in place, others in packed pieces.

use std::ops::Range;

use super::{Method, Reduction};
use crate::error::{Error, Result};
use crate::memory::{View, ViewMut};
use crate::program::Program;

/// The bytes of packed elements that are combined at a time: well within a first-level cache, and
/// cheap to clear.
pub(super) const PIECE: usize = 4096;

/// The typed memory that a reduction reads or changes.
#[derive(Debug)]
pub struct Sides<'a> {
    /// The layout of an element, lowered for a stream of the memory's own representation.
    pub program: &'a Program,
    /// The number of elements.
    pub count: u64,
    /// The memory of the elements.
    pub memory: ViewMut<'a>,
}

impl Reduction {
    /// Combines `bytes` of packed operands with the items of `target`, and packs the previous
    /// values of the items into `fetched`.
    ///
    /// The operands start at displacement 0 of `operands`, and the items at `position` of the
    /// target's packed stream. All are in the memory's representation.
    ///
    /// # Errors
    ///
    /// - [`Error::Position`] if the range exceeds the target's stream, or starts or ends within an
    ///   element.
    /// - [`Error::OutOfBounds`] if elements don't lie in their memory.
    pub fn apply(
        &self,
        target: &mut Sides<'_>,
        position: u64,
        operands: View<'_>,
        bytes: u64,
        mut fetched: Option<&mut [u8]>,
    ) -> Result<()> {
        self.check(target, position..position.saturating_add(bytes))?;
        let Sides { program, count, memory } = target;
        if let Some(start) = program.contiguous(*count) {
            let reach = program.range(*count)?;
            memory.covers(reach.start, reach.end)?;
            let at = start + position as i64;
            if let Some(fetched) = fetched {
                memory.read(at, fetched)?;
            }
            return self.combine_at(operands, memory, at, bytes);
        }
        let mut current = [0; PIECE];
        let piece = PIECE as u64 / self.element() * self.element();
        let mut done = 0;
        while done < bytes {
            let length = piece.min(bytes - done);
            let current = &mut current[..length as usize];
            program.pack(*count, memory.as_view(), position + done, current)?;
            if let Some(fetched) = fetched.as_deref_mut() {
                fetched[done as usize..(done + length) as usize].copy_from_slice(current);
            }
            if !matches!(self.method, Method::Keep) {
                let shifted = operands.shifted(done as i64).ok_or(OVERFLOW)?;
                self.combine_at(shifted, &mut ViewMut::new(current), 0, length)?;
                let mut partial = crate::Partial::default();
                program.unpack(
                    *count,
                    memory.reborrow(),
                    position + done,
                    current,
                    &mut partial,
                )?;
            }
            done += length;
        }
        Ok(())
    }

    /// Combines typed memory with typed memory of the same representation: the bytes `range` of
    /// both packed streams. Unpacks the previous values into `result`, which is typed memory too.
    ///
    /// Contiguous operands are read in place, without a buffer.
    ///
    /// # Errors
    ///
    /// Those of [`apply`](Reduction::apply).
    pub fn apply_typed(
        &self,
        operands: (&Program, u64, View<'_>),
        target: &mut Sides<'_>,
        mut result: Option<&mut Sides<'_>>,
        range: Range<u64>,
    ) -> Result<()> {
        let (program, count, memory) = operands;
        let length = range.end.saturating_sub(range.start);
        let direct = match program.contiguous(count) {
            // NO_OP reads no operand.
            _ if matches!(self.method, Method::Keep) => Some(View::new(&[])),
            Some(start) => {
                let reach = program.range(count)?;
                memory.covers(reach.start, reach.end)?;
                Some(memory.shifted(start + range.start as i64).ok_or(OVERFLOW)?)
            }
            None => None,
        };
        if let (Some(operands), None) = (direct, &result) {
            return self.apply(target, range.start, operands, length, None);
        }
        let (mut packed, mut old) = ([0; PIECE], [0; PIECE]);
        let piece = PIECE as u64 / self.element() * self.element();
        let mut done = 0;
        while done < length {
            let (part, at) = (piece.min(length - done), range.start + done);
            let old = &mut old[..part as usize];
            let fetched = result.is_some().then_some(&mut *old);
            match direct {
                Some(operands) => {
                    let operands = operands.shifted(done as i64).ok_or(OVERFLOW)?;
                    self.apply(target, at, operands, part, fetched)?;
                }
                None => {
                    let packed = &mut packed[..part as usize];
                    program.pack(count, memory, at, packed)?;
                    self.apply(target, at, View::new(packed), part, fetched)?;
                }
            }
            if let Some(result) = &mut result {
                let mut partial = crate::Partial::default();
                let room = result.memory.reborrow();
                result.program.unpack(result.count, room, at, old, &mut partial)?;
            }
            done += part;
        }
        Ok(())
    }

    fn check(&self, target: &Sides<'_>, range: Range<u64>) -> Result<()> {
        let length = target.program.stream_length(target.count)?;
        let within = |at: u64| at % self.element() != 0;
        let amid = [range.start, range.end].into_iter().find(|&at| within(at));
        let (position, problem) = match amid {
            _ if range.end > length => (range.end, format!("the packed stream has {length} bytes")),
            Some(at) => (at, format!("it lies within an element of {} bytes", self.element)),
            None => return Ok(()),
        };
        Err(Error::Position { position, problem })
    }
}

const OVERFLOW: Error = Error::Overflow { what: "a displacement" };
