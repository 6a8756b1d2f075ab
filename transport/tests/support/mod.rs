//! Shared parts of the tests: waiting, test patterns, and jobs of real processes.
#![allow(dead_code)] // Each test binary uses only a part.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longshore_transport::{Cause, Doorbell, Link, RankState, Segment};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// The number of random cases: LONGSHORE_TEST_CASES, or the default.
pub fn cases(default: u64) -> u64 {
    std::env::var("LONGSHORE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Waits until `step` has a result, as the runtime does: spins a little, then sleeps on the link's
/// doorbell.
pub fn wait<L: Link + ?Sized, T>(link: &mut L, step: impl FnMut(&mut L) -> Option<T>) -> T {
    let doorbell = link.doorbell();
    wait_on(&*doorbell, link, step)
}

/// Waits until `step` has a result, with the given doorbell.
pub fn wait_on<L: ?Sized, T>(
    doorbell: &dyn Doorbell,
    link: &mut L,
    mut step: impl FnMut(&mut L) -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        for _ in 0..20 {
            if let Some(result) = step(link) {
                return result;
            }
            doorbell.pause();
        }
        doorbell.arm();
        let result = step(link);
        if result.is_none() {
            doorbell.sleep(Duration::from_millis(100));
        }
        doorbell.disarm();
        if let Some(result) = result {
            return result;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "nothing happens");
    }
}

/// Fills `bytes` with a pattern that `seed` determines.
pub fn fill(bytes: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        chunk.copy_from_slice(&(state ^ state >> 29).to_le_bytes()[..chunk.len()]);
    }
}

/// Whether `bytes` hold the pattern of `seed`.
pub fn is_filled(bytes: &[u8], seed: u64) -> bool {
    let mut expected = vec![0; bytes.len()];
    fill(&mut expected, seed);
    expected == bytes
}

/// A job of processes: each rank runs this test binary again, with its test and rank in the
/// environment.
pub struct Processes {
    pub segment: Segment,
    pub children: Vec<Child>,
}

impl Processes {
    /// Starts a process for each rank of `segment`, which runs the test `test` with `scenario`.
    ///
    /// LONGSHORE_FOREIGN may list builds of this test for other architectures, separated by `;`,
    /// each after its emulator if it needs one. Every other rank then runs one of those.
    pub fn start(segment: Segment, test: &str, scenario: &str) -> Self {
        fcntl(segment.as_fd(), FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let foreign = std::env::var("LONGSHORE_FOREIGN").unwrap_or_default();
        let foreign: Vec<_> = foreign.split(';').filter(|command| !command.is_empty()).collect();
        let native = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let start = |rank: u32| {
            let command = match rank as usize {
                rank if rank % 2 == 1 && !foreign.is_empty() => foreign[rank / 2 % foreign.len()],
                _ => &native,
            };
            let mut words = command.split_whitespace();
            Command::new(words.next().unwrap())
                .args(words)
                .args(["--exact", test, "--nocapture", "--include-ignored"])
                .env("LONGSHORE_TEST_RANK", rank.to_string())
                .env("LONGSHORE_TEST_FD", segment.as_fd().as_raw_fd().to_string())
                .env("LONGSHORE_TEST_SCENARIO", scenario)
                .stdout(Stdio::null()) // It would look like this test's own output.
                .spawn()
                .unwrap()
        };
        let children = (0..segment.size()).map(start).collect();
        Self { segment, children }
    }

    /// Kills a rank, and marks it dead as the launcher would.
    pub fn kill(&mut self, rank: u32) {
        let child = &mut self.children[rank as usize];
        child.kill().unwrap();
        child.wait().unwrap();
        self.segment.mark(rank, RankState::Dead(Cause::Signal(9)));
    }

    /// Waits for the ranks to exit, and checks that they succeeded.
    pub fn finish(&mut self, ranks: impl IntoIterator<Item = u32>) {
        for rank in ranks {
            let status = self.children[rank as usize].wait().unwrap();
            assert!(status.success(), "rank {rank}: {status}");
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The segment and the scenario of a process that `Processes` started; `None` in any other process.
#[allow(unsafe_code)]
pub fn child() -> Option<(Segment, String)> {
    let rank = std::env::var("LONGSHORE_TEST_RANK").ok()?.parse().unwrap();
    let fd = std::env::var("LONGSHORE_TEST_FD").unwrap().parse().unwrap();
    // SAFETY: the parent passed the descriptor to this process, in which nobody else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    Some((Segment::attach(fd, rank).unwrap(), std::env::var("LONGSHORE_TEST_SCENARIO").unwrap()))
}
