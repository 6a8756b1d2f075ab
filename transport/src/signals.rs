//! Keeps signals on the program's own threads: the threads that Longshore starts take none.
//!
//! The system delivers a signal to any thread that doesn't block it. A program may block a signal
//! in all its threads, to wait for it there; a thread of ours that took the signal would end the
//! program.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Signals that a thread causes itself. If they were blocked, they would end the process without
/// calling the program's handler.
const CAUSED: [Signal; 6] = [
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGSEGV,
    Signal::SIGSYS,
    Signal::SIGTRAP,
];

/// Runs `start`, whose threads take no signals from their first instruction on: they inherit the
/// signals that are blocked meanwhile.
pub fn blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = SigSet::all();
    CAUSED.into_iter().for_each(|signal| all.remove(signal));
    // It fails only for an invalid set.
    let _before = all.thread_swap_mask(SigmaskHow::SIG_BLOCK).map(Restored);
    start()
}

/// The thread's former signal mask, restored on drop.
struct Restored(SigSet);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = self.0.thread_set_mask();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_threads_inherit_the_blocked_signals_and_their_maker_does_not_keep_them() {
        let before = SigSet::thread_get_mask().unwrap();
        let thread = blocked(|| std::thread::spawn(|| SigSet::thread_get_mask().unwrap()));
        let inherited = thread.join().unwrap();
        for signal in Signal::iterator() {
            let stops = matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
            let expected = !stops && !CAUSED.contains(&signal);
            assert_eq!(inherited.contains(signal), expected, "{signal}");
        }
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
        std::panic::catch_unwind(|| blocked(|| panic!("as expected"))).unwrap_err();
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
