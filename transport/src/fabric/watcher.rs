//! A thread that sleeps on the provider's descriptors while its rank sleeps on its doorbell in the
//! segment.
//!
//! When a descriptor becomes readable, the thread rings that bell. The rank therefore needs only
//! one sleep for peers on this host and for peers on other hosts.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::handles::Network;
use super::rma::RmaEndpoint;
use crate::link::{Doorbell, LinkError};
use crate::segment::Segment;
use crate::signals;

/// The watcher's thread. Dropping this ends it.
pub(super) struct Watcher {
    watch: Arc<Watch>,
    /// The descriptor of the events of connections.
    events: Option<RawFd>,
    /// Dropped to end a sleep of the thread for good.
    alarm: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the thread shares with its rank.
pub(super) struct Watch {
    segment: Segment,
    rank: u32,
    orders: Mutex<Orders>,
    /// Notified of new orders for which the thread waits. A channel would yield some times before
    /// it sleeps, and each yield gives the processor to a program that computes for as long as the
    /// system lets it (docs/tuning.md, "Delay of the watcher").
    news: Condvar,
    /// Whether there may be events of connections.
    due: AtomicBool,
    /// The number of times that the rank has polled or sent.
    uses: CachePadded<AtomicU32>,
    /// The number of events of connections that the rank has taken.
    taken: AtomicU32,
}

#[derive(Default)]
struct Orders {
    /// Whether the bell is armed, and the thread hasn't slept on the descriptors since.
    watch: bool,
    /// Whether the rank didn't use its link during the last sleep on the descriptors: only the
    /// thread noticed.
    needed: bool,
    /// Whether sleepers on the bell want to be woken without the delay.
    eager: bool,
    /// Whether an eager sleeper sleeps on the bell: the thread then skips the delay.
    now: bool,
    /// Whether the thread waits for the bell to be armed.
    idle: bool,
    /// Whether the thread waits for the end of its delay.
    delays: bool,
    end: bool,
}

/// How long the thread waits after the bell was armed, before it sleeps on the descriptors. An
/// eager sleep on the bell ends the wait, and each use of the link restarts it.
///
/// A rank that makes one call after another arms its bell at the end of each, for the thread that
/// answers while the rank computes. Waking that thread or the watcher each time costs more than the
/// operation (docs/tuning.md, "Delay of the watcher").
const DELAY: Duration = Duration::from_micros(450);

impl Watcher {
    /// Starts the thread.
    pub(super) fn start(
        network: Arc<Network>,
        rma: Option<Arc<RmaEndpoint>>,
        descriptors: [Option<RawFd>; 3],
        segment: Segment,
        rank: u32,
    ) -> io::Result<Watcher> {
        let watch = Arc::new(Watch {
            segment,
            rank,
            orders: Mutex::default(),
            news: Condvar::new(),
            due: AtomicBool::new(true),
            uses: CachePadded::new(AtomicU32::new(0)),
            taken: AtomicU32::new(0),
        });
        let (alarm, heard) = UnixStream::pair()?;
        let serve = {
            let watch = watch.clone();
            move || {
                let may_wait =
                    || network.may_wait() && rma.as_ref().is_none_or(|rma| rma.may_wait());
                watch.serve(may_wait, descriptors, &heard);
            }
        };
        let builder = Builder::new().name("longshore-fabric".to_owned());
        let thread = signals::blocked(|| builder.spawn(serve))?;
        Ok(Watcher { watch, events: descriptors[0], alarm: Some(alarm), thread: Some(thread) })
    }

    /// Records that the rank polls or sends.
    pub(super) fn used(&self) {
        // There is one writer: the link, which only one thread uses at a time.
        self.watch.uses.store(self.watch.uses.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Whether the descriptor of the events of connections is readable.
    pub(super) fn has_events(&self) -> bool {
        wait([self.events, None, None, None], Some(Duration::ZERO))[0]
    }

    /// Records that the rank has taken an event of a connection.
    pub(super) fn took(&self) {
        self.watch.taken.store(self.watch.taken.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Whether there may be events of connections. Resets the flag.
    pub(super) fn take_due(&self) -> bool {
        self.watch.due.load(Relaxed) && self.watch.due.swap(false, Relaxed)
    }

    /// The rank's doorbell, which the thread rings for peers on other hosts.
    pub(super) fn doorbell(&self) -> Arc<dyn Doorbell> {
        Arc::new(Bell(self.watch.clone()))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watch.orders().end = true;
        self.watch.news.notify_one();
        self.alarm = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders a watch, because the bell is armed. `waits` is whether a thread waits for more than
    /// requests.
    fn keep_watch(&self, waits: bool) {
        let mut orders = self.orders();
        (orders.watch, orders.eager) = (true, waits || orders.needed);
        if std::mem::take(&mut orders.idle) {
            drop(orders);
            self.news.notify_one();
        }
    }

    /// Waits until the bell is armed, or the thread has to end.
    fn await_order(&self) {
        let waits = |orders: &mut Orders| {
            orders.idle = !orders.watch && !orders.end;
            orders.idle
        };
        drop(self.news.wait_while(self.orders(), waits));
    }

    /// Waits for a time, and returns whether an eager sleeper, or the end, has cut it short.
    fn is_hurried_within(&self, delay: Duration) -> bool {
        let waits = |orders: &mut Orders| {
            orders.delays = !orders.now && !orders.end;
            orders.delays
        };
        let waited = self.news.wait_timeout_while(self.orders(), delay, waits);
        let (mut orders, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !std::mem::take(&mut orders.delays)
    }

    /// Runs the thread: it sleeps on the descriptors once for each time that the rank armed its
    /// bell, unless the bell is disarmed meanwhile.
    fn serve(
        &self,
        may_wait: impl Fn() -> bool,
        [events, completions, accesses]: [Option<RawFd>; 3],
        alarm: &UnixStream,
    ) {
        let alarm = Some(alarm.as_raw_fd());
        let mut rest = Rest::default();
        loop {
            self.await_order();
            loop {
                let before = self.uses.load(Relaxed);
                let hurries = self.is_hurried_within(DELAY);
                // If a blocking call has disarmed the bell, there is nothing to watch.
                if hurries || self.uses.load(Relaxed) == before || !self.orders().watch {
                    break;
                }
            }
            let mut orders = self.orders();
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
            let waited = may_wait().then(|| {
                let pause = rest.pause(self.taken.load(Relaxed));
                if !pause.is_zero() {
                    let readable = wait([None, completions, accesses, alarm], Some(pause));
                    if readable.contains(&true) {
                        return readable;
                    }
                }
                let readable = wait([events, completions, accesses, alarm], None);
                rest.woken |= readable[0];
                readable
            });
            self.orders().needed = waited.is_some() && self.uses.load(Relaxed) == before;
            if waited.is_none_or(|readable| readable[0]) {
                self.due.store(true, Relaxed);
            }
            // It can't fail: the rank belongs to its own job.
            let _ = self.segment.ring(self.rank);
        }
    }
}

/// The thread's rest from the events of connections.
///
/// Their descriptor is readable without an event while strangers connect, and all the time while
/// this process has no descriptor for one more connection. So the thread pauses after some wakes
/// that brought no event, longer after each.
#[derive(Default)]
struct Rest {
    /// Whether that descriptor has woken the thread since the last pause was computed.
    woken: bool,
    /// The number of events that had been taken then.
    taken: u32,
    /// The number of wakes in a row that brought no event.
    vain: u32,
}

impl Rest {
    /// Wakes without an event that happen in good order.
    const VAIN: u32 = 16;
    /// Doublings of the first pause, 1 ms.
    const DOUBLINGS: u32 = 4;

    /// How long to ignore the descriptor, if `taken` events have been taken by now.
    fn pause(&mut self, taken: u32) -> Duration {
        if taken != self.taken {
            self.vain = 0;
        } else if self.woken {
            self.vain += 1;
        }
        (self.taken, self.woken) = (taken, false);
        match self.vain.checked_sub(Rest::VAIN) {
            None => Duration::ZERO,
            Some(more) => Duration::from_millis(1 << more.min(Rest::DOUBLINGS)),
        }
    }
}

/// Sleeps until a descriptor is readable, or at most for a time. Returns which descriptors are.
fn wait(descriptors: [Option<RawFd>; 4], at_most: Option<Duration>) -> [bool; 4] {
    // Limited to some milliseconds, if at all.
    let timeout = at_most.map_or(-1, |time| time.as_millis() as libc::c_int);
    // The system ignores a negative descriptor.
    let entry =
        |fd: Option<RawFd>| libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let mut polled = descriptors.map(entry);
    // SAFETY: the array has as many entries as the call is given.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    polled.map(|entry| entry.revents != 0)
}

/// The rank's bell in the segment, which the watcher's thread also rings.
struct Bell(Arc<Watch>);

impl Doorbell for Bell {
    fn arm(&self) {
        self.0.segment.arm(self.0.rank);
        self.0.keep_watch(true);
    }

    fn arm_for_requests(&self) -> bool {
        self.0.segment.arm_for_requests(self.0.rank);
        self.0.keep_watch(false);
        // Answers from other hosts ring as well, but not while the rank polls.
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
            if orders.delays {
                self.0.news.notify_one();
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_without_events_are_followed_by_ever_longer_pauses() {
        let mut rest = Rest::default();
        let mut pauses = |taken, wakes: u32| {
            let mut pause = |_| {
                rest.woken = true;
                rest.pause(taken).as_millis()
            };
            (0..wakes).map(&mut pause).collect::<Vec<_>>()
        };
        assert_eq!(pauses(0, 25)[14..], [0, 1, 2, 4, 8, 16, 16, 16, 16, 16, 16]);
        assert_eq!(pauses(1, 1), [0]);
    }
}
