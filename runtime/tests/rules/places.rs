//! The memory that operations may name, at the target and at the origin: rules 14 to 17, 26, 27
//! and 29.

use longshore::job::Routes;
use longshore::{Architecture, Class, Datatype, Info, Origin, PROC_NULL, Window};

use crate::{everywhere, expect, job, wrong};

#[test]
fn rule_14_displacements_outside_the_window_are_refused() {
    wrong(Class::Disp, &["-1", "negative"], |epoch, double| epoch.put(&[1.0f64], 1, -1, 1, double));
    let words = ["bytes 72 to 88", "80 bytes", "displacement 9", "target 1"];
    wrong(Class::RmaRange, &words, |epoch, double| epoch.put(&[1.0f64, 1.0], 1, 9, 2, double));
    wrong(Class::RmaRange, &["bytes 80 to 88"], |epoch, double| {
        epoch.put(&[1.0f64], 0, 10, 1, double)
    });
}

#[test]
fn rule_29_addresses_beyond_the_targets_pointers_are_refused() {
    wrong(Class::RmaRange, &["pointers"], |epoch, double| {
        epoch.put(&[1.0f64], 1, i64::MAX / 2, 1, double)
    });
}

#[test]
fn rule_27_invalid_ranks_and_counts_are_refused() {
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
        // `type_recv` from PROC_NULL is refused.
        let error = world.type_recv(PROC_NULL, 0).unwrap_err();
        expect(&error, Class::Rank, &["PROC_NULL sends no types", "from the rank that built it"]);
        let error = world.type_recv(3, 0).unwrap_err();
        expect(&error, Class::Rank, &["no rank 3", "below 3"]);
        window.free().unwrap();
    });
}

#[test]
fn too_many_elements_are_refused_as_too_large() {
    everywhere(|rank, world| {
        let error = rank.buffer::<f64>(usize::MAX / 4).err().unwrap();
        expect(&error, Class::ValueTooLarge, &[&(usize::MAX / 4).to_string(), "use fewer"]);
        // All elements at one displacement.
        let four = Datatype::contiguous(4, &Datatype::byte()).unwrap();
        let four = rank.commit(&Datatype::resized(0, 0, &four).unwrap()).unwrap();
        let all = Origin::typed(&[0u8; 4][..], i64::MAX, &four);
        let error = world.send(all, world.rank(), 0).unwrap_err();
        expect(&error, Class::ValueTooLarge, &[&i64::MAX.to_string(), "use fewer", "send at"]);
    });
}

#[test]
fn rule_26_invalid_sizes_and_units_are_refused() {
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
        // Different sizes and units on different ranks are valid.
        let window = Window::allocate(world, 8 * me, 1 + me, &info).unwrap();
        assert_eq!((window.size(), window.disp_unit()), (8 * me, 1 + me));
        window.free().unwrap();
    });
}

#[test]
fn rule_15_operations_outside_attached_memory_are_refused() {
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
        let words = ["attached memory", "rule 15", "refused", "put at rank 0", "target 1"];
        refused(place + 72, &words);
        refused(place + 72, &[&format!("{:#x} to {:#x}", place + 72, place + 88)]);
        refused(place - 8, &words);
        // The operation has written nothing.
        assert_eq!(window.get::<f64>(places[me as usize] + 72).unwrap(), 0.0);
        let error = window.get::<f64>(places[me as usize] + 80).unwrap_err();
        expect(&error, Class::RmaRange, &["attached memory", "own window"]);
        // Detached memory is refused.
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
            // In the other direction, the address exceeds the origin's pointers.
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
fn rule_16_calls_for_another_flavor_are_refused() {
    everywhere(|_, world| {
        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let words = ["attach is for", "MPI_WIN_FLAVOR_DYNAMIC", "MPI_WIN_FLAVOR_ALLOCATE"];
        expect(&window.attach(vec![0u8; 8]).err().unwrap(), Class::RmaFlavor, &words);
        let dynamic = Window::create_dynamic(world, &Info::default()).unwrap();
        let attached = dynamic.attach(vec![0u8; 8]).unwrap();
        expect(&window.detach(attached).unwrap_err(), Class::RmaFlavor, &["detach is for"]);
        dynamic.free().unwrap();
        window.free().unwrap();
    });
}

/// Ranks with 4-byte pointers can't address 6 GiB, whichever rank contributes the memory.
#[test]
fn rule_17_shared_windows_need_ranks_that_can_reach_all_memory() {
    job(&[Architecture::NATIVE, Architecture::NATIVE, Architecture::I686], Routes::Best, |rank| {
        let world = rank.world();
        // Each rank could reach the part that it contributes.
        let size = if world.rank() < 2 { 3 << 30 } else { 8 };
        let outcome = Window::allocate_shared(world, size, 8, &Info::default());
        let words = ["pointers of 4 bytes", "6442450952 bytes", "split_type", "allocate_shared"];
        expect(&outcome.err().unwrap(), Class::RmaShared, &words);
        // Ranks with 8-byte pointers can share the memory.
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
fn origins_outside_their_buffer_are_refused() {
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
