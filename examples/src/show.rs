//! The output of an example, all of it printed by rank 0: steps, checks, the frames that crossed
//! the wire, and memories side by side.
//!
//! Every call is collective, and one rank prints, so the output of different ranks doesn't mix.
//! Frames are printed only if `LONGSHORE_SHOW` is set, and their bytes and memories only if it is
//! `hex`. The demo sets it.

use std::error::Error;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use longshore::wire::{self, Description, Kind};
use longshore::{Communicator, Direction, Rank, Tapped, Window};

use crate::hex::{Side, side_by_side};

const TITLE: Style = AnsiColor::Cyan.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// The rank that prints.
const PRINTER: i32 = 0;
/// The tag of messages to the printer.
const TAG: i32 = 4711;

/// Prints the steps and checks of one example.
pub struct Show<'a> {
    rank: &'a Rank,
    world: &'a Communicator,
    details: bool,
    hex: bool,
    colour: bool,
}

impl<'a> Show<'a> {
    /// The output of the job of `rank`. If frames are to be printed, this starts recording them.
    pub fn new(rank: &'a Rank) -> Show<'a> {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let show = Show {
            rank,
            world: rank.world(),
            details: set("LONGSHORE_SHOW"),
            hex: std::env::var_os("LONGSHORE_SHOW").is_some_and(|value| value == "hex"),
            colour: set("LONGSHORE_COLOUR"),
        };
        rank.tap(show.details);
        show
    }

    fn is_printer(&self) -> bool {
        self.world.rank() == PRINTER
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Prints a line of text.
    ///
    /// # Errors
    /// An error of standard output.
    pub fn say(&self, text: &str) -> io::Result<()> {
        self.print(&format!("  {text}\n"))
    }

    /// Prints the title of a step, and discards the frames that were recorded before it.
    ///
    /// # Errors
    /// An error of standard output.
    pub fn step(&self, title: &str) -> io::Result<()> {
        self.rank.tapped();
        self.print(&(self.paint(TITLE, title) + "\n"))
    }

    /// Prints lines on the printer. A closed pipe is no error, so that an example runs to its end
    /// after its reader has exited.
    fn print(&self, lines: &str) -> io::Result<()> {
        if !self.is_printer() {
            return Ok(());
        }
        match io::stdout().lock().write_all(lines.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Checks that a fact holds on all ranks, and prints the verdict. `holds` is the fact on the
    /// calling rank.
    ///
    /// # Errors
    /// On every rank if the fact doesn't hold on some rank. Also an error of the communication or
    /// of standard output.
    pub fn check(&self, fact: &str, holds: bool) -> Result<(), Box<dyn Error>> {
        let all = self.world.allgather(&[u8::from(holds)])?;
        let failed: Vec<_> = (0..)
            .zip(&all)
            .filter(|(_, holds)| **holds == 0)
            .map(|(rank, _): (u32, _)| rank)
            .collect();
        let verdict =
            if failed.is_empty() { self.paint(GOOD, "ok") } else { self.paint(BAD, "FAILED") };
        self.print(&format!("  check   {fact}: {verdict}\n"))?;
        if failed.is_empty() {
            Ok(())
        } else {
            Err(format!("check failed on ranks {failed:?}: {fact}").into())
        }
    }

    /// Prints the forms and operations that `origin` has sent since the step began, and the
    /// refusals that it has received.
    ///
    /// # Errors
    /// An error of the communication or of standard output.
    pub fn wire(&self, origin: i32) -> Result<(), Box<dyn Error>> {
        if !self.details {
            return Ok(());
        }
        let mut lines = String::new();
        if self.world.rank() == origin {
            let mut has_more = false;
            for frame in self.rank.tapped().iter().filter(|frame| frame.peer as i32 != origin) {
                let Some(description) = wire::describe(&frame.bytes) else { continue };
                has_more |= description.kind == Kind::More && frame.direction == Direction::Sent;
                if let Some(summary) = summary(frame, &description, self.hex) {
                    let arrow = if frame.direction == Direction::Sent { "->" } else { "<-" };
                    lines += &format!("  wire    {origin} {arrow} {}  {summary}\n", frame.peer);
                }
            }
            // Not one line for each frame: their number depends on the conversion and on how much
            // room the queues have, so it would differ between runs.
            if has_more {
                lines += "  wire            (the remaining bytes follow in further frames)\n";
            }
        }
        Ok(self.print(&String::from_utf8_lossy(&self.collect(origin, lines.as_bytes())?))?)
    }

    /// Prints memory of `origin` and of `target` side by side. Each of the two ranks gives its own
    /// memory. Bytes of the target that differ from `before` are marked as moved.
    ///
    /// # Errors
    /// An error of the communication or of standard output.
    pub fn memories(
        &self,
        (origin, read): (i32, &[u8]),
        (target, before, written): (i32, &[u8], &[u8]),
    ) -> Result<(), Box<dyn Error>> {
        if !self.hex {
            return Ok(());
        }
        let architecture = self.rank.architecture().to_string();
        let (left, right) = (self.collect(origin, read)?, self.collect(target, written)?);
        let before = self.collect(target, before)?;
        let name = |rank| -> Result<String, Box<dyn Error>> {
            let name = self.collect(rank, architecture.as_bytes())?;
            Ok(format!("rank {rank}, {}", String::from_utf8_lossy(&name)))
        };
        let (left_name, right_name) = (name(origin)?, name(target)?);
        if self.is_printer() {
            let left = Side::all(left_name, &left);
            let right = Side::changed(right_name, &before, &right);
            for (number, line) in side_by_side(&left, &right, self.colour).iter().enumerate() {
                let title = if number == 0 { "memory" } else { "      " };
                self.print(&format!("  {title}  {line}\n"))?;
            }
        }
        Ok(())
    }

    /// Brings the bytes of rank `from` to the printer. Returns them there, nothing elsewhere.
    fn collect(&self, from: i32, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
        if from == PRINTER {
            return Ok(if self.is_printer() { bytes.to_vec() } else { Vec::new() });
        }
        if self.world.rank() == from {
            self.world.send(&[bytes.len() as u64], PRINTER, TAG)?;
            self.world.send(bytes, PRINTER, TAG)?;
        }
        if !self.is_printer() {
            return Ok(Vec::new());
        }
        let mut len = [0_u64];
        self.world.recv(&mut len, from, TAG)?;
        let mut received = vec![0; usize::try_from(len[0])?];
        self.world.recv(&mut received, from, TAG)?;
        Ok(received)
    }
}

/// Space before the second line on a frame.
const INDENT: &str = "                  ";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The lines on a frame that matters to the reader: a form or an operation that was sent, or a
/// refusal that was received. `None` for any other frame. With `with_bytes`, bytes of the frame
/// follow in hexadecimal.
fn summary(frame: &Tapped, description: &Description, with_bytes: bool) -> Option<String> {
    let bytes = |text: String| if with_bytes { format!("\n{INDENT}{text}") } else { String::new() };
    let text = description.text.as_deref().unwrap_or_default();
    match (description.kind, frame.direction) {
        (Kind::Define, Direction::Sent) => {
            let tag = description.tag.unwrap_or("unknown");
            let program =
                text.strip_prefix(tag).and_then(|text| text.strip_prefix(": ")).unwrap_or(text);
            let form = frame.bytes.get(description.header..)?;
            let shown = hex(&form[..form.len().min(24)]);
            let more = if form.len() > 24 { " ..." } else { "" };
            Some(format!(
                "form {}, tag {:02x} ({tag}), {} bytes: {program}{}",
                description.form?,
                form.first()?,
                description.payload,
                bytes(format!("{shown}{more}"))
            ))
        }
        (Kind::Put | Kind::Get, Direction::Sent) => {
            let (displacement, count) = description.target?;
            let verb = if description.kind == Kind::Put { "put of" } else { "get of" };
            let id = description.form_at.as_ref()?;
            Some(format!(
                "{verb} {} bytes after a header of {}: {count} x form {} at displacement \
                 {displacement}{}",
                description.stream?,
                description.header,
                description.form?,
                bytes(format!(
                    "bytes {} to {} name the form: {}",
                    id.start,
                    id.end - 1,
                    hex(frame.bytes.get(id.clone())?)
                ))
            ))
        }
        (Kind::Refuse, Direction::Received) => Some(format!("refused: {text}")),
        _ => None,
    }
}

/// Fills a rank's own window memory with a byte that no example puts, so that every byte written
/// shows. Returns the filled memory.
///
/// # Errors
/// Those of [`Window::write`].
pub fn blank<M>(window: &mut Window<M>) -> longshore::Result<Vec<u8>> {
    let blank = vec![0xcc; window.size() as usize];
    window.write(0, &blank)?;
    Ok(blank)
}

/// The bytes of a rank's own window memory.
///
/// # Errors
/// Those of [`Window::read`].
pub fn memory_of<M>(window: &Window<M>) -> longshore::Result<Vec<u8>> {
    let mut bytes = vec![0; window.size() as usize];
    window.read(0, &mut bytes)?;
    Ok(bytes)
}
