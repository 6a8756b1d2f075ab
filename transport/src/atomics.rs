//! The atomics of this crate: words of a defined width and byte order, which peers of either byte order share.
//!
//! Under `cfg(loom)` they are loom's, so that the models in `tests/loom.rs` check the very code that runs. A foreign
//! byte order rules out the processor's fetch-and-add: words here load, store, swap, and compare and swap.

#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64};

pub(crate) use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $int:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($atomic);

        impl $name {
            pub(crate) fn new(value: $int) -> Self {
                Self($atomic::new(value.to_le()))
            }

            pub(crate) fn load(&self, order: Ordering) -> $int {
                $int::from_le(self.0.load(order))
            }

            pub(crate) fn store(&self, value: $int, order: Ordering) {
                self.0.store(value.to_le(), order);
            }

            pub(crate) fn swap(&self, value: $int, order: Ordering) -> $int {
                $int::from_le(self.0.swap(value.to_le(), order))
            }

            /// Replaces `current` by `new`, or returns what was found instead.
            pub(crate) fn replace(&self, current: $int, new: $int, order: Ordering) -> Result<(), $int> {
                let failure = if matches!(order, Relaxed | Release) { Relaxed } else { Acquire };
                match self.0.compare_exchange(current.to_le(), new.to_le(), order, failure) {
                    Ok(_) => Ok(()),
                    Err(found) => Err($int::from_le(found)),
                }
            }

            /// A store that is visible to all before any later load is made: it pairs with the same call, or with
            /// [`full_barrier`] after a store, on the other side, so that of two threads that each write one word and
            /// then read the other's, at least one sees the other's write.
            pub(crate) fn store_before_loads(&self, value: $int) {
                // Not an exchange with this word: who polls it takes its cache line away between a store to the line and the
                // exchange, which then waits for it again.
                self.store(value, Release);
                full_barrier();
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    };
}

word!(
    /// A 32-bit word in little-endian order, also what a futex sleeps on.
    Le32, AtomicU32, u32
);
word!(
    /// A 64-bit word in little-endian order, aligned to 8 bytes on every host.
    Le64, AtomicU64, u64
);

impl Le64 {
    /// Sets the bits of `mask`. Bitwise operations don't care about byte order.
    pub(crate) fn set_bits(&self, mask: u64, order: Ordering) {
        self.0.fetch_or(mask.to_le(), order);
    }

    /// Clears the bits of `mask`.
    pub(crate) fn clear_bits(&self, mask: u64, order: Ordering) {
        self.0.fetch_and(!mask.to_le(), order);
    }
}

#[cfg(not(loom))]
impl Le32 {
    /// The word as the kernel sees it.
    pub(crate) fn as_futex(&self) -> &AtomicU32 {
        &self.0
    }
}

/// Loads after it are made after stores before it are visible; see [`Le32::store_before_loads`].
#[inline]
pub(crate) fn full_barrier() {
    if cfg!(all(any(target_arch = "x86_64", target_arch = "x86"), not(loom))) {
        // Any locked instruction is one, at a third of the cost of mfence.
        #[cfg(not(loom))]
        std::hint::black_box(&AtomicU32::new(0)).swap(0, SeqCst);
        std::sync::atomic::compiler_fence(SeqCst);
        return;
    }
    #[cfg(not(loom))]
    std::sync::atomic::fence(SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(SeqCst);
}

/// [`full_barrier`] right after an exchange, which on x86 is one already.
#[inline]
pub(crate) fn barrier_after_exchange() {
    if cfg!(all(any(target_arch = "x86_64", target_arch = "x86"), not(loom))) {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        full_barrier();
    }
}

/// Lets other threads run while spinning.
pub(crate) fn spin() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Lets other processes run, those that aren't ready included.
pub(crate) fn nap() {
    #[cfg(not(loom))]
    std::thread::sleep(std::time::Duration::from_micros(50));
    #[cfg(loom)]
    loom::thread::yield_now();
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Le64>() == 8 && align_of::<Le64>() == 8);
