//! The loss of a peer or of the link, and its effect on all that waits for the peer.

use longshore_transport::{LinkError, RankState};

use super::State;
use super::peers::Gone;
use super::streams::Sink;
use crate::error::ErrorKind;

impl State {
    /// Takes in a new state of a rank. Frames that the rank has sent are taken in later; nothing
    /// can be sent to it any more.
    pub(crate) fn handle_rank_state(&mut self, rank: u32, state: RankState) {
        if state.is_gone() && rank != self.peers.me().rank {
            self.lose_peer(rank, Gone::Ended(state));
        }
    }

    /// Loses a peer that broke the protocol.
    #[cold]
    pub(super) fn peer_erred(&mut self, peer: u32, what: String) {
        let why = ErrorKind::Protocol { peer, what }.to_string();
        self.lose_peer(peer, Gone::Failed(why));
    }

    /// Loses a peer to which the link has failed.
    pub(super) fn link_failed(&mut self, peer: u32, error: &LinkError) {
        let gone = match error {
            LinkError::PeerGone { state, .. } => Gone::Ended(*state),
            error => Gone::Failed(error.to_string()),
        };
        self.lose_peer(peer, gone);
    }

    /// Marks a peer as gone, and ends all that waits for it with an error.
    fn lose_peer(&mut self, rank: u32, gone: Gone) {
        if self.peers.is_gone(rank) {
            return;
        }
        self.peers.lose(rank, gone.clone());
        let survives = self.peers.me().survives;
        let gone = || gone.error(rank, survives);
        // The data of this stream that have arrived are in place. The rest never comes.
        let stream = self.streams.take(rank);
        for outgoing in self.outbox.close(rank) {
            self.finish_outgoing(outgoing, Err(gone()));
        }
        self.operations.target_gone(rank, gone);
        self.messages.peer_gone(rank, gone);
        self.locks.forget_peer(rank, self.target.exposures());
        self.leave_agreements(rank);
        if let Some(Sink::Receive(receiving)) = stream.map(|stream| stream.sink) {
            self.messages.finish_receive(*receiving, Some(gone()));
        }
    }
}
