//! Tests of links between hosts: connections, farewells, failures, and peers that leave or are
//! lost.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use super::connection::Outbound;
use super::handles::Endpoint;
use super::listener::at_free_port;
use super::peers::SILENCE;
use super::*;

mod encrypted;

use crate::protocol::challenge::{Greeting, Key, REQUEST};
use crate::segment::{Cause, Segment};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PATIENCE: Duration = Duration::from_secs(20);

const SECRET: &[u8] = b"secret";

/// Two ranks on two hosts, each with its own segment: each knows of the other only through the
/// network.
fn pair() -> [FabricLink; 2] {
    pair_with(PATIENCE)
}

fn pair_with(patience: Duration) -> [FabricLink; 2] {
    let open = || Listener::open("tcp", HERE, patience).unwrap();
    let listeners = [open(), open()];
    let addresses: Vec<_> = listeners.iter().map(|one| Some(one.address())).collect();
    let mut ranks = 0..;
    listeners.map(|listener| {
        let segment = Segment::create(2).unwrap().as_rank(ranks.next().unwrap()).unwrap();
        listener.link(segment, addresses.clone(), &[], SECRET).unwrap()
    })
}

fn send(from: &mut FabricLink, to: u32, len: usize) -> bool {
    match from.reserve(to, len) {
        Ok(frame) => {
            frame.commit();
            true
        }
        Err(Refused::WouldBlock) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Repeats `look` until it returns a value.
fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nothing happens");
        thread::yield_now();
    }
}

fn pass(from: &mut FabricLink, to: &mut FabricLink) {
    assert!(send(from, to.rank(), 8));
    wait(|| {
        assert!(from.receive().unwrap().is_none());
        to.receive().unwrap().map(drop)
    });
}

/// Two ranks with a connection in each direction.
fn acquainted() -> [FabricLink; 2] {
    let [mut left, mut right] = pair();
    pass(&mut left, &mut right);
    pass(&mut right, &mut left);
    [left, right]
}

/// Ends the rank in good order, together with its connections.
fn finalize(link: FabricLink) {
    link.peers.segment.mark(link.rank(), RankState::Finalized);
    drop(link);
}

#[test]
fn a_guest_that_claims_a_rank_does_not_delay_that_ranks_farewell() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    // The only connection is the one that `left` made.
    pass(&mut left, &mut right);
    let open = |address| Network::listen(Library::get().unwrap(), "tcp", address);
    let (_, network) = at_free_port(HERE, PATIENCE, open).unwrap();
    let (to, key) = (left.connector.address(0).unwrap(), Key::new(SECRET));
    let greeting = Greeting::new(1, 0, Nonce::default());
    let mut stranger = Outbound::connect(&network, to, greeting, Protection::Plain, &key).unwrap();
    // The stranger receives the answer, and sends nothing more.
    let mut answers = Vec::new();
    wait(|| {
        left.poll().unwrap();
        if let Some(Event::Connected(_)) = network.next_event().unwrap() {
            stranger.handle_connected().unwrap();
        }
        network.completions(&mut answers).unwrap();
        (answers.len() == 2).then_some(())
    });
    finalize(right);
    let state = wait(|| {
        left.poll().unwrap();
        Some(left.peers.segment.rank_state(1)).filter(|state| state.is_gone())
    });
    assert_eq!((state, left.drops()), (RankState::Finalized, 0));
}

#[test]
fn a_farewell_arrives_after_all_frames() {
    crate::needs_libfabric!();
    let [mut left, mut right] = acquainted();
    // More frames than the connection holds at once.
    let sent = (0..100).filter(|_| send(&mut right, 0, FRAME)).count();
    let leaves = thread::spawn(|| finalize(right));
    let mut received = 0;
    wait(|| {
        received += usize::from(left.receive().unwrap().is_some());
        left.peers.segment.rank_state(1).is_gone().then_some(())
    });
    received += left.inbox.unread();
    assert_eq!((left.peers.segment.rank_state(1), received), (RankState::Finalized, sent));
    leaves.join().unwrap();
}

#[test]
fn a_peer_that_the_job_knows_to_be_gone_is_gone_after_its_last_frames() {
    crate::needs_libfabric!();
    let [mut left, mut right] = acquainted();
    // No more than a connection takes at once.
    let sent = usize::from(DEPTH.min(3));
    for _ in 0..sent {
        assert!(send(&mut right, 0, 8));
    }
    let refusal = |left: &mut FabricLink| left.reserve(1, 8).err();
    assert!(!left.may_speak(0) && left.may_speak(1));
    // Another rank of this host has received the farewell and marks the peer.
    left.peers.segment.mark(1, RankState::Finalized);
    assert!(matches!(refusal(&mut left), Some(Refused::WouldBlock)));
    let leaves = thread::spawn(|| finalize(right));
    let mut received = 0;
    wait(|| {
        received += usize::from(left.receive().unwrap().is_some());
        (!left.may_speak(1)).then_some(())
    });
    assert_eq!(received, sent);
    let gone = LinkError::PeerGone { peer: 1, state: RankState::Finalized };
    assert!(matches!(refusal(&mut left), Some(Refused::Failed(error)) if error == gone));
    leaves.join().unwrap();
}

#[test]
fn a_peer_without_a_farewell_may_not_speak_after_its_connection_ended() {
    crate::needs_libfabric!();
    let [mut left, mut right] = acquainted();
    left.peers.segment.mark(1, RankState::Finalized);
    right.give_up(0);
    wait(|| {
        assert!(left.receive().unwrap().is_none());
        (!left.may_speak(1)).then_some(())
    });
}

#[test]
fn a_held_answer_is_sent_before_a_pause_despite_unread_frames() {
    crate::needs_libfabric!();
    let [mut left, mut right] = acquainted();
    // Both arrive together: the second is held while the first is under way.
    for len in [1, 2] {
        left.reserve(1, len).unwrap().commit_lazily();
    }
    wait(|| {
        assert!(left.receive().unwrap().is_none());
        right.receive().unwrap().map(drop)
    });
    right.reserve(0, 3).unwrap().commit_answer();
    assert!(!right.is_spent(), "the second frame came alone");
    assert!(right.receive().unwrap().is_some() && right.is_spent());
    // The rank pauses.
    right.send_held();
    wait(|| left.receive().unwrap().map(drop));
}

#[test]
fn frames_that_arrived_while_the_rank_computed_are_read_before_their_sender_is_gone() {
    crate::needs_libfabric!();
    let [mut left, mut right] = acquainted();
    // Each frame is a message of its own. The system's buffers hold the messages that the link
    // doesn't.
    for _ in 0..60 {
        wait(|| {
            right.poll().unwrap();
            send(&mut right, 0, connection::BUNDLE).then_some(())
        });
    }
    finalize(right);
    // The end of one connection is known, but not yet the messages of the other.
    wait(|| {
        left.poll().unwrap();
        left.peers.is_silent(1).then_some(())
    });
    let mut received = 0;
    wait(|| {
        if received == usize::from(DEPTH) {
            thread::sleep(SILENCE + Duration::from_millis(100));
        }
        received += usize::from(left.receive().unwrap().is_some());
        (left.peers.segment.rank_state(1).is_gone() && left.inbox.is_empty()).then_some(())
    });
    assert_eq!((left.peers.segment.rank_state(1), received), (RankState::Finalized, 60));
}

#[test]
fn requests_without_a_valid_proof_are_rejected() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    let to = right.connector.address(1).unwrap();
    let open = |address| Network::listen(Library::get().unwrap(), "tcp", address);
    let (_, network) = at_free_port(HERE, PATIENCE, open).unwrap();
    // This rank's connection is accepted. It computes before it sends the greeting.
    assert!(send(&mut left, 1, 8));
    wait(|| {
        left.poll().unwrap();
        right.poll().unwrap();
        (right.inbox.guests().len() == 1).then_some(())
    });
    let key = Key::new(SECRET);
    let request = |from, to| key.request(&Greeting::new(from, to, Nonce::default())).to_vec();
    let sound = request(0, 1);
    let mut changed = sound.clone();
    changed[REQUEST - 1] ^= 1;
    let replayed = right.inbox.guests().map(|guest| key.request(&guest.greeting).to_vec());
    let replayed = replayed.collect::<Vec<_>>().concat();
    let wrong = [
        Vec::new(),
        vec![0; 256],
        sound[..REQUEST - 1].to_vec(),
        [&sound[..], &[0]].concat(),
        changed,
        Key::new(b"guess").request(&Greeting::new(0, 1, Nonce::default())).to_vec(),
        request(0, 0),
        request(1, 0),
        request(2, 1),
        replayed,
    ];
    let strangers = 100;
    for (drops, words) in (1..=strangers).zip(wrong.iter().cycle()) {
        let _stranger = Endpoint::connect(&network, to, words, &[]).unwrap();
        let refused = wait(|| {
            right.poll().unwrap();
            network.next_event().unwrap()
        });
        assert!(matches!(refused, Event::Failed(..)), "{words:?}");
        assert_eq!((right.drops(), right.inbox.guests().len()), (drops, 1), "{words:?}");
    }
    wait(|| {
        left.poll().unwrap();
        right.receive().unwrap().map(drop)
    });
    // A rank that has joined gets no second connection.
    let _second = Endpoint::connect(&network, to, &sound, &[]).unwrap();
    wait(|| {
        right.poll().unwrap();
        network.next_event().unwrap()
    });
    assert_eq!((right.drops(), right.inbox.guests().len()), (strangers + 1, 1));
}

#[test]
fn a_holder_of_the_secret_keeps_few_connections_open_and_the_rank_connects() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    let to = right.connector.address(1).unwrap();
    let open = |address| Network::listen(Library::get().unwrap(), "tcp", address);
    let (_, network) = at_free_port(HERE, PATIENCE, open).unwrap();
    let key = Key::new(SECRET);
    let (mut held, mut most) = (Vec::new(), 0);
    for number in 0..100u8 {
        let greeting = Greeting::new(0, 1, [number; size_of::<Nonce>()]);
        held.push(Endpoint::connect(&network, to, &key.request(&greeting), &[]).unwrap());
    }
    wait(|| {
        right.poll().unwrap();
        while network.next_event().unwrap().is_some() {}
        most = most.max(right.inbox.guests().len());
        (right.drops() == 92).then_some(())
    });
    assert_eq!(most, 8);
    // The rank itself is admitted.
    pass(&mut left, &mut right);
    drop(held);
}

#[test]
fn a_connection_is_unsettled_until_it_is_established_or_ended() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    assert!(send(&mut left, 1, 8) && !left.connector.is_settled());
    pass(&mut left, &mut right);
    assert!(left.connector.is_settled());
    let gone = Listener::open("tcp", HERE, PATIENCE).unwrap().address();
    *right.connector.address(0) = Some(gone);
    assert!(send(&mut right, 0, 8) && !right.connector.is_settled());
    wait(|| {
        right.poll().unwrap();
        right.peers.is_silent(0).then_some(())
    });
    assert!(right.connector.is_settled());
}

#[test]
fn a_peer_that_cannot_be_reached_is_reported_with_its_address_and_the_settings() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    let address = right.connector.address(1).unwrap();
    drop(right);
    assert!(send(&mut left, 1, 8));
    let error = wait(|| left.receive().err().map(|error| error.to_string()));
    for part in [
        &format!("rank 0 on host 127.0.0.1 can't connect to it at {address}: "),
        "LONGSHORE_INTERFACE",
        "LONGSHORE_PORTS",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn connections_are_probed_again_after_libfabric_stopped_the_probes() {
    crate::needs_libfabric!();
    let patience = Duration::from_secs(1);
    let [mut left, mut right] = pair_with(patience);
    pass(&mut left, &mut right);
    let to = right.connector.address(1).unwrap();
    assert_eq!(sockets::forget(to).unwrap(), 2);
    wait(|| {
        left.poll().unwrap();
        sockets::are_probed(to, patience).unwrap().then_some(())
    });
}

#[test]
fn a_rank_that_computes_while_it_connects_is_not_dropped() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    assert!(send(&mut left, 1, 8));
    wait(|| {
        left.poll().unwrap();
        right.poll().unwrap();
        (right.inbox.guests().len() > 0).then_some(())
    });
    // Longer than any timeout that would treat a silent guest as a stranger.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(11) {
        right.poll().unwrap();
        thread::sleep(Duration::from_millis(10));
    }
    wait(|| {
        left.poll().unwrap();
        right.receive().unwrap().map(drop)
    });
    assert_eq!(right.drops(), 0);
}

#[test]
fn a_rank_that_reads_nothing_for_long_is_not_lost() {
    crate::needs_libfabric!();
    let patience = Duration::from_secs(1);
    let [mut left, mut right] = pair_with(patience);
    pass(&mut left, &mut right);
    let (start, mut sent) = (Instant::now(), 0);
    // Sends until nothing has room any more, and then for longer than a host may be silent.
    while start.elapsed() < 5 * patience {
        left.poll().unwrap();
        sent += usize::from(send(&mut left, 1, FRAME));
    }
    let received = wait(|| {
        left.poll().unwrap();
        sent -= usize::from(right.receive().unwrap().is_some());
        (sent == 0).then(|| left.peers.segment.rank_state(1))
    });
    assert!(!received.is_gone(), "{received}");
}

/// Whether this process runs only the test with this name. Otherwise this call has run the test in
/// such a process.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "LONGSHORE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("fabric::tests::{test}");
    command.args(["--exact", &test, "--nocapture"]).env(ALONE, "1");
    // The output of the other process would look like this test's own.
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
    false
}

/// Runs `act` while this process may open at most `more` further descriptors.
fn with_descriptors<T>(more: rlim_t, act: impl FnOnce() -> T) -> T {
    let next = io::stdin().as_fd().try_clone_to_owned().unwrap();
    let (allowed, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let few = next.as_raw_fd() as rlim_t + more;
    drop(next);
    setrlimit(Resource::RLIMIT_NOFILE, few, most).unwrap();
    let result = act();
    setrlimit(Resource::RLIMIT_NOFILE, allowed, most).unwrap();
    result
}

#[test]
fn a_peer_whose_connection_cannot_be_watched_is_not_lost() {
    crate::needs_libfabric!();
    if !is_alone("a_peer_whose_connection_cannot_be_watched_is_not_lost") {
        return;
    }
    let [mut left, mut right] = pair();
    let (sent, listed) = with_descriptors(1, || {
        (send(&mut left, 1, 8), std::fs::read_dir("/proc/self/fd").map(drop))
    });
    assert_eq!(listed.unwrap_err().raw_os_error(), Some(libc::EMFILE));
    assert!(sent);
    wait(|| {
        assert!(left.receive().unwrap().is_none());
        right.receive().unwrap().map(drop)
    });
}

#[test]
fn a_connection_without_a_descriptor_is_tried_again() {
    crate::needs_libfabric!();
    if !is_alone("a_connection_without_a_descriptor_is_tried_again") {
        return;
    }
    let [mut left, mut right] = pair();
    let start = Instant::now();
    let error = with_descriptors(0, || {
        wait(|| match left.reserve(1, 8) {
            Err(Refused::WouldBlock) => None,
            Err(Refused::Failed(error)) => Some(error),
            Ok(_) => panic!("a connection without a descriptor"),
        })
    });
    assert!(start.elapsed() > SILENCE);
    assert!(error.to_string().contains("Too many open files"), "{error}");
    // The peer isn't at fault.
    assert!(!left.peers.is_silent(1));
    wait(|| send(&mut left, 1, 8).then_some(()));
    wait(|| {
        assert!(left.receive().unwrap().is_none());
        right.receive().unwrap().map(drop)
    });
}

#[test]
fn a_peer_is_lost_when_a_frame_cannot_be_posted() {
    crate::needs_libfabric!();
    for looks in [false, true] {
        let [mut left, mut right] = pair();
        pass(&mut left, &mut right);
        // All earlier operations are complete, so no completion is to come.
        wait(|| {
            left.poll().unwrap();
            left.connector.outbound(1).is_some_and(|out| !out.is_unsent()).then_some(())
        });
        assert!(send(&mut left, 1, 8));
        let error = left.network.blame.error("fi_send", libc::ENOMEM);
        left.connector.outbound(1).unwrap().break_with(error);
        match looks {
            true => left.poll().unwrap(),
            false => assert!(!send(&mut left, 1, 8)),
        }
        assert!(left.connector.outbound(1).is_none() && left.peers.is_silent(1));
    }
}

#[test]
fn a_failed_link_returns_its_error_and_its_peers_see_its_rank_as_lost() {
    crate::needs_libfabric!();
    for is_connected in [true, false] {
        let [mut left, mut right] = pair();
        if is_connected {
            pass(&mut left, &mut right);
            pass(&mut right, &mut left);
            // Frames that arrived before the failure are read.
            assert!(send(&mut right, 0, 8));
            wait(|| {
                left.poll().unwrap();
                (!left.inbox.is_empty()).then_some(())
            });
        }
        left.fail(LinkError::Fabric("its queue has failed".to_owned()));
        assert_eq!(left.receive().is_ok_and(|frame| frame.is_some()), is_connected);
        assert!(is_connected || send(&mut right, 0, 8));
        let state = wait(|| {
            assert!(matches!(left.receive(), Err(LinkError::Fabric(_))));
            right.poll().unwrap();
            Some(right.peers.segment.rank_state(0)).filter(|state| state.is_gone())
        });
        assert_eq!(state, RankState::Dead(Cause::Lost));
        assert!(matches!(left.reserve(1, 8), Err(Refused::Failed(LinkError::Fabric(_)))));
        assert!(left.inbox.guests().len() == 0);
    }
}

/// Reads everything at `by`, until `to` sees its rank as lost.
fn read_until_lost(by: &mut FabricLink, to: &mut FabricLink) {
    let state = wait(|| {
        while by.receive().unwrap().is_some() {}
        to.poll().unwrap();
        Some(to.peers.segment.rank_state(by.rank())).filter(|state| state.is_gone())
    });
    assert_eq!(state, RankState::Dead(Cause::Lost));
}

#[test]
fn a_peer_that_is_given_up_sees_this_rank_as_lost() {
    crate::needs_libfabric!();
    for (sends, is_sent) in [(true, false), (false, true), (true, true)] {
        let [mut left, mut right] = pair();
        if sends {
            pass(&mut left, &mut right);
        }
        if is_sent {
            pass(&mut right, &mut left);
            // One more frame, to be read after its sender is given up.
            assert!(send(&mut right, 0, 8));
            wait(|| {
                left.poll().unwrap();
                (!left.inbox.is_empty()).then_some(())
            });
        }
        left.give_up(1);
        assert!(matches!(left.reserve(1, 8), Err(Refused::Failed(LinkError::PeerGone { .. }))));
        read_until_lost(&mut left, &mut right);
        assert!(left.connector.outbound(1).is_none() && left.inbox.guests().len() == 0);
        assert!(!left.peers.segment.rank_state(1).is_gone(), "the job says who is gone");
    }
}

#[test]
fn a_peer_that_is_given_up_is_not_accepted_any_more() {
    crate::needs_libfabric!();
    let [mut left, mut right] = pair();
    // The peer is given up after its request was accepted, and then before it makes one.
    assert!(send(&mut right, 0, 8));
    wait(|| {
        left.poll().unwrap();
        right.poll().unwrap();
        (left.inbox.guests().len() > 0).then_some(())
    });
    left.give_up(1);
    read_until_lost(&mut left, &mut right);
    let [mut left, mut right] = pair();
    left.give_up(1);
    assert!(send(&mut right, 0, 8));
    read_until_lost(&mut left, &mut right);
    assert_eq!(left.drops(), 1);
}

#[test]
fn threads_of_the_link_block_signals() {
    crate::needs_libfabric!();
    let [left, _right] = pair();
    // Threads of this test and of others. The system keeps 15 bytes of a name.
    for ours in ["longshore-fabri", "longshore-keepe"] {
        let is_ours = |status: &String| status.lines().next() == Some(&format!("Name:\t{ours}"));
        // A thread sets its own name, so wait for it.
        let all = wait(|| {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let status = tasks.flat_map(|task| std::fs::read_to_string(task.path().join("status")));
            Some(status.filter(is_ours).collect::<Vec<_>>()).filter(|all| !all.is_empty())
        });
        for status in all {
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            let blocked = u64::from_str_radix(blocked.trim(), 16).unwrap();
            assert_ne!(blocked & 1 << (libc::SIGTERM - 1), 0, "{ours}");
        }
    }
    drop(left);
}
