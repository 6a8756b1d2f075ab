//! Reads the waits of a trace that `longshore run --trace` has written, for `longshore trace`.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;

use prost::Message;

use super::perfetto::{Annotation, BEGIN, END, Named, Packet, TrackEvent};
use super::writer::NOT_RETURNED;

/// The longest packet that is read. A trace has none that is longer.
const LIMIT: u64 = 16 << 20;

/// The waits of a job.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The ranks, in their order.
    pub ranks: Vec<RankLine>,
}

/// A rank in a trace.
#[derive(Clone, Debug, Default)]
pub struct RankLine {
    /// The rank's number.
    pub rank: u32,
    /// The rank's name, with its host if there are several.
    pub name: String,
    /// How well the host's clock is known.
    pub clock: String,
    /// The calls that may wait, in the order of their ends.
    pub calls: Vec<Span>,
    /// The epochs of windows, in the order of their ends.
    pub epochs: Vec<Span>,
    /// The number of operations.
    pub operations: u64,
    /// The number of events that had no room.
    pub dropped: u64,
    /// Whether the rank ended without finalize.
    pub cut: bool,
    /// The times of the first and the last event, in nanoseconds of the launcher's clock.
    pub times: Option<(u64, u64)>,
}

/// A call that may wait, or an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The call's name, such as `fence`.
    pub name: String,
    /// The begin, in nanoseconds of the launcher's clock.
    pub begin: u64,
    /// The end, in nanoseconds of the launcher's clock.
    pub end: u64,
    /// The window's number.
    pub window: Option<u64>,
    /// The source place, `FILE:LINE`; empty if it isn't known.
    pub source: String,
    /// The rank for which the call waited longest.
    pub awaited: Option<u32>,
    /// Whether the call hadn't returned when its rank ended, at `end`.
    pub unfinished: bool,
}

impl Span {
    /// The time from begin to end in nanoseconds.
    ///
    /// ```
    /// use longshore_launcher::timeline::Span;
    ///
    /// assert_eq!(Span { begin: 300, end: 450, ..Span::default() }.nanos(), 150);
    /// ```
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// A rank while its packets are read.
#[derive(Default)]
struct Reading {
    line: RankLine,
    texts: HashMap<u64, String>,
    /// The event that began last on each track.
    open: HashMap<u64, (u64, TrackEvent)>,
}

impl Timeline {
    /// Reads a trace. Only calls and epochs are kept, so a trace of millions of operations takes
    /// little memory.
    ///
    /// ```
    /// use longshore_launcher::timeline::Timeline;
    ///
    /// let path = std::env::temp_dir().join(format!("{}.trace", std::process::id()));
    /// std::fs::write(&path, "no packets")?;
    /// assert!(Timeline::read(&path).unwrap_err().to_string().contains("this is no trace"));
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file can't be read, or is no trace of `longshore run`.
    pub fn read(path: &Path) -> io::Result<Timeline> {
        let mut file = BufReader::with_capacity(1 << 20, fs::File::open(path)?);
        let mut ranks: HashMap<u32, Reading> = HashMap::new();
        while let Some(packet) = next(&mut file)? {
            let Some(rank) = packet.sequence.checked_sub(1) else { continue };
            ranks.entry(rank).or_default().take(rank, packet);
        }
        if ranks.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, NO_TRACE));
        }
        let mut ranks: Vec<RankLine> = ranks.into_values().map(|reading| reading.line).collect();
        ranks.sort_by_key(|rank| rank.rank);
        Ok(Timeline { ranks })
    }

    /// The times of the first and the last event of all ranks.
    ///
    /// ```
    /// use longshore_launcher::timeline::{RankLine, Timeline};
    ///
    /// let rank = |times| RankLine { times: Some(times), ..RankLine::default() };
    /// let timeline = Timeline { ranks: vec![rank((20, 80)), rank((10, 60))] };
    /// assert_eq!(timeline.times(), (10, 80));
    /// ```
    #[must_use]
    pub fn times(&self) -> (u64, u64) {
        let times = || self.ranks.iter().filter_map(|rank| rank.times);
        let begin = times().map(|(begin, _)| begin).min().unwrap_or(0);
        (begin, times().map(|(_, end)| end).max().unwrap_or(begin))
    }
}

const NO_TRACE: &str = "this is no trace: `longshore run --trace FILE` writes one";

/// The next packet of a file.
fn next(file: &mut impl Read) -> io::Result<Option<Packet>> {
    let mut tag = [0];
    if file.read(&mut tag)? == 0 {
        return Ok(None);
    }
    let broken = || io::Error::new(io::ErrorKind::InvalidData, NO_TRACE);
    // Field 1 of the message Trace, of variable length.
    if tag != [0x0a] {
        return Err(broken());
    }
    let mut len = 0u64;
    for shift in (0..).step_by(7) {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        len |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            break;
        }
        if shift >= 28 {
            return Err(broken());
        }
    }
    if len > LIMIT {
        return Err(broken());
    }
    let mut bytes = vec![0; len as usize];
    match file.read_exact(&mut bytes) {
        // A launcher that was killed has left the beginning of a packet.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    Packet::decode(&*bytes).map(Some).map_err(|_| broken())
}

impl Reading {
    fn take(&mut self, rank: u32, packet: Packet) {
        self.line.rank = rank;
        if let Some(interned) = packet.interned {
            let texts = interned.texts.into_iter();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.texts.extend(texts.map(|known| (known.id, text(&known.text))));
        }
        if let Some(track) = packet.track {
            if let Some(process) = track.process {
                self.line.name = process.name;
                self.line.clock = track.description.unwrap_or_default();
            }
        }
        let (Some(event), Some(time)) = (packet.event, packet.timestamp) else { return };
        let (begin, end) = self.line.times.unwrap_or((time, time));
        self.line.times = Some((begin.min(time), end.max(time)));
        match event.kind {
            BEGIN => drop(self.open.insert(event.track, (time, event))),
            END => {
                if let Some((begin, event)) = self.open.remove(&event.track) {
                    self.span(begin, time, &event);
                }
            }
            _ => match event.name.as_deref() {
                Some("dropped") => {
                    self.line.dropped = number(&event, Named::Events).unwrap_or(0);
                }
                Some("ended without finalize") => self.line.cut = true,
                _ => {}
            },
        }
    }

    fn span(&mut self, begin: u64, end: u64, event: &TrackEvent) {
        let category = event.categories.first().map_or("", String::as_str);
        if category == "operation" {
            self.line.operations += number(event, Named::Operations).unwrap_or(1);
        }
        let spans = match category {
            "call" => &mut self.line.calls,
            "epoch" => &mut self.line.epochs,
            _ => return,
        };
        let source = annotation(event, Named::Source).and_then(|it| it.interned_text);
        let name = event.name.as_deref().unwrap_or_default();
        let open = name.strip_suffix(NOT_RETURNED);
        spans.push(Span {
            name: open.unwrap_or(name).to_owned(),
            unfinished: open.is_some(),
            begin,
            end,
            window: number(event, Named::Window),
            source: source.and_then(|id| self.texts.get(&id).cloned()).unwrap_or_default(),
            awaited: number(event, Named::Awaited).and_then(|rank| u32::try_from(rank).ok()),
        });
    }
}

fn annotation(event: &TrackEvent, name: Named) -> Option<&Annotation> {
    event.annotations.iter().find(|annotation| annotation.name == name as u64)
}

fn number(event: &TrackEvent, name: Named) -> Option<u64> {
    annotation(event, name)?.number
}
