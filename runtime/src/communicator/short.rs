//! Short collective calls of ranks that have a board, on data in one run of memory that are copied
//! between all of them.
//!
//! Each rank posts its data from where the program has them, and takes those of other ranks to
//! where the program wants them. So such a call packs nothing, and has no other steps.
//!
//! What a rank posts is what the general steps of the call post. So ranks of one call may go either
//! way, and each rank decides by itself. If what another rank has posted isn't of the own data's
//! signature and length, perhaps an error or an announcement, the general steps go on from there:
//! the functions of this module return `None`, and leave their exchange open.
//!
//! A call with a request makes attempts, by the same functions. An attempt that would have to wait
//! for another rank returns `None`, too, and leaves its exchange to the next attempt.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::task::Poll;

use shipable::reduce::{Op, Reduction};

use super::Communicator;
use super::board::Board;
use super::calls::Ongoing;
use super::message::Side;
use super::offers::{Mode, Operands, Target};
use super::operator::Operator;
use super::reduction::divided;
use super::shapes::Shape;
use crate::bytes::Bytes;
use crate::engine::Channel;
use crate::error::{ErrorKind, Result};
use crate::memory::Span;
use crate::origin::What;
use crate::types::Compiled;

/// Elements that lie in one run of memory, as they travel, and the shape of a block of them.
struct Run<'a> {
    datatype: &'a Compiled,
    span: Span,
    shape: Shape,
}

/// How a call combines its operands: from which ranks, which bytes of theirs, and where to.
struct Fold {
    reduction: Reduction,
    ranks: Range<u32>,
    part: Range<u64>,
    /// `None` if this rank needs no result.
    to: Option<Span>,
    /// Whether each rank needs the operands of each other one.
    meets: bool,
}

impl Communicator {
    /// An attempt at a call with a request. `None` leaves it to the general steps.
    pub(super) fn attempt(
        &self,
        at: Ongoing,
        short: impl FnOnce() -> Option<Result<()>>,
    ) -> Poll<Option<Result<()>>> {
        let Some(board) = self.turns().board() else { return Poll::Ready(None) };
        if board.awaits(at.turn) {
            let process = self.process();
            let is_calm = !process.is_arming() && !process.is_bereft() && !self.has_been_revoked();
            if is_calm && !board.has_awaited(at.turn) {
                return Poll::Pending;
            }
            // An attempt that waits says so anew.
            board.forget_awaited();
        }
        match short() {
            None if board.awaits(at.turn) => Poll::Pending,
            outcome => Poll::Ready(outcome),
        }
    }

    /// The board of a call, if data may be posted there as they lie in memory.
    fn plain_board(&self, at: Ongoing) -> Option<&Board> {
        let shared = &self.shared;
        let board = match at.channel {
            Channel::Started => self.turns().board()?,
            _ => shared.board.get()?.as_ref()?,
        };
        let is_own = shared.inter.is_none() && shared.ended.load(Ordering::Relaxed) == 0;
        is_own.then_some(board)
    }

    /// The elements of a side as `blocks` equal blocks, if they lie in one run of memory as they
    /// travel.
    fn run<'s>(&'s self, side: Side<'s>, board: &Board, blocks: u64) -> Option<Run<'s>> {
        let (datatype, count, span) = match side.what {
            What::InPlace => return None,
            What::Typed { count, datatype, at: 0, native: None }
                if datatype.is_of(self.process().names()) =>
            {
                (datatype.compiled(), u64::try_from(count).ok()?, side.span)
            }
            _ => {
                let checked = side.what.check(self.process(), side.span).ok()?;
                (checked.datatype, checked.count, checked.span)
            }
        };
        if !self.copies_as_they_lie(datatype) {
            return None;
        }
        let (start, shape) = board.shapes().shape(datatype, count, blocks)?;
        let span = span.part_at(start, shape.bytes * blocks)?;
        self.count_short(shape.bytes * blocks);
        Some(Run { datatype, span, shape })
    }

    pub(super) fn short_barrier(&self, at: Ongoing) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        self.exchanged(board, at, |posts| posts.meet_all())
    }

    pub(super) fn short_bcast(&self, at: Ongoing, data: Side<'_>, root: i32) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        let (root, Run { span, shape, .. }) = (self.root(root).ok()?, self.run(data, board, 1)?);
        let mode = self.mode(board, at, &shape)?;
        if self.rank() != root as i32 {
            return self.exchanged(board, at, |posts| match mode {
                Mode::Posted => posts.take_one(root, &shape, span),
                Mode::Offered => {
                    let place = posts.place_of_root(&shape, root)?;
                    Ok(place.is_some_and(|place| posts.take_offered(root, &place, span)))
                }
            });
        }
        let mut refused = 0;
        let outcome = self.exchanged(board, at, |posts| match mode {
            Mode::Posted => posts.give_one(root, &shape, span),
            Mode::Offered => {
                posts.offer_one(root, &shape, span)?;
                refused = posts.await_settled(0..board.size())?;
                Ok(true)
            }
        })?;
        Some(outcome.and_then(|()| self.send_refused(at, refused, |_| Some(span))))
    }

    /// A gather at a root, or at all ranks.
    pub(super) fn short_gather(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        root: Option<i32>,
    ) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        if let Some(root) = root {
            self.root(root).ok()?;
        }
        let (rank, size) = (self.rank(), self.group().size() as u64);
        let takes = root.is_none_or(|root| rank == root);
        let all = if takes { Some(self.run(room, board, size)?) } else { None };
        let own = |all: &Run<'_>| all.span.part(all.shape.bytes * rank as u64, all.shape.bytes);
        let (shape, mine) = match (data.is_in_place(), &all) {
            (true, Some(all)) => (all.shape, own(all)?),
            _ => {
                let given = self.run(data, board, 1)?;
                (given.shape, given.span)
            }
        };
        if all.as_ref().is_some_and(|all| all.shape != shape) {
            return None;
        }
        if self.mode(board, at, &shape)? == Mode::Posted {
            return self.exchanged(board, at, |posts| match &all {
                _ if !posts.give_all(&shape, mine)? => Ok(false),
                None => Ok(true),
                Some(all) => posts.take_each(&shape, all.span, root.is_none()),
            });
        }
        self.exchanged(board, at, |posts| {
            posts.offer_all(&shape, mine)?;
            let Some(all) = &all else {
                let root = root.unwrap_or_default() as u32;
                return Ok(posts.await_settled(root..root + 1)? == 0);
            };
            if !data.is_in_place() {
                own(all).map(|own| own.copy_run(0, mine, 0, shape.bytes));
            }
            let Some(places) = posts.places(&shape)? else { return Ok(false) };
            posts.pull_each(&places, &shape, all.span, root.is_none())
        })
    }

    pub(super) fn short_scatter(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        root: i32,
    ) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        let (root, size) = (self.root(root).ok()?, self.group().size() as u64);
        let room = if room.is_in_place() { None } else { Some(self.run(room, board, 1)?) };
        if self.rank() != root as i32 {
            let Run { span, shape, .. } = room?;
            let mode = self.mode(board, at, &shape)?;
            return self.exchanged(board, at, |posts| match mode {
                Mode::Posted => posts.take_dealt(root, &shape, span),
                Mode::Offered => {
                    let place = posts.place_of_roots_part(&shape, root)?;
                    Ok(place.is_some_and(|place| posts.take_offered(root, &place, span)))
                }
            });
        }
        let Run { span, shape, .. } = self.run(data, board, size)?;
        if room.as_ref().is_some_and(|room| room.shape != shape) {
            return None;
        }
        let mode = self.mode(board, at, &shape)?;
        let part = |rank: u32| span.part(shape.bytes * u64::from(rank), shape.bytes);
        let (own, mut refused) = (part(root)?, 0);
        let outcome = self.exchanged(board, at, |posts| {
            let has_posted = match mode {
                Mode::Posted => posts.deal_one(root, &shape, span)?,
                Mode::Offered => {
                    posts.offer_parts_as(root, &shape, span)?;
                    true
                }
            };
            if !has_posted {
                return Ok(false);
            }
            if let Some(room) = &room {
                room.span.copy_run(0, own, 0, shape.bytes);
            }
            if mode == Mode::Offered {
                refused = posts.await_settled(0..board.size())?;
            }
            Ok(true)
        })?;
        Some(outcome.and_then(|()| self.send_refused(at, refused, part)))
    }

    pub(super) fn short_alltoall(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
    ) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        let size = self.group().size() as u64;
        let (data, room) = (self.run(data, board, size)?, self.run(room, board, size)?);
        if room.shape != data.shape {
            return None;
        }
        let (own, shape) = (self.rank() as u64, &room.shape);
        let mode = self.mode(board, at, shape)?;
        self.exchanged(board, at, |posts| {
            if mode == Mode::Posted {
                return Ok(posts.deal_all(shape, data.span)?
                    && posts.take_dealt_by_each(shape, room.span)?);
            }
            posts.offer_parts(shape, data.span)?;
            let start = (shape.bytes * own) as i64;
            room.span.copy_run(start, data.span, start, shape.bytes);
            let Some(places) = posts.places_of_parts(shape)? else { return Ok(false) };
            posts.pull_each(&places, shape, room.span, true)
        })
    }

    /// A reduction to a root, or to all ranks.
    pub(super) fn short_reduce(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
        root: Option<i32>,
    ) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        if let Some(root) = root {
            self.root(root).ok()?;
        }
        let takes = root.is_none_or(|root| self.rank() == root);
        let mine = self.run(if data.is_in_place() && takes { room } else { data }, board, 1)?;
        let to = match (takes, data.is_in_place()) {
            (false, _) => None,
            (true, true) => Some(mine.span),
            (true, false) => Some(self.room_like(room, board, &mine.shape)?),
        };
        let reduction = self.reduction(&mine, op)?;
        if self.mode(board, at, &mine.shape)? == Mode::Offered {
            let Run { span, shape, .. } = mine;
            let operands = Operands { reduction: &reduction, shape, mine: span };
            let (in_place, root) = (data.is_in_place(), root.map(|root| root as u32));
            return self.reduce_offered(board, at, &operands, &Target { room: to, in_place, root });
        }
        let (ranks, part) = (0..self.group().size() as u32, 0..mine.shape.bytes);
        let fold = Fold { reduction, ranks, part, to, meets: root.is_none() };
        self.folded(board, at, &mine, fold)
    }

    /// A scan, which is `inclusive` or not.
    pub(super) fn short_scan(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
        inclusive: bool,
    ) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        let rank = self.rank() as u32;
        let mine = self.run(if data.is_in_place() { room } else { data }, board, 1)?;
        let to = match (inclusive || rank > 0, data.is_in_place()) {
            (false, _) => None,
            (true, true) => Some(mine.span),
            (true, false) => Some(self.room_like(room, board, &mine.shape)?),
        };
        let reduction = self.reduction(&mine, op)?;
        self.mode(board, at, &mine.shape)?;
        let (ranks, part) = (0..rank + u32::from(inclusive), 0..mine.shape.bytes);
        self.folded(board, at, &mine, Fold { reduction, ranks, part, to, meets: false })
    }

    /// A reduction of which each rank gets one of equal blocks.
    pub(super) fn short_reduce_scatter(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
    ) -> Option<Result<()>> {
        let board = self.plain_board(at)?;
        let (size, rank) = (self.group().size() as u64, self.rank() as u64);
        let operands = if data.is_in_place() { room } else { data };
        let mine = self.run(operands, board, 1)?;
        let block = self.run(operands, board, size)?.shape;
        let to = match data.is_in_place() {
            true => mine.span.part(0, block.bytes)?,
            false => self.room_like(room, board, &block)?,
        };
        let reduction = self.reduction(&mine, op)?;
        let part_of = |rank| block.bytes * rank..block.bytes * (rank + 1);
        if self.mode(board, at, &mine.shape)? == Mode::Offered {
            let Run { span, shape, .. } = mine;
            let signature = divided(shape.signature(), (0..size).map(part_of));
            let shape = Shape::new(signature, shape.bytes);
            let operands = Operands { reduction: &reduction, shape, mine: span };
            let (in_place, root) = (data.is_in_place(), None);
            let target = Target { room: Some(to), in_place, root };
            return self.reduce_alone(board, at, &operands, (&part_of(rank), &target));
        }
        let part = part_of(rank);
        let fold = Fold { reduction, ranks: 0..size as u32, part, to: Some(to), meets: true };
        self.folded(board, at, &mine, fold)
    }

    /// The memory of a room, if it is for one block of this shape.
    fn room_like(&self, room: Side<'_>, board: &Board, shape: &Shape) -> Option<Span> {
        let room = self.run(room, board, 1)?;
        (room.shape == *shape).then_some(room.span)
    }

    /// How a predefined operation combines elements.
    fn reduction(&self, mine: &Run<'_>, op: Operator<'_>) -> Option<Reduction> {
        let op = op.predefined().filter(|op| !matches!(op, Op::Replace | Op::NoOp))?;
        mine.datatype.reduction(op, mine.datatype.single_leaf()?).ok()
    }

    /// Posts this rank's operands, and combines those of the ranks that it needs.
    fn folded(&self, board: &Board, at: Ongoing, mine: &Run<'_>, fold: Fold) -> Option<Result<()>> {
        self.exchanged(board, at, |posts| {
            if !posts.give_all(&mine.shape, mine.span)? {
                return Ok(false);
            }
            let Some(to) = fold.to else { return Ok(true) };
            if !posts.await_like(&mine.shape, fold.ranks.clone(), fold.meets)? {
                return Ok(false);
            }
            let operands = |rank| posts.run_of(rank, &fold.part);
            combine(&fold.reduction, fold.ranks.clone(), operands, to).map(|()| true)
        })
    }
}

/// Combines the operands of some ranks in their order.
///
/// An operation leaves its result where its second operand is. So each rank's operands are copied
/// first: by turns to memory of this call and to the result's, which is the last one's turn.
fn combine(
    reduction: &Reduction,
    mut ranks: Range<u32>,
    operands: impl Fn(u32) -> Result<Span>,
    to: Span,
) -> Result<()> {
    let last = ranks.end.wrapping_sub(1);
    let Some(first) = ranks.next() else { return Ok(()) };
    let (mut low, bytes) = (operands(first)?, to.len());
    let mut room = Bytes::default();
    if last > 1 {
        room = Bytes::stale(bytes as usize)?;
    }
    let done = |is_done| if is_done { Ok(()) } else { Err(ErrorKind::Collective.into()) };
    Span::with_bytes(&mut room, |room| {
        if last == 0 {
            return done(to.copy_run(0, low, 0, bytes));
        }
        for rank in ranks {
            let (high, target) = (operands(rank)?, if (last - rank) % 2 == 0 { to } else { room });
            done(target.copy_run(0, high, 0, bytes))?;
            done(target.combine_run(reduction, 0, low, bytes))?;
            low = target;
        }
        Ok(())
    })
}
