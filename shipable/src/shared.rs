//! Values that are written where they stay, and shared.
//!
//! `Arc::new` and `push` take their value by value. Unless the value is a few words, it is built on
//! the stack and copied, by loads that are wider than the stores before them, so store forwarding
//! fails (docs/tuning.md, "Building a committed datatype").
#![allow(unsafe_code)]

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;

use smallvec::{Array, SmallVec};
use triomphe::{Arc, UniqueArc};

/// A counted reference to a value that is shared. The last reference frees the value.
///
/// It is an `Arc`, except that its last reference doesn't count down to zero, which takes a locked
/// instruction. Most datatypes have one reference when they are freed (docs/tuning.md, "Freeing the
/// last reference").
pub(crate) struct Counted<T>(ManuallyDrop<Arc<T>>);

impl<T> Counted<T> {
    pub(crate) fn new(value: T) -> Counted<T> {
        UniqueArc::new(value).into()
    }
}

impl<T> From<UniqueArc<T>> for Counted<T> {
    #[inline]
    fn from(complete: UniqueArc<T>) -> Counted<T> {
        Counted(ManuallyDrop::new(complete.shareable()))
    }
}

impl<T> Clone for Counted<T> {
    #[inline]
    fn clone(&self) -> Counted<T> {
        Counted(self.0.clone())
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Counted<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: only this line takes the reference, and nothing uses it after a drop.
        let reference = unsafe { ManuallyDrop::take(&mut self.0) };
        if reference.is_unique() {
            free(reference);
        }
    }
}

/// Drops the value of the last reference, and frees its memory.
#[inline(never)]
fn free<T>(last: Arc<T>) {
    let value = Arc::into_raw(last).cast_mut();
    // SAFETY: no other reference can use the value, or be cloned. `into_raw` returned the pointer,
    // and `MaybeUninit<T>` has the layout of `T`, so `from_raw` restores the reference to the
    // memory. Its count is still 1, so `try_unwrap` frees the memory. It doesn't drop the value
    // again, because a `MaybeUninit` drops nothing.
    unsafe {
        value.drop_in_place();
        let memory = Arc::from_raw(value.cast::<MaybeUninit<T>>());
        drop(Arc::try_unwrap(memory));
    }
}

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    struct Counts<'a>(&'a AtomicUsize);

    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn the_last_reference_drops_the_value_once() {
        let drops = AtomicUsize::new(0);
        let first = Counted::new(Counts(&drops));
        let second = first.clone();
        drop(first);
        assert_eq!(drops.load(Relaxed), 0);
        drop(second);
        assert_eq!(drops.load(Relaxed), 1);
    }

    #[test]
    fn threads_that_drop_references_at_once_drop_the_value_once() {
        const ROUNDS: usize = 100;
        let drops = AtomicUsize::new(0);
        for _ in 0..ROUNDS {
            let first = Counted::new(Counts(&drops));
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    let reference = first.clone();
                    scope.spawn(move || drop(reference.clone()));
                }
                drop(first);
            });
        }
        assert_eq!(drops.load(Relaxed), ROUNDS);
    }
}
