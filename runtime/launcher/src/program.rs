//! Finds out whether the system can run a program, from the header of the program's file.
//!
//! The C library starts a file that the kernel refuses through a shell, as if it were a script.
//! For a program of another architecture, the message is then one of the shell about its syntax.
//! If a program's loader is missing, the kernel says that the program itself isn't there.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use object::elf::{
    EM_68K, EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_MIPS, EM_PPC, EM_PPC64, EM_RISCV, EM_S390,
    EM_SPARC, EM_SPARCV9, EM_X86_64, FileHeader32, FileHeader64, Machine as Number,
};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{FileKind, ReadCache, ReadRef};
use object::{Endian, Endianness};

/// The folder of the interpreters that the system uses for programs of other formats.
const INTERPRETERS: &str = "/proc/sys/fs/binfmt_misc";

/// The bytes of a program that decide on its interpreter.
const HEAD: usize = 256;

/// The reason why the system can't run a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Obstacle {
    /// The program is made for another architecture.
    #[error(
        "it is a program for {program}, which this machine ({here}) can't run: give an emulator \
         before the program, such as {emulator} {path}"
    )]
    Foreign { program: String, here: String, emulator: String, path: String },
    /// The program is linked dynamically.
    #[error(
        "it is a program for {program}, and its loader {loader} isn't installed: install the C \
         library for {program}, or link the program statically"
    )]
    NoLoader { program: String, loader: String },
}

/// The machine that a program is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Machine {
    number: Number,
    is_64: bool,
    is_big: bool,
}

/// The facts in the header of a program.
struct Header {
    machine: Machine,
    /// The path of the loader, for a program that is linked dynamically.
    loader: Option<PathBuf>,
}

/// The reason why the system can't run `program`, if the program's file shows one. The program is
/// found as by exec: relative to `folder`, or by the folders of `path`.
pub(super) fn obstacle(
    program: &OsStr,
    folder: Option<&OsStr>,
    path: Option<OsString>,
) -> Option<Obstacle> {
    let folder = Path::new(folder.unwrap_or_default());
    let path = path.unwrap_or_else(|| "/bin:/usr/bin".into()); // exec's own default
    let file = find(program, folder, &path)?;
    let head = head(&file)?;
    let Header { machine, loader } = header(&file)?;
    if has_interpreter(&head) {
        return None;
    }
    // A launcher under an emulator differs from the machine, whose kernel runs the programs.
    let native: Vec<_> = ["/proc/self/exe", "/bin/sh"]
        .iter()
        .filter_map(|file| Some(header(Path::new(file))?.machine))
        .collect();
    if !native.is_empty() && !native.iter().any(|native| native.runs(machine)) {
        let emulator = machine.emulator();
        let installed = [format!("{emulator}-static"), emulator.clone()];
        let installed =
            installed.into_iter().find(|name| find(name.as_ref(), folder, &path).is_some());
        return Some(Obstacle::Foreign {
            program: machine.name(),
            here: native.last().map_or_else(String::new, |native| native.name()),
            emulator: installed.unwrap_or(emulator),
            path: program.to_string_lossy().into_owned(),
        });
    }
    let loader = loader.filter(|loader| !folder.join(loader).exists())?;
    let loader = loader.display().to_string();
    Some(Obstacle::NoLoader { program: machine.name(), loader })
}

/// The file that exec would start.
fn find(program: &OsStr, folder: &Path, path: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(folder.join(program));
    }
    std::env::split_paths(path)
        .map(|each| folder.join(each).join(program))
        .find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok())
}

/// The first bytes of a file.
fn head(file: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(file).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The header of a file in the format of programs, which is ELF; `None` for any other file.
fn header(file: &Path) -> Option<Header> {
    let data = ReadCache::new(File::open(file).ok()?);
    match FileKind::parse(&data).ok()? {
        FileKind::Elf32 => read::<FileHeader32<Endianness>>(&data),
        FileKind::Elf64 => read::<FileHeader64<Endianness>>(&data),
        _ => None,
    }
}

fn read<'data, E: FileHeader<Endian = Endianness>>(data: impl ReadRef<'data>) -> Option<Header> {
    let header = E::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let machine = Machine {
        number: header.e_machine(endian),
        is_64: header.is_class_64(),
        is_big: endian.is_big_endian(),
    };
    let segments = header.program_headers(endian, data).ok()?;
    let mut loaders =
        segments.iter().filter_map(|segment| segment.interpreter(endian, data).ok().flatten());
    let loader = loaders.next().map(|loader| PathBuf::from(OsStr::from_bytes(loader)));
    Some(Header { machine, loader })
}

impl Machine {
    /// Whether the kernel of this machine runs programs of `other`.
    fn runs(self, other: Machine) -> bool {
        if self.is_big != other.is_big || (other.is_64 && !self.is_64) {
            return false;
        }
        match (self.number, other.number) {
            (own, other) if own == other => true,
            (EM_X86_64, EM_386) | (EM_AARCH64, EM_ARM) => true,
            (EM_PPC64, EM_PPC) | (EM_SPARCV9, EM_SPARC) => true,
            _ => false,
        }
    }

    /// The name as in `longshore info` where that has the machine.
    fn name(self) -> String {
        match self.qemu() {
            Some("i386") => "i686".to_owned(),
            Some("x86_64") => "x86-64".to_owned(),
            Some(name) => name.to_owned(),
            None => format!("ELF machine {}", self.number.0),
        }
    }

    /// The name of an emulator of the machine.
    fn emulator(self) -> String {
        format!("qemu-{}", self.qemu().unwrap_or("..."))
    }

    /// The machine's name in the names of QEMU's emulators.
    fn qemu(self) -> Option<&'static str> {
        let by_order = |little, big| if self.is_big { big } else { little };
        Some(match (self.number, self.is_64) {
            (EM_386, _) => "i386",
            (EM_X86_64, _) => "x86_64",
            (EM_S390, true) => "s390x",
            (EM_AARCH64, _) => by_order("aarch64", "aarch64_be"),
            (EM_ARM, _) => by_order("arm", "armeb"),
            (EM_PPC, _) => "ppc",
            (EM_PPC64, _) => by_order("ppc64le", "ppc64"),
            (EM_MIPS, true) => by_order("mips64el", "mips64"),
            (EM_MIPS, false) => by_order("mipsel", "mips"),
            (EM_RISCV, true) => "riscv64",
            (EM_RISCV, false) => "riscv32",
            (EM_LOONGARCH, true) => "loongarch64",
            (EM_SPARCV9, _) => "sparc64",
            (EM_SPARC, _) => "sparc",
            (EM_68K, _) => "m68k",
            _ => return None,
        })
    }
}

/// Whether the system starts files that begin with `head` by an interpreter, such as an emulator.
fn has_interpreter(head: &[u8]) -> bool {
    let Ok(entries) = fs::read_dir(INTERPRETERS) else { return false };
    let texts = entries.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.into_iter().any(|text| is_for(&text, head))
}

/// Whether an entry of binfmt_misc, as the kernel prints it, is for files that begin with `head`.
fn is_for(entry: &str, head: &[u8]) -> bool {
    let field = |name: &str| entry.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let bytes = |digits: &str| -> Option<Vec<u8>> {
        let pairs = digits.as_bytes().chunks(2);
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
    };
    let Some(magic) = field("magic ").and_then(bytes) else { return false };
    let mask = field("mask ").and_then(bytes).unwrap_or_else(|| vec![0xff; magic.len()]);
    let offset = field("offset ").and_then(|offset| offset.parse().ok()).unwrap_or(0);
    let Some(found) = head.get(offset..).filter(|found| found.len() >= magic.len()) else {
        return false;
    };
    let is_equal = |((&found, magic), mask): ((&u8, &u8), &u8)| found & mask == magic & mask;
    entry.starts_with("enabled") && found.iter().zip(&magic).zip(&mask).all(is_equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(number: Number, is_64: bool, is_big: bool) -> Machine {
        Machine { number, is_64, is_big }
    }

    #[test]
    fn a_kernel_runs_its_own_programs_and_those_of_its_smaller_kind() {
        let x86_64 = machine(EM_X86_64, true, false);
        let i686 = machine(EM_386, false, false);
        let s390x = machine(EM_S390, true, true);
        assert!(x86_64.runs(x86_64) && x86_64.runs(i686) && s390x.runs(s390x));
        assert!(!i686.runs(x86_64) && !x86_64.runs(s390x) && !s390x.runs(x86_64));
        let arm = |is_big| machine(EM_ARM, false, is_big);
        assert!(machine(EM_AARCH64, true, false).runs(arm(false)));
        assert!(!machine(EM_AARCH64, true, false).runs(arm(true)));
    }

    #[test]
    fn machines_have_the_names_of_their_emulators() {
        assert_eq!(machine(EM_PPC64, true, true).emulator(), "qemu-ppc64");
        assert_eq!(machine(EM_PPC64, true, false).emulator(), "qemu-ppc64le");
        assert_eq!(machine(EM_386, false, false).name(), "i686");
        assert_eq!(machine(Number(9999), true, false).name(), "ELF machine 9999");
    }

    #[test]
    fn the_systems_interpreters_are_recognized_by_magic_and_mask() {
        let entry = "enabled\ninterpreter /usr/bin/qemu-s390x-static\nflags: OCF\noffset 0\n\
                     magic 7f454c46020201\nmask ffffffffffff00\n";
        assert!(is_for(entry, b"\x7fELF\x02\x02\x07rest"));
        assert!(!is_for(entry, b"\x7fELF\x02\x01\x07rest"));
        assert!(!is_for(entry, b"\x7fELF"));
        assert!(!is_for(&entry.replace("enabled", "disabled"), b"\x7fELF\x02\x02\x07rest"));
        assert!(!is_for("enabled\ninterpreter /x\nflags: \nextension .py\n", b"\x7fELF"));
    }
}
