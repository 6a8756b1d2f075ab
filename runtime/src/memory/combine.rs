//! Combines operands with the contents of a span: accumulates, fetches, and compare-and-swaps.

use shipable::Element;
use shipable::reduce::{Carry, Combiner, Reduction, Sides, Stage, Swap};

use super::span::{OVERFLOW, Span, Typed};

impl Span {
    /// Combines packed operands with typed memory, as [`Reduction::take`].
    pub(crate) fn take(
        reduction: &Reduction,
        stage: &Stage,
        target: Typed<'_>,
        position: u64,
        input: &[u8],
        carry: &mut Carry,
        fetched: Option<&mut Vec<u8>>,
    ) -> shipable::Result<()> {
        reduction.take(stage, &mut target.sides()?, position, input, carry, fetched)
    }

    /// Combines typed memory with typed memory, as [`Reduction::apply_typed`].
    pub(crate) fn combine(
        reduction: &Reduction,
        operands: &Typed<'_>,
        target: &Typed<'_>,
        result: Option<&Typed<'_>>,
        range: std::ops::Range<u64>,
    ) -> shipable::Result<()> {
        let view = operands.span.view().ok_or(OVERFLOW)?;
        let mut result = result.map(Typed::sides).transpose()?;
        let operands = (operands.program, operands.count, view);
        reduction.apply_typed(operands, &mut target.sides()?, result.as_mut(), range)
    }

    /// Combines `bytes` of packed operands with the consecutive elements from displacement `at` on;
    /// see [`Reduction::combine_packed`]. Returns false, and changes nothing, if either memory is
    /// shorter.
    #[inline]
    pub(crate) fn combine_run(
        self,
        reduction: &Reduction,
        at: i64,
        operands: Span,
        bytes: u64,
    ) -> bool {
        let (Some(operands), Some(mut there)) =
            (operands.view(), self.shifted(at).and_then(Span::view_mut))
        else {
            return false;
        };
        reduction.combine_packed(operands, &mut there, bytes).is_ok()
    }

    /// Combines `bytes` of elements at `operands` with those of this span; see
    /// [`Combiner::combine`]. The earlier ones go to `room`, if it is given. Returns `None`, and
    /// changes nothing, if the span has fewer bytes. By the module's rules the other two have them.
    #[inline(always)]
    pub(crate) fn combine_places(
        self,
        combiner: &Combiner,
        operands: *mut u8,
        room: Option<*mut u8>,
        bytes: u64,
    ) -> Option<()> {
        let span = |start| Span { start, len: bytes, origin: 0 };
        let (operands, mut there) = (span(operands).view()?, self.view_mut()?);
        if let Some(room) = room {
            span(room).copy_run(0, self, 0, bytes).then_some(())?;
        }
        combiner.combine(operands, &mut there, bytes).ok()
    }

    /// Compares and swaps the element at displacement `at`, and copies its earlier value to `old`;
    /// see [`Swap::apply`]. Returns false, and changes nothing, if any of the memories is too
    /// short.
    #[inline]
    pub(crate) fn swap_at(self, swap: &Swap, at: i64, compare: Span, new: Span, old: Span) -> bool {
        let size = swap.element();
        let are_elements =
            [compare, new, old].iter().all(|span| span.origin == 0 && span.len == size);
        let there = self.part_at(at, size).filter(|_| are_elements);
        there.is_some_and(|it| it.swap_places(swap, size, [compare.start, new.start, old.start]))
    }

    /// [`swap_at`](Span::swap_at) of the element at displacement 0, of `size` bytes, and of others
    /// that are given by where they start: the one to compare with, the new one, and room for the
    /// old one. By the module's rules each of the three has an element's bytes.
    #[inline(always)]
    pub(crate) fn swap_places(self, swap: &Swap, size: u64, places: [*mut u8; 3]) -> bool {
        // The length is a constant in each branch, so that no bounds are left to be checked but
        // those of this span.
        match size {
            8 => self.swap_words::<u64>(swap, places),
            4 => self.swap_words::<u32>(swap, places),
            2 => self.swap_words::<u16>(swap, places),
            1 => self.swap_words::<u8>(swap, places),
            size => {
                let [compare, new, old] = places.map(|start| Span { start, len: size, origin: 0 });
                old.copy_run(0, self, 0, size) && self.swap_views(swap, 0, compare, new)
            }
        }
    }

    #[inline(always)]
    fn swap_words<W: Element + Into<u64>>(self, swap: &Swap, places: [*mut u8; 3]) -> bool {
        // Not by `map` of the array, which is often a call of its own.
        let element = |place: *mut u8| Span::of(place.cast::<W>(), 1);
        let [compare, new, old] = [element(places[0]), element(places[1]), element(places[2])];
        let Some(wanted) = compare.peek::<W>(0).map(W::into) else { return false };
        let found = self.replace_if(0, new, |found: &W| swap.is_equal(wanted, (*found).into()));
        let write = |found| old.copy_run(0, Span::of_value(&found), 0, size_of::<W>() as u64);
        found.is_some_and(write)
    }

    /// [`swap_at`](Span::swap_at) of elements in slices.
    #[inline]
    pub(crate) fn swap_bytes(
        self,
        swap: &Swap,
        at: i64,
        compare: &[u8],
        new: &[u8],
        old: &mut [u8],
    ) -> bool {
        let [compare, new] =
            [compare, new].map(|bytes| Span::of(bytes.as_ptr().cast_mut(), bytes.len()));
        self.swap_at(swap, at, compare, new, Span::of(old.as_mut_ptr(), old.len()))
    }

    #[inline(never)]
    fn swap_views(self, swap: &Swap, at: i64, compare: Span, new: Span) -> bool {
        let (Some(compare), Some(new), Some(there)) =
            (compare.view(), new.view(), self.shifted(at).and_then(Span::view_mut))
        else {
            return false;
        };
        swap.apply_views(there, compare, new).is_ok()
    }

    /// Compares and swaps the element at displacement 0; see [`Swap::apply`].
    #[inline]
    pub(crate) fn swap(
        self,
        swap: &Swap,
        compare: &[u8],
        new: &[u8],
        old: &mut [u8],
    ) -> shipable::Result<()> {
        swap.apply(&mut self.view_mut().ok_or(OVERFLOW)?, compare, new, old)
    }

    /// The span of a value, to be read only while the value is borrowed.
    #[inline]
    fn of_value<T: Element>(value: &T) -> Span {
        Span::of(std::ptr::from_ref(value).cast_mut(), 1)
    }
}

impl Typed<'_> {
    fn sides(&self) -> shipable::Result<Sides<'_>> {
        let memory = self.span.view_mut().ok_or(OVERFLOW)?;
        Ok(Sides { program: self.program, count: self.count, memory })
    }
}
