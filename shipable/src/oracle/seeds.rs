//! Independent random cases, which several threads try.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// The number of random cases that a test tries: `LONGSHORE_TEST_CASES`, or the test's default.
/// Slow machines, such as emulated ones, set the variable low.
pub fn cases(default: u64) -> u64 {
    std::env::var("LONGSHORE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Tries as many [`cases`], on as many threads as there are cores. Returns the results in the order
/// of the seeds, which count from 0.
///
/// A case draws its random numbers from its seed, so it is the same on any thread and in any order.
///
/// # Panics
///
/// If a case panics. The message names the lowest such seed that was tried.
pub fn each_seed<R: Send>(default: u64, case: impl Fn(u64) -> R + Sync) -> Vec<R> {
    // A pool for each call: its threads print where the calling thread does, as a test expects.
    let pool = rayon::ThreadPoolBuilder::new().build().expect("threads for random cases");
    let tried = |seed| {
        let tried = catch_unwind(AssertUnwindSafe(|| case(seed)));
        tried.map_err(|panic| (seed, message(&*panic).to_owned()))
    };
    let results: Vec<_> = pool.install(|| (0..cases(default)).into_par_iter().map(tried).collect());
    let results: Result<Vec<R>, _> = results.into_iter().collect();
    results.unwrap_or_else(|(seed, message)| panic!("seed {seed}: {message}"))
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_their_seeds() {
        let expected: Vec<_> = (0..cases(500)).map(|seed| seed * seed).collect();
        assert_eq!(each_seed(500, |seed| seed * seed), expected);
    }

    #[test]
    fn a_failure_names_its_lowest_seed() {
        let tried = |seed| assert!(seed % 40 != 7, "a value of {}", seed + 1);
        let failed = catch_unwind(|| each_seed(50, tried)).unwrap_err();
        assert_eq!(message(&*failed), "seed 7: a value of 8");
    }
}
