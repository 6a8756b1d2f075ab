//! Benches of one-sided operations, and of messages, between two pinned ranks.
//!
//! Rank 0 is the origin and rank 1 the target. In benches of both directions, each rank is both. A
//! rank without work waits in a barrier. `benches/peers/windows.c` does the same work with MPI.
//!
//! Waiting for another core takes longer if the host has placed the two cores far apart, and the
//! host moves them during a run. Therefore the time of a cache line between them is measured before
//! and after each case.

mod computing;
mod data;
mod layout;
mod line;
mod messages;
mod operation;
#[cfg(test)]
mod tests;
mod types;

use std::time::Instant;

use longshore::{
    Allocated, Assert, Communicator, ForeignType, Group, Info, LockType, Rank, TargetType, Window,
};

use crate::Failure;
use crate::case::{Bench, By, Case, Flavor, Sync, Way};
use crate::row::{Outcome, Refusal, Sample};
use crate::{pattern, pin};
use data::{Data, Slices, Typed};
use layout::Layout;
use line::Line;
use operation::{
    Accumulate, CompareAndSwap, FetchAndOp, Get, GetAccumulate, Nothing, Operation, Put, Target,
};

/// The seed of the origin's memory in a validation.
const ORIGIN: u64 = 1000;
/// The seed of the target's memory in a validation.
const WINDOW: u64 = 2003;
/// The seed of the memory for results before the operation, in a validation.
const RESULTS: u64 = 3010;

/// Measures cases on the job's two ranks, and pins each to a core. Collective. Calls `done` on rank
/// 0 with the index and the outcome of each case.
///
/// # Errors
/// An error of the communication or of `done`.
pub fn measure(
    rank: &Rank,
    cases: &[Case],
    validate: bool,
    mut done: impl FnMut(usize, Outcome) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let world = rank.world();
    if world.size() != 2 {
        return Err("one-sided operations are measured on two ranks".into());
    }
    pin(world.rank() as usize);
    let line = Some(Line::new(world)?);
    let pair = Pair { rank, world, me: world.rank(), other: 1 - world.rank(), line };
    for (index, case) in cases.iter().enumerate() {
        let outcome = match case.bench {
            Bench::Computing => pair.computing(case)?,
            Bench::TypeSend => pair.type_send(case)?,
            bench if bench.has_no_window() => pair.message(case, validate)?,
            _ => pair.operation(case, validate)?,
        };
        if pair.me == 0 {
            done(index, outcome)?;
        }
    }
    Ok(())
}

/// The two ranks, from the view of one of them.
struct Pair<'a> {
    rank: &'a Rank,
    world: &'a Communicator,
    me: i32,
    other: i32,
    /// `None` in a simulation, whose ranks may wait for each other only in calls.
    line: Option<Line>,
}

/// The case that is being measured.
struct Work<'a> {
    case: &'a Case,
    layout: Layout,
    /// The group of the other rank, for post and start.
    group: Group,
    /// Whether this rank issues operations.
    active: bool,
    exposed: bool,
    validate: bool,
}

impl Pair<'_> {
    /// The nanoseconds that a cache line takes between the ranks' cores. 0 without a line.
    fn line(&self) -> Result<f64, Failure> {
        self.line.as_ref().map_or(Ok(0.0), |line| line.time(self.world))
    }

    /// Exchanges the outcomes of both ranks. If either failed, both get the error.
    fn agree<T, E: ToString>(&self, mine: Result<T, E>) -> Result<Result<T, String>, Failure> {
        const LENGTH: usize = 240;
        let text = mine.as_ref().err().map_or(String::new(), |error| error.to_string());
        let mut bytes = text.into_bytes();
        bytes.resize(LENGTH, 0);
        let both = self.world.allgather(&bytes)?;
        let problem = both.chunks(LENGTH).find(|text| text[0] != 0);
        let problem = problem.map(|text| String::from_utf8_lossy(text).replace('\0', ""));
        Ok(match (problem, mine) {
            (None, Ok(value)) => Ok(value),
            (problem, _) => Err(problem.unwrap_or_default()),
        })
    }

    /// Measures rounds of work. Returns the microseconds of one call, for each round. Both ranks
    /// begin a round together. If `both`, the round ends when both ranks have finished.
    fn rounds(
        &self,
        (rounds, calls, both): (u32, u32, bool),
        mut round: impl FnMut() -> longshore::Result<()>,
    ) -> longshore::Result<Vec<f64>> {
        let mut took = Vec::with_capacity(rounds as usize);
        for _ in 0..rounds {
            self.world.barrier()?;
            let start = Instant::now();
            round()?;
            if both {
                self.world.barrier()?;
            }
            took.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(calls));
        }
        Ok(took)
    }

    fn operation(&self, case: &Case, validate: bool) -> Result<Outcome, Failure> {
        let single = matches!(case.bench, Bench::FopLatency | Bench::CasLatency);
        if single && (case.datatype.as_str(), case.count) != ("i64", 1) {
            return Ok(Err(Refusal::Unsupported("measured with one i64".to_owned())));
        }
        let layout = match self.agree(Layout::new(self.rank, case))? {
            Ok(layout) => layout,
            Err(why) => return Ok(Err(Refusal::Unsupported(why))),
        };
        let both = matches!(case.bench, Bench::PutBibw | Bench::GetBibw | Bench::PutPingpong);
        let work = Work {
            case,
            group: self.world.group().incl(&[self.other])?,
            active: both || self.me == 0,
            exposed: both || self.me == 1,
            validate,
            layout,
        };
        let info = match case.way {
            Way::SameLayout => Info::default().set("target_types", "same_layout")?,
            Way::Portable | Way::TypeSend => Info::default(),
        };
        let info = Info { max_num_notify: 1, ..info };
        let len = work.layout.len();
        let outcome = match case.window {
            Flavor::Allocate => {
                let mut window = Window::allocate(self.world, len as i64, 1, &info)?;
                let outcome = self.on(&mut window, 0, &work)?;
                window.free()?;
                outcome
            }
            Flavor::Shared => {
                let mut window = Window::allocate_shared(self.world, len as i64, 1, &info)?;
                let outcome = self.on(&mut window, 0, &work)?;
                window.free()?;
                outcome
            }
            Flavor::Create => {
                let mut window = Window::create(self.world, vec![0u8; len], 1, &info)?;
                let outcome = self.on(&mut window, 0, &work)?;
                window.free()?;
                outcome
            }
            Flavor::Dynamic => {
                let mut window: Window<Allocated> = Window::create_dynamic(self.world, &info)?;
                let attached = window.attach(vec![0u8; len])?;
                let outcome = self.on(&mut window, attached.address(), &work)?;
                self.world.barrier()?;
                window.detach(attached)?;
                window.free()?;
                outcome
            }
        };
        Ok(outcome)
    }

    /// Measures the work on a window in which this rank's slots begin at displacement `start`.
    fn on<M>(&self, window: &mut Window<M>, start: i64, work: &Work) -> Result<Outcome, Failure> {
        let Layout { own, zero, slot_size, .. } = &work.layout;
        let foreign: Option<ForeignType> = match work.case.way {
            // The send of a long type completes only with its receive, so one rank receives first.
            Way::TypeSend if self.me == 0 => {
                self.world.type_send(own, self.other, 0)?;
                Some(self.world.type_recv(self.other, 0)?)
            }
            Way::TypeSend => {
                let received = self.world.type_recv(self.other, 0)?;
                self.world.type_send(own, self.other, 0)?;
                Some(received)
            }
            Way::Portable | Way::SameLayout => None,
        };
        let both = self.world.allgather(&[start + zero, *slot_size as i64])?;
        let theirs = &both[2 * self.other as usize..];
        let target = Target {
            rank: self.other,
            first: theirs[0],
            slot_size: theirs[1],
            count: work.layout.count,
            datatype: foreign.as_ref().map_or(TargetType::Own(own), TargetType::Foreign),
        };
        // Slices have the machine's representation, which an emulated rank doesn't have.
        let slices = !self.rank.is_emulated();
        match work.case.datatype.as_str() {
            _ if !work.active => {
                self.timed(window, start, work, &mut Nothing { target: self.other })
            }
            "d" if slices => {
                self.issue(window, start, work, target, || Slices::<f64>::new(&work.layout))
            }
            "i64" if slices => {
                self.issue(window, start, work, target, || Slices::<i64>::new(&work.layout))
            }
            "i8" if slices => {
                self.issue(window, start, work, target, || Slices::<i8>::new(&work.layout))
            }
            _ => self.issue(window, start, work, target, || Typed::new(&work.layout)),
        }
    }

    /// Measures the operation at an origin.
    fn issue<M, D: Data>(
        &self,
        window: &mut Window<M>,
        start: i64,
        work: &Work,
        target: Target,
        data: impl Fn() -> D,
    ) -> Result<Outcome, Failure> {
        let filled = || data().filled(&work.layout, ORIGIN);
        match work.case.bench {
            Bench::PutLatency
            | Bench::PutBw
            | Bench::PutBibw
            | Bench::PutMr
            | Bench::PutPingpong => {
                self.timed(window, start, work, &mut Put { target, data: &mut filled()? })
            }
            Bench::GetLatency | Bench::GetBw | Bench::GetBibw | Bench::GetMr => {
                self.timed(window, start, work, &mut Get { target, results: &mut data() })
            }
            Bench::AccLatency => {
                self.timed(window, start, work, &mut Accumulate { target, data: &mut filled()? })
            }
            Bench::GetAccLatency => {
                let (data, results) = (&mut filled()?, &mut data());
                self.timed(window, start, work, &mut GetAccumulate { target, data, results })
            }
            Bench::FopLatency => {
                let operand = layout::first(ORIGIN);
                self.timed(window, start, work, &mut FetchAndOp { target, operand, fetched: 0 })
            }
            Bench::CasLatency => {
                let (new, compare) = (layout::first(ORIGIN), layout::first(WINDOW));
                let swap = &mut CompareAndSwap { target, new, compare, fetched: 0 };
                self.timed(window, start, work, swap)
            }
            _ => self.timed(window, start, work, &mut Nothing { target: self.other }),
        }
    }

    /// Tries an operation, measures it, and validates its effect.
    fn timed<M, O: Operation>(
        &self,
        window: &mut Window<M>,
        start: i64,
        work: &Work,
        operation: &mut O,
    ) -> Result<Outcome, Failure> {
        let Work { layout, case, .. } = work;
        let once = layout.slots as u32;
        // A refusal occurs at the first call, which also touches all pages and fills caches.
        let tried = self.run(window, work, operation, 1, once);
        if let Err(why) = self.agree(tried)? {
            return Ok(Err(Refusal::Unsupported(why)));
        }
        let before = self.line()?;
        let took = self.run(window, work, operation, case.rounds, case.calls)?;
        let after = self.line()?;

        let checked = work.validate && layout.pattern.is_some() && case.bench != Bench::Sync;
        if checked {
            // The target takes no part in the timed rounds, so it may arrive here earlier.
            self.world.barrier()?;
            let local = window.local();
            let mut memory = vec![0; layout.len()];
            layout.fill(&mut memory, &[WINDOW], WINDOW)?;
            local.write_bytes(start, &memory)?;
            pattern::fill_gaps(operation.results(), RESULTS);
            self.world.barrier()?;
            self.run(window, work, operation, 1, once)?;
            self.world.barrier()?;
            let there = window.local().bytes(start, layout.len())?;
            if let Err(why) = self.agree(self.right(work, operation, &there))? {
                return Ok(Err(Refusal::Invalid(why)));
            }
        }
        let sample = Sample::of(took, [before, after], checked);
        Ok(sample.ok_or(Refusal::Unsupported("no rounds".to_owned())))
    }

    /// Checks every byte of this rank's window (`there`) and of the operation's results after one
    /// operation.
    fn right<O: Operation>(
        &self,
        work: &Work,
        operation: &mut O,
        there: &[u8],
    ) -> Result<(), Failure> {
        let seeds: &[u64] = match effect(work.case.bench) {
            _ if !work.exposed => &[WINDOW],
            Effect::Keeps => &[WINDOW],
            Effect::Replaces => &[ORIGIN],
            Effect::Adds => &[ORIGIN, WINDOW],
        };
        let mut expected = vec![0; work.layout.len()];
        work.layout.fill(&mut expected, seeds, WINDOW)?;
        let rank = self.me;
        let of = |what: &str, why: String| Failure::from(format!("{what} of rank {rank}: {why}"));
        pattern::compare(there, &expected).map_err(|why| of("the window", why))?;
        let found = operation.results();
        expected.truncate(found.len());
        work.layout.fill(&mut expected, &[WINDOW], RESULTS)?;
        pattern::compare(found, &expected).map_err(|why| of("what was fetched", why))?;
        match operation.fetched() {
            Some(number) if number != layout::first(WINDOW) => {
                let right = layout::first(WINDOW);
                Err(of("what was fetched", format!("it is {number}, not {right}")))
            }
            _ => Ok(()),
        }
    }

    /// Runs this rank's part of `rounds` rounds of `calls` operations, with their synchronisation.
    fn run<M, O: Operation>(
        &self,
        window: &mut Window<M>,
        work: &Work,
        operation: &mut O,
        rounds: u32,
        calls: u32,
    ) -> longshore::Result<Vec<f64>> {
        let (target, slots) = (self.other, work.layout.slots);
        let length = (rounds, calls, work.active && work.exposed);
        let epochs = calls.div_ceil(slots as u32);
        // A target takes no part in passive-target synchronisation.
        let own = if work.active { epochs } else { 0 };
        match work.case.sync {
            _ if work.case.bench == Bench::PutPingpong => {
                self.pingpong(window, work, operation, rounds, calls)
            }
            Sync::Notify => window.lock_all(|_| {
                let (calls, own_type) = (window.raw(), &work.layout.own);
                self.rounds(length, || {
                    (0..own).try_for_each(|_| operation.notify_pointer(calls, own_type))?;
                    // Completes them, and has its share in the time.
                    if work.active { calls.flush(target) } else { Ok(()) }
                })
            }),
            Sync::Flush if work.case.by == By::Pointer => window.lock_all(|_| {
                let (calls, own_type) = (window.raw(), &work.layout.own);
                self.rounds(length, || {
                    (0..own).try_for_each(|_| operation.flush_pointer(calls, own_type, slots))
                })
            }),
            Sync::FlushLocal if work.case.by == By::Pointer => window.lock_all(|_| {
                let (calls, own_type) = (window.raw(), &work.layout.own);
                self.rounds(length, || {
                    (0..own).try_for_each(|_| operation.fetch_pointer(calls, own_type))
                })
            }),
            Sync::Flush | Sync::FlushLocal => window.lock_all(|epoch| {
                self.rounds(length, || {
                    (0..own).try_for_each(|_| operation.flush(epoch, target, slots))
                })
            }),
            Sync::Lock | Sync::LockShared => {
                let lock_type = match work.case.sync {
                    Sync::Lock => LockType::Exclusive,
                    _ => LockType::Shared,
                };
                self.rounds(length, || {
                    (0..own).try_for_each(|_| {
                        let operation = &mut *operation;
                        window.lock(target, lock_type, move |epoch| operation.issue(epoch, slots))
                    })
                })
            }
            Sync::LockAll => self.rounds(length, || {
                (0..own).try_for_each(|_| {
                    let operation = &mut *operation;
                    window.lock_all(move |epoch| operation.issue(epoch, slots))
                })
            }),
            Sync::Fence => window.fences(|chain| {
                self.rounds(length, || {
                    (0..epochs).try_for_each(|_| {
                        let operation = &mut *operation;
                        chain.epoch(move |epoch| operation.issue(epoch, slots))
                    })
                })
            }),
            Sync::Pscw => self.rounds(length, || {
                (0..epochs).try_for_each(|_| {
                    if work.exposed {
                        window.post(&work.group, Assert::NONE)?;
                    }
                    if work.active {
                        let operation = &mut *operation;
                        window.start(&work.group, Assert::NONE, move |epoch| {
                            operation.issue(epoch, slots)
                        })?;
                    }
                    if work.exposed { window.wait() } else { Ok(()) }
                })
            }),
        }
    }
}

impl Pair<'_> {
    /// Runs this rank's part of rounds of puts to the other rank and back. Each rank puts once it
    /// has learnt of the other's put. Returns half the microseconds of a round trip.
    fn pingpong<M, O: Operation>(
        &self,
        window: &Window<M>,
        work: &Work,
        operation: &mut O,
        rounds: u32,
        calls: u32,
    ) -> longshore::Result<Vec<f64>> {
        let (raw, own_type, first) = (window.raw(), &work.layout.own, self.me == 0);
        let mut heard = window.notify_value(0)?;
        let (notifies, mut word) = (work.case.sync == Sync::Notify, [0i8]);
        let mut tell = || match notifies {
            true => operation.notify_pointer(raw, own_type),
            false => {
                operation.flush_pointer(raw, own_type, 1)?;
                self.world.send(&[0i8], self.other, 0)
            }
        };
        let mut hear = || match notifies {
            true => {
                heard += 1;
                window.wait_notify(0, heard).map(drop)
            }
            false => self.world.recv(&mut word, self.other, 0).map(drop),
        };
        window.lock_all(|_| {
            self.rounds((rounds, 2 * calls, false), || {
                for _ in 0..calls {
                    if first {
                        tell()?;
                    }
                    hear()?;
                    if !first {
                        tell()?;
                    }
                }
                Ok(())
            })
        })
    }
}

/// The effect of an operation on the target's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The target's data stay unchanged.
    Keeps,
    /// The origin's data replace the target's.
    Replaces,
    /// The origin's data are added to the target's.
    Adds,
}

/// The effect of a bench's operation.
fn effect(bench: Bench) -> Effect {
    match bench {
        Bench::PutLatency
        | Bench::PutBw
        | Bench::PutBibw
        | Bench::PutMr
        | Bench::PutPingpong
        | Bench::CasLatency => Effect::Replaces,
        Bench::AccLatency | Bench::GetAccLatency | Bench::FopLatency => Effect::Adds,
        _ => Effect::Keeps,
    }
}
