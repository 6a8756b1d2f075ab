//! Promises that turn out false: hints that a window was given, and asserts of its calls (rules 9
//! and 26).
//!
//! A call that breaks one is refused. Programs in C run with libraries that ignore false promises,
//! so for them the call [works](crate::Matching::Lengths), and only `--check` reports it.

use super::parts::Parts;
use crate::check::site;
use crate::error::{ErrorKind, Result, spoken};
use crate::job::Topic;
use crate::process::Process;

/// The call under way breaks a promise.
///
/// # Errors
/// RMA_SYNC with this text, if broken promises aren't excused.
#[cold]
pub(super) fn broken(parts: &Parts, text: &'static str) -> Result<()> {
    let (process, window) = (parts.process(), parts.id());
    if !process.excuses() {
        return Err(ErrorKind::Epoch(text).into());
    }
    if process.checks() {
        report(process, window, text, &site(parts.checking().caller()));
    }
    Ok(())
}

/// Reports a broken promise, under `--check`.
pub(super) fn report(process: &Process, window: u32, text: &str, place: &str) {
    let mut engine = process.engine();
    if let Some(check) = engine.state().check() {
        let rank = process.me().rank;
        check.tell(Topic::Windows, format!("promise {text} {place}"), || {
            format!(
                "check: a promise for window {window} turns out false at rank {rank}\n\
                 check:   {}\ncheck:   at {place}\n",
                spoken(text)
            )
        });
    }
}
