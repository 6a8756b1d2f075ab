//! The memo of a peer's last operations. An operation of the same type and count on the same window
//! as one of them is admitted by comparing its header, without the checks of [`Target::admit`].
//!
//! The memo takes only operations on elements that lie one after the other and have the same bytes
//! in this rank's memory and in the peer's stream, and only frames that have all of an operation's
//! data. All other operations, and those that have to be refused, go the long way.

use std::sync::Arc;

use shipable::reduce::{Op, Reduction, Swap};
use shipable::{Architecture, Leaf, Program};

use super::attachments::Attachments;
use super::exposure::{Exposure, Opened};
use super::{Admitted, Target};
use crate::engine::operation::BY_NUMBER;
use crate::engine::outbox::{InlineBytes, Outbox, Source};
use crate::engine::peers::Peers;
use crate::engine::reply::{reply, reply_bytes};
use crate::memory::Span;
use crate::wire::{Header, Kind};

/// An operation that was admitted, as far as the next one can be like it.
struct Recent {
    window: u32,
    form: u64,
    count: u64,
    /// The low half of the signature's hash.
    signature: u64,
    exposure: Arc<Exposure>,
    /// The window's memory, which the exposure holds. Of a dynamic window the attached memory that
    /// an operation was in, if no attachment has ended since.
    span: Span,
    /// As [`Attachments::ends`], from before that memory was found.
    ends: u64,
    /// Bytes from the operation's displacement to its elements.
    first: i64,
    /// Bytes of the elements.
    length: u64,
    /// The predefined type of all items, if they have one type.
    leaf: Option<Leaf>,
    /// The reduction of the last accumulate.
    reduction: Option<(Op, Reduction)>,
    /// The swap of the last compare-and-swap.
    swap: Option<Swap>,
}

/// A peer's last operations. A form's id decides its slot.
#[derive(Default)]
pub(super) struct Recents([Option<Box<Recent>>; SLOTS]);

/// The types that a program uses in turn, as a rule.
const SLOTS: usize = 4;

/// The bytes that an operation fetched.
pub(in crate::engine) enum Fetched {
    /// These bytes.
    Inline(InlineBytes),
    /// The bytes of the target's buffer, for which there is no room here.
    Buffered,
    /// Bytes of a window's memory, not copied yet: the memory, the first byte and the length. The
    /// window holds the memory.
    Memory(Span, i64, u64),
}

impl Recents {
    /// An operation that this one is like.
    #[inline]
    fn find(&mut self, header: &Header) -> Option<&mut Recent> {
        let recent = self.0[header.form as usize % SLOTS].as_deref_mut()?;
        recent.is_like(header).then_some(recent)
    }

    /// Whether there is an operation that this one is like.
    fn has(&self, header: &Header) -> bool {
        let recent = self.0[header.form as usize % SLOTS].as_ref();
        recent.is_some_and(|recent| recent.is_like(header))
    }

    /// Forgets the operations of a form.
    pub(super) fn forget_form(&mut self, form: u64) {
        self.0[form as usize % SLOTS].take_if(|recent| recent.form == form);
    }

    /// Forgets the operations on a window.
    pub(super) fn forget_window(&mut self, window: u32) {
        for slot in &mut self.0 {
            slot.take_if(|recent| recent.window == window);
        }
    }
}

impl Recent {
    #[inline]
    fn is_like(&self, header: &Header) -> bool {
        let same =
            (self.window, self.form, self.count) == (header.context, header.form, header.count);
        same && header.small && self.signature == header.signature as u64
    }

    /// An admitted operation, whose elements start at `first`.
    fn of(
        header: &Header,
        admitted: &Admitted<'_>,
        program: &Program,
        first: i64,
    ) -> Option<Recent> {
        let Admitted { exposure, form, .. } = admitted;
        let span = match &exposure.opened {
            Opened::Whole(exposed) => exposed.span(),
            // Found by the next operation.
            Opened::Attached(_) => Span::EMPTY,
        };
        Some(Recent {
            window: header.context,
            form: header.form,
            count: header.count,
            signature: header.signature as u64,
            exposure: (*exposure).clone(),
            span,
            ends: u64::MAX,
            first,
            length: program.stream_length(header.count).ok()?,
            leaf: form.leaf(),
            reduction: None,
            swap: None,
        })
    }

    /// Carries out an operation. Returns the bytes that it fetched, if it fetches. Returns `None`,
    /// and does nothing, if the operation has to go the long way.
    #[inline(always)]
    fn carry_out(
        &mut self,
        header: &Header,
        data: &[u8],
        memory: &Architecture,
        fetched: &mut Vec<u8>,
    ) -> Option<Option<Fetched>> {
        let Recent { first, length, ref exposure, .. } = *self;
        let base = header.displacement.checked_mul(exposure.unit.into())?;
        let at = base.checked_add(first).filter(|_| base >= 0)?;
        let end = at.checked_add_unsigned(length)?;
        let span = match &exposure.opened {
            Opened::Whole(_) => self.span,
            Opened::Attached(attachments) => {
                attached(attachments, &mut self.span, &mut self.ends, (at, end))?
            }
        };
        let given = data.len() as u64;
        if header.kind != Kind::Get && exposure.control.is_no_put() {
            return None;
        }
        if header.notify.is_some_and(|counter| counter >= exposure.control.notifications()) {
            return None;
        }
        match header.kind {
            // The memory is read after the return, and only then may a notification be given.
            Kind::Get if header.notify.is_some() => None,
            Kind::Get => span.covers(at, end).then_some(Some(Fetched::Memory(span, at, length))),
            Kind::Put => (given == length && span.write(at, data)).then_some(None),
            Kind::Accumulate | Kind::Fetch if given == length && span.covers(at, end) => {
                let op = Op::from_wire(header.tag & !BY_NUMBER)?;
                let reduction = reduction(&mut self.reduction, op, self.leaf?, memory)?;
                let combine = |operands| span.combine_run(reduction, at, operands, length);
                if header.kind == Kind::Accumulate {
                    let _held = exposure.lock_accumulates();
                    return Span::with_slice(data, combine).then_some(None);
                }
                let fetch = |old: &mut [u8]| {
                    let _held = exposure.lock_accumulates();
                    span.read(at, old) && Span::with_slice(data, combine)
                };
                let old = match InlineBytes::zeroed(length) {
                    Some(mut old) => fetch(old.bytes_mut()).then_some(Fetched::Inline(old)),
                    None => {
                        fetched.resize(data.len(), 0);
                        fetch(fetched).then_some(Fetched::Buffered)
                    }
                };
                old.map(Some)
            }
            Kind::Swap if given == 2 * length && span.covers(at, end) => {
                let swap = swap(&mut self.swap, self.leaf?, memory)?;
                let mut old = InlineBytes::zeroed(length).filter(|_| length == swap.element())?;
                let (compare, new) = data.split_at(data.len() / 2);
                let _held = exposure.lock_accumulates();
                let swapped = span.swap_bytes(swap, at, compare, new, old.bytes_mut());
                swapped.then_some(Some(Fetched::Inline(old)))
            }
            _ => None,
        }
    }
}

/// The attached memory that has these bytes: the last one that was found, or another one. `None` if
/// the bytes aren't attached.
///
/// The memory isn't held. The engine's lock is, and a rank that detaches memory takes it before it
/// gives the memory back. So an operation finds that the attachment has ended, or the rank waits
/// until the operation is done.
#[inline]
fn attached(
    attachments: &Attachments,
    last: &mut Span,
    found: &mut u64,
    (at, end): (i64, i64),
) -> Option<Span> {
    let ends = attachments.ends();
    if *found != ends || !last.covers(at, end) {
        let (memory, start) = attachments.find((at.into(), end.into())).ok()?;
        *last = memory.span().shifted(start.checked_neg()?)?;
        *found = ends;
    }
    Some(*last)
}

/// The reduction of operands into elements of this type. Returns a reference: a copy defeats store
/// forwarding.
#[inline]
fn reduction<'a>(
    last: &'a mut Option<(Op, Reduction)>,
    op: Op,
    leaf: Leaf,
    memory: &Architecture,
) -> Option<&'a Reduction> {
    if !matches!(last, Some((known, _)) if *known == op) {
        let reduction = Reduction::new(op, leaf, memory).ok().filter(|_| op != Op::NoOp)?;
        *last = Some((op, reduction));
    }
    last.as_ref().map(|(_, reduction)| reduction)
}

/// The compare-and-swap of an element of this type.
#[inline]
fn swap<'a>(last: &'a mut Option<Swap>, leaf: Leaf, memory: &Architecture) -> Option<&'a Swap> {
    if last.is_none() {
        *last = Swap::new(leaf, memory).ok();
    }
    last.as_ref()
}

impl Target {
    /// Carries out a peer's operation that is like one of its last. Returns the bytes that it
    /// fetched, if it fetches. Returns `None`, and does nothing, if there is no such operation. In
    /// line, so that the header stays in registers.
    #[inline(always)]
    pub(in crate::engine) fn handle_again(
        &mut self,
        peer: u32,
        header: &Header,
        data: &[u8],
        memory: &Architecture,
    ) -> Option<Option<Fetched>> {
        let recent = self.origins.get_mut(peer)?.recents.find(header)?;
        recent.carry_out(header, data, memory, &mut self.fetched)
    }

    /// Remembers a peer's operation, if the next one like it may be admitted by comparing.
    pub(in crate::engine) fn remember(&mut self, peer: u32, header: &Header, peers: &Peers) {
        let recent = || {
            // Without one, the operation's form isn't defined either.
            let origin = self.origins.get(peer)?;
            let memory = &peers.me().architecture;
            let (stream, received) =
                (peers.architecture(peer)?, origin.forms.get(header.form, peer));
            let received = received.ok()?;
            if !header.small || !received.is_same(memory, stream) || origin.recents.has(header) {
                return None;
            }
            let program = received.packing(memory).ok()?;
            // If elements lay before the displacement, the displacement could be beyond the reach
            // of the owner's pointers while they are in the window (rule 29).
            let first = program.contiguous(header.count).filter(|first| *first >= 0)?;
            Recent::of(header, &self.admit(peer, header, peers).ok()?, program, first)
        };
        if let Some(recent) = recent() {
            let Recents(slots) = &mut self.origins.of(peer).recents;
            slots[header.form as usize % SLOTS] = Some(Box::new(recent));
        }
    }

    /// The length of the bytes that an operation fetched.
    #[inline]
    pub(in crate::engine) fn length(&self, fetched: &Fetched) -> u64 {
        match fetched {
            Fetched::Inline(inline) => inline.bytes().len() as u64,
            Fetched::Buffered => self.fetched.len() as u64,
            Fetched::Memory(_, _, length) => *length,
        }
    }

    /// Copies the bytes that an operation fetched; false if the memory doesn't have them.
    #[inline]
    pub(in crate::engine) fn copy(&self, fetched: &Fetched, out: &mut [u8]) -> bool {
        match fetched {
            Fetched::Memory(span, at, _) => return span.read(*at, out),
            Fetched::Inline(inline) => out.copy_from_slice(inline.bytes()),
            Fetched::Buffered => out.copy_from_slice(&self.fetched),
        }
        true
    }

    /// Answers an operation through the outbox.
    pub(in crate::engine) fn answer(
        &self,
        peer: u32,
        header: &Header,
        fetched: Fetched,
        peers: &Peers,
        out: &mut Outbox,
    ) {
        match fetched {
            Fetched::Inline(inline) => {
                let length = inline.bytes().len() as u64;
                out.push(peer, reply(header, length, Source::Inline(inline)));
            }
            Fetched::Buffered => out.push(peer, reply_bytes(header, self.fetched.clone())),
            Fetched::Memory(..) => self.handle_get(peer, header, peers, out),
        }
    }
}
