//! The numbers of a communicator's collective calls, and the calls as ranks compare them.
//!
//! Each rank numbers the collective calls that it makes on a communicator. A message of a call
//! bears the number as its tag, and the [`Call`] in place of a signature. So no message is taken
//! for one of another call, and a rank that receives one of another call can name both.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shipable::reduce::Op;

use super::Communicator;
use crate::engine::{Channel, OtherCall};
use crate::error::{Error, ErrorKind, Result};

/// A collective call, with the arguments that all ranks give alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its place in [`NAMES`].
    name: u8,
    root: Option<i32>,
    op: Option<Op>,
}

/// The calls, in the order of their codes in messages.
const NAMES: [&str; 34] = [
    "barrier",
    "finalize",
    "bcast",
    "gather",
    "gatherv",
    "allgather",
    "allgatherv",
    "scatter",
    "scatterv",
    "alltoall",
    "alltoallv",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "reduce_scatter_block",
    "reduce_scatter",
    "alltoallw",
    "dup",
    "split",
    "split_type",
    "create",
    "free of a communicator",
    "create of a window",
    "allocate of a window",
    "allocate_shared of a window",
    "create_dynamic of a window",
    "neighbor_alltoallw",
    "intercomm_create",
    "intercomm_merge",
    "accept",
    "connect",
    "spawn",
    "disconnect",
];

/// Bytes of the longest block that any call posts on a board.
pub(super) const LONGEST_POSTED: u64 = 16 << 10;

/// Bytes of the longest block that each of the calls posts on a board of two ranks, if longer ones
/// can be read from the memory of their ranks.
const POSTED: [u64; NAMES.len()] = {
    const SHORTER: [(&str, u64); 6] = [
        ("gather", 8 << 10),
        ("allgather", 8 << 10),
        ("scatter", 8 << 10),
        ("alltoall", 8 << 10),
        ("reduce", 8 << 10),
        ("allreduce", 8 << 10),
    ];
    let (mut posted, mut at) = ([LONGEST_POSTED; NAMES.len()], 0);
    while at < SHORTER.len() {
        let (name, longest) = SHORTER[at];
        posted[Call::new(name).name as usize] = longest;
        at += 1;
    }
    posted
};

/// Whether two names are equal.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

impl Call {
    /// The call of a name in [`NAMES`]. Made in a constant where programs make the call often.
    ///
    /// # Panics
    /// For another name.
    pub(crate) const fn new(name: &str) -> Call {
        let mut at = 0;
        while !is_equal(NAMES[at].as_bytes(), name.as_bytes()) {
            at += 1;
        }
        Call { name: at as u8, root: None, op: None }
    }

    pub(super) fn with_root(self, root: i32) -> Call {
        Call { root: Some(root), ..self }
    }

    /// The call as ranks with different roles compare it.
    pub(super) fn without_root(self) -> Call {
        Call { root: None, ..self }
    }

    /// The call by a predefined operation. An operation of the program has no number that other
    /// ranks could compare.
    pub(super) fn by(self, op: Option<Op>) -> Call {
        Call { op, ..self }
    }

    /// Whether the ranks of the call exchange data with their neighbours only.
    pub(super) fn is_of_neighbors(&self) -> bool {
        self.name == const { Call::new("neighbor_alltoallw").name }
    }

    pub(super) fn root(&self) -> Option<i32> {
        self.root
    }

    /// Whether each rank combines the operands of lower ranks only.
    #[inline]
    pub(super) fn is_prefix(&self) -> bool {
        const SCANS: [u8; 2] = [Call::new("scan").name, Call::new("exscan").name];
        SCANS.contains(&self.name)
    }

    /// Bytes of the longest block that the call posts on a board of two ranks, if longer ones can
    /// be read from the memory of their ranks (docs/tuning.md, "Long blocks of collective calls").
    #[inline]
    pub(super) fn longest_posted(&self) -> u64 {
        POSTED[usize::from(self.name)]
    }

    pub(super) fn name(&self) -> &'static str {
        NAMES[usize::from(self.name)]
    }

    /// The number that stands for the call in a message; never 0.
    pub(super) fn code(self) -> u128 {
        let op = self.op.map_or(0, |op| 1 + u128::from(op.wire()));
        let root = self.root.map_or(0, |root| (1 << 32) | u128::from(root as u32));
        (1 + u128::from(self.name)) | (op << 16) | (root << 32)
    }

    /// The number that stands for the call on a board; never 0.
    pub(super) fn word(self) -> u64 {
        let code = self.code();
        // The name and the operation leave bit 31 free, in which the root's presence fits.
        code as u64 | ((code >> 64) as u64) << 31
    }

    /// The code of the call for which this number stands on a board.
    pub(super) fn code_of(word: u64) -> u128 {
        u128::from(word & !(1 << 31)) | u128::from(word >> 31 & 1) << 64
    }

    /// The call of this code; `None` if it is none of this version's.
    fn of_code(code: u128) -> Option<Call> {
        let name = u8::try_from((code as u16).checked_sub(1)?).ok()?;
        NAMES.get(usize::from(name))?;
        let op = ((code >> 16) as u16).checked_sub(1).and_then(|op| Op::from_wire(op as u8));
        let root = (code >> 64 & 1 == 1).then_some((code >> 32) as u32 as i32);
        Some(Call { name, root, op })
    }
}

/// Prints for example `reduce by MPI_SUM with root 1`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(op) = self.op {
            write!(f, " by {op}")?;
        }
        match self.root {
            Some(root) => write!(f, " with root {root}"),
            None => Ok(()),
        }
    }
}

/// A collective call under way: its name, its number, which is the tag of its messages, and where
/// these are.
#[derive(Clone, Copy)]
pub(crate) struct Ongoing {
    pub(super) channel: Channel,
    pub(super) number: i32,
    /// The number by which the call is known on its board.
    pub(super) turn: i32,
    pub(super) call: Call,
}

/// The calls that are remembered, so that an error can name one that is over.
const REMEMBERED: usize = 16;

/// The numbers of calls, of 31 bits.
const NUMBERS: u32 = i32::MAX as u32;

/// The collective calls that this rank has made on a communicator. Its threads make them one after
/// the other.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The number of the last call, and a bit above it.
    last: AtomicU32,
    /// The [words](Call::word) of the last calls, by their numbers; 0 for none.
    recent: [AtomicU64; REMEMBERED],
    /// The number of the last announcement.
    announced: AtomicU32,
    /// The number of the last call with a request.
    started: AtomicU32,
    /// The number of agreements.
    agreed: AtomicU32,
}

impl Calls {
    #[inline]
    fn begin(&self, call: Call) -> i32 {
        let number = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & NUMBERS;
        self.recent[number as usize % REMEMBERED].store(call.word(), Ordering::Relaxed);
        number as i32
    }

    fn next_started(&self) -> i32 {
        let before = self.started.fetch_add(1, Ordering::Relaxed);
        (before.wrapping_add(1) & NUMBERS) as i32
    }

    fn announced(&self) -> u32 {
        self.announced.load(Ordering::Relaxed)
    }

    fn begin_announcement(&self) -> i32 {
        let next = |announced: u32| Some((announced + 1) & NUMBERS);
        let (Ok(before) | Err(before)) =
            self.announced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        ((before + 1) & NUMBERS) as i32
    }

    /// The call of a number, if it is one of the last.
    fn recent(&self, number: u32) -> Option<Call> {
        let word = self.recent[number as usize % REMEMBERED].load(Ordering::Relaxed);
        Call::of_code(Call::code_of(word))
    }

    /// The number and name of the call under way.
    fn current(&self) -> (i32, Call) {
        let last = self.last.load(Ordering::Relaxed) & NUMBERS;
        (last as i32, self.recent(last).unwrap_or(Call::new(NAMES[0])))
    }

    /// This rank's call of a number, in words: the call under way, if it hasn't come to that
    /// number.
    fn describe(&self, number: i32) -> String {
        let last = self.last.load(Ordering::Relaxed) & NUMBERS;
        let ago = last.wrapping_sub(number as u32) & NUMBERS;
        let (ago, number) = match ago >> 30 {
            0 => (ago as usize, number),
            _ => (0, last as i32),
        };
        match self.recent(number as u32).filter(|_| ago < REMEMBERED) {
            Some(call) => format!("{call} (call {number})"),
            None => format!("call {number}, long ago"),
        }
    }
}

impl Communicator {
    #[inline]
    fn calls(&self) -> &Calls {
        &self.shared.calls
    }

    /// Begins a collective call. All ranks count it, whatever it comes to.
    #[inline]
    pub(crate) fn begin(&self, call: Call) -> Ongoing {
        let number = self.calls().begin(call);
        Ongoing { channel: Channel::Calls, number, turn: number, call }
    }

    /// The tag of the next announcement.
    pub(super) fn next_announcement(&self) -> i32 {
        ((self.calls().announced() + 1) & NUMBERS) as i32
    }

    /// Begins the announcement of a call. Returns the number of the announcement, which is its tag.
    pub(super) fn begin_announcement(&self) -> i32 {
        self.calls().begin_announcement()
    }

    /// Counts an announcement that this rank will never make, since a panic `ended` a fence epoch
    /// of a window. Returns the number of announcements.
    pub(crate) fn skip_announcement(&self, ended: bool) -> u64 {
        if ended {
            self.begin_announcement();
        }
        self.calls().announced().into()
    }

    /// Counts as many announcements as a rank that skipped one: this rank may have learned of the
    /// panic before it made its own.
    pub(crate) fn catch_up(&self, announced: u64) {
        self.calls().announced.fetch_max(announced as u32 & NUMBERS, Ordering::Relaxed);
    }

    /// The number of the next agreement. All ranks count them, whatever they come to.
    pub(super) fn begin_agreement(&self) -> u32 {
        self.calls().agreed.fetch_add(1, Ordering::Relaxed)
    }

    /// The collective call under way.
    pub(super) fn current_call(&self) -> Ongoing {
        let (number, call) = self.calls().current();
        Ongoing { channel: Channel::Calls, number, turn: number, call }
    }

    /// The number of the next call with a request.
    pub(super) fn next_started(&self) -> i32 {
        self.calls().next_started()
    }

    /// Ends a collective call: its outcome, unless messages or posts of earlier calls have been
    /// left over here. Then ranks made different calls, and this rank the last to learn it.
    ///
    /// # Errors
    /// RMA_SYNC if a rank made another call than this one.
    pub(crate) fn end_call<R>(&self, at: Ongoing, outcome: Result<R>) -> Result<R> {
        let outcome = outcome?;
        if self.process().is_bereft() || self.has_been_revoked() {
            // A call with a rank that is gone leaves messages over, too, and so does one that was
            // revoked at some ranks.
            return Ok(outcome);
        }
        let left = match self.process().has_unmatched() {
            true => {
                let context = self.context(Channel::Calls);
                self.process().engine().state().take_left_over(context, at.number)
            }
            false => None,
        };
        let board = self.shared.board.get().and_then(Option::as_ref);
        let left = left.or_else(|| board?.take_surplus());
        left.map_or(Ok(outcome), |other| Err(self.mismatch(other)))
    }

    /// The error for a message of another call than this rank's, by its sender, number and code.
    pub(super) fn mismatch(&self, other: OtherCall) -> Error {
        Self::mismatch_with(other, self.calls().describe(other.1))
    }

    /// The error for a message or a post of another call than this one, by its sender, number and
    /// code. Calls with requests aren't remembered.
    pub(super) fn mismatch_in(&self, at: Ongoing, other: OtherCall) -> Error {
        match at.channel {
            Channel::Started => {
                Self::mismatch_with(other, format!("{} (call {})", at.call, at.turn))
            }
            _ => self.mismatch(other),
        }
    }

    fn mismatch_with((peer, number, code): OtherCall, ours: String) -> Error {
        let theirs = match Call::of_code(code) {
            Some(call) => format!("{call} (call {number})"),
            None => format!("a call of another version (call {number})"),
        };
        ErrorKind::Mismatch { peer, theirs, ours }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_stand_for_calls() {
        for name in NAMES {
            let call = Call::new(name);
            for call in [call, call.with_root(0), call.with_root(-1).by(Some(Op::Max))] {
                assert_eq!(Call::of_code(call.code()), Some(call));
                assert_eq!(Call::code_of(call.word()), call.code());
            }
        }
        assert_eq!(Call::of_code(0), None);
        assert_eq!(Call::of_code(99), None);
    }

    #[test]
    fn calls_are_named_by_their_numbers() {
        let calls = Calls { last: AtomicU32::new(NUMBERS - 1), ..Calls::default() };
        calls.begin(Call::new("barrier"));
        calls.begin(Call::new("reduce").by(Some(Op::Sum)).with_root(2));
        assert_eq!(calls.current().0, 0);
        assert_eq!(calls.describe(i32::MAX), format!("barrier (call {})", i32::MAX));
        assert_eq!(calls.describe(0), "reduce by MPI_SUM with root 2 (call 0)");
        assert_eq!(calls.describe(1), calls.describe(0));
        assert_eq!(calls.describe(i32::MAX - 1), format!("call {}, long ago", i32::MAX - 1));
    }
}
