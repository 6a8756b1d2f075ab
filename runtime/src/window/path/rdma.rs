//! Puts and gets of equal data that access the registered memory of a related rank on another host.
//!
//! Data that are one run are written from where they lie, or read to there, while the caller goes
//! on. Other data go through packed pieces: one is packed or unpacked while others are on the wire,
//! and the call returns when all are done.

use std::collections::VecDeque;
use std::sync::Arc;

use longshore_transport::{Access, Rdma, Refused, RemoteMemory, Transfer};
use shipable::{Partial, Program};

use super::direct::converts;
use super::{Again, Path, Progress, Waiter, Ways, message};
use crate::error::{ErrorKind, Result, conversion};
use crate::job::Activity;
use crate::origin::Elementwise;
use crate::route::Route;
use crate::window::call::Action;
use crate::window::flight::Pace;
use crate::window::memo::Frame;
use crate::window::operation::{Checked, Operation};
use crate::window::parts::Parts;
use crate::window::peers::Target;
use crate::window::waiting::{await_network, await_room};

/// The least average length of the runs of memory that are accessed in place. Shorter runs are
/// copied into messages, of which many can be in flight, or into one write (docs/tuning.md, "Dense
/// runs between hosts").
const DENSE: u64 = 64 << 10;

/// The most accesses of one operation in flight; further ones wait.
const PIECES: usize = 16;

/// The most bytes of a packed piece. A larger piece is copied with a colder cache (docs/tuning.md,
/// "Packed pieces between hosts").
const PACKED: u64 = 126 << 10;

/// The most bytes of an access to data in one run. Longer runs are cut into equal accesses: the
/// system takes longer for one long access than for two short ones (docs/tuning.md, "Whole accesses
/// between hosts").
const WHOLE: u64 = 768 << 10;

/// A part of an operation: its position in the packed stream, its length, and its stretches of the
/// target's memory.
struct Piece {
    position: u64,
    len: u64,
    stretches: Vec<(u64, u64)>,
}

/// Cuts runs of memory into pieces of at most `bytes` bytes and `stretches` stretches.
fn pieces(runs: &[(i64, u64)], base: i64, bytes: u64, stretches: usize) -> Option<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut position = 0;
    for &(start, len) in runs {
        let start = u64::try_from(base.checked_add(start)?).ok()?;
        let mut done = 0;
        while done < len {
            let room = |piece: &&mut Piece| piece.len < bytes && piece.stretches.len() < stretches;
            let piece = match pieces.last_mut().filter(room) {
                Some(piece) => piece,
                None => {
                    pieces.push(Piece { position, len: 0, stretches: Vec::new() });
                    pieces.last_mut()?
                }
            };
            let part = (len - done).min(bytes - piece.len);
            piece.stretches.push((start + done, part));
            piece.len += part;
            done += part;
            position += part;
        }
    }
    Some(pieces)
}

/// The path.
pub(super) const PATH: Path = Path { name: "remote access", misfit, carry_out, again };

fn misfit(
    parts: &Parts,
    target: &Target,
    operation: &Operation<'_>,
    len: u64,
) -> Option<&'static str> {
    let converts = || converts(parts, target, operation);
    match target.route {
        Route::Rdma if !operation.call.action.moves() => Some("the network only reads and writes"),
        Route::Rdma if operation.call.notify.is_some() => Some("it notifies the target"),
        Route::Rdma => Some(converts().unwrap_or(match len < DENSE {
            true => "it is shorter than 64 KiB, and others are in flight",
            false => "its runs are short on average",
        })),
        _ => Some("the memory isn't registered memory of another host"),
    }
}

fn carry_out(
    parts: &Parts,
    checked: &mut Checked<'_>,
    ways: &mut Ways,
) -> Result<Option<Progress>> {
    let Route::Rdma = checked.target.route else { return Ok(None) };
    ways.note(parts, checked);
    // An operation with a ticket may use other memory than its lender's. One that notifies goes
    // with its notification.
    let is_plain = ways.ticket.is_none() && checked.notify.is_none();
    let may_be = is_plain && checked.is_lent() && checked.is_copied();
    let is_done = may_be && access_memory(parts, checked)?;
    Ok(is_done.then_some(Progress::Accessed))
}

/// Does a put or get of lent memory, or starts it, by access to the target's registered memory, if
/// that pays. Otherwise nothing is done.
fn access_memory(parts: &Parts, checked: &Checked<'_>) -> Result<bool> {
    let (process, target) = (parts.process(), checked.target);
    let is_transfer = checked.action.moves();
    let (true, Some(key), Some(rdma), Some(side)) =
        (is_transfer, target.key(), process.rdma(), checked.near())
    else {
        return Ok(false);
    };
    // When the job ends, operations are given up.
    process.check_job()?;
    if let Some(gone) = process.engine().state().gone(target.peer) {
        return Err(gone);
    }
    let origin = &side.elements;
    let near = origin.datatype.native();
    let len = near.stream_length(origin.count)?;
    let most = usize::try_from(len / DENSE).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(false);
    }
    let run = near.contiguous(origin.count);
    let whole = len.div_ceil(len.div_ceil(WHOLE)).next_multiple_of(64);
    let (bytes, stretches) = (if run.is_some() { whole } else { PACKED }, rdma.stretch_limit());
    let pieces = checked.target_type.with_native(&target.architecture, |far| {
        let runs = if far.is_all_copy() { far.runs(checked.count, most) } else { None };
        Ok(runs.and_then(|runs| pieces(&runs, checked.base, bytes, stretches)))
    })?;
    let Some(pieces) = pieces else { return Ok(false) };
    let access = access(checked.action);
    let mut under_way = Pieces { origin, near, partial: Partial::default(), all: VecDeque::new() };
    for piece in &pieces {
        let place = RemoteMemory { peer: target.peer, key, stretches: &piece.stretches };
        let len = piece.len as usize;
        let lies = run.and_then(|first| first.checked_add_unsigned(piece.position));
        if let Some(transfer) = lies.and_then(|at| origin.span.transfer(rdma, at, len)) {
            start_lent(parts, transfer, access, &place)?;
            continue;
        }
        let spare = match under_way.all.len() {
            PIECES => next_done(parts, &mut under_way, access, target.peer)?,
            _ => None,
        };
        let mut transfer = under_way.transfer(rdma, access, piece, spare)?;
        await_network(parts, target.peer, |_| match transfer.start(access, &place) {
            Ok(()) => Some(Ok(())),
            Err(Refused::WouldBlock) => None,
            Err(Refused::Failed(error)) => Some(Err(ErrorKind::from(error).into())),
        })?;
        under_way.all.push_back((transfer, piece.position));
    }
    while !under_way.all.is_empty() {
        next_done(parts, &mut under_way, access, target.peer)?;
    }
    Ok(true)
}

fn access(action: Action) -> Access {
    if action == Action::Put { Access::Write } else { Access::Read }
}

fn again(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
    _: Waiter<'_>,
) -> Again {
    // An operation that notifies goes as a frame, with its notification.
    let is_transfer = operation.call.notify.is_none() && operation.call.action.moves();
    if target.route != Route::Rdma || !is_transfer || !frame.alike {
        return Again::Continue(());
    }
    if !message::may_go(parts, target) {
        return Again::Break(None);
    }
    if frame.len >= DENSE {
        return Again::Break(start_run(parts, target, frame, operation));
    }
    let is_alone = || parts.flight().pace(target.peer) == Pace::Alone;
    let is_put = operation.call.action == Action::Put;
    match is_put && is_alone() && write_run(parts, target, frame, operation).is_some() {
        true => Again::Break(Some(Progress::Accessed)),
        false => Again::Continue(()),
    }
}

/// The key of the target's registered memory, and the stretch of it that an operation touches, if
/// that is one.
fn registered(
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
) -> Option<(u64, (u64, u64))> {
    let ((start, end), _) = frame.place(target, operation.call.action, operation.call.at)?;
    let is_one = end.checked_sub_unsigned(frame.len) == Some(start);
    Some((target.key()?, (u64::try_from(start).ok().filter(|_| is_one)?, frame.len)))
}

/// Writes a copy to the target's registered memory while nothing else is in flight there: the
/// network itself answers, sooner than a frame's receiver. Many operations at once are quicker as
/// frames, which travel and are answered together (docs/tuning.md, "Short writes between hosts").
fn write_run(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
) -> Option<()> {
    let process = parts.process();
    let (rdma, memory) = (process.rdma()?, operation.sides.origin.as_ref()?.span);
    let (key, stretch) =
        registered(target, frame, operation).filter(|_| frame.is_memory(memory))?;
    let mut data = vec![0; frame.len as usize];
    let place = RemoteMemory { peer: target.peer, key, stretches: &[stretch] };
    let account = (parts.id(), &**parts.flight().ledger());
    let started =
        memory.read(frame.first, &mut data) && process.engine().write(rdma, account, &place, data);
    if !started {
        return None;
    }
    parts.flight().ship(target.peer);
    Some(())
}

/// Starts an access from or to where the data are.
fn start_run(
    parts: &Parts,
    target: &Target,
    frame: &Frame,
    operation: &Operation<'_>,
) -> Option<Progress> {
    if frame.len > WHOLE {
        return None;
    }
    let (key, stretch) = registered(target, frame, operation)?;
    let access = access(operation.call.action);
    let memory = operation.moved()?.span;
    if !frame.is_memory(memory) {
        return None;
    }
    let transfer = memory.transfer(parts.process().rdma()?, frame.first, frame.len as usize)?;
    // An access that can't begin is reported by the full check.
    let place = RemoteMemory { peer: target.peer, key, stretches: &[stretch] };
    start_lent(parts, transfer, access, &place).ok()?;
    Some(Progress::Accessed)
}

/// Starts an access to where the data are. Their lender keeps them until it is over.
fn start_lent(
    parts: &Parts,
    transfer: Transfer,
    access: Access,
    place: &RemoteMemory<'_>,
) -> Result<()> {
    let activity = match access {
        Access::Read => Activity::Get,
        Access::Write => Activity::Put,
    };
    await_room(parts, activity, place.peer)?;
    parts.flight().lend(place.peer);
    let (account, mut transfer) = ((parts.id(), &**parts.flight().ledger()), Some(transfer));
    await_network(parts, place.peer, |state| {
        state.start_access(account, access, place, &mut transfer)
    })
}

/// Waits for the oldest access, and unpacks the data that it read. Returns its buffer.
fn next_done(
    parts: &Parts,
    under_way: &mut Pieces<'_>,
    access: Access,
    peer: u32,
) -> Result<Option<Vec<u8>>> {
    let Some((transfer, position)) = under_way.all.pop_front() else { return Ok(None) };
    await_network(parts, peer, |_| transfer.is_done().then_some(Ok(())))?;
    let buffer = transfer.into_buffer();
    if let (Access::Read, Some(data)) = (access, &buffer) {
        let Pieces { origin, near, partial, .. } = under_way;
        let unpacked = origin.span.unpack(near, origin.count, position, data, partial);
        unpacked.map_err(conversion)?;
    }
    Ok(buffer)
}

/// An operation's accesses, the oldest first, each with its position in the packed stream.
struct Pieces<'a> {
    origin: &'a Elementwise,
    near: &'a Program,
    partial: Partial,
    all: VecDeque<(Transfer, u64)>,
}

impl Pieces<'_> {
    /// The access to a piece, by a buffer.
    fn transfer(
        &self,
        rdma: &Arc<dyn Rdma>,
        access: Access,
        piece: &Piece,
        spare: Option<Vec<u8>>,
    ) -> Result<Transfer> {
        let mut buffer = spare.unwrap_or_default();
        buffer.resize(piece.len as usize, 0);
        if access == Access::Write {
            let origin = self.origin;
            let packed = origin.span.pack(self.near, origin.count, piece.position, &mut buffer);
            packed.map_err(conversion)?;
        }
        Ok(Transfer::of_buffer(rdma, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_respect_the_limits_of_bytes_and_stretches() {
        let cut = |runs: &[(i64, u64)], base| {
            let pieces = pieces(runs, base, 10, 2)?;
            Some(
                pieces
                    .into_iter()
                    .map(|piece| (piece.position, piece.stretches))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(cut(&[], 0), Some(vec![]));
        let [a, b, c] = [(0, vec![(5, 10)]), (10, vec![(15, 10)]), (20, vec![(25, 3)])];
        assert_eq!(cut(&[(0, 23)], 5), Some(vec![a, b, c]));
        let [a, b, c] =
            [(0, vec![(10, 4), (0, 4)]), (8, vec![(20, 4), (30, 6)]), (18, vec![(36, 1)])];
        assert_eq!(cut(&[(10, 4), (0, 4), (20, 4), (30, 7)], 0), Some(vec![a, b, c]));
        assert_eq!(cut(&[(-8, 4)], 4), None);
    }
}
