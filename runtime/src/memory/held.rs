//! Memory that is given: what a window can be made over, as it is held until it is given back, and room for an element.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;

use shipable::{Architecture, Committed, Element};

use super::span::{Span, Typed};
use crate::error::Result;
use crate::types::{ElementType, Type};

/// Memory that a window can be made over. It belongs to the window from `create` to `free`, which gives it back. Elements
/// with padding are copied once, since peers may ask for bytes and padding has none.
///
/// A vector or box holds elements in this machine's representation, so a rank that emulates another one takes it of bytes
/// only. A [`Buffer`](crate::Buffer) has the rank's own.
pub trait Memory: sealed::Held + Sized {}

impl<T: Element + Send> Memory for Vec<T> {}
impl<T: Element + Send> Memory for Box<[T]> {}

/// The elements of memory that is all of one Rust type.
pub enum Elements {
    /// In the machine's representation.
    Slice {
        /// How many.
        count: u64,
        /// Of which type.
        element: ElementType,
    },
    /// In the rank's.
    Typed {
        /// How many.
        count: i64,
        /// Of which type.
        datatype: Type,
    },
}

/// What `Memory` needs of a type, out of users' sight.
pub(crate) mod sealed {
    use super::*;

    pub trait Held {
        /// Owns the memory without minding that others write it through pointers, as a box would.
        type Held: Any + Send;
        /// The memory, each byte of which has been written: peers can read every one.
        fn hold(self) -> Result<Self::Held>;
        fn give_back(held: Self::Held) -> Self;
        fn place(held: &mut Self::Held) -> Place;
        /// All that there is, as elements.
        fn elements(&self) -> Elements;
        /// The size of an element that is in the machine's representation; `None` where memory has the rank's.
        fn native_element() -> Option<usize>;
        /// Whether nobody has another way to it while it is held, so that its bytes may lie elsewhere.
        fn is_enclosed() -> bool {
            true
        }
    }

    /// A [`Span`], out of users' sight.
    pub struct Place(pub(crate) Span);

    impl<T: Element + Send> Held for Vec<T> {
        fn elements(&self) -> Elements {
            Elements::Slice { count: self.len() as u64, element: ElementType::of::<T>() }
        }
        type Held = Vec<T>;
        fn hold(self) -> Result<Vec<T>> {
            without_padding(self)
        }
        fn give_back(held: Vec<T>) -> Vec<T> {
            held
        }
        fn place(held: &mut Vec<T>) -> Place {
            Place(Span::of(held.as_mut_ptr(), held.len()))
        }
        fn native_element() -> Option<usize> {
            Some(size_of::<T>())
        }
    }

    impl<T: Element + Send> Held for Box<[T]> {
        fn elements(&self) -> Elements {
            Elements::Slice { count: self.len() as u64, element: ElementType::of::<T>() }
        }
        type Held = Vec<T>;
        fn hold(self) -> Result<Vec<T>> {
            without_padding(self.into_vec())
        }
        fn give_back(held: Vec<T>) -> Box<[T]> {
            held.into_boxed_slice()
        }
        fn place(held: &mut Vec<T>) -> Place {
            Vec::place(held)
        }
        fn native_element() -> Option<usize> {
            Vec::<T>::native_element()
        }
    }
}

/// The same elements where every byte has been written: padding between members is zero. Elements without padding stay where
/// they are.
fn without_padding<T: Element>(elements: Vec<T>) -> Result<Vec<T>> {
    let committed = Committed::new(&T::datatype(), &Architecture::NATIVE)?;
    let program = committed.native();
    if program.stream_size() == size_of::<T>() as u64 {
        return Ok(elements);
    }
    let count = elements.len();
    let mut clean = Vec::<T>::with_capacity(count);
    // SAFETY: the capacity is there, and every bit pattern is a value of an `Element`.
    unsafe {
        clean.as_mut_ptr().write_bytes(0, count);
        clean.set_len(count);
    }
    let typed =
        |start: *mut T| Typed { program, count: count as u64, span: Span::of(start, count) };
    Span::copy(typed(elements.as_ptr().cast_mut()), typed(clean.as_mut_ptr()))?;
    Ok(clean)
}

/// Room for an element of any type, zero at first.
#[derive(Default)]
pub(crate) struct Room(UnsafeCell<[u128; 2]>);

// SAFETY: its bytes are reached by spans alone, as the module's rules say.
unsafe impl Sync for Room {}

impl Room {
    /// The memory of an element of this type.
    pub(crate) fn span<T: Element>(&self) -> Span {
        const { assert!(size_of::<T>() <= size_of::<Room>()) };
        Span::of(self.0.get().cast::<T>(), 1)
    }
}
