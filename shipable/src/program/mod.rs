//! Layout programs: the layout of a datatype in one memory and in a packed stream, and the
//! conversions between the two.
//!
//! A program is the lowered form of a datatype, for one memory and one stream. These words have one
//! meaning here:
//!
//! - A *stream* is the packed representation of a transfer: its basic items in the order of the
//!   type map.
//! - A *unit* is the smallest piece that is moved: a byte of a copy, or a scalar of a conversion.
//! - A *run* is a sequence of units that adjoin both in memory and in the stream.
//! - A *body* is a sequence of operations. The program has one body, and so has each of its loops.
//! - The *reach* of an operation is its memory from the true lower to the true upper bound.
//!
//! There are three kinds of operations: a `Block` is a run repeated in up to three strided
//! dimensions, a `Gather` is a table of runs, and a `Loop` repeats a body. Operations stand in the
//! order of the type map, which is the order of the stream. No pass reorders them. Displacements
//! are bytes of the memory's architecture, so a program never ships.
//!
//! - `lower` makes a program from a form, with `runs`, `tables` and `budget`.
//! - `cursor` walks the part of a program that a transfer moves.
//! - `pack` carries out transfers between a memory and a packed stream.
//! - `step` copies from one typed memory to another.
//! - `parallel` divides a transfer among threads.
//! - `mirror` and `strided` are faster copies for special cases.
//! - `overlap` and `stretches` answer questions about the memory that a program reaches.

mod budget;
mod cursor;
mod lower;
mod mirror;
mod op;
mod overlap;
mod pack;
mod parallel;
mod runs;
mod step;
mod stretches;
mod strided;
mod tables;
mod text;

pub use pack::Partial;
pub use parallel::{Pool, copy_in};
pub use step::copy;
pub use stretches::Stretch;
pub use strided::Strided;

pub(crate) use lower::lower;
pub(crate) use pack::describe;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::bounds::Bounds;
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::form::Regular;

pub use crate::error::ConversionError;
use op::{Body, Loop, Op};

/// The layout of one element of a datatype, in a memory and in a packed stream.
///
/// A transfer moves `count` elements, one extent apart. It can start and stop at any byte of the
/// packed stream; a position is the number of bytes before it.
///
/// ```
/// use shipable::{Architecture, Committed, Datatype, Partial, View, ViewMut};
///
/// // Four of eight ints, every other one, little-endian in memory and big-endian in the stream.
/// let (memory, stream) = (Architecture::X86_64, Architecture::S390X);
/// let every_other = Committed::new(&Datatype::vector(4, 1, 2, &Datatype::int())?, &memory)?;
/// let program = every_other.program(&stream)?;
/// let ints: Vec<u8> = (0..8i32).flat_map(i32::to_le_bytes).collect();
///
/// let mut packed = [0; 16];
/// assert_eq!(program.pack(1, View::new(&ints), 0, &mut packed)?, 16);
/// assert_eq!(packed[4..8], 2i32.to_be_bytes());
///
/// // The stream arrives in two parts. The cut lies within an int.
/// let (mut back, mut partial) = ([0; 32], Partial::default());
/// program.unpack(1, ViewMut::new(&mut back), 0, &packed[..7], &mut partial)?;
/// program.unpack(1, ViewMut::new(&mut back), 7, &packed[7..], &mut partial)?;
/// assert_eq!(back[8..12], 2i32.to_le_bytes());
/// # Ok::<(), shipable::Error>(())
/// ```
pub struct Program {
    body: Body,
    extent: i64,
    /// The displacement of an element's first byte, if the element is a single run that is copied.
    run: Option<i64>,
    overlaps: OnceLock<bool>,
    /// The fields of an element, which errors name.
    fields: Fields,
}

impl Program {
    /// A program without operations, to be filled by `lower`. `fields` are those of an element.
    #[inline]
    pub(crate) fn empty(fields: Fields) -> Program {
        Program { body: Body::empty(), extent: 0, run: None, overlaps: OnceLock::new(), fields }
    }

    /// Fills an empty program with the runs of a regular type, whose bounds are `bounds`. The
    /// stream has the memory's representation.
    pub(crate) fn fill(&mut self, regular: &Regular, bounds: &Bounds) {
        self.body.fill(regular, bounds);
        self.extent = bounds.extent();
        self.run = regular.single_run();
    }

    /// Computes what follows from the operations.
    fn settle(&mut self, extent: i64) {
        if let [Op::Loop(Loop { start: 0, count: 1, body, .. })] = &self.body.ops[..] {
            let body = Arc::clone(body);
            self.body.ops.clear();
            self.body = Arc::unwrap_or_clone(body);
        } else {
            self.body.settle();
        }
        self.extent = extent;
        self.run = self.single_run();
    }

    /// The displacement of the only run, if it is copied.
    #[inline]
    fn single_run(&self) -> Option<i64> {
        match &*self.body.ops {
            [Op::Block(block)] if block.is_copy() && block.runs() == 1 => Some(block.start),
            _ => None,
        }
    }

    /// The bytes of one element in the packed stream.
    #[inline]
    pub fn stream_size(&self) -> u64 {
        self.body.stream
    }

    /// The number of basic items in one element. Each part of a pair or of a complex number counts.
    #[inline]
    pub fn items(&self) -> u64 {
        self.body.items
    }

    /// The same program, whose errors name fields of an element. `text` is what
    /// [`field_text`](Program::field_text) of another program of the type has returned. It may come
    /// from a peer: a text that doesn't describe the elements changes nothing.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Element, Partial, Shipable, ViewMut, c};
    ///
    /// #[derive(Clone, Copy, Shipable)]
    /// #[repr(C)]
    /// struct Limits { volts: [f32; 2], downlink: c::Long }
    ///
    /// let (simple, names) = (Limits::simple().unwrap(), Limits::item_names);
    /// let wide = Committed::of_fields(&simple, &Architecture::X86_64, names)?;
    /// let text = wide.native().field_text().unwrap();
    /// assert_eq!(&*text, "(volts*2,downlink)");
    /// // A board of 32 bits has only the form and this text.
    /// let board = wide.form().lower(&Architecture::PPC, &Architecture::X86_64)?.with_fields(&text);
    /// let (mut memory, mut stream) = ([0; 12], [0; 16]);
    /// stream[8..].copy_from_slice(&3_000_000_000i64.to_le_bytes());
    /// let refused = board
    ///     .unpack(1, ViewMut::new(&mut memory), 0, &stream, &mut Partial::default())
    ///     .unwrap_err();
    /// assert!(refused.to_string().starts_with("element 2, field downlink (MPI_LONG): 3000000000"));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    #[must_use]
    pub fn with_fields(mut self, text: &str) -> Program {
        self.fields = Fields::Text(Box::new(text.into()));
        self
    }

    /// The fields of one element as a text; `None` if they aren't known.
    pub fn field_text(&self) -> Option<Arc<str>> {
        self.fields.text()
    }

    /// Sets the fields of one element.
    pub(crate) fn set_fields(&mut self, fields: Fields) {
        self.fields = fields;
    }

    /// The fields of one element.
    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The bytes of memory from the start of one element to the start of the next.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Whether memory and stream use the same representation, so that no byte is converted.
    #[inline]
    pub fn is_all_copy(&self) -> bool {
        self.body.copies
    }

    /// The displacement of the first byte, if `count` elements are one run that is copied;
    /// otherwise `None`.
    ///
    /// Cheap enough to call for every transfer.
    #[inline]
    pub fn contiguous(&self, count: u64) -> Option<i64> {
        match self.run {
            Some(start) if count == 1 || self.body.stream == self.extent as u64 => Some(start),
            _ => None,
        }
    }

    /// The bytes of `count` elements in the packed stream.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if the length exceeds a `u64`.
    #[inline]
    pub fn stream_length(&self, count: u64) -> Result<u64> {
        self.body.stream.checked_mul(count).ok_or_else(|| Error::overflow("the packed size"))
    }

    /// Whether some value may be refused: one side can't hold all values of the other. Cheap enough
    /// to call for every transfer.
    #[inline]
    pub fn may_refuse(&self) -> bool {
        self.body.fails
    }

    /// The bytes in memory, without gaps, of the items before a position of the packed stream. A
    /// part of an item counts only if the item has as many bytes in memory as in the stream.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    ///
    /// let both = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::long(), Datatype::int()])?;
    /// let both = Committed::new(&both, &Architecture::X86_64)?;
    /// let program = both.program(&Architecture::EXTERNAL32)?;
    /// // A long has 4 bytes in external32, and 8 in memory.
    /// assert_eq!(program.memory_before(4), 8);
    /// assert_eq!(program.memory_before(8 + 4 + 3), 12 + 8 + 3);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn memory_before(&self, position: u64) -> u64 {
        self.body.memory_before(position)
    }

    /// The displacements from the first byte of `count` elements to past the last one.
    ///
    /// Empty if there are no elements, or no bytes in them.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if a displacement exceeds an `i64`.
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
    /// The answer takes time in proportion to the program, unless its runs have to be compared one
    /// by one.
    pub fn overlaps(&self, count: u64) -> bool {
        match count {
            0 => false,
            1 => *self.overlaps.get_or_init(|| overlap::overlaps(self, 1)),
            // If one element overlaps itself, so do several. If the extent is at least the span of
            // an element, different elements are disjoint.
            _ if self.overlaps(1) => true,
            _ if self.body.span() <= u128::from(self.extent.unsigned_abs()) => false,
            _ => overlap::overlaps(self, count),
        }
    }
}
