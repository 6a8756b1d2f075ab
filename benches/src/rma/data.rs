//! The origin's memory: a place for each operation that may be under way at once.

use bytemuck::Pod;
use longshore::{Destination, Element, Origin, Type};

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
}

/// Elements of a predefined type, in the machine's representation: slices, as most programs give them.
pub struct Slices<T> {
    memory: Vec<T>,
    /// Elements at a place.
    count: usize,
}

impl<T: Pod> Slices<T> {
    /// So many places of `count` elements each.
    pub fn new(places: usize, count: usize) -> Slices<T> {
        Slices { memory: vec![T::zeroed(); places * count], count }
    }
}

impl<T: Element + Pod> Data for Slices<T> {
    type Only<'a> = &'a [T];
    type Room<'a> = &'a mut [T];

    #[inline]
    fn origin(&self, place: usize) -> Origin<'_> {
        Origin::from(&self.memory[place * self.count..][..self.count])
    }

    #[inline]
    fn rooms(&mut self) -> impl Iterator<Item = Destination<'_>> {
        self.memory.chunks_mut(self.count).map(Destination::from)
    }

    #[inline]
    fn only(&self) -> &[T] {
        &self.memory
    }

    #[inline]
    fn room(&mut self) -> &mut [T] {
        &mut self.memory
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}

/// Elements of any type, in the rank's representation.
pub struct Typed {
    /// The places.
    pub memory: Vec<u8>,
    /// Bytes of a place.
    pub span: usize,
    /// Where displacement 0 lies in a place.
    pub zero: i64,
    /// Elements at a place.
    pub count: i64,
    /// What they are.
    pub datatype: Type,
}

impl Data for Typed {
    type Only<'a> = Origin<'a>;
    type Room<'a> = Destination<'a>;

    #[inline]
    fn origin(&self, place: usize) -> Origin<'_> {
        let memory = &self.memory[place * self.span..][..self.span];
        Origin::typed(memory, self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn rooms(&mut self) -> impl Iterator<Item = Destination<'_>> {
        let (count, datatype, zero) = (self.count, &self.datatype, self.zero);
        self.memory
            .chunks_mut(self.span)
            .map(move |memory| Destination::typed(memory, count, datatype).at(zero))
    }

    #[inline]
    fn only(&self) -> Origin<'_> {
        Origin::typed(&self.memory[..], self.count, &self.datatype).at(self.zero)
    }

    #[inline]
    fn room(&mut self) -> Destination<'_> {
        Destination::typed(&mut self.memory[..], self.count, &self.datatype).at(self.zero)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}
