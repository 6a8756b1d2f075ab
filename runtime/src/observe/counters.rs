//! The counters of a window's operations: cells that only the window's thread writes.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use portable_atomic::AtomicU64;

use longshore_job::journal::snapshot::{Row, TargetCounts, WindowCounts};
use longshore_job::journal::{KINDS, ROUTES, SIZES};

use crate::route::Route;

/// The size classes.
pub(crate) const CLASSES: usize = SIZES.len() + 1;

/// The least number of bytes of an operation whose time is taken. Reading the clock twice takes as
/// long as a shorter copy.
pub(crate) const TIMED: u64 = 4 << 10;

/// An operation that was carried out, or handed to the network.
#[derive(Clone, Copy)]
pub(crate) struct Done {
    /// The number of its kind.
    pub kind: u8,
    pub route: Route,
    pub bytes: u64,
    /// The time that its call took, if that was taken.
    pub nanos: u64,
}

/// The counters of one window at one rank.
pub(crate) struct WindowCounters {
    id: u32,
    name: Mutex<String>,
    /// The ranks of the job, by their ranks in the window, with the counters of those that were
    /// targets.
    targets: Box<[OnceLock<Box<Target>>]>,
    run: Run,
}

/// Operations on one target, of one kind and length, that follow each other: mostly all of a loop.
/// They are counted here, and join the target's counters when another operation follows. So the
/// next one costs two comparisons and an addition.
struct Run {
    /// The target, the kind and the route: see [`Done::what`]. Unused while `count` is 0.
    what: AtomicU64,
    bytes: AtomicU64,
    count: AtomicU64,
}

impl Run {
    /// No run, which no operation follows.
    fn none() -> Run {
        let what = AtomicU64::new(u64::MAX);
        Run { what, bytes: AtomicU64::new(0), count: AtomicU64::new(0) }
    }
}

/// The counters of the operations on one target. One thread at a time uses a window, so they need
/// no read-modify-write; they are atomics, since another thread of the rank takes the snapshots.
struct Target {
    peer: u32,
    cells: [[[Cell; CLASSES]; ROUTES.len()]; KINDS.len()],
}

#[derive(Default)]
struct Cell {
    count: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

/// The size class of an operation.
fn class(bytes: u64) -> usize {
    SIZES.iter().position(|&bound| bytes <= bound).unwrap_or(SIZES.len())
}

#[inline]
fn add(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(more), Relaxed);
}

impl WindowCounters {
    /// The counters of a window with this many ranks.
    pub(super) fn new(id: u32, ranks: usize) -> WindowCounters {
        let targets = (0..ranks).map(|_| OnceLock::new()).collect();
        WindowCounters { id, name: Mutex::default(), targets, run: Run::none() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn set_name(&self, name: String) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    /// Counts an operation on a target, which is rank `peer` of the job.
    #[inline]
    pub(crate) fn count(&self, target: u32, peer: impl FnOnce() -> u32, done: Done) {
        let (run, what) = (&self.run, done.what(target));
        let is_next = run.what.load(Relaxed) == what && run.bytes.load(Relaxed) == done.bytes;
        if is_next && done.nanos == 0 {
            add(&run.count, 1);
        } else {
            self.begin_run(target, peer(), done);
        }
    }

    /// Counts the first operation of a run, or one whose time was taken.
    #[cold]
    #[inline(never)]
    fn begin_run(&self, target: u32, peer: u32, done: Done) {
        self.end_run();
        let Some(place) = self.targets.get(target as usize) else { return };
        let target_counters =
            place.get_or_init(|| Box::new(Target { peer, cells: Default::default() }));
        if done.nanos > 0 {
            target_counters.add(done, 1);
            return;
        }
        self.run.what.store(done.what(target), Relaxed);
        self.run.bytes.store(done.bytes, Relaxed);
        self.run.count.store(1, Relaxed);
    }

    /// Adds the run to the counters of its target.
    fn end_run(&self) {
        let count = self.run.count.swap(0, Relaxed);
        // So that no operation is taken for the next one of the run.
        let what = self.run.what.swap(u64::MAX, Relaxed);
        if count > 0 {
            let (target, done) = Done::of(what, self.run.bytes.load(Relaxed));
            if let Some(target) = self.targets.get(target as usize).and_then(OnceLock::get) {
                target.add(done, count);
            }
        }
    }

    /// The counts so far. The window's thread calls this at the window's end. Another thread may
    /// call it before, and miss operations that are being counted.
    pub(super) fn counts(&self, is_over: bool) -> WindowCounts {
        if is_over {
            self.end_run();
        }
        let used = self.targets.iter().filter_map(OnceLock::get);
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut counts = WindowCounts {
            id: self.id,
            name,
            targets: used.map(|target| target.counts()).collect(),
        };
        let count = self.run.count.load(Relaxed);
        if count > 0 {
            let (target, done) =
                Done::of(self.run.what.load(Relaxed), self.run.bytes.load(Relaxed));
            let peer = self.targets.get(target as usize).and_then(OnceLock::get);
            if let Some(Target { peer, .. }) = peer.map(|target| &**target) {
                let Done { kind, route, bytes, nanos } = done;
                let (route, class) = (number(route) as u8, class(bytes) as u8);
                let bytes = bytes.wrapping_mul(count);
                counts.add(*peer, Row { kind, route, class, count, bytes, nanos });
            }
        }
        counts
    }
}

impl Done {
    /// The target, the kind and the route in one word.
    #[inline]
    fn what(self, target: u32) -> u64 {
        u64::from(target) | u64::from(self.kind) << 32 | (number(self.route) as u64) << 40
    }

    /// The target, and an operation with this word and length.
    fn of(what: u64, bytes: u64) -> (u32, Done) {
        let route = match what >> 40 {
            0 => Route::Direct,
            1 => Route::Rdma,
            3 => Route::Peer,
            _ => Route::Message,
        };
        (what as u32, Done { kind: (what >> 32) as u8, route, bytes, nanos: 0 })
    }
}

impl Target {
    /// Adds operations of one kind, route and length.
    fn add(&self, done: Done, count: u64) {
        let routes = self.cells.get(usize::from(done.kind));
        let Some(cells) = routes.and_then(|routes| routes.get(number(done.route))) else { return };
        let cell = &cells[class(done.bytes)];
        add(&cell.count, count);
        add(&cell.bytes, done.bytes.wrapping_mul(count));
        add(&cell.nanos, done.nanos);
    }

    fn counts(&self) -> TargetCounts {
        let mut rows = Vec::new();
        for (kind, routes) in (0..).zip(&self.cells) {
            for (route, classes) in (0..).zip(routes) {
                for (class, cell) in (0..).zip(classes) {
                    let count = cell.count.load(Relaxed);
                    if count > 0 {
                        let (bytes, nanos) = (cell.bytes.load(Relaxed), cell.nanos.load(Relaxed));
                        rows.push(Row { kind, route, class, count, bytes, nanos });
                    }
                }
            }
        }
        TargetCounts { rank: self.peer, rows }
    }
}

/// The number of a route.
#[inline]
pub(super) fn number(route: Route) -> usize {
    match route {
        Route::Direct => 0,
        Route::Rdma => 1,
        Route::Message => 2,
        Route::Peer => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_counted_by_kind_route_and_size() {
        let counters = WindowCounters::new(7, 3);
        counters.set_name("halo".to_owned());
        let done = |kind, route, bytes, nanos| Done { kind, route, bytes, nanos };
        let count = |done| counters.count(2, || 5, done);
        count(done(0, Route::Direct, 8, 0));
        count(done(0, Route::Direct, 8, 0));
        count(done(0, Route::Direct, 9, 0));
        count(done(1, Route::Message, 2 << 20, 300));
        count(done(0, Route::Direct, 8, 0));
        // Those of a run are seen before it ends.
        assert_eq!(counters.counts(false), counters.counts(true));
        let counts = counters.counts(true);
        assert_eq!((counts.id, counts.name.as_str(), counts.targets.len()), (7, "halo", 1));
        assert_eq!(counts.targets[0].rank, 5);
        let row = |kind, route, class, count, bytes, nanos| Row {
            kind,
            route,
            class,
            count,
            bytes,
            nanos,
        };
        let rows = [row(0, 0, 0, 3, 24, 0), row(0, 0, 1, 1, 9, 0), row(1, 2, 6, 1, 2 << 20, 300)];
        assert_eq!(counts.targets[0].rows, rows);
    }
}
