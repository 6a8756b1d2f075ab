//! The costs of a job as it grows: messages and memory of a rank by the number of ranks, simulated
//! in one process.
//!
//!     cargo run --release -p longshore-benches --example growth -- [RANKS]... [--check] [--svg FOLDER]
//!
//! Prints a table for each number of ranks (250 and 1000, unless others are given). A message of
//! this job is one frame. Memory is what all ranks have allocated, by the byte: stacks, and what
//! they share in the segment, are left out.
//!
//! With `--check`, the exit status is 1 if a cost grows faster from one number of ranks to the next
//! than docs/performance.md says. With `--svg`, writes the pictures of that page.
#![allow(unsafe_code)] // the allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run};
use longshore::{Info, Op, Rank, Window};
use longshore_benches::Failure;
use longshore_benches::environment::Environment;
use longshore_benches::report::{Chart, Curve, PENS};

/// The system's allocator, with a count of the bytes in use.
struct Counting(CachePadded<AtomicUsize>);

#[global_allocator]
static HEAP: Counting = Counting(CachePadded::new(AtomicUsize::new(0)));

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the call.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of the call.
        unsafe { System.dealloc(place, layout) }
    }
}

/// The phases of a job, in their order.
const PHASES: [&str; 8] = [
    "init",
    "a first window",
    "a second window",
    "fence",
    "lock_all",
    "put and flush",
    "allreduce",
    "free",
];

/// The bytes that a phase keeps for each rank of the job: tables with an entry for each. Other
/// phases keep none. The first window also makes the simulated link keep the last frame, of 4 bytes
/// a rank.
const BYTES_PER_RANK: [(&str, f64); 3] =
    [("init", 37.0), ("a first window", 28.2), ("a second window", 24.2)];

/// The greatest exponent of the number of messages, and of the memory beside those tables. Between
/// 250 and 1000 ranks, log2 n has 0.16: a rank deals with so many peers, and has a queue for each.
/// Data of more than 4 KiB are announced first, which makes three messages of one. A window's
/// collective calls send such data with 1000 ranks and none with 250, so that their exponent
/// is 0.41.
const EXPONENT: f64 = 0.45;

/// Bytes that a phase may allocate without notice: buffers grow and shrink.
const NOISE: f64 = 4096.0;

/// The costs of a phase for one rank.
#[derive(Clone, Copy, Default)]
struct Cost {
    messages: f64,
    bytes: f64,
    seconds: f64,
}

/// The costs of all phases of a job.
struct Job {
    ranks: u32,
    costs: [Cost; PHASES.len()],
}

fn main() -> Result<ExitCode, Failure> {
    let (mut sizes, mut checks, mut folder) = (Vec::new(), false, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match &*word {
            "--check" => checks = true,
            "--svg" => folder = Some(PathBuf::from(words.next().ok_or("--svg FOLDER")?)),
            ranks => sizes.push(ranks.parse().map_err(|_| format!("no number of ranks: {ranks}"))?),
        }
    }
    if sizes.is_empty() {
        sizes = vec![250, 1000];
    }
    let mut jobs: Vec<Job> = Vec::new();
    for ranks in sizes {
        let job = Job::run(ranks)?;
        print!("{}", job.table());
        jobs.push(job);
    }
    let too_fast: Vec<_> =
        jobs.windows(2).flat_map(|pair| grown_too_fast(&pair[0], &pair[1])).collect();
    too_fast.iter().for_each(|line| println!("{line}"));
    if let Some(folder) = folder {
        std::fs::create_dir_all(&folder)?;
        for (chart, name) in [(messages(&jobs), "messages"), (memory(&jobs), "memory")] {
            let picture = chart.picture(&Environment::read());
            std::fs::write(folder.join(format!("growth-{name}.svg")), picture.svg)?;
        }
    }
    Ok(ExitCode::from(u8::from(checks && !too_fast.is_empty())))
}

impl Job {
    fn run(ranks: u32) -> longshore::Result<Job> {
        let before = HEAP.0.load(Ordering::Relaxed);
        let options = Options {
            routes: Routes::Message,
            // A message is a frame, whatever its length.
            frame: 64 << 20,
            frames: 64,
            check: Checking::Off,
            adversary: None,
            ..Options::default()
        };
        let start = Instant::now();
        let all = run(ranks, &options, |rank| measure(rank, before, start))?;
        // Memory and time are those of the process, which rank 0 reads. Of the messages, those of
        // the rank that sends most count.
        let mut costs = all[0];
        for (at, cost) in costs.iter_mut().enumerate() {
            cost.messages = all.iter().map(|costs| costs[at].messages).fold(0.0, f64::max);
            cost.bytes /= f64::from(ranks);
        }
        Ok(Job { ranks, costs })
    }

    /// The costs as a table in Markdown.
    fn table(&self) -> String {
        let mut table = format!(
            "| {} ranks | messages | bytes | seconds of the job |\n|---|---|---|---|\n",
            self.ranks
        );
        for (name, Cost { messages, bytes, seconds }) in PHASES.iter().zip(self.costs) {
            table += &format!("| {name} | {messages:.1} | {bytes:.0} | {seconds:.1} |\n");
        }
        table
    }
}

/// Runs all phases on one rank.
fn measure(rank: Rank, before: usize, start: Instant) -> [Cost; PHASES.len()] {
    let world = rank.world();
    let (mut costs, mut at) = ([Cost::default(); PHASES.len()], 0);
    let (mut sent, mut held, mut then) = (0, before, start.elapsed());
    let mut note = || {
        // All ranks are here before rank 0 reads what they hold.
        world.barrier().unwrap();
        let (frames, now) = (rank.frames_sent(), start.elapsed());
        // The process, and no rank, keeps the memory of long messages for a second. A call that
        // waits frees it then.
        if world.rank() == 0 {
            std::thread::sleep(Duration::from_millis(1300));
        }
        world.barrier().unwrap();
        let bytes = HEAP.0.load(Ordering::Relaxed);
        costs[at] = Cost {
            messages: (frames - sent) as f64,
            bytes: bytes as f64 - held as f64,
            seconds: (now - then).as_secs_f64(),
        };
        at += 1;
        (sent, held, then) = (frames, bytes, now);
        world.barrier().unwrap();
    };
    let allocate = || Window::allocate(world, 64, 8, &Info::default()).unwrap();
    note();
    let mut window = allocate();
    note();
    let second = allocate();
    note();
    window.fence(|_| Ok(())).unwrap();
    note();
    window.lock_all(|_| Ok(())).unwrap();
    note();
    let long = rank.type_of::<i64>().unwrap();
    let next = (world.rank() + 1) % world.size();
    let put = window
        .lock_all(|epoch| epoch.flush(next, |flushed| flushed.put(&[1i64], next, 0, 1, &long)));
    put.unwrap();
    note();
    let mut sum = [0i64];
    world.allreduce(&[i64::from(world.rank())], &mut sum, Op::Sum).unwrap();
    assert_eq!(sum, [i64::from(world.size()) * i64::from(world.size() - 1) / 2]);
    note();
    window.free().unwrap();
    note();
    second.free().unwrap();
    rank.finalize().unwrap();
    costs
}

/// The lines on costs that grow faster than they may from one job to a larger one.
fn grown_too_fast(small: &Job, large: &Job) -> Vec<String> {
    let more = f64::from(large.ranks) / f64::from(small.ranks);
    let mut lines = Vec::new();
    for (at, name) in PHASES.iter().enumerate() {
        let (from, to) = (small.costs[at], large.costs[at]);
        let between = format!("from {} to {} ranks", small.ranks, large.ranks);
        let table =
            BYTES_PER_RANK.iter().find(|(of, _)| of == name).map_or(0.0, |(_, bytes)| *bytes);
        let rest = |job: &Job| job.costs[at].bytes - table * f64::from(job.ranks);
        for (what, from, to) in [
            ("messages", from.messages.max(1.0), to.messages.max(1.0)),
            ("memory", rest(small).max(NOISE), rest(large).max(NOISE)),
        ] {
            let exponent = (to / from).ln() / more.ln();
            if exponent > EXPONENT {
                lines.push(format!("{what} of {name}: exponent {exponent:.2} {between}"));
            }
        }
    }
    lines
}

fn messages(jobs: &[Job]) -> Chart {
    let phases = [0, 2, 5, 6, 7].map(|at| (PHASES[at], at));
    chart(
        "Messages of a rank by the number of ranks",
        "Messages, of the rank that sends most",
        jobs,
        &phases,
        |cost| cost.messages,
    )
}

fn memory(jobs: &[Job]) -> Chart {
    let phases = [0, 1, 2].map(|at| (PHASES[at], at));
    chart("Memory of a rank by the number of ranks", "Bytes", jobs, &phases, |cost| cost.bytes)
}

fn chart(
    title: &str,
    meaning: &str,
    jobs: &[Job],
    phases: &[(&str, usize)],
    value: impl Fn(&Cost) -> f64,
) -> Chart {
    let curves = phases.iter().zip(PENS).map(|((name, at), pen)| {
        let points = jobs.iter().map(|job| [f64::from(job.ranks), value(&job.costs[*at])]);
        Curve { label: (*name).to_owned(), pen, points: points.collect() }
    });
    let ends = [jobs.first(), jobs.last()].map(|job| job.map_or(1.0, |job| f64::from(job.ranks)));
    let ticks = jobs.iter().map(|job| (f64::from(job.ranks), job.ranks.to_string())).collect();
    Chart {
        title: title.to_owned(),
        meaning: format!("{meaning}: lower is better"),
        across: ends,
        ticks,
        curves: curves.collect(),
    }
}
