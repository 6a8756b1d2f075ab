//! Signals to the launcher and to the ranks.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};

use super::role;
use super::support::{self, await_waiting, run, start};

/// A script that reports SIGTERM. It is for jobs with `--on-death survive`: otherwise the first
/// rank to exit ends the others before their traps have run.
pub const REPORTS_TERM: &str =
    "trap 'echo got it; exit 4' TERM; echo waits >&2; while true; do sleep 0.01; done";

#[test]
fn signals_are_forwarded() {
    let mut run = start(&["-n", "2", "--on-death", "survive", "sh", "-c", REPORTS_TERM]);
    let _stderr = run.await_waiting(2);
    kill(run.pid(), Signal::SIGTERM).unwrap();
    let finished = run.finish();
    assert_eq!((finished.status, finished.lines()), (4, vec!["got it".to_owned(); 2]));
}

#[test]
fn ranks_block_no_signals() {
    // Without a shell in between, which could unblock inherited signals.
    let finished = run(&["-n", "1", "grep", "SigBlk", "/proc/self/status"]);
    let mask = finished.lines().concat();
    let digits = mask.trim_start_matches("SigBlk:").trim();
    assert_eq!((finished.status, u64::from_str_radix(digits, 16)), (0, Ok(0)), "{mask}");
}

#[test]
fn a_second_interrupt_kills() {
    let script = "trap 'echo waits >&2' INT; echo waits >&2; while true; do sleep 0.01; done";
    let mut run = start(&["-n", "2", "sh", "-c", script]);
    let mut stderr = run.await_waiting(2);
    let interrupt = |pid| kill(pid, Signal::SIGINT).unwrap();
    interrupt(run.pid());
    await_waiting(&mut stderr, 2);
    thread::sleep(Duration::from_millis(150)); // a second signal doesn't count if it comes sooner
    interrupt(run.pid());
    assert_eq!(run.finish().status, 137);
}

/// Starts ranks from a terminal whose session the launcher leads, as `ssh -t` does, and closes the
/// terminal.
#[test]
fn ranks_end_when_their_terminal_is_lost() {
    // No other process may inherit this end of the terminal.
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    grantpt(&master).and_then(|()| unlockpt(&master)).unwrap();
    let mut options = std::fs::File::options();
    let slave = options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
    let slave = slave.open(ptsname_r(&master).unwrap()).unwrap();
    let plain = ["sh", "-c", "echo waits >&2; sleep 60; true"].map(str::to_owned).to_vec();
    let words = [vec!["-n".to_owned(), "2".to_owned()], role("wait"), vec![":".to_owned()], plain];
    let mut command = Command::new("setsid");
    command.args(["--ctty", "env", "--default-signal", env!("CARGO_BIN_EXE_longshore"), "run"]);
    command.args(words.concat()).stdin(slave.try_clone().unwrap());
    let mut run = support::adopt(command.stdout(slave).stderr(Stdio::piped()));
    drop(command); // with its copies of the terminal's end
    let mut stderr = run.await_waiting(3);
    drop(master);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("ended by SIGHUP"), "{rest}");
    assert_eq!(run.finish().status, 129, "{rest}");
}
