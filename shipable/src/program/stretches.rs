//! Where a program's bytes lie in memory, without expanding what is strided.

use super::Program;
use super::op::{Body, Dim, Op};

/// A run of bytes of memory, repeated in strided dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The displacement of the first byte of the first run.
    pub start: i64,
    /// Bytes in a run.
    pub len: u64,
    /// Repetitions, outer to inner: how many, and bytes from one to the next, above 0.
    pub dims: Vec<(u64, i64)>,
}

impl Stretch {
    /// The displacement past its last byte.
    pub fn end(&self) -> i64 {
        let last = |end: i64, &(count, stride): &(u64, i64)| {
            end.saturating_add(stride.saturating_mul(count as i64 - 1))
        };
        self.dims.iter().fold(self.start.saturating_add_unsigned(self.len), last)
    }

    /// The same in one more, outermost dimension.
    fn repeated(mut self, count: u64, stride: i64) -> Stretch {
        match stride {
            _ if count <= 1 || stride == 0 => {}
            _ if stride < 0 => {
                self.start = self.start.wrapping_add((count as i64 - 1).wrapping_mul(stride));
                self.dims.insert(0, (count, stride.wrapping_neg()));
            }
            _ if self.dims.is_empty() && u64::try_from(stride) == Ok(self.len) => self.len *= count,
            _ => self.dims.insert(0, (count, stride)),
        }
        self
    }
}

impl Program {
    /// The bytes of memory in which `count` elements lie, relative to displacement 0, as at most `most` stretches in the
    /// order of the type map; and whether these are all. What is regular takes one stretch, however long it is.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype, Stretch};
    ///
    /// let column = Datatype::vector(1 << 30, 1, 10, &Datatype::double())?;
    /// let column = Committed::new(&column, &Architecture::X86_64)?;
    /// let (stretches, whole) = column.native().stretches(1, 100);
    /// assert_eq!(stretches, [Stretch { start: 0, len: 8, dims: vec![(1 << 30, 80)] }]);
    /// assert!(whole);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn stretches(&self, count: u64, most: usize) -> (Vec<Stretch>, bool) {
        if count == 0 {
            return (Vec::new(), true);
        }
        let mut list =
            List { found: Vec::new(), most, outer: vec![Dim { count, stride: self.extent }] };
        let whole = list.body(&self.body, 0);
        (list.found, whole)
    }
}

impl Program {
    /// The runs of memory in which `count` elements lie, as displacements and lengths in bytes, in the order of the type map, so that
    /// the packed stream of a program that is [all copy](Program::is_all_copy) is these runs one behind the other. None if there are
    /// more than `most`, or if one is longer than a `u64` counts.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    ///
    /// let down = Datatype::vector(3, 2, -4, &Datatype::double())?;
    /// let down = Committed::new(&down, &Architecture::X86_64)?;
    /// assert_eq!(down.native().runs(1, 10), Some(vec![(0, 16), (-32, 16), (-64, 16)]));
    /// assert_eq!(down.native().runs(1, 2), None);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn runs(&self, count: u64, most: usize) -> Option<Vec<(i64, u64)>> {
        // What is one run isn't walked element by element.
        if let Some(start) = self.contiguous(count).filter(|_| count > 0) {
            let run = (start, self.stream_length(count).ok()?);
            return (most > 0).then(|| vec![run]);
        }
        let mut runs = Runs { found: Vec::new(), most };
        let all = Dim { count, stride: self.extent };
        runs.repeat(&[all], 0, &mut |runs, at| runs.body(&self.body, at)).then_some(runs.found)
    }
}

/// The runs found so far.
struct Runs {
    found: Vec<(i64, u64)>,
    most: usize,
}

impl Runs {
    /// Adds a body's runs, at a displacement; false if there are more than wanted.
    fn body(&mut self, body: &Body, at: i64) -> bool {
        body.ops.iter().all(|op| match op {
            Op::Block(block) => {
                let (start, len) = (at.wrapping_add(block.start), block.memory_run());
                self.repeat(&block.dims, start, &mut |runs, at| runs.add(at, len))
            }
            Op::Gather(gather) => (0..gather.len()).all(|index| {
                let (start, run) = gather.run(index);
                let len = gather.item().bytes_in_memory(run.end - run.start);
                self.add(at.wrapping_add(start), len)
            }),
            Op::Loop(each) => {
                let dim = Dim { count: each.count, stride: each.stride };
                let start = at.wrapping_add(each.start);
                self.repeat(&[dim], start, &mut |runs, at| runs.body(&each.body, at))
            }
        })
    }

    /// Does something at each place of strided dimensions, the outermost first.
    fn repeat(
        &mut self,
        dims: &[Dim],
        at: i64,
        each: &mut dyn FnMut(&mut Runs, i64) -> bool,
    ) -> bool {
        let Some((dim, inner)) = dims.split_first() else { return each(self, at) };
        let place = |index: u64| at.wrapping_add(dim.stride.wrapping_mul(index as i64));
        (0..dim.count).all(|index| self.repeat(inner, place(index), each))
    }

    fn add(&mut self, start: i64, len: u64) -> bool {
        match self.found.last_mut() {
            _ if len == 0 => true,
            Some((last, run)) if last.checked_add_unsigned(*run) == Some(start) => {
                *run += len;
                true
            }
            _ => {
                self.found.push((start, len));
                self.found.len() <= self.most
            }
        }
    }
}

/// The stretches found so far.
struct List {
    found: Vec<Stretch>,
    most: usize,
    /// The dimensions in which what comes is repeated, the outermost first.
    outer: Vec<Dim>,
}

impl List {
    /// Adds a body's stretches, at a displacement; false if there are more than wanted.
    fn body(&mut self, body: &Body, at: i64) -> bool {
        body.ops.iter().all(|op| match op {
            Op::Block(block) => {
                self.add(at.wrapping_add(block.start), block.memory_run(), &block.dims)
            }
            Op::Gather(gather) => (0..gather.len()).all(|index| {
                let (start, run) = gather.run(index);
                let len = gather.item().bytes_in_memory(run.end - run.start);
                self.add(at.wrapping_add(start), len, &[])
            }),
            Op::Loop(each) => {
                self.outer.push(Dim { count: each.count, stride: each.stride });
                let whole = self.body(&each.body, at.wrapping_add(each.start));
                self.outer.pop();
                whole
            }
        })
    }

    fn add(&mut self, start: i64, len: u64, inner: &[Dim]) -> bool {
        if self.found.len() == self.most {
            return false;
        }
        let run = Stretch { start, len, dims: Vec::new() };
        let all = inner.iter().rev().chain(self.outer.iter().rev());
        self.found.push(all.fold(run, |run, dim| run.repeated(dim.count, dim.stride)));
        true
    }
}
