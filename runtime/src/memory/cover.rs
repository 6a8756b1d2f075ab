//! Pages of the segment in the place of a program's own pages, under the same addresses.
//!
//! A program in C exposes memory that must keep its address. The [`Pages`] that have only this
//! memory are copied to the segment, and the copy takes their place. Four things are considered:
//!
//! - Another thread might store to a page between the copy and the exchange. So pages are exchanged
//!   only while no thread of the program's but the caller exists, and while the caller holds the
//!   engine, without which this library's threads write no memory of users.
//! - The system's table of mappings must say that the pages are plain: private, anonymous, and not
//!   of a stack. Partial pages stay if they may have other data too.
//! - A forked child gets private copies, as it would of the program's own pages.
//! - The program may break MPI's rule and free the memory during the window's life. Then the C
//!   library unmaps pages of the segment, or moves and extends them. So the table is asked for
//!   what is left of a cover, and a cover with the C library's header can't be extended.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use longshore_transport::Segment;
use nix::sys::mman::{
    MRemapFlags, MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, mremap, munmap,
};

use super::mappings::{Mappings, Row, is_alone};
use super::pages::{Header, Pages, page_size};
use super::span::Span;

/// Pages of the segment in the place of others.
#[derive(Clone, Copy)]
pub(crate) struct Cover {
    start: NonNull<u8>,
    len: NonZeroUsize,
    /// Where they lie in the segment.
    offset: libc::off_t,
    segment: RawFd,
    /// The C library's header in the pages, and where it is.
    header: Option<(NonNull<Header>, Header)>,
}

// SAFETY: it is an address and numbers. What is mapped there belongs to the process.
unsafe impl Send for Cover {}
// SAFETY: as for Send.
unsafe impl Sync for Cover {}

impl Cover {
    /// Puts a range of the segment, from `offset` on, in the place of pages. `None` where that
    /// isn't safe, or not possible.
    pub(crate) fn over(
        segment: &Segment,
        offset: u64,
        pages: &Pages,
        mappings: &Mappings,
    ) -> Option<Cover> {
        let start = NonNull::new(pages.span.start)?;
        let len = NonZeroUsize::new(usize::try_from(pages.span.len).ok()?)?;
        if !is_alone() || !mappings.have(start.addr().get(), len.get(), Row::is_plain) {
            return None;
        }
        let offset = libc::off_t::try_from(offset).ok()?;
        // SAFETY: the header is in the pages, which are mapped.
        let header = pages.header.map(|place| (place, unsafe { place.read_volatile() }));
        let cover = Cover { start, len, offset, segment: segment.as_fd().as_raw_fd(), header };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the system chooses touches no memory.
        let copy = unsafe { mmap(None, len, access, MapFlags::MAP_SHARED, segment, offset) };
        cover.exchange(copy.ok()?.cast())?;
        cover.divide();
        covers().push(cover);
        Some(cover)
    }

    /// Puts private pages with the same content in the place of those of the segment. Returns false
    /// where that isn't safe: they stay until the process ends, as memory like any other.
    pub(crate) fn lift(&self) -> bool {
        if !is_alone() || !self.is_whole(&Mappings::read()) {
            return false;
        }
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: as above.
        let copy = unsafe { mmap_anonymous(None, self.len, access, MapFlags::MAP_PRIVATE) };
        let lifted = copy.ok().and_then(|copy| self.exchange(copy.cast()));
        if lifted.is_some() {
            // A fork may have left several parts of it in the list.
            let end = self.start.as_ptr().wrapping_add(self.len.get());
            covers().retain(|it| it.start < self.start || it.start.as_ptr() >= end);
        }
        lifted.is_some()
    }

    /// Whether all of its pages are where they were put. The program may have unmapped them too
    /// early.
    pub(super) fn is_whole(&self, mappings: &Mappings) -> bool {
        let is_here = |row: &Row<'_>| row.is_writable() && self.is_at(row);
        mappings.have(self.start.addr().get(), self.len.get(), is_here)
    }

    /// Whether a mapping has the bytes of the segment that the cover has there.
    fn is_at(&self, row: &Row<'_>) -> bool {
        // The offset that a mapping which begins with the cover would have.
        let begin = row.offset.wrapping_sub(row.first as u64);
        row.is_shared()
            && begin == (self.offset as u64).wrapping_sub(self.start.addr().get() as u64)
    }

    /// What is left of it: parts of the pages that were put there.
    fn rest(self, mappings: &Mappings) -> Vec<Cover> {
        let begin = self.start.addr().get();
        let parts = mappings.parts(begin, self.len.get(), |row| self.is_at(row));
        let rest = parts.filter_map(|(first, len)| {
            let skip = first - begin;
            let start = NonNull::new(self.start.as_ptr().wrapping_add(skip))?;
            let offset = self.offset + libc::off_t::try_from(skip).ok()?;
            // The header is in the first page.
            let header = self.header.filter(|_| skip == 0);
            Some(Cover { start, len: NonZeroUsize::new(len)?, offset, header, ..self })
        });
        rest.collect()
    }

    /// Divides the mapping after the page of the C library's header. realloc extends a mapping that
    /// isn't divided, here by other ranges of the segment. The system refuses to extend a divided
    /// one, and realloc copies to other memory.
    fn divide(&self) {
        if self.header.is_some() {
            let page = usize::try_from(page_size()).unwrap_or(self.len.get()).min(self.len.get());
            // SAFETY: the page is mapped, and the advice changes no byte. Memory that is in no file
            // of a disk isn't read ahead, so the advice has no other effect than the division. If
            // the system refuses, only a program that breaks MPI's rule notices it.
            let _ = unsafe { madvise(self.start.cast(), page, MmapAdvise::MADV_RANDOM) };
        }
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
        // with the same bytes, which belong to memory that the caller has, and to its allocation.
        // No thread writes them meanwhile, as the module's header says. So their users can't tell
        // the difference.
        let moved = unsafe { mremap(copy.cast(), len, len, flags, Some(place)) };
        if moved.is_err() {
            // SAFETY: the mapping was just made, and is used by nobody.
            let _ = unsafe { munmap(copy.cast(), len) };
        }
        moved.ok().map(drop)
    }
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
        _ = libc::pthread_atfork(Some(before_fork), Some(let_go), Some(in_child))
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

/// Holds the list, and forgets what the program has unmapped: the child may have other memory
/// there.
extern "C" fn before_fork() {
    hold();
    if let Ok(mut covers) = COVERS.try_lock() {
        if !covers.is_empty() {
            let mappings = Mappings::read();
            *covers = covers.iter().flat_map(|cover| cover.rest(&mappings)).collect();
        }
    }
}

/// Gives the child private copies.
extern "C" fn in_child() {
    // Nobody has it: the thread that forked holds the list.
    if let Ok(covers) = COVERS.try_lock() {
        for cover in covers.iter() {
            let Cover { start, len, offset, segment, header } = *cover;
            let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            let (flags, place) = (MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED, start.addr());
            // SAFETY: the descriptor is the segment's, which is open while it is mapped. The pages
            // that are replaced have the same bytes.
            let copied = unsafe {
                let segment = BorrowedFd::borrow_raw(segment);
                mmap(Some(place), len, access, flags, segment, offset)
            };
            if let (Ok(_), Some((place, words))) = (copied, header) {
                // The parent may have freed the range by now, and the child may free its copy.
                // SAFETY: the header is in the pages, which are the child's own.
                unsafe { place.write_volatile(words) };
                cover.divide();
            }
        }
    }
    let_go();
}
