//! What a rank's threads have dropped and its engine still holds: any thread hands it over without
//! the engine's lock.

use std::sync::atomic::Ordering;

use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use portable_atomic::AtomicU64;

/// An object of the engine whose owner is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The form of a type, by its id.
    Form(u64),
    /// A send, by its number: no call asks for its end.
    Send(u64),
    /// A receive, by its number: no message may match it any more.
    Receive(u64),
    /// A message that a probe has claimed, by its number: it is discarded.
    Claimed(u64),
}

/// The queue of what is dropped. The engine looks at its count on each progress, and empties it
/// before it takes in a frame.
#[derive(Default)]
pub(crate) struct DroppedQueue {
    queue: SegQueue<Dropped>,
    /// The number of objects handed over so far. One load of it is cheaper than a look at both ends
    /// of the queue.
    count: CachePadded<AtomicU64>,
}

impl DroppedQueue {
    pub(crate) fn push(&self, dropped: Dropped) {
        self.queue.push(dropped);
        // Pairs with the acquire in `count`: the engine that reads the new count finds the object.
        self.count.fetch_add(1, Ordering::Release);
    }

    /// The number of objects handed over so far.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn pop(&self) -> Option<Dropped> {
        self.queue.pop()
    }
}
