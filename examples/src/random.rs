//! Random numbers that are the same on every machine, since ranks check each other's: a fast generator's may differ between
//! 32 and 64 bits.

/// What splitmix64 makes of a number: of consecutive ones, numbers that look random.
pub fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
