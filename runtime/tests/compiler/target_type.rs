//! A datatype that isn't committed is no target type, and the error says which calls make one.

use longshore::{Datatype, Epoch};

fn of_a_datatype(epoch: &Epoch<'_, '_>) {
    let _ = epoch.put(&1.5f64, 1, 0, 1, &Datatype::double());
}

fn main() {}
