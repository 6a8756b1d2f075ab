//! Memory that is attached to dynamic windows and detached from them.

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run_shared};
use longshore::{Info, LockType, Rank, Window};

use super::everywhere;
use super::support::crowd;

/// Memory that is detached while a put to it is in flight is returned with all the data put.
#[test]
fn detach_waits_for_operations_in_flight() {
    let detach = |rank: Rank| {
        const LEN: usize = 4 << 20;
        let world = rank.world();
        let window = Window::create_dynamic(world, &Info::default()).unwrap();
        let memory = window.attach(vec![0u8; LEN]).unwrap();
        let places = world.allgather(&[memory.address()]).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        if world.rank() == 0 {
            let data = vec![7u8; LEN];
            let put = window.lock(1, LockType::Shared, |epoch| {
                epoch.put(&data, 1, places[1], LEN as i64, &byte)
            });
            put.unwrap();
        } else {
            while window.get::<u8>(memory.address()).unwrap() == 0 {
                std::thread::yield_now();
            }
            assert!(window.detach(memory).unwrap().iter().all(|byte| *byte == 7));
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    for routes in [Routes::Message, Routes::Best] {
        // The target reads the data before the put is complete.
        let options = Options { routes, check: Checking::Off, ..Options::default() };
        for _ in 0..5 {
            run_shared(2, &options, detach).unwrap();
        }
    }
}

/// Memory is attached and detached while other ranks put to it. Each put arrives or is refused.
/// Memory that is allocated at a detached address stays unchanged.
#[test]
fn no_put_reaches_detached_memory() {
    const TIMES: usize = 200;
    let options = Options { check: Checking::Off, ..Options::default() };
    let body = |rank: Rank| {
        let world = rank.world();
        let window = Window::create_dynamic(world, &Info::default()).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        if world.rank() == 0 {
            let mut address = [0i64];
            for _ in 0..TIMES {
                world.recv(&mut address, 1, 0).unwrap();
                let put = || {
                    window.lock(1, LockType::Shared, |epoch| {
                        epoch.put(&[7u8; 8], 1, address[0], 8, &byte)
                    })
                };
                while put().is_ok() {}
            }
        } else {
            for _ in 0..TIMES {
                let memory = window.attach(vec![0u8; 8]).unwrap();
                world.send(&[memory.address()], 0, 0).unwrap();
                while window.get::<u8>(memory.address()).unwrap() == 0 {
                    std::thread::yield_now();
                }
                let memory = window.detach(memory).unwrap();
                assert_eq!(memory, [7; 8]);
                // The allocator returns the freed address again.
                let next = Window::allocate(rank.alone(), 8, 1, &Info::default()).unwrap();
                assert_eq!(next.local().bytes(0, 8).unwrap(), [0; 8]);
                next.free().unwrap();
            }
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    run_shared(2, &options, body).unwrap();
}

/// Attached memory beyond the capacity of the directory is reached by message.
#[test]
fn the_number_of_attachments_is_unlimited() {
    const MANY: usize = 600;
    everywhere(2, |rank, world| {
        let mut window = Window::create_dynamic(world, &Info::default()).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        let all: Vec<_> = (0..MANY).map(|_| window.attach(vec![0u8; 2]).unwrap()).collect();
        let own: Vec<i64> = all.iter().map(|memory| memory.address()).collect();
        let other = 1 - world.rank();
        let places = world.allgather(&own).unwrap();
        let theirs = &places[other as usize * MANY..][..MANY];
        let values: Vec<u8> = (0..MANY).map(|at| at as u8).collect();
        window
            .fence(|epoch| {
                let each = theirs.iter().zip(values.chunks(1));
                each.into_iter()
                    .try_for_each(|(&at, value)| epoch.put(value, other, at + 1, 1, &byte))
            })
            .unwrap();
        for (at, memory) in all.into_iter().enumerate() {
            assert_eq!(window.detach(memory).unwrap(), [0, at as u8]);
        }
        window.free().unwrap();
    });
}

/// Memory is attached and detached between epochs. Freeing the window detaches the rest.
#[test]
fn detach_returns_the_attached_memory() {
    everywhere(crowd(3), |rank, world| {
        let mut window = Window::create_dynamic(world, &Info::default()).unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        let next = (world.rank() + 1) % world.size();
        for turn in 0..5u8 {
            let memory = window.attach(vec![turn; 100]).unwrap();
            let other = window.attach(vec![0u8; 10].into_boxed_slice()).unwrap();
            let empty = window.attach(Vec::<u8>::new()).unwrap();
            let places = world.allgather(&[memory.address() + 7]).unwrap();
            let (mut back, data) = ([0u8; 3], [turn + 1; 10]);
            window
                .fence(|epoch| {
                    epoch.put(&data, next, places[next as usize], 10, &byte)?;
                    epoch.get(&mut back, next, places[next as usize] - 7, 3, &byte)
                })
                .unwrap();
            assert_eq!(back, [turn; 3]);
            assert_eq!(window.detach(empty).unwrap(), [0u8; 0]);
            assert_eq!(*window.detach(other).unwrap(), [0; 10]);
            let bytes = window.detach(memory).unwrap();
            assert_eq!(bytes[..7], [turn; 7]);
            assert_eq!(bytes[7..17], [turn + 1; 10]);
            assert_eq!(bytes[17..], [turn; 83]);
        }
        let _left = window.attach(vec![1u8; 8]).unwrap();
        window.free().unwrap();
    });
}
