//! A thread that sleeps on the provider's descriptors while its rank sleeps on its doorbell in the segment, and rings it: so
//! that one sleep ends for peers of this host and of others alike.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::handles::Network;
use super::memory::Memory;
use crate::link::{Doorbell, LinkError};
use crate::segment::Segment;
use crate::signals;

/// The thread, which ends when this is dropped.
pub(super) struct Watcher {
    watch: Arc<Watch>,
    /// Dropped to end a sleep for good.
    alarm: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with its rank.
pub(super) struct Watch {
    segment: Segment,
    rank: u32,
    orders: Mutex<Orders>,
    given: Condvar,
    /// Events of connections may be there.
    due: AtomicBool,
    /// How often the rank has looked or sent.
    uses: AtomicU32,
}

#[derive(Default)]
struct Orders {
    /// The bell is armed, and no sleep on the descriptors has followed yet.
    watch: bool,
    /// The last sleep on the descriptors ended while the rank used its link in no way: nobody else would have looked.
    needed: bool,
    /// Whoever sleeps on the bell is to hear at once of what comes.
    eager: bool,
    /// And sleeps: without a delay.
    now: bool,
    /// The thread waits for such orders, or for the end of the delay.
    idle: bool,
    end: bool,
}

/// How long a bell is armed, without an eager sleep on it or a use of the link by the rank, before the thread keeps watch. A rank
/// that goes from call to call arms its bell at the end of each, for the thread that answers while it computes; to wake the watcher
/// each time, or that thread when the next answer comes, costs more than the operation. (2 virtual cores, Zen 5: `longshore bench
/// put_latency --hosts --size 8`.)
const DELAY: Duration = Duration::from_micros(450);

impl Watcher {
    /// Starts the thread.
    pub(super) fn start(
        network: Arc<Network>,
        memory: Option<Arc<Memory>>,
        descriptors: [Option<RawFd>; 3],
        segment: Segment,
        rank: u32,
    ) -> io::Result<Watcher> {
        let watch = Arc::new(Watch {
            segment,
            rank,
            orders: Mutex::default(),
            given: Condvar::new(),
            due: AtomicBool::new(true),
            uses: AtomicU32::new(0),
        });
        let (alarm, heard) = UnixStream::pair()?;
        let serve = {
            let watch = watch.clone();
            move || {
                let may_wait =
                    || network.may_wait() && memory.as_ref().is_none_or(|memory| memory.may_wait());
                watch.serve(may_wait, descriptors, &heard);
            }
        };
        let builder = Builder::new().name("longshore-fabric".to_owned());
        let thread = signals::blocked(|| builder.spawn(serve))?;
        Ok(Watcher { watch, alarm: Some(alarm), thread: Some(thread) })
    }

    /// The rank looks or sends by itself.
    pub(super) fn used(&self) {
        // One writer: the link, which one thread has at a time.
        self.watch.uses.store(self.watch.uses.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Whether events of connections may be there; from here on they aren't, as far as is known.
    pub(super) fn take_due(&self) -> bool {
        self.watch.due.load(Relaxed) && self.watch.due.swap(false, Relaxed)
    }

    /// The rank's doorbell, which peers on other hosts ring too.
    pub(super) fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(Bell(self.watch.clone()))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watch.orders().end = true;
        self.watch.given.notify_all();
        self.alarm = None;
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bell is armed, by one who waits for something or not.
    fn keep_watch(&self, waits: bool) {
        let mut orders = self.orders();
        (orders.watch, orders.eager) = (true, waits || orders.needed);
        if std::mem::take(&mut orders.idle) {
            self.given.notify_one();
        }
    }

    /// One sleep on the descriptors for each time that the rank armed its bell, unless it is disarmed meanwhile.
    fn serve(
        &self,
        may_wait: impl Fn() -> bool,
        [events, completions, accesses]: [Option<RawFd>; 3],
        alarm: &UnixStream,
    ) {
        let descriptors = [events, completions, accesses, Some(alarm.as_raw_fd())];
        loop {
            let mut orders = self.orders();
            while !orders.watch && !orders.end {
                orders.idle = true;
                orders = self.given.wait(orders).unwrap_or_else(PoisonError::into_inner);
            }
            orders.idle = false;
            let early = |orders: &mut Orders| !orders.now && !orders.end;
            while early(&mut orders) {
                let before = self.uses.load(Relaxed);
                let waited = self.given.wait_timeout_while(orders, DELAY, early);
                orders = waited.unwrap_or_else(PoisonError::into_inner).0;
                // Disarmed, by a call that waits: for its length there is nothing to watch.
                if self.uses.load(Relaxed) == before || !orders.watch {
                    break;
                }
            }
            if orders.end {
                return;
            }
            let watch = std::mem::take(&mut orders.watch);
            orders.now = false;
            drop(orders);
            if !watch {
                continue;
            }
            let before = self.uses.load(Relaxed);
            let waited = may_wait().then(|| wait(descriptors));
            self.orders().needed = waited.is_some() && self.uses.load(Relaxed) == before;
            if waited.is_none_or(|readable| readable[0]) {
                self.due.store(true, Relaxed);
            }
            // It is a rank of its own job.
            let _ = self.segment.ring(self.rank);
        }
    }
}

/// Sleeps until one of the descriptors is readable; which are.
fn wait(descriptors: [Option<RawFd>; 4]) -> [bool; 4] {
    // One below 0 is passed over.
    let entry =
        |fd: Option<RawFd>| libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let mut polled = descriptors.map(entry);
    // SAFETY: an array of so many entries.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
    polled.map(|entry| entry.revents != 0)
}

/// The bell in the segment, for which the thread keeps watch.
struct Bell(Arc<Watch>);

impl Doorbell for Bell {
    fn arm(&self) {
        self.0.segment.arm(self.0.rank);
        self.0.keep_watch(true);
    }

    fn arm_for_requests(&self) -> bool {
        self.0.segment.arm_for_requests(self.0.rank);
        self.0.keep_watch(false);
        // Those of other hosts ring as well, but not while the rank looks.
        true
    }

    fn disarm(&self) {
        self.0.segment.disarm(self.0.rank);
        let mut orders = self.0.orders();
        (orders.watch, orders.now) = (false, false);
    }

    fn sleep(&self, at_most: Duration) {
        let mut orders = self.0.orders();
        if orders.watch && orders.eager && !orders.now {
            orders.now = true;
            self.0.given.notify_one();
        }
        drop(orders);
        self.0.segment.sleep(self.0.rank, at_most);
    }

    fn pause(&self) {
        std::thread::yield_now();
    }

    fn ring(&self, peer: u32) -> Result<(), LinkError> {
        Ok(self.0.segment.ring(peer)?)
    }
}
