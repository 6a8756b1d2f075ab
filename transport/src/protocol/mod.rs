//! The protocol of a connection between hosts, except for the content of frames.
//!
//! It consists of pure functions and state machines without libfabric, so that tests and fuzzers
//! can try any input from a stranger on them.
//!
//! ```text
//!    connecting rank                      accepting rank
//!    request                        ──►   accepted, or rejected
//!    greeting                       ──►
//!                                   ◄──   answer
//!    seal                           ──►
//!    frames, farewell               ──►
//!                                   ◄──   farewell
//! ```
//!
//! The request travels with the connection request of libfabric. Greeting, answer and seal are the
//! mutual [challenge]. A farewell says to the other end that nothing more follows, and why. In a
//! job that asks for it, all messages after the challenge are [encrypted](session).

pub mod challenge;
pub mod frame;
pub mod session;

use challenge::{ANSWER, Greeting, Key, Nonce, SEAL};
use frame::Message;

use crate::segment::RankState;

/// The meaning of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A greeting, with the answer to send.
    Greeted([u8; ANSWER]),
    /// An answer, which proves that this rank belongs to the job, with the seal to send.
    Answered(u32, [u8; SEAL]),
    /// A seal, which proves that this rank belongs to the job.
    Joined(u32),
    /// One or more [frames](frame::frames).
    Frames,
    /// The other end sends nothing more, and is in this state.
    Farewell(RankState),
}

/// The state of the accepting end of a connection. It accepts only messages of the challenge until
/// the other end has passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepting {
    /// The other end hasn't sent a greeting.
    Guest,
    /// The other end has claimed a rank, and must prove it.
    Challenged(Greeting, Nonce),
    /// The other end is this rank of the job.
    Peer(u32),
}

impl Accepting {
    /// Processes a message. `expected` decides whether to accept a greeting, and returns the nonce
    /// for the answer.
    ///
    /// # Errors
    /// Describes the violation. The connection must be closed.
    pub fn hear(
        &mut self,
        message: &[u8],
        key: &Key,
        expected: impl FnOnce(&Greeting) -> Result<Nonce, String>,
    ) -> Result<Heard, String> {
        match *self {
            Accepting::Guest => {
                let greeting = Greeting::parse(message)?;
                let nonce = expected(&greeting)?;
                *self = Accepting::Challenged(greeting, nonce);
                Ok(Heard::Greeted(key.answer(&greeting, &nonce)))
            }
            Accepting::Challenged(greeting, nonce) => {
                key.check(&greeting, &nonce, message)?;
                *self = Accepting::Peer(greeting.from);
                Ok(Heard::Joined(greeting.from))
            }
            Accepting::Peer(_) => Ok(match frame::parse(message)? {
                Message::Data => Heard::Frames,
                Message::Farewell(state) => Heard::Farewell(state),
            }),
        }
    }

    /// The rank at the other end, once it has proved its membership.
    pub fn peer(&self) -> Option<u32> {
        match *self {
            Accepting::Peer(peer) => Some(peer),
            _ => None,
        }
    }
}

/// The state of the connecting end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connecting {
    /// The greeting is to be sent as soon as the connection is established.
    Dialling(Greeting),
    /// The greeting is sent.
    Greeting(Greeting),
    /// The other end is this rank of the job.
    Open(u32),
}

impl Connecting {
    /// Processes a message.
    ///
    /// # Errors
    /// Describes the violation. The connection must be closed.
    pub fn hear(&mut self, message: &[u8], key: &Key) -> Result<Heard, String> {
        match *self {
            Connecting::Dialling(_) => Err("an answer before the greeting".to_owned()),
            Connecting::Greeting(greeting) => {
                let seal = key.seal(&greeting, message)?;
                *self = Connecting::Open(greeting.to);
                Ok(Heard::Answered(greeting.to, seal))
            }
            Connecting::Open(_) => match frame::parse(message)? {
                Message::Farewell(state) => Ok(Heard::Farewell(state)),
                Message::Data => Err("a frame from the accepting end, which sends none".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_accepted_after_both_ends_proved_membership() {
        let key = Key::new(b"secret");
        let greeting = Greeting::new(3, 5, [1; 32]);
        let (mut here, mut there) = (Connecting::Greeting(greeting), Accepting::Guest);
        let Ok(Heard::Greeted(answer)) = there.hear(&greeting.encode(), &key, |_| Ok([2; 32]))
        else {
            panic!("{there:?}");
        };
        assert_eq!(there.peer(), None);
        let Ok(Heard::Answered(5, seal)) = here.hear(&answer, &key) else { panic!("{here:?}") };
        assert_eq!(there.hear(&seal, &key, |_| panic!()), Ok(Heard::Joined(3)));
        let frame = [&frame::header(2)[..], b"ab"].concat();
        assert_eq!(there.hear(&frame, &key, |_| panic!()), Ok(Heard::Frames));
        let farewell = frame::farewell(RankState::Finalized);
        assert_eq!(here.hear(&farewell, &key), Ok(Heard::Farewell(RankState::Finalized)));
        assert!(here.hear(&frame, &key).is_err(), "frames go one way");
    }

    #[test]
    fn only_the_challenge_is_accepted_before_the_proof() {
        let key = Key::new(b"secret");
        let greeting = Greeting::new(3, 5, [1; 32]);
        let frame = [&frame::header(2)[..], b"ab"].concat();
        let mut there = Accepting::Guest;
        assert!(there.hear(&frame, &key, |_| Ok([2; 32])).is_err());
        assert!(there.hear(&greeting.encode(), &key, |_| Err("full".to_owned())).is_err());
        assert_eq!(there, Accepting::Guest);
        there.hear(&greeting.encode(), &key, |_| Ok([2; 32])).unwrap();
        assert!(there.hear(&frame, &key, |_| Ok([2; 32])).is_err());
        assert!(there.hear(&greeting.encode(), &key, |_| Ok([2; 32])).is_err());
        assert_eq!(there.peer(), None);
        assert!(Connecting::Dialling(greeting).hear(&[0; ANSWER], &key).is_err());
    }
}
