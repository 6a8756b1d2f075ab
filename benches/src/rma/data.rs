//! The origin's memory: a place for each operation that may be under way at once.

use bytemuck::Pod;
use longshore::{Destination, Element, Origin, Type};

use super::layout::Layout;
use crate::Failure;

/// Memory with places, each of which an operation reads or writes.
pub trait Data {
    /// What lies at the only place there is, as an operation takes it.
    type Only<'a>: Into<Origin<'a>>
    where
        Self: 'a;
    /// The only place there is, to be written.
    type Room<'a>: Into<Destination<'a>>
    where
        Self: 'a;

    /// What lies at a place.
    fn origin(&self, place: usize) -> Origin<'_>;

    /// The places, one after the other, to be written.
    fn rooms(&mut self) -> impl Iterator<Item = Destination<'_>>;

    /// What lies at the only place there is, not made an origin yet: to move one costs as much as a third of a put.
    fn only(&self) -> Self::Only<'_>;

    /// The only place there is, to be written.
    fn room(&mut self) -> Self::Room<'_>;

    /// All of it.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// This memory, after writing the pattern of a seed to every place.
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

/// Bytes of a page, by whose start all origins' memory lies: where an allocator puts it is luck, and worth a third of the time of
/// 1 KiB.
const PAGE: usize = 4096;

/// Memory that starts with a page, or so many bytes into one.
struct Pages<T> {
    memory: Vec<T>,
    /// Elements before it does.
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

/// Elements of a predefined type, in the machine's representation: slices, as most programs give them.
pub struct Slices<T> {
    memory: Pages<T>,
    /// Elements at a place,
    count: usize,
    /// and from one place to the next.
    apart: usize,
}

impl<T: Pod> Slices<T> {
    /// A case's places. Behind the elements of the last there is nothing, so that the only one is all of the memory.
    pub fn new(layout: &Layout) -> Slices<T> {
        let (count, apart) = (layout.count as usize, layout.span / size_of::<T>().max(1));
        let memory = Pages::new((layout.places - 1) * apart + count, layout.offset);
        Slices { memory, count, apart }
    }
}

impl<T: Element + Pod> Data for Slices<T> {
    type Only<'a> = &'a [T];
    type Room<'a> = &'a mut [T];

    #[inline]
    fn origin(&self, place: usize) -> Origin<'_> {
        Origin::from(&self.memory.get()[place * self.apart..][..self.count])
    }

    #[inline]
    fn rooms(&mut self) -> impl Iterator<Item = Destination<'_>> {
        let count = self.count;
        let places = self.memory.get_mut().chunks_mut(self.apart);
        places.map(move |place| Destination::from(&mut place[..count]))
    }

    #[inline]
    fn only(&self) -> &[T] {
        self.memory.get()
    }

    #[inline]
    fn room(&mut self) -> &mut [T] {
        self.memory.get_mut()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self.memory.get_mut())
    }
}

/// Elements of any type, in the rank's representation.
pub struct Typed {
    memory: Pages<u8>,
    /// Bytes of a place.
    span: usize,
    /// Where displacement 0 lies in a place.
    zero: i64,
    /// Elements at a place.
    count: i64,
    /// What they are.
    datatype: Type,
}

impl Typed {
    /// A case's places.
    pub fn new(layout: &Layout) -> Typed {
        let &Layout { ref own, count, span, zero, offset, .. } = layout;
        let memory = Pages::new(layout.len(), offset);
        Typed { memory, span, zero, count, datatype: own.clone() }
    }
}

impl Data for Typed {
    type Only<'a> = Origin<'a>;
    type Room<'a> = Destination<'a>;

    #[inline]
    fn origin(&self, place: usize) -> Origin<'_> {
        let memory = &self.memory.get()[place * self.span..][..self.span];
        Origin::typed(memory, self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn rooms(&mut self) -> impl Iterator<Item = Destination<'_>> {
        let (count, datatype, zero) = (self.count, &self.datatype, self.zero);
        self.memory
            .get_mut()
            .chunks_mut(self.span)
            .map(move |memory| Destination::typed(memory, count, datatype).at(zero))
    }

    #[inline]
    fn only(&self) -> Origin<'_> {
        Origin::typed(self.memory.get(), self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn room(&mut self) -> Destination<'_> {
        Destination::typed(self.memory.get_mut(), self.count, &self.datatype).at(self.zero)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut()
    }
}
