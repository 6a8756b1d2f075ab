//! Futexes on words in shared memory, between processes of different word size and byte order.
#![allow(unsafe_code)]

use std::time::Duration;

use crate::atomics::Le32;

/// The longest sleep: a sleeper checks the job's state again after it.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Sleeps while `word` holds `value`, until woken, for at most `at_most` and [`LONGEST_SLEEP`]. May
/// return early.
#[cfg(not(loom))]
pub(crate) fn wait(word: &Le32, value: u32, at_most: Duration) {
    let at_most = at_most.min(LONGEST_SLEEP);
    // SAFETY: timespec is plain data, and all zeros is a value of it. Some targets have padding
    // fields that can't be named.
    let mut timeout: libc::timespec = unsafe { std::mem::zeroed() };
    timeout.tv_nsec = at_most.subsec_nanos() as _; // At most 100 ms, so there are no whole seconds.
    // The kernel compares the value with the bytes in memory, so it is passed in little-endian
    // order. Not FUTEX_PRIVATE: sleepers are in other processes. SAFETY: the word outlives the
    // call; the kernel only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_futex().as_ptr(),
            libc::FUTEX_WAIT,
            value.to_le(),
            &raw const timeout,
        );
    }
}

/// Wakes all threads that sleep on `word`.
#[cfg(not(loom))]
pub(crate) fn wake_all(word: &Le32) {
    // SAFETY: the kernel only uses the word's address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_futex().as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
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

#[cfg(loom)]
pub(crate) fn wake_all(_word: &Le32) {
    let _asleep = ASLEEP.0.lock().unwrap();
    ASLEEP.1.notify_all();
}
