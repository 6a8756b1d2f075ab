//! Memory by pointer, for calls that take any other memory: the foundation of a C interface.
//!
//! [`Origin::raw`] and [`Destination::raw`] point to memory that a call reads and writes.
//! [`Pointed`] points to memory that a window is made over. Pointers need no length: as in MPI, the
//! count and the type determine the accessed bytes. [`Raw`](crate::Raw) has the calls of a window's
//! epochs without scopes.
//!
//! The memory is the rank's own. It is therefore in the rank's representation, even on a rank that
//! emulates another architecture.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::given::Given;
use crate::memory::sealed::{Held, HeldSpan};
use crate::memory::{Elements, Loan, LoanMut, Memory, Span};
use crate::origin::{Destination, Origin, What};
use crate::types::{ElementType, Type};

/// `count` elements of a type, with displacement 0 at `place`: their memory and their description.
#[inline]
pub(crate) fn pointed<'a>(place: *mut u8, count: i64, datatype: &'a Type) -> (Span, What<'a>) {
    // Elements without a range give an empty span, with which the call refuses them.
    let reach = u64::try_from(count).ok();
    let reach = reach.and_then(|count| datatype.compiled().native().range(count).ok());
    let (start, end) = reach.map_or((0, 0), |reach| (reach.start, reach.end));
    let what = What::Typed { count, datatype, at: 0, native: None };
    (Span::around(place, start, end), what)
}

impl<'a> Origin<'a> {
    /// `count` elements of `datatype`, with displacement 0 at `place`.
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
    /// Until the origin and its operation have ended, for every byte of the elements:
    /// - the byte is memory that may be read through `place`, and is initialized;
    /// - nobody writes it.
    ///
    /// The bytes between the elements are not accessed, and may belong to others.
    #[inline]
    pub unsafe fn raw(place: *const u8, count: i64, datatype: &'a Type) -> Origin<'a> {
        let (span, what) = pointed(place.cast_mut(), count, datatype);
        Origin { loan: Loan::pointed(span), what }
    }
}

impl<'a> Destination<'a> {
    /// Room for `count` elements of `datatype`, with displacement 0 at `place`; see
    /// [`Origin::raw`].
    ///
    /// ```
    /// use longshore::Destination;
    ///
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let mut limits = if rank.world().rank() == 0 { [0.5, 1.5] } else { [0.0; 2] };
    /// // SAFETY: there is room for two doubles. It outlives the call, and is used only by the
    /// // call.
    /// let room = unsafe { Destination::raw(limits.as_mut_ptr().cast(), 2, &double) };
    /// rank.world().bcast(room, 0)?;
    /// assert_eq!(limits, [0.5, 1.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// Until the destination and its operation have ended, for every byte of the elements:
    /// - the byte is memory that may be read and written through `place`;
    /// - nobody else reads or writes it;
    /// - the byte is initialized if the call reads it, as at a broadcast's root.
    ///
    /// The bytes between the elements are not accessed, and may belong to others.
    #[inline]
    pub unsafe fn raw(place: *mut u8, count: i64, datatype: &'a Type) -> Destination<'a> {
        let (span, what) = pointed(place, count, datatype);
        Destination { loan: LoanMut::pointed(span), what }
    }
}

impl Given<Pointed> {
    /// `count` elements of `datatype`, with displacement 0 at `place`, for a call with a request;
    /// see [`Origin::raw`] and [`Destination::raw`].
    ///
    /// ```
    /// use longshore::Given;
    ///
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let (values, mut room) = ([0.5, 1.5], [0.0; 2]);
    /// // SAFETY: both arrays hold two doubles, and are used only after the requests' end.
    /// let (from, to) = unsafe {
    ///     let from = values.as_ptr().cast_mut().cast();
    ///     (Given::raw(from, 2, &double), Given::raw(room.as_mut_ptr().cast(), 2, &double))
    /// };
    /// let receiving = rank.alone().irecv(to, 0, 0)?;
    /// rank.alone().isend(from, 0, 0)?.wait()?;
    /// receiving.wait()?;
    /// assert_eq!(room, values);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// Until the operation has ended, for every byte of the elements:
    /// - the byte is memory that any thread may read through `place`, and is initialized; for a
    ///   call that receives, it is memory that any thread may write;
    /// - nobody writes it; for a call that receives, nobody reads it either.
    ///
    /// The bytes between the elements are not accessed, and may belong to others.
    #[inline]
    pub unsafe fn raw(place: *mut u8, count: i64, datatype: &Type) -> Given<Pointed> {
        let (span, _) = pointed(place, count, datatype);
        // No memory is longer than an isize.
        let memory = Pointed { start: span.start(), len: span.len() as usize };
        let at = (place.addr() as i64).wrapping_sub(memory.start.addr() as i64);
        Given::typed(memory, count, datatype, at)
    }
}

/// Room for elements that the program keeps for an operation with a request, as it has promised. It
/// takes no reference to the type, unlike [`Given`].
pub struct Promised<'a> {
    pub(crate) memory: Span,
    pub(crate) what: What<'a>,
}

impl<'a> Promised<'a> {
    /// Room for `count` elements of `datatype`, with displacement 0 at `place`.
    ///
    /// ```
    /// use longshore::Promised;
    ///
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let mut room = [0.0; 2];
    /// // SAFETY: the array holds two doubles. It outlives the request, and is used after its end.
    /// let place = unsafe { Promised::raw(room.as_mut_ptr().cast(), 2, &double) };
    /// let mut receiving = rank.alone().irecv_promised(place, 0, 0)?;
    /// rank.alone().send(&[0.5, 1.5], 0, 0)?;
    /// assert_eq!((receiving.complete()?.count, room), (2, [0.5, 1.5]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Safety
    /// Until the operation that gets this has ended, for every byte of the elements:
    /// - the byte is memory that any thread may write through `place`;
    /// - nobody else reads or writes it.
    ///
    /// The bytes between the elements are not accessed, and may belong to others.
    #[inline]
    pub unsafe fn raw(place: *mut u8, count: i64, datatype: &'a Type) -> Promised<'a> {
        let (memory, what) = pointed(place, count, datatype);
        Promised { memory, what }
    }
}

/// Memory of the user, given by its start and its length in bytes. A window can be made over it,
/// and it can be attached to a dynamic window.
///
/// The memory stays where it is, and remains the program's own. Like ranks of this host access an
/// [allocation](crate::Rank::alloc_mem) directly. They reach other memory by mailbox and message,
/// and by copies of the system.
///
/// ```
/// use longshore::{Info, Pointed, Window};
///
/// # let rank = longshore::init()?;
/// let mut values = [0i64; 4];
/// // SAFETY: the array outlives the window. Until then it is accessed only through this pointer.
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
    /// The bytes are memory that may be read and written from any thread, and all are initialized.
    ///
    /// No reference to them is used while a user of the memory exists, since other ranks may write
    /// the bytes whenever MPI allows it. The users of the memory are:
    /// - a window that is made over it, until the window has been freed successfully;
    /// - a window to which it is attached, until it has been detached successfully;
    /// - an operation or message with a request, until the request has been waited for.
    ///
    /// The end of the job ends all of them.
    pub unsafe fn new(start: *mut u8, len: usize) -> Pointed {
        Pointed { start, len }
    }

    /// The address of the first byte.
    ///
    /// ```
    /// use longshore::Pointed;
    ///
    /// let mut bytes = [0u8; 8];
    /// // SAFETY: it is given to no call.
    /// let memory = unsafe { Pointed::new(bytes.as_mut_ptr(), 8) };
    /// assert!(!memory.is_empty() && memory.len() == 8 && memory.start() == bytes.as_mut_ptr());
    /// ```
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

// SAFETY: it is an address and a number. The caller of `new` promised that any thread may use the
// memory.
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

    fn span_of(held: &mut Pointed) -> HeldSpan {
        HeldSpan(Span::around(held.start, 0, held.len as i64))
    }

    fn elements(&self) -> Elements {
        Elements::Slice { count: self.len as u64, element: ElementType::of::<u8>() }
    }

    fn native_element() -> Option<usize> {
        // The memory is in the rank's own representation.
        None
    }

    fn is_enclosed() -> bool {
        // The program still has the pointer.
        false
    }

    fn promised(mut self) -> std::result::Result<HeldSpan, Pointed> {
        Ok(Pointed::span_of(&mut self))
    }

    fn of_promised(HeldSpan(span): HeldSpan) -> Option<Pointed> {
        // No memory is longer than an isize.
        Some(Pointed { start: span.start(), len: span.len() as usize })
    }
}

#[cfg(test)]
mod tests {
    use shipable::Class;

    use super::*;
    use crate::sim::{Options, run};
    use crate::window::{Info, Window};

    /// Only memory that the program points to can be attached twice: other memory is moved into the
    /// window.
    #[test]
    fn rule_15_memory_is_attached_once() {
        run(1, &Options::default(), |rank| {
            let mut bytes = vec![0u8; 100];
            let start = bytes.as_mut_ptr();
            // SAFETY: this is a part of the vector, which outlives the windows and is used only
            // through them until then.
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
