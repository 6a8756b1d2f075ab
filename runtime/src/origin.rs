//! The origin's side of an operation: its elements, their count, and their memory.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use shipable::element::{Borrower, BorrowerMut};
use shipable::{Data, Element, Partial, Program, ViewMut};

use crate::buffer::Buffer;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::memory::{Loan, LoanMut, Span};
use crate::process::Process;
use crate::types::{Compiled, ElementType, Elements, OTHER_RANK, Type};

/// Data to send or put, borrowed until the operation's scope ends.
///
/// - `&T`, `&[T]`, `&[T; N]`, `&Vec<T>`: one or several elements in the machine's own
///   representation, even if the rank emulates another architecture;
/// - `&Buffer<T>`: elements in the rank's representation;
/// - [`Origin::typed`]: the elements that an explicit datatype selects from memory in the rank's
///   representation.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub(crate) loan: Loan<'a>,
    pub(crate) what: What<'a>,
}

/// Memory that a get or a receive writes to, borrowed exclusively; see [`Origin`] for its kinds.
pub struct Destination<'a> {
    pub(crate) loan: LoanMut<'a>,
    pub(crate) what: What<'a>,
}

/// In collective calls: the data are already in the receive buffer, or stay there (MPI_IN_PLACE,
/// MPI-5.0 section 6.2.3).
///
/// ```
/// use longshore::{IN_PLACE, Op};
///
/// # let rank = longshore::init()?;
/// let mut sums = [1.5, 2.5];
/// rank.world().allreduce(IN_PLACE, &mut sums, Op::Sum)?;
/// assert_eq!(sums, [1.5, 2.5].map(|each| each * f64::from(rank.world().size())));
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub const IN_PLACE: InPlace = InPlace(());

/// The type of [`IN_PLACE`].
#[derive(Clone, Copy, Debug)]
pub struct InPlace(());

impl<'a> From<InPlace> for Origin<'a> {
    fn from(_: InPlace) -> Origin<'a> {
        Origin { loan: Loan::new::<u8>(&[]), what: What::InPlace }
    }
}

impl<'a> From<InPlace> for Destination<'a> {
    fn from(_: InPlace) -> Destination<'a> {
        Destination { loan: LoanMut::new::<u8>(&mut []), what: What::InPlace }
    }
}

/// The elements that an operation accesses in its memory.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    /// The elements of the call's other buffer.
    InPlace,
    /// All elements of a slice.
    Slice { count: u64, element: ElementType },
    /// Elements of an explicit datatype, from a displacement in bytes on.
    Typed { count: i64, datatype: &'a Type, at: i64, native: Option<NativeElement> },
}

/// The Rust type of a slice from which an explicit datatype selects bytes.
#[derive(Clone, Copy)]
pub struct NativeElement {
    size: usize,
    element: ElementType,
}

impl NativeElement {
    fn of<T: Element>() -> NativeElement {
        NativeElement { size: size_of::<T>(), element: ElementType::of::<T>() }
    }

    /// Whether it is a byte, which has no padding and is equal on every machine.
    #[inline]
    pub(crate) fn is_byte(&self) -> bool {
        self.size == 1
    }

    /// The Rust type's id.
    #[inline]
    pub(crate) fn id(&self) -> TypeId {
        self.element.id
    }

    /// Whether an element has no padding.
    pub(crate) fn is_dense(&self, elements: &Elements) -> bool {
        let element = self.element.commit(elements);
        element.is_ok_and(|element| element.compiled().native().stream_size() == self.size as u64)
    }

    /// Refuses a datatype that selects padding: its bytes are uninitialized, so they must not be
    /// read.
    fn check_padding(&self, process: &Process, picked: &Picked<'_>) -> Result<()> {
        let element = self.element.commit(process.elements())?;
        let (whole, size) = (element.compiled().native(), self.size as u64);
        let picks_elements = || {
            picked.at % self.size as i64 == 0 && picked.datatype.datatype() == element.datatype()
        };
        if whole.stream_size() == size || picks_elements() {
            return Ok(());
        }
        let data = marked(whole, picked.len / size, picked.len, 0)?;
        let read = marked(picked.datatype.native(), picked.count, picked.len, picked.at)?;
        match read.iter().zip(&data).position(|(read, data)| *read != 0 && *data == 0) {
            None => Ok(()),
            Some(byte) => Err(ErrorKind::Padding {
                datatype: excerpt(picked.datatype),
                element: excerpt(&element),
                byte: byte as u64,
            }
            .into()),
        }
    }
}

/// The elements of an explicit datatype in a slice of `len` bytes.
struct Picked<'a> {
    datatype: &'a Compiled,
    count: u64,
    at: i64,
    len: u64,
}

/// `len` bytes in which those that the program accesses are not zero. The caller has checked that
/// they are within.
fn marked(program: &Program, count: u64, len: u64, at: i64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    let (ones, mut position, mut partial) = ([u8::MAX; 1024], 0, Partial::default());
    let length = program.stream_length(count)?;
    while position < length {
        let piece = &ones[..ones.len().min((length - position) as usize)];
        let view = ViewMut::new(&mut bytes).shifted(at).ok_or(ErrorKind::Displacement(at))?;
        program.unpack(count, view, position, piece, &mut partial)?;
        position += piece.len() as u64;
    }
    Ok(bytes)
}

/// Checked elements in memory.
pub(crate) struct Checked<'a> {
    pub datatype: &'a Arc<Compiled>,
    pub count: u64,
    pub span: Span,
}

/// Elements that are one run of memory.
pub(crate) struct Run<'a> {
    pub datatype: &'a Arc<Compiled>,
    pub count: u64,
    /// The memory, with the position of displacement 0.
    pub span: Span,
    /// The bytes of the elements, and no others.
    pub bytes: Span,
}

/// Checked elements in memory, as the engine's calls take them.
pub(crate) struct Elementwise {
    pub datatype: Arc<Compiled>,
    pub count: u64,
    pub span: Span,
}

impl<'a> What<'a> {
    /// Whether it is `elements` elements of exactly this type, at displacement 0 of the memory.
    #[inline(always)]
    pub(crate) fn is_plain(&self, elements: u64, of: &Arc<Compiled>) -> bool {
        match *self {
            What::Slice { count, element } => count == elements && of.is_of_element(element.id),
            What::Typed { count, datatype, at: 0, native }
                if native.is_none_or(|native| native.is_byte()) =>
            {
                u64::try_from(count) == Ok(elements) && Arc::ptr_eq(datatype.compiled(), of)
            }
            What::Typed { .. } | What::InPlace => false,
        }
    }

    /// The Rust type of its elements, if they are all elements of a slice.
    pub(crate) fn slice(&self) -> Option<ElementType> {
        match *self {
            What::Slice { element, .. } => Some(element),
            What::Typed { .. } | What::InPlace => None,
        }
    }

    /// Whether an explicit datatype selects members of elements with padding.
    pub(crate) fn picks_members(&self, elements: &Elements) -> bool {
        match self {
            What::Typed { native: Some(native), .. } => {
                !native.is_byte() && !native.is_dense(elements)
            }
            What::Typed { native: None, .. } | What::Slice { .. } | What::InPlace => false,
        }
    }

    /// The elements, if they are one run of this rank's memory and travel as they lie there. `None`
    /// also if [`check`](What::check) refuses them.
    #[inline(always)]
    pub(crate) fn run<'c>(&self, process: &'c Process, memory: Span) -> Option<Run<'c>>
    where
        'a: 'c,
    {
        let (datatype, count, at) = match *self {
            What::Typed { count, datatype, at, native: None }
                if datatype.is_of(process.names()) =>
            {
                (datatype, u64::try_from(count).ok()?, at)
            }
            What::Slice { count, element } if !process.me().emulated => {
                (element.commit(process.elements()).ok()?, count, 0)
            }
            _ => return None,
        };
        let datatype = datatype.compiled();
        let native = datatype.native();
        let span = memory.shifted(at)?;
        let bytes = span.part_at(native.contiguous(count)?, native.stream_length(count).ok()?)?;
        Some(Run { datatype, count, span, bytes })
    }

    /// The elements that [`check`](What::check) has checked, with a reference to their type.
    pub(crate) fn resolve(&self, process: &Process, memory: Span) -> Result<Elementwise> {
        let Checked { datatype, count, span } = self.check(process, memory)?;
        Ok(Elementwise { datatype: datatype.clone(), count, span })
    }

    /// Checks rules 18 and 27, and that the elements are within their memory and not in its
    /// padding.
    #[inline]
    pub(crate) fn check<'c>(&self, process: &'c Process, memory: Span) -> Result<Checked<'c>>
    where
        'a: 'c,
    {
        let (datatype, count, span) = match *self {
            What::InPlace => return Err(ErrorKind::InPlace.into()),
            What::Slice { count, element } => {
                let datatype = element.commit(process.elements())?.compiled();
                (datatype, count, memory)
            }
            What::Typed { count, datatype, at, native } => {
                if !datatype.is_of(process.names()) {
                    return Err(OTHER_RANK.into());
                }
                if native.is_some_and(|native| native.size > 1) && process.me().emulated {
                    return Err(process.me().emulated().into());
                }
                let count = u64::try_from(count).map_err(|_| ErrorKind::Count(count))?;
                let span = memory.shifted(at).ok_or_else(|| ErrorKind::Displacement(at))?;
                (datatype.compiled(), count, span)
            }
        };
        let reach = datatype.native().range(count)?;
        if !span.covers(reach.start, reach.end) {
            return Err(ErrorKind::Buffer {
                count: count as i64,
                datatype: excerpt(datatype),
                start: reach.start.into(),
                end: reach.end.into(),
                size: memory.len(),
            }
            .into());
        }
        if let What::Typed { native: Some(native), at, .. } = *self {
            let picked = Picked { datatype, count, at, len: memory.len() };
            native.check_padding(process, &picked)?;
        }
        Ok(Checked { datatype, count, span })
    }
}

/// Writes the count and the type, for messages.
impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::InPlace => f.write_str("IN_PLACE"),
            What::Slice { count, element } => write!(f, "{count} of {}", (element.datatype)()),
            What::Typed { count, datatype, .. } => write!(f, "{count} of {datatype}"),
        }
    }
}

impl Elementwise {
    /// The memory from element `first` on.
    pub(crate) fn part(&self, first: u64) -> Result<Span> {
        let bytes = i128::from(self.datatype.bounds().extent()) * i128::from(first);
        let shifted = i64::try_from(bytes).ok().and_then(|bytes| self.span.shifted(bytes));
        Ok(shifted.ok_or(shipable::Error::Overflow { what: "a displacement" })?)
    }

    /// The hash of the signature of the first `count` elements.
    pub(crate) fn signature(&self, count: u64) -> Result<u128> {
        self.datatype.repeated(count)
    }

    /// Checks rule 20 at the origin: memory that is written to must not overlap itself.
    pub(crate) fn check_disjoint(&self) -> Result<()> {
        self.check_disjoint_of(self.count)
    }

    /// Checks rule 20 for so many elements one after the other.
    pub(crate) fn check_disjoint_of(&self, count: u64) -> Result<()> {
        if !self.datatype.native().overlaps(count) {
            return Ok(());
        }
        let (count, datatype) = (count as i64, excerpt(&*self.datatype));
        Err(Error::from(ErrorKind::Overlap { count, datatype }))
    }
}

/// Memory from which an explicit datatype selects elements to read: a slice or a [`Buffer`].
pub trait RankMemory<'a>: private::Lend<'a> {}

/// Memory in which an explicit datatype selects elements to write: a slice or a [`Buffer`].
pub trait RankMemoryMut<'a>: private::LendMut<'a> {}

mod private {
    use super::{Loan, LoanMut, NativeElement};

    pub trait Lend<'a> {
        fn lend(self) -> (Loan<'a>, Option<NativeElement>);
    }

    pub trait LendMut<'a> {
        fn lend_mut(self) -> (LoanMut<'a>, Option<NativeElement>);
    }
}

impl<'a, T: Element> private::Lend<'a> for &'a [T] {
    fn lend(self) -> (Loan<'a>, Option<NativeElement>) {
        (Loan::new(self), Some(NativeElement::of::<T>()))
    }
}

impl<'a, T: Element> private::LendMut<'a> for &'a mut [T] {
    fn lend_mut(self) -> (LoanMut<'a>, Option<NativeElement>) {
        (LoanMut::new(self), Some(NativeElement::of::<T>()))
    }
}

impl<'a, T: Element> private::Lend<'a> for &'a Buffer<T> {
    fn lend(self) -> (Loan<'a>, Option<NativeElement>) {
        (Loan::new(self.bytes()), None)
    }
}

impl<'a, T: Element> private::LendMut<'a> for &'a mut Buffer<T> {
    fn lend_mut(self) -> (LoanMut<'a>, Option<NativeElement>) {
        (LoanMut::new(self.memory()), None)
    }
}

impl<'a, T: Element> RankMemory<'a> for &'a [T] {}
impl<'a, T: Element> RankMemoryMut<'a> for &'a mut [T] {}
impl<'a, T: Element> RankMemory<'a> for &'a Buffer<T> {}
impl<'a, T: Element> RankMemoryMut<'a> for &'a mut Buffer<T> {}

impl<'a> Origin<'a> {
    /// `count` elements of `datatype` in `memory`, a slice or a [`Buffer`].
    ///
    /// On a rank that emulates another architecture a slice must be one of bytes: other slices hold
    /// numbers in the machine's representation. If the slice's elements have padding, the datatype
    /// must select only members: padding bytes are uninitialized.
    pub fn typed<'m: 'a>(
        memory: impl RankMemory<'m>,
        count: i64,
        datatype: &'a Type,
    ) -> Origin<'a> {
        let (loan, native) = memory.lend();
        Origin { loan, what: What::Typed { count, datatype, at: 0, native } }
    }

    /// Moves displacement 0 to `bytes` bytes after the memory's start. Has no effect on plain
    /// slices.
    pub fn at(self, bytes: i64) -> Origin<'a> {
        Origin { what: self.what.at(bytes), ..self }
    }
}

impl<'a> Destination<'a> {
    /// `count` elements of `datatype` in `memory`, a slice or a [`Buffer`], to be written. See
    /// [`Origin::typed`] for the limits of slices.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{Datatype, Destination, Origin};
    ///
    /// // A column of two rows becomes a row.
    /// let column = rank.commit(&Datatype::vector(2, 1, 3, &Datatype::double())?)?;
    /// let mut matrix = rank.buffer::<f64>(6)?;
    /// matrix.write(0, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    /// let mut row = [0.0; 2];
    /// let me = rank.world().rank();
    /// let from = Origin::typed(&matrix, 1, &column).at(8);
    /// rank.world().sendrecv((from, me, 0), (&mut row, me, 0))?;
    /// assert_eq!(row, [1.0, 4.0]);
    /// let to = Destination::typed(&mut matrix, 1, &column).at(16);
    /// rank.world().sendrecv((&row, me, 0), (to, me, 0))?;
    /// assert_eq!(matrix.to_vec()?, [0.0, 1.0, 1.0, 3.0, 4.0, 4.0]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn typed<'m: 'a>(memory: impl RankMemoryMut<'m>, count: i64, datatype: &'a Type) -> Self {
        let (loan, native) = memory.lend_mut();
        Destination { loan, what: What::Typed { count, datatype, at: 0, native } }
    }

    /// Moves displacement 0 to `bytes` bytes after the memory's start. Has no effect on plain
    /// slices.
    pub fn at(self, bytes: i64) -> Destination<'a> {
        Destination { what: self.what.at(bytes), ..self }
    }
}

impl<'a> What<'a> {
    fn at(self, bytes: i64) -> What<'a> {
        match self {
            What::Typed { count, datatype, native, .. } => {
                What::Typed { count, datatype, at: bytes, native }
            }
            other => other,
        }
    }
}

/// Makes the data of a call of a slice.
struct Lender;

impl<'a> Borrower<'a> for Lender {
    type Outcome = Origin<'a>;

    #[inline]
    fn borrow<T: Element>(self, elements: &'a [T]) -> Origin<'a> {
        let what = What::Slice { count: elements.len() as u64, element: ElementType::of::<T>() };
        Origin { loan: Loan::new(elements), what }
    }
}

impl<'a> BorrowerMut<'a> for Lender {
    type Outcome = Destination<'a>;

    #[inline]
    fn borrow<T: Element>(self, elements: &'a mut [T]) -> Destination<'a> {
        let what = What::Slice { count: elements.len() as u64, element: ElementType::of::<T>() };
        Destination { loan: LoanMut::new(elements), what }
    }
}

impl<'a, D: Data + ?Sized> From<&'a D> for Origin<'a> {
    #[inline]
    fn from(data: &'a D) -> Origin<'a> {
        data.lend(Lender)
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for Origin<'a> {
    fn from(buffer: &'a Buffer<T>) -> Origin<'a> {
        Origin::typed(buffer, buffer.len() as i64, buffer.datatype())
    }
}

impl<'a, D: Data + ?Sized> From<&'a mut D> for Destination<'a> {
    #[inline]
    fn from(data: &'a mut D) -> Destination<'a> {
        data.lend_mut(Lender)
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for Destination<'a> {
    fn from(buffer: &'a mut Buffer<T>) -> Destination<'a> {
        let count = buffer.len() as i64;
        let (datatype, memory) = buffer.parts();
        let what = What::Typed { count, datatype, at: 0, native: None };
        Destination { loan: LoanMut::new(memory), what }
    }
}
