//! Meetings: barriers of a group of ranks by messages, which need no memory that they share. The
//! algorithm is dissemination, as over the flags of a [barrier](crate::barrier).
//!
//! 1. In round k of its e-th meeting, rank r sends `Meet` with the number e to rank r - 2^k. Then
//!    it waits until rank r + 2^k has sent it e such frames. These are the peers to which an
//!    allgather sends, so a rank has few connections.
//! 2. After ceil(log2 n) rounds every rank has heard from every other one, directly or through
//!    others.
//!
//! A rank that has entered a meeting advances in it whenever frames arrive, in any call. All
//! `Meet` frames between two ranks belong to one round, so it is enough to count them.

use super::context::{Channel, Context};
use super::outbox::Outbox;
use crate::barrier::rounds;
use crate::group::Group;
use crate::numbers::Numbers;
use crate::wire::{Brief, Kind};

/// The object on which ranks meet. Two venues of one number have no member in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Venue {
    Communicator(u32),
    Window(u32),
    /// A window that no rank reaches any more.
    Closed(u32),
}

impl Venue {
    /// A context of the communicator, at one.
    pub(crate) fn context(self) -> Option<u32> {
        match self {
            Venue::Communicator(number) => Some(Context::new(number)?.of(Channel::Calls)),
            Venue::Window(_) | Venue::Closed(_) => None,
        }
    }

    fn to_wire(self) -> (u32, u64) {
        match self {
            Venue::Communicator(number) => (number, 0),
            Venue::Window(number) => (number, 1),
            Venue::Closed(number) => (number, 2),
        }
    }

    fn from_wire(number: u32, kind: u64) -> Option<Venue> {
        match kind {
            0 => Some(Venue::Communicator(number)),
            1 => Some(Venue::Window(number)),
            2 => Some(Venue::Closed(number)),
            _ => None,
        }
    }
}

/// All meetings of a rank.
#[derive(Default)]
pub(super) struct Meetings {
    entered: Numbers<Venue, Meeting>,
    /// The number of `Meet` frames that a peer has sent for a venue.
    heard: Numbers<(Venue, u32), u64>,
}

/// The last meeting at a venue that this rank has entered.
struct Meeting {
    group: Group,
    rank: u32,
    number: u64,
    round: u32,
}

impl Meeting {
    /// The process that this rank sends to in this round.
    fn told(&self) -> u32 {
        let size = self.group.size() as u32;
        self.group.process((self.rank + size - (1 << self.round)) % size)
    }

    /// The process that this rank hears from in this round; `None` once all rounds are over.
    fn awaited(&self) -> Option<u32> {
        let size = self.group.size() as u32;
        let goes_on = self.round < rounds(size);
        goes_on.then(|| self.group.process((self.rank + (1 << self.round)) % size))
    }

    /// Sends this round's frame, unless all rounds are over.
    fn tell(&self, venue: Venue, out: &mut Outbox) {
        if self.awaited().is_some() {
            let (context, operation) = venue.to_wire();
            let brief = Brief { kind: Kind::Meet, context, operation, value: self.number };
            out.push_brief(self.told(), brief);
        }
    }
}

impl Meetings {
    /// Enters the next meeting of a group, to which this process belongs as `rank`.
    pub(super) fn enter(&mut self, venue: Venue, group: &Group, rank: u32, out: &mut Outbox) {
        let new = || Meeting { group: group.clone(), rank, number: 0, round: 0 };
        let meeting = self.entered.entry(venue).or_insert_with(new);
        meeting.number += 1;
        meeting.round = 0;
        meeting.tell(venue, out);
        self.advance(venue, out);
    }

    /// The rank for which this one waits in the last meeting at a venue; `None` once the meeting is
    /// over.
    pub(super) fn awaited(&self, venue: Venue) -> Option<u32> {
        self.entered.get(&venue).and_then(Meeting::awaited)
    }

    /// Forgets a venue, where no rank meets any more.
    pub(super) fn close(&mut self, venue: Venue) {
        self.entered.remove(&venue);
        self.heard.retain(|(of, _), _| *of != venue);
    }

    /// Takes in a `Meet`.
    ///
    /// # Errors
    /// The kind of venue is unknown, or the number isn't the next one.
    pub(super) fn handle_meet(
        &mut self,
        peer: u32,
        brief: &Brief,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let Brief { context, operation, value, .. } = *brief;
        let venue = Venue::from_wire(context, operation);
        let venue = venue.ok_or_else(|| format!("a meeting of kind {operation}"))?;
        let heard = self.heard.entry((venue, peer)).or_default();
        if value != *heard + 1 {
            return Err(format!("meeting {value} after {heard}"));
        }
        *heard = value;
        self.advance(venue, out);
        Ok(())
    }

    /// Advances by as many rounds as the frames of others allow.
    fn advance(&mut self, venue: Venue, out: &mut Outbox) {
        let Some(meeting) = self.entered.get_mut(&venue) else { return };
        while let Some(awaited) = meeting.awaited() {
            if self.heard.get(&(venue, awaited)).copied().unwrap_or(0) < meeting.number {
                return;
            }
            meeting.round += 1;
            meeting.tell(venue, out);
        }
    }
}
