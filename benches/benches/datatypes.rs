//! Prints pack and unpack beside hand-written loops: `cargo bench -p longshore-benches --bench datatypes`.

use std::time::Duration;

use longshore_benches::datatypes;

fn main() -> shipable::Result<()> {
    println!("{}", datatypes::heading());
    for row in datatypes::measure(Duration::from_millis(200))? {
        println!("{row}");
    }
    Ok(())
}
