//! What stands with each peer, as far as this rank can tell by itself; what the job knows of them is in the segment.

use std::time::{Duration, Instant};

use super::connection::Broken;
use crate::protocol::challenge::Greeting;
use crate::segment::{Cause, RankState, Segment};

/// How long a peer whose connection ended without a word may be silent before it is taken for lost: the launcher, where there is
/// one, tells meanwhile what became of it.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

/// All ranks of the job, as one of them sees them.
pub(super) struct Peers {
    pub rank: u32,
    pub segment: Segment,
    /// By rank.
    all: Vec<Standing>,
    /// How many are silent: as long as none is, nobody looks for those that are it too long.
    silent: usize,
}

#[derive(Debug, Clone, Default)]
struct Standing {
    /// Since when, if a connection with it ended without a word.
    silent: Option<Instant>,
    /// It has proved itself on a connection that it made.
    has_joined: bool,
    /// This rank takes it for dead: no connection leads to it, or comes from it.
    is_given_up: bool,
}

impl Peers {
    pub(super) fn new(rank: u32, segment: Segment, size: usize) -> Peers {
        Peers { rank, segment, all: vec![Standing::default(); size], silent: 0 }
    }

    pub(super) fn size(&self) -> u32 {
        self.all.len() as u32
    }

    /// Whether the job knows that it says nothing more.
    pub(super) fn is_gone(&self, peer: u32) -> bool {
        self.segment.rank_state(peer).is_gone()
    }

    pub(super) fn is_silent(&self, peer: u32) -> bool {
        self.all[peer as usize].silent.is_some()
    }

    pub(super) fn is_given_up(&self, peer: u32) -> bool {
        self.all[peer as usize].is_given_up
    }

    /// Whether a greeting is one that this rank may get.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn expect(&self, greeting: &Greeting) -> Result<(), String> {
        let (&Greeting { from, to, .. }, rank, size) = (greeting, self.rank, self.size());
        if to != rank || from >= size {
            return Err(format!(
                "a greeting of rank {from} to rank {to}, here is {rank} of {size}"
            ));
        }
        let standing = &self.all[from as usize];
        match standing.has_joined || standing.is_given_up {
            true => Err(format!("a second connection of rank {from}")),
            false => Ok(()),
        }
    }

    /// A peer has proved itself. False if it had before.
    pub(super) fn join(&mut self, peer: u32) -> bool {
        !std::mem::replace(&mut self.all[peer as usize].has_joined, true)
    }

    /// What a peer sent before one of its connections ended still comes.
    pub(super) fn hear(&mut self, peer: u32) {
        if let Some(since) = &mut self.all[peer as usize].silent {
            *since = Instant::now();
        }
    }

    /// A peer's last word.
    pub(super) fn part(&self, peer: u32, state: RankState) {
        if !self.is_gone(peer) {
            self.segment.mark(peer, state);
        }
    }

    /// A peer that can't be reached any more, which said nothing of its end.
    pub(super) fn lose(&mut self, peer: u32, why: &Broken) {
        if !self.is_gone(peer) {
            tracing::debug!(rank = self.rank, peer, %why, "a connection ended");
            self.miss(peer);
        }
    }

    /// A peer is silent from here on, if it isn't already.
    pub(super) fn miss(&mut self, peer: u32) {
        let silent = &mut self.all[peer as usize].silent;
        if silent.is_none() {
            *silent = Some(Instant::now());
            self.silent += 1;
        }
    }

    /// This rank takes a peer for dead. False if it did before.
    pub(super) fn give_up(&mut self, peer: u32) -> bool {
        !std::mem::replace(&mut self.all[peer as usize].is_given_up, true)
    }

    /// Whether one has been silent too long.
    pub(super) fn is_any_overdue(&self) -> bool {
        self.silent > 0 && self.all.iter().any(Standing::is_overdue)
    }

    /// Takes those for lost of whom nobody has said anything, nor they themselves.
    pub(super) fn mark_lost(&mut self) {
        let Self { rank, segment, all, silent } = self;
        for (peer, standing) in (0..).zip(all).filter(|(_, one)| one.is_overdue()) {
            if !segment.rank_state(peer).is_gone() {
                tracing::warn!(rank, peer, "lost a peer");
                segment.mark(peer, RankState::Dead(Cause::Lost));
            }
            standing.silent = None;
            *silent -= 1;
        }
    }
}

impl Standing {
    fn is_overdue(&self) -> bool {
        self.silent.is_some_and(|since| since.elapsed() > SILENCE)
    }
}
