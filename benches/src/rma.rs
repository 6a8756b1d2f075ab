//! One-sided operations between two pinned ranks, as rows that `benches/peers/rma.c` has as well.

use std::time::{Duration, Instant};

use longshore::{Assert, Info, LockType, Op, Rank, Result, Window};

/// Times of a row are medians over so many rounds,
const ROUNDS: usize = 41;
/// each of so many calls.
const CALLS: usize = 2000;
/// Bytes of the window, and of the longest operation.
const MOST: usize = 1 << 20;

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was called, as the peers' program names it.
    pub name: &'static str,
    /// The median time of a call, in microseconds.
    pub micros: f64,
}

/// Measures on the job's first two ranks, which it pins to a core each. Collective; every rank has its own view.
///
/// # Errors
/// What the communication meets.
pub fn measure(rank: &Rank) -> Result<Vec<Row>> {
    let world = rank.world();
    pin(world.rank());
    let other = (world.rank() + 1) % world.size();
    let double = rank.type_of::<f64>()?;
    let value = [1.5_f64];
    let mut window = Window::allocate(world, MOST as i64, double.extent(), &Info::default())?;
    let mut rows = window.fences(|chain| {
        let fence = rounds(|| {
            let start = Instant::now();
            for _ in 0..CALLS {
                chain.epoch(|_| Ok(()))?;
            }
            Ok(start.elapsed())
        })?;
        let put_and_fence = rounds(|| {
            let start = Instant::now();
            for call in 0..CALLS {
                chain.epoch(|epoch| epoch.put(&value, other, call as i64 % 512, 1, &double))?;
            }
            Ok(start.elapsed())
        })?;
        let put = rounds(|| {
            chain.epoch(|epoch| {
                let start = Instant::now();
                for call in 0..CALLS {
                    epoch.put(&value, other, call as i64 % 512, 1, &double)?;
                }
                Ok(start.elapsed())
            })
        })?;
        Ok(vec![
            Row { name: "fence", micros: fence },
            Row { name: "put8+fence", micros: put_and_fence },
            Row { name: "put8", micros: put },
        ])
    })?;
    rows.extend(accumulates(rank, &mut window)?);
    rows.extend(synchronisation(rank, &window)?);
    rows.push(computing(rank)?);
    Ok(rows)
}

/// Passive target and post, start, complete, wait.
fn synchronisation(rank: &Rank, window: &Window) -> Result<Vec<Row>> {
    let world = rank.world();
    let (other, double) = (1 - world.rank(), rank.type_of::<f64>()?);
    let (value, mut got, mut rows) = ([1.5f64], [0.0f64], Vec::new());
    let mut row = |name, round: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        let micros = rounds(|| {
            let start = Instant::now();
            round()?;
            Ok(start.elapsed())
        })?;
        rows.push(Row { name, micros });
        Ok(())
    };
    if world.rank() == 0 {
        window.lock_all(|epoch| {
            row("put8+flush", &mut || {
                for call in 0..CALLS as i64 {
                    epoch.flush(other, |epoch| epoch.put(&value, other, call % 512, 1, &double))?;
                }
                Ok(())
            })?;
            row("get8+flush", &mut || {
                for call in 0..CALLS as i64 {
                    epoch
                        .flush(other, |epoch| epoch.get(&mut got, other, call % 512, 1, &double))?;
                }
                Ok(())
            })
        })?;
        for (name, lock_type) in [
            ("lock+put8+unlock", LockType::Exclusive),
            ("lock+put8+unlock, shared", LockType::Shared),
        ] {
            row(name, &mut || {
                for call in 0..CALLS as i64 {
                    window.lock(other, lock_type, |epoch| {
                        epoch.put(&value, other, call % 512, 1, &double)
                    })?;
                }
                Ok(())
            })?;
        }
    }
    world.barrier()?;
    let both = world.group().incl(&[other])?;
    row("post+start+put8+complete+wait", &mut || {
        for call in 0..CALLS as i64 {
            window.post(&both, Assert::NONE)?;
            window.start(&both, Assert::NONE, |epoch| {
                epoch.put(&value, other, call % 512, 1, &double)
            })?;
            window.wait()?;
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Put and flush, by message, to a rank that computes and calls nothing.
fn computing(rank: &Rank) -> Result<Row> {
    const COMPUTES: Duration = Duration::from_millis(200);
    let world = rank.world();
    let (double, value) = (rank.type_of::<f64>()?, [1.5f64]);
    let window = Window::create(world, vec![0.0f64; 512], 8, &Info::default())?;
    let mut took = Vec::new();
    for call in 0..5 {
        world.barrier()?;
        let start = Instant::now();
        if world.rank() == 0 {
            std::thread::sleep(COMPUTES / 20);
            window.lock_all(|epoch| {
                epoch.flush(1, |_| Ok(()))?;
                let start = Instant::now();
                epoch.flush(1, |epoch| epoch.put(&value, 1, call, 1, &double))?;
                took.push(start.elapsed());
                Ok(())
            })?;
        } else {
            while start.elapsed() < COMPUTES {
                std::hint::spin_loop();
            }
        }
    }
    world.barrier()?;
    window.free()?;
    took.sort_unstable();
    let micros = took.get(2).map_or(0.0, |median| median.as_secs_f64() * 1e6);
    Ok(Row { name: "put8+flush, computing target", micros })
}

/// Accumulates of rank 0 at rank 1, which waits meanwhile, each done before the next.
fn accumulates(rank: &Rank, window: &mut Window) -> Result<Vec<Row>> {
    let world = rank.world();
    let double = rank.type_of::<f64>()?;
    let operands = vec![0.0f64; MOST / 8];
    let mut rows = Vec::new();
    if world.rank() == 0 {
        window.lock_all(|epoch| {
            let micros = rounds_of(CALLS, || {
                let start = Instant::now();
                for _ in 0..CALLS {
                    epoch.fetch_and_op(1i64, 1, 0, Op::Sum)?.wait()?;
                }
                Ok(start.elapsed())
            })?;
            rows.push(Row { name: "fetch_and_op", micros });
            let micros = rounds_of(CALLS, || {
                let start = Instant::now();
                for _ in 0..CALLS {
                    epoch.compare_and_swap(1i64, 0, 1, 1)?.wait()?;
                }
                Ok(start.elapsed())
            })?;
            rows.push(Row { name: "compare_and_swap", micros });
            for (name, bytes) in [
                ("accumulate 8 B", 8),
                ("accumulate 1 KiB", 1 << 10),
                ("accumulate 8 KiB", 8 << 10),
                ("accumulate 64 KiB", 64 << 10),
                ("accumulate 1 MiB", MOST),
            ] {
                let calls = if bytes > 8 << 10 { 50 } else { CALLS };
                let (operands, count) = (&operands[..bytes / 8], bytes as i64 / 8);
                let micros = rounds_of(calls, || {
                    let start = Instant::now();
                    for _ in 0..calls {
                        epoch.flush(1, |epoch| {
                            epoch.accumulate(operands, 1, 0, count, &double, Op::Sum)
                        })?;
                    }
                    Ok(start.elapsed())
                })?;
                rows.push(Row { name, micros });
            }
            Ok(())
        })?;
    }
    world.barrier()?;
    Ok(rows)
}

/// The median time of a call, in microseconds.
fn rounds(round: impl FnMut() -> Result<Duration>) -> Result<f64> {
    rounds_of(CALLS, round)
}

/// The same where a round has so many calls.
fn rounds_of(calls: usize, mut round: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let mut took = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        took.push(round()?);
    }
    took.sort_unstable();
    Ok(took[ROUNDS / 2].as_secs_f64() * 1e6 / calls as f64)
}

/// Keeps this process, and those it starts, on the core of that number where the machine has it.
pub fn pin(rank: i32) {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut cores = CpuSet::new();
    let set = usize::try_from(rank).is_ok_and(|rank| cores.set(rank).is_ok());
    if set {
        // A core that isn't ours leaves the process where it was: slower, no more.
        let _ = sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores);
    }
}
