//! Helpers of all targets: an allocator that refuses excessive requests, and correct checksums for
//! mutated inputs.

use std::alloc::{GlobalAlloc, Layout, System};

/// The largest request. It exceeds all limits that the targets set for decoders, and is harmless to
/// a peer.
pub const LARGEST_ALLOCATION: usize = 16 << 20;

/// The system's allocator, which ends the process at a single request above [`LARGEST_ALLOCATION`].
/// libFuzzer's own limit counts only memory that was touched.
struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

fn check(size: usize) {
    if size > LARGEST_ALLOCATION {
        eprintln!("an allocation of {size} bytes, above the limit of {LARGEST_ALLOCATION}");
        std::process::abort();
    }
}

// SAFETY: every method forwards its arguments to `System`, which keeps the contract, or doesn't
// return.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which `System::alloc` shares.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which `System::alloc_zeroed`
        // shares.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: every allocation here comes from `System`, so `pointer` does, with `layout`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: every allocation here comes from `System`, so `pointer` does, with `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Corrects the length and the checksum of a flat form, if it is long enough to have them. Without
/// that, mutated inputs would never pass these checks.
pub fn sealed(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: usize = 8;
    let mut bytes = bytes.to_vec();
    let length_at = if bytes.starts_with(b"MDT1;") { 7 } else { 5 };
    if bytes.len() < length_at + 2 * DIGITS {
        return bytes;
    }
    let length = format!("{:08x}", bytes.len());
    bytes[length_at..][..DIGITS].copy_from_slice(length.as_bytes());
    let end = bytes.len() - DIGITS;
    let checksum = format!("{:08x}", crc32fast::hash(&bytes[..end]));
    bytes[end..].copy_from_slice(checksum.as_bytes());
    bytes
}
