//! What stands with each peer, as far as this rank can tell by itself; what the job knows of them is in the segment.

use std::collections::HashMap;
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
    /// Whose connection ended without a word, and since when.
    silent: HashMap<u32, Instant>,
}

#[derive(Debug, Clone, Default)]
struct Standing {
    /// It has proved itself on a connection that it made.
    has_joined: bool,
    /// It has said to this rank that it says nothing more.
    has_parted: bool,
    /// This rank takes it for dead: no connection leads to it, or comes from it.
    is_given_up: bool,
}

impl Peers {
    pub(super) fn new(rank: u32, segment: Segment, size: usize) -> Peers {
        Peers { rank, segment, all: vec![Standing::default(); size], silent: HashMap::new() }
    }

    pub(super) fn size(&self) -> u32 {
        self.all.len() as u32
    }

    /// Whether the job knows that it says nothing more.
    pub(super) fn is_gone(&self, peer: u32) -> bool {
        self.segment.rank_state(peer).is_gone()
    }

    pub(super) fn is_silent(&self, peer: u32) -> bool {
        self.silent.contains_key(&peer)
    }

    pub(super) fn is_given_up(&self, peer: u32) -> bool {
        self.all[peer as usize].is_given_up
    }

    /// Whether a guest that says, or has proved, to be a peer may still have something to say.
    pub(super) fn may_speak(&self, peer: u32, is_proved: bool) -> bool {
        let standing = &self.all[peer as usize];
        !standing.has_parted && (is_proved || !standing.has_joined)
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
        if let Some(since) = self.silent.get_mut(&peer) {
            *since = Instant::now();
        }
    }

    /// A peer's last word.
    pub(super) fn part(&mut self, peer: u32, state: RankState) {
        self.all[peer as usize].has_parted = true;
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
        self.silent.entry(peer).or_insert_with(Instant::now);
    }

    /// This rank takes a peer for dead. False if it did before.
    pub(super) fn give_up(&mut self, peer: u32) -> bool {
        !std::mem::replace(&mut self.all[peer as usize].is_given_up, true)
    }

    /// Whether one has been silent too long.
    pub(super) fn is_any_overdue(&self) -> bool {
        self.silent.values().any(is_overdue)
    }

    /// Takes those for lost of whom nobody has said anything, nor they themselves.
    pub(super) fn mark_lost(&mut self) {
        let Self { rank, segment, silent, .. } = self;
        silent.retain(|&peer, since| {
            let is_lost = is_overdue(since);
            if is_lost && !segment.rank_state(peer).is_gone() {
                tracing::warn!(rank, peer, "lost a peer");
                segment.mark(peer, RankState::Dead(Cause::Lost));
            }
            !is_lost
        });
    }
}

fn is_overdue(since: &Instant) -> bool {
    since.elapsed() > SILENCE
}
