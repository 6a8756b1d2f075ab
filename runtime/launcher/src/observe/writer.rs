//! Writes the events of ranks as a trace for Perfetto. Each rank is a process there.
//!
//! A rank's events are converted one by one as they arrive, so memory holds only the names that
//! occur. Both ends of an arrow compute its number, from the operation's origin, target, window and
//! number.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use longshore_job::journal::events::{Call, EPOCHS, Epoch, EpochKind, Event, Frame, Operation};
use longshore_job::journal::open::{Open, OpenCall};
use longshore_job::journal::snapshot::OTHERS;
use longshore_job::journal::{KINDS, ROUTES};
use prost::Message;

use super::perfetto::{
    Annotation, BEGIN, CLEARED, END, File, INSTANT, INTERNED, Interned, NAMES, Name, Named, Packet,
    Process, Text, Thread, Track, TrackEvent,
};
use super::report::name;

/// How the clock of a host differs from the launcher's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Nanoseconds that are added to the host's times.
    pub offset: i64,
    /// Nanoseconds by which that may be wrong.
    pub error: u64,
}

/// The first number of the source places of calls that haven't returned: ranks number fewer texts.
const OPEN_SITES: u32 = 1 << 20;

/// The end of the name of a call that hasn't returned.
pub(super) const NOT_RETURNED: &str = ", not returned";

/// The writer of one rank's events.
pub(super) struct Writer {
    rank: u32,
    clock: Clock,
    /// The bytes of an event whose rest hasn't arrived yet.
    partial: Vec<u8>,
    texts: HashMap<u32, String>,
    threads: HashSet<u8>,
    rows: HashMap<Row, u64>,
    last: u64,
    packets: Vec<Packet>,
}

/// A row of epochs, in which none overlap: the window, the target of locks, and whether they are
/// exposures.
type Row = (u32, Option<u32>, bool);

impl Writer {
    /// A writer for a rank on a host. The launcher's own host has no name, and exact times.
    pub(super) fn new(rank: u32, host: Option<&str>, clock: Clock) -> Writer {
        let mut writer = Writer {
            rank,
            clock,
            partial: Vec::new(),
            texts: HashMap::new(),
            threads: HashSet::new(),
            rows: HashMap::new(),
            last: 0,
            packets: Vec::new(),
        };
        let names = (1..).zip(NAMES).map(|(id, name)| Name { id, name: name.to_owned() });
        let interned = Some(Interned { names: names.collect(), texts: Vec::new() });
        let (name, description) = match host {
            None => (format!("rank {rank}"), "the clock of the launcher's host".to_owned()),
            Some(host) => {
                let error = super::summary::duration(clock.error);
                let text = format!("the clock of host {host}, right within {error}");
                (format!("rank {rank} on {host}"), text)
            }
        };
        let process = Some(Process { pid: writer.pid(), name });
        let description = Some(description);
        let track = Track { uuid: writer.uuid(0), process, description, ..Track::default() };
        let packet = Packet { interned, track: Some(track), flags: CLEARED, ..writer.packet() };
        writer.packets.push(packet);
        writer
    }

    /// A number of the rank's process, by which Perfetto tells processes apart. 0 is taken.
    fn pid(&self) -> i32 {
        (self.rank as i32 + 1) * 1000
    }

    fn uuid(&self, track: u64) -> u64 {
        u64::from(self.rank + 1) << 32 | track
    }

    fn thread(&self, thread: u8) -> u64 {
        self.uuid(1 + u64::from(thread))
    }

    fn packet(&self) -> Packet {
        Packet { sequence: self.rank + 1, flags: INTERNED, ..Packet::default() }
    }

    /// A time of the rank's host, on the launcher's clock.
    fn time(&self, time: u64) -> u64 {
        time.saturating_add_signed(self.clock.offset)
    }

    /// Converts events, and writes their packets.
    ///
    /// # Errors
    /// They can't be written.
    pub(super) fn events(&mut self, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        let mut rest = &partial[..];
        while let Some(event) = Event::decode(&mut rest) {
            self.event(event);
            self.flush(out)?;
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    /// Writes the calls in which the rank has ended, up to its end.
    ///
    /// # Errors
    /// The packets can't be written.
    pub(super) fn open(&mut self, open: &Open, out: &mut impl Write) -> io::Result<()> {
        for (text, call) in (OPEN_SITES..).zip(&open.calls) {
            self.open_call(text, call, open.end);
        }
        self.flush(out)
    }

    fn open_call(&mut self, text: u32, call: &OpenCall, end: u64) {
        if call.line > 0 {
            self.event(Event::Text(text, format!("{}:{}", call.file, call.line)));
        }
        let mut annotations = Vec::new();
        annotations.extend(call.window.map(|it| Annotation::of_number(Named::Window, it.into())));
        annotations.extend(source(if call.line > 0 { text } else { 0 }));
        annotations.extend(call.awaited.map(|it| Annotation::of_number(Named::Awaited, it.into())));
        // A rank that has ended within its first call may have named no thread.
        let is_known = self.threads.contains(&call.thread);
        let track = if is_known { self.thread(call.thread) } else { self.uuid(0) };
        let begin = call.begin.unwrap_or(if self.last > 0 { self.last } else { end });
        let name = format!("{}{NOT_RETURNED}", name(call.activity));
        self.slice(name, "call", track, (begin, end), annotations);
    }

    /// Ends the rank's part of the trace. `dropped` is the number of events that had no room, and
    /// `complete` is false for a rank that ended without finalize.
    ///
    /// # Errors
    /// The packets can't be written.
    pub(super) fn finish(
        &mut self,
        dropped: u32,
        complete: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let track = self.uuid(0);
        if dropped > 0 {
            let events = Annotation::of_number(Named::Events, dropped.into());
            self.instant("dropped", "trace", track, self.last, vec![events]);
        }
        if !complete {
            self.instant("ended without finalize", "trace", track, self.last, Vec::new());
        }
        if self.clock.error > 0 {
            let text = format!("right within {}", super::summary::duration(self.clock.error));
            let annotations = vec![Annotation::of_text(Named::Clock, text)];
            self.instant("clock", "trace", track, self.last, annotations);
        }
        self.flush(out)
    }

    fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        let packets = std::mem::take(&mut self.packets);
        let file = File { packets };
        out.write_all(&file.encode_to_vec())?;
        self.packets = file.packets;
        self.packets.clear();
        Ok(())
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Text(id, text) => {
                let known = Text { id: id.into(), text: text.clone().into_bytes() };
                let interned = Some(Interned { names: Vec::new(), texts: vec![known] });
                self.packets.push(Packet { interned, ..self.packet() });
                self.texts.insert(id, text);
            }
            Event::Thread { thread, name } => self.name_thread(thread, name),
            Event::Call(call) => self.call(&call),
            Event::Sleep { thread, begin, end } => {
                self.slice(
                    "sleep".to_owned(),
                    "sleep",
                    self.thread(thread),
                    (begin, end),
                    Vec::new(),
                );
            }
            Event::Operation(operation) => self.operation(&operation),
            Event::Frame(frame) => self.frame(&frame),
            Event::Epoch(epoch) => self.epoch(&epoch),
        }
    }

    fn name_thread(&mut self, thread: u8, name: u32) {
        if !self.threads.insert(thread) {
            return;
        }
        let (pid, uuid, parent) = (self.pid(), self.thread(thread), Some(self.uuid(0)));
        let name = self.texts.get(&name).cloned().unwrap_or_default();
        // Perfetto takes the thread whose number is the process's for the main one.
        let described = Some(Thread { pid, tid: i64::from(pid) + i64::from(thread), name });
        let track = Some(Track { uuid, thread: described, parent, ..Track::default() });
        self.packets.push(Packet { track, ..self.packet() });
    }

    fn call(&mut self, call: &Call) {
        let mut annotations = Vec::new();
        annotations.extend(call.window.map(|it| Annotation::of_number(Named::Window, it.into())));
        annotations.extend(source(call.site));
        annotations.extend(call.peer.map(|it| Annotation::of_number(Named::Rank, it.into())));
        let awaited = call.awaited.or(call.peer);
        annotations.extend(awaited.map(|it| Annotation::of_number(Named::Awaited, it.into())));
        let (track, times) = (self.thread(call.thread), (call.begin, call.end));
        self.slice(name(call.activity.into()).to_owned(), "call", track, times, annotations);
    }

    fn operation(&mut self, it: &Operation) {
        let kind = KINDS.get(usize::from(it.kind)).unwrap_or(&"operation");
        let route = ROUTES.get(usize::from(it.route)).unwrap_or(&"unknown");
        let mut annotations = vec![
            Annotation::of_number(Named::Rank, it.target.into()),
            Annotation::of_number(Named::Bytes, it.bytes),
            Annotation::of_text(Named::Route, (*route).to_owned()),
            Annotation::of_number(Named::Window, it.window.into()),
            Annotation::of_number(Named::Operations, it.count.into()),
        ];
        annotations.extend(source(it.site));
        if it.datatype > 0 {
            annotations.push(Annotation::of_interned(Named::Datatype, it.datatype));
        }
        let track = self.thread(it.thread);
        let first = self.packets.len();
        let times = (it.begin, it.end);
        self.slice(format!("{kind} to {}", it.target), "operation", track, times, annotations);
        if it.number > 0 {
            let flow = flow(self.rank, it.target, it.window, it.number);
            if let Some(TrackEvent { flows, .. }) = &mut self.packets[first].event {
                flows.push(flow);
            }
        }
    }

    fn frame(&mut self, it: &Frame) {
        let kind = self.texts.get(&it.kind).map_or("frame", String::as_str);
        let name = match it.sent {
            true => format!("{kind} to {}", it.peer),
            false => format!("{kind} from {}", it.peer),
        };
        let mut annotations = vec![
            Annotation::of_number(Named::Rank, it.peer.into()),
            Annotation::of_number(Named::Bytes, it.bytes),
        ];
        if it.number > 0 {
            annotations.push(Annotation::of_number(Named::Number, it.number));
            annotations.push(Annotation::of_number(Named::Window, it.window.into()));
        }
        let (track, first) = (self.thread(it.thread), self.packets.len());
        self.instant(&name, "frame", track, it.time, annotations);
        if it.number > 0 && !it.sent {
            let flow = flow(it.peer, self.rank, it.window, it.number);
            if let Some(TrackEvent { ending_flows, .. }) = &mut self.packets[first].event {
                ending_flows.push(flow);
            }
        }
    }

    fn epoch(&mut self, it: &Epoch) {
        let kind = EPOCHS.get(usize::from(it.kind)).unwrap_or(&"epoch");
        let is_exposure = it.kind == EpochKind::Exposure as u8;
        let row = (it.window, it.target, is_exposure);
        let track = match self.rows.get(&row) {
            Some(&track) => track,
            None => self.make_row(row),
        };
        let mut annotations = vec![Annotation::of_number(Named::Window, it.window.into())];
        annotations.extend(source(it.site));
        annotations.extend(it.target.map(|it| Annotation::of_number(Named::Rank, it.into())));
        self.slice(format!("{kind} epoch"), "epoch", track, (it.begin, it.end), annotations);
    }

    fn make_row(&mut self, row: Row) -> u64 {
        let (window, target, is_exposure) = row;
        let uuid = self.uuid(1 << 16 | self.rows.len() as u64);
        let window =
            if window == OTHERS { "window".to_owned() } else { format!("window {window}") };
        let name = match target {
            Some(target) => format!("{window}, lock of rank {target}"),
            None if is_exposure => format!("{window}, exposure"),
            None => window,
        };
        let (name, parent) = (Some(name), Some(self.uuid(0)));
        let track = Some(Track { uuid, name, parent, ..Track::default() });
        self.packets.push(Packet { track, ..self.packet() });
        self.rows.insert(row, uuid);
        uuid
    }

    fn slice(
        &mut self,
        name: String,
        category: &str,
        track: u64,
        (begin, end): (u64, u64),
        annotations: Vec<Annotation>,
    ) {
        let (categories, name) = (vec![category.to_owned()], Some(name));
        let kind = BEGIN;
        let event = TrackEvent { annotations, kind, track, categories, name, ..Default::default() };
        self.push(begin, event);
        self.push(end.max(begin), TrackEvent { kind: END, track, ..TrackEvent::default() });
    }

    fn instant(
        &mut self,
        name: &str,
        category: &str,
        track: u64,
        time: u64,
        annotations: Vec<Annotation>,
    ) {
        let (categories, name) = (vec![category.to_owned()], Some(name.to_owned()));
        let kind = INSTANT;
        let event = TrackEvent { annotations, kind, track, categories, name, ..Default::default() };
        self.push(time, event);
    }

    fn push(&mut self, time: u64, event: TrackEvent) {
        self.last = self.last.max(time);
        let timestamp = Some(self.time(time));
        self.packets.push(Packet { timestamp, event: Some(event), ..self.packet() });
    }
}

fn source(site: u32) -> Option<Annotation> {
    (site > 0).then(|| Annotation::of_interned(Named::Source, site))
}

/// The number of the arrow of an operation by message. It is computed at both ends.
fn flow(origin: u32, target: u32, window: u32, number: u64) -> u64 {
    let ranks = u64::from(origin) << 32 | u64::from(target);
    let mut mixed = ranks ^ u64::from(window).rotate_left(17) ^ number.rotate_left(40);
    for _ in 0..3 {
        mixed = (mixed ^ mixed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number);
    }
    // 0 stands for no arrow.
    mixed | 1
}

/// The answers of a host that was asked for its clock.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    best: Option<Clock>,
    answers: u32,
}

/// The number of times that a host is asked for its clock. The quickest answer counts.
const ANSWERS: u32 = 16;

impl Clocks {
    /// Takes an answer: the host's clock was `told` at some time from `asked` to `heard`.
    pub(crate) fn hear(&mut self, asked: u64, told: u64, heard: u64) {
        self.answers += 1;
        let error = heard.saturating_sub(asked) / 2;
        let offset = asked.wrapping_add(error).wrapping_sub(told) as i64;
        if self.best.is_none_or(|best| error < best.error) {
            self.best = Some(Clock { offset, error: error.max(1) });
        }
    }

    /// Whether the host should be asked again.
    pub(crate) fn want_more(&self) -> bool {
        self.answers < ANSWERS
    }

    /// The best answer. Without any, the host's clock is taken for the launcher's, and may be wrong
    /// by any time.
    pub(crate) fn best(&self) -> Clock {
        self.best.unwrap_or(Clock { offset: 0, error: u64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_gives_the_clock_and_its_error() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.best().error, u64::MAX);
        // The host's clock is 1000 behind.
        clocks.hear(5000, 4400, 6000);
        clocks.hear(7000, 6010, 7020);
        clocks.hear(8000, 7300, 8400);
        assert_eq!(clocks.best(), Clock { offset: 1000, error: 10 });
        assert!(clocks.want_more());
        (0..ANSWERS).for_each(|_| clocks.hear(0, 0, 1 << 40));
        assert!(!clocks.want_more());
    }

    #[test]
    fn both_ends_of_an_operation_compute_one_number() {
        assert_eq!(flow(1, 2, 3, 4), flow(1, 2, 3, 4));
        let others = [flow(2, 1, 3, 4), flow(1, 2, 4, 4), flow(1, 2, 3, 5)];
        assert!(others.iter().all(|&other| other != flow(1, 2, 3, 4)));
    }

    #[test]
    fn a_part_may_end_within_an_event() {
        let mut bytes = Vec::new();
        for time in 0..10 {
            Event::Sleep { thread: 0, begin: time, end: time + 1 }.encode(&mut bytes);
        }
        let whole = |parts: &[&[u8]]| {
            let (mut writer, mut out) = (Writer::new(0, None, Clock::default()), Vec::new());
            parts.iter().for_each(|part| writer.events(part, &mut out).unwrap());
            writer.finish(0, true, &mut out).unwrap();
            File::decode(&*out).unwrap()
        };
        let expected = whole(&[&bytes]);
        assert_eq!(expected.packets.len(), 21);
        for at in 0..bytes.len() {
            assert_eq!(whole(&[&bytes[..at], &bytes[at..]]), expected);
        }
    }
}
