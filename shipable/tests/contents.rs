//! Tests of envelopes, contents and accessors: each row of the tables, errors, and rebuilt types.

use shipable::contents::{self, Contents, Counts, Elements, Envelope, type_count, type_elements};
use shipable::datatype::Combiner;
use shipable::oracle::{Options, Random, each_seed};
use shipable::{Basic, Class, Datatype, Distribution, Error, Leaf, Order, Result};

const C: i32 = contents::ORDER_C;
const DFLT: i32 = contents::DISTRIBUTE_DFLT_DARG;
const UNDEFINED: i32 = contents::UNDEFINED;

/// A type, and its contents in both versions of the calls.
struct Row {
    made: Result<Datatype>,
    combiner: Combiner,
    integers: &'static [i32],
    addresses: &'static [i64],
    datatypes: Vec<Datatype>,
    /// The contents in the version with large counts.
    large_integers: &'static [i32],
    large_counts: &'static [i64],
}

fn d() -> Datatype {
    Datatype::double()
}

fn i() -> Datatype {
    Datatype::int()
}

fn table() -> Vec<Row> {
    let row = |made, combiner, integers, addresses, datatypes: &[Datatype], large| {
        let datatypes = datatypes.to_vec();
        let (large_integers, large_counts) = large;
        Row { made, combiner, integers, addresses, datatypes, large_integers, large_counts }
    };
    let (block, cyclic, whole) = (Distribution::Block, Distribution::Cyclic, Distribution::None);
    let (b, c, n) =
        (contents::DISTRIBUTE_BLOCK, contents::DISTRIBUTE_CYCLIC, contents::DISTRIBUTE_NONE);
    assert_eq!((b, c, n, C), (17, 18, 16, 12));
    let grid = Datatype::darray(
        6,
        5,
        &[8, 9, 2],
        &[block, cyclic, whole],
        &[None, Some(2), None],
        &[2, 3, 1],
        Order::C,
        &d(),
    );
    vec![
        row(Datatype::dup(&d()), Combiner::Dup, &[], &[], &[d()], (&[], &[])),
        row(Datatype::contiguous(3, &d()), Combiner::Contiguous, &[3], &[], &[d()], (&[], &[3])),
        row(
            Datatype::vector(3, 2, -5, &d()),
            Combiner::Vector,
            &[3, 2, -5],
            &[],
            &[d()],
            (&[], &[3, 2, -5]),
        ),
        row(
            Datatype::hvector(3, 2, -5, &d()),
            Combiner::Hvector,
            &[3, 2],
            &[-5],
            &[d()],
            (&[], &[3, 2, -5]),
        ),
        row(
            Datatype::hvector_integer(3, 2, -5, &d()),
            Combiner::HvectorInteger,
            &[3, 2],
            &[-5],
            &[d()],
            (&[], &[3, 2, -5]),
        ),
        row(
            Datatype::indexed(&[1, 2], &[3, -4], &d()),
            Combiner::Indexed,
            &[2, 1, 2, 3, -4],
            &[],
            &[d()],
            (&[], &[2, 1, 2, 3, -4]),
        ),
        row(
            Datatype::hindexed(&[1, 2], &[3, -4], &d()),
            Combiner::Hindexed,
            &[2, 1, 2],
            &[3, -4],
            &[d()],
            (&[], &[2, 1, 2, 3, -4]),
        ),
        row(
            Datatype::hindexed_integer(&[1, 2], &[3, -4], &d()),
            Combiner::HindexedInteger,
            &[2, 1, 2],
            &[3, -4],
            &[d()],
            (&[], &[2, 1, 2, 3, -4]),
        ),
        row(
            Datatype::indexed_block(7, &[3, -4], &d()),
            Combiner::IndexedBlock,
            &[2, 7, 3, -4],
            &[],
            &[d()],
            (&[], &[2, 7, 3, -4]),
        ),
        row(
            Datatype::hindexed_block(7, &[3, -4], &d()),
            Combiner::HindexedBlock,
            &[2, 7],
            &[3, -4],
            &[d()],
            (&[], &[2, 7, 3, -4]),
        ),
        row(
            Datatype::struct_(&[1, 2], &[3, -4], &[d(), i()]),
            Combiner::Struct,
            &[2, 1, 2],
            &[3, -4],
            &[d(), i()],
            (&[], &[2, 1, 2, 3, -4]),
        ),
        row(
            Datatype::struct_integer(&[1, 2], &[3, -4], &[d(), i()]),
            Combiner::StructInteger,
            &[2, 1, 2],
            &[3, -4],
            &[d(), i()],
            (&[], &[2, 1, 2, 3, -4]),
        ),
        row(
            Datatype::simple_struct(&[1, 2], &[d(), i()]),
            Combiner::SimpleStruct,
            &[2, 1, 2],
            &[],
            &[d(), i()],
            (&[], &[2, 1, 2]),
        ),
        row(
            Datatype::subarray(&[4, 6], &[2, 3], &[1, 0], Order::C, &d()),
            Combiner::Subarray,
            &[2, 4, 6, 2, 3, 1, 0, C],
            &[],
            &[d()],
            (&[2, C], &[4, 6, 2, 3, 1, 0]),
        ),
        row(
            grid,
            Combiner::Darray,
            &[6, 5, 3, 8, 9, 2, 17, 18, 16, DFLT, 2, DFLT, 2, 3, 1, C],
            &[],
            &[d()],
            (&[6, 5, 3, 17, 18, 16, DFLT, 2, DFLT, 2, 3, 1, C], &[8, 9, 2]),
        ),
        row(
            Datatype::f90_real(Some(6), None),
            Combiner::F90Real,
            &[6, UNDEFINED],
            &[],
            &[],
            (&[6, UNDEFINED], &[]),
        ),
        row(
            Datatype::f90_complex(None, Some(30)),
            Combiner::F90Complex,
            &[UNDEFINED, 30],
            &[],
            &[],
            (&[UNDEFINED, 30], &[]),
        ),
        row(Datatype::f90_integer(9), Combiner::F90Integer, &[9], &[], &[], (&[9], &[])),
        row(
            Datatype::resized(-8, 24, &d()),
            Combiner::Resized,
            &[],
            &[-8, 24],
            &[d()],
            (&[], &[-8, 24]),
        ),
        row(
            Datatype::value_index(&d(), &Datatype::long()),
            Combiner::ValueIndex,
            &[],
            &[],
            &[d(), Datatype::long()],
            (&[], &[]),
        ),
    ]
}

#[test]
fn contents_of_every_combiner_follow_the_table() {
    for Row { made, combiner, integers, addresses, datatypes, large_integers, large_counts } in
        table()
    {
        let made = made.unwrap();
        let (integers, addresses) = (integers.to_vec(), addresses.to_vec());
        let classic = Contents { combiner, integers, addresses, large_counts: vec![], datatypes };
        let large = Contents {
            integers: large_integers.to_vec(),
            addresses: vec![],
            large_counts: large_counts.to_vec(),
            ..classic.clone()
        };
        for (counts, contents) in [(Counts::Int, classic), (Counts::Large, large)] {
            assert_eq!(made.contents(counts).as_ref(), Ok(&contents));
            assert_eq!(made.envelope(counts), Ok(contents.envelope()));
            assert_eq!(contents.rebuild().as_ref(), Ok(&made));
            // The types are the same objects that the constructor was given.
            for (given, child) in made.node().children().iter().zip(&contents.datatypes) {
                assert!(given.is(child));
            }
            // Each array that is one too short causes its own error, and no array is written.
            let needed = contents.envelope();
            let arrays = [
                (
                    "array_of_integers",
                    needed.integers,
                    Envelope { integers: needed.integers.saturating_sub(1), ..needed },
                ),
                (
                    "array_of_addresses",
                    needed.addresses,
                    Envelope { addresses: needed.addresses.saturating_sub(1), ..needed },
                ),
                (
                    "array_of_large_counts",
                    needed.large_counts,
                    Envelope { large_counts: needed.large_counts.saturating_sub(1), ..needed },
                ),
                (
                    "array_of_datatypes",
                    needed.datatypes,
                    Envelope { datatypes: needed.datatypes.saturating_sub(1), ..needed },
                ),
            ];
            for (name, length, room) in arrays {
                let mut integers = vec![99; room.integers];
                let mut addresses = vec![99; room.addresses];
                let mut large_counts = vec![99; room.large_counts];
                let mut types = vec![Datatype::packed(); room.datatypes];
                let written =
                    contents.write(&mut integers, &mut addresses, &mut large_counts, &mut types);
                if length == 0 {
                    assert_eq!(written, Ok(()));
                    assert_eq!(
                        (integers, addresses),
                        (contents.integers.clone(), contents.addresses.clone())
                    );
                    assert_eq!(
                        (large_counts, types),
                        (contents.large_counts.clone(), contents.datatypes.clone())
                    );
                    continue;
                }
                let error = written.unwrap_err();
                assert_eq!(
                    error,
                    Error::ArrayTooSmall { array: name, room: length - 1, needed: length }
                );
                assert_eq!(error.class(), Class::Arg);
                assert!(integers.iter().all(|&n| n == 99));
                assert!(addresses.iter().chain(&large_counts).all(|&n| n == 99));
                assert!(types.iter().all(|datatype| datatype.is(&Datatype::packed())));
            }
        }
    }
}

#[test]
fn write_leaves_the_tails_of_longer_arrays_unchanged() {
    let contents = Datatype::contiguous(3, &d()).unwrap().contents(Counts::Int).unwrap();
    let (mut integers, mut types) = ([99; 3], vec![i(), i()]);
    contents.write(&mut integers, &mut [], &mut [], &mut types).unwrap();
    assert_eq!((integers, types), ([3, 99, 99], vec![d(), i()]));
}

#[test]
fn named_types_have_an_envelope_but_no_contents() {
    for &basic in Basic::ALL {
        let named = Datatype::basic(basic);
        for counts in [Counts::Int, Counts::Large] {
            let envelope = named.envelope(counts).unwrap();
            let Envelope { combiner, integers, addresses, large_counts, datatypes } = envelope;
            assert_eq!(combiner, Combiner::Named);
            assert_eq!((integers, addresses, large_counts, datatypes), (0, 0, 0, 0));
            let error = named.contents(counts).unwrap_err();
            assert_eq!(error.class(), Class::Type);
            assert!(error.to_string().contains(basic.mpi_name()), "{error}");
        }
    }
}

#[test]
fn arguments_beyond_int_need_large_counts() {
    let large = 1 << 31;
    let types = [
        (Datatype::contiguous(large, &d()), true),
        (Datatype::vector(1, 1, -large - 1, &d()), true),
        (Datatype::indexed(&[1], &[large], &d()), true),
        (Datatype::indexed_block(large, &[0], &d()), true),
        (Datatype::simple_struct(&[large], &[d()]), true),
        (Datatype::subarray(&[large], &[1], &[0], Order::C, &d()), true),
        // Addresses fit any value. The integers of a grid are ints in every version.
        (Datatype::hvector(1, 1, large, &d()), false),
        (Datatype::vector(1, 1, -large, &d()), false),
        (Datatype::resized(large, large, &d()), false),
    ];
    for (made, refused) in types {
        let made = made.unwrap();
        assert_eq!(made.contents(Counts::Large).unwrap().rebuild().as_ref(), Ok(&made));
        match made.contents(Counts::Int) {
            Ok(contents) => assert!(!refused && contents.rebuild().as_ref() == Ok(&made)),
            Err(error) => {
                assert!(refused, "{error}");
                assert_eq!(error.class(), Class::Type);
                assert!(error.to_string().contains("large counts"), "{error}");
                assert_eq!(made.envelope(Counts::Int), Err(error));
            }
        }
    }
    let (block, dflt) = ([Distribution::Block], [None]);
    let grid = Datatype::darray(large, 0, &[large], &block, &dflt, &[large], Order::C, &d());
    assert_eq!(grid.unwrap().contents(Counts::Large).unwrap_err().class(), Class::Type);
}

#[test]
fn invalid_contents_are_refused() {
    let contents = |made: Result<Datatype>| made.unwrap().contents(Counts::Int).unwrap();
    let refuse = |contents: Contents, says: &str| {
        let error = contents.rebuild().unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    };
    let vector = contents(Datatype::vector(3, 2, -5, &d()));
    refuse(Contents { integers: vec![3, 2], ..vector.clone() }, "1 integers are needed, but 0");
    refuse(Contents { integers: vec![3, 2, 1, 0], ..vector.clone() }, "1 integers more");
    refuse(Contents { integers: vec![-3, 2, 1], ..vector.clone() }, "count is -3");
    refuse(Contents { datatypes: vec![], ..vector.clone() }, "1 datatypes are needed");
    refuse(Contents { combiner: Combiner::Named, ..vector }, "no constructor");
    let indexed = contents(Datatype::indexed(&[1], &[3], &d()));
    refuse(Contents { integers: vec![-1, 1, 3], ..indexed.clone() }, "-1 integers are needed");
    refuse(
        Contents { integers: vec![i32::MAX, 1, 3], ..indexed },
        "2147483647 integers are needed, but 2",
    );
    let grid = contents(Datatype::subarray(&[4], &[2], &[1], Order::C, &d()));
    refuse(Contents { integers: vec![1, 4, 2, 1, 13], ..grid }, "order 13");
    let real = contents(Datatype::f90_integer(9));
    refuse(Contents { integers: vec![UNDEFINED], ..real.clone() }, "range is undefined");
    refuse(Contents { integers: vec![-1], ..real }, "range of -1");
}

#[test]
fn random_types_are_rebuilt_from_their_contents() {
    each_seed(300, |seed| {
        let datatype = Random::new(seed, Options::default()).datatype();
        for counts in [Counts::Int, Counts::Large] {
            assert_eq!(rebuilt(&datatype, counts), datatype, "seed {seed}");
        }
    });
}

/// Rebuilds a type from the contents of all its nodes.
fn rebuilt(datatype: &Datatype, counts: Counts) -> Datatype {
    if datatype.combiner() == Combiner::Named {
        return datatype.clone();
    }
    let mut contents = datatype.contents(counts).unwrap();
    for child in &mut contents.datatypes {
        *child = rebuilt(child, counts);
    }
    contents.rebuild().unwrap()
}

/// The count on return, blocklengths, displacements and types.
type Entries = (i64, Vec<i64>, Vec<i64>, Vec<Datatype>);

fn entries(datatype: &Datatype, count: i64) -> Entries {
    let Elements { count, blocklengths, displacements, types, .. } =
        type_elements(datatype, count).unwrap();
    (count, blocklengths, displacements, types)
}

#[test]
fn accessors_return_the_top_level_entries() {
    let all = |made: Result<Datatype>| {
        let made = made.unwrap();
        let entries = entries(&made, type_count(&made));
        assert_eq!(entries.0, type_count(&made), "{made}");
        // A greater count changes nothing.
        assert_eq!(self::entries(&made, type_count(&made) + 9), entries);
        assert_eq!(type_elements(&made, 1).unwrap().combiner, made.combiner());
        entries
    };
    let one = || vec![d()];
    assert_eq!(all(Ok(d())), (1, vec![], vec![], one()));
    assert_eq!(all(Datatype::contiguous(3, &d())), (1, vec![3], vec![], one()));
    assert_eq!(all(Datatype::vector(8, 2, -5, &d())), (8, vec![2], vec![-5], one()));
    assert_eq!(all(Datatype::hvector(8, 2, -5, &d())), (8, vec![2], vec![-5], one()));
    assert_eq!(all(Datatype::hvector_integer(8, 2, 5, &d())), (8, vec![2], vec![5], one()));
    assert_eq!(all(Datatype::vector(0, 2, 5, &d())), (0, vec![], vec![], vec![]));
    let blocks = (2, vec![1, 2], vec![3, -4], one());
    assert_eq!(all(Datatype::indexed(&[1, 2], &[3, -4], &d())), blocks);
    assert_eq!(all(Datatype::hindexed(&[1, 2], &[3, -4], &d())), blocks);
    assert_eq!(all(Datatype::hindexed_integer(&[1, 2], &[3, -4], &d())), blocks);
    let members = (2, vec![1, 2], vec![3, -4], vec![d(), i()]);
    assert_eq!(all(Datatype::struct_(&[1, 2], &[3, -4], &[d(), i()])), members);
    assert_eq!(all(Datatype::struct_integer(&[1, 2], &[3, -4], &[d(), i()])), members);
    let members = (2, vec![1, 2], vec![], vec![d(), i()]);
    assert_eq!(all(Datatype::simple_struct(&[1, 2], &[d(), i()])), members);
    // Constructors that are newer than the proposal.
    assert_eq!(all(Datatype::dup(&d())), (1, vec![1], vec![0], one()));
    let blocks = (2, vec![7, 7], vec![3, -4], one());
    assert_eq!(all(Datatype::indexed_block(7, &[3, -4], &d())), blocks);
    assert_eq!(all(Datatype::hindexed_block(7, &[3, -4], &d())), blocks);
    let marked = vec![Datatype::lb(), d(), Datatype::ub()];
    assert_eq!(all(Datatype::resized(-8, 24, &d())), (3, vec![1, 1, 1], vec![-8, 0, 16], marked));
    let part = (2, vec![2, 3], vec![1, 0], one());
    assert_eq!(all(Datatype::subarray(&[4, 6], &[2, 3], &[1, 0], Order::C, &d())), part);
    let (cyclic, darg) = ([Distribution::Cyclic], [Some(2)]);
    let dealt = Datatype::darray(2, 1, &[7], &cyclic, &darg, &[2], Order::C, &d());
    assert_eq!(all(dealt), (1, vec![3], vec![2], one()));
    let pair = (2, vec![1, 1], vec![], vec![d(), Datatype::long()]);
    assert_eq!(all(Datatype::value_index(&d(), &Datatype::long())), pair);
}

#[test]
fn type_elements_fills_at_most_the_count_passed_in() {
    let vector = Datatype::vector(8, 2, -5, &d()).unwrap();
    // The returned count is the vector's, but at most the length of the caller's arrays.
    assert_eq!(entries(&vector, 3), (3, vec![2], vec![-5], vec![d()]));
    let record = Datatype::struct_(&[1, 2], &[3, -4], &[d(), i()]).unwrap();
    assert_eq!(entries(&record, 1), (1, vec![1], vec![3], vec![d()]));
    let blocks = Datatype::hindexed_block(7, &[3, -4], &d()).unwrap();
    assert_eq!(entries(&blocks, 1), (1, vec![7], vec![3], vec![d()]));
    let resized = Datatype::resized(-8, 24, &d()).unwrap();
    assert_eq!(entries(&resized, 2), (2, vec![1, 1], vec![-8, 0], vec![Datatype::lb(), d()]));
    for datatype in [vector, record, blocks, resized, d()] {
        assert_eq!(entries(&datatype, 0), (0, vec![], vec![], vec![]));
        let error = type_elements(&datatype, -1).unwrap_err();
        assert_eq!(error.class(), Class::Count);
        assert!(error.to_string().contains("count is -1"), "{error}");
    }
}

/// The loop that the proposal prescribes.
#[test]
fn descent_to_basic_types_ends() {
    each_seed(300, |seed| {
        let datatype = Random::new(seed, Options::default()).datatype();
        let mut open = vec![(datatype.clone(), 0)];
        while let Some((top, level)) = open.pop() {
            assert!(level <= datatype.depth(), "seed {seed}");
            let Elements { combiner, types, .. } = type_elements(&top, type_count(&top)).unwrap();
            if combiner == Combiner::Named {
                assert!(types[0].is(&top));
                continue;
            }
            open.extend(types.into_iter().map(|child| (child, level + 1)));
        }
    });
    // Fortran's kinds are basic types too.
    let kind = Datatype::f90_real(Some(6), None).unwrap();
    let Elements { combiner, types, .. } = type_elements(&kind, 1).unwrap();
    assert!(combiner == Combiner::Named && types[0].is(&kind));
    assert!(matches!(kind.node(), shipable::datatype::Node::Leaf(Leaf::F90Real { .. })));
}
