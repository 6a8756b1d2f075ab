//! Kills ranks and launchers at random moments. Checks the launcher's messages, the errors of the
//! survivors' calls, and that no process is left.
//!
//! The ranks are this test binary, whose test `rank` plays the phase in PHASE. LONGSHORE_FOREIGN
//! may name builds of it for other architectures, separated by `;`, each after its emulator if it
//! needs one. Every rank with an odd number is then one of these builds. LONGSHORE_TEST_CASES is
//! the number of kills in each phase.

mod support;

use std::error::Error;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use longshore::job::env;
use longshore::{
    ANY_SOURCE, ANY_TAG, Assert, Class, Communicator, Datatype, Epoch, Info, LockType, Op, Passive,
    Rank, Type, Window,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{HANG, LaunchedJob, parent, start, variable};

/// The number of ranks. Ranks 1 and 3 may be builds for other architectures.
const RANKS: usize = 4;

/// The rank that the tests kill.
const VICTIM: i32 = 1;

/// The rank whose window is locked, perhaps by the victim, when the victim dies.
const HEIR: i32 = 2;

/// The longest time from a death to the end of the job. The promise is a second, but slow machines
/// get ten times the time that the job took to begin.
fn bound(begin: Duration) -> Duration {
    Duration::from_secs(5).max(10 * begin)
}

/// The elements of a long transfer of 1 MiB, which takes several frames.
const LONG: usize = 128 << 10;

/// The program of the ranks if PHASE is set; otherwise it does nothing.
#[test]
fn rank() {
    let Ok(phase) = std::env::var("PHASE") else { return };
    let me = std::env::var("PMI_RANK").unwrap().parse::<i32>().unwrap();
    if phase == "init" {
        eprintln!("rank {me} waits");
        if me == VICTIM {
            thread::sleep(HANG);
        }
    }
    let error = match longshore::init() {
        Ok(rank) if matches!(&*phase, "calls" | "answers") => wait_in_vain(rank, &phase),
        Ok(rank) if matches!(&*phase, "finalize" | "outlive") => {
            let ended = match &*phase {
                "finalize" => finalize_in_vain(rank),
                _ => outlive(rank),
            };
            match ended {
                Ok(()) => {
                    eprintln!("rank {me} survived: it waits for no dead rank");
                    std::process::exit(0);
                }
                Err(error) => error,
            }
        }
        Ok(rank) => play(rank, &phase),
        Err(error) => error.into(),
    };
    let class = error.downcast_ref().map(longshore::Error::class);
    let is_lost = match class {
        Some(Class::ProcFailed) => survives(),
        // A neighbour of the victim has revoked the communicator.
        Some(Class::Revoked) => survives() && is_between_two(&phase),
        class => class == Some(Class::ProcAborted) && !survives(),
    };
    assert!(is_lost, "rank {me}: {error}");
    eprintln!("rank {me} survived: {error}");
    std::process::exit(0);
}

/// Whether the job goes on after a death.
fn survives() -> bool {
    std::env::var(env::ON_DEATH).as_deref() == Ok("survive")
}

/// Whether only the victim's neighbours wait for it in a phase.
fn is_between_two(phase: &str) -> bool {
    matches!(phase, "send" | "type_send")
}

/// Calls finalize, which the victim never does.
fn finalize_in_vain(rank: Rank) -> Result<(), Box<dyn Error>> {
    let me = rank.world().rank();
    eprintln!("rank {me} waits");
    if me == VICTIM {
        thread::sleep(HANG);
    }
    Ok(rank.finalize()?)
}

/// The steps that survivors go on for after a death.
const STEPS_AFTER: u32 = 20;

/// Repeats a step of all ranks. After a death, the survivors go on without the dead rank.
fn outlive(rank: Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let double = rank.commit(&Datatype::double())?;
    let open = |ring: &Communicator| Window::allocate(ring, 8, 8, &Info::default());
    let mut ring = world.dup()?;
    let (mut window, mut left, mut is_first) = (open(&ring)?, STEPS_AFTER, true);
    while left > 0 {
        let stepped = step(&ring, &mut window, &double);
        if stepped.is_err() {
            ring.revoke()?;
        }
        let mut has_succeeded = i32::from(stepped.is_ok());
        let agreed = ring.agree(&mut has_succeeded);
        match agreed.is_ok() && has_succeeded == 1 {
            true => left -= u32::from(ring.size() < world.size()),
            false => {
                let survivors = ring.shrink()?;
                window = open(&survivors)?;
                std::mem::replace(&mut ring, survivors).free()?;
            }
        }
        if is_first {
            eprintln!("rank {} waits", world.rank());
        }
        is_first = false;
    }
    assert_eq!(ring.size(), world.size() - 1);
    window.free()?;
    ring.free()?;
    Ok(rank.finalize()?)
}

/// One call of each kind: a reduction, messages to neighbours, a fence and a lock.
fn step(ring: &Communicator, window: &mut Window, double: &Type) -> longshore::Result<()> {
    let (me, size) = (ring.rank(), ring.size());
    let (next, last) = ((me + 1) % size, (me + size - 1) % size);
    let (mut sum, mut heard) = ([0], [-1]);
    ring.allreduce(&[1], &mut sum, Op::Sum)?;
    assert_eq!(sum, [size]);
    ring.sendrecv((&[me], next, 0), (&mut heard, last, 0))?;
    assert_eq!(heard, [last]);
    let mine = [f64::from(me)];
    window.fence(|epoch| epoch.put(&mine, next, 0, 1, double))?;
    assert_eq!(window.get::<f64>(0)?, f64::from(last));
    window.fence(|_| Ok(()))?;
    let (one, target) = ([1.0], HEIR % size);
    window.lock(target, LockType::Exclusive, |epoch| {
        epoch.accumulate(&one, target, 0, 1, double, Op::Sum)
    })
}

/// Repeats a phase until it fails, and returns the error.
fn play(rank: Rank, phase: &str) -> Box<dyn Error> {
    let me = rank.world().rank();
    let mut fixture = Fixture::new(&rank).unwrap();
    let mut rounds = 0;
    let error = loop {
        if let Err(error) = fixture.round(phase) {
            break error;
        }
        if rounds == 0 {
            eprintln!("rank {me} waits");
        }
        rounds += 1;
    };
    if !survives() {
        return error;
    }
    let go_on = || -> Result<(), Box<dyn Error>> {
        // In a collective phase, all survivors have failed, and they can still communicate.
        match is_between_two(phase) {
            true => rank.world().revoke()?,
            false => greet_survivors(rank.world())?,
        }
        // A lock that the dead rank held or waited for is free.
        if matches!(phase, "lock" | "fetch") {
            let Fixture { window, double, .. } = &fixture;
            window
                .lock(HEIR, LockType::Exclusive, |epoch| epoch.put(&[1.0], HEIR, 0, 1, double))?;
            greet_survivors(rank.world())?;
        }
        Ok(())
    };
    go_on().unwrap();
    drop(fixture);
    rank.finalize().unwrap();
    error
}

/// Every survivor receives a message from every survivor.
fn greet_survivors(world: &Communicator) -> longshore::Result<()> {
    const TAG: i32 = 77;
    let survivors = || (0..world.size()).filter(|&rank| rank != VICTIM);
    for peer in survivors() {
        world.send(&[world.rank()], peer, TAG)?;
    }
    for peer in survivors() {
        let mut word = [-1];
        world.recv(&mut word, peer, TAG)?;
        assert_eq!(word, [peer]);
    }
    Ok(())
}

/// The communicator, window and buffers of the phases.
struct Fixture<'a> {
    world: &'a Communicator,
    double: Type,
    window: Window,
    data: Vec<f64>,
    room: Vec<f64>,
}

impl Fixture<'_> {
    fn new(rank: &Rank) -> Result<Fixture<'_>, Box<dyn Error>> {
        let world = rank.world();
        Ok(Fixture {
            world,
            double: rank.commit(&Datatype::double())?,
            window: Window::allocate(world, 8 * LONG as i64, 8, &Info::default())?,
            data: vec![1.0; LONG],
            room: vec![0.0; LONG],
        })
    }

    fn round(&mut self, phase: &str) -> Result<(), Box<dyn Error>> {
        let Fixture { world, double, window, data, room } = self;
        let (me, size) = (world.rank(), world.size());
        let (next, last) = ((me + 1) % size, (me + size - 1) % size);
        match phase {
            "barrier" => world.barrier()?,
            "allgather" => drop(world.allgather(&data[..100])?),
            "fence" => window.fence(|_| Ok(()))?,
            "put" => window.fence(|epoch| epoch.put(&*data, next, 0, LONG as i64, &*double))?,
            "get" => window.fence(|epoch| epoch.get(&mut *room, next, 0, LONG as i64, &*double))?,
            "accumulate" => window
                .fence(|epoch| epoch.accumulate(&*data, next, 0, LONG as i64, &*double, Op::Sum))?,
            "lock" => {
                for (target, kind) in [(HEIR, LockType::Exclusive), (VICTIM, LockType::Shared)] {
                    window.lock(target, kind, |epoch| {
                        epoch.put(&data[..LONG / 8], target, 0, LONG as i64 / 8, &*double)
                    })?;
                }
                world.barrier()?;
            }
            "fetch" => {
                window.lock_all(|epoch| {
                    for target in [HEIR, VICTIM] {
                        epoch.flush(target, |epoch| {
                            epoch.fetch_and_op(1.0, target, 0, Op::Sum).map(drop)
                        })?;
                    }
                    Ok(())
                })?;
                world.barrier()?;
            }
            "post" => {
                window.post(world.group(), Assert::NONE)?;
                window.start(world.group(), Assert::NONE, |epoch| {
                    epoch.put(&data[..LONG / 8], next, 0, LONG as i64 / 8, &*double)
                })?;
                window.wait()?;
            }
            "window" => Window::allocate(world, 1 << 20, 1, &Info::default())?.free()?,
            "send" => in_turns(
                me,
                || world.send(&*data, next, 0),
                || world.recv(&mut *room, last, 0).map(drop),
            )?,
            "type_send" => in_turns(
                me,
                || world.type_send(double, next, 0),
                || world.type_recv(last, 0).map(drop),
            )?,
            "all" => {
                for phase in [
                    "put",
                    "barrier",
                    "window",
                    "lock",
                    "get",
                    "allgather",
                    "accumulate",
                    "fetch",
                    "fence",
                ] {
                    self.round(phase)?;
                }
            }
            phase => panic!("no phase {phase}"),
        }
        Ok(())
    }
}

/// Sends and receives. Even ranks send first, so that a ring of ranks can't deadlock.
fn in_turns(
    me: i32,
    mut send: impl FnMut() -> longshore::Result<()>,
    mut receive: impl FnMut() -> longshore::Result<()>,
) -> longshore::Result<()> {
    if me % 2 == 0 {
        send()?;
        return receive();
    }
    receive()?;
    send()
}

/// Calls that wait for the other rank of a communicator or window of two.
const CALLS: [&str; 32] = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "send",
    "recv",
    "recv_any",
    "sendrecv",
    "probe",
    "iprobe",
    "mprobe",
    "isend",
    "irecv",
    "type_recv",
    "dup",
    "split",
    "create",
    "create_group",
    "allocate",
    "create_window",
    "fence",
    "lock",
    "lock_all",
    "start",
    "wait",
    "free",
];

/// Calls that wait for answers of a rank which is reached by messages and makes no calls.
const ANSWERS: [&str; 9] = [
    "flush",
    "flush_all",
    "flush_local",
    "unlock",
    "unlock_all",
    "complete",
    "request",
    "fetched",
    "message_lock",
];

/// The calls of a phase, one for each rank except the victim.
fn calls(phase: &str) -> &'static [&'static str] {
    match phase {
        "calls" => &CALLS,
        _ => &ANSWERS,
    }
}

/// Each survivor waits in a different call for the victim, which never takes part in it.
fn wait_in_vain(rank: Rank, phase: &str) -> Box<dyn Error> {
    let world = rank.world();
    let me = world.rank();
    let survivors = (0..world.size()).filter(|&rank| rank != VICTIM);
    let others = world.create(&world.group().excl(&[VICTIM]).unwrap()).unwrap();
    let pair_with = |survivor: i32| -> longshore::Result<(Communicator, Window)> {
        let pair = world.create_group(&world.group().incl(&[VICTIM, survivor])?, survivor)?;
        let window = Window::allocate(&pair, 8 * LONG as i64, 8, &Info::default())?;
        Ok((pair, window))
    };
    if me == VICTIM {
        let pairs: Vec<_> = survivors.map(|survivor| pair_with(survivor).unwrap()).collect();
        let mut locked = Vec::new();
        for ((pair, window), call) in pairs.iter().zip(calls(phase)) {
            match *call {
                "complete" => {
                    window.post(&pair.group().incl(&[1]).unwrap(), Assert::NONE).unwrap();
                }
                "lock" | "lock_all" => locked.push(window),
                _ => {}
            }
        }
        keep_locked(&locked, &|| {
            // The last message of the victim.
            world.send(&[0], HEIR, 0).unwrap();
            eprintln!("rank {me} waits");
            thread::sleep(HANG);
        });
        panic!("rank {me} wasn't killed");
    }
    let (pair, window) = pair_with(me).unwrap();
    let call = calls(phase)[survivors.clone().position(|survivor| survivor == me).unwrap()];
    let double = rank.commit(&Datatype::double()).unwrap();
    if me == HEIR {
        world.recv(&mut [0], VICTIM, 0).unwrap();
    }
    others.expect("the survivors").barrier().unwrap();
    eprintln!("rank {me} waits");
    let failed = wait_for_victim(&rank, &pair, window, &double, call).expect_err(call);
    drop(pair);
    rank.finalize().unwrap_or_else(|error| panic!("{call}: {error}"));
    failed.into()
}

/// Holds exclusive locks of rank 0 on all these windows while `body` runs.
fn keep_locked(windows: &[&Window], body: &dyn Fn()) {
    match windows.split_first() {
        Some((window, rest)) => {
            let inside = |_: &Passive<'_, '_>| {
                keep_locked(rest, body);
                Ok(())
            };
            window.lock(0, LockType::Exclusive, inside).unwrap();
        }
        None => body(),
    }
}

/// Makes a call that ends only by the death of rank 0 of the pair.
fn wait_for_victim(
    rank: &Rank,
    pair: &Communicator,
    mut window: Window,
    double: &Type,
    call: &str,
) -> longshore::Result<()> {
    const AT: i32 = 0;
    let (one, long, mut room) = ([1.0], vec![1.0; LONG], vec![0.0; LONG]);
    let group = pair.group().incl(&[AT])?;
    let put = |epoch: &Epoch<'_, '_>| epoch.put(&[1.0], AT, 0, 1, double);
    match call {
        "barrier" => pair.barrier(),
        "bcast" => pair.bcast(&mut room, AT),
        "gather" => pair.gather(&one, &mut room[..2], 1),
        "scatter" => pair.scatter(&[0.0; 0], &mut room, AT),
        "allgather" => pair.allgather(&one).map(drop),
        "alltoall" => pair.alltoall(&long[..2], &mut room[..2]),
        "reduce" => pair.reduce(&one, &mut room[..1], Op::Sum, 1),
        "allreduce" => pair.allreduce(&one, &mut room[..1], Op::Sum),
        "scan" => pair.scan(&one, &mut room[..1], Op::Sum),
        "exscan" => pair.exscan(&one, &mut room[..1], Op::Sum),
        "send" => pair.send(&long, AT, 0),
        "recv" => pair.recv(&mut room, AT, 0).map(drop),
        "recv_any" => pair.recv(&mut room, ANY_SOURCE, ANY_TAG).map(drop),
        "sendrecv" => pair.sendrecv((&one, AT, 0), (&mut room, AT, 0)).map(drop),
        "probe" => pair.probe(AT, ANY_TAG).map(drop),
        "iprobe" => loop {
            if let Some(unsent) = pair.iprobe(ANY_SOURCE, 0)? {
                panic!("{unsent:?} from a rank that never sends");
            }
        },
        "mprobe" => pair.mprobe(ANY_SOURCE, 0).map(drop),
        "isend" => pair.isend(long, AT, 0)?.wait().map(drop),
        "irecv" => pair.irecv(room, AT, 0)?.wait().map(drop),
        "type_recv" => pair.type_recv(AT, 0).map(drop),
        "dup" => pair.dup().map(drop),
        "split" => pair.split(Some(0), 0).map(drop),
        "create" => pair.create(&group).map(drop),
        "create_group" => pair.create_group(pair.group(), 0).map(drop),
        "allocate" => Window::allocate(pair, 8, 8, &Info::default()).map(drop),
        "create_window" => Window::create(pair, vec![0u8; 8], 8, &Info::default()).map(drop),
        "fence" => window.fence(|_| Ok(())),
        "lock" => window.lock(AT, LockType::Shared, |_| Ok(())),
        "lock_all" => window.lock_all(|epoch| put(epoch)),
        "start" => window.start(&group, Assert::NONE, |_| Ok(())),
        "wait" => window.post(&group, Assert::NONE).and_then(|()| window.wait()),
        "free" => window.free(),
        // The calls from here on assert NOCHECK where they lock, so that the lock itself doesn't
        // wait.
        "complete" => window.start(&group, Assert::NONE, |epoch| put(epoch)),
        "message_lock" => window.lock(AT, LockType::Shared, |_| Ok(())),
        "unlock" => window.lock_with(AT, LockType::Shared, Assert::NOCHECK, |epoch| put(epoch)),
        call => window.lock_all_with(Assert::NOCHECK, |epoch| match call {
            "flush" => epoch.flush(AT, |epoch| put(epoch)),
            "flush_all" => epoch.flush_all(|epoch| put(epoch)),
            "flush_local" => epoch.flush_local(AT, |epoch| put(epoch)),
            "unlock_all" => put(epoch),
            "request" => epoch.rput(vec![1.0], AT, 0, 1, double)?.wait().map(drop),
            "fetched" => epoch.fetch_and_op(1.0, AT, 0, Op::Sum)?.wait().map(drop),
            call => panic!("rank {} knows no call {call}", rank.world().rank()),
        }),
    }
}

/// The number of ranks of the job for a phase.
fn ranks(phase: &str) -> usize {
    match phase {
        "calls" | "answers" => 1 + calls(phase).len(),
        _ => RANKS,
    }
}

/// Starts a job for `phase` with these options of the launcher, and waits until all ranks play it.
/// Returns also the longest time that the job may take to end.
fn launch(options: &[&str], phase: &str) -> (LaunchedJob, impl Read + use<>, Duration) {
    let foreign = std::env::var("LONGSHORE_FOREIGN").unwrap_or_default();
    let foreign: Vec<_> = foreign.split(';').filter(|command| !command.is_empty()).collect();
    let native = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let mut words: Vec<String> = ["--timeout", "60"].map(str::to_owned).to_vec();
    words.extend(options.iter().map(|&word| word.to_owned()));
    for rank in 0..ranks(phase) {
        let command = match rank % 2 == 1 && rank < RANKS && !foreign.is_empty() {
            true => foreign[rank / 2 % foreign.len()],
            false => &native,
        };
        if rank > 0 {
            words.push(":".to_owned());
        }
        words.extend(["--env".to_owned(), format!("PHASE={phase}")]);
        words.extend(command.split_whitespace().map(str::to_owned));
        words.extend(["--exact", "rank", "--nocapture", "-q"].map(str::to_owned));
    }
    let started = Instant::now();
    let mut run = start(&words);
    let stderr = run.await_waiting(ranks(phase));
    (run, stderr, bound(started.elapsed()))
}

/// A random time within the first rounds of a phase.
fn some_time() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Duration::from_micros(u64::from(now.subsec_nanos()) % 50_000)
}

fn kill_pid(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// Kills the victim in `phase` and returns the later output on standard error.
fn kill_rank(options: &[&str], phase: &str) -> String {
    let (run, mut stderr, bound) = launch(options, phase);
    thread::sleep(some_time());
    assert_eq!(run.shared_files(), [""; 0]);
    let rank = VICTIM.to_string();
    let victim = run.running().into_iter().find(|&pid| variable(pid, "PMI_RANK") == rank);
    let victim = victim.expect("the victim runs");
    let killed = Instant::now();
    kill_pid(victim);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let finished = run.finish();
    let took = killed.elapsed();
    println!("{phase} {options:?}: over {took:.1?} after\n{rest}");
    assert_eq!(finished.status, 128 + 9, "{phase}: {rest}");
    assert!(took < bound, "{phase}: {took:?}");
    let messages: Vec<_> = rest.lines().filter(|line| line.starts_with("longshore: ")).collect();
    // In init, survivors too may exit without finalize, each with a message.
    assert!(messages.len() == 1 || phase == "init", "{phase}: {rest}");
    let named = messages[0].starts_with(&format!("longshore: rank {VICTIM} ("))
        && messages[0].contains(" was killed by SIGKILL, ");
    assert!(named, "{phase}: {rest}");
    rest
}

fn cases() -> u32 {
    std::env::var("LONGSHORE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2)
}

/// Checks that a death ends the job.
fn ends(options: &[&str], phase: &str) {
    for _ in 0..cases() {
        let rest = kill_rank(options, phase);
        assert!(rest.contains("; ending the other 3 ranks"), "{phase}: {rest}");
    }
}

/// Checks that a death is reported to the survivors, and that they continue and exit with 0.
fn is_reported(options: &[&str], phase: &str) {
    for _ in 0..cases() {
        let rest = kill_rank(&[&["--on-death", "survive"], options].concat(), phase);
        assert!(rest.contains("; the others go on"), "{phase}: {rest}");
        let survivors = rest.lines().filter(|line| line.contains(" survived: ")).count();
        assert_eq!(survivors, ranks(phase) - 1, "{phase}: {rest}");
    }
}

/// Tests for every phase in which a rank can die, by both routes and both reactions to the death.
macro_rules! phases {
    ($($phase:ident)*) => {
        mod a_death_ends_the_job_processes {
            $(#[test] fn $phase() { super::ends(&[], stringify!($phase)); })*
        }
        mod a_death_ends_the_job_by_messages_processes {
            $(#[test] fn $phase() { super::ends(&["--route", "message"], stringify!($phase)); })*
        }
        mod a_death_is_reported_processes {
            $(#[test] fn $phase() { super::is_reported(&[], stringify!($phase)); })*
        }
        mod a_death_is_reported_by_messages_processes {
            $(#[test] fn $phase() { super::is_reported(&["--route", "message"], stringify!($phase)); })*
        }
    };
}

phases!(init barrier allgather fence put get accumulate lock fetch post window send type_send finalize all);

/// Rank 0 emulates another architecture, so that all data to and from it is converted.
#[test]
fn deaths_among_unlike_ranks_processes() {
    for phase in ["put", "get", "lock", "fetch", "post", "accumulate", "all"] {
        ends(&["--arch", "s390x"], phase);
        is_reported(&["--arch", "s390x"], phase);
    }
}

/// Every call that can wait for a rank returns an error when that rank dies. Each survivor of a job
/// is in a different call.
#[test]
fn every_waiting_call_fails_when_its_peer_dies_processes() {
    for options in [&[] as &[&str], &["--route", "message"], &["--arch", "s390x"]] {
        is_reported(options, "calls");
    }
    // An adversary delays messages until a later call, but the victim's last message must arrive.
    if std::env::var_os(env::ADVERSARY).is_none() {
        is_reported(&["--route", "message", "--progress", "off"], "answers");
    }
}

/// Survivors of a death at a random moment make a communicator and a window of their own, on which
/// all calls work.
#[test]
fn survivors_go_on_without_the_dead_processes() {
    for options in [&[] as &[&str], &["--route", "message"], &["--arch", "s390x"]] {
        (0..2).for_each(|_| is_reported(options, "outlive"));
    }
}

/// Kills the launcher, its front process, or both, while ranks play `phase`.
fn kill_launcher(phase: &str, victims: fn(front: i32, launcher: i32) -> Vec<i32>) {
    let (run, mut stderr, bound) = launch(&[], phase);
    thread::sleep(some_time());
    let front = run.pid().as_raw();
    let launcher = run.running().into_iter().find(|&pid| parent(pid) == front);
    let killed = Instant::now();
    let launcher = launcher.expect("a launcher");
    victims(front, launcher).into_iter().for_each(kill_pid);
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    let status = run.finish().status;
    let took = killed.elapsed();
    println!("{phase}: status {status} over {took:.1?} after\n{rest}");
    assert!(
        took < bound,
        "{phase}, {launcher} before {front} killed: {status} after {took:?}: {rest}"
    );
}

const PHASES: [&str; 4] = ["init", "put", "all", "finalize"];

#[test]
fn nothing_outlives_a_killed_launcher_processes() {
    PHASES.iter().for_each(|phase| kill_launcher(phase, |_, launcher| vec![launcher]));
}

#[test]
fn nothing_outlives_a_killed_front_processes() {
    PHASES.iter().for_each(|phase| kill_launcher(phase, |front, _| vec![front]));
}

#[test]
fn nothing_outlives_both_killed_processes() {
    PHASES.iter().for_each(|phase| kill_launcher(phase, |front, launcher| vec![launcher, front]));
}
