//! Values that are written where they stay.
//!
//! `Arc::new` and `push` take their value by value. Unless the value is a few words, it is built on
//! the stack and copied, by loads that are wider than the stores before them, so store forwarding
//! fails (docs/tuning.md, "Building a committed datatype").
#![allow(unsafe_code)]

use smallvec::{Array, SmallVec};
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

/// Appends the item that `make` returns.
#[inline(always)]
pub(crate) fn push_with<A: Array>(list: &mut SmallVec<A>, make: impl FnOnce() -> A::Item) {
    let end = list.len();
    if end == list.capacity() {
        list.reserve(1);
    }
    // SAFETY: there is room for an item at `end`, which the list counts once it is written.
    unsafe {
        list.as_mut_ptr().add(end).write(make());
        list.set_len(end + 1);
    }
}
