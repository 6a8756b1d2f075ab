//! The counters of a window's operations: cells that only the window's thread writes.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use portable_atomic::AtomicU64;

use super::snapshot::{Row, TargetCounts, WindowCounts};
use crate::route::Route;

/// The kinds of operations, in the order of their numbers.
pub(crate) const KINDS: [&str; 6] =
    ["put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"];

/// The routes, in the order of their numbers.
pub(crate) const ROUTES: [&str; 3] = ["direct", "rdma", "message"];

/// The upper bounds of the size classes in bytes. Longer operations are in one more class.
pub(crate) const SIZES: [u64; 6] = [8, 64, 512, 4 << 10, 64 << 10, 1 << 20];

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
#[inline]
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
        WindowCounters { id, name: Mutex::default(), targets }
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(crate) fn set_name(&self, name: String) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }

    /// Counts an operation on a target, which is rank `peer` of the job.
    #[inline]
    pub(crate) fn count(&self, target: u32, peer: u32, done: Done) {
        let Some(target) = self.targets.get(target as usize) else { return };
        let target = match target.get() {
            Some(target) => target,
            None => target.get_or_init(|| Box::new(Target { peer, cells: Default::default() })),
        };
        let cell = &target.cells[usize::from(done.kind)][number(done.route)][class(done.bytes)];
        add(&cell.count, 1);
        add(&cell.bytes, done.bytes);
        if done.nanos > 0 {
            add(&cell.nanos, done.nanos);
        }
    }

    /// The counts so far.
    pub(super) fn counts(&self) -> WindowCounts {
        let used = self.targets.iter().filter_map(OnceLock::get);
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        WindowCounts { id: self.id, name, targets: used.map(|target| target.counts()).collect() }
    }
}

impl Target {
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
        counters.count(2, 5, done(0, Route::Direct, 8, 0));
        counters.count(2, 5, done(0, Route::Direct, 8, 0));
        counters.count(2, 5, done(0, Route::Direct, 9, 0));
        counters.count(2, 5, done(1, Route::Message, 2 << 20, 300));
        let counts = counters.counts();
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
        let rows = [row(0, 0, 0, 2, 16, 0), row(0, 0, 1, 1, 9, 0), row(1, 2, 6, 1, 2 << 20, 300)];
        assert_eq!(counts.targets[0].rows, rows);
    }
}
