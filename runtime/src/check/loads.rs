//! Loads and stores that the program's compiler reports, in memory that the checker watches.
//!
//! Code that is compiled with `mpicc --check` asks [`pages`] before each access whether its page is
//! watched. An access to such a page is [`touched`](Loads::touched). Accesses of one place in the
//! code that follow each other at one distance become one [`Run`]. The checker takes the runs
//! before its clock changes, so all of them belong to the present clock.
//!
//! Nothing here locks the engine: functions of the program that the engine calls, such as those of
//! reductions, are compiled in this way, too. Nor does an access allocate memory or look for a
//! source line, since it may be that of a signal handler.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::footprint::Footprint;
use crate::program::SourceLine;

/// The number of entries of the table of pages.
pub(crate) const PAGES: usize = 1 << 16;

/// The bytes of a page, as a power of two.
const PAGE: u32 = 12;

/// The longest access that the table is asked about by its first byte only.
const WIDEST: usize = 16;

/// The number of watched areas in the pages whose numbers end in these 16 bits.
static WATCHED: [AtomicU16; PAGES] = [const { AtomicU16::new(0) }; PAGES];

/// Where the number of watched areas of each page is found: at the last 16 bits of its number.
pub(crate) fn pages() -> &'static [AtomicU16; PAGES] {
    &WATCHED
}

/// The entries of the pages from which an access may reach the bytes.
fn entries(bytes: &Range<usize>) -> impl Iterator<Item = &'static AtomicU16> {
    let first = bytes.start.saturating_sub(WIDEST - 1) >> PAGE;
    let last = bytes.end.saturating_sub(1) >> PAGE;
    let count = (last - first + 1).min(PAGES);
    (first..first + count).map(|page| &WATCHED[page % PAGES])
}

/// The limit of runs between two calls of the library.
const MOST: usize = 16_384;

/// The longest distance of the pieces of a run.
const LONGEST: u64 = 1 << 20;

/// The number of places whose last run is remembered.
const SLOTS: usize = 256;

/// Loads or stores of one place in the code: `count` pieces of `len` bytes, at one distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The address of the code.
    pub place: usize,
    pub stores: bool,
    pub start: usize,
    pub len: usize,
    pub count: u64,
    pub stride: i64,
}

impl Run {
    /// The first byte and the one after the last.
    pub(crate) fn bounds(&self) -> Range<usize> {
        let low = self.lowest();
        let reach = self.stride.unsigned_abs() as usize * (self.count as usize - 1);
        low..low + reach + self.len
    }

    /// The bytes, counted from an address.
    pub(crate) fn footprint(&self, from: usize) -> Footprint {
        let start = self.lowest() as i64 - from as i64;
        Footprint::strided(start, self.len as u64, self.count, self.stride.abs())
    }

    /// The address of the lowest piece.
    pub(crate) fn lowest(&self) -> usize {
        match self.stride < 0 {
            true => self.last(),
            false => self.start,
        }
    }

    /// The address of the last piece.
    fn last(&self) -> usize {
        self.start.wrapping_add_signed(self.stride as isize * (self.count as isize - 1))
    }

    /// Adds an access of the same place. Returns false if it isn't the next piece, nor within the
    /// run.
    fn extend(&mut self, bytes: &Range<usize>) -> bool {
        if self.count == 1 {
            let whole = self.start..self.start + self.len;
            if bytes.start <= whole.end && whole.start <= bytes.end {
                self.start = whole.start.min(bytes.start);
                self.len = whole.end.max(bytes.end) - self.start;
                return true;
            }
        }
        let stride = bytes.start.wrapping_sub(self.last()) as i64;
        if bytes.len() != self.len {
            return false;
        }
        if self.count == 1 && stride.unsigned_abs() <= LONGEST {
            self.stride = stride;
        }
        let follows = stride == self.stride;
        self.count += u64::from(follows);
        follows || stride == 0
    }
}

/// The loads and stores of a rank that weren't taken yet, and the memory that is watched.
#[derive(Default)]
pub(crate) struct Loads {
    collected: Mutex<Collected>,
    /// Whether there are runs, readable without the lock.
    any: AtomicBool,
    /// The number of accesses and operations that were too many, or interrupted another one.
    missed: AtomicU64,
    /// Finds the source line of an address in the program's code.
    finder: OnceLock<Finder>,
}

/// Finds the source line of an address in the program's code.
pub(crate) type Finder = fn(usize) -> &'static SourceLine;

thread_local! {
    /// Whether this thread has locked what was collected. A signal handler may interrupt it then.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The lock of what was collected. It is released before the thread counts as outside.
struct Inside<'a>(MutexGuard<'a, Collected>, Flag);

struct Flag;

impl Drop for Flag {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

#[derive(Default)]
struct Collected {
    areas: Vec<Range<usize>>,
    runs: Vec<Run>,
    /// For each place in the code, by a part of its address, the number of its last run.
    slots: Vec<usize>,
}

impl Loads {
    fn collected(&self) -> Inside<'_> {
        INSIDE.set(true);
        Inside(self.collected.lock().unwrap_or_else(PoisonError::into_inner), Flag)
    }

    /// Watches memory until the watch is dropped.
    pub(crate) fn watch(self: &Arc<Loads>, bytes: Range<usize>) -> Watch {
        if !bytes.is_empty() {
            for page in entries(&bytes) {
                page.fetch_add(1, Ordering::Relaxed);
            }
            let Inside(collected, _) = &mut self.collected();
            collected.areas.push(bytes.clone());
            // Later, nothing is allocated.
            let room = MOST.saturating_sub(collected.runs.len());
            collected.runs.reserve_exact(room);
            collected.slots.resize(SLOTS, 0);
        }
        Watch { loads: self.clone(), bytes }
    }

    /// Says how source lines are found.
    pub(crate) fn find_by(&self, finder: Finder) {
        self.finder.get_or_init(|| finder);
    }

    /// The source line of an address in the program's code, if lines can be found.
    pub(crate) fn line(&self, place: usize) -> Option<&'static SourceLine> {
        self.finder.get().map(|finder| finder(place))
    }

    /// Code at `place` loads these bytes, or stores to them.
    pub(crate) fn touched(&self, bytes: Range<usize>, stores: bool, place: usize) {
        if INSIDE.get() {
            return self.miss();
        }
        let Inside(collected, _) = &mut self.collected();
        let Collected { areas, runs, slots } = &mut **collected;
        let is_near = |area: &Range<usize>| area.start < bytes.end && bytes.start < area.end;
        if !areas.iter().any(is_near) {
            return;
        }
        let slot = &mut slots[(place ^ place >> 8) % SLOTS];
        let last = runs.get_mut(*slot).filter(|run| (run.place, run.stores) == (place, stores));
        if last.is_some_and(|last| last.extend(&bytes)) {
            return;
        }
        if runs.len() >= MOST {
            return self.miss();
        }
        *slot = runs.len();
        let (start, len) = (bytes.start, bytes.len());
        runs.push(Run { place, stores, start, len, count: 1, stride: 0 });
        self.any.store(true, Ordering::Relaxed);
    }

    /// Counts an access or an operation that isn't watched.
    pub(crate) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// The runs since the last call.
    pub(crate) fn take(&self) -> Vec<Run> {
        if !self.any.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let Inside(collected, _) = &mut self.collected();
        self.any.store(false, Ordering::Relaxed);
        collected.runs.drain(..).collect()
    }

    /// The number of accesses and operations that weren't watched.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// Memory that is watched until this value is dropped.
pub(crate) struct Watch {
    loads: Arc<Loads>,
    bytes: Range<usize>,
}

impl Watch {
    pub(crate) fn bytes(&self) -> &Range<usize> {
        &self.bytes
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            let Inside(collected, _) = &mut self.loads.collected();
            if let Some(at) = collected.areas.iter().position(|area| *area == self.bytes) {
                collected.areas.swap_remove(at);
            }
            for page in entries(&self.bytes) {
                page.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(loads: &Loads, bytes: Range<usize>, place: usize) {
        loads.touched(bytes, true, place);
    }

    #[test]
    fn neighbours_of_one_place_become_one_run() {
        let loads = Arc::new(Loads::default());
        let watch = loads.watch(0x10_0000..0x20_0000);
        for at in 0..1000 {
            touch(&loads, 0x10_0000 + 8 * at..0x10_0008 + 8 * at, 1);
            // Members of structs, upwards and downwards.
            touch(&loads, 0x14_0000 + 24 * at..0x14_0004 + 24 * at, 2);
            touch(&loads, 0x18_0000 - 32 * at..0x18_0008 - 32 * at, 3);
        }
        let runs = loads.take();
        let shape = |run: &Run| (run.bounds(), run.len, run.count);
        let shapes: Vec<_> = runs.iter().map(shape).collect();
        assert_eq!(
            shapes,
            [
                (0x10_0000..0x10_0000 + 8000, 8000, 1),
                (0x14_0000..0x14_0004 + 24 * 999, 4, 1000),
                (0x18_0000 - 32 * 999..0x18_0008, 8, 1000),
            ]
        );
        assert!(loads.take().is_empty());
        drop(watch);
        touch(&loads, 0x10_0000..0x10_0008, 1);
        assert!(loads.take().is_empty());
    }

    #[test]
    fn only_watched_bytes_are_collected() {
        let loads = Arc::new(Loads::default());
        let watch = loads.watch(0x1000..0x1004);
        touch(&loads, 0x1004..0x1008, 1);
        touch(&loads, 0xffc..0x1000, 1);
        assert!(loads.take().is_empty());
        touch(&loads, 0xffd..0x1001, 1);
        assert_eq!(loads.take().len(), 1);
        assert_eq!(watch.bytes(), &(0x1000..0x1004));
    }

    #[test]
    fn each_page_that_is_watched_counts() {
        // Other tests may watch other pages meanwhile.
        let loads = Arc::new(Loads::default());
        let page = |address: usize| &pages()[(address >> PAGE) % PAGES];
        let watch = loads.watch(0x7123_4008..0x7123_6008);
        for address in [0x7123_3ff9_usize, 0x7123_4000, 0x7123_5000, 0x7123_6000] {
            assert_ne!(page(address).load(Ordering::Relaxed), 0, "{address:#x}");
        }
        drop(watch);
        assert_eq!(page(0x7123_5000).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_excess_is_counted() {
        let loads = Arc::new(Loads::default());
        let _watch = loads.watch(0x1000..0x1000 + 64 * MOST);
        for place in 0..MOST + 10 {
            let at = 0x1000 + 32 * place;
            loads.touched(at..at + 1, false, place);
        }
        assert_eq!((loads.take().len(), loads.missed()), (MOST, 10));
    }
}
