//! How a rank waits: a short spin, then sleep on the doorbell.
//!
//! One thread of a rank sleeps on the bell; others that wait at the same time sleep until that one has woken, or until
//! whoever made progress nudges them, so that none misses what another found.
//!
//! The [progress thread](crate::progress), if there is one, sleeps on the bell too, but arms it only while no call waits: a
//! call that waits makes progress by itself. It finds the bell disarmed then, so that peers wake nobody for it, and leaves it
//! armed again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_transport::Doorbell;

/// Looks before the first sleep where every rank can have a core of its own. A peer that is about to answer does so within
/// a microsecond or two; a sleep and its wake cost ten, which is about what these looks take. Ten times as many cost a
/// busy machine far more: the peer waits for the core. (2 virtual cores, Zen 5: `cargo bench`, row fence.)
const SPINS: u32 = 200;

/// A sleeping rank looks at the job's state at least this often.
const NAP: Duration = Duration::from_millis(100);

/// The one way in which a rank waits. Under simulation the doorbell and the empty link pass the turn to another rank.
pub(crate) struct Waiter {
    rank: u32,
    doorbell: Arc<dyn Doorbell>,
    spins: u32,
    /// Whether a progress thread serves while nobody waits.
    served: AtomicBool,
    threads: Mutex<Threads>,
    /// The one on the bell has woken, or another thread has found something.
    woken: Condvar,
    /// No call waits any more.
    left: Condvar,
    /// Threads that sleep, or are about to.
    sleepers: AtomicU32,
}

/// What the threads of a rank are at.
#[derive(Default)]
struct Threads {
    /// Calls that wait.
    waiting: u32,
    /// The progress thread has stepped aside for them.
    aside: bool,
    /// One of them sleeps on the bell.
    on_bell: bool,
    /// Changes whenever the others should look again.
    turn: u64,
}

impl Waiter {
    /// Spins only if `ranks` of this host fit its cores.
    pub(crate) fn new(rank: u32, doorbell: Arc<dyn Doorbell>, ranks: u32) -> Waiter {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let spins = if ranks as usize <= cores { SPINS } else { 0 };
        Waiter { spins, ..Self::sleeping(rank, doorbell) }
    }

    /// One that never spins.
    pub(crate) fn sleeping(rank: u32, doorbell: Arc<dyn Doorbell>) -> Waiter {
        Waiter {
            rank,
            doorbell,
            spins: 0,
            served: AtomicBool::new(false),
            threads: Mutex::default(),
            woken: Condvar::new(),
            left: Condvar::new(),
            sleepers: AtomicU32::new(0),
        }
    }

    /// From here on a progress thread serves while nobody waits.
    pub(crate) fn serve(&self) {
        self.served.store(true, Ordering::Relaxed);
    }

    /// How often to look before the first sleep.
    #[inline]
    pub(crate) fn spins(&self) -> u32 {
        self.spins
    }

    /// One turn of a loop that doesn't sleep.
    pub(crate) fn pause(&self) {
        self.doorbell.pause();
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins to wait: it makes progress from here on. True if there is a progress thread to step aside.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        let served = self.served.load(Ordering::Relaxed);
        if served {
            let mut threads = self.threads();
            threads.waiting += 1;
            if !threads.on_bell {
                self.doorbell.disarm();
            }
        }
        served
    }

    /// A call for which the progress thread stepped aside has ended its wait. True if the bell is armed for the thread from
    /// here on: what came before doesn't ring, so the caller looks once more, and [rings](Waiter::ring) if it finds
    /// something.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        let mut threads = self.threads();
        threads.waiting -= 1;
        if threads.waiting > 0 {
            return false;
        }
        if threads.aside {
            self.left.notify_all();
            return false;
        }
        self.doorbell.arm();
        true
    }

    /// Wakes whoever of this rank sleeps on its bell.
    pub(crate) fn ring(&self) {
        // It is a rank of its own job.
        let _ = self.doorbell.ring(self.rank);
    }

    /// Sleeps until something happens, unless `look` finds that something has. `look` runs with the bell armed, so what
    /// happens after it ends the sleep.
    pub(crate) fn sleep<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut threads = self.threads();
        let found = if threads.on_bell {
            let turn = threads.turn;
            drop(threads);
            let found = look();
            if found.is_none() {
                let same = |threads: &mut Threads| threads.turn == turn;
                let threads = self.threads();
                drop(self.woken.wait_timeout_while(threads, NAP, same));
            }
            found
        } else {
            threads.on_bell = true;
            // Before others rely on it: what they look for in shared memory is told by the bell alone.
            self.doorbell.arm();
            drop(threads);
            let found = look();
            if found.is_none() {
                self.doorbell.sleep(NAP);
            }
            let mut threads = self.threads();
            threads.on_bell = false;
            self.doorbell.disarm();
            threads.turn += 1;
            if self.sleepers.load(Ordering::SeqCst) > 1 {
                self.woken.notify_all();
            }
            found
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// A thread has made progress, `own` of whose sleeps are under way: others may wait for just that. It held the engine's
    /// lock, as they do when they look for the last time before they sleep, so one of both sees the other.
    #[inline]
    pub(crate) fn nudge(&self, own: u32) {
        if self.sleepers.load(Ordering::SeqCst) > own {
            self.threads().turn += 1;
            self.woken.notify_all();
            self.ring();
        }
    }

    /// The progress thread's sleep: aside while calls wait; then on the bell, unless `look` finds something.
    pub(crate) fn doze<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut threads = self.threads();
        while threads.waiting > 0 {
            threads.aside = true;
            let waited = self.left.wait_timeout(threads, NAP);
            threads = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        threads.aside = false;
        self.doorbell.arm();
        drop(threads);
        let found = look();
        if found.is_none() {
            self.doorbell.sleep(NAP);
        }
        found
    }
}
