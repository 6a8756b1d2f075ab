//! Communicators that are revoked: their calls fail at all members, so that no member waits for one
//! that has given up after a failure (the MPI Forum's proposal of fault tolerance,
//! MPIX_Comm_revoke).
//!
//! The first `Revoke` of a communicator that a rank gets, it sends to all other members too. So all
//! survivors learn it if one of them does, though the rank that revoked it fails meanwhile.

use std::sync::Weak;

use super::outbox::Outbox;
use crate::group::Group;
use crate::numbers::Numbers;
use crate::wire::{Brief, Kind};

/// An object whose calls fail once it is revoked.
pub(crate) trait Revocable: Send + Sync {
    /// Lets later calls fail.
    fn revoke(&self);
}

/// The communicators of a rank.
#[derive(Default)]
pub(super) struct Revoked {
    /// Those that aren't freed, with their members.
    open: Numbers<u32, (Group, Weak<dyn Revocable>)>,
}

impl Revoked {
    /// Notes a communicator that is made.
    pub(super) fn open(&mut self, communicator: u32, members: Group, object: Weak<dyn Revocable>) {
        self.open.insert(communicator, (members, object));
    }

    /// Forgets a communicator that is freed.
    pub(super) fn close(&mut self, communicator: u32) {
        self.open.remove(&communicator);
    }

    /// The members of a communicator that isn't freed.
    pub(super) fn members(&self, communicator: u32) -> Option<&Group> {
        self.open.get(&communicator).map(|(members, _)| members)
    }

    /// Lets calls on a revoked communicator fail, and tells its other members of it.
    pub(super) fn tell(&self, communicator: u32, me: u32, out: &mut Outbox) {
        let Some((members, object)) = self.open.get(&communicator) else { return };
        if let Some(object) = object.upgrade() {
            object.revoke();
        }
        let revoke = Brief { kind: Kind::Revoke, context: communicator, operation: 0, value: 0 };
        let others = members.processes().iter().filter(|&&peer| peer != me);
        others.for_each(|&peer| out.push_brief(peer, revoke));
    }
}
