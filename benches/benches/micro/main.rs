//! Micro-benches of what a transfer is made of, with divan: for looking at one thing while it is worked on. What users see is
//! measured by `longshore bench`, which lets contenders take turns and so says more of small differences.
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
