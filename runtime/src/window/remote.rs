//! Puts and gets that access the registered memory of a like rank on another host.
//!
//! Both are done when the call returns, so that the network never has memory that somebody gave up: data that lie in one run are written
//! from where they are, or read to there, others by way of packed pieces, of which one is packed or unpacked while others are on the wire.

use std::collections::VecDeque;
use std::sync::Arc;

use longshore_transport::{Access, Place, Rdma, Refused, Transfer};
use shipable::{Partial, Program};

use super::core::Core;
use super::operation::Call;
use super::targets::Target;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::origin::Elementwise;
use crate::route::Route;
use crate::wire::Kind;

/// Runs of a target's memory at least this long on average are accessed from where the data are; what is shorter is copied, into
/// messages, of which many can be under way at once, or into a single write.
/// (2 virtual cores, Zen 5: `longshore bench put_latency put_bw --hosts --size 16K,64K --route all`.)
pub(super) const DENSE: u64 = 64 << 10;

/// Accesses of one operation under way; the next ones wait.
const PIECES: usize = 16;

/// The bytes of a piece that is packed: more are copied with a colder cache.
const PACKED: u64 = 128 << 10;

/// The bytes of an access to data that lie in one run.
const WHOLE: u64 = 64 << 20;

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
    /// Does a put or get by access to the target's memory, if that is its route and pays; false if not.
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
        let (bytes, stretches) = (if run.is_some() { WHOLE } else { PACKED }, rdma.stretch_limit());
        let pieces = call.target_type.with_native(&self.process.me().architecture, |far| {
            let runs = match far.contiguous(count) {
                Some(first) => Some(vec![(first, len)]),
                None if far.is_all_copy() => far.runs(count, most),
                None => None,
            };
            Ok(runs.and_then(|runs| pieces(&runs, base, bytes, stretches)))
        })?;
        let Some(pieces) = pieces else { return Ok(false) };
        let access = if call.kind == Kind::Put { Access::Write } else { Access::Read };
        let mut under_way =
            UnderWay { origin, near, partial: Partial::default(), all: VecDeque::new() };
        for piece in &pieces {
            let spare = match under_way.all.len() {
                PIECES => self.next_done(&mut under_way, access, target.peer)?,
                _ => None,
            };
            let mut transfer = under_way.transfer(rdma, run, access, piece, spare)?;
            let place = Place { peer: target.peer, key, stretches: &piece.stretches };
            self.start_access(target.peer, || transfer.start(access, &place))?;
            under_way.all.push_back((transfer, piece.position));
        }
        while !under_way.all.is_empty() {
            self.next_done(&mut under_way, access, target.peer)?;
        }
        Ok(true)
    }

    /// Waits for the oldest access, and unpacks what it read; gives its buffer.
    fn next_done(
        &self,
        under_way: &mut UnderWay<'_>,
        access: Access,
        peer: u32,
    ) -> Result<Option<Vec<u8>>> {
        let Some((transfer, position)) = under_way.all.pop_front() else { return Ok(None) };
        self.await_access(peer, || transfer.is_done())?;
        let buffer = transfer.into_buffer();
        if let (Access::Read, Some(data)) = (access, &buffer) {
            let UnderWay { origin, near, partial, .. } = under_way;
            let unpacked = origin.span.unpack(near, origin.count, position, data, partial);
            unpacked.map_err(conversion)?;
        }
        Ok(buffer)
    }

    /// Starts an access as soon as there is room.
    fn start_access(
        &self,
        peer: u32,
        mut start: impl FnMut() -> std::result::Result<(), Refused>,
    ) -> Result<()> {
        let mut failed = None;
        self.await_access(peer, || match start() {
            Ok(()) => true,
            Err(Refused::WouldBlock) => false,
            Err(Refused::Failed(error)) => {
                failed = Some(error);
                true
            }
        })?;
        failed.map_or(Ok(()), |error| Err(Error::from(ErrorKind::from(error))))
    }

    /// Waits for what no call of the peer's is needed for. One that fails is waited for until its peer is taken for lost.
    fn await_access(&self, peer: u32, mut is_there: impl FnMut() -> bool) -> Result<()> {
        // Mostly there is room: no look at the network then.
        if is_there() {
            return Ok(());
        }
        self.process.wait(|state, arming| {
            if is_there() {
                return Some(Ok(()));
            }
            if arming {
                self.process.note_wait(Some(peer));
            }
            state.gone(peer).map(Err)
        })
    }
}

/// An operation's accesses, the oldest first, each with its position in the packed stream.
struct UnderWay<'a> {
    origin: &'a Elementwise,
    near: &'a Program,
    partial: Partial,
    all: VecDeque<(Transfer, u64)>,
}

impl UnderWay<'_> {
    /// The access to a piece: where the data are, if they lie in a run that begins at this displacement, else by a buffer.
    fn transfer(
        &self,
        rdma: &Arc<dyn Rdma>,
        run: Option<i64>,
        access: Access,
        piece: &Piece,
        spare: Option<Vec<u8>>,
    ) -> Result<Transfer> {
        let (origin, len) = (self.origin, piece.len as usize);
        let lies = run.and_then(|first| first.checked_add_unsigned(piece.position));
        if let Some(transfer) = lies.and_then(|start| origin.span.transfer(rdma, start, len)) {
            return Ok(transfer);
        }
        let mut buffer = spare.unwrap_or_default();
        buffer.resize(len, 0);
        if access == Access::Write {
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
