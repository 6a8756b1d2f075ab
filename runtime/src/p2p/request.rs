//! Nonblocking sends and receives (MPI-5.0 section 3.7). A request owns its memory until it
//! completes, unless the program keeps that by a promise, as in C.

use std::panic::Location;

use super::{Awaited, NULL_STATUS, checked_tag, in_group, rank_in};
use crate::check::Caller;
use crate::communicator::{ANY_TAG, Communicator};
use crate::dropped::Dropped;
use crate::engine::{Channel, Landing, Message, State, Status};
use crate::error::{Error, ErrorKind, Result};
use crate::given::{Given, Kept, Taken};
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::Memory;
use crate::observe::At;
use crate::origin::Origin;
use crate::raw::{Pointed, Promised};
use crate::several::Waitable;
use crate::several::sealed::{self, Frame, Maker};

/// A nonblocking send. It owns its data, and [`wait`](Sending::wait) returns them. If it is
/// dropped, the message is sent all the same.
#[must_use = "`wait` returns the data"]
pub struct Sending<M: Memory> {
    pending: Pending<M>,
}

/// A nonblocking receive. It owns its buffer, and [`wait`](Receiving::wait) returns it. If it is
/// dropped, it receives nothing, and a message that matched it already is lost.
#[must_use = "`wait` returns the received data"]
pub struct Receiving<M: Memory> {
    pending: Pending<M>,
}

/// The state common to sends and receives.
struct Pending<M> {
    communicator: Communicator,
    /// The rank that the call addressed, as it was passed.
    other: i32,
    /// `None` for any tag.
    tag: Option<i32>,
    /// The number of the request in the engine; `None` after completion.
    number: Option<u64>,
    /// Whether the receive is taken back.
    withdrawn: bool,
    memory: Option<Kept>,
    kind: std::marker::PhantomData<M>,
}

impl<M: Memory> Pending<M> {
    fn new(
        communicator: &Communicator,
        (other, tag): (i32, i32),
        number: Option<u64>,
        memory: Kept,
    ) -> Pending<M> {
        let communicator = communicator.share();
        let (memory, tag) = (Some(memory), Some(tag).filter(|tag| *tag != ANY_TAG));
        let (withdrawn, kind) = (false, std::marker::PhantomData);
        Pending { communicator, other, tag, number, withdrawn, memory, kind }
    }

    /// The process at the other end; `None` if that is any or none.
    fn peer(&self) -> Option<u32> {
        self.communicator.member(self.other).ok().flatten()
    }

    /// Whether the request has completed. Makes progress.
    #[track_caller]
    fn test(&self, call: &'static str, is_done: impl Fn(&State, u64) -> bool) -> Result<bool> {
        let Some(number) = self.number else { return Ok(true) };
        let (communicator, process) = (&self.communicator, self.communicator.process());
        let place = || communicator.toward(call, self.other);
        let is_done = process.test(|state| is_done(state, number));
        let caller = Location::caller();
        is_done.map_err(|error| communicator.raise(error.at(place), caller))
    }

    /// Waits for completion and returns the result; `None` if the request never reached the engine.
    #[track_caller]
    fn wait<T>(
        &mut self,
        call: &'static str,
        activity: Activity,
        take: impl Fn(&mut State, u64) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        let Some(number) = self.number else { return Ok(None) };
        let (process, caller) = (self.communicator.process(), Location::caller());
        process.ready().map_err(|error| self.failed(call, error, caller))?;
        match process.find(|state| take(state, number)) {
            Some(ended) => {
                self.number = None;
                ended.map(Some).map_err(|error| self.failed(call, error, caller))
            }
            None => self.wait_longer(call, activity, take),
        }
    }

    /// Waits for completion, which hasn't come yet.
    #[track_caller]
    #[inline(never)] // The path of requests that have completed stays small.
    fn wait_longer<T>(
        &mut self,
        call: &'static str,
        activity: Activity,
        take: impl Fn(&mut State, u64) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        let Some(number) = self.number else { return Ok(None) };
        let (communicator, other) = (&self.communicator, self.other);
        let receives = activity == Activity::Receive;
        let unmatched = receives.then(|| communicator.context(Channel::Data));
        let caller = Location::caller();
        let awaited = Awaited { tag: self.tag, unmatched, caller };
        let (process, held) = (communicator.process(), &mut self.number);
        let peer = communicator.member(other).ok().flatten();
        // A communicator that is freed meanwhile stays until its requests have completed (MPI-5.0
        // section 7.4.3).
        let at = At { peer, ..At::of(caller) };
        let ended = process.during(activity, peer.unwrap_or(other as u32), at, || {
            process.note_wait(peer);
            let ended = awaited.wait(process, |state| take(state, number).map(Ok))?;
            *held = None;
            ended.map(Some)
        });
        ended.map_err(|error| self.failed(call, error, caller))
    }

    /// Adds the place to an error, and passes it to the communicator's error handler.
    #[cold]
    fn failed(&self, call: &'static str, error: Error, caller: Caller) -> Error {
        let communicator = &self.communicator;
        let rank_of = |peer| rank_in(communicator.peers(), peer);
        let place = || communicator.toward(call, self.other);
        communicator.raise(error.received_in(rank_of).at(place), caller)
    }

    /// Hands the request to the engine, which ends it. It holds the request's memory until then,
    /// unless the program keeps that.
    fn drop_request(&self, dropped: Dropped) {
        self.communicator.process().names().dropped().push(dropped);
    }

    /// Returns the memory. The engine must no longer use it.
    fn give_back(&mut self) -> Result<M> {
        let memory = self.memory.take().and_then(Kept::give_back);
        memory.ok_or_else(|| ErrorKind::Aborting { by: None }.into())
    }
}

impl<M: Memory> Sending<M> {
    /// Whether the data may be changed, so that [`wait`](Sending::wait) returns at once. Makes
    /// progress.
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        self.pending.test("isend", State::is_sent)
    }

    /// Waits until the data may be changed, and returns them.
    ///
    /// # Errors
    /// Those of [`Communicator::send`]. The data is dropped then.
    #[track_caller]
    pub fn wait(mut self) -> Result<M> {
        self.end()?;
        self.pending.give_back()
    }

    #[track_caller]
    fn end(&mut self) -> Result<()> {
        self.pending.wait("isend", Activity::Send, State::take_sent).map(drop)
    }
}

impl Sending<Pointed> {
    /// Waits as [`wait`](Sending::wait) does, and keeps the request, which has ended then. Pointed
    /// memory is the program's own, so nothing is returned.
    ///
    /// ```
    /// use longshore::Given;
    ///
    /// # let rank = longshore::init()?;
    /// let (value, mut room) = ([1.5], [0.0]);
    /// let double = rank.type_of::<f64>()?;
    /// // SAFETY: both arrays hold a double, and are used only after the requests' end.
    /// let (from, to) = unsafe {
    ///     let from = value.as_ptr().cast_mut().cast();
    ///     (Given::raw(from, 1, &double), Given::raw(room.as_mut_ptr().cast(), 1, &double))
    /// };
    /// let mut receiving = rank.alone().irecv(to, 0, 3)?;
    /// let mut sending = rank.alone().isend(from, 0, 3)?;
    /// sending.complete()?;
    /// assert_eq!((receiving.complete()?.tag, room), (3, value));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`wait`](Sending::wait).
    #[track_caller]
    pub fn complete(&mut self) -> Result<()> {
        self.end()
    }
}

impl<M: Memory> Drop for Sending<M> {
    fn drop(&mut self) {
        if let Some(number) = self.pending.number {
            self.pending.drop_request(Dropped::Send(number));
        }
    }
}

impl<M: Memory> Receiving<M> {
    pub(super) fn new(
        communicator: &Communicator,
        addressed: (i32, i32),
        number: Option<u64>,
        memory: Kept,
    ) -> Receiving<M> {
        Receiving { pending: Pending::new(communicator, addressed, number, memory) }
    }

    /// Whether a message has arrived, so that [`wait`](Receiving::wait) returns at once. Makes
    /// progress.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let receiving = rank.alone().irecv(vec![0], 0, 0)?;
    /// assert!(!receiving.test()?);
    /// rank.alone().send(&[7], 0, 0)?;
    /// while !receiving.test()? {
    ///     // Other work.
    /// }
    /// assert_eq!(receiving.wait()?.0, [7]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED if the job is being aborted.
    #[track_caller]
    pub fn test(&self) -> Result<bool> {
        self.pending.test("irecv", State::is_received)
    }

    /// Waits for the message. Returns the buffer that contains it, and its status.
    ///
    /// # Errors
    /// Those of [`Communicator::recv`]. The buffer is dropped then.
    #[track_caller]
    pub fn wait(mut self) -> Result<(M, Status)> {
        let status = self.end()?;
        Ok((self.pending.give_back()?, status))
    }

    #[track_caller]
    fn end(&mut self) -> Result<Status> {
        let received = self.pending.wait("irecv", Activity::Receive, State::take_status)?;
        let group = self.pending.communicator.peers();
        Ok(received.map_or(NULL_STATUS, |received| in_group(group, received)))
    }

    /// Cancels the receive (MPI-5.0 section 3.8.4). Returns the buffer, and no status. If a message
    /// has matched already, waits for it and returns its status.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let receiving = rank.alone().irecv(vec![7], 0, 0)?;
    /// assert_eq!(receiving.cancel()?, (vec![7], None));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`wait`](Receiving::wait).
    #[track_caller]
    pub fn cancel(mut self) -> Result<(M, Option<Status>)> {
        match self.withdraw() {
            true => Ok((self.pending.give_back()?, None)),
            false => self.wait().map(|(room, status)| (room, Some(status))),
        }
    }

    /// Takes the receive back, unless a message has matched it. Doesn't wait. Returns whether it
    /// is taken back: it then counts as complete, and [`cancel`](Receiving::cancel) returns the
    /// buffer at once.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let mut receiving = rank.alone().irecv(vec![7], 0, 0)?;
    /// assert!(receiving.withdraw());
    /// // No receive is there any more that would get this message.
    /// rank.alone().send(&[8], 0, 0)?;
    /// let mut room = [0];
    /// rank.alone().recv(&mut room, 0, 0)?;
    /// assert_eq!((receiving.cancel()?, room), ((vec![7], None), [8]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn withdraw(&mut self) -> bool {
        let Pending { communicator, number, withdrawn, .. } = &mut self.pending;
        let process = communicator.process();
        // A program may withdraw and start receives until a message is here.
        process.serve();
        if number.is_some_and(|number| process.engine().state().withdraw(number)) {
            *number = None;
            *withdrawn = true;
        }
        *withdrawn
    }
}

impl Receiving<Pointed> {
    /// Waits as [`wait`](Receiving::wait) does, and keeps the request, which has ended then. See
    /// [`Sending::complete`].
    ///
    /// # Errors
    /// Those of [`wait`](Receiving::wait).
    #[track_caller]
    pub fn complete(&mut self) -> Result<Status> {
        self.end()
    }
}

impl<M: Memory> sealed::Waitable for Sending<M> {
    fn is_complete(&self, Frame(state): Frame<'_>) -> bool {
        self.pending.number.is_none_or(|number| state.is_sent(number))
    }

    fn process(&self) -> Option<Maker<'_>> {
        Some(Maker(self.pending.communicator.process()))
    }

    fn awaited(&self) -> Option<u32> {
        self.pending.peer()
    }
}

impl<M: Memory> sealed::Waitable for Receiving<M> {
    fn is_complete(&self, Frame(state): Frame<'_>) -> bool {
        self.pending.number.is_none_or(|number| state.is_received(number))
    }

    fn process(&self) -> Option<Maker<'_>> {
        Some(Maker(self.pending.communicator.process()))
    }

    fn awaited(&self) -> Option<u32> {
        self.pending.peer()
    }
}

impl<M: Memory> Waitable for Sending<M> {}
impl<M: Memory> Waitable for Receiving<M> {}

impl<M: Memory> Drop for Receiving<M> {
    fn drop(&mut self) {
        if let Some(number) = self.pending.number {
            self.pending.drop_request(Dropped::Receive(number));
        }
    }
}

impl Communicator {
    /// Starts to send data that it takes over (MPI-5.0 section 3.7.2). See
    /// [`send`](Communicator::send).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (me, size) = (world.rank(), world.size());
    /// let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    /// let sending = world.isend(vec![world.rank(); 100_000], next, 0)?;
    /// let receiving = world.irecv(vec![-1; 100_000], before, 0)?;
    /// let (got, status) = receiving.wait()?;
    /// assert_eq!((got[99_999], status.count), (before, 100_000));
    /// let mut data = sending.wait()?;
    /// data.clear(); // the data belongs to the caller again
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`send`](Communicator::send). The data is dropped then.
    #[track_caller]
    #[doc(alias = "MPI_Isend")]
    pub fn isend<M: Memory>(
        &self,
        data: impl Into<Given<M>>,
        dest: i32,
        tag: i32,
    ) -> Result<Sending<M>> {
        self.isend_as("isend", data.into(), (dest, tag), false)
    }

    /// Sends a short message as [`isend`](Communicator::isend) does, if its request would be
    /// complete at once. Otherwise returns false, and sends nothing.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let alone = rank.alone();
    /// assert!(alone.isend_at_once(&[7], 0, 0)?);
    /// // A long message waits for its receiver.
    /// assert!(!alone.isend_at_once(&[7; 100_000], 0, 0)?);
    /// let mut room = [0];
    /// alone.recv(&mut room, 0, 0)?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`send`](Communicator::send).
    #[track_caller]
    pub fn isend_at_once<'a>(
        &self,
        data: impl Into<Origin<'a>>,
        dest: i32,
        tag: i32,
    ) -> Result<bool> {
        let data = data.into();
        if self.send_at_once(data.loan.span(), &data.what, dest, tag) {
            return Ok(true);
        }
        self.refuse_at_once(&data, dest, tag)
    }

    /// The outcome of [`isend_at_once`](Communicator::isend_at_once) for a message that isn't sent
    /// at once. One to `PROC_NULL` is never sent, and is complete.
    #[track_caller]
    #[inline(never)] // The path of messages that are sent stays small.
    fn refuse_at_once(&self, data: &Origin<'_>, dest: i32, tag: i32) -> Result<bool> {
        let attempt = || -> Result<bool> {
            self.ready()?;
            checked_tag(tag)?;
            data.what.check(self.process(), data.loan.span())?;
            Ok(self.member(dest)?.is_none())
        };
        let caller = Location::caller();
        attempt().map_err(|error| self.raise(error.at(|| self.toward("isend", dest)), caller))
    }

    /// An [`isend`](Communicator::isend) in the synchronous mode: it completes only when a receive
    /// has matched the message (MPI-5.0 section 3.7.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let sending = rank.alone().issend(vec![7], 0, 0)?;
    /// assert!(!sending.test()?);
    /// let mut room = [0];
    /// rank.alone().recv(&mut room, 0, 0)?;
    /// assert_eq!((sending.wait()?, room), (vec![7], [7]));
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`isend`](Communicator::isend).
    #[track_caller]
    #[doc(alias = "MPI_Issend")]
    pub fn issend<M: Memory>(
        &self,
        data: impl Into<Given<M>>,
        dest: i32,
        tag: i32,
    ) -> Result<Sending<M>> {
        self.isend_as("issend", data.into(), (dest, tag), true)
    }

    #[track_caller]
    fn isend_as<M: Memory>(
        &self,
        call: &'static str,
        data: Given<M>,
        (dest, tag): (i32, i32),
        synchronous: bool,
    ) -> Result<Sending<M>> {
        let (process, caller) = (self.process(), Location::caller());
        let start = || -> Result<Sending<M>> {
            self.ready()?;
            let taken = Taken::kept(data, process)?;
            let (tag, peer) = (checked_tag(tag)?, self.member(dest)?);
            let span = taken.lease().span();
            let at_once = || self.send_at_once(span, &taken.what(), dest, tag);
            let number = match peer {
                Some(peer) if synchronous || !at_once() => {
                    let message = self.message(taken.lease(), &taken.what(), peer, tag)?;
                    process.start_send(peer, Message { synchronous, ..message }, (caller, false))?
                }
                Some(_) => None,
                None => taken.what().check(process, span).map(|_| None)?,
            };
            Ok(Sending { pending: Pending::new(self, (dest, tag), number, taken.memory) })
        };
        start().map_err(|error| self.raise(error.at(|| self.toward(call, dest)), caller))
    }

    /// Starts to receive into a buffer that it takes over (MPI-5.0 section 3.7.2). See
    /// [`recv`](Communicator::recv), and [`isend`](Communicator::isend) for an example.
    ///
    /// # Errors
    /// RANK, TAG, COUNT or BUFFER for a wrong argument; the buffer is dropped then. Errors of the
    /// message are returned by [`wait`](Receiving::wait).
    #[track_caller]
    #[doc(alias = "MPI_Irecv")]
    pub fn irecv<M: Memory>(
        &self,
        room: impl Into<Given<M>>,
        source: i32,
        tag: i32,
    ) -> Result<Receiving<M>> {
        let caller = Location::caller();
        let start = || -> Result<Receiving<M>> {
            self.ready()?;
            let taken = Taken::kept(room.into(), self.process())?;
            let landing = self.landing(taken.lease(), &taken.what())?;
            self.start_irecv(landing, taken.memory, (source, tag), caller)
        };
        start().map_err(|error| self.raise(error.at(|| self.toward("irecv", source)), caller))
    }

    /// An [`irecv`](Communicator::irecv) into memory that the program keeps until its end.
    ///
    /// ```
    /// use longshore::Promised;
    ///
    /// # let rank = longshore::init()?;
    /// let (int, mut room) = (rank.type_of::<i32>()?, [0]);
    /// // SAFETY: the array holds an integer. It outlives the request, and is used after its end.
    /// let place = unsafe { Promised::raw(room.as_mut_ptr().cast(), 1, &int) };
    /// let mut receiving = rank.alone().irecv_promised(place, 0, 0)?;
    /// rank.alone().send(&[7], 0, 0)?;
    /// receiving.complete()?;
    /// assert_eq!(room, [7]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`irecv`](Communicator::irecv).
    #[track_caller]
    pub fn irecv_promised(
        &self,
        Promised { memory, what }: Promised<'_>,
        source: i32,
        tag: i32,
    ) -> Result<Receiving<Pointed>> {
        let caller = Location::caller();
        let start = || -> Result<Receiving<Pointed>> {
            self.ready()?;
            let kept = Kept::Promised(memory);
            let landing = self.landing(kept.lease(), &what)?;
            self.start_irecv(landing, kept, (source, tag), caller)
        };
        start().map_err(|error| self.raise(error.at(|| self.toward("irecv", source)), caller))
    }

    #[inline]
    fn start_irecv<M: Memory>(
        &self,
        landing: Landing,
        memory: Kept,
        (source, tag): (i32, i32),
        caller: Caller,
    ) -> Result<Receiving<M>> {
        let process = self.process();
        let number = match source {
            PROC_NULL => None,
            _ => {
                let pattern = self.pattern(source, tag, Channel::Data)?;
                let number = process.start_receive(pattern, landing, (caller, false));
                process.leave_rest();
                Some(number)
            }
        };
        Ok(Receiving::new(self, (source, tag), number, memory))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crossbeam_channel::bounded;

    use crate::sim::{Options, run, run_shared};

    /// A receiver that has a long message makes no call while it waits for its sender elsewhere.
    #[test]
    fn a_long_message_that_is_received_lets_its_sender_go_on() {
        for claims in [false, true] {
            let (sent, is_sent) = bounded(1);
            let body = |rank: crate::Rank| {
                let world = rank.world();
                if world.rank() == 0 {
                    world.barrier().unwrap();
                    world.send(&vec![7u8; 1 << 20], 1, 3).unwrap();
                    sent.send(()).unwrap();
                } else {
                    world.barrier().unwrap();
                    let room = vec![0u8; 1 << 20];
                    let envelope = world.probe(0, 3).unwrap();
                    let receiving = match claims {
                        true => world.mprobe(envelope.source(), 3).unwrap().irecv(room).unwrap(),
                        false => world.irecv(room, 0, 3).unwrap(),
                    };
                    assert!(receiving.wait().unwrap().0 == [7; 1 << 20]);
                    is_sent.recv_timeout(Duration::from_secs(30)).unwrap();
                }
                rank.finalize().unwrap();
            };
            run_shared(2, &Options::default(), body).unwrap();
        }
    }

    /// A program may start and withdraw a receive until the message is here.
    #[test]
    fn receives_that_are_withdrawn_make_progress() {
        let body = |rank: crate::Rank| {
            let world = rank.world();
            if world.rank() == 0 {
                world.send(&[5], 1, 0).unwrap();
            } else {
                let mut status = None;
                while status.is_none() {
                    status = world.irecv(vec![0], 0, 0).unwrap().cancel().unwrap().1;
                }
            }
            world.barrier().unwrap();
            rank.finalize().unwrap();
        };
        run_shared(2, &Options::default(), body).unwrap();
    }

    /// Another thread may hold the engine for long: it moves megabytes, or waits for the network.
    #[test]
    fn a_dropped_request_does_not_wait_for_the_engine() {
        let body = |rank: crate::Rank| {
            let alone = rank.alone();
            let receiving = alone.irecv(vec![0i32], 0, 5).unwrap();
            // Long enough to be announced, and never received.
            let sending = alone.isend(vec![1u8; 1 << 20], 0, 6).unwrap();
            alone.send(&[7i32], 0, 7).unwrap();
            let claimed = alone.mprobe(0, 7).unwrap();
            let (done, dropped) = bounded(1);
            let engine = rank.process().engine();
            let in_time = std::thread::scope(|scope| {
                scope.spawn(move || {
                    drop((receiving, sending, claimed));
                    done.send(())
                });
                let in_time = dropped.recv_timeout(Duration::from_secs(30)).is_ok();
                drop(engine);
                in_time
            });
            // The dropped receive gets no message, and the dropped send sends its own.
            alone.send(&[8i32], 0, 5).unwrap();
            let (mut word, mut long) = ([0i32], vec![0u8; 1 << 20]);
            alone.recv(&mut long, 0, 6).unwrap();
            alone.recv(&mut word, 0, 5).unwrap();
            rank.finalize().unwrap();
            (in_time, word[0], long[0])
        };
        assert_eq!(run(1, &Options::default(), body).unwrap(), [(true, 8, 1)]);
    }
}
