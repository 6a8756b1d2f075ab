//! The board of a communicator whose ranks are all on one host: memory of the segment on which they
//! post the byte strings of their collective calls for each other.
//!
//! ```text
//! for each rank:
//!     two slots        its strings, in turns
//!     done             counter: the last exchange of which the rank needs no string any more
//! left                 number of the ranks that have left for good
//!
//! slot:
//!  0  posted           counter: the exchange
//!  4  length u32       of the string; or LONG for one that the slot has no room for
//!  8  number u32       of the collective call
//! 12  posts u32        that the rank has made so far
//! 16  call u64         the collective call
//! 24  string
//!     number u32       of the call in which the rank posted before,
//!     call u64         and that call
//! ```
//!
//! 1. An exchange is named by the number of its call and its place in the call, which all ranks
//!    know. In each, some or all ranks write a string to one of their slots, and then the name to
//!    its [counter].
//! 2. The ranks that need the string wait for that name, and read the string.
//! 3. A rank that needs nothing more of an exchange says so by its counter of exchanges that are
//!    done. A rank posts in its two slots by turns, after all others have done with what is there.
//!    A string that a rank has posted implies that it had done with all exchanges before.
//!
//! A rank counts the posts of each other rank that the calls imply. If a rank has made more, it has
//! made another call, even if that post is overwritten.
//!
//! So an exchange moves one cache line from each rank to each other rank if the strings are short.
//! A rank whose call fails before its exchange leaves it out: the others find its next post, of
//! another call. All words are little-endian: ranks of any byte order and word size can take part.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_transport::{Mapping, Range as Place, Segment, SegmentError};

use super::calls::Call;
use crate::bytes::Bytes;
use crate::counter;
use crate::engine::OtherCall;
use crate::error::Result;
use crate::group::Group;

/// The most ranks that have a board. Each of them reads the strings of all others.
pub(super) const MOST: u32 = u32::BITS;

/// Bytes of the longest string for one of few ranks.
const STRING: usize = (16 << 10) + 64;

/// Bytes beside the data of a string, and at most beside each string for one rank.
const HEAD: usize = 32;

/// The distance of what different ranks write. It is two cache lines, since processors prefetch
/// neighbouring lines in pairs.
const LINE: usize = 128;

/// Words of a slot before the string.
const LENGTH: usize = 4;
const NUMBER: usize = 8;
const POSTS: usize = 12;
const CALL: usize = 16;
const DATA: usize = 24;

/// Bytes of a slot after the room of the string: the call in which the rank posted before.
const BEFORE: usize = 12;

/// The length of a string that isn't on the board.
const LONG: u32 = u32::MAX;

/// The bits of an exchange's name that count the exchanges of its call.
const STEPS: u32 = 4;

/// The calls that ranks can be apart, and many more.
const APART: u32 = 1 << 12;

/// The board, as one of its ranks uses it.
pub(super) struct Board {
    memory: Mapping,
    place: Place,
    segment: Segment,
    group: Group,
    rank: u32,
    size: u32,
    /// The call and the name of the last exchange.
    last: (AtomicU32, AtomicU32),
    /// The slot of this rank that it uses next.
    next: AtomicUsize,
    /// What is in the slots of this rank.
    own: [Posted; 2],
    /// The place of each rank's slot that this one has found last.
    found: Box<[AtomicUsize]>,
    /// The number of exchanges in which all ranks post, and of the further posts of each rank.
    due: (AtomicU32, Box<[AtomicU32]>),
    /// The number of this rank's posts.
    posts: AtomicU32,
    /// The number and the word of the call of this rank's last post.
    before: (AtomicU32, AtomicU64),
    /// Whether there is a call in `other`.
    has_surplus: AtomicBool,
    /// A call of another rank that this one hasn't made.
    other: Mutex<Option<OtherCall>>,
}

/// The string in a slot of this rank.
struct Posted {
    exchange: AtomicU32,
    /// The bits of the ranks of which this one knows that they have done with it.
    done: AtomicU32,
}

/// An exchange: its name, and the number of its call.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    name: u32,
    number: u32,
}

impl Board {
    /// The size in bytes of the memory for `size` ranks. It must be zeroed.
    pub(super) fn bytes(size: u32) -> u64 {
        (stride(size) * size as usize + LINE) as u64
    }

    /// The board of a group whose memory is at `place` of the segment, for rank `rank`. `None` if
    /// the memory is too small.
    pub(super) fn new(
        segment: &Segment,
        place: Place,
        group: &Group,
        rank: u32,
    ) -> Result<Option<Board>, SegmentError> {
        let size = group.size() as u32;
        if place.len < Self::bytes(size) || size > MOST {
            return Ok(None);
        }
        let (memory, segment, group) = (segment.map(place)?, segment.clone(), group.clone());
        let free = || Posted { exchange: AtomicU32::new(0), done: AtomicU32::new(u32::MAX) };
        let (next, own) = (AtomicUsize::new(0), [free(), free()]);
        let (last, posts, before) = Default::default();
        let due = (AtomicU32::new(0), (0..size).map(|_| AtomicU32::new(0)).collect());
        let found = (0..size).map(|_| AtomicUsize::new(0)).collect();
        Ok(Some(Board {
            memory,
            place,
            segment,
            group,
            rank,
            size,
            last,
            next,
            own,
            found,
            due,
            posts,
            before,
            has_surplus: AtomicBool::new(false),
            other: Mutex::default(),
        }))
    }

    /// The memory of the board in the segment.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    /// Begins the next exchange of a call. `None` if the call has had as many as have names.
    pub(super) fn begin(&self, number: i32) -> Option<Exchange> {
        let number = number as u32;
        let first = number << STEPS & counter::COUNTS;
        let (call, name) = (&self.last.0, &self.last.1);
        let is_first = call.load(Ordering::Relaxed) != number;
        // No name is 0, as the counter of a slot is in which nothing has been posted.
        let next = if is_first { first } else { name.load(Ordering::Relaxed) } + 1;
        if next - first >= 1 << STEPS {
            return None;
        }
        call.store(number, Ordering::Relaxed);
        name.store(next, Ordering::Relaxed);
        for own in &self.own {
            // Ranks are never so far apart. Names that are older can't be compared.
            let age = next.wrapping_sub(own.exchange.load(Ordering::Relaxed)) & counter::COUNTS;
            if age > APART << STEPS {
                own.done.store(u32::MAX, Ordering::Relaxed);
            }
        }
        Some(Exchange { name: next, number })
    }

    /// Ends an exchange: this rank needs none of its strings any more.
    pub(super) fn end(&self, exchange: Exchange) {
        if counter::set(self.word(self.done_of(self.rank)), exchange.name) {
            self.ring_all();
        }
    }

    /// Whether the next slot of this rank may be overwritten. Otherwise returns a rank that may
    /// still need the string there. With `arming`, that rank will ring.
    pub(super) fn is_free(&self, arming: bool) -> Result<(), u32> {
        let own = &self.own[self.next.load(Ordering::Relaxed) % 2];
        let mut done = own.done.load(Ordering::Relaxed) | 1 << self.rank;
        let exchange = own.exchange.load(Ordering::Relaxed);
        for rank in 0..self.size {
            if done >> rank & 1 == 0 {
                if !counter::is_reached(self.word(self.done_of(rank)), exchange, arming) {
                    return Err(rank);
                }
                done |= 1 << rank;
                own.done.store(done, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Bytes of data in the longest string for one rank, if those for all ranks are as long.
    pub(super) fn longest_part(&self) -> usize {
        room(self.size) / self.size as usize - HEAD
    }

    /// Whether a slot has room for a string of so many bytes.
    pub(super) fn has_room(&self, len: usize) -> bool {
        len <= room(self.size)
    }

    /// Writes this rank's string of an exchange, in pieces, to its next slot, which is free. `None`
    /// says that the string doesn't go by the board.
    pub(super) fn post(&self, exchange: Exchange, call: u64, pieces: Option<&[&[u8]]>) {
        let which = self.next.load(Ordering::Relaxed) % 2;
        let slot = self.slot(self.rank, which);
        let mut length = 0;
        for piece in pieces.unwrap_or_default() {
            self.memory.store(slot + DATA + length, piece);
            length += piece.len();
        }
        self.write(slot + LENGTH, if pieces.is_some() { length as u32 } else { LONG });
        self.write(slot + NUMBER, exchange.number);
        let posts = self.posts.load(Ordering::Relaxed).wrapping_add(1);
        self.posts.store(posts, Ordering::Relaxed);
        self.write(slot + POSTS, posts);
        self.write_call(slot + CALL, call);
        let before = slot + DATA + room(self.size);
        self.write(before, self.before.0.load(Ordering::Relaxed));
        self.write_call(before + 4, self.before.1.load(Ordering::Relaxed));
        self.before.0.store(exchange.number, Ordering::Relaxed);
        self.before.1.store(call, Ordering::Relaxed);
        self.own[which].exchange.store(exchange.name, Ordering::Relaxed);
        self.own[which].done.store(0, Ordering::Relaxed);
        self.next.store(1 - which, Ordering::Relaxed);
        // Also releases what was written before.
        if counter::set(self.word(slot), exchange.name) {
            self.ring_all();
        }
    }

    /// The slot in which a rank has posted in an exchange. With `arming`, the rank will ring when
    /// it does.
    #[inline]
    pub(super) fn find(&self, rank: u32, exchange: Exchange, arming: bool) -> Option<Slot> {
        for which in [0, 1] {
            let slot = self.slot(rank, which);
            if counter::is_exactly(self.word(slot), exchange.name, arming)
                && self.read(slot + NUMBER) == exchange.number
            {
                for own in &self.own {
                    if own.exchange.load(Ordering::Relaxed) != exchange.name {
                        let done = own.done.load(Ordering::Relaxed) | 1 << rank;
                        own.done.store(done, Ordering::Relaxed);
                    }
                }
                self.found[rank as usize].store(slot, Ordering::Relaxed);
                return Some(Slot { rank, at: slot });
            }
        }
        None
    }

    /// The slot of a rank that was found before in this exchange.
    #[inline]
    pub(super) fn found(&self, rank: u32) -> Slot {
        Slot { rank, at: self.found[rank as usize].load(Ordering::Relaxed) }
    }

    /// The slot in which a rank has posted after an exchange in which it hasn't.
    pub(super) fn find_later(&self, rank: u32, exchange: Exchange) -> Option<Slot> {
        let slots = [0, 1].map(|which| self.slot(rank, which));
        let is_later = |slot: &usize| {
            let name = u32::from_le(self.word(*slot).load(Ordering::Acquire)) >> 1;
            let ahead = self.read(*slot + NUMBER).wrapping_sub(exchange.number) & i32::MAX as u32;
            (1..APART).contains(&ahead) || ahead == 0 && name > exchange.name
        };
        slots.into_iter().find(is_later).map(|at| Slot { rank, at })
    }

    /// Counts the posts of an exchange.
    pub(super) fn expect(&self, posters: Posters) {
        let add = |count: &AtomicU32, more: u32| {
            count.store(count.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        let (all, each) = &self.due;
        match posters {
            Posters::All => add(all, 1),
            Posters::One(rank) => add(&each[rank as usize], 1),
            Posters::Others(rank) => {
                add(all, 1);
                add(&each[rank as usize], u32::MAX);
            }
        }
    }

    /// Looks whether a rank has made more posts than the calls imply, and notes the call in which
    /// it posted before.
    pub(super) fn check_posts(&self, slot: Slot) {
        if let Some(other) = self.surplus(slot) {
            self.has_surplus.store(true, Ordering::Relaxed);
            lock(&self.other).get_or_insert(other);
        }
    }

    /// Takes the call that [`check_posts`](Board::check_posts) has noted.
    #[inline]
    pub(super) fn take_surplus(&self) -> Option<OtherCall> {
        if !self.has_surplus.load(Ordering::Relaxed) {
            return None;
        }
        self.has_surplus.store(false, Ordering::Relaxed);
        lock(&self.other).take()
    }

    /// The call in which a rank posted before, if it has made more posts than the calls imply.
    /// Tells of it once.
    fn surplus(&self, slot: Slot) -> Option<OtherCall> {
        let (all, each) = (self.due.0.load(Ordering::Relaxed), &self.due.1[slot.rank as usize]);
        let posts = self.read(slot.at + POSTS);
        let more = posts.wrapping_sub(all).wrapping_sub(each.load(Ordering::Relaxed));
        if more == 0 {
            return None;
        }
        each.store(posts.wrapping_sub(all), Ordering::Relaxed);
        // A rank that has made fewer has left out a call, and others have found that.
        let before = slot.at + DATA + room(self.size);
        let code = Call::code_of(self.read_call(before + 4));
        let call = (self.group.process(slot.rank), self.read(before) as i32, code);
        (more <= u32::MAX / 2).then_some(call)
    }

    /// The call in which a rank posted last, if it has made more posts than the calls imply. No
    /// rank posts any more.
    pub(super) fn last_surplus(&self) -> Option<OtherCall> {
        (0..self.size).filter(|rank| *rank != self.rank).find_map(|rank| {
            let slots = [0, 1].map(|which| Slot { rank, at: self.slot(rank, which) });
            let posts = |slot: &Slot| match self.word(slot.at).load(Ordering::Acquire) {
                0 => 0,
                _ => self.read(slot.at + POSTS),
            };
            let last = match posts(&slots[1]).wrapping_sub(posts(&slots[0])) as i32 {
                1.. => slots[1],
                _ => slots[0],
            };
            (posts(&last) > 0 && self.surplus(last).is_some()).then(|| self.call(last))
        })
    }

    /// A post in another call of this number.
    pub(super) fn other_call(&self, (number, code): (i32, u128)) -> Option<OtherCall> {
        let slots = (0..self.size).flat_map(|rank| [0, 1].map(|which| (rank, which)));
        let mut posts = slots.filter_map(|(rank, which)| {
            let at = self.slot(rank, which);
            let name = u32::from_le(self.word(at).load(Ordering::Acquire)) >> 1;
            let is_of_number = name >> STEPS == number as u32 & counter::COUNTS >> STEPS;
            is_of_number.then(|| self.call(Slot { rank, at }))
        });
        posts.find(|found| found.1 == number && ![0, code].contains(&found.2))
    }

    /// Whether a rank has posted in this call of this number.
    #[inline]
    pub(super) fn is_in_call(&self, slot: Slot, number: i32, call: u64) -> bool {
        self.read(slot.at + NUMBER) == number as u32 && self.read_call(slot.at + CALL) == call
    }

    /// The sender, number and code of the call in which a rank has posted.
    pub(super) fn call(&self, slot: Slot) -> OtherCall {
        let code = Call::code_of(self.read_call(slot.at + CALL));
        (self.group.process(slot.rank), self.read(slot.at + NUMBER) as i32, code)
    }

    /// The length of a string that a rank has posted; `None` if it doesn't go by the board.
    pub(super) fn length(&self, slot: Slot) -> Option<usize> {
        let length = self.read(slot.at + LENGTH);
        (length != LONG).then_some((length as usize).min(room(self.size)))
    }

    /// Some bytes of a string that a rank has posted. `None` if they aren't inside of it.
    ///
    /// # Errors
    /// NO_MEM if there isn't enough memory.
    pub(super) fn take(&self, slot: Slot, range: Range<usize>) -> Result<Option<Bytes>> {
        let length = self.length(slot).unwrap_or(0);
        if range.start > range.end || range.end > length {
            return Ok(None);
        }
        let mut bytes = Bytes::stale(range.len())?;
        self.memory.load(slot.at + DATA + range.start, &mut bytes);
        Ok(Some(bytes))
    }

    /// Leaves for good, outside of any exchange. Returns true to the last of all ranks, which may
    /// free the memory.
    pub(super) fn leave(&self) -> bool {
        let next = |left: u32| Some(u32::from_le(left).wrapping_add(1).to_le());
        let left = self.word(stride(self.size) * self.size as usize);
        // What the other ranks read was read before the memory is free.
        let (Ok(before) | Err(before)) =
            left.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        u32::from_le(before).wrapping_add(1) == self.size
    }

    /// Publishes the rank for which this one waits, for the watchdog.
    pub(super) fn note_wait(&self, rank: u32) {
        self.segment.note_wait(Some(self.group.process(rank)));
    }

    /// Rings all other ranks: any of them may sleep until this one has written.
    #[cold]
    fn ring_all(&self) {
        for rank in (0..self.size).filter(|rank| *rank != self.rank) {
            // Ringing can't fail: every rank of the job belongs to the segment.
            let _ = self.segment.ring(self.group.process(rank));
        }
    }

    fn slot(&self, rank: u32, which: usize) -> usize {
        stride(self.size) * rank as usize + slot_bytes(self.size) * which
    }

    fn done_of(&self, rank: u32) -> usize {
        stride(self.size) * rank as usize + 2 * slot_bytes(self.size)
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.word32(offset)
    }

    /// Reads a word that a counter has made visible.
    fn read(&self, offset: usize) -> u32 {
        u32::from_le(self.word(offset).load(Ordering::Relaxed))
    }

    fn read_call(&self, offset: usize) -> u64 {
        u64::from(self.read(offset)) | u64::from(self.read(offset + 4)) << 32
    }

    fn write_call(&self, offset: usize, call: u64) {
        self.write(offset, call as u32);
        self.write(offset + 4, (call >> 32) as u32);
    }

    fn write(&self, offset: usize, value: u32) {
        self.word(offset).store(value.to_le(), Ordering::Relaxed);
    }
}

/// The ranks that post in an exchange.
#[derive(Clone, Copy)]
pub(super) enum Posters {
    All,
    One(u32),
    /// All but this one.
    Others(u32),
}

/// A slot in which a rank has posted.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    rank: u32,
    at: usize,
}

impl Slot {
    /// The rank that has posted there.
    pub(super) fn rank(self) -> u32 {
        self.rank
    }
}

fn lock(other: &Mutex<Option<OtherCall>>) -> MutexGuard<'_, Option<OtherCall>> {
    other.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of the longest string: one for each rank, of as many as eight.
fn room(size: u32) -> usize {
    STRING * size.min(8) as usize
}

fn slot_bytes(size: u32) -> usize {
    (DATA + room(size) + BEFORE).next_multiple_of(LINE)
}

fn stride(size: u32) -> usize {
    2 * slot_bytes(size) + LINE
}
