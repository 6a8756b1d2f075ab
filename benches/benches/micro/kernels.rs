//! Kernels by conversion and size, beside the limit: a copy by the C library.

use divan::Bencher;
use divan::counter::BytesCount;
use shipable::arch::{ByteOrder, FloatFormat, Scalar, Value};
use shipable::convert::{Conversion, Unit};
use shipable::kernels::{Kernel, Lane};
use shipable::memory::{View, ViewMut};

const SIZES: [usize; 5] = [64, 1 << 10, 8 << 10, 64 << 10, 1 << 20];

/// Measures a kernel between memory and stream.
fn transfer(bencher: Bencher, kernel: Kernel, counts: [u64; 2], strides: [i64; 2]) {
    let extent = |dimension: usize| counts[dimension] as i64 * strides[dimension];
    let run = kernel.from_run();
    let payload = counts[0] * counts[1] * run;
    // Zeros convert between any two formats.
    let from = vec![0; (extent(0) + extent(1)).max(payload as i64) as usize];
    let mut to = vec![0; (counts[0] * counts[1] * kernel.to_run()) as usize];
    let lanes = (Lane { start: 0, strides }, Lane::packed(0, counts, kernel.to_run()));
    bencher.counter(BytesCount::new(payload)).bench_local(|| {
        let (from, mut to) = (View::new(divan::black_box(&from)), ViewMut::new(&mut to));
        kernel.transfer(counts, from, lanes.0, &mut to, lanes.1)
    });
}

fn contiguous(bencher: Bencher, conversion: Conversion, bytes: usize) {
    let items = bytes as u64 / u64::from(conversion.from_size());
    transfer(bencher, Kernel::new(conversion, items), [1, 1], [0, 0]);
}

#[divan::bench(args = SIZES)]
fn limit(bencher: Bencher, bytes: usize) {
    let (from, mut to) = (vec![0u8; bytes], vec![0u8; bytes]);
    let bencher = bencher.counter(BytesCount::new(bytes));
    bencher.bench_local(|| divan::black_box(&mut to).copy_from_slice(divan::black_box(&from)));
}

#[divan::bench(args = SIZES)]
fn copy(bencher: Bencher, bytes: usize) {
    contiguous(bencher, Conversion::Copy, bytes);
}

/// Offsets of the destination in its page, relative to the offset of the source. One of the two
/// begins a page.
const APART: [isize; 6] = [0, 8, 16, 32, 40, -16];

fn askew(bencher: Bencher, bytes: usize, apart: isize, copy: impl Fn(&[u8], &mut [u8])) {
    const PAGE: usize = 4096;
    let (from, mut to) = (vec![0u8; bytes + 2 * PAGE], vec![0u8; bytes + 2 * PAGE]);
    let [first, second] = [&from, &to].map(|memory| memory.as_ptr().align_offset(PAGE));
    let [first_apart, second_apart] = [-apart, apart].map(|apart| apart.max(0) as usize);
    let from = &from[first + first_apart..][..bytes];
    let to = &mut to[second + second_apart..][..bytes];
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| copy(divan::black_box(from), divan::black_box(to)));
}

#[divan::bench(args = APART, consts = [4 << 10, 64 << 10])]
fn askew_copy<const BYTES: usize>(bencher: Bencher, apart: isize) {
    let kernel = Kernel::new(Conversion::Copy, BYTES as u64);
    let (counts, lane) = ([1, 1], Lane { start: 0, strides: [0, 0] });
    askew(bencher, BYTES, apart, |from, to| {
        kernel.transfer(counts, View::new(from), lane, &mut ViewMut::new(to), lane).unwrap();
    });
}

#[divan::bench(args = APART, consts = [4 << 10, 64 << 10])]
fn askew_limit<const BYTES: usize>(bencher: Bencher, apart: isize) {
    askew(bencher, BYTES, apart, |from, to| to.copy_from_slice(from));
}

#[divan::bench(args = SIZES)]
fn swap_2(bencher: Bencher, bytes: usize) {
    contiguous(bencher, Conversion::Swap { unit: Unit::Two }, bytes);
}

#[divan::bench(args = SIZES)]
fn swap_4(bencher: Bencher, bytes: usize) {
    contiguous(bencher, Conversion::Swap { unit: Unit::Four }, bytes);
}

#[divan::bench(args = SIZES)]
fn swap_8(bencher: Bencher, bytes: usize) {
    contiguous(bencher, Conversion::Swap { unit: Unit::Eight }, bytes);
}

#[divan::bench(args = SIZES)]
fn swap_16(bencher: Bencher, bytes: usize) {
    contiguous(bencher, Conversion::Swap { unit: Unit::Sixteen }, bytes);
}

/// Blocks of doubles: length, stride and count.
const STRIDED: [[u64; 3]; 6] = [
    [1, 2, 1 << 10],
    [2, 3, 1 << 10],
    [3, 5, 1 << 10],
    [8, 16, 256],
    [10, 16, 256],
    [512, 1024, 64],
];

#[divan::bench(args = STRIDED)]
fn strided(bencher: Bencher, [length, stride, count]: [u64; 3]) {
    let kernel = Kernel::new(Conversion::Copy, 8 * length);
    transfer(bencher, kernel, [1, count], [0, 8 * stride as i64]);
}

#[divan::bench(args = STRIDED)]
fn strided_swap(bencher: Bencher, [length, stride, count]: [u64; 3]) {
    let kernel = Kernel::new(Conversion::Swap { unit: Unit::Eight }, length);
    transfer(bencher, kernel, [1, count], [0, 8 * stride as i64]);
}

/// Conversions that check each value.
const CONVERTED: [&str; 7] = [
    "i64 to i32",
    "i32 to i64",
    "i64 to i32, swapped",
    "i32 to i64, swapped",
    "x87 to binary128",
    "binary128 to x87",
    "double to float",
];

#[divan::bench(args = CONVERTED)]
fn converted(bencher: Bencher, name: &str) {
    use ByteOrder::{Big, Little};
    let int = |size, order| Scalar { value: Value::Int { signed: true }, size, order };
    let float = |format, size, order| Scalar { value: Value::Float(format), size, order };
    let (from, to) = match name {
        "i64 to i32" => (int(8, Little), int(4, Little)),
        "i32 to i64" => (int(4, Little), int(8, Little)),
        "i64 to i32, swapped" => (int(8, Little), int(4, Big)),
        "i32 to i64, swapped" => (int(4, Little), int(8, Big)),
        "x87 to binary128" => {
            (float(FloatFormat::X87, 16, Little), float(FloatFormat::Binary128, 16, Big))
        }
        "binary128 to x87" => {
            (float(FloatFormat::Binary128, 16, Big), float(FloatFormat::X87, 12, Little))
        }
        _ => (float(FloatFormat::Binary64, 8, Little), float(FloatFormat::Binary32, 4, Big)),
    };
    let conversion = Conversion::between(from, to).expect("floats and integers convert");
    transfer(bencher, Kernel::new(conversion, 4096), [1, 1], [0, 0]);
}
