//! Tests of bounds, sizes and signatures of random types against the oracle's type maps.

use shipable::oracle::{self, Options, Random, cases, each_seed};
use shipable::{Architecture, Committed, Datatype, Signature};

fn options(seed: u64) -> Options {
    let all = Architecture::all();
    Options {
        portable: seed % 3 == 0,
        disjoint: seed % 2 == 0,
        architecture: all[(seed / 6) as usize % all.len()],
        ..Options::default()
    }
}

fn check_bounds(datatype: &Datatype, architecture: &Architecture) {
    let fast = datatype.bounds(architecture).unwrap();
    let slow = oracle::bounds(datatype, architecture).unwrap();
    let fast = oracle::NaiveBounds {
        lb: fast.lb,
        ub: fast.ub,
        true_lb: fast.true_lb,
        true_ub: fast.true_ub,
        size: fast.size,
    };
    assert_eq!(fast, slow, "{datatype} on {architecture}");
}

#[test]
fn bounds_equal_the_oracles_on_every_architecture() {
    each_seed(3000, |seed| {
        let datatype = Random::new(seed, options(seed)).datatype();
        for architecture in Architecture::all() {
            check_bounds(&datatype, architecture);
            let items = oracle::expand(&datatype, architecture, 1).unwrap().len() as u64;
            assert!(items <= oracle::effort(&datatype), "{datatype}: {items} items");
        }
    });
}

#[test]
fn effort_is_computed_without_writing_out_the_map() {
    // Each of 60 levels contains the level below twice.
    let mut tree = Datatype::int();
    for _ in 0..60 {
        tree = Datatype::struct_(&[1, 1], &[0, 0], &[tree.clone(), tree]).unwrap();
    }
    assert!(oracle::effort(&tree) >= 1 << 60);
    let nothing = Datatype::contiguous(0, &Datatype::int()).unwrap();
    assert!(oracle::effort(&Datatype::contiguous(1 << 40, &nothing).unwrap()) >= 1 << 40);
    let dup = (0..60).fold(Datatype::int(), |child, _| Datatype::dup(&child).unwrap());
    assert!(oracle::effort(&dup) < 20_000);
}

#[test]
fn shares_equal_the_indices_that_processes_own() {
    use shipable::datatype::{Distribution, Order};
    let here = Architecture::NATIVE;
    for gsize in 1..12 {
        for psize in 1..6 {
            for rank in 0..psize {
                for darg in [None, Some(1), Some(2), Some(3), Some(20), Some(i64::MAX)] {
                    for distribution in [Distribution::Block, Distribution::Cyclic] {
                        let made = Datatype::darray(
                            psize,
                            rank,
                            &[gsize],
                            &[distribution],
                            &[darg],
                            &[psize],
                            Order::C,
                            &Datatype::short(),
                        );
                        // Blocks may be too short for the array.
                        let Ok(datatype) = made else { continue };
                        check_bounds(&datatype, &here);
                        let items = oracle::flatten(&datatype).len() as u64;
                        assert_eq!(datatype.signature().count, items, "{datatype}");
                    }
                }
            }
        }
    }
}

#[test]
fn types_that_compile_have_bounds() {
    let here = Architecture::X86_64;
    // An empty member whose end would exceed 64 bits, and an array whose unowned elements would.
    let far = format!("S:2:U2(RZ:d:{}:8)/0/{},d/1/0", i64::MAX - 8, i64::MAX);
    let corner = format!("SA:U2(RZ:d:{}:{}):C:2:2/2/0,2/2/0", 1i64 << 62, 1i64 << 60);
    for notation in [far, corner] {
        let datatype: Datatype = format!("U1({notation})").parse().unwrap();
        let committed = Committed::new(&datatype, &here).unwrap();
        assert_eq!(datatype.bounds(&here).as_ref(), Ok(committed.bounds()), "{datatype}");
    }
}

#[test]
fn signatures_equal_those_of_the_item_lists() {
    each_seed(3000, |seed| {
        let (one, other) = Random::new(seed, options(seed)).pair();
        assert_eq!(oracle::flatten(&one), oracle::flatten(&other), "{one} and {other}");
        assert_eq!(one.signature(), other.signature(), "{one} and {other}");
        let items = oracle::flatten(&one).into_iter().map(Signature::of_leaf);
        let item_by_item = items.fold(Signature::empty(), |all, item| all.then(&item).unwrap());
        assert_eq!(one.signature(), item_by_item, "{one}");
    });
}

#[test]
fn unequal_lists_have_unequal_signatures() {
    let mut random = Random::new(1, Options { items: 8, depth: 2, ..Options::default() });
    let types: Vec<_> = (0..cases(3000).min(400)).map(|_| random.datatype()).collect();
    for one in &types {
        for other in &types {
            let same = oracle::flatten(one) == oracle::flatten(other);
            assert_eq!(one.signature() == other.signature(), same, "{one} and {other}");
        }
    }
}

#[test]
fn disjoint_option_yields_types_without_overlaps() {
    each_seed(3000, |seed| {
        let options = Options { disjoint: true, ..options(seed) };
        let datatype = Random::new(seed, options).datatype();
        for count in [1, 3] {
            let overlaps = oracle::overlaps(&datatype, &options.architecture, count).unwrap();
            assert!(!overlaps, "{datatype} on {} times {count}", options.architecture);
        }
    });
}

#[test]
fn generator_uses_every_constructor() {
    let mut seen = std::collections::HashSet::new();
    let mut portable = std::collections::HashSet::new();
    for seed in 0..2000 {
        let mut options = options(seed);
        options.items = 60;
        let combiners = if options.portable { &mut portable } else { &mut seen };
        visit(&Random::new(seed, options).datatype(), combiners);
    }
    assert_eq!(seen.len(), 21, "{seen:?}");
    assert_eq!(portable.len(), 12, "{portable:?}");
}

fn visit(datatype: &Datatype, seen: &mut std::collections::HashSet<shipable::datatype::Combiner>) {
    seen.insert(datatype.combiner());
    datatype.node().children().iter().for_each(|child| visit(child, seen));
}

#[test]
fn equal_seeds_give_equal_types_on_every_machine() {
    let options = Options { architecture: Architecture::S390X, ..Options::default() };
    let datatype = Random::new(42, options).datatype();
    assert_eq!(
        datatype.to_string(),
        "U1(S:1:U2(1U3(S:1:U4(HVI:U5(S:3:sc/1/0,U6(FC:15:74)/1/-16,U7(1C8)/1/1):4:1:166)/1/27))/1/-8)"
    );
}

#[test]
fn oracle_pack_and_unpack_round_trip() {
    each_seed(500, |seed| {
        let options = Options { disjoint: true, ..options(seed) };
        let mut random = Random::new(seed, options);
        let (datatype, here) = (random.datatype(), options.architecture);
        let bounds = datatype.bounds(&here).unwrap();
        let (low, high) = (bounds.true_lb.min(0), bounds.true_ub + 2 * bounds.extent().abs());
        let (origin, length) = ((-low) as usize, (high - low) as usize);
        let memory = random.bytes(length);
        let (packed, refusal) =
            oracle::pack(&datatype, 2, (&here, &memory, origin), &here).unwrap();
        assert_eq!(refusal, None, "the same representation holds every value");
        assert_eq!(packed.len() as i64, 2 * bounds.size);
        let mut back = vec![0; length];
        let to = (&here, &mut back[..], origin);
        assert_eq!(oracle::unpack(&datatype, 2, to, (&here, &packed)).unwrap(), None);
        for item in oracle::expand(&datatype, &here, 2).unwrap() {
            let at = (origin as i64 + item.offset) as usize;
            let range = at..at + usize::from(item.scalar.size);
            assert_eq!(memory[range.clone()], back[range], "{datatype} on {here}");
        }
    });
}
