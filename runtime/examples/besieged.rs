//! A job that sleeps while its ports are besieged, for `ci/steps/hosts`.
//!
//! Once rank 0 reads a line, each rank opens files, and all pairs of ranks exchange a message. Most
//! of them connect only then. A rank that used the processor while it slept fails.

use std::error::Error;
use std::fs::{self, File};
use std::io;

/// The files that each rank opens.
const FILES: usize = 32;

/// Hundredths of a second of the processor that a rank may use during the siege. Two threads that
/// spin use that much within a second.
const TICKS: u64 = 150;

fn main() -> Result<(), Box<dyn Error>> {
    let rank = longshore::init()?;
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    world.barrier()?;
    println!("waits");
    let before = ticks()?;
    if me == 0 {
        io::stdin().read_line(&mut String::new())?;
        for peer in 1..size {
            world.send(&[peer], peer, 0)?;
        }
    } else {
        world.recv(&mut [0i32], 0, 0)?;
    }
    let used = ticks()? - before;
    let files: Vec<File> =
        (0..FILES).map(|_| File::open("/dev/null")).collect::<io::Result<_>>()?;
    for distance in 1..size {
        let (to, from) = ((me + distance) % size, (me + size - distance) % size);
        let mut found = [0i32];
        world.sendrecv((&[me], to, 1), (&mut found, from, 1))?;
        assert_eq!(found, [from]);
    }
    println!("rank {me} used {used}0 ms of the processor");
    if used > TICKS {
        return Err(format!("rank {me} used more than {TICKS}0 ms of the processor").into());
    }
    drop(files);
    Ok(rank.finalize()?)
}

/// The processor time of this process, in hundredths of a second.
fn ticks() -> Result<u64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let times = fields.split_whitespace().skip(11).take(2);
    Ok(times.map(str::parse::<u64>).sum::<Result<u64, _>>()?)
}
