//! The promises that hints of a communicator make (MPI-5.0 section 7.4.4).

use std::sync::atomic::{AtomicU8, Ordering};

use crate::objects::info::Pairs;

/// The hints that promise something.
pub const KEYS: [&str; 3] =
    ["mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length"];
pub const NO_ANY_TAG: usize = 0;
pub const NO_ANY_SOURCE: usize = 1;
pub const EXACT_LENGTH: usize = 2;

/// The promises of a communicator: a bit for each key.
#[derive(Default)]
pub struct Promises(AtomicU8);

impl Promises {
    /// The promises that these hints make.
    pub fn of(hints: &Pairs) -> Promises {
        let promises = Promises::default();
        promises.renew(hints);
        promises
    }

    /// The communicator has other hints from now on.
    pub fn renew(&self, hints: &Pairs) {
        let given = |key: &str| hints.iter().any(|(known, value)| known == key && value == "true");
        let bits = KEYS.iter().enumerate().map(|(at, key)| u8::from(given(key)) << at);
        self.0.store(bits.sum(), Ordering::Relaxed);
    }

    #[inline]
    pub fn include(&self, key: usize) -> bool {
        self.0.load(Ordering::Relaxed) & 1 << key != 0
    }
}
