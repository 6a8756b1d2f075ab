//! How far a run is: a bar on the terminal, and nothing where standard error is no terminal.

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
    /// When it was last drawn.
    drawn: Option<Instant>,
    terminal: bool,
}

/// Drawing more often disturbs what is measured, and nobody reads it.
const PERIOD: Duration = Duration::from_millis(100);

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Bar {
    /// The bar of a run that begins now.
    pub fn new() -> Bar {
        Bar { start: Instant::now(), drawn: None, terminal: stderr().is_terminal() }
    }

    /// So many steps of so many are done, and what is being done.
    pub fn at(&mut self, done: usize, total: usize, what: &str) {
        let now = Instant::now();
        if !self.terminal || self.drawn.is_some_and(|drawn| now - drawn < PERIOD) {
            return;
        }
        self.drawn = Some(now);
        let columns = terminal_size_of(stderr()).map_or(80, |(Width(columns), _)| columns);
        let line = line(done, total, now - self.start, what, usize::from(columns));
        // A terminal that is gone is no reason to stop.
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

/// Bar, share, the time that is left if it goes on like this, and what is being done, as far as there is room.
fn line(done: usize, total: usize, since: Duration, what: &str, columns: usize) -> String {
    const CELLS: usize = 24;
    let share = (done as f64 / total.max(1) as f64).min(1.0);
    let full = (share * CELLS as f64) as usize;
    let (full, empty) = ("█".repeat(full), "░".repeat(CELLS - full));
    let left = match share {
        // Too early to tell.
        0.0..0.01 => "     ".to_owned(),
        _ => {
            let seconds = (since.as_secs_f64() * (1.0 / share - 1.0)).round() as u64;
            format!("{:2}:{:02}", seconds / 60, seconds % 60)
        }
    };
    let line = format!("{full}{empty} {:3.0} %  {left} left  {what}", 100.0 * share);
    line.chars().take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is_and_how_long_it_takes() {
        let half = line(50, 100, Duration::from_secs(65), "MPICH: put_latency", 80);
        assert_eq!(half, "████████████░░░░░░░░░░░░  50 %   1:05 left  MPICH: put_latency");
        assert_eq!(line(50, 100, Duration::from_secs(65), "MPICH", 12), "███████████");
        let begun = line(0, 100, Duration::ZERO, "x", 80);
        assert!(begun.contains("  0 %        left") && begun.ends_with('x'), "{begun}");
        assert!(line(7, 0, Duration::ZERO, "", 80).contains("100 %"));
    }
}
