//! Explains by which path the operations of a window go, under `LONGSHORE_EXPLAIN` and
//! `longshore run --explain`.

use std::fmt::Write;

use super::explained::{Explained, Told};
use super::operation::Operation;
use super::parts::Parts;
use super::path::{PATHS, Progress};
use crate::error::excerpt;

/// Tells on standard error by which path an operation went, and why it didn't go by a faster
/// one: once for each type, target, power of two in bytes, and path.
#[cold]
pub(super) fn tell(
    explained: &Explained,
    parts: &Parts,
    window: &str,
    operation: &Operation<'_>,
    progress: Progress,
) {
    let call = &operation.call;
    let Some(target) = parts.peers().get(call.target) else { return };
    let bounds = call.target_type.bounds_on(&target.architecture);
    let size = bounds.map_or(0, |bounds| u64::try_from(bounds.size).unwrap_or(0));
    let bytes = size.saturating_mul(u64::try_from(call.count).unwrap_or(0));
    let most = bytes.checked_next_power_of_two().unwrap_or(u64::MAX);
    let taken = progress.path(target.route);
    let Some(path) = PATHS.iter().position(|path| path.name == taken) else { return };
    let (action, datatype) = (call.action.number(), call.target_type.id());
    let told = Told { action, target: call.target, datatype, size: most.ilog2(), path };
    if !explained.is_new(told) {
        return;
    }
    let (rank, id, datatype) = (parts.process().me().rank, parts.id(), excerpt(&call.target_type));
    let name = if window.is_empty() { String::new() } else { format!(" {window:?}") };
    let mut text = format!(
        "longshore: rank {rank}, window {id}{name}: {} of up to {most} bytes, of {datatype}, to rank {}: {taken}\n",
        operation.name(),
        call.target,
    );
    for faster in &PATHS[..path] {
        let why = (faster.misfit)(parts, target, operation, bytes);
        let why = why.unwrap_or("it was ready later than the operation");
        // Writing to a string doesn't fail.
        let _ = writeln!(text, "longshore:   not {}: {why}", faster.name);
    }
    eprint!("{text}");
}
