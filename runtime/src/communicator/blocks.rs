//! Exchanges of blocks among all ranks.
//!
//! 1. Short blocks travel in the messages of the call's algorithm, packed. A long block is
//!    announced there, so every rank that gets it knows its signature and length. A rank's error
//!    takes the place of its blocks.
//! 2. Then the long blocks go from the memory of one rank to that of the next, without copies
//!    between: to each rank directly, or around a ring, or down a tree. A rank without room of the
//!    same signature takes the block as bytes. So it delays no other rank, and can pass it on.
//!
//! Only ranks among which nothing is converted announce blocks. Each sender decides for its blocks,
//! and the others follow its announcement.

use std::sync::Arc;

use super::Communicator;
use super::calls::Ongoing;
use super::message::{Block, Blocks, Long, announced};
use super::participants::{Participants, Sent};
use crate::bytes::Bytes;
use crate::engine::Landing;
use crate::error::{ErrorKind, Result};

/// Long blocks that a rank sends, and receives, at a time.
const UNDER_WAY: usize = 8;

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
        let (mut long, mut are_alike) = (Vec::new(), None);
        let mut may_announce = || {
            let may = || !in_place && !self.is_inter() && self.are_alike();
            *are_alike.get_or_insert_with(may)
        };
        let packed = given.and_then(|given| {
            let mut messages = Vec::with_capacity(given.len());
            for block in (0..given.len()).filter_map(|rank| given.at(rank)) {
                let (message, announced) = self.block_message(block, &mut may_announce)?;
                messages.push(message);
                long.push(announced);
            }
            Ok((given, messages))
        });
        let (given, (messages, failed)) = match packed {
            Ok((given, messages)) => (Some(given), (messages, None)),
            Err(error) => {
                long.clear();
                (None, self.seal_blocks(Err(error)))
            }
        };
        let heard = self.exchange_blocks(at, messages).await?;
        let (rooms, refused) = match rooms {
            Ok(rooms) => (Some(rooms), None),
            Err(error) => (None, Some(error)),
        };
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
        let steps: Vec<usize> = (1..size).collect();
        for steps in steps.chunks(UNDER_WAY) {
            let (mut sent, mut landings) = (Vec::new(), Vec::new());
            for step in steps {
                let (to, from) = ((own + step) % size, (own + size - step) % size);
                if let Some(Some(block)) = long.get(to) {
                    sent.push(block.sent_to(process(to)));
                }
                if let Some(found) = announced(&heard[from]) {
                    let room = rooms.and_then(|rooms| rooms.at(from));
                    let landing = match room.map(|room| self.long_room(room, found)) {
                        Some(Ok(room)) => room.landing(),
                        Some(Err(error)) => {
                            outcomes[from] = Err(error);
                            Landing::Bytes
                        }
                        None => Landing::Bytes,
                    };
                    landings.push((process(from), landing));
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
        let mut long = None;
        let packed = given.and_then(|given| {
            let block = given.at(if in_place { own } else { 0 }).ok_or(ErrorKind::Collective)?;
            let (message, announced) = self.block_message(block, || self.are_alike())?;
            long = announced;
            Ok((message, given))
        });
        let (given, (message, failed)) = match packed {
            Ok((message, given)) => (Some(given), (message, None)),
            Err(error) => (None, self.seal(Err(error))),
        };
        let heard = self.participants(at).allgather(message).await?;
        let (rooms, refused) = match rooms {
            Ok(rooms) => (Some(rooms), None),
            Err(error) => (None, Some(error)),
        };
        let mut outcomes: Vec<Result<()>> = heard.iter().map(|_| Ok(())).collect();
        if heard.iter().any(|bytes| announced(bytes).is_some()) {
            self.pass_around(at, long.as_ref(), &heard, rooms.as_ref(), &mut outcomes).await?;
        }
        failed.or(refused).map_or(Ok(()), Err)?;
        let block = given.as_ref().and_then(|given| given.at(0));
        self.take_in(&heard, rooms.as_ref(), block.filter(|_| !in_place), &mut outcomes);
        outcomes.into_iter().collect()
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
        let mut passing = long.map(|long| long.sent_to(next));
        for step in 1..size {
            let coming = (own + size - step) % size;
            let mut room = None;
            let mut landing = None;
            if let Some(found) = announced(&heard[coming]) {
                let place = rooms.and_then(|rooms| rooms.at(coming));
                match place.map(|place| self.long_room(place, found)) {
                    Some(Ok(found)) => room = Some(found),
                    Some(Err(error)) => outcomes[coming] = Err(error),
                    None => {}
                }
                let into = room.as_ref().map_or(Landing::Bytes, Long::landing);
                landing = Some((before, into));
            }
            let is_coming = landing.is_some();
            let taken =
                participants.transfer(passing.take().into_iter(), landing.into_iter()).await?;
            passing = match (room, taken.into_iter().next()) {
                (Some(room), _) => Some(room.sent_to(next)),
                (None, Some(bytes)) if is_coming => Some(Sent::of(next, Arc::new(bytes))),
                _ => None,
            };
        }
        Ok(())
    }
}

impl Participants<'_> {
    /// Passes the root's long block down the tree, from memory to memory. A rank without room for
    /// it passes it on as bytes.
    pub(super) async fn spread(&self, held: Option<Long>) -> Result<()> {
        let mut bytes = None;
        if let Some(parent) = self.parent() {
            let landing = held.as_ref().map_or(Landing::Bytes, Long::landing);
            let heard = self.transfer(None.into_iter(), [(parent, landing)].into_iter()).await?;
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
