//! Calls that haven't returned: each thread's, as the launcher finds it in the journal of a rank
//! that has ended.
//!
//! ```text
//!  0  activity u32     its code
//!  4  window u32       in this word and the next two, 0 for none, and otherwise one more
//!  8  peer u32         the rank that the call addresses
//! 12  awaited u32      the rank for which it has waited longest
//! 16  begin u64        nanoseconds of the host's monotonic clock
//! 24  line u32         of the source
//! 28  thread u32       the number of the thread in the trace
//! 32  file             of the source: the last bytes of a long name
//! ```

use longshore_transport::{Note, OpenCalls};
use serde::{Deserialize, Serialize};

use super::events::{shifted, unshifted};
use super::now;
use crate::Activity;

/// The bytes before the name of the file.
const HEAD: usize = 32;

/// The offset of the rank for which the call waits.
pub const AWAITED: usize = 12;

/// A call that hasn't returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The code of its activity.
    pub activity: u32,
    pub window: Option<u32>,
    pub file: String,
    pub line: u32,
    /// The rank for which it has waited longest, or which it addresses.
    pub awaited: Option<u32>,
    /// The time of its begin, if it is known.
    pub begin: Option<u64>,
    pub thread: u8,
}

/// The calls in which the threads of a rank were at its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Open {
    /// The time of the end.
    pub end: u64,
    pub calls: Vec<OpenCall>,
}

/// A call that begins.
#[derive(Clone, Copy, Debug)]
pub struct Entered<'a> {
    pub activity: Activity,
    pub window: Option<u32>,
    /// The rank that the call addresses.
    pub peer: Option<u32>,
    /// The time of its begin.
    pub begin: u64,
    /// The source file; empty if it isn't known.
    pub file: &'a str,
    pub line: u32,
    pub thread: u8,
}

impl Entered<'_> {
    /// Describes the call, for its slot in the journal. Returns the description's length.
    pub fn describe(self, out: &mut [u8; OpenCalls::ROOM]) -> usize {
        let Entered { activity, window, peer, begin, file, line, thread } = self;
        let file = file.as_bytes();
        let file = &file[file.len().saturating_sub(OpenCalls::ROOM - HEAD)..];
        let words = [activity.code(), shifted(window), shifted(peer), 0];
        let words =
            words.into_iter().chain([begin as u32, (begin >> 32) as u32, line, thread.into()]);
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out[HEAD..HEAD + file.len()].copy_from_slice(file);
        HEAD + file.len()
    }
}

impl Open {
    /// The calls in the journal of a rank that has ended now. Where it has none, the rank's note in
    /// the segment may still name one, without its begin and source place.
    pub fn read(calls: &OpenCalls, note: Note) -> Open {
        let read = calls.read();
        let described = read.iter().filter_map(|bytes| OpenCall::decode(bytes, note.waits_for));
        let mut calls: Vec<_> = described.collect();
        let noted = Activity::from_code(note.code).filter(|&it| it != Activity::Computing);
        if let (Some(activity), true) = (noted, calls.is_empty()) {
            calls.push(OpenCall::noted(activity, note));
        }
        Open { end: now(), calls }
    }
}

impl OpenCall {
    fn decode(bytes: &[u8], noted: Option<u32>) -> Option<OpenCall> {
        let (head, file) = bytes.split_at_checked(HEAD)?;
        let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let begin = u64::from(word(16)?) | u64::from(word(20)?) << 32;
        let awaited = unshifted(word(AWAITED)?).or(noted).or(unshifted(word(8)?));
        Some(OpenCall {
            activity: word(0)?,
            window: unshifted(word(4)?),
            file: String::from_utf8_lossy(file).into_owned(),
            line: word(24)?,
            awaited,
            begin: Some(begin),
            thread: word(28)? as u8,
        })
    }

    fn noted(activity: Activity, note: Note) -> OpenCall {
        let window = activity.is_on_window().then_some(note.detail);
        let (file, awaited) = (String::new(), note.waits_for);
        let activity = activity.code();
        OpenCall { activity, window, file, line: 0, awaited, begin: None, thread: 0 }
    }

    /// The time from its begin to this time.
    pub fn nanos(&self, end: u64) -> Option<u64> {
        Some(end.saturating_sub(self.begin?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_decoded_as_it_was_described() {
        let (file, line) = (file!(), line!());
        let entered = Entered {
            activity: Activity::Fence,
            window: Some(0),
            peer: Some(7),
            begin: 1 << 40,
            file,
            line,
            thread: 3,
        };
        let mut bytes = [0; OpenCalls::ROOM];
        let len = entered.describe(&mut bytes);
        let call = OpenCall::decode(&bytes[..len], None).unwrap();
        let expected = OpenCall {
            activity: Activity::Fence.code(),
            window: Some(0),
            file: file.to_owned(),
            line,
            awaited: Some(7),
            begin: Some(1 << 40),
            thread: 3,
        };
        assert_eq!((&call, call.nanos(5 + (1 << 40))), (&expected, Some(5)));
        let awaited = |bytes: &[u8], noted| OpenCall::decode(bytes, noted).unwrap().awaited;
        // Rank 4 lets it wait, but rank 5 lets rank 4 wait.
        assert_eq!(awaited(&bytes[..len], Some(4)), Some(4));
        bytes[AWAITED] = 6;
        assert_eq!(awaited(&bytes[..len], Some(4)), Some(5));
        assert_eq!(OpenCall::decode(&bytes[..HEAD - 1], None), None);
    }

    #[test]
    fn a_note_stands_in_for_a_call_without_description() {
        let journal = longshore_transport::Journal::create(1, 0).unwrap();
        let calls = journal.open_calls().unwrap();
        let (code, waits_for) = (Activity::Init.code(), Some(2));
        let note = Note { code, waits_for, ..Note::default() };
        let [call] = &Open::read(&calls, note).calls[..] else { panic!("one call") };
        assert_eq!((call.activity, call.awaited, call.begin), (code, waits_for, None));
        assert!(Open::read(&calls, Note::default()).calls.is_empty());
    }
}
