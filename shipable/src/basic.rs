//! The predefined datatypes, and the leaves of type trees.
//!
//! Left out: synonyms such as `MPI_LONG_LONG_INT` and `MPI_C_COMPLEX`, which MPI defines as other
//! names of the same types (MPI-5.0 sections 3.2.2 and 5.1, tables 3.1 to 3.4).

macro_rules! basics {
    ($($name:ident = $wire:literal, $mpi:literal, $code:literal;)*) => {
        /// A predefined datatype of MPI-5.0's C, C++ and Fortran lists, one of MPI-1's markers, or
        /// one of the two halves, which MPI doesn't define. Their names are those of MPICH 5.
        ///
        /// The discriminant is the type's wire code, which never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Basic {
            $(#[doc = concat!("`", $mpi, "`, printed `", $code, "`.")] $name = $wire,)*
        }

        impl Basic {
            /// All predefined types, in the order of their wire codes.
            pub const ALL: &'static [Basic] = &[$(Basic::$name),*];

            /// MPI's name, such as `MPI_DOUBLE`.
            pub const fn mpi_name(self) -> &'static str {
                match self { $(Basic::$name => $mpi),* }
            }

            /// The code in the text notation, such as `d`.
            pub const fn code(self) -> &'static str {
                match self { $(Basic::$name => $code),* }
            }

            /// The type with this code in the text notation; `None` if there is none.
            pub fn from_code(code: &str) -> Option<Basic> {
                match code { $($code => Some(Basic::$name),)* _ => None }
            }

            /// The type with this wire code; `None` if the code is unassigned.
            pub const fn from_wire(code: u8) -> Option<Basic> {
                match code { $($wire => Some(Basic::$name),)* _ => None }
            }
        }
    };
}

basics! {
    Char = 1, "MPI_CHAR", "c";
    SignedChar = 2, "MPI_SIGNED_CHAR", "sc";
    UnsignedChar = 3, "MPI_UNSIGNED_CHAR", "uc";
    Byte = 4, "MPI_BYTE", "b";
    Packed = 5, "MPI_PACKED", "P";
    Wchar = 6, "MPI_WCHAR", "w";
    Short = 7, "MPI_SHORT", "s";
    UnsignedShort = 8, "MPI_UNSIGNED_SHORT", "us";
    Int = 9, "MPI_INT", "i";
    Unsigned = 10, "MPI_UNSIGNED", "u";
    Long = 11, "MPI_LONG", "l";
    UnsignedLong = 12, "MPI_UNSIGNED_LONG", "ul";
    LongLong = 13, "MPI_LONG_LONG_INT", "ll";
    UnsignedLongLong = 14, "MPI_UNSIGNED_LONG_LONG", "ull";
    Float = 15, "MPI_FLOAT", "f";
    Double = 16, "MPI_DOUBLE", "d";
    LongDouble = 17, "MPI_LONG_DOUBLE", "LD";
    CBool = 18, "MPI_C_BOOL", "B";
    Int8 = 19, "MPI_INT8_T", "i8";
    Int16 = 20, "MPI_INT16_T", "i16";
    Int32 = 21, "MPI_INT32_T", "i32";
    Int64 = 22, "MPI_INT64_T", "i64";
    Uint8 = 23, "MPI_UINT8_T", "u8";
    Uint16 = 24, "MPI_UINT16_T", "u16";
    Uint32 = 25, "MPI_UINT32_T", "u32";
    Uint64 = 26, "MPI_UINT64_T", "u64";
    Aint = 27, "MPI_AINT", "AI";
    Count = 28, "MPI_COUNT", "CO";
    Offset = 29, "MPI_OFFSET", "OF";
    CFloatComplex = 30, "MPI_C_COMPLEX", "fC";
    CDoubleComplex = 31, "MPI_C_DOUBLE_COMPLEX", "dC";
    CLongDoubleComplex = 32, "MPI_C_LONG_DOUBLE_COMPLEX", "ldC";
    Integer = 33, "MPI_INTEGER", "I";
    Real = 34, "MPI_REAL", "R";
    DoublePrecision = 35, "MPI_DOUBLE_PRECISION", "D";
    Complex = 36, "MPI_COMPLEX", "X2";
    DoubleComplex = 37, "MPI_DOUBLE_COMPLEX", "DX2";
    Logical = 38, "MPI_LOGICAL", "L";
    Character = 39, "MPI_CHARACTER", "CH";
    Integer1 = 40, "MPI_INTEGER1", "I1";
    Integer2 = 41, "MPI_INTEGER2", "I2";
    Integer4 = 42, "MPI_INTEGER4", "I4";
    Integer8 = 43, "MPI_INTEGER8", "I8";
    Integer16 = 44, "MPI_INTEGER16", "I16";
    Real2 = 45, "MPI_REAL2", "R2";
    Real4 = 46, "MPI_REAL4", "R4";
    Real8 = 47, "MPI_REAL8", "R8";
    Real16 = 48, "MPI_REAL16", "R16";
    Logical1 = 49, "MPI_LOGICAL1", "L1";
    Logical2 = 50, "MPI_LOGICAL2", "L2";
    Logical4 = 51, "MPI_LOGICAL4", "L4";
    Logical8 = 52, "MPI_LOGICAL8", "L8";
    Logical16 = 53, "MPI_LOGICAL16", "L16";
    Complex4 = 54, "MPI_COMPLEX4", "C4";
    Complex8 = 55, "MPI_COMPLEX8", "C8";
    Complex16 = 56, "MPI_COMPLEX16", "C16";
    Complex32 = 57, "MPI_COMPLEX32", "C32";
    FloatInt = 58, "MPI_FLOAT_INT", "fi";
    DoubleInt = 59, "MPI_DOUBLE_INT", "di";
    LongInt = 60, "MPI_LONG_INT", "li";
    TwoInt = 61, "MPI_2INT", "ii";
    ShortInt = 62, "MPI_SHORT_INT", "si";
    LongDoubleInt = 63, "MPI_LONG_DOUBLE_INT", "ldi";
    TwoReal = 64, "MPI_2REAL", "P2R";
    TwoDoublePrecision = 65, "MPI_2DOUBLE_PRECISION", "P2DP";
    TwoInteger = 66, "MPI_2INTEGER", "P2I";
    CxxBool = 67, "MPI_CXX_BOOL", "cB";
    CxxFloatComplex = 68, "MPI_CXX_FLOAT_COMPLEX", "cfC";
    CxxDoubleComplex = 69, "MPI_CXX_DOUBLE_COMPLEX", "cdC";
    CxxLongDoubleComplex = 70, "MPI_CXX_LONG_DOUBLE_COMPLEX", "cldC";
    Lb = 71, "MPI_LB", "LB";
    Ub = 72, "MPI_UB", "UB";
    Float16 = 73, "MPIX_C_FLOAT16", "f16";
    Bfloat16 = 74, "MPIX_BFLOAT16", "bf16";
}

/// The composition of a predefined type from components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makeup {
    /// One component, the type itself.
    Single,
    /// A complex number: two adjacent components of one type, which count as one item of a
    /// signature.
    Complex(Basic),
    /// A pair for MINLOC and MAXLOC: two items laid out as a C struct.
    Pair(Basic, Basic),
}

impl Basic {
    /// The wire code.
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// The index in [`Basic::ALL`].
    pub(crate) const fn index(self) -> usize {
        // Wire codes count from 1, in the order of `ALL`.
        self as usize - 1
    }

    /// Whether it is a marker of MPI-1, LB or UB. Markers hold no data.
    pub const fn is_marker(self) -> bool {
        matches!(self, Basic::Lb | Basic::Ub)
    }

    /// Whether it is a pair of a value and an index for MINLOC and MAXLOC (MPI-5.0 section 6.9.4).
    pub const fn is_pair(self) -> bool {
        matches!(self.makeup(), Makeup::Pair(..))
    }

    /// The value's type and the index's type of a pair; `None` for other types.
    pub const fn pair(self) -> Option<(Basic, Basic)> {
        match self.makeup() {
            Makeup::Pair(value, index) => Some((value, index)),
            _ => None,
        }
    }

    /// Whether it is an integer type of MPI's reductions. Characters and truth values aren't.
    pub const fn is_integer(self) -> bool {
        use Basic::*;
        matches!(
            self,
            SignedChar
                | UnsignedChar
                | Short
                | UnsignedShort
                | Int
                | Unsigned
                | Long
                | UnsignedLong
                | LongLong
                | UnsignedLongLong
                | Int8
                | Int16
                | Int32
                | Int64
                | Uint8
                | Uint16
                | Uint32
                | Uint64
                | Aint
                | Count
                | Offset
                | Integer
                | Integer1
                | Integer2
                | Integer4
                | Integer8
                | Integer16
        )
    }

    /// Whether it is a real floating-point type.
    pub const fn is_real(self) -> bool {
        use Basic::*;
        matches!(
            self,
            Float
                | Double
                | LongDouble
                | Real
                | DoublePrecision
                | Real2
                | Real4
                | Real8
                | Real16
                | Float16
                | Bfloat16
        )
    }

    pub(crate) const fn makeup(self) -> Makeup {
        use Basic::*;
        match self {
            CFloatComplex | CxxFloatComplex => Makeup::Complex(Float),
            CDoubleComplex | CxxDoubleComplex => Makeup::Complex(Double),
            CLongDoubleComplex | CxxLongDoubleComplex => Makeup::Complex(LongDouble),
            Complex => Makeup::Complex(Real),
            DoubleComplex => Makeup::Complex(DoublePrecision),
            Complex4 => Makeup::Complex(Real2),
            Complex8 => Makeup::Complex(Real4),
            Complex16 => Makeup::Complex(Real8),
            Complex32 => Makeup::Complex(Real16),
            FloatInt => Makeup::Pair(Float, Int),
            DoubleInt => Makeup::Pair(Double, Int),
            LongInt => Makeup::Pair(Long, Int),
            TwoInt => Makeup::Pair(Int, Int),
            ShortInt => Makeup::Pair(Short, Int),
            LongDoubleInt => Makeup::Pair(LongDouble, Int),
            TwoReal => Makeup::Pair(Real, Real),
            TwoDoublePrecision => Makeup::Pair(DoublePrecision, DoublePrecision),
            TwoInteger => Makeup::Pair(Integer, Integer),
            _ => Makeup::Single,
        }
    }
}

/// A leaf of a type tree or of a form.
///
/// It is a predefined type, or one of Fortran's parametrised types (MPI-5.0 section 19.1.9), whose
/// size depends on the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// A predefined type.
    Basic(Basic),
    /// `MPI_Type_create_f90_real`. An undefined parameter is `None`.
    F90Real {
        /// The decimal precision.
        precision: Option<u32>,
        /// The decimal exponent range.
        range: Option<u32>,
    },
    /// `MPI_Type_create_f90_complex`. An undefined parameter is `None`.
    F90Complex {
        /// The decimal precision.
        precision: Option<u32>,
        /// The decimal exponent range.
        range: Option<u32>,
    },
    /// `MPI_Type_create_f90_integer`.
    F90Integer {
        /// The decimal exponent range.
        range: u32,
    },
}

impl Leaf {
    /// The name in errors: MPI's name, or the notation of a parametrised type.
    pub(crate) fn mpi_name(self) -> String {
        match self {
            Leaf::Basic(basic) => basic.mpi_name().to_owned(),
            leaf => leaf.to_string(),
        }
    }
}

impl From<Basic> for Leaf {
    fn from(basic: Basic) -> Leaf {
        Leaf::Basic(basic)
    }
}

impl std::fmt::Display for Basic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.mpi_name())
    }
}

impl std::fmt::Display for Leaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or_star = |n: Option<u32>| n.map_or("*".to_string(), |n| n.to_string());
        match *self {
            Leaf::Basic(basic) => f.write_str(basic.code()),
            Leaf::F90Real { precision, range } => {
                write!(f, "FR:{}:{}", or_star(precision), or_star(range))
            }
            Leaf::F90Complex { precision, range } => {
                write!(f, "FC:{}:{}", or_star(precision), or_star(range))
            }
            Leaf::F90Integer { range } => write!(f, "FI:{range}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_and_decode_to_their_types() {
        let codes: HashSet<_> = Basic::ALL.iter().map(|b| b.code()).collect();
        assert_eq!(codes.len(), Basic::ALL.len());
        for &basic in Basic::ALL {
            assert_eq!(Basic::from_wire(basic.wire()), Some(basic));
            assert_eq!(Basic::from_code(basic.code()), Some(basic));
            assert!(basic.mpi_name().starts_with("MPI"));
        }
        assert_eq!(Basic::from_wire(0), None);
        assert_eq!(Basic::from_wire(255), None);
    }

    /// The codes are part of encoded forms and of signatures.
    #[test]
    fn wire_codes_are_pinned() {
        let all = "c sc uc b P w s us i u l ul ll ull f d LD B i8 i16 i32 i64 u8 u16 u32 u64 AI CO OF fC dC \
            ldC I R D X2 DX2 L CH I1 I2 I4 I8 I16 R2 R4 R8 R16 L1 L2 L4 L8 L16 C4 C8 C16 C32 fi di \
            li ii si ldi P2R P2DP P2I cB cfC cdC cldC LB UB f16 bf16";
        assert_eq!(Basic::ALL.iter().map(|basic| basic.code()).collect::<Vec<_>>().join(" "), all);
        for (index, &basic) in Basic::ALL.iter().enumerate() {
            assert_eq!(usize::from(basic.wire()), index + 1, "{basic}");
        }
    }
}
