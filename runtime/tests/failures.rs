//! Communicators after failures: what survivors learn, agree on and go on with.

use longshore::job::{Checking, OnDeath};
use longshore::sim::{Options, run, run_shared};
use longshore::{ANY_SOURCE, Class, Communicator, Comparison, ErrorHandler, Rank};

/// The rank that dies: it drops its [`Rank`] without `finalize`.
const VICTIM: i32 = 1;

fn surviving() -> Options {
    Options { on_death: OnDeath::Survive, ..Options::default() }
}

fn class<T>(outcome: longshore::Result<T>) -> Option<Class> {
    outcome.err().map(|error| error.class())
}

/// Waits until this rank knows of so many failures.
fn await_failures(world: &Communicator, count: i32) {
    while world.get_failed().unwrap().size() < count {}
}

/// Returns once all ranks have joined the job, so that a death fails no `init`. A rank may die
/// while others are still in the barrier.
fn join(world: &Communicator) {
    let _ = world.barrier();
}

/// Each rank runs `survive`, but the victim, which dies at once.
fn play(ranks: u32, survive: impl Fn(&Rank) + Sync) {
    let body = |rank: Rank| {
        join(rank.world());
        if rank.world().rank() == VICTIM {
            return;
        }
        survive(&rank);
        rank.finalize().unwrap();
    };
    run(ranks, &surviving(), body).unwrap();
    run_shared(ranks, &surviving(), body).unwrap();
}

#[test]
fn survivors_of_a_failed_call_go_on_with_a_smaller_communicator() {
    play(4, |rank| {
        let world = rank.world();
        assert_eq!(class(world.barrier()), Some(Class::ProcFailed));
        let failed = world.get_failed().unwrap();
        assert_eq!(failed.processes(), [VICTIM as u32]);
        let all = world.shrink().unwrap();
        assert_eq!(all.size(), 3);
        let ranks = world.group().excl(&[VICTIM]).unwrap();
        assert_eq!(all.group().compare(&ranks), Comparison::Ident);
        assert_eq!(all.allgather(&[world.rank()]).unwrap(), [0, 2, 3]);
        let other = world.ishrink().unwrap().wait().unwrap();
        other.barrier().unwrap();
        other.free().unwrap();
        all.free().unwrap();
    });
}

#[test]
fn an_agreement_reports_failures_until_all_have_acknowledged_them() {
    play(3, |rank| {
        let world = rank.world();
        await_failures(world, 1);
        // Rank 0 acknowledges later than rank 2.
        if world.rank() == 2 {
            assert_eq!(world.ack_failed(1).unwrap(), 1);
        }
        let mut flag = 0b111 << world.rank();
        assert_eq!(class(world.agree(&mut flag)), Some(Class::ProcFailed));
        assert_eq!(flag, 0b100);
        world.failure_ack().unwrap();
        assert_eq!(world.failure_get_acked().unwrap().processes(), [VICTIM as u32]);
        flag = 0b110;
        world.agree(&mut flag).unwrap();
        assert_eq!(flag, 0b110);
        assert_eq!(world.iagree(vec![world.rank() | 8]).unwrap().wait().unwrap(), [8]);
    });
}

#[test]
fn receives_from_any_rank_go_on_after_an_acknowledgement() {
    play(3, |rank| {
        let world = rank.world();
        let other = 2 - world.rank();
        let mut word = [0];
        assert_eq!(class(world.recv(&mut word, ANY_SOURCE, 5)), Some(Class::ProcFailed));
        world.ack_failed(world.size()).unwrap();
        world.send(&[world.rank()], other, 6).unwrap();
        world.recv(&mut word, ANY_SOURCE, 6).unwrap();
        assert_eq!(word, [other]);
        assert_eq!(class(world.recv(&mut word, VICTIM, 6)), Some(Class::ProcFailed));
    });
}

#[test]
fn a_revocation_ends_the_calls_of_all_members() {
    let body = |rank: Rank| {
        let world = rank.world();
        world.set_errhandler(ErrorHandler::Return);
        let (one, two) = (world.dup().unwrap(), world.dup().unwrap());
        match world.rank() {
            0 => {
                // Each other rank is in a call that waits for this one.
                for _ in 1..world.size() {
                    world.recv(&mut [0], ANY_SOURCE, 0).unwrap();
                }
                one.revoke().unwrap();
            }
            me => {
                world.send(&[me], 0, 0).unwrap();
                let long = vec![0u64; 100_000];
                let ended = match me {
                    1 => one.recv(&mut [0], 0, 0).map(drop),
                    2 => one.send(&long, 0, 0),
                    3 => one.probe(0, 0).map(drop),
                    4 => one.irecv(vec![0], 0, 0).unwrap().wait().map(drop),
                    5 => one.ibarrier().unwrap().wait(),
                    6 => one.recv(&mut [0], ANY_SOURCE, 0).map(drop),
                    _ => one.barrier(),
                };
                assert_eq!(class(ended), Some(Class::Revoked), "rank {me}");
            }
        }
        assert!(one.is_revoked().unwrap() && !two.is_revoked().unwrap());
        assert_eq!(class(one.send(&[0], longshore::PROC_NULL, 0)), Some(Class::Revoked));
        assert_eq!(class(one.dup()), Some(Class::Revoked));
        assert_eq!(class(one.bcast(&mut [0], 0)), Some(Class::Revoked));
        let mut flag = 7;
        one.agree(&mut flag).unwrap();
        let again = one.shrink().unwrap();
        again.barrier().unwrap();
        two.barrier().unwrap();
        for communicator in [again, one, two] {
            communicator.free().unwrap();
        }
        rank.finalize().unwrap();
    };
    // Under --check, calls are announced before they wait, in an order that this test breaks.
    let options = Options { check: Checking::Off, ..Options::default() };
    run(9, &options, body).unwrap();
    run_shared(9, &options, body).unwrap();
}

/// The victim takes part in an agreement and dies after each number of its steps.
#[test]
fn survivors_agree_whenever_a_member_dies() {
    for victim in [0, 1, 3] {
        for steps in 0..24 {
            let options = Options { seed: steps, ..surviving() };
            let flags = run(4, &options, |rank| {
                let world = rank.world();
                let me = world.rank();
                join(world);
                let agreeing = world.iagree(vec![!(1 << me)]).unwrap();
                if me == victim {
                    let ended = (0..steps).any(|_| agreeing.test().unwrap());
                    return if ended { agreeing.wait().ok().map(|flag| flag[0]) } else { None };
                }
                // The error leaves the flag to the next agreement.
                let first = agreeing.wait().map(|flag| flag[0]).unwrap_or(-1);
                let mut flag = first;
                let again = world.agree(&mut flag);
                assert!(again.is_ok() || class(again) == Some(Class::ProcFailed));
                assert_eq!(first, flag, "all survivors had the same result");
                let survivors = world.shrink().unwrap();
                survivors.barrier().unwrap();
                survivors.free().unwrap();
                rank.finalize().unwrap();
                Some(first)
            })
            .unwrap();
            let mut learned = flags.iter().flatten();
            let first = learned.next().unwrap();
            assert!(learned.all(|flag| flag == first), "victim {victim}, step {steps}: {flags:?}");
        }
    }
}

#[test]
fn survivors_of_two_groups_agree_and_shrink() {
    let body = |rank: Rank| {
        let world = rank.world();
        let side = world.rank() % 2;
        let part = world.split(Some(side), 0).unwrap().unwrap();
        let peer = (part.rank() == 0).then_some((world, 1 - side));
        let both = part.intercomm_create(0, peer, 3).unwrap();
        join(world);
        if world.rank() == 5 {
            return;
        }
        await_failures(&both, 1);
        let mut flag = 1;
        assert_eq!(class(both.agree(&mut flag)), Some(Class::ProcFailed));
        let survivors = both.shrink().unwrap();
        let remote = survivors.remote_group().unwrap().size();
        assert_eq!((survivors.size(), remote), if side == 0 { (3, 2) } else { (2, 3) });
        let mut word = [world.rank()];
        if side == 0 {
            let root = if part.rank() == 1 { longshore::ROOT } else { longshore::PROC_NULL };
            survivors.bcast(&mut word, root).unwrap();
        } else {
            survivors.bcast(&mut word, 1).unwrap();
            assert_eq!(word, [2]);
        }
        rank.finalize().unwrap();
    };
    run(6, &surviving(), body).unwrap();
}
