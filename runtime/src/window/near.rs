//! This rank's memory in an operation, in the three ways in which calls name it: lent by a
//! scope, by pointer, or as a value.

use std::sync::Arc;

use shipable::Element;

use super::call::Action;
use crate::memory::Span;
use crate::origin::What;
use crate::raw::pointed;
use crate::types::Type;

/// Elements in this rank's memory.
pub(super) trait Near<'a>: Copy {
    /// The bytes of an element, where the compiler knows them.
    const LEN: Option<u64> = None;

    /// Where these elements begin, if they are `count` elements of a type, which are one run of
    /// `len` bytes from displacement 0 on.
    fn run(self, count: i64, own: &Type, len: u64) -> Option<*mut u8>;

    /// The same elements, as the rules see them.
    fn side(self) -> Side<'a>;
}

/// Elements that a scope lends.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub what: What<'a>,
    pub span: Span,
}

impl<'a> Near<'a> for Side<'a> {
    #[inline]
    fn run(self, count: i64, own: &Type, len: u64) -> Option<*mut u8> {
        let (place, has) = self.span.at_zero()?;
        (self.what.is_plain(count as u64, own.compiled()) && has == len).then_some(place)
    }

    #[inline]
    fn side(self) -> Side<'a> {
        self
    }
}

/// Elements by pointer: where displacement 0 is, how many there are, and of which type. The pointer
/// may be null where a call ignores it.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    pub place: *mut u8,
    pub count: i64,
    pub datatype: &'a Type,
}

impl<'a> Elements<'a> {
    /// One element.
    #[inline]
    pub(super) fn one(place: *mut u8, datatype: &'a Type) -> Elements<'a> {
        Elements { place, count: 1, datatype }
    }
}

impl<'a> From<(*mut u8, i64, &'a Type)> for Elements<'a> {
    #[inline]
    fn from((place, count, datatype): (*mut u8, i64, &'a Type)) -> Elements<'a> {
        Elements { place, count, datatype }
    }
}

impl<'a> From<(*const u8, i64, &'a Type)> for Elements<'a> {
    #[inline]
    fn from((place, count, datatype): (*const u8, i64, &'a Type)) -> Elements<'a> {
        Elements { place: place.cast_mut(), count, datatype }
    }
}

impl<'a> Near<'a> for Elements<'a> {
    #[inline]
    fn run(self, count: i64, own: &Type, _: u64) -> Option<*mut u8> {
        let is_own = Arc::ptr_eq(self.datatype.compiled(), own.compiled());
        (self.count == count && is_own).then_some(self.place)
    }

    #[inline(always)]
    fn side(self) -> Side<'a> {
        let (span, what) = pointed(self.place, self.count, self.datatype);
        Side { what, span }
    }
}

/// One element that is a value, by pointer.
#[derive(Clone, Copy)]
pub(super) struct Value<'a, T> {
    place: *mut T,
    datatype: &'a Type,
}

impl<'a, T: Element> Value<'a, T> {
    /// A value, and the type that this rank has for it.
    #[inline]
    pub(super) fn new(place: *mut T, datatype: &'a Type) -> Value<'a, T> {
        Value { place, datatype }
    }
}

impl<'a, T: Element> Near<'a> for Value<'a, T> {
    const LEN: Option<u64> = Some(size_of::<T>() as u64);

    #[inline]
    fn run(self, count: i64, own: &Type, len: u64) -> Option<*mut u8> {
        Elements::one(self.place.cast(), self.datatype).run(count, own, len)
    }

    #[inline]
    fn side(self) -> Side<'a> {
        Elements::one(self.place.cast(), self.datatype).side()
    }
}

/// All of this rank's memory in an operation. Its lenders keep it until the operation is done.
#[derive(Clone, Copy)]
pub(super) struct Sides<N> {
    /// The elements that the operation reads.
    pub origin: Option<N>,
    /// Room for the elements that it fetches.
    pub result: Option<N>,
    /// The element with which compare_and_swap compares.
    pub compare: Option<N>,
}

impl<N: Copy> Sides<N> {
    /// The same memory, named otherwise.
    #[inline(always)]
    pub(super) fn map<M>(self, name: impl Fn(N) -> M) -> Sides<M> {
        let Sides { origin, result, compare } = self;
        Sides { origin: origin.map(&name), result: result.map(&name), compare: compare.map(name) }
    }

    /// Those of an operation that fetches nothing.
    #[inline]
    pub(super) fn of_origin(origin: N) -> Sides<N> {
        Sides { origin: Some(origin), result: None, compare: None }
    }

    /// Those of a get.
    #[inline]
    pub(super) fn of_result(result: N) -> Sides<N> {
        Sides { origin: None, result: Some(result), compare: None }
    }

    /// Those of an operation that fetches as well. An atomic get ignores its origin, which may be
    /// null (MPI-5.0 section 12.3.4): its result stands for it.
    #[inline(always)]
    pub(super) fn fetching(action: Action, origin: N, result: N) -> Sides<N> {
        let origin = if action.is_atomic_get() { result } else { origin };
        Sides { origin: Some(origin), result: Some(result), compare: None }
    }
}
