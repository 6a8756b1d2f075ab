//! A ring.

/// The bytes of a ring with `ring_bytes` of bulk room.
pub(crate) fn footprint(ring_bytes: u32) -> u64 {
    8192 + u64::from(ring_bytes)
}
