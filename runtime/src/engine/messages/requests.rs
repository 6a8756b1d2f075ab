//! The sends and receives of a rank by number: those under way, and the outcomes of those that have
//! ended.
//!
//! Each has a slot. Its number is the place of the slot with the slot's generation above it. The
//! generation grows whenever the slot is freed, so the number of a request names no later one.

use super::receive::{Delivery, Landing, Status};
use crate::error::Result;

/// The sends and receives.
#[derive(Default)]
pub(super) struct Requests {
    slots: Vec<Slot>,
    /// The places of the free slots.
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    request: Request,
}

enum Request {
    /// None: the slot is free.
    None,
    /// A send under way.
    Sending,
    /// A send under way whose end no call will ask for.
    Forgotten,
    Sent(Result<()>),
    /// A receive that no message has matched.
    Posted(Landing),
    /// A receive under way, or a message that a probe has taken out of the queue.
    Receiving,
    Received(Result<Delivery>),
}

impl Slot {
    /// Takes the request out. Its number names nothing any more.
    #[inline]
    fn free(&mut self) -> Request {
        self.generation = self.generation.wrapping_add(1);
        std::mem::replace(&mut self.request, Request::None)
    }
}

impl Requests {
    /// Numbers a send.
    pub(super) fn start_send(&mut self) -> u64 {
        self.insert(Request::Sending)
    }

    /// Numbers a receive.
    #[inline]
    pub(super) fn start_receive(&mut self) -> u64 {
        self.insert(Request::Receiving)
    }

    /// Numbers a receive that no message has matched.
    #[inline]
    pub(super) fn post(&mut self, landing: Landing) -> u64 {
        self.insert(Request::Posted(landing))
    }

    /// Takes the landing of a receive that a message has matched.
    #[inline]
    pub(super) fn take_landing(&mut self, number: u64) -> Option<Landing> {
        let slot = self.slot_mut(number)?;
        let Request::Posted(_) = slot.request else { return None };
        match std::mem::replace(&mut slot.request, Request::Receiving) {
            Request::Posted(landing) => Some(landing),
            _ => None,
        }
    }

    /// Ends a receive that no message has matched, by what `receive` makes of its landing.
    #[inline]
    pub(super) fn land(&mut self, number: u64, receive: impl FnOnce(&Landing) -> Result<Delivery>) {
        if let Some(slot) = self.slot_mut(number) {
            if let Request::Posted(landing) = &slot.request {
                slot.request = Request::Received(receive(landing));
            }
        }
    }

    /// Numbers a receive that has ended.
    pub(super) fn receive_at_once(&mut self, outcome: Result<Delivery>) -> u64 {
        self.insert(Request::Received(outcome))
    }

    /// Ends a send. Its outcome is kept, unless it is forgotten.
    pub(super) fn end_send(&mut self, number: u64, outcome: Result<()>) {
        let Some(slot) = self.slot_mut(number) else { return };
        match slot.request {
            Request::Sending => slot.request = Request::Sent(outcome),
            Request::Forgotten => _ = self.remove(number),
            _ => {}
        }
    }

    /// Ends a receive. Its outcome is kept, unless it is given up.
    #[inline]
    pub(super) fn end_receive(&mut self, number: u64, outcome: Result<Delivery>) {
        if let Some(slot) = self.slot_mut(number) {
            if let Request::Receiving | Request::Posted(_) = slot.request {
                slot.request = Request::Received(outcome);
            }
        }
    }

    /// Whether a send has ended.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        matches!(self.request(number), Some(Request::Sent(_)))
    }

    /// Whether a receive has ended.
    #[inline]
    pub(super) fn is_received(&self, number: u64) -> bool {
        matches!(self.request(number), Some(Request::Received(_)))
    }

    /// Takes the outcome of a send, if it has ended.
    pub(super) fn take_sent(&mut self, number: u64) -> Option<Result<()>> {
        if !self.is_sent(number) {
            return None;
        }
        match self.remove(number) {
            Request::Sent(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Takes the outcome of a receive, if it has ended.
    #[inline]
    pub(super) fn take_received(&mut self, number: u64) -> Option<Result<Delivery>> {
        let slot = self.slot_mut(number)?;
        let Request::Received(_) = slot.request else { return None };
        let Request::Received(outcome) = slot.free() else { return None };
        self.free.push(number as u32);
        Some(outcome)
    }

    /// Takes the status of a receive that has ended well, of whose message nothing else is kept.
    #[inline]
    pub(super) fn take_status(&mut self, number: u64) -> Option<Status> {
        let slot = self.slot_mut(number)?;
        let Request::Received(Ok(Delivery { status, bytes: None, known: None, .. })) = slot.request
        else {
            return None;
        };
        drop(slot.free());
        self.free.push(number as u32);
        Some(status)
    }

    /// Notes that no call will ask for the end of a request. A send under way goes on; its number
    /// is freed when it ends.
    pub(super) fn forget(&mut self, number: u64) {
        let Some(slot) = self.slot_mut(number) else { return };
        match slot.request {
            Request::Sending | Request::Forgotten => slot.request = Request::Forgotten,
            _ => _ = self.remove(number),
        }
    }

    /// Whether no send is under way, or has an outcome.
    #[cfg(test)]
    pub(super) fn remember_no_send(&self) -> bool {
        let is_send = |request: &Request| {
            matches!(request, Request::Sending | Request::Forgotten | Request::Sent(_))
        };
        !self.slots.iter().any(|slot| is_send(&slot.request))
    }

    #[inline]
    fn insert(&mut self, request: Request) -> u64 {
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.slots.push(Slot { generation: 1, request: Request::None });
                self.slots.len() as u32 - 1
            }
        };
        let slot = &mut self.slots[place as usize];
        slot.request = request;
        u64::from(slot.generation) << 32 | u64::from(place)
    }

    #[inline]
    fn request(&self, number: u64) -> Option<&Request> {
        let slot = self.slots.get(number as u32 as usize)?;
        (slot.generation == (number >> 32) as u32).then_some(&slot.request)
    }

    #[inline]
    fn slot_mut(&mut self, number: u64) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(number as u32 as usize)?;
        (slot.generation == (number >> 32) as u32).then_some(slot)
    }

    /// Frees the slot of a request.
    #[inline]
    fn remove(&mut self, number: u64) -> Request {
        let Some(slot) = self.slot_mut(number) else { return Request::None };
        let request = slot.free();
        self.free.push(number as u32);
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_number_names_no_later_request() {
        let mut requests = Requests::default();
        let first = requests.start_send();
        requests.end_send(first, Ok(()));
        assert!(requests.is_sent(first) && !requests.is_received(first));
        assert!(requests.take_sent(first).is_some_and(|outcome| outcome.is_ok()));
        let second = requests.receive_at_once(Err(ErrorKind::Collective.into()));
        assert!(requests.is_received(second) && !requests.is_received(first));
        assert_eq!((first as u32, first == second), (second as u32, false));
        requests.end_send(first, Ok(()));
        requests.forget(first);
        assert!(requests.take_sent(first).is_none() && requests.take_received(first).is_none());
        assert!(requests.take_received(second).is_some_and(|outcome| outcome.is_err()));
    }

    #[test]
    fn a_forgotten_send_is_freed_at_its_end() {
        let mut requests = Requests::default();
        let send = requests.start_send();
        requests.forget(send);
        assert!(!requests.remember_no_send());
        requests.end_send(send, Ok(()));
        assert!(requests.remember_no_send() && !requests.is_sent(send));
    }
}
