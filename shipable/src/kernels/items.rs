//! The loop for conversions that go unit by unit and can refuse a value.
//!
//! Ordinary values of the common conversions take a fast path. [`Conversion::apply`] decides all
//! other cases, including every refusal.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use super::access::{Baseline, Number, Set};
use super::loops::{Rows, copy_run};
use crate::arch::{ByteOrder, FloatFormat, Scalar, Value};
use crate::convert::{Conversion, Ends, MAX_SIZE, ValueError};

/// A refused value, and the number of units moved before it.
pub(super) struct UnitError {
    pub unit: u64,
    pub error: ValueError,
}

/// The layout of runs on both sides.
pub(super) enum RunLayout<'a> {
    /// Two strided dimensions on either side.
    Grid(&'a Rows),
    /// A table's offsets in the source, packed in the target.
    Gather { offsets: &'a [i64], to_run: isize },
    /// Packed in the source, a table's offsets in the target.
    Scatter { offsets: &'a [i64], from_run: isize },
    /// A table's offsets on both sides.
    Mirror { offsets: &'a [i64] },
}

impl RunLayout<'_> {
    fn counts(&self) -> [usize; 2] {
        match self {
            RunLayout::Grid(rows) => rows.counts,
            RunLayout::Gather { offsets, .. }
            | RunLayout::Scatter { offsets, .. }
            | RunLayout::Mirror { offsets } => [1, offsets.len()],
        }
    }

    /// The displacements of a run in the source and in the target.
    #[inline]
    fn at(&self, outer: usize, inner: usize) -> (isize, isize) {
        let (i, j) = (outer as isize, inner as isize);
        match self {
            RunLayout::Grid(rows) => {
                (i * rows.from[0] + j * rows.from[1], i * rows.to[0] + j * rows.to[1])
            }
            RunLayout::Gather { offsets, to_run } => (offsets[inner] as isize, j * to_run),
            RunLayout::Scatter { offsets, from_run } => (j * from_run, offsets[inner] as isize),
            RunLayout::Mirror { offsets } => (offsets[inner] as isize, offsets[inner] as isize),
        }
    }
}

/// Moves runs of `run` bytes of the source.
///
/// # Safety
///
/// Every run at `places` must be readable in the source and, in its converted length, writable in
/// the target. `run` must be a multiple of the conversion's `from_size`.
pub(super) unsafe fn transfer(
    conversion: Conversion,
    places: &RunLayout<'_>,
    run: usize,
    from: *const u8,
    to: *mut u8,
) -> Result<(), UnitError> {
    // Whether the target is swapped is a constant of the loop, not a question for each unit.
    macro_rules! by_target {
        ($path:ident<$($of:tt),+>, $ends:ident) => {
            match is_swapped($ends.to()) {
                // SAFETY: the caller's promise. The path is that of the conversion.
                true => unsafe {
                    runs($path::<$($of,)+ true>::new($ends), conversion, places, run, from, to)
                },
                // SAFETY: as above.
                false => unsafe {
                    runs($path::<$($of,)+ false>::new($ends), conversion, places, run, from, to)
                },
            }
        };
    }
    macro_rules! resize {
        ($ends:ident, $($from:literal to $to:literal),*) => {
            match ($ends.from().size, $ends.to().size) {
                $(($from, $to) => by_target!(ResizePath<$from, $to>, $ends),)*
                // SAFETY: the caller's promise.
                _ => unsafe { runs(NoFastPath, conversion, places, run, from, to) },
            }
        };
    }
    match conversion {
        Conversion::Resize(ends) => {
            resize!(ends, 1 to 2, 1 to 4, 1 to 8, 2 to 4, 2 to 8, 4 to 8, 2 to 1, 4 to 1, 8 to 1, 4 to 2, 8 to 2, 8 to 4)
        }
        Conversion::Refloat(ends) => match (ends.from().value, ends.to().value) {
            (Value::Float(FloatFormat::Binary64), Value::Float(FloatFormat::Binary32)) => {
                by_target!(HardwareFloat<f64>, ends)
            }
            (Value::Float(FloatFormat::Binary32), Value::Float(FloatFormat::Binary64)) => {
                by_target!(HardwareFloat<f32>, ends)
            }
            // SAFETY: the caller's promise.
            _ => unsafe { runs(NoFastPath, conversion, places, run, from, to) },
        },
        // SAFETY: the caller's promise.
        _ => unsafe { runs(NoFastPath, conversion, places, run, from, to) },
    }
}

/// # Safety
///
/// See [`transfer`]. `item` must be made for the conversion.
unsafe fn runs<I: FastPath>(
    item: I,
    conversion: Conversion,
    places: &RunLayout<'_>,
    run: usize,
    from: *const u8,
    to: *mut u8,
) -> Result<(), UnitError> {
    let sizes = [conversion.from_size(), conversion.to_size()].map(usize::from);
    let [from_size, to_size] = I::SIZES.unwrap_or(sizes);
    let units = run / from_size;
    let [rows, columns] = places.counts();
    for outer in 0..rows {
        for inner in 0..columns {
            let (source, target) = places.at(outer, inner);
            let (mut source, mut target) =
                (from.wrapping_offset(source), to.wrapping_offset(target));
            for i in 0..units {
                // SAFETY: the caller's promise: this unit lies in a run at `places`.
                unsafe {
                    if !item.apply(source, target) {
                        apply(conversion, source, target).map_err(|error| {
                            let runs = outer as u64 * columns as u64 + inner as u64;
                            UnitError { unit: runs * units as u64 + i as u64, error }
                        })?;
                    }
                }
                source = source.wrapping_add(from_size);
                target = target.wrapping_add(to_size);
            }
        }
    }
    Ok(())
}

/// Copies one unit. A long one goes in one piece, in which the processor forwards it to its reader.
///
/// # Safety
///
/// `len` bytes must be readable from `from` and writable from `to`.
#[inline]
unsafe fn copy_unit(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            16 => Baseline::copy::<16>(from, to),
            _ => copy_run(from, to, len),
        }
    }
}

/// Converts one unit in local buffers, since no reference to shared memory may exist.
///
/// # Safety
///
/// A unit must be readable at `from`, and a converted unit writable at `to`.
unsafe fn apply(conversion: Conversion, from: *const u8, to: *mut u8) -> Result<(), ValueError> {
    let (from_size, to_size) = (conversion.from_size() as usize, conversion.to_size() as usize);
    let (mut before, mut after) = ([0; MAX_SIZE], [0; MAX_SIZE]);
    // SAFETY: the caller's promise. No unit exceeds MAX_SIZE.
    unsafe { copy_unit(from, before.as_mut_ptr(), from_size) };
    conversion.apply(&before[..from_size], &mut after[..to_size])?;
    // SAFETY: the caller's promise. No unit exceeds MAX_SIZE.
    unsafe { copy_unit(after.as_ptr(), to, to_size) };
    Ok(())
}

/// A fast path for ordinary values.
trait FastPath {
    /// The bytes of a unit before and after the conversion, if they are the same for all
    /// conversions of the path.
    const SIZES: Option<[usize; 2]> = None;

    /// Converts one unit. Returns false, and writes nothing, if the value isn't ordinary.
    ///
    /// # Safety
    ///
    /// A unit must be readable at `from`, and a converted unit writable at `to`.
    unsafe fn apply(&self, from: *const u8, to: *mut u8) -> bool;
}

/// No fast path: no value is ordinary.
struct NoFastPath;

impl FastPath for NoFastPath {
    #[inline]
    unsafe fn apply(&self, _: *const u8, _: *mut u8) -> bool {
        false
    }
}

/// The fast path from integers of `F` bytes to integers of `T` bytes, to the other byte order if
/// `SWAPPED`. Values that fit are ordinary.
struct ResizePath<const F: usize, const T: usize, const SWAPPED: bool> {
    from_swapped: bool,
    signed: bool,
    least: i64,
    greatest: i64,
}

impl<const F: usize, const T: usize, const SWAPPED: bool> ResizePath<F, T, SWAPPED> {
    fn new(ends: Ends) -> ResizePath<F, T, SWAPPED> {
        let is_signed = |scalar: Scalar| scalar.value == Value::Int { signed: true };
        let signed = is_signed(ends.from());
        let unsigned = u64::MAX >> (64 - 8 * T);
        let greatest =
            if is_signed(ends.to()) { unsigned >> 1 } else { unsigned.min(i64::MAX as u64) };
        ResizePath {
            from_swapped: is_swapped(ends.from()),
            signed,
            // Unsigned integers beyond an `i64` look negative, so they aren't ordinary.
            least: if signed && is_signed(ends.to()) { !(greatest as i64) } else { 0 },
            greatest: greatest as i64,
        }
    }
}

impl<const F: usize, const T: usize, const SWAPPED: bool> FastPath for ResizePath<F, T, SWAPPED> {
    const SIZES: Option<[usize; 2]> = Some([F, T]);

    #[inline]
    unsafe fn apply(&self, from: *const u8, to: *mut u8) -> bool {
        let above = 64 - 8 * F as u32;
        // SAFETY: the caller's promise: a unit has F bytes before the conversion.
        let bits = unsafe { load_unit::<F>(from) } << above;
        // The bytes are at the top, from where they are shifted back with or without sign.
        let bits = if self.from_swapped { bits.swap_bytes() << above } else { bits };
        let value = if self.signed { bits as i64 >> above } else { (bits >> above) as i64 };
        if value < self.least || value > self.greatest {
            return false;
        }
        let bits = value as u64;
        let bits = if SWAPPED { bits.swap_bytes() >> (64 - 8 * T as u32) } else { bits };
        // SAFETY: the caller's promise: a unit has T bytes after the conversion.
        unsafe { store_unit::<T>(to, bits) };
        true
    }
}

/// Loads an integer of `F` bytes: 1, 2, 4 or 8.
///
/// # Safety
///
/// `F` bytes must be readable.
#[inline]
unsafe fn load_unit<const F: usize>(from: *const u8) -> u64 {
    const { assert!(matches!(F, 1 | 2 | 4 | 8)) }
    // SAFETY: the caller's promise.
    unsafe {
        match F {
            1 => u8::load(from).into(),
            2 => u16::load(from).into(),
            4 => u32::load(from).into(),
            _ => u64::load(from),
        }
    }
}

/// Stores the lower bits as an integer of `T` bytes: 1, 2, 4 or 8.
///
/// # Safety
///
/// `T` bytes must be writable.
#[inline]
unsafe fn store_unit<const T: usize>(to: *mut u8, bits: u64) {
    const { assert!(matches!(T, 1 | 2 | 4 | 8)) }
    // SAFETY: the caller's promise.
    unsafe {
        match T {
            1 => (bits as u8).store(to),
            2 => (bits as u16).store(to),
            4 => (bits as u32).store(to),
            _ => bits.store(to),
        }
    }
}

/// The fast path between binary32 and binary64 by the hardware, to the other byte order if
/// `SWAPPED`. Values that are finite in the target are ordinary.
struct HardwareFloat<F, const SWAPPED: bool> {
    from_swapped: bool,
    from: PhantomData<F>,
}

/// A format of the hardware that converts to the other one.
trait Hardware {
    /// The bits of a value in this format.
    type Image: Number;
    /// The bits of a value in the other format.
    type Other: Number;

    /// Converts bits to the other format. The flags mark the sides in the other byte order.
    /// `None` if the result isn't finite.
    fn convert(image: Self::Image, from_swapped: bool, to_swapped: bool) -> Option<Self::Other>;
}

macro_rules! hardware {
    ($from:ty, $image:ty => $to:ty, $other:ty) => {
        impl Hardware for $from {
            type Image = $image;
            type Other = $other;

            #[inline]
            fn convert(image: $image, from_swapped: bool, to_swapped: bool) -> Option<$other> {
                let image = if from_swapped { image.swap_bytes() } else { image };
                let value = <$from>::from_bits(image) as $to;
                let image = value.to_bits();
                value.is_finite().then_some(if to_swapped { image.swap_bytes() } else { image })
            }
        }
    };
}

hardware!(f64, u64 => f32, u32);
hardware!(f32, u32 => f64, u64);

impl<F, const SWAPPED: bool> HardwareFloat<F, SWAPPED> {
    fn new(ends: Ends) -> HardwareFloat<F, SWAPPED> {
        HardwareFloat { from_swapped: is_swapped(ends.from()), from: PhantomData }
    }
}

impl<F: Hardware, const SWAPPED: bool> FastPath for HardwareFloat<F, SWAPPED> {
    const SIZES: Option<[usize; 2]> = Some([size_of::<F::Image>(), size_of::<F::Other>()]);

    #[inline]
    unsafe fn apply(&self, from: *const u8, to: *mut u8) -> bool {
        // SAFETY: the caller's promise: a unit is an image of this format before the conversion.
        let image = unsafe { F::Image::load(from) };
        let Some(image) = F::convert(image, self.from_swapped, SWAPPED) else {
            return false;
        };
        // SAFETY: the caller's promise: a unit is an image of the other format after the
        // conversion.
        unsafe { image.store(to) };
        true
    }
}

fn is_swapped(scalar: Scalar) -> bool {
    scalar.order != ByteOrder::NATIVE
}
