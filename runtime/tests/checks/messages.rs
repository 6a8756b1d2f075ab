//! Messages under `--check`.

use super::*;

/// Rust compares types itself, and the error is the report. The programs in C are in
/// runtime/abi/tests/texts.
#[test]
fn an_unlike_type_is_an_error_and_no_report() {
    expect_nothing(|rank| {
        let world = rank.world();
        match world.rank() {
            0 => world.send(&[1i32], 1, 0).unwrap(),
            1 => {
                let error = world.recv(&mut [0f32], 0, 0).unwrap_err();
                assert_eq!(error.class(), Class::Type);
            }
            _ => {}
        }
    });
}

#[test]
fn a_long_message_is_an_error_and_no_report() {
    expect_nothing(|rank| {
        let world = rank.world();
        match world.rank() {
            0 => world.send(&[1f64, 2.0], 1, 0).unwrap(),
            1 => {
                let error = world.recv(&mut [0f64], 0, 0).unwrap_err();
                assert_eq!(error.class(), Class::Truncate);
            }
            _ => {}
        }
    });
}

#[test]
fn a_message_that_is_never_received_fails_finalize() {
    for synchronous in [false, true] {
        let fails = Options { check: Checking::Fail(Topics::default()), ..options(false) };
        let outcomes = run(3, &fails, |rank| {
            rank.promise_one_thread(true);
            let sending = (rank.world().rank() == 0).then(|| match synchronous {
                true => rank.world().issend(vec![7i32], 1, 9).unwrap(),
                false => rank.world().isend(vec![7i32], 1, 9).unwrap(),
            });
            drop(sending);
            let Err(error) = rank.leave() else { panic!("no report") };
            (error.to_string(), rank.reports().concat())
        });
        let outcomes = outcomes.unwrap();
        assert!(
            outcomes.iter().all(|it| it.0.contains("--check reported 1 fault")),
            "{outcomes:?}"
        );
        let text = &outcomes[1].1;
        assert!(text.contains("a message was sent and never received"), "{text}");
        assert!(text.contains("sent by rank 0 at runtime/tests/checks/messages.rs:"), "{text}");
        assert!(text.contains(", to rank 1 with tag 9"), "{text}");
    }
}

#[test]
fn topics_that_are_not_chosen_are_not_reported() {
    let check = Checking::Fail("fail,races".parse::<Checking>().unwrap().topics());
    let quiet = Options { check, ..options(false) };
    let told = run(2, &quiet, |rank| {
        if rank.world().rank() == 0 {
            rank.world().send(&[7i32], 1, 9).unwrap();
        }
        rank.leave().unwrap();
        rank.reports().len()
    });
    assert_eq!(told.unwrap(), [0, 0]);
}
