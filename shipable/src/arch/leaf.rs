//! The layout of leaves on an architecture.

use smallvec::smallvec;

use super::{
    Architecture, Component, FloatFormat, LeafLayout, Scalar, ScalarWidth, StructRule, Value, Width,
};
use crate::basic::{Basic, Leaf, Makeup};
use crate::error::{Error, Result};

const SIGNED: Value = Value::Int { signed: true };
const UNSIGNED: Value = Value::Int { signed: false };

impl Architecture {
    /// The layout of a leaf.
    ///
    /// # Errors
    /// [`Error::NoSuchKind`] for a Fortran kind whose precision or range no type has.
    pub fn leaf(&self, leaf: Leaf) -> Result<LeafLayout> {
        let no_such_kind = || Error::NoSuchKind { architecture: self.name, leaf: leaf.to_string() };
        Ok(match leaf {
            Leaf::Basic(basic) => self.basic(basic),
            Leaf::F90Real { precision, range } => {
                let (width, format) = self.real_kind(precision, range).ok_or_else(no_such_kind)?;
                self.single(width, Value::Float(format))
            }
            Leaf::F90Complex { precision, range } => {
                let (width, format) = self.real_kind(precision, range).ok_or_else(no_such_kind)?;
                self.twice(&self.single(width, Value::Float(format)))
            }
            Leaf::F90Integer { range } => {
                let kinds = [(2, 1), (4, 2), (9, 4), (18, 8), (38, 16)];
                let kind = kinds.iter().find(|(reach, _)| range <= *reach);
                let (_, bytes) = *kind.ok_or_else(no_such_kind)?;
                self.single(self.integer_width(bytes), SIGNED)
            }
        })
    }

    /// The layout of a predefined type, which every architecture has.
    pub fn basic(&self, basic: Basic) -> LeafLayout {
        match basic.makeup() {
            Makeup::Single => match self.scalar_of(basic) {
                Some((width, value)) => self.single(width, value),
                None => LeafLayout {
                    size: 0,
                    extent: 0,
                    align: 1,
                    leading_align: 1,
                    components: smallvec![],
                },
            },
            Makeup::Complex(part) => self.twice(&self.basic(part)),
            Makeup::Pair(value, index) => self.pair(&self.basic(value), &self.basic(index)),
        }
    }

    /// The size and alignment of a type in memory, padding included; for a pair, by C's rule. For a
    /// marker, 0 and 1.
    pub(crate) const fn width_of(&self, basic: Basic) -> Width {
        match (basic.makeup(), self.scalar_of(basic)) {
            (Makeup::Single, Some((width, _))) => width,
            (Makeup::Complex(part), _) => {
                let part = self.width_of(part);
                Width { size: 2 * part.size, ..part }
            }
            (Makeup::Pair(value, index), _) => {
                let (value, index) = (self.width_of(value), self.width_of(index));
                let align = if value.align > index.align { value.align } else { index.align };
                let offset = value.size.next_multiple_of(index.align);
                Width { size: (offset + index.size).next_multiple_of(align), align }
            }
            _ => Width { size: 0, align: 1 },
        }
    }

    /// The width of a type of one scalar; `None` for other types.
    ///
    /// Commit asks for each member of a struct. So it is a function of its own, whose result fits a
    /// register.
    #[inline]
    const fn scalar_width(&self, basic: Basic) -> Option<Width> {
        use Basic::*;
        Some(match basic {
            Byte | Packed => Width { size: 1, align: 1 },
            Char | Character | SignedChar | UnsignedChar => self.char,
            Wchar => self.wchar,
            Short | UnsignedShort => self.short,
            Int | Unsigned => self.int,
            Long | UnsignedLong => self.long,
            LongLong | Count | Offset | UnsignedLongLong => self.long_long,
            Int8 | Uint8 | Integer1 | Logical1 => self.integer_width(1),
            Int16 | Uint16 | Integer2 | Logical2 => self.integer_width(2),
            Int32 | Uint32 | Integer4 | Logical4 => self.integer_width(4),
            Int64 | Uint64 | Integer8 | Logical8 => self.integer_width(8),
            Integer16 | Logical16 => self.integer_width(16),
            Aint => self.pointer,
            Float | Real4 => self.float,
            Double | Real8 => self.double,
            LongDouble => self.long_double,
            CBool | CxxBool => self.bool,
            Integer => self.fortran.integer,
            Real => self.fortran.real,
            DoublePrecision => self.fortran.double_precision,
            Logical => self.fortran.logical,
            // An architecture without two-byte types stores a half as a float.
            Real2 | Float16 | Bfloat16 if self.short.size != 2 => self.float,
            Real2 | Float16 | Bfloat16 => self.short,
            Real16 => self.quad(),
            _ => return None,
        })
    }

    /// The width and meaning of a type of one scalar; `None` for other types.
    const fn scalar_of(&self, basic: Basic) -> Option<(Width, Value)> {
        use Basic::*;
        let Some(width) = self.scalar_width(basic) else { return None };
        let value = match basic {
            Byte | Packed => Value::Bytes,
            Char | Character => Value::Char,
            Wchar => Value::Wide,
            SignedChar | Short | Int | Long | LongLong | Count | Offset | Aint => SIGNED,
            Int8 | Int16 | Int32 | Int64 => SIGNED,
            Integer | Integer1 | Integer2 | Integer4 | Integer8 | Integer16 => SIGNED,
            UnsignedChar | UnsignedShort | Unsigned | UnsignedLong | UnsignedLongLong => UNSIGNED,
            Uint8 | Uint16 | Uint32 | Uint64 => UNSIGNED,
            CBool | CxxBool => Value::Logical { truth: 1 },
            Logical => Value::Logical { truth: self.fortran.truth },
            Logical1 | Logical2 | Logical4 | Logical8 | Logical16 => self.sized_logical(width),
            LongDouble => Value::Float(self.long_double_format),
            Bfloat16 if width.size == 2 => Value::Float(FloatFormat::Bfloat16),
            Float | Double | Real | DoublePrecision => self.real_of(width.size),
            Real2 | Float16 | Bfloat16 | Real4 | Real8 | Real16 => self.real_of(width.size),
            _ => return None,
        };
        Some((width, value))
    }

    /// The narrowest C integer of at least this size.
    const fn integer_width(&self, bytes: u8) -> Width {
        match bytes {
            1 => self.char,
            2 => self.short,
            4 if self.short.size >= 4 => self.short,
            4 if self.int.size < 4 => self.long,
            4 => self.int,
            8 => self.long_long,
            _ => self.quad(),
        }
    }

    const fn sized_logical(&self, width: Width) -> Value {
        // A truth of all ones stays all ones in any width. Any other truth is cut to this width.
        let truth = match self.fortran.truth {
            truth if truth == ones(self.fortran.logical.size) => ones(width.size),
            truth if truth & ones(width.size) == 0 => 1,
            truth => truth & ones(width.size),
        };
        Value::Logical { truth }
    }

    const fn quad(&self) -> Width {
        Width { size: 16, align: self.quad_align }
    }

    const fn real_of(&self, bytes: u8) -> Value {
        Value::Float(match bytes {
            2 => FloatFormat::Binary16,
            4 => FloatFormat::Binary32,
            8 => FloatFormat::Binary64,
            _ => match self.long_double_format {
                FloatFormat::DoubleDouble => FloatFormat::DoubleDouble,
                _ => FloatFormat::Binary128,
            },
        })
    }

    /// The smallest real kind with this precision and range: float, double, long double, or the
    /// binary128 that Fortran compilers offer next to an x87 long double.
    fn real_kind(
        &self,
        precision: Option<u32>,
        range: Option<u32>,
    ) -> Option<(Width, FloatFormat)> {
        let kinds = [
            (self.float, FloatFormat::Binary32),
            (self.double, FloatFormat::Binary64),
            (self.long_double, self.long_double_format),
        ];
        let quad = match self.real_of(16) {
            Value::Float(format) => (self.quad(), format),
            _ => return None,
        };
        kinds.into_iter().chain([quad]).find(|(_, format)| {
            let (digits, reach) = format.decimal_range();
            precision.unwrap_or(0) <= digits && range.unwrap_or(0) <= reach
        })
    }

    fn single(&self, width: Width, value: Value) -> LeafLayout {
        let scalar = Scalar { value, size: width.size, order: self.order };
        LeafLayout {
            size: u32::from(width.size),
            extent: u32::from(width.size),
            align: self.align_of(width, value).into(),
            leading_align: u32::from(width.align),
            components: smallvec![Component { offset: 0, scalar }],
        }
    }

    /// The alignment of a scalar as a member of a struct.
    fn align_of(&self, width: Width, value: Value) -> u8 {
        match (self.rule, value) {
            (StructRule::Power, Value::Float(FloatFormat::Binary64)) => width.align.min(4),
            _ => width.align,
        }
    }

    /// The storage of a type of one scalar; `None` for other types.
    #[inline]
    pub(crate) fn scalar(&self, basic: Basic) -> Option<ScalarWidth> {
        let width = self.scalar_width(basic)?;
        let align = match self.rule {
            StructRule::Natural => width.align,
            StructRule::Power => self.align_by_power(basic, width),
        };
        Some(ScalarWidth { width, align })
    }

    #[inline(never)]
    fn align_by_power(&self, basic: Basic, width: Width) -> u8 {
        self.scalar_of(basic).map_or(width.align, |(width, value)| self.align_of(width, value))
    }

    fn twice(&self, part: &LeafLayout) -> LeafLayout {
        let mut components = part.components.clone();
        components.extend(part.components.iter().map(|c| Component { offset: part.size, ..*c }));
        LeafLayout { size: 2 * part.size, extent: 2 * part.extent, components, ..*part }
    }

    /// The layout of the C struct `{ value; index; }`.
    fn pair(&self, value: &LeafLayout, index: &LeafLayout) -> LeafLayout {
        let offset = value.extent.next_multiple_of(index.align);
        let align = value.align.max(index.align);
        let leading_align = align.max(value.leading_align);
        let mut components = value.components.clone();
        components
            .extend(index.components.iter().map(|c| Component { offset: offset + c.offset, ..*c }));
        LeafLayout {
            size: value.size + index.size,
            extent: (offset + index.extent).next_multiple_of(leading_align),
            align,
            leading_align,
            components,
        }
    }
}

/// A mask of the low `size` bytes, at most 8 of them.
const fn ones(size: u8) -> u64 {
    match size {
        0..8 => (1 << (8 * size)) - 1,
        _ => u64::MAX,
    }
}

impl FloatFormat {
    /// Fortran's PRECISION and RANGE for this format.
    pub const fn decimal_range(self) -> (u32, u32) {
        match self {
            FloatFormat::Binary16 => (3, 4),
            FloatFormat::Bfloat16 => (2, 37),
            FloatFormat::Binary32 => (6, 37),
            FloatFormat::Binary64 => (15, 307),
            FloatFormat::X87 | FloatFormat::M68k => (18, 4931),
            FloatFormat::Binary128 => (33, 4931),
            // The low half must not underflow, which reduces the range.
            FloatFormat::DoubleDouble => (31, 291),
        }
    }
}
