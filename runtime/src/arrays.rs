//! Views of the crate ndarray as the data of calls: feature `ndarray`.
//!
//! A view has any number of dimensions and any strides. Its elements travel in the order of their
//! indices, the last index fastest, whatever their order in memory. The other side sees them as a
//! slice of as many elements.
//!
//! [`Rank::view`] and [`Rank::view_mut`] make a view the data of calls. [`layout`] is the datatype
//! of a view, for the side of the target.
//!
//! Left out: arrays that a call with a request owns. Such a call takes the array's vector:
//! `into_raw_vec_and_offset`.

use ndarray::{ArrayView, ArrayViewMut, Dimension};
use shipable::{Architecture, Datatype, Element};

use crate::error::Result;
use crate::memory::{Loan, LoanMut, Span};
use crate::origin::{Destination, Origin, What};
use crate::rank::Rank;
use crate::types::{ElementType, Type};

/// An [`ArrayView`] as the origin of calls, made by [`Rank::view`]. A reference to it is the
/// origin.
pub struct View<'a> {
    loan: Loan<'a>,
    selection: Selection,
}

/// An [`ArrayViewMut`] as the destination of calls, made by [`Rank::view_mut`]. An exclusive
/// reference to it is the destination.
pub struct ViewMut<'a> {
    loan: LoanMut<'a>,
    selection: Selection,
}

/// The elements of a view in its memory.
enum Selection {
    /// They are a slice.
    Slice {
        count: u64,
        element: ElementType,
    },
    Strided(Type),
}

impl Selection {
    fn what(&self) -> What<'_> {
        match self {
            Selection::Slice { count, element } => What::Slice { count: *count, element: *element },
            // Its memory is the machine's, and so is its type.
            Selection::Strided(datatype) => What::Typed { count: 1, datatype, at: 0, native: None },
        }
    }
}

/// The datatype of a view's elements in the memory of a target: that of
/// [`Datatype::strided`] for the view's shape and strides. Displacement 0 is the view's first
/// element. It is portable if the element's type is.
///
/// ```
/// use longshore::Datatype;
/// use longshore::arrays::layout;
/// use ndarray::{Array2, s};
///
/// let matrix = Array2::<f64>::zeros((4, 6));
/// let inner = layout(&matrix.slice(s![1..3, 2..5]))?;
/// assert_eq!(inner, Datatype::vector(2, 3, 6, &Datatype::double())?);
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// Those of [`Datatype::strided`].
pub fn layout<T: Element, D: Dimension>(view: &ArrayView<'_, T, D>) -> Result<Datatype> {
    let shape: Vec<i64> = view.shape().iter().map(|&length| length as i64).collect();
    let strides: Vec<i64> = view.strides().iter().map(|&stride| stride as i64).collect();
    let element = T::simple().unwrap_or_else(T::datatype);
    Ok(Datatype::strided(&shape, &strides, &element)?)
}

impl Rank {
    /// Makes a view of an array the origin of calls. Its type is committed once, so keep the result
    /// for calls that repeat.
    ///
    /// ```
    /// use ndarray::{arr2, s};
    ///
    /// let rank = longshore::init()?;
    /// let (world, me) = (rank.world(), rank.world().rank());
    /// let matrix = arr2(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// let column = rank.view(matrix.slice(s![.., 1]))?;
    /// let mut got = [0.0; 2];
    /// world.sendrecv((&column, me, 0), (&mut got, me, 0))?;
    /// assert_eq!(got, [2.0, 5.0]);
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// OTHER after [`finalize`](Rank::finalize).
    pub fn view<'a, T: Element, D: Dimension>(
        &self,
        view: ArrayView<'a, T, D>,
    ) -> Result<View<'a>> {
        self.process().ready()?;
        // The view's lifetime keeps every element alive and unchanged until the loan ends.
        let place = view.as_ptr().cast_mut();
        let (span, selection) = self.select(place, view.is_standard_layout(), &view)?;
        Ok(View { loan: Loan::pointed(span), selection })
    }

    /// Makes an exclusive view of an array the destination of calls. Its type is committed once, so
    /// keep the result for calls that repeat.
    ///
    /// ```
    /// use ndarray::{Array2, arr2};
    ///
    /// let rank = longshore::init()?;
    /// let (world, me) = (rank.world(), rank.world().rank());
    /// let mut matrix = Array2::<i32>::zeros((2, 3));
    /// let mut transposed = rank.view_mut(matrix.view_mut().reversed_axes())?;
    /// world.sendrecv((&[1, 2, 3, 4, 5, 6], me, 0), (&mut transposed, me, 0))?;
    /// assert_eq!(matrix, arr2(&[[1, 3, 5], [2, 4, 6]]));
    /// rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// OTHER after [`finalize`](Rank::finalize).
    pub fn view_mut<'a, T: Element, D: Dimension>(
        &self,
        mut view: ArrayViewMut<'a, T, D>,
    ) -> Result<ViewMut<'a>> {
        self.process().ready()?;
        // The view is exclusive for its lifetime, so nobody else accesses an element.
        let place = view.as_mut_ptr();
        let (span, selection) = self.select(place, view.is_standard_layout(), &view.view())?;
        Ok(ViewMut { loan: LoanMut::pointed(span), selection })
    }

    /// The memory and the elements of a view whose first element is at `place`. The span holds the
    /// elements; the gaps between them may belong to others, and aren't accessed.
    fn select<T: Element, D: Dimension>(
        &self,
        place: *mut T,
        is_slice: bool,
        view: &ArrayView<'_, T, D>,
    ) -> Result<(Span, Selection)> {
        let place = place.cast();
        if is_slice || view.is_empty() {
            let (count, size) = (view.len() as u64, size_of::<T>() as u64);
            let selection = Selection::Slice { count, element: ElementType::of::<T>() };
            return Ok((Span::around(place, 0, (count * size) as i64), selection));
        }
        // The type of elements in the machine's memory, as the view has them, also on a rank that
        // emulates another architecture. Strides in bytes fit every view.
        let mut datatype = T::datatype();
        for (&length, &stride) in view.shape().iter().zip(view.strides()).rev() {
            let stride = stride as i64 * size_of::<T>() as i64;
            datatype = Datatype::hvector(length as i64, 1, stride, &datatype)?;
        }
        let datatype =
            self.process().elements().commit_on(&datatype, &Architecture::NATIVE, None)?;
        let reach = datatype.compiled().native().range(1)?;
        Ok((Span::around(place, reach.start, reach.end), Selection::Strided(datatype)))
    }
}

impl<'v> From<&'v View<'_>> for Origin<'v> {
    fn from(view: &'v View<'_>) -> Origin<'v> {
        Origin { loan: view.loan, what: view.selection.what() }
    }
}

impl<'v> From<&'v mut ViewMut<'_>> for Destination<'v> {
    fn from(view: &'v mut ViewMut<'_>) -> Destination<'v> {
        Destination { loan: view.loan.again(), what: view.selection.what() }
    }
}
