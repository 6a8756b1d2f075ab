//! What a rank leaves in its journal for `longshore run --stats` and `--trace`, and how the
//! launcher reads it: a [`snapshot`] of counters, [`events`] of a trace, and the calls that are
//! [`open`] when the rank ends.

pub mod events;
pub mod open;
pub mod snapshot;

/// The bit of [`Journal::wants`](longshore_transport::Journal::wants) that asks for counters.
pub const COUNTERS: u32 = 1;
/// The bit of [`Journal::wants`](longshore_transport::Journal::wants) that asks for events.
pub const EVENTS: u32 = 2;

/// The kinds of operations, in the order of their numbers.
pub const KINDS: [&str; 6] =
    ["put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"];

/// The routes, in the order of their numbers.
pub const ROUTES: [&str; 4] = ["direct", "rdma", "message", "peer"];

/// The upper bounds of the size classes in bytes. Longer operations are in one more class.
pub const SIZES: [u64; 6] = [8, 64, 512, 4 << 10, 64 << 10, 1 << 20];

/// Nanoseconds of the host's monotonic clock.
#[inline]
pub fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // A monotonic clock counts from the start of its host.
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
