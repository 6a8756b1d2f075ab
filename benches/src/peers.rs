//! Peers: MPI libraries as contenders. Their `mpicc` builds the program in `benches/peers`, and
//! their `mpiexec` runs it. The C interface of this project is one of them.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, unbounded};
use longshore::job::Routes;

use crate::case::{Bench, Case};
use crate::row::{Answer, Outcome, Refusal, Sample};
use crate::run::Contender;
use crate::{Failure, limits, scratch};

/// The program's sources. They are part of the command, so that it can build them without a clone
/// of the project.
const SOURCES: [(&str, &str); 8] = [
    ("peer.h", include_str!("../peers/peer.h")),
    ("main.c", include_str!("../peers/main.c")),
    ("outcome.c", include_str!("../peers/outcome.c")),
    ("windows.c", include_str!("../peers/windows.c")),
    ("messages.c", include_str!("../peers/messages.c")),
    ("types.c", include_str!("../peers/types.c")),
    ("notation.h", include_str!("../peers/notation.h")),
    ("basics.h", include_str!("../peers/basics.h")),
];

/// A library without an answer for this time hangs. It exceeds the 60 s after which ranks that hang
/// in a case end themselves.
const PATIENCE: Duration = Duration::from_secs(75);

/// An MPI library, and the program built with it.
#[derive(Debug)]
pub struct Peer {
    /// The library's name and version.
    name: String,
    bin: PathBuf,
    folder: Folder,
}

/// The reason why peers can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeersError {
    /// `LONGSHORE_PEERS` isn't set.
    #[error(
        "LONGSHORE_PEERS isn't set. It lists folders that contain mpicc and mpiexec, separated by \
         colons. `export LONGSHORE_PEERS=$(ci/peers)` installs the newest MPICH and Open MPI beside \
         this project, which needs python3 with venv, and the network. `LONGSHORE_PEERS=/usr/bin` \
         uses the system's (Debian: apt install mpich, or libopenmpi-dev and openmpi-bin)"
    )]
    Unset,
    /// A listed folder has no usable library.
    #[error("LONGSHORE_PEERS has {}: {problem}", bin.display())]
    Unusable {
        /// The folder.
        bin: PathBuf,
        /// The attempt that failed, and its error.
        problem: String,
    },
    /// The program's files can't be written. The error contains the path.
    #[error("{0}")]
    Storage(io::Error),
}

/// Finds the libraries in the folders that the environment variable `LONGSHORE_PEERS` lists, and
/// builds the program with each.
///
/// # Errors
/// An empty list, or a library that can't build or start the program. The compiler writes its
/// messages to standard error.
pub fn find() -> Result<Vec<Peer>, PeersError> {
    let folders = std::env::var_os("LONGSHORE_PEERS").unwrap_or_default();
    let mut peers: Vec<Peer> = Vec::new();
    for bin in std::env::split_paths(&folders).filter(|bin| !bin.as_os_str().is_empty()) {
        // mpicc runs in another folder.
        let bin = std::path::absolute(&bin).unwrap_or(bin);
        let peer = Peer::build(Folder::new()?, &bin)?;
        // The report can't tell apart two builds of one release.
        if let Some(other) = peers.iter().find(|other| other.name == peer.name) {
            let problem = format!("{} is also in {}", peer.name, other.bin.display());
            return Err(PeersError::Unusable { bin, problem });
        }
        peers.push(peer);
    }
    if peers.is_empty() { Err(PeersError::Unset) } else { Ok(peers) }
}

impl Peer {
    /// The C interface of this project. `install` lays it out under a folder.
    ///
    /// # Errors
    /// Those of `install`, or of a compiler that can't build the program.
    pub fn of_c(install: impl FnOnce(&Path) -> io::Result<()>) -> Result<Peer, PeersError> {
        let folder = Folder::new()?;
        let prefix = folder.path("prefix");
        let made = fs::create_dir(&prefix).map_err(|error| scratch::of(&prefix, &error));
        made.and_then(|()| install(&prefix)).map_err(PeersError::Storage)?;
        Peer::build(folder, &prefix.join("bin"))
    }

    fn build(folder: Folder, bin: &Path) -> Result<Peer, PeersError> {
        let unusable = |problem: String| PeersError::Unusable { bin: bin.to_owned(), problem };
        let mut mpiexec = Command::new(bin.join("mpiexec"));
        mpiexec.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
        let mut version = String::new();
        run(mpiexec, |line| version += &(line + "\n"))
            .map_err(|error| unusable(format!("mpiexec --version: {error}")))?;
        let name = name(&version).ok_or_else(|| {
            unusable("mpiexec is none of MPICH, Open MPI and Longshore".to_owned())
        })?;
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
        match peer.try_job() {
            Ok(()) => Ok(peer),
            Err(problem) => Err(unusable(format!("mpiexec can't start our program: {problem}"))),
        }
    }

    /// Runs a job without work, to see whether the library works. The error contains the job's
    /// standard error.
    fn try_job(&self) -> Result<(), String> {
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

    /// The major number of the release if the library is Open MPI, otherwise `None`.
    fn open_mpi(&self) -> Option<u32> {
        let release = self.name.strip_prefix(OPEN_MPI)?;
        Some(release.trim().split('.').next()?.parse().unwrap_or_default())
    }

    /// Whether this is the C interface of this project.
    fn is_own(&self) -> bool {
        self.name == OWN
    }

    fn mpiexec(&self, ranks: u32, hosts: u32) -> Command {
        let mut command = Command::new(self.bin.join("mpiexec"));
        let is_open_mpi = self.open_mpi().is_some();
        if is_open_mpi {
            // There may be more ranks than cores.
            command.args(["--allow-run-as-root", "--oversubscribe"]);
        }
        // The program pins its ranks itself.
        if is_open_mpi || self.is_own() {
            command.args(["--bind-to", "none"]);
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

    /// Measures the time from launch to exit of jobs without work.
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

    /// Runs a job for all cases. If the job dies, another job continues after the case that killed
    /// it. If the job hangs, the remaining cases are lost, because waiting for another hang takes
    /// too long.
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

    /// Runs one job and calls `done` with each answer. Returns a description of the job's end.
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
        // Other lines than answers are ignored.
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

    /// No peer works between unlike machines, and none measures the machine's limits.
    fn takes(&self, case: &Case) -> bool {
        let like = case.arch.iter().all(|arch| arch == "native");
        match case.bench {
            Bench::TypeSend => false,
            bench if limits::has(bench) => false,
            // The C interface chooses its routes and representations by itself.
            _ if self.is_own() => like && case.hosts == 1 && case.route == Routes::Best,
            // Since release 5, Open MPI's windows use shared memory whatever its settings are.
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
        // Launch and memory need a fresh job: one is timed from outside, the other is affected by
        // earlier cases.
        let fresh = |case: &Case| matches!(case.bench, Bench::Launch | Bench::Memory);
        let together = |a: &Case, b: &Case| {
            ranks(a) == ranks(b) && a.hosts == b.hosts && !fresh(a) && !fresh(b)
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

/// The ranks that a case needs. A rank without work would only occupy the other core.
fn ranks(case: &Case) -> u32 {
    match case.bench {
        Bench::Pack | Bench::Unpack | Bench::Copy => 1,
        Bench::Commit | Bench::Define => 1,
        _ => case.ranks,
    }
}

const OPEN_MPI: &str = "Open MPI";
const OWN: &str = "Longshore C";

/// A library's name and release, from the output of `mpiexec --version`.
fn name(version: &str) -> Option<String> {
    let mut words = version.split_whitespace();
    if version.starts_with("longshore ") {
        return Some(OWN.to_owned());
    }
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

/// Runs a command, and calls `line` with each line that it prints. Ends the command if it prints
/// nothing for too long.
fn run(mut command: Command, mut line: impl FnMut(String)) -> io::Result<ExitStatus> {
    let mut job = Running(command.stdout(Stdio::piped()).spawn()?);
    let output = job.0.stdout.take().map(BufReader::new);
    let (sender, lines) = unbounded();
    // Ends with the last rank. It isn't joined, because a rank may outlive a killed mpiexec.
    thread::spawn(move || {
        for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(text) => line(text),
            Err(RecvTimeoutError::Disconnected) => return job.end(),
            Err(RecvTimeoutError::Timeout) => return Err(hangs()),
        }
    }
}

fn hangs() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {} s", PATIENCE.as_secs()))
}

/// A process that is killed when its owner is dropped.
struct Running(Child);

impl Running {
    /// Waits for the process, which ends soon after its last output.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            // Short enough for timed launches, which take at least a hundred times as long.
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

/// A folder that is removed when its owner is dropped.
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
    fn libraries_are_recognised_by_the_version_of_mpiexec() {
        for (version, expected) in [
            ("HYDRA build details:\n    Version:   5.0.2\n    Release", Some("MPICH 5.0.2")),
            ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to", Some("Open MPI 5.0.11")),
            ("mpiexec (OpenRTE) 4.1.4\n", Some("Open MPI 4.1.4")),
            ("longshore 0.1.0\n", Some("Longshore C")),
            ("srun 23.1", None),
            ("", None),
        ] {
            assert_eq!(name(version).as_deref(), expected);
        }
    }

    #[test]
    fn the_release_of_open_mpi_decides_on_hosts() -> Result<(), PeersError> {
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
    fn peers_take_only_cases_that_mpi_libraries_can_do() -> Result<(), PeersError> {
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
