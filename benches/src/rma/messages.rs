//! Benches of messages between the two ranks, and of their collective calls.
//!
//! A rooted call has each rank as its root in turn, since a root that never waits would measure
//! nothing of the other rank. `benches/peers/messages.c` makes the same calls.

use std::ops::Add;

use longshore::{Element, Op, Sending};

use super::Pair;
use crate::Failure;
use crate::case::{Bench, Case, IN_FLIGHT};
use crate::row::{Outcome, Refusal, Sample};

/// A number that the benches move and add.
trait Number: Element + From<i8> + Add<Output = Self> + PartialEq {}

impl Number for f64 {}
impl Number for i8 {}

/// Element `at` of a rank's data. It is at most 50, so that a sum of two fits each type.
fn value<T: Number>(rank: i32, at: usize) -> T {
    T::from(((at * 7 + rank as usize * 13) % 50 + 1) as i8)
}

/// The memory of a case at one rank, and its calls.
struct Exchange<'a, T> {
    pair: &'a Pair<'a>,
    bench: Bench,
    /// Elements of a block.
    count: usize,
    /// One block, or one for each rank.
    data: Vec<T>,
    room: Vec<T>,
    /// Memory of requests, each of a block.
    pool: Vec<Vec<T>>,
}

impl<'a, T: Number> Exchange<'a, T> {
    fn new(pair: &'a Pair<'a>, bench: Bench, count: usize) -> Exchange<'a, T> {
        let requests = match bench {
            Bench::MessageMr => IN_FLIGHT as usize,
            Bench::IsendLatency => 2,
            _ => 0,
        };
        let mut exchange = Exchange {
            pair,
            bench,
            count,
            data: vec![T::from(0); 2 * count],
            room: vec![T::from(0); 2 * count],
            pool: vec![vec![T::from(0); count]; requests],
        };
        exchange.fill();
        exchange
    }

    /// Fills the data, and overwrites the rooms.
    fn fill(&mut self) {
        let me = self.pair.me;
        self.data.iter_mut().enumerate().for_each(|(at, data)| *data = value(me, at));
        self.room.fill(T::from(0));
        for memory in &mut self.pool {
            memory.iter_mut().enumerate().for_each(|(at, data)| *data = value(me, at));
        }
        if self.bench == Bench::Bcast && me == 0 {
            self.room.iter_mut().enumerate().for_each(|(at, data)| *data = value(0, at));
        }
    }

    /// Makes so many calls.
    fn calls(&mut self, calls: u32) -> longshore::Result<()> {
        match self.bench {
            Bench::MessageMr => (0..calls.div_ceil(IN_FLIGHT)).try_for_each(|_| self.batch()),
            _ => (0..calls).try_for_each(|call| self.call((call % 2) as i32)),
        }
    }

    fn call(&mut self, root: i32) -> longshore::Result<()> {
        let Pair { world, me, other, .. } = *self.pair;
        let count = self.count;
        let (block, data, room) = (&self.data[..count], &self.data[..], &mut self.room[..]);
        match self.bench {
            Bench::Latency | Bench::ProbeLatency => {
                let is_first = me == 0;
                if is_first {
                    world.send(block, other, 0)?;
                }
                if self.bench == Bench::ProbeLatency {
                    world.probe(other, 0)?;
                }
                world.recv(&mut room[..count], other, 0)?;
                if is_first { Ok(()) } else { world.send(block, other, 0) }
            }
            Bench::IsendLatency => self.request(),
            Bench::Sendrecv => {
                world.sendrecv((block, other, 0), (&mut room[..count], other, 0)).map(drop)
            }
            Bench::Bcast => world.bcast(&mut room[..count], root),
            Bench::Reduce => world.reduce(block, &mut room[..count], Op::Sum, root),
            Bench::Allreduce => world.allreduce(block, &mut room[..count], Op::Sum),
            Bench::Allgather => world.allgather_into(block, room),
            Bench::Alltoall => world.alltoall(data, room),
            Bench::Gather => world.gather(block, room, root),
            Bench::Scatter => world.scatter(data, &mut room[..count], root),
            Bench::ReduceScatter => world.reduce_scatter_block(data, &mut room[..count], Op::Sum),
            Bench::Scan => world.scan(block, &mut room[..count], Op::Sum),
            _ => world.barrier(),
        }
    }

    /// A message to the other rank and one back, by requests.
    fn request(&mut self) -> longshore::Result<()> {
        let Pair { world, me, other, .. } = *self.pair;
        let (room, data) =
            (self.pool.pop().unwrap_or_default(), self.pool.pop().unwrap_or_default());
        let receiving = world.irecv(room, other, 0)?;
        let (room, data) = match me {
            0 => {
                let sending = world.isend(data, other, 0)?;
                (receiving.wait()?.0, sending.wait()?)
            }
            _ => {
                let (room, _) = receiving.wait()?;
                (room, world.isend(data, other, 0)?.wait()?)
            }
        };
        self.pool.extend([data, room]);
        Ok(())
    }

    /// Messages from rank 0 to rank 1 under way at the same time, and an answer to all.
    fn batch(&mut self) -> longshore::Result<()> {
        let Pair { world, me, other, .. } = *self.pair;
        let memory = std::mem::take(&mut self.pool);
        if me == 0 {
            let sends = memory.into_iter().map(|data| world.isend(data, other, 0));
            let sends = sends.collect::<longshore::Result<Vec<_>>>()?;
            let data = sends.into_iter().map(Sending::wait);
            self.pool = data.collect::<longshore::Result<_>>()?;
            world.recv(&mut [0i8], other, 1).map(drop)
        } else {
            let receives = memory.into_iter().map(|room| world.irecv(room, other, 0));
            let receives = receives.collect::<longshore::Result<Vec<_>>>()?;
            let rooms = receives.into_iter().map(|receive| Ok(receive.wait()?.0));
            self.pool = rooms.collect::<longshore::Result<_>>()?;
            world.send(&[0i8], other, 1)
        }
    }

    /// Checks every element after one call with root 0.
    fn right(&self) -> Result<(), Failure> {
        let (me, other, count) = (self.pair.me, self.pair.other, self.count);
        let of = |rank, at| value::<T>(rank, at);
        let sum = |at| of(0, at) + of(1, at);
        let mine = me as usize * count;
        let found = match self.bench {
            Bench::MessageMr => &self.pool[self.pool.len() - 1][..],
            // The data goes first.
            Bench::IsendLatency => &self.pool[1][..],
            _ => &self.room[..],
        };
        let due = |at: usize| match self.bench {
            Bench::MessageMr => of(0, at),
            Bench::Bcast => of(0, at),
            Bench::Latency | Bench::ProbeLatency | Bench::IsendLatency | Bench::Sendrecv => {
                of(other, at)
            }
            Bench::Allreduce | Bench::Reduce => sum(at),
            Bench::ReduceScatter => sum(mine + at),
            Bench::Scatter => of(0, mine + at),
            Bench::Scan if me == 0 => of(0, at),
            Bench::Scan => sum(at),
            Bench::Alltoall => of((at / count) as i32, mine + at % count),
            _ => of((at / count) as i32, at % count),
        };
        let checked = match self.bench {
            Bench::Barrier => 0,
            Bench::Reduce | Bench::Gather if me != 0 => 0,
            Bench::Gather | Bench::Allgather | Bench::Alltoall => 2 * count,
            _ => count,
        };
        match (0..checked).find(|&at| found[at] != due(at)) {
            Some(at) => Err(format!("element {at} of rank {me} is wrong").into()),
            None => Ok(()),
        }
    }
}

impl Pair<'_> {
    /// Measures a message or a collective call.
    pub(super) fn message(&self, case: &Case, validate: bool) -> Result<Outcome, Failure> {
        let refused = |why: &str| Ok(Err(Refusal::Unsupported(why.to_owned())));
        match case.datatype.as_str() {
            _ if self.rank.is_emulated() || case.arch[0] != case.arch[1] => {
                refused("measured between ranks of this machine")
            }
            "d" => self.exchange::<f64>(case, validate),
            "i8" => self.exchange::<i8>(case, validate),
            _ => refused("measured with doubles and bytes"),
        }
    }

    fn exchange<T: Number>(&self, case: &Case, validate: bool) -> Result<Outcome, Failure> {
        let mut exchange = Exchange::<T>::new(self, case.bench, case.count as usize);
        if let Err(why) = self.agree(exchange.calls(2))? {
            return Ok(Err(Refusal::Unsupported(why)));
        }
        // Two messages, one after the other, are a round trip.
        let is_pingpong =
            matches!(case.bench, Bench::Latency | Bench::ProbeLatency | Bench::IsendLatency);
        let of_round = if is_pingpong { 2 * case.calls } else { case.calls };
        let before = self.line()?;
        let took =
            self.rounds((case.rounds, of_round, !is_pingpong), || exchange.calls(case.calls))?;
        let after = self.line()?;
        if validate {
            exchange.fill();
            exchange.calls(1)?;
            if let Err(why) = self.agree(exchange.right())? {
                return Ok(Err(Refusal::Invalid(why)));
            }
        }
        let sample = Sample::of(took, [before, after], validate);
        Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use longshore::sim::{Options, run};

    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let found = run(2, &Options::default(), |rank| {
            let world = rank.world();
            let (me, other) = (world.rank(), 1 - world.rank());
            let pair = Pair { rank: &rank, world, me, other, line: None };
            let found = crate::case::COLLECTIVES.map(|bench| {
                let mut exchange = Exchange::<f64>::new(&pair, bench, 4);
                exchange.calls(1).unwrap();
                let right = exchange.right().is_ok();
                exchange.room[3] += 1.0;
                (right, exchange.right().is_err())
            });
            rank.finalize().unwrap();
            found
        });
        let found = found.unwrap();
        assert!(found.iter().flatten().all(|(right, _)| *right));
        // A barrier moves no data.
        assert!(found[0][1..].iter().all(|(_, wrong)| *wrong));
        assert!(!found[0][0].1);
    }
}
