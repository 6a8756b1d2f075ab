//! Accumulates at their target: operands are taken in frame by frame, each under the window's accumulate lock.

use std::sync::Arc;

use shipable::Program;
use shipable::reduce::{Carry, Op, Stage, Swap};

use super::State;
use super::exposure::{Exposure, Keep};
use super::forms::{Fold, Received};
use super::incoming::{Admitted, reply_to};
use super::outbox::{Few, Outgoing, Source};
use crate::error::{Error, ErrorKind, Result, conversion, excerpt};
use crate::memory::{Span, Typed};
use crate::wire::{Header, Kind};

/// An accumulate under way.
pub(super) struct Folding {
    fold: Arc<Fold>,
    program: Arc<Program>,
    count: u64,
    span: Span,
    carry: Carry,
    /// What was there, in this rank's representation, for an operation that fetches.
    fetched: Option<Vec<u8>>,
    exposure: Arc<Exposure>,
    _keep: Keep,
}

/// A compare and swap whose two elements are on their way.
pub(super) struct Swapping {
    swap: Swap,
    stage: Stage,
    span: Span,
    /// The element to compare with and the new one, in the origin's representation.
    bytes: Vec<u8>,
    exposure: Arc<Exposure>,
    _keep: Keep,
}

impl Folding {
    /// Takes the next operands in.
    pub(super) fn take(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let Folding { fold, program, count, span, carry, fetched, exposure, .. } = self;
        let Fold { reduction, stage } = &**fold;
        let target = Typed { program, count: *count, span: *span };
        let _held = exposure.lock_accumulates();
        Span::take(reduction, stage, target, position, data, carry, fetched.as_mut())
            .map_err(conversion)
    }

    /// Where what it fetches will lie, while there is nothing.
    pub(super) fn room(&mut self) -> Option<&mut Vec<u8>> {
        self.fetched.as_mut().filter(|fetched| fetched.is_empty())
    }

    /// What it fetched, if it does.
    pub(super) fn into_fetched(self) -> Option<Vec<u8>> {
        self.fetched
    }
}

impl Swapping {
    pub(super) fn take(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    /// Both elements are here: gives what was there.
    pub(super) fn carry_out(self) -> Result<Vec<u8>> {
        let Swapping { swap, stage, span, bytes, exposure, _keep } = self;
        let converted = stage.convert_all(&bytes).map_err(conversion)?;
        let (compare, new) = converted.split_at(converted.len() / 2);
        let mut old = vec![0; compare.len()];
        let _held = exposure.lock_accumulates();
        span.swap(&swap, compare, new, &mut old)?;
        Ok(old)
    }
}

/// The answer to what fetched these bytes.
pub(super) fn fetched_reply(header: &Header, fetched: Vec<u8>) -> Outgoing {
    let length = fetched.len() as u64;
    let source = match Few::zeroed(length) {
        Some(mut few) => {
            few.bytes_mut().copy_from_slice(&fetched);
            Source::Few(few)
        }
        None => Source::Fetched(fetched),
    };
    reply_to(header, length, source)
}

/// The operation that a header names; its highest bit is another matter.
fn operation(header: &Header) -> Result<Op> {
    let code = header.tag & !super::BY_NUMBER;
    Op::from_wire(code).ok_or_else(|| ErrorKind::UnknownOperation(code).into())
}

/// Rule 21: the one predefined type of the target's items.
fn leaf(form: &Received, pairs: bool) -> Result<shipable::Leaf> {
    let mixed = || ErrorKind::MixedTypes { datatype: excerpt(&form.form), role: "target", pairs };
    Ok(form.leaf().ok_or_else(mixed)?)
}

impl State {
    /// Checks an accumulate of a peer that is let in, for rule 21.
    pub(super) fn admit_folding(
        &self,
        admitted: Admitted<'_>,
        peer: u32,
        header: &Header,
    ) -> Result<Folding> {
        let Admitted { exposure, form, span, .. } = admitted;
        let exposure = exposure.clone();
        let op = operation(header)?;
        let leaf = leaf(form, matches!(op, Op::Maxloc | Op::Minloc))?;
        let fold = form.fold(op, leaf, self.stream_of(peer)?, &self.me.architecture)?;
        let program = form.packing(&self.me.architecture)?.clone();
        let length = program.stream_length(header.count)?;
        // What doesn't overlap itself, as rule 20 has it, is no longer than its memory: so much of it may be fetched.
        if length > span.len() {
            let (count, datatype) = (header.count as i64, excerpt(&form.form));
            return Err(ErrorKind::Overlap { count, datatype }.into());
        }
        let fetches = header.kind == Kind::Fetch;
        let operands = match op {
            Op::NoOp if fetches => 0,
            Op::NoOp => return Err(ErrorKind::NoOp.into()),
            _ => length / fold.reduction.element() * fold.stage.element(),
        };
        if operands != header.length {
            let length = header.length;
            let what = format!("an accumulate of {length} bytes where its type has {operands}");
            return Err(ErrorKind::Protocol { peer, what }.into());
        }
        let mut folding = Folding {
            fold,
            program,
            count: header.count,
            span,
            carry: Carry::default(),
            fetched: fetches.then(Vec::new),
            exposure,
            _keep: admitted.keep(),
        };
        if op == Op::NoOp {
            folding.fetched = Some(folding.read(length)?);
        }
        Ok(folding)
    }

    /// Checks a compare and swap of a peer.
    pub(super) fn admit_swapping(&self, peer: u32, header: &Header) -> Result<Swapping> {
        let admitted = self.admit(peer, header)?;
        let Admitted { exposure, form, span, .. } = admitted;
        let exposure = exposure.clone();
        let leaf = leaf(form, false)?;
        let swap = Swap::new(leaf, &self.me.architecture)?;
        let stage = Stage::new(leaf, self.stream_of(peer)?, &self.me.architecture)?;
        let program = form.packing(&self.me.architecture)?;
        let one = program.stream_length(header.count)? == swap.element();
        // Where the element lies isn't where its type starts, if the type isn't predefined.
        let span = match program.contiguous(header.count).and_then(|start| span.shifted(start)) {
            Some(span) if one && header.length == 2 * stage.element() => span,
            _ => {
                let what = "a compare and swap of anything but one element".to_owned();
                return Err(ErrorKind::Protocol { peer, what }.into());
            }
        };
        Ok(Swapping { swap, stage, span, bytes: Vec::new(), exposure, _keep: admitted.keep() })
    }

    /// Answers with what was there.
    pub(super) fn answer(&mut self, peer: u32, header: &Header, fetched: Vec<u8>) {
        self.push(peer, fetched_reply(header, fetched));
    }

    /// A compare and swap has ended.
    pub(super) fn finish_swap(
        &mut self,
        peer: u32,
        header: &Header,
        outcome: Result<Vec<u8>, Error>,
    ) {
        match outcome {
            Ok(old) => self.answer(peer, header, old),
            Err(error) => self.refuse(peer, header, &error),
        }
    }
}

impl Folding {
    /// All that is there, without an operand.
    fn read(&self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        let _held = self.exposure.lock_accumulates();
        self.span.pack(&self.program, self.count, 0, &mut bytes)?;
        Ok(bytes)
    }
}
