//! [`Handle`]: the value that programs have for an object.

/// The value that a program has for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Handle(usize);

/// Handles below are predefined.
pub const PREDEFINED: usize = 4096;

impl Handle {
    /// A predefined handle, by its number in the ABI, or the address of a slot.
    pub const fn predefined(number: usize) -> Handle {
        Handle(number)
    }

    /// Its number.
    #[inline]
    pub const fn number(self) -> usize {
        self.0
    }

    /// Whether it is predefined.
    #[inline]
    pub fn is_predefined(self) -> bool {
        self.0 < PREDEFINED
    }
}
