//! Memory that an operation with a request owns until it completes.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::{Elements, Exposed, Keeper, Lease, Memory};
use crate::origin::What;
use crate::process::Process;
use crate::types::Type;

/// Memory that is passed to an operation with a request, which returns it on completion: a `Vec`, a
/// `Box` or a [`Buffer`](crate::Buffer). The operation uses all of it, or the elements that an
/// explicit datatype selects.
pub struct Given<M> {
    memory: M,
    typed: Option<(i64, Type, i64)>,
}

impl<M: Memory> Given<M> {
    /// `count` elements of `datatype`, whose displacement 0 is `bytes` after the start of the
    /// memory. See [`Origin::typed`](crate::Origin::typed).
    ///
    /// ```
    /// use longshore::{Datatype, Given};
    ///
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// // The second column of a matrix of two rows.
    /// let column = rank.commit(&Datatype::vector(2, 1, 3, &Datatype::double())?)?;
    /// let mut matrix = rank.buffer::<f64>(6)?;
    /// matrix.write(0, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    /// let sending = world.isend(Given::typed(matrix, 1, &column, 8), world.rank(), 0)?;
    /// let mut got = [0.0; 2];
    /// world.recv(&mut got, world.rank(), 0)?;
    /// assert_eq!(got, [1.0, 4.0]);
    /// sending.wait()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn typed(memory: M, count: i64, datatype: &Type, bytes: i64) -> Given<M> {
        Given { memory, typed: Some((count, datatype.clone(), bytes)) }
    }
}

impl<M: Memory> From<M> for Given<M> {
    fn from(memory: M) -> Given<M> {
        Given { memory, typed: None }
    }
}

/// The memory of a request, which the request and the engine hold, with the elements to be used.
pub(crate) struct Taken {
    pub memory: Arc<Exposed>,
    elements: Elements,
    typed: Option<(i64, Type, i64)>,
}

impl Taken {
    pub(crate) fn new<M: Memory>(given: Given<M>, process: &Process) -> Result<Taken> {
        let Given { memory, typed } = given;
        let native = M::native_element().is_some_and(|size| size > 1);
        if typed.is_some() && native && process.me().emulated {
            return Err(process.me().emulated().into());
        }
        let elements = memory.elements();
        Ok(Taken { memory: Arc::new(Exposed::created(memory)?), elements, typed })
    }

    pub(crate) fn what(&self) -> What<'_> {
        match (&self.typed, &self.elements) {
            (Some((count, datatype, at)), _) => {
                What::Typed { count: *count, datatype, at: *at, native: None }
            }
            (None, Elements::Slice { count, element }) => {
                What::Slice { count: *count, element: *element }
            }
            (None, Elements::Typed { count, datatype }) => {
                What::Typed { count: *count, datatype, at: 0, native: None }
            }
        }
    }

    pub(crate) fn keeper(&self) -> Keeper {
        Keeper::Memory { _memory: self.memory.clone() }
    }

    /// All of the memory, for an operation.
    pub(crate) fn lease(&self) -> Lease {
        Lease::new(self.memory.span(), self.keeper())
    }
}
