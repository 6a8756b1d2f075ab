//! Copies that are a single kernel call, prepared once for two programs and counts and carried out
//! often.

use super::Program;
use super::cursor::{Elements, Strip};
use super::mirror::MemoryOrder;
use super::op::Op;
use crate::convert::Conversion;
use crate::dims::Dim;
use crate::kernels::{Kernel, Lane, Transfer};
use crate::memory::{OutOfBounds, View, ViewMut};

/// A copy without conversion, between runs in at most two strided dimensions on either side.
///
/// ```
/// use shipable::program::Strided;
/// use shipable::{Architecture, Committed, Datatype, View, ViewMut};
/// let commit = |datatype| Committed::new(&datatype, &Architecture::NATIVE);
/// let row = commit(Datatype::contiguous(3, &Datatype::byte())?)?;
/// let column = commit(Datatype::vector(3, 1, 2, &Datatype::byte())?)?;
/// let copy = Strided::between(row.native(), 1, column.native(), 1).unwrap();
/// let mut matrix = [0; 6];
/// copy.carry_out(View::new(&[1, 2, 3]), &mut ViewMut::new(&mut matrix))?;
/// assert_eq!(matrix, [1, 0, 2, 0, 3, 0]);
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Strided(Transfer);

/// The runs of one side.
struct SideRuns {
    run: u64,
    counts: [u64; 2],
    lane: Lane,
}

impl SideRuns {
    fn of(program: &Program, count: u64) -> Option<SideRuns> {
        let elements = Elements::new(&program.body, count, program.extent);
        let Some(Strip::Grid { block, counts, memory, memory_strides, .. }) = elements.strip()
        else {
            return None;
        };
        let lane = Lane { start: memory, strides: memory_strides };
        Some(SideRuns { run: block.memory_run(), counts, lane })
    }

    /// A single run cut into the runs of the other side. Otherwise `self`.
    fn cut_as(self, other: &SideRuns) -> SideRuns {
        match self.counts {
            [1, 1] => {
                let lane = Lane::packed(self.lane.start, other.counts, other.run);
                SideRuns { lane, ..*other }
            }
            _ => self,
        }
    }
}

impl Strided {
    /// Prepares a [`copy`](super::copy) between the two. `None` if that takes more than one kernel
    /// call.
    pub fn between(
        source: &Program,
        source_count: u64,
        target: &Program,
        target_count: u64,
    ) -> Option<Strided> {
        let length = source.stream_length(source_count).ok()?;
        let is_whole = length > 0 && target.stream_length(target_count).ok()? == length;
        if !is_whole || !source.is_all_copy() || !target.is_all_copy() {
            return None;
        }
        let (from, to) = (SideRuns::of(source, source_count)?, SideRuns::of(target, target_count)?);
        let from = from.cut_as(&to);
        let to = to.cut_as(&from);
        if (from.run, from.counts) != (to.run, to.counts) {
            return None;
        }
        Strided::new(from.run, from.counts, from.lane, to.lane)
    }

    /// Prepares a [`Program::mirror`] of `count` elements. `None` if that takes more than one
    /// kernel call.
    pub fn mirror(program: &Program, count: u64) -> Option<Strided> {
        let [Op::Block(block)] = &*program.body.ops else { return None };
        if count == 0 || !program.is_all_copy() {
            return None;
        }
        let [outer, middle, inner] = block.dims;
        let dims = [Dim { count, stride: program.extent }, outer, middle, inner];
        let arranged = MemoryOrder::new(block.start, dims, block.memory_run());
        let [Dim::ONE, Dim::ONE, outer, inner] = arranged.dims else { return None };
        let lane = Lane { start: arranged.start, strides: [outer.stride, inner.stride] };
        Strided::new(arranged.run, [outer.count, inner.count], lane, lane)
    }

    fn new(run: u64, counts: [u64; 2], from: Lane, to: Lane) -> Option<Strided> {
        Kernel::new(Conversion::Copy, run).prepare(counts, from, to).map(Strided)
    }

    /// Copies the runs.
    ///
    /// # Errors
    ///
    /// [`OutOfBounds`] if a run doesn't lie in its memory. Nothing is copied.
    #[inline]
    pub fn carry_out(&self, from: View<'_>, to: &mut ViewMut<'_>) -> Result<(), OutOfBounds> {
        self.0.carry_out(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::super::copy;
    use super::*;
    use crate::{Architecture, Committed, Datatype};

    /// Datatypes of 12 bytes of data each, except for one of 24.
    fn types() -> Vec<Committed> {
        let texts = [
            "U1(12b)",
            "U1(V:b:3:4:5)",
            "U1(V:b:2:6:7)",
            "U1(V:b:4:3:-5)",
            "U1(V:b:6:2:3)",
            "U1(HV:U2(V:b:2:2:9):3:1:40)",
            "U1(HV:U2(V:b:2:2:40):3:1:9)",
            "U1(V:U2(V:b:2:3:4):2:1:3)",
            "U1(RZ:U2(V:b:4:3:4):-3:14)",
            "U1(SA:b:C:3:3/2/1,4/2/1,4/3/1)",
            "U1(X:b:3:4/9,4/0,4/20)",
            "U1(V:b:4:6:8)",
        ];
        let commit = |text: &&str| {
            let datatype: Datatype = text.parse().unwrap();
            Committed::new(&datatype, &Architecture::NATIVE).unwrap()
        };
        texts.iter().map(commit).collect()
    }

    #[test]
    fn strided_copies_match_program_copies() {
        let memory: Vec<u8> = (0..=255).cycle().take(1200).collect();
        let (mut found, mut mirrored) = (0, 0);
        let all = types();
        for (source, target) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            for (m, n) in [(1, 1), (3, 3), (2, 4), (0, 0), (1, 2)] {
                let (source, target) = (source.native(), target.native());
                let Some(strided) = Strided::between(source, m, target, n) else { continue };
                found += 1;
                let [mut expected, mut there] = [[0xaa; 1200]; 2];
                let view = View::new(&memory).with_origin(600);
                let room = ViewMut::new(&mut expected).with_origin(600);
                copy(source, m, view, target, n, room).unwrap();
                let mut room = ViewMut::new(&mut there).with_origin(600);
                strided.carry_out(view, &mut room).unwrap();
                assert_eq!(there, expected);
                // The smallest view that suffices, and one that is a byte shorter.
                let reach = source.range(m).unwrap();
                let bytes = (reach.end - reach.start) as usize;
                for (less, fits) in [(0, true), (1, false)] {
                    let view = View::new(&memory[..bytes - less]).shifted(-reach.start).unwrap();
                    let mut room = ViewMut::new(&mut there).with_origin(600);
                    let done = strided.carry_out(view, &mut room);
                    assert_eq!(done.is_ok(), fits);
                }
            }
        }
        for program in all.iter().map(|one| one.native()) {
            for count in 0..4 {
                let Some(strided) = Strided::mirror(program, count) else { continue };
                mirrored += 1;
                let [mut expected, mut there] = [[0xaa; 1200]; 2];
                let view = View::new(&memory).with_origin(600);
                let room = ViewMut::new(&mut expected).with_origin(600);
                program.mirror(count, view, room).unwrap();
                let mut room = ViewMut::new(&mut there).with_origin(600);
                strided.carry_out(view, &mut room).unwrap();
                assert_eq!(there, expected);
            }
        }
        assert!(found > 30 && mirrored > 20, "{found} {mirrored} of {}", all.len());
    }
}
