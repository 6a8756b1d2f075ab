//! The command `longshore`.
fn main() {}
