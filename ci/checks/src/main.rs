//! Checks of the project's source that no compiler makes. `ci/steps/circles` runs the command
//! `circles`, which fails if files import each other in a circle. Each command has a module.

mod circles;

use std::process::ExitCode;

const USAGE: &str = "usage: longshore-checks circles MANIFEST|FOLDER...
    circles    Fails if source files import each other in a circle. A manifest (Cargo.toml) stands
               for the crates of its workspace, a folder for the C files in it.";

/// The exit status of a wrong command line and of files that can't be read. 1 means that a check
/// failed.
const UNABLE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((command, operands)) if command == "circles" && !operands.is_empty() => {
            circles::run(operands)
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            UNABLE.into()
        }
    }
}
