//! How far apart the two ranks' cores are: a cache line goes from one to the other and back.
//!
//! `benches/peers/main.c` does the same, so that all contenders are near or far by one measure.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process;
use std::sync::atomic::Ordering;
use std::time::Instant;

use longshore::Communicator;
use longshore_transport::{Mapping, Range, Segment};

use crate::{Failure, cores};

/// A line of memory that both ranks' processes map.
pub(super) struct Line<'a> {
    world: &'a Communicator,
    memory: Mapping,
    /// What lies in it, an even number, when neither rank is at it.
    number: Cell<u64>,
}

impl Line<'_> {
    /// Collective, of two ranks on one machine, whatever hosts they take themselves to be on.
    pub(super) fn new(world: &Communicator) -> Result<Line<'_>, Failure> {
        let segment = Segment::create(1)?.as_rank(0)?;
        let Range { offset, len } = segment.allocate(64)?;
        let mine = [process::id().into(), segment.as_fd().as_raw_fd() as u64, offset, len];
        let [pid, fd, offset, len] = world.allgather(&mine)?[..4] else {
            return Err("rank 0 didn't say where the line is".into());
        };
        let of_first = match world.rank() {
            0 => segment,
            _ => {
                let file =
                    File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"))?;
                Segment::attach(file.into(), 0)?
            }
        };
        let memory = of_first.map(Range { offset, len })?;
        // Nobody's descriptor is closed before all have opened it.
        world.barrier()?;
        Ok(Line { world, memory, number: Cell::new(0) })
    }

    /// Nanoseconds that it takes from core to core, the lowest of some tries; 0 where there is one core alone. Collective.
    pub(super) fn time(&self) -> Result<f64, Failure> {
        const TRIES: u32 = 10;
        const TRIPS: u32 = 30;
        // Ranks that wait for each other on one core take the system's time slices.
        if cores().len() < 2 {
            return Ok(0.0);
        }
        let number = self.memory.word64(0);
        let wait = |value| {
            while number.load(Ordering::Acquire) != value {
                std::hint::spin_loop();
            }
        };
        let mut lowest = f64::MAX;
        for _ in 0..TRIES {
            self.world.barrier()?;
            let start = Instant::now();
            for _ in 0..TRIPS {
                let at = self.number.get();
                match self.world.rank() {
                    0 => {
                        number.store(at + 1, Ordering::Release);
                        wait(at + 2);
                    }
                    _ => {
                        wait(at + 1);
                        number.store(at + 2, Ordering::Release);
                    }
                }
                self.number.set(at + 2);
            }
            lowest = lowest.min(start.elapsed().as_nanos() as f64 / f64::from(2 * TRIPS));
        }
        Ok(lowest)
    }
}
