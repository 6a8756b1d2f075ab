//! Messages on a connection between hosts: greeting, challenge, frames, and the job's own messages
//! in the frames.
//!
//! The input is a byte and messages, each preceded by its length in two bytes. The bits of the
//! byte: the attacker is at the accepting end; it begins with a valid greeting, which it could
//! overhear; it knows the secret; the first frame is a valid hello.
#![no_main]

use longshore::Architecture;
use longshore::fuzzing::Target;
use longshore_fuzz as _;
use longshore_transport::protocol::challenge::{Greeting, Key, NONCE};
use longshore_transport::protocol::{Accepting, Connecting, Heard, frame};

const CALLS: u8 = 1;
const GREETS: u8 = 2;
const KNOWS: u8 = 4;
const HELLO: u8 = 8;

/// The accepting rank, and the rank that connects.
const HERE: u32 = 0;
const GUEST: u32 = 1;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&bits, mut rest)) = bytes.split_first() else { return };
    let messages = std::iter::from_fn(|| {
        let (length, others) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(others.len());
        let (message, others) = others.split_at(length);
        rest = others;
        Some(message)
    });
    let (ours, theirs) =
        (Key::new(b"secret"), Key::new(if bits & KNOWS == 0 { b"guess" } else { b"secret" }));
    let greeting = Greeting::new(GUEST, HERE, [1; NONCE]);
    // The request for a connection, which proves knowledge of the secret.
    let sound = ours.request(&greeting);
    assert_eq!(theirs.requested(&sound).is_ok(), bits & KNOWS != 0);
    assert!(ours.requested(&bytes[1..]).is_err() || bytes[1..] == sound, "nobody guesses a proof");
    if bits & CALLS != 0 {
        let mut here = Connecting::Greeting(greeting);
        if bits & GREETS != 0 {
            let heard = here.hear(&theirs.answer(&greeting, &[2; NONCE]), &ours);
            assert_eq!(heard.is_ok(), bits & KNOWS != 0, "{heard:?}");
        }
        for message in messages {
            let joined = matches!(here, Connecting::Open(_));
            match here.hear(message, &ours) {
                Ok(Heard::Answered(..)) => panic!("nobody guesses a proof"),
                Ok(heard) => assert!(joined && matches!(heard, Heard::Farewell(_)), "{heard:?}"),
                Err(_) => return,
            }
        }
        return;
    }
    let mut here = Accepting::Guest;
    let expected = |greeting: &Greeting| match (greeting.from, greeting.to) {
        (GUEST, HERE) => Ok([3; NONCE]),
        other => Err(format!("{other:?}")),
    };
    if bits & GREETS != 0 {
        let heard = here.hear(&greeting.encode(), &ours, expected);
        let Ok(Heard::Greeted(answer)) = heard else { panic!("{heard:?}") };
        if let Ok(seal) = theirs.seal(&greeting, &answer) {
            assert_eq!(here.hear(&seal, &ours, expected), Ok(Heard::Joined(GUEST)));
        }
    }
    let mut target = None;
    for message in messages {
        let joined = here.peer().is_some();
        let Ok(heard) = here.hear(message, &ours, expected) else { return };
        match heard {
            Heard::Greeted(_) => assert!(!joined),
            Heard::Frames => {
                assert!(joined, "a frame of a stranger");
                let target = target.get_or_insert_with(|| {
                    let mut target = Target::new();
                    if bits & HELLO != 0 {
                        target.feed(&Target::introduction(&Target::hello(&Architecture::S390X)));
                    }
                    target
                });
                frame::frames(message).for_each(|at| target.feed(&message[at]));
            }
            Heard::Farewell(_) => assert!(joined, "a stranger's farewell"),
            Heard::Answered(..) | Heard::Joined(_) => panic!("nobody guesses a proof"),
        }
    }
});
