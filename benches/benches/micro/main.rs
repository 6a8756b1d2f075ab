//! Micro-benches of the parts of a transfer, for work on one part. `longshore bench` measures whole
//! transfers. It lets contenders take turns, so it shows smaller differences.
//!
//!     cargo bench -p longshore-benches --bench micro                  # all; -- FILTER for some
//!     cargo bench -p longshore-benches --bench micro -- --test        # each once, to see that it works

mod forms;
mod kernels;
mod programs;
mod rings;

fn main() {
    longshore_benches::pin(0);
    divan::main();
}
