//! A module in place of the crate can't accept a field that is no element: the trait checks the
//! fields, and not the functions that stand beside it in that module.
#![forbid(unsafe_code)]

use shipable::Shipable;

mod lenient {
    pub(crate) use shipable::{Datatype, Element};

    pub(crate) mod element {
        use shipable::Datatype;

        pub(crate) struct Member;

        impl Member {
            pub(crate) fn of<T>(_: usize) -> Member {
                Member
            }
        }

        pub(crate) fn structure<T>(_: &[Member]) -> Datatype {
            Datatype::contiguous(size_of::<T>() as i64, &Datatype::byte()).unwrap()
        }

        pub(crate) fn simple_structure<T>(_: &[Member]) -> Option<Datatype> {
            None
        }
    }

    /// A method of the name that the macro calls, on every type.
    pub(crate) trait Fields: Sized {
        fn field<T>(self, _: usize) -> Self {
            self
        }

        fn structure<T>(_: T) -> Datatype {
            Datatype::byte()
        }
    }

    impl<T> Fields for T {}
}

#[allow(unused_imports)]
use lenient::Fields as _;

type Name = &'static str;

#[derive(Clone, Copy, Shipable)]
#[repr(C)]
#[shipable(crate = lenient)]
struct Person {
    name: Name,
}

fn main() {}
