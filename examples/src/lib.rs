//! Programs as a user would write them.
//!
//! Each example is a module here and a binary in `src/bin`. `longshore demo` runs those of
//! [`NAMES`], and `tests/play.rs` runs all of them as end-to-end tests.

pub mod foreign;
pub mod halo;
pub mod hashtable;
pub mod hex;
pub mod histogram;
pub mod imbalance;
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
pub mod telemetry;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use longshore::Rank;

/// The examples that the demo runs, in its order. It leaves out `imbalance`, which takes its time.
/// [`TABLE`] takes a file, [`TELEMETRY`] options.
pub const NAMES: [&str; 12] = [
    "overflow",
    "foreign",
    "halo",
    "stencil",
    "records",
    "packed",
    "object",
    "hashtable",
    "stealing",
    "histogram",
    TABLE,
    TELEMETRY,
];

/// A sentence of what an example of [`NAMES`] shows. Empty for another name.
pub fn shows(name: &str) -> &'static str {
    match name {
        "overflow" => {
            "A value that doesn't fit at the target is refused by name, and the job goes on."
        }
        "foreign" => {
            "Only its owner knows a layout with byte offsets, so the owner sends the type to the origin."
        }
        "halo" => "One portable column type fills the halos of neighbours of any byte order.",
        "stencil" => {
            "Neighbours synchronise with each other only, by post, start, complete and wait."
        }
        "records" => "A derived struct reaches ranks that lay it out with other sizes and gaps.",
        "packed" => "Packed values are read by ranks of all representations.",
        "object" => {
            "A file says in which representation and type its data are, and any rank reads it."
        }
        "hashtable" => "Compare-and-swap and accumulate work between byte orders.",
        "stealing" => "Fetch-and-op hands out each task once, whatever the speed of the ranks.",
        "histogram" => "Like ranks read each other's memory; unlike ones add by accumulate.",
        TABLE => "Columns of one rank become records of another, by types that the owner has sent.",
        TELEMETRY => {
            "A steady stream of records with notified puts, and commands by compare-and-swap."
        }
        _ => "",
    }
}

/// The example that reads a CSV of shipments. The program `make-shipments` writes such a file.
pub const TABLE: &str = "table";

/// The example with options of its own: [`telemetry::Options`].
pub const TELEMETRY: &str = "telemetry";

/// Runs an example on the job that this process belongs to. Every rank of the job must call it.
///
/// # Errors
/// An unknown name, wrong arguments, or an error of the example.
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
        ("imbalance", []) => imbalance::run(rank),
        (TELEMETRY, options) => telemetry::run(rank, options),
        (TABLE, [input]) => table::run(rank, input),
        (TABLE, _) => {
            Err("table takes one argument: a CSV file that make-shipments has written".into())
        }
        (name, [argument, ..]) if NAMES.contains(&name) => {
            Err(format!("{name} takes no arguments, but was given {}", argument.display()).into())
        }
        _ => Err(format!("no example is called {name}; expected {}", NAMES.join(", ")).into()),
    }
}

/// The `main` of each example's binary: runs the example and prints an error to stderr.
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
