//! Partitioned messages (MPI-5.0 section 4.2): a message whose parts go when the program marks them
//! ready, mostly by several threads.
//!
//! 1. A sender that prepares a message tells the receiver how it divides its data. This *offer* has
//!    the tag of the message, in a channel of its own. Receives take the offers of their sender and
//!    tag in the order in which they are prepared, so the n-th send matches the n-th receive.
//! 2. Each part is a message of its own, in another channel. Its tag is a number that the sender
//!    has given it. So parts go in any order, and those of the next round come after those of this
//!    one.
//! 3. The receiver divides its data as it likes. If a part ends between two of its elements, the
//!    parts are kept until all have come.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use serde::{Deserialize, Serialize};
use shipable::Class;

use super::Communicator;
use super::message::{Block, open};
use super::nonblocking::{Shared, side, taken};
use super::participants::{MAX_VALUE, Participants, protocol};
use crate::bytes::Bytes;
use crate::engine::Channel;
use crate::error::{Error, ErrorKind, Result};
use crate::given::Given;
use crate::group::Group;
use crate::memory::Memory;
use crate::process::Schedule;
use crate::several::Waitable;
use crate::several::sealed::{self, Frame, Maker};

/// How a sender divides its data.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Offer {
    partitions: u32,
    /// The basic items of each partition.
    items: u64,
    /// The tag of the messages of the first partition. Those of the others follow it.
    first: u32,
}

/// A partitioned message that is prepared, for any number of rounds.
#[doc(hidden)]
#[derive(Clone)]
pub struct Partitioned(Arc<Prepared>);

struct Prepared {
    way: Arc<Way>,
    data: Divided,
    half: Half,
    /// The steps that tell or learn how the sender divides its data; `None` for PROC_NULL.
    offered: Option<Arc<Schedule>>,
}

/// The two ranks of a message.
struct Way {
    /// Kept, since the program may free it while it has requests.
    communicator: Communicator,
    /// The process at the other end; `None` for PROC_NULL.
    peer: Option<u32>,
    both: Group,
}

/// The data of one end.
#[derive(Clone)]
struct Divided {
    data: Shared,
    partitions: u32,
    /// The elements of each partition.
    count: u64,
    /// The basic items of each partition.
    items: u64,
    /// The bytes of all of them, in this rank's representation.
    bytes: i64,
}

enum Half {
    /// The tag of the first partition's messages, and the parts of the round that is started.
    Send(u32, Mutex<Option<Vec<Part>>>),
    /// What the sender has told, and the round that is started.
    Receive(Arc<OnceLock<Offer>>, Mutex<Option<Round>>),
}

/// A part of a send.
enum Part {
    Unready,
    /// A thread packs it.
    Begun,
    /// Its message, and the error by which its data couldn't be packed.
    Sent(Arc<Schedule>, Option<Error>),
}

/// A receive that is started, and which parts of the sender's have come.
struct Round {
    steps: Arc<Schedule>,
    arrived: Arc<OnceLock<Vec<AtomicBool>>>,
}

/// The number of the next partition that a rank sends on a communicator.
#[derive(Default)]
pub(super) struct PartNumbers(AtomicU32);

impl PartNumbers {
    /// Numbers for so many partitions, one after the other. They are tags.
    fn take(&self, partitions: u32) -> Result<u32> {
        let more = |next: u32| next.checked_add(partitions).filter(|end| *end <= i32::MAX as u32);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map_err(|_| {
            let what =
                "2147483647 partitions have been prepared on this communicator: duplicate it";
            wrong(Class::Other, what.to_owned())
        })
    }
}

fn wrong(class: Class, what: String) -> Error {
    ErrorKind::Partition { class, what }.into()
}

/// The error of a call for one partition.
fn no_partition(number: u32, partitions: u32) -> Error {
    wrong(Class::Arg, format!("partition {number} of {partitions}: they count from 0"))
}

/// The error of a call for another kind of request.
fn misused(what: &str) -> Error {
    wrong(Class::Request, what.to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Communicator {
    /// Prepares to send partitions of equal length, which the data are divided into.
    #[doc(hidden)]
    #[track_caller]
    pub fn psend_init<M: Memory>(
        &self,
        data: impl Into<Given<M>>,
        partitions: u32,
        dest: i32,
        tag: i32,
    ) -> Result<Partitioned> {
        let (caller, data) = (Location::caller(), data.into());
        let prepare = || -> Result<Partitioned> {
            let way = self.way(dest)?;
            let data = self.partitions_of(data, partitions)?;
            let first = self.shared.partitions.take(partitions)?;
            let offered = match way.peer {
                Some(peer) => {
                    let offer = Offer { partitions, items: data.items, first };
                    let encoded = shipable::codec::encode(&offer, MAX_VALUE);
                    let encoded = encoded.map_err(|error| protocol(peer, &error.to_string()))?;
                    let way = way.clone();
                    Some(self.process().schedule(async move {
                        way.at(Channel::Offers, tag)
                            .exchange(Some((peer, encoded.into())), None)
                            .await?;
                        Ok(())
                    }))
                }
                None => None,
            };
            let half = Half::Send(first, Mutex::default());
            Ok(Partitioned(Arc::new(Prepared { way, data, half, offered })))
        };
        prepare().map_err(|error| self.raised(error, "psend_init", caller))
    }

    /// Prepares to receive partitions of equal length, which the room is divided into.
    #[doc(hidden)]
    #[track_caller]
    pub fn precv_init<M: Memory>(
        &self,
        room: impl Into<Given<M>>,
        partitions: u32,
        source: i32,
        tag: i32,
    ) -> Result<Partitioned> {
        let (caller, room) = (Location::caller(), room.into());
        let prepare = || -> Result<Partitioned> {
            let way = self.way(source)?;
            let data = self.partitions_of(room, partitions)?;
            side(&data.data).resolve(self)?.check_disjoint()?;
            let offer = Arc::new(OnceLock::new());
            let offered = way.peer.map(|peer| {
                let (way, offer) = (way.clone(), offer.clone());
                self.process().schedule(async move {
                    let told = way.at(Channel::Offers, tag).exchange(None, Some(peer)).await?;
                    let decoded = shipable::codec::decode(&told, MAX_VALUE);
                    let _ = offer.set(decoded.map_err(|error| protocol(peer, &error.to_string()))?);
                    Ok(())
                })
            });
            let half = Half::Receive(offer, Mutex::default());
            Ok(Partitioned(Arc::new(Prepared { way, data, half, offered })))
        };
        prepare().map_err(|error| self.raised(error, "precv_init", caller))
    }

    /// The way to a rank.
    fn way(&self, rank: i32) -> Result<Arc<Way>> {
        self.ready()?;
        let (me, peer) = (self.process().me().rank, self.peers().member(rank)?);
        let mut both = vec![me];
        both.extend(peer.filter(|peer| *peer != me));
        Ok(Arc::new(Way { communicator: self.keep(), peer, both: Group::new(both, me) }))
    }

    fn partitions_of<M: Memory>(&self, given: Given<M>, partitions: u32) -> Result<Divided> {
        let data = taken(given, self)?;
        let all = side(&data).resolve(self)?;
        let each = u64::from(partitions.max(1));
        if all.count % each != 0 {
            let what = format!("{} elements in {partitions} partitions of equal length", all.count);
            return Err(wrong(Class::Count, what));
        }
        let count = all.count / each;
        let items = count.checked_mul(all.datatype.native().items());
        let items = items.ok_or(shipable::Error::Overflow { what: "the items of a partition" })?;
        let bytes =
            i64::try_from(all.datatype.native().stream_length(all.count)?).unwrap_or(i64::MAX);
        Ok(Divided { data, partitions, count, items, bytes })
    }
}

impl Way {
    /// Both ranks, for one message in a channel.
    fn at(&self, channel: Channel, tag: i32) -> Participants<'_> {
        let communicator = &self.communicator;
        let context = communicator.context(channel);
        Participants::new(communicator.process(), &self.both, 0, context, tag).returning()
    }
}

impl Divided {
    /// The elements of which a partition of `items` items at `number` consists; `None` if it ends
    /// between two elements.
    fn elements(&self, number: u32, items: u64) -> Option<Range<u64>> {
        let of_one = self.items.checked_div(self.count)?;
        let count = items.checked_div(of_one).filter(|count| count * of_one == items)?;
        let first = u64::from(number).checked_mul(count)?;
        Some(first..first.checked_add(count)?)
    }
}

impl Partitioned {
    /// The bytes of all partitions of this rank.
    #[doc(hidden)]
    pub fn bytes(&self) -> i64 {
        self.0.data.bytes
    }

    /// Starts a round.
    #[doc(hidden)]
    pub fn start(&self) -> Result<()> {
        let Prepared { way, data, half, .. } = &*self.0;
        way.communicator.ready()?;
        match half {
            Half::Send(_, round) => {
                *lock(round) = Some((0..data.partitions).map(|_| Part::Unready).collect());
            }
            Half::Receive(offer, round) => *lock(round) = self.receive(offer),
        }
        Ok(())
    }

    /// Starts to receive; `None` from PROC_NULL.
    fn receive(&self, offer: &Arc<OnceLock<Offer>>) -> Option<Round> {
        let Prepared { way, data, offered, .. } = &*self.0;
        let (peer, offered, offer) = (way.peer?, offered.clone()?, offer.clone());
        let arrived = Arc::new(OnceLock::new());
        let (way, data, come) = (way.clone(), data.clone(), arrived.clone());
        let steps = way.communicator.process().clone().schedule(async move {
            poll_fn(|_| if offered.has_ended() { Poll::Ready(()) } else { Poll::Pending }).await;
            let Some(&offer) = offer.get() else {
                // Its error is that of the first round.
                offered.take_outcome()?;
                return Err(misused("the sender's offer never came: free the request"));
            };
            way.receive_all(peer, &data, offer, &come).await
        });
        Some(Round { steps, arrived })
    }

    /// Marks a partition of a send as ready, which sends it. Any thread may call this.
    #[doc(hidden)]
    pub fn ready(&self, partition: u32) -> Result<()> {
        let Prepared { way, data, half, .. } = &*self.0;
        let Half::Send(first, round) = half else {
            return Err(misused("the request receives: its sender makes partitions ready"));
        };
        let communicator = &way.communicator;
        communicator.ready()?;
        let set = |part: Part| -> Result<()> {
            let mut round = lock(round);
            let inactive = || misused("the request isn't started: start it first");
            let parts = round.as_mut().ok_or_else(inactive)?;
            let Some(place) = parts.get_mut(partition as usize) else {
                return Err(no_partition(partition, data.partitions));
            };
            if matches!((&part, &*place), (Part::Begun, Part::Begun | Part::Sent(..))) {
                let what = format!("partition {partition} is ready already: start the next round");
                return Err(wrong(Class::Arg, what));
            }
            *place = part;
            Ok(())
        };
        set(Part::Begun)?;
        let Some(peer) = way.peer else { return Ok(()) };
        let packed = side(&data.data).resolve(communicator).and_then(|all| {
            communicator.pack_part(&all, u64::from(partition) * data.count, data.count)
        });
        let (bytes, failed) = communicator.seal(packed);
        let (way, tag) = (way.clone(), (first + partition) as i32);
        let process = communicator.process();
        let sent = process.schedule(async move {
            way.at(Channel::Parts, tag).exchange(Some((peer, bytes)), None).await?;
            Ok(())
        });
        set(Part::Sent(sent, failed))?;
        // Another thread may sleep until the last part has gone. It looks with the engine locked.
        let _engine = process.engine();
        process.nudge();
        Ok(())
    }

    /// Whether a partition of a receive has come. It has if no round is started.
    #[doc(hidden)]
    pub fn arrived(&self, partition: u32) -> Result<bool> {
        let Prepared { way, data, half, .. } = &*self.0;
        let Half::Receive(offer, round) = half else {
            return Err(misused("the request sends: partitions arrive at its receiver"));
        };
        if partition >= data.partitions {
            return Err(no_partition(partition, data.partitions));
        }
        let has_come = || {
            let round = lock(round);
            let Some(Round { steps, arrived }) = &*round else { return true };
            let items = |number: u32| u64::from(number) * data.items;
            let (begin, end) = (items(partition), items(partition + 1));
            let parts = arrived.get().zip(offer.get());
            // Partitions without elements come with the last one.
            steps.has_ended()
                || parts.filter(|_| data.items > 0).is_some_and(|(parts, offer)| {
                    let covers = (begin / offer.items.max(1), end.div_ceil(offer.items.max(1)));
                    let covers = parts.get(covers.0 as usize..covers.1 as usize);
                    covers.is_some_and(|parts| parts.iter().all(|it| it.load(Ordering::Acquire)))
                })
        };
        way.communicator.process().test(|_| has_come())
    }

    /// Ends a round that is complete.
    #[doc(hidden)]
    pub fn end(&self) -> Result<()> {
        let Prepared { half, offered, .. } = &*self.0;
        match half {
            Half::Send(_, round) => {
                let parts = lock(round).take();
                let outcome = |part| match part {
                    Part::Sent(sent, failed) => failed.map_or(sent.take_outcome(), Err),
                    Part::Unready | Part::Begun => Ok(()),
                };
                let told = offered.as_ref().map_or(Ok(()), |offered| offered.take_outcome());
                parts.into_iter().flatten().map(outcome).fold(told, Result::and)
            }
            Half::Receive(_, round) => {
                let round = lock(round).take();
                round.map_or(Ok(()), |round| round.steps.take_outcome())
            }
        }
    }
}

impl Way {
    /// Receives all parts of a round.
    async fn receive_all(
        &self,
        peer: u32,
        data: &Divided,
        offer: Offer,
        arrived: &OnceLock<Vec<AtomicBool>>,
    ) -> Result<()> {
        let Offer { partitions, items, first } = offer;
        let communicator = &self.communicator;
        let all = side(&data.data).resolve(communicator)?;
        let whole = |partitions: u32, items: u64| u128::from(partitions) * u128::from(items);
        let (theirs, ours) = (whole(partitions, items), whole(data.partitions, data.items));
        let is_apart = theirs == ours && data.elements(0, items).is_some();
        let flags = || (0..partitions).map(|_| AtomicBool::new(false)).collect();
        let flags: &Vec<AtomicBool> = arrived.get_or_init(flags);
        let (all, flags) = (&all, &flags[..]);
        // Returns the bytes of a part that can't be unpacked by itself.
        let part = |number: u32| async move {
            let tag = first.wrapping_add(number) as i32;
            let bytes = self.at(Channel::Parts, tag).exchange(None, Some(peer)).await?;
            let elements = data.elements(number, items).filter(|_| is_apart);
            let Some(elements) = elements else { return Ok(Some(bytes)) };
            let count = elements.end - elements.start;
            communicator.unpack_from(all, elements.start, count, &bytes)?;
            flags[number as usize].store(true, Ordering::Release);
            Ok(None)
        };
        // All are received, also after an error: the parts of the next round follow them.
        let kept = together((0..partitions).map(part)).await;
        let kept: Vec<Bytes> =
            kept.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?;
        if theirs != ours {
            let what = format!(
                "the sender's {partitions} partitions have {items} items each, and the {} of the \
                 receive {}: give equally many in all",
                data.partitions, data.items
            );
            return Err(wrong(Class::Truncate, what));
        }
        if is_apart {
            return Ok(());
        }
        let mut joined = Bytes::default();
        kept.iter().try_for_each(|bytes| joined.extend(open(bytes)?.1))?;
        communicator.unpack_bare(Block::of(all), all.signature(all.count)?, &joined)
    }
}

/// Runs steps together, and returns their outcomes in order.
async fn together<T>(steps: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = steps.map(|steps| (Box::pin(steps), None)).collect();
    poll_fn(|context| {
        let mut have_ended = true;
        for (steps, outcome) in running.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            match steps.as_mut().poll(context) {
                Poll::Ready(ended) => *outcome = Some(ended),
                Poll::Pending => have_ended = false,
            }
        }
        if have_ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, outcome)| outcome).collect()
}

impl sealed::Waitable for Partitioned {
    fn is_complete(&self, _: Frame<'_>) -> bool {
        let Prepared { way, half, offered, .. } = &*self.0;
        match half {
            Half::Send(_, round) => {
                let is_known = offered.as_ref().is_none_or(|offered| offered.has_ended());
                let has_gone = |part: &Part| match part {
                    Part::Unready => false,
                    Part::Begun => way.peer.is_none(),
                    Part::Sent(sent, _) => sent.has_ended(),
                };
                is_known && lock(round).as_ref().is_none_or(|parts| parts.iter().all(has_gone))
            }
            Half::Receive(_, round) => {
                lock(round).as_ref().is_none_or(|round| round.steps.has_ended())
            }
        }
    }

    fn process(&self) -> Option<Maker<'_>> {
        Some(Maker(self.0.way.communicator.process()))
    }

    fn awaited(&self) -> Option<u32> {
        self.0.way.peer
    }
}

impl Waitable for Partitioned {}
