//! The machine's limits, independent of any library: copies on one core, a cache line between two
//! cores, and TCP and libfabric over the loopback interface.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use multiversion::multiversion;

use crate::case::{Bench, Case};
use crate::datatypes::{Memory, times};
use crate::row::{Outcome, Refusal, Sample};
use crate::{Failure, cores, pin};

/// Whether a bench measures a limit.
pub fn has(bench: Bench) -> bool {
    matches!(
        bench,
        Bench::Memcpy
            | Bench::ByteSwap
            | Bench::CacheLine
            | Bench::Tcp
            | Bench::Fabric
            | Bench::FabricBw
    )
}

/// Measures a case of a limit on the current core and, if the bench needs two, on the second core.
///
/// # Errors
/// An error of TCP or libfabric.
pub fn measure(case: &Case) -> Result<Outcome, Failure> {
    let needs_one_core = matches!(case.bench, Bench::Memcpy | Bench::ByteSwap);
    // On one core, threads that wait for each other measure the scheduler's time slices.
    if !needs_one_core && cores().len() < 2 {
        return Ok(Err(Refusal::Unsupported("needs two cores".to_owned())));
    }
    let (took, line) = match case.bench {
        Bench::Memcpy => (copies(case, |from, to| to.copy_from_slice(from))?, [0.0; 2]),
        Bench::ByteSwap => (copies(case, swap)?, [0.0; 2]),
        Bench::CacheLine => {
            let took = trips(case.calls, case.rounds)?;
            let line = 1e3 * lowest(&took);
            (took, [line; 2])
        }
        Bench::Tcp => {
            let before = line()?;
            let took = messages(case)?;
            (took, [before, line()?])
        }
        Bench::Fabric | Bench::FabricBw => {
            let before = line()?;
            let took = crate::fabric::writes(case)?;
            (took, [before, line()?])
        }
        _ => return Ok(Err(Refusal::Unsupported("not a limit of the machine".to_owned()))),
    };
    let sample = Sample::of(took, line, false);
    Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
}

/// Measures a copy from one memory to another.
fn copies(case: &Case, copy: impl Fn(&[u8], &mut [u8])) -> Result<Vec<f64>, Failure> {
    let bytes = i64::try_from(case.bytes)?;
    Memory::sized(0..bytes, 0..bytes)?.rounds(case, |from, to| {
        copy(from, to);
        Ok(())
    })
}

/// Copies doubles and reverses the bytes of each, with wide vectors if the processor has them.
#[multiversion(targets("x86_64+avx2", "x86_64+ssse3"))]
pub(crate) fn swap(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(8).zip(from.chunks_exact(8)) {
        let mut double = [0; 8];
        double.copy_from_slice(from);
        to.copy_from_slice(&u64::from_ne_bytes(double).swap_bytes().to_ne_bytes());
    }
}

/// The nanoseconds that a cache line takes from core to core.
fn line() -> Result<f64, Failure> {
    Ok(1e3 * lowest(&trips(30, 10)?))
}

fn lowest(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::MAX, f64::min)
}

/// Measures half round trips of a cache line between the first two cores, in microseconds.
fn trips(calls: u32, rounds: u32) -> Result<Vec<f64>, Failure> {
    let number = Arc::new(CachePadded::new(AtomicU32::new(0)));
    let other = number.clone();
    let answers = thread::spawn(move || {
        pin(1);
        pass(&other, 0, calls * rounds, false)
    });
    let took = (0..rounds).map(|round| {
        let start = Instant::now();
        pass(&number, 2 * calls * round, calls, true)?;
        Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * calls))
    });
    let took = took.collect();
    answers.join().map_err(|_| "the other core's thread panicked")??;
    took
}

/// Passes a number to another core and back `times` times. Each side increments it: the first side
/// makes it odd, the other side makes it even again.
///
/// # Errors
/// No answer within ten seconds.
pub(crate) fn pass(number: &AtomicU32, from: u32, times: u32, first: bool) -> Result<(), Failure> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let wait = |value| {
        let came = || {
            (0..1 << 16).any(|_| {
                let came = number.load(Ordering::Acquire) == value;
                if !came {
                    std::hint::spin_loop();
                }
                came
            })
        };
        // The clock is read only after many tries: the number usually arrives earlier.
        let mut since = None;
        while !came() {
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err("a cache line doesn't come back from the other core");
            }
        }
        Ok(())
    };
    for at in (from..).step_by(2).take(times as usize) {
        if first {
            number.store(at + 1, Ordering::Release);
            wait(at + 2)?;
        } else {
            wait(at + 1)?;
            number.store(at + 2, Ordering::Release);
        }
    }
    Ok(())
}

/// Measures half round trips of messages over TCP between the first two cores.
fn messages(case: &Case) -> Result<Vec<f64>, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let mut bytes = vec![1; usize::try_from(case.bytes)?];
    let mut theirs = bytes.clone();
    let answers = thread::spawn(move || -> io::Result<()> {
        pin(1);
        // The loop ends when the other end is closed.
        while far.read_exact(&mut theirs).is_ok() {
            far.write_all(&theirs)?;
        }
        Ok(())
    });
    let took = times(case, |_| {
        near.write_all(&bytes)?;
        Ok(near.read_exact(&mut bytes)?)
    })?;
    drop(near);
    answers.join().map_err(|_| "the other core's thread panicked")??;
    Ok(took.into_iter().map(|trip| trip / 2.0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_measured() -> Result<(), Failure> {
        for bench in [Bench::Memcpy, Bench::ByteSwap, Bench::CacheLine, Bench::Tcp] {
            let case = Case { bench, bytes: 64, calls: 3, rounds: 2, ..Case::default() };
            let measured = measure(&case)?;
            if cores().len() < 2 && matches!(bench, Bench::CacheLine | Bench::Tcp) {
                assert_eq!(measured, Err(Refusal::Unsupported("needs two cores".to_owned())));
                continue;
            }
            let sample = measured.map_err(|refusal| refusal.to_string())?;
            assert!(sample.low > 0.0 && sample.low <= sample.high, "{bench}: {sample:?}");
        }
        Ok(())
    }

    #[test]
    fn a_swap_reverses_each_double() {
        let from: Vec<u8> = (0..16).collect();
        let mut to = [0; 16];
        swap(&from, &mut to);
        assert_eq!(to, [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]);
    }
}
