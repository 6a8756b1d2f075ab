//! Pages of the segment in the place of a program's own pages, under the same addresses.
//!
//! A program in C exposes memory that must keep its address. Its whole pages are copied to the
//! segment, and the copy takes their place. Three things are considered:
//!
//! - Another thread might store to a page between the copy and the exchange. So pages are exchanged
//!   only while no thread of the program's but the caller exists, and while the caller holds the
//!   engine, without which this library's threads write no memory of users.
//! - The system's table of mappings must say that the pages are plain: private, anonymous, and not
//!   of a stack. Partial pages stay, since they have other data too.
//! - A forked child gets private copies, as it would of the program's own pages.
#![allow(unsafe_code)]

use std::fs;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use longshore_transport::Segment;
use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap, mmap_anonymous, mremap, munmap};
use nix::unistd::{SysconfVar, sysconf};

use super::span::Span;

/// Pages of the segment in the place of others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cover {
    start: NonNull<u8>,
    len: NonZeroUsize,
    /// Where they lie in the segment.
    offset: libc::off_t,
    segment: RawFd,
}

// SAFETY: it is an address and numbers. What is mapped there belongs to the process.
unsafe impl Send for Cover {}
// SAFETY: as for Send.
unsafe impl Sync for Cover {}

/// The bytes from the start of a memory to its first whole page, and those of its whole pages. The
/// memory begins at this address, or at this offset of a file that is mapped there.
pub(crate) fn whole_pages(start: u64, len: u64) -> (u64, u64) {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(1 << 16) as u64;
    let skip = (page - start % page) % page;
    let rest = len.saturating_sub(skip);
    (skip, rest - rest % page)
}

impl Cover {
    /// Puts a range of the segment, from `offset` on, in the place of whole pages. `None` where
    /// that isn't safe, or not possible.
    pub(crate) fn over(segment: &Segment, offset: u64, pages: Span) -> Option<Cover> {
        let start = NonNull::new(pages.start)?;
        let len = NonZeroUsize::new(usize::try_from(pages.len).ok()?)?;
        if !is_alone() || !is_mapped(start.as_ptr().addr(), len.get(), Kind::Plain) {
            return None;
        }
        let offset = libc::off_t::try_from(offset).ok()?;
        let cover = Cover { start, len, offset, segment: segment.as_fd().as_raw_fd() };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the system chooses touches no memory.
        let copy = unsafe { mmap(None, len, access, MapFlags::MAP_SHARED, segment, offset) };
        cover.exchange(copy.ok()?.cast())?;
        covers().push(cover);
        Some(cover)
    }

    /// Puts private pages with the same content in the place of those of the segment. Returns false
    /// where that isn't safe: they stay until the process ends, as memory like any other.
    pub(crate) fn lift(&self) -> bool {
        // The program may have unmapped them too early.
        if !is_alone() || !is_mapped(self.start.as_ptr().addr(), self.len.get(), Kind::Shared) {
            return false;
        }
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: as above.
        let copy = unsafe { mmap_anonymous(None, self.len, access, MapFlags::MAP_PRIVATE) };
        let lifted = copy.ok().and_then(|copy| self.exchange(copy.cast()));
        if lifted.is_some() {
            covers().retain(|cover| cover != self);
        }
        lifted.is_some()
    }

    /// Copies the bytes of the pages to a mapping, which takes their place, or is unmapped.
    fn exchange(&self, copy: NonNull<u8>) -> Option<()> {
        let span = |start: NonNull<u8>| Span {
            start: start.as_ptr(),
            len: self.len.get() as u64,
            origin: 0,
        };
        span(copy).copy_run(0, span(self.start), 0, self.len.get() as u64);
        let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
        let (len, place) = (self.len.get(), self.start.cast());
        // SAFETY: the mapping was just made with this length. It takes the place of whole pages
        // with the same bytes, which belong to memory that the caller has. No thread writes them
        // meanwhile, as the module's header says. So their users can't tell the difference.
        let moved = unsafe { mremap(copy.cast(), len, len, flags, Some(place)) };
        if moved.is_err() {
            // SAFETY: the mapping was just made, and is used by nobody.
            let _ = unsafe { munmap(copy.cast(), len) };
        }
        moved.ok().map(drop)
    }
}

/// Whether no thread of the program's but this one exists. This library's are known by their names.
fn is_alone() -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return false };
    let others = threads.filter(|thread| {
        let name = thread.as_ref().ok().map(|thread| thread.path().join("comm"));
        let name = name.and_then(|name| fs::read(name).ok()).unwrap_or_default();
        !name.starts_with(b"longshore-")
    });
    // The name of this thread is the program's.
    others.count() <= 1
}

/// What the system's table of mappings says of some memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Private, anonymous, and not of a stack.
    Plain,
    /// Shared.
    Shared,
}

/// Whether all of these bytes are mapped, in this way.
fn is_mapped(start: usize, len: usize, kind: Kind) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut at = start;
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let range = fields.next().and_then(|range| range.split_once('-'));
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let Some((Some(first), Some(end))) = range.map(|(a, b)| (number(a), number(b))) else {
            return false;
        };
        if end <= at {
            continue;
        }
        let (access, inode, name) = (fields.next(), fields.nth(2), fields.next());
        let is_stack = name.is_some_and(|name| name.starts_with("[stack"));
        let is_kind = match kind {
            Kind::Plain => access == Some("rw-p") && inode == Some("0") && !is_stack,
            Kind::Shared => access == Some("rw-s"),
        };
        if first > at || !is_kind {
            return false;
        }
        at = end;
        if at - start >= len {
            return true;
        }
    }
    false
}

/// The covers of this process, which its children have to replace.
static COVERS: Mutex<Vec<Cover>> = Mutex::new(Vec::new());

/// Whether a thread holds the list or forks.
static HELD: AtomicBool = AtomicBool::new(false);

/// The list, while no thread forks.
struct Covers(MutexGuard<'static, Vec<Cover>>);

fn covers() -> Covers {
    static ONCE: Once = Once::new();
    // SAFETY: the functions are sound whenever a process forks. If the system has no room for them,
    // children share the pages.
    ONCE.call_once(|| unsafe {
        _ = libc::pthread_atfork(Some(hold), Some(let_go), Some(in_child))
    });
    hold();
    Covers(COVERS.lock().unwrap_or_else(PoisonError::into_inner))
}

impl std::ops::Deref for Covers {
    type Target = Vec<Cover>;

    fn deref(&self) -> &Vec<Cover> {
        &self.0
    }
}

impl std::ops::DerefMut for Covers {
    fn deref_mut(&mut self) -> &mut Vec<Cover> {
        &mut self.0
    }
}

impl Drop for Covers {
    fn drop(&mut self) {
        let_go();
    }
}

extern "C" fn hold() {
    while HELD.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
}

extern "C" fn let_go() {
    HELD.store(false, Ordering::Release);
}

/// Gives the child private copies.
extern "C" fn in_child() {
    // Nobody has it: the thread that forked holds the list.
    if let Ok(covers) = COVERS.try_lock() {
        for Cover { start, len, offset, segment } in covers.iter().copied() {
            let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            let (flags, place) = (MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED, start.addr());
            // SAFETY: the descriptor is the segment's, which is open while it is mapped. The pages
            // that are replaced have the same bytes.
            let _ = unsafe {
                let segment = BorrowedFd::borrow_raw(segment);
                mmap(Some(place), len, access, flags, segment, offset)
            };
        }
    }
    let_go();
}
