//! Hand-written pack and unpack loops for a few named types, as a program without datatypes has
//! them.

use longshore::Architecture;

use crate::Failure;
use crate::case::{Bench, Case};
use crate::datatypes::Memory;
use crate::limits::swap;
use crate::row::{Outcome, Refusal};
use crate::types::{BLOCKS, EDGE, blocks};

/// A loop from memory to the packed stream.
pub type Pack = Box<dyn Fn(&[u8], &mut [u8])>;
/// A loop from the packed stream to memory.
pub type Unpack = Box<dyn Fn(&mut [u8], &[u8])>;

/// Measures the loop that does the work of a case, if there is one. With `validate`, its bytes are
/// compared with the expected ones.
///
/// # Errors
/// A type that can't be committed.
pub fn measure(case: &Case, validate: bool) -> Result<Outcome, Failure> {
    let Some((pack, unpack)) = of(case)? else {
        return Ok(Err(Refusal::Unsupported("there is no loop for this type".to_owned())));
    };
    Memory::new(case)?.measure(case, validate, |memory, packed| {
        match case.bench {
            Bench::Pack => pack(memory, packed),
            _ => unpack(memory, packed),
        }
        Ok(())
    })
}

/// Whether there is a loop for a case.
pub fn has(case: &Case) -> bool {
    matches!(of(case), Ok(Some(_)))
}

/// The loops of a case's type, if there are any.
///
/// # Errors
/// An unknown architecture.
pub fn of(case: &Case) -> Result<Option<(Pack, Unpack)>, Failure> {
    if !matches!(case.bench, Bench::Pack | Bench::Unpack) {
        return Ok(None);
    }
    let [memory, stream] = case.architectures()?;
    let native = |other: Architecture| other.same_representation(&Architecture::NATIVE);
    let external = stream.same_representation(&Architecture::EXTERNAL32);
    if !native(memory) || !(external || native(stream)) {
        return Ok(None);
    }
    Ok(match (case.name.as_deref(), external) {
        (Some("vector1"), false) => Some(strided(1, 2, 1 << 17)),
        (Some("vector8"), false) => Some(strided(8, 16, 1 << 14)),
        (Some("indexed"), false) => Some(indexed()),
        (Some("struct" | "simple_struct"), false) => Some(structs()),
        (Some("struct" | "simple_struct"), true) => Some(external_structs()),
        (Some("subarray"), false) => Some(strided(512, 1024, 512)),
        (Some("face"), false) => Some(strided(1, EDGE, EDGE * EDGE)),
        (Some("contiguous"), false) => Some((
            Box::new(|memory, packed| packed.copy_from_slice(memory)),
            Box::new(|memory, packed| memory.copy_from_slice(packed)),
        )),
        (Some("contiguous"), true) => {
            Some((Box::new(big_endian), Box::new(|memory, packed| big_endian(packed, memory))))
        }
        _ => None,
    })
}

/// Bytes of a struct in memory, with its padding.
const SIZE: usize = 32;

/// The members of a struct after its char: offset in the stream, offset in memory, and size.
const MEMBERS: [(usize, usize, usize); 5] =
    [(1, 8, 8), (9, 16, 4), (13, 20, 2), (15, 22, 2), (17, 24, 2)];

#[inline(always)]
fn big_endian_one(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
    if cfg!(target_endian = "little") {
        to.reverse();
    }
}

/// Converts doubles to big-endian or back.
fn big_endian(from: &[u8], to: &mut [u8]) {
    if cfg!(target_endian = "little") { swap(from, to) } else { to.copy_from_slice(from) }
}

/// Loops over `count` blocks of `length` doubles that are `stride` doubles apart. Lengths 1 and 8
/// are constants to the compiler.
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
    // The last block has no gap after it, so it is copied separately. The chunks' constant lengths
    // keep bounds checks out of the loops.
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

/// Loops over 1024 blocks of 1 to 8 ints, in random order with random gaps.
fn indexed() -> (Pack, Unpack) {
    let (lengths, places) = blocks(BLOCKS, true);
    let bytes = |ints: &i64| 4 * *ints as usize;
    let runs: Vec<(usize, usize)> =
        places.iter().map(bytes).zip(lengths.iter().map(bytes)).collect();
    let same = runs.clone();
    (
        Box::new(move |memory, packed| {
            let mut at = 0;
            for &(place, length) in &runs {
                packed[at..at + length].copy_from_slice(&memory[place..place + length]);
                at += length;
            }
        }),
        Box::new(move |memory, packed| {
            let mut at = 0;
            for &(place, length) in &same {
                memory[place..place + length].copy_from_slice(&packed[at..at + length]);
                at += length;
            }
        }),
    )
}

/// Loops over structs of char, double, int and three shorts: 19 bytes of data in 32.
fn structs() -> (Pack, Unpack) {
    (
        Box::new(|memory, packed| {
            for (to, from) in packed.chunks_exact_mut(19).zip(memory.chunks(SIZE)) {
                to[0] = from[0];
                to[1..9].copy_from_slice(&from[8..16]);
                to[9..13].copy_from_slice(&from[16..20]);
                to[13..19].copy_from_slice(&from[20..26]);
            }
        }),
        Box::new(|memory, packed| {
            for (to, from) in memory.chunks_mut(SIZE).zip(packed.chunks_exact(19)) {
                to[0] = from[0];
                to[8..16].copy_from_slice(&from[1..9]);
                to[16..20].copy_from_slice(&from[9..13]);
                to[20..26].copy_from_slice(&from[13..19]);
            }
        }),
    )
}

/// Loops between structs of char, double, int and three shorts, and their external32 stream.
fn external_structs() -> (Pack, Unpack) {
    (
        Box::new(|memory, packed| {
            for (to, from) in packed.chunks_exact_mut(19).zip(memory.chunks(SIZE)) {
                to[0] = from[0];
                MEMBERS.iter().for_each(|&(at, place, size)| {
                    big_endian_one(&from[place..][..size], &mut to[at..][..size]);
                });
            }
        }),
        Box::new(|memory, packed| {
            for (to, from) in memory.chunks_mut(SIZE).zip(packed.chunks_exact(19)) {
                to[0] = from[0];
                MEMBERS.iter().for_each(|&(at, place, size)| {
                    big_endian_one(&from[at..][..size], &mut to[place..][..size]);
                });
            }
        }),
    )
}
