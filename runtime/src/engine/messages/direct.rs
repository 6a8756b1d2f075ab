//! The receive of a call that waits, into one run of memory.
//!
//! Most receives are such. They need neither a place in the queue nor a landing: the message's
//! bytes are copied to where the call wants them. One such receive waits at a time. It comes after
//! all posted receives, which is right since the calls of other threads are unordered with its own.
//!
//! A message that matches it and can't just be copied, from an unlike rank say, goes to the
//! unexpected-message queue. Then the receive is disturbed, and its call goes on with a posted one.

use super::matching::Arrival;
use super::receive::{Room, Status};
use crate::error::Result;
use crate::memory::Span;
use crate::types::Compiled;

/// A receive into one run of memory.
#[derive(Clone, Copy)]
pub(crate) struct Direct {
    context: u32,
    /// `None` for any member of the communicator.
    sender: Option<u32>,
    /// `None` for any tag.
    tag: Option<i32>,
    room: Room,
}

impl Direct {
    /// A receive of a context from a process, or from any, into a run of `count` elements. Messages
    /// match by length, or have to have the signature of all elements.
    ///
    /// # Errors
    /// TYPE for too many elements.
    #[inline]
    pub(crate) fn new(
        context: u32,
        (sender, tag): (Option<u32>, Option<i32>),
        (datatype, count, bytes): (&Compiled, u64, Span),
        by_length: bool,
    ) -> Result<Direct> {
        let signature = if by_length { None } else { Some(datatype.repeated(count)?) };
        let room = Room { bytes, count, items: datatype.items(), signature };
        Ok(Direct { context, sender, tag, room })
    }

    pub(crate) fn context(&self) -> u32 {
        self.context
    }

    /// `None` for any tag.
    pub(crate) fn tag(&self) -> Option<i32> {
        self.tag
    }

    /// The only sender, if there can be only one.
    pub(crate) fn sender(&self) -> Option<u32> {
        self.sender
    }

    /// Only members of a communicator send in its contexts.
    #[inline]
    pub(super) fn matches(&self, arrival: &Arrival) -> bool {
        self.context == arrival.context
            && self.sender.is_none_or(|sender| sender == arrival.peer)
            && self.tag.is_none_or(|tag| tag == arrival.tag)
    }

    /// Copies the data of a message that is all here, if they are whole elements of a like rank
    /// that match and have room.
    #[inline]
    pub(super) fn take(&self, arrival: &Arrival, data: &[u8]) -> Option<Status> {
        self.room.take(arrival, data)
    }
}

/// The waiting direct receive, if there is one.
#[derive(Default)]
pub(super) enum Waiting {
    #[default]
    None,
    /// No message has matched it.
    For(Direct),
    /// It has ended.
    Ended(Status),
    /// Its call has to look again, and to post a receive.
    Disturbed,
}

impl Waiting {
    /// Makes the call of a receive that waits look again.
    pub(super) fn disturb(&mut self) {
        if let Waiting::For(_) = self {
            *self = Waiting::Disturbed;
        }
    }

    /// Gives a message with its data to the receive, if it matches that. Returns whether the
    /// receive has taken it.
    #[inline]
    pub(super) fn take(&mut self, arrival: &Arrival, data: &[u8]) -> bool {
        let Waiting::For(direct) = self else { return false };
        if !direct.matches(arrival) {
            return false;
        }
        let status = direct.take(arrival, data);
        *self = status.map_or(Waiting::Disturbed, Waiting::Ended);
        status.is_some()
    }

    /// Disturbs the receive if a message matches it whose data aren't here.
    pub(super) fn announce(&mut self, arrival: &Arrival) {
        if matches!(self, Waiting::For(direct) if direct.matches(arrival)) {
            *self = Waiting::Disturbed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::peers::ByLength;
    use super::*;

    const SIGNATURE: u128 = 77;

    fn arrival(peer: u32, tag: i32, length: u64) -> Arrival {
        let (context, signature) = (4, SIGNATURE);
        let (by_length, is_native) = (ByLength::Always, true);
        Arrival { peer, context, tag, signature, length, by_length, is_native }
    }

    /// A receive of up to three elements of two basic elements and four bytes.
    fn direct(bytes: Span, signature: Option<u128>) -> Direct {
        let room = Room { bytes, count: 3, items: 2, signature };
        Direct { context: 4, sender: Some(1), tag: None, room }
    }

    fn received(arrival: Arrival, signature: Option<u128>) -> (Option<Status>, [u8; 12]) {
        let (mut room, data) = ([0; 12], [9; 16]);
        let status = Span::with_bytes(&mut room, |span| {
            direct(span, signature).take(&arrival, &data[..arrival.length as usize])
        });
        (status, room)
    }

    fn status(count: i64) -> Status {
        Status { source: 1, tag: 5, count, elements: 2 * count, bytes: 4 * count as u64 }
    }

    #[test]
    fn whole_elements_are_copied_and_counted() {
        for count in 0..=3 {
            let (got, room) = received(arrival(1, 5, 4 * count as u64), None);
            assert_eq!(got, Some(status(count)));
            assert!(
                room.iter().zip(0..).all(|(byte, at)| *byte == if at < 4 * count { 9 } else { 0 })
            );
        }
    }

    #[test]
    fn messages_that_need_a_closer_look_are_not_copied() {
        let unlike = Arrival { is_native: false, ..arrival(1, 5, 12) };
        let strict = Arrival { by_length: ByLength::Never, ..arrival(1, 5, 12) };
        // A part of an element, a message that is too long, one of an unlike rank, and one whose
        // signature has to be compared.
        for message in [arrival(1, 5, 6), arrival(1, 5, 16), unlike, strict] {
            assert_eq!(received(message, None), (None, [0; 12]));
        }
        assert_eq!(received(strict, Some(SIGNATURE)), (Some(status(3)), [9; 12]));
        let short = Arrival { length: 8, ..strict };
        assert_eq!(received(strict, Some(SIGNATURE + 1)).0, None);
        assert_eq!(received(short, Some(SIGNATURE)).0, None);
    }

    #[test]
    fn a_waiting_receive_takes_the_first_message_that_matches() {
        let mut room = [0; 12];
        Span::with_bytes(&mut room, |span| {
            let waits = || Waiting::For(direct(span, None));
            let mut waiting = waits();
            let others = [arrival(2, 5, 12), Arrival { context: 6, ..arrival(1, 5, 12) }];
            for other in others {
                assert!(!waiting.take(&other, &[9; 12]));
                waiting.announce(&other);
                assert!(matches!(waiting, Waiting::For(_)));
            }
            assert!(waiting.take(&arrival(1, 5, 12), &[8; 12]));
            assert!(!waiting.take(&arrival(1, 5, 12), &[7; 12]));
            assert!(matches!(waiting, Waiting::Ended(ended) if ended == status(3)));
            // What can't be copied makes the call look again.
            let mut disturbed = [waits(), waits(), waits()];
            assert!(!disturbed[0].take(&arrival(1, 5, 6), &[7; 6]));
            disturbed[1].announce(&arrival(1, 5, 1 << 20));
            disturbed[2].disturb();
            assert!(disturbed.iter().all(|waiting| matches!(waiting, Waiting::Disturbed)));
        });
        assert_eq!(room, [8; 12]);
    }
}
