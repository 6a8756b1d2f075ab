//! The bytes that a rank exchanged with ranks of other kinds: copied, or converted.
//!
//! - **Operations on windows** are counted by their origin. Those that fetch count in both
//!   directions.
//! - **Messages** are counted by their receiver, when they match a receive.
//! - **Collective calls** have data of many ranks, which one representation may stand for on the
//!   way. So each rank counts its own data as they go into such calls and come out of them.

use longshore_job::journal::snapshot::KindCounts;
use shipable::Architecture;

/// Data that went from one kind to another.
#[derive(Clone, Copy)]
pub(crate) struct Exchanged {
    pub from: Architecture,
    /// `None` for collective calls.
    pub to: Option<Architecture>,
    pub copied: u64,
    pub converted: u64,
}

/// The counts of a rank, one for each pair of kinds.
#[derive(Default)]
pub(super) struct Kinds(Vec<Exchanged>);

impl Kinds {
    pub(super) fn add(&mut self, data: &Exchanged) {
        let is_same = |known: &&mut Exchanged| (known.from, known.to) == (data.from, data.to);
        match self.0.iter_mut().find(is_same) {
            None => self.0.push(*data),
            Some(known) => {
                known.copied += data.copied;
                known.converted += data.converted;
            }
        }
    }

    /// The counts so far, with those of messages.
    pub(super) fn counts(&self, messages: Vec<Exchanged>) -> Vec<KindCounts> {
        let mut all = Kinds(self.0.clone());
        messages.iter().for_each(|data| all.add(data));
        let counts = |it: &Exchanged| KindCounts {
            from: it.from.label(),
            to: it.to.map(|to| to.label()),
            copied: it.copied,
            converted: it.converted,
        };
        all.0.iter().map(counts).collect()
    }
}
