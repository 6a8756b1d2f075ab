//! Operations are methods of an epoch, and the compiler says so where they are called on a window.

use longshore::{Type, Window};

fn puts(window: &mut Window, double: &Type) {
    let _ = window.put(&1.5f64, 1, 0, 1, double);
}

fn flushes(window: &mut Window) {
    let _ = window.flush(1, |epoch| epoch);
}

fn main() {}
