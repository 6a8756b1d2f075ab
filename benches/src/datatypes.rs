//! Pack and unpack beside a hand-written loop, and a byte-swapping unpack beside the machine's limit.
//!
//! The types are those of the comparison with MPICH and Open MPI (`benches/peers`): a to f, and contiguous. Each figure is the
//! fastest of many rounds, in which ours and the loop take turns, so that both meet the same clock and caches.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use shipable::{Architecture, Committed, Datatype, Order, Partial, Program, Result, View, ViewMut};

/// One type, one direction.
#[derive(Clone, Debug)]
pub struct Row {
    /// The type.
    pub name: &'static str,
    /// What was done: `pack`, `unpack` or `swap`.
    pub work: &'static str,
    /// Bytes of payload.
    pub bytes: u64,
    /// The time that this library takes.
    pub ours: Duration,
    /// The time that the hand-written loop takes, or the machine's limit.
    pub loop_: Duration,
}

impl Row {
    /// How many times longer than the loop this library takes.
    pub fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.loop_.as_secs_f64()
    }
}

/// The greatest ratio that is the goal.
pub const GOAL: f64 = 1.2;

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = |time: Duration| self.bytes as f64 / time.as_secs_f64() / 1e6;
        write!(
            f,
            "{:<46} {:<7} {:>9.0} {:>9.0} {:>6.2}",
            self.name,
            self.work,
            speed(self.ours),
            speed(self.loop_),
            self.ratio()
        )?;
        if self.ratio() > GOAL { f.write_str("  above the goal of 1.2") } else { Ok(()) }
    }
}

/// The line above the rows.
pub fn heading() -> String {
    format!("{:<46} {:<7} {:>9} {:>9} {:>6}", "MB/s of payload", "", "ours", "loop", "ratio")
}

/// Measures every row, spending about `time` on each.
///
/// # Errors
///
/// Those of the library, none of which is expected.
pub fn measure(time: Duration) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in cases()? {
        case.measure(time, &mut rows)?;
    }
    rows.push(swap(time)?);
    Ok(rows)
}

/// A loop from memory to the packed stream, or back.
type Pack = Box<dyn Fn(&[u8], &mut [u8])>;
type Unpack = Box<dyn Fn(&mut [u8], &[u8])>;

struct Case {
    name: &'static str,
    datatype: Datatype,
    count: u64,
    pack: Pack,
    unpack: Unpack,
}

impl Case {
    fn measure(&self, time: Duration, rows: &mut Vec<Row>) -> Result<()> {
        let committed = Committed::new(&self.datatype, &Architecture::NATIVE)?;
        let program = committed.native();
        let length = program.range(self.count)?.end as usize;
        let bytes = program.stream_length(self.count)?;
        let memory: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
        let (mut packed, mut looped) = (vec![0; bytes as usize], vec![0; bytes as usize]);

        let (ours, loop_) = race(
            time,
            &mut packed,
            &mut looped,
            |packed| {
                let packed = program.pack(self.count, View::new(black_box(&memory)), 0, packed);
                packed.map(|_| ())
            },
            |looped| (self.pack)(black_box(&memory), looped),
        )?;
        assert!(packed == looped, "{}: pack and loop disagree", self.name);
        rows.push(Row { name: self.name, work: "pack", bytes, ours, loop_ });

        let (mut back, mut looped) = (vec![0; length], vec![0; length]);
        let (ours, loop_) = race(
            time,
            &mut back,
            &mut looped,
            |back| unpack(program, self.count, back, &packed),
            |looped| (self.unpack)(looped, black_box(&packed)),
        )?;
        assert!(back == looped, "{}: unpack and loop disagree", self.name);
        rows.push(Row { name: self.name, work: "unpack", bytes, ours, loop_ });
        Ok(())
    }
}

fn unpack(program: &Program, count: u64, memory: &mut [u8], packed: &[u8]) -> Result<()> {
    let packed = black_box(packed);
    program.unpack(count, ViewMut::new(memory), 0, packed, &mut Partial::default())
}

/// A byte-swapping unpack of 1 MiB of doubles. The limit is the faster of a loop of swaps and a plain copy.
fn swap(time: Duration) -> Result<Row> {
    let doubles = 1 << 17;
    let other = match Architecture::NATIVE.order() {
        shipable::arch::ByteOrder::Little => Architecture::S390X,
        shipable::arch::ByteOrder::Big => Architecture::X86_64,
    };
    let committed = Committed::new(&Datatype::double(), &Architecture::NATIVE)?;
    let program = committed.program(&other)?;
    let packed: Vec<u8> = (0..8 * doubles).map(|at| (at * 7) as u8).collect();
    let (mut back, mut looped) = (vec![0; packed.len()], vec![0; packed.len()]);
    let ours = |back: &mut [u8]| unpack(&program, doubles as u64, back, &packed);
    let (fastest, swapped) =
        race(time, &mut back, &mut looped, ours, |looped| swap_loop(black_box(&packed), looped))?;
    assert!(back == looped, "swap and loop disagree");
    let copy = |looped: &mut [u8]| looped.copy_from_slice(black_box(&packed));
    let (again, copied) = race(time, &mut back, &mut looped, ours, copy)?;
    Ok(Row {
        name: "1 MiB of doubles, byte order reversed",
        work: "unpack",
        bytes: packed.len() as u64,
        ours: fastest.min(again),
        loop_: swapped.min(copied),
    })
}

fn swap_loop(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        to.copy_from_slice(from);
        to.reverse();
    }
}

/// The fastest rounds of two ways to fill memory. They change places every round, since where memory lies
/// in the caches can make a difference of half.
fn race<'a>(
    time: Duration,
    mut ours: &'a mut [u8],
    mut theirs: &'a mut [u8],
    mut us: impl FnMut(&mut [u8]) -> Result<()>,
    mut them: impl FnMut(&mut [u8]),
) -> Result<(Duration, Duration)> {
    let mut best = (Duration::MAX, Duration::MAX);
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 5 || start.elapsed() < time {
        let at = Instant::now();
        us(black_box(&mut *ours))?;
        best.0 = best.0.min(at.elapsed());
        let at = Instant::now();
        them(black_box(&mut *theirs));
        best.1 = best.1.min(at.elapsed());
        std::mem::swap(&mut ours, &mut theirs);
        rounds += 1;
    }
    Ok(best)
}

fn cases() -> Result<Vec<Case>> {
    let double = Datatype::double();
    let one = strided(1, 2, 1 << 17);
    let eight = strided(8, 16, 1 << 14);
    let row = strided(512, 1024, 512);
    let side = 128;
    let face = strided(1, side, side * side);
    let (edge, inner, none) = ([side as i64; 3], [side as i64, side as i64, 1], [0; 3]);
    Ok(vec![
        Case {
            name: "a. vector of 1 double, stride 2 (1 MiB)",
            datatype: Datatype::vector(1 << 17, 1, 2, &double)?,
            count: 1,
            pack: one.0,
            unpack: one.1,
        },
        Case {
            name: "b. vector of 8 doubles, stride 16 (1 MiB)",
            datatype: Datatype::vector(1 << 14, 8, 16, &double)?,
            count: 1,
            pack: eight.0,
            unpack: eight.1,
        },
        indexed()?,
        structs()?,
        Case {
            name: "e. 512 x 512 of 1024 x 1024 doubles",
            datatype: Datatype::subarray(&[1024, 1024], &[512, 512], &[0, 0], Order::C, &double)?,
            count: 1,
            pack: row.0,
            unpack: row.1,
        },
        Case {
            name: "f. face of 128^3 doubles, 1 thick where fastest",
            datatype: Datatype::subarray(&edge, &inner, &none, Order::C, &double)?,
            count: 1,
            pack: face.0,
            unpack: face.1,
        },
        Case {
            name: "contiguous, 1 MiB",
            datatype: double,
            count: 1 << 17,
            pack: Box::new(|memory, packed| packed.copy_from_slice(memory)),
            unpack: Box::new(|memory, packed| memory.copy_from_slice(packed)),
        },
    ])
}

/// Loops over `count` blocks of `length` doubles, `stride` doubles apart. Blocks of 1 and 8 are constants to the compiler.
fn strided(length: usize, stride: usize, count: usize) -> (Pack, Unpack) {
    match length {
        1 => constant::<8>(8 * stride, count),
        8 => constant::<64>(8 * stride, count),
        _ => {
            let (length, stride) = (8 * length, 8 * stride);
            (
                Box::new(move |memory, packed| {
                    for (i, block) in packed.chunks_exact_mut(length).take(count).enumerate() {
                        block.copy_from_slice(&memory[i * stride..i * stride + length]);
                    }
                }),
                Box::new(move |memory, packed| {
                    for (i, block) in packed.chunks_exact(length).take(count).enumerate() {
                        memory[i * stride..i * stride + length].copy_from_slice(block);
                    }
                }),
            )
        }
    }
}

fn constant<const BYTES: usize>(stride: usize, count: usize) -> (Pack, Unpack) {
    // The last block has no gap behind it. Lengths that the compiler knows keep checks out of the loops.
    assert!(count > 1 && stride >= BYTES);
    let head = (count - 1) * stride;
    (
        Box::new(move |memory, packed| {
            let (blocks, last) = packed.split_at_mut((count - 1) * BYTES);
            let from = memory[..head].chunks_exact(stride);
            for (block, from) in blocks.chunks_exact_mut(BYTES).zip(from) {
                block.copy_from_slice(&from[..BYTES]);
            }
            last.copy_from_slice(&memory[head..]);
        }),
        Box::new(move |memory, packed| {
            let (blocks, last) = packed.split_at((count - 1) * BYTES);
            let to = memory[..head].chunks_exact_mut(stride);
            for (block, to) in blocks.chunks_exact(BYTES).zip(to) {
                to[..BYTES].copy_from_slice(block);
            }
            memory[head..].copy_from_slice(last);
        }),
    )
}

/// 1024 blocks of 1 to 8 ints, in random order with random gaps.
fn indexed() -> Result<Case> {
    // The high bits of a linear congruential generator, so that every run has the same blocks.
    let mut state = 3u64;
    let mut below_8 = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 61) as usize
    };
    let lengths: Vec<usize> = (0..1024).map(|_| 1 + below_8()).collect();
    let mut places: Vec<usize> = (0..1024).map(|at| at * 16 + below_8()).collect();
    for at in (1..places.len()).rev() {
        let other = (0..4).fold(0, |index, _| index * 8 + below_8()) % (at + 1);
        places.swap(at, other);
    }
    let signed = |list: &[usize]| list.iter().map(|&n| n as i64).collect::<Vec<_>>();
    let datatype = Datatype::indexed(&signed(&lengths), &signed(&places), &Datatype::int())?;
    let blocks: Vec<(usize, usize)> =
        places.iter().zip(lengths).map(|(place, length)| (4 * place, 4 * length)).collect();
    let same = blocks.clone();
    Ok(Case {
        name: "c. indexed, 1024 random blocks of 1 to 8 ints",
        datatype,
        count: 1,
        pack: Box::new(move |memory, packed| {
            let mut at = 0;
            for &(place, length) in &blocks {
                packed[at..at + length].copy_from_slice(&memory[place..place + length]);
                at += length;
            }
        }),
        unpack: Box::new(move |memory, packed| {
            let mut at = 0;
            for &(place, length) in &same {
                memory[place..place + length].copy_from_slice(&packed[at..at + length]);
                at += length;
            }
        }),
    })
}

/// 10000 of a struct of char, double, int and short[3], which has 19 bytes of data in 32.
fn structs() -> Result<Case> {
    const SIZE: usize = 32;
    let members = [Datatype::char(), Datatype::double(), Datatype::int(), Datatype::short()];
    let datatype = Datatype::struct_(&[1, 1, 1, 3], &[0, 8, 16, 20], &members)?;
    Ok(Case {
        name: "d. struct {char, double, int, short[3]} x 10000",
        datatype,
        count: 10_000,
        pack: Box::new(|memory, packed| {
            for (to, from) in packed.chunks_exact_mut(19).zip(memory.chunks(SIZE)) {
                to[0] = from[0];
                to[1..9].copy_from_slice(&from[8..16]);
                to[9..13].copy_from_slice(&from[16..20]);
                to[13..19].copy_from_slice(&from[20..26]);
            }
        }),
        unpack: Box::new(|memory, packed| {
            for (to, from) in memory.chunks_mut(SIZE).zip(packed.chunks_exact(19)) {
                to[0] = from[0];
                to[8..16].copy_from_slice(&from[1..9]);
                to[16..20].copy_from_slice(&from[9..13]);
                to[20..26].copy_from_slice(&from[13..19]);
            }
        }),
    })
}
