//! The short messages that a rank holds for each sender before they are received.

use super::role;
use super::support::{Finished, run};

/// Messages of one number that rank 0 sends before rank 1 receives any.
const MESSAGES: i64 = 1000;

/// Prints how many of rank 0's messages rank 1 holds, and then receives all of them.
pub fn fill() {
    let rank = longshore::init().unwrap();
    let world = rank.world();
    if world.rank() == 0 {
        let sends = (0..MESSAGES).map(|at| world.isend(vec![at], 1, 0).unwrap());
        let sends: Vec<_> = sends.collect();
        world.barrier().unwrap();
        println!("held {}", sends.iter().filter(|send| send.test().unwrap()).count());
        world.barrier().unwrap();
        sends.into_iter().for_each(|send| drop(send.wait().unwrap()));
    } else {
        // All that rank 0 has sent at once is here after the first barrier.
        world.barrier().unwrap();
        world.barrier().unwrap();
        for at in 0..MESSAGES {
            let mut got = [-1i64];
            world.recv(&mut got, 0, 0).unwrap();
            assert_eq!(got, [at]);
        }
    }
    rank.finalize().unwrap();
}

fn run_with(room: Option<&str>) -> Finished {
    let room = room.map(|room| ["-x".to_owned(), format!("LONGSHORE_ROOM={room}")]);
    let words = ["-n", "2", "--timeout", "30"].map(str::to_owned).into_iter();
    run(&words.chain(room.into_iter().flatten()).chain(role("room")).collect::<Vec<_>>())
}

#[test]
fn a_rank_holds_short_messages_up_to_its_room() {
    // A message of 8 bytes takes 72.
    for (room, held) in [(None, MESSAGES), (Some("16K"), (16 << 10) / 72), (Some("1M"), MESSAGES)] {
        let finished = run_with(room);
        assert_eq!(finished.status, 0, "{}", finished.stderr);
        let stdout = String::from_utf8_lossy(&finished.stdout);
        assert!(stdout.contains(&format!("held {held}\n")), "{room:?}: {stdout}");
    }
}

#[test]
fn a_room_that_is_no_number_or_too_small_ends_init() {
    for room in ["", "1", "8K", "-1", "4T", "99999999999G"] {
        let finished = run_with(Some(room));
        assert_ne!(finished.status, 0, "{room}");
        let error = format!(
            "LONGSHORE_ROOM={room:?} in the environment: expected a number of bytes from 16K on, perhaps with K, M or G"
        );
        assert!(finished.stderr.contains(&error), "{}", finished.stderr);
    }
}
