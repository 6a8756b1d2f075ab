//! Exchanges of byte strings among the ranks of one host, by their [board](super::board): each rank
//! posts its string, and reads those that it needs, without a message.
//!
//! All ranks of a communicator take part in each exchange, also those that post nothing or read
//! nothing. They agree on that, since the board depends on the communicator only. A string for
//! which the board has no room goes by message: a rank that would read it finds that there.
//!
//! The exchanges wait, so calls with requests don't use them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::Communicator;
use super::board::{Board, Exchange, MOST, Piece, Posters, Slot};
use super::calls::Ongoing;
use super::shapes::{HEAD, Shape};
use crate::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Span;

/// An exchange under way. When dropped, this rank needs no string of it any more.
pub(super) struct Posts<'a> {
    communicator: &'a Communicator,
    board: &'a Board,
    at: Ongoing,
    exchange: Exchange,
    /// Whether it was left open before: this rank has posted what it posts.
    is_resumed: bool,
    /// Whether this rank has read what each other one has posted, as each of them does.
    has_met: AtomicBool,
    /// Whether the general steps of the call go on with it.
    stays_open: bool,
}

impl Drop for Posts<'_> {
    fn drop(&mut self) {
        match self.stays_open {
            true => self.board.leave_open(self.exchange),
            false => self.board.end(self.exchange, self.has_met.load(Ordering::Relaxed)),
        }
        self.board.release();
    }
}

const CLAIMED: ErrorKind = ErrorKind::CommunicatorHandle(
    "in a collective call of another thread: make these calls one after the other",
);

/// Where each of the strings that a rank posts for all ranks ends. These words come before them.
struct Ends([u8; 4 * MOST as usize], usize);

impl Ends {
    fn of(lengths: impl Iterator<Item = usize>) -> Ends {
        let (mut words, mut end, mut parts) = ([0; 4 * MOST as usize], 0u32, 0);
        for (word, length) in words.chunks_exact_mut(4).zip(lengths) {
            // Strings of 4 GiB have no room on the board, whatever these words say.
            end = end.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
            word.copy_from_slice(&end.to_le_bytes());
            parts += 1;
        }
        Ends(words, parts)
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..4 * self.1]
    }
}

impl<'a> Posts<'a> {
    /// Begins the next exchange of a call. `None` if the call has had too many.
    ///
    /// # Errors
    /// A rank is lost. COMM if another thread of this rank takes part in an exchange.
    pub(super) fn begin(
        communicator: &'a Communicator,
        board: &'a Board,
        at: Ongoing,
    ) -> Result<Option<Posts<'a>>> {
        communicator.process().check_living(board.group(), None)?;
        if !board.claim() {
            return Err(CLAIMED.into());
        }
        let open = board.resume(at.number);
        let Some(exchange) = open.or_else(|| board.begin(at.number)) else {
            board.release();
            return Ok(None);
        };
        let (is_resumed, has_met, stays_open) = (open.is_some(), AtomicBool::new(false), false);
        Ok(Some(Posts { communicator, board, at, exchange, is_resumed, has_met, stays_open }))
    }

    /// Leaves the exchange to the general steps of the call, which begin it again. This rank has
    /// posted what they post.
    pub(super) fn leave_open(mut self) {
        self.stays_open = true;
    }

    fn ranks(&self) -> Range<u32> {
        0..self.board.size()
    }

    /// Posts a string for each rank, as [`post`](Posts::post) does.
    fn post_parts(&self, parts: &[Bytes]) -> Result<bool> {
        let ends = Ends::of(parts.iter().map(|part| part.len()));
        let ends = [Piece::Bytes(ends.bytes())];
        let parts = parts.iter().map(|part| Piece::Bytes(part));
        self.post(&ends.into_iter().chain(parts).collect::<SmallVec<[_; 9]>>())
    }

    /// Counts the posts of the exchange.
    fn expect(&self, posters: Posters) {
        if !self.is_resumed {
            self.board.expect(posters);
        }
    }

    /// Posts the string of this rank, in pieces. Returns false if the board has no room for it, and
    /// then says so there.
    fn post(&self, pieces: &[Piece<'_>]) -> Result<bool> {
        let has_room = self.board.has_room(pieces.iter().map(Piece::len).sum());
        if self.is_resumed {
            return Ok(has_room);
        }
        if self.board.is_free(false).is_err() {
            self.wait(|arming| self.board.is_free(arming), |_| None)?;
        }
        self.board.post(self.exchange, self.at.call.word(), has_room.then_some(pieces));
        Ok(has_room)
    }

    /// Waits until these ranks have posted; this rank isn't waited for. Returns whether the strings
    /// of all of them are on the board.
    ///
    /// # Errors
    /// RMA_SYNC if one of them made another call.
    fn await_all(&self, ranks: Range<u32>) -> Result<bool> {
        let own = self.board.rank();
        let mut next = ranks.start;
        let poll = |arming| {
            while next < ranks.end {
                if next != own && self.board.find(next, self.exchange, arming).is_none() {
                    return Err(next);
                }
                next += 1;
            }
            Ok(())
        };
        // What a rank posted before a later post is visible with that post's name.
        let is_missing = |rank| self.board.find(rank, self.exchange, false).is_none();
        let later = |rank| self.board.find_later(rank, self.exchange);
        self.wait(poll, |rank| later(rank).filter(|_| is_missing(rank)))?;
        let mut are_there = true;
        for rank in ranks.filter(|rank| *rank != own) {
            self.check_call(self.board.found(rank))?;
            are_there &= self.is_there(rank);
        }
        Ok(are_there)
    }

    /// Waits for all other ranks, of which each waits for all others if its string is on the board,
    /// as [`await_all`](Posts::await_all) does.
    fn meet(&self) -> Result<bool> {
        let are_there = self.await_all(self.ranks())?;
        // A rank whose string isn't there may read none.
        self.has_met.store(are_there, Ordering::Relaxed);
        Ok(are_there)
    }

    /// Refuses the post of a rank that made another call. If it has made another one before, this
    /// call goes on, and fails when it ends.
    fn check_call(&self, slot: Slot) -> Result<()> {
        if !self.board.is_in_call(slot, self.at.number, self.at.call.word()) {
            return Err(self.communicator.mismatch(self.board.call(slot)));
        }
        self.board.check_posts(slot);
        Ok(())
    }

    /// The string of a rank that has posted it on the board.
    fn string(&self, rank: u32) -> Result<Bytes> {
        let slot = self.board.found(rank);
        self.take(slot, 0..self.board.length(slot).unwrap_or(0))
    }

    /// The string of a rank, of which `mine` is this rank's.
    fn string_of(&self, rank: u32, mine: &[u8]) -> Result<Bytes> {
        if rank == self.board.rank() { Bytes::copy_of(mine) } else { self.string(rank) }
    }

    /// Whether the string of another rank, which has posted, goes by the board.
    fn is_there(&self, rank: u32) -> bool {
        self.board.length(self.board.found(rank)).is_some()
    }

    /// The string for rank `index` of those that a rank has posted.
    fn part(&self, rank: u32, index: u32) -> Result<Bytes> {
        let (size, index) = (self.board.size() as usize, index as usize);
        let slot = self.board.found(rank);
        let head = self.take(slot, 0..4 * size)?;
        let end = |part: usize| match part.checked_sub(1) {
            None => 4 * size,
            Some(part) => (4 * size).saturating_add(word(&head[4 * part..]) as usize),
        };
        self.take(slot, end(index)..end(index + 1))
    }

    fn take(&self, slot: Slot, range: Range<usize>) -> Result<Bytes> {
        self.board.take(slot, range)?.ok_or_else(|| self.cut(slot))
    }

    fn cut(&self, slot: Slot) -> Error {
        let peer = self.board.group().process(slot.rank());
        let what = "what it posted on the board is cut short".to_owned();
        ErrorKind::Protocol { peer, what }.into()
    }

    /// Waits until `poll` returns no rank that it waits for. `passed` is the slot of one that has
    /// left out this exchange.
    fn wait(
        &self,
        mut poll: impl FnMut(bool) -> Result<(), u32>,
        passed: impl Fn(u32) -> Option<Slot>,
    ) -> Result<()> {
        let process = self.communicator.process();
        if process.spin(|| poll(false).is_ok()) {
            return process.keep_up();
        }
        process.wait(|state, arming| match poll(arming) {
            Ok(()) => Some(Ok(())),
            Err(rank) => {
                if arming {
                    self.board.note_wait(rank);
                    if let Some(slot) = passed(rank) {
                        return Some(Err(self.communicator.mismatch(self.board.call(slot))));
                    }
                    let ours = (self.at.number, self.at.call.code());
                    let context = self.communicator.context(self.at.channel);
                    if let Some(other) = state.misplaced(context, ours, None) {
                        return Some(Err(self.communicator.mismatch(other)));
                    }
                }
                let context = self.communicator.context(self.at.channel);
                let revoked = state.revoked(context);
                revoked.or_else(|| state.lost_among(self.board.group(), None)).map(Err)
            }
        })
    }
}

/// The exchanges that collective algorithms need. Each of them posts this rank's string, and
/// returns those of others.
impl Posts<'_> {
    /// The strings of all ranks, by rank; `None` if one of them doesn't go by the board.
    pub(super) fn all(&self, mine: &[u8]) -> Result<Option<Vec<Bytes>>> {
        self.expect(Posters::All);
        if !self.post(&[Piece::Bytes(mine)])? || !self.meet()? {
            return Ok(None);
        }
        self.ranks().map(|rank| self.string_of(rank, mine)).collect::<Result<_>>().map(Some)
    }

    /// The root's string at the other ranks, and nothing there; `None` if it doesn't go by the
    /// board.
    pub(super) fn of_root(&self, root: u32, mine: &[u8]) -> Result<Option<Bytes>> {
        self.expect(Posters::One(root));
        Ok(match self.board.rank() == root {
            true => self.post(&[Piece::Bytes(mine)])?.then(Bytes::default),
            false if self.await_all(root..root + 1)? => Some(self.string(root)?),
            false => None,
        })
    }

    /// This rank's string of those that the root posts; `None` if they don't go by the board.
    pub(super) fn dealt(&self, root: u32, parts: &mut [Bytes]) -> Result<Option<Bytes>> {
        let own = self.board.rank();
        self.expect(Posters::One(root));
        Ok(match own == root {
            true if self.post_parts(parts)? => parts.get_mut(own as usize).map(std::mem::take),
            true => None,
            false if self.await_all(root..root + 1)? => Some(self.part(root, own)?),
            false => None,
        })
    }

    /// The string for this rank of those that each rank posts, by rank; `None` if they don't go by
    /// the board.
    pub(super) fn dealt_by_all(&self, parts: &mut [Bytes]) -> Result<Option<Vec<Bytes>>> {
        let own = self.board.rank();
        self.expect(Posters::All);
        if !self.post_parts(parts)? || !self.meet()? {
            return Ok(None);
        }
        let part = |rank| match parts.get_mut(rank as usize).filter(|_| rank == own) {
            Some(mine) => Ok(std::mem::take(mine)),
            None => self.part(rank, own),
        };
        self.ranks().map(part).collect::<Result<_>>().map(Some)
    }

    /// Posts this rank's string for some of the ranks. Returns how it and the others go to them.
    pub(super) fn for_some(&self, mine: &[u8]) -> Result<Way> {
        self.expect(Posters::All);
        if self.post(&[Piece::Bytes(mine)])? {
            return Ok(Way::Board);
        }
        self.await_all(self.ranks())?;
        let is_short = |rank: &u32| *rank != self.board.rank() && self.is_there(*rank);
        Ok(if self.ranks().any(|rank| is_short(&rank)) { Way::Direct } else { Way::Messages })
    }

    /// The strings of all ranks, by rank: an empty one for this rank, and `None` for one that
    /// doesn't go by the board.
    pub(super) fn of_others(&self) -> Result<Vec<Option<Bytes>>> {
        self.of_some(self.ranks())
    }

    /// The strings of the lower ranks, by rank; `None` for one that doesn't go by the board.
    pub(super) fn of_lower(&self) -> Result<Vec<Option<Bytes>>> {
        self.of_some(0..self.board.rank())
    }

    fn of_some(&self, ranks: Range<u32>) -> Result<Vec<Option<Bytes>>> {
        self.await_all(ranks.clone())?;
        let string = |rank| match rank == self.board.rank() {
            true => Ok(Some(Bytes::default())),
            false if self.is_there(rank) => self.string(rank).map(Some),
            false => Ok(None),
        };
        ranks.map(string).collect()
    }

    /// Combines the strings of all ranks in the order of ranks, at a rank that `wants` the result.
    ///
    /// No string is too long for the board: operands are announced there, or short (see
    /// [`SHORT_POSTED`](super::message::SHORT_POSTED)).
    ///
    /// # Errors
    /// INTERN for a string that doesn't go by the board.
    pub(super) fn combined(
        &self,
        mut mine: Bytes,
        wants: bool,
        mut combine: impl FnMut(Bytes, Bytes) -> Result<Bytes>,
    ) -> Result<Option<Bytes>> {
        self.expect(Posters::All);
        let is_there = self.post(&[Piece::Bytes(&mine)])?;
        if !wants {
            return Ok(None);
        }
        if !self.await_all(self.ranks())? || !is_there {
            return Err(ErrorKind::Collective.into());
        }
        let mut string = |rank| match rank == self.board.rank() {
            true => Ok(std::mem::take(&mut mine)),
            false => self.string(rank),
        };
        let mut total = string(0)?;
        for rank in 1..self.board.size() {
            total = combine(total, string(rank)?)?;
        }
        Ok(Some(total))
    }
}

/// The exchanges of [short calls](super::short). A function that returns false has read strings of
/// which one isn't as expected.
impl Posts<'_> {
    /// Posts a block for all ranks, as each of them does.
    pub(super) fn give_all(&self, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::All);
        self.post(&[Piece::Bytes(&shape.head), Piece::Run(from)]).map(drop)
    }

    /// Posts a block for all ranks, as the root.
    pub(super) fn give_one(&self, root: u32, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::One(root));
        self.post(&[Piece::Bytes(&shape.head), Piece::Run(from)]).map(drop)
    }

    /// Takes the root's block.
    pub(super) fn take_one(&self, root: u32, shape: &Shape, to: Span) -> Result<bool> {
        self.expect(Posters::One(root));
        self.await_all(root..root + 1)?;
        Ok(self.is_like(shape, root) && self.copy(root, HEAD, to))
    }

    /// Takes the block of each rank.
    pub(super) fn take_each(&self, shape: &Shape, to: Span, meets: bool) -> Result<bool> {
        if !self.await_like(shape, self.ranks(), meets)? {
            return Ok(false);
        }
        let place = |rank| to.part(shape.bytes * u64::from(rank), shape.bytes);
        Ok(self.ranks().all(|rank| place(rank).is_some_and(|to| self.copy(rank, HEAD, to))))
    }

    /// Waits for the strings of some ranks. Returns whether each is a block like this one. With
    /// `meets`, they are all ranks, and all of them wait for all.
    pub(super) fn await_like(
        &self,
        shape: &Shape,
        mut ranks: Range<u32>,
        meets: bool,
    ) -> Result<bool> {
        let are_there = match meets {
            true => self.meet()?,
            false => self.await_all(ranks.clone())?,
        };
        Ok(are_there && ranks.all(|rank| self.is_like(shape, rank)))
    }

    /// The memory of a part of a rank's data, until the exchange ends.
    pub(super) fn run_of(&self, rank: u32, part: &Range<u64>) -> Result<Span> {
        let (slot, at) = (self.board.found(rank), HEAD + part.start as usize);
        let run = self.board.part(slot, at, part.end - part.start);
        run.ok_or_else(|| self.cut(slot))
    }

    /// Posts equal blocks, one for each rank, as each rank does.
    pub(super) fn deal_all(&self, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::All);
        self.deal(shape, from)
    }

    /// Posts equal blocks, one for each rank, as the root.
    pub(super) fn deal_one(&self, root: u32, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::One(root));
        self.deal(shape, from)
    }

    fn deal(&self, shape: &Shape, from: Span) -> Result<()> {
        let ends = Ends::of(self.ranks().map(|_| HEAD + shape.bytes as usize));
        let mut pieces = SmallVec::<[_; 9]>::new();
        pieces.push(Piece::Bytes(ends.bytes()));
        for rank in self.ranks() {
            let part = from.part(shape.bytes * u64::from(rank), shape.bytes);
            pieces.push(Piece::Bytes(&shape.head));
            pieces.extend(part.map(Piece::Run));
        }
        self.post(&pieces).map(drop)
    }

    /// Takes this rank's block of those that the root posts.
    pub(super) fn take_dealt(&self, root: u32, shape: &Shape, to: Span) -> Result<bool> {
        self.expect(Posters::One(root));
        self.await_all(root..root + 1)?;
        Ok(self.take_part(root, shape, to))
    }

    /// Takes this rank's block of those that each rank posts.
    pub(super) fn take_dealt_by_each(&self, shape: &Shape, to: Span) -> Result<bool> {
        self.meet()?;
        let take = |rank| {
            let place = to.part(shape.bytes * u64::from(rank), shape.bytes);
            place.is_some_and(|to| self.take_part(rank, shape, to))
        };
        Ok(self.ranks().all(take))
    }

    /// Takes this rank's block of those that a rank has posted, if it is where it would be among
    /// equal blocks.
    fn take_part(&self, rank: u32, shape: &Shape, to: Span) -> bool {
        let (slot, size, own) = (self.board.found(rank), self.board.size(), self.board.rank());
        let each = HEAD + shape.bytes as usize;
        let ends_there = |part: u32| {
            let end = (each * (part as usize + 1)) as u32;
            self.board.has(slot, 4 * part as usize, &end.to_le_bytes())
        };
        let at = 4 * size as usize + each * own as usize;
        ends_there(own)
            && own.checked_sub(1).is_none_or(ends_there)
            && self.board.has(slot, at, &shape.head)
            && self.copy(rank, at + HEAD, to)
    }

    /// Whether a rank has posted a block like this one, and nothing else.
    fn is_like(&self, shape: &Shape, rank: u32) -> bool {
        let slot = self.board.found(rank);
        let length = self.board.length(slot);
        length == Some(HEAD + shape.bytes as usize) && self.board.has(slot, 0, &shape.head)
    }

    /// Copies some bytes of a rank's string.
    fn copy(&self, rank: u32, at: usize, to: Span) -> bool {
        let part = self.board.part(self.board.found(rank), at, to.len());
        part.is_some_and(|part| to.copy_run(0, part, 0, to.len()))
    }
}

/// How a rank's string goes to those that need it.
pub(super) enum Way {
    /// It is on the board.
    Board,
    /// It isn't, and some are: it is sent to each rank that needs it.
    Direct,
    /// None is: the strings of all ranks go by the messages of the call's algorithm.
    Messages,
}

/// The little-endian word at the beginning of bytes.
fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}
