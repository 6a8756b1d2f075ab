//! Accesses in two phases: between ranks and aggregators, and between aggregators and the file.
//!
//! 1. The bytes of the file are divided into domains, one for each aggregator, and a domain into
//!    pieces that fit an aggregator's buffer. In a round, each aggregator handles one piece.
//! 2. The part of a rank's stream that lies in a piece is one range, since the stream ascends. The
//!    rank sends the runs of that range to the aggregator, and for a write their bytes after them.
//! 3. The aggregator writes all ranks' runs: those that adjoin by one call. For a read it reads
//!    them, and sends each rank its bytes back. No byte between runs is ever written.
//!
//! Bytes are in the file's representation. Only their own rank converts them.

use std::ops::Range;

use longshore::shipable::Partial;
use longshore::{Architecture, Communicator, Sink, Source};

use crate::access::Access;
use crate::error::{Error, Result};
use crate::individual::{Moved, pack};

/// The longest gap between runs that an aggregator reads with them.
const GAP: u64 = 64 << 10;

/// The parts of the file that the aggregators handle.
pub(crate) struct Domains {
    range: Range<u64>,
    aggregators: Vec<i32>,
    /// The bytes of a domain, except of the last one.
    size: u64,
    /// The bytes of a piece.
    piece: u64,
}

impl Domains {
    /// Divides `range` among the aggregators, each of which handles at most `piece` bytes at a
    /// time.
    pub fn new(range: Range<u64>, aggregators: Vec<i32>, piece: u64) -> Domains {
        const PAGE: u64 = 4096;
        let size = (range.end - range.start).div_ceil(aggregators.len() as u64);
        // Domains begin at pages, where the range does.
        let size = size.next_multiple_of(PAGE);
        Domains { range, aggregators, size, piece: piece.min(size).min(1 << 31) }
    }

    fn rounds(&self) -> u64 {
        self.size.div_ceil(self.piece)
    }

    /// The bytes of the file that an aggregator handles in a round; empty if none are left.
    fn piece(&self, aggregator: usize, round: u64) -> Range<u64> {
        let start = self.range.start + aggregator as u64 * self.size;
        let end = (start + self.size).min(self.range.end);
        let first = (start + round * self.piece).min(end);
        first..(first + self.piece).min(end).max(first)
    }

    /// The index of a rank among the aggregators.
    fn index(&self, rank: i32) -> Option<usize> {
        self.aggregators.iter().position(|aggregator| *aggregator == rank)
    }

    /// The ranges of a rank's stream in the pieces of a round, for each aggregator.
    fn parts(&self, access: &Access, round: u64) -> Result<Vec<Range<u64>>> {
        let (layout, part) = (&access.view.layout, &access.part);
        let within = |piece: Range<u64>| {
            if part.is_empty() || piece.is_empty() {
                return Ok(0..0);
            }
            let start = layout.before(piece.start)?.clamp(part.start, part.end);
            let end = layout.before(piece.end)?.clamp(start, part.end);
            Ok(start..end)
        };
        (0..self.aggregators.len()).map(|index| within(self.piece(index, round))).collect()
    }
}

/// A run of a piece: its first byte from the piece's start, and its length.
type Run = (u32, u32);

/// Appends the runs of a part of the stream to a message, before their number.
fn put_runs(message: &mut Vec<u8>, access: &Access, part: Range<u64>, from: u64) -> Result<()> {
    let head = message.len();
    message.extend_from_slice(&[0; 8]);
    let mut runs = 0u64;
    access.view.layout.runs(part, |offset, len| {
        message.extend_from_slice(&((offset - from) as u32).to_le_bytes());
        message.extend_from_slice(&(len as u32).to_le_bytes());
        runs += 1;
        true
    })?;
    message[head..head + 8].copy_from_slice(&runs.to_le_bytes());
    Ok(())
}

/// The runs at the start of a message, and what follows them.
fn take_runs(message: &[u8], piece: u64) -> Result<(Vec<Run>, &[u8])> {
    let garbled = || Error::argument(longshore::Class::Intern, "a rank has sent garbled runs");
    let (head, rest) = message.split_first_chunk::<8>().ok_or_else(garbled)?;
    let bytes = usize::try_from(u64::from_le_bytes(*head)).ok().and_then(|n| n.checked_mul(8));
    let (runs, rest) = bytes.and_then(|n| rest.split_at_checked(n)).ok_or_else(garbled)?;
    let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let runs: Vec<Run> = runs.chunks(8).map(|run| (number(run), number(&run[4..]))).collect();
    let inside = |run: &Run| u64::from(run.0) + u64::from(run.1) <= piece;
    if runs.iter().all(inside) { Ok((runs, rest)) } else { Err(garbled()) }
}

/// The runs of several ranks as few runs that don't overlap, where gaps of at most `gap` bytes are
/// included.
fn merged(mut runs: Vec<Run>, gap: u64) -> Vec<Range<u64>> {
    // The runs of each rank ascend, so this is a merge.
    runs.sort();
    let mut all: Vec<Range<u64>> = Vec::new();
    for (start, len) in runs {
        let (start, end) = (u64::from(start), u64::from(start) + u64::from(len));
        match all.last_mut() {
            Some(last) if start <= last.end + gap => last.end = last.end.max(end),
            _ => all.push(start..end),
        }
    }
    all
}

/// Exchanges a message between all pairs of ranks. Returns what came, one message after the other,
/// and where that of each rank is.
fn exchange(
    comm: &Communicator,
    sent: &[u8],
    parts: &[Range<i64>],
) -> Result<(Vec<u8>, Vec<Range<i64>>)> {
    let lengths: Vec<i64> = parts.iter().map(|part| part.end - part.start).collect();
    let mut coming = vec![0i64; lengths.len()];
    comm.alltoall(&lengths[..], &mut coming[..])?;
    let (mut total, mut places) = (0, Vec::with_capacity(coming.len()));
    for length in coming {
        places.push(total..total + length);
        total += length;
    }
    let mut got = vec![0u8; total as usize];
    comm.alltoallv((sent, parts), (&mut got[..], &places))?;
    Ok((got, places))
}

/// The bytes of one rank's message.
fn of<'m>(all: &'m [u8], place: &Range<i64>) -> &'m [u8] {
    &all[place.start as usize..place.end as usize]
}

/// Writes collectively.
pub(crate) fn write(
    comm: &Communicator,
    access: &Access,
    source: &Source<'_>,
    domains: &Domains,
) -> Result<Moved> {
    let (mut bytes, mut error, mut failed) = (0, None, None);
    let me = domains.index(comm.rank());
    let mut buffer = Vec::new();
    for round in 0..domains.rounds() {
        let (mut message, mut places) = (Vec::new(), vec![0..0; comm.size() as usize]);
        for (index, part) in domains.parts(access, round)?.into_iter().enumerate() {
            // Nothing is written from a value on that can't be represented.
            if part.is_empty() || error.is_some() {
                continue;
            }
            let (start, position) = (message.len(), part.start - access.part.start);
            let length = (part.end - part.start) as usize;
            let mut data = vec![0; length];
            let (packed, refused) = pack(source, &access.view.layout, position, &mut data);
            let part = part.start..part.start + packed as u64;
            let from = domains.piece(index, round).start;
            put_runs(&mut message, access, part, from)?;
            message.extend_from_slice(&data[..packed]);
            places[domains.aggregators[index] as usize] = start as i64..message.len() as i64;
            bytes += packed as u64;
            error = refused;
        }
        let (got, from) = exchange(comm, &message, &places)?;
        // Every rank takes part in all rounds, whatever has failed.
        if let Some(index) = me {
            let piece = domains.piece(index, round);
            let written = write_piece(access, &got, &from, piece, &mut buffer);
            failed = failed.or(written.err());
        }
    }
    match failed {
        Some(failed) => Err(failed),
        None => Ok(Moved { bytes, error }),
    }
}

/// Writes the runs that ranks have sent for a piece.
fn write_piece(
    access: &Access,
    got: &[u8],
    from: &[Range<i64>],
    piece: Range<u64>,
    buffer: &mut Vec<u8>,
) -> Result<()> {
    let size = piece.end - piece.start;
    buffer.resize((size as usize).max(buffer.len()), 0);
    let mut all = Vec::new();
    for place in from.iter().filter(|place| !place.is_empty()) {
        let (runs, mut data) = take_runs(of(got, place), size)?;
        for &(start, len) in &runs {
            let (bytes, rest) = data.split_at_checked(len as usize).ok_or_else(|| {
                Error::argument(longshore::Class::Intern, "a rank has sent too few bytes")
            })?;
            data = rest;
            buffer[start as usize..start as usize + len as usize].copy_from_slice(bytes);
        }
        all.extend(runs);
    }
    for run in merged(all, 0) {
        let bytes = &buffer[run.start as usize..run.end as usize];
        access.core.storage.write(piece.start + run.start, bytes)?;
    }
    Ok(())
}

/// Reads collectively.
pub(crate) fn read(
    comm: &Communicator,
    access: &Access,
    sink: &mut Sink<'_>,
    domains: &Domains,
) -> Result<Moved> {
    let own = comm.representation(comm.rank())?;
    let mut taken = Taken::new(access, sink, &own);
    let (mut failed, mut buffer) = (None, Vec::new());
    let me = domains.index(comm.rank());
    for round in 0..domains.rounds() {
        let (mut message, mut places) = (Vec::new(), vec![0..0; comm.size() as usize]);
        let parts = domains.parts(access, round)?;
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let start = message.len();
            put_runs(&mut message, access, part.clone(), domains.piece(index, round).start)?;
            places[domains.aggregators[index] as usize] = start as i64..message.len() as i64;
        }
        let (asked, from) = exchange(comm, &message, &places)?;
        let (mut answer, mut to) = (Vec::new(), vec![0..0; comm.size() as usize]);
        if let Some(index) = me {
            let piece = domains.piece(index, round);
            let read =
                read_piece(access, &asked, &from, piece, &mut buffer, (&mut answer, &mut to));
            if let Err(error) = read {
                (answer, to) = (Vec::new(), vec![0..0; comm.size() as usize]);
                failed = failed.or(Some(error));
            }
        }
        let (got, from) = exchange(comm, &answer, &to)?;
        for (part, aggregator) in parts.into_iter().zip(&domains.aggregators) {
            taken.take(part, of(&got, &from[*aggregator as usize]))?;
        }
    }
    let moved = taken.end();
    match failed {
        Some(failed) => Err(failed),
        None => Ok(moved),
    }
}

/// Reads the runs that ranks have asked for of a piece, and makes the answers, which end where the
/// file does.
fn read_piece(
    access: &Access,
    asked: &[u8],
    from: &[Range<i64>],
    piece: Range<u64>,
    buffer: &mut Vec<u8>,
    (answer, to): (&mut Vec<u8>, &mut [Range<i64>]),
) -> Result<()> {
    let size = piece.end - piece.start;
    buffer.resize((size as usize).max(buffer.len()), 0);
    let mut each = Vec::new();
    for place in from {
        each.push(match place.is_empty() {
            true => Vec::new(),
            false => take_runs(of(asked, place), size)?.0,
        });
    }
    // The bytes of the piece before the end of the file.
    let mut there = 0;
    for run in merged(each.concat(), GAP) {
        let room = &mut buffer[run.start as usize..run.end as usize];
        let read = access.core.storage.read(piece.start + run.start, room)? as u64;
        if read > 0 {
            there = run.start + read;
        }
        if read < run.end - run.start {
            break;
        }
    }
    for (runs, to) in each.iter().zip(to) {
        let start = answer.len();
        for &(start, len) in runs {
            let end = (u64::from(start) + u64::from(len)).min(there);
            if u64::from(start) >= end {
                break;
            }
            answer.extend_from_slice(&buffer[start as usize..end as usize]);
        }
        *to = start as i64..answer.len() as i64;
    }
    Ok(())
}

/// The bytes that a rank has got of a read.
struct Taken<'t, 's> {
    access: &'t Access,
    sink: &'t mut Sink<'s>,
    /// The whole stream, if values are converted: domains may cut them in two.
    stream: Option<Vec<u8>>,
    bytes: u64,
    error: Option<Error>,
}

impl<'t, 's> Taken<'t, 's> {
    fn new(access: &'t Access, sink: &'t mut Sink<'s>, own: &Architecture) -> Taken<'t, 's> {
        let is_converted = !access.view.layout.architecture().same_representation(own);
        let length = (access.part.end - access.part.start) as usize;
        let stream = is_converted.then(|| vec![0; length]);
        Taken { access, sink, stream, bytes: 0, error: None }
    }

    /// Takes the bytes of a part of the stream, or as many as the file had.
    fn take(&mut self, part: Range<u64>, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let position = part.start - self.access.part.start;
        self.bytes += bytes.len() as u64;
        match &mut self.stream {
            Some(stream) => {
                let start = position as usize;
                stream[start..start + bytes.len()].copy_from_slice(bytes);
            }
            None => {
                let (architecture, mut partial) =
                    (self.access.view.layout.architecture(), Partial::default());
                let unpacked = self.sink.unpack(architecture, position, bytes, &mut partial);
                self.error = self.error.take().or(unpacked.err().map(Error::from));
            }
        }
        Ok(())
    }

    fn end(mut self) -> Moved {
        if let Some(stream) = &self.stream {
            let (architecture, mut partial) =
                (self.access.view.layout.architecture(), Partial::default());
            let there = &stream[..self.bytes as usize];
            let unpacked = self.sink.unpack(architecture, 0, there, &mut partial);
            self.error = unpacked.err().map(Error::from);
        }
        Moved { bytes: self.bytes, error: self.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_all_domains_are_the_range() {
        for (range, aggregators, piece) in
            [(5..100_000, 3, 4096), (0..4096, 4, 1 << 20), (100..101, 1, 4096), (7..9000, 2, 5000)]
        {
            let domains = Domains::new(range.clone(), (0..aggregators).collect(), piece);
            let mut next = range.start;
            for index in 0..aggregators as usize {
                for round in 0..domains.rounds() {
                    let piece = domains.piece(index, round);
                    if !piece.is_empty() {
                        assert_eq!(piece.start, next);
                        next = piece.end;
                    }
                }
            }
            assert_eq!(next, range.end);
        }
    }

    #[test]
    fn runs_that_adjoin_or_overlap_become_one() {
        let runs = vec![(0, 4), (10, 2), (4, 6), (11, 5), (20, 1)];
        assert_eq!(merged(runs.clone(), 0), [0..16, 20..21]);
        assert_eq!(merged(runs, 4), vec![0u64..21; 1]);
        assert_eq!(merged(vec![], 0), []);
    }

    #[test]
    fn garbled_runs_are_refused() {
        let message = [2u64.to_le_bytes(), [0, 0, 0, 0, 8, 0, 0, 0]].concat();
        assert!(take_runs(&message, 100).is_err(), "fewer than it says");
        let message = [1u64.to_le_bytes(), [96, 0, 0, 0, 8, 0, 0, 0]].concat();
        assert!(take_runs(&message, 100).is_err(), "past the piece");
        assert_eq!(take_runs(&message, 104).unwrap(), (vec![(96, 8)], &[][..]));
        assert!(take_runs(&[1; 7], 100).is_err());
    }
}
