//! Whether elements of a datatype overlap in memory.

use std::ops::Range;

use super::Program;
use super::cursor::{Cursor, Strip, Whole};
use super::op::{Body, Dim, Op};

/// Whether writing `count` elements writes a byte twice.
///
/// 1. Most programs go upwards in memory, and nothing that goes upwards overlaps.
/// 2. Else all runs are listed and sorted.
pub(super) fn overlaps(program: &Program, count: u64) -> bool {
    if ascending(&program.body, count, program.extent) {
        return false;
    }
    let Ok(length) = program.stream_length(count) else { return true };
    let mut runs: Vec<Range<i64>> = Vec::new();
    let whole = Whole::new(&program.body, count, program.extent);
    let mut cursor = Cursor::in_order(&whole, 0..length);
    while let Some(strip) = cursor.next(u64::MAX) {
        list(&strip, &mut runs);
    }
    runs.sort_unstable_by_key(|run| run.start);
    runs.windows(2).any(|pair| pair[1].start < pair[0].end)
}

/// Whether every run of a repeated body lies after the one before.
fn ascending(body: &Body, count: u64, stride: i64) -> bool {
    let spread = count < 2 || (stride >= 0 && body.span() <= stride.unsigned_abs().into());
    let apart = body.ops.windows(2).all(|pair| pair[0].reach().end <= pair[1].reach().start);
    spread && apart && body.ops.iter().all(ascends)
}

fn ascends(op: &Op) -> bool {
    match op {
        Op::Block(block) => {
            let mut span = block.memory_run() as i64;
            block.dims.iter().rev().all(|&Dim { count, stride }| {
                let fits = count == 1 || stride >= span;
                span += (count as i64 - 1) * stride;
                fits
            })
        }
        Op::Gather(gather) => {
            let ends = (0..gather.len()).map(|index| run_of(gather, index));
            ends.clone().zip(ends.skip(1)).all(|(run, next)| run.end <= next.start)
        }
        Op::Loop(inner) => ascending(&inner.body, inner.count, inner.stride),
    }
}

fn run_of(gather: &super::op::Gather, index: usize) -> Range<i64> {
    let (offset, run) = gather.run(index);
    offset..offset + gather.item.bytes_in_memory(run.end - run.start) as i64
}

fn list(strip: &Strip<'_>, runs: &mut Vec<Range<i64>>) {
    match strip {
        Strip::Grid { block, counts, memory, memory_strides, .. } => {
            let length = block.memory_run() as i64;
            for i in 0..counts[0] as i64 {
                for j in 0..counts[1] as i64 {
                    let start = memory + i * memory_strides[0] + j * memory_strides[1];
                    runs.push(start..start + length);
                }
            }
        }
        Strip::Table { gather, runs: indices, base, .. } => {
            runs.extend(indices.clone().map(|index| {
                let run = run_of(gather, index);
                base + run.start..base + run.end
            }));
        }
        // Parts of runs are met only where a transfer is cut.
        Strip::Piece { .. } | Strip::Cut { .. } => {}
    }
}
