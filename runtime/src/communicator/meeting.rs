//! What the ranks of a communicator share in the segment: its barrier and its board. The first call
//! that needs one of them makes it.

use std::pin::pin;

use longshore_transport::Range;

use super::Communicator;
use super::board::{self, Board, Form};
use super::participants::{MAX_VALUE, Participants, finish, protocol, told};
use crate::barrier::Barrier;
use crate::bytes::Bytes;
use crate::engine::{Channel, Venue};
use crate::error::{ErrorKind, Result};
use crate::process::Meeting;

/// Offset and length of a communicator's barrier, or the class and text of rank 0's error.
type BarrierMemory = Result<(u64, u64), (u8, String)>;

impl Communicator {
    /// The communicator's board, which the first call makes; `None` if its ranks have none, or have
    /// freed it. Rank 0 allocates it and broadcasts its location to the others. They use it if all
    /// of them can.
    pub(super) fn board(&self) -> Result<Option<&Board>> {
        let shared = &self.shared;
        if self.has_ended() {
            return Ok(None);
        }
        if let Some(board) = shared.board.get() {
            return Ok(board.as_ref());
        }
        let size = self.group().size() as u32;
        let is_on_one = || self.group().is_on_one(self.process().hosts());
        let board = match board::has_board(size) && is_on_one() {
            true => {
                // Not in the name of the call: the ranks may make different ones.
                let (context, rank) = (self.context(Channel::Board), self.rank() as u32);
                let all = Participants::new(self.process(), self.group(), rank, context, 0);
                finish(pin!(self.make_board(all, Form::WAITING)))?
            }
            false => None,
        };
        Ok(shared.board.get_or_init(|| board).as_ref())
    }

    /// Makes a board of this form, by messages of its own.
    pub(super) async fn make_board(
        &self,
        participants: Participants<'_>,
        form: Form,
    ) -> Result<Option<Board>> {
        let (process, group, rank) = (self.process(), self.group(), self.rank() as u32);
        let (mut mine, mut place) = (Bytes::default(), None);
        if rank == 0 {
            // Without memory for a board, the ranks go on by messages.
            place = process.segment().allocate(Board::bytes(group.size() as u32, form)).ok();
            let told = place.map_or([0, 0], |place| [place.offset, place.len]);
            mine = Bytes::copy_of(told.map(u64::to_le_bytes).as_flattened())?;
        }
        let told = participants.broadcast(mine).await?;
        let unnamed = || protocol(group.process(0), "it named no place for a board");
        let (offset, len) = told.split_first_chunk().ok_or_else(unnamed)?;
        let len = len.first_chunk().ok_or_else(unnamed)?;
        let told = Range { offset: u64::from_le_bytes(*offset), len: u64::from_le_bytes(*len) };
        let board = Board::new(process.segment(), told, group, (rank, form)).ok().flatten();
        let has_board = Bytes::copy_of(&[board.is_some().into()])?;
        let have = participants.allgather(has_board).await?;
        if have.iter().all(|has| has[..] == [1]) {
            return Ok(board);
        }
        drop(board);
        if let Some(place) = place {
            process.segment().free(place)?;
        }
        Ok(None)
    }

    /// Returns after all ranks have closed this window.
    pub(crate) fn rendezvous_behind(&self, window: u32) -> Result<()> {
        let venue = Venue::Closed(window);
        self.process().meet_at(venue, self.group(), self.rank() as u32)?;
        // All messages of this venue have arrived by now.
        self.process().engine().state().close_venue(venue);
        Ok(())
    }

    fn venue(&self) -> Venue {
        Venue::Communicator(self.number())
    }

    /// Makes the communicator's barrier. If all ranks share memory, rank 0 allocates it and
    /// broadcasts its location.
    pub(super) fn make_meeting(&self) -> Result<Meeting> {
        let process = self.process();
        if !self.group().is_on_one(process.hosts()) {
            return Ok(Meeting::Messages(self.venue()));
        }
        let bytes = Barrier::bytes(self.size() as u32);
        let memory: BarrierMemory = match self.rank() {
            0 => match process.segment().allocate(bytes) {
                Ok(range) => Ok((range.offset, range.len)),
                Err(error) => Err(told(&error.into())),
            },
            _ => Ok((0, 0)),
        };
        let first = self.group().process(0);
        let wrong = |error: shipable::codec::CodecError| protocol(first, &error.to_string());
        let encoded = shipable::codec::encode(&memory, MAX_VALUE).map_err(wrong)?;
        // By message: a communicator that only has barriers needs no board.
        let all = self.participants(self.current_call()).by_message();
        let told = finish(pin!(all.broadcast(encoded.into())))?;
        match shipable::codec::decode::<BarrierMemory>(&told, MAX_VALUE).map_err(wrong)? {
            Ok(range) => {
                let barrier = process.barrier_at(Some(range), self.group(), self.rank() as u32);
                let context = self.context(Channel::Calls);
                barrier.map(|barrier| Meeting::Flags(barrier.of_communicator(context)))
            }
            Err((class, text)) => Err(ErrorKind::elsewhere(first, class, text).into()),
        }
    }

    /// Gives up the communicator's barrier and board, after all calls of this rank. The last rank
    /// to do so frees their memory. Messages of a barrier arrive before its pass ends, so none
    /// comes later.
    pub(super) fn release_meeting(&self) -> Result<()> {
        let mut engine = self.process().engine();
        engine.state().close_venue(self.venue());
        engine.state().close_communicator(self.number());
        drop(engine);
        match self.shared.meeting.get() {
            Some(Meeting::Flags(barrier)) if barrier.leave() => {
                self.process().segment().free(barrier.place())?;
            }
            _ => {}
        }
        match self.shared.board.get() {
            Some(Some(board)) if board.leave() => {
                self.process().segment().free(board.place())?;
            }
            _ => {}
        }
        Ok(())
    }
}
