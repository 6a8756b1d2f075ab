//! `longshore install`: lays out the command, its other names, the C interface, manual pages and
//! completions under a prefix.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cc::Language;
use crate::mpiexec;

/// Installs the command, the C interface, manual pages and completions
///
/// Under PREFIX are afterwards: bin/longshore and, as names of it, mpicc, mpicxx, mpic++, mpiexec
/// and mpirun, and mpifort, mpif90 and mpif77, which say what a program in Fortran can do;
/// lib/libmpi_abi.so.1 with a file for pkg-config; include/mpi.h, mpix.h and mpix_fint.h; and under
/// share, manual pages, the completions of shells, suppressions for valgrind, and files for
/// mpicc --check. Files that are there are replaced.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder, such as /usr/local. It is made if it isn't there
    #[arg(value_name = "PREFIX")]
    prefix: PathBuf,
    /// The library to install, such as one for another machine that `ci/cross --dynamic` built.
    /// Otherwise it is the one beside this command
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  longshore install /usr/local
  longshore install $HOME/mpi && $HOME/mpi/bin/mpicc ring.c -o ring
  longshore install mpi-s390x --library libmpi_abi.so     of a machine that ci/cross builds for";

/// The names under which the command is another one.
const NAMES: [&str; 8] =
    ["mpicc", "mpicxx", "mpic++", "mpiexec", "mpirun", "mpifort", "mpif90", "mpif77"];

/// The other names that have a manual page and completions.
fn others() -> Vec<clap::Command> {
    let compilers = [Language::C, Language::Cxx].into_iter();
    let compilers = compilers
        .flat_map(|language| language.names().iter().map(move |name| language.named(name)));
    compilers.chain(["mpiexec", "mpirun"].map(mpiexec::named)).collect()
}

/// The library of the C interface, as programs name it.
const LIBRARY: &str = "libmpi_abi.so.1";

/// Installs everything; the status is 1 if something can't be written or found.
pub fn main(arguments: Arguments) -> ExitCode {
    let done = fs::create_dir_all(&arguments.prefix)
        .map_err(|error| at(error, &arguments.prefix))
        .and_then(|()| arguments.prefix.canonicalize())
        .and_then(|prefix| install(&prefix, arguments.library).map(|()| prefix));
    match done {
        Ok(prefix) => {
            let path = prefix.display();
            let told =
                crate::print(&format!("installed under {path}: try {path}/bin/mpicc -show\n"));
            if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("longshore: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Installs everything under a folder that is there. `library` is that of the C interface; `None`
/// is the one beside this command.
///
/// # Errors
/// A file that can't be written or found, with its path.
pub fn install(prefix: &Path, library: Option<PathBuf>) -> io::Result<()> {
    let program = env::current_exe()?;
    let library = match library {
        Some(library) => library.canonicalize().map_err(|error| at(error, &library))?,
        None => beside(&program)?,
    };
    place(&prefix.join("bin/longshore"), |path| fs::copy(&program, path).map(drop))?;
    for name in NAMES {
        place(&prefix.join("bin").join(name), |path| symlink("longshore", path))?;
    }
    place(&prefix.join("lib").join(LIBRARY), |path| fs::copy(&library, path).map(drop))?;
    place(&prefix.join("lib/libmpi_abi.so"), |path| symlink(LIBRARY, path))?;
    // A folder without other libraries, for the loader of programs that name no folder.
    let only = prefix.join("lib/longshore").join(LIBRARY);
    place(&only, |path| symlink(Path::new("..").join(LIBRARY), path))?;
    write(&prefix.join("include/mpi.h"), longshore_abi_table::header().as_bytes())?;
    write(&prefix.join("include/mpix.h"), longshore_abi_table::own_header().as_bytes())?;
    write(&prefix.join("include/mpix_fint.h"), longshore_abi_table::fint_header().as_bytes())?;
    write(&prefix.join("share/longshore/valgrind.supp"), SUPPRESSIONS.as_bytes())?;
    for (name, text) in CHECK {
        write(&prefix.join("share/longshore/check").join(name), text.as_bytes())?;
    }
    write(&prefix.join("lib/pkgconfig/longshore.pc"), PKG_CONFIG.as_bytes())?;
    manual(&prefix.join("share/man/man1"))?;
    completions(&prefix.join("share"))
}

/// The library of the C interface: where cargo builds it beside the command, or where it is
/// installed.
fn beside(program: &Path) -> io::Result<PathBuf> {
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [folder.join("libmpi_abi.so"), folder.join("../lib").join(LIBRARY)];
    places.iter().find(|place| place.exists()).cloned().ok_or_else(|| {
        let what = format!(
            "the C interface isn't at {}: build it by `cargo build -p longshore-abi`, with the same \
             --release or --profile as longshore",
            places[0].display()
        );
        io::Error::new(io::ErrorKind::NotFound, what)
    })
}

/// What valgrind reports of libfabric.
const SUPPRESSIONS: &str = include_str!("valgrind.supp");

/// What `mpicc --check` gives the compiler.
const CHECK: [(&str, &str); 4] = [
    ("loads.c", include_str!("check/loads.c")),
    ("loads.h", include_str!("check/loads.h")),
    ("mark.h", include_str!("check/mark.h")),
    ("gcc.specs", include_str!("check/gcc.specs")),
];

const PKG_CONFIG: &str = concat!(
    "prefix=${pcfiledir}/../..\n",
    "includedir=${prefix}/include\n",
    "libdir=${prefix}/lib\n",
    "\n",
    "Name: longshore\n",
    "Description: MPI's standard ABI on Longshore\n",
    "Version: ",
    env!("CARGO_PKG_VERSION"),
    "\n",
    "Cflags: -I${includedir}\n",
    "Libs: -L${libdir} -Wl,-rpath,${libdir} -lmpi_abi\n",
);

/// A manual page of the command, of each subcommand and of each other name.
fn manual(folder: &Path) -> io::Result<()> {
    let mut command = crate::Arguments::command().disable_help_subcommand(true);
    command.build();
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned();
    let pages: Vec<clap::Command> =
        std::iter::once(command.clone()).chain(shown).chain(others()).collect();
    for page in pages {
        // `longshore-run`: the name that the page is about, too.
        let name = page.get_display_name().unwrap_or(page.get_name());
        let path = folder.join(format!("{name}.1"));
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        write(&path, &text)?;
    }
    Ok(())
}

fn completions(share: &Path) -> io::Result<()> {
    for mut command in std::iter::once(crate::Arguments::command()).chain(others()) {
        let name = command.get_name().to_owned();
        for (shell, place) in [
            (Shell::Bash, format!("bash-completion/completions/{name}")),
            (Shell::Zsh, format!("zsh/site-functions/_{name}")),
            (Shell::Fish, format!("fish/vendor_completions.d/{name}.fish")),
        ] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, &name, &mut text);
            write(&share.join(place), &text)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    place(path, |path| fs::write(path, text))
}

/// Makes a file under another name, and then gives it its own: a program that runs keeps the old
/// one.
fn place(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let placed = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let _ = fs::remove_file(&new);
        make(&new)?;
        fs::rename(&new, path)
    };
    placed().map_err(|error| at(error, path))
}

fn at(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
