//! The memory that the ranks of a job on one host share.
//!
//! The segment is one sparse object without a name. The launcher creates it and the ranks inherit
//! it, so no crash leaves it behind. It holds the job's state, a doorbell for each rank, a ring for
//! each ordered pair of ranks, and ranges (windows, control blocks) that any rank allocates.
//!
//! The processes that share it may differ in byte order, word size and page size. Everything in it
//! is therefore an offset or a little-endian word of defined width. Ranges are mapped one by one,
//! since not every process can map the whole object.

mod job;
mod journal;
mod layout;
#[doc(hidden)]
pub mod mailbox;
mod open_calls;
mod pieces;
mod ranges;
#[doc(hidden)]
pub mod state;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::mapping::{Mapping, MemoryLimit, Range, SegmentError};
pub use job::{Cause, JobState, Note, RankState};
pub use journal::Journal;
pub use layout::{GRANULE, Geometry, MAX_RANKS, MAX_SIMULATED_RANKS};
pub use open_calls::{CallSlot, OpenCalls};

pub(crate) use job::{ring_armed, ring_waiting};
use layout::{Header, RankBlock, Remark};
use mailbox::Mailbox;
use pieces::{Pieces, is_piece};

use crate::atomics::{Acquire, Le32, Relaxed, Release};
use crate::callers::Callers;
use crate::mapping::{self, SharedMapping};

/// A handle of one rank, or of the launcher, to the segment. Clones are handles to the same
/// segment.
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
    /// Lets one thread of each rank at a time enter the fair lock's queue, which has one entry per
    /// rank.
    allocating: Vec<Mutex<()>>,
    /// The mappings of this process, which all that need the same range share: it may have some
    /// 65,000.
    mappings: Mutex<Mappings>,
    /// The entries of ranges that this process allocated, by offset.
    known: Mutex<HashMap<u64, u32>>,
    /// The pieces of this process.
    pieces: Mutex<Pieces>,
}

/// The granules that stay mapped: those of two windows, and as many again.
const RECENT: usize = 8;

#[derive(Default)]
struct Mappings {
    all: HashMap<Range, SharedMapping>,
    /// The last mappings of one granule. They outlive their users, since a program that makes a
    /// window, frees it and makes the next one gets the same granules again. Mapping one and
    /// touching its pages takes as long as the messages of a window's creation.
    recent: VecDeque<Mapping>,
    /// The number of entries at which those of ended mappings are removed.
    limit: usize,
}

impl Mappings {
    fn get(&self, range: Range) -> Option<Mapping> {
        self.all.get(&range).and_then(SharedMapping::upgrade)
    }

    /// Keeps a mapping for its next users. Returns one that isn't kept any longer.
    fn insert(&mut self, range: Range, mapping: &Mapping) -> Option<Mapping> {
        if self.all.len() >= self.limit {
            self.all.retain(|_, mapping| mapping.exists());
            self.limit = 2 * self.all.len() + 64;
        }
        self.all.insert(range, mapping.downgrade());
        if range.len > GRANULE {
            return None;
        }
        self.recent.extend(mapping.part(0, range.len));
        (self.recent.len() > RECENT).then(|| self.recent.pop_front()).flatten()
    }
}

impl Segment {
    /// Creates the segment for a job of `ranks` ranks. Returns the launcher's handle. The size of
    /// the rings keeps the memory per rank small.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or more than [`MAX_RANKS`]; [`SegmentError::System`].
    pub fn create(ranks: u32) -> Result<Self, SegmentError> {
        // A rank that talks to all its peers touches about a MiB of rings.
        let ring_bytes = (1 << 20) / ranks.clamp(4, 64).next_power_of_two();
        Self::with_rings(ranks, ring_bytes)
    }

    /// Creates the segment for a job of `ranks` ranks that may start up to `more` others. Fewer
    /// others have room if the segment is too small for them. Returns the launcher's handle.
    /// [`started`](Segment::started) is `ranks` at first.
    ///
    /// # Errors
    /// Those of [`create`](Segment::create).
    pub fn create_with_room(ranks: u32, more: u32) -> Result<Self, SegmentError> {
        let mut room = more.min(MAX_RANKS.saturating_sub(ranks));
        let ring_bytes = (1 << 20) / ranks.clamp(4, 64).next_power_of_two();
        while room > 0 {
            if let Ok(segment) = Self::with_rings(ranks + room, ring_bytes) {
                segment.start(ranks);
                return Ok(segment);
            }
            room /= 2;
        }
        Self::create(ranks)
    }

    /// Creates the segment for a job of `ranks` ranks, with `ring_bytes` of bulk in each ring.
    /// Returns the launcher's handle.
    ///
    /// `ring_bytes` is a power of two from 4 KiB to 16 MiB. Frames have at most a quarter of that.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank, more than [`MAX_RANKS`], or an invalid `ring_bytes`;
    /// [`SegmentError::System`].
    pub fn with_rings(ranks: u32, ring_bytes: u32) -> Result<Self, SegmentError> {
        Self::of_geometry(Geometry::new(ranks, ring_bytes)?)
    }

    /// Creates a segment without rings, for `ranks` ranks of this process that have another link.
    /// Returns the launcher's handle.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] for no rank or more than [`MAX_SIMULATED_RANKS`];
    /// [`SegmentError::System`].
    pub(crate) fn without_rings(ranks: u32) -> Result<Self, SegmentError> {
        Self::of_geometry(Geometry::without_rings(ranks)?)
    }

    fn of_geometry(geometry: Geometry) -> Result<Self, SegmentError> {
        let limit = mapping::size_limit();
        let geometry = match geometry.size <= limit {
            true => geometry,
            false => {
                // The limit leaves room for fewer windows, but the job can run.
                let smaller = geometry.shrunk(limit - limit % GRANULE);
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
        let bytes = geometry.header();
        // The first word last: release pairs with the acquire in `attach`, for processes that
        // didn't inherit the descriptor.
        for (word, bytes) in segment.header().geometry.iter().zip(bytes.chunks_exact(4)).rev() {
            word.store(u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[i])), Release);
        }
        Ok(segment)
    }

    /// The handle of `rank` to the segment with an inherited descriptor.
    ///
    /// # Errors
    /// [`SegmentError::Geometry`] if the object isn't a segment of this version;
    /// [`SegmentError::NoSuchRank`]; [`SegmentError::System`].
    pub fn attach(fd: OwnedFd, rank: u32) -> Result<Self, SegmentError> {
        let size = mapping::size(fd.as_fd())?;
        if size < GRANULE {
            return Err(SegmentError::Geometry(format!("an object of {size} bytes")));
        }
        let start = Mapping::new(fd.as_fd(), Range { offset: 0, len: GRANULE })?;
        let words: &[Le32] = start.slice(0, 8);
        let mut bytes = [0; 32];
        // The first word first: acquire pairs with the release in `with_rings`.
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
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
        Ok(Self {
            shared: Arc::new(Object {
                fd,
                geometry,
                control,
                allocating,
                mappings: Mutex::default(),
                known: Mutex::default(),
                pieces: Mutex::default(),
            }),
            rank,
        })
    }

    /// A handle of `rank` to this segment, for several ranks in one process.
    ///
    /// # Errors
    /// [`SegmentError::NoSuchRank`].
    pub fn as_rank(&self, rank: u32) -> Result<Self, SegmentError> {
        if rank >= self.size() {
            return Err(SegmentError::NoSuchRank(rank, self.size()));
        }
        Ok(Self { shared: self.shared.clone(), rank: Some(rank) })
    }

    /// The rank of this handle; `None` for the launcher's.
    #[inline]
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// The number by which processes of this host that share the segment know it. No other segment
    /// that exists at the same time has it.
    ///
    /// # Errors
    /// [`SegmentError::System`].
    pub fn number(&self) -> Result<u64, SegmentError> {
        mapping::number(self.as_fd())
    }

    /// The number of ranks for which the segment has room.
    #[inline]
    pub fn size(&self) -> u32 {
        self.shared.geometry.ranks
    }

    /// The number of ranks that the job has, or had: the first of those for which there is room.
    #[inline]
    pub fn started(&self) -> u32 {
        // Acquire pairs with the release in `start`.
        match self.header().started.load(Acquire) {
            0 => self.size(),
            started => started.min(self.size()),
        }
    }

    /// Sets the number of ranks that the job has, or had. Only the launcher calls this.
    pub fn start(&self, ranks: u32) {
        self.header().started.store(ranks, Release);
    }

    /// Maps a range, after checking it against the segment, so it may come from a peer. Map on
    /// first use, and keep the mapping.
    ///
    /// # Errors
    /// [`SegmentError::Unmappable`] for a range that isn't in the segment's heap, or is too long
    /// for this process; [`SegmentError::System`].
    pub fn map(&self, range: Range) -> Result<Mapping, SegmentError> {
        let Geometry { heap, size, .. } = self.shared.geometry;
        let within = range.offset % GRANULE;
        if is_piece(range) && within % 64 == 0 && range.len % 64 == 0 && range.len < GRANULE {
            let granule = Range { offset: range.offset - within, len: GRANULE };
            let mapping = self.map(granule).map_err(|error| match error {
                SegmentError::Unmappable(_) => SegmentError::Unmappable(range),
                error => error,
            })?;
            let part = mapping.part(within, range.len.max(mapping::LEAST));
            return part.ok_or(SegmentError::Unmappable(range));
        }
        let aligned = within == 0 && range.len % GRANULE == 0;
        let end = range.offset.checked_add(range.len);
        if !aligned || range.offset < heap || end.is_none_or(|end| end > size) {
            return Err(SegmentError::Unmappable(range));
        }
        let mut shared = self.shared.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = shared.get(range) {
            return Ok(mapping);
        }
        let mapping = Mapping::new(self.as_fd(), range)?;
        let ended = shared.insert(range, &mapping);
        // The system call isn't waited for by others.
        drop(shared);
        drop(ended);
        Ok(mapping)
    }

    #[inline]
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.shared.geometry
    }

    /// Maps the ring that carries frames from rank `from` to rank `to`.
    pub(crate) fn map_ring(&self, from: u32, to: u32) -> Result<Mapping, SegmentError> {
        let range = self.shared.geometry.ring(from, to);
        match self.shared.geometry.ring_bytes {
            0 => Err(SegmentError::Unmappable(range)),
            _ => Mapping::new(self.as_fd(), range),
        }
    }

    /// The callers of `rank`.
    #[inline]
    pub(crate) fn callers(&self, rank: u32) -> Callers<'_> {
        self.callers_at(self.shared.geometry.callers_of(rank))
    }

    /// The callers at `offset`, from [`Geometry::callers_of`].
    #[inline]
    pub(crate) fn callers_at(&self, offset: u64) -> Callers<'_> {
        Callers::new(self.shared.control.slice(offset, self.shared.geometry.caller_words()))
    }

    #[inline]
    pub(crate) fn block(&self, rank: u32) -> Option<&RankBlock> {
        let geometry = &self.shared.geometry;
        (rank < geometry.ranks).then(|| self.shared.control.at(geometry.rank_block(rank)))
    }

    /// The mailbox of `rank`.
    #[inline]
    #[doc(hidden)]
    pub fn mailbox(&self, rank: u32) -> Option<&Mailbox> {
        let geometry = &self.shared.geometry;
        (rank < geometry.ranks).then(|| self.shared.control.at(geometry.mailbox(rank)))
    }

    /// Whether `rank` isn't about to sleep on its doorbell: it polls, or computes.
    #[inline]
    #[doc(hidden)]
    pub fn is_awake(&self, rank: u32) -> bool {
        self.block(rank).is_some_and(|block| block.bell.load(Relaxed) == 0)
    }

    #[inline]
    pub(crate) fn remark_of(&self, rank: u32) -> Option<&Remark> {
        let geometry = &self.shared.geometry;
        (rank < geometry.ranks).then(|| self.shared.control.at(geometry.remark(rank)))
    }

    #[inline]
    fn header(&self) -> &Header {
        self.shared.control.at(0)
    }
}

/// The descriptor, which the launcher passes to the ranks. It is closed on exec until it is made
/// inheritable: clear FD_CLOEXEC in the child, between fork and exec.
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
