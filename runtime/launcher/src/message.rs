//! Messages between the launcher and the agent of a host, over the agent's standard input and
//! output.
//!
//! The agent first sends a greeting with its version. Then frames travel in both directions: a
//! length of four bytes, little-endian, and the message. The first frame of the launcher contains
//! the [`Orders`]. The greeting ensures equal versions on both sides, so that messages need no
//! version.

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
use zeroize::{Zeroize, Zeroizing};

use super::Binding;
use super::output::{OutputStream, write_piece};
use crate::observe::Record;
use longshore_job::Secret;

/// The agent's greeting. Output of the login may precede it; the version and a line end follow.
const GREETING: &str = "\nlongshore agent ";
/// The most bytes that a login may print before the greeting.
const CHATTER_LIMIT: usize = 64 << 10;
/// The length of the longest message.
const LIMIT: usize = 16 << 20;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The ranks to start on one host. There is no `Debug`, so that no log can contain the secret.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Orders {
    /// The number of ranks of the world: those that are started together.
    pub(super) size: u32,
    /// The number of the world's first rank among all ranks of the job.
    pub(super) first: u32,
    /// The number of ranks that may be started later.
    pub(super) room: u32,
    /// The programs of the job's parts, and those that a command starts.
    pub(super) programs: Vec<Program>,
    /// The ranks of this host.
    pub(super) members: Vec<Member>,
    /// Environment variables of all ranks.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) secret: Secret,
    /// The working directory of the ranks; `None`: the launcher's own.
    pub(super) folder: Option<OsString>,
    /// The cores of each rank, as in [`Job::binding`](super::Job::binding).
    pub(super) binding: Option<Binding>,
    /// The interval at which to report the ranks' notes; `None`: never.
    pub(super) notes: Option<Duration>,
    /// Whether the host's debugger may be asked for the ranks' stacks.
    pub(super) stacks: bool,
    /// What the ranks are to record; `None`: nothing.
    pub(super) journal: Option<JournalOrder>,
}

/// The journal of each rank.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct JournalOrder {
    /// The bits of what is to be recorded.
    pub(super) wants: u32,
    /// The room for events in bytes.
    pub(super) events: u32,
}

impl Orders {
    /// Whether every member's rank and program exist.
    pub(super) fn is_consistent(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| {
            let position = member.rank.checked_sub(self.first);
            position.is_some_and(|position| position < self.size)
                && (member.program as usize) < self.programs.len()
        })
    }
}

/// The program of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) path: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The working directory, if it isn't that of all ranks.
    pub(super) folder: Option<OsString>,
}

/// A rank of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) rank: u32,
    /// The number of the rank's part, from 0, among those that are started together.
    pub(super) part: u32,
    /// The number of its program, from 0.
    pub(super) program: u32,
    /// The representation that the rank emulates.
    pub(super) arch: Option<String>,
}

/// A command of the launcher to the ranks of one host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Command {
    /// Send this line of PMI-1 to a rank.
    Reply(u32, String),
    /// Close the connection of a rank that violated PMI-1.
    HangUp(u32),
    /// Record in the host's segment how a rank of any host died.
    Mark(u32, #[serde(with = "DeathForm")] Death),
    /// Record in the host's segment that a rank of any host finalized and ended, so that no rank
    /// waits for it.
    Finalized(u32),
    /// Record in the host's segment that the job ends with this code.
    Abort(i32),
    /// Send a signal to all ranks.
    Signal(i32),
    /// End all ranks by SIGTERM, except those that were ended before.
    End {
        /// Whether to end also the ranks that have left the job and will exit by themselves.
        leavers: bool,
    },
    /// Close the launcher's end of this stream of all ranks: its reader has gone.
    Close(OutputStream),
    /// Write these bytes to rank 0's standard input; an empty list is its end.
    Input(Vec<u8>),
    /// Flow control: the launcher has taken this many bytes of output.
    Taken(u32),
    /// Report the stacks of these ranks, as far as they are ranks of the host. Without a debugger,
    /// the state of each thread is reported if `states`, and otherwise nothing of each rank.
    Stacks { ranks: Vec<u32>, states: bool },
    /// End the debuggers, so that they stop no rank any longer. Their stacks are lost.
    EndStacks,
    /// Answer with the host's clock, and this time of the launcher's.
    Clock(u64),
}

/// An event on a host, reported to the launcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Event {
    /// The host's ranks can't be started. None of them is left running.
    Refused {
        /// The exit status for the job.
        status: u8,
        /// The error.
        reason: String,
    },
    /// A rank was started, and may run on these processors.
    Started(u32, String),
    /// A rank printed these bytes.
    Output(u32, OutputStream, Vec<u8>),
    /// A rank sent a line of PMI-1.
    Line(u32, String),
    /// A rank's process ended.
    Ended {
        rank: u32,
        /// The status of wait(2).
        status: i32,
        /// The rank's last note.
        #[serde(with = "NoteForm")]
        note: Note,
        /// The rank, of any host, that was the first to die as far as this host knows.
        first_dead: Option<u32>,
        /// Where the core file is, if the kernel wrote one, or why the kernel killed the process.
        core: Option<String>,
    },
    /// A rank's note, after it changed.
    Noted(u32, #[serde(with = "NoteForm")] Note),
    /// A rank's remark on its note, after it changed.
    Remarked(u32, String),
    /// Flow control: rank 0 has taken this many bytes of input.
    Taken(u32),
    /// The stacks of a rank, in lines. None if the host has no debugger, and states of threads
    /// weren't asked for.
    Stacks(u32, String),
    /// A part of what a rank has recorded. All parts precede the rank's end.
    Recorded(u32, Record),
    /// The time of the launcher's question, and the host's clock.
    Clock(u64, u64),
}

impl Event {
    /// The rank that the event is about.
    pub(super) fn rank(&self) -> Option<u32> {
        match self {
            Event::Refused { .. } | Event::Taken(_) | Event::Clock(..) => None,
            Event::Output(rank, ..) | Event::Line(rank, _) => Some(*rank),
            Event::Ended { rank, .. } | Event::Noted(rank, _) | Event::Started(rank, _) => {
                Some(*rank)
            }
            Event::Remarked(rank, _) | Event::Stacks(rank, _) | Event::Recorded(rank, _) => {
                Some(*rank)
            }
        }
    }

    /// Whether a host with these ranks may report it.
    pub(super) fn is_of(&self, ranks: &[u32]) -> bool {
        self.rank().is_none_or(|rank| ranks.contains(&rank))
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

/// Encoded messages that wait to be sent.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: VecDeque<u8>,
}

impl Outbox {
    /// Appends the greeting.
    pub(super) fn greet(&mut self) {
        self.bytes.extend(format!("{GREETING}{VERSION}\n").as_bytes());
    }

    /// Appends a message.
    ///
    /// # Errors
    /// The message is longer than its reader accepts.
    pub(super) fn push<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        // The orders have the job's secret. So neither these bytes nor those before them may be
        // left behind.
        let bytes = codec::encode_secret(message, LIMIT).map_err(io::Error::other)?;
        let bytes = Zeroizing::new(bytes);
        let length = (bytes.len() as u32).to_le_bytes();
        let needed = self.bytes.len() + length.len() + bytes.len();
        if needed > self.bytes.capacity() {
            let mut grown = VecDeque::with_capacity(needed.max(2 * self.bytes.capacity()));
            grown.extend(self.bytes.iter());
            overwrite(&mut std::mem::replace(&mut self.bytes, grown));
        }
        self.bytes.extend(length);
        self.bytes.extend(&*bytes);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[cfg(fuzzing)]
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes).into()
    }

    /// Writes once to a descriptor that polls writable.
    pub(super) fn write(&mut self, to: impl AsFd) -> io::Result<()> {
        let written = write_piece(to.as_fd(), self.bytes.as_slices().0)?;
        self.bytes.range_mut(..written).for_each(|byte| *byte = 0);
        self.bytes.drain(..written);
        Ok(())
    }
}

/// Overwrites orders that their agent doesn't read any more.
impl Drop for Outbox {
    fn drop(&mut self) {
        overwrite(&mut self.bytes);
    }
}

/// Overwrites bytes that are dropped.
fn overwrite(bytes: &mut VecDeque<u8>) {
    let (first, second) = bytes.as_mut_slices();
    first.zeroize();
    second.zeroize();
}

/// Received bytes that don't form a whole message yet, or whose message wasn't taken yet.
#[derive(Default)]
pub(super) struct Inbox {
    /// The orders have the job's secret, so no copy is left behind.
    bytes: Zeroizing<Vec<u8>>,
    greeted: bool,
}

impl Inbox {
    /// The agent's inbox, which expects no greeting.
    pub(super) fn ungreeted() -> Inbox {
        Inbox { bytes: Zeroizing::default(), greeted: true }
    }

    pub(super) fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Reads once from a descriptor that polls readable. Returns `false` at its end.
    pub(super) fn read(&mut self, from: impl AsFd) -> io::Result<bool> {
        let mut bytes = Zeroizing::new([0; 16 << 10]);
        match nix::unistd::read(from, &mut bytes[..]) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.push(&bytes[..count]);
                Ok(true)
            }
            Err(Errno::EINTR | Errno::EAGAIN) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            let mut grown = Vec::with_capacity(needed.max(2 * self.bytes.capacity()));
            grown.extend_from_slice(&self.bytes);
            self.bytes = Zeroizing::new(grown);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, or `None` until it has arrived completely.
    ///
    /// # Errors
    /// The bytes are no message of this version, or the greeting is missing or of another version.
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
        self.bytes[..4 + length].zeroize();
        self.bytes.drain(..4 + length);
        message.map(Some)
    }

    fn take_greeting(&mut self) -> Result<bool, String> {
        let start = GREETING.as_bytes();
        let Some(at) = self.bytes.windows(start.len()).position(|window| window == start) else {
            return match self.bytes.len() {
                ..=CHATTER_LIMIT => Ok(false),
                _ => Err(format!("it sent no agent's greeting, but {:?}", self.chatter())),
            };
        };
        let version = &self.bytes[at + start.len()..];
        let Some(end) = version.iter().position(|&byte| byte == b'\n') else { return Ok(false) };
        let version = String::from_utf8_lossy(&version[..end]).into_owned();
        if version != VERSION {
            return Err(format!("it runs longshore {version}, the launcher runs {VERSION}"));
        }
        self.bytes.drain(..at + start.len() + end + 1);
        self.greeted = true;
        Ok(true)
    }

    /// The start of the bytes that arrived in place of a greeting.
    pub(super) fn chatter(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(200)]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(bytes: &[u8]) -> Inbox {
        Inbox { bytes: bytes.to_vec().into(), greeted: false }
    }

    #[test]
    fn messages_follow_login_output_and_the_greeting() {
        let mut outbox = Outbox::default();
        outbox.greet();
        let note = Note { code: 1, detail: 2, calls: 3, waits_for: Some(4), moves: 5 };
        outbox
            .push(&Event::Ended { rank: 7, status: 9, note, first_dead: None, core: None })
            .unwrap();
        outbox.push(&Event::Line(7, "cmd=init".to_owned())).unwrap();
        let sent = [b"Welcome to b!\n", &*outbox.bytes.make_contiguous()].concat();
        // The bytes may arrive in pieces of any size.
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
            let [Event::Ended { rank: 7, status: 9, note: read, .. }, Event::Line(7, line)] =
                &events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!((*read, line.as_str()), (note, "cmd=init"));
        }
    }

    #[test]
    fn bytes_that_no_agent_sends_are_refused() {
        let fails = |bytes: &[u8]| inbox(bytes).next::<Event>().unwrap_err();
        assert!(fails(b"\nlongshore agent 0.0.9\n").contains("0.0.9"));
        assert!(fails(&b"yes\n".repeat(CHATTER_LIMIT)).contains("but \"yes"));
        let greeted = format!("{GREETING}{VERSION}\n");
        assert!(fails(&[greeted.as_bytes(), &[0xff; 8]].concat()).contains("4294967295 bytes"));
        assert!(!fails(&[greeted.as_bytes(), &[1, 0, 0, 0, 0xff]].concat()).is_empty());
        assert!(inbox(b"bash: longshore: command not found").next::<Event>().unwrap().is_none());
    }
}
