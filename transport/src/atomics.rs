//! The crate's atomics: words of a defined width and byte order, shared by peers of either byte
//! order.
//!
//! Under `cfg(loom)` they are loom's, so that the models in `tests/loom.rs` check the code that
//! runs. The processor's fetch-and-add doesn't work on a foreign byte order, so words here only
//! load, store, swap, and compare and swap.

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

            /// Replaces `current` by `new`, or returns the different value that was found.
            pub(crate) fn replace(&self, current: $int, new: $int, order: Ordering) -> Result<(), $int> {
                let failure = if matches!(order, Relaxed | Release) { Relaxed } else { Acquire };
                match self.0.compare_exchange(current.to_le(), new.to_le(), order, failure) {
                    Ok(_) => Ok(()),
                    Err(found) => Err($int::from_le(found)),
                }
            }

            /// Stores `value`, and makes it visible before any later load is made.
            ///
            /// It pairs with the same call, or with a store and [`full_barrier`], on the other
            /// side. Two threads each store to one word and then load the other's; at least one of
            /// them sees the other's store.
            pub(crate) fn store_before_loads(&self, value: $int) {
                // Not an exchange with this word: a polling peer takes the cache line away between
                // an earlier store to the line and the exchange, which would then wait for the line
                // again.
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
    /// Sets the bits of `mask`. Byte order doesn't matter for bitwise operations.
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

/// Makes earlier stores visible before any later load is made; see [`Le32::store_before_loads`].
#[inline]
pub(crate) fn full_barrier() {
    if cfg!(all(any(target_arch = "x86_64", target_arch = "x86"), not(loom))) {
        // Any locked instruction is a full barrier, and is cheaper than mfence (docs/tuning.md,
        // "Full barriers on x86").
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

/// [`full_barrier`] directly after an exchange, which is a full barrier already on x86.
#[inline]
pub(crate) fn barrier_after_exchange() {
    if cfg!(all(any(target_arch = "x86_64", target_arch = "x86"), not(loom))) {
        std::sync::atomic::compiler_fence(SeqCst);
    } else {
        full_barrier();
    }
}

/// Lets other threads run while this one spins.
pub(crate) fn spin() {
    #[cfg(not(loom))]
    std::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Sleeps briefly, so that other processes run, even those that aren't ready yet.
pub(crate) fn nap() {
    #[cfg(not(loom))]
    std::thread::sleep(std::time::Duration::from_micros(50));
    #[cfg(loom)]
    loom::thread::yield_now();
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Le64>() == 8 && align_of::<Le64>() == 8);
