//! Joins memory to programs: the one module of this crate with unsafe code.
//!
//! A [`Span`] is memory without a lifetime, so that the engine can hold it while an operation is under way. Four things
//! make its use sound:
//!
//! - memory of windows is held by the [`Exposed`] that gave the span, and whoever keeps the span keeps that too;
//! - memory that a user lends is lent in a [`scope`], whose drain lets go of every span before the scope ends, whatever
//!   the body does: return, fail, panic, or leak what it was given;
//! - memory that a user points to ([`raw`](crate::raw)) is theirs to keep until the operation is complete, as the
//!   unsafe call's contract says;
//! - a span's bytes are reached by pointers with a checked length, never as a slice: others may write them at any time.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use longshore_transport::{Mapping, Rdma, Registration, Transfer};
use nix::sys::mman::{MmapAdvise, madvise};
use nix::unistd::{SysconfVar, sysconf};
use shipable::program::{Strided, copy};
use shipable::reduce::{Carry, Reduction, Sides, Stage, Swap};
use shipable::{Architecture, Committed, Element, Partial, Program, View, ViewMut};

use crate::buffer::Buffer;
use crate::error::Result;
use crate::origin::ElementType;
use crate::types::Type;

/// Memory that an operation reads or writes: a start, a length, and where its displacement 0 lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: *mut u8,
    len: u64,
    /// Bytes from the start to displacement 0; it may lie outside.
    origin: i64,
}

// SAFETY: a span is an address and numbers; what makes its use sound (above) holds on every thread.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl Span {
    fn of<T>(start: *mut T, elements: usize) -> Span {
        Span { start: start.cast(), len: elements as u64 * size_of::<T>() as u64, origin: 0 }
    }

    /// A value's, to be read while it is borrowed.
    #[inline(always)]
    fn of_value<T: Element>(value: &T) -> Span {
        Span::of(std::ptr::from_ref(value).cast_mut(), 1)
    }

    /// Memory that a user points to: displacement 0 is at `place`, and there is memory from `start` to `end` of it. None where
    /// no memory is that large.
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

    /// Where it starts.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// The same memory, displacement 0 being where displacement `by` was; `None` where that leaves `i64`.
    #[inline]
    pub(crate) fn shifted(self, by: i64) -> Option<Span> {
        Some(Span { origin: self.origin.checked_add(by)?, ..self })
    }

    /// An access to a peer's memory from or to these displacements, while the span is held; `None` where they aren't its memory.
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
        // SAFETY: all of it is the span's memory, which is alive and nobody else's as long as the span is held, by the module's
        // rules; the transfer is dropped before.
        Some(unsafe { Transfer::of_memory(rdma, place, len) })
    }

    /// Whether these displacements are its memory.
    #[inline]
    pub(crate) fn covers(&self, start: i64, end: i64) -> bool {
        self.view().is_some_and(|view| view.covers(start, end).is_ok())
    }

    #[inline]
    fn view<'a>(self) -> Option<View<'a>> {
        // SAFETY: a span's memory is alive as long as the span is held, by the module's rules, and nobody has a
        // reference to it but the lender, who lent it shared, or exclusively to this span's holder.
        unsafe { View::from_raw(self.start, self.len) }.shifted(self.origin)
    }

    #[inline]
    fn view_mut<'a>(self) -> Option<ViewMut<'a>> {
        // SAFETY: as above; spans that are written to come from windows or from exclusive loans.
        unsafe { ViewMut::from_raw(self.start, self.len) }.shifted(self.origin)
    }

    /// Packs, as [`Program::pack`].
    pub(crate) fn pack(
        self,
        program: &Program,
        count: u64,
        position: u64,
        out: &mut [u8],
    ) -> shipable::Result<usize> {
        program.pack(count, self.view().ok_or(OVERFLOW)?, position, out)
    }

    /// Unpacks, as [`Program::unpack`].
    pub(crate) fn unpack(
        self,
        program: &Program,
        count: u64,
        position: u64,
        input: &[u8],
        partial: &mut Partial,
    ) -> shipable::Result<()> {
        program.unpack(count, self.view_mut().ok_or(OVERFLOW)?, position, input, partial)
    }

    /// Packs to a position, as [`Committed::pack`].
    pub(crate) fn pack_to(
        self,
        datatype: &Committed,
        count: u64,
        packed: &mut [u8],
        position: &mut u64,
        representation: &Architecture,
    ) -> shipable::Result<()> {
        datatype.pack(self.view().ok_or(OVERFLOW)?, count, packed, position, representation)
    }

    /// Unpacks from a position, as [`Committed::unpack`].
    pub(crate) fn unpack_from(
        self,
        datatype: &Committed,
        count: u64,
        packed: &[u8],
        position: &mut u64,
        representation: &Architecture,
    ) -> shipable::Result<()> {
        datatype.unpack(packed, position, self.view_mut().ok_or(OVERFLOW)?, count, representation)
    }

    /// Copies typed memory to typed memory, as [`copy`].
    pub(crate) fn copy(from: Typed<'_>, to: Typed<'_>) -> shipable::Result<()> {
        copy(
            from.program,
            from.count,
            from.span.view().ok_or(OVERFLOW)?,
            to.program,
            to.count,
            to.span.view_mut().ok_or(OVERFLOW)?,
        )
    }

    /// Copies elements to the same places of other memory, as [`Program::mirror`].
    pub(crate) fn mirror(
        program: &Program,
        count: u64,
        from: Span,
        to: Span,
    ) -> shipable::Result<()> {
        program.mirror(count, from.view().ok_or(OVERFLOW)?, to.view_mut().ok_or(OVERFLOW)?)
    }

    /// As [`Strided::carry_out`]; false, and nothing done, where either memory hasn't got its runs.
    #[inline]
    pub(crate) fn copy_strided(strided: &Strided, from: Span, to: Span) -> bool {
        match (from.view(), to.view_mut()) {
            (Some(from), Some(mut to)) => strided.carry_out(from, &mut to).is_ok(),
            _ => false,
        }
    }

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

    /// Combines `bytes` of packed operands with the elements that lie one after the other from displacement `at` on, as
    /// [`Reduction::combine_packed`]. False, and nothing done, where either hasn't got them.
    #[inline(always)]
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

    /// Combines an operand with the element at displacement `at`, and gives what was there; none, and nothing done, where the memory hasn't
    /// got it.
    #[inline(always)]
    pub(crate) fn fetch<T: Element>(
        self,
        reduction: &Reduction,
        at: i64,
        operand: &T,
    ) -> Option<T> {
        let (operand, mut there) =
            (Span::of_value(operand).view()?, self.shifted(at).and_then(Span::view_mut)?);
        let old = self.peek(at)?;
        reduction.combine(operand, &mut there, 1).is_ok().then_some(old)
    }

    /// As [`Swap::apply`], of the element at displacement `at`; gives what was there, or none as [`fetch`](Span::fetch).
    #[inline(always)]
    pub(crate) fn compare_and_swap<T: Element>(
        self,
        swap: &Swap,
        at: i64,
        compare: &T,
        new: &T,
    ) -> Option<T> {
        let old = self.peek::<T>(at)?;
        let (compare, new) = (Span::of_value(compare), Span::of_value(new));
        self.swap_found(swap, at, compare, new, Span::of_value(&old)).then_some(old)
    }

    /// As [`Swap::apply`], of the element at displacement `at`; what was there goes to `old`. False, and nothing done, where any hasn't
    /// got it.
    pub(crate) fn swap_at(
        self,
        swap: &Swap,
        at: i64,
        [compare, new]: [Span; 2],
        old: Span,
    ) -> bool {
        old.copy_run(0, self, at, old.len) && self.swap_found(swap, at, compare, new, old)
    }

    /// The same, what was there having been found.
    #[inline(always)]
    fn swap_found(self, swap: &Swap, at: i64, compare: Span, new: Span, found: Span) -> bool {
        match (compare.word(), found.word()) {
            (Some(wanted), Some(found)) => {
                !swap.is_equal(wanted, found) || self.copy_run(at, new, 0, new.len)
            }
            _ => self.swap_views(swap, at, compare, new),
        }
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

    /// Its bits, if it is as long as a word.
    #[inline(always)]
    fn word(self) -> Option<u64> {
        match self.len {
            8 => self.peek(0),
            4 => self.peek::<u32>(0).map(u64::from),
            2 => self.peek::<u16>(0).map(u64::from),
            1 => self.peek::<u8>(0).map(u64::from),
            _ => None,
        }
    }

    /// The value at a displacement, if the memory has it.
    #[inline(always)]
    pub(crate) fn peek<T: Element>(self, at: i64) -> Option<T> {
        let mut value = zeroed::<T>();
        let room = Span::of(&raw mut value, 1);
        room.copy_run(0, self, at, room.len).then_some(value)
    }

    /// Compares and swaps the element at displacement 0, as [`Swap::apply`].
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

    /// Copies `len` bytes from the start of `from` to displacement `at` of this; false, and nothing done, where either
    /// hasn't got them. Naturally aligned copies of 8 bytes don't tear.
    #[inline(always)]
    pub(crate) fn copy_run(self, at: i64, from: Span, from_at: i64, len: u64) -> bool {
        let (Some(to_at), Some(from_at)) =
            (self.origin.checked_add(at), from.origin.checked_add(from_at))
        else {
            return false;
        };
        let inside = |at: i64, of: u64| at >= 0 && at as u64 <= of && len <= of - at as u64;
        if !inside(to_at, self.len) || !inside(from_at, from.len) {
            return false;
        }
        // SAFETY: both runs lie inside of their spans' memory, alive by the module's rules.
        unsafe {
            let (to, from) = (self.start.add(to_at as usize), from.start.add(from_at as usize));
            shipable::kernels::copy_run(from, to, len as usize);
        }
        true
    }

    /// Gives the pages behind it back to the system, as far as it has whole ones: what they hold is lost.
    fn discard(self) {
        const WORTH: u64 = 1 << 20;
        if self.len < WORTH {
            return;
        }
        let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(1 << 16) as usize;
        let skip = self.start.align_offset(page);
        let pages = (self.len as usize).saturating_sub(skip) / page;
        if let Some(start) = NonNull::new(self.start.wrapping_add(skip).cast()) {
            // SAFETY: whole pages within the span, whose holder has the only access to it and is done with what it holds. They
            // stay mapped; where the system refuses, they stay as they are.
            let _ = unsafe { madvise(start, pages * page, MmapAdvise::MADV_DONTNEED) };
        }
    }

    /// Runs `body` on a span of a slice, which lasts as long.
    pub(crate) fn with_slice<T: Element, R>(values: &[T], body: impl FnOnce(Span) -> R) -> R {
        body(Span::of(values.as_ptr().cast_mut(), values.len()))
    }

    /// Copies bytes in, from displacement `at` on; false where it hasn't got that much.
    #[inline]
    pub(crate) fn write(self, at: i64, bytes: &[u8]) -> bool {
        let from = Span::of(bytes.as_ptr().cast_mut(), bytes.len());
        self.copy_run(at, from, 0, from.len)
    }

    /// Copies bytes out, likewise, from displacement `at` on.
    #[inline]
    pub(crate) fn read(self, at: i64, bytes: &mut [u8]) -> bool {
        let to = Span::of(bytes.as_mut_ptr(), bytes.len());
        to.copy_run(0, self, at, to.len)
    }
}

const OVERFLOW: shipable::Error = shipable::Error::Overflow { what: "a displacement" };

/// Elements in memory, as a program sees them.
pub(crate) struct Typed<'a> {
    pub program: &'a Program,
    pub count: u64,
    pub span: Span,
}

impl Typed<'_> {
    fn sides(&self) -> shipable::Result<Sides<'_>> {
        let memory = self.span.view_mut().ok_or(OVERFLOW)?;
        Ok(Sides { program: self.program, count: self.count, memory })
    }
}

/// A time in which memory may be lent to the engine; see [`scope`]. As in [`std::thread::scope`], `'scope` is longer than
/// the body and shorter than `'env`.
pub(crate) struct Scope<'scope, 'env: 'scope> {
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// A scope for a body that leaves no span anywhere: what it calls is done when it returns.
    pub(crate) fn with<'env, R>(body: impl for<'s> FnOnce(&'s Scope<'s, 'env>) -> R) -> R {
        body(&Scope { scope: PhantomData, env: PhantomData })
    }

    /// Lends memory to be read, for the rest of the scope.
    #[inline]
    pub(crate) fn lend(&self, loan: Loan<'scope>) -> Span {
        loan.span
    }

    /// Lends memory to be written, for the rest of the scope.
    #[inline]
    pub(crate) fn lend_mut(&self, loan: LoanMut<'scope>) -> Span {
        loan.span
    }
}

/// Runs `body` in a scope in which it may lend memory, then `drain`, which has to return only once nothing holds a span
/// that was lent; it is told whether the body panicked. The body's panic goes on after the drain; one of the drain ends
/// the process.
pub(crate) fn scope<'env, R>(
    drain: impl FnOnce(bool),
    body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
) -> R {
    let scope = Scope { scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let bomb = Bomb;
    drain(result.is_err());
    std::mem::forget(bomb);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Memory that is about to vanish may still be written to: nothing may run on.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// All stores before it are visible to all ranks before any load after it.
#[inline]
pub(crate) fn full_barrier() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it changes nothing: the word at the stack's end is the function's to read and write, and keeps its value. A
    // locked instruction is a full barrier and costs a quarter of mfence.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0", options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// An element of zero bytes.
pub(crate) fn zeroed<T: Element>() -> T {
    // SAFETY: every bit pattern is a value of an `Element`.
    unsafe { std::mem::zeroed() }
}

/// The same elements where every byte has been written: padding between members is zero. Elements without padding stay where
/// they are.
fn without_padding<T: Element>(elements: Vec<T>) -> Result<Vec<T>> {
    let committed = Committed::new(&T::datatype(), &Architecture::NATIVE)?;
    let program = committed.native();
    if program.stream_size() == size_of::<T>() as u64 {
        return Ok(elements);
    }
    let count = elements.len();
    let mut clean = Vec::<T>::with_capacity(count);
    // SAFETY: the capacity is there, and every bit pattern is a value of an `Element`.
    unsafe {
        clean.as_mut_ptr().write_bytes(0, count);
        clean.set_len(count);
    }
    let typed =
        |start: *mut T| Typed { program, count: count as u64, span: Span::of(start, count) };
    Span::copy(typed(elements.as_ptr().cast_mut()), typed(clean.as_mut_ptr()))?;
    Ok(clean)
}

/// Memory offered for reading.
#[derive(Clone, Copy)]
pub struct Loan<'a> {
    span: Span,
    lender: PhantomData<&'a [u8]>,
}

/// Memory offered for writing.
pub struct LoanMut<'a> {
    span: Span,
    lender: PhantomData<&'a mut [u8]>,
}

impl<'a> Loan<'a> {
    #[inline]
    pub(crate) fn new<T: Element>(memory: &'a [T]) -> Loan<'a> {
        Loan { span: Span::of(memory.as_ptr().cast_mut(), memory.len()), lender: PhantomData }
    }
}

impl Loan<'_> {
    /// Memory that a user points to, and keeps.
    pub(crate) fn pointed(span: Span) -> Self {
        Loan { span, lender: PhantomData }
    }
}

impl LoanMut<'_> {
    /// The same memory, for a shorter time.
    pub(crate) fn again(&mut self) -> LoanMut<'_> {
        LoanMut { span: self.span, lender: PhantomData }
    }

    /// Memory that a user points to, and keeps.
    pub(crate) fn pointed(span: Span) -> Self {
        LoanMut { span, lender: PhantomData }
    }
}

impl<'a> LoanMut<'a> {
    #[inline]
    pub(crate) fn new<T: Element>(memory: &'a mut [T]) -> LoanMut<'a> {
        LoanMut { span: Span::of(memory.as_mut_ptr(), memory.len()), lender: PhantomData }
    }
}

/// Memory that a window can be made over. It belongs to the window from `create` to `free`, which gives it back. Elements
/// with padding are copied once, since peers may ask for bytes and padding has none.
///
/// A vector or box holds elements in this machine's representation, so a rank that emulates another one takes it of bytes
/// only. A [`Buffer`] has the rank's own.
pub trait Memory: sealed::Held + Sized {}

impl<T: Element + Send> Memory for Vec<T> {}
impl<T: Element + Send> Memory for Box<[T]> {}
impl<T: Element + Send> Memory for Buffer<T> {}

/// The elements of memory that is all of one Rust type.
pub enum Elements {
    /// In the machine's representation.
    Slice {
        /// How many.
        count: u64,
        /// Of which type.
        element: ElementType,
    },
    /// In the rank's.
    Typed {
        /// How many.
        count: i64,
        /// Of which type.
        datatype: Type,
    },
}

/// What `Memory` needs of a type, out of users' sight.
pub(crate) mod sealed {
    use super::*;

    pub trait Held {
        /// Owns the memory without minding that others write it through pointers, as a box would.
        type Held: Any + Send;
        /// The memory, each byte of which has been written: peers can read every one.
        fn hold(self) -> Result<Self::Held>;
        fn give_back(held: Self::Held) -> Self;
        fn place(held: &mut Self::Held) -> Place;
        /// All that there is, as elements.
        fn elements(&self) -> Elements;
        /// The size of an element that is in the machine's representation; `None` where memory has the rank's.
        fn native_element() -> Option<usize>;
        /// Whether nobody has another way to it while it is held, so that its bytes may lie elsewhere.
        fn is_enclosed() -> bool {
            true
        }
    }

    /// A [`Span`], out of users' sight.
    pub struct Place(pub(crate) Span);

    impl<T: Element + Send> Held for Vec<T> {
        fn elements(&self) -> Elements {
            Elements::Slice { count: self.len() as u64, element: ElementType::of::<T>() }
        }
        type Held = Vec<T>;
        fn hold(self) -> Result<Vec<T>> {
            without_padding(self)
        }
        fn give_back(held: Vec<T>) -> Vec<T> {
            held
        }
        fn place(held: &mut Vec<T>) -> Place {
            Place(Span::of(held.as_mut_ptr(), held.len()))
        }
        fn native_element() -> Option<usize> {
            Some(size_of::<T>())
        }
    }

    impl<T: Element + Send> Held for Box<[T]> {
        fn elements(&self) -> Elements {
            Elements::Slice { count: self.len() as u64, element: ElementType::of::<T>() }
        }
        type Held = Vec<T>;
        fn hold(self) -> Result<Vec<T>> {
            without_padding(self.into_vec())
        }
        fn give_back(held: Vec<T>) -> Box<[T]> {
            held.into_boxed_slice()
        }
        fn place(held: &mut Vec<T>) -> Place {
            Vec::place(held)
        }
        fn native_element() -> Option<usize> {
            Vec::<T>::native_element()
        }
    }

    impl<T: Element + Send> Held for Buffer<T> {
        fn elements(&self) -> Elements {
            Elements::Typed { count: self.len() as i64, datatype: self.datatype().clone() }
        }
        type Held = Buffer<T>;
        fn hold(self) -> Result<Buffer<T>> {
            Ok(self)
        }
        fn give_back(held: Buffer<T>) -> Buffer<T> {
            held
        }
        fn place(held: &mut Buffer<T>) -> Place {
            Vec::place(held.memory())
        }
        fn native_element() -> Option<usize> {
            None
        }
    }
}

/// Room for an element of any type, zero at first.
#[derive(Default)]
pub(crate) struct Room(UnsafeCell<[u128; 2]>);

// SAFETY: its bytes are reached by spans alone, as the module's rules say.
unsafe impl Sync for Room {}

impl Room {
    /// The memory of an element of this type.
    pub(crate) fn span<T: Element>(&self) -> Span {
        const { assert!(size_of::<T>() <= size_of::<Room>()) };
        Span::of(self.0.get().cast::<T>(), 1)
    }
}

/// The memory of a window, held for as long as anything refers to it.
pub(crate) struct Exposed {
    span: Span,
    owner: Owner,
}

enum Owner {
    Segment {
        mapping: Arc<Mapping>,
    },
    User(Box<dyn Any + Send>),
    /// The user's, whose bytes are in a part of the segment for the time being.
    Moved {
        _mapping: Arc<Mapping>,
        held: Box<dyn Any + Send>,
        home: Span,
    },
}

impl Exposed {
    /// `len` bytes of what is mapped of the segment, from byte `start` on; fewer where that hasn't got them.
    pub(crate) fn allocated(mapping: Mapping, start: u64, len: u64) -> Exposed {
        let start = start.min(mapping.len() as u64);
        let len = len.min(mapping.len() as u64 - start);
        // No further than one past the end of what is mapped.
        let first = mapping.as_ptr().wrapping_add(start as usize);
        let span = Span { start: first, len, origin: 0 };
        Exposed { span, owner: Owner::Segment { mapping: Arc::new(mapping) } }
    }

    /// `len` bytes of a part of the segment, from byte `start` on, which keep all of it; `None` where it hasn't got them.
    pub(crate) fn part(&self, start: u64, len: u64) -> Option<Exposed> {
        let Owner::Segment { mapping } = &self.owner else { return None };
        if start > self.span.len || len > self.span.len - start {
            return None;
        }
        // No further than one past the end of what is mapped.
        let first = self.span.start.wrapping_add(start as usize);
        let owner = Owner::Segment { mapping: mapping.clone() };
        Some(Exposed { span: Span { start: first, len, origin: 0 }, owner })
    }

    /// Memory of the user.
    ///
    /// # Errors
    /// Elements that this machine can't represent.
    pub(crate) fn created<M: Memory>(memory: M) -> Result<Exposed> {
        let mut held = memory.hold()?;
        let span = M::place(&mut held).0;
        Ok(Exposed { span, owner: Owner::User(Box::new(held)) })
    }

    /// Memory of the user, its bytes moved to a part of the segment, which is as long at least, until they are
    /// [moved back](Exposed::moved_back). What held them keeps its addresses, and hardly any memory.
    pub(crate) fn moved_to(self, room: Exposed) -> Exposed {
        let (home, len) = (self.span, self.span.len);
        match (self.owner, room.owner) {
            (Owner::User(held), Owner::Segment { mapping }) if len <= room.span.len => {
                let span = Span { len, ..room.span };
                span.copy_run(0, home, 0, len);
                home.discard();
                Exposed { span, owner: Owner::Moved { _mapping: mapping, held, home } }
            }
            (owner, _) => Exposed { owner, ..self },
        }
    }

    /// The same memory where the user had it. Nobody reaches it any more.
    pub(crate) fn moved_back(self) -> Exposed {
        match self.owner {
            Owner::Moved { _mapping, held, home } => {
                home.copy_run(0, self.span, 0, home.len);
                Exposed { span: home, owner: Owner::User(held) }
            }
            owner => Exposed { owner, ..self },
        }
    }

    /// The user's memory back; `None` if it is of another type, or elsewhere.
    pub(crate) fn give_back<M: Memory>(self) -> Option<M> {
        match self.owner {
            Owner::User(held) => held.downcast::<M::Held>().ok().map(|held| M::give_back(*held)),
            Owner::Segment { .. } | Owner::Moved { .. } => None,
        }
    }

    /// Where the user had it: its addresses to the program. Not to be reached while its bytes are elsewhere.
    pub(crate) fn home(&self) -> Span {
        match self.owner {
            Owner::Moved { home, .. } => home,
            Owner::Segment { .. } | Owner::User(_) => self.span,
        }
    }

    /// The memory. Whoever keeps the span keeps this too.
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.span
    }
}

/// Memory that ranks of other hosts access directly until this is dropped. Fields are dropped in their order.
pub(crate) struct Registered {
    registration: Box<dyn Registration>,
    _memory: Arc<Exposed>,
}

impl Registered {
    /// Registers all of a window's memory, if it has any.
    ///
    /// # Errors
    /// The network refuses it.
    pub(crate) fn new(memory: &Arc<Exposed>, rdma: &dyn Rdma) -> Result<Option<Registered>> {
        let (span, memory) = (memory.span(), memory.clone());
        let (Some(start), Ok(len @ 1..)) = (NonNull::new(span.start), usize::try_from(span.len))
        else {
            return Ok(None);
        };
        // SAFETY: what is exposed stays where it is as long as it is held, which is longer than the registration, and is
        // reached by spans alone: nobody has a reference to it.
        let registration = unsafe { rdma.expose(start, len)? };
        Ok(Some(Registered { registration, _memory: memory }))
    }

    /// What peers name it by.
    pub(crate) fn key(&self) -> u64 {
        self.registration.key()
    }
}

// SAFETY: what it owns is `Send`, and through a shared reference it gives a span and nothing else.
unsafe impl Sync for Exposed {}
