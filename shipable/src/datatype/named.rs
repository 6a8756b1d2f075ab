//! The predefined types, by their names in lower case.

use std::sync::{LazyLock, OnceLock};

use super::{Datatype, Node, Root, Tree};
use crate::arch::Architecture;
use crate::basic::{Basic, Leaf};
use crate::error::{Class, Error, Result};
use crate::shared::Counted;
use crate::signature::Signature;

/// One object for each predefined type, so that all its handles are equal.
static NAMED: LazyLock<Vec<Tree>> =
    LazyLock::new(|| Basic::ALL.iter().map(|&basic| Tree::leaf(basic.into())).collect());

impl Datatype {
    /// The only object of a predefined type.
    #[inline]
    pub fn basic(basic: Basic) -> Datatype {
        Datatype(Root::Named(&NAMED[basic.index()]))
    }

    #[inline]
    pub(super) fn leaf(leaf: Leaf) -> Datatype {
        Datatype(Root::Made(Counted::new(Tree::leaf(leaf))))
    }

    /// The predefined type that this is; `None` if a constructor made it.
    pub fn as_basic(&self) -> Option<Basic> {
        match self.node() {
            Node::Leaf(Leaf::Basic(basic)) => Some(*basic),
            _ => None,
        }
    }
}

impl Tree {
    #[inline]
    fn leaf(leaf: Leaf) -> Tree {
        let items = Signature::of_leaf(leaf).count;
        let (node, hash) = (Node::Leaf(leaf), OnceLock::new());
        Tree { node, depth: 1, items, portable: true, hash }
    }
}

/// A class of Fortran types, such as `MPI_TYPECLASS_REAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// Floating-point numbers.
    Real,
    /// Integers.
    Integer,
    /// Complex numbers.
    Complex,
}

impl Datatype {
    /// The predefined type of a class and size (`MPI_Type_match_size`, MPI-5.0 section 19.1.9).
    ///
    /// The result is one of the sized Fortran types. The size is in bytes on the architecture `on`.
    ///
    /// ```
    /// use shipable::{Architecture, Datatype, TypeClass};
    /// let double = Datatype::match_size(TypeClass::Real, 8, &Architecture::NATIVE)?;
    /// assert!(double.is(&Datatype::real8()));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// ARG if the architecture has no such type.
    #[doc(alias = "MPI_Type_match_size")]
    pub fn match_size(class: TypeClass, size: u64, on: &Architecture) -> Result<Datatype> {
        use Basic::*;
        let candidates: &[Basic] = match class {
            TypeClass::Real => &[Real2, Real4, Real8, Real16],
            TypeClass::Integer => &[Integer1, Integer2, Integer4, Integer8, Integer16],
            TypeClass::Complex => &[Complex4, Complex8, Complex16, Complex32],
        };
        let size_of = |basic: Basic| on.leaf(basic.into()).map(|layout| u64::from(layout.size));
        // An architecture may store narrow types in wider units. Of several types with this size,
        // the widest holds every value of the others.
        let found = candidates.iter().rev().find(|&&basic| size_of(basic) == Ok(size));
        found.map(|&basic| Datatype::basic(basic)).ok_or_else(|| {
            let sizes: Vec<_> = candidates
                .iter()
                .filter_map(|&basic| size_of(basic).ok())
                .map(|n| n.to_string())
                .collect();
            Error::Argument {
                call: "match_size",
                class: Class::Arg,
                problem: format!(
                    "{on} has no {} of {size} bytes: sizes are {}",
                    match class {
                        TypeClass::Real => "real type",
                        TypeClass::Integer => "integer type",
                        TypeClass::Complex => "complex type",
                    },
                    sizes.join(", ")
                ),
            }
        })
    }
}

impl From<Basic> for Datatype {
    fn from(basic: Basic) -> Datatype {
        Datatype::basic(basic)
    }
}

macro_rules! named {
    ($($function:ident $basic:ident $(as $alias:literal)?;)*) => {
        impl Datatype {
            $(
                $(#[doc(alias = $alias)])?
                #[doc = concat!("[`Basic::", stringify!($basic), "`].")]
                #[inline]
                pub fn $function() -> Datatype {
                    Datatype::basic(Basic::$basic)
                }
            )*
        }

        #[cfg(test)]
        const COVERED: &[Basic] = &[$(Basic::$basic),*];
    };
}

named! {
    char Char;
    signed_char SignedChar;
    unsigned_char UnsignedChar;
    byte Byte;
    packed Packed;
    wchar Wchar;
    short Short;
    unsigned_short UnsignedShort;
    int Int;
    unsigned Unsigned;
    long Long;
    unsigned_long UnsignedLong;
    long_long LongLong;
    unsigned_long_long UnsignedLongLong;
    float Float;
    double Double;
    long_double LongDouble;
    c_bool CBool;
    int8 Int8 as "int8_t";
    int16 Int16 as "int16_t";
    int32 Int32 as "int32_t";
    int64 Int64 as "int64_t";
    uint8 Uint8 as "uint8_t";
    uint16 Uint16 as "uint16_t";
    uint32 Uint32 as "uint32_t";
    uint64 Uint64 as "uint64_t";
    aint Aint;
    count Count;
    offset Offset;
    c_float_complex CFloatComplex;
    c_double_complex CDoubleComplex;
    c_long_double_complex CLongDoubleComplex;
    integer Integer;
    real Real;
    double_precision DoublePrecision;
    complex Complex;
    double_complex DoubleComplex;
    logical Logical;
    character Character;
    integer1 Integer1;
    integer2 Integer2;
    integer4 Integer4;
    integer8 Integer8;
    integer16 Integer16;
    real2 Real2;
    real4 Real4;
    real8 Real8;
    real16 Real16;
    logical1 Logical1;
    logical2 Logical2;
    logical4 Logical4;
    logical8 Logical8;
    logical16 Logical16;
    complex4 Complex4;
    complex8 Complex8;
    complex16 Complex16;
    complex32 Complex32;
    float_int FloatInt;
    double_int DoubleInt;
    long_int LongInt;
    two_int TwoInt;
    short_int ShortInt;
    long_double_int LongDoubleInt;
    two_real TwoReal;
    two_double_precision TwoDoublePrecision;
    two_integer TwoInteger;
    cxx_bool CxxBool;
    cxx_float_complex CxxFloatComplex;
    cxx_double_complex CxxDoubleComplex;
    cxx_long_double_complex CxxLongDoubleComplex;
    lb Lb;
    ub Ub;
    float16 Float16;
    bfloat16 Bfloat16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_predefined_type_is_a_single_object() {
        assert_eq!(COVERED, Basic::ALL);
        for &basic in Basic::ALL {
            assert_eq!(Datatype::basic(basic).as_basic(), Some(basic));
            assert!(Datatype::basic(basic).is(&Datatype::basic(basic)));
        }
    }
}
