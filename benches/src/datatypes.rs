//! Benches of pack, unpack, copy, and of making and committing types. They run on one core, without
//! a job.

use std::borrow::Cow;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use shipable::contents::Counts;
use shipable::datatype::Node;
use shipable::{Architecture, Committed, Datatype, Partial, Program, View, ViewMut, program};

use crate::Failure;
use crate::case::{Bench, Case};
use crate::pattern::{Pattern, compare, fill_gaps};
use crate::row::{Outcome, Refusal, Sample};

/// Measures a case of this module on the current core. With `validate`, every byte of the stream or
/// memory that the case writes is compared with the expected one.
///
/// # Errors
/// A type that can't be committed.
pub fn measure(case: &Case, validate: bool) -> Result<Outcome, Failure> {
    let datatype: Datatype = case.datatype.parse()?;
    match case.bench {
        Bench::Pack | Bench::Unpack => {
            let [memory, stream] = case.architectures()?;
            let committed = Committed::new(&datatype, &memory)?;
            let program = &*committed.program(&stream)?;
            let pool = &threads(case)?;
            Memory::new(case)?.measure(case, validate, |memory, packed| match case.bench {
                Bench::Pack => pack(program, pool, case.count, memory, packed),
                _ => unpack(program, pool, case.count, memory, packed),
            })
        }
        Bench::Copy => copy(case, &datatype, validate),
        Bench::Define | Bench::Commit => sample(constructions(case, &datatype)?, false),
        _ => Ok(Err(Refusal::Unsupported("not a bench of datatypes".to_owned()))),
    }
}

fn sample(took: Vec<f64>, checked: bool) -> Result<Outcome, Failure> {
    let sample = Sample::of(took, [0.0; 2], checked);
    Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
}

/// The threads that divide the transfers of a case, each on a core of its own. `None` for one.
fn threads(case: &Case) -> Result<Option<rayon::ThreadPool>, Failure> {
    if case.threads == 1 {
        return Ok(None);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(case.threads as usize);
    Ok(Some(pool.start_handler(crate::pin).build()?))
}

fn pack(
    program: &Program,
    pool: &Option<rayon::ThreadPool>,
    count: u64,
    memory: &[u8],
    packed: &mut [u8],
) -> Result<(), Failure> {
    let view = View::new(black_box(memory)).shifted(zero(&program.range(count)?));
    let view = view.ok_or("no such place")?;
    match pool {
        Some(pool) => program.pack_in(pool, count, view, 0, packed)?,
        None => program.pack(count, view, 0, packed)?,
    };
    Ok(())
}

fn unpack(
    program: &Program,
    pool: &Option<rayon::ThreadPool>,
    count: u64,
    memory: &mut [u8],
    packed: &[u8],
) -> Result<(), Failure> {
    let view = ViewMut::new(memory).shifted(zero(&program.range(count)?));
    let view = view.ok_or("no such place")?;
    let (packed, partial) = (black_box(packed), &mut Partial::default());
    match pool {
        Some(pool) => program.unpack_in(pool, count, view, 0, packed, partial)?,
        None => program.unpack(count, view, 0, packed, partial)?,
    }
    Ok(())
}

/// The offset of displacement 0 in memory that spans `range` and displacement 0.
fn zero(range: &Range<i64>) -> i64 {
    -range.start.min(0)
}

/// Measures a copy between memories of two architectures.
fn copy(case: &Case, datatype: &Datatype, validate: bool) -> Result<Outcome, Failure> {
    let [near, far] = case.architectures()?;
    let (near, far) = (Committed::new(datatype, &near)?, Committed::new(datatype, &far)?);
    let far = far.program(near.architecture())?;
    let memory = Memory::sized(near.native().range(case.count)?, far.range(case.count)?)?;
    let (zeros, pool) = (memory.zeros, threads(case)?);
    memory.measure(case, validate, |from, to| {
        let from = View::new(black_box(from)).shifted(zeros[0]);
        let to = ViewMut::new(to).shifted(zeros[1]);
        let (from, to) = from.zip(to).ok_or("no such place")?;
        let (near, count) = (near.native(), case.count);
        match &pool {
            Some(pool) => program::copy_in(pool, (near, count), from, (&far, count), to)?,
            None => program::copy(near, count, from, &far, count, to)?,
        }
        Ok(())
    })
}

/// Measures a type's constructors and its drop. If the bench is `commit`, the type is committed in
/// between. The arguments of the constructors are made before.
fn constructions(case: &Case, datatype: &Datatype) -> Result<Vec<f64>, Failure> {
    times(case, |_| {
        let datatype = construct(black_box(datatype))?;
        if case.bench != Bench::Define {
            black_box(Committed::new(&datatype, &Architecture::NATIVE)?);
        }
        black_box(datatype);
        Ok(())
    })
}

/// Repeats the constructor calls that made `datatype`, beginning with the innermost type.
fn construct(datatype: &Datatype) -> shipable::Result<Datatype> {
    match datatype.node() {
        Node::Leaf(_) => Ok(datatype.clone()),
        Node::Dup { child } => Datatype::dup(&construct(child)?),
        Node::Contiguous { count, child } => Datatype::contiguous(*count, &construct(child)?),
        Node::Vector { count, blocklength, stride, child } => {
            Datatype::vector(*count, *blocklength, *stride, &construct(child)?)
        }
        Node::Hvector { count, blocklength, stride, child, .. } => {
            Datatype::hvector(*count, *blocklength, *stride, &construct(child)?)
        }
        Node::Indexed { blocklengths, displacements, child } => {
            Datatype::indexed(blocklengths, displacements, &construct(child)?)
        }
        Node::Hindexed { blocklengths, displacements, child, .. } => {
            Datatype::hindexed(blocklengths, displacements, &construct(child)?)
        }
        Node::IndexedBlock { blocklength, displacements, child } => {
            Datatype::indexed_block(*blocklength, displacements, &construct(child)?)
        }
        Node::HindexedBlock { blocklength, displacements, child } => {
            Datatype::hindexed_block(*blocklength, displacements, &construct(child)?)
        }
        Node::Struct { blocklengths, displacements, children, .. } => {
            Datatype::struct_(blocklengths, displacements, &all(children)?)
        }
        Node::SimpleStruct { blocklengths, children } => {
            Datatype::simple_struct(blocklengths, &all(children)?)
        }
        Node::Subarray { sizes, subsizes, starts, order, child } => {
            Datatype::subarray(sizes, subsizes, starts, *order, &construct(child)?)
        }
        Node::Resized { lb, extent, child } => Datatype::resized(*lb, *extent, &construct(child)?),
        Node::Darray { .. } | Node::ValueIndex { .. } => {
            datatype.contents(Counts::Large)?.rebuild()
        }
    }
}

/// Constructs all children. If all are predefined, borrows them: arguments are made before.
fn all(children: &[Datatype]) -> shipable::Result<Cow<'_, [Datatype]>> {
    if children.iter().all(|child| child.as_basic().is_some()) {
        return Ok(children.into());
    }
    children.iter().map(construct).collect::<shipable::Result<_>>().map(Cow::Owned)
}

/// Measures the rounds of a case. Returns the microseconds of one call, for each round.
pub(crate) fn times(
    case: &Case,
    mut call: impl FnMut(u32) -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    // An unmeasured call touches the pages and fills caches.
    call(0)?;
    (0..case.rounds)
        .map(|round| {
            let start = Instant::now();
            for _ in 0..case.calls {
                call(round)?;
            }
            Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(case.calls))
        })
        .collect()
}

/// Two memories: elements and their packed stream, or elements in two representations.
///
/// Both begin at another offset in their pages in each round, because the offset affects the speed
/// (docs/tuning.md, "Page offsets in the datatype benches").
pub(crate) struct Memory {
    bytes: [Vec<u8>; 2],
    lengths: [usize; 2],
    /// The offset of displacement 0 in each memory.
    zeros: [i64; 2],
}

impl Memory {
    const PAGE: usize = 4096;

    /// Memory for a case's elements, with displacement 0, and for their packed stream.
    pub(crate) fn new(case: &Case) -> Result<Memory, Failure> {
        let [memory, stream] = case.architectures()?;
        let committed = Committed::new(&case.datatype.parse()?, &memory)?;
        let program = committed.program(&stream)?;
        Memory::sized(program.range(case.count)?, 0..program.stream_length(case.count)?.try_into()?)
    }

    /// Memory for two ranges of displacements, with displacement 0.
    pub(crate) fn sized(first: Range<i64>, second: Range<i64>) -> Result<Memory, Failure> {
        let length = |range: &Range<i64>| {
            let length = i128::from(range.end.max(0)) - i128::from(range.start.min(0));
            usize::try_from(length).ok().filter(|&length| length <= 1 << 30)
        };
        let lengths = length(&first).zip(length(&second)).ok_or("more than 1 GiB of memory")?;
        let bytes = |length: usize| vec![1; length + 2 * Memory::PAGE];
        Ok(Memory {
            bytes: [bytes(lengths.0), bytes(lengths.1)],
            lengths: lengths.into(),
            zeros: [zero(&first), zero(&second)],
        })
    }

    fn at(&mut self, round: u32) -> (&mut [u8], &mut [u8]) {
        let [first, second] = &mut self.bytes;
        let part = |bytes: &mut Vec<u8>, length, step: usize| {
            let start =
                bytes.as_ptr().align_offset(Memory::PAGE) + 64 * (step * round as usize % 64);
            start..start + length
        };
        let parts = (part(first, self.lengths[0], 7), part(second, self.lengths[1], 13));
        (&mut first[parts.0], &mut second[parts.1])
    }

    /// Measures the rounds of work on both memories.
    pub(crate) fn rounds(
        &mut self,
        case: &Case,
        mut work: impl FnMut(&mut [u8], &mut [u8]) -> Result<(), Failure>,
    ) -> Result<Vec<f64>, Failure> {
        times(case, |round| {
            let (first, second) = self.at(round);
            work(black_box(first), black_box(second))
        })
    }

    /// Measures work on both memories. With `validate`, checks its result, too.
    pub(crate) fn measure(
        mut self,
        case: &Case,
        validate: bool,
        mut work: impl FnMut(&mut [u8], &mut [u8]) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        let took = self.rounds(case, &mut work)?;
        match validate.then(|| self.check(case, &mut work)).transpose()? {
            Some(Err(why)) => Ok(Err(Refusal::Invalid(why))),
            checked => sample(took, checked == Some(Ok(true))),
        }
    }

    /// Checks the bytes that a pack, an unpack or a copy writes. `Ok(Ok(false))`: the type has
    /// items for which there is no [`Pattern`]. `Ok(Err(_))`: a byte is wrong.
    fn check(
        &mut self,
        case: &Case,
        mut work: impl FnMut(&mut [u8], &mut [u8]) -> Result<(), Failure>,
    ) -> Result<Result<bool, String>, Failure> {
        const SEEDS: &[u64] = &[7];
        let datatype: Datatype = case.datatype.parse()?;
        let [first, second] = &case.architectures()?;
        let of = |architecture| Pattern::new(&datatype, case.count, architecture);
        let (Some(near), Some(far)) = (of(first)?, of(second)?) else { return Ok(Ok(false)) };
        let image = |pattern: &Pattern, at: usize| -> Result<_, Failure> {
            let mut memory = vec![0; self.lengths[at]];
            fill_gaps(&mut memory, at as u64);
            pattern.write(&mut memory, self.zeros[at], SEEDS)?;
            Ok(memory)
        };
        let near = image(&near, 0)?;
        let far = match case.bench {
            Bench::Copy => image(&far, 1)?,
            _ => far.packed(SEEDS),
        };
        let (first, second) = self.at(0);
        fill_gaps(first, 0);
        fill_gaps(second, 1);
        let right = match case.bench {
            Bench::Unpack => {
                second.copy_from_slice(&far);
                work(first, second)?;
                compare(first, &near)
            }
            _ => {
                first.copy_from_slice(&near);
                work(first, second)?;
                compare(second, &far)
            }
        };
        Ok(right.map(|()| true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validation_compares_every_byte_of_a_copy() -> Result<(), Failure> {
        let case: Case =
            "bench=copy type=U1(SS:2:c/1,d/1) count=2 arch=native,s390x calls=1 rounds=1"
                .parse()?;
        let datatype = case.datatype.parse()?;
        let sample = copy(&case, &datatype, true)?.map_err(|refusal| refusal.to_string())?;
        assert!(sample.validated);
        let nothing = |_: &mut [u8], _: &mut [u8]| Ok(());
        let outcome = Memory::sized(0..32, 0..32)?.measure(&case, true, nothing)?;
        assert!(matches!(outcome, Err(Refusal::Invalid(_))), "{outcome:?}");
        // A copy of whole elements writes the gaps, too.
        let case = Case { arch: Case::default().arch, ..case };
        let whole = |from: &mut [u8], to: &mut [u8]| {
            to.copy_from_slice(from);
            Ok(())
        };
        let outcome = Memory::sized(0..32, 0..32)?.measure(&case, true, whole)?;
        assert!(matches!(outcome, Err(Refusal::Invalid(_))), "{outcome:?}");
        Ok(())
    }

    #[test]
    fn types_without_a_pattern_are_not_validated() -> Result<(), Failure> {
        let case: Case = "bench=pack type=LD calls=1 rounds=1".parse()?;
        let sample = measure(&case, true)?.map_err(|refusal| refusal.to_string())?;
        assert!(!sample.validated);
        Ok(())
    }
}
