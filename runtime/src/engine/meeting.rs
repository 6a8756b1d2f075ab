//! Meetings of a group of ranks by messages, which need no memory that they share: dissemination, as over the flags of a
//! [barrier](crate::barrier).
//!
//! 1. In round k of its e-th meeting, rank r tells rank r - 2^k so, and waits until rank r + 2^k has told it of as many: the
//!    peers to which an allgather sends, so that a rank has few.
//! 2. After ceil(log2 n) rounds it has, directly or not, heard of everyone.
//!
//! A rank that has entered a meeting goes on with it whenever frames arrive, whoever takes them in. What a rank tells another
//! comes from one round only, so it is enough to count.

use super::State;
use super::outbox::Outgoing;
use crate::barrier::rounds;
use crate::group::Group;
use crate::numbers::Numbers;
use crate::wire::{Brief, Kind};

/// What ranks meet on. Two of one number have no member in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Venue {
    Communicator(u32),
    Window(u32),
    /// Where a window was that nobody reaches any more.
    Closed(u32),
}

impl Venue {
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
    own: Numbers<Venue, Entered>,
    /// How many of its meetings a peer has told this rank of.
    heard: Numbers<(Venue, u32), u64>,
}

/// The last meeting at a venue that this rank has entered.
struct Entered {
    group: Group,
    rank: u32,
    number: u64,
    round: u32,
}

impl Entered {
    /// The process that is told of this round.
    fn told(&self) -> u32 {
        let size = self.group.size() as u32;
        self.group.process((self.rank + size - (1 << self.round)) % size)
    }

    /// The process that this rank hears from in this round; none once all rounds are over.
    fn awaited(&self) -> Option<u32> {
        let size = self.group.size() as u32;
        let goes_on = self.round < rounds(size);
        goes_on.then(|| self.group.process((self.rank + (1 << self.round)) % size))
    }
}

impl State {
    /// Enters the next meeting of a group, to which this process belongs as `rank`.
    pub(crate) fn enter_meeting(&mut self, venue: Venue, group: &Group, rank: u32) {
        let new = || Entered { group: group.clone(), rank, number: 0, round: 0 };
        let meeting = self.meetings.own.entry(venue).or_insert_with(new);
        meeting.number += 1;
        meeting.round = 0;
        self.tell_of_meeting(venue);
        self.advance_meeting(venue);
    }

    /// Whom this rank waits for in the meeting that it entered last; none once it is over.
    pub(crate) fn awaited_in_meeting(&self, venue: Venue) -> Option<u32> {
        self.meetings.own.get(&venue).and_then(Entered::awaited)
    }

    /// Nobody meets here any more.
    pub(crate) fn close_venue(&mut self, venue: Venue) {
        self.meetings.own.remove(&venue);
        self.meetings.heard.retain(|(of, _), _| *of != venue);
    }

    fn tell_of_meeting(&mut self, venue: Venue) {
        let Some(meeting) = self.meetings.own.get(&venue) else { return };
        if meeting.awaited().is_some() {
            let (context, operation) = venue.to_wire();
            let brief = Brief { kind: Kind::Meet, context, operation, value: meeting.number };
            self.push(meeting.told(), Outgoing::brief(brief));
        }
    }

    /// Goes on as far as the others allow.
    fn advance_meeting(&mut self, venue: Venue) {
        while let Some(meeting) = self.meetings.own.get_mut(&venue) {
            let Some(awaited) = meeting.awaited() else { return };
            if self.meetings.heard.get(&(venue, awaited)).copied().unwrap_or(0) < meeting.number {
                return;
            }
            meeting.round += 1;
            self.tell_of_meeting(venue);
        }
    }

    pub(super) fn handle_meet(&mut self, peer: u32, brief: &Brief) -> Result<(), String> {
        let Brief { context, operation, value, .. } = *brief;
        let venue = Venue::from_wire(context, operation);
        let venue = venue.ok_or_else(|| format!("a meeting of kind {operation}"))?;
        let heard = self.meetings.heard.entry((venue, peer)).or_default();
        if value != *heard + 1 {
            return Err(format!("meeting {value} after {heard}"));
        }
        *heard = value;
        self.advance_meeting(venue);
        Ok(())
    }
}
