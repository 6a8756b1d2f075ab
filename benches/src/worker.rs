//! The same work on MPICH and Open MPI, where they are: found by their `mpicc`, built and run.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::rma::Row;

/// An MPI library.
#[derive(Debug)]
pub struct Peer {
    /// The name it gives itself.
    pub name: String,
    bin: PathBuf,
    program: PathBuf,
}

/// The libraries in the folders that `LONGSHORE_PEERS` lists, as PATH does, and `benches/peers/SOURCE` built with each; a
/// folder holds `mpicc` and `mpiexec`. `ci/peers` installs the newest and prints what to set.
///
/// # Errors
/// A library that is listed and doesn't build the program.
pub fn find(source: &str) -> Result<Vec<Peer>, Box<dyn Error>> {
    let folders = std::env::var_os("LONGSHORE_PEERS").unwrap_or_default();
    let bins = std::env::split_paths(&folders).filter(|bin| !bin.as_os_str().is_empty());
    bins.map(|bin| Peer::build(&bin, source)).collect()
}

impl Peer {
    /// Builds a program of ours with the library in `bin`.
    fn build(bin: &Path, source: &str) -> Result<Peer, Box<dyn Error>> {
        let mpiexec = bin.join("mpiexec");
        let version = Command::new(&mpiexec).arg("--version").output();
        let version = version.map_err(|error| format!("{}: {error}", mpiexec.display()))?.stdout;
        let version = String::from_utf8_lossy(&version);
        let open = version.contains("Open MPI") || version.contains("PRTE");
        let name = if open { "Open MPI" } else { "MPICH" };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(source);
        let file = format!("longshore-{}-{source}-{}.out", &name[..4], std::process::id());
        let program = std::env::temp_dir().join(file);
        let mpicc = Command::new(bin.join("mpicc"))
            .arg("-O2")
            .arg(path)
            .arg("-o")
            .arg(&program)
            .status()?;
        if !mpicc.success() {
            return Err(format!("{}: mpicc failed", bin.display()).into());
        }
        Ok(Peer { name: name.to_owned(), bin: bin.to_owned(), program })
    }

    /// Starts it as one process that answers requests.
    ///
    /// # Errors
    /// A program that can't be started.
    pub fn start(&self) -> Result<Worker, Box<dyn Error>> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        Ok(Worker { child, input, output })
    }

    /// Runs it on two ranks: its rows, as far as it comes in 40 s. MPICH 5.0.2 waits for ever now and then.
    ///
    /// # Errors
    /// A program that can't be run, or has no row.
    pub fn run(&self) -> Result<Vec<Row>, Box<dyn Error>> {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "40"]).arg(self.bin.join("mpiexec"));
        if self.name == "Open MPI" {
            command.args(["--allow-run-as-root", "--bind-to", "none"]);
        }
        let output = command.args(["-n", "2"]).arg(&self.program).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rows: Vec<Row> = text.lines().filter_map(Row::parse).collect();
        if rows.is_empty() {
            return Err(format!("{}: {}", self.name, output.status).into());
        }
        Ok(rows)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.program);
    }
}

/// A peer's program, running.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// The answer to a request, a line each; none from a process that died of it.
    pub fn ask(&mut self, request: &str) -> Option<String> {
        writeln!(self.input, "{request}").ok()?;
        let mut answer = String::new();
        match self.output.read_line(&mut answer) {
            Ok(1..) => Some(answer.trim().to_owned()),
            _ => None,
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
