//! The promises of [`Link`], checked on every link: simulated, in shared memory between threads and
//! between processes, over libfabric, composed, and with faults.

mod support;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use longshore_transport::composed::Composed;
use longshore_transport::fault::{Faults, Faulty};
use longshore_transport::shm::ShmLink;
use longshore_transport::sim::{Cluster, Limits};
use longshore_transport::{Cause, Link, LinkError, Range, RankState, Refused, Segment};
use support::{Processes, child, fill, is_filled, wait};

/// The behaviour of one rank. All ranks of a job run the same scenario.
type Scenario = fn(&mut dyn Link, &Segment);

const SCENARIOS: &[(&str, Scenario)] = &[
    ("refusals", refusals),
    ("parts", parts),
    ("order", order),
    ("sleepers", sleepers),
    ("back-pressure", back_pressure),
    ("bells", bells),
    ("rounds", rounds),
    ("death", death),
];

/// A link, with the frames that arrived while its rank waited for something else, by peer.
struct Post<'a> {
    link: &'a mut dyn Link,
    inbox: Vec<VecDeque<Vec<u8>>>,
}

impl<'a> Post<'a> {
    fn new(link: &'a mut dyn Link) -> Self {
        let inbox = vec![VecDeque::new(); link.size() as usize];
        Self { link, inbox }
    }

    fn take_in(link: &mut dyn Link, inbox: &mut [VecDeque<Vec<u8>>]) {
        while let Some(frame) = link.receive().unwrap() {
            inbox[frame.peer() as usize].push_back(frame.to_vec());
        }
    }

    /// Sends one frame, waiting for room.
    fn send(&mut self, peer: u32, bytes: &[u8]) {
        let Self { link, inbox } = self;
        wait(*link, |link| {
            match link.reserve(peer, bytes.len()) {
                Ok(mut frame) => {
                    frame.copy_from_slice(bytes);
                    frame.commit();
                    return Some(());
                }
                Err(Refused::WouldBlock) => {}
                Err(Refused::Failed(error)) => panic!("{error}"),
            }
            Self::take_in(link, inbox);
            None
        });
    }

    /// Waits for something other than a frame, and polls the link meanwhile.
    fn wait(&mut self, mut is_there: impl FnMut() -> bool) {
        let Self { link, inbox } = self;
        wait(*link, |link| {
            Self::take_in(link, inbox);
            is_there().then_some(())
        });
    }

    /// The next frame from `peer`.
    fn receive(&mut self, peer: u32) -> Vec<u8> {
        let Self { link, inbox } = self;
        wait(*link, |link| {
            Self::take_in(link, inbox);
            inbox[peer as usize].pop_front()
        })
    }

    /// A barrier of the first `ranks` ranks: each sends a frame to all, including itself.
    fn barrier(&mut self, ranks: u32) {
        (0..ranks).for_each(|peer| self.send(peer, b"here"));
        (0..ranks).for_each(|peer| {
            assert!(self.receive(peer) == b"here", "rank {peer} sent another frame")
        });
    }
}

/// Makes invalid reservations, which fail, and drops a valid one.
fn refusals(link: &mut dyn Link, _: &Segment) {
    let (size, limit) = (link.size(), link.frame_limit(0));
    let failed = |refused: Result<_, Refused>| match refused {
        Err(Refused::Failed(error)) => Some(error),
        _ => None,
    };
    let none = failed(link.reserve(size, 1).map(drop));
    assert_eq!(none, Some(LinkError::NoSuchRank { rank: size, size }));
    let long = failed(link.reserve(0, limit + 1).map(drop));
    assert_eq!(long, Some(LinkError::TooLong { len: limit + 1, limit }));
    if let Ok(mut frame) = link.reserve(link.rank(), link.frame_limit(link.rank())) {
        frame.fill(255); // Never sent.
    }
    Post::new(link).barrier(size);
}

/// Commits only a part of each reserved frame.
fn parts(link: &mut dyn Link, _: &Segment) {
    let rank = link.rank();
    let limit = link.frame_limit(rank);
    let lengths = [0, 1, 7, 56, 119, 120, 121, 128, 1000, limit - 1, limit];
    for round in 0..20 {
        for (i, &reserved) in lengths.iter().enumerate() {
            for &len in &lengths[..=i] {
                let seed = (reserved * 31 + len + round) as u64;
                wait(link, |link| {
                    let mut frame = match link.reserve(rank, reserved) {
                        Ok(frame) => frame,
                        Err(Refused::WouldBlock) => return None,
                        Err(error) => panic!("{error}"),
                    };
                    assert_eq!(frame.len(), reserved);
                    fill(&mut frame[..len], seed);
                    frame.commit_part(len);
                    Some(())
                });
                wait(link, |link| {
                    let frame = link.receive().unwrap()?;
                    assert_eq!((frame.peer(), frame.len()), (rank, len));
                    assert!(is_filled(&frame, seed), "{reserved} {len}");
                    Some(())
                });
            }
        }
    }
}

/// Every rank sends frames of all lengths to every rank, as fast as possible.
fn order(link: &mut dyn Link, _: &Segment) {
    const FRAMES: u64 = 300;
    let (rank, size) = (link.rank(), link.size());
    let limits: Vec<_> = (0..size).map(|peer| link.frame_limit(peer)).collect();
    let seed = |from: u32, to: u32, i: u64| u64::from(from) << 40 | u64::from(to) << 32 | i;
    let length = |peer: u32, seed: u64| {
        let mut bytes = [0; 8];
        fill(&mut bytes, !seed);
        let random = u64::from_le_bytes(bytes);
        // Half of the frames are short.
        let most = if random % 2 == 0 { 200 } else { limits[peer as usize] as u64 };
        (random / 2 % (most + 1)) as usize
    };
    let mut sent = vec![0; size as usize];
    let mut received = vec![0; size as usize];
    wait(link, |link| {
        for peer in 0..size {
            while sent[peer as usize] < FRAMES {
                let seed = seed(rank, peer, sent[peer as usize]);
                match link.reserve(peer, length(peer, seed)) {
                    Ok(mut frame) => {
                        fill(&mut frame, seed);
                        match seed % 4 {
                            0 => frame.commit(),
                            1 => frame.commit_answer(),
                            _ => frame.commit_lazily(),
                        }
                    }
                    Err(Refused::WouldBlock) => break,
                    Err(Refused::Failed(error)) => panic!("{error}"),
                }
                sent[peer as usize] += 1;
            }
        }
        while let Some(frame) = link.receive().unwrap() {
            let peer = frame.peer();
            let count = &mut received[peer as usize];
            let seed = seed(peer, rank, *count);
            assert_eq!(frame.len(), length(peer, seed), "frame {count} from rank {peer}");
            assert!(is_filled(&frame, seed), "frame {count} from rank {peer}");
            *count += 1;
        }
        let done = |counts: &[u64]| counts.iter().all(|&count| count == FRAMES);
        (done(&sent) && done(&received)).then_some(())
    });
}

/// Passes a token round. A rank without the token sleeps. If the token has arrived after a
/// full-length sleep, a wake-up was lost. Some such sleeps are tolerated, because the machine may
/// be slow.
fn sleepers(link: &mut dyn Link, _: &Segment) {
    const LAPS: u32 = 100;
    let (rank, size) = (link.rank(), link.size());
    let doorbell = link.doorbell();
    let mut unwoken = 0;
    if rank == 0 {
        Post::new(link).send(1 % size, &[0; 40]);
    }
    for lap in 0..LAPS {
        let mut slept = Duration::ZERO;
        loop {
            doorbell.arm();
            let frame = link.receive().unwrap().map(|frame| frame.to_vec());
            if let Some(frame) = frame {
                doorbell.disarm();
                unwoken += u32::from(slept >= Duration::from_millis(100));
                assert_eq!(frame, [0; 40]);
                break;
            }
            let start = Instant::now();
            doorbell.sleep(Duration::from_secs(1));
            slept = start.elapsed();
            doorbell.disarm();
        }
        if rank != 0 || lap + 1 < LAPS {
            Post::new(link).send((rank + 1) % size, &[0; 40]);
        }
    }
    assert!(unwoken < LAPS / 2, "{unwoken} wake-ups were lost");
}

/// Rank 0 sends until the link refuses, then waits until the receiver makes room.
fn back_pressure(link: &mut dyn Link, _: &Segment) {
    let size = link.size();
    let mut post = Post::new(link);
    for step in 0..3 {
        if post.link.rank() == 0 {
            for peer in 1..size {
                let limit = post.link.frame_limit(peer);
                let len = [10, limit / 3, limit][step];
                let mut sent = 0u32;
                while let Ok(mut frame) = post.link.reserve(peer, len) {
                    frame[..4].copy_from_slice(&sent.to_le_bytes());
                    frame.commit();
                    sent += 1;
                    assert!(sent < 1_000_000, "no back-pressure");
                }
                post.send(peer, &sent.to_le_bytes());
            }
            post.barrier(size);
        } else {
            if size > 1 {
                // Let the sender fill the link.
                std::thread::sleep(Duration::from_millis(2));
            }
            for expected in 0u32.. {
                let bytes = post.receive(0);
                assert_eq!(bytes[..4], expected.to_le_bytes());
                if bytes.len() == 4 {
                    break;
                }
            }
            post.barrier(size);
        }
    }
}

/// Other ranks write memory of rank 0, and ring without a frame.
fn bells(link: &mut dyn Link, segment: &Segment) {
    use std::sync::atomic::Ordering::SeqCst;
    let (rank, size) = (link.rank(), link.size());
    let doorbell = link.doorbell();
    let mut post = Post::new(link);
    if rank == 0 {
        let range = segment.allocate(100_000).unwrap();
        let memory = segment.map(range).unwrap();
        for peer in 1..size {
            let bytes = [range.offset.to_le_bytes(), range.len.to_le_bytes()].concat();
            post.send(peer, &bytes);
        }
        for round in 1..=20u32 {
            for peer in 1..size as usize {
                post.wait(|| u32::from_le(memory.word32(4 * peer).load(SeqCst)) == round);
            }
            memory.word32(0).store(round.to_le(), SeqCst);
            (1..size).for_each(|peer| doorbell.ring(peer).unwrap());
        }
        post.barrier(size);
        drop(memory);
        segment.free(range).unwrap();
    } else {
        let bytes = post.receive(0);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let memory = segment.map(Range { offset: word(0), len: word(8) }).unwrap();
        for round in 1..=20u32 {
            memory.word32(4 * rank as usize).store(round.to_le(), SeqCst);
            doorbell.ring(0).unwrap();
            post.wait(|| u32::from_le(memory.word32(0).load(SeqCst)) == round);
        }
        post.barrier(size);
    }
    assert!(doorbell.ring(size).is_err());
}

/// Barriers, in which every rank receives from every rank: more peers than a link watches.
fn rounds(link: &mut dyn Link, _: &Segment) {
    let size = link.size();
    let mut post = Post::new(link);
    for _ in 0..20 {
        post.barrier(size);
    }
    assert!(post.inbox.iter().all(|frames| frames.len() <= 1), "a round ahead of itself");
}

/// The last rank dies while others wait for room to send to it.
fn death(link: &mut dyn Link, segment: &Segment) {
    let (rank, last) = (link.rank(), link.size() - 1);
    let cause = RankState::Dead(Cause::Exit(3));
    let mut post = Post::new(link);
    if rank == last {
        // Frames that were sent before the death still arrive.
        (0..last).for_each(|peer| post.send(peer, b"farewell"));
        segment.mark(rank, cause);
        return;
    }
    let error = wait(post.link, |link| match link.reserve(last, 100) {
        Ok(frame) => {
            frame.commit();
            None
        }
        Err(Refused::WouldBlock) => None,
        Err(Refused::Failed(error)) => Some(error),
    });
    assert_eq!(error, LinkError::PeerGone { peer: last, state: cause });
    // A state may be visible before it is announced.
    wait(post.link, |_| (segment.events() != 0).then_some(()));
    assert!(post.receive(last) == b"farewell");
    segment.mark(last, RankState::Alive); // Ignored: death is final.
    assert_eq!(segment.rank_state(last), cause);
    post.barrier(last);
}

fn faults(seed: u64) -> Faults {
    Faults { seed, delay: 20, refuse: 30, hold: Some(5), split: true, cut: None, fail: None }
}

fn in_threads(segment: &Segment, run: impl Fn(ShmLink, &Segment) + Sync) {
    std::thread::scope(|scope| {
        for rank in 0..segment.size() {
            let (segment, run) = (segment.as_rank(rank).unwrap(), &run);
            scope.spawn(move || run(ShmLink::new(segment.clone()).unwrap(), &segment));
        }
    });
}

#[test]
fn simulation_keeps_all_promises() {
    for (name, scenario) in SCENARIOS {
        for seed in 0..support::cases(3) {
            println!("{name}, seed {seed}");
            let limits = Limits { frame: 2000, frames: 6, ..Limits::default() };
            let cluster = Cluster::with_limits(4, seed, limits).unwrap();
            cluster.run(|mut seat| scenario(&mut seat.link, &seat.segment));
        }
    }
}

#[test]
fn simulation_with_faults_keeps_all_promises() {
    for (name, scenario) in SCENARIOS {
        for seed in 0..support::cases(3) {
            println!("{name}, seed {seed}");
            let limits = Limits { frame: 2000, frames: 6, ..Limits::default() };
            let cluster = Cluster::with_limits(3, seed, limits).unwrap();
            cluster.run(|seat| scenario(&mut Faulty::new(seat.link, faults(seed)), &seat.segment));
        }
    }
}

#[test]
fn shared_memory_between_threads_keeps_all_promises() {
    for (name, scenario) in SCENARIOS {
        for (ranks, ring_bytes) in [(1, 8192), (2, 4096), (3, 65536), (12, 4096)] {
            if *name == "death" && ranks == 1 {
                continue;
            }
            println!("{name}, {ranks} ranks, rings of {ring_bytes}");
            let segment = Segment::with_rings(ranks, ring_bytes).unwrap();
            in_threads(&segment, |mut link, segment| scenario(&mut link, segment));
        }
    }
}

/// More than a segment with rings can have.
#[test]
fn ten_thousand_ranks_can_be_simulated() {
    let cluster = Cluster::new(10_000, 0).unwrap();
    let (mut first, mut last) = (cluster.link(0).unwrap(), cluster.link(9_999).unwrap());
    first.reserve(9_999, 1).unwrap().commit();
    assert_eq!(last.receive().unwrap().map(|frame| frame.peer()), Some(0));
    let segments = [0, 1].map(|rank| cluster.segment(rank).unwrap());
    let range = segments[0].allocate(1).unwrap();
    // A system limits the number of mappings, so these ranks share them.
    let [near, far] = segments.each_ref().map(|segment| segment.map(range).unwrap());
    assert_eq!(near.as_ptr(), far.as_ptr());
    drop(near);
    far.word32(0).store(1, std::sync::atomic::Ordering::Relaxed);
    // There are no rings.
    let sent = ShmLink::new(segments[0].clone()).map(|mut link| link.reserve(1, 1).is_ok());
    assert!(!matches!(sent, Ok(true)));
    assert!(Cluster::new(1 << 20, 0).is_err());
}

/// Far more ranks than cores or watched rings.
#[test]
fn a_crowd_of_ranks_makes_progress() {
    for scenario in [rounds, sleepers, death] {
        let segment = Segment::create(32).unwrap();
        in_threads(&segment, |mut link, segment| scenario(&mut link, segment));
    }
}

#[test]
fn shared_memory_with_faults_keeps_all_promises() {
    for (seed, (name, scenario)) in SCENARIOS.iter().enumerate() {
        println!("{name}");
        let segment = Segment::with_rings(3, 8192).unwrap();
        in_threads(&segment, |link, segment| {
            scenario(&mut Faulty::new(link, faults(seed as u64)), segment);
        });
    }
}

#[test]
fn shared_memory_between_processes_keeps_all_promises() {
    if let Some((segment, scenario)) = child() {
        let mut link = ShmLink::new(segment.clone()).unwrap();
        let (_, scenario) = SCENARIOS.iter().find(|(name, _)| *name == scenario).unwrap();
        return scenario(&mut link, &segment);
    }
    for (name, _) in SCENARIOS {
        println!("{name}");
        let segment = Segment::with_rings(4, 16384).unwrap();
        let test = "shared_memory_between_processes_keeps_all_promises";
        let mut processes = Processes::start(segment, test, name);
        processes.finish(0..4);
    }
}

/// Links over libfabric, on the loopback interface.
mod over_fabric {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use longshore_transport::fabric::{FabricLink, Listener};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const LISTENS: u32 = 0x1157_e745;

    /// The link of a rank. The ranks exchange their listening ports by their notes in the segment.
    fn link(segment: &Segment, encrypts: bool) -> FabricLink {
        let mut listener = Listener::open("tcp", HERE, Duration::from_secs(20)).unwrap();
        if encrypts {
            listener.encrypt();
        }
        segment.note(LISTENS, listener.address().port().into());
        let address = |rank| loop {
            let note = segment.noted(rank);
            if note.code == LISTENS {
                return SocketAddr::new(HERE, note.detail as u16);
            }
            std::thread::yield_now();
        };
        let addresses = (0..segment.size()).map(|rank| Some(address(rank))).collect();
        listener.link(segment.clone(), addresses, &[], b"the secret of this test").unwrap()
    }

    fn in_threads(segment: &Segment, run: impl Fn(FabricLink, &Segment) + Sync) {
        in_threads_with(segment, false, run);
    }

    fn in_threads_with(
        segment: &Segment,
        encrypts: bool,
        run: impl Fn(FabricLink, &Segment) + Sync,
    ) {
        std::thread::scope(|scope| {
            for rank in 0..segment.size() {
                let (segment, run) = (segment.as_rank(rank).unwrap(), &run);
                scope.spawn(move || run(link(&segment, encrypts), &segment));
            }
        });
    }

    #[test]
    fn fabric_between_threads_keeps_all_promises() {
        longshore_transport::needs_libfabric!();
        for (name, scenario) in SCENARIOS {
            for ranks in [1, 2, 3, 12] {
                if *name == "death" && ranks == 1 {
                    continue;
                }
                println!("{name}, {ranks} ranks");
                let segment = Segment::create(ranks).unwrap();
                in_threads(&segment, |mut link, segment| scenario(&mut link, segment));
            }
        }
    }

    #[test]
    fn encrypted_fabric_keeps_all_promises() {
        longshore_transport::needs_libfabric!();
        for (name, scenario) in SCENARIOS {
            println!("{name}");
            let segment = Segment::create(3).unwrap();
            in_threads_with(&segment, true, |mut link, segment| scenario(&mut link, segment));
        }
    }

    /// The even ranks act as one host, and the odd ranks as another.
    #[test]
    fn fabric_composed_with_shared_memory_keeps_all_promises() {
        longshore_transport::needs_libfabric!();
        for (name, scenario) in SCENARIOS {
            println!("{name}");
            let segment = Segment::create(4).unwrap();
            in_threads(&segment, |far, segment| {
                let near = ShmLink::new(segment.clone()).unwrap();
                let is_near = (0..4).map(|rank| rank % 2 == near.rank() % 2).collect();
                scenario(&mut Composed::new(near, far, is_near), segment);
            });
        }
    }

    #[test]
    fn fabric_with_faults_keeps_all_promises() {
        longshore_transport::needs_libfabric!();
        for (seed, (name, scenario)) in SCENARIOS.iter().enumerate() {
            println!("{name}");
            let segment = Segment::create(3).unwrap();
            in_threads(&segment, |link, segment| {
                scenario(&mut Faulty::new(link, faults(seed as u64)), segment);
            });
        }
    }

    #[test]
    fn fabric_between_processes_keeps_all_promises() {
        longshore_transport::needs_libfabric!();
        if let Some((segment, scenario)) = child() {
            let (_, scenario) = SCENARIOS.iter().find(|(name, _)| *name == scenario).unwrap();
            return scenario(&mut link(&segment, false), &segment);
        }
        for (name, _) in SCENARIOS {
            println!("{name}");
            let segment = Segment::create(4).unwrap();
            let test = "over_fabric::fabric_between_processes_keeps_all_promises";
            let mut processes = Processes::start(segment, test, name);
            processes.finish(0..4);
        }
    }
}

#[test]
fn a_seed_determines_the_run() {
    let trace = |seed| {
        let cluster = Cluster::new(4, seed).unwrap();
        let traces = cluster.run(|mut seat| {
            let mut trace = Vec::new();
            for peer in 0..4 {
                seat.link.reserve(peer, 1).unwrap().commit();
                seat.link.doorbell().pause();
            }
            wait(&mut seat.link, |link| {
                trace.extend(link.receive().unwrap().map(|frame| frame.peer()));
                (trace.len() == 4).then_some(())
            });
            trace
        });
        (traces, cluster.now())
    };
    assert_eq!(trace(5), trace(5));
    assert!((0..10).any(|seed| trace(seed) != trace(5)));
}

#[test]
#[should_panic(expected = "simulated time is up")]
fn a_simulated_job_that_hangs_is_ended() {
    let limits = Limits { time: Duration::from_secs(5), ..Limits::default() };
    let cluster = Cluster::with_limits(2, 1, limits).unwrap();
    cluster.run(|mut seat| wait(&mut seat.link, |link| link.receive().unwrap().map(drop)));
}

#[test]
#[should_panic(expected = "the first panic")]
fn a_simulated_rank_that_panics_is_dead_to_the_others() {
    Cluster::new(2, 1).unwrap().run(|seat| {
        if seat.link.rank() == 0 {
            panic!("the first panic");
        }
        let mut segment = seat.segment;
        wait_for_death(&*seat.link.doorbell(), &mut segment);
    });
}

fn wait_for_death(doorbell: &dyn longshore_transport::Doorbell, segment: &mut Segment) {
    support::wait_on(doorbell, segment, |segment| {
        (segment.rank_state(0) == RankState::Dead(Cause::Lost)).then_some(())
    });
}

#[test]
fn a_composed_link_still_receives_when_one_of_its_links_failed() {
    let segment = Segment::create(2).unwrap();
    let rank = |rank| ShmLink::new(segment.as_rank(rank).unwrap()).unwrap();
    let (near, mut peer) = (rank(0), rank(1));
    let cluster = Cluster::new(2, 1).unwrap();
    let failing = Faults { fail: Some(0), ..Faults::default() };
    let far = Faulty::new(cluster.link(0).unwrap(), failing);
    let mut link = Composed::new(near, far, vec![true, true]);
    for _ in 0..10 {
        peer.reserve(0, 8).unwrap().commit();
    }
    for _ in 0..10 {
        assert!(link.receive().unwrap().is_some());
    }
    for _ in 0..2 {
        assert!(matches!(link.receive(), Err(LinkError::Fabric(_))));
    }
}

#[test]
fn faults_cut_a_peer() {
    let cluster = Cluster::new(2, 1).unwrap();
    let mut left = cluster.link(0).unwrap();
    let mut right =
        Faulty::new(cluster.link(1).unwrap(), Faults { cut: Some((0, 2)), ..faults(1) });
    for _ in 0..5 {
        left.reserve(1, 4).unwrap().commit();
    }
    let received = (0..200).filter(|_| right.receive().unwrap().is_some()).count();
    assert_eq!(received, 2);
    let gone = LinkError::PeerGone { peer: 0, state: RankState::Dead(Cause::Lost) };
    assert!(matches!(right.reserve(0, 1), Err(Refused::Failed(error)) if error == gone));
}

/// A process that has the segment, but isn't of the job, could otherwise end all ranks by SIGBUS.
#[test]
fn the_size_of_a_segment_is_fixed() {
    use std::os::fd::AsFd as _;
    let segment = Segment::create(2).unwrap();
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().unwrap());
    let size = file.metadata().unwrap().len();
    assert!(file.set_len(0).is_err() && file.set_len(size + 4096).is_err());
    assert_eq!(file.metadata().unwrap().len(), size);
}
