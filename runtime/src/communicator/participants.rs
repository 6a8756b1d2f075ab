//! Collective algorithms over byte strings of any length, one for each rank: by the ranks' board,
//! or by messages in O(log n) steps.
//!
//! They are asynchronous functions, so that calls that wait and calls with a request run the same
//! steps. A call that waits does so within its steps, which therefore end when they are first
//! polled ([`finish`]). The steps of a call with a request return instead, and are polled again by
//! later calls of the rank ([`Process::advance`]).

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Communicator;
use super::board::Board;
use super::calls::{Call, Ongoing};
use super::places::announced;
use super::posts::{Posts, Way};
use crate::bytes::Bytes;
use crate::engine::{Channel, Delivery, Engine, Landing, Message, Pattern, Sender, Source, State};
use crate::error::{Error, ErrorKind, Result};
use crate::group::Group;
use crate::process::Process;

/// The longest encoded value that ranks exchange, in bytes.
pub(super) const MAX_VALUE: usize = 4096;

/// The ranks that take part in an exchange: all of a communicator, or a group of them.
#[derive(Clone, Copy)]
pub(super) struct Participants<'a> {
    process: &'a Process,
    group: &'a Group,
    rank: u32,
    /// The root of the tree algorithms: broadcast, fold, gather and scatter. The others ignore it.
    root: u32,
    context: u32,
    tag: i32,
    /// The number of the call on the board.
    turn: i32,
    /// The window whose ranks they are, if they exchange in its name.
    window: Option<u32>,
    /// The collective call of which they exchange messages: the communicator, and the call.
    call: Option<(&'a Communicator, Call)>,
    /// Whether the steps wait for messages, instead of returning until they are polled again.
    waits: bool,
    /// Whether they are all ranks of the communicator, which then may exchange by their board.
    may_post: bool,
}

/// Runs the steps of a call that waits. They are pinned by the caller, since they are long to move.
pub(super) fn finish<R>(steps: Pin<&mut impl Future<Output = Result<R>>>) -> Result<R> {
    match steps.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(ErrorKind::Collective.into()),
    }
}

/// A message of an exchange.
pub(super) struct Sent {
    /// The process that gets it.
    pub to: u32,
    pub length: u64,
    pub source: Source,
}

impl Sent {
    pub(super) fn of(to: u32, bytes: Arc<Bytes>) -> Sent {
        Sent { to, length: bytes.len() as u64, source: Source::Kept(bytes) }
    }
}

/// The messages of an exchange that haven't ended. When dropped, lets go of their memory.
struct Underway<'a> {
    process: &'a Process,
    /// The receivers and numbers of sends, and whether each owns its bytes.
    sending: VecDeque<(u32, u64, bool)>,
    /// The senders and numbers of receives.
    receiving: VecDeque<(u32, u64)>,
    /// The first error of a send that didn't start.
    failed: Option<Error>,
}

impl<'a> Underway<'a> {
    fn of(process: &'a Process) -> Underway<'a> {
        let (sending, receiving) = (VecDeque::new(), VecDeque::new());
        Underway { process, sending, receiving, failed: None }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if self.sending.is_empty() && self.receiving.is_empty() {
            return;
        }
        let mut engine = self.process.engine();
        let state = engine.state();
        for (_, number, is_kept) in &self.sending {
            match is_kept {
                // The peer may still need the message.
                true => state.forget_send(*number),
                false => state.abandon(*number),
            }
        }
        self.receiving.iter().for_each(|(_, number)| state.abandon(*number));
    }
}

impl<'a> Participants<'a> {
    /// The ranks of a group to which this process belongs as `rank`. All of them must use the same
    /// context and tag.
    pub(super) fn new(
        process: &'a Process,
        group: &'a Group,
        rank: u32,
        context: u32,
        tag: i32,
    ) -> Participants<'a> {
        Participants {
            process,
            group,
            rank,
            root: 0,
            context,
            tag,
            turn: tag,
            window: None,
            call: None,
            waits: true,
            may_post: false,
        }
    }

    /// The board of the ranks, if they have one and may use it.
    pub(super) fn board(&self) -> Result<Option<&'a Board>> {
        match self.call.filter(|_| self.may_post) {
            Some((communicator, _)) if self.waits => communicator.board(),
            // Made in the first turn.
            Some((communicator, _)) => Ok(communicator.turns().board()),
            None => Ok(None),
        }
    }

    /// The next exchange by the board of the ranks.
    pub(super) fn posts(&self) -> Result<Option<Posts<'a>>> {
        let Some(((communicator, call), board)) = self.call.zip(self.board()?) else {
            return Ok(None);
        };
        Posts::begin(communicator, board, self.ongoing(call))
    }

    /// The call of which they exchange messages.
    fn ongoing(&self, call: Call) -> Ongoing {
        let channel = if self.waits { Channel::Calls } else { Channel::Started };
        Ongoing { channel, number: self.tag, turn: self.turn, call }
    }

    /// The byte strings of all ranks, by rank (Bruck's algorithm).
    ///
    /// 1. Before step k, each rank holds the strings of `held = 2^k` ranks, from its own upward.
    /// 2. It sends those that are missing there to the rank `held` before it, and receives from the
    ///    rank `held` after it.
    pub(super) async fn allgather(&self, mine: Bytes) -> Result<Vec<Bytes>> {
        if let Some(posts) = self.posts()? {
            if let Some(all) = posts.all(&mine).await? {
                return Ok(all);
            }
        }
        let size = self.group.size() as u32;
        let mut all = vec![mine];
        while (all.len() as u32) < size {
            let held = all.len() as u32;
            let wanted = held.min(size - held);
            let to = self.group.process((self.rank + size - held) % size);
            let from = self.group.process((self.rank + held) % size);
            let sent = join(&all[..wanted as usize])?;
            let heard = self.exchange(Some((to, sent)), Some(from)).await?;
            all.extend(self.split_received(&heard, wanted as usize, from)?);
        }
        // The own string comes first, and those of lower ranks last.
        all.rotate_right(self.rank as usize);
        Ok(all)
    }

    /// The values of all ranks, by rank.
    pub(super) async fn allgather_values<T: Serialize + DeserializeOwned>(
        &self,
        mine: &T,
    ) -> Result<Vec<T>> {
        self.allgather_values_within(mine, MAX_VALUE).await
    }

    /// The values of all ranks, by rank. Each is encoded in at most `limit` bytes.
    pub(super) async fn allgather_values_within<T: Serialize + DeserializeOwned>(
        &self,
        mine: &T,
        limit: usize,
    ) -> Result<Vec<T>> {
        let me = self.process.me().rank;
        let encoded = shipable::codec::encode(mine, limit);
        let encoded = encoded.map_err(|error| protocol(me, &error.to_string()))?;
        let all = self.allgather(encoded.into()).await?;
        let decode = |(rank, bytes): (u32, &Bytes)| {
            let decoded = shipable::codec::decode(bytes, limit);
            decoded.map_err(|error| protocol(self.group.process(rank), &error.to_string()))
        };
        (0..).zip(&all).map(decode).collect()
    }

    /// The same ranks, whose exchanges go by message.
    pub(super) fn by_message(self) -> Participants<'a> {
        Participants { may_post: false, ..self }
    }

    /// The same ranks, whose exchanges return where they would wait.
    pub(super) fn returning(self) -> Participants<'a> {
        Participants { waits: false, ..self }
    }

    /// The same ranks, with another root.
    pub(super) fn rooted(self, root: u32) -> Participants<'a> {
        Participants { root, ..self }
    }

    fn size(&self) -> u32 {
        self.group.size() as u32
    }

    /// This rank's position in the tree, counted from the root.
    pub(super) fn position(&self) -> u32 {
        (self.rank + self.size() - self.root) % self.size()
    }

    pub(super) fn process_at(&self, position: u32) -> u32 {
        self.group.process((position + self.root) % self.size())
    }

    /// The children of a position in the binomial tree: each sets one bit below the position's
    /// lowest set bit. Returns these bits, the highest first.
    pub(super) fn children(&self) -> impl Iterator<Item = u32> {
        let (position, size) = (self.position(), self.size());
        let lowest = match position {
            0 => size.next_power_of_two(),
            position => 1 << position.trailing_zeros(),
        };
        let bits = std::iter::successors(Some(lowest >> 1), |bit| Some(bit >> 1));
        bits.take_while(|bit| *bit > 0).filter(move |bit| position + bit < size)
    }

    /// The process of the parent; `None` at the root.
    pub(super) fn parent(&self) -> Option<u32> {
        let position = self.position();
        (position != 0).then(|| self.process_at(position & (position - 1)))
    }

    /// Returns the root's bytes at all ranks, by a binomial tree.
    pub(super) async fn broadcast(&self, mine: Bytes) -> Result<Arc<Bytes>> {
        if let Some(posts) = self.posts()? {
            if let Some(found) = posts.of_root(self.root, &mine).await? {
                return Ok(Arc::new(if self.position() == 0 { mine } else { found }));
            }
        }
        let bytes = Arc::new(match self.parent() {
            Some(parent) => self.exchange(None, Some(parent)).await?,
            None => mine,
        });
        let children: Vec<u32> =
            self.children().map(|bit| self.process_at(self.position() + bit)).collect();
        if !children.is_empty() {
            // All at once, so that a slow one delays no other.
            self.exchange_all(children.iter().map(|to| (*to, bytes.clone())), &[]).await?;
        }
        Ok(bytes)
    }

    /// Combines the bytes of all ranks at the root, in the order of their positions. Returns `None`
    /// at the other ranks. By a board, the root combines all of them. By messages, each rank
    /// combines its bytes with those of its children, the nearest child first. `combine` also gets
    /// the distance of the second position from this rank's.
    pub(super) async fn fold(
        &self,
        mine: Bytes,
        mut combine: impl FnMut(Bytes, Bytes, u32) -> Result<Bytes>,
    ) -> Result<Option<Bytes>> {
        let mut held = mine;
        if let Some(posts) = self.posts()? {
            match self.collect(&posts, held).await? {
                Err(mine) => held = mine,
                Ok(None) => return Ok(None),
                Ok(Some(mut all)) => {
                    all.rotate_left(self.root as usize);
                    let mut all = (0..).zip(all);
                    let first = all.next().map_or_else(Bytes::default, |(_, first)| first);
                    let both = |held, (at, heard)| combine(held, heard, at);
                    return all.try_fold(first, both).map(Some);
                }
            }
        }
        let children: Vec<_> = self.children().collect();
        for bit in children.into_iter().rev() {
            let child = self.process_at(self.position() + bit);
            let heard = self.exchange(None, Some(child)).await?;
            held = combine(held, heard, bit)?;
        }
        match self.parent() {
            Some(parent) => self.exchange(Some((parent, held)), None).await.map(|_| None),
            None => Ok(Some(held)),
        }
    }

    /// Returns the byte strings of all ranks at the root, by rank, and `None` at the other ranks.
    pub(super) async fn gather(&self, mut mine: Bytes) -> Result<Option<Vec<Bytes>>> {
        if let Some(posts) = self.posts()? {
            match self.collect(&posts, mine).await? {
                Err(back) => mine = back,
                Ok(all) => return Ok(all),
            }
        }
        let together = |mut held: Bytes, heard: Bytes, _| {
            held.extend(&heard)?;
            Ok(held)
        };
        let joined = self.by_message().fold(join(&[&mine])?, together).await?;
        let Some(joined) = joined else { return Ok(None) };
        let mut parts =
            self.split_received(&joined, self.size() as usize, self.group.process(self.root))?;
        parts.rotate_right(self.root as usize);
        Ok(Some(parts))
    }

    /// Returns this rank's string of `parts`, which the root passes by rank.
    pub(super) async fn scatter(&self, mut parts: Vec<Bytes>) -> Result<Bytes> {
        if let Some(posts) = self.posts()? {
            if let Some(part) = posts.dealt(self.root, &mut parts).await? {
                return Ok(part);
            }
        }
        match self.parent() {
            // A subtree has as many positions as the lowest set bit of its root's.
            Some(parent) => {
                let position = self.position();
                let count = (1 << position.trailing_zeros()).min(self.size() - position);
                let joined = self.exchange(None, Some(parent)).await?;
                parts = self.split_received(&joined, count as usize, parent)?;
            }
            None => parts.rotate_left(self.root as usize),
        }
        for bit in self.children() {
            let theirs = join(&parts.split_off(bit as usize))?;
            self.exchange(Some((self.process_at(self.position() + bit), theirs)), None).await?;
        }
        Ok(parts.pop().unwrap_or_default())
    }

    /// Sends each rank its string of `parts`, and returns the strings received, by rank (Bruck's
    /// algorithm).
    ///
    /// 1. Initially, part j is for the rank j after this one.
    /// 2. In step k, all parts j with bit k set go to the rank 2^k after this one, and remain part
    ///    j there.
    /// 3. At the end, part j is from the rank j before this one.
    pub(super) async fn alltoall(&self, mut parts: Vec<Bytes>) -> Result<Vec<Bytes>> {
        if let Some(posts) = self.posts()? {
            if let Some(all) = posts.dealt_by_all(&mut parts).await? {
                return Ok(all);
            }
        }
        let size = self.size();
        parts.rotate_left(self.rank as usize);
        let mut bit = 1;
        while bit < size {
            let moving: Vec<u32> = (0..size).filter(|part| part & bit != 0).collect();
            let sent: Vec<_> =
                moving.iter().map(|&part| std::mem::take(&mut parts[part as usize])).collect();
            let to = self.group.process((self.rank + bit) % size);
            let from = self.group.process((self.rank + size - bit) % size);
            let heard = self.exchange(Some((to, join(&sent)?)), Some(from)).await?;
            let heard = self.split_received(&heard, moving.len(), from)?;
            moving.into_iter().zip(heard).for_each(|(part, heard)| parts[part as usize] = heard);
            bit <<= 1;
        }
        parts.reverse();
        parts.rotate_right(self.rank as usize + 1);
        Ok(parts)
    }

    /// Prefix combination. Returns the combination of the bytes of all lower ranks, and that of
    /// these with this rank's. Without a board, in steps of doubling distance.
    pub(super) async fn scan(
        &self,
        mine: Bytes,
        combine: impl Fn(&[u8], Bytes) -> Result<Bytes>,
    ) -> Result<(Option<Bytes>, Bytes)> {
        if let Some(posts) = self.posts()? {
            if let Some(lower) = self.lower(&posts, &mine).await? {
                let mut before: Option<Bytes> = None;
                for heard in lower {
                    before = Some(match &before {
                        Some(lower) => combine(lower, heard)?,
                        None => heard,
                    });
                }
                let whole = match &before {
                    Some(before) => combine(before, mine)?,
                    None => mine,
                };
                return Ok((before, whole));
            }
        }
        let (size, mut held, mut before, mut step) = (self.size(), Arc::new(mine), None, 1);
        while step < size {
            let to = self.rank + step;
            let sent = (to < size).then(|| (self.group.process(to), held.clone()));
            let from = self.rank.checked_sub(step).map(|from| self.group.process(from));
            let heard = self.exchange_all(sent.into_iter(), from.as_slice()).await?;
            if let Some(heard) = heard.into_iter().next() {
                held = Arc::new(combine(&heard, Bytes::copy_of(&held)?)?);
                before = Some(match before.take() {
                    Some(nearer) => combine(&heard, nearer)?,
                    None => heard,
                });
            }
            step <<= 1;
        }
        // The last message may still wait to be sent.
        Ok((before, Arc::try_unwrap(held).or_else(|held| Bytes::copy_of(&held))?))
    }

    /// The strings of all ranks at the root, by rank. `Err` with this rank's string if all of them
    /// go by messages.
    async fn collect(
        &self,
        posts: &Posts<'_>,
        mine: Bytes,
    ) -> Result<std::result::Result<Option<Vec<Bytes>>, Bytes>> {
        let way = posts.for_some(&mine).await?;
        if matches!(way, Way::Messages) {
            return Ok(Err(mine));
        }
        if self.rank == self.root {
            let mut strings = posts.of_others().await?;
            strings[self.rank as usize] = Some(mine);
            return Ok(Ok(Some(self.or_sent(strings).await?)));
        }
        if matches!(way, Way::Direct) {
            let root = self.group.process(self.root);
            self.exchange(Some((root, mine)), None).await?;
        }
        Ok(Ok(None))
    }

    /// The strings of all ranks, by rank, at `root` or at all ranks, and at ranks that announce
    /// theirs; `None` at the other ranks. `Err` with this rank's string if all of them go by
    /// messages, or if the ranks have no board.
    pub(super) async fn posted(
        &self,
        mine: Bytes,
        root: Option<u32>,
    ) -> Result<std::result::Result<Option<Vec<Bytes>>, Bytes>> {
        let Some(posts) = self.posts()? else { return Ok(Err(mine)) };
        let way = posts.for_some(&mine).await?;
        if matches!(way, Way::Messages) {
            return Ok(Err(mine));
        }
        let (is_sent, announces) = (matches!(way, Way::Direct), announced(&mine).is_some());
        let wants = announces || root.is_none_or(|root| root == self.rank);
        if !wants && !is_sent {
            return Ok(Ok(None));
        }
        let mut strings = posts.of_others().await?;
        let gets = |rank: &u32| {
            let string = strings[*rank as usize].as_deref();
            let announces = string.is_some_and(|string| announced(string).is_some());
            *rank != self.rank && (announces || root.is_none_or(|root| root == *rank))
        };
        let (mut to, mut from) = (Vec::new(), Vec::new());
        if is_sent {
            to = (0..self.size()).filter(gets).collect();
        }
        if wants {
            from = (0..self.size()).filter(|rank| strings[*rank as usize].is_none()).collect();
        }
        let mine = Arc::new(mine);
        if !to.is_empty() || !from.is_empty() {
            // At once: two ranks may wait for each other's string.
            let process = |rank: u32| self.group.process(rank);
            let sent = to.into_iter().map(|to| (process(to), mine.clone()));
            let senders: Vec<u32> = from.iter().map(|&rank| process(rank)).collect();
            let heard = self.exchange_all(sent, &senders).await?;
            from.iter().zip(heard).for_each(|(&rank, it)| strings[rank as usize] = Some(it));
        }
        if !wants {
            return Ok(Ok(None));
        }
        // The last message may still wait to be sent.
        let mine = Arc::try_unwrap(mine).or_else(|mine| Bytes::copy_of(&mine))?;
        strings[self.rank as usize] = Some(mine);
        Ok(Ok(Some(strings.into_iter().flatten().collect())))
    }

    /// The strings of all lower ranks, by rank; `None` if those of all ranks go by messages.
    async fn lower(&self, posts: &Posts<'_>, mine: &[u8]) -> Result<Option<Vec<Bytes>>> {
        match posts.for_some(mine).await? {
            Way::Messages => return Ok(None),
            Way::Direct => {
                let mine = Arc::new(Bytes::copy_of(mine)?);
                let higher = (self.rank + 1..self.size()).map(|rank| self.group.process(rank));
                self.exchange_all(higher.map(|to| (to, mine.clone())), &[]).await?;
            }
            Way::Board => {}
        }
        self.or_sent(posts.of_lower().await?).await.map(Some)
    }

    /// The strings of the first ranks, of which those that don't go by the board are received.
    async fn or_sent(&self, strings: Vec<Option<Bytes>>) -> Result<Vec<Bytes>> {
        let mut all = Vec::with_capacity(strings.len());
        for (rank, string) in (0..).zip(strings) {
            all.push(match string {
                Some(string) => string,
                None => self.exchange(None, Some(self.group.process(rank))).await?,
            });
        }
        Ok(all)
    }

    /// Sends bytes from one rank to another. Returns them there, and an empty vector elsewhere.
    pub(super) async fn pass(&self, from: u32, to: u32, bytes: Bytes) -> Result<Bytes> {
        match self.rank {
            rank if from == to && rank == from => Ok(bytes),
            rank if rank == from => {
                self.exchange(Some((self.group.process(to), bytes)), None).await
            }
            rank if rank == to => self.exchange(None, Some(self.group.process(from))).await,
            _ => Ok(Bytes::default()),
        }
    }

    fn split_received(&self, joined: &[u8], count: usize, from: u32) -> Result<Vec<Bytes>> {
        split(joined, count)?.ok_or_else(|| protocol(from, "what it passed on is cut short"))
    }

    /// Sends to one process and receives from another.
    pub(super) async fn exchange(
        &self,
        sent: Option<(u32, Bytes)>,
        from: Option<u32>,
    ) -> Result<Bytes> {
        let sent = sent.into_iter().map(|(to, bytes)| (to, Arc::new(bytes)));
        let heard = self.exchange_all(sent, from.as_slice()).await?;
        Ok(heard.into_iter().next().unwrap_or_default())
    }

    /// Sends strings to processes, and returns one received from each of `from`, in that order.
    /// Strings of one process are received in the order in which it sends them. Fails if any rank
    /// of the group dies.
    pub(super) async fn exchange_all(
        &self,
        sent: impl Iterator<Item = (u32, Arc<Bytes>)>,
        from: &[u32],
    ) -> Result<Vec<Bytes>> {
        let sent = sent.map(|(to, bytes)| Sent::of(to, bytes));
        self.transfer(sent, from.iter().map(|from| (*from, Landing::Bytes))).await
    }

    /// Sends messages, and receives one from each of the processes in `rooms`, where it lands.
    /// Returns the strings of those that land as strings, and empty ones for the others. Memory of
    /// the messages isn't used any more when it returns, or when it is dropped.
    pub(super) async fn transfer(
        &self,
        sent: impl Iterator<Item = Sent>,
        rooms: impl Iterator<Item = (u32, Landing)>,
    ) -> Result<Vec<Bytes>> {
        let mut underway = self.start_all(sent, rooms);
        if let Some(error) = underway.failed.take() {
            return Err(error);
        }
        while let Some((to, number, _)) = underway.sending.front() {
            self.finish_send(*to, *number).await?;
            underway.sending.pop_front();
        }
        let mut heard = Vec::with_capacity(underway.receiving.len());
        while let Some((from, number)) = underway.receiving.front() {
            heard.push(self.finish_receive(*from, *number).await?);
            underway.receiving.pop_front();
        }
        Ok(heard)
    }

    /// Starts the receives and the sends of an exchange.
    fn start_all(
        &self,
        sent: impl Iterator<Item = Sent>,
        rooms: impl Iterator<Item = (u32, Landing)>,
    ) -> Underway<'a> {
        let (context, tag) = (self.context, Some(self.tag));
        let mut underway = Underway::of(self.process);
        let mut engine = self.process.engine();
        for (from, landing) in rooms {
            let pattern = Pattern { context, sender: Sender::One(from), tag };
            let number = engine.state().start_receive(pattern, landing);
            underway.receiving.push_back((from, number));
        }
        for Sent { to, length, source } in sent {
            let is_kept = matches!(source, Source::Kept(_));
            match self.start_send(&mut engine, to, length, source) {
                Ok(Some(number)) => underway.sending.push_back((to, number, is_kept)),
                Ok(None) => {}
                Err(error) => _ = underway.failed.get_or_insert(error),
            }
        }
        engine.progress();
        underway
    }

    /// Waits for a message of the call.
    async fn finish_receive(&self, from: u32, number: u64) -> Result<Bytes> {
        let from = Some(from);
        let received = self.wait(from, from, move |state| state.take_received(number)).await;
        let Delivery { status, signature, bytes, .. } = received?;
        match self.call {
            Some((communicator, call)) if signature != call.code() => {
                let other = (status.source as u32, status.tag, signature);
                Err(communicator.mismatch_in(self.ongoing(call), other))
            }
            _ => Ok(bytes.map(|bytes| *bytes).unwrap_or_default()),
        }
    }

    /// Waits for `poll`, which depends on rank `awaited`. Fails if any rank of the group dies, has
    /// poisoned the window, or makes other collective calls.
    async fn wait<T>(
        &self,
        awaited: Option<u32>,
        from: Option<u32>,
        mut poll: impl FnMut(&mut State) -> Option<Result<T>>,
    ) -> Result<T> {
        if !self.waits {
            let found = |_: &mut Context<'_>| {
                let mut engine = self.process.engine();
                let state = engine.state();
                let outcome = poll(state);
                outcome.or_else(|| self.lost(state).map(Err)).map_or(Poll::Pending, Poll::Ready)
            };
            return poll_fn(found).await;
        }
        self.process.note_wait(awaited);
        self.process.wait(|state, arming| {
            let outcome = poll(state);
            if outcome.is_none() && arming {
                if let Some(other) = self.misplaced(state, from) {
                    return Some(Err(other));
                }
            }
            outcome.or_else(|| self.lost(state).map(Err))
        })
    }

    /// The error of a call whose ranks don't all come: one of them has died, or the communicator is
    /// revoked, or the window poisoned.
    fn lost(&self, state: &State) -> Option<Error> {
        state.revoked(self.context).or_else(|| state.lost_among(self.group, self.window))
    }

    /// The error for a message, or a post on the board, that shows that its sender makes other
    /// collective calls.
    fn misplaced(&self, state: &State, from: Option<u32>) -> Option<Error> {
        let (communicator, call) = self.call?;
        let ours = (self.tag, call.code());
        let board = communicator.shared.board.get().filter(|_| self.may_post);
        let posted = || board?.as_ref()?.other_call(ours);
        let other = state.misplaced(self.context, ours, from).or_else(posted)?;
        Some(communicator.mismatch(other))
    }

    /// Starts to send. Returns a number for [`finish_send`](Participants::finish_send), or `None`
    /// if the message has gone already.
    fn start_send(
        &self,
        engine: &mut Engine,
        to: u32,
        length: u64,
        source: Source,
    ) -> Result<Option<u64>> {
        let message = Message {
            context: self.context,
            tag: self.tag,
            length,
            signature: self.call.map_or(0, |(_, call)| call.code()),
            source,
            synchronous: false,
        };
        engine.start_send(to, message)
    }

    /// Waits until the message has gone.
    async fn finish_send(&self, to: u32, number: u64) -> Result<()> {
        self.wait(Some(to), None, move |state| state.take_sent(number)).await
    }
}

impl Communicator {
    /// All ranks of this communicator, for the exchanges of a collective call. Those of an
    /// intercommunicator are both groups together.
    pub(super) fn participants(&self, at: Ongoing) -> Participants<'_> {
        let (all, rank) = self.everyone();
        Participants { may_post: !self.is_inter(), ..self.among(at, all, rank) }
    }

    /// Some of the ranks of a collective call, of which this one is rank `rank`.
    pub(super) fn among<'a>(
        &'a self,
        at: Ongoing,
        group: &'a Group,
        rank: u32,
    ) -> Participants<'a> {
        let context = self.context(at.channel);
        let some = Participants::new(self.process(), group, rank, context, at.number);
        // The ranks of two groups give different roots.
        let call = if self.is_inter() { at.call.without_root() } else { at.call };
        let (call, waits) = (Some((self, call)), at.channel == Channel::Calls);
        Participants { call, waits, turn: at.turn, ..some }
    }

    /// All ranks of this communicator, for the next announcement of a call. If it is in the name of
    /// a window, it fails once the window is poisoned.
    pub(super) fn announcing(&self, window: Option<u32>) -> Participants<'_> {
        let shared = &self.shared;
        let context = self.context(Channel::Internal);
        let (process, (group, rank)) = (&shared.process, self.everyone());
        let tag = self.begin_announcement();
        Participants { window, ..Participants::new(process, group, rank, context, tag) }
    }

    /// The values of all ranks, by rank, in the channel of a window.
    pub(crate) fn tell_at<T: Serialize + DeserializeOwned>(
        &self,
        window: u32,
        mine: &T,
    ) -> Result<Vec<T>> {
        let shared = &self.shared;
        let (context, tag) = (self.context(Channel::Windows), window as i32);
        let all = Participants::new(&shared.process, &shared.group, shared.rank, context, tag);
        finish(pin!(Participants { window: Some(window), ..all }.allgather_values(mine)))
    }

    /// The values of all ranks, by rank. Collective.
    pub(crate) fn tell<T: Serialize + DeserializeOwned>(&self, mine: &T) -> Result<Vec<T>> {
        finish(pin!(self.participants(self.current_call()).allgather_values(mine)))
    }
}

/// The class and text of an error, as they are sent to other ranks. Long texts are cut.
pub(crate) fn told(error: &Error) -> (u8, String) {
    (error.class().wire(), error.to_string().chars().take(MAX_VALUE / 8).collect())
}

pub(super) fn protocol(peer: u32, what: &str) -> Error {
    ErrorKind::Protocol { peer, what: what.to_owned() }.into()
}

/// Concatenates byte strings, each after its length.
///
/// # Errors
/// NO_MEM if there isn't enough memory.
fn join(parts: &[impl AsRef<[u8]>]) -> Result<Bytes> {
    let parts = parts.iter().map(AsRef::as_ref);
    let mut all = Bytes::with_room(parts.clone().map(|part| 8 + part.len()).sum())?;
    for part in parts {
        all.extend(&(part.len() as u64).to_le_bytes())?;
        all.extend(part)?;
    }
    Ok(all)
}

/// Splits the result of [`join`]. `None` unless it consists of exactly `count` strings.
///
/// # Errors
/// NO_MEM if there isn't enough memory.
fn split(mut joined: &[u8], count: usize) -> Result<Option<Vec<Bytes>>> {
    let mut parts = Vec::new();
    for _ in 0..count {
        let Some((part, rest)) = split_first(joined) else { return Ok(None) };
        parts.push(Bytes::copy_of(part)?);
        joined = rest;
    }
    Ok(joined.is_empty().then_some(parts))
}

/// The first of the strings that [`join`] concatenated, and the others.
fn split_first(joined: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = joined.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_strings_split_again() {
        let parts = vec![vec![1, 2], vec![], vec![3]];
        let joined = join(&parts).unwrap();
        let again = |joined: &[u8], count| {
            let parts = split(joined, count).unwrap()?;
            Some(parts.iter().map(|part| part.to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(again(&joined, 3), Some(parts));
        assert_eq!(again(&joined, 2), None);
        assert_eq!(again(&joined[..joined.len() - 1], 3), None);
        assert_eq!(again(&u64::MAX.to_le_bytes(), 1), None);
    }
}
