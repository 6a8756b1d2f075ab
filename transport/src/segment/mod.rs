//! The memory that the ranks of a job on one host share.
//!
//! One sparse object without a name, made by the launcher and inherited: nothing can be left behind. It holds the job's
//! state, a doorbell for each rank, a ring for each ordered pair, and ranges (windows, control blocks) that any rank
//! allocates. Everything in it is an offset or a little-endian word of defined width, since the processes that share it
//! may differ in byte order, word size and page size; ranges are mapped one by one, since not all can map it whole.

mod job;
mod layout;
mod mapping;
mod ranges;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use thiserror::Error;

pub use job::{Cause, JobState, Note, RankState};
pub use layout::{GRANULE, Geometry, MAX_RANKS};
pub use mapping::Mapping;

pub(crate) use job::{ring_armed, ring_waiting};
use layout::{Header, RankBlock};

use crate::atomics::{Acquire, Le64, Relaxed};

/// A part of the segment: what a peer needs to know of memory to map it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// Where it begins, a multiple of [`GRANULE`].
    pub offset: u64,
    /// Its length in bytes, a multiple of [`GRANULE`].
    pub len: u64,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:#x}, {:#x})", self.offset, self.offset.saturating_add(self.len))
    }
}

/// A segment, as one rank or the launcher sees it. Clones are handles of the same.
///
/// ```
/// use longshore_transport::{RankState, Segment};
///
/// let launcher = Segment::create(2)?;
/// let rank = Segment::attach(launcher.as_fd().try_clone_to_owned()?, 0)?;
/// rank.mark(0, RankState::Alive);
/// let window = rank.allocate(1000)?;
/// let memory = rank.map(window)?;
/// assert!(memory.len() >= 1000);
/// assert_eq!(launcher.rank_state(0), RankState::Alive);
/// # use std::os::fd::AsFd;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Segment {
    shared: Arc<Object>,
    rank: Option<u32>,
}

struct Object {
    fd: OwnedFd,
    geometry: Geometry,
    control: Mapping,
    /// One thread of a rank at a time stands in the fair lock's queue, which has one place per rank.
    allocating: Vec<Mutex<()>>,
}

/// What goes wrong with a segment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SegmentError {
    /// A system call failed.
    #[error("{call}: {}", std::io::Error::from_raw_os_error(*.errno))]
    System {
        /// Which.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
    /// The object isn't a segment of this version, or one of the size asked for can't be.
    #[error("not a possible segment: {0}")]
    Geometry(String),
    /// A range that isn't in the segment, or too long to map in this process.
    #[error("range {0} can't be mapped")]
    Unmappable(Range),
    /// A range that nobody allocated.
    #[error("range {0} isn't allocated")]
    NotAllocated(Range),
    /// No room for a range.
    #[error("no room for {bytes} bytes of shared memory: at most {room} are free in one piece")]
    Exhausted {
        /// What was wanted.
        bytes: u64,
        /// The longest range that there is room for.
        room: u64,
    },
    /// There are as many ranges as can be.
    #[error("{0} ranges of shared memory are in use, as many as can be: free a window")]
    TooMany(u32),
    /// A rank outside of the job.
    #[error("no rank {0} in a job of {1}")]
    NoSuchRank(u32, u32),
    /// Only ranks allocate; this handle is the launcher's.
    #[error("the launcher's handle allocates nothing")]
    NotARank,
}

impl SegmentError {
    fn last(call: &'static str) -> Self {
        Self::System { call, errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(0) }
    }
}

impl Segment {
    /// A new segment for a job of `ranks`, as the launcher holds it, with rings of a size that keeps memory per rank small.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or more than [`MAX_RANKS`]; [`SegmentError::System`].
    pub fn create(ranks: u32) -> Result<Self, SegmentError> {
        // A rank that talks to all its peers touches about a MiB of rings.
        let ring_bytes = (1 << 20) / ranks.clamp(4, 64).next_power_of_two();
        Self::with_rings(ranks, ring_bytes)
    }

    /// Likewise, with `ring_bytes` of bulk room in each ring: a power of two from 4 KiB to 16 MiB. Frames are at most a
    /// quarter of that.
    ///
    /// # Errors
    /// As [`Segment::create`].
    pub fn with_rings(ranks: u32, ring_bytes: u32) -> Result<Self, SegmentError> {
        let geometry = Geometry::new(ranks, ring_bytes)?;
        let limit = mapping::size_limit();
        let geometry = match geometry.size <= limit {
            true => geometry,
            false => {
                // Room for fewer windows, but a job all the same.
                let smaller = Geometry::with_size(ranks, ring_bytes, limit - limit % GRANULE);
                smaller.map_err(|error| match error {
                    SegmentError::Geometry(what) => SegmentError::Geometry(format!(
                        "{what}, the limit on file sizes: raise it (ulimit -f)"
                    )),
                    error => error,
                })?
            }
        };
        let fd = mapping::create(geometry.size)?;
        let segment = Self::open(fd, geometry, None)?;
        let header = segment.header();
        header.version.store(field(&geometry, 8) as u32, Relaxed);
        header.ranks.store(geometry.ranks, Relaxed);
        header.ring_bytes.store(geometry.ring_bytes, Relaxed);
        header.size.store(geometry.size, Relaxed);
        // Release pairs with the acquire in `attach`, for processes that didn't get the descriptor by inheritance.
        header.magic.store(field(&geometry, 0), crate::atomics::Release);
        Ok(segment)
    }

    /// The segment behind an inherited descriptor, for `rank`.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] if that isn't one of this version; [`SegmentError::NoSuchRank`]; [`SegmentError::System`].
    pub fn attach(fd: OwnedFd, rank: u32) -> Result<Self, SegmentError> {
        let size = mapping::size(fd.as_fd())?;
        if size < GRANULE {
            return Err(SegmentError::Geometry(format!("an object of {size} bytes")));
        }
        let start = Mapping::new(fd.as_fd(), Range { offset: 0, len: GRANULE })?;
        let words: &[Le64] = start.slice(0, 4);
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.load(Acquire).to_le_bytes());
        }
        let geometry = Geometry::parse(&bytes)?;
        if geometry.size > size {
            let what = format!("an object of {size} bytes that should have {}", geometry.size);
            return Err(SegmentError::Geometry(what));
        }
        if rank >= geometry.ranks {
            return Err(SegmentError::NoSuchRank(rank, geometry.ranks));
        }
        Self::open(fd, geometry, Some(rank))
    }

    fn open(fd: OwnedFd, geometry: Geometry, rank: Option<u32>) -> Result<Self, SegmentError> {
        let control = Mapping::new(fd.as_fd(), Range { offset: 0, len: geometry.control_len() })?;
        let allocating = (0..geometry.ranks).map(|_| Mutex::new(())).collect();
        Ok(Self { shared: Arc::new(Object { fd, geometry, control, allocating }), rank })
    }

    /// The same segment as `rank` sees it, for several ranks in one process.
    ///
    /// # Errors
    /// [`SegmentError::NoSuchRank`].
    pub fn as_rank(&self, rank: u32) -> Result<Self, SegmentError> {
        if rank >= self.size() {
            return Err(SegmentError::NoSuchRank(rank, self.size()));
        }
        Ok(Self { shared: self.shared.clone(), rank: Some(rank) })
    }

    /// The rank that this handle belongs to; none for the launcher's.
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// How many ranks the job has.
    pub fn size(&self) -> u32 {
        self.shared.geometry.ranks
    }

    /// Maps a range, wherever it came from: it is checked against the segment. Map on first use and keep it.
    ///
    /// # Errors
    /// [`SegmentError::Unmappable`] for a range that isn't of the segment's heap, or too long for this process;
    /// [`SegmentError::System`].
    pub fn map(&self, range: Range) -> Result<Mapping, SegmentError> {
        let Geometry { heap, size, .. } = self.shared.geometry;
        let aligned = range.offset % GRANULE == 0 && range.len % GRANULE == 0;
        let end = range.offset.checked_add(range.len);
        if !aligned || range.offset < heap || end.is_none_or(|end| end > size) {
            return Err(SegmentError::Unmappable(range));
        }
        Mapping::new(self.as_fd(), range)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.shared.geometry
    }

    /// Maps the ring that carries frames from one rank to another.
    pub(crate) fn map_ring(&self, from: u32, to: u32) -> Result<Mapping, SegmentError> {
        Mapping::new(self.as_fd(), self.shared.geometry.ring(from, to))
    }

    /// The words in which peers call `rank`.
    pub(crate) fn callers(&self, rank: u32) -> &[Le64] {
        self.callers_at(self.shared.geometry.callers_of(rank))
    }

    /// The same where these words are.
    #[inline]
    pub(crate) fn callers_at(&self, offset: u64) -> &[Le64] {
        self.shared.control.slice(offset, self.shared.geometry.caller_words())
    }

    pub(crate) fn block(&self, rank: u32) -> Option<&RankBlock> {
        let geometry = &self.shared.geometry;
        (rank < geometry.ranks).then(|| self.shared.control.at(geometry.rank_block(rank)))
    }

    fn header(&self) -> &Header {
        self.shared.control.at(0)
    }
}

fn field(geometry: &Geometry, at: usize) -> u64 {
    let bytes = geometry.header();
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[at + i]))
}

/// The descriptor, which the launcher hands down. It is closed on exec until made inheritable (FD_CLOEXEC cleared, in
/// the child between fork and exec).
impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("rank", &self.rank)
            .field("geometry", &self.shared.geometry)
            .finish()
    }
}
