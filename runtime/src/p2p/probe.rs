//! Probes: calls that inspect a message before it is received (MPI-5.0 section 3.8).

use std::panic::Location;

use shipable::Architecture;

use super::{Awaited, NULL_STATUS, Receiving, in_group};
use crate::communicator::Communicator;
use crate::dropped::Dropped;
use crate::engine::{Arrival, Channel, Pattern, State, Status};
use crate::error::Result;
use crate::given::{Given, Taken};
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::{Lease, Memory, scope};
use crate::origin::Destination;
use crate::types::Type;

/// The description of a message that has arrived and isn't received yet: its source, tag and
/// length.
#[derive(Clone, Debug)]
pub struct Envelope {
    source: i32,
    tag: i32,
    /// The message, the representation of its data, and that of packed data if it isn't this
    /// rank's; `None` for PROC_NULL.
    arrival: Option<(Arrival, Architecture, Option<Architecture>)>,
}

impl Envelope {
    /// The rank of the sender in the communicator; PROC_NULL if the probe was of PROC_NULL.
    pub fn source(&self) -> i32 {
        self.source
    }

    /// The tag of the message.
    pub fn tag(&self) -> i32 {
        self.tag
    }

    /// The length of the message in bytes, in the representation of its sender
    /// ([`Communicator::representation`]).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.alone().send(&[1.0, 2.0, 3.0], 0, 0)?;
    /// assert_eq!(rank.alone().probe(0, 0)?.bytes(), 24);
    /// # rank.alone().recv(&mut [0.0; 3], 0, 0)?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn bytes(&self) -> u64 {
        self.arrival.map_or(0, |(arrival, ..)| arrival.length())
    }

    /// The number of elements of a type in the message (MPI_Get_count).
    /// [`UNDEFINED`](crate::UNDEFINED) if the message ends within an element.
    ///
    /// # Errors
    /// TYPE for a type of another signature.
    #[doc(alias = "MPI_Get_count")]
    pub fn count(&self, datatype: &Type) -> Result<i64> {
        self.measure(datatype).map(|(count, _)| count)
    }

    /// The number of basic elements in the message (MPI_Get_elements). A pair counts as two.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let double = rank.type_of::<f64>()?;
    /// let pair = rank.commit(&longshore::Datatype::contiguous(2, double.datatype())?)?;
    /// rank.alone().send(&[1.0, 2.0, 3.0], 0, 0)?;
    /// let coming = rank.alone().probe(0, 0)?;
    /// assert_eq!((coming.count(&pair)?, coming.elements(&pair)?), (longshore::UNDEFINED, 3));
    /// # rank.alone().recv(&mut [0.0; 3], 0, 0)?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE for a type of another signature.
    #[doc(alias = "MPI_Get_elements")]
    pub fn elements(&self, datatype: &Type) -> Result<i64> {
        self.measure(datatype).map(|(_, elements)| elements)
    }

    fn measure(&self, datatype: &Type) -> Result<(i64, i64)> {
        let Some((arrival, stream, packed)) = &self.arrival else { return Ok((0, 0)) };
        let fit = arrival.fit(datatype.compiled(), stream, packed.as_ref())?;
        Ok((fit.count, fit.elements))
    }
}

/// A message that a matched probe has reserved: no other receive of this rank can get it. If it is
/// dropped, the message is discarded.
///
/// ```
/// # let rank = longshore::init()?;
/// let world = rank.world();
/// world.send(&[1.5, 2.5], world.rank(), 3)?;
/// let double = rank.type_of::<f64>()?;
/// let message = world.mprobe(longshore::ANY_SOURCE, 3)?;
/// let mut room = vec![0.0; message.envelope().count(&double)? as usize];
/// message.recv(&mut room)?;
/// assert_eq!(room, [1.5, 2.5]);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[must_use = "a message that isn't received is discarded"]
pub struct Matched {
    communicator: Communicator,
    envelope: Envelope,
    /// The number of the message in the engine; `None` for PROC_NULL, and once it is received.
    number: Option<u64>,
}

impl Matched {
    /// The description of the message.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Receives the message (MPI-5.0 section 3.8.3).
    ///
    /// # Errors
    /// Those of [`Communicator::recv`]. The message is discarded then.
    #[track_caller]
    #[doc(alias = "MPI_Mrecv")]
    pub fn recv<'a>(self, room: impl Into<Destination<'a>>) -> Result<Status> {
        let room = room.into();
        let Some(number) = self.number else { return Ok(NULL_STATUS) };
        let (communicator, source) = (&self.communicator, self.envelope.source);
        let (process, caller) = (communicator.process(), Location::caller());
        communicator.call("mrecv", Activity::Receive, source, || {
            scope(
                |_| process.engine().state().abandon(number),
                |scope| {
                    let lease = Lease::lent(scope.lend_mut(room.loan));
                    let landing = communicator.landing(lease, &room.what)?;
                    process.receive_claimed(number, landing, (caller, true));
                    process.note_wait(communicator.member(source).ok().flatten());
                    let status = process.wait(|state, _| state.take_status(number))?;
                    Ok(in_group(communicator.peers(), status))
                },
            )
        })
    }

    /// Starts to receive the message into a buffer that it takes over (MPI-5.0 section 3.8.3).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// rank.alone().send(&[1.5, 2.5], 0, 3)?;
    /// let receiving = rank.alone().mprobe(0, 3)?.irecv(vec![0.0; 2])?;
    /// assert_eq!(receiving.wait()?.0, [1.5, 2.5]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Communicator::irecv`]. The message is discarded then.
    #[track_caller]
    #[doc(alias = "MPI_Imrecv")]
    pub fn irecv<M: Memory>(mut self, room: impl Into<Given<M>>) -> Result<Receiving<M>> {
        let (source, tag) = (self.envelope.source, self.envelope.tag);
        let (process, caller) = (self.communicator.process().clone(), Location::caller());
        let start = || -> Result<Receiving<M>> {
            process.ready()?;
            let taken = Taken::kept(room.into(), &process)?;
            let landing = self.communicator.landing(taken.lease(), &taken.what())?;
            let number = self.number.take();
            if let Some(number) = number {
                process.receive_claimed(number, landing, (caller, false));
                process.leave_rest();
            }
            Ok(Receiving::new(&self.communicator, (source, tag), number, taken.memory))
        };
        let started = start();
        let communicator = &self.communicator;
        let place = || communicator.toward("imrecv", source);
        started.map_err(|error| communicator.raise(error.at(place), caller))
    }
}

impl Drop for Matched {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.communicator.process().names().dropped().push(Dropped::Claimed(number));
        }
    }
}

impl Communicator {
    /// Waits for a message from a rank with a tag (MPI-5.0 section 3.8.1).
    /// [`ANY_SOURCE`](crate::ANY_SOURCE) and [`ANY_TAG`](crate::ANY_TAG) match every rank and every
    /// tag. The message isn't removed: the next receive with its source and tag gets it.
    ///
    /// ```
    /// use longshore::{ANY_SOURCE, ANY_TAG};
    ///
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// world.send(&[1, 2, 3], world.rank(), 7)?;
    /// let coming = world.probe(ANY_SOURCE, ANY_TAG)?;
    /// assert_eq!((coming.source(), coming.tag()), (world.rank(), 7));
    /// assert_eq!(coming.count(&rank.type_of::<i32>()?)?, 3);
    /// let mut room = [0; 3];
    /// world.recv(&mut room, coming.source(), coming.tag())?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK or TAG for a wrong argument. PROC_ABORTED if the rank is dead.
    #[track_caller]
    #[doc(alias = "MPI_Probe")]
    pub fn probe(&self, source: i32, tag: i32) -> Result<Envelope> {
        let found = |state: &mut State, pattern: &Pattern| state.probe(pattern);
        let arrival = self.await_message("probe", source, tag, found)?;
        Ok(self.envelope(arrival))
    }

    /// Describes a message from a rank with a tag, if one has arrived (MPI-5.0 section 3.8.1).
    /// Doesn't wait. See [`probe`](Communicator::probe).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert!(rank.alone().iprobe(0, longshore::ANY_TAG)?.is_none());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`probe`](Communicator::probe).
    #[track_caller]
    #[doc(alias = "MPI_Iprobe")]
    pub fn iprobe(&self, source: i32, tag: i32) -> Result<Option<Envelope>> {
        let found = |state: &mut State, pattern: &Pattern| state.probe(pattern);
        let arrival = self.poll_message("iprobe", source, tag, found)?;
        Ok(arrival.map(|arrival| self.envelope(arrival)))
    }

    /// Waits for a message from a rank with a tag, and reserves it for [`Matched::recv`] (MPI-5.0
    /// section 3.8.2). Probes and receives of other threads can't get it.
    ///
    /// # Errors
    /// Those of [`probe`](Communicator::probe).
    #[track_caller]
    #[doc(alias = "MPI_Mprobe")]
    pub fn mprobe(&self, source: i32, tag: i32) -> Result<Matched> {
        let claimed = self.await_message("mprobe", source, tag, State::claim)?;
        Ok(self.matched(claimed))
    }

    /// Reserves a message from a rank with a tag, if one has arrived (MPI-5.0 section 3.8.2).
    /// Doesn't wait. See [`mprobe`](Communicator::mprobe).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let alone = rank.alone();
    /// assert!(alone.improbe(0, 1)?.is_none());
    /// alone.send(&[4], 0, 1)?;
    /// let message = loop {
    ///     if let Some(message) = alone.improbe(0, 1)? {
    ///         break message;
    ///     }
    /// };
    /// let mut room = [0];
    /// message.recv(&mut room)?;
    /// assert_eq!(room, [4]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`probe`](Communicator::probe).
    #[track_caller]
    #[doc(alias = "MPI_Improbe")]
    pub fn improbe(&self, source: i32, tag: i32) -> Result<Option<Matched>> {
        let claimed = self.poll_message("improbe", source, tag, State::claim)?;
        Ok(claimed.map(|claimed| self.matched(claimed)))
    }

    /// Waits until `found` returns a message; `None` for PROC_NULL.
    #[track_caller]
    fn await_message<T>(
        &self,
        call: &'static str,
        source: i32,
        tag: i32,
        found: impl Fn(&mut State, &Pattern) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        let (process, caller) = (self.process(), Location::caller());
        self.call(call, Activity::Probe, source, || {
            if source == PROC_NULL {
                return Ok(None);
            }
            let pattern = self.pattern(source, tag, Channel::Data)?;
            process.note_wait(pattern.sender.one());
            let (tag, unmatched) = (pattern.tag, Some(pattern.context));
            let awaited = Awaited { tag, unmatched, caller };
            awaited.wait(process, |state| found(state, &pattern)).map(Some)
        })
    }

    /// Makes progress once, then returns the result of `found`. The inner option is `None` for
    /// PROC_NULL.
    #[track_caller]
    fn poll_message<T>(
        &self,
        call: &'static str,
        source: i32,
        tag: i32,
        found: impl Fn(&mut State, &Pattern) -> Option<Result<T>>,
    ) -> Result<Option<Option<T>>> {
        let process = self.process();
        let poll = || -> Result<Option<Option<T>>> {
            self.ready()?;
            if source == PROC_NULL {
                return Ok(Some(None));
            }
            let pattern = self.pattern(source, tag, Channel::Data)?;
            let mut found_one = None;
            process.test(|state| {
                found_one = found(state, &pattern);
                found_one.is_some()
            })?;
            Ok(found_one.transpose()?.map(Some))
        };
        let caller = Location::caller();
        poll().map_err(|error| self.raise(error.at(|| self.toward(call, source)), caller))
    }

    fn envelope(&self, arrival: Option<Arrival>) -> Envelope {
        let Some(arrival) = arrival else {
            return Envelope { source: NULL_STATUS.source, tag: NULL_STATUS.tag, arrival: None };
        };
        let source = self.peers().rank_of(arrival.peer).map_or(PROC_NULL, |rank| rank as i32);
        let stream = self.process().engine().state().stream(arrival.peer);
        let packed = self.foreign_packed().copied();
        Envelope { source, tag: arrival.tag, arrival: Some((arrival, stream, packed)) }
    }

    fn matched(&self, claimed: Option<(Arrival, u64)>) -> Matched {
        let (arrival, number) = claimed.unzip();
        Matched { communicator: self.share(), envelope: self.envelope(arrival), number }
    }
}
