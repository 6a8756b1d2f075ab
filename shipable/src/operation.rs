//! The predefined operations, and the datatypes that each takes.

use crate::basic::{Basic, Leaf};
use crate::error::{Class, Error, Result};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $mpi:literal;)*) => {
        /// A predefined operation of reductions and accumulates (MPI-5.0 sections 6.9.2 and
        /// 12.3.4).
        ///
        /// The discriminant is the operation's code on the wire and never changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Op {
            $($(#[$doc])* $name = $wire,)*
        }

        impl Op {
            /// Every operation, in the order of the wire codes.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            /// The MPI name, such as `MPI_SUM`.
            pub const fn mpi_name(self) -> &'static str {
                match self { $(Op::$name => $mpi),* }
            }

            /// The operation with this wire code, if there is one.
            pub const fn from_wire(code: u8) -> Option<Op> {
                match code { $($wire => Some(Op::$name),)* _ => None }
            }
        }
    };
}

operations! {
    /// The maximum: `target = if target > operand { target } else { operand }`. If a value is a
    /// NaN, or both are zeros, the operand is the result.
    Max = 1, "MPI_MAX";
    /// The minimum: `target = if target < operand { target } else { operand }`. If a value is a
    /// NaN, or both are zeros, the operand is the result.
    Min = 2, "MPI_MIN";
    /// The sum. Integers wrap around in two's complement. Floating point rounds once, to nearest,
    /// and overflows to infinity.
    Sum = 3, "MPI_SUM";
    /// The product, which wraps and rounds as [`Sum`](Op::Sum) does. A complex product takes four
    /// products and two sums, each of which is rounded.
    Prod = 4, "MPI_PROD";
    /// Logical and. Any nonzero value is true. A true result is written as C's 1, or as Fortran's
    /// `.TRUE.`.
    Land = 5, "MPI_LAND";
    /// Bitwise and.
    Band = 6, "MPI_BAND";
    /// Logical or.
    Lor = 7, "MPI_LOR";
    /// Bitwise or.
    Bor = 8, "MPI_BOR";
    /// Logical exclusive or.
    Lxor = 9, "MPI_LXOR";
    /// Bitwise exclusive or.
    Bxor = 10, "MPI_BXOR";
    /// The pair with the greater value. If the values are equal, the smaller index.
    Maxloc = 11, "MPI_MAXLOC";
    /// The pair with the smaller value. If the values are equal, the smaller index.
    Minloc = 12, "MPI_MINLOC";
    /// The operand replaces the value. For accumulates only.
    Replace = 13, "MPI_REPLACE";
    /// The value stays. For fetching accumulates only.
    NoOp = 14, "MPI_NO_OP";
}

/// The groups of datatypes in MPI-5.0 section 6.9.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    CInteger,
    FortranInteger,
    FloatingPoint,
    Logical,
    Complex,
    Byte,
    MultiLanguage,
    Pair,
    /// Characters and MPI_PACKED, on which only REPLACE and NO_OP are defined.
    Opaque,
}

impl Group {
    pub(super) fn of(leaf: Leaf) -> Group {
        use Basic::*;
        let basic = match leaf {
            Leaf::Basic(basic) => basic,
            Leaf::F90Real { .. } => return Group::FloatingPoint,
            Leaf::F90Complex { .. } => return Group::Complex,
            Leaf::F90Integer { .. } => return Group::FortranInteger,
        };
        match basic {
            Aint | Count | Offset => Group::MultiLanguage,
            Integer | Integer1 | Integer2 | Integer4 | Integer8 | Integer16 => {
                Group::FortranInteger
            }
            CBool | CxxBool | Logical | Logical1 | Logical2 | Logical4 | Logical8 | Logical16 => {
                Group::Logical
            }
            Byte => Group::Byte,
            Char | Character | Wchar | Packed | Lb | Ub => Group::Opaque,
            _ if basic.is_integer() => Group::CInteger,
            _ if basic.is_real() => Group::FloatingPoint,
            _ if basic.is_pair() => Group::Pair,
            _ => Group::Complex,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Group::CInteger => "a C integer",
            Group::FortranInteger => "a Fortran integer",
            Group::FloatingPoint => "a floating-point type",
            Group::Logical => "a logical",
            Group::Complex => "a complex type",
            Group::Byte => "the byte type",
            Group::MultiLanguage => "a multi-language type",
            Group::Pair => "a pair",
            Group::Opaque => "a type without arithmetic",
        }
    }
}

impl Op {
    /// The operation's code on the wire.
    #[inline]
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// Checks that the operation is defined on a datatype (MPI-5.0 sections 6.9.2, 6.9.4 and
    /// 12.3.4).
    ///
    /// ```
    /// use shipable::{Basic, Class, reduce::Op};
    /// assert!(Op::Sum.check(Basic::Double.into()).is_ok());
    /// let refused = Op::Band.check(Basic::Double.into()).unwrap_err();
    /// assert_eq!(refused.class(), Class::Op);
    /// assert!(refused.to_string().contains("MPI_BAND isn't defined on MPI_DOUBLE"));
    /// ```
    ///
    /// # Errors
    ///
    /// Class OP if it isn't.
    pub fn check(self, leaf: Leaf) -> Result<()> {
        let group = Group::of(leaf);
        if self.takes(group) && !is_marker(leaf) {
            return Ok(());
        }
        Err(Error::Argument {
            call: "a predefined operation",
            class: Class::Op,
            problem: format!(
                "{} isn't defined on {}, {}: it takes {}",
                self.mpi_name(),
                leaf.mpi_name(),
                group.name(),
                self.taken()
            ),
        })
    }

    fn takes(self, group: Group) -> bool {
        use Group::*;
        match self {
            Op::Max | Op::Min => {
                matches!(group, CInteger | FortranInteger | FloatingPoint | MultiLanguage)
            }
            Op::Sum | Op::Prod => {
                matches!(group, CInteger | FortranInteger | FloatingPoint | Complex | MultiLanguage)
            }
            // MPI defines no logical operation on multi-language types, but MPICH and Open MPI do.
            Op::Land | Op::Lor | Op::Lxor => matches!(group, CInteger | Logical | MultiLanguage),
            Op::Band | Op::Bor | Op::Bxor => {
                matches!(group, CInteger | FortranInteger | Byte | MultiLanguage)
            }
            Op::Maxloc | Op::Minloc => group == Pair,
            Op::Replace | Op::NoOp => true,
        }
    }

    fn taken(self) -> &'static str {
        match self {
            Op::Max | Op::Min => "integers, floating point and MPI_AINT, MPI_COUNT, MPI_OFFSET",
            Op::Sum | Op::Prod => {
                "integers, floating point, complex numbers and MPI_AINT, MPI_COUNT, MPI_OFFSET"
            }
            Op::Land | Op::Lor | Op::Lxor => "C integers, logicals and multi-language types",
            Op::Band | Op::Bor | Op::Bxor => {
                "integers, MPI_BYTE and MPI_AINT, MPI_COUNT, MPI_OFFSET"
            }
            Op::Maxloc | Op::Minloc => {
                "pairs of a value and an index, such as MPI_DOUBLE_INT (c::DoubleInt)"
            }
            Op::Replace | Op::NoOp => "every type that holds data",
        }
    }
}

/// Checks that compare_and_swap takes a datatype: a C integer, a Fortran integer, a logical, a
/// multi-language type or a byte (MPI-5.0 section 12.3.4).
///
/// # Errors
///
/// Class TYPE for any other datatype.
pub fn check_swap(leaf: Leaf) -> Result<()> {
    use Group::*;
    let group = Group::of(leaf);
    if matches!(group, CInteger | FortranInteger | Logical | MultiLanguage | Byte) {
        return Ok(());
    }
    Err(Error::Argument {
        call: "a compare-and-swap",
        class: Class::Type,
        problem: format!(
            "{} is {}: use an integer, a logical, MPI_AINT, MPI_COUNT, MPI_OFFSET or MPI_BYTE",
            leaf.mpi_name(),
            group.name()
        ),
    })
}

fn is_marker(leaf: Leaf) -> bool {
    matches!(leaf, Leaf::Basic(basic) if basic.is_marker())
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.mpi_name())
    }
}
