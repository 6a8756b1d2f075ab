//! The engine: links, outboxes and handlers of one rank, under one lock.
//!
//! [`Engine::progress`] is what every waiting call runs: it takes in the frames that have arrived and sends what the links
//! have room for. Handlers never send; they append to an outbox. What an entry there holds is not bytes but where to pack
//! them from, so a transfer stops when a link is full and resumes at its offset.
//!
//! Getters aside, methods are of three kinds: `handle_*` take frames in, `start_*` and `push` are what calls use, and
//! `take_*` and `progress` give results out.

mod accesses;
mod attachments;
mod checking;
mod exposure;
mod fetches;
mod folding;
mod forms;
mod hello;
mod incoming;
mod ledger;
mod loss;
mod mail;
mod meeting;
mod outbox;
mod peer;
mod recent;
mod refusal;
mod sync;
#[cfg(test)]
mod tests;
mod ticket;
mod whole;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use longshore_transport::fault::{Chance, Faults};
use longshore_transport::{Link, LinkError, RankState};
use shipable::Architecture;

use crate::check::Check;
use crate::control::Tally;
use crate::error::{Error, ErrorKind, Result};
use crate::numbers::Numbers;
use crate::object::Names;
use crate::tap::{Direction, Tap};
use crate::types::TargetType;
use crate::wire::{Brief, Founding, Frame, Header, Kind};
use outbox::Sent;
use peer::{Peer, PeerSet};
pub(crate) use ticket::Ticket;
use ticket::Tickets;

pub(crate) use attachments::{Addresses, Attachments};
pub use exposure::Policy;
pub(crate) use exposure::{Exposure, Keep, Measures, Opened, reach};
pub(crate) use fetches::Fetch;
use fetches::Fetches;
use folding::fetched_reply;
pub(crate) use forms::tag_to_wire;
use incoming::reply_to;
pub(crate) use ledger::Ledger;
pub(crate) use mail::{Channel, Context, Delivery, Landing, Letter, Message, Pattern, Sender};
pub use mail::{Status, UNDEFINED};
pub(crate) use meeting::Venue;
pub(crate) use outbox::{Outgoing, Purpose, Source};
use peer::EAGER;
use recent::Answer;
pub(crate) use sync::EXPOSED;

/// In the tag of a put or accumulate: its origin waits for it alone, so that it is answered by its number.
pub(crate) const BY_NUMBER: u8 = 0x80;

/// Frames taken in before the outboxes get a turn.
const BATCH: usize = 64;

/// What a rank is, to itself and its peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Me {
    pub rank: u32,
    pub size: u32,
    pub architecture: Architecture,
    pub emulated: bool,
}

impl Me {
    /// That a slice isn't in the representation that this rank emulates.
    pub fn emulated(&self) -> ErrorKind {
        ErrorKind::Emulated { architecture: self.architecture.to_string() }
    }
}

/// The engine of one rank.
pub(crate) struct Engine {
    /// Before the link, which watches the connections of accesses that are waited for when they are dropped.
    state: State,
    link: Box<dyn Link>,
}

/// All of the engine but its link, so that a frame can lie in the link while it is handled.
pub(crate) struct State {
    pub me: Me,
    pub tap: Tap,
    /// Decides in which order operations go that MPI leaves unordered; none: as they come.
    pub chance: Option<Chance>,
    /// What is recorded of the uses of windows, if it is.
    pub check: Option<Box<Check>>,
    secret: Vec<u8>,
    peers: Vec<Peer>,
    /// Those to whom something may have to be sent.
    busy: PeerSet,
    /// Those who have a stream under way to this rank.
    streaming: PeerSet,
    /// Waited for when dropped, by looks at the network, which reaches the windows: so before them.
    accesses: Vec<accesses::Accessing>,
    windows: Numbers<u32, Arc<Exposure>>,
    ledgers: Numbers<u32, Arc<Ledger>>,
    gets: Fetches,
    /// What the last quick operation of a peer fetched, where it is more than a few bytes; and room for what others fetch.
    fetched: Vec<u8>,
    locks: sync::Locks,
    tickets: Tickets,
    greetings: hello::Greetings,
    mail: mail::Mail,
    meetings: meeting::Meetings,
    names: Arc<Names>,
    retirements: u64,
    /// Whether a peer is lost: one that has finalized is not.
    pub bereft: Arc<AtomicBool>,
    /// What failed of the link, for good.
    broken: Option<LinkError>,
    /// Those who died, of whom the link hasn't been told.
    dead: Vec<u32>,
    /// Those who have finalized, and of whom more may come.
    leaving: Vec<u32>,
    /// Whether a frame came that was no answer.
    asked: bool,
    founding: Option<Founding>,
}

/// An operation under way, by target, window and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operation {
    pub target: u32,
    pub window: u32,
    pub number: u64,
}

impl Engine {
    pub(crate) fn new(
        me: Me,
        link: Box<dyn Link>,
        secret: Vec<u8>,
        names: Arc<Names>,
        founding: Option<Founding>,
    ) -> Engine {
        let state = State {
            me,
            tap: Tap::default(),
            chance: None,
            check: None,
            secret,
            peers: (0..me.size).map(|_| Peer::default()).collect(),
            busy: PeerSet::new(me.size),
            streaming: PeerSet::new(me.size),
            windows: Numbers::default(),
            ledgers: Numbers::default(),
            gets: Fetches::default(),
            fetched: Vec::new(),
            locks: sync::Locks::default(),
            tickets: Tickets::default(),
            accesses: Vec::new(),
            greetings: hello::Greetings::default(),
            mail: mail::Mail::default(),
            meetings: meeting::Meetings::default(),
            names,
            retirements: 0,
            bereft: Arc::default(),
            broken: None,
            dead: Vec::new(),
            leaving: Vec::new(),
            asked: false,
            founding,
        };
        Engine { state, link }
    }

    /// What the engine knows.
    pub(crate) fn state(&mut self) -> &mut State {
        &mut self.state
    }

    /// Takes in what has arrived, sends what there is room for; true if anything moved.
    pub(crate) fn progress(&mut self) -> bool {
        self.state.retire();
        let mut moved = self.receive();
        if !self.state.leaving.is_empty() {
            self.drain();
            moved |= self.see_off();
        }
        moved |= self.state.grant();
        moved |= self.state.end_accesses();
        self.give_up_dead();
        let mut next = self.state.busy.from(0);
        while let Some(peer) = next {
            moved |= self.flush(peer);
            next = self.state.busy.from(peer + 1);
        }
        if moved {
            // This may be the last look before the program computes.
            self.link.send_held();
        }
        moved
    }

    /// Whether a glance at the link shows that nothing has arrived.
    #[inline]
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.link.is_quiet()
    }

    /// Sends an operation in one frame, if that may go at once, or with others at the next look if it may wait; `fill` writes its data,
    /// `header.length` bytes. Gives its number.
    pub(crate) fn send_frame(
        &mut self,
        peer: u32,
        ledger: &Ledger,
        header: Header,
        may_wait: bool,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Option<u64> {
        let Engine { link, state } = self;
        let entry = &state.peers[peer as usize];
        let is_next = state.chance.is_none() && entry.gone.is_none() && entry.outbox.is_empty();
        let size = header.whole_size();
        let len = size.checked_add(usize::try_from(header.length).ok()?)?;
        if !is_next || !entry.told.contains(&header.form) || len > link.frame_limit(peer) {
            return None;
        }
        // Where the link fails, the long way meets it too.
        let mut frame = link.reserve(peer, len).ok()?;
        if !fill(&mut frame[size..]) {
            return None;
        }
        let operation = ledger.issue(peer);
        Header { operation, ..header }.encode_whole(&mut frame[..size]);
        state.tap.record(Direction::Sent, peer, &frame);
        if may_wait {
            frame.commit_lazily()
        } else {
            frame.commit()
        }
        Some(operation)
    }

    /// Sends what may go at once, else appends it to its peer's outbox; the rest waits for the next progress.
    pub(crate) fn send(&mut self, peer: u32, mut outgoing: Outgoing) {
        let Engine { link, state } = self;
        let entry = &state.peers[peer as usize];
        if state.chance.is_none() && entry.gone.is_none() && entry.outbox.is_empty() {
            match outgoing.send(&mut **link, peer, &mut state.tap) {
                Sent::Done => return,
                Sent::Gone(why) => {
                    state.push(peer, outgoing);
                    return self.lose(peer, &why);
                }
                Sent::Failed(error) => {
                    return state.stream_ended(peer, outgoing.into_purpose(), Err(error));
                }
                Sent::More | Sent::Blocked => {}
            }
        }
        state.push(peer, outgoing);
        self.progress();
    }

    /// This rank is marked as one that says nothing more: so the link tells peers that don't see the mark.
    pub(crate) fn leave(&mut self) {
        self.link.leave();
    }

    /// The job knows something new of its ranks, whose states these are.
    pub(crate) fn handle_rank_states(&mut self, states: &[RankState]) {
        self.drain();
        self.state.leaving.clear();
        for (rank, &state) in (0..).zip(states) {
            match state {
                RankState::Finalized => self.state.leaving.push(rank),
                state => self.state.handle_rank_state(rank, state),
            }
        }
        self.see_off();
        self.give_up_dead();
    }

    /// Takes those for gone that have finalized, once nothing more comes of them: behind a drain. True if there are any.
    #[cold]
    fn see_off(&mut self) -> bool {
        let Engine { link, state } = self;
        let before = state.leaving.len();
        for rank in std::mem::take(&mut state.leaving) {
            match link.may_speak(rank) {
                true => state.leaving.push(rank),
                false => state.handle_rank_state(rank, RankState::Finalized),
            }
        }
        state.leaving.len() < before
    }

    /// Takes in all that has arrived: what a rank sent before it went counts, and is here once its end is heard of.
    fn drain(&mut self) {
        // What an adversary holds back is here after as many looks. Who sends on and on is stopped by what `flush` alone
        // answers.
        let looks = if self.state.chance.is_some() { Faults::DELAY } else { 0 };
        let mut empty = 0;
        while empty <= looks {
            empty = if self.receive() { 0 } else { empty + 1 };
        }
        self.state.end_accesses();
    }

    fn receive(&mut self) -> bool {
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
                Ok(None) => return taken > 0,
                Err(error) => {
                    self.state.link_broke(error);
                    return taken > 0;
                }
            };
            let peer = frame.peer();
            self.state.tap.record(Direction::Received, peer, &frame);
            // All that counts of one that died was taken in before. That one has finalized may be heard of before its last
            // words: the launcher, or a rank that had them first, tells all ranks of a host.
            let gone = &self.state.peers[peer as usize].gone;
            if gone.as_ref().is_some_and(|gone| !gone.finalized) {
                continue;
            }
            match self.state.handle_frame(peer, &frame) {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    let mut header = [0; Header::SMALL_SIZE];
                    header.copy_from_slice(&frame[..Header::SMALL_SIZE]);
                    drop(frame);
                    self.answer(peer, &header, answer);
                }
                Err(what) => self.state.peer_erred(peer, what),
            }
        }
        true
    }

    /// Answers an operation with a small header by what it fetched: in a frame, if that may go at once.
    fn answer(&mut self, peer: u32, header: &[u8; Header::SMALL_SIZE], answer: Answer) {
        let Engine { link, state } = self;
        let entry = &state.peers[peer as usize];
        let room = link.frame_limit(peer).saturating_sub(Header::SMALL_SIZE);
        let length = match &answer {
            Answer::Few(few) => few.bytes().len() as u64,
            Answer::Many => state.fetched.len() as u64,
            Answer::Memory(_, _, length) => *length,
        };
        if entry.gone.is_none() && entry.outbox.is_empty() && length <= room as u64 {
            let len = Header::SMALL_SIZE + length as usize;
            if let Ok(mut frame) = link.reserve(peer, len) {
                let (words, data) = frame.split_at_mut(Header::SMALL_SIZE);
                let is_there = match &answer {
                    Answer::Memory(span, at, _) => span.read(*at, data),
                    Answer::Few(few) => {
                        data.copy_from_slice(few.bytes());
                        true
                    }
                    Answer::Many => {
                        data.copy_from_slice(&state.fetched);
                        true
                    }
                };
                if is_there {
                    words.copy_from_slice(&Header::small_reply(header));
                    state.tap.record(Direction::Sent, peer, &frame);
                    return frame.commit_answer();
                }
            }
        }
        let Some(Frame::Long(asked, _)) = Frame::decode(header) else { return };
        match answer {
            Answer::Few(few) => {
                let reply = reply_to(&asked, few.bytes().len() as u64, Source::Few(few));
                state.push(peer, reply);
            }
            Answer::Many => state.push(peer, fetched_reply(&asked, state.fetched.clone())),
            Answer::Memory(..) => state.handle_get(peer, &asked),
        }
    }

    /// Sends to a peer until its outbox is empty or its link is full; true if anything was sent.
    fn flush(&mut self, peer: u32) -> bool {
        let mut moved = false;
        let state = &mut self.state;
        let entry = &mut state.peers[peer as usize];
        while let Some(brief) = entry.brief() {
            match outbox::send_brief(&mut *self.link, peer, &brief, &mut state.tap) {
                Sent::Blocked => return moved,
                Sent::Gone(why) => {
                    self.lose(peer, &why);
                    return true;
                }
                Sent::More | Sent::Done | Sent::Failed(_) => {
                    entry.brief_sent();
                    moved = true;
                }
            }
        }
        while let Some(front) = state.peers[peer as usize].outbox.front_mut() {
            match front.send(&mut *self.link, peer, &mut state.tap) {
                Sent::Blocked => return moved,
                Sent::More => {}
                Sent::Done => state.finish_outgoing(peer, Ok(())),
                Sent::Failed(error) => state.finish_outgoing(peer, Err(error)),
                Sent::Gone(why) => {
                    self.lose(peer, &why);
                    return true;
                }
            }
            moved = true;
        }
        state.busy.remove(peer);
        moved
    }

    fn lose(&mut self, peer: u32, why: &LinkError) {
        self.drain();
        self.state.link_failed(peer, why);
        self.give_up_dead();
    }

    /// Has the link give up those who died since. One who lives, and seems dead to this rank alone, waits for it otherwise.
    #[inline]
    fn give_up_dead(&mut self) {
        if !self.state.dead.is_empty() {
            self.give_up_those();
        }
    }

    #[cold]
    fn give_up_those(&mut self) {
        while let Some(peer) = self.state.dead.pop() {
            self.link.give_up(peer);
        }
    }
}

fn aborting() -> Error {
    ErrorKind::Aborting { by: None }.into()
}

impl State {
    /// Whether a frame came since the last call that was no answer.
    pub(crate) fn take_asked(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// The job's identity, known once `init` has ended.
    pub(crate) fn job(&self) -> u128 {
        self.founding.map_or(0, |founding| founding.job)
    }

    /// A peer's representation, and whether it is emulated. All are known once `init` has ended.
    pub(crate) fn representation(&self, peer: u32) -> Option<(Architecture, bool)> {
        let peer = self.peers.get(peer as usize)?;
        Some((*peer.architecture()?, peer.is_emulated()))
    }

    /// Appends to a peer's outbox; for one that is gone, the operation fails at once.
    pub(crate) fn push(&mut self, peer: u32, outgoing: Outgoing) {
        match &self.peers[peer as usize].gone {
            None => {
                let outbox = &mut self.peers[peer as usize].outbox;
                let at = match &mut self.chance {
                    Some(chance) if outgoing.is_unordered() => {
                        let behind = outbox.iter().rev().take_while(|out| out.is_unordered());
                        outbox.len() - chance.below(behind.count() + 1)
                    }
                    _ => outbox.len(),
                };
                outbox.insert(at, outgoing);
                self.busy.insert(peer);
            }
            Some(_) => {
                let gone = self.gone(peer);
                self.stream_ended(peer, outgoing.into_purpose(), gone.map_or(Ok(()), Err));
            }
        }
    }

    fn finish_outgoing(&mut self, peer: u32, outcome: Result<()>) {
        if let Some(mut outgoing) = self.peers[peer as usize].outbox.pop_front() {
            outgoing.give_back(&mut self.fetched);
            self.stream_ended(peer, outgoing.into_purpose(), outcome);
        }
    }

    /// What becomes of an operation once its stream is sent, or can't be.
    fn stream_ended(&mut self, peer: u32, purpose: Purpose, outcome: Result<()>) {
        match (purpose, outcome) {
            (Purpose::Message(number), outcome) => self.mail.sent(number, outcome),
            // A put is done when its target says so; a value that couldn't be sent is known here alone.
            (Purpose::Operation(kind, operation), Err(error)) => {
                let window = operation.window;
                let place = || self.place(kind, peer, window, None);
                if let Some(ledger) = self.ledgers.get(&window) {
                    self.tickets.fail(operation, error.at(place), ledger);
                }
            }
            _ => {}
        }
    }

    /// Whether everything has been sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.peers.iter().all(|peer| peer.outbox.is_empty() && peer.brief().is_none())
    }

    fn retire(&mut self) {
        let retirements = self.names.retirements();
        if retirements == self.retirements {
            return;
        }
        self.retirements = retirements;
        for id in self.names.take_retired() {
            for (rank, peer) in (0..).zip(&mut self.peers) {
                if peer.told.remove(&id) && peer.gone.is_none() {
                    let brief = Brief { kind: Kind::Retire, context: 0, operation: id, value: 0 };
                    peer.outbox.push_back(Outgoing::brief(brief));
                    self.busy.insert(rank);
                }
            }
        }
    }

    /// Lets peers reach a window, and the window hear of its operations.
    pub(crate) fn open_window(&mut self, exposure: Arc<Exposure>, ledger: Arc<Ledger>) {
        self.ledgers.insert(exposure.window, ledger);
        if let Some(check) = &mut self.check {
            check.open_window(exposure.window, exposure.group.processes(), exposure.same_op);
        }
        self.windows.insert(exposure.window, exposure);
    }

    /// Ends what `open_window` began.
    pub(crate) fn close_window(&mut self, window: u32) {
        self.forget_locks(|of, _| of == window);
        self.close_venue(Venue::Window(window));
        self.windows.remove(&window);
        self.peers.iter_mut().for_each(|peer| peer.recents.forget_window(window));
        if let Some(check) = &mut self.check {
            check.close_window(window);
        }
        self.ledgers.remove(&window);
    }

    /// Tells a peer a type's form, unless it knows.
    ///
    /// # Errors
    /// A form above the peer's limit.
    pub(crate) fn define(&mut self, peer: u32, target_type: TargetType<'_>) -> Result<()> {
        let known = &mut self.peers[peer as usize];
        if known.told.contains(&target_type.id()) {
            return Ok(());
        }
        let shipment = target_type.shipment(self.me.rank);
        if shipment.bytes.len() as u64 > known.form_limit {
            let what = format!("{} bytes, it takes {}", shipment.bytes.len(), known.form_limit);
            return Err(ErrorKind::Form { peer, what }.into());
        }
        known.told.insert(shipment.id);
        let header = Header {
            tag: tag_to_wire(shipment.tag),
            context: shipment.builder,
            form: shipment.id,
            length: shipment.bytes.len() as u64,
            ..Header::new(Kind::Define)
        };
        self.push(peer, Outgoing::new(header, Source::Bytes(shipment.bytes), Purpose::None));
        Ok(())
    }

    /// Lets go of the memory that a window's operations were lent, but for what the network [accesses](State::take_accesses).
    pub(crate) fn let_go(&mut self, window: u32) {
        for peer in &mut self.peers {
            let puts = peer.outbox.iter_mut().filter(|out| out.is_on(window));
            puts.for_each(Outgoing::abandon);
            peer.incoming.abandon_reply(window);
        }
        self.gets.give_up(|operation| operation.window == window, aborting);
    }

    /// Whether there is no operation of which memory is held, or somebody to be told.
    pub(crate) fn holds_nothing(&self) -> bool {
        let is_empty = self.gets.is_empty() && self.tickets.is_empty() && self.accesses.is_empty();
        // Asked by each flush: a look at each of a thousand peers costs more than its message.
        is_empty && self.busy.is_empty() && self.streaming.is_empty()
    }

    /// Likewise, of operations that nobody waits for any more, and ends whoever waits for one alone. Where the job ends they will never
    /// be done; else their targets still answer.
    pub(crate) fn give_up(&mut self, window: u32, job_ends: bool) {
        self.let_go(window);
        self.tickets.give_up(|operation| operation.window == window, aborting);
        if let Some(ledger) = self.ledgers.get(&window).filter(|_| job_ends) {
            (0..self.me.size).for_each(|target| ledger.release(target));
        }
    }

    /// Waits for the answer to a get.
    pub(crate) fn expect(&mut self, operation: Operation, fetch: Fetch) {
        self.gets.insert(operation, fetch);
    }

    /// Somebody waits for this operation alone.
    pub(crate) fn ticket(&mut self, operation: Operation, ticket: Arc<Ticket>) {
        self.tickets.insert(operation, ticket);
    }

    /// Forgets an operation on a window whose answer is here.
    fn complete(&mut self, operation: Operation, error: Option<Error>) -> Result<(), String> {
        let confirmed = self.confirm_alone(operation);
        if let Some(ledger) = self.ledgers.get(&operation.window) {
            if let Some(error) = error {
                self.tickets.fail(operation, error, ledger);
            }
            ledger.acknowledge(operation.target, 1)?;
        }
        if !confirmed {
            self.tickets.settle(operation);
        }
        Ok(())
    }

    /// Takes a frame in; gives what the operation in it fetched, if that is left to be sent.
    fn handle_frame(&mut self, peer: u32, bytes: &[u8]) -> Result<Option<Answer>, String> {
        let frame = Frame::decode(bytes).ok_or("a frame that is none")?;
        let known = self.peers[peer as usize].architecture().is_some();
        let (Frame::Long(Header { kind, .. }, _) | Frame::Short(Brief { kind, .. }, _)) = frame;
        self.asked |= !kind.is_answer();
        match frame {
            Frame::Long(header, data) => {
                if header.kind == Kind::Reply && header.length == data.len() as u64 && known {
                    self.reply_whole(peer, &header, data)?;
                    return Ok(None);
                }
                if let Some(fetched) = self.handle_again(peer, &header, data) {
                    if fetched.is_none() {
                        self.finish_update(peer, &header);
                    }
                    return Ok(fetched);
                }
                if !known && header.kind != Kind::Hello {
                    return Err("it spoke before its hello".to_owned());
                }
                self.handle_opening(peer, header, data)?;
            }
            // More of its hello it may be, or that it knows all others already.
            Frame::Short(brief, _) if !known && !matches!(brief.kind, Kind::More | Kind::Meet) => {
                return Err("it spoke before its hello".to_owned());
            }
            Frame::Short(brief, data) => self.handle_brief(peer, brief, data)?,
        }
        Ok(None)
    }

    fn handle_brief(&mut self, peer: u32, brief: Brief, data: &[u8]) -> Result<(), String> {
        match brief.kind {
            Kind::More => return self.handle_more(peer, brief.value, data),
            Kind::Cut => return self.handle_cut(peer, brief.context),
            Kind::Retire => {
                let known = &mut self.peers[peer as usize];
                known.forms.retire(brief.operation);
                known.recents.forget_form(brief.operation);
            }
            Kind::Ack => {
                if let Some(ledger) = self.ledgers.get(&brief.context) {
                    ledger.acknowledge(peer, brief.value)?;
                }
            }
            Kind::Lock => self.handle_lock(peer, &brief),
            Kind::Meet => self.handle_meet(peer, &brief)?,
            Kind::Ping => self.done(peer, brief.context, brief.operation),
            Kind::Unlock => self.handle_unlock(peer, brief.context, brief.operation)?,
            Kind::Post => self.handle_tally(peer, brief.context, Tally::Posts),
            Kind::Complete => self.handle_tally(peer, brief.context, Tally::Completes),
            Kind::Done => {
                let (window, number) = (brief.context, brief.operation);
                self.complete(Operation { target: peer, window, number }, None)?;
            }
            Kind::Credit => self.peers[peer as usize].credit(brief.value)?,
            Kind::Clear => {
                let bulk =
                    self.mail.cleared(peer, brief.operation).ok_or("a clearance for nothing")?;
                self.push(peer, bulk);
            }
            kind => return Err(format!("a short {kind:?}")),
        }
        Ok(())
    }
}
