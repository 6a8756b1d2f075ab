//! What is checked of messages: whether their types are those of their receives, and notes on
//! receives and sends whose outcome depends on timing.
//!
//! - A message brings the source line of its send, and the clock of its sender. Each receive is
//!   recorded when it starts, and compared with its message when it ends.
//! - A receive from any rank *could have matched* a message of another sender that a later receive
//!   took, unless that sender knew of the end of the first receive when it sent.
//! - Two ranks *send to each other first* if each sends by a call that blocks, has no receive
//!   posted for the other, and doesn't know of the other's send. That works only while the
//!   messages are buffered. Circles of more ranks aren't seen.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use shipable::{Architecture, Basic, Signature};

use super::clock::Clock;
use super::history::Site;
use super::report::Reports;
use super::site;
use crate::error::{Error, ErrorKind};
use crate::job::Topic;
use crate::program::Line;
use crate::sequence::{Items, Sent, differ_from_message};
use crate::types::Compiled;

/// The limit of receives from any rank that are remembered.
const WILDCARDS: usize = 256;

/// What a message's sender has told of it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// The clock that the sender had told before it sent the message. Its receiver adopts this
    /// one: the sender may have told a later clock since.
    pub clock: Clock,
    /// The source line of the send; `None` for messages of this crate.
    pub send: Option<Send>,
}

/// A send, as its receiver hears of it.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    pub site: Site,
    /// Whether the call blocks, and no receive was posted for a message of the receiver.
    pub is_first: bool,
}

/// A receive, as it starts.
pub(crate) struct Room {
    pub line: Line,
    /// The elements; `None` if the data aren't typed.
    pub elements: Option<(Arc<Compiled>, u64)>,
    pub context: u32,
    /// The sender; `None` for any.
    pub source: Option<u32>,
    /// `None` for any.
    pub tag: Option<i32>,
}

/// A message that a receive has got.
#[derive(Clone, Copy)]
pub(crate) struct Got {
    pub peer: u32,
    pub tag: i32,
    pub bytes: u64,
    pub signature: u128,
}

/// The receives of a rank, and its sends to other ranks.
#[derive(Default)]
pub(crate) struct Messages {
    /// The number of sends and receives that have started.
    started: u64,
    /// Receives that haven't ended, with their places in the order of starts.
    receives: HashMap<u64, (u64, Room)>,
    /// The last receives from any rank that have ended.
    wildcards: VecDeque<Wildcard>,
    /// The last send to each rank by a call that blocks.
    sends: HashMap<u32, Blocking>,
}

struct Wildcard {
    started: u64,
    room: Room,
    peer: u32,
    /// The rank's clock number at its end.
    ended: u64,
}

struct Blocking {
    started: u64,
    /// The clock number that the message told.
    number: u64,
    site: Site,
}

impl Messages {
    /// A send starts, with this clock number. Returns what its receiver hears of it.
    pub(super) fn start_send(&mut self, peer: u32, line: Line, blocks: bool, number: u64) -> Send {
        self.started += 1;
        let site: Site = site(Some(line)).into();
        let mut posted = self.receives.values().map(|(_, room)| room.source);
        let is_first = blocks && !posted.any(|source| source.is_none_or(|source| source == peer));
        if is_first {
            let blocking = Blocking { started: self.started, number, site: site.clone() };
            self.sends.insert(peer, blocking);
        }
        Send { site, is_first }
    }

    /// A receive starts.
    pub(super) fn start_receive(&mut self, number: u64, room: Room) {
        self.started += 1;
        self.receives.insert(number, (self.started, room));
    }

    /// Compares a message with its receive, which has ended. `memory` is the representation of both
    /// ranks if only lengths were compared; otherwise the receive itself has compared the types.
    pub(super) fn end_receive(
        &mut self,
        (me, now): (u32, u64),
        (number, got): (u64, Got),
        told: &Told,
        memory: Option<&Architecture>,
        reports: &mut Reports,
    ) {
        let (Some((started, room)), Some(send)) = (self.receives.remove(&number), &told.send)
        else {
            return;
        };
        let here = site(Some(room.line));
        if let Some(text) = unlike(room.elements.as_ref(), got, memory) {
            reports.tell(Topic::Messages, format!("types {} {here}", send.site), || {
                format!(
                    "check: messages: the types of a message aren't those of its receive\n\
                     check:   sent by rank {} at {}: {}\n\
                     check:   received by rank {me} at {here}: {}\n\
                     check:   the data have arrived byte by byte; give the same types at both ends\n",
                    got.peer, send.site, text.0, text.1
                )
            });
        }
        if !reports.topics().include(Topic::Notes) {
            return;
        }
        let known = told.clock.of(me);
        for other in &self.wildcards {
            let could = other.started < started
                && other.peer != got.peer
                && other.room.context == room.context
                && other.room.tag.is_none_or(|tag| tag == got.tag)
                && known < other.ended;
            if could {
                let first = site(Some(other.room.line));
                reports.remark(Topic::Notes, format!("any {first} {}", send.site), || {
                    format!(
                        "check: note: a receive from any rank could have matched two senders\n\
                         check:   received by rank {me} at {first}: the message of rank {}\n\
                         check:   sent by rank {} at {}: could have been first\n\
                         check:   name the source if the order counts\n",
                        other.peer, got.peer, send.site
                    )
                });
            }
        }
        if let Some(mine) = self.sends.get(&got.peer) {
            let both = send.is_first && mine.started < started && known < mine.number;
            if both && got.peer != me {
                let kind = format!("first {} {}", mine.site, send.site);
                reports.remark(Topic::Notes, kind, || {
                    format!(
                        "check: note: two ranks send to each other before they receive, which \
                         works only while the messages are buffered\n\
                         check:   sent by rank {me} at {}\ncheck:   sent by rank {} at {}\n\
                         check:   let one of them receive first, or use MPI_Sendrecv\n",
                        mine.site, got.peer, send.site
                    )
                });
            }
        }
        if room.source.is_none() {
            self.wildcards.truncate(WILDCARDS - 1);
            self.wildcards.push_front(Wildcard { started, room, peer: got.peer, ended: now });
        }
    }

    /// Reports a receive that has failed, if its message is too long.
    pub(super) fn fail_receive(
        &mut self,
        me: u32,
        number: u64,
        error: &Error,
        reports: Option<&mut Reports>,
    ) {
        let (Some((_, room)), Some(reports)) = (self.receives.remove(&number), reports) else {
            return;
        };
        let (&ErrorKind::Truncate { length, room: bytes }, Some(sent)) =
            (error.kind(), error.sent_at())
        else {
            return;
        };
        let (here, peer) = (site(Some(room.line)), error.message().map_or(-1, |it| it.0));
        reports.tell(Topic::Messages, format!("long {sent} {here}"), || {
            format!(
                "check: messages: a message is longer than the buffer of its receive\n\
                 check:   sent by rank {peer} at {sent}: {length} bytes\n\
                 check:   received by rank {me} at {here}: room for {bytes} bytes\n\
                 check:   the receive returns an error of class MPI_ERR_TRUNCATE\n"
            )
        });
    }
}

/// The items that were sent and those of the receive, if their types differ. MPI_PACKED matches any
/// types (MPI-5.0 section 5.2).
fn unlike(
    elements: Option<&(Arc<Compiled>, u64)>,
    got: Got,
    memory: Option<&Architecture>,
) -> Option<(String, String)> {
    let ((datatype, count), memory) = (elements?, memory?);
    let packed = |bytes: u64| Signature::of_leaf(Basic::Packed.into()).repeat(bytes);
    let own = datatype.signature();
    let is_packed = packed(own.count) == Some(own)
        || packed(got.bytes).is_some_and(|it| it.hash == got.signature);
    if got.bytes == 0 || is_packed {
        return None;
    }
    let prefix = datatype.committed().signature_in(got.bytes, memory).ok()?;
    if prefix.is_some_and(|prefix| prefix.hash == got.signature) {
        return None;
    }
    let sent = Sent { length: got.bytes, hash: got.signature, stream: memory };
    let items = Items { count: *count, form: datatype.form(), text: &**datatype };
    let sent = match differ_from_message(sent, &items) {
        ErrorKind::Signature { origin, .. } => origin,
        _ => format!("{} bytes", got.bytes),
    };
    Some((sent, items.to_string()))
}

/// The report of a message that no receive has matched at finalize.
pub(crate) fn unmatched(me: u32, peer: u32, tag: i32, told: Option<&Told>) -> (String, String) {
    let place = told.and_then(|told| told.send.as_ref()).map(|send| &*send.site);
    let place = place.unwrap_or("an unknown place");
    let text = format!(
        "check: messages: a message was sent and never received\n\
         check:   sent by rank {peer} at {place}, to rank {me} with tag {tag}\n\
         check:   receive every message before finalize\n"
    );
    (format!("unmatched {place}"), text)
}
