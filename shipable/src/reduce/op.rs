//! The predefined operations, and the types that each takes.

use crate::basic::{Basic, Leaf};
use crate::error::{Class, Error, Result};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $mpi:literal;)*) => {
        /// A predefined operation of reductions and accumulates (MPI-5.0 sections 6.9.2 and 12.3.4).
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

            /// The name that MPI gives it, such as `MPI_SUM`.
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
    /// The greater. A NaN is neither greater nor smaller than anything, so the value that it is compared with, or that is
    /// there already, stays: `target = if operand > target { operand } else { target }`.
    Max = 1, "MPI_MAX";
    /// The smaller; NaN as for [`Max`](Op::Max).
    Min = 2, "MPI_MIN";
    /// The sum. Integers wrap around in two's complement; floating point rounds once, to nearest, and overflows to infinity.
    Sum = 3, "MPI_SUM";
    /// The product; as [`Sum`](Op::Sum). A complex one is made of four products and two sums, each rounded.
    Prod = 4, "MPI_PROD";
    /// Whether both are true. What isn't zero is; true is written as C's 1, or as Fortran's `.TRUE.`.
    Land = 5, "MPI_LAND";
    /// The bits that both have.
    Band = 6, "MPI_BAND";
    /// Whether one is true, or both are.
    Lor = 7, "MPI_LOR";
    /// The bits that one has, or both.
    Bor = 8, "MPI_BOR";
    /// Whether one is true and the other isn't.
    Lxor = 9, "MPI_LXOR";
    /// The bits that one has and the other hasn't.
    Bxor = 10, "MPI_BXOR";
    /// The pair with the greater value; of equal values, the smaller index.
    Maxloc = 11, "MPI_MAXLOC";
    /// The pair with the smaller value; of equal values, the smaller index.
    Minloc = 12, "MPI_MINLOC";
    /// The operand. Accumulates only.
    Replace = 13, "MPI_REPLACE";
    /// What was there. Fetching accumulates only.
    NoOp = 14, "MPI_NO_OP";
}

/// The kinds of types that MPI-5.0 section 6.9.2 lists.
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
    /// Characters and MPI_PACKED: nothing computes with them.
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
            Group::Byte => "the type of bytes",
            Group::MultiLanguage => "a multi-language type",
            Group::Pair => "a pair",
            Group::Opaque => "no type to compute with",
        }
    }
}

impl Op {
    /// The code on the wire.
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// Whether the operation is defined on a type (MPI-5.0 sections 6.9.2, 6.9.4 and 12.3.4).
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
    /// Class OP where it isn't.
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
            Op::Land | Op::Lor | Op::Lxor => matches!(group, CInteger | Logical),
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
            Op::Land | Op::Lor | Op::Lxor => "C integers and logicals",
            Op::Band | Op::Bor | Op::Bxor => {
                "integers, MPI_BYTE and MPI_AINT, MPI_COUNT, MPI_OFFSET"
            }
            Op::Maxloc | Op::Minloc => "pairs of a value and an index, such as MPI_DOUBLE_INT",
            Op::Replace | Op::NoOp => "every type that holds data",
        }
    }
}

/// Whether compare_and_swap takes a type: C integers, Fortran integers, logicals, multi-language types and bytes
/// (MPI-5.0 section 12.3.4).
///
/// # Errors
/// Class TYPE for any other.
pub fn check_swap(leaf: Leaf) -> Result<()> {
    use Group::*;
    let group = Group::of(leaf);
    if matches!(group, CInteger | FortranInteger | Logical | MultiLanguage | Byte) {
        return Ok(());
    }
    Err(Error::Argument {
        call: "compare_and_swap",
        class: Class::Type,
        problem: format!(
            "{leaf} is {}: use an integer, a logical, MPI_AINT, MPI_COUNT, MPI_OFFSET or MPI_BYTE",
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
