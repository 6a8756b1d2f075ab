//! Programs as a user would write them.
//!
//! Each example is a module here, and all of them are one program, `example`. `longshore demo` runs
//! those of [`NAMES`], and `tests/play.rs` runs all of them as end-to-end tests.

mod first;
mod make_shipments;

pub mod archive;
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

/// The examples that the demo runs, in its order. [`TABLE`] takes a file, [`TELEMETRY`] options.
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

/// The examples that run as jobs, but not in the demo: `archive` is about a file, `imbalance` takes
/// its time, and `first` prints in any order.
const OTHERS: [&str; 3] = [ARCHIVE, "imbalance", FIRST];

/// The names of all examples.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain(OTHERS)
}

/// A sentence of what an example shows. Empty for another name.
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
        ARCHIVE => {
            "Unlike ranks write one file together, and any number of others reads a part of it."
        }
        "imbalance" => "--stats and --trace find the rank that the others wait for.",
        FIRST => "The first program of README.md: each rank puts a column into the next rank.",
        _ => "",
    }
}

/// The example that reads a CSV of shipments. The example `make-shipments` writes such a file.
pub const TABLE: &str = "table";

/// Writes the file that [`TABLE`] reads. It is no job.
const MAKE_SHIPMENTS: &str = "make-shipments";

/// The example with options of its own: [`telemetry::Options`].
pub const TELEMETRY: &str = "telemetry";

/// The example that writes and reads a file; it takes the file's name.
const ARCHIVE: &str = "archive";

/// A whole program, with its own `main`.
const FIRST: &str = "first";

/// Runs an example on the job that this process belongs to. Every rank of the job must call it.
///
/// # Errors
/// An unknown name, wrong arguments, or an error of the example.
pub fn play(name: &str, arguments: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    match (name, arguments) {
        (FIRST, []) => return Ok(first::main()?),
        (MAKE_SHIPMENTS, arguments) => return make_shipments::main(arguments),
        _ => {}
    }
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
        (ARCHIVE, arguments) => archive::run(rank, arguments),
        (TELEMETRY, options) => telemetry::run(rank, options),
        (TABLE, [input]) => table::run(rank, input),
        (TABLE, _) => {
            Err("table takes one argument: a CSV file that make-shipments has written".into())
        }
        (name, [argument, ..]) if names().any(|known| known == name) => {
            Err(format!("{name} takes no arguments, but was given {}", argument.display()).into())
        }
        _ => {
            let names: Vec<_> = names().collect();
            Err(format!("no example is called {name}; expected {}", names.join(", ")).into())
        }
    }
}

/// The `main` of a rank: runs the example, and prints an error to stderr.
pub fn main(name: &str, arguments: &[PathBuf]) -> ExitCode {
    match play(name, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
