//! Windows of every flavor: their creation, their attributes, and operations on all of them.

#[path = "windows/attachments.rs"]
mod attachments;
#[path = "windows/handlers.rs"]
mod handlers;
#[path = "windows/shared.rs"]
mod shared;
mod support;

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Assert, Class, Communicator, Datatype, Flavor, Info, LockType, Op, Rank, Window,
};

use support::{allocate_shared, crowd};

const UNLIKE: [Architecture; 3] = [Architecture::S390X, Architecture::NATIVE, Architecture::I686];

/// Runs a test between like and unlike ranks, directly and by message, simulated and on threads.
fn everywhere(ranks: u32, body: impl Fn(&Rank, &Communicator) + Sync) {
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    for (architectures, routes) in
        [(vec![], Routes::Best), (vec![], Routes::Message), (UNLIKE.to_vec(), Routes::Best)]
    {
        let options = Options { architectures, routes, ..Options::default() };
        run(ranks, &options, whole).unwrap();
        run_shared(ranks, &options, whole).unwrap();
    }
}

#[test]
fn equal_lengths_match_between_like_ranks_of_the_same_layout() {
    for routes in [Routes::Best, Routes::Message] {
        let options = Options { routes, ..Options::default() };
        run(2, &options, |rank| {
            let (world, next) = (rank.world(), 1 - rank.world().rank());
            let info = Info::default().set("target_types", "same_layout").unwrap();
            let mut window = Window::allocate(world, 64, 1, &info).unwrap();
            let long = rank.type_of::<i64>().unwrap();
            let pairs = rank.commit(&Datatype::vector(2, 1, 2, &Datatype::int()).unwrap()).unwrap();
            let bytes: Vec<u8> = (1..=16).collect();
            window
                .fence(|epoch| {
                    epoch.put(&bytes[..], next, 0, 2, &long)?;
                    epoch.put(&[7i64 << 32 | 5], next, 32, 1, &pairs)
                })
                .unwrap();
            assert_eq!(window.local().bytes(0, 16).unwrap(), bytes);
            let halves = [0, 8].map(|at| window.get::<i32>(32 + at).unwrap());
            // In the order of the halves in this machine's memory.
            assert_eq!(halves, if cfg!(target_endian = "little") { [5, 7] } else { [7, 5] });
            let mut back = [0u8; 8];
            window.fence(|epoch| epoch.get(&mut back[..], next, 32, 1, &pairs)).unwrap();
            assert_eq!(i64::from_ne_bytes(back), 7i64 << 32 | 5);
            let error = window.fence(|epoch| epoch.put(&bytes[..15], next, 0, 2, &long));
            assert_eq!(error.unwrap_err().class(), Class::Type);
            window.free().unwrap();
            // Without the policy, signatures are equal.
            let mut strict = Window::allocate(world, 64, 1, &Info::default()).unwrap();
            let error = strict.fence(|epoch| epoch.put(&bytes[..], next, 0, 2, &long));
            assert_eq!(error.unwrap_err().class(), Class::Type);
            strict.free().unwrap();
            rank.finalize().unwrap();
        })
        .unwrap();
    }
}

/// The layout of a window for the operations below: ten doubles at each rank, and ten longs, which
/// begin `longs` displacements after the doubles.
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
    // No rank locks a window while it is exposed.
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
    // Each target has given out tickets 0 to size - 1, and exactly one rank has swapped first.
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
    everywhere(crowd(3), |rank, world| {
        let info = Info::default();
        let places = Places { bases: vec![0; world.size() as usize], scale: 1 };
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

/// Displacements beyond 32 bits, by message from ranks with 32-bit pointers, and directly. The
/// memory is sparse.
#[test]
fn windows_may_be_longer_than_4_gib() {
    if Architecture::NATIVE.pointer().size < 8 {
        return;
    }
    const SIZE: i64 = 5 << 30;
    const LAST: i64 = SIZE / 8 - 1;
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, info) = (world.rank(), Info::default());
        let double = rank.type_of::<f64>().unwrap();
        let made = |owner| Window::allocate(world, if me == owner { SIZE } else { 8 }, 8, &info);
        let mut window = match made(0) {
            Ok(window) => window,
            Err(error) => {
                return assert_eq!(error.class(), Class::NoMem, "a limit of this machine: {error}");
            }
        };
        // The last rank has 32-bit pointers.
        assert_eq!(made(2).err().unwrap().class(), Class::Size);
        let value = [f64::from(me) + 0.5];
        let mut back = [0.0];
        window.fence(|epoch| epoch.put(&value, 0, LAST - i64::from(me), 1, &double)).unwrap();
        window.fence(|epoch| epoch.get(&mut back, 0, LAST - i64::from(me), 1, &double)).unwrap();
        assert_eq!(back, value);
        let add = |epoch: &longshore::Epoch<'_, '_>| {
            epoch.fetch_and_op(1.0f64, 0, LAST - 9, Op::Sum).map(drop)
        };
        window.fence(add).unwrap();
        let outcome = window.fence(|epoch| epoch.put(&value, 0, LAST + 1, 1, &double));
        assert_eq!(outcome.unwrap_err().class(), Class::RmaRange);
        if me == 0 {
            assert_eq!(window.get::<f64>(LAST - 2).unwrap(), 2.5);
            assert_eq!(window.get::<f64>(LAST - 9).unwrap(), 3.0);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    let architectures = vec![Architecture::NATIVE, Architecture::NATIVE, Architecture::I686];
    let options = Options { architectures, ..Options::default() };
    run(3, &options, body).unwrap();
    run_shared(3, &options, body).unwrap();
}

#[test]
fn windows_may_be_empty() {
    everywhere(crowd(3), |rank, world| {
        let (me, info, long) = (world.rank(), Info::default(), rank.type_of::<i64>().unwrap());
        for all in [true, false] {
            let size = if all || me == 1 { 0 } else { 8 };
            let windows: [Window; 2] = [Window::allocate, allocate_shared]
                .map(|make| make(world, size, 8, &info).unwrap());
            for mut window in windows {
                assert_eq!(window.size(), size);
                // No element fits into an empty window, although it fits at other ranks.
                let nothing: [i64; 0] = [];
                window.fence(|epoch| epoch.put(&nothing, 1, 0, 0, &long)).unwrap();
                let outcome = window.fence(|epoch| epoch.put(&[1i64], 1, 0, 1, &long));
                assert_eq!(outcome.unwrap_err().class(), Class::RmaRange);
                let outcome =
                    window.fence(|epoch| epoch.accumulate(&[1i64], 0, 0, 1, &long, Op::Replace));
                assert_eq!(outcome.is_err(), all);
                window.free().unwrap();
            }
            let memory = rank.buffer::<i64>(size as usize / 8).unwrap();
            let window = Window::create(world, memory, 8, &info).unwrap();
            window.lock_all(|epoch| epoch.flush_all(|_| Ok(()))).unwrap();
            assert_eq!(window.free().unwrap().len(), size as usize / 8);
        }
    });
}

/// Hundreds of windows of all flavors at once, and a thousand in sequence.
#[test]
fn there_may_be_many_windows() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size, info) = (world.rank(), world.size(), Info::default());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        let long = rank.type_of::<i64>().unwrap();
        let mut windows: Vec<Window> = (0..300)
            .map(|number| match number % 2 {
                0 => Window::allocate(world, 16, 8, &info).unwrap(),
                _ => allocate_shared(world, 16, 8, &info).unwrap(),
            })
            .collect();
        for (number, window) in windows.iter_mut().enumerate() {
            let value = [1000 * i64::from(me) + number as i64];
            window.fence(|epoch| epoch.put(&value, next, 1, 1, &long)).unwrap();
        }
        for (number, window) in windows.iter().enumerate() {
            let wanted = 1000 * i64::from(before) + number as i64;
            assert_eq!(window.get::<i64>(1).unwrap(), wanted);
        }
        // Freed in another order than made.
        windows.into_iter().rev().for_each(|window| window.free().unwrap());
        for number in 0..1000i64 {
            let mut window = Window::allocate(world, 8, 8, &info).unwrap();
            let value = [number];
            window.fence(|epoch| epoch.put(&value, next, 0, 1, &long)).unwrap();
            assert_eq!(window.get::<i64>(0).unwrap(), number);
            window.free().unwrap();
        }
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE];
    for architectures in [vec![], unlike] {
        run_shared(2, &Options { architectures, ..Options::default() }, body).unwrap();
    }
}

#[test]
fn displacements_count_the_targets_unit() {
    everywhere(3, |rank, world| {
        let units = [1, 12, 4096];
        let unit = units[world.rank() as usize];
        let double = rank.type_of::<f64>().unwrap();
        let me = world.rank();
        let value = [f64::from(me)];
        for make in [Window::allocate, allocate_shared] {
            let mut window = make(world, 4096 * 4, unit, &Info::default()).unwrap();
            let place = |target: i32| {
                // The multiple of the unit that is closest to 64 * me.
                let unit = units[target as usize];
                (64 * i64::from(me + 1) + unit - 1) / unit
            };
            let put = window.fence(|epoch| {
                (0..3).try_for_each(|target| match (target, me) {
                    // Adjacent, if units are long.
                    (2, _) => epoch.put(&value, 2, i64::from(me + 1), 1, &double),
                    _ => epoch.put(&value, target, place(target), 1, &double),
                })
            });
            put.unwrap();
            for from in 0..3i32 {
                let at = match me {
                    2 => i64::from(from + 1) * 4096,
                    _ => (64 * i64::from(from + 1) + unit - 1) / unit * unit,
                };
                let found = window.get::<f64>(at / unit).unwrap();
                assert_eq!(found, f64::from(from));
                let bytes = window.local().bytes(at, 8).unwrap();
                assert_eq!(bytes.iter().all(|byte| *byte == 0), from == 0);
            }
            window.free().unwrap();
        }
    });
}

/// Info hints can be read, and those that may change can be set. A window with `no_locks` refuses
/// locks.
#[test]
fn info_hints_are_kept_and_enforced() {
    everywhere(crowd(3), |_, world| {
        let info = Info::default().set("no_locks", "true").unwrap();
        let info = info.set("mpi_minimum_memory_alignment", "1024").unwrap();
        let mut window = Window::allocate_shared(world, 100, 8, &info).unwrap();
        assert_eq!(window.info(), info);
        assert_eq!(window.shared_query(0).unwrap().base() as usize % 1024, 0);
        let changed = info.set("accumulate_ops", "same_op").unwrap();
        let changed = changed.set("accumulate_ordering", "none").unwrap();
        let other = changed.set("mpi_minimum_memory_alignment", "64").unwrap();
        let other = other.set("no_locks", "false").unwrap();
        window.set_info(&other).unwrap();
        assert_eq!(window.info(), Info { no_locks: false, ..changed });
        window.lock_all(|_| Ok(())).unwrap();
        window.set_info(&changed).unwrap();
        assert_eq!(window.info(), changed);
        let mixed = if world.rank() == 1 { info } else { changed };
        let error = window.set_info(&mixed).unwrap_err();
        assert_eq!(error.class(), Class::Arg);
        assert!(error.to_string().contains("accumulate_ordering=none at rank 0"), "{error}");
        for outcome in [
            window.lock(0, LockType::Shared, |_| Ok(())),
            window.lock_all(|_| Ok(())),
            window.lock(0, LockType::Exclusive, |_| Ok(())),
        ] {
            let error = outcome.unwrap_err();
            assert_eq!(error.class(), Class::RmaSync);
            assert!(error.to_string().contains("no_locks=true"), "{error}");
        }
        window.fence(|_| Ok(())).unwrap();
        window.free().unwrap();
    });
}

/// The memory of a created window is valid during the window's life, however like ranks reach it,
/// and is returned at its old address.
#[test]
fn owned_memory_of_a_created_window_moves_to_where_like_ranks_reach_it() {
    const BYTES: usize = (2 << 20) + 24;
    everywhere(crowd(3), |rank, world| {
        let (me, size) = (world.rank(), world.size());
        let next = (me + 1) % size;
        let memory: Vec<u8> = (0..BYTES).map(|at| (at / 16384) as u8 + me as u8).collect();
        let (copy, start) = (memory.clone(), memory.as_ptr());
        let mut window = Window::create(world, memory, 1, &Info::default()).unwrap();
        let allocated = Window::allocate(world, 8, 1, &Info::default()).unwrap();
        assert_eq!(window.route(next).unwrap(), allocated.route(next).unwrap());
        allocated.free().unwrap();
        let byte = rank.type_of::<u8>().unwrap();
        let (value, mut got) = ([200 + me as u8; 8], vec![0u8; 16385]);
        window
            .fence(|epoch| {
                epoch.put(&value, next, BYTES as i64 - 8, 8, &byte)?;
                epoch.get(&mut got, next, 16384, 16385, &byte)
            })
            .unwrap();
        assert_eq!((got[0], got[16384]), (1 + next as u8, 2 + next as u8));
        let memory = window.free().unwrap();
        let before = (me + size - 1) % size;
        assert_eq!(memory.as_ptr(), start);
        assert_eq!(memory[..BYTES - 8], copy[..BYTES - 8]);
        assert_eq!(memory[BYTES - 8..], [200 + before as u8; 8]);
    });
}
