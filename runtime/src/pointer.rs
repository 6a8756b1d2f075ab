//! The reach of pointers of different sizes.

/// Whether `bytes` bytes fit the address space of pointers of `pointer` bytes.
pub(crate) fn fits(bytes: u64, pointer: u8) -> bool {
    bytes <= address_space(pointer)
}

/// The size of the address space of pointers of `pointer` bytes, at most that of positive
/// displacements.
pub(crate) fn address_space(pointer: u8) -> u64 {
    1 << (8 * u32::from(pointer)).min(63)
}
