//! The launcher's side: it gathers what the ranks have recorded, and writes the summary.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use longshore_job::journal::snapshot::Snapshot;
use longshore_job::journal::{COUNTERS, EVENTS};

use super::Record;
use super::counted::Counted;
use super::report::Report;
use super::summary::summary;
use super::writer::{Clock, Writer};

/// The room for the events of a rank in bytes: about a million events. Memory is taken as they
/// come.
const ROOM: u32 = 64 << 20;

/// Where the counters of a job go.
///
/// ```
/// use longshore_launcher::{Job, Recording, Stats};
///
/// let stats = Some(Stats::File("stats.json".into()));
/// let job = Job { recording: Recording { stats, trace: None }, ..Job::default() };
/// ```
#[derive(Clone, Debug)]
pub enum Stats {
    /// A summary that fits on a screen, to standard error.
    Screen,
    /// The summary to a file.
    File(PathBuf),
    /// All counters to a file, as the function writes them: `longshore run` writes JSON.
    Report(PathBuf, fn(&Report<'_>) -> String),
}

/// What the ranks of a job have recorded.
#[derive(Default)]
pub(crate) struct Gatherer {
    stats: Option<(Stats, Option<File>)>,
    ranks: Vec<Counted>,
    trace: Option<(PathBuf, BufWriter<File>)>,
    /// The writers of ranks whose events are arriving.
    writers: HashMap<u32, Writer>,
    /// Events that had no room, of all ranks.
    dropped: u64,
    /// The files that weren't there before.
    made: Vec<PathBuf>,
}

impl Gatherer {
    /// Makes the files, before the job starts: a job isn't run in vain. A file that is there keeps
    /// its contents until [`begin`](Gatherer::begin).
    ///
    /// # Errors
    /// A file can't be made; its path comes with the error.
    pub(crate) fn new(
        ranks: u32,
        stats: Option<&Stats>,
        trace: Option<&Path>,
    ) -> Result<Gatherer, (PathBuf, io::Error)> {
        let mut made = Vec::new();
        let mut make = |path: &Path| {
            let is_new = !path.exists();
            let opened = File::options().write(true).create(true).truncate(false).open(path);
            let file = opened.map_err(|error| (path.to_owned(), error))?;
            if is_new {
                made.push(path.to_owned());
            }
            Ok(file)
        };
        let stats = match stats {
            None => None,
            Some(Stats::Screen) => Some((Stats::Screen, None)),
            Some(stats @ (Stats::File(path) | Stats::Report(path, _))) => {
                Some((stats.clone(), Some(make(path)?)))
            }
        };
        let trace = match trace {
            None => None,
            Some(path) => Some((path.to_owned(), BufWriter::with_capacity(1 << 20, make(path)?))),
        };
        let (ranks, writers) = (vec![Counted::default(); ranks as usize], HashMap::new());
        Ok(Gatherer { stats, ranks, trace, writers, dropped: 0, made })
    }

    /// Empties the files: the job has started.
    pub(crate) fn begin(&self) {
        let stats = self.stats.iter().filter_map(|(_, file)| file.as_ref());
        let trace = self.trace.iter().map(|(_, out)| out.get_ref());
        for file in stats.chain(trace) {
            // A pipe has no length.
            let _ = file.set_len(0);
        }
    }

    /// Removes the files that this has made: the job can't start.
    pub(crate) fn abandon(self) {
        for path in &self.made {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The bits of what the ranks are to record, and the room for their events.
    pub(crate) fn wants(&self) -> Option<(u32, u32)> {
        match (&self.stats, &self.trace) {
            (None, None) => None,
            (_, None) => Some((COUNTERS, 0)),
            (_, Some(_)) => Some((COUNTERS | EVENTS, ROOM)),
        }
    }

    /// Whether the clocks of hosts have to be compared.
    pub(crate) fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// Takes a part of a rank's records. `host` is the rank's host with its clock, unless it is the
    /// launcher's.
    ///
    /// # Errors
    /// The trace can't be written.
    pub(crate) fn take(
        &mut self,
        rank: u32,
        record: Record,
        host: Option<(&str, Clock)>,
    ) -> io::Result<()> {
        let (name, clock) = host.unzip();
        let new_writer = || Writer::new(rank, name, clock.unwrap_or_default());
        match record {
            Record::Snapshot(bytes) => {
                self.ranks[rank as usize].snapshot = Snapshot::decode(&bytes).ok();
            }
            // What is noted after finalize is no call of the job.
            Record::Open(_) if self.ranks[rank as usize].is_complete() => {}
            Record::Open(open) => {
                if let (Some((_, out)), false) = (&mut self.trace, open.calls.is_empty()) {
                    self.writers.entry(rank).or_insert_with(new_writer).open(&open, out)?;
                }
                self.ranks[rank as usize].open = open;
            }
            Record::Events(bytes) => {
                let Some((_, out)) = &mut self.trace else { return Ok(()) };
                self.writers.entry(rank).or_insert_with(new_writer).events(&bytes, out)?;
            }
            Record::Dropped(dropped) => {
                self.dropped += u64::from(dropped);
                let (Some((_, out)), Some(mut writer)) =
                    (&mut self.trace, self.writers.remove(&rank))
                else {
                    return Ok(());
                };
                writer.finish(dropped, self.ranks[rank as usize].is_complete(), out)?;
                out.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what was asked for, after the end of all ranks. Returns the text for standard error.
    ///
    /// # Errors
    /// A file can't be written.
    pub(crate) fn finish(mut self) -> Result<String, (PathBuf, io::Error)> {
        let mut told = String::new();
        if let Some((path, mut out)) = self.trace.take() {
            out.flush().map_err(|error| (path.clone(), error))?;
            if self.dropped > 0 {
                told = format!(
                    "longshore: the trace lacks {} events, which had no room: a rank records at most {} MiB, and the ranks of a \
                     host an eighth of their control group's memory\n",
                    self.dropped,
                    ROOM >> 20
                );
            }
        }
        match self.stats {
            None => Ok(told),
            Some((Stats::File(path), Some(mut file))) => {
                let text = summary(&self.ranks);
                file.write_all(text.as_bytes()).map_err(|error| (path, error))?;
                Ok(told)
            }
            Some((Stats::Report(path, text), Some(mut file))) => {
                let text = text(&Report::of(&self.ranks));
                file.write_all(text.as_bytes()).map_err(|error| (path, error))?;
                Ok(told)
            }
            Some(_) => Ok(told + &summary(&self.ranks)),
        }
    }
}
