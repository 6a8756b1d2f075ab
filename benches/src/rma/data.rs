//! The origin's memory: one slot for each operation that may be in flight at once.

use bytemuck::Pod;
use longshore::{Destination, Element, Origin, Type};

use super::layout::Layout;
use crate::Failure;

/// Memory with slots. Each operation reads or writes one slot.
pub trait Data {
    /// The content of the only slot, in the form that an operation takes.
    type SingleOrigin<'a>: Into<Origin<'a>>
    where
        Self: 'a;
    /// The only slot, as the destination of an operation.
    type SingleDestination<'a>: Into<Destination<'a>>
    where
        Self: 'a;

    /// The content of a slot.
    fn origin(&self, slot: usize) -> Origin<'_>;

    /// All slots in order, as destinations.
    fn destinations(&mut self) -> impl Iterator<Item = Destination<'_>>;

    /// The content of the only slot. It isn't converted to an `Origin` yet, because moving one is
    /// slow (docs/tuning.md, "Origins passed unconverted in the benches").
    fn single_origin(&self) -> Self::SingleOrigin<'_>;

    /// The only slot, as the destination of an operation.
    fn single_destination(&mut self) -> Self::SingleDestination<'_>;

    /// A pointer to displacement 0 of a slot's elements, as a C program has it.
    fn pointer(&mut self, slot: usize) -> *mut u8;

    /// All bytes of the memory.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// This memory, after writing the pattern of a seed to every slot.
    ///
    /// # Errors
    /// Those of [`Layout::fill`].
    fn filled(mut self, layout: &Layout, seed: u64) -> Result<Self, Failure>
    where
        Self: Sized,
    {
        layout.fill(self.bytes_mut(), &[seed], seed)?;
        Ok(self)
    }
}

/// Bytes of a page. All origins' memory has a fixed offset from the start of a page, because the
/// offset affects the speed (docs/tuning.md, "Page offset of the origin's memory").
const PAGE: usize = 4096;

/// Memory at a fixed offset from the start of a page.
struct Pages<T> {
    memory: Vec<T>,
    /// Elements before the memory.
    first: usize,
}

impl<T: Pod> Pages<T> {
    fn new(len: usize, offset: usize) -> Pages<T> {
        let size = size_of::<T>().max(1);
        let mut memory = vec![T::zeroed(); len + (PAGE + offset) / size];
        let first = memory.as_ptr().align_offset(PAGE).saturating_add(offset / size);
        let first = first.min(memory.len() - len);
        memory.truncate(first + len);
        Pages { memory, first }
    }

    #[inline]
    fn get(&self) -> &[T] {
        &self.memory[self.first..]
    }

    #[inline]
    fn get_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.first..]
    }
}

/// Elements of a predefined type in the machine's representation: slices, as in most programs.
pub struct Slices<T> {
    memory: Pages<T>,
    /// Elements of a slot.
    count: usize,
    /// Elements from one slot to the next.
    apart: usize,
}

impl<T: Pod> Slices<T> {
    /// Memory for a case's slots. It ends with the elements of the last slot, so a single slot is
    /// all of the memory.
    pub fn new(layout: &Layout) -> Slices<T> {
        let (count, apart) = (layout.count as usize, layout.slot_size / size_of::<T>().max(1));
        let memory = Pages::new((layout.slots - 1) * apart + count, layout.offset);
        Slices { memory, count, apart }
    }
}

impl<T: Element + Pod> Data for Slices<T> {
    type SingleOrigin<'a> = &'a [T];
    type SingleDestination<'a> = &'a mut [T];

    #[inline]
    fn origin(&self, slot: usize) -> Origin<'_> {
        Origin::from(&self.memory.get()[slot * self.apart..][..self.count])
    }

    #[inline]
    fn destinations(&mut self) -> impl Iterator<Item = Destination<'_>> {
        let count = self.count;
        let slots = self.memory.get_mut().chunks_mut(self.apart);
        slots.map(move |slot| Destination::from(&mut slot[..count]))
    }

    #[inline]
    fn single_origin(&self) -> &[T] {
        self.memory.get()
    }

    #[inline]
    fn single_destination(&mut self) -> &mut [T] {
        self.memory.get_mut()
    }

    #[inline]
    fn pointer(&mut self, slot: usize) -> *mut u8 {
        self.memory.get_mut()[slot * self.apart..].as_mut_ptr().cast()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.memory.get_mut())
    }
}

/// Elements of any type in the rank's representation.
pub struct Typed {
    memory: Pages<u8>,
    /// Bytes of a slot.
    slot_size: usize,
    /// The offset of displacement 0 in a slot.
    zero: i64,
    /// Elements of a slot.
    count: i64,
    /// The type of the elements.
    datatype: Type,
}

impl Typed {
    /// Memory for a case's slots.
    pub fn new(layout: &Layout) -> Typed {
        let &Layout { ref own, count, slot_size, zero, offset, .. } = layout;
        let memory = Pages::new(layout.len(), offset);
        Typed { memory, slot_size, zero, count, datatype: own.clone() }
    }
}

impl Data for Typed {
    type SingleOrigin<'a> = Origin<'a>;
    type SingleDestination<'a> = Destination<'a>;

    #[inline]
    fn origin(&self, slot: usize) -> Origin<'_> {
        let memory = &self.memory.get()[slot * self.slot_size..][..self.slot_size];
        Origin::typed(memory, self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn destinations(&mut self) -> impl Iterator<Item = Destination<'_>> {
        let (count, datatype, zero) = (self.count, &self.datatype, self.zero);
        self.memory
            .get_mut()
            .chunks_mut(self.slot_size)
            .map(move |memory| Destination::typed(memory, count, datatype).at(zero))
    }

    #[inline]
    fn single_origin(&self) -> Origin<'_> {
        Origin::typed(self.memory.get(), self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn single_destination(&mut self) -> Destination<'_> {
        Destination::typed(self.memory.get_mut(), self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn pointer(&mut self, slot: usize) -> *mut u8 {
        let slot = &mut self.memory.get_mut()[slot * self.slot_size..];
        slot.as_mut_ptr().wrapping_offset(self.zero as isize)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut()
    }
}
