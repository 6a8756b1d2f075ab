//! Scalars: the items that conversions read and write.

use std::fmt;

use smallvec::SmallVec;

/// The byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of the compilation target.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
}

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// IEEE binary16.
    Binary16,
    /// The upper half of a binary32: its exponent, and 8 bits of significand.
    Bfloat16,
    /// IEEE binary32.
    Binary32,
    /// IEEE binary64.
    Binary64,
    /// The 80 bits of x87 with an explicit integer bit, in 12 or 16 bytes of storage. The other
    /// bytes are unused.
    X87,
    /// The 96 bits of m68k: sign and exponent, 16 unused bits, 64 bits of significand.
    M68k,
    /// IEEE binary128.
    Binary128,
    /// IBM's pair of binary64 numbers, the high part first.
    DoubleDouble,
}

/// The meaning of a scalar's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Bytes that no conversion changes: `MPI_BYTE` and `MPI_PACKED`.
    Bytes,
    /// A character of the execution character set, which is ASCII on every architecture here.
    Char,
    /// A wide character: an unsigned character code of the scalar's size.
    Wide,
    /// An integer, two's complement or unsigned.
    Int {
        /// Whether it is two's complement.
        signed: bool,
    },
    /// A truth value. Zero reads as false, any other value as true. A conversion writes true as
    /// `truth`.
    Logical {
        /// The representation of true, in the low bits.
        truth: u64,
    },
    /// A floating-point number.
    Float(FloatFormat),
}

/// One item of data: the meaning, the size and the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// The meaning of the bytes.
    pub value: Value,
    /// The size in bytes.
    pub size: u8,
    /// The byte order.
    pub order: ByteOrder,
}

/// The display of a scalar in errors and printed programs: `i4be`, `x87/12le`.
pub(crate) struct ScalarName(pub Scalar);

impl fmt::Display for ScalarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScalarName(scalar) = self;
        let kind = match scalar.value {
            Value::Bytes => "bytes",
            Value::Char => "c",
            Value::Wide => "w",
            Value::Int { signed: true } => "i",
            Value::Int { signed: false } => "u",
            Value::Logical { .. } => "l",
            Value::Float(FloatFormat::X87) => "x87/",
            Value::Float(FloatFormat::M68k) => "m68k/",
            Value::Float(FloatFormat::DoubleDouble) => "dd",
            Value::Float(FloatFormat::Bfloat16) => "bf",
            Value::Float(_) => "f",
        };
        write!(f, "{kind}{}", scalar.size)?;
        match scalar.order {
            _ if scalar.size == 1 => Ok(()),
            ByteOrder::Little => f.write_str("le"),
            ByteOrder::Big => f.write_str("be"),
        }
    }
}

/// A scalar in the layout of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    /// The offset in bytes from the leaf's start.
    pub offset: u32,
    /// The scalar at this offset.
    pub scalar: Scalar,
}

/// The memory layout of a leaf on one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeafLayout {
    /// The bytes of data: the sum of the components' sizes, without gaps.
    pub size: u32,
    /// The distance in bytes from one element to the next.
    pub extent: u32,
    /// The alignment in bytes that C gives it as a member of a struct.
    pub align: u32,
    /// The alignment in bytes of a C struct whose first member it is. Under the power rule it may
    /// be greater than `align`, otherwise they are equal.
    pub leading_align: u32,
    /// One scalar; two for a complex number or a pair; none for a marker.
    pub components: SmallVec<[Component; 2]>,
}
