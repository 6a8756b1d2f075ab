//! Shared windows: their segments, and loads and stores of other ranks.

use longshore::job::Checking;
use longshore::sim::{Options, run, run_shared};
use longshore::{Assert, Class, Flavor, Info, LockType, Model, PROC_NULL, Pointed, Rank, Window};

use super::everywhere;
use super::support::crowd;

#[test]
fn shared_segments_are_contiguous() {
    everywhere(3, |_, world| {
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
fn noncontiguous_shared_segments_begin_on_pages() {
    everywhere(crowd(3), |_, world| {
        let info = Info::default().set("alloc_shared_noncontig", "true").unwrap();
        let size = 100 * i64::from(world.rank() + 1);
        let window = Window::allocate_shared(world, size, 4, &info).unwrap();
        for rank in 0..3 {
            let part = window.shared_query(rank).unwrap();
            assert_eq!((part.base() as usize % 4096, part.disp_unit()), (0, 4));
            assert_eq!(part.size(), 100 * (i64::from(rank) + 1));
        }
        window.free().unwrap();
        // A long segment begins inside its page, unless the info asks otherwise.
        for (alignment, places) in [("64", [64, 192, 320]), ("128", [0; 3])] {
            let info = info.set("mpi_minimum_memory_alignment", alignment).unwrap();
            let window = Window::allocate_shared(world, 100_000, 4, &info).unwrap();
            for (rank, place) in (0..3).zip(places) {
                let part = window.shared_query(rank).unwrap();
                assert_eq!(part.base() as usize % 4096, place);
            }
            window.free().unwrap();
        }
        let mixed = if world.rank() == 1 { "true" } else { "false" };
        let info = info.set("alloc_shared_noncontig", mixed).unwrap();
        let error = Window::allocate_shared(world, 8, 1, &info).err().unwrap();
        assert_eq!(error.class(), Class::Arg);
        assert!(error.to_string().contains("alloc_shared_noncontig"), "{error}");
    });
}

/// Each rank stores a value to each segment. The owner loads it in its own representation.
#[test]
fn a_value_that_one_rank_stores_is_loaded_by_another() {
    everywhere(crowd(3), |rank, world| {
        let (me, size) = (world.rank(), world.size());
        let window =
            Window::allocate_shared(world, 8 * i64::from(size), 8, &Info::default()).unwrap();
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
        let big = next.architecture().order() == shipable::arch::ByteOrder::Big;
        let bytes = if big { value.to_be_bytes() } else { value.to_le_bytes() };
        assert_eq!(next.bytes(8 * i64::from(me), 8).unwrap(), bytes);
        assert_eq!(window.local().architecture(), rank.architecture());
        let error = next.get::<f64>(size.into()).unwrap_err();
        assert_eq!(error.class(), Class::RmaRange);
        assert!(error.to_string().contains(&format!("target {}", next.rank())), "{error}");
        window.free().unwrap();
    });
}

#[test]
fn shared_query_of_any_flavor_reports_what_can_be_loaded() {
    // The adversary, and checks, hide the memory of others.
    let (adversary, check, hosts) = (None, Checking::Off, vec![0, 0]);
    let options = Options { adversary, check, hosts, ..Options::default() };
    run(2, &options, |rank| {
        let world = rank.world();
        let (me, other) = (world.rank(), 1 - world.rank());
        let allocated = Window::allocate(world, 16, 8, &Info::default()).unwrap();
        allocated.local().set(1, f64::from(me)).unwrap();
        allocated.raw().fence(Assert::NONE).unwrap();
        let theirs = allocated.shared_query(other).unwrap();
        assert_eq!((theirs.rank(), theirs.size(), theirs.disp_unit()), (other, 16, 8));
        assert_eq!(theirs.get::<f64>(1).unwrap(), f64::from(other));
        allocated.raw().fence(Assert::NOSUCCEED).unwrap();
        allocated.free().unwrap();
        // Memory that the program points to stays where it is.
        let mut bytes = [0u8; 8];
        #[allow(unsafe_code)]
        // SAFETY: the array outlives the window, and is used only by it.
        let memory = unsafe { Pointed::new(bytes.as_mut_ptr(), 8) };
        let created = Window::create(world, memory, 1, &Info::default()).unwrap();
        assert_eq!(created.shared_query(me).unwrap().size(), 8);
        assert_eq!(created.shared_query(other).unwrap().size(), 0);
        created.free().unwrap();
        let dynamic = Window::create_dynamic(world, &Info::default()).unwrap();
        let none = dynamic.shared_query(me).unwrap();
        assert_eq!((none.size(), none.base().is_null()), (0, true));
        dynamic.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}

#[test]
fn shared_query_of_proc_null_returns_the_first_segment_with_memory() {
    everywhere(crowd(3), |_, world| {
        let info = Info::default();
        let size = if world.rank() == 0 { 0 } else { 16 };
        let window = Window::allocate_shared(world, size, 2, &info).unwrap();
        let first = window.shared_query(PROC_NULL).unwrap();
        assert_eq!((first.rank(), first.size(), first.disp_unit()), (1, 16, 2));
        assert_eq!(window.shared_query(world.size()).err().unwrap().class(), Class::Rank);
        window.free().unwrap();
        let window = Window::allocate_shared(world, 0, 1, &info).unwrap();
        assert_eq!(window.shared_query(PROC_NULL).unwrap().size(), 0);
        window.free().unwrap();
    });
}

/// An exclusive lock excludes lock_all of another rank, whose loads and stores then wait.
#[test]
fn an_exclusive_lock_excludes_lock_all_on_a_shared_window() {
    const TIMES: i64 = 10_000;
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
