//! Every rule that a program can break through the API, with its class and the words that help.

use longshore::job::Routes;
use longshore::sim::{Options, run};
use longshore::{
    Architecture, Assert, Class, Communicator, Datatype, Destination, Error, Info, LockType, Op,
    Origin, PROC_NULL, Rank, Type, Window,
};

fn job(architectures: &[Architecture], routes: Routes, body: impl Fn(Rank) + Sync) {
    let options = Options { architectures: architectures.to_vec(), routes, ..Options::default() };
    run(architectures.len() as u32, &options, body).unwrap();
}

/// Runs a test between like and unlike ranks, directly and by message.
fn everywhere(body: impl Fn(&Rank, &Communicator) + Sync) {
    let native = Architecture::NATIVE;
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    job(&[native; 3], Routes::Best, whole);
    job(&[native; 3], Routes::Message, whole);
    job(&[Architecture::S390X, Architecture::I686, native], Routes::Best, whole);
}

fn expect(error: &Error, class: Class, words: &[&str]) {
    assert_eq!(error.class(), class, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in: {error}");
    }
}

/// Rank 0 does something wrong in an epoch; all have the same window of 80 bytes in units of 8.
fn wrong(
    class: Class,
    words: &[&str],
    operation: impl Fn(&longshore::Epoch<'_, '_>, &Type) -> longshore::Result<()> + Sync,
) {
    everywhere(|rank, world| {
        for make in [Window::allocate, Window::allocate_shared] {
            let mut window = make(world, 80, 8, &Info::default()).unwrap();
            let double = rank.type_of::<f64>().unwrap();
            let me = world.rank();
            let outcome = window.fence(|epoch| match me {
                0 => operation(epoch, &double),
                _ => Ok(()),
            });
            match me {
                0 => expect(&outcome.unwrap_err(), class, words),
                _ => outcome.unwrap(),
            }
            // The job goes on, and nothing was written.
            assert_eq!(window.local().bytes(0, 80).unwrap(), [0; 80]);
            window.fence(|epoch| epoch.put(&[2.0f64], me, 9, 1, &double)).unwrap();
            assert_eq!(window.get::<f64>(9).unwrap(), 2.0);
            window.free().unwrap();
        }
    });
}

fn bytewise(rank: &Rank) -> Type {
    let gapped = Datatype::hvector(2, 1, 16, &Datatype::double()).unwrap();
    rank.commit(&gapped).unwrap()
}

#[test]
fn rule_t2_a_locale_specific_type_is_no_target_type() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let locale = bytewise(rank);
        let error = window.fence(|epoch| epoch.put(&[1.0f64, 2.0], 1, 0, 1, &locale)).unwrap_err();
        let text = locale.to_string();
        expect(&error, Class::Type, &["locale-specific", &text, "type_send", "put at rank"]);
        expect(&error, Class::Type, &["target 1", "window 1", "fence epoch 1"]);
        window.free().unwrap();
    });
}

#[test]
fn the_policy_same_layout_allows_them_between_like_ranks() {
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
                expect(&outcome.unwrap_err(), Class::Type, &["same_layout", "differs"]);
            }
            window.free().unwrap();
            rank.finalize().unwrap();
        });
    }
}

/// The main job's words: B sends a portable type to A; A puts to B with it: it arrives; A puts to C with it: TYPE.
#[test]
fn rules_t4_and_t5_a_foreign_type_goes_back_to_its_builder_alone() {
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
fn a_record_with_byte_offsets_goes_by_type_send_even_to_oneself() {
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
fn rule_14_displacements_stay_inside() {
    wrong(Class::Disp, &["-1", "negative"], |epoch, double| epoch.put(&[1.0f64], 1, -1, 1, double));
    let words = ["bytes 72 to 88", "80 bytes", "displacement 9", "target 1"];
    wrong(Class::RmaRange, &words, |epoch, double| epoch.put(&[1.0f64, 1.0], 1, 9, 2, double));
    wrong(Class::RmaRange, &["bytes 80 to 88"], |epoch, double| {
        epoch.put(&[1.0f64], 0, 10, 1, double)
    });
}

#[test]
fn rule_29_addresses_fit_the_targets_pointers() {
    wrong(Class::RmaRange, &["pointers"], |epoch, double| {
        epoch.put(&[1.0f64], 1, i64::MAX / 2, 1, double)
    });
}

#[test]
fn rule_19_signatures_match() {
    wrong(Class::Type, &["signatures differ", "2 of d", "1 of d"], |epoch, double| {
        epoch.put(&[1.0f64, 2.0], 1, 0, 1, double)
    });
    wrong(Class::Type, &["signatures differ", "i64"], |epoch, double| {
        epoch.put(&[1i64], 1, 0, 1, double)
    });
}

#[test]
fn rule_27_ranks_and_counts() {
    wrong(Class::Rank, &["no rank 3", "PROC_NULL"], |epoch, double| {
        epoch.put(&[1.0f64], 3, 0, 1, double)
    });
    wrong(Class::Rank, &["no rank -7"], |epoch, double| epoch.put(&[1.0f64], -7, 0, 1, double));
    wrong(Class::Count, &["-1"], |epoch, double| epoch.put(&[1.0f64], 1, 0, -1, double));
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        window.fence(|epoch| epoch.put(&[1.0f64], PROC_NULL, 99, 1, &double)).unwrap();
        world.send(&[1.0f64], PROC_NULL, 0).unwrap();
        assert_eq!(world.recv(&mut [0.0f64], PROC_NULL, 0).unwrap().count, 0);
        window.free().unwrap();
    });
}

#[test]
fn rule_20_what_is_written_does_not_overlap_itself() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let twice = Datatype::indexed_block(1, &[0, 0], &Datatype::double()).unwrap();
        let twice = rank.commit(&twice).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let outcome = window.fence(|epoch| epoch.put(&[1.0f64, 2.0], 1, 0, 1, &twice));
        expect(&outcome.unwrap_err(), Class::Type, &["touch a byte twice", &twice.to_string()]);
        // A get may read a place twice, not write it twice.
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
fn rule_26_windows_have_sizes_and_units() {
    everywhere(|_, world| {
        let info = Info::default();
        let me = i64::from(world.rank());
        let outcome = Window::allocate(world, if me == 1 { -8 } else { 8 }, 8, &info);
        let words: &[_] = if me == 1 { &["-8 bytes"] } else { &["failed at rank 1", "-8 bytes"] };
        expect(&outcome.err().unwrap(), Class::Size, words);
        let outcome = Window::allocate_shared(world, if me == 1 { -8 } else { 8 }, 8, &info);
        expect(&outcome.err().unwrap(), Class::Size, words);
        let outcome = Window::allocate(world, 8, if me == 2 { 0 } else { 8 }, &info);
        expect(&outcome.err().unwrap(), Class::Disp, &["unit of 0 bytes"]);
        let same = info.set("same_size", "true").unwrap();
        let outcome = Window::allocate(world, 8 + me, 1, &same);
        expect(&outcome.err().unwrap(), Class::Arg, &["same_size", "8", "9"]);
        let same = info.set("same_disp_unit", "true").unwrap();
        let outcome = Window::allocate(world, 8, 1 + me, &same);
        expect(&outcome.err().unwrap(), Class::Arg, &["same_disp_unit"]);
        let mixed = if me == 0 { "strict" } else { "same_layout" };
        let outcome = Window::allocate(world, 8, 1, &info.set("target_types", mixed).unwrap());
        expect(&outcome.err().unwrap(), Class::Arg, &["target_types"]);
        let unknown = info.set("target_types", "any").unwrap_err();
        expect(&unknown, Class::InfoValue, &["strict or same_layout"]);
        // Ranks may have windows of different sizes and units.
        let window = Window::allocate(world, 8 * me, 1 + me, &info).unwrap();
        assert_eq!((window.size(), window.disp_unit()), (8 * me as u64, 1 + me as u32));
        window.free().unwrap();
    });
}

#[test]
fn rule_15_operations_stay_within_what_is_attached() {
    everywhere(|rank, world| {
        let info = Info::default();
        let mut window = Window::create_dynamic(world, &info).unwrap();
        let other = Window::create_dynamic(world, &info).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let memory = window.attach(rank.buffer::<f64>(10).unwrap()).unwrap();
        let places = world.allgather(&[memory.address()]).unwrap();
        let me = world.rank();
        let mut refused = |place: i64, words: &[&str]| {
            let outcome = window.fence(|epoch| match me {
                0 => epoch.put(&[1.0, 2.0], 1, place, 2, &double),
                _ => Ok(()),
            });
            match me {
                0 => expect(&outcome.unwrap_err(), Class::RmaRange, words),
                _ => outcome.unwrap(),
            }
        };
        let place = places[1];
        let words = ["one attachment", "rule 15", "refused", "put at rank 0", "target 1"];
        refused(place + 72, &words);
        refused(place + 72, &[&format!("{:#x} to {:#x}", place + 72, place + 88)]);
        refused(place - 8, &words);
        // Nothing of it was written.
        assert_eq!(window.get::<f64>(places[me as usize] + 72).unwrap(), 0.0);
        let error = window.get::<f64>(places[me as usize] + 80).unwrap_err();
        expect(&error, Class::RmaRange, &["one attachment", "own window"]);
        // What is detached is out of reach.
        let memory = window.detach(memory).unwrap();
        world.barrier().unwrap();
        let outcome = window.fence(|epoch| match me {
            0 => epoch.put(&[1.0], 1, place, 1, &double),
            _ => Ok(()),
        });
        assert_eq!(outcome.is_err(), me == 0);
        let memory = window.attach(memory).unwrap();
        let error = other.detach(memory).err().unwrap();
        expect(
            &error,
            Class::RmaAttach,
            &["isn't attached to this window", "rule 15", "detach at"],
        );
        other.free().unwrap();
        window.free().unwrap();
    });
}

#[test]
fn rule_29_addresses_of_dynamic_windows_fit_the_targets_pointers() {
    let unlike = [Architecture::S390X, Architecture::I686, Architecture::NATIVE];
    job(&unlike, Routes::Best, |rank| {
        let world = rank.world();
        let mut window = Window::create_dynamic(world, &Info::default()).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let memory = window.attach(rank.buffer::<f64>(2).unwrap()).unwrap();
        let places = world.allgather(&[memory.address()]).unwrap();
        assert!(places[1] < 1 << 32, "{places:?}");
        let outcome = window.fence(|epoch| match world.rank() {
            0 => epoch.put(&[1.0], 1, places[1] + (1 << 32), 1, &double),
            // The other way an address is longer than the origin's pointers.
            1 => epoch.put(&[1.0], 2, places[2], 1, &double),
            _ => Ok(()),
        });
        match world.rank() {
            0 => expect(&outcome.unwrap_err(), Class::RmaRange, &["pointers of 4 bytes"]),
            _ => outcome.unwrap(),
        }
        assert_eq!(window.detach(memory).unwrap().get(0).unwrap() == 1.0, world.rank() == 2);
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

#[test]
fn rule_16_a_call_is_for_its_flavor() {
    everywhere(|rank, world| {
        let words =
            ["shared_query", "MPI_WIN_FLAVOR_SHARED", "MPI_WIN_FLAVOR_ALLOCATE", "target 1"];
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        expect(&window.shared_query(1).err().unwrap(), Class::RmaFlavor, &words);
        let words = ["attach is for", "MPI_WIN_FLAVOR_DYNAMIC", "MPI_WIN_FLAVOR_ALLOCATE"];
        expect(&window.attach(vec![0u8; 8]).err().unwrap(), Class::RmaFlavor, &words);
        let dynamic = Window::create_dynamic(world, &Info::default()).unwrap();
        let attached = dynamic.attach(vec![0u8; 8]).unwrap();
        expect(&window.detach(attached).unwrap_err(), Class::RmaFlavor, &["detach is for"]);
        expect(&dynamic.shared_query(0).err().unwrap(), Class::RmaFlavor, &["FLAVOR_DYNAMIC"]);
        dynamic.free().unwrap();
        window.free().unwrap();
        let memory = rank.buffer::<f64>(1).unwrap();
        let window = Window::create(world, memory, 8, &Info::default()).unwrap();
        let words = ["shared_query", "MPI_WIN_FLAVOR_CREATE"];
        expect(&window.shared_query(1).err().unwrap(), Class::RmaFlavor, &words);
        window.free().unwrap();
    });
}

/// Pointers of 4 bytes reach no 6 GiB, whoever brings them.
#[test]
fn rule_17_memory_is_shared_among_ranks_that_can_reach_it() {
    job(&[Architecture::NATIVE, Architecture::NATIVE, Architecture::I686], Routes::Best, |rank| {
        let world = rank.world();
        // Whoever brings a part could reach that one.
        let size = if world.rank() < 2 { 3 << 30 } else { 8 };
        let outcome = Window::allocate_shared(world, size, 8, &Info::default());
        let words = ["pointers of 4 bytes", "6442450952 bytes", "split_type", "allocate_shared"];
        expect(&outcome.err().unwrap(), Class::RmaShared, &words);
        // Those that can, do.
        let kind = Some(longshore::SplitType::Architecture);
        let alike = world.split_type(kind, 0).unwrap().unwrap();
        if alike.size() == 2 && Architecture::NATIVE.pointer().size == 8 {
            let window = Window::allocate_shared(&alike, size, 8, &Info::default()).unwrap();
            window.shared_query(0).unwrap().set((3 << 27) - 1, 2.5f64).unwrap();
            window.free().unwrap();
        }
        alike.free().unwrap();
        rank.finalize().unwrap();
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
        // On a get it is the origin that converts, and finds it.
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

#[test]
fn an_origin_lies_in_its_buffer() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let column = Datatype::vector(3, 1, 4, &Datatype::double()).unwrap();
        let column = rank.commit(&column).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let short = rank.buffer::<f64>(8).unwrap();
        let outcome =
            window.fence(|epoch| epoch.put(Origin::typed(&short, 1, &column), 1, 0, 3, &double));
        expect(&outcome.unwrap_err(), Class::Buffer, &["0 to 72", "64"]);
        window.free().unwrap();
    });
}

#[test]
fn calls_after_finalize_are_their_own_error() {
    everywhere_alone(|rank| {
        let mut window = Window::allocate(rank.world(), 8, 1, &Info::default()).unwrap();
        rank.finalize().unwrap();
        let error = window.fence(|_| Ok(())).unwrap_err();
        expect(&error, Class::Other, &["finalized"]);
        expect(&window.free().unwrap_err(), Class::Other, &["finalized"]);
    });
}

fn everywhere_alone(body: impl Fn(Rank) + Sync) {
    run(1, &Options::default(), &body).unwrap();
    body(longshore::init().unwrap());
}

#[test]
fn the_bodys_error_is_returned_after_the_closing_fence() {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let long = rank.type_of::<i64>().unwrap();
        let me = world.rank();
        let outcome = window.fence(|epoch| {
            epoch.put(&[41i64], me, 0, 1, &long)?;
            rank.commit(&Datatype::vector(-1, 1, 1, &Datatype::int())?)
        });
        expect(&outcome.unwrap_err(), Class::Count, &[]);
        assert_eq!(window.get::<i64>(0).unwrap(), 41);
        window.free().unwrap();
    });
}

#[test]
fn rule_21_an_accumulate_takes_a_predefined_operation_that_the_type_takes() {
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
fn rule_21_all_sides_are_of_one_predefined_type() {
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
fn rule_21_fetch_and_op_and_compare_and_swap_take_one_element() {
    let words = ["takes one element of a predefined type", "fetch_and_op at rank 0"];
    wrong(Class::Type, &words, |epoch, _| epoch.fetch_and_op([1.0f64; 2], 1, 0, Op::Sum).map(drop));
    let words = ["compare_and_swap", "is a floating-point type", "use an integer"];
    wrong(Class::Type, &words, |epoch, _| epoch.compare_and_swap(1.0f64, 0.0, 1, 0).map(drop));
}

#[test]
fn accumulates_obey_what_puts_and_gets_obey() {
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
        // Nobody is there, so nothing is done.
        let fetched = window.fence(|epoch| {
            epoch.accumulate(&[1.0], PROC_NULL, 0, 1, &double, Op::Sum)?;
            epoch.fetch_and_op(7i32, PROC_NULL, 0, Op::Sum)?.wait()
        });
        assert_eq!(fetched.unwrap(), 0);
        window.free().unwrap();
    });
}

/// Runs what each rank does to a window of 80 bytes in units of 8.
fn windows(body: impl Fn(&Communicator, &mut Window, &Type) + Sync) {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        body(world, &mut window, &rank.type_of::<f64>().unwrap());
        window.free().unwrap();
    });
}

#[test]
fn rule_2_operations_reach_targets_that_are_locked_or_started_to() {
    windows(|world, window, double| {
        let me = world.rank();
        let other = (me + 1) % world.size();
        let error = window
            .lock(me, LockType::Shared, |epoch| epoch.put(&[1.0f64], other, 0, 1, double))
            .unwrap_err();
        expect(
            &error,
            Class::RmaSync,
            &["isn't locked", "rule 2", "put at rank", "1 target locked"],
        );
        let error =
            window.lock(me, LockType::Shared, |epoch| epoch.flush(other, |_| Ok(()))).unwrap_err();
        expect(&error, Class::RmaSync, &["isn't locked", "rule 5", "flush at rank"]);
        let own = world.group().incl(&[me]).unwrap();
        window.post(&own, Assert::NONE).unwrap();
        let error = window
            .start(&own, Assert::NONE, |epoch| epoch.put(&[1.0f64], other, 0, 1, double))
            .unwrap_err();
        expect(&error, Class::RmaSync, &["start group", "rule 2", "started to 1 target"]);
        window.wait().unwrap();
        world.barrier().unwrap();
        assert_eq!(window.local().bytes(0, 80).unwrap(), [0; 80]);
    });
}

#[test]
fn rule_3_access_epochs_are_disjoint() {
    windows(|world, window, double| {
        let me = world.rank();
        let own = world.group().incl(&[me]).unwrap();
        let lock = LockType::Exclusive;
        let start = || window.start(&own, Assert::NONE, |_| Ok(())).unwrap_err();
        let error = window.lock(me, lock, |_| Ok(start())).unwrap();
        expect(&error, Class::RmaSync, &["start within", "rule 3", "1 target locked"]);
        let error = window.lock_all(|_| Ok(start())).unwrap();
        expect(&error, Class::RmaSync, &["start within", "all targets locked"]);
        let all = || window.lock_all(|_| Ok(())).unwrap_err();
        let error = window.lock(me, lock, |_| Ok(all())).unwrap();
        expect(&error, Class::RmaSync, &["lock within", "rule 3"]);
        window.post(&own, Assert::NONE).unwrap();
        let error = window.start(&own, Assert::NONE, |_| Ok(all())).unwrap();
        expect(&error, Class::RmaSync, &["lock within", "lock_all at rank", "started to 1 target"]);
        let error = window.fence(|_| Ok(())).unwrap_err();
        expect(&error, Class::RmaSync, &["fence while the window is exposed", "rule 3"]);
        window.wait().unwrap();
        world.barrier().unwrap();
        // All has been as if nothing had been tried.
        let value = [f64::from(me)];
        window.lock(me, lock, |epoch| epoch.put(&value, me, 0, 1, double)).unwrap();
        assert_eq!(window.get::<f64>(0).unwrap(), value[0]);
    });
}

#[test]
fn rules_4_and_5_calls_match() {
    windows(|world, window, _| {
        let me = world.rank();
        expect(
            &window.wait().unwrap_err(),
            Class::RmaSync,
            &["without a post", "rule 4", "no epoch"],
        );
        expect(&window.test().unwrap_err(), Class::RmaSync, &["without a post", "test at rank"]);
        let own = world.group().incl(&[me]).unwrap();
        window.post(&own, Assert::NONE).unwrap();
        let error = window.post(&own, Assert::NONE).unwrap_err();
        expect(&error, Class::RmaSync, &["post while the window is exposed", "rule 4"]);
        window.start(&own, Assert::NONE, |_| Ok(())).unwrap();
        assert!(window.test().unwrap());
        let twice = window.lock(me, LockType::Shared, |_| {
            Ok(window.lock(me, LockType::Shared, |_| Ok(())).unwrap_err())
        });
        expect(&twice.unwrap(), Class::RmaSync, &["locked by this rank already", "rule 5"]);
    });
}

#[test]
fn rule_6_a_window_is_exposed_or_locked() {
    windows(|world, window, _| {
        let (me, size) = (world.rank(), world.size());
        let before = world.group().incl(&[(me + size - 1) % size]).unwrap();
        let (next, after) = ((me + 1) % size, world.group().incl(&[(me + 1) % size]).unwrap());
        window.post(&before, Assert::NONE).unwrap();
        world.barrier().unwrap();
        for lock_type in [LockType::Shared, LockType::Exclusive] {
            let error = window.lock(next, lock_type, |_| Ok(())).unwrap_err();
            expect(&error, Class::RmaSync, &["exposed its window", "rule 6"]);
        }
        world.barrier().unwrap();
        window.start(&after, Assert::NONE, |_| Ok(())).unwrap();
        window.wait().unwrap();
        world.barrier().unwrap();
        let refused = window
            .lock(me, LockType::Shared, |_| Ok(window.post(&before, Assert::NONE).unwrap_err()));
        expect(
            &refused.unwrap(),
            Class::RmaSync,
            &["has the window locked", "rule 6", "post at rank"],
        );
        world.barrier().unwrap();
    });
}

#[test]
fn rule_9_asserts_tell_the_truth() {
    windows(|world, window, double| {
        let me = world.rank();
        let target = (me + 1) % world.size();
        let put = |epoch: &longshore::Epoch<'_, '_>| epoch.put(&[1.0f64], target, 0, 1, double);
        let error = window.fence_with(Assert::NONE, Assert::NOPRECEDE, put).unwrap_err();
        expect(&error, Class::RmaSync, &["NOPRECEDE", "rule 9", "fence at rank"]);
        window.set(1, 2.0f64).unwrap();
        let error = window.fence_with(Assert::NOSTORE, Assert::NONE, |_| Ok(())).unwrap_err();
        expect(&error, Class::RmaSync, &["NOSTORE", "rule 9"]);
        window.fence_with(Assert::NOSTORE, Assert::NOSTORE, |_| Ok(())).unwrap();
        let by_message = window.route(target).unwrap() == longshore::Route::Message;
        let outcome = window.fence_with(Assert::NOPUT, Assert::NONE, |epoch| {
            world.barrier()?; // all have made their promise
            put(epoch)?;
            // Behind the put, which is there before its target takes the promise back.
            world.send(&[0i32], target, 0)?;
            world.recv(&mut [0i32], (me + world.size() - 1) % world.size(), 0).map(drop)
        });
        if by_message {
            expect(&outcome.unwrap_err(), Class::RmaSync, &["NOPUT", "rule 9", "refused"]);
        }
        window.fence(put).unwrap();
    });
}

#[test]
fn rule_10_asserts_and_lock_types_are_known() {
    windows(|world, window, _| {
        let (me, own) = (world.rank(), world.group().incl(&[world.rank()]).unwrap());
        let unknown = Assert::from_bits(1 << 20).unwrap_err();
        expect(&unknown, Class::Assert, &["0x100000", "rule 10"]);
        assert_eq!(Assert::from_bits(1024).unwrap(), Assert::NOCHECK);
        expect(
            &LockType::from_number(5).unwrap_err(),
            Class::Locktype,
            &["lock type 5", "rule 10"],
        );
        let error = window.fence_with(Assert::NOCHECK, Assert::NONE, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["fence takes no assert", "0x400"]);
        let wrong = Assert::NOPUT | Assert::NOCHECK;
        let error = window.lock_with(me, LockType::Shared, wrong, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["lock takes no assert", "0x1000"]);
        let error = window.lock_all_with(wrong, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["lock_all takes no assert"]);
        let error = window.start(&own, Assert::NOSTORE, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["start takes no assert", "0x2000"]);
        let error = window.post(&own, Assert::NOSUCCEED).unwrap_err();
        expect(&error, Class::Assert, &["post takes no assert", "0x4000"]);
    });
}

#[test]
fn rules_25_and_27_for_windows_that_are_exposed_and_ranks_that_are_none() {
    everywhere(|rank, world| {
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        for target in [-5, world.size(), PROC_NULL] {
            let error = window.lock(target, LockType::Shared, |_| Ok(())).unwrap_err();
            expect(&error, Class::Rank, &["no rank", "lock at rank"]);
        }
        let part = world.split(Some(world.rank()), 0).unwrap().unwrap();
        let alone = Window::allocate(&part, 8, 8, &Info::default()).unwrap();
        let error = alone.post(world.group(), Assert::NONE).unwrap_err();
        expect(&error, Class::Rank, &["post at rank"]);
        window.post(world.group(), Assert::NONE).unwrap();
        let error = window.free().unwrap_err();
        expect(&error, Class::RmaSync, &["epoch open", "rule 25", "free at rank"]);
        alone.free().unwrap();
        assert!(rank.world().size() == 3);
    });
}
#[test]
fn rule_12_requests_belong_in_passive_epochs() {
    let words = ["needs a passive epoch", "rput at rank 0", "target 1"];
    wrong(Class::RmaSync, &words, |epoch, double| {
        epoch.rput(vec![1.0f64], 1, 0, 1, double).map(drop)
    });
    wrong(Class::RmaSync, &["passive epoch"], |epoch, double| {
        epoch.raccumulate(vec![1.0f64], 1, 0, 1, double, Op::Sum).map(drop)
    });
}

#[test]
fn rule_13_a_request_is_neither_freed_nor_cancelled() {
    everywhere(|rank, world| {
        let window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        let double = rank.type_of::<f64>().unwrap();
        window
            .lock_all(|epoch| {
                let request = epoch.rput(vec![1.0f64], world.rank(), 0, 1, &double)?;
                expect(
                    &request.cancel().unwrap_err(),
                    Class::Request,
                    &["can't be cancelled", "wait for it", "rput at rank"],
                );
                expect(
                    &request.free().unwrap_err(),
                    Class::Request,
                    &["can't be freed", "wait for it"],
                );
                assert_eq!(request.wait()?, [1.0]);
                Ok(())
            })
            .unwrap();
        assert_eq!(window.get::<f64>(0).unwrap(), 1.0);
        window.free().unwrap();
    });
}

#[test]
fn rule_9_a_promise_is_about_the_epoch_after_it() {
    windows(|world, window, double| {
        let me = world.rank();
        for from in 0..world.size() {
            let other = (from + 1) % world.size();
            let both = window.fences(|chain| {
                chain.epoch_with(
                    if me == other { Assert::NOPUT } else { Assert::NONE },
                    |epoch| {
                        match me {
                            // The other one is in its fence by now, or about to be.
                            _ if me == from => {
                                world.recv(&mut [0i32], other, 0)?;
                                epoch.put(&[1.0f64], other, 0, 1, double)
                            }
                            _ if me == other => world.send(&[0i32], from, 0),
                            _ => Ok(()),
                        }
                    },
                )?;
                chain.epoch(|_| world.barrier())?;
                chain.epoch(|epoch| match me == from {
                    true => epoch.put(&[2.0f64], other, 1, 1, double),
                    false => Ok(()),
                })
            });
            both.unwrap();
            if me == other {
                assert_eq!([0, 1].map(|at| window.get::<f64>(at).unwrap()), [1.0, 2.0]);
            }
        }
    });
}

/// A target's refusal is told by the call that ends what was done there, and by no other's; nor does it cost a lock.
#[test]
fn a_refusal_is_told_by_the_end_of_its_own_target() {
    // A long has 8 bytes at rank 0 and 4 at the others.
    let architectures = [Architecture::S390X, Architecture::I686, Architecture::I686];
    job(&architectures, Routes::Best, |rank| {
        let world = rank.world();
        let window = Window::allocate(world, 8, 1, &Info::default()).unwrap();
        let long = rank.commit(&Datatype::long()).unwrap();
        let mut memory = rank.buffer::<i64>(2).unwrap();
        if world.rank() == 0 {
            memory.write(0, &[1 << 40, 7]).unwrap();
            let exclusive = LockType::Exclusive;
            let too_long = || Origin::typed(&memory, 1, &long);
            let refused = window.lock(1, exclusive, |one| {
                one.put(too_long(), 1, 0, 1, &long)?;
                // What the target says to it is here before the answer to this.
                world.send(&[0i32], 1, 0)?;
                world.recv(&mut [0i32], 1, 0)?;
                window.lock(2, exclusive, |two| {
                    let seven = Origin::typed(&memory, 1, &long).at(8);
                    two.put(seven, 2, 0, 1, &long)?;
                    two.flush(PROC_NULL, |_| Ok(()))?;
                    two.flush(2, |_| Ok(()))
                })
            });
            expect(&refused.unwrap_err(), Class::Conversion, &["put at rank 0", "target 1"]);
            // Within lock_all it is the first operation that locks.
            let refused = window.lock_all(|all| {
                all.put(too_long(), 1, 0, 1, &long)?;
                world.send(&[0i32], 1, 0)?;
                world.recv(&mut [0i32], 1, 0)?;
                all.flush(2, |all| {
                    all.put(Origin::typed(&memory, 1, &long).at(8), 2, 4, 1, &long)
                })?;
                Ok(all.flush(1, |_| Ok(())).unwrap_err())
            });
            expect(&refused.unwrap(), Class::Conversion, &["put at rank 0", "target 1"]);
        } else if world.rank() == 1 {
            for _ in 0..2 {
                world.recv(&mut [0i32], 0, 0).unwrap();
                world.send(&[0i32], 0, 0).unwrap();
            }
        }
        world.barrier().unwrap();
        // Nobody holds a lock that it was told it hadn't got.
        window.lock(2, LockType::Exclusive, |_| Ok(())).unwrap();
        if world.rank() == 2 {
            assert_eq!([0, 4].map(|at| window.get::<i32>(at).unwrap()), [7, 7]);
        }
        window.free().unwrap();
        rank.finalize().unwrap();
    });
}

/// Whoever breaks a promise hears of it, and the others' fences are met all the same.
#[test]
fn rule_9_who_lies_alone_keeps_nobody_waiting() {
    windows(|world, window, _| {
        window.set(1, 2.0f64).unwrap();
        let lies = world.rank() == 0;
        let opening = if lies { Assert::NOSTORE } else { Assert::NONE };
        let mut ran = false;
        let outcome = window.fence_with(opening, Assert::NONE, |_| {
            ran = true;
            Ok(())
        });
        assert_eq!((outcome.is_err(), ran), (lies, !lies));
        // Before anything else is done.
        let error = window.fence_with(Assert::NONE, Assert::NOCHECK, |_| Ok(())).unwrap_err();
        expect(&error, Class::Assert, &["fence takes no assert", "rule 10"]);
        window.fence(|_| Ok(())).unwrap();
    });
}

/// NOPUT is about what changes the window.
#[test]
fn rule_9_under_noput_an_atomic_get_is_a_get() {
    windows(|world, window, double| {
        let (me, size) = (world.rank(), world.size());
        let [before, next] = [(me + size - 1) % size, (me + 1) % size]
            .map(|rank| (rank, world.group().incl(&[rank]).unwrap()));
        window.set(0, 4.5f64).unwrap();
        window.post(&before.1, Assert::NOPUT).unwrap();
        let (mut got, none) = ([0.0f64], [0.0f64; 0]);
        let fetched = window.start(&next.1, Assert::NONE, |epoch| {
            epoch.get_accumulate(&none, &mut got, next.0, 0, 1, double, Op::NoOp)?;
            epoch.fetch_and_op(0.0f64, next.0, 0, Op::NoOp)?.wait()
        });
        assert_eq!((fetched.unwrap(), got), (4.5, [4.5]));
        window.wait().unwrap();
    });
}
