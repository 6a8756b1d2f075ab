//! Writes to registered memory of peers that the engine waits for: what an operation was that is alone on its way.

use std::sync::Arc;

use longshore_transport::{Access, Place, Rdma, Transfer};

use super::{Engine, Ledger, Operation, State};

/// Those under way.
pub(super) type Writes = Vec<(Transfer, Operation)>;

impl Engine {
    /// Starts to write `data` to a place, as an operation on a window; false if there is no room, or an adversary decides about
    /// operations, or the peer is gone.
    pub(crate) fn write(
        &mut self,
        rdma: &Arc<dyn Rdma>,
        (window, ledger): (u32, &Ledger),
        place: &Place<'_>,
        data: Vec<u8>,
    ) -> bool {
        let state = &mut self.state;
        if state.chance.is_some() || state.peers[place.peer as usize].gone.is_some() {
            return false;
        }
        let mut transfer = Transfer::of_buffer(rdma, data);
        // Where the network fails, the long way meets it too.
        let started = transfer.start(Access::Write, place).is_ok();
        if started {
            let number = ledger.issue(place.peer);
            state.writes.push((transfer, Operation { target: place.peer, window, number }));
        }
        started
    }
}

impl State {
    /// Acknowledges the writes that are done; true if any has ended. One that failed has lost its peer, of which the link tells.
    pub(super) fn end_writes(&mut self) -> bool {
        let mut ended = false;
        while let Some(at) = self.writes.iter().position(|(transfer, _)| transfer.is_over()) {
            ended = true;
            let (transfer, Operation { target, window, .. }) = self.writes.swap_remove(at);
            let ledger = self.ledgers.get(&window).filter(|_| transfer.is_done());
            if let Some(Err(what)) = ledger.map(|ledger| ledger.acknowledge(target, 1)) {
                self.peer_erred(target, what);
            }
        }
        ended
    }
}
