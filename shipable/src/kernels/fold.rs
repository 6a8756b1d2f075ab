//! Folds: loops that combine packed operands with packed values in place, by the machine's own
//! instructions.
//!
//! They are keyed by width and operation, not by basic type: sums and bit operations in two's
//! complement need no sign. Each loop has a version for values in the other byte order. Loops over
//! single words have one more, for operands in the other byte order than the values. On x86 every
//! version is compiled for the baseline, for AVX2 and for AVX-512.
#![allow(unsafe_code)]

use std::marker::PhantomData;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::access::Avx2;
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::access::Avx512;
use super::access::{Baseline, Number, Set};
use super::loops::copy_run;
use crate::arch::{ByteOrder, FloatFormat, Scalar, Value};
use crate::memory::{OutOfBounds, View, ViewMut};
use crate::operation::Op;

/// A loop over packed elements. The arguments are the operands, the values that they are combined
/// with in place, and the number of elements.
///
/// Unsafe to call: that many elements must be readable at the first pointer, and readable and
/// writable at the second. The processor must have the loop's instruction set.
type LoopFn = unsafe fn(*const u8, *mut u8, usize);

/// A loop, and a function that finds the loop for operands in the other byte order than the values.
type LoopPair = (LoopFn, Option<fn() -> LoopFn>);

/// A loop, and the bytes of its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    body: LoopFn,
    across: Option<fn() -> LoopFn>,
    element: usize,
}

impl Fold {
    /// The loop for elements of one scalar, or of two (complex numbers, pairs). `None` if no loop
    /// of machine instructions computes the operation.
    pub(crate) fn find(op: Op, scalars: &[Scalar], complex: bool) -> Option<Fold> {
        let first = scalars.first()?;
        let element = scalars.iter().map(|scalar| usize::from(scalar.size)).sum();
        let (body, across) = match (op, scalars) {
            (Op::Band, _) => (body::<Words<u8, BitAnd, false, false>>(), None),
            (Op::Bor, _) => (body::<Words<u8, BitOr, false, false>>(), None),
            (Op::Bxor, _) => (body::<Words<u8, BitXor, false, false>>(), None),
            (Op::Maxloc | Op::Minloc, [value, index]) => (pairs(op, *value, *index)?, None),
            (Op::Prod, _) if complex => (products(*first)?, None),
            _ => words(op, *first)?,
        };
        // A loop that works by scalar or by byte counts each scalar or byte as an element.
        let unit = match op {
            Op::Band | Op::Bor | Op::Bxor => 1,
            Op::Maxloc | Op::Minloc => element,
            Op::Prod if complex => element,
            _ => usize::from(first.size),
        };
        Some(Fold { body, across, element: unit })
    }

    /// The fold for operands in the other byte order than the values. `None` if there isn't one.
    pub(crate) fn across(&self) -> Option<Fold> {
        Some(Fold { body: self.across?(), across: None, element: self.element })
    }

    /// Combines `bytes` of operands, from displacement 0 on, with the values at displacement `at`.
    #[inline(always)]
    pub(crate) fn run(
        &self,
        operands: View<'_>,
        target: &mut ViewMut<'_>,
        at: i64,
        bytes: u64,
    ) -> Result<(), OutOfBounds> {
        let end = |start: i64| start.checked_add_unsigned(bytes).unwrap_or(i64::MAX);
        operands.covers(0, end(0))?;
        target.covers(at, end(at))?;
        // SAFETY: both views are covered, and the loop accesses whole elements within `bytes`. The
        // function `body` chose a loop for this processor.
        unsafe { (self.body)(operands.at(0), target.at(at), self.elements(bytes as usize)) };
        Ok(())
    }

    /// The fold with its length in bytes as a shift. `None` if its elements have no power of two of
    /// bytes.
    pub(crate) fn ready(&self) -> Option<ReadyFold> {
        let shift = self.element.trailing_zeros();
        self.element.is_power_of_two().then_some(ReadyFold { body: self.body, shift })
    }

    /// The elements in `bytes`. A shift where possible: a division takes as long as the rest of a
    /// fold of one element.
    #[inline]
    fn elements(&self, bytes: usize) -> usize {
        match self.element.is_power_of_two() {
            true => bytes >> self.element.trailing_zeros(),
            false => bytes / self.element,
        }
    }
}

/// A loop whose number of elements follows from their bytes by a shift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyFold {
    body: LoopFn,
    shift: u32,
}

impl ReadyFold {
    /// The values stay.
    pub(crate) const KEEP: ReadyFold = ReadyFold { body: keep, shift: 0 };

    /// The operands replace the values.
    pub(crate) const REPLACE: ReadyFold = ReadyFold { body: copy_run, shift: 0 };

    /// Combines `bytes` of operands, from displacement 0 on, with the values at displacement 0.
    #[inline(always)]
    pub(crate) fn run(
        &self,
        operands: View<'_>,
        target: &mut ViewMut<'_>,
        bytes: u64,
    ) -> Result<(), OutOfBounds> {
        let end = i64::try_from(bytes).unwrap_or(i64::MAX);
        operands.covers(0, end)?;
        target.covers(0, end)?;
        // SAFETY: both views are covered, and the loop accesses whole elements within `bytes`. The
        // function `body` chose a loop for this processor, or it is one of the two above.
        unsafe { (self.body)(operands.at(0), target.at(0), bytes as usize >> self.shift) };
        Ok(())
    }
}

/// # Safety
///
/// It accesses nothing.
unsafe fn keep(_: *const u8, _: *mut u8, _: usize) {}

/// The portable source of a loop. It is compiled once for each instruction set.
trait Loop {
    /// # Safety
    ///
    /// See [`LoopFn`]. The instruction set is `S`.
    unsafe fn run<S: Set>(operands: *const u8, target: *mut u8, count: usize);
}

/// # Safety
///
/// See [`LoopFn`].
unsafe fn baseline<L: Loop>(operands: *const u8, target: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { L::run::<Baseline>(operands, target, count) }
}

/// # Safety
///
/// See [`LoopFn`].
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[target_feature(enable = "avx2")]
unsafe fn avx2<L: Loop>(operands: *const u8, target: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { L::run::<Avx2>(operands, target, count) }
}

/// # Safety
///
/// See [`LoopFn`].
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512<L: Loop>(operands: *const u8, target: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { L::run::<Avx512>(operands, target, count) }
}

/// The loop with registers of 64 bytes, if the processor has them (docs/tuning.md, "Folds in
/// 64-byte registers").
#[rustversion::since(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn with_avx512<L: Loop>() -> Option<LoopFn> {
    super::loops::has_avx512().then_some(avx512::<L>)
}

/// Compilers before 1.89 can't compile for AVX-512.
#[rustversion::before(1.89)]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn with_avx512<L: Loop>() -> Option<LoopFn> {
    None
}

fn body<L: Loop>() -> LoopFn {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    {
        if let Some(body) = with_avx512::<L>() {
            return body;
        }
        if is_x86_feature_detected!("avx2") {
            return avx2::<L>;
        }
    }
    baseline::<L>
}

/// A number that the machine computes with.
trait Word: Number + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    fn swapped(self) -> Self;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn difference(self, other: Self) -> Self;
}

macro_rules! words {
    ($one:literal $swapped:expr; $sum:ident $product:ident $difference:ident: $($word:ty),*) => {
        $(impl Word for $word {
            const ZERO: Self = 0 as $word;
            const ONE: Self = $one as $word;
            #[inline(always)]
            fn swapped(self) -> Self {
                let swapped: fn($word) -> $word = $swapped;
                swapped(self)
            }
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                self.$sum(other)
            }
            #[inline(always)]
            fn product(self, other: Self) -> Self {
                self.$product(other)
            }
            #[inline(always)]
            fn difference(self, other: Self) -> Self {
                self.$difference(other)
            }
        })*
    };
}

words!(1 |word| word.swap_bytes(); wrapping_add wrapping_mul wrapping_sub: u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

use std::ops::{Add as _, Mul as _, Sub as _};
words!(1 |word| f32::from_bits(word.to_bits().swap_bytes()); add mul sub: f32);
words!(1 |word| f64::from_bits(word.to_bits().swap_bytes()); add mul sub: f64);

/// # Safety
///
/// A word must be readable.
#[inline(always)]
unsafe fn load<T: Word, const SWAPPED: bool>(from: *const u8) -> T {
    // SAFETY: the caller's promise.
    let word = unsafe { T::load(from) };
    if SWAPPED { word.swapped() } else { word }
}

/// # Safety
///
/// A word must be writable.
#[inline(always)]
unsafe fn store<T: Word, const SWAPPED: bool>(to: *mut u8, word: T) {
    // SAFETY: the caller's promise.
    unsafe { if SWAPPED { word.swapped() } else { word }.store(to) };
}

/// The result of combining an operand with the value at the target.
trait Combine<T> {
    fn combine(operand: T, current: T) -> T;
}

macro_rules! combine {
    ($($name:ident: |$operand:ident, $current:ident| $result:expr;)*) => {
        $(
            struct $name;
            impl<T: Word> Combine<T> for $name {
                #[inline(always)]
                fn combine($operand: T, $current: T) -> T {
                    $result
                }
            }
        )*
    };
}

combine! {
    // The operand is the first, as MPI_Reduce_local's `inbuf`: it is the result of a comparison
    // that fails for a NaN, or for zeros of both signs.
    Max: |operand, current| if current > operand { current } else { operand };
    Min: |operand, current| if current < operand { current } else { operand };
    Sum: |operand, current| current.sum(operand);
    Product: |operand, current| current.product(operand);
    LogicalAnd: |operand, current| truth(operand != T::ZERO && current != T::ZERO);
    LogicalOr: |operand, current| truth(operand != T::ZERO || current != T::ZERO);
    LogicalXor: |operand, current| truth((operand != T::ZERO) != (current != T::ZERO));
}

#[inline(always)]
fn truth<T: Word>(is_true: bool) -> T {
    if is_true { T::ONE } else { T::ZERO }
}

macro_rules! bits {
    ($($name:ident $operator:tt;)*) => {
        $(
            struct $name;
            impl Combine<u8> for $name {
                #[inline(always)]
                fn combine(operand: u8, current: u8) -> u8 {
                    operand $operator current
                }
            }
        )*
    };
}

bits! {
    BitAnd &;
    BitOr |;
    BitXor ^;
}

/// Word by word. `FROM` means that operands are in the other byte order than this machine's, and
/// `AT` that the values at the target are.
struct Words<T, C, const FROM: bool, const AT: bool>(PhantomData<(T, C)>);

impl<T: Word, C: Combine<T>, const FROM: bool, const AT: bool> Loop for Words<T, C, FROM, AT> {
    #[inline(always)]
    unsafe fn run<S: Set>(operands: *const u8, target: *mut u8, count: usize) {
        let combine = |operand: T, current: T| {
            let of = |word: T, swapped: bool| if swapped { word.swapped() } else { word };
            of(C::combine(of(operand, FROM), of(current, AT)), AT)
        };
        // SAFETY: the caller's promise.
        unsafe { fold_lanes::<S, T>(operands, target, count, combine, T::load, T::store) };
    }
}

/// Combines elements as lanes of the widest registers, then the rest one by one.
///
/// # Safety
///
/// See [`LoopFn`]. `load` and `store` must access one element.
#[inline(always)]
unsafe fn fold_lanes<S: Set, T: Copy>(
    operands: *const u8,
    target: *mut u8,
    count: usize,
    combine: impl Fn(T, T) -> T,
    load: unsafe fn(*const u8) -> T,
    store: unsafe fn(T, *mut u8),
) {
    let (wide, bytes) = (size_of::<S::Wide>(), count * size_of::<T>());
    let each = |operands, current| each_lane::<S, T>(operands, current, &combine);
    let mut at = 0;
    // SAFETY: the caller's promise: every access lies within `bytes`.
    unsafe {
        if bytes >= wide && wide >= size_of::<T>() {
            while at + 4 * wide <= bytes {
                let [a, b, c, d] = S::load_four(operands.add(at));
                let [e, f, g, h] = S::load_four(target.add(at));
                let combined = [each(a, e), each(b, f), each(c, g), each(d, h)];
                S::store_four(target.add(at), combined);
                at += 4 * wide;
            }
            while at + wide <= bytes {
                let combined = each(S::load(operands.add(at)), S::load(target.add(at)));
                S::store(target.add(at), combined);
                at += wide;
            }
        }
        while at < bytes {
            let combined = combine(load(operands.add(at)), load(target.add(at)));
            store(combined, target.add(at));
            at += size_of::<T>();
        }
    }
}

/// Combines the lanes of two registers. The compiler makes this the machine's instructions on whole
/// registers.
#[inline(always)]
fn each_lane<S: Set, T: Copy>(
    operands: S::Wide,
    mut current: S::Wide,
    combine: impl Fn(T, T) -> T,
) -> S::Wide {
    let (operands, lanes) = ((&raw const operands).cast::<T>(), (&raw mut current).cast::<T>());
    for lane in 0..size_of::<S::Wide>() / size_of::<T>() {
        // SAFETY: the lane lies within both local registers. Every bit pattern is an element.
        unsafe {
            let combined =
                combine(operands.add(lane).read_unaligned(), lanes.add(lane).read_unaligned());
            lanes.add(lane).write_unaligned(combined);
        }
    }
    current
}

/// Packed pairs of a value and an index, for MAXLOC and MINLOC.
struct Pairs<V, I, const MAX: bool, const SWAPPED: bool>(PhantomData<(V, I)>);

impl<V: Word, I: Word, const MAX: bool, const SWAPPED: bool> Loop for Pairs<V, I, MAX, SWAPPED> {
    #[inline(always)]
    unsafe fn run<S: Set>(operands: *const u8, target: *mut u8, count: usize) {
        let (value, pair) = (size_of::<V>(), size_of::<V>() + size_of::<I>());
        for index in 0..count {
            // SAFETY: the caller's promise: element `index` is below `count`.
            unsafe {
                let (from, to) = (operands.add(index * pair), target.add(index * pair));
                let (operand, current) = (load::<V, SWAPPED>(from), load::<V, SWAPPED>(to));
                let (from_index, to_index) =
                    (load::<I, SWAPPED>(from.add(value)), load::<I, SWAPPED>(to.add(value)));
                let beats = if MAX { operand > current } else { operand < current };
                if beats || operand == current && from_index < to_index {
                    store::<V, SWAPPED>(to, operand);
                    store::<I, SWAPPED>(to.add(value), from_index);
                }
            }
        }
    }
}

/// Products of complex numbers.
struct Products<T, const SWAPPED: bool>(PhantomData<T>);

impl<T: Word, const SWAPPED: bool> Loop for Products<T, SWAPPED> {
    #[inline(always)]
    unsafe fn run<S: Set>(operands: *const u8, target: *mut u8, count: usize) {
        let of = |word: T| if SWAPPED { word.swapped() } else { word };
        let combine = |operand: [T; 2], current: [T; 2]| {
            let ([a, b], [c, d]) = (current.map(of), operand.map(of));
            let real = a.product(c).difference(b.product(d));
            let imaginary = a.product(d).sum(b.product(c));
            [real, imaginary].map(of)
        };
        // SAFETY: the caller's promise.
        unsafe { fold_lanes::<S, [T; 2]>(operands, target, count, combine, load_two, store_two) };
    }
}

/// # Safety
///
/// Two words must be readable.
#[inline(always)]
unsafe fn load_two<T: Word>(from: *const u8) -> [T; 2] {
    // SAFETY: the caller's promise.
    unsafe { [T::load(from), T::load(from.add(size_of::<T>()))] }
}

/// # Safety
///
/// Two words must be writable.
#[inline(always)]
unsafe fn store_two<T: Word>([first, second]: [T; 2], to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        first.store(to);
        second.store(to.add(size_of::<T>()));
    }
}

/// The loops for values in the other byte order than this machine's if `AT`, in this machine's
/// otherwise. `ACROSS` must be the opposite of `AT`.
fn loops<T: Word, C: Combine<T>, const AT: bool, const ACROSS: bool>() -> LoopPair {
    const { assert!(AT != ACROSS) }
    (body::<Words<T, C, AT, AT>>(), Some(body::<Words<T, C, ACROSS, AT>>))
}

fn is_swapped(scalar: Scalar) -> bool {
    scalar.order != ByteOrder::NATIVE
}

/// The loops for an operation on words.
fn words(op: Op, scalar: Scalar) -> Option<LoopPair> {
    macro_rules! swapped {
        ($word:ty, $combine:ty) => {
            match is_swapped(scalar) {
                true => loops::<$word, $combine, true, false>(),
                false => loops::<$word, $combine, false, true>(),
            }
        };
    }
    macro_rules! integers {
        ($combine:ty: $($bytes:literal $word:ty),*) => {
            match scalar.size {
                $($bytes => swapped!($word, $combine),)*
                _ => return None,
            }
        };
    }
    macro_rules! unsigned {
        ($combine:ty) => {
            integers!($combine: 1 u8, 2 u16, 4 u32, 8 u64, 16 u128)
        };
    }
    macro_rules! signed {
        ($combine:ty) => {
            integers!($combine: 1 i8, 2 i16, 4 i32, 8 i64, 16 i128)
        };
    }
    macro_rules! floats {
        ($word:ty) => {
            match op {
                Op::Max => swapped!($word, Max),
                Op::Min => swapped!($word, Min),
                Op::Sum => swapped!($word, Sum),
                Op::Prod => swapped!($word, Product),
                _ => return None,
            }
        };
    }
    Some(match (scalar.value, op) {
        (Value::Float(FloatFormat::Binary32), _) => floats!(f32),
        (Value::Float(FloatFormat::Binary64), _) => floats!(f64),
        (Value::Int { signed: true }, Op::Max) => signed!(Max),
        (Value::Int { signed: true }, Op::Min) => signed!(Min),
        (Value::Int { .. }, Op::Max) => unsigned!(Max),
        (Value::Int { .. }, Op::Min) => unsigned!(Min),
        (Value::Int { .. }, Op::Sum) => unsigned!(Sum),
        (Value::Int { .. }, Op::Prod) => unsigned!(Product),
        (Value::Int { .. } | Value::Logical { truth: 1 }, Op::Land) => unsigned!(LogicalAnd),
        (Value::Int { .. } | Value::Logical { truth: 1 }, Op::Lor) => unsigned!(LogicalOr),
        (Value::Int { .. } | Value::Logical { truth: 1 }, Op::Lxor) => unsigned!(LogicalXor),
        _ => return None,
    })
}

/// The loop for pairs of a value and an index.
fn pairs(op: Op, value: Scalar, index: Scalar) -> Option<LoopFn> {
    macro_rules! swapped {
        ($value:ty, $index:ty) => {
            match (op, is_swapped(value)) {
                (Op::Maxloc, true) => body::<Pairs<$value, $index, true, true>>(),
                (Op::Maxloc, false) => body::<Pairs<$value, $index, true, false>>(),
                (_, true) => body::<Pairs<$value, $index, false, true>>(),
                (_, false) => body::<Pairs<$value, $index, false, false>>(),
            }
        };
    }
    const SIGNED: Value = Value::Int { signed: true };
    const SINGLE: Value = Value::Float(FloatFormat::Binary32);
    const DOUBLE: Value = Value::Float(FloatFormat::Binary64);
    Some(match ((value.value, value.size), (index.value, index.size)) {
        ((SIGNED, 2), (SIGNED, 4)) => swapped!(i16, i32),
        ((SIGNED, 4), (SIGNED, 4)) => swapped!(i32, i32),
        ((SIGNED, 8), (SIGNED, 4)) => swapped!(i64, i32),
        ((SIGNED, 8), (SIGNED, 8)) => swapped!(i64, i64),
        ((SINGLE, _), (SIGNED, 4)) => swapped!(f32, i32),
        ((DOUBLE, _), (SIGNED, 4)) => swapped!(f64, i32),
        ((SINGLE, _), (SINGLE, _)) => swapped!(f32, f32),
        ((DOUBLE, _), (DOUBLE, _)) => swapped!(f64, f64),
        _ => return None,
    })
}

/// The loop for products of complex numbers with parts of this type.
fn products(part: Scalar) -> Option<LoopFn> {
    Some(match (part.value, is_swapped(part)) {
        (Value::Float(FloatFormat::Binary32), true) => body::<Products<f32, true>>(),
        (Value::Float(FloatFormat::Binary32), false) => body::<Products<f32, false>>(),
        (Value::Float(FloatFormat::Binary64), true) => body::<Products<f64, true>>(),
        (Value::Float(FloatFormat::Binary64), false) => body::<Products<f64, false>>(),
        _ => return None,
    })
}
