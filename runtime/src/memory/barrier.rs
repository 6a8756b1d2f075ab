//! The barrier between a rank's own stores and loads.
//!
//! The transport has a barrier without unsafe code, which takes more instructions. Every flush
//! executes a barrier, so the shorter one is kept here (docs/tuning.md, "Full barriers on x86").
#![allow(unsafe_code)]

/// Makes all earlier stores visible to all ranks before any later load.
#[inline]
pub(crate) fn full_barrier() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction ORs 0 into the word at the top of the stack. The function may read
    // and write that word, and its value stays. A locked instruction is a full barrier, and cheaper
    // than `mfence` (docs/tuning.md, "Full barriers on x86").
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0", options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
