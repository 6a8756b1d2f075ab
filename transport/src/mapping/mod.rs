//! Mappings of parts of the segment, and the system's object that holds the segment.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::Resource;

mod limit;
mod range;

pub use limit::MemoryLimit;
pub use range::{Range, SegmentError};

/// A type that may be laid over shared memory.
///
/// # Safety
/// The type is `repr(C)`, consists of atomics and padding only, and every bit pattern is a valid
/// value.
pub(crate) unsafe trait Shared {}

// SAFETY: repr(transparent) over an atomic integer.
unsafe impl Shared for crate::atomics::Le32 {}

/// The bytes of the shortest mapping: the smallest page.
pub(crate) const LEAST: u64 = 4096;

/// The mappings of the segment that this process has.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A mapped part of the segment. Other processes may write it at any time, so it is a pointer with
/// a length, never a slice. It is unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: NonZeroUsize,
    /// What unmaps it. Mappings of one range, and pieces of it, share one.
    mapped: Arc<Mapped>,
}

/// The address and length of what is mapped. It is unmapped when dropped.
#[derive(Debug)]
struct Mapped(NonNull<u8>, NonZeroUsize);

/// A mapping that others may have dropped.
#[derive(Debug)]
pub(crate) struct SharedMapping(Weak<Mapped>);

// SAFETY: what is mapped belongs to the process, not to a thread. This value gives no access to it.
unsafe impl Send for Mapped {}
// SAFETY: as for Send.
unsafe impl Sync for Mapped {}
// SAFETY: the mapping belongs to the process, not to a thread. Its content is accessed only by
// atomics or raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: the content is accessed only by atomics or raw pointers.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `range` of the object. The caller has checked the range against the object's size.
    pub(crate) fn new(object: BorrowedFd<'_>, range: Range) -> Result<Self, SegmentError> {
        let len = usize::try_from(range.len).ok().and_then(NonZeroUsize::new);
        let len = len.ok_or(SegmentError::Unmappable(range))?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        if MAPPED.fetch_add(1, Ordering::Relaxed) as u64 >= MemoryLimit::mappings() {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            let limit = MemoryLimit::of_mappings();
            return Err(SegmentError::NoMemory { bytes: range.len, limit });
        }
        // SAFETY: a new mapping of a valid descriptor, at an address that the kernel chooses,
        // touches no existing memory.
        let start = unsafe {
            let (anywhere, shared) = (std::ptr::null_mut(), MapFlags::SHARED);
            rustix::mm::mmap(anywhere, len.get(), access, shared, object, range.offset)
        };
        let start = start.map_err(|error| {
            MAPPED.fetch_sub(1, Ordering::Relaxed);
            match error {
                Errno::NOMEM => {
                    SegmentError::NoMemory { bytes: range.len, limit: MemoryLimit::find() }
                }
                error => failed("mmap")(error),
            }
        })?;
        let start = NonNull::new(start.cast()).ok_or(SegmentError::Unmappable(range))?;
        Ok(Self { start, len, mapped: Arc::new(Mapped(start, len)) })
    }

    /// A part of the mapping, which keeps all of it mapped. `None` if it isn't inside, or shorter
    /// than any mapping.
    pub(crate) fn part(&self, offset: u64, len: u64) -> Option<Mapping> {
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        if len < LEAST as usize || len > self.len().checked_sub(offset)? {
            return None;
        }
        // SAFETY: inside of the mapping.
        let start = unsafe { self.start.add(offset) };
        Some(Mapping { start, len: NonZeroUsize::new(len)?, mapped: self.mapped.clone() })
    }

    /// Makes bytes zero that no peer accesses.
    ///
    /// # Panics
    /// If they aren't inside.
    pub(crate) fn clear(&self, offset: u64, len: u64) {
        let (offset, len) = (offset as usize, len as usize);
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len()));
        // SAFETY: in bounds, and valid while the mapping lives. Nothing in Rust borrows the bytes.
        unsafe { self.as_ptr().add(offset).write_bytes(0, len) };
    }

    /// A reference by which this process can share the mapping.
    pub(crate) fn downgrade(&self) -> SharedMapping {
        SharedMapping(Arc::downgrade(&self.mapped))
    }

    /// The first byte. It is valid for reads and writes of [`Mapping::len`] bytes while the mapping
    /// lives. Other processes may write these bytes at any time.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The length in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // A mapping is never empty.
    pub fn len(&self) -> usize {
        self.len.get()
    }

    /// The 32-bit word at `offset`. Its users agree on a byte order.
    ///
    /// # Panics
    /// If it isn't aligned, or isn't inside.
    #[inline]
    pub fn word32(&self, offset: usize) -> &AtomicU32 {
        let [word] = self.words32(offset);
        word
    }

    /// The 32-bit words from `offset` on. Their users agree on a byte order.
    ///
    /// # Panics
    /// If they aren't aligned, or aren't inside.
    #[inline]
    pub fn words32<const N: usize>(&self, offset: usize) -> &[AtomicU32; N] {
        const { assert!(N <= 1024, "more words than the smallest mapping has") };
        if offset % 4 != 0 || self.len() - 4 * N < offset {
            no_word(offset);
        }
        // SAFETY: aligned and in bounds (a mapping is never shorter than a page, which has 1024
        // words); the mapping outlives the borrow.
        unsafe { &*self.as_ptr().add(offset).cast() }
    }

    /// Copies bytes to `offset`. Users agree when another process, or a thread of this one, reads
    /// or writes them.
    ///
    /// # Panics
    /// If they aren't inside.
    #[inline]
    pub fn store(&self, offset: usize, bytes: &[u8]) {
        assert!(offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len()));
        // SAFETY: in bounds, and valid while the mapping lives. Nothing in Rust borrows the
        // mapping's bytes, so the slice is elsewhere.
        unsafe {
            let to = self.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Copies the bytes at `offset`. Users agree when another process, or a thread of this one,
    /// writes them.
    ///
    /// # Panics
    /// If they aren't inside.
    #[inline]
    pub fn load(&self, offset: usize, into: &mut [u8]) {
        assert!(offset.checked_add(into.len()).is_some_and(|end| end <= self.len()));
        // SAFETY: in bounds, and valid while the mapping lives. Nothing in Rust borrows the
        // mapping's bytes, so the slice is elsewhere.
        unsafe {
            let from = self.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
    }

    /// The `count` values from `offset` on.
    #[inline]
    pub(crate) fn slice<T: Shared>(&self, offset: u64, count: usize) -> &[T] {
        let offset = usize::try_from(offset).expect("the control part is small");
        let bytes = size_of::<T>().checked_mul(count).and_then(|bytes| bytes.checked_add(offset));
        assert!(bytes.is_some_and(|end| end <= self.len()) && offset % align_of::<T>() == 0);
        // SAFETY: in bounds and aligned (mappings start on pages). T consists of atomics only, and
        // any bit pattern is valid. The mapping outlives the borrow.
        unsafe { std::slice::from_raw_parts(self.as_ptr().add(offset).cast(), count) }
    }

    /// The value at `offset`.
    ///
    /// # Panics
    /// If it isn't aligned, or isn't inside.
    #[inline]
    pub(crate) fn at<T: Shared>(&self, offset: u64) -> &T {
        const { assert!(size_of::<T>() <= 4096) };
        let offset = usize::try_from(offset).expect("the control part is small");
        // Cheaper than the check of a slice, which many operations would make.
        let is_inside = self.len() - size_of::<T>() >= offset;
        assert!(is_inside && offset % align_of::<T>() == 0);
        // SAFETY: in bounds (a mapping is never shorter than a page) and aligned (mappings start on
        // pages). T consists of atomics only, and any bit pattern is valid. The mapping outlives
        // the borrow.
        unsafe { &*self.as_ptr().add(offset).cast() }
    }
}

/// Apart from the function that it ends, which callers take in line.
#[cold]
#[inline(never)]
fn no_word(offset: usize) -> ! {
    panic!("no word at {offset}")
}

impl SharedMapping {
    /// Whether the mapping still exists.
    pub(crate) fn exists(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// The mapping, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<Mapping> {
        let mapped = self.0.upgrade()?;
        Some(Mapping { start: mapped.0, len: mapped.1, mapped })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mmap made it with this length. Every mapping that gives access to it holds a
        // reference to this value, so none is left.
        let unmapped = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), self.1.get()) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Creates a sparse object of `size` bytes, without a name. It is closed on exec by default. Its
/// size is fixed: an access beyond the end of a mapped object would kill the process.
pub(crate) fn create(size: u64) -> Result<OwnedFd, SegmentError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let object = retry_on_intr(|| rustix::fs::memfd_create(c"longshore", flags))
        .map_err(failed("memfd_create"))?;
    retry_on_intr(|| rustix::fs::ftruncate(&object, size)).map_err(failed("ftruncate"))?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&object, seals).map_err(failed("fcntl"))?;
    Ok(object)
}

/// The largest object that this process may create: creating a longer one raises SIGXFSZ.
pub(crate) fn size_limit() -> u64 {
    rustix::process::getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Frees the memory of `range`, which reads as zeros afterwards. Mappings of it stay valid.
pub(crate) fn discard(object: BorrowedFd<'_>, range: Range) -> Result<(), SegmentError> {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // A signal interrupts it wherever the range is long, whether or not its handler restarts calls.
    retry_on_intr(|| rustix::fs::fallocate(object, mode, range.offset, range.len))
        .map_err(failed("fallocate"))
}

/// The size of the object. Nobody uses the file position that this changes.
pub(crate) fn size(object: BorrowedFd<'_>) -> Result<u64, SegmentError> {
    rustix::fs::seek(object, SeekFrom::End(0)).map_err(failed("lseek"))
}

/// The number by which the system knows the object.
pub(crate) fn number(fd: BorrowedFd<'_>) -> Result<u64, SegmentError> {
    let found = rustix::fs::fstat(fd).map_err(failed("fstat"))?;
    Ok(found.st_ino)
}

fn failed(call: &'static str) -> impl Fn(Errno) -> SegmentError {
    move |error| SegmentError::System { call, errno: error.raw_os_error() }
}
