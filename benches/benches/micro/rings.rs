//! Rings in shared memory. `round_trip` and `stream` are between two cores. `cache_line` is their
//! lower bound, and depends on the distance of the cores.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use crossbeam_utils::CachePadded;
use divan::Bencher;
use divan::counter::BytesCount;
use longshore_benches::pin;
use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, LinkError, Refused, Segment};

/// Lengths of frames. A frame of 40 bytes fits a cache line together with its header.
const LENGTHS: [usize; 6] = [0, 40, 120, 1 << 10, 4 << 10, 16 << 10];

fn pair() -> [ShmLink; 2] {
    let segment = Segment::create(2).expect("shared memory");
    [0, 1].map(|rank| {
        ShmLink::new(segment.as_rank(rank).expect("one of two")).expect("its only link")
    })
}

/// Sends a frame. Waits for room in the ring.
fn send(link: &mut ShmLink, length: usize) -> Result<(), LinkError> {
    let peer = 1 - link.rank();
    loop {
        match link.reserve(peer, length) {
            Ok(mut frame) => {
                frame.fill(1);
                frame.commit();
                return Ok(());
            }
            Err(Refused::WouldBlock) => std::hint::spin_loop(),
            Err(Refused::Failed(error)) => return Err(error),
        }
    }
}

/// Receives a frame, if there is one, and copies it.
fn receive(link: &mut ShmLink, to: &mut [u8]) -> Result<bool, LinkError> {
    let frame = link.receive()?;
    if let Some(frame) = &frame {
        to[..frame.len()].copy_from_slice(frame);
    }
    Ok(frame.is_some())
}

fn wait_for(link: &mut ShmLink, to: &mut [u8]) -> Result<(), LinkError> {
    while !receive(link, to)? {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Measures on the first core, while the second core repeats `turn`.
fn beside(mut turn: impl FnMut() + Send, measure: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            while !done.load(Ordering::Relaxed) {
                turn();
            }
        });
        measure();
        done.store(true, Ordering::Relaxed);
    });
}

/// Both ends on one core: the cost of the instructions, without the transfer between cores.
#[divan::bench(args = LENGTHS, sample_size = 200)]
fn both_ends(bencher: Bencher, length: usize) {
    let ([mut left, mut right], mut bytes) = (pair(), vec![0; length]);
    bencher.counter(BytesCount::new(length)).bench_local(|| {
        send(&mut left, length)?;
        receive(&mut right, &mut bytes)
    });
}

#[divan::bench(args = LENGTHS, sample_size = 200)]
fn round_trip(bencher: Bencher, length: usize) {
    let ([mut left, mut right], mut bytes, mut there) = (pair(), vec![0; length], vec![0; length]);
    let answer = move || {
        if receive(&mut right, &mut there).is_ok_and(|came| came) {
            send(&mut right, length).expect("its peer lives");
        }
    };
    beside(answer, || {
        bencher.bench_local(|| {
            send(&mut left, length)?;
            wait_for(&mut left, &mut bytes)
        });
    });
}

/// One frame of a stream with many in flight.
#[divan::bench(args = LENGTHS, sample_size = 200)]
fn stream(bencher: Bencher, length: usize) {
    let ([mut left, mut right], mut there) = (pair(), vec![0; length]);
    let drain = move || {
        receive(&mut right, &mut there).expect("its peer lives");
    };
    beside(drain, || {
        bencher.counter(BytesCount::new(length)).bench_local(|| send(&mut left, length));
    });
}

/// A round trip of a cache line.
#[divan::bench(sample_size = 200)]
fn cache_line(bencher: Bencher) {
    let (line, mut round) = (CachePadded::new(AtomicU32::new(0)), 0);
    // Odd numbers are requests, even numbers are answers.
    let answer = || {
        let number = line.load(Ordering::Acquire);
        if number % 2 == 1 {
            line.store(number + 1, Ordering::Release);
        }
    };
    beside(answer, || {
        bencher.bench_local(|| {
            line.store(round + 1, Ordering::Release);
            round += 2;
            while line.load(Ordering::Acquire) != round {
                std::hint::spin_loop();
            }
        });
    });
}
