//! Groups and communicators between like and unlike ranks: contexts that don't mix, windows on any of them, errors.

use longshore::job::Routes;
use longshore::sim::{Options, run, run_shared};
use longshore::{
    ANY_SOURCE, ANY_TAG, Architecture, Class, Communicator, Comparison, Info, PROC_NULL, Rank,
    SplitType, Window,
};

/// Runs a program between like and unlike ranks, directly and by message, simulated and not.
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
fn a_dup_has_a_context_of_its_own() {
    everywhere(3, |_, world| {
        let dup = world.dup().unwrap();
        assert_eq!((dup.rank(), dup.size()), (world.rank(), world.size()));
        assert_eq!(dup.compare(world), Comparison::Congruent);
        assert_eq!(dup.compare(&dup), Comparison::Ident);
        // The same envelope in both; the later one is received first.
        let (next, before) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
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
        // Odd ranks backwards; rank 4 in none.
        let color = (me != 4).then_some(me % 2);
        let key = if me % 2 == 1 { -me } else { 0 };
        let part = world.split(color, key).unwrap();
        assert_eq!(part.is_some(), me != 4);
        let Some(part) = part else { return };
        let members = if me % 2 == 1 { [3, 1] } else { [0, 2] };
        assert_eq!(part.allgather(&[me]).unwrap(), members);
        assert_eq!(members[part.rank() as usize], me);
        // Source and target are ranks of the part.
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
fn contexts_stay_apart_wherever_groups_overlap() {
    everywhere(4, |_, world| {
        let me = world.rank();
        let halves = world.split(Some(me / 2), 0).unwrap().unwrap();
        // Ranks 0 and 1 make more of them, so their next context is another than that of ranks 2 and 3.
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
fn ranks_of_like_architecture_find_each_other() {
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
fn a_group_makes_a_communicator_without_asking_others() {
    everywhere(4, |_, world| {
        let me = world.rank();
        // Rank 2 doesn't call; ranks 3 and 0 make two at the same time.
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
fn windows_on_a_part_count_its_ranks() {
    everywhere(5, |rank, world| {
        let me = world.rank();
        let odd = world.split(Some(me % 2), -me).unwrap().unwrap();
        let double = rank.type_of::<f64>().unwrap();
        let mut window = Window::allocate(&odd, 80, 8, &Info::default()).unwrap();
        let mut own = Window::create(&odd, vec![0u8; 16], 8, &Info::default()).unwrap();
        // A window outlives the communicator that it was made on.
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

        // Wrong ranks and places are told by ranks of the window, with the rank in the job beside.
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
fn what_is_wrong_with_a_communicator_all_hear() {
    everywhere(3, |rank, world| {
        let me = world.rank();
        let error = world.split(Some(if me == 1 { -1 } else { 0 }), 0).err().unwrap();
        expect(&error, Class::Arg, &["color -1 is negative"]);
        // Two that give different groups with ranks in common.
        let group = world.group().incl(if me == 0 { &[0, 1] } else { &[1, 2] }).unwrap();
        let error = world.create(&group).err().unwrap();
        expect(&error, Class::Group, &["not all gave the same group"]);
        // From outside of the communicator.
        let error = rank.alone().create(world.group()).err().unwrap();
        expect(&error, Class::Group, &["isn't in the communicator"]);
        let others = world.group().excl(&[me]).unwrap();
        let error = world.create_group(&others, 0).err().unwrap();
        expect(&error, Class::Group, &["isn't in the group"]);
        let error = world.create_group(world.group(), -1).err().unwrap();
        expect(&error, Class::Tag, &["tag -1"]);
        // And everything goes on.
        let empty = world.group().incl(&[]).unwrap();
        assert!(world.create(&empty).unwrap().is_none());
        world.dup().unwrap().free().unwrap();
    });
}

#[test]
fn names_are_of_handles_and_of_this_rank() {
    everywhere(2, |rank, world| {
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
