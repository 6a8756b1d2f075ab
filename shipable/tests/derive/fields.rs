//! Each field that can't be shipped has an error, which names an alternative.

use shipable::Shipable;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
struct Fields {
    length: usize,
    offset: isize,
    flag: bool,
    letter: char,
    wide: u128,
    next: *const Fields,
    name: &'static str,
    call: fn(),
    nested: [(u8, [bool; 3]); 2],
    maybe: Option<u8>,
    positive: std::num::NonZero<u32>,
    fine: std::ffi::c_int,
}

fn main() {}
