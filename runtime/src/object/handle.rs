//! The numbers by which types can be named.

use shipable::basic::Basic;

/// Names a type. Numbers aren't used again.
///
/// ```
/// use longshore::{handle::Handle, shipable::Basic};
///
/// assert_ne!(Handle::predefined(Basic::Double), Handle::NULL);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub(crate) u64);

/// Set in handles of predefined types; the rest is the type's wire code.
const PREDEFINED: u64 = 1 << 63;

impl Handle {
    /// Names none: MPI_DATATYPE_NULL.
    pub const NULL: Handle = Handle(0);

    /// The handle of a predefined type, at every rank: it is committed, and can't be freed.
    pub const fn predefined(basic: Basic) -> Handle {
        Handle(PREDEFINED | basic.wire() as u64)
    }

    pub(crate) fn as_predefined(self) -> Option<Basic> {
        let code = u8::try_from(self.0 ^ PREDEFINED).ok()?;
        Basic::from_wire(code)
    }
}
