//! Ranges of the segment: allocated, freed and mapped, by many ranks at a time, and when their
//! holders are killed.

mod support;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use longshore_transport::segment::{GRANULE, Geometry, MAX_RANKS};
use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, Range, RankState, Segment, SegmentError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::{Processes, cases, child, wait};

/// Checks the allocator against a model: ranges don't overlap, and have the requested length.
#[test]
fn ranges_never_overlap() {
    for seed in 0..cases(20) {
        let mut random = SmallRng::seed_from_u64(seed);
        let segment = Segment::create(4).unwrap();
        let ranks: Vec<_> = (0..4).map(|rank| segment.as_rank(rank).unwrap()).collect();
        let mut model = BTreeMap::new();
        for _ in 0..200 {
            let rank = &ranks[random.random_range(0..4)];
            if model.is_empty() || random.random_range(0..5) < 3 {
                let magnitude = random.random_range(1..36u32);
                let bytes = random.random_range(0..1u64 << magnitude);
                let range = rank.allocate(bytes).unwrap();
                assert!(range.len >= bytes.max(1) && range.len < bytes + 2 * GRANULE);
                assert_eq!((range.offset % GRANULE, range.len % GRANULE), (0, 0));
                let before = model.range(..=range.offset).next_back();
                assert!(before.is_none_or(|(start, len)| start + len <= range.offset), "{range}");
                let after = model.range(range.offset..).next();
                assert!(
                    after.is_none_or(|(start, _)| range.offset + range.len <= *start),
                    "{range}"
                );
                model.insert(range.offset, range.len);
            } else {
                let index = random.random_range(0..model.len());
                let (&offset, &len) = model.iter().nth(index).unwrap();
                let wrong = Range { offset, len: len + GRANULE };
                assert_eq!(rank.free(wrong), Err(SegmentError::NotAllocated(wrong)));
                rank.free(Range { offset, len }).unwrap();
                assert!(rank.free(Range { offset, len }).is_err());
                model.remove(&offset);
            }
            let listed: Vec<_> = segment.ranges().iter().map(|(r, _)| (r.offset, r.len)).collect();
            assert_eq!(listed, model.iter().map(|(&o, &l)| (o, l)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn threads_of_many_ranks_allocate_at_the_same_time() {
    let segment = Segment::create(8).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..8 {
            // Two threads of each rank.
            for thread in 0..2 {
                let segment = segment.as_rank(rank).unwrap();
                scope.spawn(move || churn(&segment, rank * 2 + thread, cases(100)));
            }
        }
    });
    assert_eq!(segment.ranges(), []);
}

/// Allocates and frees ranges, and checks that its own writes into them stay.
fn churn(segment: &Segment, who: u32, rounds: u64) {
    for round in 0..rounds {
        let range = segment.allocate(GRANULE * (1 + round % 3)).unwrap();
        let memory = segment.map(range).unwrap();
        let word = memory.word32(memory.len() - 4);
        assert_eq!(
            word.load(std::sync::atomic::Ordering::Relaxed),
            0,
            "freed memory reads as zeros"
        );
        word.store(who + 1, std::sync::atomic::Ordering::Relaxed);
        std::thread::yield_now();
        assert_eq!(word.load(std::sync::atomic::Ordering::Relaxed), who + 1, "another owner wrote");
        segment.free(range).unwrap();
    }
}

#[test]
fn many_pieces_share_ranges_and_mappings_and_read_as_zeros() {
    let segment = Segment::create(2).unwrap();
    let (rank, peer) = (segment.as_rank(0).unwrap(), segment.as_rank(1).unwrap());
    let mappings =
        || std::fs::read_to_string("/proc/self/maps").unwrap().matches("memfd:longshore").count();
    let before = mappings();
    for round in 0..2 {
        let mut held = Vec::new();
        let mut ends = BTreeMap::new();
        for index in 0..20_000u64 {
            let bytes = [1, 64, 100, 4096][index as usize % 4];
            let range = rank.allocate_piece(bytes).unwrap();
            assert!(range.len >= bytes && range.offset % range.len == 0, "{range}");
            let memory = peer.map(range).unwrap();
            let word = memory.word32(0);
            assert_eq!(word.load(std::sync::atomic::Ordering::Relaxed), 0, "{round}");
            word.store(index as u32 + 1, std::sync::atomic::Ordering::Relaxed);
            ends.insert(range.offset, range.offset + range.len);
            held.push((range, memory));
        }
        assert!(ends.iter().zip(ends.iter().skip(1)).all(|((_, end), (next, _))| end <= next));
        assert!(segment.ranges().len() < 30, "{}", segment.ranges().len());
        // Each chunk, and each granule in use.
        let more = mappings().saturating_sub(before);
        assert!(more < 5000, "{more} mappings, with those of other tests");
        for (index, (range, memory)) in (1..).zip(held) {
            assert_eq!(memory.word32(0).load(std::sync::atomic::Ordering::Relaxed), index);
            rank.free(range).unwrap();
            assert_eq!(rank.free(range), Err(SegmentError::NotAllocated(range)));
        }
        assert!(segment.ranges().len() <= 4, "one empty chunk of each size stays");
    }
}

#[test]
fn the_last_range_is_allocated_freed_and_refused_as_quickly_as_the_first() {
    let rank = Segment::create(1).unwrap().as_rank(0).unwrap();
    let start = Instant::now();
    let mut ranges: Vec<_> = (0..65_536).map(|_| rank.allocate(1).unwrap()).collect();
    for _ in 0..65_536 {
        assert_eq!(rank.allocate(1), Err(SegmentError::TooMany(65_536)));
    }
    rank.free(ranges.swap_remove(30_000)).unwrap();
    ranges.push(rank.allocate(GRANULE).unwrap());
    assert_eq!(rank.ranges().len(), 65_536);
    ranges.into_iter().for_each(|range| rank.free(range).unwrap());
    assert_eq!(rank.ranges(), []);
    // Where each allocation sorted all ranges, or looked at all of a full table, they took over a
    // minute.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn invalid_ranks_ranges_and_segments_are_refused() {
    let launcher = Segment::create(2).unwrap();
    assert_eq!(launcher.allocate(1), Err(SegmentError::NotARank));
    assert!(matches!(Segment::create(0), Err(SegmentError::Geometry(_))));
    assert!(matches!(Segment::create(1 << 20), Err(SegmentError::Geometry(_))));
    assert!(matches!(Segment::with_rings(2, 5000), Err(SegmentError::Geometry(_))));
    let fd = || launcher.as_fd().try_clone_to_owned().unwrap();
    assert!(matches!(Segment::attach(fd(), 2), Err(SegmentError::NoSuchRank(2, 2))));
    let rank = Segment::attach(fd(), 0).unwrap();
    for bytes in [u64::MAX, u64::MAX - GRANULE, 1 << 40, 1 << 50] {
        let refused = rank.allocate(bytes).unwrap_err();
        let SegmentError::Exhausted { bytes: wanted, room } = refused else { panic!("{refused}") };
        assert_eq!(wanted, bytes);
        assert!(room > 0 && room < bytes, "{refused}");
    }
    let range = rank.allocate(GRANULE).unwrap();
    let Range { offset, len } = range;
    for (offset, len) in [
        (0, GRANULE),                           // Not in the heap.
        (offset + 1, len),                      // Not aligned.
        (offset, len + 1),                      // Not a multiple.
        (offset, 0),                            // Empty.
        (offset, u64::MAX / GRANULE * GRANULE), // Wraps.
        (1 << 40, GRANULE),                     // Beyond the end.
    ] {
        let range = Range { offset, len };
        assert!(
            matches!(rank.map(range), Err(SegmentError::Unmappable(r)) if r == range),
            "{range}"
        );
    }
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    assert!(matches!(
        Segment::attach(file.into(), 0),
        Err(SegmentError::System { .. } | SegmentError::Geometry(_))
    ));
}

#[test]
fn the_most_ranks_of_a_segment_fit_and_one_more_is_refused() {
    for ring_bytes in [4 << 10, 16 << 10] {
        assert!(Geometry::new(MAX_RANKS, ring_bytes).is_ok(), "{ring_bytes}");
    }
    assert!(Segment::create(MAX_RANKS).is_ok());
    let refused = Segment::create(MAX_RANKS + 1).unwrap_err().to_string();
    assert!(refused.contains(&format!("1 to {MAX_RANKS} are possible")), "{refused}");
    // Longer rings leave room for fewer ranks.
    let refused = Geometry::new(MAX_RANKS, 1 << 20).unwrap_err().to_string();
    let most = refused.split("about ").nth(1).and_then(|text| text.split(' ').next());
    let most: u32 = most.unwrap().parse().unwrap();
    assert!(Geometry::new(most, 1 << 20).is_ok() && Geometry::new(most + 2, 1 << 20).is_err());
}

#[test]
fn notes_and_states_are_seen_by_all_handles_and_death_is_final() {
    use longshore_transport::{Cause, JobState};
    let launcher = Segment::create(2).unwrap();
    let rank = launcher.as_rank(1).unwrap();
    assert_eq!(launcher.rank_state(1), RankState::Absent);
    rank.mark(1, RankState::Alive);
    let events = rank.events();
    rank.note(7, 9);
    let noted = launcher.noted(1);
    assert_eq!((noted.code, noted.detail, noted.waits_for), (7, 9, None));
    rank.note_wait(Some(0));
    assert_eq!(launcher.noted(1), longshore_transport::Note { waits_for: Some(0), ..noted });
    assert_eq!(launcher.remarked(1), None);
    rank.remark("tag 7");
    assert_eq!(launcher.remarked(1).unwrap(), "tag 7");
    // A text is cut at a character, and a shorter one leaves nothing of it.
    rank.remark(&"é".repeat(200).replacen("é", "e", 1));
    assert_eq!(launcher.remarked(1).unwrap(), format!("e{}", "é".repeat(119)));
    rank.remark("tag 8");
    assert_eq!(launcher.remarked(1).unwrap(), "tag 8");
    rank.note_move();
    assert_eq!(launcher.noted(1).moves, noted.moves + 1);
    rank.note(7, 9);
    assert!(launcher.noted(1).calls != noted.calls && launcher.noted(1).waits_for.is_none());
    assert_eq!(launcher.remarked(1), None, "it was about the note before");
    for state in [Cause::Lost, Cause::Signal(11), Cause::Exit(255), Cause::Abort(-3)] {
        let job = Segment::create(1).unwrap();
        job.mark(0, RankState::Dead(state));
        assert_eq!(job.rank_state(0), RankState::Dead(state));
        job.mark(0, RankState::Finalized);
        assert_eq!(job.rank_state(0), RankState::Dead(state), "death is final");
    }
    launcher.mark(1, RankState::Finalized);
    assert_ne!(rank.events(), events);
    assert_eq!(rank.job_state(), JobState::Running);
    rank.abort(-5);
    launcher.abort(6);
    assert_eq!(launcher.job_state(), JobState::Aborting { by: Some(1), code: -5 });
}

/// The note of a rank before it asks for the lock.
const IN_LINE: u32 = 1;

fn is_asleep(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').is_some_and(|(_, words)| words.trim_start().starts_with('S'))
}

/// One rank is killed while it holds the allocator's lock, another while it waits for it. The
/// others continue.
#[test]
fn a_dead_holder_is_passed_over_by_processes() {
    if let Some((segment, _)) = child() {
        let rank = segment.rank().unwrap();
        let mut link = ShmLink::new(segment.clone()).unwrap();
        let mut tell = |peer, byte| {
            let mut frame = link.reserve(peer, 1).unwrap();
            frame[0] = byte;
            frame.commit();
        };
        match rank {
            0 => {
                // Rank 1 holds the lock until it is dead.
                wait(&mut link, |link| link.receive().unwrap().map(drop));
                segment.note(IN_LINE, 0);
                segment.free(segment.allocate(1).unwrap()).unwrap();
                let holder = segment.rank_state(1);
                assert!(matches!(holder, RankState::Dead(_)), "the lock was free: {holder}");
            }
            1 => {
                segment.seize();
                (0..segment.size()).filter(|&peer| peer != 1).for_each(|peer| tell(peer, 1));
                std::thread::sleep(Duration::from_secs(600));
            }
            _ => {
                wait(&mut link, |link| link.receive().unwrap().map(drop));
                segment.note(IN_LINE, 0);
                segment.free(segment.allocate(1).unwrap()).unwrap();
            }
        }
        return;
    }
    let segment = Segment::create(6).unwrap();
    let name = "a_dead_holder_is_passed_over_by_processes";
    let mut processes = Processes::start(segment, name, "");
    let segment = &processes.segment;
    let waits = |rank: u32, pid: u32| {
        // The only sleep after this note is the one in the lock's queue.
        segment.noted(rank).code == IN_LINE && is_asleep(pid)
    };
    let pids: Vec<_> = processes.children.iter().map(|child| child.id()).collect();
    let start = Instant::now();
    while !(0..).zip(&pids).all(|(rank, &pid)| rank == 1 || waits(rank, pid)) {
        assert!(start.elapsed() < Duration::from_secs(60), "the ranks don't wait in the queue");
        std::thread::sleep(Duration::from_millis(5));
    }
    processes.kill(4);
    processes.kill(1);
    let start = Instant::now();
    processes.finish([0, 2, 3, 5]);
    assert!(start.elapsed() < Duration::from_secs(5), "the survivors waited for the dead");
    assert_eq!(processes.segment.ranges(), []);
}

/// Ranks are killed at random moments while all ranks allocate and free.
#[test]
fn the_table_survives_kills_of_processes() {
    if let Some((segment, _)) = child() {
        let rank = segment.rank().unwrap();
        let rounds = if rank < 4 { u64::MAX } else { 1000 };
        return churn(&segment, rank, rounds);
    }
    for seed in 0..cases(3) {
        let mut random = SmallRng::seed_from_u64(seed);
        let segment = Segment::create(6).unwrap();
        let mut processes = Processes::start(segment, "the_table_survives_kills_of_processes", "");
        for rank in 0..4 {
            std::thread::sleep(Duration::from_micros(random.random_range(1_000..40_000)));
            processes.kill(rank);
        }
        processes.finish([4, 5]);
        // The remaining ranges belong to the dead, at most one each, and the table is consistent.
        let left = processes.segment.ranges();
        assert!(left.len() <= 4 && left.iter().all(|(_, owner)| *owner < 4), "{left:?}");
        assert!(left.windows(2).all(|two| two[0].0.offset + two[0].0.len <= two[1].0.offset));
        processes.segment.as_rank(5).unwrap().allocate(1).unwrap();
    }
}
