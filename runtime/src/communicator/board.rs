//! The board of a communicator whose ranks are all on one host: memory of the segment on which they
//! post the byte strings of their collective calls for each other.
//!
//! ```text
//! for each rank:
//!     slots            its strings, in turns: two, or more on a board of calls with requests
//!     done             counter: an exchange of which, as of all before, the rank needs no string
//!     settled          counter: an exchange of which the rank needs no place any more
//!     refused u32      the last exchange of which the rank couldn't read the places
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
//!    done. A rank posts in its slots by turns, after all others have done with what is there.
//!    A string that a rank has posted implies that it had done with all exchanges before.
//! 4. If all strings of an exchange are on the board, and each rank has read that of each other,
//!    the ranks have *met*. Then they leave their counters as they are, which so may be behind: by
//!    the next post or count of a rank, each other one learns that it has done.
//!
//! A string may name a *place* in its rank's private memory, from which other ranks read (see
//! [places](super::places)). The rank leaves that memory as it is until they have settled the
//! exchange. A rank that has done with an exchange, or posts in a later one, has settled it, too.
//! One that can't read a place refuses all of the exchange, and gets the data by message.
//!
//! A rank counts the posts of each other rank that the calls imply. If a rank has made more, it has
//! made another call, even if that post is overwritten.
//!
//! So an exchange moves one cache line from each rank to each other rank if the strings are short.
//! A rank whose call fails before its exchange leaves it out: the others find its next post, of
//! another call. All words are little-endian: ranks of any byte order and word size can take part.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_transport::{Mapping, Range as Place, Segment, SegmentError};

use super::calls::{Call, LONGEST_POSTED};
use super::shapes::Shapes;
use crate::bytes::Bytes;
use crate::counter;
use crate::engine::OtherCall;
use crate::error::Result;
use crate::group::Group;
use crate::memory::Span;

/// The most ranks that have a board. Each of them reads the strings of all others.
pub(super) const MOST: u32 = u32::BITS;

/// The memory of a rank on a board.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Bytes of the longest string for one of few ranks.
    longest: usize,
    /// The number of strings.
    slots: usize,
}

impl Form {
    /// For calls that wait.
    pub(super) const WAITING: Form = Form { longest: (16 << 10) + 64, slots: 2 };

    /// For calls with requests, of which a root may start several before another rank comes to the
    /// first.
    pub(super) const STARTED: Form = Form { longest: (4 << 10) + 64, slots: 8 };

    /// For a persistent call of so many ranks, of which a program may have many.
    pub(super) fn of_persistent(size: u32) -> Form {
        const ALL: usize = 32 << 10;
        let (size, strings) = (size.max(1) as usize, size.clamp(1, 8) as usize);
        let longest = (ALL / (2 * size * strings)).clamp(512, 4096).next_multiple_of(LINE);
        Form { longest, slots: 2 }
    }
}

/// Whether so many ranks have a board, if they are on one host.
pub(super) fn has_board(size: u32) -> bool {
    (2..=MOST).contains(&size)
}

/// Bytes of a string beside its data, and the end of a string for one rank.
pub(super) const BESIDE: usize = 32;

/// The distance of what different ranks write. It is two cache lines, since processors prefetch
/// neighbouring lines in pairs.
const LINE: usize = 128;

/// Words of a slot before the string.
const LENGTH: usize = 4;
const NUMBER: usize = 8;
const POSTS: usize = 12;
const CALL: usize = 16;
const DATA: usize = 24;

/// Words after the counter of exchanges that are done.
const SETTLED: usize = 4;
const REFUSED: usize = 8;

/// Bytes of a slot after the room of the string: the call in which the rank posted before.
const BEFORE: usize = 12;

/// The length of a string that isn't on the board.
const LONG: u32 = u32::MAX;

/// The bits of an exchange's name that count the exchanges of its call.
const STEPS: u32 = 4;

/// More calls than ranks are ever apart.
const APART: u32 = 1 << 16;

/// As many names.
const NAMES_APART: u32 = APART << STEPS;

/// The board, as one of its ranks uses it.
pub(super) struct Board {
    memory: Mapping,
    place: Place,
    segment: Segment,
    group: Group,
    rank: u32,
    size: u32,
    /// Bytes of the longest string for all ranks.
    room: usize,
    /// The number of slots of each rank.
    slots: usize,
    /// The call and the name of the last exchange.
    last: (AtomicU32, AtomicU32),
    /// The slot of this rank that it uses next.
    next: AtomicUsize,
    /// What is in the slots of this rank.
    own: Box<[Posted]>,
    /// The place of each rank's slot that this one has found last.
    found: Box<[AtomicUsize]>,
    /// The number of exchanges in which all ranks post, and of the further posts of each rank.
    due: (AtomicU32, Box<[AtomicU32]>),
    /// The number of this rank's posts.
    posts: AtomicU32,
    /// The number and the word of the call of this rank's last post.
    before: (AtomicU32, AtomicU64),
    /// Whether a thread takes part in an exchange.
    is_claimed: AtomicBool,
    /// The last exchange that is said to be done in this rank's counter.
    told: AtomicU32,
    open: Open,
    /// Whether there is a call in `other`.
    has_surplus: AtomicBool,
    /// A call of another rank that this one hasn't made.
    other: Mutex<Option<OtherCall>>,
    shapes: Shapes,
}

/// The string in a slot of this rank.
struct Posted {
    exchange: AtomicU32,
    /// The bits of the ranks of which this one knows that they have done with it.
    done: AtomicU32,
}

/// An exchange that is to be resumed.
struct Open {
    /// Its name; 0 if there is none.
    name: AtomicU32,
    has_posted: AtomicBool,
    awaited: AtomicU32,
}

/// How a rank leaves an exchange that is to be resumed.
pub(super) struct Left {
    /// Whether it has posted what it posts.
    pub has_posted: bool,
    /// The rank for whose post it waits, or [`NOTHING`] or [`OWN_SLOT`].
    pub awaited: u32,
}

/// The call waits for nothing: its general steps go on with the exchange.
pub(super) const NOTHING: u32 = u32::MAX;
/// The call waits for its rank's next slot.
pub(super) const OWN_SLOT: u32 = u32::MAX - 1;

/// An exchange: its name, and the number of its call.
#[derive(Clone, Copy)]
pub(super) struct Exchange {
    name: u32,
    number: u32,
}

impl Board {
    /// The size in bytes of the memory for `size` ranks. It must be zeroed.
    pub(super) fn bytes(size: u32, form: Form) -> u64 {
        (stride(room(size, form.longest), form.slots) * size as usize + LINE) as u64
    }

    /// The board of a group whose memory is at `place` of the segment, for rank `rank`. `None` if
    /// the memory is too small.
    pub(super) fn new(
        segment: &Segment,
        place: Place,
        group: &Group,
        (rank, form): (u32, Form),
    ) -> Result<Option<Board>, SegmentError> {
        let size = group.size() as u32;
        if place.len < Self::bytes(size, form) || size > MOST {
            return Ok(None);
        }
        let (memory, segment, group) = (segment.map(place)?, segment.clone(), group.clone());
        let free = || Posted { exchange: AtomicU32::new(0), done: AtomicU32::new(u32::MAX) };
        let (next, own) = (AtomicUsize::new(0), (0..form.slots).map(|_| free()).collect());
        let (last, posts, before) = Default::default();
        let due = (AtomicU32::new(0), (0..size).map(|_| AtomicU32::new(0)).collect());
        let first = |rank: u32| stride(room(size, form.longest), form.slots) * rank as usize;
        let found = (0..size).map(|rank| AtomicUsize::new(first(rank))).collect();
        Ok(Some(Board {
            memory,
            place,
            segment,
            group,
            rank,
            size,
            room: room(size, form.longest),
            slots: form.slots,
            last,
            next,
            own,
            found,
            due,
            posts,
            before,
            is_claimed: AtomicBool::new(false),
            told: AtomicU32::new(0),
            open: Open {
                name: AtomicU32::new(0),
                has_posted: AtomicBool::new(false),
                awaited: AtomicU32::new(NOTHING),
            },
            has_surplus: AtomicBool::new(false),
            other: Mutex::default(),
            shapes: Shapes::default(),
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

    /// The shapes of the data of the last calls.
    pub(super) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Takes the board for an exchange of this thread. Returns false if another thread has it.
    pub(super) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::Acquire)
    }

    /// Gives the board back to other threads.
    pub(super) fn release(&self) {
        self.is_claimed.store(false, Ordering::Release);
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
            // Names that are older can't be compared. All ranks have done with them.
            let age = next.wrapping_sub(own.exchange.load(Ordering::Relaxed)) & counter::COUNTS;
            if age > NAMES_APART {
                own.done.store(u32::MAX, Ordering::Relaxed);
            }
        }
        Some(Exchange { name: next, number })
    }

    /// Ends an exchange: this rank needs none of its strings any more. If the ranks `have_met`, the
    /// counter is left as it is, unless it is far behind.
    pub(super) fn end(&self, exchange: Exchange, have_met: bool) {
        let behind = exchange.name.wrapping_sub(self.told.load(Ordering::Relaxed));
        if have_met && behind & counter::COUNTS < APART {
            return;
        }
        self.told.store(exchange.name, Ordering::Relaxed);
        if counter::set(self.word(self.done_of(self.rank)), exchange.name) {
            self.ring_all();
        }
    }

    /// Settles an exchange: this rank needs no place of it any more, or `refuses` them and needs
    /// the data by message.
    pub(super) fn settle(&self, exchange: Exchange, refuses: bool) {
        let done = self.done_of(self.rank);
        self.write(done + REFUSED, if refuses { exchange.name } else { 0 });
        if counter::set(self.word(done + SETTLED), exchange.name) {
            self.ring_all();
        }
    }

    /// Whether a rank has settled an exchange in which this one has named places. With `arming`,
    /// that rank will ring.
    pub(super) fn is_settled(&self, rank: u32, exchange: Exchange, arming: bool) -> bool {
        let done = self.done_of(rank);
        let is_past = |offset| {
            let word = self.word(offset);
            let is_past = counter::is_within(word, exchange.name, 2 * NAMES_APART, arming);
            // A counter of 0 may be near, and is that of a rank that has settled nothing.
            is_past && counter::last(word) != 0
        };
        is_past(done + SETTLED)
            || is_past(done)
            || arming && self.find_later(rank, exchange).is_some()
    }

    /// Whether a rank that has settled an exchange has refused its places.
    pub(super) fn has_refused(&self, rank: u32, exchange: Exchange) -> bool {
        self.read(self.done_of(rank) + REFUSED) == exchange.name
    }

    /// Leaves an exchange open: the next attempt of its call, or its general steps, will
    /// [resume](Board::resume) it.
    pub(super) fn leave_open(&self, exchange: Exchange, left: Left) {
        self.open.has_posted.store(left.has_posted, Ordering::Relaxed);
        self.open.awaited.store(left.awaited, Ordering::Relaxed);
        self.open.name.store(exchange.name, Ordering::Relaxed);
    }

    /// The exchange of a call that is left open, if there is one, and whether this rank has posted
    /// there.
    pub(super) fn resume(&self, number: i32) -> Option<(Exchange, bool)> {
        if self.open.name.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let open = self.open_of(number);
        self.open.name.store(0, Ordering::Relaxed);
        Some((open?, self.open.has_posted.load(Ordering::Relaxed)))
    }

    fn open_of(&self, number: i32) -> Option<Exchange> {
        let (name, number) = (self.open.name.load(Ordering::Relaxed), number as u32);
        let is_of_call = name >> STEPS == (number << STEPS & counter::COUNTS) >> STEPS;
        (name != 0 && is_of_call).then_some(Exchange { name, number })
    }

    /// Whether a call waits in the exchange that it has left open.
    pub(super) fn awaits(&self, number: i32) -> bool {
        self.open_of(number).is_some() && self.open.awaited.load(Ordering::Relaxed) != NOTHING
    }

    /// Whether what a call [awaits](Board::awaits) is there.
    pub(super) fn has_awaited(&self, number: i32) -> bool {
        self.open_of(number).is_none_or(|exchange| {
            match self.open.awaited.load(Ordering::Relaxed) {
                NOTHING => true,
                OWN_SLOT => self.is_free(false).is_ok(),
                rank => self.find(rank, exchange, false).is_some(),
            }
        })
    }

    pub(super) fn forget_awaited(&self) {
        self.open.awaited.store(NOTHING, Ordering::Relaxed);
    }

    /// Whether the next slot of this rank may be overwritten. Otherwise returns a rank that may
    /// still need the string there. With `arming`, that rank will ring.
    pub(super) fn is_free(&self, arming: bool) -> Result<(), u32> {
        let own = &self.own[self.next.load(Ordering::Relaxed)];
        let mut done = own.done.load(Ordering::Relaxed) | 1 << self.rank;
        let exchange = own.exchange.load(Ordering::Relaxed);
        for rank in 0..self.size {
            if done >> rank & 1 == 0 {
                let word = self.word(self.done_of(rank));
                let is_done = counter::is_within(word, exchange, 2 * NAMES_APART, arming);
                // A counter of 0 may be near, and is that of a rank that has done with nothing.
                if !is_done || counter::last(word) == 0 {
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
        self.room / self.size as usize - BESIDE
    }

    /// Bytes of the longest block that the ranks of a call post, if they can offer longer ones.
    /// More than two ranks often have fewer cores, and wait longer for the ranks that read them.
    #[inline]
    pub(super) fn longest_posted(&self, call: Call) -> u64 {
        let longest = if self.size > 2 { LONGEST_POSTED } else { call.longest_posted() };
        longest.min(self.longest_part() as u64)
    }

    /// Whether a slot has room for a string of so many bytes.
    pub(super) fn has_room(&self, len: usize) -> bool {
        len <= self.room
    }

    /// Writes this rank's string of an exchange, in pieces, to its next slot, which is free. `None`
    /// says that the string doesn't go by the board.
    pub(super) fn post(&self, exchange: Exchange, call: u64, pieces: Option<&[Piece<'_>]>) {
        let which = self.next.load(Ordering::Relaxed);
        let slot = self.slot(self.rank, which);
        self.write(slot + NUMBER, exchange.number);
        // A rank that reads the new call finds the new number, too; see `call`.
        fence(Ordering::Release);
        let mut length = 0;
        for piece in pieces.unwrap_or_default() {
            let at = slot + DATA + length;
            match piece {
                Piece::Bytes(bytes) => self.memory.store(at, bytes),
                // Both have room for as many bytes.
                Piece::Run(run) => _ = self.span().copy_run(at as i64, *run, 0, run.len()),
            }
            length += piece.len();
        }
        self.write(slot + LENGTH, if pieces.is_some() { length as u32 } else { LONG });
        let posts = self.posts.load(Ordering::Relaxed).wrapping_add(1);
        self.posts.store(posts, Ordering::Relaxed);
        self.write(slot + POSTS, posts);
        self.write_call(slot + CALL, call);
        let before = slot + DATA + self.room;
        self.write(before, self.before.0.load(Ordering::Relaxed));
        self.write_call(before + 4, self.before.1.load(Ordering::Relaxed));
        self.before.0.store(exchange.number, Ordering::Relaxed);
        self.before.1.store(call, Ordering::Relaxed);
        self.own[which].exchange.store(exchange.name, Ordering::Relaxed);
        self.own[which].done.store(0, Ordering::Relaxed);
        let next = if which + 1 == self.slots { 0 } else { which + 1 };
        self.next.store(next, Ordering::Relaxed);
        self.found[self.rank as usize].store(slot, Ordering::Relaxed);
        // Also releases what was written before.
        if counter::set(self.word(slot), exchange.name) {
            self.ring_all();
        }
    }

    /// The slot in which a rank has posted in an exchange. With `arming`, the rank will ring when
    /// it does.
    #[inline]
    pub(super) fn find(&self, rank: u32, exchange: Exchange, arming: bool) -> Option<Slot> {
        let (each, first) = (slot_bytes(self.room), self.slot(rank, 0));
        // Ranks use their slots by turns.
        let mut slot = self.found[rank as usize].load(Ordering::Relaxed);
        for _ in 0..self.slots {
            slot += each;
            if slot >= first + each * self.slots {
                slot = first;
            }
            if counter::is_within(self.word(slot), exchange.name, 0, arming)
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

    /// The slot of a rank that was found before in this exchange, or of this one's post.
    #[inline]
    pub(super) fn found(&self, rank: u32) -> Slot {
        Slot { rank, at: self.found[rank as usize].load(Ordering::Relaxed) }
    }

    /// The slot in which a rank has posted after an exchange in which it hasn't.
    pub(super) fn find_later(&self, rank: u32, exchange: Exchange) -> Option<Slot> {
        let slots = (0..self.slots).map(|which| self.slot(rank, which));
        let ahead = |slot: &usize| self.name(*slot).wrapping_sub(exchange.name) & counter::COUNTS;
        let is_later =
            |slot: &usize| self.name(*slot) != 0 && (1..NAMES_APART).contains(&ahead(slot));
        slots.filter(is_later).min_by_key(ahead).map(|at| Slot { rank, at })
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
        let before = slot.at + DATA + self.room;
        let code = Call::code_of(self.read_call(before + 4));
        let call = (self.group.process(slot.rank), self.read(before) as i32, code);
        (more <= u32::MAX / 2).then_some(call)
    }

    /// The call in which a rank posted last, if it has made more posts than the calls imply. No
    /// rank posts any more.
    pub(super) fn last_surplus(&self) -> Option<OtherCall> {
        (0..self.size).filter(|rank| *rank != self.rank).find_map(|rank| {
            let slots = (0..self.slots).map(|which| Slot { rank, at: self.slot(rank, which) });
            let posts = |slot: &Slot| match self.name(slot.at) {
                0 => 0,
                _ => self.read(slot.at + POSTS),
            };
            let later =
                |one: Slot, other: Slot| match posts(&other).wrapping_sub(posts(&one)) as i32 {
                    1.. => other,
                    _ => one,
                };
            let last = slots.reduce(later)?;
            (posts(&last) > 0 && self.surplus(last).is_some()).then(|| self.call(last))
        })
    }

    /// A post in another call of this number.
    pub(super) fn other_call(&self, (number, code): (i32, u128)) -> Option<OtherCall> {
        let slots = (0..self.size).flat_map(|rank| (0..self.slots).map(move |which| (rank, which)));
        let mut posts = slots.filter_map(|(rank, which)| {
            let at = self.slot(rank, which);
            let is_of_number = self.name(at) >> STEPS == number as u32 & counter::COUNTS >> STEPS;
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
        // Pairs with the fence in `post`: the rank may be about to post again.
        fence(Ordering::Acquire);
        (self.group.process(slot.rank), self.read(slot.at + NUMBER) as i32, code)
    }

    /// The length of a string that a rank has posted; `None` if it doesn't go by the board.
    pub(super) fn length(&self, slot: Slot) -> Option<usize> {
        let length = self.read(slot.at + LENGTH);
        (length != LONG).then_some((length as usize).min(self.room))
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

    /// Whether a string that a rank has posted has these bytes at this place.
    #[inline]
    pub(super) fn has<const N: usize>(&self, slot: Slot, at: usize, bytes: &[u8; N]) -> bool {
        self.bytes_at(slot, at) == Some(*bytes)
    }

    /// Some bytes of a string that a rank has posted. `None` if they aren't inside of it.
    #[inline]
    pub(super) fn bytes_at<const N: usize>(&self, slot: Slot, at: usize) -> Option<[u8; N]> {
        if at + N > self.length(slot)? {
            return None;
        }
        let mut found = [0; N];
        self.memory.load(slot.at + DATA + at, &mut found);
        Some(found)
    }

    /// The memory of some bytes of a string that a rank has posted, until the exchange ends. `None`
    /// if they aren't inside of it.
    #[inline]
    pub(super) fn part(&self, slot: Slot, at: usize, len: u64) -> Option<Span> {
        let end = u64::try_from(at).ok()?.checked_add(len)?;
        let is_inside = self.length(slot).is_some_and(|length| end <= length as u64);
        let part = self.span().part((slot.at + DATA + at) as u64, len);
        part.filter(|_| is_inside)
    }

    /// The memory of the board.
    #[inline]
    fn span(&self) -> Span {
        Span::around(self.memory.as_ptr(), 0, self.memory.len() as i64)
    }

    /// Leaves for good, outside of any exchange. Returns true to the last of all ranks, which may
    /// free the memory.
    pub(super) fn leave(&self) -> bool {
        counter::leave(self.word(stride(self.room, self.slots) * self.size as usize), self.size)
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
        stride(self.room, self.slots) * rank as usize + slot_bytes(self.room) * which
    }

    fn done_of(&self, rank: u32) -> usize {
        stride(self.room, self.slots) * rank as usize + self.slots * slot_bytes(self.room)
    }

    /// The name of the exchange in which a slot's rank has posted there last.
    fn name(&self, slot: usize) -> u32 {
        u32::from_le(self.word(slot).load(Ordering::Acquire)) >> 1
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

/// A piece of a string.
#[derive(Clone, Copy)]
pub(super) enum Piece<'a> {
    Bytes(&'a [u8]),
    /// All of this memory, in which one run of elements lies.
    Run(Span),
}

impl Piece<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Run(run) => run.len() as usize,
        }
    }
}

/// The ranks that post in an exchange.
#[derive(Clone, Copy)]
pub(super) enum Posters {
    All,
    One(u32),
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
fn room(size: u32, longest: usize) -> usize {
    longest * size.min(8) as usize
}

fn slot_bytes(room: usize) -> usize {
    (DATA + room + BEFORE).next_multiple_of(LINE)
}

fn stride(room: usize, slots: usize) -> usize {
    slots * slot_bytes(room) + LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The boards of two ranks, in one memory.
    fn pair() -> [Board; 2] {
        let segment = Segment::create(2).unwrap();
        let place = segment.as_rank(0).unwrap().allocate(Board::bytes(2, Form::WAITING)).unwrap();
        [0, 1].map(|rank| {
            let segment = segment.as_rank(rank).unwrap();
            let group = Group::of_world(0..2, rank);
            Board::new(&segment, place, &group, (rank, Form::WAITING)).unwrap().unwrap()
        })
    }

    /// Lets the first rank post, and checks that the second one finds it.
    fn pass([from, to]: &[Board; 2], number: i32, string: &[u8]) -> Exchange {
        let call = Call::new("bcast").word();
        let sent = from.begin(number).unwrap();
        assert_eq!(from.is_free(false), Ok(()));
        from.expect(Posters::One(0));
        from.post(sent, call, Some(&[Piece::Bytes(string)]));
        from.end(sent, false);
        let wanted = to.begin(number).unwrap();
        to.expect(Posters::One(0));
        let slot = to.find(0, wanted, false).unwrap();
        assert!(to.is_in_call(slot, number, call));
        assert_eq!(to.take(slot, 0..string.len()).unwrap().as_deref(), Some(string));
        assert!(to.take(slot, 0..string.len() + 1).unwrap().is_none());
        to.check_posts(slot);
        assert_eq!(to.take_surplus(), None);
        wanted
    }

    #[test]
    fn a_slot_is_overwritten_after_its_readers_have_done_with_it() {
        // The names begin again between these calls.
        for first in [1, (1 << 27) - 2, i32::MAX - 1] {
            let boards = pair();
            let number = |call: i32| first.wrapping_add(call) & i32::MAX;
            let one = pass(&boards, number(0), b"one");
            let two = pass(&boards, number(1), b"two");
            // The second rank still reads the string of the first call.
            assert_eq!(boards[0].is_free(false), Err(1));
            boards[1].end(one, false);
            let three = pass(&boards, number(2), b"three");
            assert_eq!(boards[0].is_free(true), Err(1));
            boards[1].end(two, false);
            boards[1].end(three, false);
            pass(&boards, number(3), b"four");
        }
    }

    #[test]
    fn ranks_that_have_met_count_seldom() {
        let boards = pair();
        let call = Call::new("allreduce").word();
        // Until names begin again, and further.
        for first in [1, i32::MAX - 20] {
            for number in (0..10_000).map(|call| first.wrapping_add(call) & i32::MAX) {
                let exchanges = [0, 1].map(|rank| boards[rank].begin(number).unwrap());
                for (board, exchange) in boards.iter().zip(exchanges) {
                    assert_eq!(board.is_free(false), Ok(()), "call {number}");
                    board.post(exchange, call, Some(&[Piece::Bytes(b"x")]));
                }
                for (rank, exchange) in [(0, exchanges[0]), (1, exchanges[1])] {
                    assert!(boards[rank].find(1 - rank as u32, exchange, false).is_some());
                    boards[rank].end(exchange, true);
                }
            }
            // The counter is behind, but not by more than names that can be compared.
            let told = counter::last(boards[0].word(boards[0].done_of(0)));
            let last = boards[0].last.1.load(Ordering::Relaxed);
            assert!(last.wrapping_sub(told) & counter::COUNTS < APART);
        }
    }

    #[test]
    fn barriers_of_any_number_between_two_exchanges_free_no_slot() {
        let boards = pair();
        boards[1].end(pass(&boards, 1, b"one"), false);
        // The other rank's counter is as far behind as these calls.
        for call in [70_000_000, 100_000_000, i32::MAX - 5] {
            let _ = [pass(&boards, call, b"two"), pass(&boards, call + 1, b"three")];
            assert_eq!(boards[0].is_free(false), Err(1), "{call}");
            let last = boards[1].begin(call + 2).unwrap();
            boards[1].end(last, false);
        }
    }

    #[test]
    fn posts_of_other_calls_are_found() {
        let boards = pair();
        let [one, two] = &boards;
        let sent = one.begin(1).unwrap();
        one.post(sent, Call::new("gather").word(), Some(&[Piece::Bytes(b"x")]));
        let wanted = two.begin(1).unwrap();
        let slot = two.find(0, wanted, false).unwrap();
        let (number, call) = (1, Call::new("bcast"));
        assert!(!two.is_in_call(slot, number, call.word()));
        let other = (0, 1, Call::new("gather").code());
        assert_eq!(two.call(slot), other);
        assert_eq!(two.other_call((number, call.code())), Some(other));
        assert_eq!(two.other_call((number, Call::new("gather").code())), None);
        // A rank that has gone on to a later call, of which another rank learns there.
        let later = one.begin(2).unwrap();
        one.post(later, call.word(), Some(&[Piece::Bytes(b"y")]));
        assert!(two.find_later(0, wanted).is_none_or(|slot| two.call(slot).1 == 2));
        two.end(wanted, false);
        let next = two.begin(2).unwrap();
        two.expect(Posters::One(0));
        let slot = two.find(0, next, false).unwrap();
        two.check_posts(slot);
        assert_eq!(two.take_surplus(), Some(other));
        two.check_posts(slot);
        assert_eq!(two.take_surplus(), None);
    }

    #[test]
    fn places_are_settled_or_refused_once_for_each_exchange() {
        let [one, two] = &pair();
        let call = Call::new("bcast").word();
        let post = |number| {
            let exchange = one.begin(number).unwrap();
            one.post(exchange, call, Some(&[Piece::Bytes(b"place")]));
            (exchange, two.begin(number).unwrap())
        };
        let (first, at_two) = post(1);
        assert!(!one.is_settled(1, first, false) && !one.is_settled(1, first, true));
        two.settle(at_two, false);
        assert!(one.is_settled(1, first, false) && !one.has_refused(1, first));
        two.end(at_two, false);
        let (second, at_two) = post(2);
        assert!(!one.is_settled(1, second, false) && !one.has_refused(1, second));
        two.settle(at_two, true);
        assert!(one.is_settled(1, second, false) && one.has_refused(1, second));
        two.end(at_two, false);
        // A rank that has done with an exchange needs no place of it.
        let (exchange, at_two) = post(3);
        assert!(!one.is_settled(1, exchange, false));
        two.end(at_two, false);
        assert!(one.is_settled(1, exchange, false) && !one.has_refused(1, exchange));
        // So does one that has left it out.
        let (exchange, at_two) = post(4);
        two.post(two.begin(5).unwrap(), call, Some(&[Piece::Bytes(b"later")]));
        assert!(!one.is_settled(1, exchange, false) && one.is_settled(1, exchange, true));
        two.end(at_two, false);
    }

    #[test]
    fn words_of_a_faulty_peer_are_refused() {
        let boards = pair();
        let wanted = pass(&boards, 1, b"string");
        let slot = boards[1].find(0, wanted, false).unwrap();
        boards[1].write(slot.at + LENGTH, LONG - 1);
        let longest = boards[1].length(slot).unwrap();
        assert!(
            longest <= boards[1].room && boards[1].take(slot, 0..longest + 1).unwrap().is_none()
        );
        assert!(boards[1].take(slot, 5..longest).unwrap().is_some());
    }
}
