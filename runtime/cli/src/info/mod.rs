//! `longshore info`: the representations and transports of this build on this machine.

mod facts;
mod settings;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use shipable::Architecture;

use crate::pair;
use facts::{Fabric, Facts, Reach};
use settings::Source;

/// Shows the version, the data representations and the transports
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Prints all of it as JSON, and every setting with where its value comes from
    #[arg(long)]
    json: bool,
    /// Lists the functions of MPI-5.0's standard ABI, and which of them are written
    #[arg(long, conflicts_with = "json")]
    abi: bool,
    /// Prints mpi.h
    #[arg(long, conflicts_with_all = ["json", "abi"])]
    header: bool,
    /// Prints mpix.h, which has functions that only Longshore has
    #[arg(long, conflicts_with_all = ["json", "abi", "header"])]
    own_header: bool,
    /// Lists the constants of the ABI with their values
    #[arg(long, conflicts_with_all = ["json", "abi", "header", "own_header"])]
    constants: bool,
    /// Compares two data representations: which basic types are copied between their ranks, and
    /// which are converted
    #[arg(
        long,
        num_args = 2,
        value_names = ["NAME", "NAME"],
        value_parser = pair::parse,
        conflicts_with_all = ["json", "abi", "header", "own_header", "constants"]
    )]
    pair: Option<Vec<Architecture>>,
}

const EXAMPLES: &str = "\
Examples:
  longshore info                                  what ranks can be here, and how they are reached
  longshore info --json | jq .settings            every setting, and where its value comes from
  longshore info --abi | grep Win_                the calls of windows in the C interface
  longshore info --pair x86-64 aarch64            what is converted between the two";

/// Prints the information; the status is 1 if standard output can't be written.
pub fn main(arguments: Arguments) -> ExitCode {
    let mut out = io::stdout().lock();
    let printed = match arguments {
        Arguments { abi: true, .. } => print_abi(&mut out),
        Arguments { header: true, .. } => out.write_all(longshore_abi_table::header().as_bytes()),
        Arguments { own_header: true, .. } => {
            out.write_all(longshore_abi_table::own_header().as_bytes())
        }
        Arguments { constants: true, .. } => print_constants(&mut out),
        Arguments { pair: Some(pair), .. } => pair::print(&mut out, [&pair[0], &pair[1]]),
        Arguments { json: true, .. } => print_json(&mut out, &Facts::find()),
        _ => print(&mut out, &Facts::find()),
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longshore: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(out: &mut impl Write, facts: &Facts) -> io::Result<()> {
    let machine = &facts.machine;
    writeln!(out, "longshore {}", facts.version)?;
    writeln!(out, "\nThis machine\n  {}\n  {}", machine.representation, machine.descriptor)?;
    writeln!(out, "  {} processors for a job", machine.processors)?;
    if let Some(processors) = machine.processor_limit {
        writeln!(out, "  the control group limits their time to that of {processors:.2}")?;
    }
    if let Some(bytes) = machine.memory_limit {
        writeln!(out, "  the control group limits memory to {} MiB", bytes >> 20)?;
    }
    writeln!(out, "\nRepresentations, for --arch, with sizes in bytes")?;
    writeln!(
        out,
        "  {:<16} {:<7} {:>4} {:>7} {:>5} long double",
        "name", "order", "long", "pointer", "wchar"
    )?;
    for one in &facts.representations {
        writeln!(
            out,
            "  {:<16} {:<7} {:>4} {:>7} {:>5} {} in {}",
            one.name,
            one.order,
            one.long,
            one.pointer,
            one.wchar,
            one.long_double,
            one.long_double_size
        )?;
    }
    writeln!(out, "  external32 and xdr are for files and buffers: no rank can have them")?;
    writeln!(out, "\nTransports")?;
    let shm = &facts.transports.shm;
    match &shm.error {
        None => writeln!(
            out,
            "  shm    one unnamed segment per job; up to {} ranks; ranges of {} KiB",
            shm.most_ranks,
            shm.range_bytes >> 10
        )?,
        Some(error) => writeln!(out, "  shm    not available here: {error}")?,
    }
    print_fabric(out, &facts.transports.fabric)?;
    writeln!(out, "  sim    ranks in one process, for tests")?;
    let set = facts.settings.iter().filter(|setting| setting.source == Source::Environment);
    for (index, setting) in set.enumerate() {
        if index == 0 {
            writeln!(out, "\nSettings of the environment")?;
        }
        writeln!(out, "  {}={}", setting.variable, setting.value)?;
    }
    Ok(())
}

fn print_fabric(out: &mut impl Write, fabric: &Fabric) -> io::Result<()> {
    if let Some(error) = &fabric.error {
        return writeln!(out, "  fabric not available here, so jobs have one host: {error}");
    }
    let (version, library) = (fabric.version.as_deref(), fabric.library.as_deref());
    let providers = match fabric.providers.is_empty() {
        true => "no suitable provider".to_owned(),
        false => fabric.providers.join(", "),
    };
    writeln!(
        out,
        "  fabric between hosts, by connected endpoints; libfabric {} with {providers}",
        version.unwrap_or_default()
    )?;
    writeln!(out, "         libfabric is {}", library.unwrap_or(Path::new("?")).display())?;
    for Reach { like, endpoint, why } in &fabric.endpoints {
        writeln!(out, "         to a host like {like} by {endpoint}: {why}")?;
    }
    Ok(())
}

fn print_json(out: &mut impl Write, facts: &Facts) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, facts)?;
    writeln!(out)
}

fn print_abi(out: &mut impl Write) -> io::Result<()> {
    let functions = longshore_abi_table::functions();
    for function in functions {
        for width in function.widths() {
            writeln!(out, "{:<17} {}", function.module(), function.c_name(*width))?;
        }
    }
    let mpis = functions.iter().filter(|function| !function.is_own());
    let number: usize = mpis.map(|function| function.widths().len()).sum();
    writeln!(out, "{number} functions of MPI")
}

fn print_constants(out: &mut impl Write) -> io::Result<()> {
    let sections = longshore_abi_table::constants().iter();
    let all = sections.flat_map(|section| section.constants());
    for constant in all.filter(|constant| !constant.is_own()) {
        if let Some(number) = constant.number() {
            writeln!(out, "{} {number}", constant.name())?;
        }
    }
    Ok(())
}
