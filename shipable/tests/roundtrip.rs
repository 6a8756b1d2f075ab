//! Round trips of types through the notation, the flat form, the encoded form and the contents:
//! every constructor over every basic type, and random nestings of depth up to 4.
//! `LONGSHORE_TEST_CASES=1000000` tests more cases.

use shipable::contents::{Contents, Counts};
use shipable::datatype::Combiner;
use shipable::flat::{self, FlatError};
use shipable::form::Limits;
use shipable::oracle::{Options, Random, each_seed};
use shipable::{Architecture, Basic, Datatype, Distribution, Error, Form, Order, notation};

/// The number of constructors with children.
const CONSTRUCTORS: u64 = 17;

/// A type made by a constructor of these children, with small random arguments. A constructor of
/// one child takes the first.
fn construct(which: u64, children: &[Datatype], random: &mut Random) -> Datatype {
    let child = &children[0];
    // The number of blocks, members or dimensions: `length` is 0 to 3, `ndims` is 1 to 3.
    let length = random.below(4) as usize;
    let members = &children[..length.min(children.len())];
    let ndims = 1 + random.below(3) as usize;
    let mut numbers = |n: usize, least: i64, greatest: i64| -> Vec<i64> {
        (0..n).map(|_| least + random.below((greatest - least + 1) as u64) as i64).collect()
    };
    let (count, blocklength) = (numbers(1, 0, 4)[0], numbers(1, 0, 3)[0]);
    let number = numbers(1, -100, 100)[0];
    let lengths = numbers(members.len().max(length), 0, 3);
    let displacements = numbers(lengths.len(), -100, 100);
    let subsizes = numbers(ndims, 1, 3);
    let starts = numbers(ndims, 0, 2);
    let sizes: Vec<_> =
        subsizes.iter().zip(&starts).map(|(size, start)| size + start + 1).collect();
    let order = if count % 2 == 0 { Order::C } else { Order::Fortran };
    let (m, d) = (&lengths[..members.len()], &displacements[..members.len()]);
    let made = match which {
        0 => Datatype::dup(child),
        1 => Datatype::contiguous(count, child),
        2 => Datatype::vector(count, blocklength, number, child),
        3 => Datatype::hvector(count, blocklength, number, child),
        4 => Datatype::hvector_integer(count, blocklength, number, child),
        5 => Datatype::indexed(&lengths, &displacements, child),
        6 => Datatype::hindexed(&lengths, &displacements, child),
        7 => Datatype::hindexed_integer(&lengths, &displacements, child),
        8 => Datatype::indexed_block(blocklength, &displacements, child),
        9 => Datatype::hindexed_block(blocklength, &displacements, child),
        10 => Datatype::struct_(m, d, members),
        11 => Datatype::struct_integer(m, d, members),
        12 => Datatype::simple_struct(m, members),
        13 => Datatype::subarray(&sizes, &subsizes, &starts, order, child),
        14 => {
            let psizes = numbers(ndims, 1, 2);
            let mut distribs = Vec::new();
            let mut dargs = Vec::new();
            for (gsize, psize) in sizes.iter().zip(&psizes) {
                let (kind, default) = (numbers(1, 0, 2)[0], numbers(1, 0, 1)[0] == 0);
                let (distribution, least) = match kind {
                    0 if *psize == 1 => (Distribution::None, 1),
                    1 => (Distribution::Block, (gsize - 1) / psize + 1),
                    _ => (Distribution::Cyclic, 1),
                };
                distribs.push(distribution);
                dargs.push((!default).then(|| least + numbers(1, 0, 3)[0]));
            }
            let size = psizes.iter().product();
            let rank = numbers(1, 0, size - 1)[0];
            Datatype::darray(size, rank, &sizes, &distribs, &dargs, &psizes, order, child)
        }
        15 => Datatype::resized(number, displacements.iter().sum(), child),
        _ => {
            // If the children can't make a pair, the first child is returned.
            let index = children.last().unwrap_or(child);
            Ok(Datatype::value_index(child, index).unwrap_or_else(|_| child.clone()))
        }
    };
    made.unwrap_or_else(|error| panic!("constructor {which}: {error}"))
}

/// A random basic type, markers included, or a Fortran kind that every architecture has.
fn leaf(random: &mut Random) -> Datatype {
    let (precision, range) = (random.below(7) as u32, random.below(31) as u32);
    let (precision, range) = match random.below(3) {
        0 => (Some(precision), None),
        1 => (None, Some(range)),
        _ => (Some(precision), Some(range)),
    };
    let kind = match random.below(30) {
        0 => Datatype::f90_real(precision, range),
        1 => Datatype::f90_complex(precision, range),
        2 => Datatype::f90_integer(random.below(19) as u32),
        _ => return Datatype::basic(*random.pick(Basic::ALL)),
    };
    kind.unwrap()
}

/// A random nesting of constructors, at most `depth` deep. About half of the children are shared.
fn nested(random: &mut Random, depth: u64) -> Datatype {
    if depth == 0 {
        return leaf(random);
    }
    let mut children: Vec<Datatype> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let below = depth - 1 - random.below(2).min(depth - 1);
        let child = match children.is_empty() || random.chance(2) {
            true => nested(random, below),
            false => random.pick(&children).clone(),
        };
        children.push(child);
    }
    construct(random.below(CONSTRUCTORS), &children, random)
}

/// Rebuilds a type from the contents of all its nodes. `modern` replaces MPI-1's constructors by
/// their successors.
fn rebuilt(datatype: &Datatype, counts: Counts, modern: bool) -> Datatype {
    if datatype.combiner() == Combiner::Named {
        return datatype.clone();
    }
    let contents = datatype.contents(counts).unwrap();
    let combiner = match contents.combiner {
        Combiner::HvectorInteger if modern => Combiner::Hvector,
        Combiner::HindexedInteger if modern => Combiner::Hindexed,
        Combiner::StructInteger if modern => Combiner::Struct,
        combiner => combiner,
    };
    let datatypes = contents.datatypes.iter().map(|child| rebuilt(child, counts, modern)).collect();
    Contents { combiner, datatypes, ..contents }.rebuild().unwrap()
}

/// Checks all four round trips. `elsewhere` may be another architecture than `here`.
fn round_trips(datatype: &Datatype, here: &Architecture, elsewhere: &Architecture) {
    // Contents, text and flat form preserve everything. Only the form has no combiners.
    for counts in [Counts::Int, Counts::Large] {
        assert_eq!(&rebuilt(datatype, counts, false), datatype);
    }
    let modern = rebuilt(datatype, Counts::Large, true);

    let text = datatype.to_string();
    let parsed = notation::parse(&text).unwrap();
    assert_eq!(&parsed, datatype);
    assert_eq!(parsed.to_string(), text);

    let packed = flat::pack(datatype, here).unwrap();
    let unpacked = flat::unpack(packed.as_bytes(), here);
    assert_eq!(unpacked, Ok((datatype.clone(), packed.len())));
    let portable = packed.starts_with("MDT1;P;");
    match flat::unpack(packed.as_bytes(), elsewhere) {
        Ok((unpacked, _)) => {
            assert!(unpacked == *datatype && (portable || here == elsewhere));
        }
        Err(Error::Flat(FlatError::OtherArchitecture { .. })) => {
            assert!(!portable && here != elsewhere);
        }
        Err(error) => panic!("{error}"),
    }

    let form = Form::compile(datatype, here).unwrap();
    assert_eq!(Form::decode(&form.encode(), &Limits::default()).as_ref(), Ok(&form));
    assert_eq!(form.builder_architecture().is_none(), portable);
    assert_eq!(Form::compile(&modern, here).as_ref(), Ok(&form));
}

#[test]
fn every_constructor_over_every_basic_type_round_trips() {
    let random = &mut Random::new(1, Options::default());
    for which in 0..CONSTRUCTORS {
        for &basic in Basic::ALL {
            let children = vec![Datatype::basic(basic), leaf(random), Datatype::int()];
            let datatype = construct(which, &children, random);
            let (here, elsewhere) = (random.architecture(), random.architecture());
            round_trips(&datatype, &here, &elsewhere);
        }
    }
}

#[test]
fn random_nestings_round_trip() {
    each_seed(100_000, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let datatype = nested(random, 4);
        let (here, elsewhere) = (random.architecture(), random.architecture());
        let tried = std::panic::catch_unwind(|| round_trips(&datatype, &here, &elsewhere));
        assert!(tried.is_ok(), "{datatype}");
    });
}
