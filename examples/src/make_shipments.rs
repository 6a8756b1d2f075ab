//! Writes a CSV of random shipments: `example make-shipments FILE [ROWS [SEED]]`. On one machine,
//! the same seed gives the same file.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use crate::shipments::Shipments;

pub fn main(arguments: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let [path, numbers @ ..] = arguments else {
        return Err("expected the arguments FILE [ROWS [SEED]]".into());
    };
    let rows = number("ROWS", numbers.first(), 100_000)?;
    let seed = number("SEED", numbers.get(1), 1996)?;
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Shipments::random(usize::try_from(rows)?, seed).write(BufWriter::new(file))?;
    Ok(())
}

fn number(name: &str, text: Option<&PathBuf>, default: u64) -> Result<u64, String> {
    let Some(text) = text.map(|text| text.to_string_lossy()) else { return Ok(default) };
    text.parse().map_err(|_| format!("{name} is {text}: expected a number"))
}
