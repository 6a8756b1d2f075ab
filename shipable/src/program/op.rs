//! The operations of a program.

use std::ops::Range;
use std::sync::Arc;

use crate::basic::Leaf;
use crate::convert::Conversion;
use crate::kernels::{Kernel, Offsets};

/// What happens to the items of a run on their way into the stream, and reversed on their way out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// From memory to stream.
    pub pack: Conversion,
    /// The type where either conversion can meet a value that doesn't fit, for the message.
    pub leaf: Option<Leaf>,
}

impl Item {
    pub(crate) fn is_copy(&self) -> bool {
        self.pack.is_copy()
    }

    /// From stream to memory.
    pub(crate) fn unpack(&self) -> Conversion {
        self.pack.reversed()
    }

    /// Bytes in memory.
    pub(crate) fn memory(&self) -> u64 {
        self.pack.from_size().into()
    }

    /// Bytes in the stream.
    pub(crate) fn stream(&self) -> u64 {
        self.pack.to_size().into()
    }

    /// What `bytes` of the stream, which are whole units, are in memory.
    pub(crate) fn bytes_in_memory(&self, bytes: u64) -> u64 {
        bytes / self.stream() * self.memory()
    }
}

/// One strided dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dim {
    pub count: u64,
    /// Bytes of memory.
    pub stride: i64,
}

impl Dim {
    pub(crate) const ONE: Dim = Dim { count: 1, stride: 0 };
}

/// A run of units, repeated in three strided dimensions, those unused outermost.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub start: i64,
    /// Outer to inner.
    pub dims: [Dim; 3],
    /// What packs a run; reversed, it unpacks one.
    pub kernel: Kernel,
    /// The type, where a conversion can fail: see [`Item`].
    pub leaf: Option<Leaf>,
    /// How many times its item a run is: bytes where it is copied.
    pub units: u64,
    /// Basic items in a run.
    pub items: u64,
}

impl Block {
    pub(crate) fn run(start: i64, item: Item, units: u64, items: u64) -> Block {
        let kernel = Kernel::new(item.pack, units);
        Block { start, dims: [Dim::ONE; 3], kernel, leaf: item.leaf, units, items }
    }

    pub(crate) fn item(&self) -> Item {
        Item { pack: self.kernel.conversion(), leaf: self.leaf }
    }

    /// The same run with others after it.
    pub(crate) fn lengthen(&mut self, units: u64, items: u64) {
        self.units += units;
        self.items += items;
        self.kernel = Kernel::new(self.kernel.conversion(), self.units);
    }

    pub(crate) fn runs(&self) -> u64 {
        self.dims.iter().map(|dim| dim.count).product()
    }

    /// Bytes of a run in memory.
    pub(crate) fn memory_run(&self) -> u64 {
        self.kernel.from_run()
    }

    /// Bytes of a run in the stream.
    pub(crate) fn stream_run(&self) -> u64 {
        self.kernel.to_run()
    }

    /// Whether nothing is converted.
    pub(crate) fn is_copy(&self) -> bool {
        self.kernel.conversion().is_copy()
    }

    /// This block `count` times, `stride` apart, if that still is a block.
    pub(crate) fn repeated(&self, count: u64, stride: i64) -> Option<Block> {
        let mut block = self.clone();
        block.repeat(count, stride).then_some(block)
    }

    /// Repeats it `count` times, `stride` apart, unless that isn't a block any more.
    pub(crate) fn repeat(&mut self, count: u64, stride: i64) -> bool {
        match self.dims.iter().position(|dim| dim.count > 1) {
            None if u64::try_from(stride) == Ok(self.memory_run()) => {
                self.lengthen(self.units * (count - 1), self.items * (count - 1));
            }
            Some(outer) if continues(self.dims[outer], stride) => self.dims[outer].count *= count,
            Some(0) => return false,
            used => self.dims[used.unwrap_or(3) - 1] = Dim { count, stride },
        }
        true
    }
}

/// Whether a dimension goes on at the same pace when it is repeated `stride` apart.
fn continues(dim: Dim, stride: i64) -> bool {
    i128::from(dim.stride) * i128::from(dim.count) == i128::from(stride)
}

/// Runs at any offsets.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    /// Where the first run starts: offsets are relative to it, so that no sum leaves i64 on the way to one that doesn't.
    pub start: i64,
    pub table: Table,
    /// What packs a run of an even table, or one unit of a ragged one; reversed, it unpacks.
    pub kernel: Kernel,
    /// The type, where a conversion can fail: see [`Item`].
    pub leaf: Option<Leaf>,
    /// Bytes in the stream.
    pub stream: u64,
    /// Basic items.
    pub items: u64,
    /// The bytes of memory from the first to past the last, relative to `start`.
    pub reach: Range<i64>,
}

/// The runs of a gather.
#[derive(Clone, Debug)]
pub(crate) enum Table {
    /// Of one length.
    Even { offsets: Arc<Offsets> },
    /// Of different lengths.
    Ragged { pieces: Arc<[Piece]> },
}

/// A run of a ragged table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub offset: i64,
    /// Where the run starts in the stream of its table; it ends where the next one starts.
    pub position: u64,
}

impl Gather {
    pub(crate) fn item(&self) -> Item {
        Item { pack: self.kernel.conversion(), leaf: self.leaf }
    }

    /// How many runs there are.
    pub(crate) fn len(&self) -> usize {
        match &self.table {
            Table::Even { offsets } => offsets.as_slice().len(),
            Table::Ragged { pieces } => pieces.len(),
        }
    }

    /// The run that `position` of the table's stream lies in.
    pub(crate) fn find(&self, position: u64) -> usize {
        match &self.table {
            Table::Even { .. } => (position / self.kernel.to_run()) as usize,
            Table::Ragged { pieces } => {
                pieces.partition_point(|piece| piece.position <= position) - 1
            }
        }
    }

    /// Where a run lies in memory, and in the table's stream.
    pub(crate) fn run(&self, index: usize) -> (i64, Range<u64>) {
        match &self.table {
            Table::Even { offsets } => {
                let length = self.kernel.to_run();
                let start = index as u64 * length;
                (self.start.wrapping_add(offsets.as_slice()[index]), start..start + length)
            }
            Table::Ragged { pieces } => {
                let Piece { offset, position } = pieces[index];
                let end = pieces.get(index + 1).map_or(self.stream, |next| next.position);
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
    /// Shared by all that repeat it, so that a nest of types that hold a type twice stays as small as the form.
    pub body: Arc<Body>,
}

impl Loop {
    /// Whether the loop goes on at the same pace when it is repeated `stride` apart.
    pub(crate) fn continues(&self, stride: i64) -> bool {
        continues(Dim { count: self.count, stride: self.stride }, stride)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Block(Block),
    Gather(Gather),
    Loop(Loop),
}

impl Op {
    /// Bytes in the stream.
    pub(crate) fn stream(&self) -> u64 {
        match self {
            Op::Block(block) => block.runs() * block.stream_run(),
            Op::Gather(gather) => gather.stream,
            Op::Loop(each) => each.count * each.body.stream,
        }
    }

    /// Basic items.
    pub(crate) fn items(&self) -> u64 {
        match self {
            Op::Block(block) => block.runs() * block.items,
            Op::Gather(gather) => gather.items,
            Op::Loop(each) => each.count * each.body.items,
        }
    }

    /// The bytes of memory from the first to past the last.
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

    /// Whether nothing is converted.
    fn copies(&self) -> bool {
        match self {
            Op::Block(block) => block.is_copy(),
            Op::Gather(gather) => gather.kernel.conversion().is_copy(),
            Op::Loop(each) => each.body.copies,
        }
    }
}

// The bounds of what is lowered fit i64, so these sums do too, even where a summand wraps.

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

/// Where an operation starts in the stream of its body, and how many items lie before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub stream: u64,
    pub items: u64,
}

/// A sequence of operations, and what can be said of all of them: a body shared by many is looked at once.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub ops: Box<[Op]>,
    /// Where all but the first start.
    later: Box<[Start]>,
    pub stream: u64,
    pub items: u64,
    pub reach: Range<i64>,
    /// Whether nothing is converted.
    pub copies: bool,
    /// Where repetitions may be moved operation by operation: see [`Cursor`](super::cursor::Cursor).
    pub columnar: Option<Columnar>,
}

/// A body of blocks alone, in one dimension at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columnar {
    /// Bytes of the longest block whose conversion can fail, in memory or in the stream; 0 where there is none.
    pub tried: u64,
}

impl Body {
    pub(crate) fn new(ops: Box<[Op]>) -> Body {
        let mut end = Start { stream: 0, items: 0 };
        let mut later = Vec::with_capacity(ops.len().saturating_sub(1));
        for (index, op) in ops.iter().enumerate() {
            if index > 0 {
                later.push(end);
            }
            end = Start { stream: end.stream + op.stream(), items: end.items + op.items() };
        }
        let later = later.into();
        let reach = ops.iter().map(Op::reach).reduce(union).unwrap_or(0..0);
        let tried = ops.iter().try_fold(0, |longest, op| match op {
            Op::Block(block @ Block { dims: [Dim::ONE, Dim::ONE, _], .. }) => {
                let run = block.memory_run().max(block.stream_run());
                let bytes = block.runs().saturating_mul(run);
                Some(if block.leaf.is_none() { longest } else { bytes.max(longest) })
            }
            _ => None,
        });
        let columnar = tried.filter(|_| ops.len() > 1).map(|tried| Columnar { tried });
        let copies = ops.iter().all(Op::copies);
        let (stream, items) = (end.stream, end.items);
        Body { ops, later, stream, items, reach, copies, columnar }
    }

    /// Bytes of memory from the first to the last.
    pub(crate) fn span(&self) -> u128 {
        (i128::from(self.reach.end) - i128::from(self.reach.start)) as u128
    }

    /// The operation that `position` lies in.
    pub(crate) fn find(&self, position: u64) -> usize {
        self.later.partition_point(|start| start.stream <= position)
    }

    /// Where an operation starts.
    pub(crate) fn start(&self, op: usize) -> Start {
        op.checked_sub(1).map_or(Start { stream: 0, items: 0 }, |later| self.later[later])
    }

    /// Where an operation ends in the stream.
    pub(crate) fn end(&self, op: usize) -> u64 {
        self.later.get(op).map_or(self.stream, |next| next.stream)
    }
}
