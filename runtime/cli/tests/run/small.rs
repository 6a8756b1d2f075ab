//! Ranks of small machines: one core, 64 MiB of address space, and no thread but the program's.

use longshore::shipable::Basic;
use longshore::{Datatype, Info, Op, Window};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::Pid;

use super::role;
use super::roles::threads;
use super::support::run;

/// The address space of a rank: its program, stacks, windows and whatever it maps of the segment.
const SPACE: usize = 64 << 20;

/// Numbers of one operation: 1 MiB, of which a rank with idle cores would divide a copy.
const COUNT: i64 = 1 << 17;

/// Puts, gets, accumulates and messages of two ranks in little memory, on one core.
pub fn small() {
    let own = Pid::from_raw(0);
    let all = sched_getaffinity(own).unwrap();
    let mut first = CpuSet::new();
    let core = (0..CpuSet::count()).find(|&core| all.is_set(core) == Ok(true)).unwrap();
    first.set(core).unwrap();
    sched_setaffinity(own, &first).unwrap();
    setrlimit(Resource::RLIMIT_AS, SPACE as u64, SPACE as u64).unwrap();
    assert!(Vec::<u8>::new().try_reserve_exact(SPACE).is_err(), "the limit has no effect");

    let before = threads().len();
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let next = (world.rank() + 1) % world.size();
    let info = Info { max_num_notify: 1, ..Info::default() };
    let window = Window::allocate(world, 2 * COUNT * 8, 8, &info).unwrap();
    let column = Datatype::vector(COUNT, 1, 2, &Datatype::basic(Basic::Int64)).unwrap();
    let column = rank.commit(&column).unwrap();
    let values: Vec<i64> = (0..COUNT).map(|at| at + i64::from(world.rank())).collect();
    let (mut back, mut before_op) = (vec![0; COUNT as usize], vec![-1; COUNT as usize]);
    for round in 1..=3 {
        let all = window.lock_all(|epoch| {
            epoch.flush(next, |epoch| epoch.put_notify(&values, next, 0, 1, &column, 0))?;
            epoch.flush(next, |epoch| epoch.get(&mut back, next, 0, 1, &column))?;
            epoch.flush(next, |epoch| {
                let (operands, result) = (&values, &mut before_op);
                epoch.get_accumulate(operands, result, next, 1, 1, &column, Op::Replace)
            })?;
            window.wait_notify(0, round)
        });
        all.unwrap();
        assert_eq!(back, values);
        // Nothing is there before the first round.
        assert_eq!(before_op, if round == 1 { vec![0; COUNT as usize] } else { values.clone() });
        world.barrier().unwrap();
    }
    assert_eq!(threads().len(), before, "the library has started a thread");
    window.free().unwrap();
    rank.finalize().unwrap();
    std::process::exit(0);
}

#[test]
fn a_rank_needs_one_core_and_64_mib_and_starts_no_thread() {
    for route in ["best", "message"] {
        let options = ["-n", "2", "--progress", "off", "--route", route].map(str::to_owned);
        let mut words = role("small");
        // Otherwise glibc reserves 128 MiB of addresses for the test's thread.
        words.insert(1, "MALLOC_ARENA_MAX=1".to_owned());
        let finished = run(&[options.to_vec(), words].concat());
        assert_eq!(finished.status, 0, "{route}: {}", finished.stderr);
    }
}
