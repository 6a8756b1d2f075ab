//! Pack and unpack: transfers between typed memory and a packed stream. They start and stop at any
//! byte.

use std::ops::Range;

use super::cursor::{Cursor, Elements, Strip, TRIAL, Tile};
use super::op::{Gather, Item, Op, Table};
use super::{Body, Program};
use crate::arch::{FloatFormat, Scalar, Value};
use crate::basic::Leaf;
use crate::convert::{Conversion, MAX_SIZE, ValueError};
use crate::error::{ConversionError, Error, Result};
use crate::kernels::{Kernel, KernelError, Lane, Tabled};
use crate::memory::{View, ViewMut};

/// The state between the parts of an unpack: the start of a value that the last part cut in two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    bytes: [u8; MAX_SIZE],
    held: u64,
    /// The position in the stream where the value starts.
    position: u64,
}

impl Program {
    /// Packs bytes of the stream from `position` on into `out`, until `out` is full or the stream
    /// ends. Returns the number of bytes.
    ///
    /// Displacement 0 of `memory` is the buffer address in MPI's sense, to which the datatype's
    /// displacements are relative.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfBounds`] if the elements don't lie in `memory`.
    /// - [`Error::Position`] if `position` is past the end of the stream.
    /// - [`Error::Conversion`] for a value that the stream can't represent. Values before it are
    ///   packed.
    pub fn pack(
        &self,
        count: u64,
        memory: View<'_>,
        position: u64,
        out: &mut [u8],
    ) -> Result<usize> {
        let length = self.part(count, position, out.len() as u64)?;
        let out = &mut out[..length as usize];
        if let Some(start) = self.contiguous(count) {
            let reach = self.range(count)?;
            memory.covers(reach.start, reach.end)?;
            memory.read(start + position as i64, out)?;
            return Ok(out.len());
        }
        self.pack_into(count, memory, position, length, &mut ViewMut::new(out))
            .map_err(|error| error.explain_in(self, count))?;
        Ok(length as usize)
    }

    /// Unpacks `input`, the bytes of the stream from `position` on.
    ///
    /// If a stream arrives in parts, unpack them in order with one `partial` for all. A part that
    /// starts the transfer, or starts between two values, needs no state of earlier parts.
    ///
    /// # Errors
    ///
    /// - [`Error::OutOfBounds`] if the elements don't lie in `memory`. Nothing is written.
    /// - [`Error::Position`] if the input ends past the end of the stream, or starts within a value
    ///   whose start `partial` doesn't hold. Nothing is written.
    /// - [`Error::Conversion`] for a value that the memory can't represent. Only the values before
    ///   it are written.
    pub fn unpack(
        &self,
        count: u64,
        mut memory: ViewMut<'_>,
        position: u64,
        input: &[u8],
        partial: &mut Partial,
    ) -> Result<()> {
        let length = self.part(count, position, input.len() as u64)?;
        if length < input.len() as u64 {
            return Err(self.past_the_end(count, position.saturating_add(input.len() as u64)));
        }
        if let Some(start) = self.contiguous(count) {
            let reach = self.range(count)?;
            memory.covers(reach.start, reach.end)?;
            memory.write(start + position as i64, input)?;
            return Ok(());
        }
        self.unpack_from(count, &mut memory, position, length, View::new(input), partial)
            .map_err(|error| error.explain_in(self, count))
    }

    /// Packs `length` bytes of the stream to the start of `out`. See [`pack`](Program::pack).
    pub(super) fn pack_into(
        &self,
        count: u64,
        memory: View<'_>,
        position: u64,
        length: u64,
        out: &mut ViewMut<'_>,
    ) -> Result<(), TransferError> {
        let reach = self.range(count)?;
        memory.covers(reach.start, reach.end)?;
        self.strips(count, position, length, |strip| strip.pack(memory, position, out))
    }

    /// Unpacks `length` bytes of the stream from the start of `input`. See
    /// [`unpack`](Program::unpack).
    pub(super) fn unpack_from(
        &self,
        count: u64,
        memory: &mut ViewMut<'_>,
        position: u64,
        length: u64,
        input: View<'_>,
        partial: &mut Partial,
    ) -> Result<(), TransferError> {
        let reach = self.range(count)?;
        memory.covers(reach.start, reach.end)?;
        self.strips(count, position, length, |strip| strip.unpack(memory, position, input, partial))
    }

    /// Calls `each` with the strips of `length` bytes of the stream from `position` on.
    #[inline]
    fn strips(
        &self,
        count: u64,
        position: u64,
        length: u64,
        mut each: impl FnMut(Strip<'_>) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        if length == 0 {
            return Ok(());
        }
        let elements = Elements::new(&self.body, count, self.extent);
        if length == self.body.stream * count {
            if let Some(strip) = elements.strip() {
                return each(strip);
            }
        }
        let mut cursor = Cursor::new(&elements, position..position + length);
        while let Some(strip) = cursor.next(u64::MAX) {
            each(strip)?;
        }
        Ok(())
    }

    /// The bytes of the stream of `count` elements from `position` on, at most `room`.
    #[inline]
    pub(super) fn part(&self, count: u64, position: u64, room: u64) -> Result<u64> {
        match self.stream_length(count)?.checked_sub(position) {
            Some(left) => Ok(left.min(room)),
            None => Err(self.past_the_end(count, position)),
        }
    }

    #[cold]
    pub(super) fn past_the_end(&self, count: u64, position: u64) -> Error {
        let problem = match self.stream_length(count) {
            Ok(length) => format!("the packed stream of {count} elements has {length} bytes"),
            Err(error) => return error,
        };
        Error::Position { position, problem }
    }
}

/// The reason why a strip wasn't moved.
pub(super) enum TransferError {
    Error(Error),
    Value(Box<RefusedValue>),
}

/// A value that its destination can't represent.
pub(super) struct RefusedValue {
    /// The position of the value in the stream.
    position: u64,
    item: Item,
    conversion: Conversion,
    error: ValueError,
}

impl TransferError {
    /// The error for the caller of a program's transfer of `count` elements. It names the field of
    /// the item, if the program knows the fields.
    #[cold]
    pub(super) fn explain_in(self, program: &Program, count: u64) -> Error {
        let mut explained = self.explain(&program.body);
        if let Error::Conversion(refused) = &mut explained {
            refused.field = program.fields().path(refused.item, count, program.items());
        }
        explained
    }

    /// The error for the caller. The program determines the index of the item.
    #[cold]
    pub(super) fn explain(self, body: &Body) -> Error {
        let RefusedValue { position, item, conversion, error } = match self {
            TransferError::Error(error) => return error,
            TransferError::Value(refused) => *refused,
        };
        let (from, to) = describe(conversion);
        Error::Conversion(Box::new(ConversionError {
            item: index(body, position),
            field: None,
            datatype: item.leaf.map(Leaf::mpi_name).unwrap_or_default(),
            value: error.value,
            reason: error.reason.to_string(),
            from,
            to,
        }))
    }

    pub(super) fn of_kernel(
        error: KernelError,
        position: u64,
        item: &Item,
        conversion: Conversion,
    ) -> TransferError {
        match error {
            KernelError::OutOfBounds(error) => TransferError::Error(error.into()),
            KernelError::Value { unit, error } => {
                let position = position + unit * item.stream();
                TransferError::Value(Box::new(RefusedValue {
                    position,
                    item: *item,
                    conversion,
                    error,
                }))
            }
        }
    }
}

impl<E: Into<Error>> From<E> for TransferError {
    fn from(error: E) -> TransferError {
        TransferError::Error(error.into())
    }
}

/// The two representations of a conversion in words.
pub(crate) fn describe(conversion: Conversion) -> (String, String) {
    match conversion {
        Conversion::Resize(ends) | Conversion::Logical(ends) | Conversion::Refloat(ends) => {
            (named(ends.from()), named(ends.to()))
        }
        Conversion::Copy | Conversion::Swap { .. } => (String::new(), String::new()),
    }
}

/// The representation of a scalar in words.
fn named(scalar: Scalar) -> String {
    let kind = match scalar.value {
        Value::Bytes => "bytes",
        Value::Char | Value::Wide => "a character",
        Value::Int { signed: true } => "a signed integer",
        Value::Int { signed: false } => "an unsigned integer",
        Value::Logical { .. } => "a logical",
        Value::Float(FloatFormat::X87) => "an x87 extended float",
        Value::Float(FloatFormat::M68k) => "an m68k extended float",
        Value::Float(FloatFormat::DoubleDouble) => "a double-double float",
        Value::Float(_) => "a float",
    };
    format!("{kind} of {} bytes", scalar.size)
}

/// The index of the basic item at `position` of a repeated body's stream. The item's conversion can
/// fail.
fn index(body: &Body, position: u64) -> u64 {
    let (iteration, position) = (position / body.stream, position % body.stream);
    let op = body.find(position);
    let within = position - body.start(op).stream;
    iteration * body.items
        + body.start(op).items
        + match &body.ops[op] {
            Op::Loop(inner) => index(&inner.body, within),
            // A conversion that can fail goes scalar by scalar, so units are items.
            Op::Block(block) => within / block.item().stream(),
            Op::Gather(gather) => within / gather.item().stream(),
        }
}

/// The offset of a stream position in the caller's buffer, which starts at `position` of the
/// stream.
fn offset(stream: u64, position: u64) -> i64 {
    stream as i64 - position as i64
}

impl Strip<'_> {
    /// Moves the strip from memory to the stream. `out` starts at `position` of the stream.
    #[inline]
    fn pack(
        self,
        memory: View<'_>,
        position: u64,
        out: &mut ViewMut<'_>,
    ) -> Result<(), TransferError> {
        let Strip::Cut { item, memory: start, stream, part } = self else {
            return self.transfer(Direction::Pack, memory, out, position);
        };
        let (mut value, mut packed) = ([0; MAX_SIZE], [0; MAX_SIZE]);
        let value = &mut value[..item.memory() as usize];
        let packed = &mut packed[..item.stream() as usize];
        memory.read(start, value)?;
        convert(&item, item.pack, value, packed, stream)?;
        let at = offset(stream + part.start, position);
        Ok(out.write(at, &packed[part.start as usize..part.end as usize])?)
    }

    /// Moves the strip from the stream to memory. `input` starts at `position` of the stream.
    #[inline]
    fn unpack(
        self,
        memory: &mut ViewMut<'_>,
        position: u64,
        input: View<'_>,
        partial: &mut Partial,
    ) -> Result<(), TransferError> {
        let Strip::Cut { item, memory: start, stream, part } = self else {
            return self.transfer(Direction::Unpack, input, memory, position);
        };
        if part.start == 0 {
            *partial = Partial { bytes: [0; MAX_SIZE], held: 0, position: stream };
        } else if partial.position != stream || partial.held != part.start {
            let problem = "it lies within a value whose start didn't come before".into();
            return Err(Error::Position { position: stream + part.start, problem }.into());
        }
        let at = offset(stream + part.start, position);
        input.read(at, &mut partial.bytes[part.start as usize..part.end as usize])?;
        partial.held = part.end;
        if part.end == item.stream() {
            let mut value = [0; MAX_SIZE];
            let value = &mut value[..item.memory() as usize];
            let packed = &partial.bytes[..item.stream() as usize];
            convert(&item, item.unpack(), packed, value, stream)?;
            memory.write(start, value)?;
        }
        Ok(())
    }

    /// Moves a strip of whole units. The packed buffer starts at `position` of the stream.
    #[inline]
    fn transfer(
        self,
        direction: Direction,
        source: View<'_>,
        target: &mut ViewMut<'_>,
        position: u64,
    ) -> Result<(), TransferError> {
        let (moved, stream, item) = match self {
            Strip::Grid {
                block,
                units,
                counts,
                memory: start,
                memory_strides,
                stream,
                stream_strides,
            } => {
                let kernel = match units == block.units {
                    true => direction.of(&block.kernel),
                    false => direction.kernel(&block.item(), units),
                };
                let memory = Lane { start, strides: memory_strides };
                let packed = packed(stream, position, stream_strides);
                let (from, to) = direction.order(memory, packed);
                (kernel.transfer(counts, source, from, target, to), stream, block.item())
            }
            Strip::Table { gather, runs, base, stream } => match &gather.table {
                Table::Even { offsets } => {
                    let memory = base.wrapping_add(gather.start);
                    let packed = offset(stream, position);
                    let moved = match direction {
                        Direction::Pack => gather.kernel.by_table(
                            Tabled::Source,
                            offsets,
                            runs,
                            source,
                            memory,
                            target,
                            packed,
                        ),
                        Direction::Unpack => gather.kernel.reversed().by_table(
                            Tabled::Target,
                            offsets,
                            runs,
                            source,
                            packed,
                            target,
                            memory,
                        ),
                    };
                    (moved, stream, gather.item())
                }
                Table::Ragged { .. } => {
                    return ragged_runs(gather, runs, base, stream)
                        .try_for_each(|strip| strip.transfer(direction, source, target, position));
                }
            },
            Strip::Units { item, units, memory: start, stream } => {
                let memory = Lane { start, strides: [0; 2] };
                let (from, to) = direction.order(memory, packed(stream, position, [0; 2]));
                let kernel = direction.kernel(&item, units);
                (kernel.transfer([1, 1], source, from, target, to), stream, item)
            }
            Strip::Tile(tile) => return tile.transfer(direction, source, target, position),
            Strip::Cut { .. } => unreachable!("pack and unpack move what is cut themselves"),
        };
        moved.map_err(|error| {
            TransferError::of_kernel(error, stream, &item, direction.conversion(&item))
        })
    }
}

impl<'p> Tile<'p> {
    /// Moves block by block. If a value would be refused, moves iteration by iteration instead, so
    /// that exactly the values before it are moved.
    fn transfer(
        self,
        direction: Direction,
        source: View<'_>,
        target: &mut ViewMut<'_>,
        position: u64,
    ) -> Result<(), TransferError> {
        let tried = self.body.columnar.is_some_and(|columnar| columnar.tried > 0);
        if tried && self.is_refused(direction, source, position) {
            return (0..self.iterations)
                .flat_map(|iteration| self.part(iteration..iteration + 1))
                .try_for_each(|strip| strip.transfer(direction, source, target, position));
        }
        self.part(0..self.iterations)
            .try_for_each(|strip| strip.transfer(direction, source, target, position))
    }

    /// Whether a conversion in this direction would refuse a value. A conversion on trial writes
    /// nothing to the target. A block with a leaf may be able to fail only in the opposite
    /// direction, and is then not tried.
    fn is_refused(&self, direction: Direction, source: View<'_>, position: u64) -> bool {
        let mut trial = [0; TRIAL];
        let mut trial = ViewMut::new(&mut trial);
        self.part(0..self.iterations).any(|strip| match strip {
            Strip::Grid {
                block, counts, memory, memory_strides, stream, stream_strides, ..
            } if block.leaf.is_some() && direction.conversion(&block.item()).can_fail() => {
                let kernel = direction.of(&block.kernel);
                let memory = Lane { start: memory, strides: memory_strides };
                let (from, _) = direction.order(memory, packed(stream, position, stream_strides));
                let to = Lane::packed(0, counts, kernel.to_run());
                kernel.transfer(counts, source, from, &mut trial, to).is_err()
            }
            _ => false,
        })
    }

    /// The strips of a range of iterations, one for each block.
    pub(super) fn part(self, iterations: Range<u64>) -> impl Iterator<Item = Strip<'p>> {
        let Tile { body, base, stride, stream, .. } = self;
        let base = base.wrapping_add(stride.wrapping_mul(iterations.start as i64));
        let stream = stream + iterations.start * body.stream;
        body.ops.iter().enumerate().filter_map(move |(index, op)| {
            let Op::Block(block) = op else { return None };
            let [.., inner] = block.dims;
            Some(Strip::Grid {
                block,
                units: block.units,
                counts: [iterations.end - iterations.start, inner.count],
                memory: base.wrapping_add(block.start),
                memory_strides: [stride, inner.stride],
                stream: stream + body.start(index).stream,
                stream_strides: [body.stream, block.stream_run()],
            })
        })
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy)]
enum Direction {
    Pack,
    Unpack,
}

impl Direction {
    fn conversion(self, item: &Item) -> Conversion {
        match self {
            Direction::Pack => item.pack,
            Direction::Unpack => item.unpack(),
        }
    }

    fn kernel(self, item: &Item, units: u64) -> Kernel {
        Kernel::new(self.conversion(item), units)
    }

    fn of(self, kernel: &Kernel) -> Kernel {
        match self {
            Direction::Pack => *kernel,
            Direction::Unpack => kernel.reversed(),
        }
    }

    /// Orders the two sides as source and target.
    fn order<T>(self, memory: T, packed: T) -> (T, T) {
        match self {
            Direction::Pack => (memory, packed),
            Direction::Unpack => (packed, memory),
        }
    }
}

fn packed(stream: u64, position: u64, strides: [u64; 2]) -> Lane {
    Lane { start: offset(stream, position), strides: strides.map(|stride| stride as i64) }
}

/// Converts one unit.
pub(super) fn convert(
    item: &Item,
    conversion: Conversion,
    from: &[u8],
    to: &mut [u8],
    position: u64,
) -> Result<(), TransferError> {
    conversion.apply(from, to).map_err(|error| {
        TransferError::Value(Box::new(RefusedValue { position, item: *item, conversion, error }))
    })
}

/// The runs of a ragged table as one strip each.
pub(super) fn ragged_runs(
    gather: &Gather,
    runs: std::ops::Range<usize>,
    base: i64,
    stream: u64,
) -> impl Iterator<Item = Strip<'static>> + '_ {
    let first = gather.run(runs.start).1.start;
    runs.map(move |index| {
        let (offset, run) = gather.run(index);
        Strip::Units {
            item: gather.item(),
            units: (run.end - run.start) / gather.item().stream(),
            memory: base.wrapping_add(offset),
            stream: stream + (run.start - first),
        }
    })
}
