//! The same work on MPICH and Open MPI, where they are: found by their `mpicc`, built and run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI library.
#[derive(Debug)]
pub struct Peer {
    /// The name it gives itself.
    pub name: String,
    bin: PathBuf,
    program: PathBuf,
}

/// The libraries in the folders that `LONGSHORE_PEERS` lists, as PATH does; each holds `mpicc` and `mpiexec`. `ci/peers`
/// installs the newest and prints what to set.
pub fn find() -> Vec<Peer> {
    let folders = std::env::var_os("LONGSHORE_PEERS").unwrap_or_default();
    std::env::split_paths(&folders).filter_map(|bin| Peer::build(&bin).ok()).collect()
}

impl Peer {
    /// Builds the peers' program with the library in `bin`.
    fn build(bin: &Path) -> Result<Peer, Box<dyn std::error::Error>> {
        let version = Command::new(bin.join("mpiexec")).arg("--version").output()?.stdout;
        let version = String::from_utf8_lossy(&version);
        let name = if version.contains("Open MPI") || version.contains("PRTE") {
            "Open MPI"
        } else {
            "MPICH"
        };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/rma.c");
        let file = format!("longshore-peer-{}-{}", name.replace(' ', "-"), std::process::id());
        let program = std::env::temp_dir().join(file);
        let built = Command::new(bin.join("mpicc"))
            .arg("-O2")
            .arg(source)
            .arg("-o")
            .arg(&program)
            .status()?;
        if !built.success() {
            return Err(format!("{}: mpicc failed", bin.display()).into());
        }
        Ok(Peer { name: name.to_owned(), bin: bin.to_owned(), program })
    }

    /// Runs it on two ranks: rows by name, in microseconds.
    ///
    /// # Errors
    /// A program that can't be run, or fails.
    pub fn run(&self) -> Result<Vec<(String, f64)>, Box<dyn std::error::Error>> {
        let mut command = Command::new(self.bin.join("mpiexec"));
        if self.name == "Open MPI" {
            command.args(["--allow-run-as-root", "--bind-to", "none"]);
        }
        let output = command.args(["-n", "2"]).arg(&self.program).output()?;
        if !output.status.success() {
            return Err(format!("{}: {}", self.name, output.status).into());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = text.lines().filter_map(|line| line.split_once('\t'));
        Ok(rows.filter_map(|(name, time)| Some((name.to_owned(), time.parse().ok()?))).collect())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.program);
    }
}
