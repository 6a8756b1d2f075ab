//! Futexes on words in shared memory, between processes of different word size and byte order.

use std::time::Duration;

#[cfg(not(loom))]
use rustix::thread::futex::{self, Timespec};

use crate::atomics::Le32;

/// The longest sleep: a sleeper checks the job's state again after it.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Not private: sleepers are in other processes.
#[cfg(not(loom))]
const SHARED: futex::Flags = futex::Flags::empty();

/// Sleeps while `word` holds `value`, until woken, for at most `at_most` and [`LONGEST_SLEEP`]. May
/// return early.
#[cfg(not(loom))]
pub(crate) fn wait(word: &Le32, value: u32, at_most: Duration) {
    let nanoseconds = at_most.min(LONGEST_SLEEP).subsec_nanos();
    let timeout = Timespec { tv_sec: 0, tv_nsec: nanoseconds.into() };
    // The kernel compares the value with the bytes in memory, so it is passed in little-endian
    // order. Every error is an early return.
    let _ = futex::wait(word.as_futex(), SHARED, value.to_le(), Some(&timeout));
}

/// Wakes all threads that sleep on `word`.
#[inline]
#[cfg(not(loom))]
pub(crate) fn wake_all(word: &Le32) {
    // It can't fail: the word is aligned and mapped.
    let _ = futex::wake(word.as_futex(), SHARED, i32::MAX as u32);
}

#[cfg(loom)]
loom::lazy_static! {
    static ref ASLEEP: (loom::sync::Mutex<()>, loom::sync::Condvar) = Default::default();
}

/// Under loom only a wake-up ends a sleep, so that loom finds a lost one as a deadlock.
#[cfg(loom)]
pub(crate) fn wait(word: &Le32, value: u32, _at_most: Duration) {
    let asleep = ASLEEP.0.lock().unwrap();
    if word.load(crate::atomics::Relaxed) == value {
        drop(ASLEEP.1.wait(asleep).unwrap());
    }
}

#[inline]
#[cfg(loom)]
pub(crate) fn wake_all(_word: &Le32) {
    let _asleep = ASLEEP.0.lock().unwrap();
    ASLEEP.1.notify_all();
}
