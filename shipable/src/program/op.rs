//! The operations of a program: blocks, gathers and loops, and the bodies that hold them.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::basic::Leaf;
use crate::bounds::Bounds;
use crate::convert::Conversion;
use crate::dims::{self, Dim, Dims, Repeated};
use crate::form::{Regular, Run};
use crate::kernels::{Kernel, Offsets};
use crate::shared::push_with;

/// The conversion of a run's units. Packing applies it, and unpacking applies its reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The conversion from memory to stream.
    pub pack: Conversion,
    /// The datatype that error messages name. `None` if neither direction can fail.
    pub leaf: Option<Leaf>,
}

impl Item {
    pub(crate) fn is_copy(&self) -> bool {
        self.pack.is_copy()
    }

    /// The conversion from stream to memory.
    pub(crate) fn unpack(&self) -> Conversion {
        self.pack.reversed()
    }

    /// The bytes of a unit in memory.
    pub(crate) fn memory(&self) -> u64 {
        self.pack.from_size().into()
    }

    /// The bytes of a unit in the stream.
    pub(crate) fn stream(&self) -> u64 {
        self.pack.to_size().into()
    }

    /// The bytes of memory that correspond to `bytes` of the stream, a multiple of the unit.
    pub(crate) fn bytes_in_memory(&self, bytes: u64) -> u64 {
        bytes / self.stream() * self.memory()
    }
}

/// A run repeated in three strided dimensions. Unused dimensions come first and have count 1.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub start: i64,
    pub dims: Dims,
    /// The kernel that packs a run. Its reverse unpacks one.
    pub kernel: Kernel,
    /// The datatype that error messages name, if a conversion can fail: see [`Item`].
    pub leaf: Option<Leaf>,
    /// The units of a run. If the run is copied, a unit is a byte.
    pub units: u64,
    /// The basic items of a run.
    pub items: u64,
}

impl Block {
    #[inline]
    pub(crate) fn run(start: i64, item: Item, units: u64, items: u64) -> Block {
        let kernel = Kernel::new(item.pack, units);
        Block { start, dims: [Dim::ONE; 3], kernel, leaf: item.leaf, units, items }
    }

    /// A run that is copied, in strided dimensions.
    #[inline]
    fn copy(run: &Run, dims: Dims) -> Block {
        let Run { start, bytes, items } = *run;
        Block { start, dims, kernel: Kernel::of_copy(bytes), leaf: None, units: bytes, items }
    }

    pub(crate) fn item(&self) -> Item {
        Item { pack: self.kernel.conversion(), leaf: self.leaf }
    }

    /// Appends `units` units, which hold `items` basic items, to the run.
    pub(crate) fn lengthen(&mut self, units: u64, items: u64) {
        self.units += units;
        self.items += items;
        self.kernel.set_units(self.units);
    }

    pub(crate) fn runs(&self) -> u64 {
        dims::runs(&self.dims)
    }

    /// The bytes of a run in memory.
    pub(crate) fn memory_run(&self) -> u64 {
        self.kernel.from_run()
    }

    /// The bytes of a run in the stream.
    pub(crate) fn stream_run(&self) -> u64 {
        self.kernel.to_run()
    }

    /// Whether the run is copied without conversion.
    pub(crate) fn is_copy(&self) -> bool {
        self.kernel.conversion().is_copy()
    }

    /// This block repeated `count` times, `stride` bytes apart. `None` if the result isn't a block.
    pub(crate) fn repeated(&self, count: u64, stride: i64) -> Option<Block> {
        let mut block = self.clone();
        block.repeat(count, stride).then_some(block)
    }

    /// Repeats the block `count` times, `stride` bytes apart. Returns false, and changes nothing,
    /// if the result isn't a block.
    pub(crate) fn repeat(&mut self, count: u64, stride: i64) -> bool {
        let run = self.memory_run();
        match dims::repeat(&mut self.dims, run, count, stride) {
            Repeated::InDims => {}
            Repeated::InRun(count) => {
                self.lengthen(self.units * (count - 1), self.items * (count - 1));
            }
            Repeated::No => return false,
        }
        true
    }
}

/// Adds a block to operations.
#[inline]
pub(crate) fn push_block(
    ops: &mut Ops,
    start: i64,
    item: Item,
    units: u64,
    items: u64,
) -> &mut Block {
    push_with(ops, || Op::Block(Block::run(start, item, units, items)));
    let Some(Op::Block(block)) = ops.last_mut() else { unreachable!("a block was pushed") };
    block
}

/// A table of runs at arbitrary offsets.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    /// The displacement of the first run. Offsets are relative to it: sums of large displacements
    /// then overflow only if their result does.
    pub start: i64,
    pub table: Table,
    /// The kernel that packs a run of an even table, or one unit of a ragged table. Its reverse
    /// unpacks.
    pub kernel: Kernel,
    /// The datatype that error messages name, if a conversion can fail: see [`Item`].
    pub leaf: Option<Leaf>,
    /// The bytes of the table in the stream.
    pub stream: u64,
    /// The basic items of the table.
    pub items: u64,
    /// The memory from the first byte of the table to past the last one, relative to `start`.
    pub reach: Range<i64>,
}

/// The runs of a gather.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    /// Runs of one length.
    Even { offsets: Arc<Offsets> },
    /// Runs of different lengths.
    Ragged { runs: Arc<[RaggedRun]> },
}

/// A run of a ragged table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RaggedRun {
    pub offset: i64,
    /// The position of the run in the stream of its table. The run ends where the next one starts.
    pub position: u64,
}

impl Gather {
    pub(crate) fn item(&self) -> Item {
        Item { pack: self.kernel.conversion(), leaf: self.leaf }
    }

    /// The number of runs.
    pub(crate) fn len(&self) -> usize {
        match &self.table {
            Table::Even { offsets } => offsets.as_slice().len(),
            Table::Ragged { runs } => runs.len(),
        }
    }

    /// The index of the run that holds `position` of the table's stream.
    pub(crate) fn find(&self, position: u64) -> usize {
        match &self.table {
            Table::Even { .. } => (position / self.kernel.to_run()) as usize,
            Table::Ragged { runs } => runs.partition_point(|run| run.position <= position) - 1,
        }
    }

    /// The displacement of a run in memory, and its range in the table's stream.
    pub(crate) fn run(&self, index: usize) -> (i64, Range<u64>) {
        match &self.table {
            Table::Even { offsets } => {
                let length = self.kernel.to_run();
                let start = index as u64 * length;
                (self.start.wrapping_add(offsets.as_slice()[index]), start..start + length)
            }
            Table::Ragged { runs } => {
                let RaggedRun { offset, position } = runs[index];
                let end = runs.get(index + 1).map_or(self.stream, |next| next.position);
                (self.start.wrapping_add(offset), position..end)
            }
        }
    }
}

/// A body that is repeated.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub start: i64,
    pub count: u64,
    pub stride: i64,
    /// Shared by every loop that repeats the body. A datatype that nests a type twice at every
    /// level would otherwise grow exponentially.
    pub body: Arc<Body>,
}

impl Loop {
    /// Whether repeating the loop at `stride` continues it at an unchanged stride.
    pub(crate) fn continues(&self, stride: i64) -> bool {
        Dim { count: self.count, stride: self.stride }.continues(stride)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Block(Block),
    Gather(Gather),
    Loop(Loop),
}

impl Op {
    /// The bytes of the operation in the stream.
    pub(crate) fn stream(&self) -> u64 {
        match self {
            Op::Block(block) => block.runs() * block.stream_run(),
            Op::Gather(gather) => gather.stream,
            Op::Loop(each) => each.count * each.body.stream,
        }
    }

    /// The basic items of the operation.
    pub(crate) fn items(&self) -> u64 {
        match self {
            Op::Block(block) => block.runs() * block.items,
            Op::Gather(gather) => gather.items,
            Op::Loop(each) => each.count * each.body.items,
        }
    }

    /// The memory from the first byte of the operation to past the last one.
    pub(crate) fn reach(&self) -> Range<i64> {
        match self {
            Op::Block(block) => {
                let run = block.start..block.start.wrapping_add(block.memory_run() as i64);
                block.dims.iter().fold(run, |reach, dim| stretched(reach, dim.count, dim.stride))
            }
            Op::Gather(gather) => shifted(gather.reach.clone(), gather.start),
            Op::Loop(each) => {
                shifted(stretched(each.body.reach.clone(), each.count, each.stride), each.start)
            }
        }
    }

    pub(crate) fn shift(&mut self, by: i64) {
        match self {
            Op::Block(Block { start, .. })
            | Op::Gather(Gather { start, .. })
            | Op::Loop(Loop { start, .. }) => *start = start.wrapping_add(by),
        }
    }

    /// The bytes of a block whose conversion can fail, in memory or in the stream, whichever is
    /// more; 0 if it can't. `None` unless the operation is a block of at most one dimension.
    fn tried(&self) -> Option<u64> {
        match self {
            Op::Block(block @ Block { dims: [Dim::ONE, Dim::ONE, _], .. }) => {
                let run = block.memory_run().max(block.stream_run());
                Some(if block.leaf.is_none() { 0 } else { block.runs().saturating_mul(run) })
            }
            _ => None,
        }
    }

    /// Whether a conversion can refuse a value, and whether one goes unit by unit.
    fn costs(&self) -> (bool, bool) {
        match self {
            Op::Block(block) => (block.leaf.is_some(), block.kernel.is_slow()),
            Op::Gather(gather) => (gather.leaf.is_some(), gather.kernel.is_slow()),
            Op::Loop(each) => (each.body.fails, each.body.slow),
        }
    }

    /// Whether the operation converts nothing.
    fn copies(&self) -> bool {
        match self {
            Op::Block(block) => block.is_copy(),
            Op::Gather(gather) => gather.kernel.conversion().is_copy(),
            Op::Loop(each) => each.body.copies,
        }
    }
}

// The bounds of a lowered form fit an `i64`, so the results below do too. A summand may wrap.

fn shifted(reach: Range<i64>, by: i64) -> Range<i64> {
    reach.start.wrapping_add(by)..reach.end.wrapping_add(by)
}

fn stretched(reach: Range<i64>, count: u64, stride: i64) -> Range<i64> {
    let last = shifted(reach.clone(), (count as i64 - 1).wrapping_mul(stride));
    if stride < 0 { last.start..reach.end } else { reach.start..last.end }
}

fn union(a: Range<i64>, b: Range<i64>) -> Range<i64> {
    a.start.min(b.start)..a.end.max(b.end)
}

/// The position of an operation in the stream of its body, and the number of items before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpStart {
    pub stream: u64,
    pub items: u64,
}

/// A sequence of operations. Most types have one or two.
pub(crate) type Ops = SmallVec<[Op; 2]>;

/// A sequence of operations, and totals over them. The totals are stored, because many loops may
/// share a body.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub ops: Ops,
    /// The start of every operation except the first.
    later: SmallVec<[OpStart; 1]>,
    pub stream: u64,
    pub items: u64,
    pub reach: Range<i64>,
    /// Whether no operation converts anything.
    pub copies: bool,
    /// Whether a conversion can refuse a value.
    pub fails: bool,
    /// Whether a conversion goes unit by unit.
    pub slow: bool,
    /// Present if iterations may be moved operation by operation: see
    /// [`Cursor`](super::cursor::Cursor).
    pub columnar: Option<Columnar>,
}

/// The property of a body that holds only blocks of at most one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columnar {
    /// The bytes of the longest block whose conversion can fail, in memory or in the stream,
    /// whichever is more. 0 if none can fail.
    pub tried: u64,
}

impl Body {
    pub(crate) fn new(ops: Ops) -> Body {
        let mut body = Body { ops, ..Body::empty() };
        body.settle();
        body
    }

    /// A body without operations. [`settle`](Body::settle) follows when they are there.
    #[inline]
    pub(crate) fn empty() -> Body {
        Body {
            ops: Ops::new(),
            later: SmallVec::new(),
            stream: 0,
            items: 0,
            reach: 0..0,
            copies: true,
            fails: false,
            slow: false,
            columnar: None,
        }
    }

    /// Fills an empty body with the runs of a regular type, which are copied. `bounds` are those of
    /// the type.
    pub(crate) fn fill(&mut self, regular: &Regular, bounds: &Bounds) {
        let Regular { first, dims, later } = regular;
        push_with(&mut self.ops, || Op::Block(Block::copy(first, *dims)));
        let copies = dims::runs(dims);
        let mut end = OpStart { stream: first.bytes * copies, items: first.items * copies };
        if !later.is_empty() {
            self.later.reserve_exact(later.len());
            self.columnar = Some(Columnar { tried: 0 });
        }
        for run in later {
            self.later.push(end);
            push_with(&mut self.ops, || Op::Block(Block::copy(run, [Dim::ONE; 3])));
            end.stream += run.bytes;
            end.items += run.items;
        }
        (self.stream, self.items) = (end.stream, end.items);
        self.reach = bounds.true_lb..bounds.true_ub;
    }

    /// Computes the totals from the operations.
    pub(crate) fn settle(&mut self) {
        let Body { ops, later, .. } = self;
        let mut end = OpStart { stream: 0, items: 0 };
        let mut all = None;
        let (mut copies, mut tried) = (true, Some(0));
        let (mut fails, mut slow) = (false, false);
        later.reserve_exact(ops.len().saturating_sub(1));
        for (index, op) in ops.iter().enumerate() {
            if index > 0 {
                later.push(end);
            }
            end = OpStart { stream: end.stream + op.stream(), items: end.items + op.items() };
            let reach = op.reach();
            all = Some(all.map_or(reach.clone(), |all| union(all, reach)));
            if !op.copies() {
                copies = false;
                let (op_fails, op_slow) = op.costs();
                (fails, slow) = (fails | op_fails, slow | op_slow);
            }
            tried = tried.zip(op.tried()).map(|(longest, bytes): (u64, u64)| longest.max(bytes));
        }
        self.columnar = tried.filter(|_| ops.len() > 1).map(|tried| Columnar { tried });
        (self.copies, self.fails, self.slow) = (copies, fails, slow);
        (self.stream, self.items, self.reach) = (end.stream, end.items, all.unwrap_or(0..0));
    }

    /// The bytes of memory from the first byte of the body to past the last one.
    pub(crate) fn span(&self) -> u128 {
        (i128::from(self.reach.end) - i128::from(self.reach.start)) as u128
    }

    /// The bytes in memory of the items before a position of the body's stream, which repeats.
    pub(crate) fn memory_before(&self, position: u64) -> u64 {
        if self.copies || self.stream == 0 {
            return position;
        }
        let in_memory = |item: &Item, bytes: u64| match item.stream() == item.memory() {
            true => bytes,
            false => item.bytes_in_memory(bytes),
        };
        let within = |position: u64| -> u64 {
            let of_op = |(index, op): (usize, &Op)| {
                let start = self.start(index).stream;
                let bytes = position.min(self.end(index)).saturating_sub(start);
                match op {
                    Op::Block(block) => in_memory(&block.item(), bytes),
                    Op::Gather(gather) => in_memory(&gather.item(), bytes),
                    Op::Loop(inner) => inner.body.memory_before(bytes),
                }
            };
            self.ops.iter().enumerate().map(of_op).sum()
        };
        match position / self.stream {
            0 => within(position),
            whole => whole * within(self.stream) + within(position % self.stream),
        }
    }

    /// The last position up to this one at which no value is cut. It is within the body.
    pub(crate) fn boundary(&self, position: u64) -> u64 {
        let op = self.find(position);
        let start = self.start(op).stream;
        let within = position - start;
        start
            + match &self.ops[op] {
                Op::Block(block) => within - within % block.item().stream(),
                Op::Gather(gather) => within - within % gather.item().stream(),
                Op::Loop(each) => {
                    let inner = within % each.body.stream;
                    within - inner + each.body.boundary(inner)
                }
            }
    }

    /// The index of the operation that holds `position` of the stream.
    pub(crate) fn find(&self, position: u64) -> usize {
        self.later.partition_point(|start| start.stream <= position)
    }

    /// The start of an operation.
    pub(crate) fn start(&self, op: usize) -> OpStart {
        op.checked_sub(1).map_or(OpStart { stream: 0, items: 0 }, |later| self.later[later])
    }

    /// The position in the stream where an operation ends.
    pub(crate) fn end(&self, op: usize) -> u64 {
        self.later.get(op).map_or(self.stream, |next| next.stream)
    }
}
