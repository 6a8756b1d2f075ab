//! A rank's own window memory, by accessors that copy: others may write it at any time.

use shipable::Element;

use super::core::Core;
use crate::buffer::Codec;
use crate::error::{ErrorKind, Result};
use crate::memory::zeroed;

/// A rank's own memory of a window. Displacements count the window's displacement unit, as in a put.
///
/// Elements are read and written in the rank's representation: on a rank that emulates another architecture, a `set` of an
/// `i32` stores that machine's bytes.
#[derive(Clone, Copy)]
pub struct Local<'w> {
    core: &'w Core,
}

impl<'w> Local<'w> {
    pub(super) fn new(core: &'w Core) -> Local<'w> {
        Local { core }
    }

    /// The element at a displacement.
    ///
    /// # Errors
    /// DISP, RMA_RANGE outside of the window; CONVERSION for a value that `T` can't hold.
    pub fn get<T: Element>(&self, displacement: i64) -> Result<T> {
        let mut value = [zeroed::<T>()];
        self.read(displacement, &mut value)?;
        Ok(value[0])
    }

    /// Replaces the element at a displacement.
    ///
    /// # Errors
    /// DISP, RMA_RANGE outside of the window; CONVERSION for a value that the rank's representation can't hold.
    pub fn set<T: Element>(&self, displacement: i64, value: T) -> Result<()> {
        self.write(displacement, &[value])
    }

    /// Reads as many elements as `values` has, one extent apart.
    ///
    /// # Errors
    /// As [`get`](Local::get).
    pub fn read<T: Element>(&self, displacement: i64, values: &mut [T]) -> Result<()> {
        let codec = self.codec::<T>()?;
        let at = self.offset(displacement, values.len(), codec.extent())?;
        codec.read(self.core.exposed.span(), at, values)
    }

    /// Writes elements, one extent apart.
    ///
    /// # Errors
    /// As [`set`](Local::set).
    pub fn write<T: Element>(&self, displacement: i64, values: &[T]) -> Result<()> {
        let codec = self.codec::<T>()?;
        let at = self.offset(displacement, values.len(), codec.extent())?;
        self.core.stored.set(true);
        codec.write(self.core.exposed.span(), at, values)
    }

    /// A copy of `len` bytes from byte `start` on, as they lie in memory.
    ///
    /// # Errors
    /// RMA_RANGE outside of the window.
    pub fn bytes(&self, start: u64, len: u64) -> Result<Vec<u8>> {
        let at = self.byte(start, len)?;
        let mut bytes = vec![0; len as usize];
        self.core.exposed.span().read(at, &mut bytes);
        Ok(bytes)
    }

    /// Replaces the bytes from byte `start` on.
    ///
    /// # Errors
    /// RMA_RANGE outside of the window.
    pub fn write_bytes(&self, start: u64, bytes: &[u8]) -> Result<()> {
        let at = self.byte(start, bytes.len() as u64)?;
        self.core.stored.set(true);
        self.core.exposed.span().write(at, bytes);
        Ok(())
    }

    fn byte(&self, start: u64, len: u64) -> Result<i64> {
        let (size, end) = (self.core.size(), i128::from(start) + i128::from(len));
        match i64::try_from(start) {
            Ok(at) if end <= i128::from(size) => Ok(at),
            _ => Err(self.outside(start.into(), end, start as i64, 1)),
        }
    }

    fn codec<T: Element>(&self) -> Result<Codec> {
        let process = &self.core.process;
        Codec::new::<T>(process.elements(), &process.me().architecture)
    }

    fn offset(&self, displacement: i64, count: usize, extent: i64) -> Result<i64> {
        if displacement < 0 {
            return Err(ErrorKind::Displacement(displacement).into());
        }
        let unit = self.core.unit();
        let start = i128::from(displacement) * i128::from(unit);
        let end = start + count as i128 * i128::from(extent);
        if end > i128::from(self.core.size()) {
            return Err(self.outside(start, end, displacement, unit));
        }
        i64::try_from(start).map_err(|_| ErrorKind::Displacement(displacement).into())
    }

    fn outside(&self, start: i128, end: i128, displacement: i64, unit: u32) -> crate::Error {
        let size = self.core.size();
        let error: crate::Error = ErrorKind::Range { start, end, size, displacement, unit }.into();
        error.at(|| self.core.place("access to the own window", None, Some((start, end))))
    }
}
