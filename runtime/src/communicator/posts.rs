//! Exchanges of byte strings among the ranks of one host, by their [board](super::board): each rank
//! posts its string, and reads those that it needs, without a message.
//!
//! All ranks of a communicator take part in each exchange, also those that post nothing or read
//! nothing. They agree on that, since the board depends on the communicator only. A string for
//! which the board has no room goes by message: a rank that would read it finds that there.
//!
//! The exchanges wait, so calls with requests don't use them.

use std::ops::Range;

use super::Communicator;
use super::board::{Board, Exchange, Posters, Slot};
use super::calls::Ongoing;
use crate::bytes::Bytes;
use crate::error::{ErrorKind, Result};

/// An exchange under way. When dropped, this rank needs no string of it any more.
pub(super) struct Posts<'a> {
    communicator: &'a Communicator,
    board: &'a Board,
    at: Ongoing,
    exchange: Exchange,
}

impl Drop for Posts<'_> {
    fn drop(&mut self) {
        self.board.end(self.exchange);
        self.board.release();
    }
}

const CLAIMED: ErrorKind = ErrorKind::CommunicatorHandle(
    "in a collective call of another thread: make these calls one after the other",
);

/// Where each of the strings that a rank posts for all ranks ends. These words come before them.
fn ends(parts: &[Bytes]) -> Vec<u8> {
    let end = |end: &mut u32, part: &Bytes| {
        // Strings of 4 GiB have no room on the board, whatever these words say.
        *end = end.saturating_add(u32::try_from(part.len()).unwrap_or(u32::MAX));
        Some(*end)
    };
    parts.iter().scan(0, end).flat_map(u32::to_le_bytes).collect()
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
        let Some(exchange) = board.begin(at.number) else {
            board.release();
            return Ok(None);
        };
        Ok(Some(Posts { communicator, board, at, exchange }))
    }

    fn ranks(&self) -> Range<u32> {
        0..self.board.size()
    }

    /// Posts a string for each rank, as [`post`](Posts::post) does.
    fn post_parts(&self, parts: &[Bytes]) -> Result<bool> {
        let ends = ends(parts);
        let mut pieces = vec![&ends[..]];
        pieces.extend(parts.iter().map(|part| &part[..]));
        self.post(&pieces)
    }

    /// Posts the string of this rank, in pieces. Returns false if the board has no room for it, and
    /// then says so there.
    fn post(&self, pieces: &[&[u8]]) -> Result<bool> {
        let has_room = self.board.has_room(pieces.iter().map(|piece| piece.len()).sum());
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
        let peer = self.board.group().process(slot.rank());
        let what = || "what it posted on the board is cut short".to_owned();
        let cut = || ErrorKind::Protocol { peer, what: what() }.into();
        self.board.take(slot, range)?.ok_or_else(cut)
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
                state.lost_among(self.board.group(), None).map(Err)
            }
        })
    }
}

/// The exchanges that collective algorithms need. Each of them posts this rank's string, and
/// returns those of others.
impl Posts<'_> {
    /// The strings of all ranks, by rank; `None` if one of them doesn't go by the board.
    pub(super) fn all(&self, mine: &[u8]) -> Result<Option<Vec<Bytes>>> {
        self.board.expect(Posters::All);
        if !self.post(&[mine])? || !self.await_all(self.ranks())? {
            return Ok(None);
        }
        self.ranks().map(|rank| self.string_of(rank, mine)).collect::<Result<_>>().map(Some)
    }

    /// The root's string at the other ranks, and nothing there; `None` if it doesn't go by the
    /// board.
    pub(super) fn of_root(&self, root: u32, mine: &[u8]) -> Result<Option<Bytes>> {
        self.board.expect(Posters::One(root));
        Ok(match self.board.rank() == root {
            true => self.post(&[mine])?.then(Bytes::default),
            false if self.await_all(root..root + 1)? => Some(self.string(root)?),
            false => None,
        })
    }

    /// This rank's string of those that the root posts; `None` if they don't go by the board.
    pub(super) fn dealt(&self, root: u32, parts: &mut [Bytes]) -> Result<Option<Bytes>> {
        let own = self.board.rank();
        self.board.expect(Posters::One(root));
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
        self.board.expect(Posters::All);
        if !self.post_parts(parts)? || !self.await_all(self.ranks())? {
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
        self.board.expect(Posters::All);
        if self.post(&[mine])? {
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
        self.board.expect(Posters::All);
        let is_there = self.post(&[&mine])?;
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
