//! The program of all examples: `example NAME [ARGUMENT...]` is a rank of a job that runs one of
//! them. `example --list` prints their names.

use std::path::PathBuf;
use std::process::ExitCode;

use longshore_examples::{names, shows};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let name = words.next().map(|name| name.to_string_lossy().into_owned());
    match name.as_deref() {
        None => {
            eprintln!("usage: example NAME [ARGUMENT...]; example --list prints the names");
            ExitCode::FAILURE
        }
        Some("--list") => {
            for name in names() {
                println!("{name:10} {}", shows(name));
            }
            ExitCode::SUCCESS
        }
        Some(name) => longshore_examples::main(name, &words.map(PathBuf::from).collect::<Vec<_>>()),
    }
}
