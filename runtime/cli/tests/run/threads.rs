//! Jobs whose ranks divide long transfers among threads.

use longshore::{Buffer, Datatype, Destination, Info, Origin, Rank, Window, c};

use super::role;
use super::support::run;

/// Doubles of the irregular type, and every how many of a window's it takes about.
const ITEMS: usize = 400_000;
const APART: usize = 3;

/// Irregular places: no three are equally far apart.
fn places() -> Vec<i64> {
    (0..ITEMS).map(|at| (APART * at + at * at % 7 % APART) as i64).collect()
}

fn value(from: i32, at: usize) -> f64 {
    f64::from(from) * 1e6 + at as f64
}

/// Rank 0 puts to and gets from rank 1 by a large irregular type, and both ranks convert. THREADS
/// in the environment is whether they have threads for it.
pub fn threads() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let (me, places) = (world.rank(), places());
    let irregular = Datatype::indexed_block(1, &places, &Datatype::double()).unwrap();
    let irregular = rank.commit(&irregular).unwrap();
    let len = APART * (ITEMS + 1);
    let mut window = Window::allocate(world, 8 * len as i64, 8, &Info::default()).unwrap();

    // The doubles between those of the type keep their value.
    window.write(0, &vec![-1.0f64; len]).unwrap();
    world.barrier().unwrap();
    let mine = buffer(&rank, len, |at| value(me, at));
    let data = Origin::typed(&mine, 1, &irregular);
    window
        .fence(|epoch| if me == 0 { epoch.put(data, 1, 0, 1, &irregular) } else { Ok(()) })
        .unwrap();
    let mut found = vec![0.0f64; len];
    window.read(0, &mut found).unwrap();
    let mut expected = vec![-1.0; len];
    if me == 1 {
        places.iter().for_each(|&at| expected[at as usize] = value(0, at as usize));
    }
    assert!(found == expected, "rank {me} after the put");

    let fresh: Vec<_> = (0..len).map(|at| value(me + 2, at)).collect();
    window.write(0, &fresh).unwrap();
    world.barrier().unwrap();
    let mut room = buffer(&rank, len, |_| -1.0);
    let taken = Destination::typed(&mut room, 1, &irregular);
    window
        .fence(|epoch| if me == 0 { epoch.get(taken, 1, 0, 1, &irregular) } else { Ok(()) })
        .unwrap();
    let mut expected = vec![-1.0; len];
    if me == 0 {
        places.iter().for_each(|&at| expected[at as usize] = value(3, at as usize));
    }
    assert!((0..len).all(|at| room.get(at).unwrap() == expected[at]), "rank {me} after the get");
    window.free().unwrap();

    convert(&rank, &irregular, &mine);
    let expected = match std::env::var("THREADS").unwrap().as_str() {
        "2" => vec!["longshore-0", "longshore-1"],
        _ => Vec::new(),
    };
    assert_eq!(pool(), expected);
    rank.finalize().unwrap();
}

/// Converts to and from external32: the doubles of `mine`, and long doubles, unit by unit.
fn convert(rank: &Rank, irregular: &longshore::Type, mine: &Buffer<f64>) {
    let (mut packed, mut position) = (vec![0u8; 8 * ITEMS], 0);
    let data = Origin::typed(mine, 1, irregular);
    rank.pack_external("external32", data, &mut packed, &mut position).unwrap();
    let expected = places().into_iter().map(|at| value(rank.world().rank(), at as usize));
    let expected: Vec<u8> = expected.flat_map(f64::to_be_bytes).collect();
    assert!(packed == expected && position == packed.len() as u64, "as external32");

    let mut wide = rank.buffer::<c::LongDouble>(ITEMS).unwrap();
    for at in 0..ITEMS {
        wide.set(at, c::LongDouble::from(at as f64 - 0.5)).unwrap();
    }
    let (mut packed, mut position) = (vec![0u8; 16 * ITEMS], 0);
    rank.pack_external("external32", &wide, &mut packed, &mut position).unwrap();
    let mut back = rank.buffer::<c::LongDouble>(ITEMS).unwrap();
    position = 0;
    rank.unpack_external("external32", &packed, &mut position, &mut back).unwrap();
    for at in 0..ITEMS {
        assert_eq!(back.get(at).unwrap().to_f64().unwrap(), at as f64 - 0.5);
    }
}

fn buffer(rank: &Rank, len: usize, value: impl Fn(usize) -> f64) -> Buffer<f64> {
    let mut buffer = rank.buffer(len).unwrap();
    (0..len).for_each(|at| buffer.set(at, value(at)).unwrap());
    buffer
}

/// The names of the pool's threads.
fn pool() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap());
    let of_pool = |name: &String| {
        name.strip_prefix("longshore-").is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let mut names: Vec<_> = names.map(|name| name.trim_end().to_owned()).filter(of_pool).collect();
    names.sort();
    names
}

#[test]
fn threads_divide_the_transfers_of_a_job_and_change_no_byte() {
    for (threads, archs) in [("2", "native"), ("2", "native,s390x"), ("off", "native,s390x")] {
        let settings = [format!("LONGSHORE_THREADS={threads}"), format!("THREADS={threads}")];
        let words = ["-n", "2", "--arch", archs, "--env", &settings[0], "--env", &settings[1]];
        let words = [words.map(str::to_owned).to_vec(), role("threads")].concat();
        let finished = run(&words);
        assert_eq!(finished.status, 0, "{threads} threads, {archs}: {}", finished.stderr);
    }
}

#[test]
fn a_wrong_number_of_threads_is_refused() {
    let words = ["--env", "LONGSHORE_THREADS=two"].map(str::to_owned).to_vec();
    let finished = run(&[words, role("join")].concat());
    let expected =
        r#"LONGSHORE_THREADS="two" in the environment: expected a number of threads, or off"#;
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
}
