//! Under `--check`, the program's line that made each object, by the handle's slot.
//!
//! A record stays when its object is freed, until the slot has another object. So freeing costs
//! nothing, and the slots say which records are of objects that still exist.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, Weak};

use longshore::SourceLine;

use crate::edge::lock::lock;
use crate::edge::{line, state};

/// What is known of the object in a slot.
struct Record {
    line: Option<&'static SourceLine>,
    /// Keeps the memory of the object from serving another one.
    _memory: Option<Weak<dyn Any + Send + Sync>>,
}

static RECORDS: Mutex<BTreeMap<u32, Record>> = Mutex::new(BTreeMap::new());

/// Whether `--check` is on.
pub fn is_checked() -> bool {
    state::get().is_some_and(|state| state.rank().is_checked())
}

/// Notes that the current call has made the object in a slot, under `--check`.
pub fn note(slot: u32) {
    if is_checked() {
        note_memory(slot, None);
    }
}

/// Notes that the current call has made the object in a slot, whose memory serves no other one.
#[cold]
pub fn note_memory(slot: u32, memory: Option<Weak<dyn Any + Send + Sync>>) {
    let record = Record { line: line::of_call(true), _memory: memory };
    lock(&RECORDS).insert(slot, record);
}

/// Forgets the object in a slot: the program can't free it.
pub fn forget(slot: u32) {
    lock(&RECORDS).remove(&slot);
}

/// The slots of which there are records, with the lines.
pub fn all() -> Vec<(u32, Option<&'static SourceLine>)> {
    lock(&RECORDS).iter().map(|(slot, record)| (*slot, record.line)).collect()
}
