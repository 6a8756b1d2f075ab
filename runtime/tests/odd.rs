//! Programs that are legal but odd: records with padding, windows in windows, types in each other's place.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Element, Info, Rank, Shipable, Window};

/// Runs a program between like and unlike ranks, directly and by message, simulated and not.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE, Architecture::I686];
    let like = Options::default();
    let told = Options { routes: Routes::Message, ..Options::default() };
    let unlike = Options { architectures: unlike, ..Options::default() };
    for options in [like, told, unlike] {
        for seed in 0..3 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        run_shared(ranks, &options, whole).unwrap();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Short {
    a: u32,
    b: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Long {
    a: u64,
    b: u32,
}

/// Puts a record whose last bytes are padding, twice: the second time the target's memory is mapped already.
fn put_one<T: Element>(rank: &Rank, value: T) {
    let world = rank.world();
    let mut window = Window::allocate(world, 16, 1, &Info::default()).unwrap();
    window.local().write_bytes(0, &[0xee; 16]).unwrap();
    let record = rank.type_of::<T>().unwrap();
    let data = record.bounds().true_ub as u64;
    let values = [value];
    for _ in 0..2 {
        window.fence(|epoch| epoch.put(&values, world.rank(), 0, 1, &record)).unwrap();
        let tail = window.local().bytes(data, 16 - data).unwrap();
        assert!(tail.iter().all(|byte| *byte == 0xee), "{tail:x?}");
    }
    window.free().unwrap();
}

#[test]
fn padding_is_no_data() {
    everywhere(1, |rank| {
        put_one(rank, Short { a: 1, b: 2 });
        put_one(rank, Long { a: 1, b: 2 });
    });
}
