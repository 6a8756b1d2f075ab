//! Makes a CSV of shipments: `make-shipments FILE [ROWS [SEED]]`. The same seed makes the same bytes everywhere.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use longshore_examples::shipments::Shipments;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: make-shipments FILE [ROWS [SEED]]")?;
    let rows = arguments.next().map_or(Ok(100_000), |rows| rows.parse())?;
    let seed = arguments.next().map_or(Ok(1996), |seed| seed.parse())?;
    Shipments::random(rows, seed).write(BufWriter::new(File::create(file)?))?;
    Ok(())
}
