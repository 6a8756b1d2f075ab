//! Groups and communicators between like and unlike ranks: separate contexts, windows on
//! communicators, errors.

mod support;

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    ANY_SOURCE, ANY_TAG, Architecture, Class, Communicator, Comparison, Datatype, Given, Info,
    PROC_NULL, Rank, SplitType, UNDEFINED, Waitable, Window,
};

use support::crowd;

/// Runs a program between like and unlike ranks, directly and by message, simulated and on threads.
fn everywhere(ranks: u32, body: impl Fn(&Rank, &Communicator) + Sync) {
    let whole = |rank: Rank| {
        body(&rank, rank.world());
        rank.finalize().unwrap();
    };
    let unlike = vec![Architecture::S390X, Architecture::NATIVE, Architecture::I686];
    let unlike = Options { architectures: unlike, ..Options::default() };
    let told = Options { routes: Routes::Message, ..Options::default() };
    for options in [Options::default(), told, unlike] {
        for seed in 0..2 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        run_shared(ranks, &options, whole).unwrap();
    }
}

fn expect(error: &longshore::Error, class: Class, words: &[&str]) {
    assert_eq!(error.class(), class, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in: {error}");
    }
}

#[test]
fn a_dup_has_its_own_context() {
    everywhere(crowd(3), |_, world| {
        let dup = world.dup().unwrap();
        assert_eq!((dup.rank(), dup.size()), (world.rank(), world.size()));
        assert_eq!(dup.compare(world), Comparison::Congruent);
        assert_eq!(dup.compare(&dup), Comparison::Ident);
        // Both messages have the same envelope. The later one is received first.
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        world.send(&[1i32], next, 7).unwrap();
        dup.send(&[2i32], next, 7).unwrap();
        let mut got = [0i32];
        let status = dup.recv(&mut got, ANY_SOURCE, ANY_TAG).unwrap();
        assert_eq!((got, status.source, status.tag), ([2], before, 7));
        world.recv(&mut got, before, 7).unwrap();
        assert_eq!(got, [1]);
        dup.barrier().unwrap();
        dup.free().unwrap();
    });
}

#[test]
fn a_split_sorts_by_color_key_and_rank() {
    everywhere(5, |_, world| {
        let me = world.rank();
        // Odd ranks in reverse order. Rank 4 gets no communicator.
        let color = (me != 4).then_some(me % 2);
        let key = if me % 2 == 1 { -me } else { 0 };
        let part = world.split(color, key).unwrap();
        assert_eq!(part.is_some(), me != 4);
        let Some(part) = part else { return };
        let members = if me % 2 == 1 { [3, 1] } else { [0, 2] };
        assert_eq!(part.allgather(&[me]).unwrap(), members);
        assert_eq!(members[part.rank() as usize], me);
        // Source and destination are ranks of the new communicator.
        let mut got = [0i32];
        let other = 1 - part.rank();
        part.send(&[me], other, 0).unwrap();
        let status = part.recv(&mut got, ANY_SOURCE, 0).unwrap();
        assert_eq!((got[0], status.source), (members[other as usize], other));
        part.barrier().unwrap();
        part.free().unwrap();
    });
}

#[test]
fn overlapping_groups_have_different_contexts() {
    everywhere(crowd(4), |_, world| {
        let me = world.rank();
        let halves = world.split(Some(me / 2), 0).unwrap().unwrap();
        // Ranks 0 and 1 make more communicators, so their next context differs from that of ranks 2
        // and 3.
        let more = (me < 2).then(|| halves.dup().unwrap());
        let middle = world.group().incl(&[2, 1]).unwrap();
        let across = world.create(&middle).unwrap();
        assert_eq!(across.is_some(), me == 1 || me == 2);
        for (communicator, value) in
            [(more.as_ref(), 10), (across.as_ref(), 20), (Some(&halves), 30)]
        {
            let Some(communicator) = communicator else { continue };
            communicator.send(&[value + me], 1 - communicator.rank(), 0).unwrap();
        }
        let all = [(Some(&halves), 30), (across.as_ref(), 20), (more.as_ref(), 10)];
        for (communicator, value) in all {
            let Some(communicator) = communicator else { continue };
            let mut got = [0i32];
            communicator.recv(&mut got, ANY_SOURCE, ANY_TAG).unwrap();
            let other = communicator.group().processes()[1 - communicator.rank() as usize];
            assert_eq!(got, [value + other as i32]);
        }
        for communicator in [more, across, Some(halves)].into_iter().flatten() {
            communicator.free().unwrap();
        }
    });
}

#[test]
fn split_type_groups_ranks_by_architecture() {
    let body = |rank: Rank| {
        let world = rank.world();
        let alike = world.split_type(Some(SplitType::Architecture), 0).unwrap().unwrap();
        let here = world.split_type(Some(SplitType::Shared), 0).unwrap().unwrap();
        assert!(world.split_type(None, 0).unwrap().is_none());
        let (alike, here) = (alike.group().processes().to_vec(), here.group().processes().to_vec());
        rank.finalize().unwrap();
        (alike, here)
    };
    let architectures =
        vec![Architecture::S390X, Architecture::I686, Architecture::S390X, Architecture::M68K];
    let found = run(4, &Options { architectures, ..Options::default() }, body).unwrap();
    let alike: Vec<_> = found.iter().map(|(alike, _)| &alike[..]).collect();
    assert_eq!(alike, [&[0, 2][..], &[1], &[0, 2], &[3]]);
    assert!(found.iter().all(|(_, here)| here == &[0, 1, 2, 3]));
}

#[test]
fn create_group_needs_only_the_group() {
    everywhere(4, |_, world| {
        let me = world.rank();
        // Rank 2 doesn't call. Ranks 3 and 0 make two communicators at the same time.
        if me != 2 {
            let three = world.group().excl(&[2]).unwrap();
            let three = world.create_group(&three, 5).unwrap();
            assert_eq!(three.allgather(&[me]).unwrap(), [0, 1, 3]);
            if me != 1 {
                let pair = world.group().incl(&[3, 0]).unwrap();
                let pair = world.create_group(&pair, 6).unwrap();
                assert_eq!(pair.allgather(&[me]).unwrap(), [3, 0]);
                pair.free().unwrap();
            }
            three.barrier().unwrap();
            three.free().unwrap();
        }
        world.barrier().unwrap();
    });
}

#[test]
fn windows_use_the_ranks_of_their_communicator() {
    everywhere(5, |rank, world| {
        let me = world.rank();
        let odd = world.split(Some(me % 2), -me).unwrap().unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let mut window = Window::allocate(&odd, 80, 8, &Info::default()).unwrap();
        let mut own = Window::create(&odd, vec![0u8; 16], 8, &Info::default()).unwrap();
        // A window stays valid after its communicator is freed.
        let (here, size, group) = (odd.rank(), odd.size(), odd.group().clone());
        odd.free().unwrap();
        let next = (here + 1) % size;
        let before = (here + size - 1) % size;
        let mine = [f64::from(me)];
        let mut back = [0f64];
        window.fence(|epoch| epoch.put(&mine, next, here.into(), 1, &double)).unwrap();
        own.fence(|epoch| epoch.put(&mine, next, 1, 1, &double)).unwrap();
        window.fence(|epoch| epoch.get(&mut back, next, here.into(), 1, &double)).unwrap();
        let sender = f64::from(group.processes()[before as usize]);
        assert_eq!(window.get::<f64>(before.into()).unwrap(), sender);
        assert_eq!(own.get::<f64>(1).unwrap(), sender);
        assert_eq!(back, mine);
        window.fence(|epoch| epoch.put(&[1f64], PROC_NULL, 0, 1, &double)).unwrap();

        // Errors name a rank of the window, and the rank in the job with it.
        let error = window.fence(|epoch| epoch.put(&[1f64], size, 0, 1, &double)).unwrap_err();
        expect(&error, Class::Rank, &[&format!("no rank {size}")]);
        let far = window.fence(|epoch| epoch.put(&[1f64], next, 10, 1, &double)).unwrap_err();
        let process = group.processes()[next as usize];
        let named = format!("target {next} (rank {process} of the job)");
        let words = if process as i32 == next { format!("target {next},") } else { named };
        expect(&far, Class::RmaRange, &[&words]);
        own.free().unwrap();
        window.free().unwrap();
    });
}

#[test]
fn an_invalid_communicator_is_an_error_at_every_rank() {
    everywhere(crowd(3), |rank, world| {
        let me = world.rank();
        let error = world.split(Some(if me == 1 { -1 } else { 0 }), 0).err().unwrap();
        expect(&error, Class::Arg, &["color -1 is negative"]);
        // Two ranks give different groups that have ranks in common.
        let group = world.group().incl(if me == 0 { &[0, 1] } else { &[1, 2] }).unwrap();
        let error = world.create(&group).err().unwrap();
        expect(&error, Class::Group, &["not all gave the same group"]);
        // A group with ranks outside of the communicator.
        let error = rank.alone().create(world.group()).err().unwrap();
        expect(&error, Class::Group, &["isn't in the communicator"]);
        let others = world.group().excl(&[me]).unwrap();
        let error = world.create_group(&others, 0).err().unwrap();
        expect(&error, Class::Group, &["isn't in the group"]);
        let error = world.create_group(world.group(), ANY_TAG).err().unwrap();
        expect(&error, Class::Tag, &["tag ANY_TAG is only for receives"]);
        // Later calls succeed.
        let empty = world.group().incl(&[]).unwrap();
        assert!(world.create(&empty).unwrap().is_none());
        world.dup().unwrap().free().unwrap();
    });
}

/// Probes eager messages, which have arrived, and rendezvous messages, which wait at their sender.
#[test]
fn a_probe_describes_the_message_that_the_next_receive_gets() {
    everywhere(3, |rank, world| {
        let (me, double) = (world.rank(), rank.type_of::<f64>().unwrap());
        // Backwards, so that ranks aren't those of the job.
        let turned = world.split(Some(0), -me).unwrap().unwrap();
        for length in [3usize, 5000] {
            if me == 0 {
                let mut sources = Vec::new();
                for _ in 0..2 {
                    let coming = turned.probe(ANY_SOURCE, ANY_TAG).unwrap();
                    let wanted = length as i64 + i64::from(coming.tag());
                    assert_eq!(coming.count(&double).unwrap(), wanted);
                    assert_eq!(coming.elements(&double).unwrap(), wanted);
                    let three = Datatype::contiguous(3, &Datatype::double()).unwrap();
                    let three = rank.commit(&three).unwrap();
                    let threes = if wanted % 3 == 0 { wanted / 3 } else { UNDEFINED };
                    assert_eq!(coming.count(&three).unwrap(), threes);
                    let long = rank.type_of::<i64>().unwrap();
                    let words =
                        ["MPI_DOUBLE at the origin", "MPI_INT64_T", "use Datatype::double()"];
                    expect(&coming.count(&long).unwrap_err(), Class::Type, &words);
                    // A probe doesn't take the message: the next receive gets it.
                    let again = turned.iprobe(coming.source(), coming.tag()).unwrap().unwrap();
                    assert_eq!((again.source(), again.tag()), (coming.source(), coming.tag()));
                    let mut room = vec![0.0; wanted as usize];
                    let status = turned.recv(&mut room, coming.source(), coming.tag()).unwrap();
                    assert_eq!((status.source, status.count), (coming.source(), wanted));
                    assert!(room.iter().all(|value| *value == f64::from(status.source)));
                    sources.push(status.source);
                }
                sources.sort();
                assert_eq!(sources, [0, 1]);
                assert!(turned.iprobe(ANY_SOURCE, ANY_TAG).unwrap().is_none());
            } else {
                let data = vec![f64::from(turned.rank()); length + me as usize];
                turned.send(&data, 2, me).unwrap();
            }
            turned.barrier().unwrap();
        }
        let nobody = world.probe(PROC_NULL, 0).unwrap();
        assert_eq!((nobody.source(), nobody.count(&double).unwrap()), (PROC_NULL, 0));
        assert_eq!(world.mprobe(PROC_NULL, 0).unwrap().recv(&mut [0]).unwrap().source, PROC_NULL);
        expect(&world.probe(3, 0).unwrap_err(), Class::Rank, &["no rank 3"]);
        expect(&world.iprobe(0, -5).unwrap_err(), Class::Tag, &["tag -5"]);
        turned.free().unwrap();
    });
}

#[test]
fn a_matched_message_is_received_only_by_its_handle() {
    everywhere(2, |_, world| {
        let (me, other) = (world.rank(), 1 - world.rank());
        for length in [2usize, 5000] {
            // Two messages with the same tag: the first is matched, so a receive gets the second.
            let sending = [1, 2, 3]
                .map(|value| world.isend(vec![10 * me + value; length], other, 4).unwrap());
            let first = world.mprobe(other, 4).unwrap();
            assert_eq!((first.envelope().source(), first.envelope().tag()), (other, 4));
            let mut room = vec![0; length];
            world.recv(&mut room, other, ANY_TAG).unwrap();
            assert_eq!(room[length - 1], 10 * other + 2);
            let status = first.recv(&mut room).unwrap();
            assert_eq!((room[length - 1], status.count), (10 * other + 1, length as i64));
            // A dropped message and a truncated one are consumed, and their senders complete.
            let third = loop {
                if let Some(third) = world.improbe(other, 4).unwrap() {
                    break third;
                }
            };
            drop(third);
            for data in sending.map(|sending| sending.wait().unwrap()) {
                assert_eq!(data.len(), length);
            }
            let sending = world.isend(vec![1; length], other, 5).unwrap();
            let error = world.mprobe(other, 5).unwrap().recv(&mut [0]).unwrap_err();
            expect(&error, Class::Truncate, &["mrecv"]);
            sending.wait().unwrap();
            world.barrier().unwrap();
            assert!(world.iprobe(ANY_SOURCE, ANY_TAG).unwrap().is_none());
            world.barrier().unwrap();
        }
    });
}

#[test]
fn immediate_sends_and_receives_complete_at_their_wait() {
    everywhere(crowd(3), |rank, world| {
        let (me, size) = (world.rank(), world.size());
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        for length in [1usize, 5000] {
            // In any order, and with a datatype, from the rank's own memory into a slice.
            let room = [1, 2].map(|tag| world.irecv(vec![0.0; length], before, tag).unwrap());
            let double = rank.type_of::<f64>().unwrap();
            let mut own = rank.buffer::<f64>(length + 1).unwrap();
            own.write(1, &vec![f64::from(me); length]).unwrap();
            let own = Given::typed(own, length as i64, &double, 8);
            let second = world.isend(own, next, 2).unwrap();
            let first = world.isend(vec![-f64::from(me); length], next, 1).unwrap();
            let [one, two] = room;
            while !two.test().unwrap() {}
            let (got, status) = two.wait().unwrap();
            assert_eq!((status.source, status.tag, status.count), (before, 2, length as i64));
            assert_eq!(got, vec![f64::from(before); length]);
            assert_eq!(one.wait().unwrap().0, vec![-f64::from(before); length]);
            while !first.test().unwrap() {}
            assert_eq!(first.wait().unwrap().len(), length);
            assert_eq!(second.wait().unwrap().len(), length + 1);
            // A dropped send completes. A dropped or cancelled receive gets no message.
            drop(world.irecv(vec![0; length], before, 3).unwrap());
            let back = world.irecv(vec![me; length], before, 3).unwrap().cancel().unwrap();
            assert_eq!(back, (vec![me; length], None));
            world.barrier().unwrap();
            drop(world.isend(vec![me; length], next, 3).unwrap());
            let mut room = vec![0; length];
            world.recv(&mut room, before, 3).unwrap();
            assert_eq!(room, vec![before; length]);
        }
        // An invalid message is an error of the wait. An invalid argument is an error of the call.
        let short = world.irecv(vec![0i32; 1], before, 4).unwrap();
        world.isend(vec![0i32; 2], next, 4).unwrap().wait().unwrap();
        expect(&short.wait().err().unwrap(), Class::Truncate, &["irecv"]);
        expect(&world.isend(vec![0], size, 0).err().unwrap(), Class::Rank, &["isend"]);
        expect(&world.irecv(vec![0], 0, -7).err().unwrap(), Class::Tag, &["irecv"]);
        let nobody = world.irecv(vec![1], PROC_NULL, 0).unwrap().wait().unwrap();
        assert_eq!((nobody.0, nobody.1.source), (vec![1], PROC_NULL));
        assert_eq!(world.isend(vec![1], PROC_NULL, 0).unwrap().wait().unwrap(), [1]);
        world.barrier().unwrap();
    });
}

#[test]
fn several_requests_are_waited_for_at_once() {
    everywhere(crowd(4), |rank, world| {
        let (me, size) = (world.rank(), world.size());
        let long = 20_000;
        // Messages of several lengths from each rank to each, and operations on a window.
        let receives: Vec<_> =
            (0..size).map(|from| world.irecv(vec![-1; long], from, 0).unwrap()).collect();
        let mine = |to: i32| if to % 2 == 0 { vec![me; long] } else { vec![me] };
        let sends: Vec<_> = (0..size).map(|to| world.isend(mine(to), to, 0).unwrap()).collect();
        let mut all: Vec<&dyn Waitable> = Vec::new();
        all.extend(receives.iter().map(|it| it as &dyn Waitable));
        all.extend(sends.iter().map(|it| it as &dyn Waitable));
        let mut pending = all.clone();
        while !pending.is_empty() {
            let complete = longshore::wait_some(&pending).unwrap();
            assert!(!complete.is_empty());
            for index in complete.into_iter().rev() {
                pending.remove(index);
            }
        }
        // They stay complete until their own waits.
        longshore::wait_all(&all).unwrap();
        assert_eq!(longshore::test_some(&all).unwrap().len(), all.len());
        for (from, receive) in (0..size).zip(receives) {
            let (got, status) = receive.wait().unwrap();
            let length = if me % 2 == 0 { long } else { 1 };
            assert_eq!((got[0], got[length - 1], status.source), (from, from, from));
            assert_eq!(status.count, length as i64);
        }
        sends.into_iter().for_each(|send| drop(send.wait().unwrap()));

        // A receive that fails is complete, and its own wait returns the error.
        let next = (me + 1) % size;
        let short = world.irecv(vec![0i32; 1], ANY_SOURCE, 1).unwrap();
        let pair = (short, world.isend(vec![me; 2], next, 1).unwrap());
        longshore::wait_all(&[&pair]).unwrap();
        expect(&pair.0.wait().err().unwrap(), Class::Truncate, &["irecv"]);
        pair.1.wait().unwrap();

        // A synchronous send is complete once it is received, however short.
        let before = (me + size - 1) % size;
        let sending = world.issend(vec![me], next, 2).unwrap();
        world.barrier().unwrap();
        assert!(longshore::test_some(&[&sending]).unwrap().is_empty());
        assert!(!sending.test().unwrap());
        // Until here no rank receives.
        world.barrier().unwrap();
        let mut got = [-1];
        world.recv(&mut got, before, 2).unwrap();
        assert_eq!((sending.wait().unwrap(), got), (vec![me], [before]));

        // A message that is replaced while it is sent, and one that a probe has taken.
        let mut all = vec![me; long];
        let status = world.sendrecv_replace(&mut all, (next, 3), (before, 3)).unwrap();
        assert_eq!((all, status.source), (vec![before; long], before));
        world.send(&[f64::from(me); 3], next, 4).unwrap();
        let taken = world.mprobe(before, 4).unwrap();
        let bytes = taken.envelope().bytes();
        let (got, status) = taken.irecv(vec![0.0; 5]).unwrap().wait().unwrap();
        assert_eq!((got[2], status.count, status.bytes), (f64::from(before), 3, bytes));
        let sender = world.representation(before).unwrap();
        assert_eq!(rank.type_of::<f64>().unwrap().count_in(bytes, &sender).unwrap(), Some(3));

        // A communicator may be freed before its requests complete.
        let dup = world.dup().unwrap();
        let receiving = dup.irecv(vec![0; long], before, 0).unwrap();
        let sending = dup.isend(vec![me; long], next, 0).unwrap();
        dup.free().unwrap();
        assert_eq!(receiving.wait().unwrap().0, vec![before; long]);
        sending.wait().unwrap();
        assert!(longshore::wait_some(&[]).unwrap().is_empty());
        world.barrier().unwrap();
    });
}

#[test]
fn a_kept_communicator_serves_calls_after_its_memory_is_freed() {
    everywhere(4, |_, world| {
        let (me, size) = (world.rank(), world.size());
        let dup = world.dup().unwrap();
        dup.barrier().unwrap();
        assert_eq!(dup.allgather(&[me]).unwrap(), Vec::from_iter(0..size));
        let kept = dup.keep();
        dup.free().unwrap();
        // New memory of other communicators is theirs alone.
        let other = world.dup().unwrap();
        for round in 0..3 {
            let mut value = [if me == 0 { round } else { -1 }];
            kept.bcast(&mut value, 0).unwrap();
            assert_eq!(value, [round]);
            kept.barrier().unwrap();
            assert_eq!(other.allgather(&[me + round]).unwrap()[0], round);
        }
        other.free().unwrap();
    });
}

#[test]
fn names_belong_to_one_handle_on_one_rank() {
    everywhere(crowd(2), |rank, world| {
        assert_eq!(
            (world.name(), rank.alone().name()),
            ("MPI_COMM_WORLD".into(), "MPI_COMM_SELF".into())
        );
        let dup = world.dup().unwrap();
        assert_eq!(dup.name(), "");
        dup.set_name("rows");
        assert_eq!((dup.name(), world.name()), ("rows".into(), "MPI_COMM_WORLD".into()));
        rank.alone().barrier().unwrap();
        assert_eq!(rank.alone().allgather(&[3]).unwrap(), [3]);
    });
}
