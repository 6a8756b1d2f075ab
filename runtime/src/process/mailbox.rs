//! Asking related ranks of this host by their mailboxes.

use std::sync::atomic::{AtomicU32, Ordering};

use longshore_transport::Segment;
use longshore_transport::segment::mailbox::{Mailbox, Outcome, WORDS};

use super::Process;
use crate::engine::OPERANDS;
use crate::wire::Header;

/// Looks before the operation is taken back. A rank that polls answers in far fewer.
const LOOKS: u32 = 240;

/// Operations that go by frames after one was asked for in vain.
const WARINESS: u32 = 64;

/// The mailboxes of this host, as a rank uses those of others.
pub(crate) struct Mailboxes {
    segment: Segment,
    rank: u32,
    /// Operations that go by frames, before a mailbox is tried again.
    wary: AtomicU32,
}

impl Mailboxes {
    pub(super) fn new(segment: &Segment, rank: u32) -> Mailboxes {
        Mailboxes { segment: segment.clone(), rank, wary: AtomicU32::new(0) }
    }

    /// Whether the next operation may be asked for.
    #[inline]
    fn is_trusting(&self) -> bool {
        let wary = self.wary.load(Ordering::Relaxed);
        if wary > 0 {
            self.wary.store(wary - 1, Ordering::Relaxed);
        }
        wary == 0
    }
}

impl Process {
    /// The mailboxes of this host, if its ranks have enough processors to poll.
    pub(crate) fn mailboxes(&self) -> Option<&Mailboxes> {
        self.beside.mailboxes.as_ref()
    }

    /// This rank is about to [ask](Process::ask) a peer.
    #[inline]
    pub(crate) fn will_ask(&self, peer: u32) {
        let mailboxes = self.beside.mailboxes.as_ref();
        if let Some(mailbox) = mailboxes.and_then(|it| it.segment.mailbox(peer)) {
            mailbox.will_post();
        }
    }

    /// Asks a related rank of this host, by its mailbox, to carry out an operation. `data` are its
    /// operands, `header.length` bytes. Returns the `fetched` bytes of the answer; `None`, and
    /// nothing has been done, if the operation has to go by a frame.
    #[inline]
    pub(crate) fn ask(
        &self,
        peer: u32,
        header: &Header,
        [first, second]: [u64; OPERANDS],
        fetched: usize,
    ) -> Option<[u64; WORDS]> {
        let mailboxes = self.beside.mailboxes.as_ref()?;
        let Mailboxes { segment, rank, .. } = mailboxes;
        let mailbox = segment.mailbox(peer)?;
        let may_ask = header.whole_size() == Header::SMALL_SIZE
            && mailboxes.is_trusting()
            && segment.is_awake(peer);
        if !may_ask || !mailbox.claim() {
            return None;
        }
        let (len, [a, b, c, d, e]) = (Header::SMALL_SIZE, header.small_words());
        let len = len + header.length as usize;
        let number = mailbox.post(*rank, len, &[a, b, c, d, e, first, second]);
        let is_done = self.await_answer(mailboxes, peer, mailbox, number);
        let answer = is_done.then(|| mailbox.read_answer(fetched));
        mailbox.release();
        answer
    }

    /// Waits for the answer to an operation. Returns false if the operation wasn't carried out.
    #[inline(never)]
    fn await_answer(&self, to: &Mailboxes, peer: u32, mailbox: &Mailbox, number: u32) -> bool {
        let own = to.segment.mailbox(to.rank);
        let mut looks = 0;
        let outcome = loop {
            std::hint::spin_loop();
            let outcome = mailbox.outcome(number);
            if outcome.is_some() {
                break outcome;
            }
            // The peer may be waiting for an answer of this rank.
            if own.is_some_and(Mailbox::is_posted) {
                self.engine().take_mail();
            }
            looks += 1;
            // A rank that has taken an operation answers it, unless it dies.
            let is_late = looks >= LOOKS;
            if is_late && (mailbox.withdraw(number) || to.segment.rank_state(peer).is_gone()) {
                break None;
            }
        };
        if outcome != Some(Outcome::Done) {
            to.wary.store(WARINESS, Ordering::Relaxed);
        }
        outcome == Some(Outcome::Done)
    }
}
