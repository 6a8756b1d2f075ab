//! The connections that peers make to this rank, and the received frames in the order in which they
//! are read.
//!
//! A *guest* is the other end of an accepted connection, until it has proved its membership by the
//! challenge.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::connection::{Broken, Effect, Inbound};
use super::handles::{Completion, Connection, Request};
use super::opening;
use super::peers::Peers;
use crate::link::{Consume, Frame, LinkError};
use crate::protocol::challenge::{Greeting, Key};
use crate::protocol::frame;
use crate::segment::RankState;

/// The most guests that name the same rank. A rank has one, and one more for each attempt that it
/// gave up and whose end isn't noticed yet.
const GUESTS: usize = 8;

/// The connections from peers.
pub(super) struct Inbox {
    key: Key,
    /// By the number of the endpoint.
    inbound: HashMap<usize, Inbound>,
    arrived: VecDeque<Arrived>,
    /// Endpoint and slot of the message whose last frame was read.
    current: Option<(usize, u8)>,
    pub drops: u64,
    read: Read,
}

/// An entry of the reading order.
enum Arrived {
    /// A frame of a message in a slot. The message's last frame gives the slot back.
    Frame {
        endpoint: usize,
        slot: u8,
        at: Range<usize>,
        is_last: bool,
    },
    Trouble(LinkError),
}

/// Releases nothing: `give_back` posts the slot again before the next frame is read.
struct Read;

impl Consume for Read {
    fn consume(&mut self) {}
}

impl Inbox {
    pub(super) fn new(key: Key) -> Inbox {
        let (inbound, arrived) = (HashMap::new(), VecDeque::new());
        Inbox { key, inbound, arrived, current: None, drops: 0, read: Read }
    }

    /// Decides on a request for a connection.
    ///
    /// Without a proof there is no connection, because the provider reads what comes over it before
    /// this rank does. Guests have no deadline, since a rank may compute for any time before its
    /// next call. A holder of the secret can make any number of greetings, so there is a limit to
    /// the guests that name the same rank.
    pub(super) fn admit(&mut self, request: Request, peers: &Peers) {
        let greeting = match self.requested(request.words(), peers) {
            Ok(greeting) => greeting,
            Err(why) => return self.drop_one(&why, peers),
        };
        let accepted = opening(peers.encrypts).and_then(|own| {
            Inbound::accept(request, greeting, own).map_err(|error| error.to_string())
        });
        match accepted {
            Ok(inbound) => {
                self.inbound.insert(inbound.endpoint.number(), inbound);
                self.limit_guests(greeting.from, peers);
            }
            Err(why) => self.drop_one(&why, peers),
        }
    }

    /// Drops the oldest guest that names a rank, if there are too many. A rank that connects again
    /// has given up its earlier attempts, so the newest is the one that counts.
    fn limit_guests(&mut self, from: u32, peers: &Peers) {
        let is_guest = |one: &Inbound| one.greeting.from == from && one.peer().is_none();
        let guests =
            || self.inbound.iter().filter(|(_, one)| is_guest(one)).map(|(number, _)| *number);
        if guests().count() > GUESTS {
            // Later endpoints have higher numbers.
            if let Some(oldest) = guests().min() {
                self.inbound.remove(&oldest);
                self.drop_one(&format!("more than {GUESTS} unproved from rank {from}"), peers);
            }
        }
    }

    /// Checks the bytes of a request. Returns the greeting that must follow.
    fn requested(&self, words: &[u8], peers: &Peers) -> Result<Greeting, String> {
        let greeting = self.key.requested(words)?;
        peers.expect(&greeting)?;
        if greeting.encrypts != peers.encrypts {
            let from = greeting.from;
            return Err(match peers.encrypts {
                true => format!("rank {from} doesn't encrypt its messages, and this rank does"),
                false => format!("rank {from} encrypts its messages, and this rank doesn't"),
            });
        }
        match self.inbound.values().any(|inbound| inbound.greeting == greeting) {
            true => Err(format!("a repeated request from rank {}", greeting.from)),
            false => Ok(greeting),
        }
    }

    fn drop_one(&mut self, why: &str, peers: &Peers) {
        self.drops += 1;
        tracing::warn!(rank = peers.rank, drops = self.drops, why, "dropped a connection");
    }

    /// Handles the end of an operation on one of these connections.
    pub(super) fn handle_completion(&mut self, completion: Completion, peers: &mut Peers) {
        let endpoint = completion.endpoint();
        let inbound = self.inbound.get_mut(&endpoint).filter(|inbound| !inbound.closed);
        let Some(inbound) = inbound else { return };
        let heard =
            inbound.handle_completion(completion, &self.key, |greeting| peers.expect(greeting));
        match heard {
            Ok(Effect::Nothing) => {}
            Ok(Effect::Joined(peer)) => {
                // Two guests may have been challenged as one rank at the same time. Both hold the
                // secret, so one is a fault of ours.
                if !peers.join(peer) {
                    let what = "a second proof of its membership".to_owned();
                    self.arrived.push_back(Arrived::Trouble(LinkError::Corrupt { peer, what }));
                }
                tracing::debug!(rank = peers.rank, peer, "accepted a connection");
            }
            Ok(Effect::Frames(slot, len)) => {
                if let Some(peer) = inbound.peer() {
                    peers.hear(peer);
                }
                let all = frame::frames(inbound.message(slot, len));
                self.arrived.extend(all.map(|at| {
                    let is_last = at.end == len;
                    Arrived::Frame { endpoint, slot, at, is_last }
                }));
            }
            Ok(Effect::Farewell(state)) => {
                if let Some(peer) = inbound.peer() {
                    peers.part(peer, state);
                }
            }
            Err(why) => self.lose(endpoint, &why, peers),
        }
    }

    pub(super) fn handle_end(&mut self, connection: Connection, why: &Broken, peers: &mut Peers) {
        let mut all = self.inbound.iter();
        if let Some((&number, _)) = all.find(|(_, one)| one.endpoint.connection() == connection) {
            self.lose(number, why, peers);
        }
    }

    fn lose(&mut self, number: usize, why: &Broken, peers: &mut Peers) {
        let inbound = self.inbound.get_mut(&number).filter(|inbound| !inbound.closed);
        let Some(inbound) = inbound else { return };
        inbound.closed = true;
        let Some(peer) = inbound.peer() else {
            self.inbound.remove(&number);
            return self.drop_one(&why.to_string(), peers);
        };
        if let Broken::Protocol(what) = why {
            let error = match peers.encrypts {
                true => peers.report_broken(peer, what),
                false => LinkError::Corrupt { peer, what: what.clone() },
            };
            self.report(error);
        }
        peers.lose(peer, why);
        self.retire(number);
    }

    /// Lets the rank read an error after the frames that have arrived.
    pub(super) fn report(&mut self, error: LinkError) {
        self.arrived.push_back(Arrived::Trouble(error));
    }

    /// Closes the chosen connections. Those with unread frames are removed once these are read.
    pub(super) fn close(&mut self, which: impl Fn(&Inbound) -> bool) {
        self.inbound.retain(|_, inbound| {
            inbound.closed |= which(inbound);
            !inbound.closed || inbound.unread > 0
        });
    }

    /// Removes a closed connection once its frames are read.
    fn retire(&mut self, number: usize) {
        if self.inbound.get(&number).is_some_and(|inbound| inbound.closed && inbound.unread == 0) {
            self.inbound.remove(&number);
        }
    }

    /// Whether there is no frame to be read.
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Posts the slot of the frame that was read last again.
    pub(super) fn give_back(&mut self, peers: &mut Peers) {
        let Some((number, slot)) = self.current.take() else { return };
        let Some(inbound) = self.inbound.get_mut(&number) else { return };
        match inbound.give_back(slot) {
            Ok(()) => self.retire(number),
            Err(error) => self.lose(number, &error.into(), peers),
        }
    }

    /// The next frame. The caller has given back the last one.
    pub(super) fn next(&mut self) -> Result<Option<Frame<'_>>, LinkError> {
        let (endpoint, slot, at, is_last) = match self.arrived.pop_front() {
            None => return Ok(None),
            Some(Arrived::Trouble(error)) => return Err(error),
            Some(Arrived::Frame { endpoint, slot, at, is_last }) => (endpoint, slot, at, is_last),
        };
        let Some(inbound) = self.inbound.get(&endpoint) else { return Ok(None) };
        let Some(peer) = inbound.peer() else { return Ok(None) };
        self.current = is_last.then_some((endpoint, slot));
        let bytes = &inbound.message(slot, at.end)[at.start..];
        Ok(Some(Frame::new(peer, bytes, &mut self.read)))
    }

    /// Whether a peer has unread frames, or an open connection over which it hasn't sent a
    /// farewell.
    pub(super) fn may_speak(&self, peer: u32, peers: &Peers) -> bool {
        let mut guests = self.inbound.values().filter(|guest| guest.greeting.from == peer);
        guests.any(|guest| {
            let is_open = !guest.closed && peers.may_speak(peer, guest.peer().is_some());
            is_open || guest.unread > 0
        })
    }

    /// Whether a farewell to a peer that may still take it is under way.
    pub(super) fn is_unsent(&self, peers: &Peers) -> bool {
        let is_gone = |guest: &Inbound| guest.peer().is_some_and(|peer| peers.is_gone(peer));
        self.inbound.values().any(|guest| guest.is_unsent() && !is_gone(guest))
    }

    /// Sends a farewell to those peers that aren't in `told`.
    pub(super) fn say_farewells(&mut self, state: RankState, told: &HashSet<u32>) {
        for inbound in self.inbound.values_mut() {
            if inbound.peer().is_some_and(|peer| !told.contains(&peer)) {
                inbound.say_farewell(state);
            }
        }
    }
}

#[cfg(test)]
impl Inbox {
    pub(super) fn guests(&self) -> impl ExactSizeIterator<Item = &Inbound> {
        self.inbound.values()
    }

    pub(super) fn unread(&self) -> usize {
        self.arrived.len()
    }
}
