//! How a rank waits: it polls for a while, then sleeps on its doorbell. If the sleep turns out
//! short, the next wait polls longer.
//!
//! If ranks outnumber processors, polls delay the peers that need this processor. A rank then
//! polls once, and lets other threads run a few times before it sleeps. The peer that it waits for
//! often runs in this time, and then neither of them makes a system call for a sleep or a wake.
//!
//! One thread of a rank sleeps on the bell. Other threads that wait at the same time sleep on a
//! condition variable. They wake when the first thread wakes, or when a thread that made progress
//! nudges them, so none misses an event that another thread consumed.
//!
//! The [progress thread](crate::process) sleeps on the bell too, but arms it only while no call
//! waits: a waiting call makes progress itself. Such a call therefore finds the bell disarmed, so
//! peers don't ring for it, and arms it again when it ends. Most answers arrive within a few polls.
//! For this time, a call that waits for an answer doesn't touch the bell, because answers don't
//! ring for the progress thread.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use longshore_transport::Doorbell;

/// Checks of a word in shared memory before a call polls the engine. They apply only if every rank
/// can have a core of its own. A peer that is about to answer does so within this time.
const SPINS: u32 = 200;

/// Polls before a sleep. They take about as long as a sleep with its wake. With many more, ranks
/// that share a core delay the peer for which they wait (docs/tuning.md, "Polls before a sleep").
const POLLS: u32 = 100;

/// Polls before a sleep if the last sleep was short. They last long enough for a peer to move a few
/// MiB, and save it the time to wake this rank (docs/tuning.md, "Polls before a sleep").
const MORE_POLLS: u32 = 16 * POLLS;

/// The most polls before a sleep, used while peers access this rank's memory. Every sleep that ends
/// with an access doubles the polls, since each sleep delays a peer
/// (docs/tuning.md, "Polls before a sleep").
const MAX_POLLS: u32 = 16 * MORE_POLLS;

/// The most yields of a wait before its sleep, if ranks outnumber processors
/// (docs/tuning.md, "Polls before a sleep").
const YIELDS: u32 = 20;

/// The number of sleeps in a row, each after yields in vain, that halve the yields of the next
/// waits.
const VAIN: u32 = 4;

/// A sleep shorter than this could have been avoided by more polls.
const SHORT_SLEEP: Duration = Duration::from_micros(150);

/// The number of sleeps before more polls are tried again, after they were in vain. The peer may
/// need this very core.
const WARINESS: u32 = 32;

/// Polls of a waiting call before it takes over from the progress thread. Most answers from ranks
/// of this host arrive within them (docs/tuning.md, "Waits beside the progress thread").
const LOCAL_POLLS: u32 = 32;

/// The number of these polls if all peers are on other hosts, from which answers take longer
/// (docs/tuning.md, "Waits beside the progress thread").
const REMOTE_POLLS: u32 = 128;

/// The number of following waits that disarm the bell at once, after a peer sent a waiting rank
/// anything but an answer.
const COURTESY: u32 = 64;

/// The longest sleep. After it, the rank checks the state of the job.
pub(crate) const NAP: Duration = Duration::from_millis(100);

/// The waiting strategy of a rank. Under simulation, the doorbell and an empty link pass the turn
/// to another rank.
pub(crate) struct Waiter {
    rank: u32,
    doorbell: Arc<dyn Doorbell>,
    spins: u32,
    /// The polls before the next sleep.
    polls: AtomicU32,
    /// The number of sleeps before more polls may be tried.
    wary: AtomicU32,
    yields: Yields,
    /// Whether a progress thread runs.
    served: AtomicBool,
    /// Whether the bell, as armed for the progress thread, doesn't ring for answers.
    quiet: AtomicBool,
    /// The number of following waits that disarm the bell at once.
    courtesy: AtomicU32,
    /// Whether other ranks ring the bell: those of this host do.
    is_rung: bool,
    /// Whether peers access this rank's memory. The network serves them during polls, and reports
    /// nothing.
    silent: AtomicBool,
    threads: Mutex<Threads>,
    /// Notified when the thread on the bell has woken, or another thread has made progress.
    woken: Condvar,
    /// Notified when no call waits any more.
    left: Condvar,
    /// The number of threads that sleep or are about to.
    sleepers: CachePadded<AtomicU32>,
}

/// How often a waiting rank lets other threads run before it sleeps.
struct Yields {
    /// The yields before the next sleep.
    next: AtomicU32,
    most: u32,
    /// The number of sleeps in a row that the yields before them didn't avoid.
    vain: AtomicU32,
}

impl Yields {
    fn new(most: u32) -> Yields {
        Yields { next: AtomicU32::new(most), most, vain: AtomicU32::new(0) }
    }

    fn next(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }

    fn halve(&self) {
        self.next.store(self.next() / 2, Ordering::Relaxed);
    }

    /// A yield has ended a wait.
    fn succeed(&self) {
        self.vain.store(0, Ordering::Relaxed);
    }

    /// Adapts the yields before the next sleep to the length of the last one. A wary rank doesn't
    /// try more of them.
    fn learn(&self, slept: Duration, wary: bool) {
        let (next, vain) = match self.vain.load(Ordering::Relaxed) + 1 {
            _ if slept < SHORT_SLEEP && wary => (self.next(), 0),
            _ if slept < SHORT_SLEEP => ((2 * self.next()).max(1).min(self.most), 0),
            VAIN => (self.next() / 2, 0),
            vain => (self.next(), vain),
        };
        self.vain.store(vain, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
    }
}

/// The waiting threads of a rank.
#[derive(Default)]
struct Threads {
    /// The number of calls that wait.
    waiting: u32,
    /// Whether the progress thread has stepped aside for them.
    aside: bool,
    /// Whether one of them sleeps on the bell.
    on_bell: bool,
    /// Changes whenever the other sleepers must poll again.
    turn: u64,
}

/// The number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get())
}

impl Waiter {
    /// Spins only if the `ranks` of this host are no more than the `processors` that they may use.
    /// Otherwise it yields.
    pub(crate) fn new(
        rank: u32,
        doorbell: Arc<dyn Doorbell>,
        ranks: u32,
        processors: usize,
    ) -> Waiter {
        let (spins, polls, yields) =
            if ranks as usize <= processors { (SPINS, POLLS, 0) } else { (0, 0, YIELDS) };
        let (polls, yields) = (AtomicU32::new(polls), Yields::new(yields));
        Waiter { spins, polls, yields, is_rung: ranks > 1, ..Self::sleeping(rank, doorbell) }
    }

    /// A waiter that neither spins nor yields.
    pub(crate) fn sleeping(rank: u32, doorbell: Arc<dyn Doorbell>) -> Waiter {
        Waiter {
            rank,
            doorbell,
            spins: 0,
            polls: AtomicU32::new(0),
            wary: AtomicU32::new(0),
            yields: Yields::new(0),
            served: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            courtesy: AtomicU32::new(0),
            is_rung: true,
            silent: AtomicBool::new(false),
            threads: Mutex::default(),
            woken: Condvar::new(),
            left: Condvar::new(),
            sleepers: CachePadded::new(AtomicU32::new(0)),
        }
    }

    /// Records that a progress thread runs.
    pub(crate) fn serve(&self) {
        self.served.store(true, Ordering::Relaxed);
    }

    /// Records that peers may access this rank's memory.
    pub(crate) fn expose(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// The number of checks for a peer that is about to answer.
    #[inline]
    pub(crate) fn spins(&self) -> u32 {
        self.spins
    }

    /// The number of polls before the next sleep.
    #[inline]
    pub(crate) fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    /// Adapts the polls and yields before the next sleep to the length of the last one.
    fn learn(&self, slept: Duration) {
        let wary = self.wary.load(Ordering::Relaxed);
        self.yields.learn(slept, wary > 0);
        // Polls serve peers that access memory without a trace. A sleep that soon ended with an
        // access suggests that they were useful.
        let accessed = self.silent.load(Ordering::Relaxed) && slept < SHORT_SLEEP;
        if self.polls() > POLLS {
            if accessed {
                self.polls.store((2 * self.polls()).min(MAX_POLLS), Ordering::Relaxed);
                return;
            }
            self.polls.store(POLLS, Ordering::Relaxed);
            self.wary.store(WARINESS, Ordering::Relaxed);
        } else if wary > 0 {
            self.wary.store(wary - 1, Ordering::Relaxed);
        } else if self.spins > 0 && slept < SHORT_SLEEP {
            self.polls.store(MORE_POLLS, Ordering::Relaxed);
        }
    }

    /// Lets other threads run before a sleep, until `look` returns true or the yields are used up.
    /// Returns whether `look` returned true.
    pub(crate) fn yield_until(&self, mut look: impl FnMut() -> bool) -> bool {
        let yields = self.yields.next();
        if yields == 0 {
            return false;
        }
        let began = Instant::now();
        let found = (0..yields).any(|_| {
            std::thread::yield_now();
            look()
        });
        self.learn_of_yields(found, began.elapsed());
        found
    }

    /// Adapts the yields to the time that the last ones took.
    fn learn_of_yields(&self, found: bool, took: Duration) {
        if took >= SHORT_SLEEP {
            // Threads that don't wait for this rank used the processor. A sleeping rank would have
            // got it back at once when it was rung.
            self.yields.halve();
            self.wary.store(WARINESS, Ordering::Relaxed);
        } else if found {
            self.yields.succeed();
        }
    }

    /// One iteration of a loop that doesn't sleep.
    pub(crate) fn pause(&self) {
        self.doorbell.pause();
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of polls of a call before it [enters](Waiter::enter) the wait and the progress
    /// thread steps aside. Answers don't ring, and disarming and arming the bell moves two cache
    /// lines between peers and this rank.
    #[inline]
    pub(crate) fn early_polls(&self) -> u32 {
        if !self.quiet.load(Ordering::Relaxed) || self.spins == 0 {
            return 0;
        }
        let courtesy = self.courtesy.load(Ordering::Relaxed);
        if courtesy > 0 {
            self.courtesy.store(courtesy - 1, Ordering::Relaxed);
        }
        match (courtesy, self.is_rung) {
            (0, true) => LOCAL_POLLS,
            (0, false) => REMOTE_POLLS,
            _ => 0,
        }
    }

    /// Records that a frame other than an answer arrived while this rank waited. For some waits,
    /// peers then needn't ring.
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

    /// Begins a wait, during which the call makes progress itself. Returns true if there is a
    /// progress thread.
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

    /// Ends a wait for which the progress thread stepped aside. If it returns true, the bell is
    /// armed for that thread. Earlier frames don't ring then, so the caller polls once more, and
    /// [rings](Waiter::ring) if it finds any.
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

    /// Wakes the thread of this rank that sleeps on its bell.
    pub(crate) fn ring(&self) {
        // Ringing can't fail: this rank belongs to its own job.
        let _ = self.doorbell.ring(self.rank);
    }

    /// Sleeps until the bell rings, unless `poll` finds something. `poll` runs after the bell is
    /// armed, so any later event ends the sleep. So does the end of `nap`.
    pub(crate) fn sleep<T>(&self, nap: Duration, poll: impl FnOnce() -> Option<T>) -> Option<T> {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut threads = self.threads();
        let found = if threads.on_bell {
            let turn = threads.turn;
            drop(threads);
            let found = poll();
            if found.is_none() {
                let same = |threads: &mut Threads| threads.turn == turn;
                let threads = self.threads();
                drop(self.woken.wait_timeout_while(threads, nap, same));
            }
            found
        } else {
            threads.on_bell = true;
            // Armed before other threads rely on it: changes of shared memory only ring the bell.
            self.doorbell.arm();
            drop(threads);
            let found = poll();
            if found.is_none() {
                let asleep = Instant::now();
                self.doorbell.sleep(nap);
                let slept = asleep.elapsed();
                self.learn(slept);
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

    /// Wakes the other sleepers after this thread has made progress, which may complete their
    /// calls. `own` is the number of this thread's own sleeps. The caller held the engine's lock
    /// for its progress, and sleepers hold it for their last poll, so one of them sees the other.
    #[inline]
    pub(crate) fn nudge(&self, own: u32) {
        if self.sleepers.load(Ordering::SeqCst) > own {
            self.threads().turn += 1;
            self.woken.notify_all();
            self.ring();
        }
    }

    /// The sleep of the progress thread. It first waits while calls make progress, then sleeps on
    /// the bell, unless `poll` finds something.
    pub(crate) fn doze<T>(&self, poll: impl FnOnce() -> Option<T>) -> Option<T> {
        let mut threads = self.threads();
        while threads.waiting > 0 {
            threads.aside = true;
            let waited = self.left.wait_timeout(threads, NAP);
            threads = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        threads.aside = false;
        self.arm_for_requests();
        drop(threads);
        let found = poll();
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

    /// A doorbell that never rings.
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
    fn sleeps_after_yields_in_vain_halve_the_yields_and_a_short_one_doubles_them() {
        let yields = |waiter: &Waiter| waiter.yields.next();
        let waiter = Waiter::new(0, Arc::new(Still), 3, 2);
        assert_eq!((waiter.spins(), waiter.polls(), yields(&waiter)), (0, 0, YIELDS));
        let long = || (0..VAIN).for_each(|_| waiter.learn(SHORT_SLEEP));
        for halved in [YIELDS / 2, YIELDS / 4, YIELDS / 8, 1, 0, 0] {
            long();
            assert_eq!(yields(&waiter), halved);
        }
        (0..8).for_each(|_| waiter.learn(SHORT_SLEEP / 2));
        assert_eq!(yields(&waiter), YIELDS);
        // A wait that a yield ended interrupts the row.
        (1..VAIN).for_each(|_| waiter.learn(SHORT_SLEEP));
        waiter.learn_of_yields(true, Duration::ZERO);
        (1..VAIN).for_each(|_| waiter.learn(SHORT_SLEEP));
        assert_eq!(yields(&waiter), YIELDS);
        // Other threads used the processor meanwhile, so the next short sleeps change nothing.
        waiter.learn_of_yields(true, SHORT_SLEEP);
        for _ in 0..WARINESS {
            assert_eq!(yields(&waiter), YIELDS / 2);
            waiter.learn(SHORT_SLEEP / 2);
        }
        waiter.learn(SHORT_SLEEP / 2);
        assert_eq!(yields(&waiter), YIELDS);
        let spinning = Waiter::new(0, Arc::new(Still), 2, 2);
        spinning.learn(Duration::ZERO);
        assert_eq!(yields(&spinning), 0, "where every rank has a core");
        assert!(!spinning.yield_until(|| true));
    }

    #[test]
    fn a_short_sleep_lengthens_the_next_polling_unless_it_was_in_vain() {
        let mut waiter = Waiter::sleeping(0, Arc::new(Still));
        waiter.learn(Duration::ZERO);
        assert_eq!(waiter.polls(), 0, "where ranks share cores");
        (waiter.spins, waiter.polls) = (SPINS, AtomicU32::new(POLLS));
        waiter.learn(SHORT_SLEEP);
        assert_eq!(waiter.polls(), POLLS, "after a long sleep");
        waiter.learn(SHORT_SLEEP / 2);
        assert_eq!(waiter.polls(), MORE_POLLS);
        for _ in 0..=WARINESS {
            waiter.learn(SHORT_SLEEP / 2);
            assert_eq!(waiter.polls(), POLLS, "after polls in vain");
        }
        waiter.learn(SHORT_SLEEP / 2);
        assert_eq!(waiter.polls(), MORE_POLLS);
        waiter.expose();
        for polls in [2 * MORE_POLLS, 4 * MORE_POLLS, 8 * MORE_POLLS, MAX_POLLS, MAX_POLLS] {
            waiter.learn(SHORT_SLEEP / 2);
            assert_eq!(waiter.polls(), polls, "a peer may have accessed memory");
        }
        waiter.learn(SHORT_SLEEP);
        assert_eq!(waiter.polls(), POLLS, "no peer accesses memory");
    }
}
