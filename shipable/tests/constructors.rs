//! Tests of the constructors: their errors with classes and texts, and the examples of the MPI
//! standard.

use shipable::contents::Counts;
use shipable::{Architecture, Basic, Class, Datatype, Distribution, Error, Order, Result};

fn refused(made: Result<Datatype>, class: Class, says: &str) {
    let error = made.expect_err(says);
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().contains(says), "`{error}` doesn't say `{says}`");
}

#[test]
fn negative_counts_and_blocklengths_are_refused() {
    let int = &Datatype::int();
    refused(Datatype::contiguous(-1, int), Class::Count, "contiguous: count is -1");
    refused(Datatype::vector(-2, 1, 1, int), Class::Count, "vector: count is -2");
    refused(Datatype::vector(2, -1, 1, int), Class::Arg, "vector: blocklength is -1");
    refused(Datatype::hvector(2, -1, 1, int), Class::Arg, "hvector: blocklength");
    refused(Datatype::indexed(&[1, -4], &[0, 1], int), Class::Arg, "blocklengths[1] is -4");
    refused(Datatype::hindexed(&[-1], &[0], int), Class::Arg, "blocklengths[0] is -1");
    refused(Datatype::indexed_block(-1, &[0], int), Class::Arg, "blocklength is -1");
    refused(Datatype::hindexed_block(-1, &[0], int), Class::Arg, "blocklength is -1");
    refused(
        Datatype::struct_(&[-1], &[0], std::slice::from_ref(int)),
        Class::Arg,
        "blocklengths[0]",
    );
    refused(
        Datatype::simple_struct(&[-1], std::slice::from_ref(int)),
        Class::Arg,
        "blocklengths[0]",
    );
    refused(
        Datatype::struct_integer(&[-1], &[0], std::slice::from_ref(int)),
        Class::Arg,
        "struct_integer",
    );
}

#[test]
fn lists_of_different_length_are_refused() {
    let int = &Datatype::int();
    refused(Datatype::indexed(&[1], &[0, 1], int), Class::Arg, "1 blocklengths but 2 displ");
    refused(Datatype::hindexed(&[1, 1], &[0], int), Class::Arg, "2 blocklengths but 1 displ");
    refused(Datatype::struct_(&[1], &[0], &[]), Class::Arg, "1 blocklengths but 0 types");
    refused(
        Datatype::simple_struct(&[], std::slice::from_ref(int)),
        Class::Arg,
        "0 blocklengths but 1",
    );
    let made = Datatype::subarray(&[4, 4], &[1, 1], &[0], Order::C, int);
    refused(made, Class::Arg, "2 sizes but 1 starts");
}

#[test]
fn subarrays_outside_of_their_arrays_are_refused() {
    let int = &Datatype::int();
    let part = |size, subsize, start| {
        Datatype::subarray(&[8, size], &[8, subsize], &[0, start], Order::Fortran, int)
    };
    assert!(part(4, 4, 0).is_ok() && part(4, 1, 3).is_ok());
    refused(part(0, 1, 0), Class::Arg, "sizes[1] is 0");
    refused(part(4, 0, 0), Class::Arg, "subsizes[1] is 0: it lies between 1 and 4");
    refused(part(4, 5, 0), Class::Arg, "subsizes[1] is 5");
    refused(part(4, 2, 3), Class::Arg, "starts[1] is 3: it lies between 0 and 2");
    refused(part(4, 2, -1), Class::Arg, "starts[1] is -1");
    refused(Datatype::subarray(&[], &[], &[], Order::C, int), Class::Dims, "no dimensions");
}

#[test]
fn distributed_arrays_with_invalid_grids_are_refused() {
    use Distribution::{Block, Cyclic, None as Whole};
    let here = Architecture::NATIVE;
    let dealt = |size, rank, gsize, distribution, darg, psize| {
        let (gsizes, psizes) = ([gsize, 3], [psize, 1]);
        let (distribs, dargs) = ([distribution, Whole], [darg, None]);
        let int = Datatype::int();
        Datatype::darray(size, rank, &gsizes, &distribs, &dargs, &psizes, Order::C, &int)
    };
    assert!(dealt(4, 3, 10, Block, None, 4).is_ok());
    assert!(dealt(4, 3, 10, Cyclic, Some(i64::MAX), 4).is_ok());
    refused(dealt(5, 0, 10, Block, None, 4), Class::Arg, "size is 5, but psizes [4, 1]");
    refused(
        dealt(4, 4, 10, Block, None, 4),
        Class::Rank,
        "rank is 4: the grid has the ranks 0 to 3",
    );
    refused(dealt(4, -1, 10, Block, None, 4), Class::Rank, "rank is -1");
    refused(dealt(4, 0, 0, Block, None, 4), Class::Arg, "gsizes[0] is 0");
    refused(dealt(0, 0, 10, Block, None, 0), Class::Arg, "psizes[0] is 0");
    refused(dealt(4, 0, 10, Block, Some(2), 4), Class::Arg, "4 blocks of dargs[0] 2 don't reach");
    refused(dealt(4, 0, 10, Cyclic, Some(0), 4), Class::Arg, "dargs[0] is 0");
    refused(dealt(4, 0, 10, Whole, None, 4), Class::Arg, "the grid has one process there");
    // A dimension that isn't distributed ignores its argument.
    for darg in [0, -1, -7, i32::MIN.into(), 3] {
        let all = dealt(1, 0, 10, Whole, Some(darg), 1).unwrap();
        let [found, expected] =
            [all.clone(), dealt(1, 0, 10, Whole, None, 1).unwrap()].map(|all| all.bounds(&here));
        assert_eq!(found, expected);
        assert_eq!(all.to_string().parse::<Datatype>().as_ref(), Ok(&all));
        assert_eq!(all.contents(Counts::Large).unwrap().rebuild(), Ok(all));
    }
}

#[test]
fn fortran_kinds_beyond_external32_are_refused() {
    assert!(Datatype::f90_real(Some(33), Some(4931)).is_ok());
    refused(Datatype::f90_real(None, None), Class::Arg, "give at least one");
    refused(Datatype::f90_real(Some(34), None), Class::Arg, "precision is 34");
    refused(Datatype::f90_complex(None, Some(4932)), Class::Arg, "range is 4932");
    refused(Datatype::f90_integer(39), Class::Arg, "range is 39");
    let bytes = |made: Result<Datatype>, on: Architecture| made.unwrap().bounds(&on).unwrap().size;
    let external = Architecture::EXTERNAL32;
    let reals = [(6, 37, 4), (7, 37, 8), (6, 38, 8), (15, 307, 8), (16, 307, 16), (15, 308, 16)];
    for (precision, range, size) in reals {
        let made = Datatype::f90_real(Some(precision), Some(range));
        assert_eq!(bytes(made, external), size, "{precision} {range}");
        let made = Datatype::f90_complex(Some(precision), Some(range));
        assert_eq!(bytes(made, external), 2 * size, "{precision} {range}");
    }
    for (range, size) in [(2, 1), (3, 2), (4, 2), (5, 4), (9, 4), (10, 8), (18, 8), (19, 16)] {
        assert_eq!(bytes(Datatype::f90_integer(range), external), size, "{range}");
    }
    // x87 has 18 digits, so it can't provide 19. IBM's double-double has the digits, but not the
    // range.
    assert_eq!(bytes(Datatype::f90_real(Some(18), None), Architecture::I686), 12);
    assert_eq!(bytes(Datatype::f90_real(Some(19), None), Architecture::I686), 16);
    let wide = Datatype::f90_real(Some(20), Some(400)).unwrap();
    let error = wide.bounds(&Architecture::PPC64).unwrap_err();
    assert_eq!(error.class(), Class::Type);
    assert!(error.to_string().contains("ppc64 has no type for FR:20:400"), "{error}");
}

#[test]
fn value_index_makes_named_or_unnamed_pairs() {
    for (value, index, named) in [
        (Basic::Float, Basic::Int, Basic::FloatInt),
        (Basic::LongDouble, Basic::Int, Basic::LongDoubleInt),
        (Basic::Int, Basic::Int, Basic::TwoInt),
        (Basic::Integer, Basic::Integer, Basic::TwoInteger),
    ] {
        let made = Datatype::value_index(&value.into(), &index.into());
        let made = made.unwrap();
        assert_eq!(made.as_basic(), Some(named));
    }
    let made = Datatype::value_index(&Datatype::double(), &Datatype::int64()).unwrap();
    assert_eq!(made.combiner().mpi_name(), "MPI_COMBINER_VALUE_INDEX");
    let made = Datatype::value_index(&Datatype::int8(), &Datatype::double());
    refused(made, Class::Type, "i8 and d make no pair");
    let long = Datatype::indexed(
        &[1; 9999],
        &Vec::from_iter((0..9999).map(|at| 3 * at)),
        &Datatype::int(),
    );
    let error = Datatype::value_index(&long.unwrap(), &Datatype::int()).unwrap_err().to_string();
    assert!(error.len() < 200 && error.contains("and i make no pair"), "{error}");
    let made = Datatype::value_index(&Datatype::c_float_complex(), &Datatype::int());
    refused(made, Class::Type, "fC and i make no pair");
}

#[test]
fn numbers_beyond_64_bits_are_refused_not_wrapped() {
    let most = i64::MAX;
    let int = &Datatype::int();
    refused(Datatype::resized(most, 1, int), Class::Arg, "past 64 bits");
    let all = Datatype::contiguous(most, int).unwrap();
    refused(Datatype::contiguous(3, &all), Class::ValueTooLarge, "number of basic items");
    refused(Datatype::vector(most, 4, 0, int), Class::ValueTooLarge, "number of basic items");
    let wide = [
        all,
        Datatype::vector(3, 1, most, int).unwrap(),
        Datatype::vector(3, 1, most, &Datatype::resized(0, most, int).unwrap()).unwrap(),
        Datatype::hvector(most, 1, most, &Datatype::lb()).unwrap(),
        Datatype::indexed(&[1, 1], &[i64::MIN, most], &Datatype::byte()).unwrap(),
        Datatype::struct_(&[2], &[most - 2], std::slice::from_ref(int)).unwrap(),
        Datatype::simple_struct(&[most, 1], &[Datatype::byte(), int.clone()]).unwrap(),
        Datatype::subarray(&[most, most, most], &[1; 3], &[0; 3], Order::C, int).unwrap(),
        Datatype::resized(i64::MIN, most, int)
            .and_then(|child| Datatype::hindexed_block(1, &[-1], &child))
            .unwrap(),
    ];
    for datatype in wide {
        let error = datatype.bounds(&Architecture::NATIVE).expect_err(&datatype.to_string());
        assert_eq!(error.class(), Class::ValueTooLarge, "{datatype}");
        assert!(matches!(error, Error::Overflow { .. }));
    }
}

#[test]
fn nesting_beyond_the_limit_is_refused() {
    let mut datatype = Datatype::int();
    for _ in 1..Datatype::MAX_DEPTH {
        datatype = Datatype::contiguous(1, &datatype).unwrap();
    }
    assert_eq!(datatype.bounds(&Architecture::NATIVE).unwrap().extent(), 4);
    refused(Datatype::contiguous(1, &datatype), Class::Type, "would nest 257 constructors");
}

#[test]
fn shared_subtrees_are_visited_once() {
    // A walk along each path would visit 2^60 nodes.
    let mut datatype = Datatype::resized(0, 8, &Datatype::byte()).unwrap();
    for _ in 0..60 {
        let pair = [datatype.clone(), datatype];
        datatype = Datatype::struct_(&[1, 1], &[0, 8], &pair).unwrap();
    }
    assert_eq!(datatype.signature().count, 1 << 60);
    assert_eq!(datatype.bounds(&Architecture::NATIVE).unwrap().size, 1 << 60);
    assert!(datatype.to_string().len() < 2000);
}

/// The examples of chapter 5. Those that MPI-5.0 renumbered have their numbers of MPI-1.1.
mod standard {
    use super::*;
    use shipable::oracle::{bounds, expand};

    const X86_64: Architecture = Architecture::X86_64;

    fn offsets(datatype: &Datatype) -> Vec<i64> {
        expand(datatype, &X86_64, 1).unwrap().iter().map(|item| item.offset).collect()
    }

    /// {(double, 0), (char, 8)}, extent 16.
    fn record() -> Datatype {
        let members = [Datatype::double(), Datatype::char()];
        Datatype::struct_(&[1, 1], &[0, 8], &members).unwrap()
    }

    #[test]
    fn contiguous_repeats_at_the_extent() {
        assert_eq!(record().bounds(&X86_64).unwrap().extent(), 16);
        let three = Datatype::contiguous(3, &record()).unwrap();
        assert_eq!(offsets(&three), [0, 8, 16, 24, 32, 40]);
        assert_eq!(three.to_string(), "U1(3U2(S:2:d/1/0,c/1/8))");
    }

    #[test]
    fn vector_places_blocks_at_the_stride() {
        let two = Datatype::vector(2, 3, 4, &record()).unwrap();
        assert_eq!(offsets(&two), [0, 8, 16, 24, 32, 40, 64, 72, 80, 88, 96, 104]);
        let back = Datatype::vector(3, 1, -2, &record()).unwrap();
        assert_eq!(offsets(&back), [0, 8, -32, -24, -64, -56]);
        let found = back.bounds(&X86_64).unwrap();
        assert_eq!((found.lb, found.ub, found.true_ub), (-64, 16, 9));
    }

    #[test]
    fn indexed_places_blocks_at_their_displacements() {
        let two = Datatype::indexed(&[3, 1], &[4, 0], &record()).unwrap();
        assert_eq!(offsets(&two), [64, 72, 80, 88, 96, 104, 0, 8]);
    }

    #[test]
    fn struct_places_members_at_their_displacements() {
        let members = [Datatype::float(), record(), Datatype::char()];
        let made = Datatype::struct_(&[2, 1, 3], &[0, 16, 26], &members).unwrap();
        assert_eq!(offsets(&made), [0, 4, 16, 24, 26, 27, 28]);
        assert_eq!(made.to_string(), "U1(S:3:f/2/0,U2(S:2:d/1/0,c/1/8)/1/16,c/3/26)");
    }

    #[test]
    fn markers_set_sticky_bounds() {
        let members = [Datatype::lb(), Datatype::int(), Datatype::ub()];
        let one = Datatype::struct_(&[1, 1, 1], &[-3, 0, 6], &members).unwrap();
        let found = one.bounds(&X86_64).unwrap();
        assert_eq!((found.lb, found.ub, found.extent(), found.size), (-3, 6, 9, 4));
        let two = Datatype::contiguous(2, &one).unwrap();
        let found = two.bounds(&X86_64).unwrap();
        assert_eq!((found.lb, found.ub), (-3, 15));
        assert_eq!(offsets(&two), [0, 9]);
        // Sticky: the markers of a member set the bounds of the struct.
        let members = [two, Datatype::double()];
        let more = Datatype::struct_(&[1, 1], &[0, 64], &members).unwrap();
        let found = more.bounds(&X86_64).unwrap();
        assert_eq!((found.lb, found.ub, found.true_ub), (-3, 15, 72));
        assert_eq!(bounds(&more, &X86_64).unwrap().ub, 15);
    }

    /// The epsilon of section 5.1.6.
    #[test]
    fn extents_are_padded_unless_a_marker_sets_the_upper_bound() {
        let extent = |made: Result<Datatype>| {
            let made = made.unwrap();
            let (found, slow) = (made.bounds(&X86_64).unwrap(), bounds(&made, &X86_64).unwrap());
            assert_eq!((found.lb, found.ub), (slow.lb, slow.ub), "{made}");
            found.extent()
        };
        let int = Datatype::int();
        let blocks = |int: &Datatype| {
            [
                extent(Datatype::hvector(2, 1, 5, int)),
                extent(Datatype::hindexed(&[1, 1], &[6, 1], int)),
                extent(Datatype::hindexed_block(1, &[0, -5], int)),
                extent(Datatype::struct_(&[1, 1], &[0, 5], &[int.clone(), int.clone()])),
            ]
        };
        assert_eq!(blocks(&int), [12; 4]);
        assert_eq!(extent(Datatype::contiguous(2, &Datatype::hvector(2, 1, 5, &int).unwrap())), 24);
        // Bounds that are set at any depth prevent padding.
        let set = Datatype::resized(0, 4, &int).unwrap();
        assert_eq!(blocks(&set), [9; 4]);
        assert_eq!(blocks(&Datatype::dup(&set).unwrap()), [9; 4]);
        // A lower bound doesn't prevent padding.
        let low = Datatype::struct_(&[1, 1], &[-1, 0], &[Datatype::lb(), int]).unwrap();
        assert_eq!(extent(Datatype::hvector(2, 1, 5, &low)), 16);
    }

    #[test]
    fn resized_replaces_markers() {
        let members = [Datatype::lb(), Datatype::int(), Datatype::ub()];
        let marked = Datatype::struct_(&[1, 1, 1], &[-3, 0, 6], &members).unwrap();
        let found = Datatype::resized(0, 4, &marked).unwrap().bounds(&X86_64).unwrap();
        assert_eq!((found.lb, found.ub, found.true_lb, found.true_ub), (0, 4, 0, 4));
    }

    #[test]
    fn transposed_matrix_lists_its_columns() {
        // Example 3.31: the columns of a row-major array of 100 by 100 REALs.
        let row = Datatype::vector(100, 1, 100, &Datatype::real()).unwrap();
        let transpose = Datatype::hvector(100, 1, 4, &row).unwrap();
        assert_eq!(transpose.to_string(), "U1(HV:U2(V:R:100:1:100):100:1:4)");
        let places = offsets(&transpose);
        assert_eq!(places[..3], [0, 400, 800]);
        assert_eq!(places[100..103], [4, 404, 804]);
    }

    #[test]
    fn subarrays_have_the_extent_of_the_array() {
        // Half of the columns of a 100 by 100 array.
        let (sizes, subsizes, starts) = ([100, 100], [100, 50], [0, 50]);
        let double = Datatype::double();
        let half = Datatype::subarray(&sizes, &subsizes, &starts, Order::C, &double).unwrap();
        let found = half.bounds(&X86_64).unwrap();
        assert_eq!((found.lb, found.extent(), found.size), (0, 80_000, 40_000));
        assert_eq!((found.true_lb, found.true_ub), (400, 80_000));
    }

    #[test]
    fn distributed_arrays_assign_each_element_to_one_process() {
        use Distribution::{Block, Cyclic};
        let (gsizes, psizes) = ([5, 7], [2, 3]);
        for (distribs, dargs) in [
            ([Block, Cyclic], [None, Some(2)]),
            ([Cyclic, Block], [None, Some(4)]),
            ([Cyclic, Cyclic], [Some(3), None]),
        ] {
            for order in [Order::C, Order::Fortran] {
                let mut all = Vec::new();
                for rank in 0..6 {
                    let int = Datatype::int();
                    let share =
                        Datatype::darray(6, rank, &gsizes, &distribs, &dargs, &psizes, order, &int);
                    let share = share.unwrap();
                    let (found, slow) =
                        (share.bounds(&X86_64).unwrap(), bounds(&share, &X86_64).unwrap());
                    assert_eq!((found.extent(), found.size), (5 * 7 * 4, slow.size));
                    assert_eq!((found.true_lb, found.true_ub), (slow.true_lb, slow.true_ub));
                    assert_eq!(share.signature().count as i64, slow.size / 4);
                    all.extend(offsets(&share));
                }
                all.sort_unstable();
                assert_eq!(all, (0..35).map(|n| 4 * n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn power_rule_limits_the_alignment_of_doubles() {
        let (aix, double, int) = (Architecture::AIX32, Datatype::double(), Datatype::int());
        let layout = |members: [&Datatype; 2]| {
            let made = Datatype::simple_struct(&[1, 1], &members.map(Clone::clone)).unwrap();
            let items = expand(&made, &aix, 1).unwrap();
            (items[1].offset, made.bounds(&aix).unwrap().extent())
        };
        assert_eq!(layout([&double, &int]), (8, 16));
        assert_eq!(layout([&int, &double]), (4, 12));
        let first = Datatype::simple_struct(&[1, 1], &[double, int.clone()]).unwrap();
        assert_eq!(layout([&int, &first]), (4, 20));
        assert_eq!(layout([&first, &int]), (8, 24));
    }
}

#[test]
fn legacy_constructors_differ_only_in_the_combiner() {
    let int = &Datatype::int();
    let pairs = [
        (Datatype::hvector(2, 1, 9, int), Datatype::hvector_integer(2, 1, 9, int)),
        (Datatype::hindexed(&[2], &[9], int), Datatype::hindexed_integer(&[2], &[9], int)),
        (
            Datatype::struct_(&[2], &[9], std::slice::from_ref(int)),
            Datatype::struct_integer(&[2], &[9], std::slice::from_ref(int)),
        ),
    ];
    for (new, old) in pairs {
        let (new, old) = (new.unwrap(), old.unwrap());
        assert_eq!(old.combiner().mpi_name(), format!("{}_INTEGER", new.combiner().mpi_name()));
        let native = Architecture::NATIVE;
        assert_eq!(old.bounds(&native), new.bounds(&native));
    }
}
