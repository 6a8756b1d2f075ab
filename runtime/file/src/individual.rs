//! Accesses of one rank: between its elements and the runs of its view.
//!
//! How an access is made follows from its shape:
//!
//! | elements in memory | the file | access |
//! |---|---|---|
//! | one run, not converted | one run | one read or write of the system, without a copy |
//! | one run, not converted | scattered | one for each run; reads may include gaps |
//! | otherwise | any | by a buffer, piece by piece |

use std::ops::Range;

use longshore::shipable::Partial;
use longshore::{Class, Sink, Source};

use crate::error::{Error, Result};
use crate::info::{Choice, Info};
use crate::layout::Layout;
use crate::storage::Storage;

/// The longest gap between two runs that a read includes, unless hints say otherwise. Reading it
/// takes less than another call of the system.
const GAP: u64 = 4096;

/// The outcome of an access: the bytes of the stream that were moved, and the error that ended it.
pub(crate) struct Moved {
    pub bytes: u64,
    pub error: Option<Error>,
}

/// Writes the elements of a source to a part of the stream, as many bytes as the part has.
pub(crate) fn write(
    storage: &Storage,
    layout: &Layout,
    info: &Info,
    source: &Source<'_>,
    part: Range<u64>,
) -> Result<Moved> {
    if let Some(bytes) = source.run(layout.architecture()) {
        write_runs(storage, layout, part.clone(), bytes)?;
        return Ok(Moved { bytes: part.end - part.start, error: None });
    }
    let length = part.end - part.start;
    let mut buffer = buffer(length, info.ind_wr_buffer_size)?;
    let mut done = 0;
    while done < length {
        let room = buffer.len().min((length - done) as usize);
        let (packed, error) = pack(source, layout, done, &mut buffer[..room]);
        let at = part.start + done;
        write_runs(storage, layout, at..at + packed as u64, &buffer[..packed])?;
        done += packed as u64;
        if error.is_some() {
            return Ok(Moved { bytes: done, error });
        }
    }
    Ok(Moved { bytes: done, error: None })
}

/// Packs bytes of a source's stream from `position` on. If a value can't be represented, packs what
/// is before it, and returns the error too.
pub(crate) fn pack(
    source: &Source<'_>,
    layout: &Layout,
    position: u64,
    out: &mut [u8],
) -> (usize, Option<Error>) {
    let architecture = layout.architecture();
    match source.pack(architecture, position, out) {
        Ok(packed) => (packed, None),
        Err(error) if error.class() == Class::Conversion => {
            // The longest part before the value, by halving: a part that ends within the value
            // fails as well.
            let (mut low, mut high) = (0, out.len());
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                match source.pack(architecture, position, &mut out[..middle]) {
                    Ok(_) => low = middle,
                    Err(_) => high = middle,
                }
            }
            let again = source.pack(architecture, position, &mut out[..low]);
            (again.unwrap_or(0), Some(error.into()))
        }
        Err(error) => (0, Some(error.into())),
    }
}

/// Writes bytes of the stream to their runs.
fn write_runs(storage: &Storage, layout: &Layout, part: Range<u64>, bytes: &[u8]) -> Result<()> {
    let (mut rest, mut outcome) = (bytes, Ok(()));
    layout.runs(part, |offset, len| {
        let (run, others) = rest.split_at(len as usize);
        rest = others;
        outcome = storage.write(offset, run);
        outcome.is_ok()
    })?;
    outcome
}

/// Reads a part of the stream to the room of a sink, as many bytes as the part has, until the file
/// ends.
pub(crate) fn read(
    storage: &Storage,
    layout: &Layout,
    info: &Info,
    sink: &mut Sink<'_>,
    part: Range<u64>,
) -> Result<Moved> {
    let length = part.end - part.start;
    if let Some(room) = sink.run(layout.architecture()) {
        let bytes = read_runs(storage, layout, info, part, &mut room[..length as usize])?;
        return Ok(Moved { bytes, error: None });
    }
    let mut buffer = buffer(length, info.ind_rd_buffer_size)?;
    let (mut done, mut partial) = (0, Partial::default());
    while done < length {
        let room = buffer.len().min((length - done) as usize);
        let at = part.start + done;
        let runs = at..at + room as u64;
        let read = read_runs(storage, layout, info, runs, &mut buffer[..room])?;
        let input = &buffer[..read as usize];
        if let Err(error) = sink.unpack(layout.architecture(), done, input, &mut partial) {
            return Ok(Moved { bytes: done, error: Some(error.into()) });
        }
        done += read;
        if (read as usize) < room {
            break;
        }
    }
    Ok(Moved { bytes: done, error: None })
}

/// Memory for pieces of an access of `length` bytes.
pub(crate) fn buffer(length: u64, most: u64) -> Result<Vec<u8>> {
    let length = length.min(most);
    let mut buffer = Vec::new();
    let len = usize::try_from(length).ok().filter(|len| buffer.try_reserve_exact(*len).is_ok());
    let Some(len) = len else {
        let problem = format!("there is no memory for a buffer of {length} bytes");
        return Err(Error::argument(Class::NoMem, problem));
    };
    buffer.resize(len, 0);
    Ok(buffer)
}

/// Reads the runs of a part of the stream into `room`, which has the length of the part. Returns
/// the number of bytes before the end of the file.
fn read_runs(
    storage: &Storage,
    layout: &Layout,
    info: &Info,
    part: Range<u64>,
    room: &mut [u8],
) -> Result<u64> {
    let mut sieve = Sieve { storage, info, room, runs: Vec::new(), buffer: Vec::new(), done: 0 };
    let mut outcome = Ok(true);
    layout.runs(part, |offset, len| {
        outcome = sieve.add(offset, len);
        matches!(outcome, Ok(true))
    })?;
    if outcome? {
        sieve.flush()?;
    }
    Ok(sieve.done)
}

/// Runs that are read together.
struct Sieve<'a> {
    storage: &'a Storage,
    info: &'a Info,
    room: &'a mut [u8],
    /// Runs that are read together, by their offsets and lengths. They ascend.
    runs: Vec<(u64, u64)>,
    buffer: Vec<u8>,
    /// The bytes of `room` that are filled.
    done: u64,
}

impl Sieve<'_> {
    /// Adds a run. Returns whether the file may have more.
    fn add(&mut self, offset: u64, len: u64) -> Result<bool> {
        if !self.fits(offset, len) && !self.flush()? {
            return Ok(false);
        }
        self.runs.push((offset, len));
        Ok(true)
    }

    /// Whether a run is read together with the ones before it.
    fn fits(&self, offset: u64, len: u64) -> bool {
        let (Some((first, _)), Some((last, run))) = (self.runs.first(), self.runs.last()) else {
            return true;
        };
        let Some(gap) = offset.checked_sub(last + run) else { return false };
        let gaps = match self.info.ds_read {
            Choice::Disable => return false,
            Choice::Enable => true,
            Choice::Automatic => gap <= GAP && len <= 4 * GAP,
        };
        gaps && offset + len - first <= self.info.ind_rd_buffer_size
    }

    /// Reads the runs. Returns whether the file had all of them.
    fn flush(&mut self) -> Result<bool> {
        let runs = std::mem::take(&mut self.runs);
        let wanted: u64 = runs.iter().map(|(_, len)| len).sum();
        let at = self.done as usize;
        let room = &mut self.room[at..at + wanted as usize];
        let read = match runs[..] {
            [] => return Ok(true),
            [(offset, _)] => self.storage.read(offset, room)? as u64,
            [(first, _), .., (last, len)] => {
                self.buffer.resize((last + len - first) as usize, 0);
                let there = self.storage.read(first, &mut self.buffer)?;
                let (mut rest, mut read) = (room, 0);
                for (offset, len) in &runs {
                    let start = ((offset - first) as usize).min(there);
                    let end = ((offset + len - first) as usize).min(there);
                    let (to, others) = rest.split_at_mut(*len as usize);
                    to[..end - start].copy_from_slice(&self.buffer[start..end]);
                    rest = others;
                    read += (end - start) as u64;
                    if (end - start) < *len as usize {
                        break;
                    }
                }
                read
            }
        };
        self.done += read;
        self.runs = runs;
        self.runs.clear();
        Ok(read == wanted)
    }
}
