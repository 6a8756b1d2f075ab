//! `longshore cc` and `longshore cxx`: a compiler of the machine with the paths of Longshore's
//! headers and library. Installed, they are `mpicc` and `mpicxx`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::install::prefix;

/// Compiles programs in C for MPI, and links them
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true, override_usage = "longshore cc [WORDS]...", after_help = HELP)]
pub struct Arguments {
    /// Words for the compiler. -show prints the whole command instead of running it, -compile_info
    /// what compiles, and -link_info what links
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

const HELP: &str =
    "The compiler is that of the variable LONGSHORE_CC or LONGSHORE_CXX, or cc or c++.

Examples:
  mpicc -O2 ring.c -o ring
  mpicc -show
  LONGSHORE_CC=s390x-linux-gnu-gcc mpicc ring.c -o ring     of an installation for that machine";

/// A language, and how its compiler is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    fn compiler(self) -> OsString {
        let (variable, usual) = match self {
            Language::C => ("LONGSHORE_CC", "cc"),
            Language::Cxx => ("LONGSHORE_CXX", "c++"),
        };
        let given = std::env::var_os(variable).filter(|given| !given.is_empty());
        given.unwrap_or_else(|| usual.into())
    }
}

/// Becomes the compiler; the status is 1 if there is none.
pub fn main(language: Language, arguments: Arguments) -> ExitCode {
    run(language, arguments.words)
}

/// [`main`] with the words of another command line.
pub fn run(language: Language, words: Vec<OsString>) -> ExitCode {
    let made = prefix().map(|prefix| command(&language.compiler(), &prefix, words));
    let (show, command) = match made {
        Ok(made) => made,
        Err(error) => {
            eprintln!("longshore: {error}");
            return ExitCode::FAILURE;
        }
    };
    if show {
        let words: Vec<_> = command.iter().map(|word| quoted(word)).collect();
        return match crate::print(&format!("{}\n", words.join(" "))) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let compiler = &command[0];
    // It only returns if there is no such program.
    let error = Command::new(compiler).args(&command[1..]).exec();
    eprintln!("longshore: the compiler {} can't be run: {error}", compiler.to_string_lossy());
    ExitCode::FAILURE
}

/// A word as a shell reads it. Build systems look for plain words, so few are quoted.
fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:=+@%^".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.into_owned(),
        false => shlex::try_quote(&text).map_or_else(|_| text.to_string(), |word| word.to_string()),
    }
}

/// Whether the command is only shown, and its words.
fn command(compiler: &OsStr, prefix: &Path, mut words: Vec<OsString>) -> (bool, Vec<OsString>) {
    let mut asked = |names: &[&str]| {
        let before = words.len();
        words.retain(|word| !names.iter().any(|name| word == name));
        words.len() < before
    };
    let show = asked(&["-show", "-showme"]);
    let compile = asked(&["-compile_info", "-compile-info", "-showme:compile"]);
    let link = asked(&["-link_info", "-link-info", "-showme:link"]);
    let only_some = compile || link;
    let mut command = vec![compiler.to_owned()];
    if compile || !link {
        command.push(joined("-I", &prefix.join("include")));
    }
    let links = link || !compile && (show && words.is_empty() || links(&words));
    command.extend(words);
    if links {
        let libraries = prefix.join("lib");
        command.push(joined("-L", &libraries));
        command.push(joined("-Wl,-rpath,", &libraries));
        command.push("-lmpi_abi".into());
    }
    (show || only_some, command)
}

/// Whether the compiler is asked to link: it has a file, and isn't told to stop before.
fn links(words: &[OsString]) -> bool {
    const STOPS: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
    // The words after these are no files.
    const TAKES: [&str; 8] = ["-o", "-I", "-L", "-D", "-U", "-x", "-include", "-isystem"];
    let stops = words.iter().any(|word| STOPS.iter().any(|stop| word == stop));
    let mut takes = false;
    let has_file = words.iter().any(|word| {
        let is_file = !takes && !word.as_bytes().starts_with(b"-");
        takes = TAKES.iter().any(|option| word == option);
        is_file
    });
    has_file && !stops
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(PathBuf::from(path));
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(words: &str) -> (bool, String) {
        let words = words.split_whitespace().map(OsString::from).collect();
        let (show, words) = command(OsStr::new("cc"), Path::new("/p"), words);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        (show, words.join(" "))
    }

    #[test]
    fn commands_have_the_paths_that_they_need() {
        let link = "-L/p/lib -Wl,-rpath,/p/lib -lmpi_abi";
        for (words, show, whole) in [
            ("a.c -o a", false, format!("cc -I/p/include a.c -o a {link}")),
            ("-c a.c", false, "cc -I/p/include -c a.c".to_owned()),
            ("--version", false, "cc -I/p/include --version".to_owned()),
            ("-v -o a", false, "cc -I/p/include -v -o a".to_owned()),
            ("-show", true, format!("cc -I/p/include {link}")),
            ("-show a.c", true, format!("cc -I/p/include a.c {link}")),
            ("-show -c a.c", true, "cc -I/p/include -c a.c".to_owned()),
            ("-compile_info", true, "cc -I/p/include".to_owned()),
            ("-link_info", true, format!("cc {link}")),
        ] {
            assert_eq!(made(words), (show, whole), "{words}");
        }
    }
}
