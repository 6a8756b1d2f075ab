//! Intercommunicators between groups of unlike ranks.

use longshore::job::{Checking, Routes, Topics};
use longshore::sim::{Options, run};
use longshore::{
    ANY_SOURCE, Architecture, Class, Communicator, Comparison, Info, Op, PROC_NULL, ROOT, Rank,
    Window,
};

const KINDS: [Architecture; 4] =
    [Architecture::S390X, Architecture::NATIVE, Architecture::I686, Architecture::M68K];

/// Runs a program on intercommunicators of the ranks below `low` and the others.
fn between(body: impl Fn(&Rank, &Communicator, bool) + Sync) {
    for (size, low) in [(2, 1), (3, 1), (5, 3), (9, 2)] {
        let whole = |rank: Rank| {
            let world = rank.world();
            let is_low = world.rank() < low;
            let part = world.split(Some(i32::from(is_low)), 0).unwrap().unwrap();
            // The last rank of each part leads it.
            let leader = part.size() - 1;
            let other = if is_low { size as i32 - 1 } else { low - 1 };
            let peer = Some((world, other)).filter(|_| part.rank() == leader);
            let both = part.intercomm_create(leader, peer, 3).unwrap();
            part.free().unwrap();
            assert_eq!(both.remote_group().unwrap().size(), size as i32 - both.size());
            body(&rank, &both, is_low);
            both.free().unwrap();
            rank.finalize().unwrap();
        };
        let architectures = KINDS.into_iter().cycle().take(size as usize).collect();
        let unlike = Options { architectures, routes: Routes::Message, ..Options::default() };
        run(size, &unlike, whole).unwrap();
        run(size, &Options::default(), whole).unwrap();
        run(
            size,
            &Options { check: Checking::Report(Topics::default()), ..Options::default() },
            whole,
        )
        .unwrap();
    }
}

#[test]
fn each_group_gets_the_data_of_the_other() {
    between(|rank, both, is_low| {
        let me = f64::from(rank.world().rank()) + 0.5;
        let others = both.remote_group().unwrap().processes();
        let values: Vec<f64> = others.iter().map(|rank| f64::from(*rank) + 0.5).collect();
        both.barrier().unwrap();
        let mut all = vec![0.0; others.len()];
        both.allgather_into(&[me], &mut all).unwrap();
        assert_eq!(all, values);
        let mut sum = [0.0];
        both.allreduce(&[me], &mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [values.iter().sum::<f64>()]);
        let started = both.iallreduce(vec![me], vec![0.0], Op::Max).unwrap();
        assert_eq!(started.wait().unwrap().1[0], *values.last().unwrap());
        // The first rank of the lower group is the root.
        let root = match (is_low, both.rank()) {
            (true, 0) => ROOT,
            (true, _) => PROC_NULL,
            (false, _) => 0,
        };
        let mut value = [if root == ROOT { 7i64 } else { 0 }];
        both.bcast(&mut value, root).unwrap();
        assert_eq!(value, [if root == PROC_NULL { 0 } else { 7 }]);
        let mut got = vec![0.0; if root == ROOT { others.len() } else { 0 }];
        both.gather(&[me], &mut got, root).unwrap();
        assert!(root != ROOT || got == values);
        let mut least = [0.0];
        both.reduce(&[me], &mut least, Op::Min, root).unwrap();
        assert_eq!(least, [if root == ROOT { values[0] } else { 0.0 }]);
    });
}

#[test]
fn messages_go_to_the_other_group() {
    between(|rank, both, _| {
        let peers = both.remote_group().unwrap().size();
        for to in 0..peers {
            both.send(&[rank.world().rank()], to, 1).unwrap();
        }
        let mut from = Vec::new();
        for _ in 0..peers {
            let mut got = [0];
            let status = both.recv(&mut got, ANY_SOURCE, 1).unwrap();
            let process = both.remote_group().unwrap().processes()[status.source as usize];
            assert_eq!(got, [process as i32]);
            from.push(status.source);
        }
        from.sort_unstable();
        assert!(from.into_iter().eq(0..peers));
        assert_eq!(both.send(&[1], peers, 1).err().unwrap().class(), Class::Rank);
    });
}

#[test]
fn communicators_are_derived_from_both_groups() {
    between(|rank, both, is_low| {
        let dup = both.dup().unwrap();
        assert_eq!(dup.compare(both), Comparison::Congruent);
        assert_eq!(dup.compare(rank.world()), Comparison::Unequal);
        dup.free().unwrap();
        for high in [is_low, !is_low] {
            let merged = both.merge(high).unwrap();
            let before = if high { both.remote_group().unwrap().size() } else { 0 };
            assert_eq!(merged.rank(), before + both.rank());
            assert!(merged.remote_group().is_none());
            merged.free().unwrap();
        }
        let firsts = both.split(Some(i32::from(both.rank() > 0)), 0).unwrap();
        assert!(both.rank() > 0 || firsts.as_ref().unwrap().remote_group().unwrap().size() == 1);
        if let Some(firsts) = firsts {
            firsts.free().unwrap();
        }
        // Calls that aren't defined on two groups.
        let mut sum = [0];
        assert_eq!(both.scan(&[1], &mut sum, Op::Sum).err().unwrap().class(), Class::Comm);
        let window = Window::allocate(both, 8, 1, &Info::default());
        assert_eq!(window.err().unwrap().class(), Class::Comm);
        let group = both.group().clone();
        assert_eq!(both.create_group(&group, 0).err().unwrap().class(), Class::Comm);
    });
}

#[test]
fn an_error_of_a_leader_reaches_its_group() {
    let body = |rank: Rank| {
        let world = rank.world();
        let made = world.intercomm_create(0, None, 0).err().unwrap();
        assert_eq!(made.class(), Class::Comm);
        let peer = Some((world, 1)).filter(|_| world.rank() == 0);
        let made = world.intercomm_create(0, peer, -1).err().unwrap();
        assert_eq!(made.class(), Class::Tag);
        assert_eq!(world.merge(true).err().unwrap().class(), Class::Comm);
        rank.finalize().unwrap();
    };
    run(3, &Options::default(), body).unwrap();
}
