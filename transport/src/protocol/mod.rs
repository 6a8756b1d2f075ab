//! What the ends of a connection between hosts say to each other besides frames: pure functions and state machines, without
//! libfabric, so that whatever a stranger may send can be tried on them.
//!
//! ```text
//!    connecting rank                      accepting rank
//!    request                        ──►   accepted, or not
//!    greeting                       ──►
//!                                   ◄──   answer
//!    seal                           ──►
//!    frames, farewell               ──►
//!                                   ◄──   farewell
//! ```

pub mod challenge;
pub mod frame;

use challenge::{ANSWER, Greeting, Key, Nonce, SEAL};
use frame::Message;

use crate::segment::RankState;

/// What a message comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A greeting; this is said to it.
    Greeted([u8; ANSWER]),
    /// An answer, which proves that this rank belongs to the job; this is said to it.
    Answered(u32, [u8; SEAL]),
    /// A seal, which proves that this rank does.
    Joined(u32),
    /// One or more [frames](frame::frames).
    Frames,
    /// The other end says nothing more; this became of it.
    Farewell(RankState),
}

/// How far the accepting end of a connection is. Nothing but the challenge is listened to before the other end has passed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepting {
    /// Nobody knows who is at the other end.
    Guest,
    /// It says who it is, and has to prove it.
    Challenged(Greeting, Nonce),
    /// It is this rank of the job.
    Peer(u32),
}

impl Accepting {
    /// Takes a message in. `expected` says whether a greeting may come here, and gives the number for the answer.
    ///
    /// # Errors
    /// What is wrong with it: the connection is at its end.
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

    /// The rank at the other end, once that is proved.
    pub fn peer(&self) -> Option<u32> {
        match *self {
            Accepting::Peer(peer) => Some(peer),
            _ => None,
        }
    }
}

/// How far the connecting end of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connecting {
    /// It says this as soon as the connection stands.
    Dialling(Greeting),
    /// It has said so.
    Greeting(Greeting),
    /// The other end is this rank of the job.
    Open(u32),
}

impl Connecting {
    /// Takes a message in.
    ///
    /// # Errors
    /// What is wrong with it: the connection is at its end.
    pub fn hear(&mut self, message: &[u8], key: &Key) -> Result<Heard, String> {
        match *self {
            Connecting::Dialling(_) => Err("an answer to nothing".to_owned()),
            Connecting::Greeting(greeting) => {
                let seal = key.seal(&greeting, message)?;
                *self = Connecting::Open(greeting.to);
                Ok(Heard::Answered(greeting.to, seal))
            }
            Connecting::Open(_) => match frame::parse(message)? {
                Message::Farewell(state) => Ok(Heard::Farewell(state)),
                Message::Data => Err("a frame on a connection of ours".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ends_meet_and_frames_follow() {
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
    fn nothing_else_is_heard_before_the_proof() {
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
