//! A ring that carries frames from one rank to another. They are written and read in place, without
//! a lock.
//!
//! ```text
//!     0  consumed: u32   frames that the receiver has given back     (receiver writes, sometimes)
//!   128  watched: u32    the receiver polls this ring: don't call    (receiver writes, rarely)
//!   256  starved: u32    the sender waits for room                   (sender writes, rarely)
//!   260  claimed: u32    the receiver claims the lines it has read   (sender writes, rarely)
//!   512  Slot[64]        length: u32, stamp: u32, 120 bytes for a short frame
//!  8704  bulk            longer frames, each contiguous, on 64-byte boundaries
//! ```
//!
//! The stamp counts frames, from 1, so the receiver recognizes a new frame by its header. A short
//! frame therefore travels in the one cache line that the receiver polls. The position of a longer
//! frame in the bulk follows from the lengths of all earlier frames, so no index travels.
//!
//! The stamp publishes the frame, its length included. A slot has at most one frame under way, so
//! its length doesn't change before the receiver gives the frame back:
//!
//! ```text
//!     sender                                       receiver
//!     bytes, length
//!     stamp = n               --- release --->     stamp is n: acquire
//!                                                  length, bytes
//!     consumed >= n: acquire  <-- release ----     consumed = n
//!     bytes, length of frame n + 64
//! ```
//!
//! To *claim* a cache line, the receiver writes to it, so that no other cache holds it. A line that
//! both ends hold is slow to write again on some processors; see `shm::pace`.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::atomics::{Acquire, Le32, Relaxed};

/// The most frames under way.
#[cfg(not(loom))]
pub const SLOTS: u32 = 64;
#[cfg(loom)]
pub const SLOTS: u32 = 2;

/// The longest frame that lies in its slot.
pub const INLINE: usize = 120;

const LINE: u64 = 64;

/// The words beside the slots, in one pair of cache lines each.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Control {
    consumed: Le32,
    pad0: [u32; 31],
    watched: Le32,
    pad1: [u32; 31],
    starved: Le32,
    claimed: Le32,
    pad2: [[u32; 31]; 2],
}

/// A frame's header.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Header {
    len: Le32,
    /// The frame's number plus one. It publishes the frame.
    stamp: Le32,
}

/// A frame's header, and its bytes if they fit.
#[repr(C, align(128))]
pub(crate) struct Slot {
    pub header: Header,
    pub inline: [u8; INLINE],
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Control>() == 512 && size_of::<Slot>() == 128);
    assert!(size_of::<Header>() == 8 && align_of::<Header>() == 4);
};

pub(crate) const SLOTS_AT: usize = 512;
pub(crate) const BULK_AT: usize = SLOTS_AT + SLOTS as usize * size_of::<Slot>();

/// The bytes of a ring with `ring_bytes` of bulk.
pub(crate) fn footprint(ring_bytes: u32) -> u64 {
    BULK_AT as u64 + u64::from(ring_bytes)
}

/// The longest frame of a ring with `ring_bytes` of bulk.
pub(crate) fn frame_limit(ring_bytes: u32) -> usize {
    ring_bytes as usize / 4
}

/// The position of a frame's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// In the slot of this index.
    Slot(usize),
    /// In the bulk, at this offset.
    Bulk(usize),
}

/// Whether bytes are about to be read or written, for implementations of [`Memory`] that check it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Written.
    Write,
}

/// The shared memory of a ring.
///
/// # Safety
/// `control` and `header` return the same words each time. While the memory lives, `bytes` returns
/// a pointer that is valid for reads and writes: of [`INLINE`] bytes for a slot, and up to the end
/// of the bulk for the bulk. None of these overlap. They stay in place when the `Memory` value
/// moves.
pub unsafe trait Memory {
    /// The words beside the slots.
    fn control(&self) -> &Control;
    /// The header of a slot, below [`SLOTS`].
    fn header(&self, slot: usize) -> &Header;
    /// The length of the bulk, a power of two.
    fn bulk_len(&self) -> u64;
    /// The bytes at `position`.
    fn bytes(&self, position: Position, access: Access) -> *mut u8;
}

impl Header {
    /// A header of this stamp and length.
    pub fn new(stamp: u32, len: u32) -> Self {
        Self { len: Le32::new(len), stamp: Le32::new(stamp) }
    }

    /// The length of frame number `sequence` (from 0), where its header is expected. `None` while
    /// the header belongs to an earlier frame.
    ///
    /// # Errors
    /// Describes a header that no sender writes.
    #[inline]
    pub fn frame(&self, sequence: u32, limit: usize) -> Result<Option<usize>, String> {
        // Acquire pairs with the publication: the length and the bytes are there.
        let stamp = self.stamp.load(Acquire);
        let expected = sequence.wrapping_add(1);
        if stamp == expected {
            let len = self.len.load(Relaxed);
            if len as usize > limit {
                return Err(too_long(len, limit));
            }
            return Ok(Some(len as usize));
        }
        if is_earlier(stamp, sequence) {
            return Ok(None);
        }
        Err(out_of_turn(stamp, expected))
    }
}

/// Whether a stamp belongs to the frame that used this slot before frame number `sequence`.
#[inline]
fn is_earlier(stamp: u32, sequence: u32) -> bool {
    let earlier = sequence.wrapping_add(1).wrapping_sub(SLOTS);
    stamp == earlier || (stamp == 0 && sequence < SLOTS)
}

#[cold]
fn too_long(len: u32, limit: usize) -> String {
    format!("a frame of {len} bytes, above the limit of {limit}")
}

#[cold]
fn out_of_turn(stamp: u32, expected: u32) -> String {
    let earlier = expected.wrapping_sub(SLOTS);
    format!("a frame stamped {stamp}, where {expected} or {earlier} is valid")
}

/// The start and end in the bulk of a frame of `len` bytes, both counted over all laps, if the
/// previous frame ended at `end`. A frame is contiguous, so it may leave a gap before it.
#[inline]
fn bulk_span(end: u64, len: usize, bulk_len: u64) -> (u64, u64) {
    let len = (len as u64).next_multiple_of(LINE);
    let room = bulk_len - (end & (bulk_len - 1));
    let start = if len > room { end + room } else { end };
    (start, start + len)
}

/// The position of a frame's bytes, and the end of the bulk in use after it.
#[inline]
fn locate(sequence: u32, end: u64, len: usize, bulk_len: u64) -> (Position, u64) {
    if len <= INLINE {
        return (Position::Slot((sequence % SLOTS) as usize), end);
    }
    let (start, end) = bulk_span(end, len, bulk_len);
    (Position::Bulk((start & (bulk_len - 1)) as usize), end)
}

/// The sending end.
#[derive(Debug)]
pub struct Sender<M> {
    memory: M,
    /// The number of the next frame.
    next: u32,
    /// The end of the bulk in use after each frame under way, and (`end`) before the next frame.
    ends: [u64; SLOTS as usize],
    end: u64,
    /// The receiver's `consumed` when it was read last, and (`freed`) the end of the bulk that it
    /// freed.
    consumed: u32,
    freed: u64,
}

/// The duties of a sender after it published a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Whether the receiver must be called, because it doesn't poll this ring.
    pub call: bool,
}

impl<M: Memory> Sender<M> {
    /// The sending end of a ring that nobody has used yet.
    pub fn new(memory: M) -> Self {
        Self { memory, next: 0, ends: [0; SLOTS as usize], end: 0, consumed: 0, freed: 0 }
    }

    /// Room for a frame of `len` bytes, which are within the limit. `None` means that there is no
    /// room; the receiver then rings once there is some. Only the caller uses the room until the
    /// next call of `reserve` or `publish`, while the memory lives.
    ///
    /// # Errors
    /// Describes an invalid value that the receiver wrote.
    pub fn reserve(&mut self, len: usize) -> Result<Option<NonNull<[u8]>>, String> {
        let bulk_len = self.memory.bulk_len();
        let (position, end) = locate(self.next, self.end, len, bulk_len);
        if !self.fits(end) && !self.has_freed(end)? {
            return Ok(None);
        }
        // Valid for `len` bytes: `locate` keeps bulk frames contiguous below the bulk's end, and
        // inline frames within INLINE. The receiver reads these bytes only after they are
        // published. If they held an earlier frame, it has given that frame back (`fits`).
        Ok(Some(slice(self.memory.bytes(position, Access::Write), len)))
    }

    /// Publishes a frame in the room reserved last: `bytes` is the first part of that room.
    pub fn publish(&mut self, bytes: &[u8]) -> Published {
        let (position, end) = locate(self.next, self.end, bytes.len(), self.memory.bulk_len());
        let start = self.memory.bytes(position, Access::Write);
        if !std::ptr::eq(start, bytes.as_ptr()) {
            // The frame is shorter than its reserved room, and its bytes now belong elsewhere,
            // mostly into its slot.
            // SAFETY: the destination is valid and ours, as in `reserve`, and no longer than
            // reserved. A slot isn't in the bulk. A frame that stays in the bulk moves from the
            // bulk's start to its last quarter. Source and destination therefore don't overlap.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        }
        self.ends[(self.next % SLOTS) as usize] = end;
        self.end = end;
        let header = self.memory.header((self.next % SLOTS) as usize);
        self.next = self.next.wrapping_add(1);
        header.len.store(bytes.len() as u32, Relaxed);
        // Published before reading `watched` and the doorbell; pairs with `Receiver::unwatch` and
        // with arming.
        header.stamp.store_before_loads(self.next);
        Published { call: self.memory.control().watched.load(Relaxed) == 0 }
    }

    /// Sets whether the receiver claims the lines of the bulk that it has read.
    pub fn claim(&self, claimed: bool) {
        // Relaxed: only the speed of writing depends on this word.
        self.memory.control().claimed.store(claimed.into(), Relaxed);
    }

    /// Whether a slot is free, and the bulk up to `end`.
    fn fits(&self, end: u64) -> bool {
        self.next.wrapping_sub(self.consumed) < SLOTS && end - self.freed <= self.memory.bulk_len()
    }

    /// Whether the receiver has given back enough for a frame that ends at `end` in the bulk.
    /// Otherwise it will ring.
    #[cold]
    fn has_freed(&mut self, end: u64) -> Result<bool, String> {
        self.refresh()?;
        if !self.fits(end) {
            // Asks for a ring before checking again; pairs with `Receiver::publish`.
            self.memory.control().starved.store_before_loads(1);
            self.refresh()?;
        }
        Ok(self.fits(end))
    }

    /// Reads how many frames the receiver has given back.
    fn refresh(&mut self) -> Result<(), String> {
        // Acquire pairs with the release in `Receiver::publish`: the receiver has read those
        // frames.
        let consumed = self.memory.control().consumed.load(Acquire);
        let under_way = self.next.wrapping_sub(self.consumed);
        if consumed.wrapping_sub(self.consumed) > under_way {
            return Err(format!("{consumed} frames consumed, but only {} sent", self.next));
        }
        if consumed != self.consumed {
            self.consumed = consumed;
            self.freed = self.ends[(consumed.wrapping_sub(1) % SLOTS) as usize];
        }
        Ok(())
    }
}

/// A frame that the receiver has found.
#[derive(Debug, Clone, Copy)]
struct Found {
    position: Position,
    len: usize,
    /// The end of the bulk in use after it.
    end: u64,
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver<M> {
    memory: M,
    limit: usize,
    /// The number of the next frame, and (`end`) the end of the bulk in use before it.
    next: u32,
    end: u64,
    /// The read position that was reported to the sender.
    published: u32,
    published_end: u64,
    /// The next frame, once it was found.
    found: Option<Found>,
    /// Start and length in the bulk of the frame given back last, if its lines are to be claimed
    /// before the sender learns of it.
    unclaimed: Option<(usize, usize)>,
}

impl<M: Memory> Receiver<M> {
    /// The receiving end of a ring from which nobody has received yet, for frames of up to `limit`
    /// bytes.
    pub fn new(memory: M, limit: usize) -> Self {
        let (next, end, published, published_end) = (0, 0, 0, 0);
        let (found, unclaimed) = (None, None);
        Self { memory, limit, next, end, published, published_end, found, unclaimed }
    }

    /// Whether a quick test shows no frame.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        // Relaxed: `poll` loads the stamp again before it reads the bytes.
        let stamp = self.memory.header((self.next % SLOTS) as usize).stamp.load(Relaxed);
        is_earlier(stamp, self.next)
    }

    /// The bytes of the next frame, if there is one: valid until [`Receiver::release`], while the
    /// memory lives.
    ///
    /// # Errors
    /// Describes an invalid header that the sender wrote.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<NonNull<[u8]>>, String> {
        Ok(if self.find()? { self.found() } else { None })
    }

    /// Looks for the next frame. Returns whether there is one.
    ///
    /// # Errors
    /// Describes an invalid header that the sender wrote.
    #[inline]
    pub fn find(&mut self) -> Result<bool, String> {
        let header = self.memory.header((self.next % SLOTS) as usize);
        let Some(len) = header.frame(self.next, self.limit)? else { return Ok(false) };
        let (position, end) = locate(self.next, self.end, len, self.memory.bulk_len());
        self.found = Some(Found { position, len, end });
        Ok(true)
    }

    /// The bytes of the frame that `find` found, as [`poll`](Receiver::poll) returns them.
    #[inline]
    pub fn found(&self) -> Option<NonNull<[u8]>> {
        let Found { position, len, .. } = self.found?;
        // Valid for the length, which `find` checked against the limit.
        Some(slice(self.memory.bytes(position, Access::Read), len))
    }

    /// Gives back the frame that was found, if there is one. Returns whether the sender waits
    /// for room and must be rung.
    ///
    /// If the frame's lines are to be claimed, the sender learns of it only after that: in
    /// [`settle`](Receiver::settle), or at the latest before the next `poll`.
    #[inline]
    pub fn release(&mut self) -> bool {
        let Some(Found { position, len, end }) = self.found.take() else { return false };
        let _ = self.memory.bytes(position, Access::Read);
        self.claim_last();
        if let Position::Bulk(start) = position {
            if self.memory.control().claimed.load(Relaxed) != 0 {
                self.unclaimed = Some((start, len));
            }
        }
        (self.next, self.end) = (self.next.wrapping_add(1), end);
        if self.unclaimed.is_some() {
            // Claiming takes time, and the frame may have to be answered first.
            return false;
        }
        self.publish_due()
    }

    /// Claims the lines of the frame given back last, if that is still to be done, and reports it
    /// to the sender. Returns whether the sender waits for room and must be rung.
    #[inline]
    pub fn settle(&mut self) -> bool {
        self.unclaimed.is_some() && {
            self.claim_last();
            self.publish_due()
        }
    }

    #[inline]
    fn claim_last(&mut self) {
        if let Some((start, len)) = self.unclaimed.take() {
            let start = self.memory.bytes(Position::Bulk(start), Access::Write);
            for at in (0..len).step_by(LINE as usize) {
                // SAFETY: within a frame of this length. The frame is still the receiver's, because
                // the sender doesn't know that it was given back; nobody reads it any more.
                unsafe { start.add(at).write_volatile(0) };
            }
        }
    }

    #[inline(always)]
    fn publish_due(&mut self) -> bool {
        let bulk_len = self.memory.bulk_len();
        let end = self.end;
        // A report to the sender costs a cache line: report only each quarter of the ring, or when
        // idle.
        let slots = self.next.wrapping_sub(self.published);
        let due = slots >= SLOTS / 4 || end - self.published_end >= bulk_len / 4;
        due && self.publish()
    }

    /// Reports the read position to the sender, if that is new. Returns whether the sender waits
    /// for room and must be rung.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.published == self.next {
            return false;
        }
        self.claim_last();
        (self.published, self.published_end) = (self.next, self.end);
        let control = self.memory.control();
        // Reported before reading `starved`; pairs with `Sender::reserve`.
        control.consumed.store_before_loads(self.next);
        let starved = control.starved.load(Relaxed) != 0;
        if starved {
            control.starved.store(0, Relaxed);
        }
        starved
    }

    /// Tells the sender that it need not call from now on.
    pub fn watch(&mut self) {
        self.memory.control().watched.store(1, Relaxed); // A late call does no harm.
    }

    /// Asks the sender to call from now on. Returns whether it sent a frame before it could know.
    pub fn unwatch(&mut self) -> bool {
        // Pairs with `Sender::publish`: either the sender sees this, or this rank sees its frame.
        self.memory.control().watched.store_before_loads(0);
        !matches!(self.find(), Ok(false))
    }
}

#[inline]
fn slice(start: *mut u8, len: usize) -> NonNull<[u8]> {
    let start = NonNull::new(start).expect("memory is never at address zero");
    NonNull::slice_from_raw_parts(start, len)
}
