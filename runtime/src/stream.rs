//! Elements of a call as packed streams, for calls that are built on this crate, such as those of
//! files.
//!
//! A [`Source`] has the elements that a call reads, a [`Sink`] those that it writes. Both are made
//! of what any call takes: of an [`Origin`] or a [`Destination`], which lend their memory, or of
//! [`Given`] memory, which an operation with a request owns.
//!
//! A stream is the elements' basic items in the order of the type map, in any representation. A
//! transfer can start and stop at any byte of it.

use std::marker::PhantomData;

use shipable::{Architecture, Datatype, Partial, SharedProgram};

use crate::communicator::Communicator;
use crate::error::{Result, conversion};
use crate::given::{Given, Kept, Taken};
use crate::memory::{Keeper, Lease, Memory};
use crate::origin::{Destination, Elementwise, Origin};
use crate::types::Type;

/// The elements that a call reads, as a packed stream.
///
/// ```
/// use longshore::{Architecture, Origin};
///
/// # let rank = longshore::init()?;
/// let values = [1.5, 2.5];
/// let source = Origin::from(&values).source(rank.alone())?;
/// let mut packed = [0; 4];
/// // The second half of the first value, as external32 has it.
/// assert_eq!(source.length(&Architecture::EXTERNAL32)?, 16);
/// assert!(!source.may_refuse(&Architecture::EXTERNAL32)?);
/// assert_eq!(source.pack(&Architecture::EXTERNAL32, 4, &mut packed)?, 4);
/// assert_eq!(packed, 1.5f64.to_be_bytes()[4..]);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Source<'a> {
    elements: Elementwise,
    _keeper: Keeper,
    lender: PhantomData<&'a [u8]>,
}

/// The room for elements that a call writes, from a packed stream.
///
/// ```
/// use longshore::shipable::Partial;
/// use longshore::{Architecture, Destination};
///
/// # let rank = longshore::init()?;
/// let (mut values, mut partial) = ([0.0; 2], Partial::default());
/// let mut sink = Destination::from(&mut values).sink(rank.alone())?;
/// assert_eq!(sink.native_before(&Architecture::EXTERNAL32, 8)?, 8);
/// let packed = 1.5f64.to_be_bytes();
/// // In two parts, of which the first ends within the value.
/// sink.unpack(&Architecture::EXTERNAL32, 0, &packed[..3], &mut partial)?;
/// sink.unpack(&Architecture::EXTERNAL32, 3, &packed[3..], &mut partial)?;
/// drop(sink);
/// assert_eq!(values, [1.5, 0.0]);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
pub struct Sink<'a> {
    elements: Elementwise,
    _keeper: Keeper,
    lender: PhantomData<&'a mut [u8]>,
}

/// Memory that was given to an operation with a request, and that its source or sink uses.
pub struct Holding<M> {
    memory: Kept,
    kind: PhantomData<M>,
}

impl Elementwise {
    fn program(&self, representation: &Architecture) -> Result<SharedProgram> {
        self.datatype.program(representation)
    }

    fn length(&self, representation: &Architecture) -> Result<u64> {
        Ok(self.program(representation)?.stream_length(self.count)?)
    }

    /// The displacement and the length of the elements, if they are one run of memory that is equal
    /// to their stream.
    fn run(&self, representation: &Architecture) -> Option<(i64, u64)> {
        let program = self.program(representation).ok()?;
        let start = program.contiguous(self.count).filter(|_| self.count > 0)?;
        Some((start, program.stream_length(self.count).ok()?))
    }
}

impl Communicator {
    /// Commits a datatype for this rank's memory, as [`Rank::commit`](crate::Rank::commit) does,
    /// where only a communicator is at hand.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let double = rank.world().commit(&longshore::Datatype::double())?;
    /// assert_eq!(double.extent(), 8);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Rank::commit`](crate::Rank::commit).
    pub fn commit(&self, datatype: &Datatype) -> Result<Type> {
        self.process().ready()?;
        self.process().elements().commit(datatype)
    }
}

impl<'a> Origin<'a> {
    /// The elements as a packed stream. See [`Source`] for an example.
    ///
    /// # Errors
    /// BUFFER for elements outside of their memory, and for [`IN_PLACE`](crate::IN_PLACE). COUNT
    /// for a negative count. TYPE for a type of another rank. OTHER after finalize.
    pub fn source(self, communicator: &Communicator) -> Result<Source<'a>> {
        let process = communicator.process();
        process.ready()?;
        let elements = self.what.resolve(process, self.loan.span())?;
        Ok(Source { elements, _keeper: Keeper::Lender, lender: PhantomData })
    }
}

impl<'a> Destination<'a> {
    /// The room as elements of a packed stream. See [`Sink`] for an example.
    ///
    /// # Errors
    /// Those of [`Origin::source`]. TYPE for elements that overlap.
    pub fn sink(self, communicator: &Communicator) -> Result<Sink<'a>> {
        let process = communicator.process();
        process.ready()?;
        let elements = self.what.resolve(process, self.loan.span())?;
        elements.check_disjoint()?;
        Ok(Sink { elements, _keeper: Keeper::Lender, lender: PhantomData })
    }
}

impl<M: Memory> Given<M> {
    /// The elements as a packed stream, and the memory, which [`Holding::give_back`] returns.
    ///
    /// ```
    /// use longshore::{Architecture, Given};
    ///
    /// # let rank = longshore::init()?;
    /// let (source, memory) = Given::from(vec![7u8; 3]).source(rank.alone())?;
    /// let length = std::thread::spawn(move || source.length(&Architecture::NATIVE)).join().unwrap()?;
    /// assert_eq!((length, memory.give_back().unwrap()), (3, vec![7; 3]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Origin::source`].
    pub fn source(self, communicator: &Communicator) -> Result<(Source<'static>, Holding<M>)> {
        let (elements, lease, memory) = self.elements(communicator)?;
        let (_, keeper) = lease.into_parts();
        Ok((Source { elements, _keeper: keeper, lender: PhantomData }, memory))
    }

    /// The room as elements of a packed stream, and the memory, which [`Holding::give_back`]
    /// returns. See [`source`](Given::source).
    ///
    /// # Errors
    /// Those of [`Destination::sink`].
    pub fn sink(self, communicator: &Communicator) -> Result<(Sink<'static>, Holding<M>)> {
        let (elements, lease, memory) = self.elements(communicator)?;
        elements.check_disjoint()?;
        let (_, keeper) = lease.into_parts();
        Ok((Sink { elements, _keeper: keeper, lender: PhantomData }, memory))
    }

    fn elements(self, communicator: &Communicator) -> Result<(Elementwise, Lease, Holding<M>)> {
        let process = communicator.process();
        process.ready()?;
        let taken: Taken<Kept> = Taken::kept(self, process)?;
        let lease = taken.lease();
        let elements = taken.what().resolve(process, lease.span())?;
        Ok((elements, lease, Holding { memory: taken.memory, kind: PhantomData }))
    }
}

impl<M: Memory> Holding<M> {
    /// The memory; `None` as long as its source or sink is there.
    pub fn give_back(self) -> Option<M> {
        self.memory.give_back()
    }
}

impl Source<'_> {
    /// The bytes of the stream in a representation.
    ///
    /// # Errors
    /// TYPE if the representation lacks one of the basic types. VALUE_TOO_LARGE if the number
    /// exceeds 64 bits.
    pub fn length(&self, representation: &Architecture) -> Result<u64> {
        self.elements.length(representation)
    }

    /// The stream itself, if the elements are one run of memory in this representation.
    ///
    /// ```
    /// use longshore::{Architecture, Origin};
    ///
    /// # let rank = longshore::init()?;
    /// let source = Origin::from(&[7u8, 8]).source(rank.alone())?;
    /// assert_eq!(source.run(&Architecture::NATIVE), Some(&[7, 8][..]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn run(&self, representation: &Architecture) -> Option<&[u8]> {
        let (start, len) = self.elements.run(representation)?;
        self.elements.span.bytes_at(start, len)
    }

    /// Whether the representation may lack a value of the elements' types. Otherwise
    /// [`pack`](Source::pack) refuses none.
    ///
    /// # Errors
    /// Those of [`length`](Source::length).
    pub fn may_refuse(&self, representation: &Architecture) -> Result<bool> {
        Ok(self.elements.program(representation)?.may_refuse())
    }

    /// Packs the stream from `position` on, until `out` is full or the stream ends. Returns the
    /// number of bytes.
    ///
    /// # Errors
    /// CONVERSION for a value that the representation can't hold. The values before it are packed.
    /// ARG for a position past the end of the stream. Otherwise those of
    /// [`length`](Source::length).
    pub fn pack(
        &self,
        representation: &Architecture,
        position: u64,
        out: &mut [u8],
    ) -> Result<usize> {
        let Elementwise { count, span, .. } = &self.elements;
        let program = self.elements.program(representation)?;
        span.pack(&program, *count, position, out).map_err(conversion)
    }
}

impl Sink<'_> {
    /// The bytes of the stream in a representation; see [`Source::length`].
    ///
    /// # Errors
    /// Those of [`Source::length`].
    pub fn length(&self, representation: &Architecture) -> Result<u64> {
        self.elements.length(representation)
    }

    /// The bytes in this rank's memory, without gaps, of the items before a position of the stream.
    /// A part of an item counts only if the item has as many bytes in both.
    ///
    /// # Errors
    /// Those of [`length`](Sink::length).
    pub fn native_before(&self, representation: &Architecture, position: u64) -> Result<u64> {
        Ok(self.elements.program(representation)?.memory_before(position))
    }

    /// The room itself, if the elements are one run of memory in this representation.
    pub fn run(&mut self, representation: &Architecture) -> Option<&mut [u8]> {
        let (start, len) = self.elements.run(representation)?;
        self.elements.span.bytes_at_mut(start, len)
    }

    /// Unpacks `input`, the bytes of the stream from `position` on. If a stream comes in parts,
    /// they are unpacked in order with one `partial` for all.
    ///
    /// # Errors
    /// CONVERSION for a value that this rank's type can't hold. Only the values before it are
    /// written. ARG for an input past the end of the stream. Otherwise those of
    /// [`length`](Sink::length).
    pub fn unpack(
        &mut self,
        representation: &Architecture,
        position: u64,
        input: &[u8],
        partial: &mut Partial,
    ) -> Result<()> {
        let Elementwise { count, span, .. } = &self.elements;
        let program = self.elements.program(representation)?;
        span.unpack(&program, *count, position, input, partial).map_err(conversion)
    }
}
