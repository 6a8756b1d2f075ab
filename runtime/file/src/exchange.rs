//! Accesses in two phases: between ranks and aggregators, and between aggregators and the file.
//!
//! 1. The bytes of the file are divided into domains, one for each aggregator, and a domain into
//!    pieces that fit an aggregator's buffer. In a round, each aggregator handles one piece.
//! 2. The part of a rank's stream that lies in a piece is one range, since the stream ascends. The
//!    rank sends the runs of that range to the aggregator, and for a write their bytes after them.
//! 3. The aggregator writes all ranks' runs: those that adjoin by one call. For a read it reads
//!    them, and sends each rank its bytes back. No byte between runs is ever written.
//!
//! Bytes are in the file's representation. Only their own rank converts them. Ranks that reach the
//! aggregators' memory directly take the way of [`staged`](crate::staged) instead of messages.

use std::ops::Range;

use longshore::shipable::Partial;
use longshore::{Architecture, Class, Communicator, Sink, Source};

use crate::agreement::agree;
use crate::error::{Error, Result};
use crate::individual::{Moved, buffer, pack};
use crate::layout::Layout;
use crate::runs::{Coverage, Runs};
use crate::transfer::Access;

/// The longest gap between runs that an aggregator reads with them.
pub(crate) const GAP: u64 = 64 << 10;

/// The parts of the file that the aggregators handle.
pub(crate) struct Domains {
    range: Range<u64>,
    /// The start of the first domain: that of the page where the range starts.
    start: u64,
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
        // Domains begin at pages of the file: a host that writes a part of a page may write the
        // page as it has it, for some file systems of networks.
        let start = range.start - range.start % PAGE;
        let size = (range.end - start).div_ceil(aggregators.len() as u64);
        let size = size.next_multiple_of(PAGE);
        Domains { range, start, aggregators, size, piece: piece.min(size).min(1 << 31) }
    }

    pub fn rounds(&self) -> u64 {
        self.size.div_ceil(self.piece)
    }

    /// The aggregators' ranks.
    pub fn aggregators(&self) -> &[i32] {
        &self.aggregators
    }

    /// The bytes of the file that an aggregator handles in a round; empty if none are left.
    pub fn piece(&self, aggregator: usize, round: u64) -> Range<u64> {
        let start = self.start + aggregator as u64 * self.size;
        let end = (start + self.size).min(self.range.end);
        let first = start + round * self.piece;
        let last = (first + self.piece).min(end);
        first.max(self.range.start).min(last)..last
    }

    /// The index of a rank among the aggregators.
    pub fn index(&self, rank: i32) -> Option<usize> {
        self.aggregators.iter().position(|aggregator| *aggregator == rank)
    }

    /// The ranges of a part of a rank's stream in the pieces of a round, for each aggregator.
    pub fn parts(&self, layout: &Layout, part: &Range<u64>, round: u64) -> Result<Vec<Range<u64>>> {
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

/// Exchanges a message between all pairs of ranks. Returns what came, one message after the other,
/// and where that of each rank is.
pub(crate) fn exchange(
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
pub(crate) fn of<'m>(all: &'m [u8], place: &Range<i64>) -> &'m [u8] {
    &all[place.start as usize..place.end as usize]
}

/// The part of a rank's stream before the first value that the file's representation can't hold,
/// and the error of that value. Pieces aren't in the order of the stream, so it is found before any
/// is written.
pub(crate) fn accepted(
    access: &Access,
    source: &Source<'_>,
) -> Result<(Range<u64>, Option<Error>)> {
    /// The bytes that are converted at a time.
    const TRIED: u64 = 64 << 10;
    let (layout, part) = (&access.view.layout, access.part.clone());
    if !source.may_refuse(layout.architecture())? {
        return Ok((part, None));
    }
    let (length, mut done) = (part.end - part.start, 0);
    let mut tried = vec![0; length.min(TRIED) as usize];
    while done < length {
        let room = (length - done).min(TRIED) as usize;
        let (packed, refused) = pack(source, layout, done, &mut tried[..room]);
        done += packed as u64;
        if refused.is_some() {
            return Ok((part.start..part.start + done, refused));
        }
    }
    Ok((part, None))
}

/// Writes collectively.
pub(crate) fn write(
    comm: &Communicator,
    access: &Access,
    source: &Source<'_>,
    domains: &Domains,
) -> Result<Moved> {
    let (accepted, mut error) = accepted(access, source)?;
    let (mut bytes, mut failed) = (0, None);
    let me = domains.index(comm.rank());
    let (mut buffer, mut data) = (Vec::new(), Vec::new());
    for round in 0..domains.rounds() {
        let (mut message, mut places) = (Vec::new(), vec![0..0; comm.size() as usize]);
        let parts = domains.parts(&access.view.layout, &accepted, round)?;
        for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let (start, position) = (message.len(), part.start - access.part.start);
            let length = (part.end - part.start) as usize;
            data.resize(data.len().max(length), 0);
            let (packed, refused) =
                pack(source, &access.view.layout, position, &mut data[..length]);
            let part = part.start..part.start + packed as u64;
            Runs::of(access, part, domains.piece(index, round).start)?.put(&mut message);
            message.extend_from_slice(&data[..packed]);
            places[domains.aggregators[index] as usize] = start as i64..message.len() as i64;
            bytes += packed as u64;
            error = error.or(refused);
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
    let mut coverage = Coverage::new(size);
    for place in from.iter().filter(|place| !place.is_empty()) {
        let (runs, mut data) = Runs::take(of(got, place), size)?;
        for (start, len) in runs.iter() {
            let (bytes, rest) = data
                .split_at_checked(len)
                .ok_or_else(|| Error::argument(Class::Intern, "a rank has sent too few bytes"))?;
            data = rest;
            buffer[start..start + len].copy_from_slice(bytes);
        }
        coverage.add(&runs);
    }
    for run in coverage.ranges(0) {
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
    let mut taken = Taken::new(comm, access, sink, &own)?;
    let (mut failed, mut buffer) = (None, Vec::new());
    let me = domains.index(comm.rank());
    for round in 0..domains.rounds() {
        let parts = domains.parts(&access.view.layout, &access.part, round)?;
        let (message, places) = requests(comm, access, domains, &parts, round)?;
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
            taken.take(part, of(&got, &from[*aggregator as usize]));
        }
    }
    let moved = taken.end();
    match failed {
        Some(failed) => Err(failed),
        None => Ok(moved),
    }
}

/// The runs of a rank's parts, as messages to the aggregators.
pub(crate) fn requests(
    comm: &Communicator,
    access: &Access,
    domains: &Domains,
    parts: &[Range<u64>],
    round: u64,
) -> Result<(Vec<u8>, Vec<Range<i64>>)> {
    let (mut message, mut places) = (Vec::new(), vec![0..0; comm.size() as usize]);
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let start = message.len();
        Runs::of(access, part.clone(), domains.piece(index, round).start)?.put(&mut message);
        places[domains.aggregators[index] as usize] = start as i64..message.len() as i64;
    }
    Ok((message, places))
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
    let (mut each, mut coverage) = (Vec::new(), Coverage::new(size));
    for place in from {
        let runs = match place.is_empty() {
            true => Runs::default(),
            false => Runs::take(of(asked, place), size)?.0,
        };
        coverage.add(&runs);
        each.push(runs);
    }
    // The bytes of the piece before the end of the file.
    let mut there = 0;
    for run in coverage.ranges(GAP) {
        let room = &mut buffer[run.start as usize..run.end as usize];
        let read = access.core.storage.read(piece.start + run.start, room)?;
        if read > 0 {
            there = run.start as usize + read;
        }
        if (read as u64) < run.end - run.start {
            break;
        }
    }
    for (runs, to) in each.iter().zip(to) {
        let first = answer.len();
        for (start, len) in runs.iter() {
            let end = (start + len).min(there);
            if start >= end {
                break;
            }
            answer.extend_from_slice(&buffer[start..end]);
        }
        *to = first as i64..answer.len() as i64;
    }
    Ok(())
}

/// The bytes that a rank has got of a read.
pub(crate) struct Taken<'t, 's> {
    access: &'t Access,
    sink: &'t mut Sink<'s>,
    /// The whole stream, if values are converted: domains may cut them in two.
    stream: Option<Vec<u8>>,
    bytes: u64,
    error: Option<Error>,
}

impl<'t, 's> Taken<'t, 's> {
    /// Room for the bytes of an access. Collective.
    ///
    /// # Errors
    /// NO_MEM at all ranks, if one has no memory for the stream.
    pub fn new(
        comm: &Communicator,
        access: &'t Access,
        sink: &'t mut Sink<'s>,
        own: &Architecture,
    ) -> Result<Taken<'t, 's>> {
        let is_converted = !access.view.layout.architecture().same_representation(own);
        let length = access.part.end - access.part.start;
        let stream = is_converted.then(|| buffer(length, u64::MAX)).transpose();
        let stream = agree(comm, stream)?;
        Ok(Taken { access, sink, stream, bytes: 0, error: None })
    }

    /// The memory to which bytes of the stream from `position` on may be read directly; `None` if
    /// they have to be [taken](Taken::take).
    pub fn room(&mut self) -> Option<&mut [u8]> {
        match &mut self.stream {
            Some(stream) => Some(stream),
            None => self.sink.run(self.access.view.layout.architecture()),
        }
    }

    /// Bytes of the stream have been read to their room.
    pub fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Takes the bytes of a part of the stream, or as many as the file had.
    pub fn take(&mut self, part: Range<u64>, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
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
    }

    pub fn end(mut self) -> Moved {
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
                        assert!(index == 0 || round > 0 || next % 4096 == 0);
                        next = piece.end;
                    }
                }
            }
            assert_eq!(next, range.end);
        }
    }
}
