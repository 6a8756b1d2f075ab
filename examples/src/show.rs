//! Lets one rank tell what all of them did: steps, checks, the frames that crossed the wire, and memories side by side.
//!
//! All of its calls are collective, so that what the ranks print doesn't mix. Frames and memories are told only where
//! `LONGSHORE_SHOW` is set, as the demo does; an example that is run by itself prints its steps and checks.

use std::error::Error;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use longshore::wire::{self, Description, Kind};
use longshore::{Communicator, Direction, Rank, Tapped, Window};

use crate::hex::{Side, side_by_side};

const TITLE: Style = AnsiColor::Cyan.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The rank that speaks.
const SPEAKER: i32 = 0;
/// The tag of what the others tell it.
const TAG: i32 = 4711;

/// Tells of a job, in one voice.
pub struct Show<'a> {
    rank: &'a Rank,
    world: &'a Communicator,
    details: bool,
    colour: bool,
}

impl<'a> Show<'a> {
    /// Of the job that `rank` is in. Frames are recorded from here on, if they are to be told.
    pub fn new(rank: &'a Rank) -> Show<'a> {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let show = Show {
            rank,
            world: rank.world(),
            details: set("LONGSHORE_SHOW"),
            colour: set("LONGSHORE_COLOUR"),
        };
        rank.tap(show.details);
        show
    }

    fn speaks(&self) -> bool {
        self.world.rank() == SPEAKER
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A line of text.
    ///
    /// # Errors
    /// It can't be written.
    pub fn say(&self, text: &str) -> io::Result<()> {
        self.print(&format!("  {text}\n"))
    }

    /// The title of a step. What crossed the wire before it is forgotten.
    ///
    /// # Errors
    /// It can't be written.
    pub fn step(&self, title: &str) -> io::Result<()> {
        self.rank.tapped();
        self.print(&(self.paint(TITLE, title) + "\n"))
    }

    /// Lines, at the speaker. That nobody reads them any more stops no example.
    fn print(&self, lines: &str) -> io::Result<()> {
        if !self.speaks() {
            return Ok(());
        }
        match io::stdout().lock().write_all(lines.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Whether all ranks find `what` to be so.
    ///
    /// # Errors
    /// On every rank, if any of them doesn't; what the communication meets; a verdict that can't be written.
    pub fn check(&self, what: &str, so: bool) -> Result<(), Box<dyn Error>> {
        let all = self.world.allgather(&[u8::from(so)])?;
        let wrong: Vec<_> =
            (0..).zip(&all).filter(|(_, so)| **so == 0).map(|(rank, _): (u32, _)| rank).collect();
        let verdict =
            if wrong.is_empty() { self.paint(GOOD, "ok") } else { self.paint(BAD, "FAILED") };
        self.print(&format!("  check   {what}: {verdict}\n"))?;
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("{what}: not so on ranks {wrong:?}").into())
        }
    }

    /// The forms and the data that `origin` has sent since the step began.
    ///
    /// # Errors
    /// What the communication meets; lines that can't be written.
    pub fn wire(&self, origin: i32) -> Result<(), Box<dyn Error>> {
        if !self.details {
            return Ok(());
        }
        let mut lines = String::new();
        if self.world.rank() == origin {
            let mut is_all = true;
            for frame in self.rank.tapped().iter().filter(|frame| frame.peer as i32 != origin) {
                let Some(what) = wire::describe(&frame.bytes) else { continue };
                is_all &= what.kind != Kind::More || frame.direction != Direction::Sent;
                if let Some(words) = in_words(frame, &what) {
                    let way = if frame.direction == Direction::Sent { "->" } else { "<-" };
                    lines += &format!("  wire    {origin} {way} {}  {words}\n", frame.peer);
                }
            }
            // How many depends on what converts them, and on the room there is.
            if !is_all {
                lines += "  wire            and their other bytes in frames that follow\n";
            }
        }
        Ok(self.print(&String::from_utf8_lossy(&self.told(origin, lines.as_bytes())?))?)
    }

    /// Memory of `origin` and of `target` beside each other. Each gives its own; what differs from `before` has moved.
    ///
    /// # Errors
    /// What the communication meets; lines that can't be written.
    pub fn memories(
        &self,
        (origin, read): (i32, &[u8]),
        (target, before, written): (i32, &[u8], &[u8]),
    ) -> Result<(), Box<dyn Error>> {
        if !self.details {
            return Ok(());
        }
        let architecture = self.rank.architecture().to_string();
        let (left, right) = (self.told(origin, read)?, self.told(target, written)?);
        let before = self.told(target, before)?;
        let name = |rank| -> Result<String, Box<dyn Error>> {
            let name = self.told(rank, architecture.as_bytes())?;
            Ok(format!("rank {rank}, {}", String::from_utf8_lossy(&name)))
        };
        let (left_name, right_name) = (name(origin)?, name(target)?);
        if self.speaks() {
            let left = Side::all(left_name, &left);
            let right = Side::changed(right_name, &before, &right);
            for (number, line) in side_by_side(&left, &right, self.colour).iter().enumerate() {
                let title = if number == 0 { "memory" } else { "      " };
                self.print(&format!("  {title}  {line}\n"))?;
            }
        }
        Ok(())
    }

    /// What `from` has to tell, at the speaker; nothing elsewhere.
    fn told(&self, from: i32, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        if from == SPEAKER {
            return Ok(if self.speaks() { bytes.to_vec() } else { Vec::new() });
        }
        if self.world.rank() == from {
            self.world.send(&[bytes.len() as u64], SPEAKER, TAG)?;
            self.world.send(bytes, SPEAKER, TAG)?;
        }
        if !self.speaks() {
            return Ok(Vec::new());
        }
        let mut len = [0_u64];
        self.world.recv(&mut len, from, TAG)?;
        let mut told = vec![0; usize::try_from(len[0])?];
        self.world.recv(&mut told, from, TAG)?;
        Ok(told)
    }
}

/// What a frame that matters to the reader says: a form or an operation that was sent, a refusal that came back.
fn in_words(frame: &Tapped, what: &Description) -> Option<String> {
    let text = what.text.as_deref().unwrap_or_default();
    match (what.kind, frame.direction) {
        (Kind::Define, Direction::Sent) => {
            let tag = what.tag.unwrap_or("of an unknown tag");
            let program =
                text.strip_prefix(tag).and_then(|text| text.strip_prefix(": ")).unwrap_or(text);
            let form = &frame.bytes[what.header.min(frame.bytes.len())..];
            let shown = form
                .iter()
                .take(24)
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(" ");
            let more = if form.len() > 24 { " ..." } else { "" };
            Some(format!(
                "form {}, {tag}, {} bytes: {program}\n                  {shown}{more}",
                what.form?, what.payload
            ))
        }
        (Kind::Put | Kind::Get, Direction::Sent) => {
            let (displacement, count) = what.target?;
            let verb = if what.kind == Kind::Put { "put of" } else { "get of" };
            Some(format!(
                "{verb} {} bytes behind {} of header: {count} x form {} at displacement {displacement}",
                what.stream?, what.header, what.form?
            ))
        }
        (Kind::Refuse, Direction::Received) => Some(format!("refused: {text}")),
        _ => None,
    }
}

/// Fills a rank's own memory of a window with a byte that no example puts, so that whatever is written shows.
///
/// # Errors
/// As [`Window::write`].
pub fn blank<M>(window: &mut Window<M>) -> longshore::Result<Vec<u8>> {
    let blank = vec![0xcc; window.size() as usize];
    window.write(0, &blank)?;
    Ok(blank)
}

/// A rank's own memory of a window, byte by byte.
///
/// # Errors
/// As [`Window::read`].
pub fn memory_of<M>(window: &Window<M>) -> longshore::Result<Vec<u8>> {
    let mut bytes = vec![0; window.size() as usize];
    window.read(0, &mut bytes)?;
    Ok(bytes)
}
