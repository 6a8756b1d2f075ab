//! Enums as elements. Received bytes may be no variant's number, so the element is the number, and
//! it is checked when the variant is read.

use std::fmt;

use super::{Block, Element};
use crate::datatype::Datatype;
use crate::error::{Error, Result};

/// An enum without fields, whose variants are numbers of a fixed width.
///
/// `#[derive(Shipable)]` implements it for an enum with `#[repr(u8)]` or another integer from `i8`
/// to `u64`. The enum itself is no element, since received bytes may not be a variant. Its element
/// is [`Enum`].
pub trait Enumeration: Copy + 'static {
    /// The integer that stands for a variant in memory. Its datatype is that of the element.
    type Number: Element + PartialEq + fmt::Debug;

    /// The enum's name, for errors.
    const NAME: &'static str;

    /// All variants, with their names.
    const VARIANTS: &'static [(Self, &'static str)];

    /// The number of a variant.
    fn number(self) -> Self::Number;
}

/// A variant of an [`Enumeration`] as its number, which makes it an element. The number is checked
/// by [`Enum::get`], so any received bytes are a valid value of this type.
///
/// ```
/// use shipable::{Datatype, Element, Enum, Shipable};
///
/// #[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
/// #[repr(u8)]
/// enum Valve {
///     #[default]
///     Closed = 1,
///     Open = 4,
/// }
///
/// #[derive(Clone, Copy, Debug, Default, Shipable)]
/// #[repr(C)]
/// struct Reading {
///     litres: f64,
///     valve: Enum<Valve>,
/// }
///
/// let reading = Reading { litres: 0.5, valve: Valve::Open.into() };
/// assert_eq!(reading.valve.get()?, Valve::Open);
/// assert_eq!(Reading::simple().unwrap().to_string(), "U1(SS:2:d/1,u8/1)");
/// // A number from another process, which may have another version of the enum.
/// let unknown = Enum::<Valve>::from_number(7);
/// assert_eq!(
///     unknown.get().unwrap_err().to_string(),
///     "7 is no Valve, whose numbers are 1 (Closed), 4 (Open): build all programs of the job with \
///      the same enum, and write each element before it is read"
/// );
/// # Ok::<(), shipable::Error>(())
/// ```
#[repr(transparent)]
pub struct Enum<E: Enumeration>(E::Number);

impl<E: Enumeration> Enum<E> {
    /// The element with this number, whether or not a variant has it.
    pub fn from_number(number: E::Number) -> Enum<E> {
        Enum(number)
    }

    /// The number as it was received.
    pub fn number(self) -> E::Number {
        self.0
    }

    /// The variant with this number.
    ///
    /// # Errors
    /// CONVERSION if no variant has it. Zeroed memory holds 0, which need not be a variant.
    pub fn get(self) -> Result<E> {
        self.variant().map(|(variant, _)| variant).ok_or_else(|| self.refusal())
    }

    fn variant(self) -> Option<(E, &'static str)> {
        E::VARIANTS.iter().copied().find(|(variant, _)| variant.number() == self.0)
    }

    #[cold]
    fn refusal(self) -> Error {
        let known = E::VARIANTS.iter().map(|(it, name)| format!("{:?} ({name})", it.number()));
        Error::NoVariant {
            number: format!("{:?}", self.0),
            name: E::NAME,
            known: known.collect::<Vec<_>>().join(", "),
        }
    }
}

impl<E: Enumeration> From<E> for Enum<E> {
    fn from(variant: E) -> Enum<E> {
        Enum(variant.number())
    }
}

// Derives would require the traits of `E` instead of its number.
impl<E: Enumeration> Copy for Enum<E> {}

impl<E: Enumeration> Clone for Enum<E> {
    fn clone(&self) -> Enum<E> {
        *self
    }
}

impl<E: Enumeration> PartialEq for Enum<E> {
    fn eq(&self, other: &Enum<E>) -> bool {
        self.0 == other.0
    }
}

impl<E: Enumeration<Number: Eq>> Eq for Enum<E> {}

impl<E: Enumeration + Default> Default for Enum<E> {
    fn default() -> Enum<E> {
        E::default().into()
    }
}

/// The variant's name, or a number that no variant has.
impl<E: Enumeration> fmt::Debug for Enum<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variant() {
            Some((_, name)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

// SAFETY: the type is a transparent wrapper of its number, which is an element: any bytes are a
// valid number, and the datatype is the number's.
unsafe impl<E: Enumeration> Element for Enum<E> {
    fn datatype() -> Datatype {
        E::Number::datatype()
    }

    fn simple() -> Option<Datatype> {
        E::Number::simple()
    }

    fn block() -> Block {
        E::Number::block()
    }
}
