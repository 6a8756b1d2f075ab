//! Packed datatypes and communicators: unpacking, and the comparison of communicators across jobs.
//! The tests in C have the argument table of proposal 1 (docs/proposals.md).

use longshore::sim::{Options, run};
use longshore::{
    Architecture, Class, Comparison, Datatype, Destination, Info, Origin, Rank, Window,
};

fn expect<T>(outcome: longshore::Result<T>, class: Class, words: &str) {
    let error = outcome.err().unwrap();
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().contains(words), "no {words:?} in: {error}");
}

/// Runs a job with a rank of each architecture. Returns the result of rank 0.
fn job<T: Send>(architectures: &[Architecture], body: impl Fn(&Rank) -> T + Sync) -> T {
    let options = Options { architectures: architectures.to_vec(), ..Options::default() };
    let whole = |rank: Rank| {
        let result = body(&rank);
        rank.finalize().unwrap();
        result
    };
    run(architectures.len() as u32, &options, whole).unwrap().remove(0)
}

#[test]
fn a_communicator_is_freed_once_for_all_its_holders() {
    job(&[Architecture::S390X, Architecture::I686], |rank| {
        for first in [rank.world(), rank.alone()] {
            expect(first.share().free(), Class::Comm, "from the start");
        }
        let dup = rank.world().dup().unwrap();
        let [other, another] = [0; 2].map(|_| dup.share());
        other.barrier().unwrap();
        let window = Window::allocate(&other, 8, 8, &Info::default()).unwrap();
        dup.free().unwrap();
        expect(other.barrier(), Class::Comm, "freed");
        expect(other.send(&[1i32], 0, 0), Class::Comm, "freed");
        expect(other.dup(), Class::Comm, "freed");
        expect(Window::allocate(&other, 8, 8, &Info::default()), Class::Comm, "freed");
        expect(another.free(), Class::Comm, "freed");
        // Objects that were made on it stay valid.
        window.free().unwrap();
    });
}

#[test]
fn communicators_compare_across_jobs() {
    use Architecture as A;
    let earlier = job(&[A::S390X, A::I686], |rank| rank.world().flat().unwrap());
    job(&[A::S390X, A::I686, A::NATIVE], |rank| {
        let world = rank.world();
        let unpacked = |text: &str| rank.unpack_communicator(text.as_bytes(), &mut 0).unwrap();
        let compared = |flat: &str| world.compare_unpacked(&unpacked(flat)).unwrap();
        let flat = world.flat().unwrap();
        assert_eq!(compared(&flat), Comparison::Ident);
        let dup = world.dup().unwrap();
        assert_eq!(compared(&dup.flat().unwrap()), Comparison::Congruent);
        let turned = world.split(Some(0), -world.rank()).unwrap().unwrap();
        assert_eq!(compared(&turned.flat().unwrap()), Comparison::Similar);
        let part = world.create(&world.group().incl(&[0, 1]).unwrap()).unwrap();
        if let Some(part) = &part {
            assert_eq!(compared(&part.flat().unwrap()), Comparison::ArchEquiv);
            // Equal ranks of another job aren't identical.
            let theirs = unpacked(&earlier);
            assert_eq!(part.compare_unpacked(&theirs).unwrap(), Comparison::ArchEquiv);
            // Two communicators of this job compare by MPI's rules.
            assert_eq!(part.compare(world), Comparison::Unequal);
        }
        let all = world.allgather(flat.as_bytes()).unwrap();
        assert!(all.chunks(flat.len()).all(|other| other == flat.as_bytes()));
        // Damaged or truncated.
        let damaged = flat.replace("MCM1", "MCM2");
        let version = "version 2 of it, which is not known here";
        expect(rank.unpack_communicator(damaged.as_bytes(), &mut 0), Class::Type, version);
        expect(
            rank.unpack_communicator(&flat.as_bytes()[..20], &mut 0),
            Class::Truncate,
            "20 bytes",
        );
        for communicator in [Some(dup), Some(turned), part].into_iter().flatten() {
            communicator.free().unwrap();
        }
    });
}

#[test]
fn an_object_describes_itself_on_any_architecture() {
    let kinds = [Architecture::S390X, Architecture::I686, Architecture::M68K, Architecture::WIN64];
    for writers in [&kinds[..1], &kinds[..2], &[Architecture::NATIVE]] {
        let object = job(writers, |rank| {
            let matrix: Vec<f64> = (0..12).map(f64::from).collect();
            let mut memory = rank.buffer::<f64>(12).unwrap();
            memory.write(0, &matrix).unwrap();
            let column = Datatype::vector(4, 1, 3, &Datatype::double()).unwrap();
            let column = rank.commit(&column).unwrap();
            let mut object = rank.world().flat().unwrap().into_bytes();
            object.extend(column.flat().unwrap().into_bytes());
            let mut position = object.len() as u64;
            let room = rank.world().pack_size(1, &column).unwrap();
            object.resize(object.len() + room as usize, 0);
            let column = Origin::typed(&memory, 1, &column).at(8);
            rank.world().pack(column, &mut object, &mut position).unwrap();
            object
        });
        for reader in kinds {
            job(&[reader], |rank| {
                let mut position = 0;
                let origin = rank.unpack_communicator(&object, &mut position).unwrap();
                let column = rank.unpack_type(&object, &mut position).unwrap();
                let mut memory = rank.buffer::<f64>(12).unwrap();
                let room = Destination::typed(&mut memory, 1, &column);
                rank.unpack_of(&origin, &object, &mut position, room).unwrap();
                assert_eq!(position, object.len() as u64);
                let values = memory.to_vec().unwrap();
                assert_eq!((values[0], values[1]), (1.0, 0.0));
                assert_eq!((values[3], values[6], values[9]), (4.0, 7.0, 10.0));
                assert!(rank.world().compare_unpacked(&origin).unwrap() == Comparison::ArchEquiv);
            });
        }
    }
}

#[test]
fn a_packed_type_with_an_unusable_tag_is_refused() {
    let local = |rank: &Rank| {
        let gapped = Datatype::hvector(2, 1, 16, &Datatype::double()).unwrap();
        rank.commit(&gapped).unwrap().flat().unwrap()
    };
    let there = job(&[Architecture::S390X], local);
    job(&[Architecture::I686], |rank| {
        let mut position = 0;
        let both = "specific to s390x, and this is i686";
        expect(rank.unpack_type(there.as_bytes(), &mut position), Class::Type, both);
        assert_eq!(position, 0);
        rank.unpack_type(local(rank).as_bytes(), &mut position).unwrap();
        // This library never writes such an object, so the test adds the checksum itself.
        let foreign = "MDT1;F;00000028;-;U1(S:1:d/1/0);0fcf8ae6";
        expect(rank.unpack_type(foreign.as_bytes(), &mut 0), Class::Type, "tag F, a foreign type");
    });
}
