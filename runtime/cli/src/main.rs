//! The command `longshore`: one module for each subcommand.

mod bench;
mod cc;
mod demo;
mod hosts;
mod info;
mod inspect;
mod install;
mod mpiexec;
mod pair;
mod representation;
mod run;
mod trace;

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use cc::Language;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

/// One-sided communication between machines with different data representations.
#[derive(Parser)]
#[command(name = "longshore", version, subcommand_required = true, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  longshore demo                 examples on four architectures, and what crosses the wire
  longshore run -n 4 ./prog      a job of four ranks
  longshore help run             all options of a job";

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Info(info::Arguments),
    Inspect(inspect::Arguments),
    Demo(demo::Arguments),
    Bench(bench::Arguments),
    Trace(trace::Arguments),
    Cc(cc::Arguments),
    /// Compiles programs in C++ for MPI, and links them
    Cxx(cc::Arguments),
    Install(install::Arguments),
    #[command(hide = true)]
    Agent(run::Agent),
    #[command(hide = true)]
    Example(demo::Example),
    #[command(hide = true)]
    BenchRank(bench::Rank),
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let name = words.next().map(PathBuf::from).unwrap_or_default();
    // The names that `install` gives the command beside its own.
    let arguments = match name.file_name().and_then(OsStr::to_str) {
        Some("mpicc") => return cc::run(Language::C, words.collect()),
        Some("mpicxx" | "mpic++") => return cc::run(Language::Cxx, words.collect()),
        Some(name @ ("mpifort" | "mpif90" | "mpif77")) => return cc::fortran(name),
        Some(name @ ("mpiexec" | "mpirun")) if mpiexec::asks_for_help(std::env::args_os()) => {
            let name = if name == "mpirun" { "mpirun" } else { "mpiexec" };
            let help = mpiexec::named(name).render_long_help().to_string();
            return if print(&help).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Some("mpiexec" | "mpirun") => {
            let host_file = mpiexec::host_file(|name| std::env::var_os(name));
            Arguments::parse_from(mpiexec::translate(words.collect(), host_file))
        }
        _ => Arguments::try_parse().unwrap_or_else(|error| with_suggestion(error).exit()),
    };
    match arguments.command {
        Command::Run(arguments) => run::main(arguments),
        Command::Info(arguments) => info::main(arguments),
        Command::Inspect(arguments) => inspect::main(arguments),
        Command::Demo(arguments) => demo::main(arguments),
        Command::Agent(agent) => agent.main(),
        Command::Example(example) => example.main(),
        Command::Bench(arguments) => bench::main(arguments),
        Command::BenchRank(rank) => rank.main(),
        Command::Trace(arguments) => trace::main(&arguments),
        Command::Cc(arguments) => cc::main(Language::C, arguments),
        Command::Cxx(arguments) => cc::main(Language::Cxx, arguments),
        Command::Install(arguments) => install::main(arguments),
    }
}

/// Adds the subcommand that a misspelt one resembles, where clap finds none: `rnu` has two letters
/// exchanged.
fn with_suggestion(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let command = Arguments::command();
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let near = shown
        .map(|subcommand| (distance(given, subcommand.get_name()), subcommand.get_name()))
        .filter(|(distance, _)| *distance <= 2)
        .min();
    if let Some((_, name)) = near {
        let names = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
    error
}

/// The number of letters that are wrong, missing, too many, or exchanged with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let wrong = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j - 1] + wrong).min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Whether to write in colours to `stream`: to a terminal that has them, or if the variable
/// CLICOLOR_FORCE is set, unless NO_COLOR is set.
fn has_colours(stream: &impl IsTerminal) -> bool {
    let clicolor = anstyle_query::clicolor();
    let can = || anstyle_query::term_supports_color() || clicolor == Some(true);
    match (anstyle_query::no_color(), anstyle_query::clicolor_force(), clicolor) {
        (true, _, _) => false,
        (false, true, _) => true,
        (false, false, Some(false)) => false,
        (false, false, _) => stream.is_terminal() && can(),
    }
}

/// Writes to standard output. A reader that has closed its end is no error.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
