//! Exchanges of blocks among all ranks.
//!
//! 1. Short blocks travel in the messages of the call's algorithm, packed. A long block is
//!    announced there, so every rank that gets it knows its signature and length. A rank's error
//!    takes the place of its blocks.
//! 2. Then the long blocks go from the memory of one rank to that of the next, without copies
//!    between: to each rank directly, or around a ring, or down a tree. A rank without room of the
//!    same signature takes the block as bytes. So it delays no other rank, and can pass it on.
//!
//! In a rooted call the long blocks go between the root and the other ranks directly.
//!
//! Only blocks whose elements have the same bytes at all ranks are announced. Each sender decides
//! for its blocks, and the others follow its announcement.

use std::sync::Arc;

use super::Communicator;
use super::calls::Ongoing;
use super::message::{Block, Blocks, Long, parted};
use super::participants::{Participants, Sent};
use super::places::announced;
use crate::bytes::Bytes;
use crate::engine::Landing;
use crate::error::{Error, ErrorKind, Result};

/// Long blocks that a rank sends, and receives, at a time.
const UNDER_WAY: usize = 8;

/// The steps of an exchange among all ranks: in each of them a rank sends to the first rank, and
/// receives from the second. Those of a vector go together.
pub(super) fn steps(own: usize, size: usize) -> impl Iterator<Item = Vec<(usize, usize)>> {
    let step = move |step| ((own + step) % size, (own + size - step) % size);
    let some = move |first| (first..size.min(first + UNDER_WAY)).map(step).collect();
    (1..size).step_by(UNDER_WAY).map(some)
}

impl Communicator {
    /// Sends each rank a block of memory, and takes theirs into the rooms. If the blocks are in
    /// these rooms, they have to be packed first: then `in_place` is true. `outcomes` has errors
    /// of rooms that can't be used, or nothing.
    pub(super) async fn exchange_memory(
        &self,
        at: Ongoing,
        given: Result<Blocks>,
        in_place: bool,
        rooms: Result<Blocks>,
        mut outcomes: Vec<Result<()>>,
    ) -> Result<()> {
        let may_announce = !in_place && !self.is_inter();
        let (given, long, messages, failed) = self.all_blocks(at, given, may_announce);
        let heard = self.exchange_blocks(at, messages).await?;
        let (rooms, refused) = parted(rooms);
        outcomes.resize_with(heard.len(), || Ok(()));
        let is_any = heard.iter().any(|bytes| announced(bytes).is_some());
        if is_any || long.iter().any(Option::is_some) {
            self.exchange_long(at, &long, &heard, rooms.as_ref(), &mut outcomes).await?;
        }
        failed.or(refused).map_or(Ok(()), Err)?;
        let own = given.as_ref().and_then(|given| given.at(self.rank() as usize));
        self.take_in(&heard, rooms.as_ref(), own, &mut outcomes);
        outcomes.into_iter().collect()
    }

    /// Sends the long blocks of this rank, and receives those that the other ranks have announced:
    /// in step k to the rank k after this one, and from the rank k before it. An error of a room is
    /// the outcome for its block.
    async fn exchange_long(
        &self,
        at: Ongoing,
        long: &[Option<Long>],
        heard: &[Bytes],
        rooms: Option<&Blocks>,
        outcomes: &mut [Result<()>],
    ) -> Result<()> {
        let (size, own) = (heard.len(), self.rank() as usize);
        let process = |rank: usize| self.group().process(rank as u32);
        let participants = self.participants(at);
        for together in steps(own, size) {
            let (mut sent, mut landings) = (Vec::new(), Vec::new());
            for (to, from) in together {
                if let Some(Some(block)) = long.get(to) {
                    sent.push(block.sent_to(process(to)));
                }
                if let Some(found) = announced(&heard[from]) {
                    let room = self.room_of(rooms, from, found, &mut outcomes[from]);
                    landings.push((process(from), landing(room.as_ref())));
                }
            }
            participants.transfer(sent.into_iter(), landings.into_iter()).await?;
        }
        Ok(())
    }

    /// Takes a block of each rank into the rooms of all. The data are this rank's block, or those
    /// of all rooms if the block is `in_place`.
    pub(super) async fn gather_memory(
        &self,
        at: Ongoing,
        given: Result<Blocks>,
        in_place: bool,
        rooms: Result<Blocks>,
    ) -> Result<()> {
        let own = self.rank() as usize;
        let (given, message, long, failed) =
            self.one_block(at, given, if in_place { own } else { 0 });
        let heard = self.participants(at).allgather(message).await?;
        let (rooms, refused) = parted(rooms);
        let mut outcomes: Vec<Result<()>> = heard.iter().map(|_| Ok(())).collect();
        if heard.iter().any(|bytes| announced(bytes).is_some()) {
            self.pass_around(at, long.as_ref(), &heard, rooms.as_ref(), &mut outcomes).await?;
        }
        failed.or(refused).map_or(Ok(()), Err)?;
        let block = given.as_ref().and_then(|given| given.at(0));
        self.take_in(&heard, rooms.as_ref(), block.filter(|_| !in_place), &mut outcomes);
        outcomes.into_iter().collect()
    }

    /// The message of one of the blocks that a rank gives, and the block itself if it is announced
    /// there. Also returns the blocks, or this rank's error.
    fn one_block(
        &self,
        at: Ongoing,
        given: Result<Blocks>,
        which: usize,
    ) -> (Option<Blocks>, Bytes, Option<Long>, Option<Error>) {
        let made = given.and_then(|given| {
            let block = given.at(which).ok_or_else(|| ErrorKind::Collective)?;
            let longest = self.longest_short(at)?;
            let (message, long) = self.block_message(block, longest, true)?;
            Ok((given, message, long))
        });
        match made {
            Ok((given, message, long)) => (Some(given), message, long, None),
            Err(error) => {
                let (message, failed) = self.seal(Err(error));
                (None, message, None, failed)
            }
        }
    }

    /// The room for a long block of a rank. If it can't be used, its error is the outcome, and the
    /// block is received without it.
    fn room_of(
        &self,
        rooms: Option<&Blocks>,
        from: usize,
        found: (u128, u64),
        outcome: &mut Result<()>,
    ) -> Option<Long> {
        let room = rooms.and_then(|rooms| rooms.at(from))?;
        self.long_room(room, found).map_err(|error| *outcome = Err(error)).ok()
    }

    /// Takes a block of each rank into the rooms of the root. The data are this rank's block, or
    /// the root's own room if they are `in_place`. Only the root has rooms.
    pub(super) async fn collect_memory(
        &self,
        at: Ongoing,
        root: u32,
        (given, in_place): (Result<Blocks>, bool),
        rooms: impl FnOnce() -> Result<Blocks>,
    ) -> Result<()> {
        let own = self.rank() as usize;
        let (given, message, long, failed) =
            self.one_block(at, given, if in_place { own } else { 0 });
        let heard = self.participants(at).rooted(root).gather(message).await?;
        let participants = self.participants(at);
        let Some(heard) = heard else {
            let to = self.group().process(root);
            let sent = long.iter().map(|long| long.sent_to(to));
            participants.transfer(sent, None.into_iter()).await?;
            return failed.map_or(Ok(()), Err);
        };
        let (rooms, refused) = parted(rooms());
        let mut outcomes: Vec<Result<()>> = heard.iter().map(|_| Ok(())).collect();
        let others = (1..heard.len()).map(|step| (own + step) % heard.len());
        let coming: Vec<_> =
            others.filter_map(|from| Some((from, announced(&heard[from])?))).collect();
        for some in coming.chunks(UNDER_WAY) {
            let take = |&(from, found): &(usize, _)| {
                let room = self.room_of(rooms.as_ref(), from, found, &mut outcomes[from]);
                (self.group().process(from as u32), landing(room.as_ref()))
            };
            let landings: Vec<_> = some.iter().map(take).collect();
            participants.transfer(None.into_iter(), landings.into_iter()).await?;
        }
        failed.or(refused).map_or(Ok(()), Err)?;
        let block = given.as_ref().and_then(|given| given.at(0));
        self.take_in(&heard, rooms.as_ref(), block.filter(|_| !in_place), &mut outcomes);
        outcomes.into_iter().collect()
    }

    /// Sends each rank its block of the root's, for its room. The root's own block stays where it
    /// is if its room is `in_place`.
    pub(super) async fn deal_memory(
        &self,
        at: Ongoing,
        root: u32,
        given: impl FnOnce() -> Result<Blocks>,
        room: impl FnOnce() -> Result<Blocks>,
        in_place: bool,
    ) -> Result<()> {
        let own = self.rank() as usize;
        if own != root as usize {
            return self.take_dealt(at, root, room).await;
        }
        let (given, long, messages, failed) = self.all_blocks(at, given(), true);
        let message = self.participants(at).rooted(root).scatter(messages).await?;
        let others = (1..long.len()).map(|step| (own + step) % long.len());
        let going: Vec<_> = others.filter_map(|to| Some((to, long[to].as_ref()?))).collect();
        let participants = self.participants(at);
        for some in going.chunks(UNDER_WAY) {
            let sent = some.iter().map(|&(to, long)| long.sent_to(self.group().process(to as u32)));
            participants.transfer(sent, None.into_iter()).await?;
        }
        failed.map_or(Ok(()), Err)?;
        if in_place {
            return Ok(());
        }
        let (room, given) = (room()?, given.as_ref().and_then(|given| given.at(own)));
        let room = room.at(0).ok_or_else(|| ErrorKind::Collective)?;
        match (announced(&message), given) {
            (Some(found), Some(given)) => {
                self.long_room(room, found)?;
                self.copy_block(given, room)
            }
            _ => self.unpack_block(room, &message),
        }
    }

    /// Receives the block that the root sends this rank.
    async fn take_dealt(
        &self,
        at: Ongoing,
        root: u32,
        room: impl FnOnce() -> Result<Blocks>,
    ) -> Result<()> {
        let message = self.participants(at).rooted(root).scatter(Vec::new()).await?;
        let (room, refused) = parted(room());
        let Some(found) = announced(&message) else {
            let room = refused.map_or(Ok(room), Err)?;
            let room =
                room.as_ref().and_then(|room| room.at(0)).ok_or_else(|| ErrorKind::Collective)?;
            return self.unpack_block(room, &message);
        };
        let mut outcome = Ok(());
        let room = self.room_of(room.as_ref(), 0, found, &mut outcome);
        let into = [(self.group().process(root), landing(room.as_ref()))];
        self.participants(at).transfer(None.into_iter(), into.into_iter()).await?;
        refused.map_or(outcome, Err)
    }

    /// The messages of all blocks that a rank gives, and the blocks that are announced there. Also
    /// returns the blocks, or this rank's error, which is each of the messages then.
    fn all_blocks(
        &self,
        at: Ongoing,
        given: Result<Blocks>,
        may_announce: bool,
    ) -> (Option<Blocks>, Vec<Option<Long>>, Vec<Bytes>, Option<Error>) {
        let made = given.and_then(|given| {
            let blocks = (0..given.len()).filter_map(|rank| given.at(rank));
            let longest = self.longest_short(at)?;
            let message = |block| self.block_message(block, longest, may_announce);
            let made: Result<Vec<_>> = blocks.map(message).collect();
            let (messages, long) = made?.into_iter().unzip();
            Ok((given, long, messages))
        });
        match made {
            Ok((given, long, messages)) => (Some(given), long, messages, None),
            Err(error) => {
                let (messages, failed) = self.seal_blocks(Err(error));
                (None, Vec::new(), messages, failed)
            }
        }
    }

    /// Unpacks all short blocks that can be unpacked, as other calls do, and copies this rank's
    /// block, `own`, to its room if it is long. The other long blocks are in their rooms.
    fn take_in(
        &self,
        heard: &[Bytes],
        rooms: Option<&Blocks>,
        own: Option<Block<'_>>,
        outcomes: &mut [Result<()>],
    ) {
        let rank = self.rank() as usize;
        for (from, (bytes, outcome)) in heard.iter().zip(outcomes).enumerate() {
            let Some(room) = rooms.and_then(|rooms| rooms.at(from)) else { continue };
            match (announced(bytes), own) {
                (None, _) => *outcome = self.unpack_block(room, bytes),
                (Some(found), Some(own)) if from == rank => {
                    let fitting = self.long_room(room, found);
                    *outcome = fitting.and_then(|_| self.copy_block(own, room));
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Passes the announced blocks around a ring: each rank sends its block to the next rank, and
    /// then the blocks that it receives.
    async fn pass_around(
        &self,
        at: Ongoing,
        long: Option<&Long>,
        heard: &[Bytes],
        rooms: Option<&Blocks>,
        outcomes: &mut [Result<()>],
    ) -> Result<()> {
        let (size, own) = (heard.len(), self.rank() as usize);
        let process = |rank: usize| self.group().process(rank as u32);
        let (next, before) = (process((own + 1) % size), process((own + size - 1) % size));
        let participants = self.participants(at);
        let mut sending = long.map(|long| long.sent_to(next));
        for step in 1..size {
            let coming = (own + size - step) % size;
            let (mut room, mut into) = (None, None);
            if let Some(found) = announced(&heard[coming]) {
                room = self.room_of(rooms, coming, found, &mut outcomes[coming]);
                into = Some((before, passing(room.as_ref())));
            }
            let taken = participants.transfer(sending.take().into_iter(), into.into_iter()).await?;
            sending = match (room, taken.into_iter().next()) {
                (Some(room), _) => Some(room.sent_to(next)),
                (None, bytes) => bytes.map(|bytes| Sent::of(next, Arc::new(bytes))),
            };
        }
        Ok(())
    }
}

/// Where a long block is received that goes on from here: its room, or bytes.
fn passing(room: Option<&Long>) -> Landing {
    room.map_or(Landing::Bytes, Long::landing)
}

/// Where a long block is received that ends here: its room, if there is one.
pub(super) fn landing(room: Option<&Long>) -> Landing {
    room.map_or(Landing::Nothing, Long::landing)
}

impl Participants<'_> {
    /// Passes the root's long block down the tree, from memory to memory. A rank without room for
    /// it passes it on as bytes.
    pub(super) async fn spread(&self, held: Option<Long>) -> Result<()> {
        let mut bytes = None;
        if let Some(parent) = self.parent() {
            let into = [(parent, passing(held.as_ref()))];
            let heard = self.transfer(None.into_iter(), into.into_iter()).await?;
            bytes = heard.into_iter().next().map(Arc::new);
        }
        let to_child = |bit| {
            let to = self.process_at(self.position() + bit);
            match (&held, &bytes) {
                (Some(held), _) => Some(held.sent_to(to)),
                (None, bytes) => Some(Sent::of(to, bytes.clone()?)),
            }
        };
        let sent: Vec<Sent> = self.children().filter_map(to_child).collect();
        self.transfer(sent.into_iter(), None.into_iter()).await.map(drop)
    }
}
