//! The progress bar of a run. If standard error isn't a terminal, nothing is shown.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use terminal_size::{Width, terminal_size_of};

/// A bar, cleared when it is dropped.
///
/// ```
/// let mut bar = longshore_benches::progress::Bar::new();
/// bar.at(17, 200, "turn 1 of 5, MPICH: put_latency, 8 B");
/// ```
#[derive(Debug)]
pub struct Bar {
    start: Instant,
    /// The time of the last drawing.
    drawn: Option<Instant>,
    terminal: bool,
}

/// The time between drawings. Drawing more often would disturb the measurement.
const PERIOD: Duration = Duration::from_millis(100);

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Bar {
    /// A bar for a run that begins now.
    pub fn new() -> Bar {
        Bar { start: Instant::now(), drawn: None, terminal: stderr().is_terminal() }
    }

    /// Draws the bar with `done` of `total` steps, and a description of the current one.
    pub fn at(&mut self, done: usize, total: usize, current: &str) {
        let now = Instant::now();
        if !self.terminal || self.drawn.is_some_and(|drawn| now - drawn < PERIOD) {
            return;
        }
        self.drawn = Some(now);
        let columns = terminal_size_of(stderr()).map_or(80, |(Width(columns), _)| columns);
        let line = line(done, total, now - self.start, current, usize::from(columns));
        // Errors are ignored: if the terminal is gone, the run still goes on.
        let _ = write!(stderr(), "\r\x1b[2K{line}");
        let _ = stderr().flush();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }
}

/// The text of the bar: bar, percentage, estimated time left, and current step, cut to `columns`.
fn line(done: usize, total: usize, since: Duration, current: &str, columns: usize) -> String {
    const CELLS: usize = 24;
    let share = (done as f64 / total.max(1) as f64).min(1.0);
    let full = (share * CELLS as f64) as usize;
    let (full, empty) = ("█".repeat(full), "░".repeat(CELLS - full));
    let left = match share {
        // Too early for an estimate.
        0.0..0.01 => "     ".to_owned(),
        _ => {
            let seconds = (since.as_secs_f64() * (1.0 / share - 1.0)).round() as u64;
            format!("{:2}:{:02}", seconds / 60, seconds % 60)
        }
    };
    let line = format!("{full}{empty} {:3.0} %  {left} left  {current}", 100.0 * share);
    line.chars().take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_shows_percentage_time_left_and_current_step() {
        let half = line(50, 100, Duration::from_secs(65), "MPICH: put_latency", 80);
        assert_eq!(half, "████████████░░░░░░░░░░░░  50 %   1:05 left  MPICH: put_latency");
        assert_eq!(line(50, 100, Duration::from_secs(65), "MPICH", 12), "███████████");
        let begun = line(0, 100, Duration::ZERO, "x", 80);
        assert!(begun.contains("  0 %        left") && begun.ends_with('x'), "{begun}");
        assert!(line(7, 0, Duration::ZERO, "", 80).contains("100 %"));
    }
}
