//! Pack, unpack, copy, commit and the definition of types, on one core and without a job.

use std::borrow::Cow;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use shipable::contents::Counts;
use shipable::datatype::Node;
use shipable::{
    Architecture, Committed, Datatype, Partial, Program, View, ViewMut, oracle, program,
};

use crate::Failure;
use crate::case::{Bench, Case};
use crate::pattern::Pattern;
use crate::row::{Outcome, Refusal, Sample};

/// Measures a case of this module's on the core where it runs. With `validate` packed bytes, and memory after an unpack, are
/// compared with what `shipable::oracle` makes of them, item by item.
///
/// # Errors
/// A type that can't be committed.
pub fn measure(case: &Case, validate: bool) -> Result<Outcome, Failure> {
    let datatype: Datatype = case.datatype.parse()?;
    let (took, checked) = match case.bench {
        Bench::Pack | Bench::Unpack => {
            let [memory, stream] = case.architectures()?;
            let committed = Committed::new(&datatype, &memory)?;
            let program = &*committed.program(&stream)?;
            let mut work = |memory: &mut [u8], packed: &mut [u8]| match case.bench {
                Bench::Pack => pack(program, case.count, memory, packed),
                _ => unpack(program, case.count, memory, packed),
            };
            let mut memory = Memory::new(case)?;
            let took = memory.rounds(case, &mut work)?;
            if let (true, Err(why)) = (validate, memory.check(case, &mut work)?) {
                return Ok(Err(Refusal::Invalid(why)));
            }
            (took, validate)
        }
        Bench::Copy => (copy(case, &datatype)?, false),
        Bench::Define | Bench::Commit | Bench::CommitReady => {
            (constructions(case, &datatype)?, false)
        }
        _ => return Ok(Err(Refusal::Unsupported("no work on a datatype alone".to_owned()))),
    };
    let sample = Sample::of(took, [0.0; 2], checked);
    Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
}

fn pack(program: &Program, count: u64, memory: &[u8], packed: &mut [u8]) -> Result<(), Failure> {
    let view = View::new(black_box(memory)).shifted(zero(&program.range(count)?));
    program.pack(count, view.ok_or("no such place")?, 0, packed)?;
    Ok(())
}

fn unpack(program: &Program, count: u64, memory: &mut [u8], packed: &[u8]) -> Result<(), Failure> {
    let view = ViewMut::new(memory).shifted(zero(&program.range(count)?));
    let view = view.ok_or("no such place")?;
    Ok(program.unpack(count, view, 0, black_box(packed), &mut Partial::default())?)
}

/// Where displacement 0 lies in memory of such a range, and of that displacement.
fn zero(range: &Range<i64>) -> i64 {
    -range.start.min(0)
}

/// From memory of the one layout to memory of the other.
fn copy(case: &Case, datatype: &Datatype) -> Result<Vec<f64>, Failure> {
    let [near, far] = case.architectures()?;
    let (near, far) = (Committed::new(datatype, &near)?, Committed::new(datatype, &far)?);
    let far = far.program(near.architecture())?;
    let ranges = (near.native().range(case.count)?, far.range(case.count)?);
    let zeros = (zero(&ranges.0), zero(&ranges.1));
    Memory::sized(ranges.0, ranges.1)?.rounds(case, |from, to| {
        let from = View::new(black_box(from)).shifted(zeros.0);
        let to = ViewMut::new(to).shifted(zeros.1);
        let (from, to) = from.zip(to).ok_or("no such place")?;
        Ok(program::copy(near.native(), case.count, from, &far, case.count, to)?)
    })
}

/// A type by its constructors, whose arguments are ready, and its end; in between nothing, a commit, or that and what a first use
/// makes.
fn constructions(case: &Case, datatype: &Datatype) -> Result<Vec<f64>, Failure> {
    times(case, |_| {
        let datatype = construct(black_box(datatype))?;
        if case.bench != Bench::Define {
            let committed = black_box(Committed::new(&datatype, &Architecture::NATIVE)?);
            if case.bench == Bench::CommitReady {
                black_box(committed.native());
            }
        }
        black_box(datatype);
        Ok(())
    })
}

/// The same type, made by the calls that made `datatype`, from the innermost on.
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

/// Predefined types are ready, as all other arguments are.
fn all(children: &[Datatype]) -> shipable::Result<Cow<'_, [Datatype]>> {
    if children.iter().all(|child| child.as_basic().is_some()) {
        return Ok(children.into());
    }
    children.iter().map(construct).collect::<shipable::Result<_>>().map(Cow::Owned)
}

/// Rounds of `case.calls` calls each, in microseconds a call.
pub(crate) fn times(
    case: &Case,
    mut call: impl FnMut(u32) -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    // The first call touches the pages, and may build what is kept.
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

/// A type's elements and their packed stream, or the same elements in another representation. Both begin elsewhere in their pages in each round, since that alone can make a difference of half.
pub(crate) struct Memory {
    bytes: [Vec<u8>; 2],
    lengths: [usize; 2],
    /// Where displacement 0 lies in the first.
    zero: i64,
}

impl Memory {
    const PAGE: usize = 4096;

    /// The memory of a case's elements, displacement 0 included, and a packed stream of them.
    pub(crate) fn new(case: &Case) -> Result<Memory, Failure> {
        let [memory, stream] = case.architectures()?;
        let committed = Committed::new(&case.datatype.parse()?, &memory)?;
        let program = committed.program(&stream)?;
        Memory::sized(program.range(case.count)?, 0..program.stream_length(case.count)?.try_into()?)
    }

    /// Memory that holds two ranges of displacements.
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
            zero: zero(&first),
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

    /// Rounds of work on both.
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

    /// What is wrong with the bytes that the work of a pack or an unpack makes, if anything: they are to be those that
    /// `shipable::oracle` makes, item by item.
    pub(crate) fn check(
        &mut self,
        case: &Case,
        mut work: impl FnMut(&mut [u8], &mut [u8]) -> Result<(), Failure>,
    ) -> Result<Result<(), String>, Failure> {
        let datatype: Datatype = case.datatype.parse()?;
        let [architecture, stream] = &case.architectures()?;
        let Some(pattern) = Pattern::new(&datatype, case.count, architecture, stream)? else {
            return Ok(Err("no data is known for such items".to_owned()));
        };
        let right = pattern.stream(7);
        let mut there = vec![0; self.lengths[0]];
        let origin = usize::try_from(self.zero)?;
        let memory = (architecture, &mut there[..], origin);
        oracle::unpack(&datatype, case.count, memory, (stream, &right))?;
        let (memory, packed) = self.at(0);
        let (found, right) = match case.bench {
            Bench::Pack => {
                memory.copy_from_slice(&there);
                work(memory, packed)?;
                (packed, right)
            }
            _ => {
                memory.fill(0);
                packed.copy_from_slice(&right);
                work(memory, packed)?;
                (memory, there)
            }
        };
        Ok(match found.iter().zip(&right).position(|(found, right)| found != right) {
            None => Ok(()),
            Some(byte) => Err(format!("byte {byte} is {}, not {}", found[byte], right[byte])),
        })
    }
}
