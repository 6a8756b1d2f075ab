//! The tracer of a rank: it writes events to the rank's journal.

use std::collections::HashMap;
use std::thread::ThreadId;

use longshore_job::journal::events::{Event, Operation};
use longshore_transport::Journal;

use crate::program::Line;
use crate::wire::Kind;

/// Operations of one kind that begin within this time after the last one are one event.
const TOGETHER: u64 = 20_000;

/// The most texts of a trace. Further ones are empty.
const TEXTS: usize = 1 << 16;

/// The tracer of a rank.
pub(super) struct Tracer {
    /// The room for events in the journal.
    room: usize,
    texts: HashMap<Key, u32>,
    threads: HashMap<ThreadId, u8>,
    /// The last operations, to which the next one may be added.
    last: Option<Operation>,
    bytes: Vec<u8>,
}

/// The name by which a text is known.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Key {
    Site(&'static str, u32),
    Datatype(u64),
    Frame(Kind),
    Thread(u8),
}

impl Tracer {
    pub(super) fn new(room: usize) -> Tracer {
        let (texts, threads) = (HashMap::new(), HashMap::new());
        Tracer { room, texts, threads, last: None, bytes: Vec::new() }
    }

    /// The number of a text. It is written when it is first used.
    pub(super) fn text(
        &mut self,
        journal: &mut Journal,
        key: Key,
        text: impl FnOnce() -> String,
    ) -> u32 {
        if let Some(&id) = self.texts.get(&key) {
            return id;
        }
        let id = self.texts.len() as u32 + 1;
        if self.texts.len() >= TEXTS || !self.put(journal, &Event::Text(id, text())) {
            return 0;
        }
        self.texts.insert(key, id);
        id
    }

    /// The number of a source place.
    pub(super) fn site(&mut self, journal: &mut Journal, caller: Option<Line>) -> u32 {
        let Some(caller) = caller else { return 0 };
        let (file, line) = (caller.file(), caller.line());
        self.text(journal, Key::Site(file, line), || match line {
            0 => file.to_owned(),
            line => format!("{file}:{line}"),
        })
    }

    /// The number of the calling thread.
    pub(super) fn thread(&mut self, journal: &mut Journal) -> u8 {
        let thread = std::thread::current();
        if let Some(&number) = self.threads.get(&thread.id()) {
            return number;
        }
        let number = u8::try_from(self.threads.len()).unwrap_or(u8::MAX);
        self.threads.insert(thread.id(), number);
        let name = match thread.name() {
            Some(name) => name.to_owned(),
            None => format!("thread {number}"),
        };
        let name = self.text(journal, Key::Thread(number), || name);
        self.put(journal, &Event::Thread { thread: number, name });
        number
    }

    /// Writes an event on a wait or an epoch. Returns whether there was room.
    pub(super) fn put(&mut self, journal: &mut Journal, event: &Event) -> bool {
        self.bytes.clear();
        event.encode(&mut self.bytes);
        journal.append(&self.bytes)
    }

    /// Writes an event of which there may be millions. The last quarter of the journal is for
    /// waits.
    pub(super) fn put_many(&mut self, journal: &mut Journal, event: &Event) {
        if journal.len() < self.room / 4 * 3 {
            self.put(journal, event);
        } else {
            journal.drop_event();
        }
    }

    /// Takes an operation. One that follows others like it becomes one event with them.
    pub(super) fn operation(&mut self, journal: &mut Journal, next: Operation) {
        if let Some(last) = &mut self.last {
            let alike = Operation { begin: next.begin, end: next.end, ..*last };
            let alike = Operation { bytes: next.bytes, count: next.count, ..alike };
            let follows = next.begin.saturating_sub(last.end) < TOGETHER;
            // Each operation by message has an arrow of its own.
            if alike == next && follows && next.number == 0 && last.count < u32::MAX {
                last.end = next.end;
                last.bytes += next.bytes;
                last.count += 1;
                return;
            }
        }
        self.flush(journal);
        self.last = Some(next);
        if next.number > 0 {
            self.flush(journal);
        }
    }

    /// Writes the operations that wait for more.
    pub(super) fn flush(&mut self, journal: &mut Journal) {
        if let Some(last) = self.last.take() {
            self.put_many(journal, &Event::Operation(last));
        }
    }
}
