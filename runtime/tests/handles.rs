//! Types by handle: rules T3 and 18, which the type system doesn't enforce here, contents,
//! accessors and free handlers.

use std::sync::{Arc, Mutex};

use longshore::handle::{
    Arrays, CommunicatorHandle, Communicators, Handle, Role, Target, Types, pack_size,
};
use longshore::job::Routes;
use longshore::shipable::Basic;
use longshore::shipable::contents::Counts;
use longshore::shipable::datatype::Combiner;
use longshore::sim::{Options, run};
use longshore::wire::{Kind, describe};
use longshore::{Callbacks, Class, Datatype, Direction, Holder, Info, Keyval, Type, Window};

#[test]
fn rule_t3_a_foreign_type_is_only_a_target_type() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let types = Types::new(&rank);
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
    types.commit(pair).unwrap();
    world.type_send(&types.as_own(pair, Role::TypeSend).unwrap(), 0, 0).unwrap();
    let foreign = types.insert_foreign(world.type_recv(0, 0).unwrap()).unwrap();

    let roles = [Role::Origin, Role::Send, Role::Receive, Role::TypeSend, Role::Pack];
    let mut refused: Vec<_> = roles
        .into_iter()
        .map(|role| types.as_own(foreign, role).map(|_| ()).unwrap_err())
        .collect();
    refused.extend([
        types.extent(foreign).map(|_| ()).unwrap_err(),
        types.size(foreign).map(|_| ()).unwrap_err(),
        types.bounds(foreign).map(|_| ()).unwrap_err(),
        types.signature(foreign).map(|_| ()).unwrap_err(),
        types.datatype(foreign).map(|_| ()).unwrap_err(),
        types.envelope(foreign, Counts::Int).map(|_| ()).unwrap_err(),
        types.contents(foreign, Counts::Int, Arrays::default()).unwrap_err(),
        types.type_count(foreign).map(|_| ()).unwrap_err(),
        types.dup(foreign).map(|_| ()).unwrap_err(),
        types.commit(foreign).unwrap_err(),
    ]);
    for error in refused {
        assert_eq!(error.class(), Class::Type);
        let text = error.to_string();
        assert!(text.contains("foreign, built at process 0") && text.contains("U1(2d)"), "{text}");
    }

    // Its only valid use: a target type.
    let mut window = Window::allocate(world, 16, 8, &Info::default()).unwrap();
    let target = types.target(foreign).unwrap();
    assert!(matches!(target, Target::Foreign(_)));
    window.fence(|epoch| epoch.put(&[1.0, 2.0], 0, 0, 1, &target)).unwrap();
    assert_eq!(window.get::<f64>(1).unwrap(), 2.0);
    assert_eq!(types.print(foreign).unwrap(), "U1(2d)");
    types.free(foreign).unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
}

#[test]
fn rule_18_uncommitted_freed_and_null_types_are_refused() {
    let rank = longshore::init().unwrap();
    let types = Types::new(&rank);
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
    let words = |outcome: longshore::Result<()>, word: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.class(), Class::Type);
        assert!(error.to_string().contains(word), "{error}");
    };
    words(types.target(pair).map(|_| ()), "not committed");
    words(types.as_own(pair, Role::Send).map(|_| ()), "not committed");
    assert!(types.datatype(pair).is_ok());
    types.commit(pair).unwrap();
    types.commit(pair).unwrap();
    assert_eq!(types.size(pair).unwrap(), 16);
    types.free(pair).unwrap();
    words(types.target(pair).map(|_| ()), "freed");
    words(types.free(pair), "freed");
    words(types.commit(pair), "freed");
    words(types.target(Handle::NULL).map(|_| ()), "null");
    words(Types::new(&rank).target(pair).map(|_| ()), "unknown");
    rank.finalize().unwrap();
}

fn rank() -> longshore::Rank {
    longshore::init().unwrap()
}

/// Handles of a vector of vectors of doubles, and of the inner vector.
fn nested(types: &Types) -> (Handle, Handle) {
    let inner = types.insert(Datatype::vector(2, 1, 3, &Datatype::double()).unwrap()).unwrap();
    let outer = Datatype::hvector(4, 1, 64, &types.datatype(inner).unwrap()).unwrap();
    (types.insert(outer).unwrap(), inner)
}

fn decode(types: &Types, handle: Handle) -> ([i32; 3], [i64; 1], Handle) {
    let (mut integers, mut addresses, mut datatypes) = ([-1; 3], [-1; 1], [Handle::NULL]);
    let arrays = Arrays {
        integers: &mut integers,
        addresses: &mut addresses,
        datatypes: &mut datatypes,
        ..Arrays::default()
    };
    types.contents(handle, Counts::Int, arrays).unwrap();
    (integers, addresses, datatypes[0])
}

#[test]
fn contents_are_new_references_that_share_the_originals_attributes() {
    let rank = rank();
    let types = Types::new(&rank);
    let note: Keyval<Type, &str> = rank.create_keyval(Callbacks::default()).unwrap();
    let (outer, inner) = nested(&types);
    types.set_attr(inner, &note, "by the original").unwrap();
    let (integers, addresses, again) = decode(&types, outer);
    assert_eq!((integers, addresses), ([4, 1, -1], [64]));
    assert_ne!(again, inner);
    assert_eq!(*types.attr(again, &note).unwrap().unwrap(), "by the original");
    types.set_attr(again, &note, "by the reference").unwrap();
    types.set_name(again, "inner").unwrap();
    assert_eq!(*types.attr(inner, &note).unwrap().unwrap(), "by the reference");
    assert_eq!(types.name(inner).unwrap(), "inner");
    // Committing one reference commits the type for all references.
    assert!(types.as_own(inner, Role::Origin).is_err());
    types.commit(again).unwrap();
    types.as_own(inner, Role::Origin).unwrap();
    // Freeing one reference keeps the other, and the attributes.
    types.free(inner).unwrap();
    assert_eq!(*types.attr(again, &note).unwrap().unwrap(), "by the reference");
    assert_eq!(decode(&types, again).2, Handle::predefined(Basic::Double));
    types.free(again).unwrap();
    // After the last reference is freed, contents return an equal type without attributes.
    let (_, _, new) = decode(&types, outer);
    assert_eq!(types.attr(new, &note).unwrap(), None);
    assert_eq!(types.print(new).unwrap(), "U1(V:d:2:1:3)");
    rank.finalize().unwrap();
}

#[test]
fn a_struct_of_many_members_has_a_reference_for_each() {
    const MANY: usize = 50_000;
    let rank = rank();
    let types = Types::new(&rank);
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
    let members = vec![types.datatype(pair).unwrap(); MANY];
    let record = Datatype::simple_struct(&[1; MANY], &members).unwrap();
    let record = types.insert(record).unwrap();
    let (mut integers, mut references) = (vec![0; MANY + 1], vec![Handle::NULL; MANY]);
    let arrays =
        Arrays { integers: &mut integers, datatypes: &mut references, ..Arrays::default() };
    types.contents(record, Counts::Int, arrays).unwrap();
    types.commit(pair).unwrap();
    for reference in references {
        types.as_own(reference, Role::Origin).unwrap();
        types.free(reference).unwrap();
    }
    assert_eq!(types.size(pair).unwrap(), 16);
    rank.finalize().unwrap();
}

#[test]
fn a_too_short_array_is_named_and_not_written() {
    let rank = rank();
    let types = Types::new(&rank);
    let (outer, inner) = nested(&types);
    let envelope = types.envelope(outer, Counts::Int).unwrap();
    assert_eq!((envelope.integers, envelope.addresses, envelope.datatypes), (2, 1, 1));
    for short in 0..3 {
        let (mut integers, mut addresses, mut datatypes) = ([-7; 2], [-7; 1], [Handle::NULL; 1]);
        let arrays = Arrays {
            integers: &mut integers[..2 - usize::from(short == 0)],
            addresses: &mut addresses[..1 - usize::from(short == 1)],
            datatypes: &mut datatypes[..1 - usize::from(short == 2)],
            ..Arrays::default()
        };
        let error = types.contents(outer, Counts::Int, arrays).unwrap_err();
        assert_eq!(error.class(), Class::Arg);
        let named = ["array_of_integers", "array_of_addresses", "array_of_datatypes"][short];
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!((integers, addresses, datatypes), ([-7; 2], [-7; 1], [Handle::NULL; 1]));
    }
    // With large counts, all three numbers are in one array.
    let envelope = types.envelope(outer, Counts::Large).unwrap();
    assert_eq!((envelope.integers, envelope.addresses, envelope.large_counts), (0, 0, 3));
    for room in [2, 4] {
        let (mut large_counts, mut datatypes) = ([-7; 4], [Handle::NULL]);
        let arrays = Arrays {
            large_counts: &mut large_counts[..room],
            datatypes: &mut datatypes,
            ..Arrays::default()
        };
        match types.contents(outer, Counts::Large, arrays) {
            Ok(()) => {
                assert_eq!(large_counts, [4, 1, 64, -7]);
                assert_eq!(types.print(datatypes[0]).unwrap(), types.print(inner).unwrap());
                types.free(datatypes[0]).unwrap();
            }
            Err(error) => {
                assert_eq!((room, error.class()), (2, Class::Arg));
                assert!(error.to_string().contains("array_of_large_counts"), "{error}");
                assert_eq!((large_counts, datatypes), ([-7; 4], [Handle::NULL]));
            }
        }
    }
    // Only that version has room for a count beyond an int.
    let long = types.insert(Datatype::contiguous(1 << 31, &Datatype::int()).unwrap()).unwrap();
    let refused = types.contents(long, Counts::Int, Arrays::default()).unwrap_err();
    assert_eq!(refused.class(), Class::Type);
    assert!(refused.to_string().contains("ask for the version with large counts"), "{refused}");
    assert_eq!(types.envelope(long, Counts::Large).unwrap().large_counts, 1);
    // Contents of a named type are erroneous, and a named type can't be freed.
    let double = Handle::predefined(Basic::Double);
    let error = types.contents(double, Counts::Int, Arrays::default()).unwrap_err();
    assert_eq!(error.class(), Class::Type);
    assert!(error.to_string().contains("named predefined"), "{error}");
    assert!(types.free(double).unwrap_err().to_string().contains("predefined"));
    assert_eq!(
        (types.size(double).unwrap(), types.name(double).unwrap().as_str()),
        (8, "MPI_DOUBLE")
    );
    assert_eq!(types.insert(Datatype::double()).unwrap(), double);
    assert_eq!(types.extent(inner).unwrap(), 32);
    rank.finalize().unwrap();
}

#[test]
fn the_accessors_descend_until_only_basic_types_are_left() {
    let rank = rank();
    let types = Types::new(&rank);
    let (outer, _) = nested(&types);
    let record =
        Datatype::struct_(&[2, 1], &[0, 512], &[types.datatype(outer).unwrap(), Datatype::int()]);
    let record = types.insert(record.unwrap()).unwrap();
    let (mut pending, mut basics, mut freed) = (vec![record], Vec::new(), 0);
    while let Some(handle) = pending.pop() {
        let mut count = types.type_count(handle).unwrap();
        let room = count as usize;
        let (mut lengths, mut places) = (vec![0; room], vec![0; room]);
        let mut parts = vec![Handle::NULL; room];
        let combiner =
            types.type_elements(handle, &mut count, &mut lengths, &mut places, &mut parts).unwrap();
        if combiner == Combiner::Named {
            assert_eq!(parts, [handle]);
            basics.push(handle);
        } else {
            pending.extend(parts.into_iter().filter(|part| *part != Handle::NULL));
            types.free(handle).unwrap();
            freed += 1;
        }
    }
    basics.sort_by_key(|handle| types.name(*handle).unwrap());
    assert_eq!(basics, [Basic::Double, Basic::Int].map(Handle::predefined));
    assert_eq!(freed, 3);
    // As input and output; zero; negative; and a too short array.
    let two = types.insert(Datatype::indexed(&[1, 2], &[0, 4], &Datatype::int()).unwrap()).unwrap();
    let (mut one, mut lengths, mut places, mut parts) = (1, [0; 1], [9; 1], [Handle::NULL; 1]);
    types.type_elements(two, &mut one, &mut lengths, &mut places, &mut parts).unwrap();
    assert_eq!((one, lengths, places), (1, [1], [0]));
    types.type_elements(two, &mut 0, &mut [], &mut [], &mut []).unwrap();
    let negative = types.type_elements(two, &mut -1, &mut [], &mut [], &mut []).unwrap_err();
    assert_eq!(negative.class(), Class::Count);
    let short =
        types.type_elements(two, &mut 2, &mut lengths, &mut places, &mut parts).unwrap_err();
    assert!(short.to_string().contains("array_of_blocklengths"), "{short}");
    rank.finalize().unwrap();
}

#[test]
fn free_handlers_are_called_at_every_free_with_the_handle_still_valid() {
    let rank = rank();
    let types = Arc::new(Types::new(&rank));
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let (types, seen) = (types.clone(), seen.clone());
        let handler = move |holder: &Holder<'_>| {
            let extent = holder.handle().map(|handle| types.extent(handle).unwrap());
            seen.lock().unwrap().push((name, extent));
        };
        rank.type_free_handler(handler).unwrap();
    }
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
    let dup = types.dup(pair).unwrap();
    types.free(pair).unwrap();
    types.free(dup).unwrap();
    let int = rank.commit(&Datatype::contiguous(1, &Datatype::int()).unwrap()).unwrap();
    int.clone().free().unwrap();
    drop(int.clone());
    // The drop of the last reference is a free as well.
    drop(int);
    let calls = std::mem::take(&mut *seen.lock().unwrap());
    let both = [("first", Some(16)), ("second", Some(16))];
    let unnamed = [("first", None), ("second", None)];
    assert_eq!(calls, [both, both, unnamed, unnamed].concat());
    // A predefined type is never freed, and a dup that failed never was a type.
    rank.type_of::<f64>().unwrap().free().unwrap();
    let refuse = Callbacks::default().copy(|_, _: &Arc<u8>| Err("no copy".into()));
    let uncopied: Keyval<Type, u8> = rank.create_keyval(refuse).unwrap();
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
    types.set_attr(pair, &uncopied, 1).unwrap();
    types.dup(pair).unwrap_err();
    assert_eq!(*seen.lock().unwrap(), []);
    rank.finalize().unwrap();
}

#[test]
fn the_drop_of_a_table_frees_its_types() {
    let rank = rank();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = names.clone();
    rank.type_free_handler(move |holder| {
        seen.lock().unwrap().push((holder.name(), holder.handle()));
    })
    .unwrap();
    let types = Types::new(&rank);
    let int = Datatype::contiguous(1, &Datatype::int()).unwrap();
    let built = types.insert(int.clone()).unwrap();
    let own = rank.commit(&int).unwrap();
    let inserted = types.insert_own(own.clone()).unwrap();
    types.set_name(built, "built").unwrap();
    own.set_name("own");
    types.name(Handle::predefined(Basic::Int)).unwrap();
    types.insert(Datatype::f90_integer(5).unwrap()).unwrap();
    drop(types);
    let taken = || std::mem::take(&mut *names.lock().unwrap());
    assert_eq!(taken(), [("built".to_owned(), Some(built)), ("own".to_owned(), Some(inserted))]);
    drop(own);
    assert_eq!(taken(), [("own".to_owned(), None)]);
    rank.finalize().unwrap();
}

#[test]
fn a_free_that_a_callback_refuses_calls_no_free_handler() {
    let rank = rank();
    let types = Types::new(&rank);
    let log = Arc::new(Mutex::new(Vec::new()));
    let (handlers, callbacks) = (log.clone(), log.clone());
    rank.type_free_handler(move |_| handlers.lock().unwrap().push("handler")).unwrap();
    let refuse = Callbacks::default().delete(move |_, refuses: &Arc<Mutex<bool>>| {
        callbacks.lock().unwrap().push("callback");
        match std::mem::take(&mut *refuses.lock().unwrap()) {
            true => Err("not yet".into()),
            false => Ok(()),
        }
    });
    let key: Keyval<Type, Mutex<bool>> = rank.create_keyval(refuse).unwrap();
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
    types.set_attr(pair, &key, Mutex::new(true)).unwrap();
    types.free(pair).unwrap_err();
    assert_eq!(*log.lock().unwrap(), ["callback"]);
    types.free(pair).unwrap();
    assert_eq!(*log.lock().unwrap(), ["callback", "callback", "handler"]);
    rank.finalize().unwrap();
}

#[test]
fn contents_return_the_object_of_two_equal_ones_that_was_used() {
    let rank = rank();
    let types = Types::new(&rank);
    let note: Keyval<Type, &str> = rank.create_keyval(Callbacks::default()).unwrap();
    let column = Datatype::vector(2, 1, 3, &Datatype::double()).unwrap();
    let (one, two) = (rank.commit(&column).unwrap(), rank.commit(&column).unwrap());
    let copies = [
        types.insert(column.clone()).unwrap(),
        types.insert(column.clone()).unwrap(),
        types.insert_own(one).unwrap(),
        types.insert_own(two.clone()).unwrap(),
    ];
    let texts = ["first", "second", "third", "fourth"];
    for (&copy, text) in copies.iter().zip(texts) {
        types.set_attr(copy, &note, text).unwrap();
    }
    let outer = |handle| {
        let child = types.datatype(handle).unwrap();
        types.insert(Datatype::hvector(4, 1, 64, &child).unwrap()).unwrap()
    };
    let outers = copies.map(outer);
    types.commit(copies[1]).unwrap();
    for (outer, (text, committed)) in
        outers.into_iter().zip(texts.into_iter().zip([false, true, true, true]))
    {
        let child = decode(&types, outer).2;
        assert_eq!(*types.attr(child, &note).unwrap().unwrap(), text);
        assert_eq!(types.as_own(child, Role::Origin).is_ok(), committed, "{text}");
    }
    // The same object again, also after the type that had its datatype first is freed.
    for copy in &copies[..3] {
        types.free(*copy).unwrap();
    }
    let again = outer(types.insert_own(two).unwrap());
    assert_eq!(*types.attr(decode(&types, again).2, &note).unwrap().unwrap(), "fourth");
    rank.finalize().unwrap();
}

#[test]
fn a_predefined_type_has_one_name_and_one_cache() {
    let rank = rank();
    let (types, others) = (Types::new(&rank), Types::new(&rank));
    let note: Keyval<Type, &str> = rank.create_keyval(Callbacks::default()).unwrap();
    let double = Handle::predefined(Basic::Double);
    types.set_attr(double, &note, "by handle").unwrap();
    types.set_name(double, "real").unwrap();
    let own = [rank.type_of::<f64>().unwrap(), rank.commit(&Datatype::double()).unwrap()];
    for own in &own {
        assert_eq!(*own.attr(&note).unwrap().unwrap(), "by handle");
        assert_eq!(own.name(), "real");
    }
    own[1].set_attr(&note, "by value").unwrap();
    assert_eq!(*others.attr(double, &note).unwrap().unwrap(), "by value");
    // A parametrised type of Fortran is one object as well. A dup is another one.
    let kind = Datatype::f90_integer(5).unwrap();
    let kinds = [types.insert(kind.clone()).unwrap(), types.insert(kind.clone()).unwrap()];
    assert_eq!(kinds[0], kinds[1]);
    types.set_attr(kinds[0], &note, "a kind").unwrap();
    assert_eq!(*rank.commit(&kind).unwrap().attr(&note).unwrap().unwrap(), "a kind");
    assert_eq!(own[0].dup().unwrap().attr(&note).unwrap(), None);
    rank.finalize().unwrap();
}

#[test]
fn calls_by_handle_fail_after_finalize() {
    let rank = rank();
    let (types, comms) = (Types::new(&rank), Communicators::new(&rank));
    let world = CommunicatorHandle::WORLD;
    let note: Keyval<Type, u8> = rank.create_keyval(Callbacks::default()).unwrap();
    let column = Datatype::vector(2, 1, 3, &Datatype::double()).unwrap();
    let handle = types.insert(column.clone()).unwrap();
    let own = rank.commit(&column).unwrap();
    rank.finalize().unwrap();
    let calls = [
        types.insert(column).map(drop),
        types.insert_own(own).map(drop),
        types.commit(handle),
        types.free(handle),
        types.dup(handle).map(drop),
        types.attr(handle, &note).map(drop),
        types.set_attr(handle, &note, 1),
        types.delete_attr(handle, &note).map(drop),
        types.name(handle).map(drop),
        types.set_name(handle, "late"),
        types.as_own(handle, Role::Origin).map(drop),
        types.target(Handle::predefined(Basic::Int)).map(drop),
        types.datatype(handle).map(drop),
        types.bounds(handle).map(drop),
        types.extent(handle).map(drop),
        types.size(handle).map(drop),
        types.signature(handle).map(drop),
        types.print(handle).map(drop),
        types.envelope(handle, Counts::Int).map(drop),
        types.contents(handle, Counts::Int, Arrays::default()),
        types.type_count(handle).map(drop),
        types.type_elements(handle, &mut 1, &mut [], &mut [], &mut []).map(drop),
        pack_size(&types, &comms, 1, handle, CommunicatorHandle::NULL).map(drop),
        pack_size(&types, &comms, 1, Handle::NULL, world).map(drop),
        comms.compare(world, CommunicatorHandle::SELF).map(drop),
        comms.own(world).map(drop),
        comms.free(world),
    ];
    for (at, call) in calls.into_iter().enumerate() {
        let error = call.unwrap_err();
        assert!(error.to_string().contains("the rank is finalized"), "call {at}: {error}");
    }
}

#[test]
fn a_type_can_be_replaced_by_its_dup_any_number_of_times() {
    let rank = rank();
    let types = Types::new(&rank);
    let mut own = rank.commit(&Datatype::contiguous(2, &Datatype::int()).unwrap()).unwrap();
    let mut handle = types.insert(own.datatype().clone()).unwrap();
    for _ in 0..10_000 {
        own = own.dup().unwrap();
        let dup = types.dup(handle).unwrap();
        types.free(handle).unwrap();
        handle = dup;
    }
    assert_eq!(own.extent(), 8);
    assert_eq!(types.extent(handle).unwrap(), 8);
    // There is room for more constructors on top.
    rank.commit(&Datatype::contiguous(2, &types.datatype(handle).unwrap()).unwrap()).unwrap();
    // The deepest type has dups as well.
    let mut deep = Datatype::int();
    while deep.depth() < Datatype::MAX_DEPTH - 1 {
        deep = Datatype::contiguous(1, &deep).unwrap();
    }
    for _ in 0..3 {
        deep = Datatype::dup(&deep).unwrap();
    }
    assert_eq!(deep.depth(), Datatype::MAX_DEPTH);
    rank.finalize().unwrap();
}

#[test]
fn a_form_is_retired_once_when_the_last_of_its_types_goes() {
    let options = Options { routes: Routes::Message, ..Options::default() };
    run(2, &options, |rank| {
        let (world, types) = (rank.world(), Types::new(&rank));
        let mut window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
        let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap();
        types.commit(pair).unwrap();
        let dup = types.dup(pair).unwrap();
        let again = types.insert_own(types.as_own(pair, Role::Origin).unwrap()).unwrap();
        let double = types.insert_own(rank.type_of::<f64>().unwrap()).unwrap();
        assert_eq!(double, Handle::predefined(Basic::Double));
        rank.tap(true);
        let frames = || {
            // Pending retirements are sent by the end of a fence.
            let sent =
                rank.tapped().into_iter().filter(|tapped| tapped.direction == Direction::Sent);
            let kinds: Vec<_> = sent
                .filter_map(|tapped| describe(&tapped.bytes))
                .map(|frame| frame.kind)
                .filter(|kind| matches!(kind, Kind::Define | Kind::Retire))
                .collect();
            kinds
        };
        let values = [1.0, 2.0];
        let mut put = |handle: Option<Handle>| {
            let target = handle.map(|handle| types.target(handle).unwrap());
            window
                .fence(|epoch| match &target {
                    Some(target) if world.rank() == 0 => epoch.put(&values, 1, 0, 1, target),
                    _ => Ok(()),
                })
                .unwrap();
        };
        put(Some(pair));
        // A dup has the original's form, which the target knows already.
        put(Some(dup));
        let first = [&[Kind::Define][..], &[]][world.rank() as usize];
        assert_eq!(frames(), first);
        for handle in [pair, again] {
            types.free(handle).unwrap();
            put(None);
            world.barrier().unwrap();
            assert_eq!(frames(), []);
        }
        types.free(dup).unwrap();
        world.send(&[0u8], 1 - world.rank(), 0).unwrap();
        world.recv(&mut [0u8], 1 - world.rank(), 0).unwrap();
        assert_eq!(frames(), [&[Kind::Retire][..], &[]][world.rank() as usize]);
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}
