//! The quick way of a peer's operations: what was found of one is kept, and the next of the same type and count on the same window is
//! admitted by comparing.
//!
//! It is for elements of which this rank's memory and the peer's stream have the same bytes, one after the other, and for frames that
//! have all of an operation's data. All else, and whatever is to be refused, is left to the long way.

use std::sync::Arc;

use shipable::reduce::{Op, Reduction, Swap};
use shipable::{Architecture, Leaf, Program};

use super::exposure::{Exposure, Opened};
use super::incoming::Admitted;
use super::outbox::Few;
use super::{BY_NUMBER, State};
use crate::memory::Span;
use crate::wire::{Header, Kind};

/// What was found of an operation.
pub(super) struct Recent {
    window: u32,
    form: u64,
    count: u64,
    /// The low half of the signature's hash.
    signature: u64,
    exposure: Arc<Exposure>,
    /// The window's memory, which the exposure holds.
    span: Span,
    /// Bytes from the operation's displacement to its elements, and of these.
    first: i64,
    length: u64,
    /// The predefined type of all items, if it is one.
    leaf: Option<Leaf>,
    /// How the last operands were combined, and the last element compared.
    reduction: Option<(Op, Reduction)>,
    swap: Option<Swap>,
}

/// A peer's last operations, each at its form's place.
#[derive(Default)]
pub(super) struct Recents([Option<Box<Recent>>; PLACES]);

/// Types that a program uses by turns, as a rule.
const PLACES: usize = 4;

/// What an operation fetched.
pub(super) enum Answer {
    /// These bytes.
    Few(Few),
    /// Those in [`State::fetched`]: more than there is room for here.
    Many,
    /// So many bytes from this displacement of this memory on, which its window holds.
    Memory(Span, i64, u64),
}

impl Recents {
    /// What was found of an operation like this.
    #[inline]
    fn find(&mut self, header: &Header) -> Option<&mut Recent> {
        let recent = self.0[header.form as usize % PLACES].as_deref_mut()?;
        recent.is_like(header).then_some(recent)
    }

    /// Whether that was found.
    fn has(&self, header: &Header) -> bool {
        let recent = self.0[header.form as usize % PLACES].as_ref();
        recent.is_some_and(|recent| recent.is_like(header))
    }

    /// Forgets what was found of a form.
    pub(super) fn forget_form(&mut self, form: u64) {
        self.0[form as usize % PLACES].take_if(|recent| recent.form == form);
    }

    /// Lets go of a window.
    pub(super) fn forget_window(&mut self, window: u32) {
        for place in &mut self.0 {
            place.take_if(|recent| recent.window == window);
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

    /// What there is to find of an operation that is admitted; none where it has to be looked at each time.
    fn of(
        header: &Header,
        admitted: &Admitted<'_>,
        program: &Program,
        first: i64,
    ) -> Option<Recent> {
        let Admitted { exposure, form, .. } = admitted;
        let Opened::Whole(exposed) = &exposure.opened else { return None };
        Some(Recent {
            window: header.context,
            form: header.form,
            count: header.count,
            signature: header.signature as u64,
            exposure: (*exposure).clone(),
            span: exposed.span(),
            first,
            length: program.stream_length(header.count).ok()?,
            leaf: form.leaf(),
            reduction: None,
            swap: None,
        })
    }

    /// Does an operation, and gives what it fetched. None, and nothing done, where that isn't so simple.
    #[inline(always)]
    fn carry_out(
        &mut self,
        header: &Header,
        data: &[u8],
        memory: &Architecture,
        fetched: &mut Vec<u8>,
    ) -> Option<Option<Answer>> {
        let Recent { span, first, length, ref exposure, .. } = *self;
        let base = header.displacement.checked_mul(exposure.unit.into())?;
        let at = base.checked_add(first).filter(|_| base >= 0)?;
        let end = at.checked_add_unsigned(length)?;
        let given = data.len() as u64;
        if header.kind != Kind::Get && exposure.control.is_no_put() {
            return None;
        }
        match header.kind {
            Kind::Get => span.covers(at, end).then_some(Some(Answer::Memory(span, at, length))),
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
                let answer = match Few::zeroed(length) {
                    Some(mut old) => fetch(old.bytes_mut()).then_some(Answer::Few(old)),
                    None => {
                        fetched.resize(data.len(), 0);
                        fetch(fetched).then_some(Answer::Many)
                    }
                };
                answer.map(Some)
            }
            Kind::Swap if given == 2 * length && span.covers(at, end) => {
                let swap = swap(&mut self.swap, self.leaf?, memory)?;
                let mut old = Few::zeroed(length).filter(|_| length == swap.element())?;
                let (compare, new) = data.split_at(data.len() / 2);
                let _held = exposure.lock_accumulates();
                span.shifted(at)?.swap(swap, compare, new, old.bytes_mut()).ok()?;
                Some(Some(Answer::Few(old)))
            }
            _ => None,
        }
    }
}

/// How operands are combined with elements of this type. The last is used where it lies: for a copy store forwarding fails.
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

/// How an element of this type is compared and swapped.
#[inline]
fn swap<'a>(last: &'a mut Option<Swap>, leaf: Leaf, memory: &Architecture) -> Option<&'a Swap> {
    if last.is_none() {
        *last = Swap::new(leaf, memory).ok();
    }
    last.as_ref()
}

impl State {
    /// Does an operation of a peer as one of its last was done, and gives what it fetched. None, and nothing done, where none was
    /// like it. In line, so that the header stays in registers.
    #[inline(always)]
    pub(super) fn handle_again(
        &mut self,
        peer: u32,
        header: &Header,
        data: &[u8],
    ) -> Option<Option<Answer>> {
        let (peer, fetched) = (&mut self.peers[peer as usize], &mut self.fetched);
        if self.check.is_some() || peer.is_streaming() {
            return None;
        }
        peer.recents.find(header)?.carry_out(header, data, &self.me.architecture, fetched)
    }

    /// Keeps what there is to find of an operation.
    pub(super) fn remember(&mut self, peer: u32, header: &Header) {
        let entry = &self.peers[peer as usize];
        let memory = &self.me.architecture;
        let found = || {
            let is_like = entry.architecture()?.same_representation(memory);
            if !header.small || !is_like || entry.recents.has(header) {
                return None;
            }
            // Nothing is kept of memory that comes and goes.
            self.windows.get(&header.context).filter(|it| matches!(it.opened, Opened::Whole(_)))?;
            let program = entry.forms.get(header.form, peer).ok()?.packing(memory).ok()?;
            // Behind the displacement: memory that the window has is then within the reach of its owner's pointers.
            let first = program.contiguous(header.count).filter(|first| *first >= 0)?;
            Recent::of(header, &self.admit(peer, header).ok()?, program, first)
        };
        if let Some(recent) = found() {
            let Recents(places) = &mut self.peers[peer as usize].recents;
            places[header.form as usize % PLACES] = Some(Box::new(recent));
        }
    }
}
