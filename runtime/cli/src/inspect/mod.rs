//! `longshore inspect`: a picture of a datatype's memory, and a description of its form.

mod facts;
mod fields;
mod memory;
mod picture;
mod records;
mod sheet;
mod strided;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use longshore_benches::case::architecture;
use shipable::notation::ParseError;
use shipable::{Architecture, Datatype};

use crate::pair;
use crate::representation::Representations;
use fields::FieldNames;
use sheet::Layouts;
use terminal::Screen;

/// Draws the memory of a datatype and describes its form
///
/// Prints a picture for each distinct layout among the architectures; size, extent and bounds in
/// bytes; the tree of constructors; the signature; whether the type is portable, and if not, which
/// constructor is the reason; the form that is sent, as text and in hexadecimal; and the programs
/// that it is lowered to.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The datatype in the type notation; '-' reads it from standard input
    #[arg(value_name = "TYPE", allow_hyphen_values = true)]
    datatype: String,
    /// Data representations: names from `longshore info`, `native`, `all`, or one descriptor; may
    /// be repeated
    #[arg(long, value_name = "NAME,...", default_value = "native", value_parser = chosen)]
    arch: Vec<Architectures>,
    /// Compares the type in two data representations: whether its data are copied between their
    /// ranks, and the first difference between the layouts
    #[arg(long, num_args = 2, value_names = ["NAME", "NAME"], value_parser = pair::parse)]
    pair: Option<Vec<Architecture>>,
    /// Number of elements of the type
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64)
    )]
    count: u64,
    /// Names of the fields of a struct, in order, as Element::field_names returns them
    #[arg(long, value_name = "NAME,...", allow_hyphen_values = true)]
    names: Option<FieldNames>,
    /// Also writes the picture as SVG to a file; '-' writes only the SVG, to standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Most lines of a picture; a longer one is folded
    #[arg(
        long,
        value_name = "N",
        default_value_t = 24,
        value_parser = clap::value_parser!(u16).range(12..)
    )]
    lines: u16,
    /// Prints records of the type from a file instead, at most --count
    #[arg(long, value_name = "FILE", conflicts_with_all = ["arch", "names", "svg"])]
    file: Option<PathBuf>,
    /// Data representation of the file: external32, internal, or a name from `longshore info`
    #[arg(long, value_name = "NAME", default_value = "external32", requires = "file")]
    representation: String,
}

const AFTER_HELP: &str = "\
Examples:
  longshore inspect 'U1(S:2:c/1/0,d/1/8)'                         a struct of a char and a double
  longshore inspect 'U1(SS:2:c/1,d/1)' --arch x86-64,i686,m68k    the same, portable
  longshore inspect 'U1(SS:2:c/1,d/1)' --names tag,value          and where its fields lie
  longshore inspect 'U1(S:2:c/1/0,d/1/8)' --pair x86-64 i686      what differs between the two
  longshore inspect 'U1(V:d:8:1:10)' --arch all --svg column.svg  a column of a matrix
  longshore inspect 'U1(SS:2:i/1,d/1)' --file FILE --count 10     records in external32";

/// The architectures of one option --arch.
#[derive(Clone)]
struct Architectures(Vec<Architecture>);

fn chosen(text: &str) -> Result<Architectures, String> {
    if text == "all" {
        return Ok(Architectures(Architecture::all().to_vec()));
    }
    let Representations(names) = Representations::parse(text)?;
    Ok(Architectures(names.iter().map(|name| architecture(name)).collect::<Result<_, _>>()?))
}

/// An error message and the exit status for it.
struct Failure(String, ExitCode);

/// Prints the picture and the description.
pub fn main(arguments: Arguments) -> ExitCode {
    inspect(arguments).unwrap_or_else(|Failure(words, status)| {
        eprintln!("longshore: {words}");
        status
    })
}

fn inspect(arguments: Arguments) -> Result<ExitCode, Failure> {
    let failed = |words: String| Failure(words, ExitCode::FAILURE);
    let text =
        text(arguments.datatype).map_err(|error| failed(format!("standard input: {error}")))?;
    let datatype: Datatype = text.parse().map_err(|error: ParseError| {
        let place = pointed(&text, error.column, &error.problem.to_string());
        let notation =
            "docs/notation.md describes the notation; a column of doubles is 'U1(V:d:8:1:10)'";
        Failure(format!("the type can't be read\n{place}\n{notation}"), ExitCode::from(2))
    })?;
    if let Some(file) = &arguments.file {
        let named = records::representation(&arguments.representation);
        let representation = named
            .map_err(|words| Failure(format!("--representation: {words}"), ExitCode::from(2)))?;
        let out = records::lines(&datatype, &representation, file, arguments.count);
        crate::print(&out.map_err(failed)?).map_err(|error| failed(error.to_string()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut architectures: Vec<Architecture> = Vec::new();
    for architecture in arguments.arch.into_iter().flat_map(|Architectures(all)| all) {
        // Representations that differ only in their names are all shown.
        let same =
            |known: &Architecture| known.name() == architecture.name() && *known == architecture;
        if !architectures.iter().any(same) {
            architectures.push(architecture);
        }
    }
    let (count, lines) = (arguments.count, usize::from(arguments.lines));
    let layouts = Layouts::new(&datatype, &architectures, count);
    let found: Vec<_> = layouts.found.iter().map(|layout| layout.architecture).collect();
    let fields = match &arguments.names {
        Some(names) => fields::lines(names, &datatype, &found)
            .map_err(|error| Failure(format!("--names: {error}"), ExitCode::from(2)))?,
        None => Vec::new(),
    };
    let image = || svg::draw(&datatype, &layouts, count, lines);

    let out = match arguments.svg.as_deref() {
        Some(file) if file == Path::new("-") => {
            // The picture has the errors for architectures that don't have the type.
            if layouts.found.is_empty() {
                return Err(failed(layouts.failures().join("\nlongshore: ")));
            }
            image()
        }
        file => {
            if let (Some(file), false) = (file, layouts.found.is_empty()) {
                std::fs::write(file, image())
                    .map_err(|error| failed(format!("{}: {error}", file.display())))?;
            }
            let screen = Screen::standard();
            let mut out = terminal::draw(&layouts, count, lines, screen);
            for failure in layouts.failures() {
                out += &screen.warning(&failure);
                out.push('\n');
            }
            out.push('\n');
            let pair = arguments.pair.as_deref().map(|pair| {
                let line = pair::line(&datatype, [&pair[0], &pair[1]]);
                line.unwrap_or_else(|error| error.to_string())
            });
            out + &facts::describe(&datatype, &layouts, fields, pair.as_deref(), screen)
        }
    };
    crate::print(&out).map_err(|error| failed(error.to_string()))?;
    Ok(if layouts.found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The type's text: the argument, or standard input if the argument is '-'.
fn text(argument: String) -> io::Result<String> {
    if argument != "-" {
        return Ok(argument);
    }
    let most = shipable::notation::MAX_TEXT as u64 + 1;
    let mut text = String::new();
    io::stdin().lock().take(most).read_to_string(&mut text)?;
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// The part of `text` around `column`, with a mark and the problem under that column.
fn pointed(text: &str, column: usize, problem: &str) -> String {
    const BEFORE: usize = 60;
    const AFTER: usize = 16;
    let letters: Vec<char> = text.chars().take(column + AFTER).collect();
    let at = column.saturating_sub(1).min(letters.len());
    let from = at.saturating_sub(BEFORE);
    let shown: String = letters[from..]
        .iter()
        .map(|letter| if letter.is_control() { '?' } else { *letter })
        .collect();
    let before = if from > 0 { "..." } else { "" };
    let after = if text.chars().nth(letters.len()).is_some() { "..." } else { "" };
    let blank = " ".repeat(before.len() + at - from);
    format!("  {before}{shown}{after}\n  {blank}^ column {column}: {problem}")
}
