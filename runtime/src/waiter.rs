//! How a rank waits: a short spin, then sleep on the doorbell. A sleep that proves short makes the next spin longer.
//!
//! One thread of a rank sleeps on the bell; others that wait at the same time sleep until that one has woken, or until
//! whoever made progress nudges them, so that none misses what another found.
//!
//! The [progress thread](crate::progress), if there is one, sleeps on the bell too, but arms it only while no call waits: a
//! call that waits makes progress by itself. It finds the bell disarmed then, so that peers wake nobody for it, and leaves it
//! armed again. A call that waits for an answer leaves it alone for the time that most take, since answers don't ring for that thread.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longshore_transport::Doorbell;

/// Glances at a word before more is done to find something, where every rank can have a core of its own: a peer that is about to
/// answer does so within a microsecond or two.
const SPINS: u32 = 200;

/// Looks before a sleep. A sleep and its wake cost ten microseconds, which is about what these looks take. Ten times as many cost a
/// busy machine far more: the peer waits for the core. (2 virtual cores, Zen 5: `cargo bench`, row fence.)
const LOOKS: u32 = 100;

/// Looks before a sleep where the last sleep was short: 100 to 200 us, in which a peer moves a few MiB. To be woken takes
/// 13 us, for which the peer waits in its turn: a put of 1 MiB with post and wait took 32 us instead of 19.
/// (2 virtual cores, Zen 5: `longshore bench put_latency --sync pscw --size 1M`.)
const MORE_LOOKS: u32 = 16 * LOOKS;

/// The most, where peers access memory: each sleep that ends with an access doubles the looks before the next. A target sleeps every
/// 8 ms then, not every 500 us, and each sleep keeps a peer waiting for 13 us.
const MOST_LOOKS: u32 = 16 * MORE_LOOKS;

/// A sleep that ends sooner than this is one that more looks would have spared.
const SHORT_SLEEP: Duration = Duration::from_micros(150);

/// Sleeps until more looks are tried again, once they were in vain: the peer may wait for this very core.
const WARINESS: u32 = 32;

/// Looks of a call that waits before the progress thread steps aside for it: an answer is here after some 500 ns.
const BRIEF: u32 = 32;

/// The same where all peers are on other hosts, with an answer after ten microseconds and more, and a look of 300 ns.
const FAR: u32 = 128;

/// Waits that spare peers from ringing, once one sent anything but an answer to a rank that waited.
const COURTESY: u32 = 64;

/// A sleeping rank looks at the job's state at least this often.
const NAP: Duration = Duration::from_millis(100);

/// The one way in which a rank waits. Under simulation the doorbell and the empty link pass the turn to another rank.
pub(crate) struct Waiter {
    rank: u32,
    doorbell: Arc<dyn Doorbell>,
    spins: u32,
    /// Looks before the next sleep.
    patience: AtomicU32,
    /// Sleeps until more of them may be tried.
    wary: AtomicU32,
    /// Whether a progress thread serves while nobody waits.
    served: AtomicBool,
    /// Whether the bell, where it is armed for that thread, doesn't ring for answers.
    quiet: AtomicBool,
    /// So many of the next waits disarm it at once.
    courtesy: AtomicU32,
    /// Whether others ring it: ranks of this host do.
    is_rung: bool,
    /// Whether peers access memory of this rank, which the network does while it looks, and tells nobody.
    silent: AtomicBool,
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
        let (spins, looks) = if ranks as usize <= cores { (SPINS, LOOKS) } else { (0, 0) };
        let (patience, is_rung) = (AtomicU32::new(looks), ranks > 1);
        Waiter { spins, patience, is_rung, ..Self::sleeping(rank, doorbell) }
    }

    /// One that never spins.
    pub(crate) fn sleeping(rank: u32, doorbell: Arc<dyn Doorbell>) -> Waiter {
        Waiter {
            rank,
            doorbell,
            spins: 0,
            patience: AtomicU32::new(0),
            wary: AtomicU32::new(0),
            served: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            courtesy: AtomicU32::new(0),
            is_rung: true,
            silent: AtomicBool::new(false),
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

    /// From here on peers may access memory of this rank.
    pub(crate) fn expose(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// How often to look for a peer that is about to answer.
    #[inline]
    pub(crate) fn spins(&self) -> u32 {
        self.spins
    }

    /// How often to look before the next sleep.
    #[inline]
    pub(crate) fn patience(&self) -> u32 {
        self.patience.load(Ordering::Relaxed)
    }

    /// Decides by how long a sleep was how often to look before the next one.
    fn learn(&self, slept: Duration) {
        let wary = self.wary.load(Ordering::Relaxed);
        // What looks did for peers that access memory isn't seen: that one came soon behind them says that they weren't in vain.
        let accessed = self.silent.load(Ordering::Relaxed) && slept < SHORT_SLEEP;
        if self.patience() > LOOKS {
            if accessed {
                self.patience.store((2 * self.patience()).min(MOST_LOOKS), Ordering::Relaxed);
                return;
            }
            self.patience.store(LOOKS, Ordering::Relaxed);
            self.wary.store(WARINESS, Ordering::Relaxed);
        } else if wary > 0 {
            self.wary.store(wary - 1, Ordering::Relaxed);
        } else if self.spins > 0 && slept < SHORT_SLEEP {
            self.patience.store(MORE_LOOKS, Ordering::Relaxed);
        }
    }

    /// One turn of a loop that doesn't sleep.
    pub(crate) fn pause(&self) {
        self.doorbell.pause();
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a call looks before it [enters](Waiter::enter), so that the progress thread steps aside for it: what it waits for
    /// doesn't ring, and to disarm the bell and arm it again takes two cache lines' way from peers and back.
    #[inline]
    pub(crate) fn brief(&self) -> u32 {
        if !self.quiet.load(Ordering::Relaxed) || self.spins == 0 {
            return 0;
        }
        let courtesy = self.courtesy.load(Ordering::Relaxed);
        if courtesy > 0 {
            self.courtesy.store(courtesy - 1, Ordering::Relaxed);
        }
        match (courtesy, self.is_rung) {
            (0, true) => BRIEF,
            (0, false) => FAR,
            _ => 0,
        }
    }

    /// What came while this rank waited was no answer: for some time peers needn't ring whenever it waits.
    #[inline]
    pub(crate) fn asked(&self) {
        if self.is_rung {
            self.courtesy.store(COURTESY, Ordering::Relaxed);
        }
    }

    fn arm_for_requests(&self) {
        let quiet = self.doorbell.arm_for_requests();
        self.quiet.store(quiet, Ordering::Relaxed);
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
        self.arm_for_requests();
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
                let asleep = Instant::now();
                self.doorbell.sleep(NAP);
                self.learn(asleep.elapsed());
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
        self.arm_for_requests();
        drop(threads);
        let found = look();
        if found.is_none() {
            self.doorbell.sleep(NAP);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use longshore_transport::LinkError;

    use super::*;

    /// One that nobody rings.
    struct Still;

    impl Doorbell for Still {
        fn arm(&self) {}
        fn disarm(&self) {}
        fn sleep(&self, _: Duration) {}
        fn pause(&self) {}
        fn ring(&self, _: u32) -> Result<(), LinkError> {
            Ok(())
        }
    }

    #[test]
    fn a_short_sleep_makes_the_next_wait_look_longer_unless_that_was_in_vain() {
        let mut waiter = Waiter::sleeping(0, Arc::new(Still));
        waiter.learn(Duration::ZERO);
        assert_eq!(waiter.patience(), 0, "where ranks share cores");
        (waiter.spins, waiter.patience) = (SPINS, AtomicU32::new(LOOKS));
        waiter.learn(SHORT_SLEEP);
        assert_eq!(waiter.patience(), LOOKS, "after a long sleep");
        waiter.learn(SHORT_SLEEP / 2);
        assert_eq!(waiter.patience(), MORE_LOOKS);
        for _ in 0..=WARINESS {
            waiter.learn(SHORT_SLEEP / 2);
            assert_eq!(waiter.patience(), LOOKS, "after a look in vain");
        }
        waiter.learn(SHORT_SLEEP / 2);
        assert_eq!(waiter.patience(), MORE_LOOKS);
        waiter.expose();
        for looks in [2 * MORE_LOOKS, 4 * MORE_LOOKS, 8 * MORE_LOOKS, MOST_LOOKS, MOST_LOOKS] {
            waiter.learn(SHORT_SLEEP / 2);
            assert_eq!(waiter.patience(), looks, "a peer may have been served");
        }
        waiter.learn(SHORT_SLEEP);
        assert_eq!(waiter.patience(), LOOKS, "none is there");
    }
}
