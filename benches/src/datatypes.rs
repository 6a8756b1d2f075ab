//! Pack, unpack and commit beside hand-written loops, the machine's limit, and MPICH and Open MPI.
//!
//! The types are a to f and contiguous, as in most comparisons of MPI libraries, and external32 of doubles and of a mixed
//! struct. All contenders take turns, on one core: each turn measures each once, with memory and stream at the same places in
//! their pages, since that alone can make a difference of half. A ratio is of two times of one turn.

use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use shipable::{Architecture, Committed, Datatype, Order, Partial, Program, View, ViewMut};

use crate::worker::{Peer, Worker};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One type, and one kind of work on it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The type.
    pub name: &'static str,
    /// What was done: `pack`, `unpack` or `commit`.
    pub work: &'static str,
    /// Bytes of payload; 0 where the time counts, not the rate.
    pub bytes: u64,
    /// Ours first. A peer that died of the work is left out.
    pub contenders: Vec<Contender>,
}

/// Who did the work, and how fast.
#[derive(Clone, Debug)]
pub struct Contender {
    /// `Longshore`, `loop`, `limit`, or the name of an MPI library.
    pub name: String,
    /// Nanoseconds, one for each turn.
    pub times: Vec<f64>,
}

impl Row {
    /// How many times longer than another contender this library takes: the lower quartile of the turns, the median and the
    /// upper quartile.
    pub fn ratios(&self, other: &Contender) -> [f64; 3] {
        let pairs = self.contenders[0].times.iter().zip(&other.times);
        let mut ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| ratios[ratios.len() * quarter / 4])
    }

    /// The libraries that are faster by more than the spread of the turns.
    pub fn behind(&self) -> impl Iterator<Item = &Contender> {
        let libraries =
            self.contenders.iter().skip(1).filter(|c| !["loop", "limit"].contains(&&*c.name));
        libraries.filter(|library| self.ratios(library)[0] > 1.0)
    }
}

/// The rate or the time of each contender, and behind it the ratio with its quartiles: below 1 this library is faster.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<47} {:<7}", self.name, self.work)?;
        for (at, contender) in self.contenders.iter().enumerate() {
            let mut times = contender.times.clone();
            times.sort_unstable_by(f64::total_cmp);
            let median = times[times.len() / 2];
            match self.bytes {
                0 => write!(f, "  {} {:.2} us", contender.name, median / 1e3)?,
                bytes => write!(f, "  {} {:.1}", contender.name, bytes as f64 / median)?,
            }
            if at > 0 {
                let [low, middle, high] = self.ratios(contender);
                write!(f, " ({middle:.2}, {low:.2} to {high:.2})")?;
            }
        }
        self.behind().try_for_each(|library| write!(f, "  behind {}", library.name))
    }
}

/// Measures every row in so many turns of about a millisecond, beside the peers' `datatypes.c`, on the core where this runs.
///
/// # Errors
/// Contenders that disagree on the packed bytes; a peer that can't be started.
pub fn measure(turns: usize, peers: &[Peer], mut show: impl FnMut(&Row)) -> Result<()> {
    let mut workers = Vec::new();
    for peer in peers {
        workers.push((peer, peer.start()?));
    }
    for case in cases()? {
        case.transfers(turns, &mut workers, &mut show)?;
    }
    for case in cases()?.into_iter().filter(|case| ['a', 'c', 'd', 'e'].contains(&case.row)) {
        let make = || Ok(case.datatype()?);
        commit(case.row, case.name, &make, turns, &mut workers, &mut show)?;
    }
    let (lengths, places) = blocks(1 << 20, false);
    let make = || Ok(Datatype::indexed(&lengths, &places, &Datatype::int())?);
    commit('m', "indexed, a million blocks", &make, turns.min(5), &mut workers, &mut show)
}

/// A loop from memory to the packed stream, or back.
type Pack = Box<dyn Fn(&[u8], &mut [u8])>;
type Unpack = Box<dyn Fn(&mut [u8], &[u8])>;
/// A constructor with its arguments.
type Make = Box<dyn Fn() -> shipable::Result<Datatype>>;

struct Case {
    /// Its letter in the peers' program.
    row: char,
    name: &'static str,
    make: Make,
    count: u64,
    stream: Architecture,
    pack: Pack,
    unpack: Unpack,
}

/// Work of one contender: so many passes of it in a turn.
type Work<'a> = Box<dyn FnMut(usize, usize) -> Result<Duration> + 'a>;

impl Case {
    fn datatype(&self) -> shipable::Result<Datatype> {
        (self.make)()
    }

    fn transfers(
        &self,
        turns: usize,
        workers: &mut [(&Peer, Worker)],
        show: &mut impl FnMut(&Row),
    ) -> Result<()> {
        let committed = Committed::new(&self.datatype()?, &Architecture::NATIVE)?;
        let program = &*committed.program(&self.stream)?;
        let length = program.range(self.count)?.end as usize;
        let bytes = program.stream_length(self.count)? as usize;
        let memory: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();

        let (mut packed, mut looped) = (vec![0; bytes], vec![0; bytes]);
        pack(program, self.count, &memory, &mut packed)?;
        (self.pack)(&memory, &mut looped);
        self.agree(packed == looped, "pack and loop")?;
        let (mut back, mut again) = (vec![0; length], vec![0; length]);
        unpack(program, self.count, &mut back, &packed)?;
        (self.unpack)(&mut again, &packed);
        self.agree(back == again, "unpack and loop")?;

        let hashes = format!("{:016x} {:016x}", hash(&packed), hash(&back));
        let mut able = Vec::new();
        for (peer, worker) in workers.iter_mut() {
            match worker.ask(&format!("hash {}", self.row)) {
                Some(theirs) => self.agree(theirs == hashes, &peer.name)?,
                None => {
                    *worker = peer.start()?;
                    continue;
                }
            }
            able.push((&peer.name, worker));
        }

        for work in ["pack", "unpack"] {
            let packing = work == "pack";
            let copies = bytes.min(length);
            let mut contenders: Vec<(String, Work)> = vec![
                (
                    "Longshore".into(),
                    transfer(length, bytes, |memory, packed| match packing {
                        true => pack(program, self.count, memory, packed),
                        false => unpack(program, self.count, memory, packed),
                    }),
                ),
                (
                    "loop".into(),
                    transfer(length, bytes, |memory, packed| {
                        match packing {
                            true => (self.pack)(memory, packed),
                            false => (self.unpack)(memory, packed),
                        }
                        Ok(())
                    }),
                ),
                (
                    "limit".into(),
                    transfer(length, bytes, |memory, packed| {
                        match packing {
                            true => packed[..copies].copy_from_slice(&memory[..copies]),
                            false => memory[..copies].copy_from_slice(&packed[..copies]),
                        }
                        Ok(())
                    }),
                ),
            ];
            for (name, worker) in &mut able {
                contenders.push((name.to_string(), remote(worker, work, self.row)));
            }
            let contenders = race(turns, contenders)?;
            show(&Row { name: self.name, work, bytes: bytes as u64, contenders });
        }
        Ok(())
    }

    fn agree(&self, they: bool, who: &str) -> Result<()> {
        if they { Ok(()) } else { Err(format!("{}: {who} disagrees", self.name).into()) }
    }
}

/// Constructor, commit and free.
fn commit(
    row: char,
    name: &'static str,
    make: &dyn Fn() -> Result<Datatype>,
    turns: usize,
    workers: &mut [(&Peer, Worker)],
    show: &mut impl FnMut(&Row),
) -> Result<()> {
    let ours = |passes, _| {
        let start = Instant::now();
        for _ in 0..passes {
            black_box(Committed::new(&black_box(make()?), &Architecture::NATIVE)?);
        }
        Ok(start.elapsed())
    };
    let mut contenders: Vec<(String, Work)> = vec![("Longshore".into(), Box::new(ours))];
    for (peer, worker) in workers {
        contenders.push((peer.name.clone(), remote(worker, "commit", row)));
    }
    show(&Row { name, work: "commit", bytes: 0, contenders: race(turns, contenders)? });
    Ok(())
}

fn pack(program: &Program, count: u64, memory: &[u8], packed: &mut [u8]) -> Result<()> {
    program.pack(count, View::new(black_box(memory)), 0, packed)?;
    Ok(())
}

fn unpack(program: &Program, count: u64, memory: &mut [u8], packed: &[u8]) -> Result<()> {
    let packed = black_box(packed);
    Ok(program.unpack(count, ViewMut::new(memory), 0, packed, &mut Partial::default())?)
}

/// Passes over memory and stream of a contender's own, which begin elsewhere in their pages in each turn.
fn transfer<'a>(
    length: usize,
    bytes: usize,
    mut work: impl FnMut(&mut [u8], &mut [u8]) -> Result<()> + 'a,
) -> Work<'a> {
    const PAGE: usize = 4096;
    let (mut memory, mut packed) = (vec![1_u8; length + 2 * PAGE], vec![1_u8; bytes + 2 * PAGE]);
    Box::new(move |passes, turn| {
        // As in datatypes.c.
        let from = memory.as_ptr().align_offset(PAGE) + 64 * (7 * turn % 64);
        let to = packed.as_ptr().align_offset(PAGE) + 64 * (13 * turn % 64);
        let (memory, packed) = (&mut memory[from..][..length], &mut packed[to..][..bytes]);
        let start = Instant::now();
        for _ in 0..passes {
            work(black_box(memory), black_box(packed))?;
        }
        Ok(start.elapsed())
    })
}

/// The same in a peer's process.
fn remote<'a>(worker: &'a mut Worker, work: &'static str, row: char) -> Work<'a> {
    Box::new(move |passes, turn| {
        let answer = worker.ask(&format!("{work} {row} {passes} {turn}"));
        let nanoseconds: f64 = answer.ok_or("a peer died")?.parse()?;
        Ok(Duration::from_secs_f64(nanoseconds / 1e9))
    })
}

/// All contenders in turns: the times of a pass. The order changes, since each finds the caches as the one before left them.
fn race(turns: usize, mut contenders: Vec<(String, Work)>) -> Result<Vec<Contender>> {
    const TURN: Duration = Duration::from_millis(1);
    let mut done: Vec<Contender> = Vec::new();
    let mut passes = Vec::new();
    for (name, work) in &mut contenders {
        // The first pass touches the pages, and may commit, cache or compile.
        work(1, 0)?;
        let once = work(1, 0)?.max(Duration::from_nanos(1));
        passes.push((TURN.as_nanos() / once.as_nanos()).clamp(1, 100_000) as usize);
        done.push(Contender { name: name.clone(), times: Vec::with_capacity(turns) });
    }
    let all = contenders.len();
    for turn in 0..turns {
        for at in (0..all).map(|at| (at + turn) % all) {
            let time = contenders[at].1(passes[at], turn)?;
            done[at].times.push(time.as_nanos() as f64 / passes[at] as f64);
        }
    }
    Ok(done)
}

/// FNV-1a, as the peers' program has it.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn cases() -> Result<Vec<Case>> {
    let native = Architecture::NATIVE;
    let external = Architecture::EXTERNAL32;
    let one = strided(1, 2, 1 << 17);
    let eight = strided(8, 16, 1 << 14);
    let row = strided(512, 1024, 512);
    let side = 128;
    let face = strided(1, side, side * side);
    let (edge, inner, none) = ([side as i64; 3], [side as i64, side as i64, 1], [0; 3]);
    Ok(vec![
        Case {
            row: 'a',
            name: "a. vector of 1 double, stride 2 (1 MiB)",
            make: Box::new(|| Datatype::vector(1 << 17, 1, 2, &Datatype::double())),
            count: 1,
            stream: native,
            pack: one.0,
            unpack: one.1,
        },
        Case {
            row: 'b',
            name: "b. vector of 8 doubles, stride 16 (1 MiB)",
            make: Box::new(|| Datatype::vector(1 << 14, 8, 16, &Datatype::double())),
            count: 1,
            stream: native,
            pack: eight.0,
            unpack: eight.1,
        },
        indexed(),
        structs(),
        Case {
            row: 'e',
            name: "e. 512 x 512 of 1024 x 1024 doubles",
            make: Box::new(|| {
                let (whole, part) = ([1024, 1024], [512, 512]);
                Datatype::subarray(&whole, &part, &[0, 0], Order::C, &Datatype::double())
            }),
            count: 1,
            stream: native,
            pack: row.0,
            unpack: row.1,
        },
        Case {
            row: 'f',
            name: "f. face of 128^3 doubles, 1 thick where fastest",
            make: Box::new(move || {
                Datatype::subarray(&edge, &inner, &none, Order::C, &Datatype::double())
            }),
            count: 1,
            stream: native,
            pack: face.0,
            unpack: face.1,
        },
        Case {
            row: 'g',
            name: "contiguous, 1 MiB",
            make: Box::new(|| Ok(Datatype::double())),
            count: 1 << 17,
            stream: native,
            pack: Box::new(|memory, packed| packed.copy_from_slice(memory)),
            unpack: Box::new(|memory, packed| memory.copy_from_slice(packed)),
        },
        Case {
            row: 'x',
            name: "1 M doubles in external32",
            make: Box::new(|| Ok(Datatype::double())),
            count: 1 << 20,
            stream: external,
            pack: Box::new(big_endian),
            unpack: Box::new(|memory, packed| big_endian(packed, memory)),
        },
        Case {
            row: 'y',
            name: "d. in external32",
            stream: external,
            pack: Box::new(|memory, packed| {
                for (to, from) in packed.chunks_exact_mut(19).zip(memory.chunks(32)) {
                    to[0] = from[0];
                    MEMBERS.iter().for_each(|&(at, place, size)| {
                        big_endian_one(&from[place..][..size], &mut to[at..][..size]);
                    });
                }
            }),
            unpack: Box::new(|memory, packed| {
                for (to, from) in memory.chunks_mut(32).zip(packed.chunks_exact(19)) {
                    to[0] = from[0];
                    MEMBERS.iter().for_each(|&(at, place, size)| {
                        big_endian_one(&from[at..][..size], &mut to[place..][..size]);
                    });
                }
            }),
            ..structs()
        },
    ])
}

/// Of case d's struct behind its char: places in the stream and in memory, and sizes.
const MEMBERS: [(usize, usize, usize); 5] =
    [(1, 8, 8), (9, 16, 4), (13, 20, 2), (15, 22, 2), (17, 24, 2)];

#[inline(always)]
fn big_endian_one(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
    if cfg!(target_endian = "little") {
        to.reverse();
    }
}

/// Doubles to big-endian and back.
fn big_endian(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        big_endian_one(from, to);
    }
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

/// Blocks of 1 to 8 elements with random gaps: lengths and places.
fn blocks(count: usize, shuffled: bool) -> (Vec<i64>, Vec<i64>) {
    // The high bits of a linear congruential generator, so that every run has the same blocks.
    let mut state = 3u64;
    let mut below_8 = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 61) as i64
    };
    let lengths = (0..count).map(|_| 1 + below_8()).collect();
    let mut places: Vec<i64> = (0..count).map(|at| at as i64 * 16 + below_8()).collect();
    for at in (1..places.len()).rev().filter(|_| shuffled) {
        let other = (0..4).fold(0, |index, _| index * 8 + below_8() as usize) % (at + 1);
        places.swap(at, other);
    }
    (lengths, places)
}

/// 1024 blocks of 1 to 8 ints, in random order with random gaps.
fn indexed() -> Case {
    let (lengths, places) = blocks(1024, true);
    let bytes = |ints: &i64| 4 * *ints as usize;
    let runs: Vec<(usize, usize)> =
        places.iter().map(bytes).zip(lengths.iter().map(bytes)).collect();
    let same = runs.clone();
    Case {
        row: 'c',
        name: "c. indexed, 1024 random blocks of 1 to 8 ints",
        make: Box::new(move || Datatype::indexed(&lengths, &places, &Datatype::int())),
        count: 1,
        stream: Architecture::NATIVE,
        pack: Box::new(move |memory, packed| {
            let mut at = 0;
            for &(place, length) in &runs {
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
    }
}

/// 10000 of a struct of char, double, int and short[3], which has 19 bytes of data in 32.
fn structs() -> Case {
    const SIZE: usize = 32;
    Case {
        row: 'd',
        name: "d. struct {char, double, int, short[3]} x 10000",
        make: Box::new(|| {
            let members =
                [Datatype::char(), Datatype::double(), Datatype::int(), Datatype::short()];
            Datatype::struct_(&[1, 1, 1, 3], &[0, 8, 16, 20], &members)
        }),
        count: 10_000,
        stream: Architecture::NATIVE,
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
    }
}
