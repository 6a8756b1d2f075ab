//! MPI libraries that do the same work: found, built with our program in `benches/peers`, and run by their `mpiexec`.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::{Bench, Case};
use crate::row::{Answer, Outcome, Refusal, Sample};
use crate::run::Contender;
use crate::{Failure, limits, scratch};

/// The program's sources, which the command carries, so that it needs no clone of the project to build them.
const SOURCES: [(&str, &str); 7] = [
    ("peer.h", include_str!("../peers/peer.h")),
    ("main.c", include_str!("../peers/main.c")),
    ("outcome.c", include_str!("../peers/outcome.c")),
    ("windows.c", include_str!("../peers/windows.c")),
    ("types.c", include_str!("../peers/types.c")),
    ("notation.h", include_str!("../../shipable/examples/differential/notation.h")),
    ("basics.h", include_str!("../../shipable/examples/differential/basics.h")),
];

/// Without an answer for so long a library hangs: a case may take 60 s, after which its ranks end themselves.
const PATIENCE: Duration = Duration::from_secs(75);

/// An MPI library, and our program built with it.
#[derive(Debug)]
pub struct Peer {
    /// With its version.
    name: String,
    bin: PathBuf,
    folder: Folder,
}

/// Why there are no peers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeersError {
    /// Nobody said where they are.
    #[error(
        "LONGSHORE_PEERS isn't set. It lists folders that hold mpicc and mpiexec, separated by colons: \
         `export LONGSHORE_PEERS=$(ci/peers)` installs the newest MPICH and Open MPI beside this project (it needs python3 \
         with venv, and the network); `LONGSHORE_PEERS=/usr/bin` takes the system's (Debian: apt install mpich, or \
         libopenmpi-dev and openmpi-bin)"
    )]
    Unset,
    /// A folder that is listed has no library that works.
    #[error("LONGSHORE_PEERS has {}: {problem}", bin.display())]
    Unusable {
        /// The folder.
        bin: PathBuf,
        /// What was tried there, and what came of it.
        problem: String,
    },
    /// The program can't be stored: where, and why not.
    #[error("{0}")]
    Storage(io::Error),
}

/// The libraries in the folders that the environment's `LONGSHORE_PEERS` lists, as PATH does.
///
/// # Errors
/// None listed; one that doesn't build the program. Its compiler's messages go to standard error.
pub fn find() -> Result<Vec<Peer>, PeersError> {
    let folders = std::env::var_os("LONGSHORE_PEERS").unwrap_or_default();
    let mut peers: Vec<Peer> = Vec::new();
    for bin in std::env::split_paths(&folders).filter(|bin| !bin.as_os_str().is_empty()) {
        // mpicc runs in another folder.
        let bin = std::path::absolute(&bin).unwrap_or(bin);
        let peer = Peer::build(&bin)?;
        // Rows of two builds of one release would be mixed up.
        if let Some(other) = peers.iter().find(|other| other.name == peer.name) {
            let problem = format!("{} is in {}, too", peer.name, other.bin.display());
            return Err(PeersError::Unusable { bin, problem });
        }
        peers.push(peer);
    }
    if peers.is_empty() { Err(PeersError::Unset) } else { Ok(peers) }
}

impl Peer {
    fn build(bin: &Path) -> Result<Peer, PeersError> {
        let unusable = |problem: String| PeersError::Unusable { bin: bin.to_owned(), problem };
        let mut mpiexec = Command::new(bin.join("mpiexec"));
        mpiexec.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
        let mut version = String::new();
        run(mpiexec, |line| version += &(line + "\n"))
            .map_err(|error| unusable(format!("mpiexec --version: {error}")))?;
        let name = name(&version)
            .ok_or_else(|| unusable("mpiexec is neither MPICH's nor Open MPI's".to_owned()))?;
        let folder = Folder::new()?;
        for (file, text) in SOURCES {
            folder.write(file, text)?;
        }
        let mut mpicc = Command::new(bin.join("mpicc"));
        mpicc.current_dir(&folder.0).stdin(Stdio::null()).args(["-O2", "-o", "peer"]);
        mpicc.args(SOURCES.iter().map(|(file, _)| file).filter(|file| file.ends_with(".c")));
        match run(mpicc, |_| ()) {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(unusable(format!("mpicc can't build our program: {status}"))),
            Err(error) => return Err(unusable(format!("mpicc: {error}"))),
        }
        let peer = Peer { name, bin: bin.to_owned(), folder };
        match peer.tried() {
            Ok(()) => Ok(peer),
            Err(problem) => Err(unusable(format!("mpiexec can't start our program: {problem}"))),
        }
    }

    /// Runs a job that does nothing; what its standard error has to say where that fails.
    fn tried(&self) -> Result<(), String> {
        let errors = self.folder.path("errors");
        let started = File::create(&errors).and_then(|file| {
            let mut command = self.mpiexec(2, 1);
            command.stderr(file);
            run(command, |_| ())
        });
        match started {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                let errors = fs::read_to_string(&errors).unwrap_or_default();
                Err(format!("{status}\n{}", errors.trim()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The major number of its release, if it is an Open MPI.
    fn open_mpi(&self) -> Option<u32> {
        let release = self.name.strip_prefix(OPEN_MPI)?;
        Some(release.trim().split('.').next()?.parse().unwrap_or_default())
    }

    fn mpiexec(&self, ranks: u32, hosts: u32) -> Command {
        let mut command = Command::new(self.bin.join("mpiexec"));
        let is_open_mpi = self.open_mpi().is_some();
        if is_open_mpi {
            // The program pins its ranks, and there may be more of them than cores.
            command.args(["--allow-run-as-root", "--bind-to", "none", "--oversubscribe"]);
        }
        match (hosts > 1, is_open_mpi) {
            (false, _) => {}
            (true, true) => {
                let parts = [("pml", "ob1"), ("btl", "tcp,self"), ("osc", "pt2pt")];
                parts.iter().for_each(|(part, choice)| _ = command.args(["--mca", part, choice]));
                command.args(["--mca", "btl_tcp_if_include", "lo"]);
            }
            (true, false) => _ = command.env("UCX_TLS", "tcp").env("MPIR_CVAR_NOLOCAL", "1"),
        }
        command.args(["-n", &ranks.to_string()]).arg(self.folder.path("peer"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// From launch to exit of a job that does nothing.
    fn launch(&self, case: &Case) -> Outcome {
        let mut took = Vec::new();
        for _ in 0..case.rounds {
            let start = Instant::now();
            match run(self.mpiexec(case.ranks, 1), |_| ()) {
                Ok(status) if status.success() => took.push(start.elapsed().as_secs_f64() * 1e6),
                Ok(status) => return Err(Refusal::Lost(format!("mpiexec ended with {status}"))),
                Err(error) => return Err(Refusal::Lost(format!("mpiexec: {error}"))),
            }
        }
        Sample::of(took, [0.0; 2], false).ok_or_else(|| Refusal::Lost("no round".to_owned()))
    }

    /// Runs one job for all the cases. One that dies is followed by another, for what comes behind the case that it died of; behind
    /// one that hangs there is none, since waiting takes too long.
    fn job(
        &self,
        ranks: u32,
        cases: &[Case],
        validate: bool,
        done: &mut dyn FnMut(usize, Outcome),
    ) {
        let mut from = 0;
        while from < cases.len() {
            // Cases are answered in order.
            let mut next = from;
            let ended = self.answers(ranks, &cases[from..], validate, &mut |answer| {
                next = from + answer.index + 1;
                done(next - 1, answer.outcome);
            });
            if next >= cases.len() {
                return;
            }
            let lost = |why: &dyn Display| Err(Refusal::Lost(why.to_string()));
            match ended {
                Ok(why) => done(next, lost(&why)),
                Err(why) => return (next..cases.len()).for_each(|at| done(at, lost(&why))),
            }
            from = next + 1;
        }
    }

    /// The answers as they come, and then how the job ended.
    fn answers(
        &self,
        ranks: u32,
        cases: &[Case],
        validate: bool,
        done: &mut dyn FnMut(Answer),
    ) -> io::Result<String> {
        let plan: String = cases.iter().map(|case| format!("{case}\n")).collect();
        fs::write(self.folder.path("plan"), plan)?;
        let mut command = self.mpiexec(ranks, cases.first().map_or(1, |case| case.hosts));
        command.arg(self.folder.path("plan")).args(validate.then_some("--validate"));
        let errors = self.folder.path("errors");
        command.stderr(File::create(&errors)?);
        // Whatever else it prints is no answer.
        let status = run(command, |line| line.parse().into_iter().for_each(&mut *done))?;
        let errors = fs::read_to_string(&errors).unwrap_or_default();
        let last =
            errors.lines().map(str::trim).rfind(|line| line.contains(' ')).unwrap_or_default();
        Ok(format!("mpiexec ended with {status}: {last}"))
    }
}

impl Contender for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    /// No other library works between unlike machines, or measures the machine's limits.
    fn takes(&self, case: &Case) -> bool {
        let like = case.arch.iter().all(|arch| arch == "native");
        match case.bench {
            Bench::TypeSend => false,
            bench if limits::has(bench) => false,
            // From release 5 on its windows take shared memory whatever they are told.
            _ if case.hosts > 1 && self.open_mpi().is_some_and(|major| major >= 5) => false,
            Bench::Pack | Bench::Unpack => like || case.arch == ["native", "external32"],
            _ => like,
        }
    }

    fn measure(
        &mut self,
        cases: &[Case],
        validate: bool,
        done: &mut dyn FnMut(usize, Outcome),
    ) -> Result<(), Failure> {
        let mut from = 0;
        // What a launch costs is measured from outside, and what memory it takes before anything else was done.
        let alone = |case: &Case| matches!(case.bench, Bench::Launch | Bench::Memory);
        let together = |a: &Case, b: &Case| {
            ranks(a) == ranks(b) && a.hosts == b.hosts && !alone(a) && !alone(b)
        };
        for cases in cases.chunk_by(together) {
            let case = &cases[0];
            match case.bench {
                Bench::Launch => done(from, self.launch(case)),
                _ => self.job(ranks(case), cases, validate, &mut |at, outcome| {
                    done(from + at, outcome);
                }),
            }
            from += cases.len();
        }
        Ok(())
    }
}

/// Ranks that a case takes: another would only wait, and that on the other core.
fn ranks(case: &Case) -> u32 {
    match case.bench {
        Bench::Pack | Bench::Unpack | Bench::Copy => 1,
        Bench::Commit | Bench::CommitReady | Bench::Define => 1,
        _ => case.ranks,
    }
}

const OPEN_MPI: &str = "Open MPI";

/// A library's name and release, from its mpiexec's `--version`.
fn name(version: &str) -> Option<String> {
    let mut words = version.split_whitespace();
    if version.contains("HYDRA") {
        words.find(|&word| word == "Version:")?;
        return Some(format!("MPICH {}", words.next()?));
    }
    if ["Open MPI", "OpenRTE", "PRTE", "prte"].iter().any(|name| version.contains(name)) {
        let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        return Some(format!("{OPEN_MPI} {number}"));
    }
    None
}

/// Lets a command do its work, and tells each line that it prints. Silent for too long, it is ended.
fn run(mut command: Command, mut tell: impl FnMut(String)) -> io::Result<ExitStatus> {
    let mut job = Running(command.stdout(Stdio::piped()).spawn()?);
    let output = job.0.stdout.take().map(BufReader::new);
    let (sender, lines) = mpsc::channel();
    // Ends with the last rank; it isn't waited for, since a rank may outlive an mpiexec that was killed.
    thread::spawn(move || {
        for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => tell(line),
            Err(RecvTimeoutError::Disconnected) => return job.end(),
            Err(RecvTimeoutError::Timeout) => return Err(hangs()),
        }
    }
}

fn hangs() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {} s", PATIENCE.as_secs()))
}

/// A process that ends with its owner.
struct Running(Child);

impl Running {
    /// Waits until it ends, which it does soon after its last output.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            // Launches, which are timed, take a hundred times as long at least.
            thread::sleep(Duration::from_micros(100));
        }
        Err(hangs())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder that goes with its owner.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, PeersError> {
        scratch::named("peers", |path| fs::create_dir(path))
            .map(Folder)
            .map_err(PeersError::Storage)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), PeersError> {
        let path = self.path(file);
        fs::write(&path, text).map_err(|error| PeersError::Storage(scratch::of(&path, &error)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_say_who_they_are() {
        for (version, expected) in [
            ("HYDRA build details:\n    Version:   5.0.2\n    Release", Some("MPICH 5.0.2")),
            ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to", Some("Open MPI 5.0.11")),
            ("mpiexec (OpenRTE) 4.1.4\n", Some("Open MPI 4.1.4")),
            ("srun 23.1", None),
            ("", None),
        ] {
            assert_eq!(name(version).as_deref(), expected);
        }
    }

    #[test]
    fn an_open_mpi_has_a_major_number() -> Result<(), PeersError> {
        for (name, major) in [
            ("Open MPI 4.1.4", Some(4)),
            ("Open MPI 5.0.11", Some(5)),
            ("Open MPI 50.1", Some(50)),
            ("MPICH 5.0.2", None),
        ] {
            let (name, bin, folder) = (name.to_owned(), PathBuf::new(), Folder::new()?);
            let peer = Peer { name, bin, folder };
            assert_eq!(peer.open_mpi(), major, "{}", peer.name);
            let hosts = Case { hosts: 2, ..Case::default() };
            assert_eq!(peer.takes(&hosts), major.is_none_or(|major| major < 5), "{}", peer.name);
        }
        Ok(())
    }

    #[test]
    fn what_no_other_library_does_is_not_asked_of_one() -> Result<(), PeersError> {
        let name = "MPICH 0".to_owned();
        let peer = Peer { name, bin: PathBuf::new(), folder: Folder::new()? };
        for (line, takes) in [
            ("bench=put_latency", true),
            ("bench=put_latency arch=native,s390x", false),
            ("bench=pack arch=native,external32", true),
            ("bench=copy arch=native,external32", false),
            ("bench=type_send", false),
            ("bench=memcpy", false),
            ("bench=launch ranks=32", true),
            ("bench=put_latency hosts=2", true),
        ] {
            assert_eq!(line.parse().map(|case| peer.takes(&case)), Ok(takes), "{line}");
        }
        Ok(())
    }
}
