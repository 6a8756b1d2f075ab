//! Frames of a known peer: forms, puts, gets, messages, and invalid ones.
//!
//! The input is the peer's architecture in one byte, and frames, each preceded by its length in two
//! bytes.
#![no_main]

use longshore::Architecture;
use longshore::fuzzing::Target;
use longshore_fuzz as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&index, mut rest)) = bytes.split_first() else { return };
    let architectures = Architecture::all();
    let architecture = &architectures[usize::from(index) % architectures.len()];
    let mut target = Target::new();
    target.feed(&Target::introduction(&Target::hello(architecture)));
    while let Some((length, frames)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(frames.len());
        let (frame, others) = frames.split_at(length);
        target.feed(frame);
        rest = others;
    }
});
