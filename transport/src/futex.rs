//! Sleeping on a word in shared memory, between processes of different word size and byte order.
#![allow(unsafe_code)]

use std::time::Duration;

use crate::atomics::Le32;

/// No sleep lasts longer: whoever sleeps looks at the job's state again.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Sleeps while `word` holds `value`, until woken, at most for `at_most` (and [`LONGEST_SLEEP`]). May return early.
#[cfg(not(loom))]
pub(crate) fn wait(word: &Le32, value: u32, at_most: Duration) {
    let at_most = at_most.min(LONGEST_SLEEP);
    // SAFETY: timespec is plain data; all zeros is a value of it (some targets have padding fields that can't be named).
    let mut timeout: libc::timespec = unsafe { std::mem::zeroed() };
    timeout.tv_nsec = at_most.subsec_nanos() as _; // at most 100 ms: there are no whole seconds
    // The kernel compares what lies in memory, so the value goes in as it lies there.
    // SAFETY: the word outlives the call; the kernel only reads it. Not FUTEX_PRIVATE: sleepers are in other processes.
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

/// Wakes everyone who sleeps on `word`.
#[cfg(not(loom))]
pub(crate) fn wake_all(word: &Le32) {
    // SAFETY: the kernel uses the word's address only.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_futex().as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}

#[cfg(loom)]
loom::lazy_static! {
    static ref ASLEEP: (loom::sync::Mutex<()>, loom::sync::Condvar) = Default::default();
}

/// Under loom a sleep has no end but a wake-up, so that a lost one is found as a deadlock.
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
