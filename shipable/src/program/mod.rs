//! Layout programs: how the bytes of one memory lie in a packed stream, and what becomes of them on the way.
//!
//! Three operations are enough. A `Block` is a run of items repeated in up to three strided dimensions, a `Gather`
//! a table of runs, a `Loop` repeats a body. They stand in the order of the type map, which is the order of the stream;
//! nothing here ever reorders them. Displacements are bytes of the memory's architecture, so a program never ships.
//!
//! `lower` makes a program from a form, `Cursor` finds and walks the part of it that a transfer moves, and `pack`
//! carries transfers out.

mod cursor;
mod lower;
mod mirror;
mod op;
mod overlap;
mod pack;
mod step;
mod stretches;
mod strided;
mod text;

pub use pack::Partial;
pub use step::copy;
pub use stretches::Stretch;
pub use strided::Strided;

pub(crate) use lower::lower;
pub(crate) use pack::describe;

use std::ops::Range;
use std::sync::OnceLock;

use crate::error::{Error, Result};

pub use crate::error::ConversionError;
use op::{Body, Op};

/// The layout of one element of a datatype, in a memory and in a packed stream.
///
/// A transfer moves a count of elements, one extent apart. Every position in its packed stream is one number of bytes, and
/// a transfer can start and stop at any of them.
///
/// ```
/// use shipable::{Architecture, Committed, Datatype, Partial, View, ViewMut};
///
/// // Every other of eight ints, little-endian in memory, big-endian in the stream.
/// let (memory, stream) = (Architecture::X86_64, Architecture::S390X);
/// let every_other = Committed::new(&Datatype::vector(4, 1, 2, &Datatype::int())?, &memory)?;
/// let program = every_other.program(&stream)?;
/// let ints: Vec<u8> = (0..8i32).flat_map(i32::to_le_bytes).collect();
///
/// let mut packed = [0; 16];
/// assert_eq!(program.pack(1, View::new(&ints), 0, &mut packed)?, 16);
/// assert_eq!(packed[4..8], 2i32.to_be_bytes());
///
/// // It arrives in two parts, which cut an int in two.
/// let (mut back, mut partial) = ([0; 32], Partial::default());
/// program.unpack(1, ViewMut::new(&mut back), 0, &packed[..7], &mut partial)?;
/// program.unpack(1, ViewMut::new(&mut back), 7, &packed[7..], &mut partial)?;
/// assert_eq!(back[8..12], 2i32.to_le_bytes());
/// # Ok::<(), shipable::Error>(())
/// ```
pub struct Program {
    body: Body,
    extent: i64,
    /// Where an element's one run of plain bytes starts, if that is all that it is.
    run: Option<i64>,
    overlaps: OnceLock<bool>,
}

impl Program {
    fn new(body: Body, extent: i64) -> Program {
        let run = match &*body.ops {
            [Op::Block(block)] if block.is_copy() && block.runs() == 1 => Some(block.start),
            _ => None,
        };
        Program { body, extent, run, overlaps: OnceLock::new() }
    }

    /// Bytes that one element takes in the packed stream.
    pub fn stream_size(&self) -> u64 {
        self.body.stream
    }

    /// Basic items in one element; the parts of pairs and complex numbers count one each.
    pub fn items(&self) -> u64 {
        self.body.items
    }

    /// Bytes in memory from one element to the next.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Whether memory and stream hold the same bytes, so that nothing is converted.
    pub fn is_all_copy(&self) -> bool {
        self.body.copies
    }

    /// Where the first byte lies if `count` elements are one run of the stream's very bytes, else `None`. Costs next to
    /// nothing.
    #[inline]
    pub fn contiguous(&self, count: u64) -> Option<i64> {
        match self.run {
            Some(start) if count == 1 || self.body.stream == self.extent as u64 => Some(start),
            _ => None,
        }
    }

    /// Bytes that `count` elements take in the packed stream.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] when they are more than a `u64` counts.
    #[inline]
    pub fn stream_length(&self, count: u64) -> Result<u64> {
        self.body.stream.checked_mul(count).ok_or_else(|| Error::overflow("the packed size"))
    }

    /// The bytes of memory that `count` elements lie in, from the first to past the last, relative to displacement 0;
    /// empty when there are none.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] when a displacement leaves the range of an `i64`.
    #[inline]
    pub fn range(&self, count: u64) -> Result<Range<i64>> {
        if count == 0 || self.body.stream == 0 {
            return Ok(0..0);
        }
        let Range { start, end } = self.body.reach;
        let last = i64::try_from(count - 1).ok().and_then(|last| last.checked_mul(self.extent));
        last.and_then(|last| Some(start.checked_add(last.min(0))?..end.checked_add(last.max(0))?))
            .ok_or_else(|| Error::overflow("a displacement"))
    }

    /// Whether writing `count` elements writes a byte twice.
    ///
    /// Always false where it doesn't. Where it does, and only a comparison of runs one by one can tell, an overlap beyond
    /// the first million runs goes unseen.
    pub fn overlaps(&self, count: u64) -> bool {
        match count {
            0 => false,
            1 => *self.overlaps.get_or_init(|| overlap::overlaps(self, 1)),
            // Elements that overlap themselves, or keep out of each other's way, need no closer look.
            _ if self.overlaps(1) => true,
            _ if self.body.span() <= u128::from(self.extent.unsigned_abs()) => false,
            _ => overlap::overlaps(self, count),
        }
    }
}
