//! A peer's first words: a hello that is sound, or the peer is given up.
#![no_main]

use longshore::fuzzing::Target;
use longshore_fuzz as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut target = Target::new();
    target.feed(&Target::introduction(bytes));
    // Once more, of one who is known or given up; and as a frame of no sort in particular.
    target.feed(&Target::introduction(bytes));
    target.feed(bytes);
});
