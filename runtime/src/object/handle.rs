//! Handles: numbers that refer to types.

use shipable::basic::Basic;

/// A handle of a type. The numbers of freed handles aren't reused.
///
/// ```
/// use longshore::{handle::Handle, shipable::Basic};
///
/// assert_ne!(Handle::predefined(Basic::Double), Handle::NULL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub(crate) u64);

/// The bit that is set in handles of predefined types. The other bits are the type's wire code.
const PREDEFINED: u64 = 1 << 63;

impl Handle {
    /// Refers to no type: MPI_DATATYPE_NULL.
    pub const NULL: Handle = Handle(0);

    /// The handle of a predefined type, valid at every rank. The type is committed and can't be
    /// freed.
    pub const fn predefined(basic: Basic) -> Handle {
        Handle(PREDEFINED | basic.wire() as u64)
    }

    pub(crate) fn as_predefined(self) -> Option<Basic> {
        let code = u8::try_from(self.0 ^ PREDEFINED).ok()?;
        Basic::from_wire(code)
    }
}
