//! How a rank waits: a short spin, then sleep on the doorbell.

use std::sync::Arc;
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
    doorbell: Arc<dyn Doorbell>,
    spins: u32,
}

impl Waiter {
    /// Spins only if `ranks` of this host fit its cores.
    pub(crate) fn new(doorbell: Arc<dyn Doorbell>, ranks: u32) -> Waiter {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let spins = if ranks as usize <= cores { SPINS } else { 0 };
        Waiter { doorbell, spins }
    }

    /// One that never spins.
    pub(crate) fn sleeping(doorbell: Arc<dyn Doorbell>) -> Waiter {
        Waiter { doorbell, spins: 0 }
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

    /// Sleeps until something happens, unless `look` finds that something has. `look` runs with the bell armed, so what
    /// happens after it ends the sleep.
    pub(crate) fn sleep<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        self.doorbell.arm();
        let found = look();
        if found.is_none() {
            self.doorbell.sleep(NAP);
        }
        self.doorbell.disarm();
        found
    }
}
