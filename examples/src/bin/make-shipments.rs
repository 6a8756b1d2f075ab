//! Writes a CSV of random shipments: `make-shipments FILE [ROWS [SEED]]`. On one machine, the same
//! seed gives the same file.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;

use longshore_examples::shipments::Shipments;

fn main() -> ExitCode {
    match make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make-shipments: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("expected the arguments FILE [ROWS [SEED]]")?;
    let rows = number("ROWS", arguments.next(), 100_000)?;
    let seed = number("SEED", arguments.next(), 1996)?;
    let file = File::create(&path).map_err(|error| format!("{path}: {error}"))?;
    Shipments::random(usize::try_from(rows)?, seed).write(BufWriter::new(file))?;
    Ok(())
}

fn number(name: &str, text: Option<String>, default: u64) -> Result<u64, String> {
    text.map_or(Ok(default), |text| {
        text.parse().map_err(|_| format!("{name} is {text}: expected a number"))
    })
}
