//! The costs of a job as it grows: messages and memory per rank by the number of ranks, simulated
//! in one process.
//!
//!     cargo run --release -p longshore --example scale [RANKS]...        # 8 64 256 1000

use std::time::Instant;

use longshore::job::Routes;
use longshore::sim::{Options, run};
use longshore::{Info, Rank, Window};

/// The costs of one phase of the job: the frames that each rank sent, and the bytes by which the
/// process grew.
#[derive(Default)]
struct Cost {
    frames: f64,
    bytes: f64,
}

fn main() -> longshore::Result<()> {
    let sizes: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![8, 64, 256, 1000] } else { sizes };
    println!(
        "per rank: frames sent and memory (KiB) of init, a first window, each of {MORE} more, fence, lock_all and put, free"
    );
    for size in sizes {
        let start = Instant::now();
        let before = resident();
        let options = Options { routes: Routes::Message, ..Options::default() };
        let costs = run(size, &options, |rank| measure(rank, before))?;
        let shown: Vec<_> = (costs[0].iter())
            .map(|cost| {
                format!("{:>7.1} {:>8.1}", cost.frames, cost.bytes / f64::from(size) / 1024.0)
            })
            .collect();
        println!("{size:>5} ranks {}   {:.1?}", shown.join("  "), start.elapsed());
    }
    Ok(())
}

/// The number of windows after the first. The first one also pays for memory that all windows
/// share.
const MORE: u64 = 16;

fn measure(rank: Rank, mut before: usize) -> Vec<Cost> {
    let world = rank.world();
    let mut costs = Vec::new();
    let mut sent = 0;
    let mut note = |times: u64| {
        // All ranks are here before rank 0 measures.
        world.barrier().unwrap();
        let (frames, bytes) = (rank.frames_sent(), resident());
        costs.push(Cost {
            frames: (frames - sent) as f64 / times as f64,
            bytes: bytes.saturating_sub(before) as f64 / times as f64,
        });
        (sent, before) = (frames, bytes);
        world.barrier().unwrap();
    };
    note(1);
    let mut window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
    note(1);
    let window_of = |_| Window::allocate(world, 64, 8, &Info::default()).unwrap();
    let more: Vec<_> = (0..MORE).map(window_of).collect();
    note(MORE);
    window.fence(|_| Ok(())).unwrap();
    note(1);
    let long = rank.type_of::<i64>().unwrap();
    let next = (world.rank() + 1) % world.size();
    window.lock_all(|epoch| epoch.put(&[1i64], next, 0, 1, &long)).unwrap();
    note(1);
    window.free().unwrap();
    note(1);
    more.into_iter().for_each(|window| window.free().unwrap());
    rank.finalize().unwrap();
    costs
}

/// The process's private bytes in memory. Shared memory is left out, since it would count once for
/// each mapping.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}
