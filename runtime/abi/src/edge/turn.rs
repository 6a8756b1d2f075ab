//! [`Turn`]: whose turn it is to use an object, where several threads may call.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::edge::state;

/// Gives an object to one thread at a time. Without MPI_THREAD_MULTIPLE it costs one load.
#[derive(Default)]
pub struct Turn(AtomicBool);

/// A turn that ends when it is dropped.
pub struct Taken<'a>(Option<&'a AtomicBool>);

impl Turn {
    /// Waits for a turn.
    #[inline]
    pub fn take(&self) -> Taken<'_> {
        match state::is_threaded() {
            false => Taken(None),
            true => self.wait(),
        }
    }

    fn wait(&self) -> Taken<'_> {
        let mut tries = 0u32;
        while self.0.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries % 64 == 0 { thread::yield_now() } else { hint::spin_loop() }
        }
        Taken(Some(&self.0))
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(taken) = self.0 {
            taken.store(false, Ordering::Release);
        }
    }
}
