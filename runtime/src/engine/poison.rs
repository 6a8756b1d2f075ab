//! Windows that are poisoned: a rank panicked within an epoch of the window, and went on. Its calls
//! no longer pair off with those of the other ranks, so no rank waits for another one there.

use super::outbox::Outbox;
use super::peers::Peers;
use crate::error::{Error, ErrorKind};
use crate::group::Group;
use crate::numbers::Numbers;
use crate::wire::{Brief, Kind};

/// The poisoned windows that this rank knows.
#[derive(Default)]
pub(super) struct Poisoned {
    /// The rank that panicked and its announcements, by the window. An entry stays: numbers of
    /// windows are never used again.
    windows: Numbers<u32, (u32, u64)>,
    /// Windows that this rank has poisoned, of which their other ranks don't know yet.
    untold: Vec<(u32, Group)>,
}

impl Poisoned {
    /// The error of a call that waits for another rank of a window, if the window is poisoned.
    pub(super) fn error(&self, window: u32) -> Option<Error> {
        self.windows.get(&window).map(|&(by, _)| ErrorKind::WindowPoisoned { by }.into())
    }

    /// The number of announcements that the rank that panicked has counted on the communicator of
    /// a window, including that of the fence that it will not make.
    pub(super) fn announced(&self, window: u32) -> u64 {
        self.windows.get(&window).map_or(0, |&(_, announced)| announced)
    }

    /// Takes in a `Poison`.
    pub(super) fn handle_poison(&mut self, peer: u32, window: u32, announced: u64, peers: &Peers) {
        self.windows.entry(window).or_insert((peer, announced));
        peers.note_loss();
    }

    /// Notes that this rank has poisoned a window of a group.
    pub(super) fn note(&mut self, window: u32, announced: u64, group: &Group, peers: &Peers) {
        self.handle_poison(peers.me().rank, window, announced, peers);
        self.untold.push((window, group.clone()));
    }

    /// Sends the news to the other ranks of the windows that this rank has poisoned.
    pub(super) fn tell(&mut self, peers: &Peers, out: &mut Outbox) {
        for (window, group) in std::mem::take(&mut self.untold) {
            let value = self.announced(window);
            let poison = Brief { kind: Kind::Poison, context: window, operation: 0, value };
            let others = group.processes().iter().filter(|&&peer| peer != peers.me().rank);
            others.for_each(|&peer| out.push_brief(peer, poison));
        }
    }
}
