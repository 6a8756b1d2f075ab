//! Invalid data from a broken peer or a stranger: it causes errors, but never a panic or a hang.

mod support;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use longshore_transport::ring;
use longshore_transport::segment::{GRANULE, Geometry, Range};
use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, LinkError, Refused, Segment};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::cases;

/// The offsets of the used rings, found as a peer would find them: by nonzero bytes after the
/// control part.
fn used_granules(file: &File) -> Vec<u64> {
    let mut granules = Vec::new();
    let mut bytes = vec![0; 65536];
    for granule in 17..256 {
        file.read_exact_at(&mut bytes, granule * 65536).unwrap();
        if bytes.iter().any(|&byte| byte != 0) {
            granules.push(granule * 65536);
        }
    }
    granules
}

#[test]
fn a_damaged_ring_causes_errors_only() {
    let mut corrupt = 0;
    for seed in 0..cases(200) {
        let mut random = SmallRng::seed_from_u64(seed);
        let segment = Segment::with_rings(2, 4096).unwrap();
        let file = File::from(segment.as_fd().try_clone_to_owned().unwrap());
        let mut left = ShmLink::new(segment.as_rank(0).unwrap()).unwrap();
        let mut right = ShmLink::new(segment.as_rank(1).unwrap()).unwrap();
        // Some traffic, so that the ring isn't at the start of its lap.
        for i in 0..random.random_range(1..100) {
            left.reserve(1, i * 7 % 1000).unwrap().commit();
            assert_eq!(right.receive().unwrap().unwrap().len(), i * 7 % 1000);
        }
        left.reserve(1, 100).unwrap().commit();
        let rings = used_granules(&file);
        for _ in 0..random.random_range(1..300) {
            let at = rings[random.random_range(0..rings.len())] + random.random_range(0..8704);
            let mut bytes = [0; 8];
            random.fill(&mut bytes);
            bytes[4..].fill(if random.random() { 0 } else { random.random() });
            file.write_all_at(&bytes[..random.random_range(1..=8)], at).unwrap();
        }
        for i in 0..200 {
            match left.reserve(1, i) {
                Ok(frame) => frame.commit(),
                Err(Refused::WouldBlock) => {}
                Err(Refused::Failed(LinkError::Corrupt { peer, .. })) => {
                    assert_eq!(peer, 1);
                    corrupt += 1;
                }
                Err(error) => panic!("{error}"),
            }
            match right.receive() {
                Ok(frame) => assert!(frame.is_none_or(|frame| frame.len() <= 1024)),
                Err(LinkError::Corrupt { peer, .. }) => {
                    assert_eq!(peer, 0);
                    corrupt += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(corrupt > 0, "no damage was noticed");
}

/// The place of the range table in a segment, whose first entry is this range of rank 0.
fn table(file: &File, first: Range) -> u64 {
    let granules = |bytes: u64| ((bytes / GRANULE) as u32).to_le_bytes();
    let entry = [granules(first.offset), granules(first.len), [0; 4], [0; 4]].concat();
    let is_entry = |at: &u64| {
        let mut found = [0; 16];
        file.read_exact_at(&mut found, *at).unwrap();
        found[..] == entry
    };
    (4096..1 << 16).step_by(64).find(is_entry).expect("the entry of an allocated range")
}

#[test]
fn a_damaged_range_table_only_loses_room() {
    for seed in 0..cases(50) {
        let mut random = SmallRng::seed_from_u64(seed);
        let segment = Segment::create(2).unwrap();
        let file = File::from(segment.as_fd().try_clone_to_owned().unwrap());
        let rank = segment.as_rank(0).unwrap();
        let held = rank.allocate(1).unwrap();
        let table = table(&file, held);
        // Damages the entries and their count, but not the lock: an allocation rightly waits for a
        // living holder.
        for _ in 0..random.random_range(1..2000) {
            let at = random.random_range(table..table + 16 * 128);
            file.write_all_at(&random.random::<u64>().to_le_bytes(), at).unwrap();
        }
        file.write_all_at(&random.random::<u32>().to_le_bytes(), 192).unwrap();
        for _ in 0..10 {
            if let Ok(range) = rank.allocate(random.random_range(0..1 << 30)) {
                assert!(rank.map(range).is_ok());
            }
        }
        let _ = rank.free(held);
        segment.ranges();
    }
}

#[test]
fn a_header_with_a_flipped_bit_is_refused_or_valid_for_another_job() {
    let geometry = Geometry::new(3, 8192).unwrap();
    let header = geometry.header();
    assert_eq!(Geometry::parse(&header), Ok(geometry));
    for len in 0..32 {
        assert!(Geometry::parse(&header[..len]).is_err());
    }
    for bit in 0..256 {
        let mut header = header;
        header[bit / 8] ^= 1 << (bit % 8);
        // The header of another possible job is valid; any other header is refused.
        if let Ok(other) = Geometry::parse(&header) {
            assert!(bit / 8 == 12 || bit / 8 == 13 || bit / 8 >= 16, "bit {bit}: {other:?}");
        }
    }
}

#[test]
fn frame_headers_are_accepted_only_in_their_turn() {
    let read = |stamp, len, sequence| ring::Header::new(stamp, len).frame(sequence, 1000);
    assert_eq!(read(0, 0, 0), Ok(None));
    assert_eq!(read(0, 0, ring::SLOTS - 1), Ok(None));
    assert!(read(0, 0, ring::SLOTS).is_err(), "a slot is zero in the first lap only");
    assert_eq!(read(1, 5, 0), Ok(Some(5)));
    assert!(read(1, 1 << 31 | 1000, 0).is_err());
    assert!(read(1, 1001, 0).is_err());
    assert_eq!(read(1, 5, ring::SLOTS), Ok(None), "still the frame of the lap before");
    assert_eq!(read(0, 5, 0), Ok(None), "a length that is not published yet");
    assert!(read(2, 5, 0).is_err());
    assert_eq!(read(0, 9, u32::MAX), Ok(Some(9)));
}

/// Data from strangers at a listener between hosts.
mod over_fabric {
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
    use std::time::Duration;

    use longshore_transport::fabric::{FabricLink, Listener};
    use longshore_transport::{Cause, RankState};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn listener() -> Listener {
        Listener::open("tcp", HERE, Duration::from_secs(20)).unwrap()
    }

    fn link(
        listener: Listener,
        segment: &Segment,
        rank: u32,
        addresses: &[SocketAddr],
        secret: &str,
    ) -> FabricLink {
        let segment = segment.as_rank(rank).unwrap();
        let addresses = addresses.iter().copied().map(Some).collect();
        listener.link(segment, addresses, &[], secret.as_bytes()).unwrap()
    }

    /// Sends a frame, and polls both ranks until it has arrived.
    fn pass(from: &mut FabricLink, to: &mut FabricLink, frame: &[u8]) {
        let peer = to.rank();
        let mut sent = from.reserve(peer, frame.len()).unwrap();
        sent.copy_from_slice(frame);
        sent.commit();
        support::wait(from, |from| {
            assert!(from.receive().unwrap().is_none());
            let got = to.receive().unwrap()?;
            assert_eq!((got.peer(), &*got), (0, frame));
            Some(())
        });
    }

    /// The provider tcp's request for a connection, with a length of `len` for the data that
    /// follow.
    fn request(len: u16) -> Vec<u8> {
        let mut header = vec![0; 32];
        header[0] = 3;
        header[2..4].copy_from_slice(&len.to_be_bytes());
        header[24..].copy_from_slice(&1u64.to_ne_bytes());
        header
    }

    #[test]
    fn the_provider_reads_nothing_of_a_stranger_after_its_request() {
        longshore_transport::needs_libfabric!();
        let segment = Segment::create(2).unwrap();
        let (left, right) = (listener(), listener());
        let addresses = [left.address(), right.address()];
        let mut left = link(left, &segment, 0, &addresses, "secret");
        let mut right = link(right, &segment, 1, &addresses, "secret");
        let mut drops = 0;
        // The headers of all kinds of the provider's messages: as a message, or as the
        // acknowledgement (2) of a message that was never sent. Some of them would crash the
        // process that reads them.
        for kind in 0..12 {
            for acknowledges in [0, 2] {
                let mut stranger = TcpStream::connect(addresses[1]).unwrap();
                let mut header = [3, kind, 0, 0, acknowledges, 0, 16, 0].to_vec();
                header.extend(16u64.to_ne_bytes());
                stranger.write_all(&[request(0), header, vec![0; 100]].concat()).unwrap();
                drops += 1;
                support::wait(&mut right, |right| {
                    assert!(right.receive().unwrap().is_none());
                    (right.drops() == drops).then_some(())
                });
            }
        }
        pass(&mut left, &mut right, b"still connected");
    }

    #[test]
    fn strangers_are_dropped_and_peers_go_on() {
        longshore_transport::needs_libfabric!();
        let mut random = SmallRng::seed_from_u64(1);
        let segment = Segment::create(2).unwrap();
        let (left, right) = (listener(), listener());
        let addresses = [left.address(), right.address()];
        let mut left = link(left, &segment, 0, &addresses, "secret");
        let mut right = link(right, &segment, 1, &addresses, "secret");
        let mut strangers = Vec::new();
        for round in 0..cases(40) {
            let mut stranger = TcpStream::connect(addresses[1]).unwrap();
            let mut bytes = vec![0; random.random_range(0..2000)];
            random.fill(&mut bytes[..]);
            if random.random() {
                // Begins with a valid header of libfabric's, so that some data reach this crate.
                bytes.splice(0..0, request(random.random_range(0..300)));
            }
            // Ignored: the other end may have closed the connection.
            let _ = stranger.write_all(&bytes);
            if random.random() {
                strangers.push(stranger); // It sends nothing more.
            }
            if round % 4 == 0 {
                pass(&mut left, &mut right, b"still connected");
            }
        }
        pass(&mut left, &mut right, b"last frame");
        drop(right);
        for mut stranger in strangers {
            // Whatever ends the connection, the stranger receives less than a frame.
            let mut received = Vec::new();
            let _ = stranger.read_to_end(&mut received);
            assert!(received.len() < 512, "a stranger received {} bytes", received.len());
        }
    }

    #[test]
    fn a_rank_with_another_secret_is_dropped() {
        longshore_transport::needs_libfabric!();
        let segment = Segment::create(2).unwrap();
        let (left, right) = (listener(), listener());
        let addresses = [left.address(), right.address()];
        let mut left = link(left, &segment, 0, &addresses, "secret");
        // A process of another job has its own segment.
        let elsewhere = Segment::create(2).unwrap();
        let mut impostor = link(listener(), &elsewhere, 1, &addresses, "guess");
        impostor.reserve(0, 5).unwrap().commit();
        support::wait(&mut left, |left| {
            let _ = impostor.receive();
            assert!(left.receive().unwrap().is_none(), "a frame without a proof was accepted");
            (left.drops() > 0 || elsewhere.rank_state(0).is_gone()).then_some(())
        });
        support::wait(&mut impostor, |impostor| {
            assert!(left.receive().unwrap().is_none(), "a frame without a proof was accepted");
            let _ = impostor.receive();
            (elsewhere.rank_state(0) == RankState::Dead(Cause::Lost)).then_some(())
        });
        assert_eq!(segment.rank_state(1), RankState::Absent, "the real rank 1 must not be blamed");
    }
}
