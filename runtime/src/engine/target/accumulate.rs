//! Accumulates and compare-and-swap at their target. Each frame of operands is combined under the
//! window's accumulate lock.

use std::sync::Arc;

use shipable::reduce::{Carry, Op, Stage, Swap};
use shipable::{Leaf, SharedProgram};

use super::exposure::Exposure;
use super::forms::{ReceivedForm, Reducer};
use super::{Admitted, Target};
use crate::engine::operation::BY_NUMBER;
use crate::engine::outbox::Outbox;
use crate::engine::peers::Peers;
use crate::engine::reply::{acknowledge, reply_bytes};
use crate::error::{Error, ErrorKind, Result, conversion, excerpt};
use crate::memory::{Lease, Span, Typed};
use crate::wire::{Header, Kind};

/// An accumulate under way.
pub(in crate::engine) struct Accumulate {
    reducer: Arc<Reducer>,
    program: SharedProgram,
    count: u64,
    lease: Lease,
    carry: Carry,
    /// The items before the operation, in this rank's representation, if the operation fetches.
    fetched: Option<Vec<u8>>,
    exposure: Arc<Exposure>,
}

/// A compare-and-swap whose two elements are on their way.
pub(in crate::engine) struct CompareAndSwap {
    swap: Swap,
    stage: Stage,
    lease: Lease,
    /// The element to compare with and the new one, in the origin's representation.
    bytes: Vec<u8>,
    exposure: Arc<Exposure>,
}

impl Accumulate {
    /// Combines the next operands, from `position` of the stream on.
    ///
    /// # Errors
    /// A value that this rank's representation can't hold.
    pub(in crate::engine) fn take(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let Accumulate { reducer, program, count, lease, carry, fetched, exposure } = self;
        let Reducer { reduction, stage } = &**reducer;
        let target = Typed { program, count: *count, span: lease.span() };
        let _held = exposure.lock_accumulates();
        Span::take(reduction, stage, target, position, data, carry, fetched.as_mut())
            .map_err(conversion)
    }

    /// The bytes that the operation fetched, if it fetches.
    pub(super) fn into_fetched(self) -> Option<Vec<u8>> {
        self.fetched
    }

    /// Reads all items, for an operation without operands.
    fn read(&self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        let _held = self.exposure.lock_accumulates();
        self.lease.span().pack(&self.program, self.count, 0, &mut bytes)?;
        Ok(bytes)
    }
}

impl CompareAndSwap {
    /// Stores the next bytes of the two elements.
    pub(in crate::engine) fn take(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    /// Compares and swaps: both elements are here. Returns the element before the operation.
    fn carry_out(self) -> Result<Vec<u8>> {
        let CompareAndSwap { swap, stage, lease, bytes, exposure } = self;
        let converted = stage.convert_all(&bytes).map_err(conversion)?;
        let (compare, new) = converted.split_at(converted.len() / 2);
        let mut old = vec![0; compare.len()];
        let _held = exposure.lock_accumulates();
        lease.span().swap(&swap, compare, new, &mut old)?;
        Ok(old)
    }
}

/// The reduction operation that a header names.
fn operation(header: &Header) -> Result<Op> {
    let code = header.tag & !BY_NUMBER;
    Op::from_wire(code).ok_or_else(|| ErrorKind::UnknownOperation(code).into())
}

/// The one predefined type of the target's items.
///
/// # Errors
/// The items have several types (rule 21).
fn leaf(form: &ReceivedForm, pairs: bool) -> Result<Leaf> {
    let mixed = || ErrorKind::MixedTypes { datatype: excerpt(&form.form), role: "target", pairs };
    Ok(form.leaf().ok_or_else(mixed)?)
}

impl Target {
    /// Checks an accumulate. One without operands (`MPI_NO_OP`) is carried out.
    ///
    /// # Errors
    /// The operation violates a rule; rule 21 is checked here.
    pub(super) fn admit_accumulate(
        &self,
        peer: u32,
        header: &Header,
        peers: &Peers,
    ) -> Result<Accumulate> {
        let admitted = self.admit(peer, header, peers)?;
        let memory = &peers.me().architecture;
        let Admitted { exposure, form, span, .. } = admitted;
        let exposure = exposure.clone();
        let op = operation(header)?;
        let leaf = leaf(form, matches!(op, Op::Maxloc | Op::Minloc))?;
        let reducer = form.reducer(op, leaf, peers.stream_of(peer)?, memory)?;
        let program = form.packing(memory)?.clone();
        let length = program.stream_length(header.count)?;
        // Items that don't overlap (rule 20) are no longer than the memory. This bounds the bytes
        // that may be fetched.
        if length > span.len() {
            let (count, datatype) = (header.count as i64, excerpt(&form.form));
            return Err(ErrorKind::Overlap { count, datatype }.into());
        }
        let fetches = header.kind == Kind::Fetch;
        let operands = match op {
            Op::NoOp if fetches => 0,
            Op::NoOp => return Err(ErrorKind::NoOp.into()),
            _ => length / reducer.reduction.element() * reducer.stage.element(),
        };
        if operands != header.length {
            let length = header.length;
            let what = format!("an accumulate of {length} bytes where its type has {operands}");
            return Err(ErrorKind::Protocol { peer, what }.into());
        }
        let mut accumulate = Accumulate {
            reducer,
            program,
            count: header.count,
            lease: admitted.lease(),
            carry: Carry::default(),
            fetched: fetches.then(Vec::new),
            exposure,
        };
        if op == Op::NoOp {
            accumulate.fetched = Some(accumulate.read(length)?);
        }
        Ok(accumulate)
    }

    /// Opens the stream of an accumulate. The bytes that it fetches go to this target's buffer.
    ///
    /// # Errors
    /// The operation violates a rule.
    pub(in crate::engine) fn open_accumulate(
        &mut self,
        peer: u32,
        header: &Header,
        peers: &Peers,
    ) -> Result<Accumulate> {
        let mut accumulate = self.admit_accumulate(peer, header, peers)?;
        if let Some(fetched) = accumulate.fetched.as_mut().filter(|fetched| fetched.is_empty()) {
            *fetched = std::mem::take(&mut self.fetched);
            fetched.clear();
        }
        Ok(accumulate)
    }

    /// Opens the stream of a compare-and-swap.
    ///
    /// # Errors
    /// The operation violates a rule, or isn't of one element.
    pub(in crate::engine) fn open_swap(
        &self,
        peer: u32,
        header: &Header,
        peers: &Peers,
    ) -> Result<CompareAndSwap> {
        let admitted = self.admit(peer, header, peers)?;
        let memory = &peers.me().architecture;
        let Admitted { exposure, form, span, .. } = admitted;
        let exposure = exposure.clone();
        let leaf = leaf(form, false)?;
        let swap = Swap::new(leaf, memory)?;
        let stage = Stage::new(leaf, peers.stream_of(peer)?, memory)?;
        let program = form.packing(memory)?;
        let one = program.stream_length(header.count)? == swap.element();
        // The element may lie at another displacement than 0, unless the type is predefined.
        let span = match program.contiguous(header.count).and_then(|start| span.shifted(start)) {
            Some(span) if one && header.length == 2 * stage.element() => span,
            _ => {
                let what = "a compare and swap of anything but one element".to_owned();
                return Err(ErrorKind::Protocol { peer, what }.into());
            }
        };
        let lease = admitted.lease().of_part(span);
        Ok(CompareAndSwap { swap, stage, lease, bytes: Vec::new(), exposure })
    }

    /// Answers an accumulate whose stream has ended; `cut` is the error if it ended early.
    pub(in crate::engine) fn finish_accumulate(
        &self,
        peer: u32,
        header: &Header,
        (accumulate, cut): (Accumulate, Option<Error>),
        peers: &Peers,
        out: &mut Outbox,
    ) {
        match (accumulate.into_fetched(), cut) {
            (None, _) => acknowledge(peer, header, out),
            (Some(_), Some(error)) => self.refuse(peer, header, &error, peers, out),
            (Some(fetched), None) => out.push(peer, reply_bytes(header, fetched)),
        }
    }

    /// Carries out and answers a compare-and-swap whose stream has ended; `cut` is the error if it
    /// ended early.
    pub(in crate::engine) fn finish_swap(
        &self,
        peer: u32,
        header: &Header,
        (swap, cut): (CompareAndSwap, Option<Error>),
        peers: &Peers,
        out: &mut Outbox,
    ) {
        match cut.map_or_else(|| swap.carry_out(), Err) {
            Ok(old) => out.push(peer, reply_bytes(header, old)),
            Err(error) => self.refuse(peer, header, &error, peers, out),
        }
    }
}
