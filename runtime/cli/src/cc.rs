//! `longshore cc` and `longshore cxx`: a compiler of the machine with the paths of Longshore's
//! headers and library. Installed, they are `mpicc` and `mpicxx`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, io};

/// Compiles programs in C for MPI, and links them
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true, override_usage = "longshore cc [WORDS]...", after_help = HELP)]
pub struct Arguments {
    /// Words for the compiler, and options of this command: --help and --show, among others
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
    words: Vec<OsString>,
}

const HELP: &str = "\
All words go to the compiler, except these, which may have one or two dashes:
  --help                         this text; that of the compiler is `mpicc -v --help`
  --show, --showme               the whole command, instead of running it
  --compile-info, --link-info    the whole command that compiles, or that links
  --showme:compile, --showme:link
                                 the words for compiling, or for linking, without the compiler
  --showme:command, --showme:incdirs, --showme:libdirs, --showme:libs
                                 the compiler, folders of headers and of libraries, libraries
  --showme:version               Longshore and its version
  --cc=PROG, --cxx=PROG          the compiler
  --check                        lets `longshore run --check` see loads and stores of the program
                                 too; give it to compile and to link, with gcc or clang, on x86-64
                                 or aarch64

The compiler is that of --cc, of the variable LONGSHORE_CC, MPICH_CC or OMPI_CC, the first that is \
set, or cc. For C++ it is that of --cxx, LONGSHORE_CXX, MPICH_CXX or OMPI_CXX, or c++.

Examples:
  mpicc -O2 ring.c -o ring
  mpicc --check ring.c -o ring && longshore run --check -n 2 ./ring
  mpicc --showme
  LONGSHORE_CC=s390x-linux-gnu-gcc mpicc ring.c -o ring     of an installation for that machine";

/// A language, and how its compiler is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Cxx,
}

impl Language {
    /// The names of the installed command.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Language::C => &["mpicc"],
            Language::Cxx => &["mpicxx", "mpic++"],
        }
    }

    /// The option that chooses the compiler, without its dashes.
    const fn option(self) -> &'static str {
        match self {
            Language::C => "cc=",
            Language::Cxx => "cxx=",
        }
    }

    /// The words of the compiler: a program, and what a variable has after it (`ccache gcc`).
    fn compiler(self, variable: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
        let (variables, usual) = match self {
            Language::C => (["LONGSHORE_CC", "MPICH_CC", "OMPI_CC"], "cc"),
            Language::Cxx => (["LONGSHORE_CXX", "MPICH_CXX", "OMPI_CXX"], "c++"),
        };
        let mut given = variables.iter().filter_map(|name| variable(name));
        match given.find(|given| !given.is_empty()) {
            Some(given) => split(given),
            None => vec![usual.into()],
        }
    }

    /// The command under one of its names, for its help, its manual page and its completions.
    pub fn named(self, name: &'static str) -> clap::Command {
        let about = match self {
            Language::C => "Compiles programs in C for MPI, and links them",
            Language::Cxx => "Compiles programs in C++ for MPI, and links them",
        };
        let option = |long: &'static str, help: &'static str| {
            clap::Arg::new(long).long(long).help(help).action(clap::ArgAction::SetTrue)
        };
        clap::Command::new(name)
            .about(about)
            .version(env!("CARGO_PKG_VERSION"))
            .disable_version_flag(true)
            .disable_help_flag(true)
            .override_usage(format!("{name} [WORDS]..."))
            .after_help(HELP)
            .arg(option("help", "Prints help"))
            .arg(option("check", "Lets `longshore run --check` see loads and stores"))
            .arg(option("show", "Prints the whole command instead of running it"))
            .arg(option("showme", "Prints the whole command instead of running it"))
            .arg(option("compile-info", "Prints the whole command that compiles"))
            .arg(option("link-info", "Prints the whole command that links"))
            .arg(
                clap::Arg::new("words")
                    .value_name("WORDS")
                    .help("Words for the compiler: its options and files")
                    .num_args(0..)
                    .value_hint(clap::ValueHint::FilePath),
            )
    }
}

/// The words of a variable as a shell splits them. A program whose path has spaces is one word.
fn split(given: OsString) -> Vec<OsString> {
    if Path::new(&given).exists() {
        return vec![given];
    }
    let words = given.to_str().and_then(shlex::split).filter(|words| !words.is_empty());
    words.map_or_else(|| vec![given], |words| words.into_iter().map(OsString::from).collect())
}

/// Becomes the compiler; the status is 1 if there is none.
pub fn main(language: Language, arguments: Arguments) -> ExitCode {
    run(language, arguments.words)
}

/// [`main`] with the words of another command line.
pub fn run(language: Language, mut words: Vec<OsString>) -> ExitCode {
    if let [word] = &words[..] {
        if option(word) == Some("help") {
            let text = language.named(language.names()[0]).render_long_help();
            return printed(&text.to_string());
        }
    }
    let mut compiler = language.compiler(|name| std::env::var_os(name));
    words.retain(|word| match option(word).and_then(|word| word.strip_prefix(language.option())) {
        Some(given) => {
            compiler = split(given.into());
            false
        }
        None => true,
    });
    let before = words.len();
    words.retain(|word| option(word) != Some("check"));
    let checked = words.len() < before;
    let made = prefix().map_err(|error| error.to_string()).and_then(|prefix| {
        let check = match checked {
            true => Some(Instrumentation::new(language, &compiler, &words)?),
            false => None,
        };
        command(&compiler, &prefix, check, words)
    });
    let (show, command) = match made {
        Ok(made) => made,
        Err(error) => {
            eprintln!("longshore: {error}");
            return ExitCode::FAILURE;
        }
    };
    if show {
        let words: Vec<_> = command.iter().map(|word| quoted(word)).collect();
        return printed(&format!("{}\n", words.join(" ")));
    }
    let compiler = &command[0];
    // It only returns if there is no such program.
    let error = Command::new(compiler).args(&command[1..]).exec();
    eprintln!("longshore: the compiler {} can't be run: {error}", compiler.to_string_lossy());
    ExitCode::FAILURE
}

/// Says that there is no Fortran interface, and what a program can do. The status is 1.
pub fn fortran(name: &str) -> ExitCode {
    eprintln!(
        "longshore: {name}: Longshore has no Fortran interface (no mpif.h, and no modules mpi and \
         mpi_f08). Call MPI from C: compile that part with mpicc, let Fortran call it by \
         `bind(C)`, and link with the words of `mpicc --showme:link`. A Fortran layer over MPI's \
         standard ABI can be built with mpicc, too"
    );
    ExitCode::FAILURE
}

fn printed(text: &str) -> ExitCode {
    match crate::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The name of an option with one dash or two.
fn option(word: &OsStr) -> Option<&str> {
    let word = word.to_str()?.strip_prefix('-')?;
    Some(word.strip_prefix('-').unwrap_or(word))
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
///
/// # Errors
/// An option of the kind -showme:NAME that there isn't.
fn command(
    compiler: &[OsString],
    prefix: &Path,
    check: Option<Instrumentation>,
    mut words: Vec<OsString>,
) -> Result<(bool, Vec<OsString>), String> {
    let mut asked = |names: &[&str]| {
        let before = words.len();
        words.retain(|word| !option(word).is_some_and(|word| names.contains(&word)));
        words.len() < before
    };
    let show = asked(&["show", "showme"]);
    // Those of MPICH have the compiler, those of Open MPI are words to add to another command.
    let (compile_words, link_words) = (asked(&["showme:compile"]), asked(&["showme:link"]));
    let compile = asked(&["compile_info", "compile-info", "show-compile-info"]) || compile_words;
    let link = asked(&["link_info", "link-info", "show-link-info"]) || link_words;
    let only_some = compile || link;
    if let Some(part) = words.iter().find_map(|word| option(word)?.strip_prefix("showme:")) {
        let shown = match part {
            "command" => compiler.to_vec(),
            "incdirs" => vec![prefix.join("include").into()],
            "libdirs" => vec![prefix.join("lib").into()],
            "libs" => vec!["mpi_abi".into()],
            // Meson finds no library without a version where a project asks for one.
            "version" => vec!["Longshore".into(), env!("CARGO_PKG_VERSION").into()],
            _ => {
                return Err(format!(
                    "--showme:{part}: expected compile, link, command, incdirs, libdirs, libs or \
                     version"
                ));
            }
        };
        return Ok((true, shown));
    }
    let only_words = compile_words || link_words;
    let mut command = if only_words { Vec::new() } else { compiler.to_vec() };
    if compile || !link {
        command.push(joined("-I", &prefix.join("include")));
        if let Some(check) = check {
            command.extend(check.compile(prefix, &words));
        }
    }
    let links = link || !compile && (show && words.is_empty() || links(&words));
    let is_partial = words.iter().any(|word| word == "-r");
    command.extend(words);
    if links {
        let libraries = prefix.join("lib");
        if let Some(check) = check.filter(|_| !is_partial) {
            command.extend(check.link(prefix));
        }
        command.push(joined("-L", &libraries));
        command.push(joined("-Wl,-rpath,", &libraries));
        command.push("-lmpi_abi".into());
    }
    Ok((show || only_some, command))
}

/// How a compiler is told to call a function before each load and store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instrumentation {
    language: Language,
    /// Whether it is clang. Otherwise it is gcc.
    is_clang: bool,
}

impl Instrumentation {
    /// Asks the compiler which one it is.
    ///
    /// # Errors
    /// The compiler is another one, or for another machine, or a word asks for a sanitizer.
    fn new(
        language: Language,
        compiler: &[OsString],
        words: &[OsString],
    ) -> Result<Instrumentation, String> {
        let name = compiler.join(OsStr::new(" "));
        let name = name.to_string_lossy();
        let Some((program, options)) = compiler.split_first() else {
            return Err("--check: there is no compiler".to_owned());
        };
        // These words say for which machine, too.
        let machine = words.iter().filter(|word| {
            let word = word.to_string_lossy();
            ["-m32", "-mx32"].contains(&&*word) || word.starts_with("--target=")
        });
        let asked = Command::new(program)
            .args(options)
            .args(machine)
            .args(["-dM", "-E", "-x", "c", "/dev/null"])
            .output()
            .map_err(|error| format!("--check: the compiler {name} can't be run: {error}"))?;
        let is_clang = is_clang(&name, &String::from_utf8_lossy(&asked.stdout), words)?;
        Ok(Instrumentation { language, is_clang })
    }

    /// The words for compiling.
    fn compile(self, prefix: &Path, words: &[OsString]) -> Vec<OsString> {
        let folder = prefix.join("share/longshore/check");
        let mut made: Vec<OsString> = Vec::new();
        if !words.iter().any(|word| word.as_bytes().starts_with(b"-g")) {
            made.push("-g".into());
        }
        // The linker mustn't hear of the instrumentation: it would add the compiler's own
        // functions. Merged branches would have no line.
        if self.is_clang {
            made.extend(CLANG.map(OsString::from));
        } else {
            made.push(joined("-specs=", &folder.join("gcc.specs")));
            made.extend(GCC.map(OsString::from));
        }
        // Otherwise it makes accesses of these calls later than it reports accesses.
        made.extend(WRAPPED.map(|name| format!("-fno-builtin-{name}").into()));
        made.push("-include".into());
        made.push(folder.join("mark.h").into());
        made
    }

    /// The words for linking, after those of the program.
    fn link(self, prefix: &Path) -> Vec<OsString> {
        let file = prefix.join("share/longshore/check/loads.c");
        let language = match self.language {
            Language::C => "c",
            Language::Cxx => "c++",
        };
        let mut made = ["-x", language].map(OsString::from).to_vec();
        made.push(file.into());
        made.extend(WRAPPED.map(|name| format!("-Wl,--wrap={name}").into()));
        made
    }
}

/// Whether a compiler with these predefined macros is clang, and not gcc.
///
/// # Errors
/// It is neither, or for another machine, or a word asks for a sanitizer.
fn is_clang(name: &str, macros: &str, words: &[OsString]) -> Result<bool, String> {
    let sanitizers = words.iter().filter_map(|word| word.to_str()?.strip_prefix("-fsanitize="));
    let other = sanitizers
        .flat_map(|list| list.split(','))
        .find(|one| ["thread", "address", "hwaddress", "memory"].contains(one));
    if let Some(other) = other {
        return Err(format!(
            "--check: -fsanitize={other} beside it: both give the compiler's calls before loads \
             and stores to functions of their own. Leave one of them out"
        ));
    }
    let has = |name: &str| {
        macros.lines().any(|line| {
            line.strip_prefix("#define ").and_then(|rest| rest.split(' ').next()) == Some(name)
        })
    };
    if !(has("__x86_64__") && has("__LP64__") || has("__aarch64__")) {
        return Err(format!(
            "--check: the compiler {name} is for another machine than x86-64 and aarch64, where \
             loads and stores aren't seen. Leave it out: `longshore run --check` still finds \
             what calls of MPI do"
        ));
    }
    match (has("__clang__"), has("__GNUC__")) {
        (true, _) => Ok(true),
        (false, true) => Ok(false),
        (false, false) => Err(format!(
            "--check: the compiler {name} is neither gcc nor clang, whose instrumentation of \
             loads and stores it needs: choose one by --cc"
        )),
    }
}

/// Options of clang.
const CLANG: [&str; 8] = [
    "-Xclang",
    "-fsanitize=thread",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    "-mllvm",
    "-enable-tail-merge=0",
    "-mllvm",
    "-sink-common-insts=0",
];

/// Options of gcc, beside those of its file of specs.
const GCC: [&str; 3] =
    ["--param=tsan-instrument-func-entry-exit=0", "-fno-crossjumping", "-fno-tree-tail-merge"];

/// Functions of the C library that are seen though they aren't compiled with the program.
const WRAPPED: [&str; 3] = ["memcpy", "memmove", "memset"];

/// Whether the compiler is asked to link: it has a file, and isn't told to stop before.
fn links(words: &[OsString]) -> bool {
    const STOPS: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
    // The words after these are no files.
    const TAKES: [&str; 36] = [
        "-o",
        "-I",
        "-L",
        "-D",
        "-U",
        "-A",
        "-B",
        "-F",
        "-T",
        "-e",
        "-l",
        "-u",
        "-x",
        "-z",
        "-MF",
        "-MT",
        "-MQ",
        "-include",
        "-imacros",
        "-iquote",
        "-isystem",
        "-isysroot",
        "-idirafter",
        "-iprefix",
        "-iwithprefix",
        "-iwithprefixbefore",
        "-Xlinker",
        "-Xassembler",
        "-Xpreprocessor",
        "-Xclang",
        "-mllvm",
        "-arch",
        "-target",
        "-aux-info",
        "-wrapper",
        "--param",
    ];
    let stops = words.iter().any(|word| STOPS.iter().any(|stop| word == stop));
    let mut takes = false;
    let has_file = words.iter().any(|word| {
        // A dash only is the standard input.
        let is_file = !takes && (word == "-" || !word.as_bytes().starts_with(b"-"));
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

/// The prefix under which this command is installed.
///
/// # Errors
/// It isn't installed.
fn prefix() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let prefix = program.parent().and_then(Path::parent);
    let prefix = prefix.filter(|prefix| prefix.join("include/mpi.h").exists());
    prefix.map(Path::to_owned).ok_or_else(|| {
        let what = format!(
            "{} isn't installed, so there is no mpi.h for it: run `longshore install PREFIX`, and \
             then PREFIX/bin/mpicc",
            program.display()
        );
        io::Error::new(io::ErrorKind::NotFound, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(words: &str) -> (bool, String) {
        made_with(None, words)
    }

    fn made_with(check: Option<Instrumentation>, words: &str) -> (bool, String) {
        let words = words.split_whitespace().map(OsString::from).collect();
        let (show, words) = command(&["cc".into()], Path::new("/p"), check, words).unwrap();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        (show, words.join(" "))
    }

    #[test]
    fn compilers_of_other_wrappers_are_honoured_after_our_own() {
        for (set, words) in [
            (&[][..], "cc"),
            (&[("OMPI_CC", "clang")], "clang"),
            (&[("OMPI_CC", "clang"), ("MPICH_CC", "ccache gcc -m64")], "ccache|gcc|-m64"),
            (&[("MPICH_CC", "gcc"), ("LONGSHORE_CC", "tcc")], "tcc"),
            (&[("LONGSHORE_CC", ""), ("OMPI_CXX", "g++")], "cc"),
        ] {
            let value = |name: &str| {
                set.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
            };
            let made = Language::C.compiler(value);
            let made: Vec<_> = made.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(made.join("|"), words, "{set:?}");
        }
        let cxx = |name: &str| (name == "OMPI_CXX").then(|| "clang++".into());
        assert_eq!(Language::Cxx.compiler(cxx), ["clang++"]);
    }

    #[test]
    fn commands_have_the_paths_that_they_need() {
        let link = "-L/p/lib -Wl,-rpath,/p/lib -lmpi_abi";
        for (words, show, whole) in [
            ("a.c -o a", false, format!("cc -I/p/include a.c -o a {link}")),
            ("-c a.c", false, "cc -I/p/include -c a.c".to_owned()),
            ("--version", false, "cc -I/p/include --version".to_owned()),
            ("-v -o a", false, "cc -I/p/include -v -o a".to_owned()),
            ("-x c -", false, format!("cc -I/p/include -x c - {link}")),
            ("-v -Xlinker --verbose", false, "cc -I/p/include -v -Xlinker --verbose".to_owned()),
            ("-v -idirafter a -MF b", false, "cc -I/p/include -v -idirafter a -MF b".to_owned()),
            ("-show", true, format!("cc -I/p/include {link}")),
            ("-show a.c", true, format!("cc -I/p/include a.c {link}")),
            ("-show -c a.c", true, "cc -I/p/include -c a.c".to_owned()),
            ("-compile_info", true, "cc -I/p/include".to_owned()),
            ("-link_info", true, format!("cc {link}")),
            ("--showme", true, format!("cc -I/p/include {link}")),
            ("--showme a.c", true, format!("cc -I/p/include a.c {link}")),
            ("--showme:compile", true, "-I/p/include".to_owned()),
            ("-showme:link", true, link.to_owned()),
            ("--compile-info", true, "cc -I/p/include".to_owned()),
            ("--link-info", true, format!("cc {link}")),
            ("-show-compile-info", true, "cc -I/p/include".to_owned()),
            ("-show-link-info", true, format!("cc {link}")),
            ("--showme:libdirs", true, "/p/lib".to_owned()),
            ("--showme:version", true, concat!("Longshore ", env!("CARGO_PKG_VERSION")).to_owned()),
        ] {
            assert_eq!(made(words), (show, whole), "{words}");
        }
    }

    #[test]
    fn checked_programs_are_compiled_and_linked_with_our_functions() {
        let wrapped = WRAPPED.map(|name| format!("-fno-builtin-{name}")).join(" ");
        let mark = format!("{wrapped} -include /p/share/longshore/check/mark.h");
        let gcc = format!("-specs=/p/share/longshore/check/gcc.specs {}", GCC.join(" "));
        let clang = CLANG.join(" ");
        let ours = "-x c /p/share/longshore/check/loads.c -Wl,--wrap=memcpy -Wl,--wrap=memmove \
                    -Wl,--wrap=memset -L/p/lib -Wl,-rpath,/p/lib -lmpi_abi";
        let here = |is_clang| Instrumentation { language: Language::C, is_clang };
        let (gcc_here, clang_here) = (here(false), here(true));
        for (kind, words, whole) in [
            (gcc_here, "-c a.c", format!("cc -I/p/include -g {gcc} {mark} -c a.c")),
            (gcc_here, "-g3 a.c", { format!("cc -I/p/include {gcc} {mark} -g3 a.c {ours}") }),
            (clang_here, "a.o", { format!("cc -I/p/include -g {clang} {mark} a.o {ours}") }),
            (clang_here, "--showme:link", ours.to_owned()),
        ] {
            assert_eq!(made_with(Some(kind), words).1, whole, "{words}");
        }
    }

    #[test]
    fn compilers_and_words_that_a_check_cannot_take_are_refused_with_a_reason() {
        let chosen = |macros: &[&str], words: &[&str]| {
            let macros: String = macros.iter().map(|name| format!("#define {name} 1\n")).collect();
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            is_clang("kcc", &macros, &words)
        };
        let gcc = ["__GNUC__", "__x86_64__", "__LP64__"];
        assert_eq!(chosen(&gcc, &["-fsanitize=undefined"]), Ok(false));
        let clang = ["__GNUC__", "__clang__", "__aarch64__"];
        assert_eq!(chosen(&clang, &[]), Ok(true));
        for (macros, words, part) in [
            (&gcc[..], &["-fsanitize=undefined,thread"][..], "-fsanitize=thread beside it"),
            (&gcc[..], &["-fsanitize=address"][..], "-fsanitize=address beside it"),
            (&["__GNUC__", "__x86_64__"], &[], "kcc is for another machine"),
            (&["__GNUC__", "__s390x__", "__LP64__"], &[], "kcc is for another machine"),
            (&["__x86_64__", "__LP64__"], &[], "kcc is neither gcc nor clang"),
            (&[], &[], "kcc is for another machine"),
        ] {
            let error = chosen(macros, words).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
