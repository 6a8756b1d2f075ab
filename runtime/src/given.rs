//! Memory that an operation with a request owns until it completes.

use std::sync::Arc;

use crate::error::Result;
use crate::memory::sealed::HeldSpan;
use crate::memory::{Elements, Exposed, Keeper, Lease, Memory, Span};
use crate::origin::What;
use crate::process::Process;
use crate::types::Type;

/// Memory that is passed to an operation with a request, which returns it on completion: a `Vec`, a
/// `Box` or a [`Buffer`](crate::Buffer). The operation uses all of it, or the elements that an
/// explicit datatype selects.
pub struct Given<M> {
    memory: M,
    part: Part,
}

/// The part of the memory that an operation uses.
enum Part {
    Whole,
    Typed(i64, Type, i64),
    /// None: the data of a collective call are in place.
    InPlace,
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
        Given { memory, part: Part::Typed(count, datatype.clone(), bytes) }
    }

    /// The data of a collective call, which are in place or which the call ignores: see
    /// [`IN_PLACE`](crate::IN_PLACE). The memory is only returned.
    ///
    /// ```
    /// use longshore::{Given, Op};
    ///
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let sum = world.iallreduce(Given::in_place(vec![0; 0]), vec![1], Op::Sum)?;
    /// assert_eq!(sum.wait()?.1, [world.size()]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn in_place(memory: M) -> Given<M> {
        Given { memory, part: Part::InPlace }
    }
}

impl<M: Memory> From<M> for Given<M> {
    fn from(memory: M) -> Given<M> {
        Given { memory, part: Part::Whole }
    }
}

/// The memory of a request, with the elements to be used.
pub(crate) struct Taken<K = Arc<Exposed>> {
    pub memory: K,
    elements: Elements,
    part: Part,
}

/// The memory of a call with a request, for whose end it stays.
pub(crate) enum Kept {
    /// The request and what carries it out hold it.
    Held(Arc<Exposed>),
    /// The program keeps it, as it has promised.
    Promised(Span),
}

impl Kept {
    fn of<M: Memory>(memory: M) -> Result<Kept> {
        Ok(match memory.promised() {
            Ok(span) => Kept::Promised(span.0),
            Err(memory) => Kept::Held(Arc::new(Exposed::created(memory)?)),
        })
    }

    /// All of the memory.
    pub(crate) fn span(&self) -> Span {
        match self {
            Kept::Held(memory) => memory.span(),
            Kept::Promised(span) => *span,
        }
    }

    /// All of the memory, for an operation.
    pub(crate) fn lease(&self) -> Lease {
        match self {
            Kept::Held(memory) => {
                Lease::new(memory.span(), Keeper::Memory { _memory: memory.clone() })
            }
            Kept::Promised(span) => Lease::new(*span, Keeper::Program),
        }
    }

    /// The memory, if nothing else uses it any more.
    pub(crate) fn give_back<M: Memory>(self) -> Option<M> {
        match self {
            Kept::Held(memory) => Arc::into_inner(memory)?.give_back(),
            Kept::Promised(span) => M::of_promised(HeldSpan(span)),
        }
    }
}

impl Taken {
    pub(crate) fn new<M: Memory>(given: Given<M>, process: &Process) -> Result<Taken> {
        Taken::by(given, process, |memory| Ok(Arc::new(Exposed::created(memory)?)))
    }

    pub(crate) fn keeper(&self) -> Keeper {
        Keeper::Memory { _memory: self.memory.clone() }
    }
}

impl Taken<Kept> {
    /// The memory of a message or a collective call.
    pub(crate) fn kept<M: Memory>(given: Given<M>, process: &Process) -> Result<Taken<Kept>> {
        Taken::by(given, process, Kept::of)
    }

    /// All of the memory, for an operation.
    pub(crate) fn lease(&self) -> Lease {
        self.memory.lease()
    }
}

impl<K> Taken<K> {
    fn by<M: Memory>(
        given: Given<M>,
        process: &Process,
        keep: impl FnOnce(M) -> Result<K>,
    ) -> Result<Taken<K>> {
        let Given { memory, part } = given;
        let native = M::native_element().is_some_and(|size| size > 1);
        if matches!(part, Part::Typed(..)) && native && process.me().emulated {
            return Err(process.me().emulated().into());
        }
        let elements = memory.elements();
        Ok(Taken { memory: keep(memory)?, elements, part })
    }

    pub(crate) fn what(&self) -> What<'_> {
        match (&self.part, &self.elements) {
            (Part::InPlace, _) => What::InPlace,
            (Part::Typed(count, datatype, at), _) => {
                What::Typed { count: *count, datatype, at: *at, native: None }
            }
            (Part::Whole, Elements::Slice { count, element }) => {
                What::Slice { count: *count, element: *element }
            }
            (Part::Whole, Elements::Typed { count, datatype }) => {
                What::Typed { count: *count, datatype, at: 0, native: None }
            }
        }
    }
}
