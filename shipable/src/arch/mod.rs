//! Architectures: how one machine represents each basic type, as a value.
//!
//! Nothing here depends on the machine that runs it, except that [`Architecture::NATIVE`] selects
//! one of the others. Left out: character sets other than ASCII, packed decimal, and machines whose
//! byte hasn't eight bits.

mod descriptor;
mod known;
mod leaf;

pub use crate::scalar::{ByteOrder, Component, FloatFormat, LeafLayout, Scalar, Value};

use crate::error::{Error, Result};

/// The storage of one basic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Width {
    /// The size in bytes.
    pub size: u8,
    /// The natural alignment in bytes. For the alignment as a member of a struct, see
    /// [`LeafLayout::align`].
    pub align: u8,
}

/// The storage of a type of one scalar. Both alignments are powers of two, and the natural one
/// divides the size.
#[derive(Clone, Copy)]
pub(crate) struct ScalarWidth {
    pub width: Width,
    /// The alignment as a member of a struct: see [`LeafLayout::align`].
    pub align: u8,
}

/// The layout rule of C structs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StructRule {
    /// Each member lies at a multiple of its natural alignment.
    Natural,
    /// AIX: a double member has alignment 4, but a struct whose first member is a double has the
    /// double's natural alignment.
    Power,
}

/// The default kinds of a machine's Fortran compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fortran {
    /// INTEGER: 1, 2, 4, 8 or 16 bytes.
    pub integer: Width,
    /// REAL: 4, 8 or 16 bytes.
    pub real: Width,
    /// DOUBLE PRECISION: 8 or 16 bytes.
    pub double_precision: Width,
    /// LOGICAL: 1, 2, 4, 8 or 16 bytes.
    pub logical: Width,
    /// The representation of `.TRUE.`, in the low bits.
    pub truth: u64,
}

/// The data representation of a machine, or of a file or wire format.
///
/// Two architectures are equal if their representations are equal. Names don't count.
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
    /// The alignment of 16-byte scalars other than long double, such as INTEGER*16 and REAL*16.
    quad_align: u8,
    char_signed: bool,
    rule: StructRule,
}

impl Architecture {
    /// The architecture with this name or alias, in any case, or with this descriptor.
    ///
    /// # Errors
    /// [`Error::UnknownArchitecture`] lists the known names; [`Error::Descriptor`] for an invalid
    /// descriptor.
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

    /// The name. It is `described` if the architecture has only a descriptor.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The byte order.
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// The storage of a pointer, and of `MPI_AINT`.
    pub const fn pointer(&self) -> Width {
        self.pointer
    }

    /// The storage and the format of C's long double.
    pub const fn long_double(&self) -> (Width, FloatFormat) {
        (self.long_double, self.long_double_format)
    }

    /// The default kinds of its Fortran compiler.
    pub const fn fortran(&self) -> &Fortran {
        &self.fortran
    }

    /// Whether C's plain char is signed. Conversions don't depend on it.
    pub const fn char_is_signed(&self) -> bool {
        self.char_signed
    }

    /// The layout rule of C structs.
    pub const fn struct_rule(&self) -> StructRule {
        self.rule
    }

    /// This machine with other default Fortran kinds, such as a compiler's option `-i8` selects.
    ///
    /// # Errors
    /// [`Error::Argument`] if no type has such a size, if `.TRUE.` doesn't fit LOGICAL, or if this
    /// is external32 or XDR, whose kinds are fixed.
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

    /// Whether each basic type has the same bytes at the same offsets on both.
    #[inline]
    pub fn same_representation(&self, other: &Architecture) -> bool {
        self == other
    }

    /// The name of the representation for messages: that of a known architecture, otherwise the
    /// descriptor.
    ///
    /// ```
    /// use shipable::Architecture;
    /// let described = Architecture::from_descriptor(&Architecture::S390X.descriptor())?;
    /// assert_eq!(described.label(), "s390x");
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn label(&self) -> String {
        let known = Self::all().iter().find(|known| known.same_representation(self));
        known.map_or_else(|| self.descriptor(), |known| known.name.to_owned())
    }

    /// All widths, the byte order and the sign of char, packed for a fast comparison.
    #[inline]
    fn words(&self) -> [u64; 5] {
        // Two bytes for each width: every size and alignment is below 256.
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
    #[inline]
    fn eq(&self, other: &Architecture) -> bool {
        // Every operation compares architectures, mostly equal ones: comparing words is faster than
        // comparing single fields.
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

/// [`Architecture::by_name`].
///
/// ```
/// use shipable::Architecture;
/// assert_eq!("s390x".parse::<Architecture>()?, Architecture::S390X);
/// assert!("s391x".parse::<Architecture>().is_err());
/// # Ok::<(), shipable::Error>(())
/// ```
impl std::str::FromStr for Architecture {
    type Err = Error;

    fn from_str(name: &str) -> Result<Architecture> {
        Architecture::by_name(name)
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
