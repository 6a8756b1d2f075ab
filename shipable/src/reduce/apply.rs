//! Reductions of typed memory: strided by programs, in place where elements lie one after the other.

use std::ops::Range;

use super::{Body, Reduction};
use crate::error::{Error, Result};
use crate::memory::{View, ViewMut};
use crate::program::Program;

/// Bytes of packed elements that are worked on at a time: well within a first-level cache, and cleared at little cost.
pub(super) const PIECE: usize = 4096;

/// Typed memory that a reduction changes.
#[derive(Debug)]
pub struct Sides<'a> {
    /// The layout of an element, for a stream of the memory's own representation.
    pub program: &'a Program,
    /// How many.
    pub count: u64,
    /// Where they lie.
    pub memory: ViewMut<'a>,
}

impl Reduction {
    /// Combines `bytes` of packed operands, from displacement 0 of `operands` on, with the items from `position` of the
    /// packed stream of `target` on, all in the memory's representation; what was there before goes to `fetched`, packed.
    ///
    /// # Errors
    /// [`Error::Position`] past the end of the target's stream, or within an element; [`Error::OutOfBounds`] where
    /// elements don't lie in their memory.
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
        let mut there = [0; PIECE];
        let piece = PIECE as u64 / self.element() * self.element();
        let mut done = 0;
        while done < bytes {
            let length = piece.min(bytes - done);
            let there = &mut there[..length as usize];
            program.pack(*count, memory.as_view(), position + done, there)?;
            if let Some(fetched) = fetched.as_deref_mut() {
                fetched[done as usize..(done + length) as usize].copy_from_slice(there);
            }
            if !matches!(self.body, Body::Keep) {
                let shifted = operands.shifted(done as i64).ok_or(OVERFLOW)?;
                self.combine_at(shifted, &mut ViewMut::new(there), 0, length)?;
                let mut partial = crate::Partial::default();
                program.unpack(*count, memory.reborrow(), position + done, there, &mut partial)?;
            }
            done += length;
        }
        Ok(())
    }

    /// Combines typed memory with typed memory of the same representation, without a buffer between where elements lie one
    /// after the other: the bytes `range` of their packed streams. What was there before goes to `result`, typed memory
    /// as well.
    ///
    /// # Errors
    /// As [`apply`](Reduction::apply).
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
            // Without an operand there is nothing to read.
            _ if matches!(self.body, Body::Keep) => Some(View::new(&[])),
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
