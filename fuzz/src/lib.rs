//! What targets share: an allocator that refuses more than a decoder may ask for, and a way past checksums.

use std::alloc::{GlobalAlloc, Layout, System};

/// Above every limit that the targets decode with, below what would hurt a peer.
pub const LARGEST_ALLOCATION: usize = 16 << 20;

/// The system's allocator, except that a single request above [`LARGEST_ALLOCATION`] ends the process: libFuzzer's own
/// limit sees only memory that was touched.
struct Bounded;

#[global_allocator]
static ALLOCATOR: Bounded = Bounded;

fn check(size: usize) {
    if size > LARGEST_ALLOCATION {
        eprintln!("an allocation of {size} bytes, above the limit of {LARGEST_ALLOCATION}");
        std::process::abort();
    }
}

// SAFETY: every method passes its arguments on to `System`, which keeps the contract, or doesn't return.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: `pointer` came from `System` with `layout`, since every allocation here does.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with `layout`, since every allocation here does.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// A flat form with its length and its checksum put right, if it is long enough to have any: without that, no input but the
/// seeds would get past them.
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
