//! Processes that ranks start and meet, as a program in Rust sees them.
//!
//! The ranks are this test binary, whose test `rank` plays the role in ROLE.

mod support;

use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use longshore::{Class, Communicator, Info, PROC_NULL, ROOT, Rank, Spawn, Window};
use support::{Finished, run};

/// The program of the ranks if ROLE is set; otherwise it does nothing.
#[test]
fn rank() {
    let Ok(role) = std::env::var("ROLE") else { return };
    match &role[..] {
        "spawns" => spawns(),
        "child" => child(),
        "child_exits" => std::process::exit(4),
        "child_quits" => {}
        "child_dies" => child_dies(),
        "child_spawns" => child_spawns(),
        "many" => many(),
        "spawns_what_exits" => spawns_what("child_exits"),
        "spawns_what_quits" => spawns_what("child_quits"),
        "spawns_what_dies" => spawns_what("child_dies"),
        "nested" => nested(),
        "withdraws" => withdraws(),
        "joins" => joins(),
        "late" => late(),
        "meets" => meets(),
        "starts" => starts(),
        "waits" => waits(),
        _ => panic!("no role {role}"),
    }
}

fn play(role: &str, ranks: &str) -> Finished {
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let role = format!("ROLE={role}");
    run(&["-n", ranks, "env", &role, &program, "--exact", "rank", "--nocapture"])
}

fn expect_success(role: &str, ranks: &str) {
    let Finished { status, stderr, stdout } = play(role, ranks);
    assert_eq!(status, 0, "{stderr}{}", String::from_utf8_lossy(&stdout));
}

/// Ranks can be started under any options but those that leave no room.
fn has_room() -> bool {
    let options = std::env::var("LONGSHORE_TEST_OPTIONS").unwrap_or_default();
    let checks = std::env::var("LONGSHORE_CHECK").is_ok_and(|check| check != "off" && check != "0");
    !checks && !options.contains("--host") && !options.contains("--check")
}

/// This program in the role of a process that a rank starts.
fn children(role: &str, processes: u32) -> Spawn {
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let role = format!("ROLE={role}");
    let arguments = [&role, &program, "--exact", "rank", "--nocapture"].map(str::to_owned).to_vec();
    Spawn { arguments, ..Spawn::new("env", processes) }
}

/// Messages, collective calls and a window between both sides.
fn talk(rank: &Rank, both: &Communicator, is_parent: bool) {
    let (here, there) = (both.size(), both.remote_group().unwrap().size());
    let root = match (is_parent, both.rank()) {
        (true, 0) => ROOT,
        (true, _) => PROC_NULL,
        (false, _) => 0,
    };
    let mut value = [if is_parent { 7 } else { 0 }];
    both.bcast(&mut value, root).unwrap();
    assert_eq!(value, [7]);
    let long = vec![f64::from(both.rank()); 100_000];
    if both.rank() < here.min(there) {
        let mut got = vec![0.0; 100_000];
        both.sendrecv((&long[..], both.rank(), 3), (&mut got[..], both.rank(), 3)).unwrap();
        assert_eq!(got, long);
    }
    let all = both.merge(!is_parent).unwrap();
    assert_eq!(all.size(), here + there);
    let offset = if is_parent { 0 } else { there };
    assert_eq!(all.rank(), offset + both.rank());
    let number = rank.type_of::<i32>().unwrap();
    let mut window = Window::allocate(&all, 4, 4, &Info::default()).unwrap();
    let next = (all.rank() + 1) % all.size();
    let mine = [all.rank()];
    window.fence(|epoch| epoch.put(&mine, next, 0, 1, &number)).unwrap();
    assert_eq!(window.get::<i32>(0).unwrap(), (all.rank() + all.size() - 1) % all.size());
    window.free().unwrap();
    all.free().unwrap();
}

fn spawns() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    assert!(rank.parent().is_none());
    let last = world.size() - 1;
    for processes in [1, 3] {
        let programs = [children("child", processes), children("child", 1)];
        let programs = if world.rank() == last { &programs[..] } else { &[] };
        let spawned = world.spawn(programs, last).unwrap();
        assert_eq!(spawned.counts, [processes, 1]);
        talk(&rank, &spawned.communicator, true);
        spawned.communicator.disconnect().unwrap();
    }
    world.barrier().unwrap();
    rank.finalize().unwrap();
}

fn child() {
    let rank = longshore::init().unwrap();
    let program = u32::from(rank.world().rank() == rank.world().size() - 1);
    assert_eq!(rank.program_number(), Some(program));
    talk(&rank, rank.parent().unwrap(), false);
    rank.parent().unwrap().share().disconnect().unwrap();
    rank.finalize().unwrap();
}

fn child_dies() {
    let rank = longshore::init().unwrap();
    rank.parent().unwrap().barrier().unwrap();
    std::process::abort();
}

fn child_spawns() {
    let rank = longshore::init().unwrap();
    let grandchild = rank.world().spawn(&[children("child", 1), children("child", 1)], 0).unwrap();
    talk(&rank, &grandchild.communicator, true);
    talk(&rank, rank.parent().unwrap(), false);
    grandchild.communicator.disconnect().unwrap();
    rank.finalize().unwrap();
}

fn nested() {
    let rank = longshore::init().unwrap();
    let spawned = rank.alone().spawn(&[children("child_spawns", 2)], 0).unwrap();
    talk(&rank, &spawned.communicator, true);
    rank.finalize().unwrap();
}

/// Each rank starts processes by itself, at the same time as the others.
fn many() {
    let rank = longshore::init().unwrap();
    for _ in 0..3 {
        let programs = [children("child", 1), children("child", 1)];
        let spawned = rank.alone().spawn(&programs, 0).unwrap();
        talk(&rank, &spawned.communicator, true);
        spawned.communicator.disconnect().unwrap();
    }
    rank.finalize().unwrap();
}

fn spawns_what(role: &str) {
    let rank = longshore::init().unwrap();
    let spawned = rank.world().spawn(&[children(role, 2)], 0);
    if let Ok(spawned) = spawned {
        spawned.communicator.barrier().unwrap();
        let _ = spawned.communicator.barrier();
    }
    std::thread::sleep(support::HANG);
}

/// A rank that has waited in vain withdraws: the accept is for one that still waits.
fn withdraws() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let alone = rank.alone();
    if world.rank() == 0 {
        let port = rank.open_port().unwrap();
        rank.publish_name("withdraws", &port).unwrap();
        world.barrier().unwrap();
        // Here rank 1 waits in vain.
        world.barrier().unwrap();
        let both = alone.accept(&port, 0).unwrap();
        assert_eq!(both.remote_group().unwrap().processes(), [2]);
        both.disconnect().unwrap();
    } else {
        world.barrier().unwrap();
        let port = rank.lookup_name("withdraws").unwrap();
        if world.rank() == 1 {
            let late = alone.connect_within(&port, 0, Duration::from_millis(20)).err().unwrap();
            assert_eq!(late.class(), Class::Port);
        }
        let guessed = port.to_string();
        let (start, key) = guessed.rsplit_once('/').unwrap();
        let guessed = format!("{start}/{:032x}", u128::from_str_radix(key, 16).unwrap() ^ 1);
        world.barrier().unwrap();
        if world.rank() == 2 {
            // A wrong key is refused while rank 0 accepts.
            let refused = alone.connect(&guessed.parse().unwrap(), 0).err().unwrap();
            assert!(refused.to_string().contains("key"), "{refused}");
            alone.connect(&port, 0).unwrap().disconnect().unwrap();
        }
    }
    world.barrier().unwrap();
    rank.finalize().unwrap();
}

fn joins() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let path =
        std::env::temp_dir().join(format!("longshore-{}", std::os::unix::process::parent_id()));
    let socket = if world.rank() == 0 {
        let listener = UnixListener::bind(&path).unwrap();
        world.barrier().unwrap();
        let socket = listener.accept().unwrap().0;
        std::fs::remove_file(&path).unwrap();
        socket
    } else {
        world.barrier().unwrap();
        UnixStream::connect(&path).unwrap()
    };
    let both = rank.join(socket.as_fd()).unwrap().unwrap();
    talk(&rank, &both, world.rank() == 0);
    both.disconnect().unwrap();
    rank.finalize().unwrap();
}

/// A number that the test gives its ranks.
fn given(name: &str) -> u64 {
    std::env::var(name).unwrap().parse().unwrap()
}

/// Kills this process after DELAY microseconds, if it is rank VICTIM.
fn die_later(rank: &Rank) {
    if u64::try_from(rank.world().rank()) == Ok(given("VICTIM")) {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_micros(given("DELAY")));
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        });
    }
}

/// What a call may return that needs a rank which was killed, or the other group's call.
fn is_of_a_death(error: &longshore::Error) -> bool {
    [Class::ProcFailed, Class::Revoked, Class::Port, Class::Spawn].contains(&error.class())
}

/// The survivors end the job together.
fn end_without_the_dead(rank: &Rank) {
    let survivors = rank.world().shrink().unwrap();
    survivors.barrier().unwrap();
    survivors.free().unwrap();
    rank.leave().unwrap();
}

/// Two groups of two ranks accept and connect again and again, until one of the ranks is killed.
fn meets() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let half = world.split(Some(world.rank() / 2), 0).unwrap().unwrap();
    let mut text = [0; 200];
    let own = rank.open_port().unwrap();
    if world.rank() == 0 {
        let own = own.to_string();
        text[..own.len()].copy_from_slice(own.as_bytes());
    }
    world.bcast(&mut text, 0).unwrap();
    let port = String::from_utf8_lossy(&text).trim_end_matches('\0').parse().unwrap();
    // All have the port. A rank may be killed while others are still in the barrier.
    let _ = world.barrier();
    die_later(&rank);
    loop {
        let met = match world.rank() {
            0 | 1 => half.accept(&port, 0),
            _ => half.connect_within(&port, 0, Duration::from_secs(1)),
        };
        let others = met.and_then(|both| {
            let others = both.remote_group().map_or(0, |group| group.size());
            both.disconnect().map(|()| others)
        });
        match others {
            Ok(2) => {}
            // The last survivor of the other group.
            Ok(_) => break,
            Err(error) => {
                assert!(is_of_a_death(&error), "{error}");
                break;
            }
        }
    }
    // The other member may be in the next call.
    half.revoke().unwrap();
    if world.rank() > 1 {
        // An accept has no limit, so the other group may wait for this one.
        let met = rank.alone().connect_within(&port, 0, Duration::from_secs(1));
        let _ = met.and_then(|both| both.disconnect());
    }
    end_without_the_dead(&rank);
}

/// Two ranks start processes again and again, until one of the ranks is killed.
fn starts() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    die_later(&rank);
    let error = loop {
        let started = world.spawn(&[children("waits", 2)], 0);
        match started.and_then(|spawned| spawned.communicator.disconnect()) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(is_of_a_death(&error), "{error}");
    end_without_the_dead(&rank);
}

/// A process of [`starts`], whose parents may have been killed.
fn waits() {
    let Ok(rank) = longshore::init() else { return };
    let _ = rank.parent().unwrap().share().disconnect();
    let _ = rank.leave();
}

/// Plays a role in a job that survives deaths. The victim is killed after some microseconds.
fn survive(role: &str, ranks: &str, victim: u32, delay: u64) {
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let words = [format!("ROLE={role}"), format!("VICTIM={victim}"), format!("DELAY={delay}")];
    let [role, by, after] = words.each_ref().map(|word| &word[..]);
    let job = ["-n", ranks, "--on-death", "survive", "env", role, by, after];
    let test = [&program[..], "--exact", "rank", "--nocapture"];
    let Finished { status, stderr, stdout } = run(&[&job[..], &test].concat());
    let told = format!("{words:?}: {status} {stderr}{}", String::from_utf8_lossy(&stdout));
    assert!(!told.contains("panicked") && stderr.contains("SIGKILL"), "{told}");
}

/// A port of a rank that has ended is refused at once.
fn late() {
    let rank = longshore::init().unwrap();
    let own = rank.open_port().unwrap();
    let class = |port: &str| rank.alone().connect(&port.parse().unwrap(), 0).err().unwrap().class();
    assert_eq!(class(&own.to_string()), Class::Port);
    let words: Vec<String> = own.to_string().split('/').map(str::to_owned).collect();
    let elsewhere = [&words[0], &words[1], "1", "0", "0", "0"].join("/");
    assert_eq!(class(&elsewhere), Class::Port);
    let unstarted = [&words[0], &words[1], &words[2], "900", "0", "0"].join("/");
    assert_eq!(class(&unstarted), Class::Port);
    rank.finalize().unwrap();
}

#[test]
fn processes_that_ranks_start_meet_them() {
    if has_room() {
        expect_success("spawns", "1");
        expect_success("spawns", "3");
    }
}

#[test]
fn ranks_start_processes_at_the_same_time() {
    if has_room() {
        expect_success("many", "3");
    }
}

#[test]
fn processes_that_were_started_start_others() {
    if has_room() {
        expect_success("nested", "2");
    }
}

#[test]
fn a_process_that_ends_before_its_init_ends_the_job() {
    if !has_room() {
        return;
    }
    let Finished { status, stderr, .. } = play("spawns_what_exits", "2");
    assert!(status == 4 && stderr.contains("exited with status 4"), "{status} {stderr}");
    let Finished { status, stderr, .. } = play("spawns_what_quits", "2");
    assert!(status != 0 && stderr.contains("init"), "{status} {stderr}");
}

#[test]
fn the_death_of_a_process_that_was_started_ends_the_job() {
    if has_room() {
        let Finished { status, stderr, .. } = play("spawns_what_dies", "2");
        assert!(status != 0 && stderr.contains("SIGABRT"), "{status} {stderr}");
    }
}

#[test]
fn an_accept_is_not_for_a_rank_that_has_given_up() {
    expect_success("withdraws", "3");
}

#[test]
fn two_ranks_join_over_a_socket() {
    expect_success("joins", "2");
}

#[test]
fn ports_that_do_not_exist_are_refused() {
    expect_success("late", "1");
}

#[test]
fn survivors_leave_an_accept_and_a_connect_whoever_is_killed() {
    for victim in 0..4 {
        for delay in [0, 3_000, 30_000] {
            survive("meets", "4", victim, delay);
        }
    }
}

#[test]
fn survivors_leave_a_spawn_whoever_is_killed() {
    if has_room() {
        for victim in 0..2 {
            for delay in [0, 10_000, 100_000] {
                survive("starts", "2", victim, delay);
            }
        }
    }
}
