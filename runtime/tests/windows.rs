//! Windows of every flavor: how they are made, what they say of themselves, and that operations reach all of them.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Class, Communicator, Flavor, Info, Model, PROC_NULL, Rank, Window};

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
