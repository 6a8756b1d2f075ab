//! The launcher's side: it gathers what the ranks have recorded, and writes the summary.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::report::Report;
use super::snapshot::Snapshot;
use super::summary::summary;
use super::{COUNTERS, Record};

/// Where the counters of a job go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stats {
    /// A summary that fits on a screen, to standard error.
    Screen,
    /// The summary to a file, or all counters as JSON if the file's name ends with `.json`.
    File(PathBuf),
}

/// What the ranks of a job have recorded.
#[derive(Default)]
pub(crate) struct Gatherer {
    stats: Option<(Stats, Option<File>)>,
    ranks: Vec<Option<Snapshot>>,
}

impl Gatherer {
    /// Makes the files, before the job starts: a job isn't run in vain.
    ///
    /// # Errors
    /// A file can't be made; its path comes with the error.
    pub(crate) fn new(
        ranks: u32,
        stats: Option<&Stats>,
    ) -> Result<Gatherer, (PathBuf, io::Error)> {
        let make = |path: &Path| File::create(path).map_err(|error| (path.to_owned(), error));
        let stats = match stats {
            None => None,
            Some(Stats::Screen) => Some((Stats::Screen, None)),
            Some(Stats::File(path)) => Some((Stats::File(path.clone()), Some(make(path)?))),
        };
        Ok(Gatherer { stats, ranks: vec![None; ranks as usize] })
    }

    /// The bits of what the ranks are to record, and the room for their events.
    pub(crate) fn wants(&self) -> Option<(u32, u32)> {
        self.stats.as_ref().map(|_| (COUNTERS, 0))
    }

    /// Takes a part of a rank's records.
    ///
    /// # Errors
    /// The trace can't be written.
    pub(crate) fn take(&mut self, rank: u32, record: Record) -> io::Result<()> {
        match record {
            Record::Snapshot(bytes) => {
                // A rank that was killed within the first call has none.
                self.ranks[rank as usize] = Snapshot::decode(&bytes).ok();
            }
            Record::Events(_) | Record::Dropped(_) => {}
        }
        Ok(())
    }

    /// Writes what was asked for, after the end of all ranks. Returns the text for standard error.
    ///
    /// # Errors
    /// A file can't be written.
    pub(crate) fn finish(self) -> Result<String, (PathBuf, io::Error)> {
        match self.stats {
            None => Ok(String::new()),
            Some((Stats::File(path), Some(mut file))) => {
                let text = match path.extension() {
                    Some(extension) if extension == "json" => Report::of(&self.ranks).json(),
                    _ => summary(&self.ranks),
                };
                file.write_all(text.as_bytes()).map_err(|error| (path, error))?;
                Ok(String::new())
            }
            Some(_) => Ok(summary(&self.ranks)),
        }
    }
}
