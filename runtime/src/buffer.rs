//! Typed memory in the rank's representation, and the conversion of its elements.

use std::marker::PhantomData;

use shipable::{Architecture, Element, Partial};

use crate::error::{ErrorKind, Result, conversion, excerpt};
use crate::memory::sealed::{Held, HeldSpan};
use crate::memory::{self, Loan, LoanMut, Memory, Scope, Span, zeroed};
use crate::types::{Elements, Type};

/// Elements in the representation of a rank, made by [`Rank::buffer`](crate::Rank::buffer).
///
/// Unless the rank emulates another architecture, the bytes are those of a `Vec<T>`. Otherwise they
/// are the bytes that the emulated machine would have in memory, including size and padding. The
/// accessors convert.
///
/// ```
/// let rank = longshore::init()?;
/// let mut temperatures = rank.buffer::<f64>(100)?;
/// temperatures.set(7, 21.5)?;
/// assert_eq!(temperatures.get(7)?, 21.5);
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Buffer<T> {
    bytes: Vec<u8>,
    len: usize,
    codec: Codec,
    elements: PhantomData<T>,
}

/// Converts elements between Rust values and memory in the representation of this or another rank.
#[derive(Clone)]
pub(crate) struct Codec {
    /// The type in slices: in the machine's representation.
    slices: Type,
    /// The type in the rank's memory.
    memory: Type,
    architecture: Architecture,
}

impl Codec {
    pub(crate) fn new<T: Element>(
        elements: &Elements,
        architecture: &Architecture,
    ) -> Result<Codec> {
        Ok(Codec {
            slices: elements.in_slices::<T>()?.clone(),
            memory: elements.on::<T>(architecture)?,
            architecture: *architecture,
        })
    }

    /// The extent of an element in memory.
    pub(crate) fn extent(&self) -> i64 {
        self.memory.extent()
    }

    /// Reads elements from displacement `at` of `memory`, which must cover them.
    pub(crate) fn read<T: Element>(&self, memory: Span, at: i64, values: &mut [T]) -> Result<()> {
        let count = values.len() as u64;
        Scope::with(|scope| {
            let values = scope.lend_mut(LoanMut::new(values));
            self.convert((memory, at, &self.memory), (values, 0, &self.slices), count)
        })
    }

    /// Writes elements from displacement `at` of `memory`, which must cover them.
    pub(crate) fn write<T: Element>(&self, memory: Span, at: i64, values: &[T]) -> Result<()> {
        let count = values.len() as u64;
        Scope::with(|scope| {
            let values = scope.lend(Loan::new(values));
            self.convert((values, 0, &self.slices), (memory, at, &self.memory), count)
        })
    }

    /// Converts by packing and unpacking in the rank's representation, a piece at a time.
    fn convert(&self, from: (Span, i64, &Type), to: (Span, i64, &Type), count: u64) -> Result<()> {
        let overflow = || shipable::Error::Overflow { what: "a displacement" };
        let source = from.0.shifted(from.1).ok_or_else(overflow)?;
        let target = to.0.shifted(to.1).ok_or_else(overflow)?;
        let packing = from.2.program(&self.architecture)?;
        let unpacking = to.2.program(&self.architecture)?;
        let (mut piece, mut position, mut partial) = ([0; 1024], 0, Partial::default());
        let length = packing.stream_length(count)?;
        while position < length {
            let packed = source.pack(&packing, count, position, &mut piece).map_err(conversion)?;
            target
                .unpack(&unpacking, count, position, &piece[..packed], &mut partial)
                .map_err(conversion)?;
            position += packed as u64;
        }
        Ok(())
    }
}

impl<T: Element> Buffer<T> {
    pub(crate) fn new(
        elements: &Elements,
        architecture: &Architecture,
        len: usize,
    ) -> Result<Buffer<T>> {
        let codec = Codec::new::<T>(elements, architecture)?;
        let extent = usize::try_from(codec.extent()).unwrap_or(usize::MAX);
        let bytes = extent.checked_mul(len).filter(|bytes| *bytes <= isize::MAX as usize);
        let too_large =
            || ErrorKind::TooLarge { count: len as u64, datatype: excerpt(&codec.memory) };
        let bytes = bytes.ok_or_else(too_large)?;
        Ok(Buffer { bytes: vec![0; bytes], len, codec, elements: PhantomData })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of an element in this memory.
    pub fn datatype(&self) -> &Type {
        &self.codec.memory
    }

    /// The bytes of the elements, in the rank's representation.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the elements, in the rank's representation, mutably.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn memory(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(crate) fn parts(&mut self) -> (&Type, &mut [u8]) {
        (&self.codec.memory, &mut self.bytes)
    }

    /// The element at `index`.
    ///
    /// # Errors
    /// BUFFER for an index past the end. CONVERSION for a value that `T` can't hold.
    pub fn get(&self, index: usize) -> Result<T> {
        let mut value = [zeroed::<T>()];
        self.read(index, &mut value)?;
        Ok(value[0])
    }

    /// Replaces the element at `index`.
    ///
    /// # Errors
    /// BUFFER for an index past the end. CONVERSION for a value that the rank's representation
    /// can't hold.
    pub fn set(&mut self, index: usize, value: T) -> Result<()> {
        self.write(index, &[value])
    }

    /// Reads the elements from `index` on.
    ///
    /// # Errors
    /// Those of [`get`](Buffer::get).
    pub fn read(&self, index: usize, values: &mut [T]) -> Result<()> {
        let at = self.offset(index, values.len())?;
        Scope::with(|scope| self.codec.read(scope.lend(Loan::new(&self.bytes)), at, values))
    }

    /// Writes the elements from `index` on.
    ///
    /// # Errors
    /// Those of [`set`](Buffer::set).
    pub fn write(&mut self, index: usize, values: &[T]) -> Result<()> {
        let at = self.offset(index, values.len())?;
        let codec = &self.codec;
        let bytes = &mut self.bytes[..];
        Scope::with(|scope| codec.write(scope.lend_mut(LoanMut::new(bytes)), at, values))
    }

    /// All elements, converted to `T`.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let mut values = rank.buffer::<i32>(4)?;
    /// values.write(1, &[10, 20])?;
    /// let mut two = [0; 2];
    /// values.read(2, &mut two)?;
    /// assert_eq!((two, values.to_vec()?), ([20, 0], vec![0, 10, 20, 0]));
    /// assert!(values.len() == 4 && !values.is_empty());
    /// // The bytes are in the rank's representation.
    /// values.bytes_mut().fill(0);
    /// assert_eq!(values.bytes().len() as i64, 4 * values.datatype().extent());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// CONVERSION for a value that `T` can't hold.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut values = vec![zeroed::<T>(); self.len];
        self.read(0, &mut values)?;
        Ok(values)
    }

    /// The elements one after the other, converted to `T`.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let values = rank.buffer_from(&[1i64, 2, 3])?;
    /// let mut sum = 0;
    /// for value in values.iter() {
    ///     sum += value?;
    /// }
    /// assert_eq!((sum, values.iter().len(), values.iter().rev().next().unwrap()?), (6, 3, 3));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// An item is CONVERSION for a value that `T` can't hold. The next item is the next element.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = Result<T>> + ExactSizeIterator + use<'_, T> {
        (0..self.len).map(|index| self.get(index))
    }

    fn offset(&self, index: usize, count: usize) -> Result<i64> {
        let extent = self.codec.extent();
        if index <= self.len && count <= self.len - index {
            return Ok(index as i64 * extent);
        }
        let start = index as i128 * i128::from(extent);
        Err(ErrorKind::Buffer {
            count: count as i64,
            datatype: excerpt(&self.codec.memory),
            start,
            end: start + count as i128 * i128::from(extent),
            size: self.bytes.len() as u64,
        }
        .into())
    }
}

impl<T: Element + Send> Memory for Buffer<T> {}

impl<T: Element + Send> Held for Buffer<T> {
    fn elements(&self) -> memory::Elements {
        memory::Elements::Typed { count: self.len() as i64, datatype: self.datatype().clone() }
    }
    type Held = Buffer<T>;
    fn hold(self) -> Result<Buffer<T>> {
        Ok(self)
    }
    fn give_back(held: Buffer<T>) -> Buffer<T> {
        held
    }
    fn span_of(held: &mut Buffer<T>) -> HeldSpan {
        Vec::span_of(held.memory())
    }
    fn native_element() -> Option<usize> {
        None
    }
}
