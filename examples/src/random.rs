//! Random numbers that are equal on every machine, because the ranks check each other's results.
//!
//! `rand`'s `SmallRng` doesn't serve here: its numbers differ between 32-bit and 64-bit machines.

/// The output of the generator splitmix64 in state `number`. Consecutive states give numbers that
/// look independent.
pub fn splitmix64(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
