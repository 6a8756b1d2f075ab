//! The roles that the ranks play.

use std::io::Read;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::support::HANG;

pub fn join() {
    match longshore::init() {
        Ok(rank) => {
            drop(rank.world().dup().unwrap());
            rank.finalize().unwrap();
        }
        Err(error) => eprintln!("{error}"),
    }
}

/// All ranks except rank 0 wait in a barrier for rank 0.
pub fn barrier() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    eprintln!("rank {} waits", world.rank());
    if world.rank() == 0 {
        thread::sleep(HANG);
    }
    world.barrier().unwrap();
    rank.finalize().unwrap();
}

/// Rank 1 takes memory without end.
pub fn greedy() {
    let rank = longshore::init().unwrap();
    if rank.world().rank() == 1 {
        let mut all = Vec::new();
        for _ in 0..1024 {
            all.push(std::hint::black_box(vec![1u8; 1 << 20]));
        }
    }
    rank.world().barrier().unwrap();
    rank.finalize().unwrap();
}

/// The ranks put so often that their events fill several times the part of a small control group's
/// memory that a trace may take.
pub fn talkative() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let mut window = longshore::Window::allocate(world, 8, 1, &info).unwrap();
    let byte = rank.type_of::<u8>().unwrap();
    let next = (world.rank() + 1) % world.size();
    for _ in 0..120 {
        let puts = |epoch: &longshore::Epoch| {
            (0..1000).try_for_each(|at| epoch.put(&[1u8], next, at % 8, 1, &byte))
        };
        window.fence(puts).unwrap();
    }
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// The ranks of each host share a window, and all ranks put to each other.
pub fn beside() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let host = world.split_type(Some(longshore::SplitType::Shared), 0).unwrap().unwrap();
    let number = rank.type_of::<i32>().unwrap();

    let mut shared = longshore::Window::allocate_shared(&host, 4, 4, &info).unwrap();
    shared.set(0, world.rank()).unwrap();
    shared.lock_all(|epoch| epoch.sync()).unwrap();
    host.barrier().unwrap();
    let sees: Vec<i32> =
        (0..host.size()).map(|peer| shared.shared_query(peer).unwrap().get(0).unwrap()).collect();
    host.barrier().unwrap();

    let size = world.size();
    let mut window = longshore::Window::allocate(world, 4 * i64::from(size), 4, &info).unwrap();
    let (me, at) = ([world.rank()], world.rank() as i64);
    window.fence(|epoch| (0..size).try_for_each(|to| epoch.put(&me, to, at, 1, &number))).unwrap();
    let all: Vec<i32> = (0..i64::from(size)).map(|at| window.get(at).unwrap()).collect();
    assert_eq!(all, (0..size).collect::<Vec<_>>());

    let members = (0..host.size()).collect::<Vec<_>>();
    let beside = host.group().translate_ranks(&members, world.group()).unwrap();
    let beside: Vec<i32> = beside.into_iter().flatten().collect();
    println!("rank {} beside {beside:?}, sees {sees:?}", world.rank());
    shared.free().unwrap();
    window.free().unwrap();
    host.free().unwrap();
    rank.finalize().unwrap();
}

/// Every rank receives from the previous one, and no rank sends.
pub fn circle() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let last = (world.rank() + world.size() - 1) % world.size();
    // Rank 0 confuses its tags.
    if world.rank() == 0 {
        (0..2).for_each(|_| world.send(&[0u8], 1, 8).unwrap());
    }
    world.recv(&mut [0u8], last, 7).unwrap();
}

/// Rank 1 receives twice, and rank 0 sends for each byte of its standard input.
pub fn stalls() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    for _ in 0..2 {
        if world.rank() == 0 {
            std::io::stdin().read_exact(&mut [0u8]).unwrap();
            world.send(&[0u8], 1, 7).unwrap();
        } else {
            world.recv(&mut [0u8], 0, 7).unwrap();
        }
    }
    rank.finalize().unwrap();
}

/// All ranks put to the same bytes of rank 0 without an order: a conflict (rule 23).
pub fn conflict() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let mut window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let byte = rank.type_of::<u8>().unwrap();
    window.fence(|epoch| epoch.put(&[1u8], 0, 0, 1, &byte)).unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// The ranks fence two windows in different orders (rule 8).
pub fn fences() {
    let rank = longshore::init().unwrap();
    let mut windows = [0, 1].map(|_| {
        longshore::Window::allocate(rank.world(), 8, 8, &longshore::Info::default()).unwrap()
    });
    windows[0].set_name("halo");
    windows[rank.world().rank() as usize].fences(|_| Ok(())).unwrap();
}

/// Each rank locks its own window and then the other's.
pub fn locks() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let windows = ["left", "right"].map(|name| {
        let window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
        window.set_name(name);
        window
    });
    let (me, exclusive) = (world.rank() as usize, longshore::LockType::Exclusive);
    let outcome = windows[me].lock(0, exclusive, |_| {
        world.barrier()?;
        windows[1 - me].lock(0, exclusive, |_| Ok(()))
    });
    eprintln!("{}", outcome.unwrap_err());
    windows.into_iter().for_each(|window| drop(window.free()));
    rank.finalize().unwrap();
}

/// Stops this process for longer than the 3 s that a circle has to last. Returns the helper that
/// does it, a short time after this call.
fn stop_soon() -> std::process::Child {
    let me = std::process::id();
    let script = format!("sleep 0.2; kill -STOP {me}; sleep 3.6; kill -CONT {me}");
    Command::new("sh").args(["-c", &script]).spawn().unwrap()
}

/// Both ranks make fences, and rank 1 is stopped meanwhile.
pub fn stopped() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let mut window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let mut helper = (world.rank() == 1).then(stop_soon);
    let mut goes_on = [1];
    while goes_on == [1] {
        for _ in 0..100 {
            window.fence(|_| Ok(())).unwrap();
        }
        let over = helper.as_mut().is_some_and(|it| it.try_wait().unwrap().is_some());
        goes_on = [i32::from(!over)];
        world.bcast(&mut goes_on, 1).unwrap();
    }
    window.free().unwrap();
    rank.finalize().unwrap();
}

/// Both ranks receive from each other, and rank 1 is stopped meanwhile.
pub fn stopped_circle() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let helper = (world.rank() == 1).then(stop_soon);
    let error = world.recv(&mut [0], 1 - world.rank(), 0).unwrap_err();
    let over = helper.is_none_or(|mut it| it.try_wait().unwrap().is_some());
    assert!(over, "a stopped rank was reported");
    eprintln!("{error}");
    rank.finalize().unwrap();
}

/// Rank 1 drops one window within an epoch, and forgets another.
pub fn unfreed() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let halo = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let forgotten = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let freed = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    if world.rank() == 1 {
        halo.set_name("halo");
        halo.raw().lock(1, longshore::LockType::Shared, longshore::Assert::NONE).unwrap();
        forgotten.raw().lock_all(longshore::Assert::NONE).unwrap();
        forgotten.raw().unlock_all().unwrap();
        drop(halo);
    } else {
        halo.set_name("left");
        std::mem::forget(halo);
    }
    freed.free().unwrap();
    rank.finalize().unwrap();
    drop(forgotten);
}

/// Rank 0 puts to a rank that doesn't answer, until the limit of operations on the way.
pub fn full() {
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    if world.rank() == 1 {
        thread::sleep(HANG);
    }
    let byte = rank.type_of::<u8>().unwrap();
    let (shared, unasked) = (longshore::LockType::Shared, longshore::Assert::NOCHECK);
    let puts = window.lock_with(1, shared, unasked, |epoch| {
        (0..1000).try_for_each(|_| epoch.put(&[1u8], 1, 0, 1, &byte))
    });
    puts.unwrap();
}

/// Rank 1 makes an error, and the window's error handler ends the job. Rank 0 has a fatal error
/// handler too, which must not report the end of the job as an error of rank 0.
pub fn fatal() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let window = longshore::Window::allocate(world, 8, 8, &longshore::Info::default()).unwrap();
    window.set_errhandler(longshore::ErrorHandler::Fatal);
    if world.rank() == 0 {
        world.set_errhandler(longshore::ErrorHandler::Fatal);
    }
    if world.rank() == 1 {
        let _ = window.wait();
        unreachable!();
    }
    world.barrier().unwrap();
}

/// Rank 1 exits without finalize, and then the others exit because of that.
pub fn leave() {
    let rank = longshore::init().unwrap();
    let me = rank.world().rank();
    rank.world().barrier().unwrap();
    if me == 1 {
        drop(rank);
        std::process::exit(7);
    }
    rank.world().barrier().unwrap_err();
    std::process::exit(9);
}

/// Rank 1 leaves like a program whose `main` returns an error: the rank is dropped before the
/// message is printed. The others exit because of that, and sooner.
pub fn leave_slowly() {
    let rank = longshore::init().unwrap();
    let me = rank.world().rank();
    if me == 1 {
        rank.world().barrier().unwrap();
        drop(rank);
        thread::sleep(Duration::from_millis(100));
        eprint!("Error: ");
        thread::sleep(Duration::from_millis(100));
        eprintln!("the cause");
        std::process::exit(3);
    }
    while rank.world().barrier().is_ok() {}
    drop(rank);
    std::process::exit(9);
}

/// Rank 1 ends its process within a fence. The others fail because of that.
pub fn exit() {
    let rank = longshore::init().unwrap();
    let me = rank.world().rank();
    let info = longshore::Info::default();
    let mut window = longshore::Window::allocate(rank.world(), 8, 8, &info).unwrap();
    let fenced = window.fence(|_| {
        if me == 1 {
            std::process::exit(0);
        }
        Ok(())
    });
    fenced.and_then(|()| window.fence(|_| Ok(()))).unwrap();
}

/// Rank 0 sleeps for a second and all others wait. No rank may use the processor.
pub fn idle() {
    const IDLE: Duration = Duration::from_secs(1);
    let rank = longshore::init().unwrap();
    let world = rank.world();
    // Peers that reach the window by messages make the rank start its progress thread.
    let window = longshore::Window::allocate(world, 8, 8, &longshore::Info::default()).unwrap();
    let before = processor_time();
    match world.rank() {
        0 => thread::sleep(IDLE),
        1 => drop(world.recv(&mut [0u8], 0, 0).unwrap()),
        _ => {}
    }
    if world.rank() == 0 {
        world.send(&[0u8], 1, 0).unwrap();
    }
    world.barrier().unwrap();
    let used = processor_time() - before;
    // A waiting rank wakes only now and then to check the job. A polling rank would use all of the
    // time, or its share.
    assert!(used < IDLE / 10, "rank {} took {used:?}", world.rank());
    window.free().unwrap();
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// The threads that init and windows start must block all signals: a signal must reach a thread of
/// the program.
pub fn signals() {
    let own = threads();
    let rank = longshore::init().unwrap();
    let (world, info) = (rank.world(), longshore::Info::default());
    let window = longshore::Window::allocate(world, 8, 8, &info).unwrap();
    let others = || threads().into_iter().filter(|thread| !own.contains(thread));
    assert!(others().count() > 0, "there is no progress thread");
    for thread in others() {
        let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
        let line = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            found.trim_start_matches(':').trim()
        };
        let blocked = u64::from_str_radix(line("SigBlk"), 16).unwrap();
        for signal in Signal::iterator() {
            use Signal::*;
            // No thread can block the first two, and a thread causes the others itself.
            if !matches!(
                signal,
                SIGKILL | SIGSTOP | SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP
            ) {
                let bit = 1 << (signal as i32 - 1);
                assert_ne!(blocked & bit, 0, "{signal} may reach {}", line("Name"));
            }
        }
    }
    window.free().unwrap();
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// Prints what a process gets that a rank starts, before and after the rank's init, and starts a
/// Longshore program.
pub fn children() {
    let look = "env | grep -E '^[A-Z_]*=[0-9a-f]{64}$'; ls -l /proc/self/fd | sed -n 's/.* -> //p'";
    let child = |when: &str| {
        let output = Command::new("sh").args(["-c", look]).output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            println!("{when} {line}");
        }
    };
    child("before");
    let rank = longshore::init().unwrap();
    child("after");
    let words = ["--exact", "rank", "--nocapture", "-q"];
    let own = std::env::current_exe().unwrap();
    let status = Command::new(own).args(words).env("ROLE", "alone").status().unwrap();
    assert!(status.success());
    rank.finalize().unwrap();
    let again = longshore::init().map(|_| ()).unwrap_err().to_string();
    assert!(again.contains("this process has joined its job before"), "{again}");
    std::process::exit(0);
}

pub fn alone() {
    let rank = longshore::init().unwrap();
    println!("rank {} of {}", rank.world().rank(), rank.world().size());
    rank.finalize().unwrap();
    std::process::exit(0);
}

/// The numbers of this process's threads.
pub fn threads() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// The processor time of this process with all its threads.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, words) = stat.rsplit_once(')').unwrap();
    let ticks = words.split_whitespace().skip(11).take(2).map(|word| word.parse::<u64>().unwrap());
    // Linux counts hundredths of a second on every architecture.
    Duration::from_millis(10 * ticks.sum::<u64>())
}
