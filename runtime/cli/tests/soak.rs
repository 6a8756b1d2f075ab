//! Random jobs of random operations, checked against a sequential model of every window.
//!
//! LONGSHORE_SOAK_SECONDS is the duration (3 by default), LONGSHORE_SOAK_SEED the first seed. Every
//! job prints its seed. Ranks emulate various architectures, use direct routes or messages, may
//! remember no operation, and may have an adversary; some jobs lose a rank by SIGKILL. No job may
//! have a wrong byte, hang, leak descriptors or memory, or leave a process. A job with checking may
//! have a report only if it has a planted conflict.
//!
//! The ranks are this test binary, whose test `rank` plays the job in SOAK. LONGSHORE_FOREIGN may
//! name builds of it for other architectures, each after its emulator if it needs one; every other
//! job has some of them as ranks. All ranks draw the same random numbers, so that each knows the
//! operations of all ranks and keeps the model of all windows.

mod support;

use std::fmt::Debug;
use std::ops::Add;
use std::os::linux::fs::MetadataExt as _;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use longshore::{
    Assert, Buffer, Communicator, Datatype, Element, Epoch, Info, LockType, Op, Passive, Rank,
    Result, SplitType, Type, Window,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shipable::oracle::Random;
use support::{HANG, reader, start, variable};

/// Mappings of ended windows that a rank keeps for the next ones (transport's `RECENT`).
const KEPT: usize = 8;

/// The number of elements of each rank's window.
const LEN: usize = 90;
/// The number of rounds of operations on a window.
const ROUNDS: u64 = 8;
/// The most bytes by which resident memory may grow over all windows: pages touched for the first
/// time.
const GROWTH: usize = 3 << 20;
/// The most bytes by which the segment may grow for each pair of ranks: pages of the pair's ring
/// touched for the first time.
const SHARED_GROWTH: u64 = 256 << 10;

trait Number: Element + Copy + PartialEq + Debug + From<u8> + Add<Output = Self> {}
impl<T: Element + Copy + PartialEq + Debug + From<u8> + Add<Output = T>> Number for T {}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Put,
    Get,
    /// All ranks accumulate the same values concurrently.
    Sum,
}

/// An operation of one rank on elements of a window that no other rank accesses, or the same
/// operation of all ranks.
struct Transfer<T> {
    origin: i32,
    target: i32,
    kind: Kind,
    at: usize,
    /// The elements of the type, relative to `at`, in the order of the type map.
    places: Vec<usize>,
    datatype: Datatype,
    values: Vec<T>,
}

/// Random operations that access disjoint elements.
fn transfers<T: Number>(random: &mut Random, size: i32) -> Result<Vec<Transfer<T>>> {
    let mut all = Vec::new();
    for target in 0..size {
        let mut at = 0;
        while at < LEN {
            let len = (1 + random.index(20)).min(LEN - at);
            let (places, datatype): (Vec<usize>, _) = match random.below(3) {
                0 => ((0..len).collect(), Datatype::contiguous(len as i64, &T::datatype())?),
                1 => {
                    let count = len.div_ceil(2);
                    let datatype = Datatype::vector(count as i64, 1, 2, &T::datatype())?;
                    ((0..len).step_by(2).collect(), datatype)
                }
                _ => {
                    let places: Vec<i64> = (0..len as i64).rev().collect();
                    let datatype = Datatype::indexed_block(1, &places, &T::datatype())?;
                    ((0..len).rev().collect(), datatype)
                }
            };
            let origin = random.index(size as usize) as i32;
            let kind = *random.pick(&[Kind::Put, Kind::Put, Kind::Get, Kind::Sum]);
            let values = places.iter().map(|_| T::from(random.number() as u8)).collect();
            if !random.chance(8) {
                all.push(Transfer { origin, target, kind, at, places, datatype, values });
            }
            at += len;
        }
    }
    Ok(all)
}

/// A transfer with the buffers of one origin.
struct Mine<'a, T> {
    transfer: &'a Transfer<T>,
    /// The target displacement.
    displacement: i64,
    datatype: Type,
    room: Vec<T>,
}

fn issue<'scope, T: Number>(
    epoch: &Epoch<'scope, '_>,
    mine: &'scope mut Mine<'_, T>,
) -> Result<()> {
    let Transfer { target, kind, values, .. } = mine.transfer;
    let (target, at) = (*target, mine.displacement);
    match kind {
        Kind::Put => epoch.put(&values[..], target, at, 1, &mine.datatype),
        Kind::Get => epoch.get(&mut mine.room, target, at, 1, &mine.datatype),
        Kind::Sum => epoch.accumulate(&values[..], target, at, 1, &mine.datatype, Op::Sum),
    }
}

/// Issues the operation as a request-based one and waits for the request.
fn ask<T: Number>(epoch: &Passive<'_, '_>, mine: &mut Mine<'_, T>) -> Result<()> {
    let Transfer { target, kind, values, .. } = mine.transfer;
    let (target, at, values) = (*target, mine.displacement, values.clone());
    match kind {
        Kind::Put => drop(epoch.rput(values, target, at, 1, &mine.datatype)?.wait()?),
        Kind::Get => {
            let room = std::mem::take(&mut mine.room);
            mine.room = epoch.rget(room, target, at, 1, &mine.datatype)?.wait()?;
        }
        Kind::Sum => {
            drop(epoch.raccumulate(values, target, at, 1, &mine.datatype, Op::Sum)?.wait()?);
        }
    }
    Ok(())
}

/// The target displacements of the elements of a window.
struct Displacements {
    /// For each target, the displacement of its first element.
    first: Vec<i64>,
    /// The distance between elements.
    step: i64,
}

impl Displacements {
    fn at(&self, target: usize, element: usize) -> i64 {
        self.first[target] + self.step * element as i64
    }
}

/// A window and the model of its contents at all ranks.
struct Modelled<'a, T, M> {
    rank: &'a Rank,
    /// The communicator of the window: all ranks, or some of them.
    world: &'a Communicator,
    window: Window<M>,
    displacements: Displacements,
    /// Whether its epochs are passive, otherwise post and start. Both kinds mix with fences.
    passive: bool,
    model: Vec<Vec<T>>,
}

impl<T: Number, M> Modelled<'_, T, M> {
    /// Plants a conflict: two ranks put to one element in one epoch. Both put the same value, so
    /// that the model stays exact.
    fn plant(&mut self, random: &mut Random) -> Result<()> {
        let (target, at) = (random.index(self.model.len()), random.index(LEN));
        let (me, value) = (self.world.rank(), [T::from(7)]);
        let number = self.rank.commit(&T::datatype())?;
        let place = self.displacements.at(target, at);
        self.window.fence(|epoch| match me {
            0 | 1 => epoch.put(&value, target as i32, place, 1, &number),
            _ => Ok(()),
        })?;
        self.model[target][at] = value[0];
        Ok(())
    }

    /// Makes a round of operations in a random kind of epoch, and compares with the model.
    fn round(&mut self, random: &mut Random) -> Result<()> {
        let world = self.world;
        let all = transfers::<T>(random, world.size())?;
        let here = all
            .iter()
            .filter(|transfer| transfer.kind == Kind::Sum || transfer.origin == world.rank());
        let mut mine = Vec::new();
        for transfer in here {
            let datatype = self.rank.commit(&transfer.datatype)?;
            let room = vec![T::from(0); transfer.places.len()];
            let displacement = self.displacements.at(transfer.target as usize, transfer.at);
            mine.push(Mine { transfer, displacement, datatype, room });
        }
        let kind = match self.passive {
            true => *random.pick(&["fence", "lock", "lock_all", "flush", "requests"]),
            false => *random.pick(&["fence", "post"]),
        };
        let exclusive = random.chance(2);
        let window = &mut self.window;
        match kind {
            "fence" => {
                window.fence(|epoch| mine.iter_mut().try_for_each(|each| issue(epoch, each)))?
            }
            "lock" => {
                for each in &mut mine {
                    let lock = if exclusive { LockType::Exclusive } else { LockType::Shared };
                    window.lock(each.transfer.target, lock, |epoch| issue(epoch, each))?;
                }
            }
            "lock_all" => {
                window.lock_all(|epoch| mine.iter_mut().try_for_each(|each| issue(epoch, each)))?;
            }
            "flush" => {
                window.lock_all(|epoch| {
                    for each in &mut mine {
                        let target = each.transfer.target;
                        epoch.flush(target, |epoch| issue(epoch, each))?;
                    }
                    Ok(())
                })?;
            }
            "requests" => {
                window.lock_all(|epoch| mine.iter_mut().try_for_each(|each| ask(epoch, each)))?;
            }
            _ => {
                window.post(world.group(), Assert::NONE)?;
                window.start(world.group(), Assert::NONE, |epoch| {
                    mine.iter_mut().try_for_each(|each| issue(epoch, each))
                })?;
                window.wait()?;
            }
        }
        world.barrier()?;
        for Mine { transfer, room, .. } in &mine {
            let there = &self.model[transfer.target as usize];
            let expected: Vec<T> =
                transfer.places.iter().map(|place| there[transfer.at + place]).collect();
            assert!(
                transfer.kind != Kind::Get || *room == expected,
                "{kind}: got {room:?}, not {expected:?}"
            );
        }
        for Transfer { target, kind, at, places, values, .. } in &all {
            for (place, value) in places.iter().zip(values) {
                let item = &mut self.model[*target as usize][at + place];
                match kind {
                    Kind::Put => *item = *value,
                    Kind::Get => {}
                    Kind::Sum => (0..world.size()).for_each(|_| *item = *item + *value),
                }
            }
        }
        let me = world.rank();
        let mut found = vec![T::from(0); LEN];
        if self.passive {
            self.window.lock(me, LockType::Shared, |epoch| epoch.sync())?;
        }
        self.window.read(self.displacements.at(me as usize, 0), &mut found)?;
        let expected = &self.model[me as usize];
        assert!(found == *expected, "rank {me} after {kind}: {found:?}, not {expected:?}");
        world.barrier()
    }
}

/// Makes all rounds on a window and returns the window.
fn live<T: Number, M>(
    rank: &Rank,
    world: &Communicator,
    random: &mut Random,
    window: Window<M>,
    displacements: Displacements,
) -> Result<Window<M>> {
    let model = vec![vec![T::from(0); LEN]; world.size() as usize];
    let passive = random.chance(2);
    let mut modelled = Modelled { rank, world, window, displacements, passive, model };
    let planted = std::env::var("PLANTED").is_ok().then(|| random.below(ROUNDS));
    for number in 0..ROUNDS {
        modelled.round(random)?;
        if planted == Some(number) {
            modelled.plant(random)?;
        }
    }
    Ok(modelled.window)
}

/// Sends messages of a random length around a ring, and gathers values of all ranks.
fn talk<T: Number>(world: &Communicator, random: &mut Random) -> Result<()> {
    let (me, size) = (world.rank(), world.size());
    let len = *random.pick(&[0, 1, 100, 600, 20_000]);
    let values =
        |from: i32| -> Vec<T> { (0..len).map(|i| T::from((i as i32 * 7 + from) as u8)).collect() };
    let (next, last) = ((me + 1) % size, (me + size - 1) % size);
    let mut room = vec![T::from(0); len];
    if me == 0 {
        world.send(&values(me), next, 1)?;
        world.recv(&mut room, last, 1)?;
    } else {
        world.recv(&mut room, last, 1)?;
        world.send(&values(me), next, 1)?;
    }
    assert!(room == values(last), "rank {me} of {len} from {last}");
    let all = world.allgather(&values(me)[..len.min(50)])?;
    let expected: Vec<T> =
        (0..size).flat_map(|from| values(from)[..len.min(50)].to_vec()).collect();
    assert!(all == expected, "rank {me} gathered {all:?}");
    let copy = world.dup()?;
    copy.barrier()?;
    copy.free()
}

/// Draws unique tickets from a counter by fetch_and_op, and takes turns by compare_and_swap on a
/// word.
fn draw(world: &Communicator, random: &mut Random) -> Result<()> {
    const DRAWN: i64 = 5;
    let (me, size) = (world.rank(), world.size());
    let owner = random.index(size as usize) as i32;
    let window = Window::allocate(world, 16, 8, &Info::default())?;
    let mut mine = window.lock_all(|epoch| {
        let drawn: Vec<_> =
            (0..DRAWN).map(|_| epoch.fetch_and_op(1, owner, 0, Op::Sum)).collect::<Result<_>>()?;
        drawn.into_iter().map(|value| value.wait()).collect::<Result<Vec<i64>>>()
    })?;
    assert!(mine.is_sorted(), "rank {me} drew {mine:?}");
    loop {
        let before = window.lock(owner, LockType::Exclusive, |epoch| {
            epoch.compare_and_swap(i64::from(me) + 1, i64::from(me), owner, 1)?.wait()
        })?;
        if before == i64::from(me) {
            break;
        }
        assert!((0..i64::from(me)).contains(&before), "rank {me} found {before}");
        // Sleep, so that other ranks can run.
        thread::sleep(Duration::from_micros(100));
    }
    mine = world.allgather(&mine)?;
    mine.sort_unstable();
    assert!(mine.iter().copied().eq(0..DRAWN * i64::from(size)), "drawn: {mine:?}");
    window.free()
}

/// The system resources of a rank and its job.
#[derive(Debug)]
struct Usage {
    descriptors: usize,
    threads: usize,
    mappings: usize,
    /// Resident bytes that are not shared.
    resident: usize,
    /// Bytes of the job's segment that are backed by memory.
    shared: u64,
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

impl Usage {
    fn now() -> Usage {
        let count = |folder| std::fs::read_dir(folder).unwrap().count();
        let read = |file| std::fs::read_to_string(file).unwrap();
        let status = read("/proc/self/status");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let fds = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|fd| fd.path());
        let is_segment = |path: &PathBuf| {
            std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("memfd:"))
        };
        let segment = fds.filter(is_segment).find_map(|path| std::fs::metadata(path).ok());
        Usage {
            descriptors: descriptors(),
            threads: count("/proc/self/task"),
            mappings: read("/proc/self/maps").lines().filter(|map| map.contains("memfd:")).count(),
            resident: kib << 10,
            shared: segment.expect("a segment").st_blocks() * 512,
        }
    }

    /// Checks that no resource has grown since `since` beyond the limits.
    fn check(&self, since: &Usage, ranks: i32) {
        // Connections of processes outside of the job may hold descriptors for a while.
        let besieged = std::env::var("BESIEGED").is_ok();
        let pairs = u64::from(ranks.unsigned_abs()).pow(2);
        // A processor emulator keeps its translated code in memory.
        let translated = !cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        // The link over libfabric lists its sockets from time to time, by descriptors that it has
        // for a moment only.
        let falls = || {
            (0..100).any(|_| {
                thread::sleep(Duration::from_millis(10));
                descriptors() <= since.descriptors
            })
        };
        let grown = self.descriptors > since.descriptors && !besieged && !falls()
            // The progress thread comes with the first window that needs it.
            || self.threads > since.threads + 1
            || self.mappings > since.mappings + KEPT
            || self.resident > since.resident + GROWTH && !translated
            || self.shared > since.shared + SHARED_GROWTH * pairs;
        assert!(!grown, "{since:?} grew to {self:?}");
    }
}

fn play<T: Number>(rank: &Rank, random: &mut Random, windows: usize) -> Result<()> {
    let unit = size_of::<T>() as i64;
    let world = rank.world();
    // Touch the rings of all pairs first. The rings of a rank take a MiB together.
    let (me, size) = (world.rank(), world.size());
    let data = vec![0u8; (1 << 20) / size.clamp(4, 64) as usize * 2];
    let mut room = data.clone();
    for step in 0..size {
        let (to, from) = ((me + step) % size, (me + size - step) % size);
        world.sendrecv((&data, to, 0), (&mut room, from, 0))?;
    }
    // A rank keeps a part of the segment for each size of short memory, once it has used the size.
    (6..=14).try_for_each(|power| rank.alloc_mem(1 << power).map(drop))?;
    let mut start = None;
    for number in 0..windows {
        // Each part has its own windows, and so its own random numbers.
        let parts = [1, 1, 2][random.index(3)];
        let mut own = Random::new(random.number(), Default::default());
        let part = world.split(Some(world.rank() % parts), 0)?;
        let part = part.expect("all ranks have a part");
        let info = Info::default();
        let displacements = Displacements { first: vec![0; part.size() as usize], step: 1 };
        let here = part.split_type(Some(SplitType::Shared), 0)?.expect("all ranks have a host");
        let one_host = here.size() == part.size();
        here.free()?;
        match own.below(4) {
            flavor @ 0..=1 if flavor == 0 || !one_host => {
                let window = Window::allocate(&part, LEN as i64 * unit, unit, &info)?;
                live::<T, _>(rank, &part, &mut own, window, displacements)?.free()?;
            }
            0 | 1 => {
                let window = Window::allocate_shared(&part, LEN as i64 * unit, unit, &info)?;
                live::<T, _>(rank, &part, &mut own, window, displacements)?.free()?;
            }
            2 => {
                let window = Window::create_dynamic(&part, &info)?;
                let memory = window.attach(rank.buffer::<T>(LEN)?)?;
                let first = part.allgather(&[memory.address()])?;
                let displacements = Displacements { first, step: unit };
                let window = live::<T, _>(rank, &part, &mut own, window, displacements)?;
                assert_eq!(window.detach(memory)?.len(), LEN);
                window.free()?;
            }
            _ => {
                let memory: Buffer<T> = rank.buffer(LEN)?;
                let window = Window::create(&part, memory, unit, &info)?;
                let memory = live::<T, _>(rank, &part, &mut own, window, displacements)?.free()?;
                assert_eq!(memory.len(), LEN);
            }
        }
        draw(&part, &mut own)?;
        part.free()?;
        talk::<T>(world, random)?;
        if number > 0 {
            // All ranks have freed their windows.
            world.barrier()?;
            let now = Usage::now();
            world.barrier()?;
            match &start {
                Some(start) => now.check(start, world.size()),
                None => start = Some(now),
            }
        }
    }
    Ok(())
}

/// The program of the ranks if SOAK is set; otherwise it does nothing.
#[test]
fn rank() {
    let Ok(job) = std::env::var("SOAK") else { return };
    let (seed, windows) = job.split_once(' ').unwrap();
    let mut random = Random::new(seed.parse().unwrap(), Default::default());
    let windows = windows.parse().unwrap();
    let rank = longshore::init().unwrap();
    eprintln!("rank {} waits", rank.world().rank());
    let played = match random.below(5) {
        0 => play::<i32>(&rank, &mut random, windows),
        1 => play::<i64>(&rank, &mut random, windows),
        2 => play::<f64>(&rank, &mut random, windows),
        3 => play::<f32>(&rank, &mut random, windows),
        _ => play::<u16>(&rank, &mut random, windows),
    };
    played.unwrap();
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// Runs one random job.
fn soak(seed: u64) {
    let mut random = Random::new(seed, Default::default());
    // Some jobs have far more ranks than cores.
    let size = if random.chance(12) { 32 } else { 2 + random.index(5) };
    let archs: Vec<&str> = (0..size)
        .map(|_| *random.pick(&["native", "native", "s390x", "i686", "m68k", "win64", "aarch64"]))
        .collect();
    let like = random.chance(3);
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let foreign = std::env::var("LONGSHORE_FOREIGN").unwrap_or_default();
    let foreign: Vec<_> = foreign.split(';').filter(|command| !command.is_empty()).collect();
    let real = !foreign.is_empty() && size <= 8 && random.chance(2);
    let mut words: Vec<String> = ["--timeout", "50"].map(str::to_owned).to_vec();
    if random.chance(3) {
        words.extend(["--route", "message"].map(str::to_owned));
    }
    if random.chance(3) {
        words.extend(["--adversary".to_owned(), random.below(1000).to_string()]);
    }
    if random.chance(3) {
        words.extend(["--progress", "off"].map(str::to_owned));
    }
    if random.chance(4) {
        words.push("--check=fail".to_owned());
    }
    let fast = if random.chance(3) { "off" } else { "on" };
    let windows = if size > 6 { 1 + random.index(3) } else { 1 + random.index(6) };
    let parts: Vec<(usize, Option<String>, &str)> = match real {
        false => vec![(size, (!like).then(|| archs.join(",")), &program)],
        // Use each foreign build at least once, if there are enough ranks.
        true => (0..size)
            .map(|rank| match rank.checked_sub(1) {
                None => (1, None, &*program),
                Some(rank) => {
                    (1, None, *foreign.get(rank).unwrap_or_else(|| random.pick(&foreign)))
                }
            })
            .collect(),
    };
    for (number, (ranks, archs, command)) in parts.into_iter().enumerate() {
        words.extend((number > 0).then(|| ":".to_owned()));
        words.extend(["-n".to_owned(), ranks.to_string()]);
        words.extend(["--env".to_owned(), format!("SOAK={seed} {windows}")]);
        words.extend(["--env".to_owned(), format!("LONGSHORE_FAST={fast}")]);
        words.extend(archs.into_iter().flat_map(|archs| ["--arch".to_owned(), archs]));
        words.extend(command.split_whitespace().map(str::to_owned));
        words.extend(["--exact", "rank", "--nocapture", "-q"].map(str::to_owned));
    }
    println!("seed {seed}: {}", words.join(" "));
    let mut run = start(&words);
    let mut killed = false;
    let stderr = run.await_waiting(size);
    let stderr = reader(Some(stderr));
    if random.chance(4) {
        thread::sleep(Duration::from_micros(random.below(200_000)));
        let victim = random.index(size).to_string();
        let pids = run.running();
        let pid = pids.into_iter().find(|&pid| variable(pid, "PMI_RANK") == victim);
        // The rank may have ended already.
        killed = pid.is_some_and(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok());
    }
    let status = run.finish().status;
    let stderr = stderr.recv_timeout(HANG).unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    let sound = status == 0 || killed && status == 128 + Signal::SIGKILL as i32;
    assert!(sound, "seed {seed}: status {status}\n{stderr}");
}

#[test]
fn a_planted_conflict_is_reported_processes() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    for (archs, check, failed) in [
        ("native", "--check", false),
        ("s390x,native,i686", "--check", false),
        ("native,m68k", "--check=fail", true),
    ] {
        let job = format!("SOAK={now} 1");
        let words = ["-n", "4", "--arch", archs, check, "--env", &job, "--env", "PLANTED=1"];
        let play = [&program, "--exact", "rank", "--nocapture", "-q"];
        let finished = support::run(&[&words[..], &play].concat());
        assert_eq!(finished.status != 0, failed, "seed {now}: {}", finished.stderr);
        let words = [
            "check: rule 23, window ",
            "check:   put by rank ",
            "at runtime/cli/tests/soak.rs:",
            "check:   both touch bytes ",
            "check: ", // the summary
            " report",
        ];
        for word in words {
            assert!(finished.stderr.contains(word), "seed {now}: {word}: {}", finished.stderr);
        }
    }
}

#[test]
fn random_jobs_match_the_model_processes() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let limit = Duration::from_secs(number("LONGSHORE_SOAK_SECONDS").unwrap_or(3));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let first = number("LONGSHORE_SOAK_SEED").unwrap_or(now.as_millis() as u64);
    let (start, next) = (Instant::now(), AtomicU64::new(first));
    // Each thread runs one job at a time. A job depends only on its seed.
    let pool = rayon::ThreadPoolBuilder::new().build().unwrap();
    pool.broadcast(|_| {
        while start.elapsed() < limit {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            assert!(catch_unwind(|| soak(seed)).is_ok(), "seed {seed} failed, as said above");
        }
    });
    println!("{} jobs in {:.1?}", next.into_inner() - first, start.elapsed());
}
