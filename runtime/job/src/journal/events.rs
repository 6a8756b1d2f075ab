//! The events of a trace, as a rank leaves them in its journal: words of 64 bits, little-endian.
//!
//! | event | words after the first |
//! |---|---|
//! | text | length in bytes, then the bytes, padded |
//! | call | begin, end, window and site, peer and awaited rank |
//! | sleep | begin, end |
//! | operation | begin, end, bytes, window and site, type and count, number |
//! | frame | time, bytes, window, number |
//! | epoch | begin, end, window and site |
//!
//! The first word has the kind of event, two details, the thread, and one number of 32 bits. Texts,
//! such as source places, have numbers, and precede the events that name them. Number 0 is the
//! empty text. Times are nanoseconds of the host's monotonic clock.

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A text, and the number that stands for it from here on.
    Text(u32, String),
    Call(Call),
    /// A waiting thread slept.
    Sleep {
        thread: u8,
        begin: u64,
        end: u64,
    },
    Operation(Operation),
    Frame(Frame),
    Epoch(Epoch),
    /// A thread's name.
    Thread {
        thread: u8,
        name: u32,
    },
}

/// A call that may wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    pub thread: u8,
    /// The code of its activity.
    pub activity: u8,
    pub begin: u64,
    pub end: u64,
    pub window: Option<u32>,
    pub site: u32,
    /// The rank that it addresses.
    pub peer: Option<u32>,
    /// The rank for which it waited longest.
    pub awaited: Option<u32>,
}

/// Operations of one kind, one after the other: mostly one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation {
    pub thread: u8,
    pub kind: u8,
    pub route: u8,
    /// The target's rank in the job.
    pub target: u32,
    pub begin: u64,
    pub end: u64,
    pub bytes: u64,
    pub window: u32,
    pub site: u32,
    /// The text of the target type.
    pub datatype: u32,
    pub count: u32,
    /// Its number among those of its origin on its target, if it went by message; otherwise 0.
    pub number: u64,
}

/// A frame that was sent or received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    pub thread: u8,
    pub sent: bool,
    /// The text of its kind.
    pub kind: u32,
    pub peer: u32,
    pub time: u64,
    pub bytes: u64,
    pub window: u32,
    /// The number of the operation that it begins; otherwise 0.
    pub number: u64,
}

/// An epoch of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// The number of its kind in [`EPOCHS`].
    pub kind: u8,
    pub begin: u64,
    pub end: u64,
    pub window: u32,
    pub site: u32,
    /// The locked target, by its rank in the job.
    pub target: Option<u32>,
}

/// The kinds of epochs, in the order of their numbers.
pub const EPOCHS: [&str; 5] = ["fence", "access", "exposure", "lock", "lock_all"];

/// The kind of an epoch, as a number in [`EPOCHS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EpochKind {
    Fence = 0,
    Access = 1,
    Exposure = 2,
    Lock = 3,
    LockAll = 4,
}

const TEXT: u8 = 1;
const CALL: u8 = 2;
const SLEEP: u8 = 3;
const OPERATION: u8 = 4;
const FRAME: u8 = 5;
const EPOCH: u8 = 6;
const THREAD: u8 = 7;

/// The first word of an event.
fn first(kind: u8, details: [u8; 2], thread: u8, number: u32) -> u64 {
    u64::from_le_bytes({
        let [a, b, c, d] = number.to_le_bytes();
        [kind, details[0], details[1], thread, a, b, c, d]
    })
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn unpair(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// A number that may be absent: 0 for none.
pub fn shifted(number: Option<u32>) -> u32 {
    number.map_or(0, |number| number.wrapping_add(1))
}

pub fn unshifted(number: u32) -> Option<u32> {
    number.checked_sub(1)
}

impl Event {
    /// Appends the event's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = |words: &[u64]| words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        match self {
            Event::Text(id, text) => {
                put(&[first(TEXT, [0; 2], 0, *id), text.len() as u64]);
                out.extend(text.as_bytes());
                out.resize(out.len().next_multiple_of(8), 0);
            }
            Event::Call(call) => put(&[
                first(CALL, [call.activity, 0], call.thread, shifted(call.window)),
                call.begin,
                call.end,
                pair(call.site, 0),
                pair(shifted(call.peer), shifted(call.awaited)),
            ]),
            Event::Sleep { thread, begin, end } => {
                put(&[first(SLEEP, [0; 2], *thread, 0), *begin, *end]);
            }
            Event::Operation(it) => put(&[
                first(OPERATION, [it.kind, it.route], it.thread, it.target),
                it.begin,
                it.end,
                it.bytes,
                pair(it.window, it.site),
                pair(it.datatype, it.count),
                it.number,
            ]),
            Event::Frame(it) => put(&[
                first(FRAME, [it.sent.into(), 0], it.thread, it.peer),
                it.time,
                it.bytes,
                pair(it.window, it.kind),
                it.number,
            ]),
            Event::Epoch(it) => put(&[
                first(EPOCH, [it.kind, 0], 0, shifted(it.target)),
                it.begin,
                it.end,
                pair(it.window, it.site),
            ]),
            Event::Thread { thread, name } => put(&[first(THREAD, [0; 2], *thread, *name)]),
        }
    }

    /// Takes the first event from bytes. `None` at their end, and for bytes that are no event,
    /// after which none can be found.
    pub fn decode(bytes: &mut &[u8]) -> Option<Event> {
        let mut rest = *bytes;
        let mut word = || {
            let (word, left) = rest.split_first_chunk::<8>()?;
            rest = left;
            Some(u64::from_le_bytes(*word))
        };
        let head = word()?;
        let [kind, a, b, thread, ..] = head.to_le_bytes();
        let number = unpair(head).1;
        let event = match kind {
            TEXT => {
                let len = usize::try_from(word()?).ok()?;
                let padded = len.checked_next_multiple_of(8)?;
                let text = rest.get(..len)?;
                let text = String::from_utf8_lossy(text).into_owned();
                rest = rest.get(padded..)?;
                Event::Text(number, text)
            }
            CALL => {
                let (begin, end, (site, _), (peer, awaited)) =
                    (word()?, word()?, unpair(word()?), unpair(word()?));
                let (window, peer, awaited) =
                    (unshifted(number), unshifted(peer), unshifted(awaited));
                Event::Call(Call { thread, activity: a, begin, end, window, site, peer, awaited })
            }
            SLEEP => Event::Sleep { thread, begin: word()?, end: word()? },
            OPERATION => {
                let (begin, end, bytes) = (word()?, word()?, word()?);
                let ((window, site), (datatype, count)) = (unpair(word()?), unpair(word()?));
                Event::Operation(Operation {
                    thread,
                    kind: a,
                    route: b,
                    target: number,
                    begin,
                    end,
                    bytes,
                    window,
                    site,
                    datatype,
                    count,
                    number: word()?,
                })
            }
            FRAME => {
                let (time, bytes, (window, kind)) = (word()?, word()?, unpair(word()?));
                let (sent, peer, number) = (a != 0, number, word()?);
                Event::Frame(Frame { thread, sent, kind, peer, time, bytes, window, number })
            }
            EPOCH => {
                let (begin, end, (window, site)) = (word()?, word()?, unpair(word()?));
                let target = unshifted(number);
                Event::Epoch(Epoch { kind: a, begin, end, window, site, target })
            }
            THREAD => Event::Thread { thread, name: number },
            _ => return None,
        };
        *bytes = rest;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_decoded_as_it_was_encoded() {
        let operation = Operation {
            thread: 1,
            kind: 5,
            route: 2,
            target: 4095,
            begin: 1 << 50,
            end: (1 << 50) + 7,
            bytes: 1 << 33,
            window: 3,
            site: 9,
            datatype: 8,
            count: 1000,
            number: 1 << 40,
        };
        let call = Call {
            thread: 2,
            activity: 9,
            begin: 5,
            end: 6,
            window: Some(0),
            site: 4,
            peer: None,
            awaited: Some(0),
        };
        let frame = Frame {
            thread: 0,
            sent: true,
            kind: 3,
            peer: 1,
            time: 77,
            bytes: 48,
            window: 2,
            number: 12,
        };
        let epoch = Epoch { kind: 3, begin: 1, end: 2, window: 7, site: 1, target: Some(2) };
        let events = [
            Event::Text(1, "examples/halo.rs:77".to_owned()),
            Event::Text(2, "12345678".to_owned()),
            Event::Call(call),
            Event::Sleep { thread: 0, begin: 3, end: 9 },
            Event::Operation(operation),
            Event::Frame(frame),
            Event::Epoch(epoch),
            Event::Thread { thread: 3, name: 2 },
        ];
        let mut bytes = Vec::new();
        events.iter().for_each(|event| event.encode(&mut bytes));
        let mut rest = &bytes[..];
        for event in &events {
            assert_eq!(Event::decode(&mut rest).as_ref(), Some(event));
        }
        assert!(rest.is_empty());
        // A rank that is killed within an event, and bytes of anything else.
        for cut in 0..bytes.len() {
            let mut rest = &bytes[..cut];
            while Event::decode(&mut rest).is_some() {}
        }
        assert_eq!(Event::decode(&mut &[0xffu8; 64][..]), None);
    }
}
