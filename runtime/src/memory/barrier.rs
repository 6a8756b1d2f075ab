//! The barrier between a rank's own stores and loads.
//!
//! The transport has a twin without unsafe code, which takes eight instructions where this takes one: too many for a flush.
#![allow(unsafe_code)]

/// All stores before it are visible to all ranks before any load after it.
#[inline]
pub(crate) fn full_barrier() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it changes nothing: the word at the stack's end is the function's to read and write, and keeps its value. A
    // locked instruction is a full barrier and costs a quarter of mfence.
    unsafe {
        std::arch::asm!("lock or dword ptr [rsp], 0", options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
