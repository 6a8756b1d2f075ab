//! The operations of reductions: predefined ones, and those that a program defines (MPI-5.0 section
//! 6.9.5).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use shipable::Element;
use shipable::reduce::Op;

use super::Communicator;
use super::message::Side;
use super::shapes::HEAD;
use crate::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::memory::{Scope, Span, zeroed};
use crate::origin::{Destination, Elementwise, Origin};
use crate::types::Compiled;

/// The operation of a reduction: a predefined one, or one that the program defines.
///
/// Calls take `impl Into<Operator>`, so that they are given an [`Op`] or a reference to a
/// [`UserOp`].
#[derive(Clone, Copy, Debug)]
pub enum Operator<'o> {
    /// A predefined operation.
    Predefined(Op),
    /// An operation of the program.
    User(&'o UserOp<'o>),
}

impl Operator<'_> {
    /// The operation, if it is a predefined one.
    pub(super) fn predefined(self) -> Option<Op> {
        match self {
            Operator::Predefined(op) => Some(op),
            Operator::User(_) => None,
        }
    }
}

impl From<Op> for Operator<'_> {
    fn from(op: Op) -> Self {
        Operator::Predefined(op)
    }
}

impl<'o> From<&'o UserOp<'o>> for Operator<'o> {
    fn from(op: &'o UserOp<'o>) -> Self {
        Operator::User(op)
    }
}

/// The operation of a reduction with a request, which may end after the call that started it.
///
/// Calls take `impl Into<SharedOperator>`, so that they are given an [`Op`] or an `Arc` of a
/// [`UserOp`].
#[derive(Clone, Debug)]
pub enum SharedOperator {
    /// A predefined operation.
    Predefined(Op),
    /// An operation of the program.
    User(Arc<UserOp<'static>>),
}

impl SharedOperator {
    pub(super) fn get(&self) -> Operator<'_> {
        match self {
            SharedOperator::Predefined(op) => Operator::Predefined(*op),
            SharedOperator::User(op) => Operator::User(op),
        }
    }
}

impl<'o> From<&'o SharedOperator> for Operator<'o> {
    fn from(op: &'o SharedOperator) -> Self {
        op.get()
    }
}

impl From<Op> for SharedOperator {
    fn from(op: Op) -> Self {
        SharedOperator::Predefined(op)
    }
}

impl From<Arc<UserOp<'static>>> for SharedOperator {
    fn from(op: Arc<UserOp<'static>>) -> Self {
        SharedOperator::User(op)
    }
}

/// An operation that the program defines (MPI-5.0 section 6.9.5).
///
/// Its operands are combined in the order of ranks, so it must be associative, and need not be
/// commutative. All ranks define the same operation. Windows take predefined operations only.
///
/// A call with a request combines operands within any later call of its rank that waits or tests,
/// on that call's thread.
///
/// ```
/// use longshore::UserOp;
///
/// # let rank = longshore::init()?;
/// // The product of 2 x 2 matrices, which isn't commutative.
/// let product = UserOp::new(|left: &[[i64; 4]], right: &mut [[i64; 4]]| {
///     for (a, b) in left.iter().zip(right) {
///         *b = [
///             a[0] * b[0] + a[1] * b[2],
///             a[0] * b[1] + a[1] * b[3],
///             a[2] * b[0] + a[3] * b[2],
///             a[2] * b[1] + a[3] * b[3],
///         ];
///     }
/// });
/// let mut all = [[0i64; 4]];
/// rank.world().allreduce(&[[1i64, 1, 0, 1]], &mut all, &product)?;
/// assert_eq!(all, [[1, i64::from(rank.world().size()), 0, 1]]);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct UserOp<'f> {
    fold: Box<dyn Fold + Send + Sync + 'f>,
}

impl<'f> UserOp<'f> {
    /// An operation on elements. `combine` is given the operands of lower ranks and those of higher
    /// ranks, and replaces the latter by the results. It may be called with any number of elements.
    #[doc(alias = "MPI_Op_create")]
    pub fn new<T: Element>(combine: impl Fn(&[T], &mut [T]) + Send + Sync + 'f) -> UserOp<'f> {
        UserOp { fold: Box::new(OnElements { combine, element: PhantomData }) }
    }

    /// An operation on memory with the layout of the call's datatype, such as an
    /// `MPI_User_function` of C. `combine` is given the addresses of the operands of lower and of
    /// higher ranks, and the number of elements of the call's datatype there. It replaces the
    /// latter by the results.
    ///
    /// Both memories belong to the call. They hold the elements' data at the displacements that the
    /// datatype gives, and are aligned to 16 bytes at displacement 0.
    ///
    /// ```
    /// use longshore::UserOp;
    ///
    /// # let rank = longshore::init()?;
    /// // Calls give it ints only.
    /// let greatest = UserOp::by_pointer(|left, right, count| {
    ///     for at in 0..count as usize {
    ///         // SAFETY: both memories have `count` aligned ints.
    ///         unsafe {
    ///             let (left, right) = (left.cast::<i32>().add(at), right.cast::<i32>().add(at));
    ///             *right = (*left).max(*right);
    ///         }
    ///     }
    /// });
    /// let mut all = [0];
    /// rank.world().allreduce(&[rank.world().rank()], &mut all, &greatest)?;
    /// assert_eq!(all, [rank.world().size() - 1]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Op_create")]
    pub fn by_pointer(combine: impl Fn(*const u8, *mut u8, i64) + Send + Sync + 'f) -> UserOp<'f> {
        UserOp { fold: Box::new(OnMemory { combine }) }
    }

    /// Checks that the operation can combine the data of a call.
    pub(super) fn check(&self, communicator: &Communicator, all: &Elementwise) -> Result<()> {
        self.fold.check(communicator, all)
    }

    /// Combines the messages of lower and of higher ranks, whose data is a number of elements of a
    /// datatype.
    pub(super) fn combine(
        &self,
        communicator: &Communicator,
        of: (&Arc<Compiled>, u64),
        low: &[u8],
        high: &[u8],
    ) -> Result<Bytes> {
        self.fold.combine(communicator, of, low, high)
    }
}

impl fmt::Debug for UserOp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserOp")
    }
}

/// How an operation of the program gets at its operands.
trait Fold {
    fn check(&self, communicator: &Communicator, all: &Elementwise) -> Result<()>;

    fn combine(
        &self,
        communicator: &Communicator,
        of: (&Arc<Compiled>, u64),
        low: &[u8],
        high: &[u8],
    ) -> Result<Bytes>;
}

struct OnElements<T, F> {
    combine: F,
    element: PhantomData<fn(T)>,
}

impl<T: Element, F: Fn(&[T], &mut [T])> OnElements<T, F> {
    /// The number of elements in so many packed bytes.
    fn elements(&self, communicator: &Communicator, bytes: u64) -> Result<u64> {
        let datatype = communicator.process().elements().in_memory::<T>()?;
        let size = communicator.stream_length(datatype.compiled(), 1)?;
        Ok(bytes / size.max(1))
    }

    fn unpacked(&self, communicator: &Communicator, bytes: &[u8]) -> Result<Vec<T>> {
        let elements = self.elements(communicator, (bytes.len() - HEAD) as u64)?;
        let mut values = Vec::new();
        let size = elements.saturating_mul(size_of::<T>() as u64);
        let count = usize::try_from(elements).map_err(|_| ErrorKind::NoMemory(size))?;
        values.try_reserve_exact(count).map_err(|_| ErrorKind::NoMemory(size))?;
        values.resize(count, zeroed::<T>());
        let room = Destination::from(&mut values[..]);
        Scope::with(|scope| {
            let room = Side { what: room.what, span: scope.lend_mut(room.loan) };
            communicator.unpack_whole(room, bytes)
        })?;
        Ok(values)
    }
}

impl<T: Element, F: Fn(&[T], &mut [T])> Fold for OnElements<T, F> {
    fn check(&self, communicator: &Communicator, all: &Elementwise) -> Result<()> {
        let bytes = communicator.packed_size(all, all.count)?;
        let elements = self.elements(communicator, bytes)?;
        let datatype = communicator.process().elements().in_memory::<T>()?;
        let own = datatype.compiled().repeated(elements)?;
        match own == all.signature(all.count)? {
            true => Ok(()),
            false => Err(Error::from(ErrorKind::UserOperands {
                element: std::any::type_name::<T>(),
                datatype: excerpt(&*all.datatype),
            })),
        }
    }

    fn combine(
        &self,
        communicator: &Communicator,
        _: (&Arc<Compiled>, u64),
        low: &[u8],
        high: &[u8],
    ) -> Result<Bytes> {
        let left = self.unpacked(communicator, low)?;
        let mut right = self.unpacked(communicator, high)?;
        (self.combine)(&left, &mut right);
        let data = Origin::from(&right[..]);
        Scope::with(|scope| {
            communicator.packed_whole(Side { what: data.what, span: scope.lend(data.loan) })
        })
    }
}

struct OnMemory<F> {
    combine: F,
}

impl<F: Fn(*const u8, *mut u8, i64)> Fold for OnMemory<F> {
    fn check(&self, _: &Communicator, _: &Elementwise) -> Result<()> {
        Ok(())
    }

    fn combine(
        &self,
        communicator: &Communicator,
        (datatype, count): (&Arc<Compiled>, u64),
        low: &[u8],
        high: &[u8],
    ) -> Result<Bytes> {
        let mut left = Operands::new(datatype, count)?;
        let mut right = Operands::new(datatype, count)?;
        let (left, right) = (left.elements(datatype, count), right.elements(datatype, count));
        communicator.unpack_from(&left, 0, count, low)?;
        communicator.unpack_from(&right, 0, count, high)?;
        (self.combine)(left.span.address(0), right.span.address(0), count as i64);
        communicator.pack_part(&right, 0, count)
    }
}

/// Memory for operands with the layout of a datatype.
struct Operands {
    words: Vec<Word>,
    /// The first and last displacement of the data.
    reach: (i64, i64),
}

/// The strictest alignment of a basic type.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Word([u64; 2]);

/// The alignment of displacement 0 in bytes.
const ALIGNMENT: i64 = align_of::<Word>() as i64;

impl Operands {
    fn new(datatype: &Compiled, count: u64) -> Result<Operands> {
        let reach = datatype.native().range(count)?;
        let (start, end) = (reach.start, reach.end);
        let bytes = (i128::from(end) - i128::from(start)) as u64;
        let mut words = Vec::new();
        // One word more, by which displacement 0 is aligned.
        let needed = bytes.div_ceil(ALIGNMENT as u64) + 1;
        let needed = usize::try_from(needed).map_err(|_| ErrorKind::NoMemory(bytes))?;
        words.try_reserve_exact(needed).map_err(|_| ErrorKind::NoMemory(bytes))?;
        words.resize(needed, Word([0; 2]));
        Ok(Operands { words, reach: (start, end) })
    }

    /// The elements in this memory.
    fn elements(&mut self, datatype: &Arc<Compiled>, count: u64) -> Elementwise {
        let (start, end) = self.reach;
        let first = self.words.as_mut_ptr().cast::<u8>();
        let shift = start.rem_euclid(ALIGNMENT).wrapping_sub(start);
        let span = Span::around(first.wrapping_offset(shift as isize), start, end);
        Elementwise { datatype: datatype.clone(), count, span }
    }
}

#[cfg(test)]
#[allow(unsafe_code)] // A program's operation gets pointers.
mod tests {
    use shipable::Datatype;

    use super::*;
    use crate::origin::IN_PLACE;
    use crate::sim::{Options, run};

    /// A record of C, `struct { int number; double value; }`, with 4 bytes of padding.
    fn record(number: i32, value: f64) -> [u8; 16] {
        let mut bytes = [0xee; 16];
        bytes[..4].copy_from_slice(&number.to_ne_bytes());
        bytes[8..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }

    #[test]
    fn operations_by_pointer_get_operands_in_the_layout_of_the_type() {
        let sums = run(3, &Options::default(), |rank| {
            let fields = [Datatype::int(), Datatype::double()];
            let of_c = Datatype::struct_(&[1, 1], &[0, 8], &fields).unwrap();
            // Displacement 0 is 8 bytes before the first field.
            let shifted = Datatype::struct_(&[1], &[8], &[of_c]).unwrap();
            let of_c = rank.commit(&Datatype::resized(0, 16, &shifted).unwrap()).unwrap();
            let me = rank.world().rank();
            let op = UserOp::by_pointer(|left: *const u8, right: *mut u8, count| {
                assert!(left.addr() % 16 == 0 && right.addr() % 16 == 0);
                for at in 0..count as usize {
                    let first = 8 + 16 * at;
                    // SAFETY: the call's type has an int at displacement 8 of each element, and a
                    // double at 16. Both are aligned.
                    unsafe {
                        *right.add(first).cast::<i32>() += *left.add(first).cast::<i32>();
                        let (left, right) = (left.add(first + 8), right.add(first + 8));
                        let (left, right) = (left.cast::<f64>(), right.cast::<f64>());
                        *right = *left - 10.0 * *right;
                    }
                }
            });
            let mut data =
                [[0; 8].as_slice(), &record(me, 1.0), &record(2 * me, f64::from(me))].concat();
            let room = Destination::typed(&mut data[..], 2, &of_c);
            rank.world().allreduce(IN_PLACE, room, &op).unwrap();
            rank.finalize().unwrap();
            data
        });
        // Rank 0 combines its own operands with rank 1's, then with rank 2's.
        let value = |a: f64, b: f64, c: f64| (a - 10.0 * b) - 10.0 * c;
        let [first, second] = [record(3, value(1.0, 1.0, 1.0)), record(6, value(0.0, 1.0, 2.0))];
        for data in sums.unwrap() {
            assert_eq!(data[8..24], first);
            assert_eq!(data[24..40], second);
        }
    }
}
