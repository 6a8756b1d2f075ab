//! The barrier between a rank's own stores and loads.
//!
//! The transport has a barrier without unsafe code, which takes more instructions. Every flush
//! executes a barrier, so the shorter one is kept here (docs/tuning.md, "Full barriers on x86").
#![allow(unsafe_code)]

/// Makes all earlier stores visible to all ranks before any later load.
#[inline]
pub(crate) fn full_barrier() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction ORs 0 into a word of the red zone, the 128 bytes below the stack
    // pointer, and the value of the word stays. Without the option `nostack` the compiler keeps
    // nothing there, so the instruction may write to it. A locked instruction is a full barrier,
    // and cheaper than `mfence`. It would wait for the word at the stack pointer, which a push has
    // often just written (docs/tuning.md, "Full barriers on x86").
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp - 128], 0");
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
