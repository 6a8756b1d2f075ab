//! What the launcher and the agent of a host tell each other over the agent's standard input and output.
//!
//! The agent greets first. Then frames go both ways, a length in four bytes and a message behind it; the launcher's first one
//! holds the orders. Both are as old as each other, which the greeting says: a message has no version.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use longshore_transport::{Cause as Death, Note};
use nix::errno::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shipable::codec;

use super::output::{OutputStream, write_piece};

/// How the agent greets, after what a login may print in front; its version and the end of a line follow.
const GREETING: &str = "\nlongshore agent ";
/// What a login may print in front of the greeting.
const CHATTER_LIMIT: usize = 64 << 10;
/// The longest message.
const LIMIT: usize = 16 << 20;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the ranks of one host are, and what they share. It has no `Debug`: a log is no place for the secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Orders {
    /// The ranks of the job.
    pub(super) size: u32,
    /// The programs of its parts.
    pub(super) programs: Vec<Program>,
    /// The ranks of this host.
    pub(super) members: Vec<Member>,
    /// The environment of all, the job's secret in it.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The folder to start them in; none: the launcher's own.
    pub(super) folder: Option<OsString>,
    /// How often to tell what the ranks note.
    pub(super) notes: Option<Duration>,
}

impl Orders {
    /// Whether what names something else names something that there is.
    pub(super) fn is_consistent(&self) -> bool {
        let mut members = self.members.iter();
        members
            .all(|member| member.rank < self.size && (member.part as usize) < self.programs.len())
    }
}

/// The program of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) path: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// A rank of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) rank: u32,
    /// The part it belongs to, from 0.
    pub(super) part: u32,
    /// The representation that it emulates.
    pub(super) arch: Option<String>,
}

/// What the launcher wants of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Command {
    /// Send this line of PMI-1 to a rank.
    Reply(u32, String),
    /// Close the connection of a rank, which doesn't speak PMI-1.
    HangUp(u32),
    /// Note how a rank, of any host, died.
    Mark(u32, #[serde(with = "DeathForm")] Death),
    /// Note that a rank, of another host too, has finalized and ended, so that it needn't be waited for.
    Finalized(u32),
    /// Tell the ranks that the job ends with this code.
    Abort(i32),
    /// Send the ranks a signal.
    Signal(i32),
    /// Nobody reads what the ranks write there.
    Close(OutputStream),
    /// Rank 0's standard input; empty: its end.
    Input(Vec<u8>),
    /// So many more bytes of output are wanted.
    Taken(u32),
}

/// What happened on a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Event {
    /// The ranks can't be started there; none is left running.
    Refused {
        /// The job's exit status.
        status: u8,
        /// Why.
        reason: String,
    },
    /// A rank printed this.
    Output(u32, OutputStream, Vec<u8>),
    /// A rank sent a line of PMI-1.
    Line(u32, String),
    /// A rank's process ended, with a status as wait(2) gives it; what it noted last.
    Ended(u32, i32, #[serde(with = "NoteForm")] Note),
    /// What a rank notes, where that changed.
    Noted(u32, #[serde(with = "NoteForm")] Note),
    /// So many more bytes of input are wanted.
    Taken(u32),
}

impl Event {
    /// The rank that it is about.
    pub(super) fn rank(&self) -> Option<u32> {
        match self {
            Event::Refused { .. } | Event::Taken(_) => None,
            Event::Output(rank, ..) | Event::Line(rank, _) => Some(*rank),
            Event::Ended(rank, ..) | Event::Noted(rank, _) => Some(*rank),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Death")]
enum DeathForm {
    Signal(i32),
    Exit(i32),
    Abort(i32),
    Lost,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Note")]
struct NoteForm {
    code: u32,
    detail: u32,
    calls: u32,
    waits_for: Option<u32>,
    moves: u32,
}

/// What waits to be sent.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: VecDeque<u8>,
}

impl Outbox {
    pub(super) fn greet(&mut self) {
        self.bytes.extend(format!("{GREETING}{VERSION}\n").as_bytes());
    }

    /// # Errors
    /// The message is longer than its reader allows.
    pub(super) fn push<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let bytes = codec::encode(message, LIMIT).map_err(io::Error::other)?;
        self.bytes.extend((bytes.len() as u32).to_le_bytes());
        self.bytes.extend(&bytes);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes once to a descriptor that polls writable.
    pub(super) fn write(&mut self, to: impl AsFd) -> io::Result<()> {
        let written = write_piece(to.as_fd(), self.bytes.as_slices().0)?;
        self.bytes.drain(..written);
        Ok(())
    }
}

/// What came and wasn't read yet.
#[derive(Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    greeted: bool,
}

impl Inbox {
    /// The inbox of one who is not greeted.
    pub(super) fn ungreeted() -> Inbox {
        Inbox { bytes: Vec::new(), greeted: true }
    }

    pub(super) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Reads once from what polls readable. `false` once it has ended.
    pub(super) fn read(&mut self, from: impl AsFd) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        match nix::unistd::read(from, &mut bytes) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.bytes.extend_from_slice(&bytes[..count]);
                Ok(true)
            }
            Err(Errno::EINTR | Errno::EAGAIN) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The next message, once it is here as a whole.
    ///
    /// # Errors
    /// What came isn't what an agent of this version says.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        if !self.greeted && !self.take_greeting()? {
            return Ok(None);
        }
        let Some((length, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > LIMIT {
            return Err(format!("it sent a message of {length} bytes"));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        let message = codec::decode(message, LIMIT).map_err(|error| error.to_string());
        self.bytes.drain(..4 + length);
        message.map(Some)
    }

    fn take_greeting(&mut self) -> Result<bool, String> {
        let start = GREETING.as_bytes();
        let Some(at) = self.bytes.windows(start.len()).position(|window| window == start) else {
            return match self.bytes.len() {
                ..=CHATTER_LIMIT => Ok(false),
                _ => Err(format!("instead of an agent's greeting it says {:?}", self.chatter())),
            };
        };
        let version = &self.bytes[at + start.len()..];
        let Some(end) = version.iter().position(|&byte| byte == b'\n') else { return Ok(false) };
        let version = String::from_utf8_lossy(&version[..end]).into_owned();
        if version != VERSION {
            return Err(format!("its longshore is of version {version}, this one of {VERSION}"));
        }
        self.bytes.drain(..at + start.len() + end + 1);
        self.greeted = true;
        Ok(true)
    }

    /// The start of what isn't a greeting.
    pub(super) fn chatter(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(200)]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(bytes: &[u8]) -> Inbox {
        Inbox { bytes: bytes.to_vec(), greeted: false }
    }

    #[test]
    fn messages_follow_the_greeting_and_what_a_login_prints() {
        let mut outbox = Outbox::default();
        outbox.greet();
        let note = Note { code: 1, detail: 2, calls: 3, waits_for: Some(4), moves: 5 };
        outbox.push(&Event::Ended(7, 9, note)).unwrap();
        outbox.push(&Event::Line(7, "cmd=init".to_owned())).unwrap();
        let sent = [b"Welcome to b!\n", &*outbox.bytes.make_contiguous()].concat();
        // In pieces of any size.
        for split in 0..sent.len() {
            let mut inbox = inbox(&sent[..split]);
            let mut events = Vec::new();
            while let Some(event) = inbox.next::<Event>().unwrap() {
                events.push(event);
            }
            inbox.bytes.extend_from_slice(&sent[split..]);
            while let Some(event) = inbox.next::<Event>().unwrap() {
                events.push(event);
            }
            let [Event::Ended(7, 9, read), Event::Line(7, line)] = &events[..] else {
                panic!("{events:?}");
            };
            assert_eq!((*read, line.as_str()), (note, "cmd=init"));
        }
    }

    #[test]
    fn what_is_no_agent_is_told_so() {
        let fails = |bytes: &[u8]| inbox(bytes).next::<Event>().unwrap_err();
        assert!(fails(b"\nlongshore agent 0.0.9\n").contains("0.0.9"));
        assert!(fails(&b"yes\n".repeat(CHATTER_LIMIT)).contains("it says \"yes"));
        let greeted = format!("{GREETING}{VERSION}\n");
        assert!(fails(&[greeted.as_bytes(), &[0xff; 8]].concat()).contains("4294967295 bytes"));
        assert!(!fails(&[greeted.as_bytes(), &[1, 0, 0, 0, 0xff]].concat()).is_empty());
        assert!(inbox(b"bash: longshore: command not found").next::<Event>().unwrap().is_none());
    }
}
