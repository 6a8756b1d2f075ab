//! Shared values that are written where they stay.
//!
//! `Arc::new` takes its value by value. Unless the value is a few words, it is built on the stack
//! and copied, by loads that are wider than the stores before them, so store forwarding fails
//! (docs/tuning.md, "Building a committed datatype").
#![allow(unsafe_code)]

use triomphe::UniqueArc;

/// Allocates memory, and writes the value that `make` returns there. It can be shared once it is
/// complete.
#[inline(always)]
pub(crate) fn place<T>(make: impl FnOnce() -> T) -> UniqueArc<T> {
    let mut place = UniqueArc::new_uninit();
    place.write(make());
    // SAFETY: the line before has initialised it.
    unsafe { UniqueArc::assume_init(place) }
}
