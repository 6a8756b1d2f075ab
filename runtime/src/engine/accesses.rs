//! Accesses to registered memory of peers, as operations on windows that the engine waits for.

use std::sync::Arc;

use longshore_transport::{Access, Rdma, Refused, RemoteMemory, Transfer};

use crate::error::{ErrorKind, Result};

use super::{Engine, Ledger, Operation, State};

/// One under way. Dropped, it waits for the network, which needs the memory until then.
pub(crate) struct Accessing {
    transfer: Transfer,
    operation: Operation,
}

impl Engine {
    /// Starts to write `data` to a place, as an operation on a window; false if there is no room, or an adversary decides about
    /// operations, or the peer is gone.
    pub(crate) fn write(
        &mut self,
        rdma: &Arc<dyn Rdma>,
        account: (u32, &Ledger),
        place: &RemoteMemory<'_>,
        data: Vec<u8>,
    ) -> bool {
        if self.state.chance.is_some() {
            return false;
        }
        // Where the network fails, the long way meets it too.
        let mut transfer = Some(Transfer::of_buffer(rdma, data));
        matches!(
            self.state.start_access(account, Access::Write, place, &mut transfer),
            Some(Ok(()))
        )
    }
}

impl State {
    /// Starts an access to a peer's memory, as an operation on a window, and takes it then; nothing where there is no room yet. Who
    /// lent memory to it waits until it is over, whatever becomes of the peer.
    pub(crate) fn start_access(
        &mut self,
        (window, ledger): (u32, &Ledger),
        access: Access,
        place: &RemoteMemory<'_>,
        waiting: &mut Option<Transfer>,
    ) -> Option<Result<()>> {
        if let Some(gone) = self.gone(place.peer) {
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
            Accessing { transfer, operation: Operation { target: place.peer, window, number } }
        }));
        Some(Ok(()))
    }

    /// Takes out a window's accesses, to a target or to all, that will not be acknowledged: of a target that is gone, or of a window that
    /// is given up. They are to be dropped, which waits, once the engine is unlocked.
    #[must_use]
    pub(crate) fn take_accesses(&mut self, window: u32, target: Option<u32>) -> Vec<Accessing> {
        let is_on = |Accessing { operation, .. }: &Accessing| {
            operation.window == window && target.is_none_or(|target| target == operation.target)
        };
        let (taken, left) = std::mem::take(&mut self.accesses).into_iter().partition(is_on);
        self.accesses = left;
        taken
    }

    /// Acknowledges the accesses that are done; true if any has ended. One that failed has lost its peer, of which the link tells.
    #[inline]
    pub(super) fn end_accesses(&mut self) -> bool {
        // In line: each look comes by here, and most jobs have none.
        !self.accesses.is_empty() && self.end_some()
    }

    #[inline(never)]
    fn end_some(&mut self) -> bool {
        let (mut at, before) = (0, self.accesses.len());
        while let Some(access) = self.accesses.get(at) {
            if !access.transfer.is_over() {
                at += 1;
                continue;
            }
            let Accessing { transfer, operation } = self.accesses.swap_remove(at);
            let Operation { target, window, .. } = operation;
            let ledger = self.ledgers.get(&window).filter(|_| transfer.is_done());
            if let Some(Err(what)) = ledger.map(|ledger| ledger.acknowledge(target, 1)) {
                self.peer_erred(target, what);
            }
        }
        self.accesses.len() < before
    }
}
