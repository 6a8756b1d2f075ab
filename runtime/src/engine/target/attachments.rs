//! Memory that is attached to a dynamic window, by address (MPI-5.0 section 12.2.4).

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_transport::Range;
use portable_atomic::AtomicU64;

use crate::error::{ErrorKind, Result};
use crate::memory::Exposed;
use crate::pointer::fits;

/// The memory that is attached to a window of this rank.
pub(crate) struct Attachments {
    addresses: Addresses,
    list: Mutex<List>,
    /// The number of times that attachments ended. It changes while the list is locked.
    ends: AtomicU64,
}

#[derive(Default)]
struct List {
    /// By their addresses, then by their numbers. Only empty ones may share an address.
    all: BTreeMap<(u64, u64), Attachment>,
    /// The addresses by number.
    starts: HashMap<u64, u64>,
    /// The number of the last attachment. Numbers aren't used again.
    last: u64,
}

struct Attachment {
    start: u64,
    memory: Arc<Exposed>,
    /// The range of the segment to which the bytes were moved, if they were.
    place: Option<Range>,
}

/// The addresses of attached memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Addresses {
    /// The addresses in this process.
    Real,
    /// Addresses of the machine that this rank emulates, whose pointers have this number of bytes.
    Emulated(u8),
}

/// The lowest address of an emulated machine.
const FIRST: u64 = 1 << 16;

/// The alignment of addresses of an emulated machine.
const ALIGNMENT: u64 = 64;

impl Attachment {
    fn len(&self) -> u64 {
        self.memory.span().len()
    }

    /// The address after the last byte: at most 2^63.
    fn end(&self) -> u64 {
        self.start + self.len()
    }
}

impl Attachments {
    pub(crate) fn new(addresses: Addresses) -> Attachments {
        Attachments { addresses, list: Mutex::default(), ends: AtomicU64::new(0) }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of times that attachments ended. While it stays, memory that was found is
    /// attached.
    #[inline]
    pub(crate) fn ends(&self) -> u64 {
        self.ends.load(Ordering::Relaxed)
    }

    /// An attachment ends.
    fn end(&self) {
        self.ends.fetch_add(1, Ordering::Relaxed);
    }

    /// Attaches memory. Returns the attachment's number and its address.
    ///
    /// # Errors
    /// The memory overlaps another attachment (rule 15), or the addresses are used up.
    pub(crate) fn attach(&self, memory: Arc<Exposed>, place: Option<Range>) -> Result<(u64, i64)> {
        let mut list = self.list();
        let (len, start) = (memory.span().len(), memory.home().start() as u64);
        let start = match self.addresses {
            Addresses::Real => start,
            Addresses::Emulated(pointer) => {
                let gap = list.gap(len, pointer);
                gap.ok_or(ErrorKind::NoAddress { size: len, pointer })?
            }
        };
        let unreachable = || ErrorKind::NoAddress { size: len, pointer: 8 };
        let address = i64::try_from(start).ok().ok_or_else(unreachable)?;
        let end = address.checked_add_unsigned(len).ok_or_else(unreachable)? as u64;
        // Empty memory overlaps nothing. Of the others that begin before the end, the last one ends
        // last.
        let before = || list.all.range(..(end, 0)).rev().map(|(_, there)| there);
        let last = before().find(|there| there.len() > 0);
        if let Some(there) = last.filter(|there| len > 0 && start < there.end()) {
            let there = (there.start, there.end());
            return Err(ErrorKind::AttachedTwice { start, end, there }.into());
        }
        list.last += 1;
        let number = list.last;
        list.starts.insert(number, start);
        list.all.insert((start, number), Attachment { start, memory, place });
        Ok((number, address))
    }

    /// Ends the attachment of this number. Returns its memory, which operations under way may still
    /// hold, and the range of the segment that was allocated for it. `None` if there is no such
    /// attachment.
    ///
    /// The engine may use memory that it has found before, until its lock is taken once more.
    pub(crate) fn detach(&self, number: u64) -> Option<(Arc<Exposed>, Option<Range>)> {
        let List { all, starts, .. } = &mut *self.list();
        let Attachment { memory, place, .. } = all.remove(&(starts.remove(&number)?, number))?;
        self.end();
        Some((memory, place))
    }

    /// Ends all attachments. Returns the ranges of the segment that were allocated for them.
    pub(crate) fn clear(&self) -> Vec<Range> {
        let List { all, starts, .. } = &mut *self.list();
        starts.clear();
        self.end();
        std::mem::take(all).into_values().filter_map(|attachment| attachment.place).collect()
    }

    /// Finds the memory that has all of these bytes: an attachment, or several that follow each
    /// other in memory. Returns its address as well.
    ///
    /// # Errors
    /// The bytes don't all lie in attached memory (rule 15).
    pub(crate) fn find(&self, (start, end): (i128, i128)) -> Result<(Arc<Exposed>, i64)> {
        let list = self.list();
        // Skips empty attachments: they may lie at the start of another one.
        let found = u64::try_from(start).ok().and_then(|first| {
            let mut near = list.all.range(..=(first, u64::MAX)).rev();
            near.find(|(_, there)| there.len() > 0 || start == end)
        });
        let memory = match found {
            Some((_, there)) if end <= there.end().into() => Some(there.memory.clone()),
            Some((&at, _)) => list.join(at, end).map(Arc::new),
            None => None,
        };
        match (found, memory) {
            (Some((_, there)), Some(memory)) => Ok((memory, there.start as i64)),
            _ => {
                let touched = |there: &&Attachment| {
                    i128::from(there.start) < end && start < there.end().into()
                };
                let touched = list.all.values().find(touched);
                let touched = touched.map(|there| (there.start, there.end()));
                Err(ErrorKind::NotAttached { start, end, touched, own: false }.into())
            }
        }
    }
}

impl List {
    /// The memory from an attachment on, if it and others that follow it reach to `end`.
    fn join(&self, at: (u64, u64), end: i128) -> Option<Exposed> {
        let mut reached = at.0;
        let mut joined = Vec::new();
        for next in self.all.range(at..).map(|(_, next)| next).filter(|next| next.len() > 0) {
            if next.start != reached {
                return None;
            }
            joined.push(next.memory.clone());
            reached = next.end();
            if end <= reached.into() {
                return Exposed::joined(joined);
            }
        }
        None
    }

    /// The lowest free address for `len` bytes, within reach of the machine's pointers.
    fn gap(&self, len: u64, pointer: u8) -> Option<u64> {
        let mut start = FIRST;
        for there in self.all.values() {
            if there.start.checked_sub(start)? >= len.max(1) {
                break;
            }
            start = (there.end().max(there.start + 1)).checked_next_multiple_of(ALIGNMENT)?;
        }
        fits(start.checked_add(len)?, pointer).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use longshore_transport::Segment;
    use shipable::Class;

    use super::*;

    /// Memory of which the tests attach parts.
    fn memory() -> Exposed {
        let segment = Segment::create(1).unwrap().as_rank(0).unwrap();
        Exposed::allocated(segment.map(segment.allocate(4096).unwrap()).unwrap(), 0, 4096)
    }

    #[test]
    fn rule_15_attachments_do_not_overlap() {
        let memory = memory();
        let attachments = Attachments::new(Addresses::Real);
        let attach =
            |start, len| attachments.attach(Arc::new(memory.part(start, len).unwrap()), None);
        let (first, address) = attach(100, 100).unwrap();
        assert_eq!(address, memory.span().start() as i64 + 100);
        for (start, len) in [(100, 100), (150, 10), (50, 51), (199, 1), (0, 4096)] {
            let error = attach(start, len).unwrap_err();
            assert_eq!(error.class(), Class::RmaAttach);
            let words = ["attached already", &format!("{address:#x}"), "detach those"];
            assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
        }
        for (start, len) in [(200, 100), (0, 100), (150, 0), (100, 0)] {
            attach(start, len).unwrap();
        }
        assert!(attachments.detach(first).is_some());
        assert!(attachments.detach(first).is_none());
        attach(120, 20).unwrap();
    }

    #[test]
    fn rule_15_a_range_lies_in_attached_memory() {
        let memory = memory();
        let attachments = Attachments::new(Addresses::Real);
        let attach =
            |start, len| attachments.attach(Arc::new(memory.part(start, len).unwrap()), None);
        let base = i128::from(attach(0, 100).unwrap().1);
        attach(100, 100).unwrap();
        attach(100, 0).unwrap();
        let find = |start, end| attachments.find((base + start, base + end));
        assert_eq!(find(10, 100).unwrap().1, base as i64);
        assert_eq!(find(100, 200).unwrap().1, base as i64 + 100);
        let (both, at) = find(99, 101).unwrap();
        assert_eq!((both.span().len(), at), (200, base as i64));
        attach(201, 10).unwrap();
        for (start, end) in [(-1, 5), (199, 201), (99, 201), (199, 205), (300, 308)] {
            let error = find(start, end).err().unwrap();
            assert_eq!(error.class(), Class::RmaRange);
            assert!(error.to_string().contains("attached memory"), "{error}");
        }
    }

    #[test]
    fn emulated_addresses_fit_pointers_and_are_reused() {
        let memory = memory();
        let attachments = Attachments::new(Addresses::Emulated(4));
        let attach = |len| attachments.attach(Arc::new(memory.part(0, len).unwrap()), None);
        let (first, address) = attach(100).unwrap();
        assert_eq!(address, 65536);
        assert_eq!(attach(0).unwrap().1, 65536 + 128);
        assert_eq!(attach(4096).unwrap().1, 65536 + 192);
        attachments.detach(first);
        assert_eq!(attach(60).unwrap().1, 65536);
        let small = Attachments::new(Addresses::Emulated(2));
        let error = small.attach(Arc::new(memory.part(0, 1).unwrap()), None).unwrap_err();
        assert_eq!(error.class(), Class::RmaAttach);
    }
}
