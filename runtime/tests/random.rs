//! Random types between random representations, compared with the oracle.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Class, Datatype, Destination, Info, Origin, Rank, Window};
use shipable::oracle::{self, Random, each_seed};

const WINDOW: usize = 1 << 16;

/// One operation: the types and counts on both sides, and their positions in memory.
struct Case {
    origin: Datatype,
    target: Datatype,
    count: u64,
    /// Offsets of displacement 0 in the origin's memory and in the target's window.
    places: [i64; 2],
    memory: [Vec<u8>; 2],
    get: bool,
}

/// The offset of displacement 0 and the length of memory for `count` elements. `None` if it would
/// be too long for this test.
fn measure(datatype: &Datatype, architecture: &Architecture, count: u64) -> Option<(i64, i64)> {
    let bounds = datatype.bounds(architecture).ok()?;
    let last = bounds.extent().checked_mul(count as i64 - 1)?;
    // The memory has displacement 0, also if the type has no item there.
    let low = (bounds.true_lb + last.min(0)).min(0);
    let high = (bounds.true_ub + last.max(0)).max(0);
    (high - low < WINDOW as i64 / 2).then_some((low, high))
}

fn case(random: &mut Random, sides: [Architecture; 2]) -> Option<Case> {
    random.options.architecture = sides[1];
    random.options.portable = true;
    let (origin, target) = random.pair();
    let (count, get) = (1 + random.below(3), random.chance(2));
    let mut places = [0; 2];
    let mut memory = [Vec::new(), Vec::new()];
    for (side, datatype) in [&origin, &target].into_iter().enumerate() {
        let (low, high) = measure(datatype, &sides[side], count)?;
        places[side] = -low + 4 * random.below(8) as i64;
        let length = if side == 1 { WINDOW as i64 } else { places[side] + high };
        memory[side] = random.bytes(length as usize);
    }
    // The written side must not overlap itself.
    let written = if get { &origin } else { &target };
    let architecture = if get { &sides[0] } else { &sides[1] };
    let disjoint = !oracle::overlaps(written, architecture, count).ok()?;
    disjoint.then_some(Case { origin, target, count, places, memory, get })
}

/// The oracle's result: the memory of the written side, and whether a value was refused.
fn expected(case: &Case, sides: [Architecture; 2]) -> (Vec<u8>, bool) {
    let types = [&case.origin, &case.target];
    let (from, to) = if case.get { (1, 0) } else { (0, 1) };
    let mut written = case.memory[to].clone();
    let memory = (&sides[from], &case.memory[from][..], case.places[from] as usize);
    let packed = oracle::pack(types[from], case.count, memory, &sides[from]);
    let Ok((stream, None)) = packed else { panic!("a type that packs in its own memory") };
    let memory = (&sides[to], &mut written[..], case.places[to] as usize);
    let refusal = oracle::unpack(types[to], case.count, memory, (&sides[from], &stream));
    let refused = refusal.unwrap().is_some();
    (written, refused)
}

/// Rank 0 puts to and gets from rank 1.
fn play(rank: &Rank, seed: u64, sides: [Architecture; 2]) {
    let world = rank.world();
    let me = world.rank();
    let mut window = Window::create(world, vec![0u8; WINDOW], 1, &Info::default()).unwrap();
    let mut random = Random::new(seed, oracle_options());
    for number in 0..12 {
        let Some(mut case) = case(&mut random, sides) else { continue };
        let (wanted, refused) = expected(&case, sides);
        if me == 1 {
            window.local().write_bytes(0, &case.memory[1]).unwrap();
        }
        let types = [rank.commit(&case.origin), rank.commit(&case.target)];
        let outcome = window.fence(|epoch| {
            let ([Ok(origin), Ok(target)], 0) = (&types, me) else { return Ok(()) };
            let (count, at) = (case.count as i64, case.places);
            let memory = &mut case.memory[0][..];
            if case.get {
                let room = Destination::typed(memory, count, origin).at(at[0]);
                epoch.get(room, 1, at[1], count, target)
            } else {
                let data = Origin::typed(&*memory, count, origin).at(at[0]);
                epoch.put(data, 1, at[1], count, target)
            }
        });
        let what = || format!("seed {seed} case {number}: {} to {}", case.origin, case.target);
        match (me, outcome) {
            (0, Err(error)) => {
                assert!(refused && error.class() == Class::Conversion, "{}: {error}", what());
            }
            (0, Ok(())) => assert!(!refused, "{}", what()),
            (_, outcome) => outcome.unwrap(),
        }
        let found = match (case.get, me) {
            (true, 0) => case.memory[0].clone(),
            (false, 1) => window.local().bytes(0, WINDOW).unwrap(),
            _ => continue,
        };
        assert!(found == wanted, "{}, get {}", what(), case.get);
    }
    window.free().unwrap();
}

fn oracle_options() -> oracle::Options {
    oracle::Options { portable: true, ..oracle::Options::default() }
}

#[test]
fn random_types_between_random_representations_match_the_oracle() {
    each_seed(60, |seed| {
        let mut random = Random::new(seed ^ 0xA5, oracle_options());
        let pick = |random: &mut Random| match random.chance(4) {
            true => Architecture::NATIVE,
            false => random.architecture(),
        };
        let sides = [pick(&mut random), pick(&mut random)];
        let routes = if random.chance(2) { Routes::Best } else { Routes::Message };
        let options = Options {
            seed,
            architectures: sides.to_vec(),
            routes,
            frame: 128 << random.below(6),
            frames: 1 + random.below(8) as usize,
            progress: random.chance(2),
            fast: random.chance(2),
            ..Options::default()
        };
        let body = |rank: Rank| {
            play(&rank, seed, sides);
            rank.finalize().unwrap();
        };
        match seed % 4 {
            0 => run_shared(2, &options, body).unwrap(),
            _ => run(2, &options, body).unwrap(),
        };
    });
}
