//! The layout of the segment: a pure function of the number of ranks and the size of a ring.
//!
//! ```text
//!        0  Header          magic, version, geometry; job state; range count; lock
//!     4096  RankBlock[n]    state, doorbell; the rank's note of its activity
//!           Mailbox[n]
//!           callers[n]      the peers whose rings are not watched and hold a frame
//!           Remark[n]       a text about the rank's activity
//!           LockEntry[p]    the fair lock's queue, p = n rounded up to a power of two
//!           RangeEntry[65536]
//!           rings[n][n]     by receiver, then by sender, each on a GRANULE boundary
//!           heap            ranges, to the end
//! ```
//!
//! The object is sparse, so untouched parts cost nothing: rings need no allocation, and tables no
//! growth.

use super::mailbox::Mailbox;
use super::state::{AbortCode, AbortWord, NoteWords, StateWords};
use super::{Range, SegmentError};
use crate::atomics::{Acquire, Le32, Relaxed, Release};
use crate::callers::Callers;
use crate::lock::{LockEntry, LockHead};
use crate::mapping::Shared;
use crate::ring;

/// The alignment of mapped ranges, which start and end on its multiples: the largest page of any
/// host.
pub const GRANULE: u64 = 64 << 10;

/// The most ranges that may be allocated at a time.
pub(crate) const RANGES: u32 = 65536;

/// The most ranks of a segment: the rings of so many, a [`GRANULE`] each, fill its half.
pub const MAX_RANKS: u32 = 2896;

/// The most ranks of a segment without rings.
pub const MAX_SIMULATED_RANKS: u32 = 1 << 16;

const MAGIC: [u8; 8] = *b"LONGSHOR";
const VERSION: u32 = 6;

/// The size of the object, which is sparse. It bounds the sum of all windows on a host.
pub(crate) const SIZE: u64 = 1 << 40;

/// The start of the segment, 4096 bytes.
///
/// ```text
///    0 magic: [u8; 8]    8 version: u32    12 ranks: u32
///   16 ring bytes: u32  20 zero: u32       24 size: u32, in granules    28 zero: u32
///   64 job: u32         68 launcher's abort code: [u32; 2]
///   76 events: u32      80 first dead: u32, rank + 1
///  128 lock: head u32, zero
///  192 ranges: u32, the entries ever used   196 top: u32, in granules, where no range is after
///  200 vacant: u32, an entry before which none is free, or !0
///  204 started: u32, the ranks that the launcher has started, or 0: all
/// ```
#[repr(C)]
pub(crate) struct Header {
    pub geometry: [Le32; 8],
    pad0: [u32; 8],
    pub job: AbortWord,
    pub launcher: AbortCode,
    pub events: Le32,
    pub first_dead: Le32,
    pad1: [u32; 11],
    pub lock: LockHead,
    pad2: [u32; 14],
    pub ranges: Le32,
    pub top: Le32,
    pub vacant: Le32,
    pub started: Le32,
}

// SAFETY: repr(C), of words and padding.
#[allow(unsafe_code)]
unsafe impl Shared for Header {}

/// The words of one rank: two cache lines.
///
/// ```text
///    0 state: [u32; 2]    8 doorbell: u32     read by every sender, written rarely
///   12 abort code: [u32; 2]
///   20 beacon: [u32; 5]                       written once
///   40 withdrawals: u32                       written rarely
///   64 note: [u32; 7]                         written at every blocking call and while it waits
///   92 looks: u32   96 threads: u32           written under `--check` only
/// ```
#[repr(C)]
pub(crate) struct RankBlock {
    pub state: StateWords,
    pub bell: Le32,
    pub abort: AbortCode,
    pub beacon: Beacon,
    pub withdrawals: Le32,
    pad0: [u32; 5],
    pub note: NoteWords,
    pub looks: Le32,
    pub threads: Le32,
    pad1: [u32; 7],
}

// SAFETY: repr(C), of words and padding.
#[allow(unsafe_code)]
unsafe impl Shared for RankBlock {}

/// By which the other processes of the host try whether they may copy a rank's memory: a word of
/// it, which has a random value.
///
/// ```text
///    0 pid: u32, 0 before the rank has published it, and once it is about to be reaped
///    4 address: u64    12 value: u64
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Beacon {
    pid: Le32,
    address: [Le32; 2],
    value: [Le32; 2],
}

impl Beacon {
    pub(crate) fn publish(&self, pid: u32, address: u64, value: u64) {
        for ([low, high], word) in [(&self.address, address), (&self.value, value)] {
            low.store(word as u32, Relaxed);
            high.store((word >> 32) as u32, Relaxed);
        }
        // Release pairs with the acquire in `read`.
        self.pid.store(pid, Release);
    }

    /// Takes the pid back.
    pub(crate) fn clear(&self) {
        self.pid.store(0, Release);
    }

    /// The process, the address and the value, while they are published.
    pub(crate) fn read(&self) -> Option<(u32, u64, u64)> {
        let pid = self.pid.load(Acquire);
        let [address, value] = [&self.address, &self.value]
            .map(|[low, high]| u64::from(low.load(Relaxed)) | u64::from(high.load(Relaxed)) << 32);
        (pid != 0).then_some((pid, address, value))
    }
}

/// The bytes of a remark's text.
pub(crate) const REMARK: usize = 240;

/// A rank's remark on its note: four cache lines.
///
/// ```text
///    0 version: u32, odd while the rank writes   4 calls: u32, of the note that it is about
///    8 length: u32   12 zero   16 text
/// ```
#[repr(C)]
pub(crate) struct Remark {
    pub version: Le32,
    pub calls: Le32,
    pub len: Le32,
    zero: Le32,
    pub text: [Le32; REMARK / 4],
}

// SAFETY: repr(C), of words.
#[allow(unsafe_code)]
unsafe impl Shared for Remark {}

/// An allocated range, or a free entry if the offset is zero.
///
/// ```text
///    0 offset: u32, in granules   4 length: u32, in granules   8 owner: u32   12 zero
/// ```
#[repr(C)]
pub(crate) struct RangeEntry {
    offset: Le32,
    len: Le32,
    owner: Le32,
    zero: u32,
}

// SAFETY: repr(C), of words and padding.
#[allow(unsafe_code)]
unsafe impl Shared for RangeEntry {}

#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::offset_of!(Header, job) == 64);
    assert!(std::mem::offset_of!(Header, lock) == 128);
    assert!(std::mem::offset_of!(Header, ranges) == 192);
    assert!(std::mem::offset_of!(Header, started) == 204);
    assert!(size_of::<RankBlock>() == 128 && size_of::<RangeEntry>() == 16);
    assert!(size_of::<Remark>() == 256);
    assert!(std::mem::offset_of!(RankBlock, note) == 64);
    assert!(SIZE / GRANULE <= u32::MAX as u64);
};

impl RangeEntry {
    /// The range, unless the entry is free.
    pub fn range(&self) -> Option<Range> {
        // Acquire pairs with the release in `set`.
        let offset = self.offset.load(Acquire);
        let bytes = |granules: u32| u64::from(granules) * GRANULE;
        (offset != 0).then(|| Range { offset: bytes(offset), len: bytes(self.len.load(Relaxed)) })
    }

    /// The rank that allocated the range.
    pub fn owner(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    /// Makes a free entry stand for a range of the segment, which consists of granules.
    pub fn set(&self, range: Range, owner: u32) {
        self.len.store((range.len / GRANULE) as u32, Relaxed);
        self.owner.store(owner, Relaxed);
        self.offset.store((range.offset / GRANULE) as u32, Release);
    }

    /// Frees the entry.
    pub fn clear(&self) {
        self.offset.store(0, Release);
    }
}

/// The offsets of the segment's parts, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    pub(crate) ranks: u32,
    pub(crate) ring_bytes: u32,
    pub(crate) size: u64,
    pub(crate) mailboxes: u64,
    pub(crate) callers: u64,
    pub(crate) remarks: u64,
    pub(crate) lock_queue: u64,
    pub(crate) table: u64,
    pub(crate) rings: u64,
    pub(crate) heap: u64,
}

impl Geometry {
    /// The layout for `ranks` ranks, with `ring_bytes` of bulk in each ring: a power of two from 4
    /// KiB to 16 MiB.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for an invalid number.
    pub fn new(ranks: u32, ring_bytes: u32) -> Result<Self, SegmentError> {
        Self::with_size(ranks, ring_bytes, SIZE)
    }

    /// The layout for `ranks` ranks, with `ring_bytes` of bulk in each ring, in at most `size`
    /// bytes.
    pub(crate) fn with_size(ranks: u32, ring_bytes: u32, size: u64) -> Result<Self, SegmentError> {
        if ranks == 0 || ranks > MAX_RANKS {
            let what = format!("{ranks} ranks, where 1 to {MAX_RANKS} are possible");
            return Err(SegmentError::Geometry(what));
        }
        if !ring_bytes.is_power_of_two() || !(4 << 10..=16 << 20).contains(&ring_bytes) {
            let what =
                format!("rings of {ring_bytes} bytes, not a power of two from 4 KiB to 16 MiB");
            return Err(SegmentError::Geometry(what));
        }
        Self::laid_out(ranks, ring_bytes, size)
    }

    /// The layout of a segment without rings, for `ranks` ranks of one process. No process attaches
    /// to it.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or more than [`MAX_SIMULATED_RANKS`].
    pub(crate) fn without_rings(ranks: u32) -> Result<Self, SegmentError> {
        if ranks == 0 || ranks > MAX_SIMULATED_RANKS {
            let what = format!("{ranks} ranks, where 1 to {MAX_SIMULATED_RANKS} can be simulated");
            return Err(SegmentError::Geometry(what));
        }
        Self::laid_out(ranks, 0, SIZE)
    }

    /// The same ranks and rings in an object of another size.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] if they don't fit.
    pub(crate) fn shrunk(&self, size: u64) -> Result<Self, SegmentError> {
        Self::laid_out(self.ranks, self.ring_bytes, size)
    }

    fn laid_out(ranks: u32, ring_bytes: u32, size: u64) -> Result<Self, SegmentError> {
        let n = u64::from(ranks);
        let mailboxes = 4096 + n * size_of::<RankBlock>() as u64;
        let callers = mailboxes + n * size_of::<Mailbox>() as u64;
        let remarks = callers + n * caller_stride(ranks);
        let lock_queue = remarks + n * size_of::<Remark>() as u64;
        let table = lock_queue + u64::from(lock_queue_len(ranks)) * size_of::<LockEntry>() as u64;
        let table = table.next_multiple_of(64);
        let rings = table + u64::from(RANGES) * size_of::<RangeEntry>() as u64;
        let rings = rings.next_multiple_of(GRANULE);
        let all_rings = if ring_bytes == 0 { 0 } else { n * n * ring_stride(ring_bytes) };
        let heap = rings + all_rings;
        // At least half of the object is heap, so that an invalid header from a peer can't make the
        // two overlap.
        if size > SIZE || heap > size / 2 || size % GRANULE != 0 {
            // All rings of a job take the square of its ranks.
            let stride = ring_stride(ring_bytes).max(1);
            let room = (size.min(SIZE) / 2).saturating_sub(rings);
            let most = (room / stride).isqrt();
            let what = format!(
                "{ranks} ranks with rings of {ring_bytes} bytes in {size} bytes, where about {most} \
                 ranks fit: start fewer ranks on this host"
            );
            return Err(SegmentError::Geometry(what));
        }
        Ok(Self {
            ranks,
            ring_bytes,
            size,
            mailboxes,
            callers,
            remarks,
            lock_queue,
            table,
            rings,
            heap,
        })
    }

    /// Reads and checks the start of a segment, at least 32 bytes, as another process wrote it.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] names the invalid field.
    pub fn parse(bytes: &[u8]) -> Result<Self, SegmentError> {
        let wrong = |what: String| Err(SegmentError::Geometry(what));
        let Some(bytes) = bytes.first_chunk::<32>() else {
            return wrong(format!("a header of {} bytes", bytes.len()));
        };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return wrong(format!("magic number {:02x?}", &bytes[..8]));
        }
        if word(8) != VERSION {
            return wrong(format!(
                "version {}, but this build has {VERSION}: build the program and the command longshore of one version",
                word(8)
            ));
        }
        Self::with_size(word(12), word(16), u64::from(word(24)) * GRANULE)
    }

    /// The start of a segment with this layout, as [`Geometry::parse`] reads it.
    pub fn header(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.ranks.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.ring_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&((self.size / GRANULE) as u32).to_le_bytes());
        bytes
    }

    /// The length of the control part, which every rank maps: everything before the rings.
    pub(crate) fn control_len(&self) -> u64 {
        self.rings
    }

    #[inline]
    pub(crate) fn rank_block(&self, rank: u32) -> u64 {
        4096 + u64::from(rank) * size_of::<RankBlock>() as u64
    }

    #[inline]
    pub(crate) fn mailbox(&self, rank: u32) -> u64 {
        self.mailboxes + u64::from(rank) * size_of::<Mailbox>() as u64
    }

    /// The offset of the words in which peers call `rank`.
    #[inline]
    pub(crate) fn callers_of(&self, rank: u32) -> u64 {
        self.callers + u64::from(rank) * caller_stride(self.ranks)
    }

    #[inline]
    pub(crate) fn remark(&self, rank: u32) -> u64 {
        self.remarks + u64::from(rank) * size_of::<Remark>() as u64
    }

    #[inline]
    pub(crate) fn caller_words(&self) -> usize {
        Callers::words(self.ranks)
    }

    /// The ring that carries frames from rank `from` to rank `to`.
    pub(crate) fn ring(&self, from: u32, to: u32) -> Range {
        let stride = ring_stride(self.ring_bytes);
        let index = u64::from(to) * u64::from(self.ranks) + u64::from(from);
        Range { offset: self.rings + index * stride, len: stride }
    }
}

/// A whole number of cache lines, so that the callers of two ranks share none.
#[inline]
fn caller_stride(ranks: u32) -> u64 {
    (Callers::words(ranks) as u64 * 4).next_multiple_of(64)
}

pub(crate) fn lock_queue_len(ranks: u32) -> u32 {
    ranks.next_power_of_two()
}

fn ring_stride(ring_bytes: u32) -> u64 {
    ring::footprint(ring_bytes).next_multiple_of(GRANULE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages of Linux have 4 to 64 KiB. A mapping begins at a multiple of them.
    #[test]
    fn all_that_is_mapped_begins_and_ends_on_a_page_of_any_size() {
        for (ranks, ring_bytes) in [(1, 4 << 10), (3, 8 << 10), (64, 64 << 10), (500, 16 << 10)] {
            let geometry = Geometry::new(ranks, ring_bytes).unwrap();
            let last = ranks - 1;
            let rings = [(0, 0), (0, last), (last, 0), (last, last)];
            let ends = rings.map(|(from, to)| geometry.ring(from, to));
            let ends = ends.iter().flat_map(|ring| [ring.offset, ring.offset + ring.len]);
            for place in ends.chain([geometry.rings, geometry.heap, geometry.size]) {
                for page in [4 << 10, 16 << 10, 64 << 10] {
                    assert_eq!(place % page, 0, "{ranks} ranks, rings of {ring_bytes} bytes");
                }
            }
        }
    }
}
