//! A [`Span`]: memory without a lifetime, the operations of programs on it, and plain copies of it.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use longshore_transport::peer_memory::NearRun;
use longshore_transport::{Access, Offer, PeerMemory, Rdma, Transfer};
use nix::libc;
use shipable::program::{Strided, copy, copy_in};
use shipable::{Architecture, Committed, Element, Partial, Program, View, ViewMut};
use smallvec::SmallVec;

use crate::pool;

/// Memory that an operation reads or writes: its start, its length, and the position of
/// displacement 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(super) start: *mut u8,
    pub(super) len: u64,
    /// Bytes from the start to displacement 0, which may be outside the memory.
    pub(super) origin: i64,
}

// SAFETY: a span is an address and two numbers. The rules in the module's header make its use
// sound, and they hold on every thread.
unsafe impl Send for Span {}
// SAFETY: a shared span gives only copies of its fields, and every copy is subject to the same
// rules.
unsafe impl Sync for Span {}

impl Span {
    /// No memory.
    pub(crate) const EMPTY: Span = Span { start: std::ptr::null_mut(), len: 0, origin: 0 };

    pub(super) fn of<T>(start: *mut T, elements: usize) -> Span {
        Span { start: start.cast(), len: elements as u64 * size_of::<T>() as u64, origin: 0 }
    }

    /// Memory that a user points to. Displacement 0 is at `place`, and the elements are between
    /// displacements `start` and `end`, perhaps with gaps that belong to others. The span is empty
    /// if no memory is that large.
    #[inline]
    pub(crate) fn around(place: *mut u8, start: i64, end: i64) -> Span {
        let len = end.checked_sub(start).and_then(|len| isize::try_from(len).ok());
        match (isize::try_from(start), len) {
            (Ok(first), Some(len)) => {
                Span { start: place.wrapping_offset(first), len: len as u64, origin: -start }
            }
            _ => Span { start: place, len: 0, origin: 0 },
        }
    }

    /// Its length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// `len` bytes of the memory, from byte `start` on; `None` if it ends before.
    #[inline]
    pub(crate) fn part(&self, start: u64, len: u64) -> Option<Span> {
        if len > self.len || start > self.len - len {
            return None;
        }
        // A number within the memory fits.
        Some(Span { start: self.start.wrapping_add(start as usize), len, origin: 0 })
    }

    /// `len` bytes of the memory, from displacement `at` on; `None` if it doesn't have them.
    #[inline]
    pub(crate) fn part_at(self, at: i64, len: u64) -> Option<Span> {
        // A negative place is a number above every length.
        self.part(self.origin.checked_add(at)? as u64, len)
    }

    /// The addresses of its bytes.
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = self.start.addr();
        start..start.saturating_add(self.len as usize)
    }

    /// The address of its first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The address of a displacement, which may lie outside of the memory.
    pub(crate) fn address(&self, at: i64) -> *mut u8 {
        self.start.wrapping_offset(self.origin.wrapping_add(at) as isize)
    }

    /// Moves displacement 0 to displacement `by`; `None` if that overflows.
    #[inline]
    pub(crate) fn shifted(self, by: i64) -> Option<Span> {
        Some(Span { origin: self.origin.checked_add(by)?, ..self })
    }

    /// An access to a peer's memory from or to `len` bytes of this span, one run of elements from
    /// displacement `start` on. `None` if the span doesn't have them. The transfer must be dropped
    /// before the span's memory is given up.
    pub(crate) fn transfer(
        &self,
        rdma: &Arc<dyn Rdma>,
        start: i64,
        len: usize,
    ) -> Option<Transfer> {
        let end = start.checked_add_unsigned(len as u64)?;
        let at = usize::try_from(start.checked_add(self.origin)?).ok()?;
        let place =
            NonNull::new(self.start.wrapping_add(at)).filter(|_| self.covers(start, end))?;
        // SAFETY: the bytes are one run of elements within the span, as checked. By the module's
        // rules its memory is alive and used by nobody else while the span is held. The transfer is
        // dropped before.
        Some(unsafe { Transfer::of_memory(rdma, place, len) })
    }

    /// Lets the system write `len` bytes, from displacement `at` on, to a file.
    pub(crate) fn write_to(self, at: i64, len: u64, file: &File, offset: u64) -> io::Result<usize> {
        let (part, len, offset) = self.for_file(at, len, offset)?;
        // SAFETY: the bytes are in the span's memory, as checked, which the module's rules keep
        // alive. The system copies them, as another process would: nothing here has a reference.
        let written = unsafe {
            libc::pwrite64(file.as_raw_fd(), part.start.cast_const().cast(), len, offset)
        };
        usize::try_from(written).map_err(|_| io::Error::last_os_error())
    }

    /// Lets the system read `len` bytes of a file to displacement `at`.
    pub(crate) fn read_from(
        self,
        at: i64,
        len: u64,
        file: &File,
        offset: u64,
    ) -> io::Result<usize> {
        let (part, len, offset) = self.for_file(at, len, offset)?;
        // SAFETY: as for `write_to`. The memory is a window's, which may be written.
        let read = unsafe { libc::pread64(file.as_raw_fd(), part.start.cast(), len, offset) };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }

    /// A part of the memory, its length and an offset in a file, as the system takes them.
    fn for_file(self, at: i64, len: u64, offset: u64) -> io::Result<(Span, usize, i64)> {
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        let part = self.part_at(at, len).ok_or_else(outside)?;
        let numbers = (usize::try_from(len), i64::try_from(offset));
        let (Ok(len), Ok(offset)) = numbers else { return Err(outside()) };
        Ok((part, len, offset))
    }

    /// Whether all bytes between two displacements are in its memory.
    #[inline]
    pub(crate) fn covers(&self, start: i64, end: i64) -> bool {
        self.view().is_some_and(|view| view.covers(start, end).is_ok())
    }

    /// The bytes of one run of elements, from displacement `at` on, for the system to read. `None`
    /// if the memory doesn't have them.
    #[inline]
    pub(crate) fn bytes_at(&self, at: i64, len: u64) -> Option<&[u8]> {
        let (start, len) = (self.part_at(at, len)?.start, usize::try_from(len).ok()?);
        if len == 0 {
            // Perhaps at a null pointer.
            return Some(&[]);
        }
        // SAFETY: the bytes are in the span's memory, as checked, and are of elements, so they are
        // initialized. By the fifth rule of the module, nobody writes them meanwhile.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The bytes of one run of elements, from displacement `at` on, for the system to write. `None`
    /// if the memory doesn't have them.
    #[inline]
    pub(crate) fn bytes_at_mut(&mut self, at: i64, len: u64) -> Option<&mut [u8]> {
        let (start, len) = (self.part_at(at, len)?.start, usize::try_from(len).ok()?);
        if len == 0 {
            // Perhaps at a null pointer.
            return Some(&mut []);
        }
        // SAFETY: the bytes are in the span's memory, as checked. By the fifth rule of the module,
        // nobody else uses them while the slice is there. Every bit pattern is a byte.
        (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    #[inline]
    pub(super) fn view<'a>(self) -> Option<View<'a>> {
        // SAFETY: by the module's rules, the bytes of a span's elements are alive while the span is
        // held. Only the lender has a reference to them, and lent it shared, or exclusively to this
        // span's holder. Programs access no gaps between elements.
        unsafe { View::from_raw(self.start, self.len) }.shifted(self.origin)
    }

    #[inline]
    pub(super) fn view_mut<'a>(self) -> Option<ViewMut<'a>> {
        // SAFETY: as for `view`, the bytes of the elements are alive while the span is held. Spans
        // that are written to come from windows, from exclusive loans, or from pointers whose
        // unsafe call promises exclusive access.
        unsafe { ViewMut::from_raw(self.start, self.len) }.shifted(self.origin)
    }

    /// Packs elements; see [`Program::pack`].
    pub(crate) fn pack(
        self,
        program: &Program,
        count: u64,
        position: u64,
        out: &mut [u8],
    ) -> shipable::Result<usize> {
        let run = short_run(program, count, position, out.len());
        if run.is_some_and(|start| self.read(start, out)) {
            return Ok(out.len());
        }
        let memory = self.view().ok_or(OVERFLOW)?;
        match pool::of(program, out.len() as u64) {
            Some(pool) => program.pack_in(pool, count, memory, position, out),
            None => program.pack(count, memory, position, out),
        }
    }

    /// Unpacks elements; see [`Program::unpack`].
    pub(crate) fn unpack(
        self,
        program: &Program,
        count: u64,
        position: u64,
        input: &[u8],
        partial: &mut Partial,
    ) -> shipable::Result<()> {
        let run = short_run(program, count, position, input.len());
        if run.is_some_and(|start| self.write(start, input)) {
            return Ok(());
        }
        let memory = self.view_mut().ok_or(OVERFLOW)?;
        match pool::of(program, input.len() as u64) {
            Some(pool) => program.unpack_in(pool, count, memory, position, input, partial),
            None => program.unpack(count, memory, position, input, partial),
        }
    }

    /// Packs elements to a position; see [`Committed::pack`].
    pub(crate) fn pack_to(
        self,
        datatype: &Committed,
        count: u64,
        packed: &mut [u8],
        position: &mut u64,
        representation: &Architecture,
    ) -> shipable::Result<()> {
        let memory = self.view().ok_or(OVERFLOW)?;
        let pool = pool::of_bytes(packed.len() as u64);
        datatype.pack_in(pool, memory, count, packed, position, representation)
    }

    /// Unpacks elements from a position; see [`Committed::unpack`].
    pub(crate) fn unpack_from(
        self,
        datatype: &Committed,
        count: u64,
        packed: &[u8],
        position: &mut u64,
        representation: &Architecture,
    ) -> shipable::Result<()> {
        let memory = self.view_mut().ok_or(OVERFLOW)?;
        let pool = pool::of_bytes(packed.len() as u64);
        datatype.unpack_in(pool, packed, position, memory, count, representation)
    }

    /// Copies typed memory to typed memory; see [`copy`]. Threads may divide it if `divided`.
    pub(crate) fn copy(from: Typed<'_>, to: Typed<'_>, divided: bool) -> shipable::Result<()> {
        let (source, target) = ((from.program, from.count), (to.program, to.count));
        let length = source.0.stream_size().saturating_mul(source.1);
        let from = from.span.view().ok_or(OVERFLOW)?;
        let to = to.span.view_mut().ok_or(OVERFLOW)?;
        match pool::of(target.0, length).filter(|_| divided) {
            Some(pool) => copy_in(pool, source, from, target, to),
            None => copy(source.0, source.1, from, target.0, target.1, to),
        }
    }

    /// Copies elements to the same displacements of other memory; see [`Program::mirror`].
    /// Threads may divide it if `divided`.
    pub(crate) fn mirror(
        program: &Program,
        count: u64,
        from: Span,
        to: Span,
        divided: bool,
    ) -> shipable::Result<()> {
        let (from, to) = (from.view().ok_or(OVERFLOW)?, to.view_mut().ok_or(OVERFLOW)?);
        match pool::of(program, program.stream_size().saturating_mul(count)).filter(|_| divided) {
            Some(pool) => program.mirror_in(pool, count, from, to),
            None => program.mirror(count, from, to),
        }
    }

    /// Copies strided runs; see [`Strided::carry_out`]. Returns false, and copies nothing, if
    /// either memory doesn't have all runs.
    #[inline]
    pub(crate) fn copy_strided(strided: &Strided, from: Span, to: Span) -> bool {
        match (from.view(), to.view_mut()) {
            (Some(from), Some(mut to)) => strided.carry_out(from, &mut to).is_ok(),
            _ => false,
        }
    }

    /// The value at a displacement, if the memory has it.
    #[inline]
    pub(crate) fn peek<T: Element>(self, at: i64) -> Option<T> {
        let at = self.origin.checked_add(at)?;
        if at < 0 || (self.len as i64).checked_sub(at)? < size_of::<T>() as i64 {
            return None;
        }
        let place = self.start.wrapping_add(at as usize);
        // SAFETY: the bytes are in the span's memory, as checked, which the module's rules keep
        // alive. Every bit pattern is a value of an `Element`.
        Some(unsafe { shipable::kernels::load_value(place) })
    }

    /// Replaces the value at a displacement by the one in `new`, if `replaces` says so of it.
    /// Returns the earlier value, or `None` if either memory doesn't have one.
    #[inline(always)]
    pub(crate) fn replace_if<T: Element>(
        self,
        at: i64,
        new: Span,
        replaces: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        // A negative place is a number above every length.
        let at = self.origin.checked_add(at)? as u64;
        let size = size_of::<T>() as u64;
        if at.checked_add(size)? > self.len || new.origin != 0 || new.len < size {
            return None;
        }
        let place = self.start.wrapping_add(at as usize);
        // SAFETY: the bytes are in the span's memory, as checked, which the module's rules keep
        // alive. Every bit pattern is a value of an `Element`.
        let old = unsafe { shipable::kernels::load_value(place) };
        if replaces(&old) {
            // SAFETY: as above, for the bytes of `new` as well.
            unsafe { shipable::kernels::copy_run(new.start, place, size_of::<T>()) };
        }
        Some(old)
    }

    /// Its first byte and its length, if that byte is at displacement 0.
    #[inline]
    pub(crate) fn at_zero(self) -> Option<(*mut u8, u64)> {
        (self.origin == 0).then_some((self.start, self.len))
    }

    /// Copies `len` bytes from displacement `from_at` of `from` to displacement `at` of this span.
    /// Returns false, and copies nothing, if either memory doesn't have them. A naturally aligned
    /// copy of 8 bytes doesn't tear.
    #[inline]
    pub(crate) fn copy_run(self, at: i64, from: Span, from_at: i64, len: u64) -> bool {
        let (Some(to_at), Some(from_at)) =
            (self.origin.checked_add(at), from.origin.checked_add(from_at))
        else {
            return false;
        };
        // A negative place is a number above every length.
        let inside = |at: i64, of: u64| at as u64 <= of && len <= of - at as u64;
        if !inside(to_at, self.len) || !inside(from_at, from.len) {
            return false;
        }
        let to = self.start.wrapping_add(to_at as usize);
        let from = from.start.wrapping_add(from_at as usize);
        // SAFETY: both are runs of elements within their spans' memory, as checked, which the
        // module's rules keep alive.
        unsafe { shipable::kernels::copy_run(from, to, len as usize) };
        true
    }

    /// Copies as many bytes to this span as it has. By the module's rules there are as many at
    /// `from`.
    #[inline]
    pub(crate) fn fill_from(self, from: *const u8) {
        // SAFETY: both are runs of elements, which the module's rules keep alive.
        unsafe { shipable::kernels::copy_run(from, self.start, self.len as usize) };
    }

    /// Copies all bytes of this span. By the module's rules there is room for them at `to`.
    #[inline]
    pub(crate) fn copy_to(self, to: *mut u8) {
        // SAFETY: both are runs of elements, which the module's rules keep alive.
        unsafe { shipable::kernels::copy_run(self.start, to, self.len as usize) };
    }

    /// Runs `body` on the span of a slice, which must not outlive the call.
    pub(crate) fn with_slice<T: Element, R>(values: &[T], body: impl FnOnce(Span) -> R) -> R {
        body(Span::of(values.as_ptr().cast_mut(), values.len()))
    }

    /// Runs `body` on the span of bytes that it may write, which must not outlive the call.
    pub(crate) fn with_bytes<R>(bytes: &mut [u8], body: impl FnOnce(Span) -> R) -> R {
        body(Span::of(bytes.as_mut_ptr(), bytes.len()))
    }

    /// Copies bytes into the memory, from displacement `at` on. Returns false if the memory is too
    /// short.
    #[inline]
    pub(crate) fn write(self, at: i64, bytes: &[u8]) -> bool {
        let from = Span::of(bytes.as_ptr().cast_mut(), bytes.len());
        self.copy_run(at, from, 0, from.len)
    }

    /// Copies bytes out of the memory, from displacement `at` on. Returns false if the memory is
    /// too short.
    #[inline]
    pub(crate) fn read(self, at: i64, bytes: &mut [u8]) -> bool {
        let to = Span::of(bytes.as_mut_ptr(), bytes.len());
        to.copy_run(0, self, at, to.len)
    }
}

/// The displacement of the first byte, if elements are one run that is copied, and `len` bytes from
/// a position on are all of it. No thread divides so short a copy.
#[inline]
fn short_run(program: &Program, count: u64, position: u64, len: usize) -> Option<i64> {
    const LONGEST: usize = 4096;
    let is_whole = || program.stream_length(count) == Ok(len as u64);
    let start = program.contiguous(count).filter(|_| position == 0 && len <= LONGEST);
    start.filter(|_| is_whole())
}

pub(super) const OVERFLOW: shipable::Error = shipable::Error::Overflow { what: "a displacement" };

/// Elements in memory, as a program accesses them.
pub(crate) struct Typed<'a> {
    pub program: &'a Program,
    pub count: u64,
    pub span: Span,
}

/// This rank's side of a copy: runs of elements in memory, by displacement and length.
pub(crate) struct Side<'a> {
    pub span: Span,
    pub runs: &'a [(i64, u64)],
}

impl Side<'_> {
    /// Lets the system copy between these runs and runs of a peer's memory, by address and length;
    /// see [`PeerMemory::copy`]. Returns false if it didn't copy all bytes.
    pub(crate) fn exchange(
        &self,
        memory: &PeerMemory,
        peer: u32,
        access: Access,
        far: &[(u64, u64)],
    ) -> bool {
        let Some(near) = self.near() else { return false };
        // SAFETY: the runs are of elements within the span, as checked. By the module's rules its
        // memory is alive while the span is held, and lent for this access.
        unsafe { memory.copy(peer, access, &near, far) }
    }

    /// Lets the system copy memory that a peer has offered into these runs, from byte `position` of
    /// the offer on; see [`PeerMemory::take`]. Returns false if the bytes don't count.
    pub(crate) fn take(
        &self,
        memory: &PeerMemory,
        peer: u32,
        offer: &Offer,
        position: u64,
    ) -> bool {
        let Some(near) = self.near() else { return false };
        // SAFETY: as in `exchange`. The memory is lent for writing.
        unsafe { memory.take(peer, offer, position, &near) }
    }

    /// The runs in this process; `None` if one isn't within the memory.
    fn near(&self) -> Option<SmallVec<[NearRun; 4]>> {
        let place = |&(at, len): &(i64, u64)| {
            let end = at.checked_add_unsigned(len).filter(|end| self.span.covers(at, *end));
            let start = end.and_then(|_| NonNull::new(self.span.address(at)));
            Some((start?, usize::try_from(len).ok()?))
        };
        self.runs.iter().map(place).collect()
    }
}

/// An element whose bytes are all zero.
pub(crate) fn zeroed<T: Element>() -> T {
    // SAFETY: every bit pattern is a value of an `Element`.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places before and behind the memory are refused, those whose sum wraps as well.
    #[test]
    fn accesses_stay_inside_the_memory() {
        let mut values = [1u64, 2, 3];
        let memory = Span::of(values.as_mut_ptr(), values.len());
        let one = Span { len: 8, ..memory };
        let outside = [-1, -8, i64::MIN, i64::MIN + 8, 17, 24, 25, i64::MAX - 7, i64::MAX];
        for at in outside {
            assert_eq!(memory.peek::<u64>(at), None, "{at}");
            assert_eq!(memory.replace_if::<u64>(at, one, |_| true), None, "{at}");
            assert!(!memory.copy_run(at, one, 0, 8), "to {at}");
            assert!(!one.copy_run(0, memory, at, 8), "from {at}");
        }
        let moved = memory.shifted(-8).unwrap();
        for at in [i64::MIN, i64::MIN + 8, -16, 0, 7, 32 - 7] {
            assert_eq!(moved.peek::<u64>(at), None, "{at}");
            assert_eq!(moved.replace_if::<u64>(at, one, |_| true), None, "{at}");
            assert!(!moved.copy_run(at, one, 0, 8), "to {at}");
        }
        assert_eq!([8, 16, 24].map(|at| moved.peek::<u64>(at)), [Some(1), Some(2), Some(3)]);
        assert!(moved.copy_run(24, memory, 0, 8) && moved.copy_run(32, memory, 0, 0));
        assert!(!moved.copy_run(33, memory, 0, 0));
        assert_eq!(memory.peek::<u64>(16), Some(1));
    }

    #[test]
    fn a_value_is_replaced_only_if_it_should_be() {
        let (mut values, mut new) = ([1u32, 2], [7u32, 9]);
        let memory = Span::of(values.as_mut_ptr(), values.len());
        let new = Span::of(new.as_mut_ptr(), new.len());
        assert_eq!(memory.replace_if(4, new, |old: &u32| *old == 1), Some(2));
        assert_eq!(memory.peek::<u32>(4), Some(2));
        assert_eq!(memory.replace_if(4, new, |old: &u32| *old == 2), Some(2));
        assert_eq!([0, 4].map(|at| memory.peek::<u32>(at)), [Some(1), Some(7)]);
        // The new value isn't all there.
        assert_eq!(memory.replace_if::<u64>(0, Span { len: 7, ..new }, |_| true), None);
    }
}
