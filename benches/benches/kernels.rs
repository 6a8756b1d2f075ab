//! Kernels against hand-written loops and against the machine's limits.
//!
//! `cargo bench -p longshore-benches --bench kernels [FILTER]` prints GB/s of payload, and how many
//! times longer each contender takes than the row's first. Contenders take turns, and the lowest of
//! each one's times counts, since a machine's speed drifts and others use it. Rows a to f are those
//! of datatype benches everywhere. `hand` is a typed loop with the type's constants in it; `limit`
//! copies or swaps the same bytes by the widest vectors there are.

use std::hint::black_box;
use std::time::{Duration, Instant};

use shipable::arch::{ByteOrder, FloatFormat, Scalar, Value};
use shipable::convert::{Conversion, Unit};
use shipable::kernels::{Kernel, Lane, Offsets};
use shipable::memory::{View, ViewMut};

/// 1 MiB.
const DOUBLES: usize = 1 << 17;

/// The memory that contenders work on.
struct Arena {
    memory: Vec<f64>,
    stream: Vec<f64>,
}

impl Arena {
    /// `memory` bytes beside a stream of `stream` bytes.
    fn new(memory: usize, stream: usize) -> Arena {
        let doubles = |bytes: usize| (0..bytes.div_ceil(8)).map(|i| i as f64).collect();
        Arena { memory: doubles(memory), stream: doubles(stream) }
    }

    fn packing(&mut self) -> (&[u8], &mut [u8]) {
        (bytemuck::cast_slice(&self.memory), bytemuck::cast_slice_mut(&mut self.stream))
    }

    fn unpacking(&mut self) -> (&[u8], &mut [u8]) {
        (bytemuck::cast_slice(&self.stream), bytemuck::cast_slice_mut(&mut self.memory))
    }
}

/// Moves one column: its kernel, its counts, its places in memory and in the stream.
type Transfer<'a> = dyn FnMut(&Kernel, [u64; 2], Lane, Lane) + 'a;

type Contender<'a> = (&'static str, Box<dyn Fn(&mut Arena) + 'a>);

/// Prints a row, if the command line asks for it.
fn race(name: &str, payload: usize, mut arena: Arena, contenders: Vec<Contender<'_>>) {
    const TURNS: usize = 60;
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|filter| !name.contains(&filter)) {
        return;
    }
    // So many passes at once that the clock's resolution doesn't matter.
    let passes = (200_000 / payload).clamp(1, 10_000);
    let mut lowest = vec![Duration::MAX; contenders.len()];
    for _ in 0..TURNS {
        for ((_, contender), lowest) in contenders.iter().zip(&mut lowest) {
            contender(black_box(&mut arena));
            let start = Instant::now();
            (0..passes).for_each(|_| contender(black_box(&mut arena)));
            *lowest = start.elapsed().min(*lowest);
        }
    }
    print!("{name:44}");
    for ((contender, _), time) in contenders.iter().zip(&lowest) {
        let rate = (payload * passes) as f64 / time.as_nanos() as f64;
        let ratio = time.as_secs_f64() / lowest[0].as_secs_f64();
        print!("  {contender} {rate:.1} ({ratio:.2})");
    }
    println!();
}

/// A strided type.
#[derive(Clone, Copy)]
struct Shape {
    counts: [u64; 2],
    strides: [i64; 2],
    /// Bytes of a run.
    run: u64,
}

impl Shape {
    fn payload(&self) -> usize {
        (self.counts[0] * self.counts[1] * self.run) as usize
    }

    fn arena(&self) -> Arena {
        let last = |dimension: usize| self.counts[dimension] as i64 * self.strides[dimension];
        Arena::new((last(0) + last(1)) as usize, self.payload())
    }

    fn lanes(&self) -> (Lane, Lane) {
        let memory = Lane { start: 0, strides: self.strides };
        (memory, Lane::packed(0, self.counts, self.run))
    }

    fn pack(self, conversion: Conversion) -> Box<dyn Fn(&mut Arena)> {
        let kernel = Kernel::new(conversion, self.run / u64::from(conversion.from_size()));
        let (memory, stream) = self.lanes();
        Box::new(move |arena| {
            let (from, to) = arena.packing();
            let (from, mut to) = (View::new(from), ViewMut::new(to));
            kernel.transfer(self.counts, from, memory, &mut to, stream).unwrap();
        })
    }

    fn unpack(self, conversion: Conversion) -> Box<dyn Fn(&mut Arena)> {
        let kernel = Kernel::new(conversion, self.run / u64::from(conversion.from_size()));
        let (memory, stream) = self.lanes();
        Box::new(move |arena| {
            let (from, to) = arena.unpacking();
            let (from, mut to) = (View::new(from), ViewMut::new(to));
            kernel.transfer(self.counts, from, stream, &mut to, memory).unwrap();
        })
    }

    fn race(self, name: &str, pack: fn(&mut Arena), unpack: fn(&mut Arena)) {
        let swap = Conversion::Swap { unit: Unit::Eight };
        let contenders: Vec<Contender> = vec![
            ("hand", Box::new(pack)),
            ("copy", self.pack(Conversion::Copy)),
            ("swap", self.pack(swap)),
        ];
        race(&format!("{name}, pack"), self.payload(), self.arena(), contenders);
        let contenders: Vec<Contender> = vec![
            ("hand", Box::new(unpack)),
            ("copy", self.unpack(Conversion::Copy)),
            ("swap", self.unpack(swap)),
        ];
        race(&format!("{name}, unpack"), self.payload(), self.arena(), contenders);
    }
}

/// Packs and unpacks blocks of `B` doubles, `S` apart.
fn pack_blocks<const B: usize, const S: usize>(arena: &mut Arena) {
    for (from, to) in arena.memory.chunks_exact(S).zip(arena.stream.chunks_exact_mut(B)) {
        to.copy_from_slice(&from[..B]);
    }
}

fn unpack_blocks<const B: usize, const S: usize>(arena: &mut Arena) {
    for (to, from) in arena.memory.chunks_exact_mut(S).zip(arena.stream.chunks_exact(B)) {
        to[..B].copy_from_slice(from);
    }
}

fn strided() {
    let single = Shape { counts: [1, DOUBLES as u64], strides: [0, 16], run: 8 };
    single.race("a vector of 1 double, stride 2", pack_blocks::<1, 2>, unpack_blocks::<1, 2>);
    let single = Shape { counts: [1, 2048], ..single };
    single.race("a the same, 16 KiB", pack_blocks::<1, 2>, unpack_blocks::<1, 2>);
    let blocks = Shape { counts: [1, DOUBLES as u64 / 8], strides: [0, 128], run: 64 };
    blocks.race("b vector of 8 doubles, stride 16", pack_blocks::<8, 16>, unpack_blocks::<8, 16>);
    let blocks = Shape { counts: [1, 256], ..blocks };
    blocks.race("b the same, 16 KiB", pack_blocks::<8, 16>, unpack_blocks::<8, 16>);
    let rows = Shape { counts: [1, 512], strides: [0, 8192], run: 4096 };
    rows.race("e 512 x 512 of 1024 x 1024", pack_blocks::<512, 1024>, unpack_blocks::<512, 1024>);
    let face = Shape { counts: [128, 128], strides: [128 * 128 * 8, 128 * 8], run: 8 };
    face.race("f face of a cube of 128", pack_blocks::<1, 128>, unpack_blocks::<1, 128>);
    let plane = Shape { counts: [1, 1 << 16], strides: [0, 24], run: 16 };
    plane.race("pairs of doubles, stride 3", pack_blocks::<2, 3>, unpack_blocks::<2, 3>);
    let triples = Shape { counts: [1, 1 << 15], strides: [0, 40], run: 24 };
    triples.race("triples of doubles, stride 5", pack_blocks::<3, 5>, unpack_blocks::<3, 5>);
    let tens = Shape { counts: [1, 1 << 14], strides: [0, 128], run: 80 };
    tens.race("tens of doubles, stride 16", pack_blocks::<10, 16>, unpack_blocks::<10, 16>);
}

/// struct {char, double, int, short[3]} x 10000: the columns of a few hundred structs at a time.
fn records() {
    const COUNT: usize = 10_000;
    const EXTENT: usize = 32;
    const SIZE: usize = 19;
    const COLUMNS: [(usize, usize); 3] = [(0, 1), (8, 8), (16, 10)];
    let kernels = COLUMNS.map(|(_, run)| Kernel::new(Conversion::Copy, run as u64));
    let kernels = &kernels;
    let columns = |chunk: usize, each: &mut Transfer<'_>| {
        for first in (0..COUNT).step_by(chunk) {
            let counts = [1, chunk.min(COUNT - first) as u64];
            let mut packed = 0;
            for ((at, run), kernel) in COLUMNS.iter().zip(kernels) {
                let lane = |start: usize, stride: usize| Lane {
                    start: start as i64,
                    strides: [0, stride as i64],
                };
                each(
                    kernel,
                    counts,
                    lane(first * EXTENT + at, EXTENT),
                    lane(first * SIZE + packed, SIZE),
                );
                packed += run;
            }
        }
    };
    let columns = &columns;
    let mut packs: Vec<Contender> = vec![(
        "hand",
        Box::new(|arena| {
            let (memory, stream) = arena.packing();
            for (from, to) in memory.chunks_exact(EXTENT).zip(stream.chunks_exact_mut(SIZE)) {
                to[0] = from[0];
                to[1..9].copy_from_slice(&from[8..16]);
                to[9..13].copy_from_slice(&from[16..20]);
                to[13..19].copy_from_slice(&from[20..26]);
            }
        }),
    )];
    let mut unpacks: Vec<Contender> = vec![(
        "hand",
        Box::new(|arena| {
            let (stream, memory) = arena.unpacking();
            for (to, from) in memory.chunks_exact_mut(EXTENT).zip(stream.chunks_exact(SIZE)) {
                to[0] = from[0];
                to[8..16].copy_from_slice(&from[1..9]);
                to[16..20].copy_from_slice(&from[9..13]);
                to[20..26].copy_from_slice(&from[13..19]);
            }
        }),
    )];
    for (name, chunk) in [("chunks of 64", 64), ("256", 256), ("1024", 1024)] {
        packs.push((
            name,
            Box::new(move |arena| {
                let (from, to) = arena.packing();
                let (from, mut to) = (View::new(from), ViewMut::new(to));
                columns(chunk, &mut |kernel, counts, memory, stream| {
                    kernel.transfer(counts, from, memory, &mut to, stream).unwrap()
                });
            }),
        ));
        unpacks.push((
            name,
            Box::new(move |arena| {
                let (from, to) = arena.unpacking();
                let (from, mut to) = (View::new(from), ViewMut::new(to));
                columns(chunk, &mut |kernel, counts, memory, stream| {
                    kernel.transfer(counts, from, stream, &mut to, memory).unwrap()
                });
            }),
        ));
    }
    let arena = || Arena::new(COUNT * EXTENT, COUNT * SIZE);
    race("d struct {char, double, int, short[3]}, pack", COUNT * SIZE, arena(), packs);
    race("d struct {char, double, int, short[3]}, unpack", COUNT * SIZE, arena(), unpacks);
}

/// 1024 random blocks of 1 to 8 ints, as a table of single ints.
fn indexed() {
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % below) as usize
    };
    let blocks: Vec<(usize, usize)> =
        (0..1024).map(|i| (i * 16 + random(8), 1 + random(8))).collect();
    let units: Vec<i64> = blocks
        .iter()
        .flat_map(|&(at, length)| (at..at + length).map(|unit| 4 * unit as i64))
        .collect();
    let payload = 4 * units.len();
    let (kernel, table) = (Kernel::new(Conversion::Copy, 4), Offsets::new(units));
    let swap = Kernel::new(Conversion::Swap { unit: Unit::Four }, 1);
    let (kernels, table) = (&[("copy", kernel), ("swap", swap)], &table);
    let blocks = &blocks;
    let mut packs: Vec<Contender> = vec![(
        "hand",
        Box::new(move |arena| {
            let (memory, stream) = arena.packing();
            let mut at = 0;
            for &(from, length) in blocks {
                stream[4 * at..4 * (at + length)]
                    .copy_from_slice(&memory[4 * from..4 * (from + length)]);
                at += length;
            }
        }),
    )];
    let mut unpacks: Vec<Contender> = vec![(
        "hand",
        Box::new(move |arena| {
            let (stream, memory) = arena.unpacking();
            let mut at = 0;
            for &(from, length) in blocks {
                memory[4 * from..4 * (from + length)]
                    .copy_from_slice(&stream[4 * at..4 * (at + length)]);
                at += length;
            }
        }),
    )];
    for (name, kernel) in kernels {
        let all = || 0..table.as_slice().len();
        packs.push((
            name,
            Box::new(move |arena| {
                let (from, to) = arena.packing();
                kernel.gather(table, all(), View::new(from), 0, &mut ViewMut::new(to), 0).unwrap()
            }),
        ));
        unpacks.push((
            name,
            Box::new(move |arena| {
                let (from, to) = arena.unpacking();
                kernel.scatter(table, all(), View::new(from), 0, &mut ViewMut::new(to), 0).unwrap()
            }),
        ));
    }
    let arena = || Arena::new(1024 * 16 * 4 + 64, payload);
    race("c indexed, 1024 blocks of 1 to 8 ints, pack", payload, arena(), packs);
    race("c indexed, 1024 blocks of 1 to 8 ints, unpack", payload, arena(), unpacks);
}

fn contiguous() {
    for bytes in [8, 64, 256, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 16 << 20] {
        let shape = Shape { counts: [1, 1], strides: [bytes as i64, 0], run: bytes as u64 };
        let contenders: Vec<Contender> = vec![
            (
                "limit",
                Box::new(|arena| {
                    let (from, to) = arena.packing();
                    to.copy_from_slice(&from[..to.len()]);
                }),
            ),
            ("copy", shape.pack(Conversion::Copy)),
        ];
        race(&format!("contiguous copy of {bytes}"), bytes, shape.arena(), contenders);
        let swap = |unit| shape.pack(Conversion::Swap { unit });
        let mut contenders: Vec<Contender> = vec![
            (
                "limit",
                Box::new(|arena| {
                    let (from, to) = arena.packing();
                    limit::swap8(&from[..to.len()], to);
                }),
            ),
            ("8", swap(Unit::Eight)),
            ("4", swap(Unit::Four)),
            ("2", swap(Unit::Two)),
        ];
        if bytes > 8 {
            contenders.push(("16", swap(Unit::Sixteen)));
        }
        race(&format!("contiguous swap of {bytes}"), bytes, shape.arena(), contenders);
    }
}

/// Conversions that look at each value; no limit but the first's time.
fn converted() {
    use ByteOrder::{Big, Little};
    let int = |size, order| Scalar { value: Value::Int { signed: true }, size, order };
    let float = |format, size, order| Scalar { value: Value::Float(format), size, order };
    let count = 4096;
    for (name, from, to) in [
        ("long 8 to 4", int(8, Little), int(4, Little)),
        ("long 4 to 8", int(4, Little), int(8, Little)),
        ("long 8 to 4, swapped", int(8, Little), int(4, Big)),
        ("long 4 to 8, swapped", int(4, Little), int(8, Big)),
        (
            "x87 to binary128",
            float(FloatFormat::X87, 16, Little),
            float(FloatFormat::Binary128, 16, Big),
        ),
        (
            "binary128 to x87",
            float(FloatFormat::Binary128, 16, Big),
            float(FloatFormat::X87, 12, Little),
        ),
        (
            "double to float",
            float(FloatFormat::Binary64, 8, Little),
            float(FloatFormat::Binary32, 4, Big),
        ),
    ] {
        let kernel = Kernel::new(Conversion::between(from, to).unwrap(), count);
        let lane = Lane { start: 0, strides: [0, 0] };
        let contender: Contender = (
            "kernel",
            Box::new(move |arena| {
                let (from, to) = arena.packing();
                kernel
                    .transfer([1, 1], View::new(from), lane, &mut ViewMut::new(to), lane)
                    .unwrap();
            }),
        );
        let bytes = kernel.from_run() as usize;
        let mut arena = Arena::new(bytes, kernel.to_run() as usize);
        // Zeros convert between any two.
        arena.memory.fill(0.0);
        race(&format!("converted: {name}"), bytes, arena, vec![contender]);
    }
}

/// What the machine can do: wide vectors, by hand.
mod limit {
    #![allow(unsafe_code)]

    /// Reverses the bytes of each double.
    pub fn swap8(source: &[u8], target: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && source.len() % 64 == 0 {
            // SAFETY: the processor has AVX2, and both slices have the same length, a multiple of
            // 64.
            return unsafe { swap8_avx2(source, &mut target[..source.len()]) };
        }
        for (from, to) in source.chunks_exact(8).zip(target.chunks_exact_mut(8)) {
            to.copy_from_slice(from);
            to.reverse();
        }
    }

    /// # Safety
    ///
    /// The processor must have AVX2, and the slices one length, a multiple of 64.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn swap8_avx2(source: &[u8], target: &mut [u8]) {
        use std::arch::x86_64::*;
        for at in (0..source.len()).step_by(64) {
            // SAFETY: 64 bytes from `at` lie in both slices.
            unsafe {
                let reversed = _mm256_set_epi64x(
                    0x08090a0b0c0d0e0f,
                    0x0001020304050607,
                    0x08090a0b0c0d0e0f,
                    0x0001020304050607,
                );
                let low = _mm256_loadu_si256(source.as_ptr().add(at).cast());
                let high = _mm256_loadu_si256(source.as_ptr().add(at + 32).cast());
                let to = target.as_mut_ptr().add(at);
                _mm256_storeu_si256(to.cast(), _mm256_shuffle_epi8(low, reversed));
                _mm256_storeu_si256(to.add(32).cast(), _mm256_shuffle_epi8(high, reversed));
            }
        }
    }
}

fn main() {
    contiguous();
    strided();
    indexed();
    records();
    converted();
}
