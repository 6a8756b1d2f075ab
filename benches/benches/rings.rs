//! Latency and bandwidth of the rings in shared memory, between two threads on a core each: `cargo bench --bench rings`.
//!
//! Beside the latency stands that of a cache line that goes back and forth, measured just before: what waits for
//! another core can't be faster, and the distance between cores changes from run to run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, LinkError, Refused, Segment};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo test` runs benches as well: one short turn is enough then.
    let test = std::env::args().any(|arg| arg == "--test");
    let quick = test || !std::env::args().any(|arg| arg == "--bench");
    let rounds = if quick { 100 } else { 200_000 };
    println!(
        "{:>10} {:>14} {:>14} {:>14} {:>14}",
        "bytes", "half trip ns", "line ns", "frames/s", "GB/s"
    );
    let segment = Segment::create(2)?;
    let mut left = ShmLink::new(segment.as_rank(0)?)?;
    let mut right = ShmLink::new(segment.as_rank(1)?)?;
    let limit = left.frame_limit();
    for len in [0, 8, 40, 56, 64, 120, 128, 256, 1 << 10, 4 << 10, 16 << 10, limit] {
        let line = cache_line(rounds);
        let trip = ping_pong(&mut left, &mut right, len, rounds)?;
        let frames = (rounds * 4).min((2 << 30) / (len as u64 + 1) + 1);
        let time = stream(&mut left, &mut right, len, frames)?;
        let per_second = frames as f64 / time.as_secs_f64();
        let gigabytes = per_second * len as f64 / 1e9;
        println!("{len:>10} {trip:>14.0} {line:>14.0} {per_second:>14.3e} {gigabytes:>14.2}");
    }
    Ok(())
}

/// On the core of this number, if there is one.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    // Where it can't be pinned, the numbers are worse, not wrong.
    let _ = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
}

/// Runs both on a core each; what the first returns.
fn pair<T: Send, U: Send>(
    first: impl FnOnce() -> T + Send,
    second: impl FnOnce() -> U + Send,
) -> (T, U) {
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            pin(1);
            second()
        });
        let first = scope.spawn(|| {
            pin(0);
            first()
        });
        (first.join().expect("no panic"), second.join().expect("no panic"))
    })
}

/// Nanoseconds for a cache line to cross, the lowest of twenty runs.
fn cache_line(rounds: u64) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    let wait = |value| {
        while line.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    let rounds = rounds / 20;
    let mut lowest = f64::MAX;
    for _ in 0..20 {
        line.0.store(0, Ordering::Relaxed);
        let (time, ()) = pair(
            || {
                let start = Instant::now();
                for round in 0..rounds {
                    line.0.store(2 * round + 1, Ordering::Release);
                    wait(2 * round + 2);
                }
                start.elapsed()
            },
            || {
                for round in 0..rounds {
                    wait(2 * round + 1);
                    line.0.store(2 * round + 2, Ordering::Release);
                }
            },
        );
        lowest = lowest.min(time.as_nanos() as f64 / rounds as f64 / 2.0);
    }
    lowest
}

fn send(link: &mut ShmLink, peer: u32, len: usize) -> Result<(), LinkError> {
    loop {
        match link.reserve(peer, len) {
            Ok(mut frame) => {
                frame.fill(1);
                frame.commit();
                return Ok(());
            }
            Err(Refused::WouldBlock) => std::hint::spin_loop(),
            Err(Refused::Failed(error)) => return Err(error),
        }
    }
}

/// Waits for a frame and copies it out.
fn receive(link: &mut ShmLink, to: &mut [u8]) -> Result<(), LinkError> {
    loop {
        if let Some(frame) = link.receive()? {
            to[..frame.len()].copy_from_slice(&frame);
            return Ok(());
        }
        std::hint::spin_loop();
    }
}

/// Nanoseconds of half a round trip, the lowest of twenty runs.
fn ping_pong(
    left: &mut ShmLink,
    right: &mut ShmLink,
    len: usize,
    rounds: u64,
) -> Result<f64, LinkError> {
    let rounds = rounds / 20;
    let mut lowest = f64::MAX;
    for _ in 0..20 {
        let (time, answers) = pair(
            || {
                let mut bytes = vec![0; len];
                let start = Instant::now();
                for _ in 0..rounds {
                    send(left, 1, len)?;
                    receive(left, &mut bytes)?;
                }
                Ok::<_, LinkError>(start.elapsed())
            },
            || {
                let mut bytes = vec![0; len];
                for _ in 0..rounds {
                    receive(right, &mut bytes)?;
                    send(right, 0, len)?;
                }
                Ok::<_, LinkError>(())
            },
        );
        answers?;
        lowest = lowest.min(time?.as_nanos() as f64 / rounds as f64 / 2.0);
    }
    Ok(lowest)
}

/// How long many frames in one direction take, written and copied out.
fn stream(
    left: &mut ShmLink,
    right: &mut ShmLink,
    len: usize,
    frames: u64,
) -> Result<Duration, LinkError> {
    let (sent, time) = pair(
        || {
            for _ in 0..frames {
                send(left, 1, len)?;
            }
            Ok::<_, LinkError>(())
        },
        || {
            let mut bytes = vec![0; len];
            let start = Instant::now();
            for _ in 0..frames {
                receive(right, &mut bytes)?;
            }
            Ok::<_, LinkError>(start.elapsed())
        },
    );
    sent?;
    time
}
