//! How far pointers reach, which machines have of several sizes.

/// Whether pointers of so many bytes reach all of so much memory.
pub(crate) fn fits(bytes: u64, pointer: u8) -> bool {
    bytes <= address_space(pointer)
}

/// How much memory pointers of so many bytes reach, as far as displacements do.
pub(crate) fn address_space(pointer: u8) -> u64 {
    1 << (8 * u32::from(pointer)).min(63)
}
