//! Scalars: the items that a conversion takes and gives.

use std::fmt;

use smallvec::SmallVec;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The order of the machine that this was compiled for.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
}

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// IEEE binary16.
    Binary16,
    /// IEEE binary32.
    Binary32,
    /// IEEE binary64.
    Binary64,
    /// x87's 80 bits with an explicit integer bit, in 12 or 16 bytes of storage, the rest unused.
    X87,
    /// m68k's 96-bit image: sign and exponent, 16 unused bits, 64 bits of significand.
    M68k,
    /// IEEE binary128.
    Binary128,
    /// IBM's pair of binary64, the high part first.
    DoubleDouble,
}

/// What the bytes of a scalar mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Bytes that no conversion touches: BYTE and PACKED.
    Bytes,
    /// A character of the execution character set (ASCII everywhere here).
    Char,
    /// A wide character: an unsigned code of the scalar's size.
    Wide,
    /// A two's complement or unsigned integer.
    Int {
        /// Whether it is two's complement.
        signed: bool,
    },
    /// A truth value: zero is false, anything else reads as true, and `truth` is written.
    Logical {
        /// The image of true, in the low bits.
        truth: u64,
    },
    /// A floating-point number.
    Float(FloatFormat),
}

/// One item of data: what its bytes mean, how many there are, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// The meaning.
    pub value: Value,
    /// Bytes of storage.
    pub size: u8,
    /// The order of the bytes.
    pub order: ByteOrder,
}

/// Prints a scalar as errors and programs show it: `i4be`, `x87/12le`.
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

/// A scalar within a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Component {
    /// Bytes from the leaf's start.
    pub offset: u32,
    /// What lies there.
    pub scalar: Scalar,
}

/// How a leaf lies in the memory of one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeafLayout {
    /// Bytes of data: the sum of the components, without gaps.
    pub size: u32,
    /// Bytes from one to the next.
    pub extent: u32,
    /// The alignment that C gives it as a member of a struct, in bytes.
    pub align: u32,
    /// The alignment that it gives a struct whose first member it is: more than `align` under
    /// the power rule, else the same.
    pub leading_align: u32,
    /// One scalar, or two of a complex number or of a pair; none of a marker.
    pub components: SmallVec<[Component; 2]>,
}
