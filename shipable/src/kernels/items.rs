//! The loop for conversions that go unit by unit, and can refuse a value.
#![allow(unsafe_code)]

use std::ptr;

use super::bodies::Rows;
use crate::convert::{Conversion, MAX_SIZE, ValueError};

/// A value that was refused, and the units moved before it.
pub(super) struct Stop {
    pub unit: u64,
    pub error: ValueError,
}

/// Where the runs of a table lie: at its offsets on one side, packed on the other.
pub(super) struct Sides<'a> {
    offsets: &'a [i64],
    from_packed: Option<isize>,
    to_packed: Option<isize>,
}

impl<'a> Sides<'a> {
    pub(super) fn gather(offsets: &'a [i64], to_run: isize) -> Sides<'a> {
        Sides { offsets, from_packed: None, to_packed: Some(to_run) }
    }

    pub(super) fn scatter(offsets: &'a [i64], from_run: isize) -> Sides<'a> {
        Sides { offsets, from_packed: Some(from_run), to_packed: None }
    }
}

/// Moves a grid of runs.
///
/// # Safety
///
/// Every run that the grid reaches must be readable in the source and writable, in its converted length, in the
/// destination; `rows.run` is a multiple of the conversion's `from_size`.
pub(super) unsafe fn grid(
    conversion: Conversion,
    rows: &Rows,
    from: *const u8,
    to: *mut u8,
) -> Result<(), Stop> {
    let units = rows.run / conversion.from_size() as usize;
    let mut moved = 0;
    for outer in 0..rows.counts[0] as isize {
        for inner in 0..rows.counts[1] as isize {
            let from = from.wrapping_offset(outer * rows.from[0] + inner * rows.from[1]);
            let to = to.wrapping_offset(outer * rows.to[0] + inner * rows.to[1]);
            // SAFETY: the caller's promise.
            unsafe { run(conversion, units, from, to, moved)? };
            moved += units as u64;
        }
    }
    Ok(())
}

/// Moves the runs of a table.
///
/// # Safety
///
/// As for [`grid`]: every run on either side must be readable or writable, and `length` a multiple of `from_size`.
pub(super) unsafe fn table(
    conversion: Conversion,
    sides: &Sides<'_>,
    length: usize,
    from: *const u8,
    to: *mut u8,
) -> Result<(), Stop> {
    let units = length / conversion.from_size() as usize;
    for (i, &offset) in sides.offsets.iter().enumerate() {
        let place = |packed: Option<isize>| match packed {
            Some(run) => i as isize * run,
            None => offset as isize,
        };
        let from = from.wrapping_offset(place(sides.from_packed));
        let to = to.wrapping_offset(place(sides.to_packed));
        // SAFETY: the caller's promise.
        unsafe { run(conversion, units, from, to, i as u64 * units as u64)? };
    }
    Ok(())
}

/// Moves one run.
///
/// # Safety
///
/// `units` units must be readable and, converted, writable.
unsafe fn run(
    conversion: Conversion,
    units: usize,
    from: *const u8,
    to: *mut u8,
    moved: u64,
) -> Result<(), Stop> {
    let (from_size, to_size) = (conversion.from_size() as usize, conversion.to_size() as usize);
    let (mut before, mut after) = ([0; MAX_SIZE], [0; MAX_SIZE]);
    for i in 0..units {
        // SAFETY: the caller's promise; no unit is longer than MAX_SIZE. Values are converted outside of the memory, to
        // which no reference may exist.
        unsafe { ptr::copy(from.add(i * from_size), before.as_mut_ptr(), from_size) };
        conversion
            .apply(&before[..from_size], &mut after[..to_size])
            .map_err(|error| Stop { unit: moved + i as u64, error })?;
        // SAFETY: as above.
        unsafe { ptr::copy(after.as_ptr(), to.add(i * to_size), to_size) };
    }
    Ok(())
}
