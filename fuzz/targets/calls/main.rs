//! The C interface: functions of MPI in any sequence, with handles that are right, null, freed or
//! of another kind, any numbers, and pointers to real buffers. The library is the real one, in a
//! job of one rank. Nothing crashes or waits for ever, and each error has a class.
//!
//! The input is a sequence of calls: the number of a function in two bytes, and a byte or two for
//! each of its arguments. Where it ends, numbers that follow from it take its place.
//!
//! A program whose buffers are too short for its counts and types crashes with any library. So
//! types in calls with buffers reach at most [`REACH`] bytes, counts are small there, and buffers
//! lie in the middle of an arena.
#![no_main]

mod arguments;
mod table;

use std::sync::Once;

use arguments::Program;

/// How far the data of one element may reach in a call with a buffer.
const REACH: i64 = 4096;

/// The calls of an input.
const CALLS: usize = 100;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(table::begin);
    let mut program = Program::new(bytes);
    for _ in 0..CALLS {
        let number = program.number();
        program.call(table::call_of(number));
    }
    program.end();
});
