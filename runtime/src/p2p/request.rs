//! Sends and receives that are waited for later (MPI-5.0 section 3.7). Each owns its memory until then.

use std::sync::Arc;

use super::{NOTHING, checked_tag, in_group};
use crate::communicator::Communicator;
use crate::engine::{Channel, State, Status};
use crate::error::{ErrorKind, Result};
use crate::given::{Given, Taken};
use crate::group::PROC_NULL;
use crate::job::Activity;
use crate::memory::{Exposed, Memory};

/// A send under way. It owns its data, and [`wait`](Sending::wait) gives them back; dropped, it goes on all the same.
#[must_use = "the data come back from `wait`"]
pub struct Sending<M: Memory> {
    held: Held<M>,
}

/// A receive that waits for its message, or takes it in. It owns its room, and [`wait`](Receiving::wait) gives it back; dropped,
/// it takes nothing any more, and a message that it has met is lost.
#[must_use = "what is received comes from `wait`"]
pub struct Receiving<M: Memory> {
    held: Held<M>,
}

/// What both have.
struct Held<M> {
    communicator: Communicator,
    /// The other rank, as the call named it.
    other: i32,
    /// Its number in the engine, unless it is done.
    number: Option<u64>,
    memory: Option<Arc<Exposed>>,
    kind: std::marker::PhantomData<M>,
}

impl<M: Memory> Held<M> {
    fn new(communicator: &Communicator, other: i32, number: Option<u64>, taken: Taken) -> Held<M> {
        let communicator = communicator.share();
        let memory = Some(taken.memory);
        Held { communicator, other, number, memory, kind: std::marker::PhantomData }
    }

    /// Whether it has ended. Makes progress.
    fn test(&self, call: &'static str, is_done: impl Fn(&State, u64) -> bool) -> Result<bool> {
        let Some(number) = self.number else { return Ok(true) };
        let (communicator, process) = (&self.communicator, self.communicator.process());
        let place = || communicator.toward(call, self.other);
        let is_done = process.test(|state| is_done(state, number));
        is_done.map_err(|error| communicator.raise(error.at(place)))
    }

    /// Waits for its end, and gives what it came to; nothing where it needed no engine.
    fn wait<T>(
        &mut self,
        call: &'static str,
        activity: Activity,
        take: impl Fn(&mut State, u64) -> Option<Result<T>>,
    ) -> Result<Option<T>> {
        let Some(number) = self.number else { return Ok(None) };
        let (communicator, other) = (&self.communicator, self.other);
        let (process, held) = (communicator.process(), &mut self.number);
        communicator.call(call, activity, other, || {
            process.note_wait(communicator.member(other).ok().flatten());
            let ended = process.wait(|state, _| take(state, number).map(Ok))?;
            *held = None;
            ended.map(Some)
        })
    }

    /// The memory, of which the engine has let go.
    fn give_back(&mut self) -> Result<M> {
        let memory = self.memory.take().and_then(Arc::into_inner);
        let memory = memory.and_then(Exposed::give_back);
        memory.ok_or_else(|| ErrorKind::Aborting { by: None }.into())
    }
}

impl<M: Memory> Sending<M> {
    /// Whether the data may be changed, so that [`wait`](Sending::wait) returns at once. Makes progress.
    ///
    /// # Errors
    /// PROC_ABORTED where the job is being ended.
    pub fn test(&self) -> Result<bool> {
        self.held.test("isend", State::is_sent)
    }

    /// Waits until the data may be changed, and gives them back.
    ///
    /// # Errors
    /// As [`Communicator::send`]; the data are lost then.
    pub fn wait(mut self) -> Result<M> {
        self.held.wait("isend", Activity::Send, State::take_sent)?;
        self.held.give_back()
    }
}

impl<M: Memory> Drop for Sending<M> {
    fn drop(&mut self) {
        if let Some(number) = self.held.number {
            self.held.communicator.process().engine().state().forget_send(number);
        }
    }
}

impl<M: Memory> Receiving<M> {
    /// Whether a message is here, so that [`wait`](Receiving::wait) returns at once. Makes progress.
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let receiving = rank.alone().irecv(vec![0], 0, 0)?;
    /// assert!(!receiving.test()?);
    /// rank.alone().send(&[7], 0, 0)?;
    /// while !receiving.test()? {
    ///     // Something else in the meantime.
    /// }
    /// assert_eq!(receiving.wait()?.0, [7]);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PROC_ABORTED where the job is being ended.
    pub fn test(&self) -> Result<bool> {
        self.held.test("irecv", State::is_received)
    }

    /// Waits for the message, and gives back the room that it is in.
    ///
    /// # Errors
    /// As [`Communicator::recv`]; the room is lost then.
    pub fn wait(mut self) -> Result<(M, Status)> {
        let received = self.held.wait("irecv", Activity::Receive, State::take_received)?;
        let group = self.held.communicator.group();
        let status = received.map_or(NOTHING, |received| in_group(group, received.status));
        Ok((self.held.give_back()?, status))
    }

    /// Takes the receive back (MPI-5.0 section 3.8.4): gives the room, and no status, unless a message has met it already; then
    /// it is waited for.
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
    /// As [`wait`](Receiving::wait).
    pub fn cancel(mut self) -> Result<(M, Option<Status>)> {
        let process = self.held.communicator.process();
        match self.held.number {
            Some(number) if process.engine().state().withdraw(number) => {
                self.held.number = None;
                Ok((self.held.give_back()?, None))
            }
            _ => self.wait().map(|(room, status)| (room, Some(status))),
        }
    }
}

impl<M: Memory> Drop for Receiving<M> {
    fn drop(&mut self) {
        if let Some(number) = self.held.number {
            self.held.communicator.process().engine().state().abandon(number);
        }
    }
}

impl Communicator {
    /// As [`send`](Communicator::send), of memory that is given to it and waited for later (MPI-5.0 section 3.7.2).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// let world = rank.world();
    /// let (next, before) = ((world.rank() + 1) % world.size(), (world.rank() + world.size() - 1) % world.size());
    /// let sending = world.isend(vec![world.rank(); 100_000], next, 0)?;
    /// let receiving = world.irecv(vec![-1; 100_000], before, 0)?;
    /// let (got, status) = receiving.wait()?;
    /// assert_eq!((got[99_999], status.count), (before, 100_000));
    /// let mut data = sending.wait()?;
    /// data.clear(); // free again
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`send`](Communicator::send). The data are lost then.
    pub fn isend<M: Memory>(
        &self,
        data: impl Into<Given<M>>,
        dest: i32,
        tag: i32,
    ) -> Result<Sending<M>> {
        let process = self.process();
        let start = || -> Result<Sending<M>> {
            self.ready()?;
            let taken = Taken::new(data.into(), process)?;
            let (tag, peer) = (checked_tag(tag)?, self.member(dest)?);
            let (span, keep) = (taken.memory.span(), taken.keep());
            let message = self.message(span, &taken.what(), tag, keep)?;
            let mut engine = process.engine();
            let number = match peer {
                Some(peer) => engine.state().start_send(peer, message)?,
                None => None,
            };
            engine.progress();
            drop(engine);
            Ok(Sending { held: Held::new(self, dest, number, taken) })
        };
        start().map_err(|error| self.raise(error.at(|| self.toward("isend", dest))))
    }

    /// As [`recv`](Communicator::recv), into memory that is given to it and waited for later (MPI-5.0 section 3.7.2); an
    /// example at [`isend`](Communicator::isend).
    ///
    /// # Errors
    /// RANK, TAG, COUNT, BUFFER for what they name, and the room is lost. What is wrong with the message, the wait says.
    pub fn irecv<M: Memory>(
        &self,
        room: impl Into<Given<M>>,
        source: i32,
        tag: i32,
    ) -> Result<Receiving<M>> {
        let process = self.process();
        let start = || -> Result<Receiving<M>> {
            self.ready()?;
            let taken = Taken::new(room.into(), process)?;
            let landing = self.landing(taken.memory.span(), &taken.what(), taken.keep())?;
            let number = match source {
                PROC_NULL => None,
                _ => {
                    let pattern = self.pattern(source, tag, Channel::Data)?;
                    let mut engine = process.engine();
                    let number = engine.state().start_receive(pattern, landing);
                    engine.progress();
                    Some(number)
                }
            };
            Ok(Receiving { held: Held::new(self, source, number, taken) })
        };
        start().map_err(|error| self.raise(error.at(|| self.toward("irecv", source))))
    }
}
