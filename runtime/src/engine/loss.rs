//! Peers that are gone and links that have failed, and what becomes of all that waits for them.

use std::sync::atomic::Ordering;

use longshore_transport::{LinkError, RankState};

use super::State;
use super::peer::Gone;
use crate::error::{Error, ErrorKind};
use crate::group::Group;

impl State {
    /// The link has failed: nothing more comes that this rank could wait for.
    #[cold]
    pub(super) fn link_broke(&mut self, error: LinkError) {
        if self.broken.is_none() {
            tracing::error!(rank = self.me.rank, %error, "the link has failed");
            self.broken = Some(error);
        }
    }

    /// Whether the link has failed.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// The error of a call that would wait, where the link has failed.
    pub(crate) fn broken(&self) -> Option<Error> {
        self.broken.as_ref().map(|error| ErrorKind::from(error.clone()).into())
    }

    /// The error of a call that needs a rank which is gone.
    pub(crate) fn gone(&self, rank: u32) -> Option<Error> {
        let gone = self.peers.get(rank as usize)?.gone.as_ref()?;
        Some(ErrorKind::Gone { rank, state: gone.why.clone() }.into())
    }

    /// The job knows something new of a rank.
    pub(crate) fn handle_rank_state(&mut self, rank: u32, state: RankState) {
        if state.is_gone() && rank != self.me.rank {
            // What it sent before is still taken in; nothing can be sent to it any more.
            let finalized = state == RankState::Finalized;
            self.peer_gone(rank, Gone { why: state.to_string(), finalized });
        }
    }

    /// The error of a call that all ranks of a group have to join, where one is lost: one that has finalized has joined.
    pub(crate) fn dead_among(&self, group: &Group) -> Option<Error> {
        if !self.bereft.load(Ordering::Relaxed) {
            return None;
        }
        let died = |rank: u32| {
            let gone = self.peers.get(rank as usize)?.gone.as_ref()?;
            if gone.finalized { None } else { self.gone(rank) }
        };
        group.processes().iter().find_map(|&rank| died(rank))
    }

    /// A peer sent what no peer sends.
    #[cold]
    pub(super) fn peer_erred(&mut self, peer: u32, what: String) {
        let why = ErrorKind::Protocol { peer, what }.to_string();
        self.peer_gone(peer, Gone { why, finalized: false });
    }

    pub(super) fn link_failed(&mut self, peer: u32, error: &LinkError) {
        let (why, finalized) = match error {
            LinkError::PeerGone { state, .. } => {
                (state.to_string(), *state == RankState::Finalized)
            }
            error => (error.to_string(), false),
        };
        self.peer_gone(peer, Gone { why, finalized });
    }

    /// Lets go of everything that waits for a peer.
    pub(super) fn peer_gone(&mut self, rank: u32, gone: Gone) {
        let peer = &mut self.peers[rank as usize];
        if peer.gone.is_some() {
            return;
        }
        let why = gone.why.clone();
        match gone.finalized {
            true => tracing::debug!(rank = self.me.rank, peer = rank, "a peer has finalized"),
            false => tracing::warn!(rank = self.me.rank, peer = rank, why, "lost a peer"),
        }
        if !gone.finalized {
            self.bereft.store(true, Ordering::Relaxed);
            self.dead.push(rank);
        }
        peer.gone = Some(gone);
        let outbox = std::mem::take(&mut peer.outbox);
        // Of a stream under way, what had arrived is in place, and the rest never comes.
        let cut = self.take_stream(rank).into_receiving();
        let gone = |rank| Error::from(ErrorKind::Gone { rank, state: why.clone() });
        for outgoing in outbox {
            self.stream_ended(rank, outgoing.into_purpose(), Err(gone(rank)));
        }
        self.gets.give_up(|operation| operation.target == rank, || gone(rank));
        self.tickets.give_up(|operation| operation.target == rank, || gone(rank));
        for ledger in self.ledgers.values() {
            ledger.target_gone(rank, || gone(rank));
        }
        self.mail.peer_gone(rank, || gone(rank));
        self.forget_locks(|_, of| of == rank);
        if let Some(receiving) = cut {
            self.mail.received(receiving, Some(gone(rank)));
        }
    }
}
