//! The two ends of a connection: state machines that take in completions and post operations.
//!
//! A connection carries frames only from the rank that made it ([`Outbound`]) to the rank that
//! accepted it ([`Inbound`]). Two ranks that connect to each other at the same time have two
//! connections, one for each direction.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use super::error::CallError;
use super::handles::{Completion, CompletionResult, Endpoint, Network, Request};
use super::{DEPTH, FRAME};
use crate::link::{FrameMut, Publish};
use crate::protocol::challenge::{ANSWER, GREETING, Greeting, Key, LONGEST, NONCE, Nonce, SEAL};
use crate::protocol::frame::{self, FAREWELL_LEN, HEADER};
use crate::protocol::session::{End, Protection, TAG};
use crate::protocol::{self, Accepting, Connecting};
use crate::segment::RankState;

/// The longest message of several frames, in bytes. The provider tcp doesn't read ahead for longer
/// ones (docs/tuning.md, "Bundles of frames").
pub(super) const BUNDLE: usize = 4 << 10;

/// Bytes of a small slot.
const SMALL: usize = if LONGEST > FAREWELL_LEN + TAG { LONGEST } else { FAREWELL_LEN + TAG };

/// Bytes of a slot for frames.
const LARGE: usize = HEADER + FRAME + TAG;

/// The slots of both ends for the challenge and the farewells. The slots for frames begin at
/// `FRAMES`.
const RECEIVE: u8 = 0;
const FIRST: u8 = 1;
const SECOND: u8 = 2;
const FAREWELL: u8 = 3;
const FRAMES: u8 = 4;
const SMALL_SLOTS: [usize; FRAMES as usize] = [SMALL; FRAMES as usize];

/// The effect of a completion outside its connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The completion concerns only its connection.
    Nothing,
    /// The other end has proved that it belongs to the job, as this rank.
    Joined(u32),
    /// A message of frames has arrived: its slot, and its length in bytes.
    Frames(u8, usize),
    /// The other end sends nothing more.
    Farewell(RankState),
}

/// The cause of a connection's end.
#[derive(Debug)]
pub(super) enum Broken {
    /// A call failed.
    Call(CallError),
    /// The other end violated the protocol.
    Protocol(String),
    /// The other end is gone.
    Ended,
}

impl From<CallError> for Broken {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Protocol(what) => f.write_str(what),
            Self::Ended => f.write_str("the connection ended"),
        }
    }
}

/// A message that is written and not posted yet.
struct Written {
    slot: u8,
    /// The length so far, in bytes.
    len: usize,
    /// Whether it takes no more frames, because it is as it will travel.
    is_sealed: bool,
}

/// The end that sends frames.
pub(super) struct Outbound {
    pub endpoint: Endpoint,
    state: Connecting,
    protection: Protection,
    /// The free slots for frames.
    free: Vec<u8>,
    /// The messages that are written and not posted yet, in order. Further frames go to the last.
    queue: VecDeque<Written>,
    /// The frame that is being written: its slot, and the offset of its header.
    writing: (u8, usize),
    /// Whether this rank has received more, which it may answer too.
    answers_follow: bool,
    /// The failure after which this end sends no more, until it is taken.
    broken: Option<CallError>,
    farewell: bool,
}

impl Outbound {
    pub(super) fn connect(
        network: &Arc<Network>,
        to: SocketAddr,
        greeting: Greeting,
        protection: Protection,
        key: &Key,
    ) -> Result<Outbound, CallError> {
        let mut endpoint = Endpoint::connect(network, to, &key.request(&greeting), &SMALL_SLOTS)?;
        let free = (0..DEPTH).map(|_| endpoint.add_slot(LARGE)).rev().collect();
        Ok(Outbound {
            endpoint,
            state: Connecting::Dialling(greeting),
            protection,
            free,
            queue: VecDeque::new(),
            writing: (FAREWELL, 0),
            answers_follow: false,
            broken: None,
            farewell: false,
        })
    }

    /// Sends the greeting, because the connection is established.
    pub(super) fn handle_connected(&mut self) -> Result<(), Broken> {
        let Connecting::Dialling(greeting) = self.state else { return Ok(()) };
        self.endpoint.post_receive(RECEIVE)?;
        self.endpoint.write(FIRST, 0, &greeting.encode());
        self.state = Connecting::Greeting(greeting);
        self.say(FIRST, GREETING)
    }

    pub(super) fn handle_completion(
        &mut self,
        completion: Completion,
        key: &Key,
    ) -> Result<Effect, Broken> {
        let (slot, outcome) = self.endpoint.complete(completion);
        match outcome {
            CompletionResult::Failed(error) => Err(error.into()),
            CompletionResult::Sent if slot >= FRAMES => {
                self.free.push(slot);
                Ok(Effect::Nothing)
            }
            CompletionResult::Sent if slot == FAREWELL => {
                self.farewell = false;
                Ok(Effect::Nothing)
            }
            CompletionResult::Sent => Ok(Effect::Nothing),
            CompletionResult::Received(len) => {
                let message = self.endpoint.bytes_mut(RECEIVE, len.min(SMALL));
                let (before, mut len) = (self.state, message.len());
                if let Connecting::Open(_) = before {
                    len = self.protection.open(message).map_err(Broken::Protocol)?;
                }
                let message = &message[..len];
                match self.state.hear(message, key).map_err(Broken::Protocol)? {
                    protocol::Heard::Answered(peer, seal) => {
                        let (Connecting::Greeting(greeting), Some(b)) =
                            (before, message.first_chunk::<NONCE>())
                        else {
                            let what = "an answer to no greeting, or one without a nonce";
                            return Err(Broken::Protocol(what.to_owned()));
                        };
                        let agreed = self.protection.agree(End::Connecting, key, &greeting, b);
                        agreed.map_err(Broken::Protocol)?;
                        self.endpoint.write(SECOND, 0, &seal);
                        self.endpoint.post_receive(RECEIVE)?;
                        self.say(SECOND, SEAL)?;
                        Ok(Effect::Joined(peer))
                    }
                    protocol::Heard::Farewell(state) => Ok(Effect::Farewell(state)),
                    _ => Ok(Effect::Nothing),
                }
            }
        }
    }

    fn say(&mut self, slot: u8, len: usize) -> Result<(), Broken> {
        match self.endpoint.post_send(slot, len)? {
            true => Ok(()),
            false => Err(Broken::Protocol("no room to send the challenge".to_owned())),
        }
    }

    /// Room for a frame, if there is any. `answers_follow` is whether further answers may follow
    /// the frame.
    pub(super) fn frame(&mut self, len: usize, answers_follow: bool) -> Option<FrameMut<'_>> {
        let needed = HEADER + len + self.protection.overhead();
        let last = self.queue.back().filter(|last| !last.is_sealed && last.len + needed <= BUNDLE);
        let (slot, at) = match last {
            Some(last) => (last.slot, last.len),
            None => {
                // The last message takes no more frames, so it waits for nothing: post it.
                self.pump();
                (*self.free.last()?, 0)
            }
        };
        (self.writing, self.answers_follow) = ((slot, at), answers_follow);
        let (memory, start) = (self.endpoint.memory(slot), at + HEADER);
        assert!(len <= memory.len() - start, "a frame that is longer than its slot");
        // SAFETY: the slot holds `start + len` bytes, as asserted, all initialized. It isn't
        // posted, and nobody else touches it before `publish` posts it. The frame borrows `self`
        // and lends the bytes to `publish`.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(memory.cast::<u8>().as_ptr().add(start), len) };
        Some(FrameMut::new(bytes, self))
    }

    /// Posts written messages, as far as the provider has room.
    pub(super) fn pump(&mut self) {
        while let (Connecting::Open(_), Some(first), None) =
            (&self.state, self.queue.front_mut(), &self.broken)
        {
            if !first.is_sealed {
                let room = self.endpoint.bytes_mut(first.slot, LARGE);
                first.len = self.protection.seal(room, first.len);
                first.is_sealed = true;
            }
            match self.endpoint.post_send(first.slot, first.len) {
                Ok(true) => self.queue.pop_front(),
                Ok(false) => return,
                Err(error) => return self.broken = Some(error),
            };
        }
    }

    /// Whether the other end has proved that it belongs to the job.
    fn is_open(&self) -> bool {
        matches!(self.state, Connecting::Open(_))
    }

    /// Whether the connection was never established.
    pub(super) fn is_dialling(&self) -> bool {
        matches!(self.state, Connecting::Dialling(_))
    }

    /// Whether there are messages that are written and not posted.
    pub(super) fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether frames or the farewell are not sent completely.
    pub(super) fn is_unsent(&self) -> bool {
        self.broken.is_none() && (self.free.len() < usize::from(DEPTH) || self.farewell)
    }

    /// Takes the failure after which this end sends no more.
    pub(super) fn take_broken(&mut self) -> Option<CallError> {
        self.broken.take()
    }

    /// Simulates that the provider refused to send.
    #[cfg(test)]
    pub(super) fn break_with(&mut self, error: CallError) {
        self.broken = Some(error);
    }

    /// Sends the farewell, after all frames. Returns whether it could: otherwise no frame can be
    /// sent either.
    pub(super) fn say_farewell(&mut self, state: RankState) -> bool {
        self.pump();
        if self.is_open() && self.queue.is_empty() {
            self.farewell = post_farewell(&mut self.endpoint, &mut self.protection, state);
        }
        self.farewell
    }
}

/// Sends the farewell. Returns whether it could.
fn post_farewell(endpoint: &mut Endpoint, protection: &mut Protection, state: RankState) -> bool {
    endpoint.write(FAREWELL, 0, &frame::farewell(state));
    let len = protection.seal(endpoint.bytes_mut(FAREWELL, SMALL), FAREWELL_LEN);
    matches!(endpoint.post_send(FAREWELL, len), Ok(true))
}

impl Outbound {
    /// Adds the written frame to its message.
    fn add(&mut self, bytes: &[u8]) {
        let ((slot, at), len) = (self.writing, bytes.len());
        self.endpoint.write(slot, at, &frame::header(len));
        if at == 0 {
            self.free.pop();
            self.queue.push_back(Written { slot, len: 0, is_sealed: false });
        }
        if let Some(last) = self.queue.back_mut() {
            last.len = at + HEADER + len;
        }
    }
}

impl Publish for Outbound {
    fn publish(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.pump();
    }

    fn publish_answer(&mut self, bytes: &[u8]) {
        // While an operation is under way, further answers may join this one before it completes.
        let is_busy = self.free.len() + self.queue.len() < usize::from(DEPTH);
        if is_busy || self.answers_follow {
            return self.publish_lazily(bytes);
        }
        self.publish(bytes);
    }

    fn publish_lazily(&mut self, bytes: &[u8]) {
        self.add(bytes);
        // The link's next poll posts held messages.
        let overhead = HEADER + self.protection.overhead();
        if self.queue.back().is_none_or(|last| last.len + overhead > BUNDLE) {
            self.pump();
        }
    }
}

/// The end that receives frames.
pub(super) struct Inbound {
    pub endpoint: Endpoint,
    /// The greeting for which the request proved to know the secret. No two guests have the same.
    pub greeting: Greeting,
    state: Accepting,
    protection: Protection,
    /// This end's nonce for the challenge.
    nonce: Nonce,
    /// The slots for frames that aren't posted.
    unposted: Vec<u8>,
    /// The number of messages that are not read yet.
    pub unread: usize,
    /// Whether the connection is closed: nothing more comes.
    pub closed: bool,
    farewell: bool,
}

impl Inbound {
    /// Accepts a connection whose request proved `greeting`, with this end's protection and nonce.
    pub(super) fn accept(
        request: Request,
        greeting: Greeting,
        (protection, nonce): (Protection, Nonce),
    ) -> Result<Inbound, CallError> {
        // Two receives are posted: the greeting and the seal fit them.
        let endpoint = Endpoint::accept(request, &SMALL_SLOTS, &[RECEIVE, FIRST])?;
        let unposted = Vec::with_capacity(usize::from(DEPTH));
        Ok(Inbound {
            endpoint,
            greeting,
            state: Accepting::Guest,
            protection,
            nonce,
            unposted,
            unread: 0,
            closed: false,
            farewell: false,
        })
    }

    /// The rank at the other end, once it has proved its membership.
    pub(super) fn peer(&self) -> Option<u32> {
        self.state.peer()
    }

    pub(super) fn handle_completion(
        &mut self,
        completion: Completion,
        key: &Key,
        expected: impl FnOnce(&Greeting) -> Result<(), String>,
    ) -> Result<Effect, Broken> {
        let (slot, outcome) = self.endpoint.complete(completion);
        let len = match outcome {
            CompletionResult::Failed(error) => return Err(error.into()),
            CompletionResult::Sent => {
                self.farewell &= slot != FAREWELL;
                return Ok(Effect::Nothing);
            }
            CompletionResult::Received(len) => len,
        };
        // Messages fill the slots in posting order: two for the challenge, then the slots for
        // frames.
        let room = if slot < FRAMES { SMALL } else { LARGE };
        let mut len = len.min(room);
        let message = self.endpoint.bytes_mut(slot, len);
        if self.state.peer().is_some() {
            len = self.protection.open(message).map_err(Broken::Protocol)?;
        }
        let (requested, nonce) = (self.greeting, self.nonce);
        let expected = |greeting: &Greeting| match *greeting == requested {
            true => expected(greeting).map(|()| nonce),
            false => Err("a greeting that differs from the one in the request".to_owned()),
        };
        match self.state.hear(&message[..len], key, expected).map_err(Broken::Protocol)? {
            protocol::Heard::Greeted(answer) => {
                self.endpoint.write(SECOND, 0, &answer);
                match self.endpoint.post_send(SECOND, ANSWER)? {
                    true => Ok(Effect::Nothing),
                    false => Err(Broken::Protocol("no room to send the answer".to_owned())),
                }
            }
            protocol::Heard::Joined(peer) => {
                let agreed = self.protection.agree(End::Accepting, key, &requested, &nonce);
                agreed.map_err(Broken::Protocol)?;
                for _ in 0..DEPTH {
                    let slot = self.endpoint.add_slot(LARGE);
                    self.unposted.push(slot);
                }
                self.listen()?;
                Ok(Effect::Joined(peer))
            }
            protocol::Heard::Frames => {
                self.unread += 1;
                Ok(Effect::Frames(slot, len))
            }
            protocol::Heard::Farewell(state) => Ok(Effect::Farewell(state)),
            protocol::Heard::Answered(..) => Ok(Effect::Nothing),
        }
    }

    /// The message of `len` bytes in a slot.
    pub(super) fn message(&self, slot: u8, len: usize) -> &[u8] {
        self.endpoint.bytes(slot, len)
    }

    /// Frees the slot of a message that was read.
    pub(super) fn give_back(&mut self, slot: u8) -> Result<(), CallError> {
        self.unread -= 1;
        self.unposted.push(slot);
        if self.closed { Ok(()) } else { self.listen() }
    }

    /// Posts receives on the free slots for frames.
    fn listen(&mut self) -> Result<(), CallError> {
        while let Some(&slot) = self.unposted.last() {
            if !self.endpoint.post_receive(slot)? {
                break;
            }
            self.unposted.pop();
        }
        Ok(())
    }

    /// Whether the farewell is not sent completely.
    pub(super) fn is_unsent(&self) -> bool {
        self.farewell && !self.closed
    }

    /// Sends the farewell to the other end.
    pub(super) fn say_farewell(&mut self, state: RankState) {
        if self.peer().is_some() && !self.closed {
            self.farewell = post_farewell(&mut self.endpoint, &mut self.protection, state);
        }
    }
}
