//! `longshore info`: what this build and this machine offer.

use std::io::{self, Write};
use std::process::ExitCode;

use longshore_transport::{Segment, segment};
use shipable::arch::ByteOrder;
use shipable::{Architecture, Basic};

/// Shows the version, the data representations and the transports
#[derive(clap::Args)]
pub struct Arguments {}

/// Prints it.
pub fn main(Arguments {}: Arguments) -> ExitCode {
    match print(&mut io::stdout().lock()) {
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
    writeln!(out, "\nTransports")?;
    match Segment::create(2) {
        Ok(_) => writeln!(
            out,
            "  shm    one segment per job, without a name; up to {} ranks; ranges of {} KiB",
            segment::MAX_RANKS,
            segment::GRANULE >> 10
        )?,
        Err(error) => writeln!(out, "  shm    not to be had here: {error}")?,
    }
    writeln!(out, "  sim    ranks in one process, for tests")
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
