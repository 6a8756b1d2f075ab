//! A ring: frames from one rank to another, written and read in place, without a lock.
//!
//! ```text
//!     0  consumed: u32   frames that the receiver has given back     (the receiver writes, now and then)
//!   128  watched: u32    the receiver polls this ring: no call needed (the receiver writes, rarely)
//!   256  starved: u32    the sender waits for room                    (the sender writes, rarely)
//!   260  claimed: u32    the receiver claims the lines that it has read  (the sender writes, rarely)
//!   512  Slot[64]        header: u64, 120 bytes for a short frame
//!  8704  bulk            longer frames, each in one piece, on 64-byte boundaries
//! ```
//!
//! A header is `stamp << 32 | length`. The stamp counts frames, from 1, so the receiver knows a new frame
//! by its header alone: a short frame crosses in the one cache line that the receiver polls. Where a longer one lies in
//! the bulk follows from the lengths of those before it; no index crosses.
//!
//! To *claim* a line is to write to it: its receiver alone has it then. A line that both have read is slow to be written again on some
//! processors; see `shm::pace`.
#![allow(unsafe_code)]

use std::ptr::NonNull;

pub use crate::atomics::Le64;
use crate::atomics::{Acquire, Le32, Relaxed};

/// Frames under way at most.
#[cfg(not(loom))]
pub const SLOTS: u32 = 64;
#[cfg(loom)]
pub const SLOTS: u32 = 2;

/// Frames up to this length lie in their slot.
pub const INLINE: usize = 120;

const LINE: u64 = 64;

/// The words beside the slots, a pair of cache lines each.
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

/// A frame's header, and its bytes if they are few.
#[repr(C, align(128))]
pub(crate) struct Slot {
    pub header: Le64,
    pub inline: [u8; INLINE],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() == 512 && size_of::<Slot>() == 128);

pub(crate) const SLOTS_AT: usize = 512;
pub(crate) const BULK_AT: usize = SLOTS_AT + SLOTS as usize * size_of::<Slot>();

/// The bytes of a ring with `ring_bytes` of bulk room.
pub(crate) fn footprint(ring_bytes: u32) -> u64 {
    BULK_AT as u64 + u64::from(ring_bytes)
}

/// The longest frame of a ring with `ring_bytes` of bulk room.
pub(crate) fn frame_limit(ring_bytes: u32) -> usize {
    ring_bytes as usize / 4
}

/// Where the bytes of a frame lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the slot of this index.
    Slot(usize),
    /// In the bulk, this many bytes from its start.
    Bulk(usize),
}

/// Whether bytes are about to be read or written, for who checks that.
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
/// `control` and `header` return the same words each time, and `bytes` a pointer that is valid for reads and writes
/// of [`INLINE`] bytes in a slot, and in the bulk of all bytes up to its end, while the memory lives; none overlap. They stay so when the memory
/// value moves.
pub unsafe trait Memory {
    /// The words beside the slots.
    fn control(&self) -> &Control;
    /// The header of a slot, below [`SLOTS`].
    fn header(&self, slot: usize) -> &Le64;
    /// The bulk's length, a power of two.
    fn bulk_len(&self) -> u64;
    /// The bytes at `place`.
    fn bytes(&self, place: Place, access: Access) -> *mut u8;
}

/// The frame's length by the header word that lies where frame number `sequence` (from 0) is expected; none while it
/// still is that of an earlier frame.
///
/// # Errors
/// What is wrong with a header that no sender writes.
#[inline]
pub fn parse(word: u64, sequence: u32, limit: usize) -> Result<Option<usize>, String> {
    let stamp = (word >> 32) as u32;
    let expected = sequence.wrapping_add(1);
    if stamp == expected {
        let len = word as u32;
        if len as usize > limit {
            return Err(too_long(len, limit));
        }
        return Ok(Some(len as usize));
    }
    if is_earlier(word, sequence) {
        return Ok(None);
    }
    Err(out_of_turn(stamp, expected))
}

/// Whether a header word is that of the frame before the one of this number, in its slot.
#[inline]
fn is_earlier(word: u64, sequence: u32) -> bool {
    let earlier = sequence.wrapping_add(1).wrapping_sub(SLOTS);
    (word >> 32) as u32 == earlier || (word == 0 && sequence < SLOTS)
}

#[cold]
fn too_long(len: u32, limit: usize) -> String {
    format!("a frame of {len} bytes, where {limit} are the limit")
}

#[cold]
fn out_of_turn(stamp: u32, expected: u32) -> String {
    let earlier = expected.wrapping_sub(SLOTS);
    format!("a frame stamped {stamp}, where {expected} or {earlier} can be")
}

/// Where in the bulk a frame of `len` bytes begins and ends, counted over all laps, when the one before it ended at
/// `end`: in one piece, so it may have to leave a gap.
fn bulk_span(end: u64, len: usize, bulk_len: u64) -> (u64, u64) {
    let len = (len as u64).next_multiple_of(LINE);
    let room = bulk_len - (end & (bulk_len - 1));
    let start = if len > room { end + room } else { end };
    (start, start + len)
}

/// What lies behind a frame in the bulk, and where its bytes are.
fn locate(sequence: u32, end: u64, len: usize, bulk_len: u64) -> (Place, u64) {
    if len <= INLINE {
        return (Place::Slot((sequence % SLOTS) as usize), end);
    }
    let (start, end) = bulk_span(end, len, bulk_len);
    (Place::Bulk((start & (bulk_len - 1)) as usize), end)
}

/// The sending end.
#[derive(Debug)]
pub struct Sender<M> {
    memory: M,
    /// The number of the next frame.
    next: u32,
    /// The bulk's end after each frame under way, and before the next.
    ends: [u64; SLOTS as usize],
    end: u64,
    /// What the receiver had given back when last looked at.
    consumed: u32,
    freed: u64,
}

/// What the sender must do once a frame is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The receiver doesn't poll this ring: call it.
    pub call: bool,
}

impl<M: Memory> Sender<M> {
    /// The sending end of a ring that nobody has used yet.
    pub fn new(memory: M) -> Self {
        Self { memory, next: 0, ends: [0; SLOTS as usize], end: 0, consumed: 0, freed: 0 }
    }

    /// Room for a frame of `len` bytes (within the limit), or none: then the receiver says when there is some. The room
    /// is the caller's alone until the next call of `reserve` or `publish`, while the memory lives.
    ///
    /// # Errors
    /// What is wrong with what the receiver wrote.
    pub fn reserve(&mut self, len: usize) -> Result<Option<NonNull<[u8]>>, String> {
        let bulk_len = self.memory.bulk_len();
        let (place, end) = locate(self.next, self.end, len, bulk_len);
        if !self.fits(end) {
            self.refresh()?;
            if !self.fits(end) {
                // Ask first, then look again; pairs with `Receiver::publish`.
                self.memory.control().starved.store_before_loads(1);
                self.refresh()?;
                if !self.fits(end) {
                    return Ok(None);
                }
            }
        }
        // Valid for `len` bytes: `locate` keeps bulk frames in one piece below the bulk's end, and inline ones within
        // INLINE. The receiver reads them once they are published, and has given them back if used before (`fits`).
        Ok(Some(slice(self.memory.bytes(place, Access::Write), len)))
    }

    /// Publishes a frame in the room reserved last: `bytes`, its first part.
    pub fn publish(&mut self, bytes: &[u8]) -> Published {
        let (place, end) = locate(self.next, self.end, bytes.len(), self.memory.bulk_len());
        let start = self.memory.bytes(place, Access::Write);
        if !std::ptr::eq(start, bytes.as_ptr()) {
            // It was reserved longer than it became, and belongs elsewhere now: mostly into its slot.
            // SAFETY: valid and ours as in `reserve`, and no longer than reserved. A slot isn't in the bulk, and a frame that
            // stays in it moves from its start to its last quarter: the two don't overlap.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        }
        self.ends[(self.next % SLOTS) as usize] = end;
        self.end = end;
        let header = self.memory.header((self.next % SLOTS) as usize);
        self.next = self.next.wrapping_add(1);
        // Published before the look at `watched` and at the doorbell; pairs with `Receiver::unwatch` and with arming.
        header.store_before_loads(u64::from(self.next) << 32 | bytes.len() as u64);
        Published { call: self.memory.control().watched.load(Relaxed) == 0 }
    }

    /// From here on the receiver claims what it has read of the bulk, or doesn't.
    pub fn claim(&self, claimed: bool) {
        // Seen sooner or later; nothing depends on it but how long writing takes.
        self.memory.control().claimed.store(claimed.into(), Relaxed);
    }

    /// Whether a slot is free, and the bulk up to `end`.
    fn fits(&self, end: u64) -> bool {
        self.next.wrapping_sub(self.consumed) < SLOTS && end - self.freed <= self.memory.bulk_len()
    }

    /// Looks at what the receiver has given back.
    fn refresh(&mut self) -> Result<(), String> {
        // Acquire pairs with the release in `Receiver::publish`: it has read those frames.
        let consumed = self.memory.control().consumed.load(Acquire);
        let under_way = self.next.wrapping_sub(self.consumed);
        if consumed.wrapping_sub(self.consumed) > under_way {
            return Err(format!("{consumed} frames consumed, where {} were sent", self.next));
        }
        if consumed != self.consumed {
            self.consumed = consumed;
            self.freed = self.ends[(consumed.wrapping_sub(1) % SLOTS) as usize];
        }
        Ok(())
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver<M> {
    memory: M,
    limit: usize,
    /// The number of the next frame, and the bulk's end before it.
    next: u32,
    end: u64,
    /// What the sender was told that it may use again.
    published: u32,
    published_end: u64,
    /// The frame in hand: its length.
    current: usize,
    /// The frame given back last, where its lines are to be claimed before the sender hears of it: the bulk's bytes.
    unclaimed: Option<(usize, usize)>,
}

impl<M: Memory> Receiver<M> {
    /// The receiving end of a ring that nobody has received from yet, for frames up to `limit`.
    pub fn new(memory: M, limit: usize) -> Self {
        let (next, end, published, published_end, current) = (0, 0, 0, 0, 0);
        Self { memory, limit, next, end, published, published_end, current, unclaimed: None }
    }

    /// Whether a glance shows no frame.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        // What is found is found again by `poll`, with its bytes.
        let word = self.memory.header((self.next % SLOTS) as usize).load(Relaxed);
        is_earlier(word, self.next)
    }

    /// The next frame's bytes, if there is one: valid until [`Receiver::release`], while the memory lives.
    ///
    /// # Errors
    /// What is wrong with what the sender wrote.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<NonNull<[u8]>>, String> {
        // Acquire pairs with the publication: the bytes are there.
        let word = self.memory.header((self.next % SLOTS) as usize).load(Acquire);
        let Some(len) = parse(word, self.next, self.limit)? else { return Ok(None) };
        self.current = len;
        let (place, _) = locate(self.next, self.end, self.current, self.memory.bulk_len());
        // Valid for the length, which `parse` checked against the limit.
        Ok(Some(slice(self.memory.bytes(place, Access::Read), self.current)))
    }

    /// Gives the frame back that `poll` returned, the sender hearing of it once it is claimed, where that is to be: by
    /// [`settle`](Receiver::settle), at the latest before the next `poll`. True when it waits for room and is to be rung.
    pub fn release(&mut self) -> bool {
        let bulk_len = self.memory.bulk_len();
        let (place, end) = locate(self.next, self.end, self.current, bulk_len);
        let _ = self.memory.bytes(place, Access::Read);
        self.claim_last();
        if let Place::Bulk(start) = place {
            if self.memory.control().claimed.load(Relaxed) != 0 {
                self.unclaimed = Some((start, self.current));
            }
        }
        (self.next, self.end) = (self.next.wrapping_add(1), end);
        if self.unclaimed.is_some() {
            // What came may have to be answered before.
            return false;
        }
        self.publish_due()
    }

    /// Claims what was given back last, if that is left to be done, and tells the sender. True when it waits for room and is to be rung.
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
            let start = self.memory.bytes(Place::Bulk(start), Access::Write);
            for at in (0..len).step_by(LINE as usize) {
                // SAFETY: within a frame of this length, which is the receiver's as the sender doesn't know that it was given back;
                // nobody reads it any more.
                unsafe { start.add(at).write_volatile(0) };
            }
        }
    }

    fn publish_due(&mut self) -> bool {
        let bulk_len = self.memory.bulk_len();
        let end = self.end;
        // Telling the sender costs a cache line: once a quarter of the ring, or when there is nothing else to do.
        let slots = self.next.wrapping_sub(self.published);
        let due = slots >= SLOTS / 4 || end - self.published_end >= bulk_len / 4;
        due && self.publish()
    }

    /// Tells the sender what it may use again, if it has not been told. True when it waits for room and is to be rung.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.published == self.next {
            return false;
        }
        self.claim_last();
        (self.published, self.published_end) = (self.next, self.end);
        let control = self.memory.control();
        // Told before the look at `starved`; pairs with `Sender::reserve`.
        control.consumed.store_before_loads(self.next);
        let starved = control.starved.load(Relaxed) != 0;
        if starved {
            control.starved.store(0, Relaxed);
        }
        starved
    }

    /// From here on the sender needs not call.
    pub fn watch(&mut self) {
        self.memory.control().watched.store(1, Relaxed); // a call that comes all the same does no harm
    }

    /// From here on the sender calls. True if it has sent something before it could know.
    pub fn unwatch(&mut self) -> bool {
        // Pairs with `Sender::publish`: either it sees this, or we see its frame.
        self.memory.control().watched.store_before_loads(0);
        !matches!(self.poll(), Ok(None))
    }
}

fn slice(start: *mut u8, len: usize) -> NonNull<[u8]> {
    let start = NonNull::new(start).expect("memory is never at address zero");
    NonNull::slice_from_raw_parts(start, len)
}
