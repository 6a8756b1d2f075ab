//! C's types as distinct Rust types. `std::ffi::c_long` is an alias of another Rust integer, so it
//! would map to another MPI type.

use super::basic;
use crate::arch::Architecture;
use crate::basic::Basic;
use crate::convert::{Conversion, ValueError};
use crate::error::{Class, Error, Result};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($inner:ty) => $basic:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
            #[repr(transparent)]
            pub struct $name(
                /// The value.
                pub $inner,
            );

            impl From<$inner> for $name {
                fn from(value: $inner) -> Self {
                    $name(value)
                }
            }

            impl From<$name> for $inner {
                fn from(wrapped: $name) -> Self {
                    wrapped.0
                }
            }
        )*
        $crate::element::basic! { $($name => $basic;)* }
    };
}
pub(super) use numbers;

/// Implements a truth type. 0 reads as false, any other value as true. `true` is written as
/// `$truth`.
macro_rules! truth {
    ($name:ident: $truth:expr) => {
        impl $name {
            /// The truth value.
            pub const fn get(self) -> bool {
                self.0 != 0
            }
        }

        impl From<bool> for $name {
            fn from(truth: bool) -> $name {
                $name(if truth { $truth } else { 0 })
            }
        }

        impl From<$name> for bool {
            fn from(truth: $name) -> bool {
                truth.get()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.get() == other.get()
            }
        }

        impl Eq for $name {}
    };
}
pub(super) use truth;

numbers! {
    /// `char` as text: `MPI_CHAR`.
    Char(u8) => Char;
    /// `signed char`.
    SignedChar(i8) => SignedChar;
    /// `unsigned char`.
    UnsignedChar(u8) => UnsignedChar;
    /// A byte that no conversion changes: `MPI_BYTE`.
    Byte(u8) => Byte;
    /// `short`.
    Short(std::ffi::c_short) => Short;
    /// `unsigned short`.
    UnsignedShort(std::ffi::c_ushort) => UnsignedShort;
    /// `int`.
    Int(std::ffi::c_int) => Int;
    /// `unsigned`.
    Unsigned(std::ffi::c_uint) => Unsigned;
    /// `long`.
    Long(std::ffi::c_long) => Long;
    /// `unsigned long`.
    UnsignedLong(std::ffi::c_ulong) => UnsignedLong;
    /// `long long`.
    LongLong(std::ffi::c_longlong) => LongLong;
    /// `unsigned long long`.
    UnsignedLongLong(std::ffi::c_ulonglong) => UnsignedLongLong;
    /// `MPI_Aint`, which has a pointer's width.
    Aint(isize) => Aint;
    /// `MPI_Count`.
    Count(i64) => Count;
    /// `MPI_Offset`.
    Offset(i64) => Offset;
}

impl Char {
    /// An array of `char` with a text, and zeros after it. The text's UTF-8 bytes are its chars.
    ///
    /// ```
    /// use shipable::c::Char;
    /// let name: [Char; 8] = Char::array("crane")?;
    /// assert_eq!((name[4], name[5]), (Char(b'e'), Char(0)));
    /// assert_eq!(Char::text(&name)?, "crane");
    /// assert!(Char::array::<4>("crane").is_err());
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// TRUNCATE for a text with more bytes than the array. ARG for a text with a zero, which would
    /// end it.
    pub fn array<const N: usize>(text: &str) -> Result<[Char; N]> {
        let refuse = |class, problem| Err(Error::Argument { call: "Char::array", class, problem });
        if text.len() > N {
            let problem = format!("the text has {} bytes, the array {N}: shorten it", text.len());
            return refuse(Class::Truncate, problem);
        }
        if let Some(at) = text.bytes().position(|byte| byte == 0) {
            return refuse(
                Class::Arg,
                format!("byte {at} of the text is zero, which would end it"),
            );
        }
        let mut chars = [Char(0); N];
        chars.iter_mut().zip(text.bytes()).for_each(|(char, byte)| *char = Char(byte));
        Ok(chars)
    }

    /// The text of an array of `char`, up to its first zero.
    ///
    /// # Errors
    /// ARG if the chars aren't UTF-8.
    pub fn text(chars: &[Char]) -> Result<String> {
        let bytes = chars.iter().map(|char| char.0).take_while(|byte| *byte != 0).collect();
        String::from_utf8(bytes).map_err(|error| Error::Argument {
            call: "Char::text",
            class: Class::Arg,
            problem: format!("the chars are no UTF-8 text: {}", error.utf8_error()),
        })
    }
}

#[cfg(not(windows))]
numbers! {
    /// `wchar_t`: a character code.
    Wchar(u32) => Wchar;
}
#[cfg(windows)]
numbers! {
    /// `wchar_t`: a character code.
    Wchar(u16) => Wchar;
}

/// `_Bool`. Any byte is a valid value: 0 reads as false, any other as true.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Bool(u8);

truth! { Bool: 1 }

/// `long double` in this machine's format.
///
/// ```
/// use shipable::c::LongDouble;
/// assert_eq!(LongDouble::from(0.25).to_f64(), Ok(0.25));
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LongDouble([u8; LONG_DOUBLE], [<Aligned<LONG_DOUBLE_ALIGN> as Aligner>::Unit; 0]);

const LONG_DOUBLE: usize = Architecture::NATIVE.width_of(Basic::LongDouble).size as usize;
const LONG_DOUBLE_ALIGN: usize = Architecture::NATIVE.width_of(Basic::LongDouble).align as usize;

/// An alignment that the table of architectures chooses: an attribute takes only a literal.
struct Aligned<const ALIGN: usize>;

trait Aligner {
    /// A type of this alignment and without bytes.
    type Unit: Copy + std::fmt::Debug;
}

macro_rules! aligners {
    ($($align:literal $unit:ident;)*) => {
        $(
            #[derive(Clone, Copy, Debug)]
            #[repr(align($align))]
            pub struct $unit;

            impl Aligner for Aligned<$align> {
                type Unit = $unit;
            }
        )*
    };
}

mod unit {
    use super::{Aligned, Aligner};

    aligners! { 2 By2; 4 By4; 8 By8; 16 By16; }
}

impl LongDouble {
    /// The nearest double.
    ///
    /// # Errors
    /// [`ValueError`] for a value outside of double's range, or for bits that encode no value.
    pub fn to_f64(self) -> std::result::Result<f64, ValueError> {
        let mut bytes = [0; 8];
        convert(Basic::LongDouble, &self.0, Basic::Double, &mut bytes)?;
        Ok(f64::from_ne_bytes(bytes))
    }

    /// The bytes in memory order.
    pub const fn to_bytes(self) -> [u8; LONG_DOUBLE] {
        self.0
    }
}

impl From<f64> for LongDouble {
    fn from(value: f64) -> LongDouble {
        let mut bytes = [0; LONG_DOUBLE];
        convert(Basic::Double, &value.to_ne_bytes(), Basic::LongDouble, &mut bytes)
            .expect("every format of long double can hold every double");
        LongDouble(bytes, [])
    }
}

/// Converts between two of this machine's floating-point types.
fn convert(
    from: Basic,
    source: &[u8],
    to: Basic,
    target: &mut [u8],
) -> std::result::Result<(), ValueError> {
    let scalar = |basic| Architecture::NATIVE.basic(basic).components[0].scalar;
    let conversion = Conversion::between(scalar(from), scalar(to))
        .expect("all floating-point types have conversions");
    let (from, to) = (conversion.from_size().into(), conversion.to_size().into());
    let mut units = source.chunks(from).zip(target.chunks_mut(to));
    units.try_for_each(|(from, to)| conversion.apply(from, to))
}

/// `float _Complex`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct FloatComplex {
    pub re: f32,
    pub im: f32,
}

/// `double _Complex`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct DoubleComplex {
    pub re: f64,
    pub im: f64,
}

/// `long double _Complex`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct LongDoubleComplex {
    pub re: LongDouble,
    pub im: LongDouble,
}

/// Pairs of a value and an index, for MPI_MAXLOC and MPI_MINLOC.
macro_rules! pairs {
    ($($(#[$attribute:meta])* $name:ident($value:ty, $index:ty) => $basic:ident;)*) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, Copy, Debug)]
            #[repr(C)]
            pub struct $name {
                /// The value, which is compared.
                pub value: $value,
                /// The index. Of equal values, the one with the smallest index is chosen.
                pub index: $index,
            }

            impl From<($value, $index)> for $name {
                fn from((value, index): ($value, $index)) -> Self {
                    $name { value, index }
                }
            }
        )*
        $crate::element::basic! { $($name => $basic;)* }
    };
}
pub(super) use pairs;

pairs! {
    /// `struct { float; int; }`: MPI_FLOAT_INT.
    #[derive(Default, PartialEq)]
    FloatInt(f32, std::ffi::c_int) => FloatInt;
    /// `struct { double; int; }`: MPI_DOUBLE_INT.
    ///
    /// ```
    /// use shipable::reduce::{Op, Reduction};
    /// use shipable::{Architecture, Basic, Element, Shipable, c};
    ///
    /// #[derive(Clone, Copy, Shipable)]
    /// #[repr(C)]
    /// struct Station {
    ///     number: i32,
    ///     warmest: c::DoubleInt,
    /// }
    ///
    /// let warmest = c::DoubleInt { value: 21.5, index: 3 };
    /// assert_eq!(c::DoubleInt::from((21.5, 3)), warmest);
    /// assert_eq!(Station::simple().unwrap().to_string(), "U1(SS:2:i32/1,di/1)");
    /// // A pair is an operand of MPI_MAXLOC, and its two members are none.
    /// let here = Architecture::NATIVE;
    /// assert!(Reduction::new(Op::Maxloc, Basic::DoubleInt.into(), &here).is_ok());
    /// assert!(Reduction::new(Op::Maxloc, Basic::Double.into(), &here).is_err());
    /// ```
    #[derive(Default, PartialEq)]
    DoubleInt(f64, std::ffi::c_int) => DoubleInt;
    /// `struct { long; int; }`: MPI_LONG_INT.
    #[derive(Default, PartialEq)]
    LongInt(std::ffi::c_long, std::ffi::c_int) => LongInt;
    /// `struct { int; int; }`: MPI_2INT.
    #[derive(Default, PartialEq)]
    TwoInt(std::ffi::c_int, std::ffi::c_int) => TwoInt;
    /// `struct { short; int; }`: MPI_SHORT_INT.
    #[derive(Default, PartialEq)]
    ShortInt(std::ffi::c_short, std::ffi::c_int) => ShortInt;
    /// `struct { long double; int; }`: MPI_LONG_DOUBLE_INT.
    LongDoubleInt(LongDouble, std::ffi::c_int) => LongDoubleInt;
}

basic! {
    Bool => CBool;
    LongDouble => LongDouble;
    FloatComplex => CFloatComplex;
    DoubleComplex => CDoubleComplex;
    LongDoubleComplex => CLongDoubleComplex;
}
