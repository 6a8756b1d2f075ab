//! Checks of the project's source that no compiler makes. Each command has a module, and a step in
//! `ci/steps` that runs it.

mod book;
mod circles;
mod confined;
mod counts;
mod links;
mod prose;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: longshore-checks book FOLDER
       longshore-checks book-links FOLDER
       longshore-checks circles MANIFEST|FOLDER...
       longshore-checks confined
       longshore-checks counts [names]
       longshore-checks links
       longshore-checks prose BASE
    book       Copies the pages of the book to a folder, with their links as mdbook needs them. Fails
               if docs/book/SUMMARY.md misses a page of docs.
    book-links Fails if a link of a finished book leads nowhere.
    circles    Fails if source files import each other in a circle. A manifest (Cargo.toml) stands
               for the crates of its workspace, a folder for the C files in it.
    confined   Fails if the table of docs/design.md misses a module with unsafe code, or has another.
    counts     Prints figures of the source: long lists of parameters, long structs, lines.
    links      Fails if a link of a Markdown page, or a citation of a heading, leads nowhere.
    prose      Fails if lines of prose or subjects of commits are too long, and lists sentences to
               look at. BASE is a file with the hash of the last commit that isn't judged.";

/// The exit status of a wrong command line and of files that can't be read. 1 means that a check
/// failed.
const UNABLE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["book", folder] => book::stage(Path::new(folder)),
        ["book-links", folder] => book::check(Path::new(folder)),
        ["circles", _, ..] => circles::run(&arguments[1..]),
        ["confined"] => confined::run(),
        ["counts"] => counts::run(false),
        ["counts", "names"] => counts::run(true),
        ["links"] => links::run(),
        ["prose", base] => prose::run(base),
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
