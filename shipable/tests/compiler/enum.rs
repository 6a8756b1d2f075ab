//! An enum is no element: received bytes may be no variant. Its `Enum` is one.
#![forbid(unsafe_code)]

use shipable::{Enum, Shipable};

#[derive(Clone, Copy, Shipable)]
#[repr(u8)]
enum Valve {
    Closed,
    Open,
}

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
struct Checked {
    valve: Enum<Valve>,
}

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
struct Bare {
    valve: Valve,
}

fn main() {}
