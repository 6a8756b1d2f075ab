//! Memory by pointer, for calls that take any other: what a C interface stands on.
//!
//! [`Origin::raw`] and [`Destination::raw`] point to what a call reads and writes, [`Pointed`] to memory that a window is
//! made over. Pointers need no length: count and type say what is reached, as in MPI. The calls of a window's epochs without
//! scopes are those of [`Raw`](crate::Raw).
//!
//! Memory that is pointed to is the rank's own, so it lies there in the rank's representation, on a rank that emulates
//! another architecture too.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::memory::sealed::{Held, Place};
use crate::memory::{Elements, Loan, LoanMut, Memory, Span};
use crate::origin::{Destination, Origin, What};
use crate::types::{ElementType, Type};

/// `count` elements of a type around a place, and which they are.
pub(crate) fn pointed<'a>(place: *mut u8, count: i64, datatype: &'a Type) -> (Span, What<'a>) {
    // What has no range is refused by the call, which finds it has none.
    let reach = u64::try_from(count).ok();
    let reach = reach.and_then(|count| datatype.compiled().native().range(count).ok());
    let (start, end) = reach.map_or((0, 0), |reach| (reach.start, reach.end));
    let what = What::Typed { count, datatype, at: 0, native: None };
    (Span::around(place, start, end), what)
}

impl<'a> Origin<'a> {
    /// `count` elements of `datatype`, displacement 0 being at `place`.
    ///
    /// ```
    /// use longshore::{Destination, Origin};
    ///
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let (values, mut sums) = ([0.5, 1.5], [0.0; 2]);
    /// // SAFETY: both arrays hold two doubles, and outlive the call.
    /// let (from, to) = unsafe {
    ///     let to = sums.as_mut_ptr().cast();
    ///     (Origin::raw(values.as_ptr().cast(), 2, &double), Destination::raw(to, 2, &double))
    /// };
    /// rank.world().allreduce(from, to, longshore::Op::Max)?;
    /// assert_eq!(sums, values);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// For as long as the origin and the operation that it is given to last, every byte that the elements consist of is memory
    /// that may be read by `place`, has been written, and is written by nobody. What lies between them is left alone, and may be
    /// anybody's.
    pub unsafe fn raw(place: *const u8, count: i64, datatype: &'a Type) -> Origin<'a> {
        let (span, what) = pointed(place.cast_mut(), count, datatype);
        Origin { loan: Loan::pointed(span), what }
    }
}

impl<'a> Destination<'a> {
    /// Room for `count` elements of `datatype`, displacement 0 being at `place`; see [`Origin::raw`].
    ///
    /// ```
    /// use longshore::Destination;
    ///
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let mut limits = if rank.world().rank() == 0 { [0.5, 1.5] } else { [0.0; 2] };
    /// // SAFETY: there is room for two doubles, which outlives the call and which nobody else looks at meanwhile.
    /// let room = unsafe { Destination::raw(limits.as_mut_ptr().cast(), 2, &double) };
    /// rank.world().bcast(room, 0)?;
    /// assert_eq!(limits, [0.5, 1.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// For as long as the destination and the operation that it is given to last, every byte that the elements consist of is
    /// memory that may be read and written by `place`, and is neither read nor written by anybody else. Where the call reads it (a
    /// broadcast's root), it has been written.
    pub unsafe fn raw(place: *mut u8, count: i64, datatype: &'a Type) -> Destination<'a> {
        let (span, what) = pointed(place, count, datatype);
        Destination { loan: LoanMut::pointed(span), what }
    }
}

/// Memory of the user's own, by its start and length in bytes: a window can be made over it, as over a `Vec`, and it can be
/// attached to a dynamic one. It stays where it is, so that the other ranks reach it by messages.
///
/// ```
/// use longshore::{Info, Pointed, Window};
///
/// # let rank = longshore::init()?;
/// let mut values = [0i64; 4];
/// // SAFETY: the array outlives the window, and is reached by others through this pointer alone until then.
/// let memory = unsafe { Pointed::new(values.as_mut_ptr().cast(), 32) };
/// let mut window = Window::create(rank.world(), memory, 8, &Info::default())?;
/// let long = rank.type_of::<i64>()?;
/// window.fence(|epoch| epoch.put(&[7i64], rank.world().rank(), 2, 1, &long))?;
/// window.free()?;
/// assert_eq!(values[2], 7);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Debug)]
pub struct Pointed {
    start: *mut u8,
    len: usize,
}

impl Pointed {
    /// `len` bytes from `start` on.
    ///
    /// # Safety
    /// It is memory that may be read and written from any thread, each byte of it has been written, and no reference to it is used,
    /// since others write it at any time that MPI lets them, as long as something has it: a window that is made over it, until that has
    /// been freed with success, one that it was attached to, until it has been detached with success, an operation or message with
    /// a request, until that has been waited for; or all of them until the job has ended.
    pub unsafe fn new(start: *mut u8, len: usize) -> Pointed {
        Pointed { start, len }
    }

    /// Where it starts.
    ///
    /// ```
    /// use longshore::Pointed;
    ///
    /// let mut bytes = [0u8; 8];
    /// // SAFETY: nothing is given it.
    /// let memory = unsafe { Pointed::new(bytes.as_mut_ptr(), 8) };
    /// assert!(!memory.is_empty() && memory.len() == 8 && memory.start() == bytes.as_mut_ptr());
    /// ```
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

// SAFETY: an address and a number; who made it promised that any thread may use the memory.
unsafe impl Send for Pointed {}

impl Memory for Pointed {}

impl Held for Pointed {
    type Held = Pointed;

    fn hold(self) -> Result<Pointed> {
        Ok(self)
    }

    fn give_back(held: Pointed) -> Pointed {
        held
    }

    fn place(held: &mut Pointed) -> Place {
        Place(Span::around(held.start, 0, held.len as i64))
    }

    fn elements(&self) -> Elements {
        Elements::Slice { count: self.len as u64, element: ElementType::of::<u8>() }
    }

    fn native_element() -> Option<usize> {
        // The rank's own memory.
        None
    }

    fn is_enclosed() -> bool {
        // Who gave the pointer has it still.
        false
    }
}

#[cfg(test)]
mod tests {
    use shipable::Class;

    use super::*;
    use crate::sim::{Options, run};
    use crate::window::{Info, Window};

    /// Only memory that the program points to can be attached twice: all else belongs to the window.
    #[test]
    fn rule_15_memory_is_attached_once() {
        run(1, &Options::default(), |rank| {
            let mut bytes = vec![0u8; 100];
            let start = bytes.as_mut_ptr();
            // SAFETY: a part of the vector, which outlives the windows and isn't used but through them meanwhile.
            let part = |from: usize, len| unsafe { Pointed::new(start.wrapping_add(from), len) };
            let windows =
                [0, 1].map(|_| Window::create_dynamic(rank.world(), &Info::default()).unwrap());
            let first = windows[0].attach(part(10, 50)).unwrap();
            assert_eq!(first.address(), start as i64 + 10);
            for (from, len) in [(10, 50), (0, 11), (59, 1), (0, 100)] {
                let error = windows[0].attach(part(from, len)).err().unwrap();
                assert_eq!(error.class(), Class::RmaAttach);
                let words =
                    ["attached already", "detach those first (rule 15)", "attach at rank 0"];
                assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
            }
            let behind = windows[0].attach(part(60, 40)).unwrap();
            let elsewhere = windows[1].attach(part(0, 100)).unwrap();
            assert_eq!(windows[0].detach(first).unwrap().len(), 50);
            let again = windows[0].attach(part(0, 60)).unwrap();
            windows[0].detach(again).unwrap();
            windows[0].detach(behind).unwrap();
            windows[1].detach(elsewhere).unwrap();
            windows.into_iter().for_each(|window| window.free().unwrap());
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}
