//! The directory of a dynamic window: a table of each rank, by which related ranks access its
//! attachments directly, or by copies of the system. It is in the segment.
//!
//! ```text
//!    0  version u32      odd while the entries change
//!    4  count u32
//!   64  turns u32        of the table's owner as an origin: odd while it accesses attachments
//!  128  entries[count]   number u64   start u64   len u64   offset u64
//! ```
//!
//! An entry has the addresses of an attachment and the offset of its bytes in the segment; offset 0
//! says that they lie in the private memory of the table's owner, at these addresses. Words
//! are little-endian. Each number of 64 bits is two words of 32, its low half first, since not
//! every machine has wider atomics; the version says whether the halves belong together.
//!
//! A *turn* of an origin is a time in which it accesses attachments. It keeps a concurrent detach
//! from freeing them:
//!
//! 1. An origin makes its turns odd, and then reads the target's version. If the version is
//!    unchanged, the entries that the origin has read are valid.
//! 2. A rank that detaches removes the entry, which changes the version, and then reads the turns
//!    of all origins.
//!
//! Each executes a full barrier between its two steps. So either the origin finds the entry
//! removed, or the detaching rank finds the origin in a turn. In this case it waits until the turn
//! ends.
//!
//! Dynamic windows own their attachments. Memory that only the window has a way to moves into the
//! segment, as that of created windows does. Other memory is the program's own, and stays where it
//! is. A directory in the segment lists which addresses lie where, in the segment or in the owner's
//! private memory (`directory.rs`). An origin marks its turn and then reads the directory's
//! version. A detach changes the version and then reads all turns.
//!
//! - Private attachments are reached as created windows over such memory are: by mailbox, message,
//!   or a copy of the system within a turn. The memo keeps these operations apart from those on
//!   attachments in the segment, by a class of their own. The version of the directory as it was
//!   read tells which class an address has. If that is out of date, the target refuses the
//!   operation, or it does it.
//! - The target remembers the attachment that an operation was in, and how often attachments had
//!   ended then. It holds the lock of its engine while it uses the memory, and a detach takes this
//!   lock before it gives the memory back.
//! - Attachments that aren't in the directory, above 510, are reached by messages.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use longshore_transport::{Mapping, Segment, SegmentError};

use super::part::Part;
use crate::memory::{Exposed, Span, full_barrier};

const COUNT: usize = 4;
const TURNS: usize = 64;
const ENTRIES: usize = 128;
const ENTRY_BYTES: usize = 32;

/// The most attachments in a table. An origin reads all of them after a change.
const MAX_ENTRIES: usize = 510;

/// The offset in an entry of private memory: no range of the segment begins there.
pub(super) const PRIVATE: u64 = 0;

/// The table of one rank.
pub(super) struct Directory {
    memory: Mapping,
}

/// An attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub number: u64,
    /// The attachment's first address.
    pub start: u64,
    pub len: u64,
    /// The offset of its bytes in the segment; [`PRIVATE`] where they don't lie there.
    pub offset: u64,
}

impl Directory {
    /// The bytes of a table, which are zero at first.
    pub(super) const BYTES: u64 = (ENTRIES + MAX_ENTRIES * ENTRY_BYTES) as u64;

    /// The table at this offset of the segment.
    pub(super) fn new(segment: &Segment, offset: u64) -> Result<Directory, SegmentError> {
        Ok(Directory { memory: segment.map(Part { offset, len: Self::BYTES }.range())? })
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        self.memory.word32(at)
    }

    #[inline]
    fn version(&self) -> u32 {
        // Acquire pairs with the releases in `change`.
        u32::from_le(self.word(0).load(Ordering::Acquire))
    }

    fn count(&self) -> usize {
        (u32::from_le(self.word(COUNT).load(Ordering::Relaxed)) as usize).min(MAX_ENTRIES)
    }

    fn entry(&self, at: usize) -> Entry {
        let half = |offset: usize| {
            let word = self.word(ENTRIES + at * ENTRY_BYTES + offset);
            u64::from(u32::from_le(word.load(Ordering::Relaxed)))
        };
        let word = |field: usize| half(8 * field) | half(8 * field + 4) << 32;
        Entry { number: word(0), start: word(1), len: word(2), offset: word(3) }
    }

    fn set_entry(&self, at: usize, entry: Entry) {
        let Entry { number, start, len, offset } = entry;
        let halves =
            [number, start, len, offset].into_iter().flat_map(|value| [value, value >> 32]);
        for (at, half) in (ENTRIES + at * ENTRY_BYTES..).step_by(4).zip(halves) {
            self.word(at).store((half as u32).to_le(), Ordering::Relaxed);
        }
    }

    /// Changes the entries and sets their count. Only the table's owner calls it.
    fn change(&self, count: usize, entries: impl FnOnce()) {
        let version = u32::from_le(self.word(0).load(Ordering::Relaxed));
        let set = |version: u32, order| self.word(0).store(version.to_le(), order);
        set(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        entries();
        self.word(COUNT).store((count as u32).to_le(), Ordering::Relaxed);
        set(version.wrapping_add(2), Ordering::Release);
    }

    /// Whether there is room for another entry.
    pub(super) fn has_room(&self) -> bool {
        self.count() < MAX_ENTRIES
    }

    /// Adds an attachment, unless the table is full.
    pub(super) fn add(&self, entry: Entry) {
        let count = self.count();
        if count < MAX_ENTRIES {
            self.change(count + 1, || self.set_entry(count, entry));
        }
    }

    /// Removes an attachment. Returns false if it isn't in the table. Otherwise this ends with a
    /// full barrier.
    pub(super) fn remove(&self, number: u64) -> bool {
        let count = self.count();
        let Some(at) = (0..count).find(|&at| self.entry(at).number == number) else {
            return false;
        };
        self.change(count - 1, || self.set_entry(at, self.entry(count - 1)));
        full_barrier();
        true
    }

    /// A version that isn't changing, and its entries by their start. `None` if the owner never
    /// stops changing the table.
    fn read(&self) -> Option<(u32, Vec<Entry>)> {
        const LOOKS: usize = 1000;
        let look = || {
            let version = self.version();
            let mut entries: Vec<Entry> = (0..self.count()).map(|at| self.entry(at)).collect();
            fence(Ordering::Acquire);
            let same = version % 2 == 0 && self.version() == version;
            entries.sort_unstable_by_key(|entry| entry.start);
            same.then_some((version, entries))
        };
        (0..LOOKS).find_map(|_| look())
    }

    /// Starts a turn of the table's owner, which lasts until the result is dropped. Turns don't
    /// nest.
    #[inline]
    pub(super) fn turn(&self) -> Turn<'_> {
        let turns = self.word(TURNS);
        let turn = u32::from_le(turns.load(Ordering::Relaxed)).wrapping_add(1);
        debug_assert!(turn % 2 == 1, "a turn within a turn");
        turns.store(turn.to_le(), Ordering::Relaxed);
        full_barrier();
        Turn { turns, next: turn.wrapping_add(1) }
    }

    /// The number of the owner's current turn, if it is in one.
    pub(super) fn in_turn(&self) -> Option<u32> {
        // Acquire pairs with the release at a turn's end, so the turn's stores are visible.
        let turn = u32::from_le(self.word(TURNS).load(Ordering::Acquire));
        (turn % 2 == 1).then_some(turn)
    }
}

/// A turn of an origin: attachments that it finds stay until it ends.
pub(super) struct Turn<'a> {
    turns: &'a AtomicU32,
    next: u32,
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        self.turns.store(self.next.to_le(), Ordering::Release);
    }
}

/// A target's table as an origin has read it, and the mappings of its attachments.
pub(super) struct Reading {
    directory: Directory,
    segment: Segment,
    version: Cell<Option<u32>>,
    /// By their first address.
    entries: RefCell<Vec<MappedEntry>>,
    last: Cell<Option<LastFound>>,
}

struct MappedEntry {
    entry: Entry,
    memory: OnceCell<Exposed>,
}

/// The attachment of the last address that was looked up.
#[derive(Clone, Copy)]
struct LastFound {
    version: u32,
    start: u64,
    len: u64,
    attached: Attached,
}

/// Where an attachment's bytes are.
#[derive(Clone, Copy)]
pub(super) enum Attached {
    /// In memory that this rank has mapped. Displacements in it are addresses.
    Mapped(Span),
    /// In the private memory of the table's owner, up to this address.
    Private(u64),
}

impl Reading {
    /// The table at this offset of the segment, not read yet.
    pub(super) fn new(segment: &Segment, offset: u64) -> Result<Reading, SegmentError> {
        Ok(Reading {
            directory: Directory::new(segment, offset)?,
            segment: segment.clone(),
            version: Cell::new(None),
            entries: RefCell::default(),
            last: Cell::new(None),
        })
    }

    /// The attachment at an address. It stays until the turn ends.
    #[inline]
    pub(super) fn find(&self, _turn: &Turn<'_>, address: u64) -> Option<Attached> {
        let version = self.directory.version();
        self.found(version, address).or_else(|| self.look_up(version, address))
    }

    /// Whether an address seems to be in an attachment in the owner's private memory, which may end
    /// at any time. This reads no table, so an attachment that wasn't found before isn't known.
    #[inline]
    pub(super) fn expects_private(&self, address: u64) -> bool {
        let version = self.directory.version();
        let found = match self.found(version, address) {
            None if self.version.get() == Some(version) => self.look_up(version, address),
            found => found,
        };
        matches!(found, Some(Attached::Private(_)))
    }

    /// The attachment at an address, if it was the last one to be looked up.
    #[inline]
    fn found(&self, version: u32, address: u64) -> Option<Attached> {
        let last = self.last.get()?;
        let is_in = last.version == version && address.wrapping_sub(last.start) < last.len;
        is_in.then_some(last.attached)
    }

    #[inline(never)]
    fn look_up(&self, version: u32, address: u64) -> Option<Attached> {
        if self.version.get() != Some(version) {
            self.read()?;
        }
        let entries = self.entries.borrow();
        let at = entries.partition_point(|mapped| mapped.entry.start <= address).checked_sub(1)?;
        let MappedEntry { entry: Entry { start, len, offset, .. }, memory } = &entries[at];
        if address - start >= *len {
            return None;
        }
        let attached = match *offset {
            PRIVATE => Attached::Private(start.saturating_add(*len)),
            offset => self.mapped((*start, *len), offset, memory)?,
        };
        let version = self.version.get()?;
        self.last.set(Some(LastFound { version, start: *start, len: *len, attached }));
        Some(attached)
    }

    /// The memory of an attachment that lies at this offset of the segment, mapped on first use.
    fn mapped(
        &self,
        (start, len): (u64, u64),
        offset: u64,
        memory: &OnceCell<Exposed>,
    ) -> Option<Attached> {
        let memory = match memory.get() {
            Some(memory) => memory,
            None => {
                // Messages reach memory that can't be mapped.
                let mapped = Part { offset, len }.map(&self.segment).ok()?;
                memory.get_or_init(|| mapped)
            }
        };
        let span = memory.span().shifted(i64::try_from(start).ok()?.checked_neg()?)?;
        Some(Attached::Mapped(span))
    }

    /// Reads the table again, and keeps the mappings of attachments that are still listed.
    fn read(&self) -> Option<()> {
        let (version, listed) = self.directory.read()?;
        self.last.set(None);
        let mut before = self.entries.take();
        let mut entries = Vec::with_capacity(listed.len());
        for entry in listed {
            let at = before.partition_point(|mapped| mapped.entry.start < entry.start);
            let same = before.get_mut(at).filter(|mapped| mapped.entry == entry);
            let memory =
                same.map_or_else(OnceCell::new, |mapped| std::mem::take(&mut mapped.memory));
            entries.push(MappedEntry { entry, memory });
        }
        self.entries.replace(entries);
        self.version.set(Some(version));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use longshore_transport::Range;
    use shipable::reduce::Op;

    use super::*;
    use crate::rank::Rank;
    use crate::sim::{Options, run};
    use crate::window::peers::Location;
    use crate::window::{Info, Window};

    fn entry(segment: &Segment, number: u64, start: u64) -> Entry {
        let Range { offset, .. } = segment.allocate(100).unwrap();
        Entry { number, start, len: 100, offset }
    }

    #[test]
    fn added_attachments_are_found_until_they_are_removed() {
        let segment = Segment::create(2).unwrap().as_rank(0).unwrap();
        let [own, other] = [0; 2].map(|_| segment.allocate(Directory::BYTES).unwrap().offset);
        let [own, other] =
            [own, other].map(|offset| (Directory::new(&segment, offset).unwrap(), offset));
        let reading = Reading::new(&segment, other.1).unwrap();
        let find = |address| match reading.find(&own.0.turn(), address) {
            Some(Attached::Mapped(span)) => Some(span),
            _ => None,
        };
        assert!(find(1000).is_none());
        let entries = [(1, 1000), (2, 500), (3, 1100)].map(|(n, start)| entry(&segment, n, start));
        entries.iter().for_each(|entry| other.0.add(*entry));
        for (at, found) in
            [(499, false), (500, true), (599, true), (600, false), (1199, true), (1200, false)]
        {
            assert_eq!(find(at).is_some(), found, "{at}");
        }
        // Displacements are addresses, and mappings are kept.
        let place = |address| {
            let span = find(address)?;
            assert!(span.covers(address as i64, address as i64 + 1));
            Some(span.start())
        };
        let before = place(1150).unwrap();
        assert_ne!(place(1050).unwrap(), before);
        other.0.remove(1);
        assert!(find(1050).is_none() && find(550).is_some());
        assert_eq!(place(1150).unwrap(), before);
        // A new attachment at an old address has other memory.
        assert!(find(1150).unwrap().write(1150, &[7]));
        let next = entry(&segment, 4, 1100);
        other.0.remove(3);
        other.0.add(next);
        assert_eq!(find(1150).unwrap().peek::<u8>(1150), Some(0));
    }

    #[test]
    fn private_attachments_are_expected_while_they_are_listed() {
        let segment = Segment::create(2).unwrap().as_rank(0).unwrap();
        let [own, other] = [0; 2].map(|_| segment.allocate(Directory::BYTES).unwrap().offset);
        let [own, table] = [own, other].map(|offset| Directory::new(&segment, offset).unwrap());
        let reading = Reading::new(&segment, other).unwrap();
        for (number, start, offset) in [(1, 1000, PRIVATE), (2, 2000, PRIVATE), (3, 3000, 4096)] {
            table.add(Entry { number, start, len: 100, offset });
        }
        let end = |address| match reading.find(&own.turn(), address) {
            Some(Attached::Private(end)) => Some(end),
            _ => None,
        };
        assert!(!reading.expects_private(1000));
        assert_eq!((end(1000), end(1099), end(1100)), (Some(1100), Some(1100), None));
        let expected = [999, 1000, 2099, 2100, 3000].map(|at| reading.expects_private(at));
        assert_eq!(expected, [false, true, true, false, false]);
        table.remove(1);
        assert!(!reading.expects_private(1000) && !reading.expects_private(2000));
        assert_eq!((end(1000), end(2000)), (None, Some(2100)));
        assert!(!reading.expects_private(1000) && reading.expects_private(2000));
    }

    #[test]
    fn peers_see_a_turn_until_it_ends() {
        let segment = Segment::create(1).unwrap().as_rank(0).unwrap();
        let Range { offset, .. } = segment.allocate(Directory::BYTES).unwrap();
        let [own, seen] = [0; 2].map(|_| Directory::new(&segment, offset).unwrap());
        let turn = own.turn();
        let first = seen.in_turn();
        assert!(first.is_some());
        drop(turn);
        assert_eq!(seen.in_turn(), None);
        let _turn = own.turn();
        assert_ne!(seen.in_turn(), first);
    }

    /// The first accumulate goes by message, since the directory is changing. It must be applied
    /// before the next one, which has a direct route.
    #[test]
    fn accumulates_stay_in_order_while_a_directory_changes() {
        let body = |rank: Rank| {
            let (world, long) = (rank.world(), rank.type_of::<i64>().unwrap());
            let window = Window::create_dynamic(world, &Info::default()).unwrap();
            let attached = window.attach(vec![0i64]).unwrap();
            let place = world.allgather(&[attached.address()]).unwrap()[1];
            let directory = match window.core.parts().peers().of(1).location {
                Location::Directory(offset) => {
                    Some(Directory::new(world.process().segment(), offset).unwrap())
                }
                _ => None,
            };
            if world.rank() == 0 {
                let found = window.lock_all(|epoch| {
                    let first = || epoch.accumulate(&[1i64], 1, place, 1, &long, Op::Replace);
                    match &directory {
                        Some(directory) => {
                            let mut done = Ok(());
                            directory.change(directory.count(), || done = first());
                            done?;
                        }
                        None => first()?,
                    }
                    epoch.accumulate(&[2i64], 1, place, 1, &long, Op::Sum)?;
                    epoch.fetch_and_op(4i64, 1, place, Op::Sum)?.wait()
                });
                assert_eq!(found.unwrap(), 3);
            }
            world.barrier().unwrap();
            let memory = window.detach(attached).unwrap();
            assert_eq!(memory[0], [0, 7][world.rank() as usize]);
            window.free().unwrap();
            rank.finalize().unwrap();
        };
        run(2, &Options::default(), body).unwrap();
    }

    #[test]
    fn a_full_directory_ignores_further_attachments() {
        let segment = Segment::create(1).unwrap().as_rank(0).unwrap();
        let Range { offset, .. } = segment.allocate(Directory::BYTES).unwrap();
        let directory = Directory::new(&segment, offset).unwrap();
        let add = |number| directory.add(Entry { number, start: 8 * number, len: 8, offset: 0 });
        (1..=MAX_ENTRIES as u64).for_each(add);
        assert!(!directory.has_room());
        add(MAX_ENTRIES as u64 + 1);
        assert_eq!(directory.read().unwrap().1.len(), MAX_ENTRIES);
        directory.remove(7);
        assert!(directory.has_room());
        assert!(directory.read().unwrap().1.iter().all(|entry| entry.number != 7));
    }
}
