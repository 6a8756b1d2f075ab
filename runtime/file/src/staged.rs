//! Accesses in two phases where every rank reaches the aggregators' memory directly: the stage.
//!
//! The stage is a window with a buffer at each aggregator. Ranks put their runs to the places that
//! these have in the piece of the file, and get them from there, without messages. Only the lists
//! of runs are exchanged, which say what an aggregator writes and reads. The steps are those of
//! [`exchange`](crate::exchange), which makes them by messages.

use std::ops::Range;

use longshore::{Communicator, Element, Op, Route, Sink, Source, Type, Window};

use crate::error::Result;
use crate::exchange::{Domains, GAP, Taken, accepted, exchange, of, requests};
use crate::individual::{Moved, pack};
use crate::runs::{Coverage, Runs};
use crate::transfer::Access;

/// A window with a buffer at each aggregator.
pub(crate) struct Stage {
    aggregators: Vec<i32>,
    size: u64,
    /// `None` if not every rank reaches all of it directly.
    window: Option<(Window, Type)>,
}

impl Stage {
    /// A stage with a buffer of `size` bytes at each aggregator. Collective.
    pub fn new(comm: &Communicator, aggregators: &[i32], size: u64) -> Result<Stage> {
        let aggregators = aggregators.to_vec();
        let own = if aggregators.contains(&comm.rank()) { size as i64 } else { 0 };
        // Without room for the window, messages do.
        let Ok(window) = Window::allocate(comm, own, 1, &longshore::Info::default()) else {
            return Ok(Stage { aggregators, size, window: None });
        };
        let is_far = aggregators.iter().any(|rank| window.route(*rank).ok() != Some(Route::Direct));
        let mut some_far = [0];
        comm.allreduce(&[i32::from(is_far)], &mut some_far, Op::Max)?;
        if some_far[0] != 0 {
            window.free()?;
            return Ok(Stage { aggregators, size, window: None });
        }
        let byte = comm.commit(&u8::datatype())?;
        Ok(Stage { aggregators, size, window: Some((window, byte)) })
    }

    /// Whether it is the stage of these aggregators, with a buffer of `size` bytes at each.
    pub fn fits(&self, aggregators: &[i32], size: u64) -> bool {
        self.aggregators == aggregators && self.size == size
    }

    /// Frees it. Collective.
    pub fn free(self) -> Result<()> {
        match self.window {
            Some((window, _)) => Ok(window.free()?),
            None => Ok(()),
        }
    }

    /// Writes collectively.
    pub fn write(
        &mut self,
        comm: &Communicator,
        access: &Access,
        source: &Source<'_>,
        domains: &Domains,
    ) -> Result<Moved> {
        let Some((window, byte)) = &mut self.window else {
            return crate::exchange::write(comm, access, source, domains);
        };
        let (accepted, mut error) = accepted(access, source)?;
        let (mut bytes, mut failed) = (0, None);
        let me = domains.index(comm.rank());
        let whole = source.run(access.view.layout.architecture());
        let mut packed = Vec::new();
        for round in 0..domains.rounds() {
            let (mut message, mut places) = (Vec::new(), vec![0..0; comm.size() as usize]);
            // The runs for each aggregator, and where their bytes are in the data.
            let (mut sent, mut used) = (Vec::new(), 0);
            let parts = domains.parts(&access.view.layout, &accepted, round)?;
            for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty())
            {
                let position = part.start - access.part.start;
                let (mut length, mut at) = ((part.end - part.start) as usize, position as usize);
                if whole.is_none() {
                    at = used;
                    packed.resize(packed.len().max(used + length), 0);
                    let room = &mut packed[used..used + length];
                    let (packed, refused) = pack(source, &access.view.layout, position, room);
                    (length, error) = (packed, error.or(refused));
                    used += length;
                }
                let part = part.start..part.start + length as u64;
                let runs = Runs::of(access, part, domains.piece(index, round).start)?;
                let (start, aggregator) = (message.len(), domains.aggregators()[index]);
                runs.put(&mut message);
                places[aggregator as usize] = start as i64..message.len() as i64;
                bytes += length as u64;
                sent.push((aggregator, runs, at));
            }
            let (got, from) = exchange(comm, &message, &places)?;
            let data = whole.unwrap_or(&packed);
            // The opening fence waits for the writes of the last round.
            window.fence(|epoch| {
                for (aggregator, runs, first) in &sent {
                    let mut at = *first;
                    for (start, len) in runs.iter() {
                        let run = &data[at..at + len];
                        epoch.put(run, *aggregator, start as i64, len as i64, &*byte)?;
                        at += len;
                    }
                }
                Ok(())
            })?;
            // Every rank takes part in all rounds, whatever has failed.
            if let Some(index) = me {
                let written = write_piece(access, window, &got, &from, domains.piece(index, round));
                failed = failed.or(written.err());
            }
        }
        match failed {
            Some(failed) => Err(failed),
            None => Ok(Moved { bytes, error }),
        }
    }

    /// Reads collectively.
    pub fn read(
        &mut self,
        comm: &Communicator,
        access: &Access,
        sink: &mut Sink<'_>,
        domains: &Domains,
    ) -> Result<Moved> {
        let Some((window, byte)) = &mut self.window else {
            return crate::exchange::read(comm, access, sink, domains);
        };
        let own = comm.representation(comm.rank())?;
        let mut taken = Taken::new(comm, access, sink, &own)?;
        let (mut failed, mut chunk) = (None, Vec::new());
        let me = domains.index(comm.rank());
        for round in 0..domains.rounds() {
            let parts = domains.parts(&access.view.layout, &access.part, round)?;
            let (message, places) = requests(comm, access, domains, &parts, round)?;
            let (asked, from) = exchange(comm, &message, &places)?;
            let mut there = 0;
            if let Some(index) = me {
                match read_piece(access, window, &asked, &from, domains.piece(index, round)) {
                    Ok(read) => there = read,
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            // The bytes that each aggregator has. No rank looks at them before they are there.
            let there = comm.allgather(&[there as i64])?;
            let mut parts = wanted(access, domains, parts, round, &there)?;
            match taken.room() {
                Some(room) => fetch(window, byte, &parts, room)?,
                None => {
                    // One part after the other.
                    let mut length = 0;
                    for part in &mut parts {
                        part.at = length;
                        length += part.bytes;
                    }
                    chunk.resize(length.max(chunk.len()), 0);
                    fetch(window, byte, &parts, &mut chunk)?;
                }
            }
            let is_placed = taken.room().is_some();
            for Wanted { part, at, bytes, .. } in parts {
                match is_placed {
                    true => taken.count(bytes as u64),
                    false => taken.take(part, &chunk[at..at + bytes]),
                }
            }
        }
        let moved = taken.end();
        match failed {
            Some(failed) => Err(failed),
            None => Ok(moved),
        }
    }
}

/// Writes the runs that ranks have put for a piece.
fn write_piece(
    access: &Access,
    window: &Window,
    got: &[u8],
    from: &[Range<i64>],
    piece: Range<u64>,
) -> Result<()> {
    for run in covered(got, from, piece.end - piece.start, 0)? {
        access.core.storage.write_from(&window.local(), run.clone(), piece.start + run.start)?;
    }
    Ok(())
}

/// Reads the runs that ranks have asked for of a piece to the window. Returns the number of
/// bytes of the piece before the end of the file.
fn read_piece(
    access: &Access,
    window: &Window,
    asked: &[u8],
    from: &[Range<i64>],
    piece: Range<u64>,
) -> Result<u64> {
    let mut there = 0;
    for run in covered(asked, from, piece.end - piece.start, GAP)? {
        let offset = piece.start + run.start;
        let read = access.core.storage.read_into(&window.local(), run.clone(), offset)?;
        if read > 0 {
            there = run.start + read;
        }
        if read < run.end - run.start {
            break;
        }
    }
    Ok(there)
}

/// The runs that a rank gets in a round, of aggregators that have the bytes of `there`.
fn wanted(
    access: &Access,
    domains: &Domains,
    parts: Vec<Range<u64>>,
    round: u64,
    there: &[i64],
) -> Result<Vec<Wanted>> {
    let mut all = Vec::new();
    for (index, part) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let aggregator = domains.aggregators()[index];
        let there = there[aggregator as usize] as usize;
        let runs = Runs::of(access, part.clone(), domains.piece(index, round).start)?;
        let at = (part.start - access.part.start) as usize;
        let mut wanted = Wanted { aggregator, runs, there, part, at, bytes: 0 };
        wanted.bytes = wanted.runs().map(|(_, len)| len).sum();
        all.push(wanted);
    }
    Ok(all)
}

/// The runs that a rank gets of an aggregator.
struct Wanted {
    aggregator: i32,
    runs: Runs,
    /// The bytes of the piece that the file had.
    there: usize,
    /// The part of the stream.
    part: Range<u64>,
    /// Where its bytes go.
    at: usize,
    bytes: usize,
}

impl Wanted {
    /// The runs before the end of the file.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let inside = self.runs.iter().map(|(start, len)| (start, (start + len).min(self.there)));
        inside.take_while(|(start, end)| start < end).map(|(start, end)| (start, end - start))
    }
}

/// Gets runs of the stage to their places in `room`, which ascend.
fn fetch(window: &mut Window, byte: &Type, parts: &[Wanted], room: &mut [u8]) -> Result<()> {
    let (mut rest, mut done) = (room, 0);
    // The closing fence lets the aggregators go on to the next round.
    window.fence(|epoch| {
        for wanted in parts {
            rest = std::mem::take(&mut rest).split_at_mut(wanted.at - done).1;
            for (start, len) in wanted.runs() {
                let (to, others) = std::mem::take(&mut rest).split_at_mut(len);
                rest = others;
                epoch.get(to, wanted.aggregator, start as i64, len as i64, byte)?;
            }
            done = wanted.at + wanted.bytes;
        }
        Ok(())
    })?;
    Ok(())
}

/// The bytes of a piece that the runs of all ranks cover.
fn covered(lists: &[u8], from: &[Range<i64>], size: u64, gap: u64) -> Result<Vec<Range<u64>>> {
    let mut coverage = Coverage::new(size);
    for place in from.iter().filter(|place| !place.is_empty()) {
        coverage.add(&Runs::take(of(lists, place), size)?.0);
    }
    Ok(coverage.ranges(gap))
}
