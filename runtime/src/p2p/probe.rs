//! Messages that are looked at before they are received (MPI-5.0 section 3.8).

use shipable::Architecture;

use super::{NOTHING, in_group};
use crate::communicator::Communicator;
use crate::engine::{Arrival, Channel, Keep, Pattern, State, Status};
use crate::error::Result;
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::scope;
use crate::origin::Destination;
use crate::types::Type;

/// A message that has come and isn't received yet: who sent it, with which tag, and how much it is.
#[derive(Clone, Debug)]
pub struct Envelope {
    source: i32,
    tag: i32,
    /// The message, the representation that it travels in, and the one of packed data; none of PROC_NULL.
    arrival: Option<(Arrival, Architecture, Architecture)>,
}

impl Envelope {
    /// Who sent it: its rank in the communicator, or PROC_NULL, of which nothing comes.
    pub fn source(&self) -> i32 {
        self.source
    }

    /// With which tag.
    pub fn tag(&self) -> i32 {
        self.tag
    }

    /// How many elements of a type it has (`MPI_Get_count`); [`UNDEFINED`](crate::UNDEFINED) where it ends within one.
    ///
    /// # Errors
    /// TYPE for a type of another signature.
    pub fn count(&self, datatype: &Type) -> Result<i64> {
        self.measure(datatype).map(|(count, _)| count)
    }

    /// How many basic elements (`MPI_Get_elements`), a pair's being two.
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
    pub fn elements(&self, datatype: &Type) -> Result<i64> {
        self.measure(datatype).map(|(_, elements)| elements)
    }

    fn measure(&self, datatype: &Type) -> Result<(i64, i64)> {
        let Some((arrival, stream, packed)) = &self.arrival else { return Ok((0, 0)) };
        let fit = arrival.fit(datatype.compiled(), stream, packed)?;
        Ok((fit.count, fit.elements))
    }
}

/// A message that a probe has taken out, so that no other receive of this rank gets it. Dropped, it is thrown away.
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
#[must_use = "a message that isn't received is thrown away"]
pub struct Matched {
    communicator: Communicator,
    envelope: Envelope,
    /// Its number in the engine, until it is received; none of PROC_NULL.
    number: Option<u64>,
}

impl Matched {
    /// What is known of it.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Receives it (MPI-5.0 section 3.8.3).
    ///
    /// # Errors
    /// As [`Communicator::recv`]. The message is gone then.
    pub fn recv<'a>(self, room: impl Into<Destination<'a>>) -> Result<Status> {
        let room = room.into();
        let Some(number) = self.number else { return Ok(NOTHING) };
        let (communicator, source) = (&self.communicator, self.envelope.source);
        let process = communicator.process();
        communicator.call("mrecv", Activity::Receive, source, || {
            scope(
                |_| process.engine().state().abandon(number),
                |scope| {
                    let span = scope.lend_mut(room.loan);
                    let landing = communicator.landing(span, &room.what, Keep::Lender)?;
                    process.engine().state().receive_claimed(number, landing);
                    process.note_wait(communicator.member(source).ok().flatten());
                    let delivery = process.wait(|state, _| state.take_received(number))?;
                    Ok(in_group(communicator.group(), delivery.status))
                },
            )
        })
    }
}

impl Drop for Matched {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.communicator.process().engine().state().discard_claimed(number);
        }
    }
}

impl Communicator {
    /// Waits for a message of a rank with a tag, or of [`ANY_SOURCE`](crate::ANY_SOURCE) and with [`ANY_TAG`](crate::ANY_TAG), and
    /// leaves it where it is (MPI-5.0 section 3.8.1): the next receive from there with that tag gets it.
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
    /// RANK, TAG; PROC_ABORTED if the rank is gone.
    pub fn probe(&self, source: i32, tag: i32) -> Result<Envelope> {
        let found = |state: &mut State, pattern: &Pattern| state.probe(pattern);
        let arrival = self.await_message("probe", source, tag, found)?;
        Ok(self.envelope(arrival))
    }

    /// As [`probe`](Communicator::probe), without waiting: none where there is no such message yet.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// assert!(rank.alone().iprobe(0, longshore::ANY_TAG)?.is_none());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`probe`](Communicator::probe).
    pub fn iprobe(&self, source: i32, tag: i32) -> Result<Option<Envelope>> {
        let found = |state: &mut State, pattern: &Pattern| state.probe(pattern);
        let arrival = self.look_for("iprobe", source, tag, found)?;
        Ok(arrival.map(|arrival| self.envelope(arrival)))
    }

    /// As [`probe`](Communicator::probe), and takes the message out for [`Matched::recv`]: what another thread probes or
    /// receives is another one (MPI-5.0 section 3.8.2).
    ///
    /// # Errors
    /// As [`probe`](Communicator::probe).
    pub fn mprobe(&self, source: i32, tag: i32) -> Result<Matched> {
        let claimed = self.await_message("mprobe", source, tag, State::claim)?;
        Ok(self.matched(claimed))
    }

    /// As [`mprobe`](Communicator::mprobe), without waiting: none where there is no such message yet.
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
    /// As [`probe`](Communicator::probe).
    pub fn improbe(&self, source: i32, tag: i32) -> Result<Option<Matched>> {
        let claimed = self.look_for("improbe", source, tag, State::claim)?;
        Ok(claimed.map(|claimed| self.matched(claimed)))
    }

    /// Waits for what `found` finds; none from PROC_NULL.
    fn await_message<T>(
        &self,
        call: &'static str,
        source: i32,
        tag: i32,
        found: impl Fn(&mut State, &Pattern) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        let process = self.process();
        self.call(call, Activity::Probe, source, || {
            if source == PROC_NULL {
                return Ok(None);
            }
            let pattern = self.pattern(source, tag, Channel::Data)?;
            process.note_wait(pattern.sender.one());
            process.wait(|state, _| found(state, &pattern)).map(Some)
        })
    }

    /// What `found` finds now, once what has come was taken in; from PROC_NULL at once, and nothing.
    fn look_for<T>(
        &self,
        call: &'static str,
        source: i32,
        tag: i32,
        found: impl Fn(&mut State, &Pattern) -> Option<Result<T>>,
    ) -> Result<Option<Option<T>>> {
        let process = self.process();
        let look = || -> Result<Option<Option<T>>> {
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
        look().map_err(|error| self.raise(error.at(|| self.toward(call, source))))
    }

    fn envelope(&self, arrival: Option<Arrival>) -> Envelope {
        let Some(arrival) = arrival else {
            return Envelope { source: NOTHING.source, tag: NOTHING.tag, arrival: None };
        };
        let source = self.group().rank_of(arrival.peer).map_or(PROC_NULL, |rank| rank as i32);
        let stream = self.process().engine().state().stream(arrival.peer);
        let packed = *self.packed_representation();
        Envelope { source, tag: arrival.tag, arrival: Some((arrival, stream, packed)) }
    }

    fn matched(&self, claimed: Option<(Arrival, u64)>) -> Matched {
        let (arrival, number) = claimed.unzip();
        Matched { communicator: self.share(), envelope: self.envelope(arrival), number }
    }
}
