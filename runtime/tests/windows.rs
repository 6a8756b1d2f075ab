//! Windows of every flavor: how they are made, what they say of themselves, and that operations reach all of them.

use longshore::job::{Checking, Routes};
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Communicator, Datatype, Flavor, Info, LockType, Model, Op,
    PROC_NULL, Rank, Window,
};

const UNLIKE: [Architecture; 3] = [Architecture::S390X, Architecture::NATIVE, Architecture::I686];

/// Runs a test between like and unlike ranks, directly and by message, simulated and not.
fn everywhere(body: impl Fn(&Rank, &Communicator) + Sync) {
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    for (architectures, routes) in
        [(vec![], Routes::Best), (vec![], Routes::Message), (UNLIKE.to_vec(), Routes::Best)]
    {
        let options = Options { architectures, routes, ..Options::default() };
        run(3, &options, whole).unwrap();
        run_shared(3, &options, whole).unwrap();
    }
}

#[test]
fn shared_parts_follow_each_other() {
    everywhere(|_, world| {
        let sizes = [24, 0, 13];
        let size = sizes[world.rank() as usize];
        let window = Window::allocate_shared(world, size, 1, &Info::default()).unwrap();
        assert_eq!((window.flavor(), window.model()), (Flavor::Shared, Model::Unified));
        let parts: Vec<_> = (0..3).map(|rank| window.shared_query(rank).unwrap()).collect();
        let start = parts[0].base() as usize;
        let places: Vec<_> = parts
            .iter()
            .map(|part| (part.rank(), part.base() as usize - start, part.size()))
            .collect();
        assert_eq!(places, [(0, 0, 24), (1, 24, 0), (2, 24, 13)]);
        assert_eq!(window.base(), parts[world.rank() as usize].base());
        window.free().unwrap();
    });
}

#[test]
fn parts_that_need_not_follow_begin_on_pages() {
    everywhere(|_, world| {
        let info = Info::default().set("alloc_shared_noncontig", "true").unwrap();
        let size = 100 * i64::from(world.rank() + 1);
        let window = Window::allocate_shared(world, size, 4, &info).unwrap();
        for rank in 0..3 {
            let part = window.shared_query(rank).unwrap();
            assert_eq!((part.base() as usize % 4096, part.disp_unit()), (0, 4));
            assert_eq!(part.size(), 100 * (rank as u64 + 1));
        }
        window.free().unwrap();
        let mixed = if world.rank() == 1 { "true" } else { "false" };
        let info = info.set("alloc_shared_noncontig", mixed).unwrap();
        let error = Window::allocate_shared(world, 8, 1, &info).err().unwrap();
        assert_eq!(error.class(), Class::Arg);
        assert!(error.to_string().contains("alloc_shared_noncontig"), "{error}");
    });
}

/// Everyone stores a value to each part: it is there for its owner, in the owner's representation.
#[test]
fn what_one_rank_stores_another_loads() {
    everywhere(|rank, world| {
        let (me, size) = (world.rank(), world.size());
        let window = Window::allocate_shared(world, 8 * 3, 8, &Info::default()).unwrap();
        for target in 0..size {
            let part = window.shared_query(target).unwrap();
            part.set(me.into(), 1.5 + f64::from(10 * me + target)).unwrap();
        }
        window.lock_all(|epoch| epoch.sync()).unwrap();
        world.barrier().unwrap();
        window.lock_all(|epoch| epoch.sync()).unwrap();
        for from in 0..size {
            assert_eq!(window.get::<f64>(from.into()).unwrap(), 1.5 + f64::from(10 * from + me));
        }
        let next = window.shared_query((me + 1) % size).unwrap();
        let value = 1.5 + f64::from(10 * me + next.rank());
        let big = *next.architecture() == Architecture::S390X;
        let bytes = if big { value.to_be_bytes() } else { value.to_le_bytes() };
        assert_eq!(next.bytes(8 * me as u64, 8).unwrap(), bytes);
        assert_eq!(window.local().architecture(), rank.architecture());
        let error = next.get::<f64>(3).unwrap_err();
        assert_eq!(error.class(), Class::RmaRange);
        assert!(error.to_string().contains(&format!("target {}", next.rank())), "{error}");
        window.free().unwrap();
    });
}

#[test]
fn nobody_asks_for_the_first_that_has_memory() {
    everywhere(|_, world| {
        let info = Info::default();
        let size = if world.rank() == 0 { 0 } else { 16 };
        let window = Window::allocate_shared(world, size, 2, &info).unwrap();
        let first = window.shared_query(PROC_NULL).unwrap();
        assert_eq!((first.rank(), first.size(), first.disp_unit()), (1, 16, 2));
        assert_eq!(window.shared_query(3).err().unwrap().class(), Class::Rank);
        window.free().unwrap();
        let window = Window::allocate_shared(world, 0, 1, &info).unwrap();
        assert_eq!(window.shared_query(PROC_NULL).unwrap().size(), 0);
        window.free().unwrap();
    });
}

/// A window's memory as the operations below use it: ten doubles and ten longs at each rank, the latter `longs` displacements
/// behind the former.
struct Places {
    bases: Vec<i64>,
    scale: i64,
}

impl Places {
    fn double(&self, rank: i32, at: i64) -> i64 {
        self.bases[rank as usize] + self.scale * at
    }

    fn long(&self, rank: i32, at: i64) -> i64 {
        self.double(rank, 10 + at)
    }
}

/// Every operation, in every kind of epoch.
fn exercise<M>(rank: &Rank, window: &mut Window<M>, places: &Places) {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let long = rank.type_of::<i64>().unwrap();
    let sparse = Datatype::vector(2, 1, 3, &Datatype::double()).unwrap();
    let sparse = rank.commit(&sparse).unwrap();
    let mine = [f64::from(me) + 0.25, f64::from(me) + 0.5];
    let theirs = mine.map(|value| value - f64::from(me) + f64::from(before));

    window.fence(|epoch| epoch.put(&mine, next, places.double(next, 1), 1, &sparse)).unwrap();
    let found = [1, 4].map(|at| window.get::<f64>(places.double(me, at)).unwrap());
    assert_eq!(found, theirs);
    let mut back = [0.0; 2];
    window.fence(|epoch| epoch.get(&mut back, next, places.double(next, 1), 1, &sparse)).unwrap();
    assert_eq!(back, mine);

    window.post(&world.group().incl(&[before]).unwrap(), Assert::NONE).unwrap();
    let started = window.start(&world.group().incl(&[next]).unwrap(), Assert::NONE, |epoch| {
        epoch.accumulate(&mine, next, places.double(next, 1), 1, &sparse, Op::Sum)
    });
    started.unwrap();
    window.wait().unwrap();
    // A window is locked by nobody while it is exposed.
    world.barrier().unwrap();
    let found = [1, 4].map(|at| window.get::<f64>(places.double(me, at)).unwrap());
    assert_eq!(found, theirs.map(|value| 2.0 * value));

    for _ in 0..3 {
        let locked = window.lock(0, LockType::Exclusive, |epoch| {
            let mut count = [0i64];
            epoch.flush(0, |epoch| epoch.get(&mut count, 0, places.long(0, 0), 1, &long))?;
            let count = [count[0] + 1];
            epoch.flush(0, |epoch| epoch.put(&count, 0, places.long(0, 0), 1, &long))
        });
        locked.unwrap();
    }
    let tickets = window.lock_all(|epoch| {
        let mut drawn = 0;
        for target in 0..size {
            drawn += epoch.fetch_and_op(1i64, target, places.long(target, 1), Op::Sum)?.wait()?;
            let mut all = [0.0; 2];
            epoch.flush_all(|epoch| {
                let place = places.double(target, 1);
                epoch.get_accumulate(&[0.0; 2], &mut all, target, place, 1, &sparse, Op::NoOp)
            })?;
            assert_eq!(all[0] + 0.5, all[1]);
        }
        let won = epoch.compare_and_swap(i64::from(me) + 1, 0, 0, places.long(0, 2))?.wait()?;
        let bytes = rank.buffer::<i64>(1)?;
        epoch.rput(bytes, next, places.long(next, 3), 1, &long)?.wait()?;
        let room =
            epoch.rget(rank.buffer::<i64>(1)?, next, places.long(next, 3), 1, &long)?.wait()?;
        assert_eq!(room.get(0)?, 0);
        Ok((drawn, won))
    });
    let tickets: Vec<(i64, i64)> = {
        let (drawn, won) = tickets.unwrap();
        world.allgather(&[drawn, won]).unwrap().chunks(2).map(|two| (two[0], two[1])).collect()
    };
    // Each target's tickets are 0 to size - 1, and one rank has swapped first.
    let all = i64::from(size) * i64::from(size * (size - 1) / 2);
    assert_eq!(tickets.iter().map(|(drawn, _)| drawn).sum::<i64>(), all);
    assert_eq!(tickets.iter().filter(|(_, won)| *won == 0).count(), 1);
    world.barrier().unwrap();
    if me == 0 {
        assert_eq!(window.get::<i64>(places.long(0, 0)).unwrap(), 3 * i64::from(size));
    }
    assert_eq!(window.get::<i64>(places.long(me, 1)).unwrap(), i64::from(size));
}

#[test]
fn every_operation_reaches_every_flavor() {
    everywhere(|rank, world| {
        let info = Info::default();
        let places = Places { bases: vec![0; 3], scale: 1 };
        let mut window = Window::allocate(world, 160, 8, &info).unwrap();
        exercise(rank, &mut window, &places);
        window.free().unwrap();
        let mut window = Window::allocate_shared(world, 160, 8, &info).unwrap();
        exercise(rank, &mut window, &places);
        window.free().unwrap();
        let mut window = Window::create(world, rank.buffer::<u64>(20).unwrap(), 8, &info).unwrap();
        exercise(rank, &mut window, &places);
        window.free().unwrap();

        let mut window = Window::create_dynamic(world, &info).unwrap();
        assert_eq!((window.flavor(), window.size(), window.disp_unit()), (Flavor::Dynamic, 0, 1));
        assert!(window.base().is_null());
        let memory = window.attach(rank.buffer::<u64>(20).unwrap()).unwrap();
        assert_eq!(memory.size(), 160);
        let places = Places { bases: world.allgather(&[memory.address()]).unwrap(), scale: 8 };
        exercise(rank, &mut window, &places);
        let memory = window.detach(memory).unwrap();
        assert_eq!(memory.len(), 20);
        window.free().unwrap();
    });
}

/// Whoever detaches memory that a put is under way to gets it back with all that was put.
#[test]
fn a_detach_waits_for_what_is_under_way() {
    // It looks at what is put before the put is done.
    let check = Checking::Off;
    let options = Options { routes: Routes::Message, check, ..Options::default() };
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
    for _ in 0..5 {
        run_shared(2, &options, detach).unwrap();
    }
}

/// Memory comes and goes between epochs; what is attached when the window is freed goes with it.
#[test]
fn attached_memory_comes_back() {
    everywhere(|rank, world| {
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
            assert_eq!(window.detach(empty).unwrap(), []);
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

/// An exclusive lock of a part keeps out who has locked all, loads and stores included.
#[test]
fn all_parts_of_a_shared_window_are_locked_at_once() {
    const TIMES: i64 = 2000;
    let body = |rank: Rank| {
        let world = rank.world();
        let window = Window::allocate_shared(world, 8, 8, &Info::default()).unwrap();
        let counter = window.shared_query(0).unwrap();
        let count = || {
            let before = counter.get::<i64>(0)?;
            std::hint::spin_loop();
            counter.set(0, before + 1)
        };
        for _ in 0..TIMES {
            match world.rank() {
                1 => window.lock_all(|_| count()).unwrap(),
                _ => window.lock(0, LockType::Exclusive, |_| count()).unwrap(),
            }
        }
        world.barrier().unwrap();
        assert_eq!(window.shared_query(0).unwrap().get::<i64>(0).unwrap(), 2 * TIMES);
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    run_shared(2, &Options::default(), body).unwrap();
}
