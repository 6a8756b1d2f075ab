//! `longshore demo`: runs the examples on ranks of different architectures and shows their frames.

mod real;

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::iter;
use std::path::PathBuf;
use std::process::ExitCode;

use longshore_benches::scratch::Scratch;
use longshore_examples::shipments::Shipments;
use longshore_examples::{NAMES, TABLE, shows};
use longshore_launcher::{self as launcher, Control, Job, Part};
use shipable::Architecture;

use crate::representation::Representations;
use real::Process;

/// Runs the examples on ranks of different architectures and shows the frames that cross the wire
///
/// Each example is a job of its own: separate processes that put into each other's windows through
/// shared memory. It prints the frames that were sent, decoded. With --verbose it also prints their
/// bytes and the memory on both sides in hexadecimal, where `··` stands for a byte that the
/// operation did not write. Exit status 1 if any check fails.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Data representations of the ranks, at least four: names from `longshore info`, or `native`
    #[arg(
        long,
        value_name = "NAME,...",
        default_value = "native,s390x,i686,m68k",
        value_parser = four
    )]
    arch: Representations,
    /// Real processes instead of emulated representations, where `ci/cross` has built the examples
    #[arg(long)]
    real: bool,
    /// Also the bytes of frames and memories, in hexadecimal
    #[arg(short, long)]
    verbose: bool,
    /// Number of rows of the CSV for the table example
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: usize,
    /// Examples to run. [default: all]
    #[arg(value_name = "EXAMPLE", value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
    examples: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  longshore demo                                            all examples
  longshore demo overflow foreign --verbose                 two of them, with the bytes
  longshore demo halo --arch native,sparc,win64,ppc64le     on other architectures
  longshore demo telemetry --real --arch native,aarch64,s390x,ppc    with real processes";

fn four(text: &str) -> Result<Representations, String> {
    let all = Representations::of_ranks(text)?;
    match all.0.len() {
        4.. => Ok(all),
        few => Err(format!("expected at least four representations, one a rank; found {few}")),
    }
}

/// Runs one rank of an example, for the demo
#[derive(clap::Args)]
pub struct Example {
    name: String,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<PathBuf>,
}

impl Example {
    pub fn main(self) -> ExitCode {
        longshore_examples::main(&self.name, &self.arguments)
    }
}

/// Runs the chosen examples; the status is 1 if any of them fails.
pub fn main(arguments: Arguments) -> ExitCode {
    let all: Vec<String> = NAMES.map(str::to_owned).to_vec();
    let examples = if arguments.examples.is_empty() { &all } else { &arguments.examples };
    if let Err(error) = crate::print(&arguments.headline()) {
        eprintln!("longshore: {error}");
        return ExitCode::FAILURE;
    }
    let played = launcher::guarded("the launcher", |control| {
        let failed: Vec<_> = (examples.iter())
            .filter(|name| match play(name, &arguments, control) {
                Ok(status) => status != 0,
                Err(error) => {
                    eprintln!("longshore: {name}: {error}");
                    true
                }
            })
            .collect();
        let mut end =
            format!("{} of {} examples passed\n", examples.len() - failed.len(), examples.len());
        for name in &failed {
            end += &format!("FAILED: {name}\n");
        }
        let printed = crate::print(&end);
        if let Err(error) = &printed {
            eprintln!("longshore: {error}");
        }
        u8::from(!failed.is_empty() || printed.is_err())
    });
    match played {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("longshore: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    /// What runs: the ranks, their machines, and what the marks of the output mean.
    fn headline(&self) -> String {
        let archs = &self.arch.0;
        let machines = archs.iter().enumerate().map(|(rank, arch)| {
            let what = match arch.as_str() {
                "native" => format!("{}, this machine", Architecture::NATIVE.name()),
                _ if self.real => arch.clone(),
                _ => format!("{arch}, emulated here"),
            };
            format!("  rank {rank}: {what}\n")
        });
        let machines: String = machines.collect();
        let emulated = match archs.iter().any(|arch| arch != "native") && !self.real {
            true => {
                "An emulated rank is a process of this machine whose memory is laid out as on the \
                 other one:\nthe byte order, the sizes and the alignments of types. --real starts \
                 programs of that machine.\n"
            }
            false => "",
        };
        let marks = match (self.verbose, crate::has_colours(&std::io::stdout())) {
            (false, _) => "--verbose adds the bytes of frames and memories.\n",
            (true, false) => {
                "In memories in hexadecimal, ·· is a byte that the operation didn't write.\n"
            }
            (true, true) => {
                "In memories in hexadecimal, a grey byte is one that the operation didn't write.\n"
            }
        };
        format!("Each example is a job of {} ranks:\n{machines}{emulated}{marks}\n", archs.len())
    }
}

/// Runs one example as a job of its own and returns the job's status.
fn play(
    name: &str,
    arguments: &Arguments,
    control: &Control,
) -> Result<u8, Box<dyn std::error::Error>> {
    let input = if name == TABLE { Some(input(arguments.rows)?) } else { None };
    let mut words: Vec<OsString> = vec![name.into()];
    words.extend(input.iter().map(|input| input.0.clone().into()));
    let mut environment: Vec<(OsString, OsString)> =
        vec![("LONGSHORE_SHOW".into(), if arguments.verbose { "hex" } else { "1" }.into())];
    crate::print(&format!("{name}: {}\n", shows(name)))?;
    if crate::has_colours(&std::io::stdout()) {
        environment.push(("LONGSHORE_COLOUR".into(), "1".into()));
    }
    let program = Program { words, environment };
    let archs = &arguments.arch.0;
    let parts = match arguments.real {
        false => vec![program.emulated(archs)?],
        true => program.real(archs)?,
    };
    let status = launcher::run(&Job { parts, ..Job::default() }, control)?;
    crate::print("\n")?;
    Ok(status)
}

/// An example as the program of a job.
struct Program {
    /// The name of the example, and its arguments.
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// Ranks that emulate these representations.
    fn emulated(&self, archs: &[String]) -> Result<Part, Box<dyn std::error::Error>> {
        Ok(Part {
            ranks: u32::try_from(archs.len())?,
            arguments: iter::once("example".into()).chain(self.words.iter().cloned()).collect(),
            environment: self.environment.clone(),
            archs: archs.to_vec(),
            ..Part::new(std::env::current_exe()?)
        })
    }

    /// A rank for each representation: a real process where there is a program. Prints which.
    fn real(&self, archs: &[String]) -> Result<Vec<Part>, Box<dyn std::error::Error>> {
        let mut parts = Vec::with_capacity(archs.len());
        for (rank, arch) in archs.iter().enumerate() {
            let found = Process::find(arch);
            let how = match &found {
                Some(process) => process.to_string(),
                None if arch == "native" => "a process".to_owned(),
                None => "emulated, since ci/cross has built no program".to_owned(),
            };
            crate::print(&format!("rank {rank} is {arch}: {how}\n"))?;
            parts.push(match found {
                Some(process) => {
                    let (program, mut arguments) = process.words();
                    arguments.extend(self.words.iter().cloned());
                    let environment = self.environment.clone();
                    Part { arguments, environment, ..Part::new(program) }
                }
                None => self.emulated(std::slice::from_ref(arch))?,
            });
        }
        Ok(parts)
    }
}

/// Writes a CSV for the table example.
fn input(rows: usize) -> Result<Scratch, Box<dyn std::error::Error>> {
    let input = Scratch::new("shipments")?;
    Shipments::random(rows, 1996).write(BufWriter::new(File::create(&input.0)?))?;
    Ok(input)
}
