//! Puts and gets that access the registered memory of a like rank on another host.
//!
//! Data that lie in one run are written from where they are, or read to there, while the caller goes on. Others go by way of packed pieces,
//! of which one is packed or unpacked while others are on the wire, and are done when the call returns.

use std::collections::VecDeque;
use std::sync::Arc;

use longshore_transport::{Access, Place, Rdma, Refused, Transfer};
use shipable::{Partial, Program};

use super::core::Core;
use super::operation::Call;
use super::targets::Target;
use crate::engine::State;
use crate::error::{ErrorKind, Result, conversion};
use crate::origin::Elementwise;
use crate::route::Route;
use crate::wire::Kind;

/// Runs of a target's memory at least this long on average are accessed from where the data are; what is shorter is copied, into
/// messages, of which many can be under way at once, or into a single write.
/// (2 virtual cores, Zen 5: `longshore bench put_latency put_bw --hosts --size 16K,64K --route all`.)
pub(super) const DENSE: u64 = 64 << 10;

/// Accesses of one operation under way; the next ones wait.
const PIECES: usize = 16;

/// The bytes of a piece that is packed: more are copied with a colder cache. Two packets of the system's, as a frame is one.
const PACKED: u64 = 126 << 10;

/// The most bytes of an access to data that lie in one run, which are cut evenly: more at once take the system longer than two accesses
/// do, less the network. (Zen 5: `longshore bench put_latency get_latency put_bw --hosts --size 640K,1M,2M,4M`, with lengths from
/// 64 KiB on; 1 MiB in one took 177 us, in two 150.)
pub(super) const WHOLE: u64 = 768 << 10;

/// Part of an operation: where it begins in the packed stream, its length, and the target's stretches.
struct Piece {
    position: u64,
    len: u64,
    stretches: Vec<(u64, u64)>,
}

/// Cuts runs of memory into pieces of at most so many bytes and stretches.
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

impl Core {
    /// Does a put or get of lent memory, or starts it, by access to the target's memory, if that is its route and pays; false if not.
    pub(super) fn access_memory(
        &self,
        call: &Call<'_>,
        target: &Target,
        origin: &Elementwise,
        count: u64,
        base: i64,
    ) -> Result<bool> {
        let (Route::Rdma, Some(key), Some(rdma)) =
            (target.route, target.offset, self.process.rdma())
        else {
            return Ok(false);
        };
        // Once the job ends, operations are given up.
        self.process.check_job()?;
        if let Some(gone) = self.process.engine().state().gone(target.peer) {
            return Err(gone);
        }
        let near = origin.datatype.native();
        let len = near.stream_length(origin.count)?;
        let most = usize::try_from(len / DENSE).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(false);
        }
        let run = near.contiguous(origin.count);
        let whole = len.div_ceil(len.div_ceil(WHOLE)).next_multiple_of(64);
        let (bytes, stretches) = (if run.is_some() { whole } else { PACKED }, rdma.stretch_limit());
        let pieces = call.target_type.with_native(&self.process.me().architecture, |far| {
            let runs = if far.is_all_copy() { far.runs(count, most) } else { None };
            Ok(runs.and_then(|runs| pieces(&runs, base, bytes, stretches)))
        })?;
        let Some(pieces) = pieces else { return Ok(false) };
        let access = if call.kind == Kind::Put { Access::Write } else { Access::Read };
        let mut under_way =
            Pieces { origin, near, partial: Partial::default(), all: VecDeque::new() };
        for piece in &pieces {
            let place = Place { peer: target.peer, key, stretches: &piece.stretches };
            let len = piece.len as usize;
            let lies = run.and_then(|first| first.checked_add_unsigned(piece.position));
            if let Some(transfer) = lies.and_then(|at| origin.span.transfer(rdma, at, len)) {
                self.start_lent(transfer, access, &place)?;
                continue;
            }
            let spare = match under_way.all.len() {
                PIECES => self.next_done(&mut under_way, access, target.peer)?,
                _ => None,
            };
            let mut transfer = under_way.transfer(rdma, access, piece, spare)?;
            self.await_access(target.peer, |_| match transfer.start(access, &place) {
                Ok(()) => Some(Ok(())),
                Err(Refused::WouldBlock) => None,
                Err(Refused::Failed(error)) => Some(Err(ErrorKind::from(error).into())),
            })?;
            under_way.all.push_back((transfer, piece.position));
        }
        while !under_way.all.is_empty() {
            self.next_done(&mut under_way, access, target.peer)?;
        }
        Ok(true)
    }

    /// Starts an access to where the data are, which their lender keeps until it is over.
    pub(super) fn start_lent(
        &self,
        transfer: Transfer,
        access: Access,
        place: &Place<'_>,
    ) -> Result<()> {
        self.await_room(place.peer)?;
        self.flight.lend();
        let (account, mut transfer) = ((self.window, &*self.flight.ledger), Some(transfer));
        self.await_access(place.peer, |state| {
            state.start_access(account, access, place, &mut transfer)
        })
    }

    /// Waits for the oldest access, and unpacks what it read; gives its buffer.
    fn next_done(
        &self,
        under_way: &mut Pieces<'_>,
        access: Access,
        peer: u32,
    ) -> Result<Option<Vec<u8>>> {
        let Some((transfer, position)) = under_way.all.pop_front() else { return Ok(None) };
        self.await_access(peer, |_| transfer.is_done().then_some(Ok(())))?;
        let buffer = transfer.into_buffer();
        if let (Access::Read, Some(data)) = (access, &buffer) {
            let Pieces { origin, near, partial, .. } = under_way;
            let unpacked = origin.span.unpack(near, origin.count, position, data, partial);
            unpacked.map_err(conversion)?;
        }
        Ok(buffer)
    }

    /// Waits for what no call of the peer's is needed for. One that fails is waited for until its peer is taken for lost.
    pub(super) fn await_access(
        &self,
        peer: u32,
        mut poll: impl FnMut(&mut State) -> Option<Result<()>>,
    ) -> Result<()> {
        // Mostly there is room: no look at the network then.
        if let Some(outcome) = poll(self.process.engine().state()) {
            return outcome;
        }
        self.process.wait(|state, arming| {
            let outcome = poll(state);
            if outcome.is_none() && arming {
                self.process.note_wait(Some(peer));
            }
            outcome.or_else(|| state.gone(peer).map(Err))
        })
    }
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
    fn pieces_have_no_more_bytes_or_stretches_than_may_be() {
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
