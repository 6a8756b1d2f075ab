//! Memory that users give away: the types that a window can be made over, and room for an element.
#![allow(unsafe_code)]

use std::any::Any;
use std::cell::UnsafeCell;

use shipable::{Architecture, Committed, Element};

use super::span::{Span, Typed};
use crate::error::Result;
use crate::types::{ElementType, Type};

/// Memory that a window can be made over. It belongs to the window from `create` to `free`, which
/// returns it.
///
/// A `Vec` or `Box` holds elements in this machine's representation. A rank that emulates another
/// architecture therefore takes only bytes in them. A [`Buffer`](crate::Buffer) holds elements in
/// the rank's own representation.
///
/// Elements with padding are copied once: peers may read every byte, and padding bytes are
/// uninitialized.
pub trait Memory: sealed::Held + Sized {}

impl<T: Element + Send> Memory for Vec<T> {}
impl<T: Element + Send> Memory for Box<[T]> {}

/// The elements of memory that holds only elements of one Rust type.
pub enum Elements {
    /// Elements in the machine's representation.
    Slice {
        /// The number of elements.
        count: u64,
        /// Their Rust type.
        element: ElementType,
    },
    /// Elements in the rank's representation.
    Typed {
        /// The number of elements.
        count: i64,
        /// Their datatype.
        datatype: Type,
    },
}

/// The methods that `Memory` needs of a type, hidden from users.
pub(crate) mod sealed {
    use super::*;

    pub trait Held {
        /// The memory's owner while the window has it. Unlike a `Box`, it allows others to write
        /// the memory through pointers.
        type Held: Any + Send;
        /// Takes the memory over, with every byte initialized: peers can read all of them.
        fn hold(self) -> Result<Self::Held>;
        fn give_back(held: Self::Held) -> Self;
        fn span_of(held: &mut Self::Held) -> HeldSpan;
        /// All of the memory, as elements.
        fn elements(&self) -> Elements;
        /// The size of an element in the machine's representation; `None` for memory in the rank's
        /// representation.
        fn native_element() -> Option<usize>;
        /// Whether only the owner can reach the memory while it is held, so that its bytes may be
        /// moved.
        fn is_enclosed() -> bool {
            true
        }
        /// The span of memory that the program has promised to keep until the end of its request;
        /// otherwise the memory, which a request has to hold.
        fn promised(self) -> std::result::Result<HeldSpan, Self>
        where
            Self: Sized,
        {
            Err(self)
        }
        /// The memory of a span that was [promised](Held::promised).
        fn of_promised(_span: HeldSpan) -> Option<Self>
        where
            Self: Sized,
        {
            None
        }
    }

    /// A [`Span`], hidden from users.
    pub struct HeldSpan(pub(crate) Span);

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
        fn span_of(held: &mut Vec<T>) -> HeldSpan {
            HeldSpan(Span::of(held.as_mut_ptr(), held.len()))
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
        fn span_of(held: &mut Vec<T>) -> HeldSpan {
            Vec::span_of(held)
        }
        fn native_element() -> Option<usize> {
            Vec::<T>::native_element()
        }
    }
}

/// Initializes every byte: padding between members becomes zero. Elements without padding stay in
/// place, others are copied.
fn without_padding<T: Element>(elements: Vec<T>) -> Result<Vec<T>> {
    let committed = Committed::new(&T::datatype(), &Architecture::NATIVE)?;
    let program = committed.native();
    if program.stream_size() == size_of::<T>() as u64 {
        return Ok(elements);
    }
    let count = elements.len();
    let mut clean = Vec::<T>::with_capacity(count);
    // SAFETY: the vector has this capacity, and every bit pattern is a value of an `Element`.
    unsafe {
        clean.as_mut_ptr().write_bytes(0, count);
        clean.set_len(count);
    }
    let typed =
        |start: *mut T| Typed { program, count: count as u64, span: Span::of(start, count) };
    Span::copy(typed(elements.as_ptr().cast_mut()), typed(clean.as_mut_ptr()), true)?;
    Ok(clean)
}

/// Room for one element of any predefined type, zero at first.
#[derive(Default)]
pub(crate) struct Room(UnsafeCell<[u128; 2]>);

// SAFETY: its bytes are accessed only through spans, by the rules in the module's header.
unsafe impl Sync for Room {}

impl Room {
    /// The room as memory of one element of this type. `None` for an element that is larger than
    /// any predefined type.
    pub(crate) fn span<T: Element>(&self) -> Option<Span> {
        let fits = size_of::<T>() <= size_of::<Room>();
        fits.then(|| Span::of(self.0.get().cast::<T>(), 1))
    }
}
