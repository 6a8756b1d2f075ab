//! Tests of every kernel against a loop over bytes.

use super::*;
use crate::arch::{ByteOrder, FloatFormat, Scalar, Value};
use crate::convert::Unit;

/// The reference: moves item by item and byte by byte.
fn naive(
    conversion: Conversion,
    units: u64,
    places: impl Iterator<Item = (i64, i64)>,
    from: &[u8],
    to: &mut [u8],
) {
    let (from_size, to_size) = (conversion.from_size() as usize, conversion.to_size() as usize);
    for (source, target) in places {
        for unit in 0..units as usize {
            let source = source as usize + unit * from_size;
            let target = target as usize + unit * to_size;
            let item = &from[source..source + from_size];
            conversion.apply(item, &mut to[target..target + to_size]).unwrap();
        }
    }
}

fn conversions() -> Vec<Conversion> {
    let int = |size, order| Scalar { value: Value::Int { signed: true }, size, order };
    let narrow = int(2, ByteOrder::Little);
    let wide = int(8, ByteOrder::Big);
    let mut all = vec![Conversion::Copy, Conversion::between(narrow, wide).unwrap()];
    all.extend(
        [Unit::Two, Unit::Four, Unit::Eight, Unit::Sixteen].map(|unit| Conversion::Swap { unit }),
    );
    all
}

#[test]
fn fast_paths_agree_with_conversion_apply() {
    let orders = [ByteOrder::Little, ByteOrder::Big];
    let scalars: Vec<Scalar> = [1, 2, 4, 8]
        .into_iter()
        .flat_map(|size| [false, true].map(|signed| (Value::Int { signed }, size)))
        .chain([1, 2, 4].map(|size| (Value::Char, size)))
        .chain([2, 4].map(|size| (Value::Wide, size)))
        .chain([(Value::Float(FloatFormat::Binary32), 4), (Value::Float(FloatFormat::Binary64), 8)])
        .flat_map(|(value, size)| orders.map(|order| Scalar { value, size, order }))
        .collect();
    // Integers around the limits of each width, numbers near the limits of binary32, infinities and
    // NaNs.
    let integers = [7u32, 8, 15, 16, 31, 32, 63].into_iter().flat_map(|bit| {
        let end = 1u64 << bit;
        [end - 1, end, end + 1, end.wrapping_neg(), end.wrapping_neg() - 1, end.wrapping_neg() + 1]
    });
    let floats =
        [1.5, 1e39, -3.4028236e38, 1e-40, 1e-50, f64::INFINITY, f64::NAN, -0.0].map(f64::to_bits);
    let singles =
        [1.5, f32::MAX, 1e-40, f32::NEG_INFINITY, f32::NAN].map(|v| u64::from(v.to_bits()));
    let patterns: Vec<u64> =
        integers.chain(floats).chain(singles).chain([0, 1, u64::MAX]).collect();
    let mut pairs = 0;
    for &from in &scalars {
        for &to in &scalars {
            let Ok(conversion) = Conversion::between(from, to) else { continue };
            let kernel = Kernel::new(conversion, u64::from(from.size / conversion.from_size()));
            let lane = Lane { start: 0, strides: [0, 0] };
            for pattern in &patterns {
                let bytes = match from.order {
                    ByteOrder::Little => pattern.to_le_bytes()[..from.size as usize].to_vec(),
                    ByteOrder::Big => pattern.to_be_bytes()[8 - from.size as usize..].to_vec(),
                };
                let (mut expected, mut found) = ([0xee; 8], [0xee; 8]);
                let units = bytes.chunks_exact(conversion.from_size() as usize);
                let applied = units
                    .zip(expected.chunks_exact_mut(conversion.to_size() as usize))
                    .try_for_each(|(from, to)| conversion.apply(from, to));
                let mut target = ViewMut::new(&mut found);
                let moved = kernel.transfer([1, 1], View::new(&bytes), lane, &mut target, lane);
                assert_eq!(moved.is_ok(), applied.is_ok(), "{conversion} {pattern:#x}");
                assert_eq!(found, expected, "{conversion} {pattern:#x}");
            }
            pairs += 1;
        }
    }
    assert!(pairs > 300, "only {pairs}");
}

fn places(counts: [u64; 2], from: Lane, to: Lane) -> impl Iterator<Item = (i64, i64)> {
    let at = |lane: Lane, i: u64, j: u64| {
        lane.start + i as i64 * lane.strides[0] + j as i64 * lane.strides[1]
    };
    (0..counts[0]).flat_map(move |i| (0..counts[1]).map(move |j| (at(from, i, j), at(to, i, j))))
}

/// A lane whose runs don't overlap, in memory of [`SIZE`] bytes.
fn lane(counts: [u64; 2], run: i64, gaps: [i64; 2], backwards: [bool; 2], start: i64) -> Lane {
    let inner = run + gaps[0];
    let outer = inner * counts[1] as i64 + gaps[1];
    let mut lane = Lane { start, strides: [outer, inner] };
    for dimension in 0..2 {
        if backwards[dimension] {
            lane.start += (counts[dimension] as i64 - 1) * lane.strides[dimension];
            lane.strides[dimension] = -lane.strides[dimension];
        }
    }
    lane
}

const SIZE: usize = 8192;

fn memory() -> Vec<u8> {
    (0..SIZE).map(|i| (i * 89 + i / 256) as u8).collect()
}

#[test]
fn grids_match_a_byte_loop() {
    let source = memory();
    let mut shapes = 0;
    for conversion in conversions() {
        for units in (1..=40).chain([63, 64, 65, 127, 128, 130]) {
            let kernel = Kernel::new(conversion, units);
            let (from_run, to_run) = (kernel.from_run() as i64, kernel.to_run() as i64);
            for (counts, gaps, backwards, start) in [
                ([1, 1], [0, 0], [false, false], 0),
                ([1, 3], [1, 0], [false, true], 1),
                ([1, 6], [0, 9], [false, false], 2),
                ([3, 2], [0, 0], [false, false], 3),
                ([2, 1], [5, 11], [true, false], 7),
                ([1, 2], [8, 64], [true, true], 8),
            ] {
                let from = lane(counts, from_run, gaps, backwards, start);
                let packed = Lane::packed(start, counts, to_run as u64);
                let strided = lane(counts, to_run, [gaps[1], gaps[0]], [false, backwards[0]], 5);
                let dense = Lane::packed(2, counts, from_run as u64);
                if 6 * (from_run.max(to_run) + 64) > SIZE as i64 {
                    continue;
                }
                for (from, to) in [(from, packed), (from, strided), (dense, strided)] {
                    let (mut expected, mut found) = (vec![0xee; SIZE], vec![0xee; SIZE]);
                    naive(conversion, units, places(counts, from, to), &source, &mut expected);
                    let mut target = ViewMut::new(&mut found);
                    kernel.transfer(counts, View::new(&source), from, &mut target, to).unwrap();
                    assert!(found == expected, "{conversion} {units} {counts:?} {from:?} {to:?}");
                    shapes += 1;
                }
            }
        }
    }
    assert!(shapes > 2000, "only {shapes}");
}

#[test]
fn tables_match_a_byte_loop() {
    let source = memory();
    for conversion in conversions() {
        for units in (1..=17).chain([24, 31, 33]) {
            let kernel = Kernel::new(conversion, units);
            let slots = [3, 0, 1, 6, 2];
            let table =
                |run: u64| Offsets::new(slots.map(|slot: i64| slot * (run as i64 + 3) - 20));
            let places = |table: &Offsets, run: u64| {
                let offsets = table.as_slice()[1..4].iter();
                let places =
                    offsets.enumerate().map(move |(i, at)| (25 + at, 9 + (i as u64 * run) as i64));
                places.collect::<Vec<_>>()
            };
            let (mut expected, mut found) = (vec![0xee; SIZE], vec![0xee; SIZE]);
            let sources = table(kernel.from_run());
            let gathered = places(&sources, kernel.to_run());
            naive(conversion, units, gathered.into_iter(), &source, &mut expected);
            let mut target = ViewMut::new(&mut found);
            kernel
                .by_table(Tabled::Source, &sources, 1..4, View::new(&source), 25, &mut target, 9)
                .unwrap();
            assert!(found == expected, "gather {conversion} {units}");

            let (mut expected, mut found) = (vec![0xee; SIZE], vec![0xee; SIZE]);
            let targets = table(kernel.to_run());
            let scattered = places(&targets, kernel.from_run());
            let scattered = scattered.into_iter().map(|(at, packed)| (packed, at));
            naive(conversion, units, scattered, &source, &mut expected);
            let mut target = ViewMut::new(&mut found);
            kernel
                .by_table(Tabled::Target, &targets, 1..4, View::new(&source), 9, &mut target, 25)
                .unwrap();
            assert!(found == expected, "scatter {conversion} {units}");

            if kernel.from_run() == kernel.to_run() {
                let (mut expected, mut found) = (vec![0xee; SIZE], vec![0xee; SIZE]);
                let mirrored = sources.as_slice()[1..4].iter().map(|at| (25 + at, 70 + at));
                naive(conversion, units, mirrored, &source, &mut expected);
                let mut target = ViewMut::new(&mut found);
                kernel
                    .by_table(Tabled::Both, &sources, 1..4, View::new(&source), 25, &mut target, 70)
                    .unwrap();
                assert!(found == expected, "mirror {conversion} {units}");
            }
        }
    }
}

#[test]
fn runs_of_any_length_are_copied() {
    let source = memory();
    for run in (128..=1100).chain([2048, 4095]) {
        let kernel = Kernel::new(Conversion::Copy, run);
        let (from, to) =
            (lane([1, 1], run as i64, [0; 2], [false; 2], 7), Lane::packed(30, [1, 1], run));
        let (mut expected, mut found) = (vec![0xee; SIZE], vec![0xee; SIZE]);
        naive(Conversion::Copy, run, places([1, 1], from, to), &source, &mut expected);
        let mut target = ViewMut::new(&mut found);
        kernel.transfer([1, 1], View::new(&source), from, &mut target, to).unwrap();
        assert!(found == expected, "{run}");
    }
    for run in (0..=300).chain([511, 512, 513, 3072, 3073, 4096, 4097]) {
        let (mut expected, mut found) = (vec![0xee; SIZE], vec![0xee; SIZE]);
        expected[30..30 + run].copy_from_slice(&source[7..7 + run]);
        // SAFETY: both memories hold `run` bytes from these offsets on.
        unsafe { copy_run(source[7..].as_ptr(), found[30..].as_mut_ptr(), run) };
        assert!(found == expected, "{run}");
    }
}

#[test]
fn sparse_runs_are_copied() {
    const APART: i64 = 128;
    for (run, counts) in [3, 4, 7, 8, 12, 16, 31, 33]
        .into_iter()
        .flat_map(|run| [(run, [1, 1024]), (run, [1025, 1]), (run, [3, 342])])
    {
        let kernel = Kernel::new(Conversion::Copy, run);
        let far = Lane { start: 5, strides: [APART * counts[1] as i64, APART] };
        let backwards = Lane { start: 1030 * APART, strides: far.strides.map(|stride| -stride) };
        let packed = Lane::packed(3, counts, run);
        let source: Vec<u8> = (0..1031 * APART).map(|i| (i * 89 + i / 256) as u8).collect();
        for (from, to) in [(far, packed), (packed, far), (far, far), (backwards, far)] {
            let (mut expected, mut found) = (vec![0xee; source.len()], vec![0xee; source.len()]);
            naive(Conversion::Copy, run, places(counts, from, to), &source, &mut expected);
            let mut target = ViewMut::new(&mut found);
            kernel.transfer(counts, View::new(&source), from, &mut target, to).unwrap();
            assert!(found == expected, "{run} {counts:?} {from:?} {to:?}");
        }
    }
}

#[test]
fn transposes_are_tiled_only_beyond_the_cache() {
    let goes_by_strips = |columns: u64, apart: i64| {
        Rows::new([4, columns], [8, apart], [8 * columns as i64, 8], 8).share_lines()
    };
    // The lines of columns a page apart compete for one set of the cache. One line further apart,
    // they use all sets.
    for (apart, most) in [(4096, 8), (4096 + 64, 512), (4096 + 128, 256)] {
        assert!(!goes_by_strips(most, apart), "{most} columns {apart} apart");
        assert!(goes_by_strips(most + 1, apart), "{most} columns and one, {apart} apart");
    }
}

#[test]
fn transposes_match_a_byte_loop() {
    const PAGE: i64 = 4096;
    let swap = Conversion::Swap { unit: Unit::Four };
    let copies = [1, 3, 4, 8, 12, 16, 31, 40, 70].map(|run| (Conversion::Copy, run));
    for (conversion, units) in copies.into_iter().chain([1, 2, 3, 4, 7].map(|units| (swap, units)))
    {
        let kernel = Kernel::new(conversion, units);
        let run = kernel.from_run() as i64;
        for counts in [[2, 64], [5, 67], [33, 71], [9, 9], [9, 8], [1, 64]] {
            let [rows, columns] = counts.map(|count: u64| count as i64);
            let packed = Lane::packed(3, counts, run as u64);
            let inner = (run * rows / PAGE + 1) * PAGE;
            let column = Lane { start: 5, strides: [run, inner] };
            let last = [(rows - 1) * run, (columns - 1) * inner];
            let upwards = Lane { start: 5 + last[0], strides: [-run, inner] };
            let backwards = Lane { start: 5 + last[1], strides: [run, -inner] };
            // If targets overlap, the last run stays.
            let shared = Lane { start: 9, strides: [(run + 1) / 2, inner] };
            let crossing = Lane { start: 7, strides: [2 * run, run] };
            let source: Vec<u8> =
                (0..inner * columns + 100).map(|i| (i * 89 + i / 256) as u8).collect();
            let is_transposed = rows > 1 && columns > 8 && run < 64;
            for (from, to, is_tiled) in [
                (column, packed, is_transposed),
                (packed, column, is_transposed),
                (upwards, packed, is_transposed),
                (packed, upwards, is_transposed),
                (column, backwards, is_transposed),
                (backwards, packed, is_transposed),
                (shared, packed, is_transposed),
                (packed, shared, is_transposed && run == 1),
                (column, crossing, false),
            ] {
                let what = format!("{conversion} {run} {counts:?} {from:?} {to:?}");
                let grid = Rows::new(counts, from.strides, to.strides, run as usize);
                assert_eq!(grid.share_lines(), is_tiled, "{what}");
                let mut expected = vec![0xee; source.len()];
                naive(conversion, units, places(counts, from, to), &source, &mut expected);
                let (view, mut found) = (View::new(&source), vec![0xee; source.len()]);
                kernel.transfer(counts, view, from, &mut ViewMut::new(&mut found), to).unwrap();
                assert!(found == expected, "{what}");
                let mut found = vec![0xee; source.len()];
                let ready = kernel.prepare(counts, from, to).unwrap();
                ready.carry_out(view, &mut ViewMut::new(&mut found)).unwrap();
                assert!(found == expected, "{what}, prepared");
            }
        }
    }
}

#[test]
fn long_runs_are_copied_at_any_alignment() {
    let counts = [2, 2];
    for run in [129, 511, 512, 513, 576, 1024, 1025, 2559, 2560, 2561, 4095, 4096, 4097] {
        let kernel = Kernel::new(Conversion::Copy, run as u64);
        for start in (0..=64).step_by(7).chain([1, 63, 64]) {
            let from = lane(counts, run, [3, 64], [false, true], 5);
            let to = lane(counts, run, [64, 1], [true, false], start);
            let source: Vec<u8> = (0..5 * run + 300).map(|i| (i * 89 + i / 256) as u8).collect();
            let (mut expected, mut found) = (vec![0xee; source.len()], vec![0xee; source.len()]);
            naive(Conversion::Copy, run as u64, places(counts, from, to), &source, &mut expected);
            let mut target = ViewMut::new(&mut found);
            kernel.transfer(counts, View::new(&source), from, &mut target, to).unwrap();
            assert!(found == expected, "{run} at {start}");
        }
    }
}

#[test]
fn a_refused_value_stops_the_kernel() {
    let int = |size| Scalar { value: Value::Int { signed: true }, size, order: ByteOrder::Little };
    let kernel = Kernel::new(Conversion::between(int(4), int(2)).unwrap(), 2);
    let source: Vec<u8> =
        [1, 2, 3, 4, -5, 70_000, 7, 8i32].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut found = [0xee; 16];
    let (from, to) = (Lane::packed(0, [2, 2], 8), Lane::packed(0, [2, 2], 4));
    let stopped =
        kernel.transfer([2, 2], View::new(&source), from, &mut ViewMut::new(&mut found), to);
    assert_eq!(stopped.unwrap_err().to_string(), "unit 5: 70000 doesn't fit");
    assert_eq!(found[..10], [1, 0, 2, 0, 3, 0, 4, 0, 0xfb, 0xff]);
    assert_eq!(found[10..], [0xee; 6]);
}

#[test]
fn runs_outside_a_view_are_refused_before_anything_moves() {
    let source = [7; 64];
    let mut found = [0; 64];
    let kernel = Kernel::new(Conversion::Copy, 8);
    let dense = Lane::packed(0, [1, 4], 8);
    let refused = |counts, from, to, found: &mut [u8]| {
        kernel.transfer(counts, View::new(&source), from, &mut ViewMut::new(found), to).is_err()
    };
    let strided = |start, stride| Lane { start, strides: [0, stride] };
    assert!(refused([1, 4], strided(0, 19), dense, &mut found));
    assert!(!refused([1, 4], strided(0, 18), dense, &mut found));
    found.fill(0);
    assert!(refused([1, 4], strided(23, -8), dense, &mut found));
    assert!(refused([1, 2], dense, strided(57, 0), &mut found));
    assert!(refused([1, 2], dense, strided(-1, 8), &mut found));
    assert!(refused([1, 3], strided(0, i64::MAX), dense, &mut found));
    assert!(refused([u64::MAX, 3], dense, dense, &mut found));
    assert!(refused([1, 1], strided(i64::MAX - 3, 0), dense, &mut found));
    assert!(refused([1, 1], strided(i64::MAX, 0), dense, &mut found));
    assert!(refused([1, 1], dense, strided(i64::MIN, 0), &mut found));
    assert_eq!(found, [0; 64]);
    let endless = Kernel::new(Conversion::Swap { unit: Unit::Sixteen }, u64::MAX);
    let moved =
        endless.transfer([1, 1], View::new(&source), dense, &mut ViewMut::new(&mut found), dense);
    assert!(moved.is_err());
    let table = Offsets::new([0, 60]);
    let (view, mut target) = (View::new(&source), ViewMut::new(&mut found));
    assert!(kernel.by_table(Tabled::Source, &table, 0..1, view, 0, &mut target, 0).is_err());
    assert!(kernel.by_table(Tabled::Target, &table, 0..1, view, 0, &mut target, 0).is_err());
    assert!(kernel.by_table(Tabled::Source, &table, 0..2, view, -4, &mut target, 0).is_err());
}

#[test]
fn transfers_between_overlapping_views_are_sound() {
    let mut memory = memory();
    for conversion in conversions() {
        for units in [1, 3, 9, 40] {
            let kernel = Kernel::new(conversion, units);
            let start = memory.as_mut_ptr();
            // SAFETY: the vector's memory. No reference to it exists while the views do.
            let (source, mut target) = unsafe {
                (View::from_raw(start, SIZE as u64), ViewMut::from_raw(start, SIZE as u64))
            };
            let lane = |start| Lane { start, strides: [0, 5] };
            kernel.transfer([1, 9], source, lane(100), &mut target, lane(103)).unwrap();
        }
    }
}
