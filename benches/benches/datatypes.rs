//! Pack, unpack and commit beside hand-written loops and the machine's limit:
//! `cargo bench -p longshore-benches --bench datatypes`. With `LONGSHORE_PEERS` (see `ci/peers`) MPICH and Open MPI take
//! their turns among them.

use std::error::Error;

use longshore_benches::{datatypes, rma, worker as peers};

fn main() -> Result<(), Box<dyn Error>> {
    let quick = std::env::args().any(|word| word == "--quick");
    let peers = peers::find("datatypes.c")?;
    rma::pin(0);
    println!(
        "GB/s of payload or time, and in brackets how many times longer Longshore takes, by turns: median, quartiles"
    );
    datatypes::measure(if quick { 3 } else { 101 }, &peers, |row| println!("{row}"))
}
