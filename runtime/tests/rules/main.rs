//! Every rule that a program can break through the API, with the error's class and its words.

mod places;
#[path = "../support/mod.rs"]
mod support;
mod synchronisation;
mod types;

use longshore::job::Routes;
use longshore::sim::{Options, run};
use longshore::{Architecture, Class, Communicator, Datatype, Error, Info, Rank, Type, Window};

fn job(architectures: &[Architecture], routes: Routes, body: impl Fn(Rank) + Sync) {
    let options = Options { architectures: architectures.to_vec(), routes, ..Options::default() };
    run(architectures.len() as u32, &options, body).unwrap();
}

/// Runs a test between like and unlike ranks, directly and by message.
fn everywhere(body: impl Fn(&Rank, &Communicator) + Sync) {
    everywhere_as(body, |rank| rank.finalize().unwrap());
}

/// [`everywhere`] for a test that leaves a window behind, which `--check` reports at finalize.
fn everywhere_leaving_windows(body: impl Fn(&Rank, &Communicator) + Sync) {
    everywhere_as(body, |rank| drop(rank.finalize()));
}

fn everywhere_as(body: impl Fn(&Rank, &Communicator) + Sync, finalize: fn(Rank)) {
    let native = Architecture::NATIVE;
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        finalize(rank);
    };
    job(&[native; 3], Routes::Best, whole);
    job(&[native; 3], Routes::Message, whole);
    job(&[Architecture::S390X, Architecture::I686, native], Routes::Best, whole);
}

fn everywhere_alone(body: impl Fn(Rank) + Sync) {
    run(1, &Options::default(), &body).unwrap();
    body(longshore::init().unwrap());
}

fn expect(error: &Error, class: Class, words: &[&str]) {
    assert_eq!(error.class(), class, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in: {error}");
    }
}

/// Rank 0 breaks a rule in an epoch. Every rank has a window of 80 bytes in units of 8.
fn wrong(
    class: Class,
    words: &[&str],
    operation: impl Fn(&longshore::Epoch<'_, '_>, &Type) -> longshore::Result<()> + Sync,
) {
    everywhere(|rank, world| {
        for make in [Window::allocate, support::allocate_shared] {
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
            // The job goes on, and the window is unchanged.
            assert_eq!(window.local().bytes(0, 80).unwrap(), [0; 80]);
            window.fence(|epoch| epoch.put(&[2.0f64], me, 9, 1, &double)).unwrap();
            assert_eq!(window.get::<f64>(9).unwrap(), 2.0);
            window.free().unwrap();
        }
    });
}

/// Runs a body on every rank, with a window of 80 bytes in units of 8.
fn windows(body: impl Fn(&Communicator, &mut Window, &Type) + Sync) {
    everywhere(|rank, world| {
        let mut window = Window::allocate(world, 80, 8, &Info::default()).unwrap();
        body(world, &mut window, &rank.type_of::<f64>().unwrap());
        window.free().unwrap();
    });
}

fn bytewise(rank: &Rank) -> Type {
    let gapped = Datatype::hvector(2, 1, 16, &Datatype::double()).unwrap();
    rank.commit(&gapped).unwrap()
}
