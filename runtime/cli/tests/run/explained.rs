//! Explanations of the paths that operations take, and jobs that remember no operation.

use longshore::job::env;
use longshore::{Info, Op, Pointed, Window};

use super::role;
use super::support::{Finished, run};

/// Rank 0 operates on the windows of rank 1: one of the segment's memory, one of private memory.
#[allow(unsafe_code)] // Only memory by pointer stays private.
pub fn puts() {
    let rank = longshore::init().unwrap();
    let (world, info, long) = (rank.world(), Info::default(), rank.type_of::<i64>().unwrap());
    let mut values = vec![0i64; 1024];
    // SAFETY: the vector outlives the window, and is used only through it until then.
    let memory = unsafe { Pointed::new(values.as_mut_ptr().cast(), 8 << 10) };
    let mut created = Window::create(world, memory, 8, &info).unwrap();
    created.set_name("halo");
    let mut allocated = Window::allocate(world, 8 << 10, 8, &info).unwrap();
    let me = world.rank();
    for _ in 0..3 {
        created
            .fence(
                |epoch| if me == 1 { Ok(()) } else { epoch.put(&[1i64; 1024], 1, 0, 1024, &long) },
            )
            .unwrap();
        // In an epoch of their own: puts to the same place have no order.
        created
            .fence(|epoch| {
                if me == 1 {
                    return Ok(());
                }
                epoch.put(&[2i64], 1, 0, 1, &long)?;
                epoch.accumulate(&[3i64], 1, 1, 1, &long, Op::Sum)
            })
            .unwrap();
        allocated
            .fence(|epoch| if me == 1 { Ok(()) } else { epoch.put(&[1i64; 8], 1, 0, 8, &long) })
            .unwrap();
    }
    if me == 1 {
        assert_eq!(allocated.get::<i64>(7).unwrap(), 1);
        assert_eq!([0, 1, 1023].map(|at| created.get::<i64>(at).unwrap()), [2, 4, 1]);
    }
    created.free().unwrap();
    allocated.free().unwrap();
    rank.finalize().unwrap();
}

fn run_explained(options: &[&str]) -> Finished {
    let options = options.iter().map(|&word| word.to_owned());
    run(&options.chain(role("explained")).collect::<Vec<_>>())
}

#[test]
fn each_path_is_explained_once() {
    let finished = run_explained(&["-n", "2", "--explain"]);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    let count = |text: &str| finished.stderr.matches(text).count();
    assert_eq!(count(": put of up to 64 bytes, of "), 1, "{}", finished.stderr);
    assert!(count(" \"halo\": put of up to 8192 bytes, of ") >= 1, "{}", finished.stderr);
    // An adversary sends all operations by message.
    if std::env::var_os(env::ADVERSARY).is_some() {
        let why = "not direct: only messages are allowed in this job";
        assert!(count(why) >= 3, "{}", finished.stderr);
        return;
    }
    assert_eq!(count("to rank 1: direct\n"), 1, "{}", finished.stderr);
    let why = "not direct: the memory isn't of MPI_Alloc_mem or MPI_Win_allocate";
    assert!(count(why) >= 3, "{}", finished.stderr);
    assert!(count("not copy by the system: it is shorter than 4 KiB") >= 1, "{}", finished.stderr);
    assert!(count("not copy by the system: the system only copies") >= 1, "{}", finished.stderr);
}

/// A slice has the machine's representation, which is that of no rank here.
#[test]
fn conversions_of_an_emulated_rank_are_explained() {
    let finished = run_explained(&["-n", "2", "--arch", "s390x,s390x", "--explain"]);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    if std::env::var_os(env::ADVERSARY).is_some() {
        return;
    }
    let why = "not direct: the target represents data of this rank's side otherwise";
    assert!(finished.stderr.contains(why), "{}", finished.stderr);
    assert!(!finished.stderr.contains("not direct: it was ready later"), "{}", finished.stderr);
}

#[test]
fn nothing_is_explained_unless_asked_for() {
    let finished = run_explained(&["-n", "2"]);
    assert_eq!((finished.status, finished.stderr.contains("not direct")), (0, false));
}

#[test]
fn a_job_works_without_memory_of_its_operations() {
    let words = ["-n", "2", "-x", "LONGSHORE_FAST=off", "-x", "LONGSHORE_EXPLAIN=1"];
    let finished = run_explained(&words);
    assert_eq!(finished.status, 0, "{}", finished.stderr);
    // What the memo doesn't know doesn't go by mailbox.
    assert!(!finished.stderr.contains(": mailbox\n"), "{}", finished.stderr);
    let best = if std::env::var_os(env::ADVERSARY).is_none() { "direct" } else { "message" };
    assert!(finished.stderr.contains(&format!("to rank 1: {best}\n")), "{}", finished.stderr);
}

#[test]
fn an_unknown_value_ends_init_and_lists_the_values() {
    for name in ["LONGSHORE_FAST", "LONGSHORE_EXPLAIN"] {
        let variable = format!("{name}=maybe");
        let finished = run_explained(&["-n", "1", "-x", &variable]);
        assert_ne!(finished.status, 0);
        let error = format!("{name}=\"maybe\" in the environment: expected on or off, or 1 or 0");
        assert!(finished.stderr.contains(&error), "{}", finished.stderr);
    }
}
