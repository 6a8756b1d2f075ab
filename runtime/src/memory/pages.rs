//! The pages of a memory that have data of nobody else.
//!
//! Whole pages are one kind. The other are all pages of a memory to which the C library has given a
//! mapping of its own. glibc does so with large allocations, which then lie in it like this:
//!
//! ```text
//! block    start of a page
//!          `lead` bytes that nobody uses: 0, or what an alignment has skipped
//! header   lead: usize, size | 2: usize     2 says that the allocation is a mapping
//! memory   the address that malloc returned
//! end      `size` bytes after the header: the start of another page
//! ```
//!
//! Only free and realloc of this address use the header, so it moves with the memory.
//!
//! Other allocators may by chance have such words before a memory. Pages then move that have other
//! data too. The program can't tell the difference: all data keep their addresses, and the program
//! has no other thread that would store to them meanwhile.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use nix::unistd::{SysconfVar, sysconf};

use super::mappings::{Mappings, Row, is_alone};
use super::span::Span;

/// Bytes of the header.
const HEADER: usize = 2 * size_of::<usize>();

/// The low bits of the header's size, which are flags, and their value for a mapping.
const FLAGS: usize = 7;
const IS_MAPPING: usize = 2;

/// The words before an allocation.
pub(super) type Header = [usize; 2];

/// The pages of a memory that have data of nobody else.
pub(crate) struct Pages {
    /// The pages. They may begin before the memory, and end after it.
    pub span: Span,
    /// The header of the C library in them.
    pub(super) header: Option<NonNull<Header>>,
}

/// The bytes of a page.
pub(super) fn page_size() -> u64 {
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(1 << 16) as u64
}

/// The bytes from an address to the first whole page after it, and those of the whole pages of a
/// memory of `len` bytes there.
pub(super) fn whole_pages(start: u64, len: u64) -> (u64, u64) {
    let page = page_size();
    let skip = (page - start % page) % page;
    let rest = len.saturating_sub(skip);
    (skip, rest - rest % page)
}

impl Pages {
    /// The pages of a memory, none if it has no page for itself.
    pub(crate) fn of(memory: Span, mappings: &Mappings) -> Pages {
        let start = memory.start.addr() as u64;
        let Some(header) = header(memory, mappings) else {
            let (skip, len) = whole_pages(start, memory.len);
            let first = memory.start.wrapping_add(skip as usize);
            return Pages { span: Span { start: first, len, origin: 0 }, header: None };
        };
        let lead = start % page_size();
        let len = (lead + memory.len).next_multiple_of(page_size());
        let first = memory.start.wrapping_sub(lead as usize);
        let span = Span { start: first, len, origin: 0 };
        // Aligned memory may begin with a page. Then the header is in the page before.
        let header = Some(header).filter(|_| lead as usize >= HEADER);
        Pages { span, header }
    }

    /// The bytes from the start of the pages to the start of a memory; negative if the memory
    /// begins before.
    pub(crate) fn distance(&self, memory: Span) -> i64 {
        (memory.start.addr() as i64).wrapping_sub(self.span.start.addr() as i64)
    }
}

/// The header before a memory that the C library has given a mapping of its own.
fn header(memory: Span, mappings: &Mappings) -> Option<NonNull<Header>> {
    let start = memory.start.addr();
    let at = start.checked_sub(HEADER).filter(|at| at % HEADER == 0)?;
    // valgrind's allocations have no header, and it would report the access.
    let has_headers = cfg!(target_env = "gnu") && !mappings.are_of_valgrind();
    if !has_headers || !mappings.have(at, HEADER, is_possible) || !is_alone() {
        return None;
    }
    let place = NonNull::new(memory.start.wrapping_sub(HEADER).cast::<Header>())?;
    // SAFETY: these bytes are mapped and can be read, as the system says, and they are aligned.
    // Only this library has other threads, and those neither unmap nor write them: the bytes
    // belong to the C library, or to the program.
    let [lead, size] = unsafe { place.read_volatile() };
    let (block, len) = (at.checked_sub(lead)?, (size & !FLAGS).checked_add(lead)?);
    let page = page_size() as usize;
    // A mapping of one page couldn't be divided (`Cover::divide`).
    let is_whole = block % page == 0 && len % page == 0 && len > page;
    let has_memory =
        start.checked_add(usize::try_from(memory.len).ok()?)? <= block.checked_add(len)?;
    let is_header = size & FLAGS == IS_MAPPING && is_whole && has_memory && memory.len > 0;
    (is_header && mappings.have(block, len, is_possible)).then_some(place)
}

/// Whether an allocation may be such a mapping.
fn is_possible(row: &Row<'_>) -> bool {
    row.is_plain() && !row.is_heap()
}
