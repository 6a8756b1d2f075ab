//! The dashboard: the latest frame on a terminal, with `--dashboard`. The launcher passes the lines
//! on, so the program can't know by itself whether they reach a terminal.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};

use super::frame::Frame;

const PERIOD: Duration = Duration::from_millis(100);
const LABEL: Style = AnsiColor::Cyan.on_default();
const LINES: usize = 6;

/// The state of the terminal.
pub struct Dashboard {
    is_shown: bool,
    /// When the lines were drawn last, and the frame of then.
    drawn: Option<(Instant, u64)>,
}

impl Dashboard {
    pub fn new(is_shown: bool) -> Dashboard {
        Dashboard { is_shown, drawn: None }
    }

    /// Draws a frame, at most ten times a second.
    pub fn show(&mut self, frame: &Frame) -> io::Result<()> {
        let now = Instant::now();
        let since =
            self.drawn.map(|(then, number)| (now - then, frame.number.saturating_sub(number)));
        if !self.is_shown || since.is_some_and(|(since, _)| since < PERIOD) {
            return Ok(());
        }
        let rate = since.map_or(0.0, |(since, frames)| frames as f64 / since.as_secs_f64());
        let mut text = String::new();
        if self.drawn.is_some() {
            // Up again, to the first line.
            text += &format!("\x1b[{LINES}A");
        }
        let mut line = |label: &str, value: String| {
            text += &format!("\x1b[K  {LABEL}{label:<9}{LABEL:#}{value}\n");
        };
        line("frame", format!("{}, {rate:.0} a second", frame.number));
        line("uptime", format!("{:.2} s", frame.uptime));
        let heaters: String = frame
            .heaters
            .iter()
            .map(|heater| if bool::from(*heater) { '#' } else { '.' })
            .collect();
        let mode = frame.mode.get().unwrap_or_default();
        line("mode", format!("{mode:?}, heaters {heaters}"));
        for rail in &frame.rails {
            let trips = match rail.trips.0 {
                ..0 => String::new(),
                trips => format!(", {trips} trips"),
            };
            line(&rail.label(), format!("{:>7.3} V{trips}", rail.volts));
        }
        self.drawn = Some((now, frame.number));
        io::stdout().lock().write_all(text.as_bytes())
    }
}
