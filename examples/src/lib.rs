//! Programs a user would write. Each is a binary of its own in `src/bin`, is played by the demo, and is an end-to-end test.

pub mod foreign;
pub mod halo;
pub mod hashtable;
pub mod hex;
pub mod histogram;
pub mod object;
pub mod overflow;
pub mod packed;
pub mod random;
pub mod records;
pub mod shipments;
pub mod show;
pub mod stealing;
pub mod stencil;
pub mod table;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use longshore::Rank;

/// The examples that the demo plays, in its order. None takes an argument but [`TABLE`], its file.
pub const NAMES: [&str; 11] = [
    "halo",
    "stencil",
    "records",
    "foreign",
    "overflow",
    "packed",
    "object",
    "hashtable",
    "stealing",
    "histogram",
    TABLE,
];

/// The one that reads a CSV of shipments; `make-shipments` makes one.
pub const TABLE: &str = "table";

/// Plays an example on the job that this process belongs to: all of its ranks do.
///
/// # Errors
/// An unknown name, and what the example meets.
pub fn play(name: &str, arguments: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let rank = longshore::init()?;
    run(&rank, name, arguments)?;
    Ok(rank.finalize()?)
}

fn run(rank: &Rank, name: &str, arguments: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    match (name, arguments) {
        ("halo", []) => halo::run(rank),
        ("stencil", []) => stencil::run(rank),
        ("records", []) => records::run(rank),
        ("foreign", []) => foreign::run(rank),
        ("overflow", []) => overflow::run(rank),
        ("packed", []) => packed::run(rank),
        ("object", []) => object::run(rank),
        ("hashtable", []) => hashtable::run(rank),
        ("stealing", []) => stealing::run(rank),
        ("histogram", []) => histogram::run(rank),
        (TABLE, [input]) => table::run(rank, input),
        (TABLE, _) => Err("table takes the path of a CSV, which make-shipments makes".into()),
        (name, [argument, ..]) if NAMES.contains(&name) => {
            Err(format!("{name} takes no arguments, but was given {}", argument.display()).into())
        }
        _ => Err(format!("no example is called {name}: there are {}", NAMES.join(", ")).into()),
    }
}

/// The whole of an example's `main`: plays it, and says what went wrong.
pub fn main(name: &str) -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match play(name, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
