//! `longshore bench`: measures performance on this machine.

use std::io::{IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::{fs, io, thread};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use longshore::job::Routes;
use longshore_benches::case::{Bench, By, Case, Flavor, Sync};
use longshore_benches::environment::Environment;
use longshore_benches::peers::{self, Peer};
use longshore_benches::plan::{Choice, Element};
use longshore_benches::progress::Bar;
use longshore_benches::report::{Report, has_picture};
use longshore_benches::run::{self, Contender, Ours, Plain, Results, Step};
use longshore_benches::{Failure, launch};
use longshore_launcher::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::install;
use crate::representation::Representations;

/// Measures one-sided operations, datatypes and launching, and the limits of the machine
///
/// Two ranks, each pinned to a core, run the work of OSU's micro-benchmarks and more. Without any
/// of --window, --sync, --route, --hosts, --arch and --type, a selection of cases is measured. With
/// any of them, all combinations of the given values are measured. The other values are the plain
/// ones: an allocated window, a flush, the best route, ranks of one architecture, and doubles.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Benches to run, with OSU's names. [default: a selection]
    #[arg(
        value_name = "BENCH",
        value_parser = PossibleValuesParser::new(Bench::WORDS).try_map(|word| word.parse::<Bench>())
    )]
    benches: Vec<Bench>,
    /// Window flavors: allocate, create, dynamic, shared, or all
    #[arg(long, value_name = "KIND,...", value_parser = windows)]
    window: Option<Several<Flavor>>,
    /// Synchronisations: flush, lock, lock_shared, lock_all, fence, pscw, or all
    #[arg(long, value_name = "SYNC,...", value_parser = syncs)]
    sync: Option<Several<Sync>>,
    /// Interfaces: scope, pointer (calls with pointers and committed types), c, or all
    ///
    /// `c` adds a column for the C interface, measured by the program that measures the other
    /// libraries.
    #[arg(long, value_name = "INTERFACE,...", value_parser = interfaces)]
    by: Option<Interfaces>,
    /// Threads that divide a pack, an unpack or a copy: numbers, with commas in between. [default:
    /// 1]
    #[arg(long, value_name = "N,...", value_parser = numbers_of_threads)]
    threads: Option<Several<u32>>,
    /// Sizes in bytes, from 1 to 64M, such as 8,4K,1M. Named types have sizes of their own
    #[arg(long, value_name = "BYTES,...", value_parser = sizes)]
    size: Option<Several<u64>>,
    /// Routes: best, message, or all. Other MPI libraries use messages only for created windows
    #[arg(long, value_name = "ROUTE,...", value_parser = routes)]
    route: Option<Several<Routes>>,
    /// Simulates one host for each rank, with libfabric over the loopback interface between them
    #[arg(long)]
    hosts: bool,
    /// Data representations of origin and target, or of memory and stream; may be repeated
    #[arg(long, value_name = "NAME,NAME", value_parser = pair)]
    arch: Vec<[String; 2]>,
    /// Datatype in the type notation, or a named one (vector1, vector8, indexed, struct, ...); may
    /// be repeated
    ///
    /// Named types are those of most comparisons of MPI libraries: vector1, vector8, indexed,
    /// struct, subarray, face and contiguous; simple_struct, a portable struct; blocks and million,
    /// indexed types with 16,384 and 1,048,576 blocks; and types from applications: wrf_x,
    /// wrf_x_simple, wrf_y, milc_su3_zdown, nas_mg_x, nas_mg_y, nas_mg_z, nas_lu_x, nas_lu_y,
    /// fft_rows, fft_columns, lammps_full, lammps_atomic, specfem3d_oc and specfem3d_cm
    #[arg(long = "type", value_name = "TYPE", value_parser = Element::from_str)]
    types: Vec<Element>,
    /// Measures every operation once, in less than two minutes
    #[arg(long)]
    quick: bool,
    /// Checks the data of each case
    #[arg(long)]
    validate: bool,
    /// Also measures MPICH and Open MPI, from the folders in LONGSHORE_PEERS, and reports ratios
    #[arg(long)]
    peers: bool,
    /// Number of measurements of each case, in turns with all others. [default: 5, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    /// Number of rounds of a measurement; more rounds than the usual 41 suit a profiler
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,
    /// Reports an earlier run from a file that --json wrote, instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "benches", "window", "sync", "by", "threads", "size", "route", "hosts", "arch", "types", "quick", "validate", "peers", "turns",
            "rounds",
        ]
    )]
    from: Option<PathBuf>,
    #[command(flatten)]
    outputs: Outputs,
}

/// The outputs of a report besides the terminal.
#[derive(clap::Args)]
struct Outputs {
    /// Writes all measurements as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes one line for each measurement as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Writes the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draws times and rates over the size, and all ratios, as SVG files in a folder
    ///
    /// A bench is drawn with five sizes or more: without --quick, or with --size. Ratios need
    /// --peers or --by c
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Exit status: 1 if data was wrong or a job failed; 2 for wrong use; 128 + N after an interruption by signal N. The report \
then has the measurements made before the interruption.

Examples:
  longshore bench --quick --validate
  longshore bench put_latency get_latency --window all --size 8,1M
  longshore bench put_latency --sync fence,pscw --arch native,s390x
  longshore bench put_latency put_bw --hosts --size 8,1M
  longshore bench put_latency --by pointer,c --size 8 --peers
  longshore bench pack put_latency --type 'U1(V:d:1000:1:10)' --size 8000
  longshore bench --peers --json run.json
  longshore bench --from run.json --markdown run.md --svg pictures";

/// The values of one option.
#[derive(Clone)]
struct Several<T>(Vec<T>);

/// Parses words separated by commas; `all` stands for the list `all`.
fn several<T: FromStr>(text: &str, all: &str) -> Result<Several<T>, String>
where
    T::Err: ToString,
{
    let words = if text == "all" { all } else { text };
    let values =
        words.split(',').map(|word| word.parse().map_err(|error: T::Err| error.to_string()));
    values.collect::<Result<_, _>>().map(Several)
}

fn windows(text: &str) -> Result<Several<Flavor>, String> {
    several(text, &Flavor::WORDS.join(","))
}

fn syncs(text: &str) -> Result<Several<Sync>, String> {
    several(text, &Sync::WORDS.join(","))
}

/// The interfaces by which operations are called.
#[derive(Clone)]
struct Interfaces {
    /// Those of Rust, which have rows of their own.
    rust: Vec<By>,
    /// Whether that of C has a column.
    c: bool,
}

fn interfaces(text: &str) -> Result<Interfaces, String> {
    const C: &str = "c";
    let all = format!("{},{C}", By::WORDS.join(","));
    let words: Vec<&str> = if text == "all" { &all } else { text }.split(',').collect();
    let (c, rust): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| *word == C);
    let rust: Result<_, _> = rust.into_iter().map(str::parse).collect();
    let rust = rust.map_err(|error: <By as FromStr>::Err| format!("{error}, or {C}"))?;
    Ok(Interfaces { rust, c: !c.is_empty() })
}

fn numbers_of_threads(text: &str) -> Result<Several<u32>, String> {
    let threads: Several<NonZeroU32> = several(text, "1,2")?;
    Ok(Several(threads.0.into_iter().map(NonZeroU32::get).collect()))
}

fn routes(text: &str) -> Result<Several<Routes>, String> {
    several(text, "best,message")
}

fn sizes(text: &str) -> Result<Several<u64>, String> {
    let size = |word: &str| {
        let (digits, unit) = match word.strip_suffix(['K', 'k']) {
            Some(digits) => (digits, 1 << 10),
            None => word.strip_suffix(['M', 'm']).map_or((word, 1), |digits| (digits, 1 << 20)),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        bytes.filter(|bytes| (1..=64 << 20).contains(bytes)).ok_or_else(|| {
            format!("`{word}`: expected a number of bytes from 1 to 64M, such as 8, 4K or 1M")
        })
    };
    text.split(',').map(size).collect::<Result<_, _>>().map(Several)
}

fn pair(text: &str) -> Result<[String; 2], String> {
    let Representations(names) = Representations::parse(text)?;
    names.try_into().map_err(|names: Vec<String>| {
        format!(
            "expected two names with a comma in between, such as native,s390x; found {}",
            names.len()
        )
    })
}

/// Measures and reports. The status is 1 if data was wrong or a job of Longshore's failed.
pub fn main(arguments: Arguments) -> ExitCode {
    let status = match &arguments.from {
        Some(file) => read(file).and_then(|report| {
            if arguments.outputs.svg.is_some() && report.pictures().is_empty() {
                return Ok(without_picture("of this report"));
            }
            arguments.outputs.create()?;
            arguments.outputs.write(&report)
        }),
        None => match arguments.choice().cases() {
            Ok(cases) if arguments.lacks_picture(&cases) => {
                Ok(without_picture("of these measurements"))
            }
            Ok(cases) => measure(&arguments, &cases),
            Err(error) => {
                eprintln!("longshore: {error}");
                return ExitCode::from(2);
            }
        },
    };
    let status = status.unwrap_or_else(|error| {
        eprintln!("longshore: {error}");
        1
    });
    status.into()
}

/// Prints which options a picture needs, and returns the status of wrong use.
fn without_picture(of: &str) -> u8 {
    eprintln!(
        "longshore: --svg: there is no picture {of}. A picture of a bench needs five sizes or \
         more: leave out --quick, or give the sizes, such as --size 8,64,512,4K,32K,256K. A \
         picture of ratios needs --peers or --by c"
    );
    2
}

/// Reads the report of an earlier run.
fn read(file: &Path) -> Result<Report, Failure> {
    let text = fs::read_to_string(file).map_err(|error| of_file(file, &error))?;
    Ok(Report::from_json(&text).map_err(|error| of_file(file, &error))?)
}

fn of_file(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

/// Measures and reports. After an interruption, it reports the measurements made until then. A
/// second interruption ends the process at once.
fn measure(arguments: &Arguments, cases: &[Case]) -> Result<u8, Failure> {
    let interrupted = Arc::new(AtomicI32::new(0));
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    // A process that nohup started ignores SIGHUP, and must outlive its terminal.
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let noted = interrupted.clone();
    thread::spawn(move || {
        for signal in &mut signals {
            if noted.swap(signal, Ordering::Relaxed) != 0 {
                process::exit(128 + signal);
            }
            let over_the_bar = if io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
            let what = "interrupted: the bench ends after the current measurement; another signal ends it at once";
            // Not `eprintln!`: it would panic if the terminal has closed.
            let _ = writeln!(io::stderr(), "{over_the_bar}longshore: {what}");
        }
    });
    let &Arguments { quick, validate, .. } = arguments;
    if cfg!(debug_assertions) {
        eprintln!(
            "longshore: this is a debug build, whose figures say nothing: build with `cargo build --release`"
        );
    }
    for unused in arguments.choice().unheeded(cases) {
        eprintln!("longshore: {unused}");
    }
    // A file that can't be written is an error now, not after all measurements.
    arguments.outputs.create()?;
    let mut peers = if arguments.peers { peers::find()? } else { Vec::new() };
    if arguments.by.as_ref().is_some_and(|by| by.c) {
        peers.insert(0, Peer::of_c(|prefix| install::install(prefix, None))?);
    }
    let program = std::env::current_exe()?.into_os_string();
    let mut contenders: Vec<Box<dyn Contender>> =
        vec![Box::new(Ours { program }), Box::new(Plain::LOOPS), Box::new(Plain::LIMITS)];
    contenders.extend(peers.into_iter().map(|peer| Box::new(peer) as _));
    let turns = arguments.turns.unwrap_or(if quick { 1 } else { 5 });
    let mut environment = Environment::read();
    let mut bar = Bar::new();
    let step = |Step { done, total, turn, contender, case }: Step<'_>| {
        let what = format!("turn {} of {turns}, {contender}: {}", turn + 1, case.bench);
        bar.at(done, total, &what);
    };
    let stop = || interrupted.load(Ordering::Relaxed) != 0;
    let Results { rows, gaps } = run::run(cases, turns, validate, &mut contenders, stop, step);
    environment.ended();
    drop(bar);
    let status = arguments.outputs.write(&Report { environment, rows, gaps })?;
    match interrupted.load(Ordering::Relaxed) {
        0 => Ok(status),
        signal => {
            eprintln!("longshore: the report has only the measurements before the interruption");
            Ok((128 + signal) as u8)
        }
    }
}

impl Arguments {
    /// Whether pictures are asked for that the measurements of these cases don't have.
    fn lacks_picture(&self, cases: &[Case]) -> bool {
        let compared = self.peers || self.by.as_ref().is_some_and(|by| by.c);
        self.outputs.svg.is_some() && !has_picture(cases, compared)
    }

    fn choice(&self) -> Choice {
        fn or_none<T: Clone>(several: &Option<Several<T>>) -> Vec<T> {
            several.as_ref().map_or_else(Vec::new, |Several(values)| values.clone())
        }
        Choice {
            benches: self.benches.clone(),
            windows: or_none(&self.window),
            syncs: or_none(&self.sync),
            bys: self.by.as_ref().map_or_else(Vec::new, |by| by.rust.clone()),
            threads: or_none(&self.threads),
            sizes: or_none(&self.size),
            routes: or_none(&self.route),
            hosts: self.hosts,
            archs: self.arch.clone(),
            types: self.types.clone(),
            quick: self.quick,
            rounds: self.rounds,
        }
    }
}

impl Outputs {
    /// Creates the files that don't exist, and the folder.
    fn create(&self) -> Result<(), Failure> {
        for file in [&self.json, &self.csv, &self.markdown].into_iter().flatten() {
            let opened = fs::OpenOptions::new().append(true).create(true).open(file);
            opened.map_err(|error| of_file(file, &error))?;
        }
        if let Some(folder) = &self.svg {
            fs::create_dir_all(folder).map_err(|error| of_file(folder, &error))?;
        }
        Ok(())
    }

    /// Writes the outputs and prints the tables. Returns 1 if a case of Longshore's failed.
    fn write(&self, report: &Report) -> Result<u8, Failure> {
        let mut texts: Vec<(PathBuf, String)> = Vec::new();
        // The JSON comes first, because all other outputs can be made from it.
        texts.extend(self.json.clone().map(|file| (file, report.json())));
        texts.extend(self.csv.clone().map(|file| (file, report.csv())));
        texts.extend(self.markdown.clone().map(|file| (file, report.markdown())));
        if let Some(folder) = &self.svg {
            texts.extend(
                report
                    .pictures()
                    .into_iter()
                    .map(|picture| (folder.join(picture.name).with_extension("svg"), picture.svg)),
            );
        }
        let write = |(file, text): &(PathBuf, String)| {
            fs::write(file, text).map_err(|error| of_file(file, &error))
        };
        // All outputs are tried and the tables printed, even if one of them fails.
        let written: Vec<Result<(), String>> = texts.iter().map(write).collect();
        let printed = crate::print(&report.text());
        written.into_iter().collect::<Result<(), _>>()?;
        printed?;
        Ok(u8::from(report.failed()))
    }
}

/// Runs one rank of a bench's job
#[derive(clap::Args)]
pub struct Rank {
    #[command(subcommand)]
    task: RankTask,
}

/// The task of the rank.
#[derive(clap::Subcommand)]
enum RankTask {
    /// Measures the cases in the file PLAN and appends the answers to the file ANSWERS
    Plan {
        plan: PathBuf,
        answers: PathBuf,
        #[arg(long)]
        validate: bool,
    },
    /// Calls only init, barrier and finalize
    Nothing,
    /// Prints the memory that a rank of the task `nothing` takes
    Memory,
}

impl Rank {
    pub fn main(self) -> ExitCode {
        let played = match self.task {
            RankTask::Plan { plan, answers, validate } => run::rank(&plan, &answers, validate),
            RankTask::Nothing => launch::serve("nothing"),
            RankTask::Memory => launch::serve("memory"),
        };
        match played {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("longshore bench: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
