//! Real processes of other machines for the demo: programs that `ci/cross` has built, and the
//! emulators that run them.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// A data representation by its name, Rust's target of `ci/cross`, and QEMU's name of the machine.
/// This machine runs programs without such a name itself.
type Machine = (&'static str, &'static str, Option<&'static str>);

const MACHINES: [Machine; 6] = [
    ("s390x", "s390x-unknown-linux-gnu", Some("s390x")),
    ("i686", "i686-unknown-linux-gnu", None),
    ("aarch64", "aarch64-unknown-linux-gnu", Some("aarch64")),
    ("ppc", "powerpc-unknown-linux-gnu", Some("ppc")),
    ("armhf", "armv7-unknown-linux-gnueabihf", Some("arm")),
    ("ppc64le", "powerpc64le-unknown-linux-gnu", Some("ppc64le")),
];

/// A program and its emulator.
pub struct Process {
    program: PathBuf,
    emulator: Option<PathBuf>,
}

impl Process {
    /// The process that runs examples as a machine of this representation; `None` if there is none.
    pub fn find(representation: &str) -> Option<Process> {
        let (_, target, emulator) = MACHINES.iter().find(|(name, ..)| *name == representation)?;
        // This command is target/PROFILE/longshore, and ci/cross builds in target/cross.
        let folder = env::current_exe().ok()?.parent()?.parent()?.join("cross").join(target);
        let built = ["release", "debug"].map(|profile| folder.join(profile).join("example"));
        let program = built.into_iter().find(|program| program.exists())?;
        let emulator = match emulator {
            Some(name) => Some(in_path(name)?),
            None => None,
        };
        Some(Process { program, emulator })
    }

    /// The program that is started, and its first arguments.
    pub fn words(&self) -> (OsString, Vec<OsString>) {
        match &self.emulator {
            Some(emulator) => (emulator.into(), vec![self.program.clone().into()]),
            None => (self.program.clone().into(), Vec::new()),
        }
    }
}

/// Prints for example `a process, by qemu-s390x-static`.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a process")?;
        match self.emulator.as_deref().and_then(|emulator| emulator.file_name()) {
            Some(name) => write!(f, ", by {}", name.to_string_lossy()),
            None => Ok(()),
        }
    }
}

/// The emulator of a machine. Debian's static one needs no C library of that machine.
fn in_path(machine: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    let names = [format!("qemu-{machine}-static"), format!("qemu-{machine}")];
    let found =
        env::split_paths(&folders).flat_map(|folder| names.clone().map(|name| folder.join(name)));
    found.into_iter().find(|path| path.exists())
}
