//! Committed types: their free handlers, their names and attributes, and the forms that peers have
//! of them.

use std::sync::{Arc, Mutex};

use longshore::job::Routes;
use longshore::sim::{Options, run};
use longshore::wire::{Kind, describe};
use longshore::{Callbacks, Datatype, Direction, Holder, Info, Keyval, Rank, Type, Window};

fn pair(rank: &Rank) -> Type {
    rank.commit(&Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap()
}

#[test]
fn free_handlers_are_called_at_every_free_with_the_type_still_valid() {
    let rank = longshore::init().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let seen = seen.clone();
        let handler = move |holder: &Holder<'_>| {
            let text = holder.datatype().map(ToString::to_string);
            seen.lock().unwrap().push((name, holder.name(), text));
        };
        rank.type_free_handler(handler).unwrap();
    }
    let named = pair(&rank);
    named.set_name("named");
    let dup = named.dup().unwrap();
    named.free().unwrap();
    dup.free().unwrap();
    let int = rank.commit(&Datatype::contiguous(1, &Datatype::int()).unwrap()).unwrap();
    int.clone().free().unwrap();
    drop(int.clone());
    // The drop of the last reference is a free as well.
    drop(int);
    let calls = std::mem::take(&mut *seen.lock().unwrap());
    let both = |name: &str, text: &str| {
        ["first", "second"].map(|handler| (handler, name.to_owned(), Some(text.to_owned())))
    };
    let (named, dup, int) = ("U1(2d)", "U1(D:U2(2d))", "U1(1i)");
    assert_eq!(calls, [both("named", named), both("", dup), both("", int), both("", int)].concat());
    // A predefined type is never freed, and a dup that failed never was a type.
    rank.type_of::<f64>().unwrap().free().unwrap();
    let refuse = Callbacks::default().copy(|_, _: &Arc<u8>| Err("no copy".into()));
    let uncopied: Keyval<Type, u8> = rank.create_keyval(refuse).unwrap();
    let own = pair(&rank);
    own.set_attr(&uncopied, 1).unwrap();
    own.dup().unwrap_err();
    assert_eq!(*seen.lock().unwrap(), []);
    rank.finalize().unwrap();
}

#[test]
fn a_predefined_type_has_one_name_and_one_cache() {
    let rank = longshore::init().unwrap();
    let note: Keyval<Type, &str> = rank.create_keyval(Callbacks::default()).unwrap();
    let [one, other] = [rank.type_of::<f64>().unwrap(), rank.commit(&Datatype::double()).unwrap()];
    assert_eq!(one.name(), "MPI_DOUBLE");
    one.set_attr(&note, "by one").unwrap();
    one.set_name("real");
    assert_eq!((*other.attr(&note).unwrap().unwrap(), other.name().as_str()), ("by one", "real"));
    other.set_attr(&note, "by the other").unwrap();
    assert_eq!(*one.attr(&note).unwrap().unwrap(), "by the other");
    // A parametrised type of Fortran is one object as well. A dup is another one.
    let kind = Datatype::f90_integer(5).unwrap();
    rank.commit(&kind).unwrap().set_attr(&note, "a kind").unwrap();
    assert_eq!(*rank.commit(&kind).unwrap().attr(&note).unwrap().unwrap(), "a kind");
    assert_eq!(one.dup().unwrap().attr(&note).unwrap(), None);
    rank.finalize().unwrap();
}

#[test]
fn a_type_can_be_replaced_by_its_dup_any_number_of_times() {
    let rank = longshore::init().unwrap();
    let mut own = rank.commit(&Datatype::contiguous(2, &Datatype::int()).unwrap()).unwrap();
    for _ in 0..10_000 {
        own = own.dup().unwrap();
    }
    assert_eq!(own.extent(), 8);
    // There is room for more constructors on top.
    rank.commit(&Datatype::contiguous(2, own.datatype()).unwrap()).unwrap();
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
        let world = rank.world();
        let mut window = Window::allocate(world, 64, 8, &Info::default()).unwrap();
        let first = pair(&rank);
        let (dup, again) = (first.dup().unwrap(), first.clone());
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
        let mut put = |target: Option<&Type>| {
            window
                .fence(|epoch| match target {
                    Some(target) if world.rank() == 0 => epoch.put(&values, 1, 0, 1, target),
                    _ => Ok(()),
                })
                .unwrap();
        };
        put(Some(&first));
        // A dup has the original's form, which the target knows already.
        put(Some(&dup));
        let defined = [&[Kind::Define][..], &[]][world.rank() as usize];
        assert_eq!(frames(), defined);
        for freed in [first, again] {
            freed.free().unwrap();
            put(None);
            world.barrier().unwrap();
            assert_eq!(frames(), []);
        }
        dup.free().unwrap();
        // It is told with the next progress that the rank makes.
        let mut told = frames();
        while world.rank() == 0 && told.is_empty() {
            world.iprobe(1, 0).unwrap();
            told = frames();
        }
        assert_eq!(told, [&[Kind::Retire][..], &[]][world.rank() as usize]);
        window.free().unwrap();
        rank.finalize().unwrap();
    })
    .unwrap();
}
