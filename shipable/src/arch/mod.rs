//! Architectures: how one machine represents each basic type, as a value.
//!
//! Nothing here depends on the machine that runs it, but for [`Architecture::NATIVE`], which
//! chooses one of the others. Left out: character sets other than ASCII, packed decimal, and
//! machines whose byte has not eight bits.

mod descriptor;
mod known;
mod leaf;
pub(crate) mod scalar;

pub use scalar::{ByteOrder, Component, FloatFormat, LeafLayout, Scalar, Value};

use crate::error::{Error, Result};

/// The storage of one basic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Width {
    /// Bytes.
    pub size: u8,
    /// Natural alignment, in bytes; for that as a member of a struct see [`LeafLayout::align`].
    pub align: u8,
}

/// How C lays out a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructRule {
    /// Every member at a multiple of its alignment.
    Natural,
    /// AIX: a double aligns to 4 as a member, but a struct whose first member is one aligns as
    /// the double itself would.
    Power,
}

/// What a machine's Fortran compiler makes of the default kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fortran {
    /// INTEGER: 1, 2, 4, 8 or 16 bytes.
    pub integer: Width,
    /// REAL: 4, 8 or 16 bytes.
    pub real: Width,
    /// DOUBLE PRECISION: 8 or 16 bytes.
    pub double_precision: Width,
    /// LOGICAL.
    pub logical: Width,
    /// The image of `.TRUE.`, in the low bits.
    pub truth: u64,
}

/// The data representation of a machine, or of a file or wire format.
///
/// Two are equal if their representations are, whatever their names.
///
/// ```
/// use shipable::{Architecture, Basic};
/// let long = Architecture::WIN64.leaf(Basic::Long.into())?;
/// assert_eq!((long.size, long.align), (4, 4));
/// assert_eq!(Architecture::by_name("amd64")?, Architecture::X86_64);
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    name: &'static str,
    order: ByteOrder,
    char: Width,
    short: Width,
    int: Width,
    long: Width,
    long_long: Width,
    pointer: Width,
    wchar: Width,
    float: Width,
    double: Width,
    long_double: Width,
    long_double_format: FloatFormat,
    bool: Width,
    fortran: Fortran,
    /// The alignment of 16-byte scalars other than long double: INTEGER*16, REAL*16.
    quad_align: u8,
    char_signed: bool,
    rule: StructRule,
}

impl Architecture {
    /// The architecture with this name or alias, in any case; or that of a descriptor.
    ///
    /// # Errors
    /// [`Error::UnknownArchitecture`], which lists the names; [`Error::Descriptor`].
    pub fn by_name(name: &str) -> Result<Architecture> {
        if name.starts_with("e=") {
            return Architecture::from_descriptor(name);
        }
        let wanted = name.to_ascii_lowercase();
        let known = Self::all().iter().map(|a| (a.name, *a));
        known
            .chain(known::ALIASES.iter().copied())
            .find(|&(name, _)| name == wanted)
            .map(|(_, architecture)| architecture)
            .ok_or_else(|| Error::UnknownArchitecture {
                name: name.to_string(),
                known: Self::all().iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
            })
    }

    /// Its name; `described` for one that is known by its descriptor alone.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The order of bytes.
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// A pointer, and so MPI_AINT.
    pub const fn pointer(&self) -> Width {
        self.pointer
    }

    /// C's long double.
    pub const fn long_double(&self) -> (Width, FloatFormat) {
        (self.long_double, self.long_double_format)
    }

    /// What its Fortran compiler makes of the default kinds.
    pub const fn fortran(&self) -> &Fortran {
        &self.fortran
    }

    /// Whether plain char is signed in C. No conversion depends on it.
    pub const fn char_is_signed(&self) -> bool {
        self.char_signed
    }

    /// How C lays out structs.
    pub const fn struct_rule(&self) -> StructRule {
        self.rule
    }

    /// The same machine under a Fortran compiler with other default kinds, such as `-i8` gives.
    ///
    /// # Errors
    /// [`Error::Argument`] where no type has such a size, or true doesn't fit LOGICAL; for
    /// external32 and XDR, which leave nothing to a compiler.
    pub fn with_fortran(self, fortran: Fortran) -> Result<Architecture> {
        let changed = Architecture { fortran, ..self };
        let checked = match [Architecture::EXTERNAL32, Architecture::XDR].contains(&self) {
            true => Err(format!("{self} has kinds of its own: choose a machine's architecture")),
            false => changed.validate(),
        };
        checked.map_err(|problem| Error::Argument {
            call: "Architecture::with_fortran",
            class: crate::error::Class::Arg,
            problem,
        })?;
        Ok(changed)
    }

    /// Whether every basic type has the same bytes at the same places on both.
    pub fn same_representation(&self, other: &Architecture) -> bool {
        self == other
    }

    /// All but the name, the long double's format, the struct rule, and what is true.
    #[inline]
    fn words(&self) -> [u64; 5] {
        // Of each width two bytes: no size or alignment has more than one.
        let pack = |widths: [Width; 4]| {
            widths.iter().fold(0, |word, width| {
                word << 16 | u64::from(width.size) << 8 | u64::from(width.align)
            })
        };
        let Fortran { integer, real, double_precision, logical, .. } = self.fortran;
        let order = Width { size: self.order as u8, align: self.quad_align };
        let sign = u64::from(self.char_signed);
        [
            pack([self.char, self.short, self.int, self.long]),
            pack([self.long_long, self.pointer, self.wchar, self.float]),
            pack([self.double, self.long_double, self.bool, order]),
            pack([integer, real, double_precision, logical]),
            sign,
        ]
    }
}

impl PartialEq for Architecture {
    fn eq(&self, other: &Architecture) -> bool {
        // Every operation asks, mostly of one and the same: words are compared, not fields one by one.
        self.words() == other.words()
            && (self.long_double_format, self.rule) == (other.long_double_format, other.rule)
            && self.fortran.truth == other.fortran.truth
    }
}

impl Eq for Architecture {}

impl std::hash::Hash for Architecture {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.words(), self.long_double_format, self.rule, self.fortran.truth).hash(state);
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
