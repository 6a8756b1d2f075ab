//! Accesses to registered memory of peers, counted as operations on windows.
//!
//! The network reports when an access is done, so the target sends no answer.

use std::sync::Arc;

use longshore_transport::{Access, Rdma, Refused, RemoteMemory, Transfer};

use super::Operations;
use crate::engine::completion::Ledger;
use crate::engine::operation::Operation;
use crate::engine::peers::Peers;
use crate::error::{ErrorKind, Result};

/// An access under way. Dropping it waits for the network, which needs the memory until then.
pub(crate) struct RdmaAccess {
    transfer: Transfer,
    operation: Operation,
}

impl Operations {
    /// Starts to write `data` to a place of a peer's memory. Returns false if the network has no
    /// room, or fails, or the peer is gone: the put then goes by message, which reports the
    /// failure.
    pub(in crate::engine) fn start_write(
        &mut self,
        rdma: &Arc<dyn Rdma>,
        account: (u32, &Ledger),
        place: &RemoteMemory<'_>,
        data: Vec<u8>,
        peers: &Peers,
    ) -> bool {
        let mut transfer = Some(Transfer::of_buffer(rdma, data));
        let started = self.start_access(account, Access::Write, place, &mut transfer, peers);
        matches!(started, Some(Ok(())))
    }

    /// Starts an access to a peer's memory, and takes the transfer out of `waiting`. Returns
    /// `None`, and does nothing, if the network has no room yet. The lender of the transfer's
    /// memory waits until the access is over, even if the peer is gone meanwhile.
    pub(in crate::engine) fn start_access(
        &mut self,
        (window, ledger): (u32, &Ledger),
        access: Access,
        place: &RemoteMemory<'_>,
        waiting: &mut Option<Transfer>,
        peers: &Peers,
    ) -> Option<Result<()>> {
        if let Some(gone) = peers.gone(place.peer) {
            return Some(Err(gone));
        }
        let started = waiting.as_mut().map_or(Ok(()), |transfer| transfer.start(access, place));
        match started {
            Err(Refused::WouldBlock) => return None,
            Err(Refused::Failed(error)) => return Some(Err(ErrorKind::from(error).into())),
            Ok(()) => {}
        }
        self.accesses.extend(waiting.take().map(|transfer| {
            let number = ledger.issue(place.peer);
            RdmaAccess { transfer, operation: Operation { target: place.peer, window, number } }
        }));
        Some(Ok(()))
    }

    /// Takes out a window's accesses, to one target or to all. They will not be acknowledged: the
    /// target is gone, or the window is given up. The caller drops them, which waits, after it has
    /// unlocked the engine.
    pub(in crate::engine) fn take_accesses(
        &mut self,
        window: u32,
        target: Option<u32>,
    ) -> Vec<RdmaAccess> {
        let is_on = |RdmaAccess { operation, .. }: &RdmaAccess| {
            operation.window == window && target.is_none_or(|target| target == operation.target)
        };
        let (taken, left) = std::mem::take(&mut self.accesses).into_iter().partition(is_on);
        self.accesses = left;
        taken
    }

    /// Whether an access is under way.
    #[inline]
    pub(in crate::engine) fn has_accesses(&self) -> bool {
        !self.accesses.is_empty()
    }

    /// Acknowledges the accesses that are done; true if any has ended. The link reports the peers
    /// of those that failed. `broke` takes each target whose count of operations doesn't come out
    /// even.
    #[inline(never)]
    pub(in crate::engine) fn end_accesses(&mut self, broke: &mut Vec<(u32, String)>) -> bool {
        let (mut at, before) = (0, self.accesses.len());
        while let Some(access) = self.accesses.get(at) {
            if !access.transfer.is_over() {
                at += 1;
                continue;
            }
            let RdmaAccess { transfer, operation } = self.accesses.swap_remove(at);
            let Operation { target, window, .. } = operation;
            if transfer.is_done() {
                let acknowledged = self.handle_ack(target, window, 1);
                broke.extend(acknowledged.err().map(|what| (target, what)));
            }
        }
        self.accesses.len() < before
    }
}
