//! Packed datatypes and communicators: the argument table of proposal 1 (docs/proposals.md),
//! unpacking, and the comparison of communicators across jobs.

use longshore::handle::{
    Argument::{In, Out},
    CommunicatorHandle, Communicators, Handle, Role, Types, pack, pack_size, unpack,
};
use longshore::sim::{Options, run};
use longshore::{
    Architecture, Class, Comparison, Datatype, Destination, Info, Origin, Rank, Window,
};

const NONE: Option<&[u8]> = None;
const NO_ROOM: Option<&mut [u8]> = None;

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
fn pack_follows_every_row_of_the_argument_table() {
    job(&[Architecture::NATIVE], |rank| {
        let (types, comms) = (Types::new(rank), Communicators::new(rank));
        let tables = (&types, &comms);
        let (null, world) = (CommunicatorHandle::NULL, CommunicatorHandle::WORLD);
        let column = Datatype::vector(2, 1, 2, &Datatype::double()).unwrap();
        let column = types.insert(column).unwrap();
        let values = [1.0, 2.0, 3.0, 4.0];
        let (mut packed, mut position) = ([0u8; 2048], 0);

        // A datatype, committed or not.
        let size = pack_size(&types, &comms, 1, column, null).unwrap();
        pack(tables, NONE, 1, column, &mut packed, &mut position, null).unwrap();
        assert_eq!(position, size);
        assert_eq!(packed[..12], *b"MDT1;P;00000");
        // A communicator.
        let size = pack_size(&types, &comms, 1, Handle::NULL, world).unwrap();
        pack(tables, NONE, 1, Handle::NULL, &mut packed, &mut position, world).unwrap();
        let data = position;
        // Data.
        types.commit(column).unwrap();
        assert_eq!(pack_size(&types, &comms, 1, column, world).unwrap(), 16);
        pack(tables, Some(&values[..]), 1, column, &mut packed, &mut position, world).unwrap();
        assert_eq!(position, data + 16);

        position = 0;
        let (mut datatype, mut communicator) = (Handle::NULL, null);
        unpack(tables, &packed, &mut position, NO_ROOM, 1, Out(&mut datatype), In(null)).unwrap();
        assert_eq!(types.print(datatype).unwrap(), "U1(V:d:2:1:2)");
        types.as_own(datatype, Role::Origin).unwrap();
        let out = Out(&mut communicator);
        unpack(tables, &packed, &mut position, NO_ROOM, 1, In(Handle::NULL), out).unwrap();
        assert_eq!(position, data);
        assert_eq!(comms.compare(communicator, world).unwrap(), Comparison::Ident);
        let mut back = [0.0; 4];
        let room = Some(&mut back[..]);
        unpack(tables, &packed, &mut position, room, 1, In(datatype), In(world)).unwrap();
        assert_eq!((back, position), ([1.0, 0.0, 3.0, 0.0], data + 16));

        // Combinations that aren't in the table.
        let mut other = Handle::NULL;
        for count in [0, 2, -1] {
            let null_type = pack_size(&types, &comms, count, Handle::NULL, world);
            expect(null_type, Class::Arg, &format!("count of {count} with a null handle"));
            expect(pack_size(&types, &comms, count, column, null), Class::Arg, "pass 1");
            let out = Out(&mut other);
            let unpacked = unpack(tables, &packed, &mut 0, NO_ROOM, count, out, In(null));
            expect(unpacked, Class::Arg, &format!("count of {count}"));
        }
        let both = pack(tables, NONE, 1, Handle::NULL, &mut packed, &mut 0, null);
        expect(both, Class::Arg, "both null");
        let both = unpack(tables, &packed, &mut 0, NO_ROOM, 1, In(Handle::NULL), In(null));
        expect(both, Class::Arg, "both null");
        let taken = unpack(tables, &packed, &mut 0, NO_ROOM, 1, Out(&mut datatype), In(null));
        expect(taken, Class::Arg, "set it to null");
        let beside = unpack(tables, &packed, &mut 0, NO_ROOM, 1, Out(&mut other), In(world));
        expect(beside, Class::Arg, "pass a null handle beside");
        expect(pack(tables, NONE, 1, column, &mut packed, &mut 0, world), Class::Buffer, "buffer");
        // Data of zero bytes need no address.
        pack(tables, NONE, 0, column, &mut packed, &mut position, world).unwrap();
        let nowhere = In(column);
        unpack(tables, &packed, &mut position, NO_ROOM, 0, nowhere, In(world)).unwrap();
        assert_eq!(position, data + 16);
        let nowhere = unpack(tables, &packed, &mut 0, NO_ROOM, 1, In(column), In(world));
        expect(nowhere, Class::Buffer, "buffer");
        let (mut late, mut past) = (2040, 4096);
        let short = pack(tables, NONE, 1, column, &mut packed, &mut late, null);
        expect(short, Class::Truncate, "at position 2040, of which the buffer of 2048 has 8");
        expect(
            pack(tables, NONE, 1, column, &mut packed, &mut past, null),
            Class::Arg,
            "past the end",
        );
        assert_eq!((late, past, other), (2040, 4096, Handle::NULL));
        assert!(size > 0);
    });
}

#[test]
fn an_unpacked_communicator_can_only_be_compared_and_freed() {
    job(&[Architecture::S390X, Architecture::I686], |rank| {
        let (types, comms) = (Types::new(rank), Communicators::new(rank));
        let tables = (&types, &comms);
        let flat = rank.world().flat().unwrap();
        let mut unpacked = CommunicatorHandle::NULL;
        let out = Out(&mut unpacked);
        unpack(tables, flat.as_bytes(), &mut 0, NO_ROOM, 1, In(Handle::NULL), out).unwrap();
        let other_use = "unpacked: it can only be compared and freed";
        expect(comms.own(unpacked), Class::Comm, other_use);
        expect(pack_size(&types, &comms, 1, Handle::NULL, unpacked), Class::Comm, other_use);
        let double = Handle::predefined(longshore::shipable::Basic::Double);
        expect(pack_size(&types, &comms, 1, double, unpacked), Class::Comm, other_use);
        assert_eq!(comms.compare(unpacked, unpacked).unwrap(), Comparison::Ident);
        comms.free(unpacked).unwrap();
        expect(comms.compare(unpacked, CommunicatorHandle::WORLD), Class::Comm, "freed");
        expect(comms.own(CommunicatorHandle::NULL), Class::Comm, "null");
        expect(comms.free(CommunicatorHandle::SELF), Class::Comm, "from the start");
        let dup = comms.insert(rank.world().dup().unwrap());
        assert_eq!(comms.compare(dup, CommunicatorHandle::WORLD).unwrap(), Comparison::Congruent);
        comms.free(dup).unwrap();
        expect(comms.own(dup), Class::Comm, "freed");
    });
}

#[test]
fn a_communicator_is_freed_once_for_all_its_holders() {
    job(&[Architecture::S390X, Architecture::I686], |rank| {
        let comms = Communicators::new(rank);
        for first in [CommunicatorHandle::WORLD, CommunicatorHandle::SELF] {
            expect(comms.own(first).unwrap().free(), Class::Comm, "from the start");
        }
        let dup = comms.insert(rank.world().dup().unwrap());
        let [other, another] = [0; 2].map(|_| comms.own(dup).unwrap());
        other.barrier().unwrap();
        let window = Window::allocate(&other, 8, 8, &Info::default()).unwrap();
        comms.free(dup).unwrap();
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
