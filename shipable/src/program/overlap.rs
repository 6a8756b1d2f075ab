//! Whether elements of a datatype overlap in memory.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::Program;
use super::cursor::{Cursor, Elements, Strip};
use super::op::{Body, Gather, Op};
use crate::dims::Dim;

/// The runs that are listed before they are compared for the first time.
const LISTED: usize = 1 << 20;

/// Whether writing `count` elements writes a byte twice.
///
/// 1. Most programs are disjoint by their strides, and a table of places shows by itself whether
///    they are: see [`DisjointCheck`].
/// 2. Otherwise list the runs and compare neighbours: see [`Seen`].
pub(super) fn overlaps(program: &Program, count: u64) -> bool {
    let repeated = Dim { count, stride: program.extent };
    match DisjointCheck::default().body(&program.body, Dims::from_slice(&[repeated])) {
        Answer::Disjoint => return false,
        Answer::Overlap => return true,
        Answer::Open => {}
    }
    let Ok(length) = program.stream_length(count) else { return true };
    let mut seen = Seen::default();
    let elements = Elements::new(&program.body, count, program.extent);
    let mut cursor = Cursor::in_order(&elements, 0..length);
    while let Some(strip) = cursor.next(u64::MAX) {
        if !runs(&strip).all(|run| seen.add(run)) {
            return true;
        }
    }
    !seen.compare()
}

/// Runs that were listed, all disjoint.
#[derive(Default)]
struct Seen {
    /// Runs that were compared. Adjacent runs are joined.
    compared: Vec<Range<i64>>,
    listed: Vec<Range<i64>>,
}

impl Seen {
    /// Adds a run; false if runs overlap.
    fn add(&mut self, run: Range<i64>) -> bool {
        self.listed.push(run);
        // So each run is sorted a logarithmic number of times.
        self.listed.len() < LISTED.max(self.compared.len()) || self.compare()
    }

    /// Whether all runs are disjoint.
    fn compare(&mut self) -> bool {
        let mut all = std::mem::take(&mut self.compared);
        all.append(&mut self.listed);
        if !are_disjoint(&mut all) {
            return false;
        }
        all.dedup_by(|next, before| {
            let adjacent = before.end == next.start;
            if adjacent {
                before.end = next.end;
            }
            adjacent
        });
        self.compared = all;
        true
    }
}

/// What strides and tables show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Disjoint,
    Overlap,
    /// The runs have to be compared.
    Open,
}

impl Answer {
    fn proven(disjoint: bool) -> Answer {
        if disjoint { Answer::Disjoint } else { Answer::Open }
    }

    /// The answer for two parts that are disjoint if `apart`.
    fn and(self, other: Answer, apart: bool) -> Answer {
        match (self, other) {
            (Answer::Overlap, _) | (_, Answer::Overlap) => Answer::Overlap,
            (Answer::Disjoint, Answer::Disjoint) => Answer::proven(apart),
            _ => Answer::Open,
        }
    }
}

type Dims = SmallVec<[Dim; 6]>;

/// An answer from strides and tables. Its cost grows with the program, not with the bytes that the
/// program moves.
#[derive(Default)]
struct DisjointCheck {
    /// The results for bodies, which many loops may share.
    known: HashMap<*const Body, Answer>,
}

impl DisjointCheck {
    /// Whether a body repeated in `dims` writes no byte twice.
    fn body(&mut self, body: &Body, mut dims: Dims) -> Answer {
        match &*body.ops {
            [Op::Block(block)] => {
                dims.extend(block.dims);
                Answer::proven(stays_disjoint(dims, block.memory_run().into()))
            }
            [Op::Loop(inner)] => {
                dims.push(Dim { count: inner.count, stride: inner.stride });
                self.body(&inner.body, dims)
            }
            _ => {
                let once = self.once(body);
                let answer = once.and(once, stays_disjoint(dims.clone(), body.span()));
                match answer {
                    Answer::Open if is_interleaved(body, &dims) => Answer::Disjoint,
                    answer => answer,
                }
            }
        }
    }

    /// Whether one iteration of a body writes no byte twice.
    fn once(&mut self, body: &Body) -> Answer {
        if let Some(&known) = self.known.get(&std::ptr::from_ref(body)) {
            return known;
        }
        let mut reaches: Vec<_> = body.ops.iter().map(Op::reach).collect();
        let apart = are_disjoint(&mut reaches);
        let answer = body.ops.iter().fold(Answer::proven(apart), |answer, op| {
            let op = match op {
                Op::Block(block) => {
                    let dims = Dims::from_slice(&block.dims);
                    Answer::proven(stays_disjoint(dims, block.memory_run().into()))
                }
                Op::Gather(gather) => {
                    let runs = (0..gather.len()).map(|index| run_of(gather, index));
                    match are_disjoint(&mut runs.collect::<Vec<_>>()) {
                        true => Answer::Disjoint,
                        false => Answer::Overlap,
                    }
                }
                Op::Loop(inner) => {
                    let dim = Dim { count: inner.count, stride: inner.stride };
                    self.body(&inner.body, Dims::from_slice(&[dim]))
                }
            };
            answer.and(op, true)
        });
        self.known.insert(body, answer);
        answer
    }
}

/// Whether a body of blocks, repeated in `dims`, is disjoint by the remainders of its addresses.
/// Columns of an array of structs are, whose reaches overlap.
///
/// 1. Divide by the greatest common divisor of all strides: a run keeps its remainder wherever it
///    is repeated.
/// 2. Runs of different blocks are disjoint if their remainders are.
/// 3. Runs of one block are disjoint by its strides.
fn is_interleaved(body: &Body, dims: &Dims) -> bool {
    let mut parts = Vec::with_capacity(body.ops.len());
    let mut divisor = 0u64;
    for op in &body.ops {
        let Op::Block(block) = op else { return false };
        let mut dims = dims.clone();
        dims.extend(block.dims);
        let strides = dims.iter().filter(|dim| dim.count > 1).map(|dim| dim.stride.unsigned_abs());
        divisor = strides.fold(divisor, greatest_common_divisor);
        if !stays_disjoint(dims, block.memory_run().into()) {
            return false;
        }
        parts.push((op.reach().start, block.memory_run()));
    }
    let Some(divisor) = i64::try_from(divisor).ok().filter(|&divisor| divisor > 0) else {
        return false;
    };
    let mut remainders = Vec::with_capacity(parts.len() + 1);
    for (start, run) in parts {
        let first = start.rem_euclid(divisor);
        let Some(end) = i64::try_from(run).ok().and_then(|run| first.checked_add(run)) else {
            return false;
        };
        remainders.push(first..end.min(divisor));
        if end > divisor {
            // The run continues at the start of the next period. A longer one meets itself.
            remainders.push(0..end - divisor);
        }
    }
    are_disjoint(&mut remainders)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether a piece of `span` bytes stays disjoint when it is repeated in `dims`. From the shortest
/// stride to the longest, each stride must reach past everything that the shorter ones repeat.
fn stays_disjoint(mut dims: Dims, mut span: u128) -> bool {
    dims.retain(|dim| dim.count > 1);
    dims.sort_unstable_by_key(|dim| dim.stride.unsigned_abs());
    dims.iter().all(|dim| {
        let stride = u128::from(dim.stride.unsigned_abs());
        let disjoint = span <= stride;
        span = span.saturating_add(stride.saturating_mul(u128::from(dim.count - 1)));
        disjoint
    })
}

/// Whether the ranges are pairwise disjoint.
fn are_disjoint(ranges: &mut [Range<i64>]) -> bool {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

fn run_of(gather: &Gather, index: usize) -> Range<i64> {
    let (start, run) = gather.run(index);
    start..start.wrapping_add(gather.item().bytes_in_memory(run.end - run.start) as i64)
}

/// The runs of a strip.
fn runs<'a>(strip: &'a Strip<'_>) -> Box<dyn Iterator<Item = Range<i64>> + 'a> {
    match strip {
        Strip::Grid { block, counts, memory, memory_strides, .. } => {
            let length = block.memory_run() as i64;
            let [outer, inner] = *memory_strides;
            let places = (0..counts[0] as i64).flat_map(move |i| {
                let row = memory.wrapping_add(i.wrapping_mul(outer));
                (0..counts[1] as i64).map(move |j| row.wrapping_add(j.wrapping_mul(inner)))
            });
            Box::new(places.map(move |start| start..start.wrapping_add(length)))
        }
        Strip::Table { gather, runs: indices, base, .. } => {
            Box::new(indices.clone().map(|index| {
                let run = run_of(gather, index);
                base.wrapping_add(run.start)..base.wrapping_add(run.end)
            }))
        }
        // The cursor covers whole elements in order, so it cuts no run and makes no tiles.
        Strip::Units { .. } | Strip::Cut { .. } | Strip::Tile(_) => Box::new(std::iter::empty()),
    }
}
