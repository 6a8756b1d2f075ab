//! The first frame of a peer: a valid hello, or the peer is given up.
#![no_main]

use longshore::fuzzing::Target;
use longshore_fuzz as _;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut target = Target::new();
    target.feed(&Target::introduction(bytes));
    // A second hello, of a peer that is known or given up by now; then the bytes as any frame.
    target.feed(&Target::introduction(bytes));
    target.feed(bytes);
});
