//! Data that a call can borrow as a slice of elements.

use super::Element;

/// One element, an array, a slice or a vector of elements.
///
/// ```
/// use shipable::{Data, c};
///
/// fn is_data(_: &(impl Data + ?Sized)) {}
/// is_data(&1.5);
/// is_data(&c::Int(7));
/// is_data(&[1u8, 2, 3]);
/// is_data(&[1u8, 2, 3][..1]);
/// is_data(&vec![(1i32, 2.5); 9]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be shipped: it is no element, nor an array, slice or vector of elements",
    label = "not data",
    note = "elements are numbers of fixed width, arrays and tuples of elements, the types of \
            `shipable::c` and `shipable::fortran`, structs with #[derive(Shipable)], and \
            `Enum<T>` for an enum T with #[derive(Shipable)]"
)]
pub trait Data {
    /// Lends the data as a slice.
    #[doc(hidden)]
    fn lend<'a, B: Borrower<'a>>(&'a self, to: B) -> B::Outcome;

    /// Lends the data as a slice that is written.
    #[doc(hidden)]
    fn lend_mut<'a, B: BorrowerMut<'a>>(&'a mut self, to: B) -> B::Outcome;
}

/// A call that borrows a slice of any elements.
#[doc(hidden)]
pub trait Borrower<'a> {
    type Outcome;
    fn borrow<T: Element>(self, elements: &'a [T]) -> Self::Outcome;
}

/// A call that borrows a slice of any elements, which it writes.
#[doc(hidden)]
pub trait BorrowerMut<'a> {
    type Outcome;
    fn borrow<T: Element>(self, elements: &'a mut [T]) -> Self::Outcome;
}

impl<T: Element> Data for T {
    #[inline]
    fn lend<'a, B: Borrower<'a>>(&'a self, to: B) -> B::Outcome {
        T::lend_elements(self, to)
    }

    #[inline]
    fn lend_mut<'a, B: BorrowerMut<'a>>(&'a mut self, to: B) -> B::Outcome {
        T::lend_elements_mut(self, to)
    }
}

impl<T: Element> Data for [T] {
    #[inline]
    fn lend<'a, B: Borrower<'a>>(&'a self, to: B) -> B::Outcome {
        to.borrow(self)
    }

    #[inline]
    fn lend_mut<'a, B: BorrowerMut<'a>>(&'a mut self, to: B) -> B::Outcome {
        to.borrow(self)
    }
}

impl<T: Element> Data for Vec<T> {
    #[inline]
    fn lend<'a, B: Borrower<'a>>(&'a self, to: B) -> B::Outcome {
        to.borrow(self.as_slice())
    }

    #[inline]
    fn lend_mut<'a, B: BorrowerMut<'a>>(&'a mut self, to: B) -> B::Outcome {
        to.borrow(self.as_mut_slice())
    }
}
