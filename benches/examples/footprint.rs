//! The memory of a rank and of a window, for small machines.
//!
//!     cargo build --release -p longshore-cli -p longshore-benches --bin longshore --example footprint
//!     target/release/longshore run -n 2 --progress off target/release/examples/footprint
//!
//! Memory is the process's own pages and its share of the pages that it shares with others (Pss),
//! of the rank that has most. Rank 0 prints it.

use longshore::{Info, Rank, Window};
use longshore_benches::{Failure, launch};

/// Windows of each size. What one takes is too little to see.
const WINDOWS: usize = 64;

fn main() -> Result<(), Failure> {
    let rank = longshore::init()?;
    let world = rank.world();
    world.barrier()?;
    let begun = launch::memory(&rank)?;
    // The first window maps what all later ones use.
    let first = windows(&rank, 1, 8)?;
    let one = launch::memory(&rank)?;
    let small = windows(&rank, WINDOWS, 8)?;
    let many = launch::memory(&rank)?;
    let large = windows(&rank, WINDOWS, 64 << 10)?;
    let all = launch::memory(&rank)?;
    if world.rank() == 0 {
        let each = |from: f64, to: f64| (to - from) / WINDOWS as f64;
        println!("a rank after init               {begun:8.1} kB");
        println!("a first window of 8 bytes       {:8.1} kB", one - begun);
        println!("another window of 8 bytes       {:8.1} kB", each(one, many));
        println!("a window of 64 KiB, all written {:8.1} kB", each(many, all));
        println!("threads of the rank             {:8}", threads()?);
    }
    for window in first.into_iter().chain(small).chain(large) {
        window.free()?;
    }
    Ok(rank.finalize()?)
}

/// Allocates windows, puts into them, and writes all bytes of the own memory.
fn windows(rank: &Rank, number: usize, bytes: usize) -> Result<Vec<Window>, Failure> {
    let (world, byte) = (rank.world(), rank.type_of::<u8>()?);
    let next = (world.rank() + 1) % world.size();
    let mut all = Vec::with_capacity(number);
    for _ in 0..number {
        let mut window = Window::allocate(world, bytes as i64, 1, &Info::default())?;
        window.write(0, &vec![1u8; bytes])?;
        window.fence(|epoch| epoch.put(&[2u8], next, 0, 1, &byte))?;
        all.push(window);
    }
    world.barrier()?;
    Ok(all)
}

/// The number of this process's threads.
fn threads() -> Result<usize, Failure> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}
