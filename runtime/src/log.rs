//! What a rank tells an operator, on its standard error: for programs that listen to `tracing` in no way of their own.

use std::io::{self, Write};

use tracing::level_filters::LevelFilter;

/// Begins to tell so much. Where the program listens already, what it wants counts.
pub(crate) fn start(most: LevelFilter) {
    let log = tracing_subscriber::fmt().with_max_level(most).without_time().with_ansi(false);
    let _ = log.with_writer(io::stderr).try_init();
}

/// Says something in one piece, lest ranks mix their lines. Nobody may read it any more: `eprint!` would panic then.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
