//! Attributes on types, communicators and windows: callbacks, their flag and errors, and the order
//! of deletion.

use std::sync::{Arc, Mutex};

use longshore::sim::{Options, run};
use longshore::{
    Callbacks, Class, Communicator, Datatype, Holder, Info, Keyval, Rank, Type, Window,
};

type Log = Arc<Mutex<Vec<String>>>;

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

/// Callbacks that log their calls. The copy of a value is greater by one, except that 9 isn't
/// copied and 99 is an error. Deleting 13 is an error.
fn counting(log: &Log) -> Callbacks<i32> {
    let (copies, deletions) = (log.clone(), log.clone());
    Callbacks::default()
        .copy(move |_: &Holder<'_>, value: &Arc<i32>| {
            copies.lock().unwrap().push(format!("copy {value}"));
            match **value {
                9 => Ok(None),
                99 => Err("99 isn't copied".into()),
                value => Ok(Some(Arc::new(value + 1))),
            }
        })
        .delete(move |_, value| {
            deletions.lock().unwrap().push(format!("delete {value}"));
            if **value == 13 { Err("13 stays".into()) } else { Ok(()) }
        })
}

fn pair(rank: &Rank) -> Type {
    rank.commit(&Datatype::contiguous(2, &Datatype::double()).unwrap()).unwrap()
}

#[test]
fn a_dup_has_the_values_that_the_copy_callbacks_return() {
    let rank = longshore::init().unwrap();
    let log = Log::default();
    let [a, b, c]: [Keyval<Type, i32>; 3] =
        [0; 3].map(|_| rank.create_keyval(counting(&log)).unwrap());
    let silent: Keyval<Type, i32> = rank.create_keyval(Callbacks::default()).unwrap();
    let shared: Keyval<Type, String> = rank.create_keyval(Callbacks::default().share()).unwrap();
    let old = pair(&rank);
    old.set_attr(&a, 1).unwrap();
    old.set_attr(&b, 9).unwrap();
    old.set_attr(&c, 5).unwrap();
    old.set_attr(&silent, 7).unwrap();
    old.set_attr(&shared, "text".to_owned()).unwrap();
    old.set_name("old");
    let new = old.dup().unwrap();
    assert_eq!(taken(&log), ["copy 1", "copy 9", "copy 5"]);
    let of = |key| new.attr(key).unwrap().map(|value| *value);
    assert_eq!([of(&a), of(&b), of(&c), of(&silent)], [Some(2), None, Some(6), None]);
    let text = |of: &Type| of.attr(&shared).unwrap().unwrap();
    assert!(Arc::ptr_eq(&text(&new), &text(&old)));
    assert_eq!((old.name().as_str(), new.name().as_str()), ("old", ""));
    // An attribute set on a dup isn't on the original, nor on types built from the original.
    new.set_attr(&silent, 8).unwrap();
    assert_eq!(*old.attr(&silent).unwrap().unwrap(), 7);
    let built = rank.commit(&Datatype::vector(2, 1, 2, old.datatype()).unwrap()).unwrap();
    assert_eq!(built.attr(&a).unwrap(), None);
    assert_eq!(new.to_string(), "U1(D:U2(2d))");
    assert_eq!(new.form().encode(), old.form().encode());
    // Attributes are deleted in reverse order of setting.
    new.free().unwrap();
    assert_eq!(taken(&log), ["delete 6", "delete 2"]);
    // A clone is the same type: attributes are deleted with the last clone.
    let clone = old.clone();
    old.free().unwrap();
    assert_eq!(taken(&log), [""; 0]);
    drop(clone);
    assert_eq!(taken(&log), ["delete 5", "delete 9", "delete 1"]);
    rank.finalize().unwrap();
}

#[test]
fn an_error_of_a_callback_fails_the_call() {
    let rank = longshore::init().unwrap();
    let log = Log::default();
    let [a, b]: [Keyval<Type, i32>; 2] =
        [0; 2].map(|_| rank.create_keyval(counting(&log)).unwrap());
    let own = pair(&rank);
    own.set_attr(&a, 1).unwrap();
    own.set_attr(&b, 99).unwrap();
    // A failed dup deletes the attributes that it has copied.
    let error = own.dup().unwrap_err();
    assert_eq!(error.class(), Class::Other);
    assert!(
        error.to_string().contains("copy callback") && error.to_string().contains("99"),
        "{error}"
    );
    assert_eq!(taken(&log), ["copy 1", "copy 99", "delete 2"]);
    // Overwriting deletes the old value first. If that fails, the old value stays.
    own.set_attr(&b, 13).unwrap();
    assert_eq!(taken(&log), ["delete 99"]);
    assert!(own.set_attr(&b, 3).is_err());
    assert!(own.delete_attr(&b).is_err());
    assert_eq!(*own.attr(&b).unwrap().unwrap(), 13);
    assert_eq!(taken(&log), ["delete 13"; 2]);
    // Calls with a freed keyval fail, but its attributes are still deleted with their holder.
    b.clone().free();
    for error in [
        own.attr(&b).unwrap_err(),
        own.set_attr(&b, 1).unwrap_err(),
        own.delete_attr(&b).unwrap_err(),
    ] {
        assert_eq!(error.class(), Class::Keyval);
    }
    assert!(own.delete_attr(&a).unwrap());
    assert!(!own.delete_attr(&a).unwrap());
    assert_eq!(taken(&log), ["delete 1"]);
    drop(own);
    assert_eq!(taken(&log), ["delete 13"]);
    rank.finalize().unwrap();
}

#[test]
fn a_freed_object_asks_a_callback_that_failed_only_once() {
    let rank = longshore::init().unwrap();
    let log = Log::default();
    let [a, b]: [Keyval<Type, i32>; 2] =
        [0; 2].map(|_| rank.create_keyval(counting(&log)).unwrap());
    let freed = pair(&rank);
    freed.set_attr(&a, 1).unwrap();
    freed.set_attr(&b, 13).unwrap();
    assert!(freed.free().unwrap_err().to_string().contains("13 stays"));
    assert_eq!(taken(&log), ["delete 13", "delete 1"]);
    let key: Keyval<Communicator, i32> = rank.create_keyval(counting(&log)).unwrap();
    let dup = rank.world().dup().unwrap();
    dup.set_attr(&key, 13).unwrap();
    assert!(dup.free().unwrap_err().to_string().contains("13 stays"));
    assert_eq!(taken(&log), ["delete 13"]);
    let key: Keyval<Window, i32> = rank.create_keyval(counting(&log)).unwrap();
    let window = Window::allocate(rank.world(), 8, 8, &Info::default()).unwrap();
    window.set_attr(&key, 13).unwrap();
    assert!(window.free().unwrap_err().to_string().contains("13 stays"));
    assert_eq!(taken(&log), ["delete 13"]);
    rank.finalize().unwrap();
}

#[test]
fn callbacks_may_use_the_object_that_they_are_called_for() {
    let rank = longshore::init().unwrap();
    let plan: Keyval<Type, String> = rank.create_keyval(Callbacks::default()).unwrap();
    let inner = plan.clone();
    let outer: Keyval<Type, i32> = rank
        .create_keyval(Callbacks::default().delete(move |holder, _| {
            assert_eq!(holder.name(), "rows");
            assert_eq!(*holder.attr(&inner)?.ok_or("it is set")?, "by rows");
            assert_eq!(holder.datatype().ok_or("it is a type")?.to_string(), "U1(2d)");
            Ok(())
        }))
        .unwrap();
    let rows = pair(&rank);
    rows.set_name("rows");
    rows.set_attr(&plan, "by rows".to_owned()).unwrap();
    rows.set_attr(&outer, 1).unwrap();
    rows.free().unwrap();
    rank.finalize().unwrap();
}

/// A value that reads an attribute of its holder when it is dropped.
struct Watching(Type, Keyval<Type, i32>, Log);

impl Drop for Watching {
    fn drop(&mut self) {
        let seen = self.0.attr(&self.1).ok().flatten();
        self.2.lock().unwrap().push(format!("saw {seen:?}"));
    }
}

#[test]
fn a_replaced_value_may_read_attributes_when_it_is_dropped() {
    let rank = longshore::init().unwrap();
    let log = Log::default();
    let own = pair(&rank);
    let [first, second]: [Keyval<Type, i32>; 2] =
        [0; 2].map(|_| rank.create_keyval(counting(&log)).unwrap());
    let watching: Keyval<Type, Watching> = rank.create_keyval(Callbacks::default()).unwrap();
    let watch = || Watching(own.clone(), first.clone(), log.clone());
    own.set_attr(&first, 1).unwrap();
    own.set_attr(&second, 2).unwrap();
    own.set_attr(&watching, watch()).unwrap();
    own.set_attr(&watching, watch()).unwrap();
    own.delete_attr(&watching).unwrap();
    assert_eq!(taken(&log), ["saw Some(1)"; 2]);
    // Setting an attribute again makes it the last one set.
    own.set_attr(&first, 3).unwrap();
    own.free().unwrap();
    assert_eq!(taken(&log), ["delete 1", "delete 3", "delete 2"]);
    rank.finalize().unwrap();
}

#[test]
fn communicators_and_windows_have_attributes() {
    let options = Options::default();
    run(2, &options, |rank| {
        let world = rank.world();
        let log = Log::default();
        let key: Keyval<Communicator, i32> = rank.create_keyval(counting(&log)).unwrap();
        let on_windows: Keyval<Window, i32> = rank.create_keyval(counting(&log)).unwrap();
        world.set_attr(&key, 1).unwrap();
        let dup = world.dup().unwrap();
        assert_eq!(*dup.attr(&key).unwrap().unwrap(), 2);
        // Only dup copies attributes.
        let split = world.split(Some(0), 0).unwrap().unwrap();
        assert_eq!(split.attr(&key).unwrap(), None);
        split.free().unwrap();
        // A callback error on one rank fails dup on all ranks, and the others delete their copies.
        if world.rank() == 1 {
            dup.set_attr(&key, 99).unwrap();
        }
        taken(&log);
        let error = dup.dup().err().unwrap();
        assert!(error.to_string().contains("99 isn't copied"), "{error}");
        let due = [["copy 2", "delete 3"].as_slice(), &["copy 99"]][world.rank() as usize];
        assert_eq!(taken(&log), due);
        dup.free().unwrap();
        assert_eq!(taken(&log), [["delete 2", "delete 99"][world.rank() as usize]]);

        let window = Window::allocate(world, 8, 8, &Info::default()).unwrap();
        let created = Window::create(world, vec![0u8; 8], 8, &Info::default()).unwrap();
        window.set_attr(&on_windows, 3).unwrap();
        window.set_attr(&on_windows, 4).unwrap();
        created.set_attr(&on_windows, 13).unwrap();
        created.set_name("halo");
        assert_eq!((window.name(), created.name()), (String::new(), "halo".to_owned()));
        assert_eq!(window.group(), world.group());
        window.free().unwrap();
        assert_eq!(taken(&log), ["delete 3", "delete 4"]);
        // The window is freed despite the error, because the other ranks wait for this one.
        assert!(created.free().unwrap_err().to_string().contains("13 stays"));
        world.barrier().unwrap();

        // Finalize first deletes the attributes of MPI_COMM_SELF, in reverse order of setting.
        taken(&log);
        let second: Keyval<Communicator, i32> = rank.create_keyval(counting(&log)).unwrap();
        rank.alone().set_attr(&key, 20).unwrap();
        rank.alone().set_attr(&second, 21).unwrap();
        rank.finalize().unwrap();
        assert_eq!(taken(&log), ["delete 21", "delete 20", "delete 1"]);
    })
    .unwrap();
}

#[test]
fn types_and_keyvals_of_another_rank_are_refused() {
    let here = longshore::init().unwrap();
    let other = longshore::init().unwrap();
    let key: Keyval<Type, i32> = other.create_keyval(Callbacks::default()).unwrap();
    let (mine, theirs) = (pair(&here), pair(&other));
    assert_eq!(mine.set_attr(&key, 1).unwrap_err().class(), Class::Keyval);
    let mut window = Window::allocate(here.world(), 16, 8, &Info::default()).unwrap();
    let double = other.type_of::<f64>().unwrap();
    let values = [1.0, 2.0];
    // In the second turn the memory is mapped, and operations take the direct path.
    for _ in 0..2 {
        for refused in [
            window.fence(|epoch| epoch.put(&values, 0, 0, 1, &theirs)),
            window.fence(|epoch| epoch.put(&values, 0, 0, 2, &double)),
            here.world().type_send(&theirs, 0, 0),
            here.world().send(longshore::Origin::typed(&values[..], 1, &theirs), 0, 0),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.class(), Class::Type);
            assert!(error.to_string().contains("of another rank"), "{error}");
        }
        window.fence(|epoch| epoch.put(&values, 0, 0, 1, &mine)).unwrap();
        let double = here.type_of::<f64>().unwrap();
        window.fence(|epoch| epoch.put(&values, 0, 0, 2, &double)).unwrap();
    }
    window.free().unwrap();
    here.finalize().unwrap();
    other.finalize().unwrap();
}
