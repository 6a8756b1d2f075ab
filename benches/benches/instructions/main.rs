//! Counts the instructions of one call of the hottest paths, and compares them with the counts that
//! are recorded for the compiler. Unlike times, counts don't depend on the load of the machine.
//! `ci/steps/instructions` runs it.
//!
//!     cargo bench -p longshore-benches --bench instructions
//!     cargo bench -p longshore-benches --bench instructions -- --record     # after an intended change
//!
//! Each path runs twice under `valgrind --tool=callgrind`, the second time with twice as many
//! calls. The difference contains only the calls, without start and end of the program. To
//! attribute instructions to functions, run callgrind on the bench's program:
//!
//!     valgrind --tool=callgrind target/release/deps/instructions-... --path "put 8 B" 10000
//!
//! Paths by C are those of a program that `LONGSHORE_MPICC` compiles, the mpicc of an installed
//! release build. Without it they are left out.
//!
//! CPUID selects the kernels. Valgrind 3.19 doesn't report AVX-512, so the AVX2 kernels are
//! counted.

mod paths;
mod pointer;
mod recorded;
mod side;

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use paths::{Outcome, PATHS, Path, Work};
use recorded::{Recorded, Verdict};

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => compare(),
        ["--record"] => Recorded::read()?.write(&count_all()?),
        ["--path", name, calls] => {
            let path = PATHS.iter().find(|path| path.name == *name);
            path.ok_or_else(|| format!("no path {name}"))?.run(calls.parse()?)
        }
        _ => Err("only --record, or --path NAME CALLS".into()),
    }
}

fn compare() -> Outcome {
    let recorded = Recorded::read()?;
    println!("{}", recorded.explain());
    let mut slower = Vec::new();
    for (name, count) in count_all()? {
        let (line, verdict) = recorded.judge(name, count);
        println!("{line}");
        if verdict == Verdict::More {
            slower.push(name);
        }
    }
    if slower.is_empty() {
        return Ok(());
    }
    println!("{}", recorded::WHAT_TO_DO);
    Err(format!("more instructions than are recorded: {}", slower.join("; ")).into())
}

fn count_all() -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    let program = program_in_c()?;
    if program.is_none() {
        println!("LONGSHORE_MPICC isn't set: the paths by C are left out");
    }
    let is_there = |path: &&Path| program.is_some() || !matches!(path.work, Work::C(_));
    let counted = |path: &Path| Ok((path.name, count(path, program.as_ref())?));
    PATHS.iter().filter(is_there).map(counted).collect()
}

/// The program of the paths by C, compiled; `None` without a compiler for it.
fn program_in_c() -> Result<Option<PathBuf>, Box<dyn Error>> {
    let Ok(compiler) = std::env::var("LONGSHORE_MPICC") else { return Ok(None) };
    let source: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "benches", "instructions", "path.c"].iter().collect();
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("path");
    let ended = Command::new(&compiler).arg("-O2").arg(source).arg("-o").arg(&program).status();
    match ended.map_err(|error| format!("{}: {error}", compiler))?.success() {
        true => Ok(Some(program)),
        false => Err(format!("{} can't compile path.c", compiler).into()),
    }
}

/// The instructions of one call.
fn count(path: &Path, program: Option<&PathBuf>) -> Result<f64, Box<dyn Error>> {
    let collect = |calls| collect(path, program, calls);
    let (once, twice) = (collect(path.calls)?, collect(2 * path.calls)?);
    Ok((twice as f64 - once as f64) / f64::from(path.calls))
}

/// The instructions of a process that makes `calls` calls.
fn collect(path: &Path, program: Option<&PathBuf>, calls: u32) -> Result<u64, Box<dyn Error>> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    match (&path.work, program) {
        (Work::C(name), Some(program)) => command.arg(program).arg(name),
        _ => command.arg(std::env::current_exe()?).args(["--path", path.name]),
    };
    let output = command
        .arg(calls.to_string())
        .output()
        .map_err(|error| format!("valgrind can't be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    match collected {
        Some((_, number)) if output.status.success() => Ok(number.trim().parse()?),
        _ => Err(format!("{}, {calls} calls: {}\n{text}", path.name, output.status).into()),
    }
}
