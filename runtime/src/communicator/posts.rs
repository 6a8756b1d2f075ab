//! Exchanges of byte strings among the ranks of one host, by their [board](super::board): each rank
//! posts its string, and reads those that it needs, without a message.
//!
//! All ranks of a communicator take part in each exchange, also those that post nothing or read
//! nothing. They agree on that, since the board depends on the communicator only. A string for
//! which the board has no room goes by message: a rank that would read it finds that there.
//!
//! The steps of a call with a request return where others wait, and use a board in their turn (see
//! [turns](super::turns)).

use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};

use longshore_transport::Offer;
use smallvec::SmallVec;

use super::Communicator;
use super::board::{Board, Exchange, Left, MOST, NOTHING, OWN_SLOT, Piece, Posters, Slot};
use super::calls::Ongoing;
use super::places::{PLACED, announced, announcement, place, placed};
use super::shapes::{HEAD, Shape};
use crate::bytes::Bytes;
use crate::engine::{Channel, State};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Side, Span};

/// An exchange under way. When dropped, this rank needs no string of it any more.
pub(super) struct Posts<'a> {
    communicator: &'a Communicator,
    board: &'a Board,
    at: Ongoing,
    exchange: Exchange,
    /// Whether it was left open before, so that its posts are counted.
    is_resumed: bool,
    /// Whether this rank has posted what it posts.
    has_posted: AtomicBool,
    /// For what the exchange waits, as a [`Left`] has it.
    awaited: AtomicU32,
    /// Whether this rank has read what each other one has posted, as each of them does.
    has_met: AtomicBool,
    /// Whether the general steps of the call go on with it.
    stays_open: bool,
    /// Whether this rank's string names a place that others may still read.
    is_offering: AtomicBool,
    /// Whether the general steps have read a string that names a place.
    found_place: AtomicBool,
}

impl Drop for Posts<'_> {
    fn drop(&mut self) {
        if self.found_place.load(Ordering::Relaxed) {
            self.board.settle(self.exchange, true);
        }
        if self.is_offering.load(Ordering::Relaxed) && !self.stays_open {
            self.communicator.process().take_offers_back();
        }
        match self.stays_open {
            true => self.board.leave_open(self.exchange, self.left()),
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

/// The outcome of a call, or `None` if it is left to its general steps.
pub(super) fn made(outcome: Result<bool>) -> Option<Result<()>> {
    match outcome {
        Ok(true) => Some(Ok(())),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    }
}

impl Communicator {
    /// Runs the exchange of a call. If it returns false, the general steps go on with it.
    pub(super) fn exchanged(
        &self,
        board: &Board,
        at: Ongoing,
        exchange: impl FnOnce(&Posts<'_>) -> Result<bool>,
    ) -> Option<Result<()>> {
        let posts = match Posts::begin(self, board, at) {
            Ok(posts) => posts?,
            Err(error) => return Some(Err(error)),
        };
        let outcome = exchange(&posts);
        match outcome {
            Ok(true) => {
                posts.keep_offer();
                self.count_short_done();
            }
            Ok(false) => {
                posts.leave_open();
                self.forget_short();
            }
            Err(_) => self.forget_short(),
        }
        made(outcome)
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
        if !board.claim() {
            return Err(CLAIMED.into());
        }
        let open = board.resume(at.turn);
        // What a rank that is gone has posted before is there all the same.
        if open.is_none() {
            let living = communicator.process().check_living(board.group(), None);
            living.inspect_err(|_| board.release())?;
        }
        let begin = || board.begin(at.turn).map(|exchange| (exchange, false));
        let Some((exchange, has_posted)) = open.or_else(begin) else {
            board.release();
            return Ok(None);
        };
        Ok(Some(Posts {
            communicator,
            board,
            at,
            exchange,
            is_resumed: open.is_some(),
            has_posted: AtomicBool::new(has_posted),
            awaited: AtomicU32::new(NOTHING),
            has_met: AtomicBool::new(false),
            stays_open: false,
            is_offering: AtomicBool::new(false),
            found_place: AtomicBool::new(false),
        }))
    }

    /// Leaves the exchange to the next attempt of the call, or to its general steps, which begin it
    /// again. What this rank has posted is what they post.
    pub(super) fn leave_open(mut self) {
        self.stays_open = true;
    }

    fn left(&self) -> Left {
        let has_posted = self.has_posted.load(Ordering::Relaxed);
        Left { has_posted, awaited: self.awaited.load(Ordering::Relaxed) }
    }

    fn ranks(&self) -> Range<u32> {
        0..self.board.size()
    }

    /// Posts a string for each rank, as [`post`](Posts::post) does.
    async fn post_parts(&self, parts: &[Bytes]) -> Result<bool> {
        let ends = Ends::of(parts.iter().map(|part| part.len()));
        let ends = [Piece::Bytes(ends.bytes())];
        let parts = parts.iter().map(|part| Piece::Bytes(part));
        let pieces = ends.into_iter().chain(parts).collect::<SmallVec<[_; 9]>>();
        self.post_in_steps(&pieces).await
    }

    /// Counts the posts of the exchange.
    fn expect(&self, posters: Posters) {
        if !self.is_resumed {
            self.board.expect(posters);
        }
    }

    /// Whether this rank may write to its slot, or needn't.
    fn may_write(&self) -> bool {
        self.has_posted.load(Ordering::Relaxed) || self.board.is_free(false).is_ok()
    }

    /// Posts the string of this rank, in pieces. Returns false if the call has to wait for its
    /// slot and returns instead.
    fn post(&self, pieces: &[Piece<'_>]) -> Result<bool> {
        if !self.may_write() && !self.wait(|arming| self.board.is_free(arming), |_| None)? {
            self.awaited.store(OWN_SLOT, Ordering::Relaxed);
            return Ok(false);
        }
        self.write(pieces);
        Ok(true)
    }

    /// Posts a string in the steps of a call. Returns false if the board has no room for it, and
    /// then says so there.
    async fn post_in_steps(&self, pieces: &[Piece<'_>]) -> Result<bool> {
        if !self.may_write() {
            self.wait_in_steps(|arming| self.board.is_free(arming), |_| None).await?;
        }
        Ok(self.write(pieces))
    }

    /// Writes the string of this rank to its slot, which is free, unless it is there. Returns false
    /// if there is no room for it, and then says so there.
    fn write(&self, pieces: &[Piece<'_>]) -> bool {
        let has_room = self.board.has_room(pieces.iter().map(Piece::len).sum());
        if !self.has_posted.load(Ordering::Relaxed) {
            self.board.post(self.exchange, self.at.call.word(), has_room.then_some(pieces));
            self.has_posted.store(true, Ordering::Relaxed);
        }
        has_room
    }

    /// Waits until these ranks have posted; this rank isn't waited for. Returns whether the strings
    /// of all of them are on the board, and false if the call returns instead of waiting.
    ///
    /// # Errors
    /// RMA_SYNC if one of them made another call.
    fn await_all(&self, ranks: Range<u32>) -> Result<bool> {
        let have_come = self.wait(self.finder(ranks.clone()), |rank| self.passed(rank))?;
        if have_come { self.check_calls(ranks) } else { Ok(false) }
    }

    /// Waits until these ranks have posted, as [`await_all`](Posts::await_all) does, in the steps
    /// of a call.
    async fn await_in_steps(&self, ranks: Range<u32>) -> Result<bool> {
        self.wait_in_steps(self.finder(ranks.clone()), |rank| self.passed(rank)).await?;
        self.check_calls(ranks)
    }

    /// Looks for the posts of these ranks, until it returns none that it misses.
    fn finder(&self, ranks: Range<u32>) -> impl FnMut(bool) -> Result<(), u32> {
        let (own, mut next) = (self.board.rank(), ranks.start);
        move |arming| {
            while next < ranks.end {
                if next != own && self.board.find(next, self.exchange, arming).is_none() {
                    return Err(next);
                }
                next += 1;
            }
            Ok(())
        }
    }

    /// The slot of a rank that has left out this exchange.
    fn passed(&self, rank: u32) -> Option<Slot> {
        // What a rank posted before a later post is visible with that post's name.
        let later = self.board.find_later(rank, self.exchange)?;
        self.board.find(rank, self.exchange, false).is_none().then_some(later)
    }

    /// Checks the posts of these ranks. Returns whether the strings of all of them are on the
    /// board.
    fn check_calls(&self, ranks: Range<u32>) -> Result<bool> {
        let (own, mut are_there) = (self.board.rank(), true);
        for rank in ranks.filter(|rank| *rank != own) {
            self.check_call(self.board.found(rank))?;
            are_there &= self.is_there(rank);
        }
        Ok(are_there)
    }

    /// Waits for all other ranks, of which each waits for all others if its string is on the board,
    /// as [`await_all`](Posts::await_all) does.
    fn meet(&self) -> Result<bool> {
        self.await_all(self.ranks()).inspect(|are_there| self.note_met(*are_there))
    }

    /// Waits for all other ranks, as [`meet`](Posts::meet) does, in the steps of a call.
    async fn meet_in_steps(&self) -> Result<bool> {
        self.await_in_steps(self.ranks()).await.inspect(|are_there| self.note_met(*are_there))
    }

    fn note_met(&self, are_there: bool) {
        // A rank whose string isn't there may read none.
        self.has_met.store(are_there, Ordering::Relaxed);
    }

    /// Refuses the post of a rank that made another call. If it has made another one before, this
    /// call goes on, and fails when it ends.
    fn check_call(&self, slot: Slot) -> Result<()> {
        if !self.board.is_in_call(slot, self.at.turn, self.at.call.word()) {
            return Err(self.mismatch(slot));
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
        let taken = self.board.take(slot, range).and_then(|it| it.ok_or_else(|| self.cut(slot)));
        match &taken {
            Ok(bytes) if place(bytes).is_some() => self.found_place.store(true, Ordering::Relaxed),
            Ok(_) => {}
            // Ranks that have named places wait until this one has done with the exchange.
            Err(_) => self.has_met.store(false, Ordering::Relaxed),
        }
        taken
    }

    fn cut(&self, slot: Slot) -> Error {
        let peer = self.board.group().process(slot.rank());
        let what = "what it posted on the board is cut short".to_owned();
        ErrorKind::Protocol { peer, what }.into()
    }

    /// The error for a post of another call than this rank's.
    fn mismatch(&self, slot: Slot) -> Error {
        self.communicator.mismatch_in(self.at, self.board.call(slot))
    }

    /// Waits as the call does, as [`wait`](Posts::wait) describes it: here, or by returning until
    /// the steps are polled again.
    async fn wait_in_steps(
        &self,
        mut poll: impl FnMut(bool) -> Result<(), u32>,
        passed: impl Fn(u32) -> Option<Slot>,
    ) -> Result<()> {
        if self.at.channel == Channel::Calls {
            return self.wait(poll, passed).map(drop);
        }
        let look = |_: &mut Context<'_>| match self.look(&mut poll, &passed) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        };
        poll_fn(look).await
    }

    /// Looks once for what a call with a request waits for. Returns whether it is there.
    fn look(
        &self,
        mut poll: impl FnMut(bool) -> Result<(), u32>,
        passed: impl Fn(u32) -> Option<Slot>,
    ) -> Result<bool> {
        let process = self.communicator.process();
        let arming = process.is_arming();
        let Err(rank) = poll(arming) else { return Ok(true) };
        if let Some(slot) = arming.then(|| passed(rank)).flatten() {
            return Err(self.mismatch(slot));
        }
        if process.is_bereft() || self.communicator.has_been_revoked() {
            if let Some(error) = self.lost(process.engine().state()) {
                return Err(error);
            }
        }
        self.awaited.store(rank, Ordering::Relaxed);
        Ok(false)
    }

    /// The error of a call whose ranks don't all come.
    fn lost(&self, state: &State) -> Option<Error> {
        let revoked = state.revoked(self.communicator.context(self.at.channel));
        revoked.or_else(|| state.lost_among(self.board.group(), None))
    }

    /// Waits until `poll` returns no rank that it waits for. `passed` is the slot of one that has
    /// left out this exchange. A call with a request looks once, and this returns false if it has
    /// to wait.
    fn wait(
        &self,
        mut poll: impl FnMut(bool) -> Result<(), u32>,
        passed: impl Fn(u32) -> Option<Slot>,
    ) -> Result<bool> {
        if self.at.channel == Channel::Started {
            return self.look(poll, passed);
        }
        let process = self.communicator.process();
        if process.spin(|| poll(false).is_ok()) {
            process.keep_up()?;
            return Ok(true);
        }
        let wait = process.wait(|state, arming| match poll(arming) {
            Ok(()) => Some(Ok(())),
            Err(rank) => {
                if arming {
                    self.board.note_wait(rank);
                    if let Some(slot) = passed(rank) {
                        return Some(Err(self.mismatch(slot)));
                    }
                    let ours = (self.at.number, self.at.call.code());
                    let context = self.communicator.context(self.at.channel);
                    if let Some(other) = state.misplaced(context, ours, None) {
                        return Some(Err(self.communicator.mismatch(other)));
                    }
                }
                self.lost(state).map(Err)
            }
        });
        wait.map(|()| true)
    }
}

/// The exchanges that collective algorithms need. Each of them posts this rank's string, and
/// returns those of others.
impl Posts<'_> {
    /// The strings of all ranks, by rank; `None` if one of them doesn't go by the board.
    pub(super) async fn all(&self, mine: &[u8]) -> Result<Option<Vec<Bytes>>> {
        self.expect(Posters::All);
        if !self.post_in_steps(&[Piece::Bytes(mine)]).await? || !self.meet_in_steps().await? {
            return Ok(None);
        }
        self.ranks().map(|rank| self.string_of(rank, mine)).collect::<Result<_>>().map(Some)
    }

    /// The root's string at the other ranks, and nothing there; `None` if it doesn't go by the
    /// board.
    pub(super) async fn of_root(&self, root: u32, mine: &[u8]) -> Result<Option<Bytes>> {
        self.expect(Posters::One(root));
        Ok(match self.board.rank() == root {
            true => self.post_in_steps(&[Piece::Bytes(mine)]).await?.then(Bytes::default),
            false if self.await_in_steps(root..root + 1).await? => Some(self.string(root)?),
            false => None,
        })
    }

    /// This rank's string of those that the root posts; `None` if they don't go by the board.
    pub(super) async fn dealt(&self, root: u32, parts: &mut [Bytes]) -> Result<Option<Bytes>> {
        let own = self.board.rank();
        self.expect(Posters::One(root));
        Ok(match own == root {
            true if self.post_parts(parts).await? => {
                parts.get_mut(own as usize).map(std::mem::take)
            }
            true => None,
            false if self.await_in_steps(root..root + 1).await? => Some(self.part(root, own)?),
            false => None,
        })
    }

    /// The string for this rank of those that each rank posts, by rank; `None` if they don't go by
    /// the board.
    pub(super) async fn dealt_by_all(&self, parts: &mut [Bytes]) -> Result<Option<Vec<Bytes>>> {
        let own = self.board.rank();
        self.expect(Posters::All);
        if !self.post_parts(parts).await? || !self.meet_in_steps().await? {
            return Ok(None);
        }
        let part = |rank| match parts.get_mut(rank as usize).filter(|_| rank == own) {
            Some(mine) => Ok(std::mem::take(mine)),
            None => self.part(rank, own),
        };
        self.ranks().map(part).collect::<Result<_>>().map(Some)
    }

    /// Posts this rank's string for some of the ranks. Returns how it and the others go to them.
    pub(super) async fn for_some(&self, mine: &[u8]) -> Result<Way> {
        self.expect(Posters::All);
        if self.post_in_steps(&[Piece::Bytes(mine)]).await? {
            return Ok(Way::Board);
        }
        self.await_in_steps(self.ranks()).await?;
        let is_short = |rank: &u32| *rank != self.board.rank() && self.is_there(*rank);
        Ok(if self.ranks().any(|rank| is_short(&rank)) { Way::Direct } else { Way::Messages })
    }

    /// The strings of all ranks, by rank: an empty one for this rank, and `None` for one that
    /// doesn't go by the board.
    pub(super) async fn of_others(&self) -> Result<Vec<Option<Bytes>>> {
        self.of_some(self.ranks()).await
    }

    /// The strings of the lower ranks, by rank; `None` for one that doesn't go by the board.
    pub(super) async fn of_lower(&self) -> Result<Vec<Option<Bytes>>> {
        self.of_some(0..self.board.rank()).await
    }

    async fn of_some(&self, ranks: Range<u32>) -> Result<Vec<Option<Bytes>>> {
        self.await_in_steps(ranks.clone()).await?;
        let string = |rank| match rank == self.board.rank() {
            true => Ok(Some(Bytes::default())),
            false if self.is_there(rank) => self.string(rank).map(Some),
            false => Ok(None),
        };
        ranks.map(string).collect()
    }
}

/// The exchanges of [short calls](super::short). A function that returns false has read strings of
/// which one isn't as expected; or the call has a request, and returns instead of waiting.
impl Posts<'_> {
    /// Waits until all ranks have come here.
    pub(super) fn meet_all(&self) -> Result<bool> {
        self.expect(Posters::All);
        Ok(self.post(&[])? && self.meet()?)
    }

    /// Posts a block for all ranks, as each of them does.
    pub(super) fn give_all(&self, shape: &Shape, from: Span) -> Result<bool> {
        self.expect(Posters::All);
        self.post(&[Piece::Bytes(&shape.head), Piece::Run(from)])
    }

    /// Posts a block for all ranks, as the root.
    pub(super) fn give_one(&self, root: u32, shape: &Shape, from: Span) -> Result<bool> {
        self.expect(Posters::One(root));
        self.post(&[Piece::Bytes(&shape.head), Piece::Run(from)])
    }

    /// Takes the root's block.
    pub(super) fn take_one(&self, root: u32, shape: &Shape, to: Span) -> Result<bool> {
        self.expect(Posters::One(root));
        let has_come = self.await_all(root..root + 1)?;
        Ok(has_come && self.is_like(shape, root) && self.copy(root, HEAD, to))
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
    pub(super) fn deal_all(&self, shape: &Shape, from: Span) -> Result<bool> {
        self.expect(Posters::All);
        self.deal(shape, from)
    }

    /// Posts equal blocks, one for each rank, as the root.
    pub(super) fn deal_one(&self, root: u32, shape: &Shape, from: Span) -> Result<bool> {
        self.expect(Posters::One(root));
        self.deal(shape, from)
    }

    fn deal(&self, shape: &Shape, from: Span) -> Result<bool> {
        let ends = Ends::of(self.ranks().map(|_| HEAD + shape.bytes as usize));
        let mut pieces = SmallVec::<[_; 9]>::new();
        pieces.push(Piece::Bytes(ends.bytes()));
        for rank in self.ranks() {
            let part = from.part(shape.bytes * u64::from(rank), shape.bytes);
            pieces.push(Piece::Bytes(&shape.head));
            pieces.extend(part.map(Piece::Run));
        }
        self.post(&pieces)
    }

    /// Takes this rank's block of those that the root posts.
    pub(super) fn take_dealt(&self, root: u32, shape: &Shape, to: Span) -> Result<bool> {
        self.expect(Posters::One(root));
        let has_come = self.await_all(root..root + 1)?;
        Ok(has_come && self.take_part(root, shape, to))
    }

    /// Takes this rank's block of those that each rank posts.
    pub(super) fn take_dealt_by_each(&self, shape: &Shape, to: Span) -> Result<bool> {
        let have_met = self.meet()?;
        let take = |rank| {
            let place = to.part(shape.bytes * u64::from(rank), shape.bytes);
            place.is_some_and(|to| self.take_part(rank, shape, to))
        };
        Ok(have_met && self.ranks().all(take))
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

    /// Posts the place of a block for all ranks, as each of them does.
    pub(super) fn offer_all(&self, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::All);
        self.offer(shape, from)
    }

    /// Posts the place of a result of operands of this shape; or without one, that this rank has no
    /// result. It still offers its operands.
    pub(super) fn offer_result(&self, shape: &Shape, result: Option<Span>) -> Result<()> {
        self.expect(Posters::All);
        if let Some(result) = result {
            return self.offer(shape, result);
        }
        self.is_offering.store(true, Ordering::Relaxed);
        self.post(&[Piece::Bytes(&announcement(shape.signature(), shape.bytes))]).map(drop)
    }

    /// Posts the place of a block for all ranks, as the root.
    pub(super) fn offer_one(&self, root: u32, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::One(root));
        self.offer(shape, from)
    }

    fn offer(&self, shape: &Shape, from: Span) -> Result<()> {
        self.is_offering.store(true, Ordering::Relaxed);
        let offer = self.communicator.process().peer_memory().offer(from.start() as u64);
        self.post(&[Piece::Bytes(&placed(shape, &offer))]).map(drop)
    }

    /// Posts the places of equal blocks, one for each rank, as each rank does.
    pub(super) fn offer_parts(&self, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::All);
        self.offer_each(shape, from)
    }

    /// Posts the places of equal blocks, one for each rank, as the root.
    pub(super) fn offer_parts_as(&self, root: u32, shape: &Shape, from: Span) -> Result<()> {
        self.expect(Posters::One(root));
        self.offer_each(shape, from)
    }

    fn offer_each(&self, shape: &Shape, from: Span) -> Result<()> {
        self.is_offering.store(true, Ordering::Relaxed);
        let ends = Ends::of(self.ranks().map(|_| PLACED));
        let mut places = SmallVec::<[u8; 512]>::new();
        let mut offer = self.communicator.process().peer_memory().offer(from.start() as u64);
        for _ in self.ranks() {
            places.extend_from_slice(&placed(shape, &offer));
            offer.address = offer.address.wrapping_add(shape.bytes);
        }
        self.post(&[Piece::Bytes(ends.bytes()), Piece::Bytes(&places)]).map(drop)
    }

    /// Waits until all ranks have posted. Returns where their blocks are, by rank, if each of them
    /// has posted the place of a block like this one.
    pub(super) fn places(&self, shape: &Shape) -> Result<Option<SmallVec<[Offer; 8]>>> {
        self.await_all(self.ranks())?;
        Ok(self.ranks().map(|rank| self.place_of(shape, rank)).collect())
    }

    /// Where the root's block is, if it has posted the place of one like this.
    pub(super) fn place_of_root(&self, shape: &Shape, root: u32) -> Result<Option<Offer>> {
        self.expect(Posters::One(root));
        self.await_all(root..root + 1)?;
        Ok(self.place_of(shape, root))
    }

    fn place_of(&self, shape: &Shape, rank: u32) -> Option<Offer> {
        let slot = self.board.found(rank);
        (self.board.length(slot) == Some(PLACED)).then(|| self.place_at(shape, slot, 0)).flatten()
    }

    /// Where the block of each rank for this one is, if each has posted the places of blocks like
    /// it.
    pub(super) fn places_of_parts(&self, shape: &Shape) -> Result<Option<SmallVec<[Offer; 8]>>> {
        self.await_all(self.ranks())?;
        Ok(self.ranks().map(|rank| self.place_of_part(shape, rank)).collect())
    }

    /// Where the root's block for this rank is, if it has posted the places of blocks like it.
    pub(super) fn place_of_roots_part(&self, shape: &Shape, root: u32) -> Result<Option<Offer>> {
        self.expect(Posters::One(root));
        self.await_all(root..root + 1)?;
        Ok(self.place_of_part(shape, root))
    }

    fn place_of_part(&self, shape: &Shape, rank: u32) -> Option<Offer> {
        let (slot, size) = (self.board.found(rank), self.board.size() as usize);
        let is_whole = self.board.length(slot) == Some((4 + PLACED) * size);
        let at = 4 * size + PLACED * self.board.rank() as usize;
        is_whole.then(|| self.place_at(shape, slot, at)).flatten()
    }

    fn place_at(&self, shape: &Shape, slot: Slot, at: usize) -> Option<Offer> {
        let found = self.board.bytes_at::<PLACED>(slot, at)?;
        let is_like = announced(&found) == Some((shape.signature(), shape.bytes));
        place(&found).filter(|_| is_like)
    }

    /// Reads from the memory that another rank has offered, from byte `position` on. Returns false
    /// if the system doesn't copy it, or the rank has taken it back.
    pub(super) fn pull(&self, rank: u32, offer: &Offer, position: u64, to: Span) -> bool {
        let (memory, peer) =
            (self.communicator.process().peer_memory(), self.board.group().process(rank));
        Side { span: to, runs: &[(0, to.len())] }.take(memory, peer, offer, position)
    }

    /// Reads the block that a rank has offered, and settles the exchange. Returns false if that
    /// isn't possible.
    pub(super) fn take_offered(&self, rank: u32, offer: &Offer, to: Span) -> bool {
        let is_read = self.pull(rank, offer, 0, to);
        if is_read {
            self.settle();
        }
        is_read
    }

    /// Reads the block of each other rank to its place among all blocks, and settles the exchange;
    /// if all ranks do so, waits for them. Returns false if one of them can't.
    pub(super) fn pull_each(
        &self,
        places: &[Offer],
        shape: &Shape,
        to: Span,
        all_do: bool,
    ) -> Result<bool> {
        let pull = |rank: u32| {
            let to = to.part(shape.bytes * u64::from(rank), shape.bytes);
            to.is_some_and(|to| self.pull(rank, &places[rank as usize], 0, to))
        };
        if !self.others().all(pull) {
            return Ok(false);
        }
        if all_do {
            return self.settle_all();
        }
        self.settle();
        Ok(true)
    }

    /// The other ranks, from the next one on. So the ranks begin with different ones.
    pub(super) fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let (own, size) = (self.board.rank(), self.board.size());
        (1..size).map(move |step| (own + step) % size)
    }

    /// This rank needs no place of the exchange any more.
    pub(super) fn settle(&self) {
        self.board.settle(self.exchange, false);
    }

    /// Waits until these ranks need no place of the exchange any more. Returns the bits of those
    /// that couldn't read the places that they need.
    pub(super) fn await_settled(&self, ranks: Range<u32>) -> Result<u32> {
        let (own, mut next) = (self.board.rank(), ranks.start);
        let poll = |arming| {
            while next < ranks.end {
                if next != own && !self.board.is_settled(next, self.exchange, arming) {
                    return Err(next);
                }
                next += 1;
            }
            Ok(())
        };
        self.wait(poll, |_| None)?;
        let others = ranks.filter(|rank| *rank != own);
        Ok(others.fold(0, |bits, rank| {
            bits | u32::from(self.board.has_refused(rank, self.exchange)) << rank
        }))
    }

    /// This rank can't read a place of the exchange, and needs the data by message.
    pub(super) fn refuse(&self) {
        self.board.settle(self.exchange, true);
    }

    /// Each rank has read what each other one has posted.
    pub(super) fn have_met(&self) {
        self.has_met.store(true, Ordering::Relaxed);
    }

    pub(super) fn rank(&self) -> u32 {
        self.board.rank()
    }

    /// As all ranks do, settles the exchange and waits for the others. Returns whether all of them
    /// have read what they need.
    pub(super) fn settle_all(&self) -> Result<bool> {
        self.settle();
        let have_read = self.await_settled(self.ranks())? == 0;
        self.has_met.store(have_read, Ordering::Relaxed);
        Ok(have_read)
    }

    /// The end of this exchange takes nothing back that this rank has offered: the others have
    /// read it, or a later exchange of the call waits for them.
    pub(super) fn keep_offer(&self) {
        self.is_offering.store(false, Ordering::Relaxed);
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
