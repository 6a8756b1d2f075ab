//! Valid datatypes of operations, and their items: rules T1 to T5, 19 to 21 and 28.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    Architecture, Class, Datatype, Destination, Info, Op, Origin, PROC_NULL, Rank, Shipable, Type,
    Window, c,
};

use crate::{bytewise, everywhere, expect, job, wrong};

#[test]
fn rule_t2_a_locale_specific_target_type_is_refused() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let locale = bytewise(rank);
        let error = window.fence(|epoch| epoch.put(&[1.0f64, 2.0], 1, 0, 1, &locale)).unwrap_err();
        let text = locale.to_string();
        expect(&error, Class::Type, &["locale-specific", &text, "type_send", "put at rank"]);
        let members = [Datatype::int(), Datatype::double()];
        let record = rank.commit(&Datatype::struct_(&[1, 1], &[0, 8], &members).unwrap()).unwrap();
        let error = window.fence(|epoch| epoch.put(&[0u8; 12], 1, 0, 1, &record)).unwrap_err();
        expect(&error, Class::Type, &["simple_struct", "pass rank.type_of::<T>()"]);
        expect(&error, Class::Type, &["target 1", "window 1", "fence epoch 1"]);
        window.free().unwrap();
    });
}

#[test]
fn errors_abbreviate_long_types() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let gaps = Vec::from_iter((0..9999).map(|block| 16 * block));
        let [single, twice] = [gaps, vec![0; 9999]].map(|places| {
            let datatype = Datatype::hindexed(&[1; 9999], &places, &Datatype::double());
            rank.commit(&datatype.unwrap()).unwrap()
        });
        let beginning = &single.to_string()[..60];
        let error = window.fence(|epoch| epoch.put(&[1.0f64], 1, 0, 1, &single)).unwrap_err();
        expect(&error, Class::Type, &["locale-specific", beginning, "type_send", "put at rank"]);
        assert!(error.to_string().len() < 700, "{error}");
        let double = rank.type_of::<f64>().unwrap();
        let mut memory = rank.buffer::<f64>(10).unwrap();
        for (datatype, words) in [(&single, "reach bytes"), (&twice, "touch a byte twice")] {
            let mut error = None;
            let outcome = window.fence(|epoch| {
                let to = Destination::typed(&mut memory, 1, datatype);
                error = epoch.get(to, 1, 0, 9999, &double).err();
                Ok(())
            });
            outcome.unwrap();
            let error = error.unwrap();
            expect(&error, error.class(), &[words, "1 of U1(HX:d:9999:"]);
            assert!(error.to_string().len() < 500, "{error}");
        }
        window.free().unwrap();
    });
}

#[test]
fn same_layout_allows_byte_displacements_only_where_the_targets_layout_is_the_same() {
    let architectures = [Architecture::S390X, Architecture::S390X, Architecture::I686];
    for (architectures, routes) in [
        (architectures, Routes::Best),
        ([Architecture::NATIVE, Architecture::NATIVE, Architecture::M68K], Routes::Best),
        ([Architecture::NATIVE, Architecture::NATIVE, Architecture::M68K], Routes::Message),
    ] {
        job(&architectures, routes, |rank| {
            let world = rank.world();
            let info = Info::default().set("target_types", "same_layout").unwrap();
            let mut window = Window::allocate(world, 80, 8, &info).unwrap();
            let locale = bytewise(&rank);
            let me = world.rank();
            let outcome = window.fence(|epoch| match me {
                0 => epoch.put(&[1.0f64, 2.0], 1, 0, 1, &locale),
                _ => Ok(()),
            });
            outcome.unwrap();
            if me == 1 {
                assert_eq!(window.get::<f64>(2).unwrap(), 2.0);
            }
            let outcome = window.fence(|epoch| match me {
                0 => epoch.put(&[1.0f64, 2.0], 2, 0, 1, &locale),
                _ => Ok(()),
            });
            if me == 0 {
                // A stride in bytes, where a double aligns otherwise.
                let says = ["same_layout", "MPI_DOUBLE has 8 bytes aligned to 8"];
                expect(&outcome.unwrap_err(), Class::Type, &says);
            }
            window.free().unwrap();
            rank.finalize().unwrap();
        });
    }
}

/// B sends a portable type to A. A put with it to B arrives, a put with it to C has class TYPE
/// (proposal 4, docs/proposals.md).
#[test]
fn rules_t4_and_t5_a_foreign_type_serves_only_its_builder() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let me = world.rank();
        let every_other = Datatype::vector(2, 1, 2, &Datatype::double()).unwrap();
        let every_other = rank.commit(&every_other).unwrap();
        let foreign = match me {
            0 => Some(world.type_recv(1, 7).unwrap()),
            1 => {
                world.type_send(&every_other, 0, 7).unwrap();
                None
            }
            _ => None,
        };
        if let Some(foreign) = &foreign {
            assert_eq!(foreign.builder(), 1);
            assert_eq!(foreign.form().tag(), longshore::Tag::Locale);
            assert_eq!(foreign.to_string(), every_other.to_string());
        }
        window
            .fence(|epoch| match &foreign {
                Some(foreign) => epoch.put(&[1.0f64, 2.0], 1, 1, 1, foreign),
                None => Ok(()),
            })
            .unwrap();
        if me == 1 {
            let found: Vec<f64> = (0..5).map(|at| window.get(at).unwrap()).collect();
            assert_eq!(found, [0.0, 1.0, 0.0, 2.0, 0.0]);
        }
        let mut back = [0.0f64; 2];
        window
            .fence(|epoch| match &foreign {
                Some(foreign) => epoch.get(&mut back, 1, 1, 1, foreign),
                None => Ok(()),
            })
            .unwrap();
        let outcome = window.fence(|epoch| match &foreign {
            Some(foreign) => epoch.put(&[1.0f64, 2.0], 2, 1, 1, foreign),
            None => Ok(()),
        });
        if me == 0 {
            assert_eq!(back, [1.0, 2.0]);
            let words = ["process 1", "process 2", "type_send", "target 2"];
            expect(&outcome.unwrap_err(), Class::Type, &words);
        }
        window.free().unwrap();
    });
}

#[test]
fn a_locale_specific_type_serves_its_own_rank_after_type_send() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 1, &Info::default()).unwrap();
        let record = Datatype::struct_(&[1, 1], &[4, 16], &[Datatype::int(), Datatype::double()]);
        let record = rank.commit(&record.unwrap()).unwrap();
        let me = world.rank();
        let origin = Datatype::simple_struct(&[1, 1], &[Datatype::int(), Datatype::double()]);
        let origin = rank.commit(&origin.unwrap()).unwrap();
        let memory = rank.buffer::<u8>(32).unwrap();
        let data = || Origin::typed(&memory, 1, &origin);
        let refused = window.fence(|epoch| epoch.put(data(), me, 0, 1, &record)).unwrap_err();
        expect(&refused, Class::Type, &["S:2:i/1/4,d/1/16"]);
        world.type_send(&record, me, 0).unwrap();
        let foreign = world.type_recv(me, 0).unwrap();
        window.fence(|epoch| epoch.put(data(), me, 0, 1, &foreign)).unwrap();
        window.free().unwrap();
    });
}

#[test]
fn rule_19_signatures_must_match() {
    wrong(
        Class::Type,
        &["signatures differ", "2 MPI_DOUBLE", "1 MPI_DOUBLE", "use the same count at both"],
        |epoch, double| epoch.put(&[1.0f64, 2.0], 1, 0, 1, double),
    );
    wrong(
        Class::Type,
        &["1 MPI_INT64_T at the origin", "a Rust i64 is MPI_INT64_T", "Datatype::int64()"],
        |epoch, double| epoch.put(&[1i64], 1, 0, 1, double),
    );
}

#[test]
fn rule_20_overlapping_destinations_are_refused() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let twice = Datatype::indexed_block(1, &[0, 0], &Datatype::double()).unwrap();
        let twice = rank.commit(&twice).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let outcome = window.fence(|epoch| epoch.put(&[1.0f64, 2.0], 1, 0, 1, &twice));
        expect(&outcome.unwrap_err(), Class::Type, &["touch a byte twice", &twice.to_string()]);
        // A get may read a byte twice, but not write it twice.
        let mut back = [0.0f64; 2];
        window.fence(|epoch| epoch.get(&mut back, 1, 0, 1, &twice)).unwrap();
        let mut room = rank.buffer::<f64>(2).unwrap();
        let outcome = window.fence(|epoch| {
            let room = longshore::Destination::typed(&mut room, 1, &twice);
            epoch.get(room, 1, 0, 2, &double)
        });
        expect(&outcome.unwrap_err(), Class::Type, &["touch a byte twice"]);
        window.free().unwrap();
    });
}

#[test]
fn rule_28_a_value_that_does_not_fit_stops_its_operation() {
    // A long has 8 bytes at rank 0 and 4 at rank 1.
    job(&[Architecture::S390X, Architecture::I686], Routes::Best, |rank| {
        let world = rank.world();
        let mut window = Window::allocate(world, 80, 1, &Info::default()).unwrap();
        let long = rank.commit(&Datatype::long()).unwrap();
        let mut memory = rank.buffer::<i64>(4).unwrap();
        if world.rank() == 0 {
            memory.write(0, &[7, 8, 1 << 40, 9]).unwrap();
        }
        let outcome = window.fence(|epoch| match world.rank() {
            0 => epoch.put(Origin::typed(&memory, 4, &long), 1, 0, 4, &long),
            _ => Ok(()),
        });
        if world.rank() == 0 {
            let words = [
                "refused",
                "element 2",
                "1099511627776",
                "MPI_LONG",
                "put at rank 0",
                "target 1",
                "window 1",
                "bytes 0..16",
                "fence epoch 1",
            ];
            expect(&outcome.unwrap_err(), Class::Conversion, &words);
        } else {
            outcome.unwrap();
            let found: Vec<i32> = (0..4).map(|at| window.get(4 * at).unwrap()).collect();
            assert_eq!(found, [7, 8, 0, 0]);
        }
        // On a get, the origin converts, so it finds the value.
        if world.rank() == 0 {
            window.write(0, &[5i64, -1 << 50]).unwrap();
        }
        let mut here = rank.buffer::<i32>(2).unwrap();
        let outcome = window.fence(|epoch| match world.rank() {
            1 => {
                let room = longshore::Destination::typed(&mut here, 2, &long);
                epoch.get(room, 0, 0, 2, &long)
            }
            _ => Ok(()),
        });
        if world.rank() == 1 {
            expect(
                &outcome.unwrap_err(),
                Class::Conversion,
                &["element 1", "-1125899906842624", "get at rank 1", "bytes 0..16", "fence epoch"],
            );
            assert_eq!(here.to_vec().unwrap(), [5, 0]);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
struct Battery {
    cells: [f32; 2],
    charge: c::Long,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
struct Housekeeping {
    tag: u8,
    battery: [Battery; 3],
}

// The long of this program's slices must have 64 bits.
#[cfg(target_pointer_width = "64")]
#[test]
fn rule_28_a_value_that_does_not_fit_is_named_by_its_field() {
    let full = |at: usize| {
        let mut housekeeping = Housekeeping::default();
        housekeeping.battery[at].charge = c::Long(1 << 40);
        housekeeping
    };
    job(&[Architecture::S390X, Architecture::I686], Routes::Best, |rank| {
        let world = rank.world();
        let record = rank.type_of::<Housekeeping>().unwrap();
        let mut window = Window::allocate(world, 400, 1, &Info::default()).unwrap();
        let named = |outcome: longshore::Result<()>, words: &[&str]| {
            expect(&outcome.unwrap_err(), Class::Conversion, words);
        };
        // The target names the field of its window, by the names that came with the form.
        for (count, path) in [
            (1, "field battery[2].charge (MPI_LONG): 1099511627776 "),
            (2, "[1].battery[2].charge"),
        ] {
            let mut records = vec![Housekeeping::default(); count];
            records[count - 1] = full(2);
            let outcome = window.fence(|epoch| match world.rank() {
                0 => epoch.put(&records, 1, 0, count as i64, &record),
                _ => Ok(()),
            });
            match world.rank() {
                0 => named(outcome, &["refused", path, "put at rank 0"]),
                _ => outcome.unwrap(),
            }
        }
        // The origin of a get names the field of its own memory.
        let long = rank.type_of::<c::Long>().unwrap();
        let mut back = [Housekeeping::default()];
        if world.rank() == 0 {
            window.write(0, &[full(1)]).unwrap();
        }
        let mut here = rank.buffer::<Housekeeping>(1).unwrap();
        let outcome = window.fence(|epoch| match world.rank() {
            1 => epoch.get(Destination::typed(&mut here, 1, &record), 0, 0, 1, &record),
            _ => Ok(()),
        });
        match world.rank() {
            1 => named(outcome, &["field battery[1].charge", "get at rank 1"]),
            _ => outcome.unwrap(),
        }
        // Elements that aren't a struct's have no field.
        let outcome = window.fence(|epoch| match world.rank() {
            0 => epoch.put(&[c::Long(1 << 40)], 1, 0, 1, &long),
            _ => Ok(()),
        });
        match world.rank() {
            0 => named(outcome, &["element 0 (MPI_LONG): 1099511627776 "]),
            _ => outcome.unwrap(),
        }
        // A rank's own memory may be the one that can't hold a value of this machine.
        match world.rank() {
            0 => window.read(0, &mut back).unwrap(),
            _ => named(window.write(0, &[full(0)]), &["field battery[0].charge"]),
        }
        world.barrier().unwrap();
        window.free().unwrap();
    });
}

#[test]
fn rule_21_an_accumulate_needs_an_operation_that_its_type_supports() {
    wrong(
        Class::Op,
        &["MPI_BAND isn't defined on MPI_DOUBLE", "accumulate at rank 0"],
        |epoch, double| epoch.accumulate(&[1.0f64], 1, 0, 1, double, Op::Band),
    );
    wrong(Class::Op, &["MPI_MAXLOC isn't defined on MPI_DOUBLE", "pairs"], |epoch, double| {
        epoch.accumulate(&[1.0f64], 1, 0, 1, double, Op::Maxloc)
    });
    wrong(Class::Op, &["MPI_NO_OP accumulates nothing", "get_accumulate"], |epoch, double| {
        epoch.accumulate(&[1.0f64], 1, 0, 1, double, Op::NoOp)
    });
    wrong(Class::Op, &["MPI_LAND isn't defined", "fetch_and_op at rank 0"], |epoch, _| {
        epoch.fetch_and_op(1.0f64, 1, 0, Op::Land).map(drop)
    });
}

#[test]
fn rule_21_all_sides_must_have_one_predefined_type() {
    let target = |rank: &Rank, datatype: Datatype| rank.commit(&datatype).unwrap();
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let (int, double) = (Datatype::int(), Datatype::double());
        let mixed = Datatype::simple_struct(&[1, 1], &[double.clone(), int.clone()]).unwrap();
        let mixed = target(rank, mixed);
        let pair = target(rank, longshore::shipable::Basic::DoubleInt.into());
        let bytes = [0u8; 64];
        let mut expect_type = |origin: &Type, target: &Type, words: &[&str]| {
            let error = window.fence(|epoch| match world.rank() {
                0 => epoch.accumulate(
                    Origin::typed(&bytes[..], 1, origin),
                    1,
                    0,
                    1,
                    target,
                    Op::Replace,
                ),
                _ => Ok(()),
            });
            match world.rank() {
                0 => expect(&error.unwrap_err(), Class::Type, words),
                _ => error.unwrap(),
            }
        };
        expect_type(
            &mixed,
            &mixed,
            &["isn't made of one predefined type", "target", "accumulate at rank 0"],
        );
        // A pair's signature is that of its members.
        expect_type(&mixed, &pair, &["isn't made of one predefined type", "origin"]);
        expect_type(&pair, &mixed, &["isn't made of one predefined type", "target"]);
        assert_eq!(window.local().bytes(0, 80).unwrap(), [0; 80]);
        window.free().unwrap();
    });
}

#[test]
fn rule_21_fetch_and_op_and_compare_and_swap_need_one_element() {
    let words = ["takes one element of a predefined type", "fetch_and_op at rank 0"];
    wrong(Class::Type, &words, |epoch, _| epoch.fetch_and_op([1.0f64; 2], 1, 0, Op::Sum).map(drop));
    // Larger than any predefined type.
    wrong(Class::Type, &words, |epoch, _| epoch.fetch_and_op([1.0f64; 5], 1, 0, Op::Sum).map(drop));
    let swap = ["takes one element of a predefined type", "compare_and_swap at rank 0"];
    wrong(Class::Type, &swap, |epoch, _| epoch.compare_and_swap([1u64; 5], [0; 5], 1, 0).map(drop));
    let words = ["compare_and_swap", "is a floating-point type", "use an integer"];
    wrong(Class::Type, &words, |epoch, _| epoch.compare_and_swap(1.0f64, 0.0, 1, 0).map(drop));
}

#[test]
fn accumulates_obey_the_rules_of_puts_and_gets() {
    wrong(Class::RmaRange, &["bytes 80 to 88", "accumulate at rank 0"], |epoch, double| {
        epoch.accumulate(&[1.0f64], 1, 10, 1, double, Op::Sum)
    });
    wrong(Class::RmaRange, &["bytes 80 to 88", "fetch_and_op at rank 0"], |epoch, _| {
        epoch.fetch_and_op(1i64, 1, 10, Op::Sum).map(drop)
    });
    wrong(Class::Disp, &["-1"], |epoch, _| epoch.compare_and_swap(1i64, 1, 1, -1).map(drop));
    wrong(Class::Rank, &["no rank 9"], |epoch, _| {
        epoch.fetch_and_op(1i64, 9, 0, Op::Sum).map(drop)
    });
    wrong(Class::Count, &["-3"], |epoch, double| {
        epoch.accumulate(&[1.0f64], 1, 0, -3, double, Op::Sum)
    });
    wrong(Class::Type, &["signatures differ"], |epoch, double| {
        epoch.accumulate(&[1.0f64, 2.0], 1, 0, 1, double, Op::Sum)
    });
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let twice = rank
            .commit(&Datatype::indexed(&[1, 1], &[0, 0], &Datatype::double()).unwrap())
            .unwrap();
        let error = window
            .fence(|epoch| epoch.accumulate(&[1.0, 2.0], 1, 0, 1, &twice, Op::Sum))
            .unwrap_err();
        expect(&error, Class::Type, &["touch a byte twice", "accumulate"]);
        let mut room = [0u8; 80];
        let error = window
            .fence(|epoch| {
                let result = Destination::typed(&mut room[..], 1, &twice);
                epoch.get_accumulate(&[1.0, 2.0], result, 1, 0, 2, &double, Op::Sum)
            })
            .unwrap_err();
        expect(&error, Class::Type, &["touch a byte twice", "get_accumulate"]);
        // An operation on PROC_NULL does nothing.
        let fetched = window.fence(|epoch| {
            epoch.accumulate(&[1.0], PROC_NULL, 0, 1, &double, Op::Sum)?;
            epoch.fetch_and_op(7i32, PROC_NULL, 0, Op::Sum)?.wait()
        });
        assert_eq!(fetched.unwrap(), 0);
        window.free().unwrap();
    });
}

/// Struct types of many members have forms that are too long to be sent at once.
#[test]
fn long_types_reach_their_sender_and_go_around_a_ring() {
    let body = |rank: Rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        let places: Vec<i64> = (0..2000).map(|at| 12 * at).collect();
        let members = vec![Datatype::int(); 2000];
        let long = Datatype::struct_(&[1; 2000], &places, &members).unwrap();
        let long = rank.commit(&long).unwrap();
        assert!(long.form().encode().len() > 4 << 10);
        world.type_send(&long, me, 0).unwrap();
        let own = world.type_recv(me, 0).unwrap();
        assert_eq!(own.builder(), me as u32);
        world.type_send(&long, (me + 1) % size, 1).unwrap();
        let before = (me + size - 1) % size;
        assert_eq!(world.type_recv(before, 1).unwrap().builder(), before as u32);
        // Without a message.
        let mut window = Window::allocate(world, 24_000, 1, &Info::default()).unwrap();
        let data = [7u8; 24_000];
        let foreign = rank.foreign(&long).unwrap();
        for target in [&own, &foreign] {
            let origin = Origin::typed(&data[..], 1, &long);
            window.fence(|epoch| epoch.put(origin, me, 0, 1, target)).unwrap();
        }
        assert_eq!(window.get::<u8>(12 * 1999).unwrap(), 7);
        assert_eq!(window.get::<u8>(12 * 1999 + 4).unwrap(), 0);
        window.free().unwrap();
        rank.finalize().unwrap();
    };
    for seed in 0..3 {
        run(3, &Options { seed, ..Options::default() }, body).unwrap();
    }
    run_shared(3, &Options::default(), body).unwrap();
}
