//! Signals are the program's: threads that it doesn't know of take none.
//!
//! The system delivers a signal to any thread that doesn't block it, so a program that blocks one in its own threads, to wait for it
//! there, would end by it if one of ours took it.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// What a thread causes by itself. Blocked, these would end the process past the program's handler.
const CAUSED: [Signal; 6] = [
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGSEGV,
    Signal::SIGSYS,
    Signal::SIGTRAP,
];

/// Starts threads that take no signals, from their first instruction on: they inherit what is blocked meanwhile.
pub fn blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = SigSet::all();
    CAUSED.into_iter().for_each(|signal| all.remove(signal));
    // It fails for no set that can be made.
    let _before = all.thread_swap_mask(SigmaskHow::SIG_BLOCK).map(Restored);
    start()
}

/// What the thread blocked before, which it does again when this is dropped.
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
    fn threads_inherit_what_is_blocked_and_their_maker_does_not_keep_it() {
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
