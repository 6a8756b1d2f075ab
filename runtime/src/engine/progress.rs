//! The engine's use of the link: frames are received and handed to [`State`], and the outbox is
//! sent.

use longshore_transport::fault::Faults;
use longshore_transport::{LinkError, RankState};

use super::messages::{Heading, Message};
use super::outbox::{Outgoing, Sent};
use super::target::Fetched;
use super::{Engine, Ledger, State};
use crate::error::Result;
use crate::tap::Direction;
use crate::wire::{Frame, Header};

/// Frames received before the outboxes get a turn.
const BATCH: usize = 64;

impl Engine {
    /// Takes in the frames that have arrived, and sends those for which there is room. Returns true
    /// if anything moved.
    pub(crate) fn progress(&mut self) -> bool {
        let mut moved = self.take_mail();
        moved |= self.receive();
        if self.state.peers.has_leaving() {
            self.drain();
            moved |= self.see_off();
        }
        moved |= self.state.grant_locks();
        moved |= self.state.end_accesses();
        self.give_up_dead();
        let mut next = self.state.outbox.busy_from(0);
        while let Some(peer) = next {
            moved |= self.flush(peer);
            next = self.state.outbox.busy_from(peer + 1);
        }
        if moved {
            // The program may compute for a long time before the next call.
            self.link.send_held();
        }
        moved
    }

    /// Sends what waits in the outbox, if there is anything.
    #[inline]
    pub(crate) fn send_rest(&mut self) {
        if !self.state.outbox.is_empty() {
            self.progress();
            if !self.state.outbox.is_empty() {
                self.state.outbox.strand();
            }
        }
    }

    /// Whether a cheap test shows that nothing has arrived.
    #[inline]
    pub(crate) fn is_quiet(&mut self) -> bool {
        !self.has_mail() && self.is_link_quiet()
    }

    /// Whether a cheap test shows that no frame has arrived.
    #[inline]
    pub(crate) fn is_link_quiet(&mut self) -> bool {
        self.link.is_quiet()
    }

    /// Sends an operation in one frame, if it may go at once. `fill` writes its data,
    /// `header.length` bytes. With `may_wait` the frame may leave with later ones, at the next
    /// progress. Returns the operation's number; `None`, and nothing is sent, if the operation has
    /// to go through the outbox.
    pub(crate) fn send_frame(
        &mut self,
        peer: u32,
        ledger: &Ledger,
        header: Header,
        may_wait: bool,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Option<u64> {
        let Engine { link, state, tap, .. } = self;
        let size = header.whole_size();
        let len = size.checked_add(usize::try_from(header.length).ok()?)?;
        let is_next = !state.outbox.is_reordered() && state.outbox.is_idle(peer);
        if !is_next
            || !state.operations.shipped.is_known(peer, header.form)
            || len > link.frame_limit(peer)
        {
            return None;
        }
        // If the link fails, the outbox meets the failure as well and reports it.
        let mut frame = link.reserve(peer, len).ok()?;
        if !fill(&mut frame[size..]) {
            return None;
        }
        let operation = ledger.issue(peer);
        Header { operation, ..header }.encode_whole(&mut frame[..size]);
        tap.record(Direction::Sent, peer, &frame);
        if may_wait {
            frame.commit_lazily()
        } else {
            frame.commit()
        }
        Some(operation)
    }

    /// Sends an entry at once, if the peer's outbox is empty. Frames for which the link has no room
    /// wait in the outbox for the next progress.
    pub(crate) fn send(&mut self, peer: u32, mut outgoing: Outgoing) {
        let Engine { link, state, tap, .. } = self;
        if !state.outbox.is_reordered() && state.outbox.is_idle(peer) {
            match outgoing.send(&mut **link, peer, tap) {
                Sent::Done => return,
                Sent::Gone(why) => {
                    state.push(peer, outgoing);
                    return self.lose(peer, &why);
                }
                Sent::Failed(error) => return state.finish_outgoing(outgoing, Err(error)),
                Sent::More | Sent::Blocked => {}
            }
        }
        state.push(peer, outgoing);
        self.progress();
        if !self.state.outbox.is_idle(peer) {
            self.state.outbox.strand();
        }
    }

    /// Starts to send a message, at once if the peer's outbox is empty. Returns its number, by
    /// which [`State::take_sent`] reports its end; `None` if it has ended.
    ///
    /// # Errors
    /// The peer is gone, or a value of a short message can't be sent.
    pub(crate) fn start_send(&mut self, peer: u32, message: Message) -> Result<Option<u64>> {
        let heading = message.heading();
        if self.state.lacks_credit(peer, &heading) {
            // The peer may have returned some.
            self.progress();
        }
        if self.send_at_once(peer, &heading, |out| message.source.fill(0, out)) {
            return Ok(None);
        }
        let (number, outgoing) = self.state.start_send(peer, message)?;
        self.send(peer, outgoing);
        Ok(number)
    }

    /// Sends a short message in one frame, which `fill` packs where the link has room. False, and
    /// nothing is sent, if it has to go through the outbox, which also reports what fails here.
    #[inline]
    pub(crate) fn send_at_once(
        &mut self,
        peer: u32,
        message: &Heading,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> bool {
        let Engine { link, state, tap, .. } = self;
        let Some(credit) = state.at_once(peer, message) else { return false };
        // A frame that is too long for the link is refused as well.
        let len = Header::SMALL_SIZE + message.length as usize;
        let Ok(mut frame) = link.reserve(peer, len) else { return false };
        let Some((header, data)) = frame.split_first_chunk_mut() else { return false };
        if fill(data).is_err() {
            return false;
        }
        message.encode(header);
        tap.record(Direction::Sent, peer, &frame);
        frame.commit();
        credit.spend();
        true
    }

    /// Lets the link inform peers that can't read this rank's state that this rank sends nothing
    /// more.
    pub(crate) fn leave(&mut self) {
        self.link.leave();
    }

    /// Takes in the states of all ranks, some of which are new.
    pub(crate) fn handle_rank_states(&mut self, states: &[RankState]) {
        self.drain();
        self.state.peers.take_leaving();
        for (rank, &state) in (0..).zip(states) {
            match state {
                RankState::Finalized => self.state.peers.set_leaving(rank),
                state => self.state.handle_rank_state(rank, state),
            }
        }
        self.see_off();
        self.give_up_dead();
    }

    /// Marks those finalized ranks as gone of which no more frames can come. Call this after a
    /// drain. True if there are any.
    #[cold]
    fn see_off(&mut self) -> bool {
        let Engine { link, state, .. } = self;
        let mut gone = false;
        for rank in state.peers.take_leaving() {
            if link.may_speak(rank) {
                state.peers.set_leaving(rank);
            } else {
                state.handle_rank_state(rank, RankState::Finalized);
                gone = true;
            }
        }
        gone
    }

    /// Takes in all frames that have arrived. Frames that a rank sent before its end count, and
    /// they have arrived once its end is known.
    fn drain(&mut self) {
        // An adversary holds frames back for at most this number of polls. A peer that never stops
        // sending is stopped by the lack of answers, which only `flush` sends.
        let polls = if self.state.outbox.is_reordered() { Faults::DELAY } else { 0 };
        let mut empty = 0;
        while empty <= polls {
            empty = if self.receive() { 0 } else { empty + 1 };
        }
        self.state.end_accesses();
    }

    /// Takes in a batch of frames; true if there was one.
    fn receive(&mut self) -> bool {
        // A receive that is dropped must not match a frame of this batch.
        if self.state.drops.are_due() {
            self.state.end_dropped();
        }
        for taken in 0..BATCH {
            if taken > 0 && self.link.is_spent() {
                return true;
            }
            let frame = match self.link.receive() {
                Ok(Some(frame)) => frame,
                Err(LinkError::Corrupt { peer, what }) => {
                    self.state.peer_erred(peer, what);
                    continue;
                }
                Err(error @ LinkError::Connection { peer, .. }) => {
                    self.state.link_failed(peer, &error);
                    continue;
                }
                Ok(None) => return taken > 0,
                Err(error) => {
                    self.state.peers.link_broke(error);
                    return taken > 0;
                }
            };
            let peer = frame.peer();
            self.tap.record(Direction::Received, peer, &frame);
            // Frames of a lost peer that count were taken in before its loss. A peer that has
            // finalized may be known as such before its last frames arrive: the launcher, or
            // another rank of this host, informs all ranks of a host.
            if self.state.peers.is_lost(peer) {
                continue;
            }
            if self.state.handle_short_message(peer, &frame) {
                continue;
            }
            match self.state.handle_frame(peer, &frame) {
                Ok(None) => {}
                Ok(Some(fetched)) => {
                    let mut header = [0; Header::SMALL_SIZE];
                    header.copy_from_slice(&frame[..Header::SMALL_SIZE]);
                    drop(frame);
                    self.answer(peer, &header, fetched);
                }
                Err(what) => self.state.peer_erred(peer, what),
            }
        }
        true
    }

    /// Answers an operation with a small header: in a frame if it may go at once, otherwise through
    /// the outbox.
    fn answer(&mut self, peer: u32, header: &[u8; Header::SMALL_SIZE], fetched: Fetched) {
        let Engine { link, state, tap, .. } = self;
        let State { outbox, target, peers, .. } = state;
        let room = link.frame_limit(peer).saturating_sub(Header::SMALL_SIZE);
        let length = target.length(&fetched);
        if outbox.is_idle(peer) && length <= room as u64 {
            let len = Header::SMALL_SIZE + length as usize;
            if let Ok(mut frame) = link.reserve(peer, len) {
                let (words, data) = frame.split_at_mut(Header::SMALL_SIZE);
                if target.copy(&fetched, data) {
                    words.copy_from_slice(&Header::small_reply(header));
                    tap.record(Direction::Sent, peer, &frame);
                    return frame.commit_answer();
                }
            }
        }
        if let Some(Frame::Long(asked, _)) = Frame::decode(header) {
            target.answer(peer, &asked, fetched, peers, outbox);
        }
    }

    /// Sends to a peer until its outbox is empty or the link is full; true if anything was sent.
    fn flush(&mut self, peer: u32) -> bool {
        let Engine { link, state, tap, .. } = self;
        let mut moved = false;
        while let Some(sent) = state.outbox.send_brief(peer, &mut **link, tap) {
            match sent {
                Sent::Blocked => {
                    tap.retry();
                    return moved;
                }
                Sent::Gone(why) => {
                    self.lose(peer, &why);
                    return true;
                }
                Sent::More | Sent::Done | Sent::Failed(_) => moved = true,
            }
        }
        while let Some(sent) = state.outbox.send_next(peer, &mut **link, tap) {
            let outcome = match sent {
                Sent::Blocked => {
                    tap.retry();
                    return moved;
                }
                Sent::Gone(why) => {
                    self.lose(peer, &why);
                    return true;
                }
                Sent::More => None,
                Sent::Done => Some(Ok(())),
                Sent::Failed(error) => Some(Err(error)),
            };
            if let Some(outcome) = outcome {
                state.finish_first(peer, outcome);
            }
            moved = true;
        }
        state.outbox.set_idle(peer);
        moved
    }

    /// Loses a peer to which the link has failed, after its last frames are taken in.
    fn lose(&mut self, peer: u32, why: &LinkError) {
        self.drain();
        self.state.link_failed(peer, why);
        self.give_up_dead();
    }

    /// Lets the link give up the peers that died. Otherwise a peer that lives, and that only this
    /// rank takes for dead, would wait for this rank.
    #[inline]
    fn give_up_dead(&mut self) {
        if self.state.peers.has_dead() {
            self.give_up_all();
        }
    }

    #[cold]
    fn give_up_all(&mut self) {
        while let Some(peer) = self.state.peers.take_dead() {
            self.link.give_up(peer);
        }
    }
}
