//! Whether elements of a datatype overlap in memory.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use super::Program;
use super::cursor::{Cursor, Elements, Strip};
use super::op::{Body, Dim, Gather, Op};

/// The most runs that are compared one by one.
pub(super) const COMPARED: usize = 1 << 20;

/// Whether writing `count` elements writes a byte twice, as far as the search goes.
///
/// 1. Most programs are disjoint by their strides: see [`DisjointCheck`].
/// 2. Otherwise list up to [`COMPARED`] runs, sort them, and compare neighbours.
pub(super) fn overlaps(program: &Program, count: u64) -> bool {
    let repeated = Dim { count, stride: program.extent };
    if DisjointCheck::default().body(&program.body, Dims::from_slice(&[repeated])) {
        return false;
    }
    let Ok(length) = program.stream_length(count) else { return true };
    let mut runs: Vec<Range<i64>> = Vec::new();
    let elements = Elements::new(&program.body, count, program.extent);
    let mut cursor = Cursor::in_order(&elements, 0..length);
    while let Some(strip) = cursor.next(u64::MAX).filter(|_| runs.len() < COMPARED) {
        add_runs(&strip, &mut runs);
    }
    !are_disjoint(&mut runs)
}

type Dims = SmallVec<[Dim; 6]>;

/// A proof of disjointness from strides. Its cost grows with the program, not with the bytes that
/// the program moves.
#[derive(Default)]
struct DisjointCheck {
    /// The results for bodies, which many loops may share.
    known: HashMap<*const Body, bool>,
}

impl DisjointCheck {
    /// Whether a body repeated in `dims` provably writes no byte twice.
    fn body(&mut self, body: &Body, mut dims: Dims) -> bool {
        match &*body.ops {
            [Op::Block(block)] => {
                dims.extend(block.dims);
                stays_disjoint(dims, block.memory_run().into())
            }
            [Op::Loop(inner)] => {
                dims.push(Dim { count: inner.count, stride: inner.stride });
                self.body(&inner.body, dims)
            }
            _ => stays_disjoint(dims, body.span()) && self.once(body),
        }
    }

    /// Whether one iteration of a body provably writes no byte twice.
    fn once(&mut self, body: &Body) -> bool {
        if let Some(&known) = self.known.get(&std::ptr::from_ref(body)) {
            return known;
        }
        let mut reaches: Vec<_> = body.ops.iter().map(Op::reach).collect();
        let is_disjoint = are_disjoint(&mut reaches)
            && body.ops.iter().all(|op| match op {
                Op::Block(block) => {
                    stays_disjoint(Dims::from_slice(&block.dims), block.memory_run().into())
                }
                Op::Gather(gather) => {
                    let runs = (0..gather.len()).map(|index| run_of(gather, index));
                    are_disjoint(&mut runs.collect::<Vec<_>>())
                }
                Op::Loop(inner) => {
                    let dim = Dim { count: inner.count, stride: inner.stride };
                    self.body(&inner.body, Dims::from_slice(&[dim]))
                }
            });
        self.known.insert(body, is_disjoint);
        is_disjoint
    }
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

/// Adds the runs of a strip, up to [`COMPARED`] runs in all.
fn add_runs(strip: &Strip<'_>, runs: &mut Vec<Range<i64>>) {
    let left = COMPARED - runs.len();
    match strip {
        Strip::Grid { block, counts, memory, memory_strides, .. } => {
            let length = block.memory_run() as i64;
            let [outer, inner] = *memory_strides;
            let places = (0..counts[0] as i64).flat_map(|i| {
                let row = memory.wrapping_add(i.wrapping_mul(outer));
                (0..counts[1] as i64).map(move |j| row.wrapping_add(j.wrapping_mul(inner)))
            });
            runs.extend(places.take(left).map(|start| start..start.wrapping_add(length)));
        }
        Strip::Table { gather, runs: indices, base, .. } => {
            runs.extend(indices.clone().take(left).map(|index| {
                let run = run_of(gather, index);
                base.wrapping_add(run.start)..base.wrapping_add(run.end)
            }));
        }
        // The cursor covers whole elements in order, so it cuts no run and makes no tiles.
        Strip::Units { .. } | Strip::Cut { .. } | Strip::Tile(_) => {}
    }
}
