//! The target's side of operations by mailbox (see [`longshore_transport::segment::mailbox`]).
//!
//! A rank that waits looks into its mailbox. It handles an operation there that is like one of the
//! origin's last operations. It declines all others, and their origin sends a frame. So a mailbox
//! only makes operations faster, and nothing depends on it.

use longshore_transport::Segment;
use longshore_transport::segment::mailbox::{Letter, Mailbox, WORDS};

use super::target::Fetched;
use super::{Engine, State};
use crate::wire::Header;

/// The bytes of the longest answer.
pub(crate) const ANSWER: u64 = ROOM as u64;
const ROOM: usize = 8 * WORDS;

/// The words of the longest operands.
pub(crate) const OPERANDS: usize = WORDS - Header::SMALL_SIZE / 8;

/// This rank's own mailbox.
pub(super) struct Own {
    segment: Segment,
    rank: u32,
}

impl Own {
    #[inline]
    fn mailbox(&self) -> Option<&Mailbox> {
        self.segment.mailbox(self.rank)
    }
}

impl Engine {
    /// Opens this rank's mailbox, and looks into it from here on.
    pub(crate) fn open_mailbox(&mut self, segment: &Segment) {
        let own = Own { segment: segment.clone(), rank: self.state.peers.me().rank };
        own.mailbox().into_iter().for_each(Mailbox::open);
        self.mailbox = Some(own);
    }

    /// Whether an operation is in this rank's mailbox.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        let own = self.mailbox.as_ref().and_then(Own::mailbox);
        own.is_some_and(Mailbox::is_posted)
    }

    /// Waits a moment for the next operation in this rank's mailbox.
    pub(crate) fn await_mail(&self) {
        std::hint::spin_loop();
        for _ in 0..3 {
            if self.has_mail() {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Takes in the operation in this rank's mailbox. Returns false if there is none.
    #[inline]
    pub(crate) fn take_mail(&mut self) -> bool {
        let own = self.mailbox.as_ref().and_then(Own::mailbox);
        own.is_some_and(|own| own.is_posted() && take_in(own, &mut self.state))
    }
}

#[inline(never)]
fn take_in(own: &Mailbox, state: &mut State) -> bool {
    let Some(letter) = own.take() else { return false };
    match state.handle_letter(&letter) {
        None => own.decline(letter.number),
        Some(None) => own.answer(letter.number, 0, &letter.frame),
        Some(Some(fetched)) => {
            let mut bytes = [[0; 8]; WORDS];
            let len = state.target.length(&fetched) as usize;
            state.target.copy(&fetched, &mut bytes.as_flattened_mut()[..len]);
            own.answer(letter.number, len, &bytes.map(u64::from_le_bytes));
        }
    }
    state.asked = true;
    true
}

impl State {
    /// Carries out an operation that came by mailbox. Returns the bytes that it fetched, if it
    /// fetches. Returns `None`, and does nothing, if it has to come by a frame.
    #[inline]
    fn handle_letter(&mut self, letter: &Letter) -> Option<Option<Fetched>> {
        let Letter { sender, len, frame: [a, b, c, d, e, first, second], .. } = *letter;
        let length = len.checked_sub(Header::SMALL_SIZE)?;
        let header = Header::of_small_words([a, b, c, d, e], length as u64)?;
        let operands = [first.to_le_bytes(), second.to_le_bytes()];
        let data = operands.as_flattened().get(..length)?;
        if self.peers.is_lost(sender) {
            return None;
        }
        let fetched = self.handle_again(sender, &header, data)?;
        // Only a get fetches more than its operands, and it has copied nothing yet.
        let fits = |fetched: &Fetched| self.target.length(fetched) <= ANSWER;
        fetched.as_ref().is_none_or(fits).then_some(fetched)
    }
}
