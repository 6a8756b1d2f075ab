//! The distance of the two ranks' cores, measured by the round trip of a cache line.
//!
//! `benches/peers/main.c` measures it in the same way, so that near and far mean the same for all
//! contenders.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process;
use std::time::Instant;

use longshore::Communicator;
use longshore_transport::{Mapping, Range, Segment};

use crate::{Failure, cores, limits};

/// A cache line that the processes of both ranks map.
pub(super) struct Line {
    memory: Mapping,
    /// The content of the line between two measurements.
    number: Cell<u32>,
    /// Whether each rank has its own core. On one core, ranks that wait for each other measure the
    /// scheduler's time slices.
    crosses: bool,
}

impl Line {
    /// Maps the line. Collective over two ranks on one machine, even if they act as if they were on
    /// different hosts.
    pub(super) fn new(world: &Communicator) -> Result<Line, Failure> {
        let cores = cores().len() as u64;
        let (segment, mine) = match world.rank() {
            0 => {
                let segment = Segment::create(1)?.as_rank(0)?;
                let Range { offset, len } = segment.allocate(64)?;
                let fd = segment.as_fd().as_raw_fd() as u64;
                (Some(segment), [cores, process::id().into(), fd, offset, len])
            }
            _ => (None, [cores, 0, 0, 0, 0]),
        };
        let &[first, pid, fd, offset, len, second, ..] = &world.allgather(&mine)?[..] else {
            return Err("two ranks are wanted".into());
        };
        let segment = match segment {
            Some(segment) => segment,
            None => {
                let path = format!("/proc/{pid}/fd/{fd}");
                Segment::attach(File::options().read(true).write(true).open(path)?.into(), 0)?
            }
        };
        let memory = segment.map(Range { offset, len })?;
        // Rank 0 keeps its descriptor open until rank 1 has opened the file.
        world.barrier()?;
        Ok(Line { memory, number: Cell::new(0), crosses: first > 1 && second > 1 })
    }

    /// The nanoseconds that the line takes from core to core: the lowest of several tries. 0 on one
    /// core. Collective.
    pub(super) fn time(&self, world: &Communicator) -> Result<f64, Failure> {
        const TRIES: u32 = 10;
        const TRIPS: u32 = 30;
        if !self.crosses {
            return Ok(0.0);
        }
        let pass = |trips: u32| {
            let from = self.number.replace(self.number.get() + 2 * trips);
            limits::pass(self.memory.word32(0), from, trips, world.rank() == 0)
        };
        let mut lowest = f64::MAX;
        for _ in 0..TRIES {
            world.barrier()?;
            // After this round trip, both ranks have left the barrier.
            pass(1)?;
            let start = Instant::now();
            pass(TRIPS)?;
            lowest = lowest.min(start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS));
        }
        Ok(lowest)
    }
}
