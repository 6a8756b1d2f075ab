//! One-sided operations between two pinned ranks, as rows that `benches/peers/rma.c` has as well.
//!
//! What waits for another core takes three to four times as long where the host has put the two cores far apart, and it
//! moves them during a run. So the time of a cache line from one to the other is taken before and after each row.

use std::time::{Duration, Instant};

use longshore::{Assert, Communicator, Info, LockType, Op, Rank, Result, Type, Window};

/// A row has so many rounds,
const ROUNDS: usize = 41;
/// each of so many calls where they are short.
const CALLS: usize = 2000;
/// Bytes of the window, and of the longest operation.
const MOST: usize = 4 << 20;

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was called, as the peers' program names it.
    pub name: String,
    /// Microseconds a call takes: the lower limit of all rounds but the fastest in twenty.
    pub low: f64,
    /// The median of the rounds.
    pub median: f64,
    /// Nanoseconds that a cache line took from core to core before and after.
    pub line: [f64; 2],
}

/// How far apart the cores were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// A line takes some 50 ns.
    Near,
    /// It takes some 250.
    Far,
}

impl Row {
    /// A line of text; see [`parse`](Row::parse).
    pub fn print(&self) -> String {
        let [before, after] = self.line;
        format!("{}\t{:.5}\t{:.5}\t{before:.1}\t{after:.1}", self.name, self.low, self.median)
    }

    /// What [`print`](Row::print) and the peers' program print.
    pub fn parse(line: &str) -> Option<Row> {
        let mut words = line.split('\t');
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some(Row { name, low: number()?, median: number()?, line: [number()?, number()?] })
    }

    /// How far apart the cores were; none if that changed meanwhile.
    pub fn distance(&self) -> Option<Distance> {
        const BETWEEN: f64 = 150.0;
        match self.line.map(|line| line > BETWEEN) {
            [false, false] => Some(Distance::Near),
            [true, true] => Some(Distance::Far),
            _ => None,
        }
    }
}

/// Measures on the job's two ranks, which it pins to a core each. Collective; every rank has its own view.
///
/// # Errors
/// What the communication meets.
pub fn measure(rank: &Rank) -> Result<Vec<Row>> {
    let mut bench = Bench::new(rank)?;
    let size = bench.double.extent();
    let mut window = Window::allocate(rank.world(), MOST as i64, size, &Info::default())?;
    bench.fences(&mut window)?;
    bench.atomics(&window)?;
    bench.passive(&window)?;
    bench.posts(rank, &window)?;
    window.free()?;
    bench.created(rank)?;
    Ok(bench.rows)
}

/// Measures puts into created windows, also while the target computes: in a job whose ranks reach each other by messages alone,
/// what created windows cost where their memory can't be moved, and between unlike ranks.
///
/// # Errors
/// What the communication meets.
pub fn messages(rank: &Rank) -> Result<Vec<Row>> {
    let mut bench = Bench::new(rank)?;
    bench.created(rank)?;
    bench.computing(rank)?;
    Ok(bench.rows)
}

/// Measures a put of 1 MiB with its flush, the job's only row.
///
/// # Errors
/// What the communication meets.
pub fn bulk(rank: &Rank) -> Result<Vec<Row>> {
    const BYTES: usize = 1 << 20;
    let mut bench = Bench::new(rank)?;
    let window = Window::allocate(rank.world(), BYTES as i64, 8, &Info::default())?;
    let values = vec![1.5f64; BYTES / 8];
    window.lock_all(|epoch| {
        let double = bench.double.clone();
        bench.of_first("put 1 MiB+flush", 20, &mut |_| {
            let count = values.len() as i64;
            epoch.flush(1, |epoch| epoch.put(&values, 1, 0, count, &double))
        })
    })?;
    window.free()?;
    Ok(bench.rows)
}

struct Bench<'a> {
    world: &'a Communicator,
    other: i32,
    double: Type,
    /// How far apart the cores were when last asked.
    last: f64,
    rows: Vec<Row>,
}

impl<'a> Bench<'a> {
    fn new(rank: &'a Rank) -> Result<Bench<'a>> {
        let world = rank.world();
        pin(world.rank());
        let (other, double) = (1 - world.rank(), rank.type_of::<f64>()?);
        let mut bench = Bench { world, other, double, last: 0.0, rows: Vec::new() };
        bench.last = bench.distance()?;
        Ok(bench)
    }

    /// Nanoseconds of a barrier between the two: about what a cache line takes from core to core.
    fn distance(&self) -> Result<f64> {
        const BARRIERS: u32 = 30;
        let mut lowest = f64::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..BARRIERS {
                self.world.barrier()?;
            }
            lowest = lowest.min(start.elapsed().as_nanos() as f64 / f64::from(BARRIERS));
        }
        Ok(lowest)
    }

    /// A row of what both ranks do.
    fn of_both(
        &mut self,
        name: &str,
        calls: usize,
        call: &mut dyn FnMut(i64) -> Result<()>,
    ) -> Result<()> {
        self.rounds(name, calls, &mut || {
            let start = Instant::now();
            for at in 0..calls as i64 {
                call(at)?;
            }
            Ok(start.elapsed())
        })
    }

    /// A row of what rank 0 does, while the other waits in a barrier.
    fn of_first(
        &mut self,
        name: &str,
        calls: usize,
        call: &mut dyn FnMut(i64) -> Result<()>,
    ) -> Result<()> {
        match self.world.rank() {
            0 => self.of_both(name, calls, call),
            _ => self.rounds(name, calls, &mut || Ok(Duration::ZERO)),
        }
    }

    fn rounds(
        &mut self,
        name: &str,
        calls: usize,
        round: &mut dyn FnMut() -> Result<Duration>,
    ) -> Result<()> {
        let mut took = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            took.push(round()?);
        }
        self.note(name, calls, took)
    }

    fn note(&mut self, name: &str, calls: usize, mut took: Vec<Duration>) -> Result<()> {
        self.world.barrier()?;
        let before = self.last;
        self.last = self.distance()?;
        took.sort_unstable();
        let micros = |at: usize| took[at].as_secs_f64() * 1e6 / calls as f64;
        let (low, median) = (micros(took.len() / 20), micros(took.len() / 2));
        self.rows.push(Row { name: name.to_owned(), low, median, line: [before, self.last] });
        Ok(())
    }

    fn fences(&mut self, window: &mut Window) -> Result<()> {
        let (other, double, value) = (self.other, self.double.clone(), [1.5f64]);
        window.fences(|chain| {
            self.of_both("fence", CALLS, &mut |_| chain.epoch(|_| Ok(())))?;
            self.of_both("put8+fence", CALLS, &mut |at| {
                chain.epoch(|epoch| epoch.put(&value, other, at % 512, 1, &double))
            })?;
            self.rounds("put8", CALLS, &mut || {
                chain.epoch(|epoch| {
                    let start = Instant::now();
                    for at in 0..CALLS as i64 {
                        epoch.put(&value, other, at % 512, 1, &double)?;
                    }
                    Ok(start.elapsed())
                })
            })
        })
    }

    /// Accumulates of rank 0 at the other, each done before the next.
    fn atomics(&mut self, window: &Window) -> Result<()> {
        let (other, double) = (self.other, self.double.clone());
        let operands = vec![0.0f64; MOST / 8];
        window.lock_all(|epoch| {
            self.of_first("fetch_and_op", CALLS, &mut |_| {
                epoch.fetch_and_op(1i64, other, 0, Op::Sum)?.wait().map(drop)
            })?;
            self.of_first("compare_and_swap", CALLS, &mut |_| {
                epoch.compare_and_swap(1i64, 0, other, 1)?.wait().map(drop)
            })?;
            for (name, bytes) in [
                ("accumulate 8 B", 8),
                ("accumulate 1 KiB", 1 << 10),
                ("accumulate 8 KiB", 8 << 10),
                ("accumulate 64 KiB", 64 << 10),
                ("accumulate 1 MiB", 1 << 20),
                ("accumulate 4 MiB", MOST),
            ] {
                let (operands, count) = (&operands[..bytes / 8], bytes as i64 / 8);
                self.of_first(name, calls_of(bytes), &mut |_| {
                    epoch.flush(other, |epoch| {
                        epoch.accumulate(operands, other, 0, count, &double, Op::Sum)
                    })
                })?;
            }
            Ok(())
        })
    }

    /// Flushes and locks.
    fn passive(&mut self, window: &Window) -> Result<()> {
        let (other, double) = (self.other, self.double.clone());
        let (value, mut got) = ([1.5f64], [0.0f64]);
        window.lock_all(|epoch| {
            self.of_first("put8+flush", CALLS, &mut |at| {
                epoch.flush(other, |epoch| epoch.put(&value, other, at % 512, 1, &double))
            })?;
            self.of_first("get8+flush", CALLS, &mut |at| {
                epoch.flush(other, |epoch| epoch.get(&mut got, other, at % 512, 1, &double))
            })
        })?;
        for (name, lock_type) in [
            ("lock+put8+unlock", LockType::Exclusive),
            ("lock+put8+unlock, shared", LockType::Shared),
        ] {
            self.of_first(name, CALLS, &mut |at| {
                window
                    .lock(other, lock_type, |epoch| epoch.put(&value, other, at % 512, 1, &double))
            })?;
        }
        Ok(())
    }

    /// Post, start, complete, wait, of both on each other.
    fn posts(&mut self, rank: &Rank, window: &Window) -> Result<()> {
        let (other, double, value) = (self.other, self.double.clone(), [1.5f64]);
        let both = rank.world().group().incl(&[other])?;
        self.of_both("post+start+put8+complete+wait", CALLS, &mut |at| {
            window.post(&both, Assert::NONE)?;
            window.start(&both, Assert::NONE, |epoch| {
                epoch.put(&value, other, at % 512, 1, &double)
            })?;
            window.wait()
        })
    }

    /// Puts into memory of the program's own; the target waits in a barrier.
    fn created(&mut self, rank: &Rank) -> Result<()> {
        let (other, double) = (self.other, self.double.clone());
        let values = vec![1.5f64; (1 << 20) / 8];
        let memory = rank.buffer::<f64>(values.len())?;
        let window = Window::create(rank.world(), memory, 8, &Info::default())?;
        window.lock_all(|epoch| {
            for (name, bytes) in [
                ("created: put8+flush", 8),
                ("created: put 4 KiB+flush", 4 << 10),
                ("created: put 1 MiB+flush", 1 << 20),
            ] {
                let (values, count) = (&values[..bytes / 8], bytes as i64 / 8);
                self.of_first(name, calls_of(bytes) / 4, &mut |_| {
                    epoch.flush(other, |epoch| epoch.put(values, other, 0, count, &double))
                })?;
            }
            Ok(())
        })?;
        window.free().map(drop)
    }

    /// Put and flush to a rank that computes and calls nothing, and looks at its end whether the value is there.
    fn computing(&mut self, rank: &Rank) -> Result<()> {
        const COMPUTES: Duration = Duration::from_millis(200);
        let (double, value) = (self.double.clone(), [1.5f64]);
        let window = Window::create(rank.world(), vec![0.0f64; 512], 8, &Info::default())?;
        let mut took = Vec::new();
        for call in 0..5 {
            self.world.barrier()?;
            let start = Instant::now();
            if self.world.rank() == 0 {
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
                took.push(COMPUTES);
            }
            let there = self.world.allgather(&[window.get::<f64>(call)?])?[1] == value[0];
            if let (false, Some(last)) = (there, took.last_mut()) {
                *last = COMPUTES;
            }
        }
        self.note("created: put8+flush, computing target", 1, took)?;
        window.free().map(drop)
    }
}

/// So many calls of an operation of so many bytes make a round.
fn calls_of(bytes: usize) -> usize {
    match bytes {
        0..=8192 => CALLS,
        8193..=65536 => 200,
        _ => 16,
    }
}

/// Microseconds of a fence and of a lock_all, and frames that one sends, on as many ranks as the job has; bytes that a window
/// adds to a rank's memory.
///
/// # Errors
/// What the communication meets.
pub fn many(rank: &Rank) -> std::result::Result<[f64; 5], Box<dyn std::error::Error>> {
    const CALLS: u32 = 100;
    const WINDOWS: usize = 16;
    let world = rank.world();
    let before = crate::launch::memory(rank)?;
    let windows = (0..WINDOWS).map(|_| Window::allocate(world, 8, 8, &Info::default()));
    let mut windows = windows.collect::<Result<Vec<_>>>()?;
    let mut cost = [0.0; 5];
    cost[4] = (crate::launch::memory(rank)? - before) * 1024.0 / WINDOWS as f64;
    let per_call = |start: Instant, sent: u64| {
        let frames = (rank.frames_sent() - sent) as f64 / f64::from(CALLS);
        (start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS), frames)
    };
    world.barrier()?;
    let (start, sent) = (Instant::now(), rank.frames_sent());
    windows[0].fences(|chain| (0..CALLS).try_for_each(|_| chain.epoch(|_| Ok(()))))?;
    (cost[0], cost[1]) = per_call(start, sent);
    world.barrier()?;
    let (start, sent) = (Instant::now(), rank.frames_sent());
    (0..CALLS).try_for_each(|_| windows[0].lock_all(|_| Ok(())))?;
    (cost[2], cost[3]) = per_call(start, sent);
    world.barrier()?;
    windows.into_iter().try_for_each(|window| window.free())?;
    Ok(cost)
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
