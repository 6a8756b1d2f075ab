//! Output of a rank on standard error: log events of `tracing`, and reports of the runtime.

use std::io::{self, Write};

use tracing::level_filters::LevelFilter;

/// Starts logging to standard error at level `most`. If the program has installed a subscriber of
/// its own, that one stays.
pub(crate) fn start(most: LevelFilter) {
    let log = tracing_subscriber::fmt().with_max_level(most).without_time().with_ansi(false);
    let _ = log.with_writer(io::stderr).try_init();
}

/// Writes `text` to standard error in one call, so that the lines of several ranks don't mix.
///
/// A failed write is ignored: standard error may be closed, and `eprint!` would panic.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
