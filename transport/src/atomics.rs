//! The crate's atomics: words of 32 bits in little-endian order, shared by peers of either byte
//! order.
//!
//! Many 32-bit machines have no atomic access to 64 bits: powerpc, mips, m68k, sparc, riscv32. Such
//! a rank may share a segment with any other, so no word of the segment is wider than 32 bits,
//! whichever ranks share it. A longer value is in several words, and the module that has it
//! describes in which order they are written and read:
//!
//! | value | words | module |
//! |---|---|---|
//! | header of a frame | length, then stamp | `ring` |
//! | ticket and owner of a queue's entry | one word: the entry's place has the rest of the ticket | `lock::queue` |
//! | callers of a rank | bits, then a flag | `callers` |
//! | state of a rank, with the code of its death | taken, code, state | `segment::state` |
//! | request to abort, with its code | the rank's own code, then its name | `segment::state` |
//! | note of an activity | two notes that take turns, then a count | `segment::state` |
//! | range | one word each, in units of `GRANULE` | `segment::layout` |
//!
//! Under `cfg(loom)` the atomics are loom's, so that the models in `tests/loom.rs` check the code
//! that runs. The processor's fetch-and-add doesn't work on a foreign byte order, so words here
//! only load, store, swap, compare and swap, and set and clear bits.

#[cfg(not(loom))]
use std::sync::atomic::AtomicU32;

#[cfg(loom)]
use loom::sync::atomic::AtomicU32;

pub(crate) use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

/// A word of 32 bits in little-endian order, also what a futex sleeps on.
#[derive(Debug)]
#[repr(transparent)]
pub struct Le32(AtomicU32);

impl Le32 {
    #[inline]
    pub(crate) fn new(value: u32) -> Self {
        Self(AtomicU32::new(value.to_le()))
    }

    #[inline]
    pub(crate) fn load(&self, order: Ordering) -> u32 {
        u32::from_le(self.0.load(order))
    }

    #[inline]
    pub(crate) fn store(&self, value: u32, order: Ordering) {
        self.0.store(value.to_le(), order);
    }

    #[inline]
    pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
        u32::from_le(self.0.swap(value.to_le(), order))
    }

    /// Replaces `current` by `new`, or returns the different value that was found.
    #[inline]
    pub(crate) fn replace(&self, current: u32, new: u32, order: Ordering) -> Result<(), u32> {
        let failure = if matches!(order, Relaxed | Release) { Relaxed } else { Acquire };
        match self.0.compare_exchange(current.to_le(), new.to_le(), order, failure) {
            Ok(_) => Ok(()),
            Err(found) => Err(u32::from_le(found)),
        }
    }

    /// Stores `value`, and makes it visible before any later load is made.
    ///
    /// It pairs with the same call, or with a store and [`full_barrier`], on the other side. Two
    /// threads each store to one word and then load the other's; at least one of them sees the
    /// other's store.
    #[inline]
    pub(crate) fn store_before_loads(&self, value: u32) {
        // Not an exchange with this word: a polling peer takes the cache line away between an
        // earlier store to the line and the exchange, which would then wait for the line again.
        self.store(value, Release);
        full_barrier();
    }

    /// Fetches the word's cache line for a store that follows soon. A peer that polls the word has
    /// the line, and the store would wait for it (docs/tuning.md, "Lines fetched ahead").
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn will_store(&self) {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: a prefetch changes no memory, and faults at no address.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) self, options(nostack, preserves_flags));
        }
    }

    /// Sets the bits of `mask`. Byte order doesn't matter for bitwise operations.
    #[inline]
    pub(crate) fn set_bits(&self, mask: u32, order: Ordering) {
        self.0.fetch_or(mask.to_le(), order);
    }

    /// Clears the bits of `mask`.
    #[inline]
    pub(crate) fn clear_bits(&self, mask: u32, order: Ordering) {
        self.0.fetch_and(!mask.to_le(), order);
    }
}

impl Default for Le32 {
    fn default() -> Self {
        Self::new(0)
    }
}

#[cfg(not(loom))]
impl Le32 {
    /// The word as the kernel sees it.
    #[inline]
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
#[inline]
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
const _: () = assert!(size_of::<Le32>() == 4 && align_of::<Le32>() == 4);
