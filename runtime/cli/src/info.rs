//! `longshore info`: the representations and transports of this build on this machine.

use std::io::{self, Write};
use std::process::ExitCode;

use longshore_transport::{Segment, segment};
use shipable::arch::ByteOrder;
use shipable::{Architecture, Basic};

/// Shows the version, the data representations and the transports
#[derive(clap::Args)]
pub struct Arguments {
    /// Lists the functions of MPI-5.0's standard ABI, and which of them are written
    #[arg(long)]
    abi: bool,
    /// Prints mpi.h
    #[arg(long, conflicts_with = "abi")]
    header: bool,
    /// Prints mpix.h, which has functions that only Longshore has
    #[arg(long, conflicts_with_all = ["abi", "header"])]
    own_header: bool,
    /// Lists the constants of the ABI with their values
    #[arg(long, conflicts_with_all = ["abi", "header", "own_header"])]
    constants: bool,
}

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
        _ => print(&mut out),
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

fn print(out: &mut impl Write) -> io::Result<()> {
    let native = Architecture::NATIVE;
    writeln!(out, "longshore {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "\nThis machine\n  {native}\n  {}", native.descriptor())?;
    writeln!(out, "\nRepresentations, for --arch, with sizes in bytes")?;
    writeln!(
        out,
        "  {:<16} {:<7} {:>4} {:>7} {:>5} long double",
        "name", "order", "long", "pointer", "wchar"
    )?;
    for architecture in Architecture::all() {
        print_architecture(out, architecture)?;
    }
    writeln!(out, "  external32 and xdr are for files and buffers: no rank can have them")?;
    writeln!(out, "\nTransports")?;
    match Segment::create(2) {
        Ok(_) => writeln!(
            out,
            "  shm    one unnamed segment per job; up to {} ranks; ranges of {} KiB",
            segment::MAX_RANKS,
            segment::GRANULE >> 10
        )?,
        Err(error) => writeln!(out, "  shm    not available here: {error}")?,
    }
    print_fabric(out)?;
    writeln!(out, "  sim    ranks in one process, for tests")
}

fn print_abi(out: &mut impl Write) -> io::Result<()> {
    let functions = longshore_abi_table::functions();
    for function in functions {
        let state = if function.is_written() { "written" } else { "unwritten" };
        for width in function.widths() {
            writeln!(out, "{state:<9} {:<17} {}", function.module(), function.c_name(*width))?;
        }
    }
    let number = |all: bool| -> usize {
        let mpis = functions.iter().filter(|function| !function.is_own());
        let counted = mpis.filter(|function| all || function.is_written());
        counted.map(|function| function.widths().len()).sum()
    };
    writeln!(out, "{} of {} functions of MPI are written", number(false), number(true))
}

fn print_constants(out: &mut impl Write) -> io::Result<()> {
    let sections = longshore_abi_table::constants().iter();
    for constant in sections.flat_map(|section| section.constants()) {
        if let Some(number) = constant.number() {
            writeln!(out, "{} {number}", constant.name())?;
        }
    }
    Ok(())
}

#[cfg(feature = "fabric")]
fn print_fabric(out: &mut impl Write) -> io::Result<()> {
    use longshore::endpoint;
    use longshore_transport::fabric::{providers, version};

    let (major, minor) = version();
    let found = providers();
    writeln!(
        out,
        "  fabric between hosts, by connected endpoints; libfabric {major}.{minor} with {}",
        if found.is_empty() { "no suitable provider".to_owned() } else { found.join(", ") }
    )?;
    // Representations with equal byte order and word sizes share one line.
    let mut shown = Vec::new();
    for there in Architecture::all() {
        let (endpoint, why) = endpoint::choose("tcp", &Architecture::NATIVE, there);
        if !shown.contains(&(endpoint, why)) {
            shown.push((endpoint, why));
            writeln!(out, "         to a host like {} by {endpoint}: {why}", there.name())?;
        }
    }
    Ok(())
}

#[cfg(not(feature = "fabric"))]
fn print_fabric(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "  fabric not in this build: needs the cargo feature `fabric`, and libfabric")
}

fn print_architecture(out: &mut impl Write, architecture: &Architecture) -> io::Result<()> {
    let order = match architecture.order() {
        ByteOrder::Little => "little",
        ByteOrder::Big => "big",
    };
    let size = |basic: Basic| architecture.leaf(basic.into()).map_or(0, |layout| layout.size);
    let (width, format) = architecture.long_double();
    writeln!(
        out,
        "  {:<16} {order:<7} {:>4} {:>7} {:>5} {format:?} in {}",
        architecture.name(),
        size(Basic::Long),
        architecture.pointer().size,
        size(Basic::Wchar),
        width.size,
    )
}
