//! Rules T3 and 18 on handles, where no type system stands before them.

use longshore::handle::{Handle, Role, Types};
use longshore::{Class, Datatype, Info, TargetType, Window};

#[test]
fn rule_t3_a_foreign_type_is_a_target_type_and_nothing_else() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    let mut types = Types::default();
    let pair = types.insert(Datatype::contiguous(2, &Datatype::double()).unwrap());
    types.commit(pair, &rank).unwrap();
    world.type_send(types.as_own(pair, Role::TypeSend).unwrap(), 0, 0).unwrap();
    let foreign = types.insert_foreign(world.type_recv(0, 0).unwrap());

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
        types.contents(foreign).map(|_| ()).unwrap_err(),
        types.commit(foreign, &rank).unwrap_err(),
    ]);
    for error in refused {
        assert_eq!(error.class(), Class::Type);
        let text = error.to_string();
        assert!(text.contains("foreign, built at process 0") && text.contains("U1(2d)"), "{text}");
    }

    // What it is for.
    let mut window = Window::allocate(world, 16, 8, &Info::default()).unwrap();
    let target = types.target(foreign).unwrap();
    assert!(matches!(target, TargetType::Foreign(_)));
    window.fence(|epoch| epoch.put(&[1.0, 2.0], 0, 0, 1, target)).unwrap();
    assert_eq!(window.get::<f64>(1).unwrap(), 2.0);
    assert_eq!(types.print(foreign).unwrap(), "U1(2d)");
    types.free(foreign).unwrap();
    window.free().unwrap();
    rank.finalize().unwrap();
}

#[test]
fn rule_18_types_are_committed_not_freed_not_null() {
    let rank = longshore::init().unwrap();
    let mut types = Types::default();
    let double = types.insert(Datatype::double());
    let words = |outcome: longshore::Result<()>, word: &str| {
        let error = outcome.unwrap_err();
        assert_eq!(error.class(), Class::Type);
        assert!(error.to_string().contains(word), "{error}");
    };
    words(types.target(double).map(|_| ()), "not committed");
    words(types.as_own(double, Role::Send).map(|_| ()), "not committed");
    assert!(types.contents(double).is_ok());
    types.commit(double, &rank).unwrap();
    types.commit(double, &rank).unwrap();
    assert_eq!(types.size(double).unwrap(), 8);
    types.free(double).unwrap();
    words(types.target(double).map(|_| ()), "freed");
    words(types.free(double), "freed");
    words(types.commit(double, &rank), "freed");
    words(types.target(Handle::NULL).map(|_| ()), "null");
    words(Types::default().target(double).map(|_| ()), "unknown");
    rank.finalize().unwrap();
}
