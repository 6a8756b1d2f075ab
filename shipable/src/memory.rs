//! Views: the memory that layout programs read and write, as a pointer, a checked length, and an
//! origin.
//!
//! A displacement is an `i64` in bytes, relative to the view's *origin*: the position that MPI
//! calls the buffer's address. A type with a negative lower bound reaches memory before the origin.
//! Code that moves data calls [`View::covers`] once to check its displacements, then computes
//! addresses without checks. Only this module and the kernels handle addresses.
//!
//! A view is not a slice: other processes may write a window's memory at any time, so no reference
//! to it ever exists. A program accesses only the bytes that its type map covers. The gaps between
//! them may be in use by other code.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

pub use crate::error::OutOfBounds;

/// Memory for reading.
///
/// ```
/// use shipable::memory::View;
/// let bytes = [0u8; 12];
/// let view = View::new(&bytes).with_origin(4);
/// assert_eq!(view.displacements(), -4..8);
/// assert!(view.covers(-4, 8).is_ok());
/// assert!(view.covers(0, 9).is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    raw: RawView,
    memory: PhantomData<&'a [u8]>,
}

/// Memory for writing and reading.
#[derive(Debug)]
pub struct ViewMut<'a> {
    raw: RawView,
    memory: PhantomData<&'a mut [u8]>,
}

/// The pointer, length and origin of a view.
///
/// Invariants: by the contracts of the constructors, the bytes of `start..start + len` that
/// programs access may be accessed through `start`; `len <= isize::MAX`; `origin` and `len -
/// origin` are representable as `i64`.
#[derive(Clone, Copy, Debug)]
struct RawView {
    start: *mut u8,
    len: usize,
    /// The offset of displacement 0 from `start`, in bytes.
    origin: i64,
}

impl RawView {
    #[inline]
    fn displacements(&self) -> Range<i64> {
        -self.origin..self.len as i64 - self.origin
    }

    #[inline]
    fn covers(&self, start: i64, end: i64) -> Result<(), OutOfBounds> {
        let memory = self.displacements();
        let is_inside = memory.start <= start && start <= end && end <= memory.end;
        if is_inside || start == end {
            return Ok(());
        }
        Err(OutOfBounds {
            reach_start: start,
            reach_end: end,
            memory_start: memory.start,
            memory_end: memory.end,
        })
    }

    #[inline]
    fn covers_bytes(&self, start: i64, count: usize) -> Result<(), OutOfBounds> {
        match i64::try_from(count).ok().and_then(|count| start.checked_add(count)) {
            Some(end) => self.covers(start, end),
            None => self.covers(i64::MIN, i64::MAX),
        }
    }

    /// The address of a displacement. It is in bounds if `covers` accepts the displacement.
    ///
    /// The arithmetic wraps, because displacement 0 itself may lie outside of the memory.
    #[inline]
    fn at(&self, displacement: i64) -> *mut u8 {
        self.start.wrapping_offset(self.origin.wrapping_add(displacement) as isize)
    }

    #[inline]
    fn with_origin(self, origin: u64) -> RawView {
        assert!(origin <= i64::MAX as u64, "origin {origin} is above i64::MAX");
        RawView { origin: origin as i64, ..self }
    }

    #[inline]
    fn shifted(self, by: i64) -> Option<RawView> {
        let origin = self.origin.checked_add(by)?;
        origin.checked_neg()?;
        (self.len as i64).checked_sub(origin)?;
        Some(RawView { origin, ..self })
    }
}

impl<'a> View<'a> {
    /// A view of `bytes`. Displacement 0 is its first byte.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> View<'a> {
        let raw = RawView { start: bytes.as_ptr().cast_mut(), len: bytes.len(), origin: 0 };
        View { raw, memory: PhantomData }
    }

    /// A view of `len` bytes from `start`. Displacement 0 is the first byte.
    ///
    /// # Safety
    ///
    /// `len` is at most `isize::MAX`. During `'a`, every byte that is read through the view, or
    /// through a copy of it, must be readable through `start` and initialised, and no `&mut`
    /// reference to it may be alive. Programs and kernels read only the bytes that their type map
    /// covers, never the gaps. Other code may write the bytes through pointers, other processes
    /// included: a racing read then returns any mixture of old and new bytes.
    #[inline]
    pub unsafe fn from_raw(start: *const u8, len: u64) -> View<'a> {
        let raw = RawView { start: start.cast_mut(), len: len as usize, origin: 0 };
        View { raw, memory: PhantomData }
    }

    /// This memory with displacement 0 at `origin` bytes after its start.
    ///
    /// # Panics
    ///
    /// If `origin` is above `i64::MAX`.
    #[inline]
    pub fn with_origin(self, origin: u64) -> View<'a> {
        View { raw: self.raw.with_origin(origin), ..self }
    }

    /// This memory with displacement 0 moved to displacement `by`. `None` if a displacement of the
    /// memory would not fit `i64`.
    #[inline]
    pub fn shifted(self, by: i64) -> Option<View<'a>> {
        Some(View { raw: self.raw.shifted(by)?, ..self })
    }

    /// The displacements of the view's memory.
    #[inline]
    pub fn displacements(&self) -> Range<i64> {
        self.raw.displacements()
    }

    /// Checks that all displacements in `start..end` are in the view's memory.
    #[inline]
    pub fn covers(&self, start: i64, end: i64) -> Result<(), OutOfBounds> {
        self.raw.covers(start, end)
    }

    /// The address of a displacement. Read it only if [`covers`](View::covers) accepts it.
    #[inline]
    pub fn at(&self, displacement: i64) -> *const u8 {
        self.raw.at(displacement)
    }

    /// Checks that `count` bytes from a displacement on are in the view's memory.
    #[inline]
    pub(crate) fn covers_bytes(&self, start: i64, count: usize) -> Result<(), OutOfBounds> {
        self.raw.covers_bytes(start, count)
    }
}

impl<'a> ViewMut<'a> {
    /// A view of `bytes`. Displacement 0 is its first byte.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> ViewMut<'a> {
        let raw = RawView { start: bytes.as_mut_ptr(), len: bytes.len(), origin: 0 };
        ViewMut { raw, memory: PhantomData }
    }

    /// A view of `len` bytes from `start`. Displacement 0 is the first byte.
    ///
    /// # Safety
    ///
    /// `len` is at most `isize::MAX`. During `'a`, every byte that is accessed through the view
    /// must be readable and writable through `start`, it must be initialised if it is read, and no
    /// reference to it may be alive. Programs and kernels access only the bytes that their type map
    /// covers, never the gaps. Other code may read and write the bytes through pointers, other
    /// processes included: racing writes leave any mixture of their bytes.
    #[inline]
    pub unsafe fn from_raw(start: *mut u8, len: u64) -> ViewMut<'a> {
        let raw = RawView { start, len: len as usize, origin: 0 };
        ViewMut { raw, memory: PhantomData }
    }

    /// This memory with displacement 0 at `origin` bytes after its start.
    ///
    /// # Panics
    ///
    /// If `origin` is above `i64::MAX`.
    #[inline]
    pub fn with_origin(self, origin: u64) -> ViewMut<'a> {
        ViewMut { raw: self.raw.with_origin(origin), ..self }
    }

    /// This memory with displacement 0 moved to displacement `by`. `None` if a displacement of the
    /// memory would not fit `i64`.
    #[inline]
    pub fn shifted(self, by: i64) -> Option<ViewMut<'a>> {
        Some(ViewMut { raw: self.raw.shifted(by)?, ..self })
    }

    /// This view, borrowed for a shorter lifetime.
    #[inline]
    pub fn reborrow(&mut self) -> ViewMut<'_> {
        ViewMut { raw: self.raw, memory: PhantomData }
    }

    /// This memory, to be accessed by several threads.
    #[inline]
    pub(crate) fn share(&mut self) -> SharedMemory<'_> {
        SharedMemory { raw: self.raw, memory: PhantomData }
    }

    /// This memory for reading.
    #[inline]
    pub fn as_view(&self) -> View<'_> {
        View { raw: self.raw, memory: PhantomData }
    }

    /// The displacements of the view's memory.
    #[inline]
    pub fn displacements(&self) -> Range<i64> {
        self.raw.displacements()
    }

    /// Checks that all displacements in `start..end` are in the view's memory.
    #[inline]
    pub fn covers(&self, start: i64, end: i64) -> Result<(), OutOfBounds> {
        self.raw.covers(start, end)
    }

    /// The address of a displacement. Access it only if [`covers`](ViewMut::covers) accepts it.
    #[inline]
    pub fn at(&mut self, displacement: i64) -> *mut u8 {
        self.raw.at(displacement)
    }

    /// Checks that `count` bytes from a displacement on are in the view's memory.
    #[inline]
    pub(crate) fn covers_bytes(&self, start: i64, count: usize) -> Result<(), OutOfBounds> {
        self.raw.covers_bytes(start, count)
    }
}

/// Memory whose bytes are divided among threads.
pub(crate) struct SharedMemory<'a> {
    raw: RawView,
    memory: PhantomData<&'a mut [u8]>,
}

impl SharedMemory<'_> {
    /// A view of all of the memory.
    ///
    /// # Safety
    ///
    /// While several of the views exist, each byte is accessed through one of them only.
    #[inline]
    pub(crate) unsafe fn view(&self) -> ViewMut<'_> {
        ViewMut { raw: self.raw, memory: PhantomData }
    }
}

impl<'a> From<&'a [u8]> for View<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> View<'a> {
        View::new(bytes)
    }
}

impl<'a> From<&'a mut [u8]> for ViewMut<'a> {
    #[inline]
    fn from(bytes: &'a mut [u8]) -> ViewMut<'a> {
        ViewMut::new(bytes)
    }
}

// SAFETY: a view only reads, like a shared slice; the constructors' contracts hold on every thread.
unsafe impl Send for View<'_> {}
// SAFETY: a view only reads, like a shared slice, so threads may share it.
unsafe impl Sync for View<'_> {}
// SAFETY: like an exclusive slice: writing takes `&mut self`, and only `as_view` and `reborrow`
// make copies, which borrow the view.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: it gives access only by way of `view`, whose callers promise to divide the bytes.
unsafe impl Sync for SharedMemory<'_> {}
// SAFETY: `&ViewMut` only allows reading, like a shared slice.
unsafe impl Sync for ViewMut<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_access_only_their_own_displacements() {
        let mut bytes = *b"abcdefgh";
        let mut view = ViewMut::new(&mut bytes).with_origin(3);
        assert_eq!(view.displacements(), -3..5);
        view.write(-3, b"AB").unwrap();
        view.write(4, b"H").unwrap();
        let mut found = [0; 3];
        view.read(-1, &mut found).unwrap();
        assert_eq!(&found, b"cde");
        for (at, count) in [(-4, 1), (4, 2), (-3, 9), (5, 1), (i64::MAX, 2), (i64::MIN, 1)] {
            assert!(view.write(at, &b"123456789"[..count]).is_err(), "{at} {count}");
            assert!(view.as_view().read(at, &mut [0; 9][..count]).is_err(), "{at} {count}");
        }
        assert_eq!(&bytes, b"ABcdefgH");
    }

    #[test]
    fn empty_ranges_are_always_covered_and_reversed_ranges_never() {
        let view = View::new(&[0; 8]);
        assert!(view.covers(100, 100).is_ok());
        assert!(view.covers(6, 2).is_err());
        let refused = view.covers(6, 9).unwrap_err();
        assert_eq!(refused.to_string(), "displacements 6..9 reach outside of the memory's 0..8");
    }

    #[test]
    fn shifting_an_origin_fails_only_if_displacements_leave_i64() {
        let view = View::new(&[0; 8]);
        assert_eq!(view.shifted(2).unwrap().displacements(), -2..6);
        assert_eq!(view.shifted(-100).unwrap().displacements(), 100..108);
        assert!(view.shifted(i64::MIN).is_none());
        assert!(view.shifted(i64::MAX - 8).unwrap().shifted(i64::MAX).is_none());
        let far = view.shifted(-i64::MAX + 8).unwrap();
        assert_eq!(far.displacements().end, i64::MAX);
        assert!(far.covers(i64::MAX - 1, i64::MAX).is_ok());
    }
}
