//! Elements: Rust types that have a datatype, so that slices of them can be shipped.
//!
//! Elements are Rust's fixed-width numbers, arrays and tuples of elements, the types of
//! [`crate::c`] and [`crate::fortran`], structs with `#[derive(Shipable)]`, and [`Enum`] of an enum
//! with it.
#![allow(unsafe_code)]

pub mod c;
mod data;
mod enumeration;
pub mod fortran;
#[cfg(feature = "half")]
mod half;
mod structure;

use std::marker::PhantomData;

use crate::arch::Architecture;
use crate::committed::Committed;
use crate::datatype::Datatype;
use crate::memory::{View, ViewMut};
pub use data::Data;
#[doc(hidden)]
pub use data::{Borrower, BorrowerMut};
pub use enumeration::{Enum, Enumeration};
use structure::NESTING;
#[doc(hidden)]
pub use structure::{Block, Members};

/// A Rust type with a datatype in the native representation.
///
/// A Rust number has a fixed width, so it maps to a fixed-width type of MPI: `i32` is
/// `MPI_INT32_T`, which doesn't match `MPI_INT`.
///
/// | Rust | MPI | [notation](crate::notation) |
/// |---|---|---|
/// | `i8`, `i16`, `i32`, `i64` | `MPI_INT8_T` to `MPI_INT64_T` | `i8`, `i16`, `i32`, `i64` |
/// | `u8`, `u16`, `u32`, `u64` | `MPI_UINT8_T` to `MPI_UINT64_T` | `u8`, `u16`, `u32`, `u64` |
/// | `f32`, `f64` | `MPI_FLOAT`, `MPI_DOUBLE` | `f`, `d` |
/// | `half::f16`, `half::bf16`, with the feature `half` | `MPIX_C_FLOAT16`, `MPIX_BFLOAT16` | `f16`, `bf16` |
/// | [`c::Int`], [`c::Unsigned`] | `MPI_INT`, `MPI_UNSIGNED` | `i`, `u` |
/// | [`c::Short`], [`c::Long`] | `MPI_SHORT`, `MPI_LONG` | `s`, `l` |
/// | [`c::Char`], [`c::Byte`], [`c::Bool`] | `MPI_CHAR`, `MPI_BYTE`, `MPI_C_BOOL` | `c`, `b`, `B` |
/// | [`fortran::Integer`], [`fortran::Real`] | `MPI_INTEGER`, `MPI_REAL` | `I`, `R` |
/// | [`fortran::DoublePrecision`] | `MPI_DOUBLE_PRECISION` | `D` |
/// | [`c::DoubleInt`], [`c::TwoInt`], [`fortran::TwoReal`] | `MPI_DOUBLE_INT`, `MPI_2INT`, `MPI_2REAL` | `di`, `ii`, `P2R` |
/// | `[T; 3]` | three elements of `T`'s type | `U1(3d)` |
/// | a struct with `#[derive(Shipable)]` | a struct | `U1(S:2:c/1/0,d/1/8)` |
/// | [`Enum<T>`](Enum) of an enum `T` with `#[derive(Shipable)]` | the integer of its `repr` | `u8` |
///
/// ```
/// use shipable::{Element, Shipable, c};
///
/// #[derive(Clone, Copy, Shipable)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     species: i16,
///     frozen: c::Bool,
/// }
///
/// assert_eq!(Particle::datatype().to_string(), "U1(S:3:d/3/0,i16/1/24,B/1/26)");
/// // C lays out its fields at these offsets on every machine, so it has a portable type too.
/// assert_eq!(Particle::simple().unwrap().to_string(), "U1(SS:3:d/3,i16/1,B/1)");
/// ```
///
/// Fields can be structs, arrays and tuples of elements. A struct can be generic over its elements:
///
/// ```
/// # use shipable::{Element, Shipable};
/// #[derive(Clone, Copy, Shipable)]
/// #[repr(C)]
/// struct Grid<T, const N: usize> {
///     origin: (f64, f64),
///     cells: [[T; N]; 2],
/// }
///
/// assert_eq!(Grid::<f32, 3>::datatype().to_string(), "U1(S:2:U2(S:2:d/1/0,d/1/8)/1/0,f/6/16)");
/// ```
///
/// A type that can't be shipped is a compile error with a message that names an alternative. The
/// compiler checks types behind aliases, and that elements are `Copy`:
///
/// ```compile_fail
/// # use shipable::Shipable;
/// type Hidden = usize;
/// #[derive(Clone, Copy, Shipable)]
/// #[repr(C)]
/// struct Aliased { length: Hidden } // no Element, whatever its name
/// ```
/// ```compile_fail
/// # use shipable::Shipable;
/// #[derive(Shipable)]
/// #[repr(C)]
/// struct Moved { a: u8 } // elements are Copy
/// ```
/// ```compile_fail
/// # use shipable::Shipable;
/// #[derive(Clone, Copy, Shipable)]
/// #[repr(C)]
/// struct Inner { value: Outside } // not an element
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Outside { value: u8 }
/// ```
///
/// # Safety
///
/// - Any bytes in place of the bytes that the datatype covers must be a valid value of the type.
/// - The type has no interior mutability.
/// - On [`Architecture::NATIVE`](crate::Architecture::NATIVE), the datatype's items lie inside of
///   the type, its lower bound is 0, and its extent is the type's size.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be shipped: it is no element",
    label = "not an element",
    note = "elements are numbers of fixed width, arrays and tuples of elements, the types of \
            `shipable::c` and `shipable::fortran`, structs with #[derive(Shipable)], and \
            `Enum<T>` for an enum T with #[derive(Shipable)]"
)]
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The datatype of one element in native memory. The datatype of a struct has byte
    /// displacements, so it is locale-specific.
    fn datatype() -> Datatype;

    /// A portable datatype with the same items at the same offsets in native memory, if there is
    /// one.
    fn simple() -> Option<Datatype>;

    /// The names of a derived struct's fields, in order, with those of their own fields in
    /// parentheses: `tag,corner(x,y)`. Empty for every other element. `longshore inspect --names`
    /// takes them.
    ///
    /// ```
    /// # use shipable::{Element, Shipable};
    /// #[derive(Clone, Copy, Shipable)]
    /// #[repr(C)]
    /// struct Point { x: f64, y: f64 }
    ///
    /// #[derive(Clone, Copy, Shipable)]
    /// #[repr(C)]
    /// struct Shape { tag: u8, corners: [Point; 3] }
    ///
    /// println!("longshore inspect '{}' --names '{}'", Shape::datatype(), Shape::field_names());
    /// assert_eq!(Shape::field_names(), "tag,corners(x,y)");
    /// ```
    fn field_names() -> String {
        String::new()
    }

    /// The names of the basic items, by which an error names the field of an item: the lengths
    /// of arrays, then the fields in parentheses, or the number of items if that isn't 1. The
    /// fields of tuples are numbers.
    ///
    /// ```
    /// # use shipable::{Element, Shipable, c};
    /// #[derive(Clone, Copy, Shipable)]
    /// #[repr(C)]
    /// struct Shape { tag: u8, corners: [(f64, f64); 3], grid: [[i32; 4]; 2], widest: c::DoubleInt }
    ///
    /// assert_eq!(Shape::item_names(), "(tag,corners*3(0,1),grid*2*4,widest:2)");
    /// ```
    fn item_names() -> String {
        let program = Committed::new(&Self::datatype(), &Architecture::NATIVE);
        match program.map(|committed| committed.native().items()) {
            Ok(1) | Err(_) => String::new(),
            Ok(items) => format!(":{items}"),
        }
    }

    /// The type as a block of simpler elements: an array is a block of its elements.
    #[doc(hidden)]
    fn block() -> Block {
        Block { length: 1, datatype: Self::datatype(), simple: Self::simple() }
    }

    /// Lends one element, or the elements of an array.
    #[doc(hidden)]
    #[inline]
    fn lend_elements<'a, B: Borrower<'a>>(this: &'a Self, to: B) -> B::Outcome {
        to.borrow(std::slice::from_ref(this))
    }

    /// Lends one element, or the elements of an array, to be written.
    #[doc(hidden)]
    #[inline]
    fn lend_elements_mut<'a, B: BorrowerMut<'a>>(this: &'a mut Self, to: B) -> B::Outcome {
        to.borrow(std::slice::from_mut(this))
    }

    /// The datatype of a struct with these fields at their offsets. Its extent is the struct's
    /// size.
    ///
    /// The derive macro calls this method and [`Element::simple_structure`] as items of the trait
    /// that it implements. A path of a function would resolve to whatever the path that the user
    /// gives the macro contains, so another function could accept any field.
    ///
    /// # Panics
    /// If Rust types nest deeper than [`Datatype::MAX_DEPTH`].
    #[doc(hidden)]
    fn structure(fields: impl FnOnce(Members) -> Members) -> Datatype {
        fields(Members::new()).structure(size_of::<Self>() as i64)
    }

    /// The text of [`Element::field_names`] for fields of these names.
    #[doc(hidden)]
    fn names_of(names: &[&str], fields: impl FnOnce(Members) -> Members) -> String {
        fields(Members::new()).names(names)
    }

    /// The text of [`Element::item_names`] for fields of these names.
    #[doc(hidden)]
    fn items_of(names: &[&str], fields: impl FnOnce(Members) -> Members) -> String {
        fields(Members::new()).item_names(names)
    }

    /// The simple struct with the layout of a struct with these fields, if there is one.
    ///
    /// # Panics
    /// If Rust types nest deeper than [`Datatype::MAX_DEPTH`].
    #[doc(hidden)]
    fn simple_structure(fields: impl FnOnce(Members) -> Members) -> Option<Datatype> {
        fields(Members::new()).simple_structure(size_of::<Self>() as i64)
    }
}

/// A view of a slice's memory, padding included, for programs of its datatype.
///
/// # Safety
///
/// Only the bytes that [`Element::datatype`] or [`Element::simple`] covers may be read: the padding
/// of a struct may be uninitialised.
pub unsafe fn view<T: Element>(elements: &[T]) -> View<'_> {
    // SAFETY: the slice's memory is readable for its lifetime, except for padding, which the caller
    // doesn't read.
    unsafe { View::from_raw(elements.as_ptr().cast(), size_of_val(elements) as u64) }
}

/// A view of a slice's memory for programs of its datatype that write it.
///
/// # Safety
///
/// Only the bytes that [`Element::datatype`] or [`Element::simple`] covers may be read: the padding
/// of a struct may be uninitialised. Any bytes may be written.
pub unsafe fn view_mut<T: Element>(elements: &mut [T]) -> ViewMut<'_> {
    let len = size_of_val(elements) as u64;
    // SAFETY: the slice is exclusively borrowed for the view's lifetime, and any bytes are a valid
    // value; the caller doesn't read padding.
    unsafe { ViewMut::from_raw(elements.as_mut_ptr().cast(), len) }
}

/// Implements `Element` for types that one predefined datatype describes.
macro_rules! basic {
    ($($(#[$doc:meta])* $ty:ty => $basic:ident;)*) => {
        $(
            const _: () = {
                // The predefined type's size and alignment must be the Rust type's.
                let width = $crate::Architecture::NATIVE.width_of($crate::Basic::$basic);
                assert!(size_of::<$ty>() == width.size as usize);
                assert!(align_of::<$ty>() == width.align as usize);
            };

            // SAFETY: any bytes are a valid value; size and alignment are asserted above.
            unsafe impl $crate::Element for $ty {
                fn datatype() -> $crate::Datatype {
                    $crate::Datatype::basic($crate::Basic::$basic)
                }

                #[inline]
                fn simple() -> Option<$crate::Datatype> {
                    Some(<Self as $crate::Element>::datatype())
                }
            }
        )*
    };
}
use basic;

basic! {
    i8 => Int8;
    i16 => Int16;
    i32 => Int32;
    i64 => Int64;
    u8 => Uint8;
    u16 => Uint16;
    u32 => Uint32;
    u64 => Uint64;
    f32 => Float;
    f64 => Double;
}

// SAFETY: an array's elements follow each other without gaps, like those of a contiguous type whose
// child's extent is its size.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    fn datatype() -> Datatype {
        let Block { length, datatype, .. } = Self::block();
        Datatype::contiguous(length, &datatype).expect(NESTING)
    }

    fn simple() -> Option<Datatype> {
        let Block { length, simple, .. } = Self::block();
        simple.map(|simple| Datatype::contiguous(length, &simple).expect(NESTING))
    }

    fn field_names() -> String {
        T::field_names()
    }

    fn item_names() -> String {
        format!("*{N}{}", T::item_names())
    }

    fn block() -> Block {
        let inner = T::block();
        Block { length: inner.length * N as i64, ..inner }
    }

    #[inline]
    fn lend_elements<'a, B: Borrower<'a>>(this: &'a Self, to: B) -> B::Outcome {
        to.borrow(this.as_slice())
    }

    #[inline]
    fn lend_elements_mut<'a, B: BorrowerMut<'a>>(this: &'a mut Self, to: B) -> B::Outcome {
        to.borrow(this.as_mut_slice())
    }
}

// SAFETY: the type has no bytes, and the datatype no items.
unsafe impl<T: Copy + Send + Sync + 'static> Element for PhantomData<T> {
    fn datatype() -> Datatype {
        Self::structure(|none| none)
    }

    fn simple() -> Option<Datatype> {
        Self::simple_structure(|none| none)
    }
}

macro_rules! tuples {
    ($(($($field:tt $name:ident),+);)*) => {
        $(
            // SAFETY: every field is an element, and the compiler computes the offsets.
            unsafe impl<$($name: Element),+> Element for ($($name,)+) {
                fn datatype() -> Datatype {
                    Self::structure(|fields| {
                        fields$(.field::<$name>(std::mem::offset_of!(Self, $field)))+
                    })
                }

                /// Always `None`: the compiler may lay out a tuple differently in each build.
                fn simple() -> Option<Datatype> {
                    None
                }

                fn item_names() -> String {
                    Self::items_of(&[$(stringify!($field)),+], |fields| {
                        fields$(.field::<$name>(std::mem::offset_of!(Self, $field)))+
                    })
                }
            }
        )*
    };
}

tuples! {
    (0 A);
    (0 A, 1 B);
    (0 A, 1 B, 2 C);
    (0 A, 1 B, 2 C, 3 D);
    (0 A, 1 B, 2 C, 3 D, 4 E);
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F);
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G);
    (0 A, 1 B, 2 C, 3 D, 4 E, 5 F, 6 G, 7 H);
}
