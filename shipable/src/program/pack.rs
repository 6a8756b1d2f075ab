//! Pack and unpack: between typed memory and a packed stream, starting and stopping at any byte.

use std::ops::Range;

use super::cursor::{Cursor, Strip, TRIAL, Tile, Whole};
use super::op::{Gather, Item, Op, Table};
use super::{Body, Program};
use crate::arch::{FloatFormat, Scalar, Value};
use crate::basic::Leaf;
use crate::convert::{Conversion, MAX_SIZE, ValueError};
use crate::error::{ConversionError, Error, Result};
use crate::kernels::{Kernel, KernelError, Lane, Tabled};
use crate::memory::{View, ViewMut};

/// What a transfer that arrives in parts remembers between them: the start of a value that was cut in two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    bytes: [u8; MAX_SIZE],
    held: u64,
    /// Where in the stream the value starts.
    position: u64,
}

impl Program {
    /// Packs bytes of the stream from `position` on into `out`, until `out` is full or the stream ends, and says how many.
    ///
    /// `memory`'s displacement 0 is the buffer's address as MPI has it, the address that the type's displacements are
    /// relative to.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] when the elements don't lie in `memory`, [`Error::Position`] when `position` is past the
    /// stream's end, [`Error::Conversion`] for a value that the stream can't hold: what lies before it is packed.
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
            .map_err(|stop| stop.explain(&self.body))?;
        Ok(length as usize)
    }

    /// Unpacks `input`, the bytes of the stream from `position` on.
    ///
    /// A stream that arrives in parts is unpacked part by part in order, with one `partial` for all of them. A part that
    /// starts a transfer, or starts between two values, needs nothing of what came before.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] when the elements don't lie in `memory`, [`Error::Position`] when the input goes past the
    /// stream's end or starts within a value whose start `partial` doesn't hold; nothing is written then.
    /// [`Error::Conversion`] for a value that the memory can't hold: what lies before it is written, it and what lies
    /// after it is not.
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
            .map_err(|stop| stop.explain(&self.body))
    }

    /// As [`pack`](Program::pack), `length` bytes of the stream to the start of `out`.
    pub(super) fn pack_into(
        &self,
        count: u64,
        memory: View<'_>,
        position: u64,
        length: u64,
        out: &mut ViewMut<'_>,
    ) -> Result<(), Stop> {
        let reach = self.range(count)?;
        memory.covers(reach.start, reach.end)?;
        self.strips(count, position, length, |strip| strip.pack(memory, position, out))
    }

    /// As [`unpack`](Program::unpack), `length` bytes of the stream from the start of `input`.
    pub(super) fn unpack_from(
        &self,
        count: u64,
        memory: &mut ViewMut<'_>,
        position: u64,
        length: u64,
        input: View<'_>,
        partial: &mut Partial,
    ) -> Result<(), Stop> {
        let reach = self.range(count)?;
        memory.covers(reach.start, reach.end)?;
        self.strips(count, position, length, |strip| strip.unpack(memory, position, input, partial))
    }

    /// Does something with the strips of `length` bytes of the stream from `position` on.
    #[inline]
    fn strips(
        &self,
        count: u64,
        position: u64,
        length: u64,
        mut each: impl FnMut(Strip<'_>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if length == 0 {
            return Ok(());
        }
        let whole = Whole::new(&self.body, count, self.extent);
        if length == self.body.stream * count {
            if let Some(strip) = whole.strip() {
                return each(strip);
            }
        }
        let mut cursor = Cursor::new(&whole, position..position + length);
        while let Some(strip) = cursor.next(u64::MAX) {
            each(strip)?;
        }
        Ok(())
    }

    /// How many of `room` bytes from `position` on the stream of `count` elements has.
    #[inline]
    fn part(&self, count: u64, position: u64, room: u64) -> Result<u64> {
        match self.stream_length(count)?.checked_sub(position) {
            Some(left) => Ok(left.min(room)),
            None => Err(self.past_the_end(count, position)),
        }
    }

    #[cold]
    fn past_the_end(&self, count: u64, position: u64) -> Error {
        let problem = match self.stream_length(count) {
            Ok(length) => format!("the packed stream of {count} elements has {length} bytes"),
            Err(error) => return error,
        };
        Error::Position { position, problem }
    }
}

/// Why a strip wasn't moved.
pub(super) enum Stop {
    Error(Error),
    Value(Box<Refused>),
}

/// A value that doesn't fit.
pub(super) struct Refused {
    /// Where in the stream it lies.
    position: u64,
    item: Item,
    conversion: Conversion,
    error: ValueError,
}

impl Stop {
    /// The error, with the item's index found in the program.
    #[cold]
    pub(super) fn explain(self, body: &Body) -> Error {
        let Refused { position, item, conversion, error } = match self {
            Stop::Error(error) => return error,
            Stop::Value(refused) => *refused,
        };
        let (from, to) = describe(conversion);
        Error::Conversion(Box::new(ConversionError {
            item: index(body, position),
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
    ) -> Stop {
        match error {
            KernelError::OutOfBounds(error) => Stop::Error(error.into()),
            KernelError::Value { unit, error } => {
                let position = position + unit * item.stream();
                Stop::Value(Box::new(Refused { position, item: *item, conversion, error }))
            }
        }
    }
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Error(error.into())
    }
}

/// Both ends of a conversion as people call them.
pub(crate) fn describe(conversion: Conversion) -> (String, String) {
    match conversion {
        Conversion::Resize(ends) | Conversion::Logical(ends) | Conversion::Refloat(ends) => {
            (named(ends.from()), named(ends.to()))
        }
        Conversion::Copy | Conversion::Swap { .. } => (String::new(), String::new()),
    }
}

/// A scalar as people call it.
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

/// The index of the basic item at `position` of a repeated body's stream, where it is one that can fail to convert.
fn index(body: &Body, position: u64) -> u64 {
    let (iteration, position) = (position / body.stream, position % body.stream);
    let op = body.find(position);
    let within = position - body.start(op).stream;
    iteration * body.items
        + body.start(op).items
        + match &body.ops[op] {
            Op::Loop(inner) => index(&inner.body, within),
            // What can fail is converted scalar by scalar.
            Op::Block(block) => within / block.item().stream(),
            Op::Gather(gather) => within / gather.item().stream(),
        }
}

/// A place in the packed bytes that a call was given.
fn offset(stream: u64, position: u64) -> i64 {
    stream as i64 - position as i64
}

impl Strip<'_> {
    /// Moves the strip from memory to the stream, of which `out` holds the bytes from `position` on.
    #[inline]
    fn pack(self, memory: View<'_>, position: u64, out: &mut ViewMut<'_>) -> Result<(), Stop> {
        let Strip::Cut { item, memory: start, stream, part } = self else {
            return self.transfer(Way::Pack, memory, out, position);
        };
        let (mut value, mut packed) = ([0; MAX_SIZE], [0; MAX_SIZE]);
        let value = &mut value[..item.memory() as usize];
        let packed = &mut packed[..item.stream() as usize];
        memory.read(start, value)?;
        convert(&item, item.pack, value, packed, stream)?;
        let at = offset(stream + part.start, position);
        Ok(out.write(at, &packed[part.start as usize..part.end as usize])?)
    }

    /// Moves the strip from the stream, of which `input` holds the bytes from `position` on, to memory.
    #[inline]
    fn unpack(
        self,
        memory: &mut ViewMut<'_>,
        position: u64,
        input: View<'_>,
        partial: &mut Partial,
    ) -> Result<(), Stop> {
        let Strip::Cut { item, memory: start, stream, part } = self else {
            return self.transfer(Way::Unpack, input, memory, position);
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

    /// Moves a strip of whole units; the packed bytes are those of the stream from `position` on.
    #[inline]
    fn transfer(
        self,
        way: Way,
        source: View<'_>,
        target: &mut ViewMut<'_>,
        position: u64,
    ) -> Result<(), Stop> {
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
                    true => way.of(&block.kernel),
                    false => way.kernel(&block.item(), units),
                };
                let memory = Lane { start, strides: memory_strides };
                let packed = packed(stream, position, stream_strides);
                let (from, to) = way.order(memory, packed);
                (kernel.transfer(counts, source, from, target, to), stream, block.item())
            }
            Strip::Table { gather, runs, base, stream } => match &gather.table {
                Table::Even { offsets } => {
                    let memory = base.wrapping_add(gather.start);
                    let packed = offset(stream, position);
                    let moved = match way {
                        Way::Pack => gather.kernel.by_table(
                            Tabled::Source,
                            offsets,
                            runs,
                            source,
                            memory,
                            target,
                            packed,
                        ),
                        Way::Unpack => gather.kernel.reversed().by_table(
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
                    return pieces(gather, runs, base, stream)
                        .try_for_each(|piece| piece.transfer(way, source, target, position));
                }
            },
            Strip::Piece { item, units, memory: start, stream } => {
                let memory = Lane { start, strides: [0; 2] };
                let (from, to) = way.order(memory, packed(stream, position, [0; 2]));
                let kernel = way.kernel(&item, units);
                (kernel.transfer([1, 1], source, from, target, to), stream, item)
            }
            Strip::Tile(tile) => return tile.transfer(way, source, target, position),
            Strip::Cut { .. } => unreachable!("pack and unpack move what is cut themselves"),
        };
        moved.map_err(|error| Stop::of_kernel(error, stream, &item, way.conversion(&item)))
    }
}

impl<'p> Tile<'p> {
    /// Moves block by block; where a value is refused, iteration by iteration, so that what lies before it is moved.
    fn transfer(
        self,
        way: Way,
        source: View<'_>,
        target: &mut ViewMut<'_>,
        position: u64,
    ) -> Result<(), Stop> {
        let tried = self.body.columnar.is_some_and(|columnar| columnar.tried > 0);
        if tried && self.is_refused(way, source, position) {
            return (0..self.iterations)
                .flat_map(|iteration| self.part(iteration..iteration + 1))
                .try_for_each(|strip| strip.transfer(way, source, target, position));
        }
        self.part(0..self.iterations)
            .try_for_each(|strip| strip.transfer(way, source, target, position))
    }

    /// Whether a value can't be converted: nothing may be written of what lies behind it. A block with a leaf can fail one way
    /// or the other; where that is the other way, nothing is tried.
    fn is_refused(&self, way: Way, source: View<'_>, position: u64) -> bool {
        let mut trial = [0; TRIAL];
        let mut trial = ViewMut::new(&mut trial);
        self.part(0..self.iterations).any(|strip| match strip {
            Strip::Grid {
                block, counts, memory, memory_strides, stream, stream_strides, ..
            } if block.leaf.is_some() && way.conversion(&block.item()).can_fail() => {
                let kernel = way.of(&block.kernel);
                let memory = Lane { start: memory, strides: memory_strides };
                let (from, _) = way.order(memory, packed(stream, position, stream_strides));
                let to = Lane::packed(0, counts, kernel.to_run());
                kernel.transfer(counts, source, from, &mut trial, to).is_err()
            }
            _ => false,
        })
    }

    /// The blocks of some iterations.
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

/// Which way a transfer goes.
#[derive(Clone, Copy)]
enum Way {
    Pack,
    Unpack,
}

impl Way {
    fn conversion(self, item: &Item) -> Conversion {
        match self {
            Way::Pack => item.pack,
            Way::Unpack => item.unpack(),
        }
    }

    fn kernel(self, item: &Item, units: u64) -> Kernel {
        Kernel::new(self.conversion(item), units)
    }

    fn of(self, kernel: &Kernel) -> Kernel {
        match self {
            Way::Pack => *kernel,
            Way::Unpack => kernel.reversed(),
        }
    }

    /// The source, and the target.
    fn order<T>(self, memory: T, packed: T) -> (T, T) {
        match self {
            Way::Pack => (memory, packed),
            Way::Unpack => (packed, memory),
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
) -> Result<(), Stop> {
    conversion.apply(from, to).map_err(|error| {
        Stop::Value(Box::new(Refused { position, item: *item, conversion, error }))
    })
}

/// The runs of a ragged table, one by one.
pub(super) fn pieces(
    gather: &Gather,
    runs: std::ops::Range<usize>,
    base: i64,
    stream: u64,
) -> impl Iterator<Item = Strip<'static>> + '_ {
    let first = gather.run(runs.start).1.start;
    runs.map(move |index| {
        let (offset, run) = gather.run(index);
        Strip::Piece {
            item: gather.item(),
            units: (run.end - run.start) / gather.item().stream(),
            memory: base.wrapping_add(offset),
            stream: stream + (run.start - first),
        }
    })
}
