//! The paths that are counted. A path executes the same instructions in every run, because its
//! ranks are simulated in one process: one runs at a time, in an order that a seed decides.

use std::error::Error;
use std::hint::black_box;

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run};
use longshore::{Architecture, Datatype, Info, LockType, Op, Result, Window};
use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, Segment};
use shipable::{Committed, Partial, View, ViewMut};

use crate::pointer;
use crate::side::Side;

pub type Outcome = std::result::Result<(), Box<dyn Error>>;

/// A path.
pub struct Path {
    pub name: &'static str,
    /// Calls of the shorter of two runs.
    pub calls: u32,
    pub work: Work,
}

/// A function that makes a number of calls.
pub enum Work {
    /// Runs in each of two ranks that reach each other's windows directly.
    Direct(fn(&mut Side<'_>, u32) -> Result<()>),
    /// Runs in each of two ranks that use messages. Rank 1 has this architecture. The counts
    /// include both ranks and the simulation's switches between them.
    Message(Architecture, fn(&mut Side<'_>, u32) -> Result<()>),
    /// Runs without a job.
    Alone(fn(u32) -> Outcome),
    /// A path of the program in C, by its name there.
    C(&'static str),
}

/// Doubles of each rank's window.
const DOUBLES: i64 = 4096;
const VALUE: [f64; 1] = [1.5];

/// The hottest paths: those of the calls that programs make most often.
pub const PATHS: [Path; 26] = [
    Path { name: "put 8 B", calls: 10_000, work: Work::Direct(puts) },
    Path { name: "get 8 B", calls: 10_000, work: Work::Direct(gets) },
    Path { name: "put 8 B, flush", calls: 10_000, work: Work::Direct(put_and_flush) },
    Path { name: "put 8 B, notify", calls: 10_000, work: Work::Direct(put_and_notify) },
    Path { name: "lock, put 8 B, unlock", calls: 10_000, work: Work::Direct(lock) },
    Path { name: "put 8 B, fence", calls: 1000, work: Work::Direct(fence) },
    Path { name: "fetch_and_op", calls: 10_000, work: Work::Direct(fetch_and_op) },
    Path { name: "compare_and_swap", calls: 10_000, work: Work::Direct(compare_and_swap) },
    Path {
        name: "fetch_and_op by pointer, flush",
        calls: 10_000,
        work: Work::Direct(pointer::fetch_and_op),
    },
    Path {
        name: "compare_and_swap by pointer, flush",
        calls: 10_000,
        work: Work::Direct(pointer::compare_and_swap),
    },
    Path { name: "accumulate 8 B, flush", calls: 10_000, work: Work::Direct(accumulate) },
    Path { name: "put a column of 64 doubles, flush", calls: 1000, work: Work::Direct(column) },
    Path {
        name: "put 8 B by message, flush",
        calls: 500,
        work: Work::Message(Architecture::NATIVE, put_and_flush),
    },
    Path {
        name: "put 8 B by message, notify, flush",
        calls: 500,
        work: Work::Message(Architecture::NATIVE, put_and_notify_and_flush),
    },
    Path {
        name: "put 2 KiB by message to s390x, flush",
        calls: 500,
        work: Work::Message(Architecture::S390X, put_more_and_flush),
    },
    Path { name: "frame of 8 B through a ring", calls: 10_000, work: Work::Alone(frame) },
    Path { name: "pack 1024 doubles, stride 2", calls: 200, work: Work::Alone(pack) },
    Path { name: "unpack 256 structs of s390x", calls: 50, work: Work::Alone(unpack) },
    Path { name: "make and commit a vector", calls: 200, work: Work::Alone(commit) },
    Path { name: "put 8 B by C", calls: 10_000, work: Work::C("put") },
    Path { name: "get 8 B by C", calls: 10_000, work: Work::C("get") },
    Path { name: "put 8 B, flush by C", calls: 10_000, work: Work::C("flush") },
    Path { name: "accumulate 8 B, flush by C", calls: 10_000, work: Work::C("accumulate") },
    Path { name: "get_accumulate 8 B, flush by C", calls: 10_000, work: Work::C("get_accumulate") },
    Path { name: "fetch_and_op, flush by C", calls: 10_000, work: Work::C("fetch_and_op") },
    Path { name: "compare_and_swap, flush by C", calls: 10_000, work: Work::C("compare_and_swap") },
];

impl Path {
    /// Makes `calls` calls.
    pub fn run(&self, calls: u32) -> Outcome {
        match self.work {
            Work::Alone(work) => work(calls),
            Work::C(_) => Err("the program in C runs this path".into()),
            Work::Direct(work) => job(Routes::Best, Architecture::NATIVE, work, calls),
            Work::Message(architecture, work) => job(Routes::Message, architecture, work, calls),
        }
    }
}

/// Runs a job of two ranks. Rank 1 has the given architecture.
fn job(
    routes: Routes,
    architecture: Architecture,
    work: fn(&mut Side<'_>, u32) -> Result<()>,
    calls: u32,
) -> Outcome {
    let options = Options {
        routes,
        architectures: vec![Architecture::NATIVE, architecture],
        // Set here, so that the environment doesn't change the counts.
        adversary: None,
        check: Checking::Off,
        ..Options::default()
    };
    let ranks = run(2, &options, |rank| {
        let double = rank.type_of::<f64>()?;
        let info = Info { max_num_notify: 1, ..Info::default() };
        let mut window = Window::allocate(rank.world(), 8 * DOUBLES, 8, &info)?;
        work(&mut Side { rank: &rank, window: &mut window, double }, calls)?;
        window.free()?;
        rank.finalize()
    })?;
    Ok(ranks.into_iter().collect::<Result<()>>()?)
}

fn puts(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    side.window.lock_all(|epoch| {
        (0..calls).try_for_each(|at| epoch.put(&VALUE, 1, i64::from(at) % DOUBLES, 1, &side.double))
    })
}

fn gets(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let mut got = vec![0.0; calls as usize];
    side.window.lock_all(|epoch| {
        let mut places = got.chunks_mut(1).zip((0..DOUBLES).cycle());
        places.try_for_each(|(place, at)| epoch.get(place, 1, at, 1, &side.double))
    })
}

fn put_and_flush(side: &mut Side<'_>, calls: u32) -> Result<()> {
    flushed(side, calls, &VALUE)
}

fn put_more_and_flush(side: &mut Side<'_>, calls: u32) -> Result<()> {
    flushed(side, calls, &[1.5; 256])
}

fn flushed(side: &mut Side<'_>, calls: u32, values: &[f64]) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let (double, count) = (&side.double, values.len() as i64);
    side.window.lock_all(|epoch| {
        (0..calls).try_for_each(|_| epoch.flush(1, |epoch| epoch.put(values, 1, 0, count, double)))
    })
}

fn put_and_notify(side: &mut Side<'_>, calls: u32) -> Result<()> {
    // The owner doesn't sleep until its counter has risen: each raise would ring it.
    if side.waits() {
        side.rank.world().barrier()?;
        return side.window.wait_notify(0, calls.into()).map(drop);
    }
    side.window.lock_all(|epoch| {
        (0..i64::from(calls))
            .try_for_each(|at| epoch.put_notify(&VALUE, 1, at % DOUBLES, 1, &side.double, 0))
    })?;
    side.rank.world().barrier()
}

fn put_and_notify_and_flush(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let double = &side.double;
    side.window.lock_all(|epoch| {
        (0..calls)
            .try_for_each(|_| epoch.flush(1, |epoch| epoch.put_notify(&VALUE, 1, 0, 1, double, 0)))
    })
}

fn lock(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let double = &side.double;
    (0..calls).try_for_each(|_| {
        side.window.lock(1, LockType::Exclusive, |epoch| epoch.put(&VALUE, 1, 0, 1, double))
    })
}

fn fence(side: &mut Side<'_>, calls: u32) -> Result<()> {
    let (double, other) = (&side.double, 1 - side.rank.world().rank());
    side.window.fences(|chain| {
        (0..calls).try_for_each(|_| chain.epoch(|epoch| epoch.put(&VALUE, other, 0, 1, double)))
    })
}

fn fetch_and_op(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    side.window.lock_all(|epoch| {
        (0..calls).try_for_each(|_| epoch.fetch_and_op(1i64, 1, 0, Op::Sum)?.wait().map(drop))
    })
}

fn compare_and_swap(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    side.window.lock_all(|epoch| {
        (0..calls).try_for_each(|_| epoch.compare_and_swap(1i64, 0, 1, 0)?.wait().map(drop))
    })
}

fn accumulate(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let double = &side.double;
    side.window.lock_all(|epoch| {
        (0..calls).try_for_each(|_| {
            epoch.flush(1, |epoch| epoch.accumulate(&VALUE, 1, 0, 1, double, Op::Sum))
        })
    })
}

fn column(side: &mut Side<'_>, calls: u32) -> Result<()> {
    if side.waits() {
        return Ok(());
    }
    let column = side.rank.commit(&Datatype::vector(64, 1, 64, &Datatype::double())?)?;
    let values = [1.5; 64];
    side.window.lock_all(|epoch| {
        (0..calls).try_for_each(|_| epoch.flush(1, |epoch| epoch.put(&values, 1, 0, 1, &column)))
    })
}

fn frame(calls: u32) -> Outcome {
    let segment = Segment::create(2)?;
    let mut left = ShmLink::new(segment.as_rank(0)?)?;
    let mut right = ShmLink::new(segment.as_rank(1)?)?;
    for _ in 0..calls {
        let mut frame = left.reserve(1, 8)?;
        frame.copy_from_slice(black_box(&[1; 8]));
        frame.commit();
        black_box(right.receive()?.ok_or("a frame that was sent isn't there")?[0]);
    }
    Ok(())
}

fn pack(calls: u32) -> Outcome {
    let vector = Datatype::vector(1024, 1, 2, &Datatype::double())?;
    let vector = Committed::new(&vector, &Architecture::NATIVE)?;
    let program = vector.program(&Architecture::NATIVE)?;
    let (memory, mut packed) = ([1; 16 << 10], [0; 8 << 10]);
    for _ in 0..calls {
        program.pack(1, View::new(black_box(&memory)), 0, black_box(&mut packed))?;
    }
    Ok(())
}

fn unpack(calls: u32) -> Outcome {
    let members = [Datatype::char(), Datatype::double(), Datatype::int(), Datatype::short()];
    let record = Datatype::struct_(&[1, 1, 1, 3], &[0, 8, 16, 20], &members)?;
    let record = Committed::new(&record, &Architecture::NATIVE)?;
    let program = record.program(&Architecture::S390X)?;
    let (mut memory, packed) = ([0; 256 * 32], [1; 256 * 19]);
    for _ in 0..calls {
        let memory = ViewMut::new(black_box(&mut memory));
        program.unpack(256, memory, 0, black_box(&packed), &mut Partial::default())?;
    }
    Ok(())
}

fn commit(calls: u32) -> Outcome {
    for _ in 0..calls {
        let vector = Datatype::vector(black_box(100), 3, 7, &Datatype::double())?;
        black_box(Committed::new(&vector, &Architecture::NATIVE)?);
    }
    Ok(())
}
