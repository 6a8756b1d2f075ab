//! How the ranks of a communicator come to know what each of them brings: bytes of any length, in ceil(log2 n) steps.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Communicator;
use crate::barrier::Barrier;
use crate::engine::{Channel, Landing, Message, Pattern, Sender, Source, State, Venue};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::process::{Meeting, Process};

/// The tag of messages of bytes for this crate's own use; elements go with 0.
const BYTES: i32 = 1;

/// The tag of what a barrier's first use says.
const MEETING: i32 = 2;

/// The longest of what ranks tell each other, encoded.
const OFFER: usize = 4096;

/// Ranks that agree on something: all of a communicator, or some of them.
pub(super) struct Circle<'a> {
    process: &'a Process,
    group: &'a Group,
    rank: u32,
    /// Who is the first in what goes by a tree: broadcast, fold, gather and scatter. The rest counts from rank 0.
    root: u32,
    context: u32,
    tag: i32,
}

/// Where a communicator's barrier lies, or the class and text of what kept rank 0 from making it.
type Lines = Result<(u64, u64), (u8, String)>;

impl<'a> Circle<'a> {
    /// The ranks of a group to which this process, as `rank`, belongs; all of them use the same context and tag.
    pub(super) fn new(
        process: &'a Process,
        group: &'a Group,
        rank: u32,
        context: u32,
        tag: i32,
    ) -> Circle<'a> {
        Circle { process, group, rank, root: 0, context, tag }
    }

    /// Everyone's bytes, by rank.
    ///
    /// 1. Before step k everyone holds the bytes of the `held = 2^k` ranks from its own on.
    /// 2. It sends as many of them as are missing there to the rank `held` before it, and hears from the one `held` after.
    pub(super) fn allgather(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let size = self.group.size() as u32;
        let mut all = vec![mine];
        while (all.len() as u32) < size {
            let held = all.len() as u32;
            let wanted = held.min(size - held);
            let to = self.group.process((self.rank + size - held) % size);
            let from = self.group.process((self.rank + held) % size);
            let sent = join(&all[..wanted as usize]);
            let heard = self.exchange(Some((to, sent)), Some(from))?;
            all.extend(self.part(&heard, wanted as usize, from)?);
        }
        // Of the rank itself first: the ranks before it are the last ones.
        all.rotate_right(self.rank as usize);
        Ok(all)
    }

    /// Everyone's values, by rank.
    pub(super) fn tell<T: Serialize + DeserializeOwned>(&self, mine: &T) -> Result<Vec<T>> {
        self.tell_within(mine, OFFER)
    }

    /// Likewise, each of them at most so many bytes long.
    pub(super) fn tell_within<T: Serialize + DeserializeOwned>(
        &self,
        mine: &T,
        limit: usize,
    ) -> Result<Vec<T>> {
        let me = self.process.me().rank;
        let encoded = shipable::codec::encode(mine, limit);
        let all = self.allgather(encoded.map_err(|error| protocol(me, &error.to_string()))?)?;
        let decode = |(rank, bytes): (u32, &Vec<u8>)| {
            let decoded = shipable::codec::decode(bytes, limit);
            decoded.map_err(|error| protocol(self.group.process(rank), &error.to_string()))
        };
        (0..).zip(&all).map(decode).collect()
    }

    /// The same ranks, counted from another one on: it is the first.
    pub(super) fn rooted(self, root: u32) -> Circle<'a> {
        Circle { root, ..self }
    }

    fn size(&self) -> u32 {
        self.group.size() as u32
    }

    /// This rank's place from the root on.
    fn place(&self) -> u32 {
        (self.rank + self.size() - self.root) % self.size()
    }

    fn process_at(&self, place: u32) -> u32 {
        self.group.process((place + self.root) % self.size())
    }

    /// The children of a place of the binomial tree are those that differ from it in one bit below its lowest: the bits of
    /// this rank's, the highest first.
    fn children(&self) -> impl Iterator<Item = u32> {
        let (place, size) = (self.place(), self.size());
        let lowest = match place {
            0 => size.next_power_of_two(),
            place => 1 << place.trailing_zeros(),
        };
        let bits = std::iter::successors(Some(lowest >> 1), |bit| Some(bit >> 1));
        bits.take_while(|bit| *bit > 0).filter(move |bit| place + bit < size)
    }

    /// The parent's process; none of the root.
    fn parent(&self) -> Option<u32> {
        let place = self.place();
        (place != 0).then(|| self.process_at(place & (place - 1)))
    }

    /// The bytes of the root, by a binomial tree.
    pub(super) fn broadcast(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let bytes = match self.parent() {
            Some(parent) => self.exchange(None, Some(parent))?,
            None => mine,
        };
        let children: Vec<u32> =
            self.children().map(|bit| self.process_at(self.place() + bit)).collect();
        if !children.is_empty() {
            self.send_all(&children, &Arc::from(&bytes[..]))?;
        }
        Ok(bytes)
    }

    /// Sends the same to several processes, each of which takes it when it is ready.
    fn send_all(&self, to: &[u32], bytes: &Arc<[u8]>) -> Result<()> {
        let mut engine = self.process.engine();
        let start = |&to| (to, self.start_send(engine.state(), to, bytes.clone()));
        let started: Vec<_> = to.iter().map(start).collect();
        engine.progress();
        drop(engine);
        let mut outcome = Ok(());
        for (to, sending) in started {
            let sent = sending.and_then(|number| match number {
                Some(number) if outcome.is_ok() => self.finish_send(to, number),
                Some(number) => {
                    self.process.engine().state().forget_send(number);
                    Ok(())
                }
                None => Ok(()),
            });
            outcome = outcome.and(sent);
        }
        outcome
    }

    /// At the root, what `combine` makes of everyone's bytes, in the order of their places; nothing elsewhere. Each rank
    /// combines what its children have with its own, the nearest first.
    pub(super) fn fold(
        &self,
        mine: Vec<u8>,
        mut combine: impl FnMut(Vec<u8>, Vec<u8>, u32) -> Result<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let mut held = mine;
        let children: Vec<_> = self.children().collect();
        for bit in children.into_iter().rev() {
            let child = self.process_at(self.place() + bit);
            let heard = self.exchange(None, Some(child))?;
            held = combine(held, heard, bit)?;
        }
        match self.parent() {
            Some(parent) => self.exchange(Some((parent, held)), None).map(|_| None),
            None => Ok(Some(held)),
        }
    }

    /// At the root everyone's bytes, by rank; nothing elsewhere.
    pub(super) fn gather(&self, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let together = |mut held: Vec<u8>, heard: Vec<u8>, _| {
            held.extend(heard);
            Ok(held)
        };
        let Some(joined) = self.fold(join(&[mine]), together)? else { return Ok(None) };
        let mut parts = self.part(&joined, self.size() as usize, self.group.process(self.root))?;
        parts.rotate_right(self.root as usize);
        Ok(Some(parts))
    }

    /// This rank's of the root's byte strings, which are given by rank.
    pub(super) fn scatter(&self, mut parts: Vec<Vec<u8>>) -> Result<Vec<u8>> {
        match self.parent() {
            // A place's tree are the places up to its lowest bit.
            Some(parent) => {
                let place = self.place();
                let count = (1 << place.trailing_zeros()).min(self.size() - place);
                parts = self.part(&self.exchange(None, Some(parent))?, count as usize, parent)?;
            }
            None => parts.rotate_left(self.root as usize),
        }
        for bit in self.children() {
            let theirs = join(&parts.split_off(bit as usize));
            self.exchange(Some((self.process_at(self.place() + bit), theirs)), None)?;
        }
        Ok(parts.pop().unwrap_or_default())
    }

    /// What each rank has for this one, by rank; `parts` are what this one has for each.
    ///
    /// 1. Part j is for the rank j after this one.
    /// 2. In step k all parts whose j has bit k go on to the rank 2^k after, and stay part j there.
    /// 3. Then part j is from the rank j before this one.
    pub(super) fn alltoall(&self, mut parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let size = self.size();
        parts.rotate_left(self.rank as usize);
        let mut bit = 1;
        while bit < size {
            let moving: Vec<u32> = (0..size).filter(|part| part & bit != 0).collect();
            let sent: Vec<_> =
                moving.iter().map(|&part| std::mem::take(&mut parts[part as usize])).collect();
            let to = self.group.process((self.rank + bit) % size);
            let from = self.group.process((self.rank + size - bit) % size);
            let heard = self.exchange(Some((to, join(&sent))), Some(from))?;
            let heard = self.part(&heard, moving.len(), from)?;
            moving.into_iter().zip(heard).for_each(|(part, heard)| parts[part as usize] = heard);
            bit <<= 1;
        }
        parts.reverse();
        parts.rotate_right(self.rank as usize + 1);
        Ok(parts)
    }

    /// Goes on in ever wider steps: `combine` is given what the ranks before this one have, as far as they are known, the
    /// nearer ones last; what it makes of it goes on to the ranks after.
    pub(super) fn scan(
        &self,
        mine: Vec<u8>,
        mut combine: impl FnMut(Vec<u8>, &[u8]) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let (size, mut held, mut step) = (self.size(), mine, 1);
        while step < size {
            let to = self.rank + step;
            let sent = (to < size).then(|| (self.group.process(to), held.clone()));
            let from = self.rank.checked_sub(step).map(|from| self.group.process(from));
            let heard = self.exchange(sent, from)?;
            if from.is_some() {
                held = combine(heard, &held)?;
            }
            step <<= 1;
        }
        Ok(())
    }

    /// Sends bytes from one rank to another.
    pub(super) fn pass(&self, from: u32, to: u32, bytes: Vec<u8>) -> Result<Vec<u8>> {
        match self.rank {
            rank if from == to && rank == from => Ok(bytes),
            rank if rank == from => self.exchange(Some((self.group.process(to), bytes)), None),
            rank if rank == to => self.exchange(None, Some(self.group.process(from))),
            _ => Ok(Vec::new()),
        }
    }

    fn part(&self, joined: &[u8], count: usize, from: u32) -> Result<Vec<Vec<u8>>> {
        apart(joined, count).ok_or_else(|| protocol(from, "what it passed on is cut short"))
    }

    /// Sends to one process and receives from another. Anyone's death ends it.
    fn exchange(&self, sent: Option<(u32, Vec<u8>)>, from: Option<u32>) -> Result<Vec<u8>> {
        let (context, tag) = (self.context, self.tag);
        let to = sent.as_ref().map(|(to, _)| *to);
        let mut engine = self.process.engine();
        let receiving = from.map(|from| {
            let pattern = Pattern { context, sender: Sender::One(from), tag: Some(tag) };
            engine.state().start_receive(pattern, Landing::Bytes)
        });
        let sending = sent.map(|(to, bytes)| self.start_send(engine.state(), to, bytes.into()));
        engine.progress();
        drop(engine);
        let both = || {
            if let (Some(number), Some(to)) = (sending.transpose()?.flatten(), to) {
                self.finish_send(to, number)?;
            }
            let Some(number) = receiving else { return Ok(Vec::new()) };
            self.process.note_wait(from);
            let received = self.process.wait_among(self.group, |state| state.take_received(number));
            received.map(|delivery| delivery.bytes)
        };
        both().inspect_err(|_: &Error| {
            if let Some(number) = receiving {
                self.process.engine().state().abandon(number);
            }
        })
    }

    /// Begins to send; gives the number to [finish](Circle::finish_send) it by, if there is anything to wait for.
    fn start_send(&self, state: &mut State, to: u32, bytes: Arc<[u8]>) -> Result<Option<u64>> {
        let message = Message {
            context: self.context,
            tag: self.tag,
            length: bytes.len() as u64,
            signature: 0,
            source: Source::Bytes(bytes),
        };
        state.start_send(to, message)
    }

    /// Waits until what was sent has gone. Whether or not it fails, nobody asks after it any more.
    fn finish_send(&self, to: u32, number: u64) -> Result<()> {
        self.process.note_wait(Some(to));
        let sent = self.process.wait_among(self.group, |state| state.take_sent(number));
        sent.inspect_err(|_| self.process.engine().state().forget_send(number))
    }
}

impl Communicator {
    /// All its ranks.
    pub(super) fn circle(&self, tag: i32) -> Circle<'_> {
        let Communicator { shared } = self;
        let context = self.context(Channel::Internal);
        Circle::new(&shared.process, &shared.group, shared.rank, context, tag)
    }

    /// Everyone's values, by rank: what a collective call on a window agrees by.
    pub(crate) fn tell_at<T: Serialize + DeserializeOwned>(
        &self,
        window: u32,
        mine: &T,
    ) -> Result<Vec<T>> {
        let Communicator { shared } = self;
        let (context, tag) = (self.context(Channel::Windows), window as i32);
        Circle::new(&shared.process, &shared.group, shared.rank, context, tag).tell(mine)
    }

    /// Everyone's values, by rank: what a collective call agrees by.
    pub(crate) fn tell<T: Serialize + DeserializeOwned>(&self, mine: &T) -> Result<Vec<T>> {
        self.circle(BYTES).tell(mine)
    }

    /// Returns once all ranks have called it. It needs no memory that all share, so it can be what comes before that is
    /// given back.
    pub(super) fn rendezvous(&self) -> Result<()> {
        self.process().meet_at(self.venue(), self.group(), self.rank() as u32)
    }

    /// Likewise, for a window that is closed: all ranks have closed it then.
    pub(crate) fn rendezvous_behind(&self, window: u32) -> Result<()> {
        let venue = Venue::Closed(window);
        self.process().meet_at(venue, self.group(), self.rank() as u32)?;
        // Who is through has heard all that is said there.
        self.process().engine().state().close_venue(venue);
        Ok(())
    }

    fn venue(&self) -> Venue {
        Venue::Communicator(self.number())
    }

    /// Where all share memory, rank 0 finds some for a barrier, and tells the others where.
    pub(super) fn make_meeting(&self) -> Result<Meeting> {
        let process = self.process();
        if !process.hosts().hold(self.group()) {
            return Ok(Meeting::Messages(self.venue()));
        }
        let bytes = Barrier::bytes(self.size() as u32);
        let lines: Lines = match self.rank() {
            0 => match process.segment().allocate(bytes) {
                Ok(range) => Ok((range.offset, range.len)),
                Err(error) => Err(told(&error.into())),
            },
            _ => Ok((0, 0)),
        };
        let first = self.group().process(0);
        let wrong = |error: shipable::codec::CodecError| protocol(first, &error.to_string());
        let encoded = shipable::codec::encode(&lines, OFFER).map_err(wrong)?;
        let told = self.circle(MEETING).broadcast(encoded)?;
        match shipable::codec::decode::<Lines>(&told, OFFER).map_err(wrong)? {
            Ok(place) => {
                let barrier = process.barrier_at(Some(place), self.group(), self.rank() as u32);
                barrier.map(Meeting::Flags)
            }
            Err((class, text)) => Err(ErrorKind::elsewhere(first, class, text).into()),
        }
    }

    /// Gives back what its meetings take, once nobody can be in one any more.
    pub(super) fn release_meeting(&self) -> Result<()> {
        self.process().engine().state().close_venue(self.venue());
        match self.shared.meeting.get() {
            Some(Meeting::Flags(barrier)) if self.rank() == 0 => {
                Ok(self.process().segment().free(barrier.place())?)
            }
            _ => Ok(()),
        }
    }
}

/// An error as other ranks are told of it: its class and text.
pub(crate) fn told(error: &Error) -> (u8, String) {
    (error.class().wire(), error.to_string().chars().take(OFFER / 8).collect())
}

fn protocol(peer: u32, what: &str) -> Error {
    ErrorKind::Protocol { peer, what: what.to_owned() }.into()
}

/// Several byte strings as one: each behind its length.
fn join(parts: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts.iter().map(AsRef::as_ref) {
        all.extend((part.len() as u64).to_le_bytes());
        all.extend_from_slice(part);
    }
    all
}

/// The other way: `None` if these aren't so many.
fn apart(mut joined: &[u8], count: usize) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    for _ in 0..count {
        let (length, rest) = joined.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(part.to_vec());
        joined = rest;
    }
    joined.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_comes_apart_again() {
        let parts = vec![vec![1, 2], vec![], vec![3]];
        let joined = join(&parts);
        assert_eq!(apart(&joined, 3), Some(parts));
        assert_eq!(apart(&joined, 2), None);
        assert_eq!(apart(&joined[..joined.len() - 1], 3), None);
        assert_eq!(apart(&u64::MAX.to_le_bytes(), 1), None);
    }
}
