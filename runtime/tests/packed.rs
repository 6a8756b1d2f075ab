//! Packed buffers between like and unlike ranks, and messages that end inside an element.

use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Class, Datatype, Destination, Origin, Rank, Shipable, UNDEFINED, c};

/// Runs a program between like and unlike ranks, simulated and on threads.
fn everywhere(ranks: u32, body: impl Fn(&Rank) + Sync) {
    let whole = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    let with = |middle| vec![Architecture::S390X, middle, Architecture::I686];
    let unlike = |middle| Options { architectures: with(middle), ..Options::default() };
    // Packed buffers of like ranks have their representation, even if the machine has another.
    let foreign = Options { architectures: vec![Architecture::S390X; 3], ..Options::default() };
    // aarch64's is the representation of packed buffers between unlike ranks.
    for options in
        [Options::default(), foreign, unlike(Architecture::NATIVE), unlike(Architecture::AARCH64)]
    {
        for seed in 0..2 {
            run(ranks, &Options { seed, ..options.clone() }, whole).unwrap();
        }
        run_shared(ranks, &options, whole).unwrap();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Record {
    key: u8,
    weight: f64,
    place: [i16; 3],
    far: c::LongLong,
}

const RECORD: Record =
    Record { key: 7, weight: -0.25, place: [1, -2, 3], far: c::LongLong(1 << 40) };

#[test]
fn a_packed_buffer_is_unpacked_by_every_rank() {
    everywhere(3, |rank| {
        let world = rank.world();
        let (me, size) = (world.rank(), world.size());
        // A count, records, and every second int of an array in the rank's own representation.
        let mut ints = rank.buffer::<i32>(5).unwrap();
        for at in 0..5 {
            ints.set(at, me * 10 + at as i32).unwrap();
        }
        let int = Datatype::int32();
        let every_other = rank.commit(&Datatype::vector(3, 1, 2, &int).unwrap()).unwrap();
        let record = rank.type_of::<Record>().unwrap();
        let needed = world.pack_size(1, &rank.type_of::<i64>().unwrap()).unwrap()
            + world.pack_size(2, &record).unwrap()
            + world.pack_size(1, &every_other).unwrap();
        let (mut packed, mut position) = (vec![0; needed as usize + 3], 3);
        world.pack(&[i64::from(me) - 1], &mut packed, &mut position).unwrap();
        world
            .pack(&[RECORD, Record { key: me as u8, ..RECORD }], &mut packed, &mut position)
            .unwrap();
        world.pack(Origin::typed(&ints, 1, &every_other), &mut packed, &mut position).unwrap();
        assert_eq!(position, packed.len() as u64);

        let bytes = rank.commit(&Datatype::packed()).unwrap();
        let all = world.allgather(&packed).unwrap();
        let next = (me + 1) % size;
        // The buffer is also sent as PACKED bytes.
        let length = packed.len() as i64;
        world.send(Origin::typed(&packed[..], length, &bytes), next, 0).unwrap();
        let before = (me + size - 1) % size;
        let mut arrived = vec![0u8; packed.len()];
        world.recv(Destination::typed(&mut arrived[..], length, &bytes), before, 0).unwrap();
        assert!(arrived[..] == all[before as usize * packed.len()..][..packed.len()]);

        for (from, packed) in (0..size).zip(all.chunks(packed.len())) {
            let mut position = 3;
            let (mut count, mut records, mut three) = ([0i64], [RECORD; 2], [0i32; 3]);
            world.unpack(packed, &mut position, &mut count).unwrap();
            // Records that were packed together are unpacked one by one.
            for record in &mut records {
                let record = std::slice::from_mut(record);
                world.unpack(packed, &mut position, &mut record[..]).unwrap();
            }
            world.unpack(packed, &mut position, &mut three).unwrap();
            assert_eq!(position, packed.len() as u64);
            assert_eq!(count, [i64::from(from) - 1]);
            assert_eq!(records, [RECORD, Record { key: from as u8, ..RECORD }]);
            assert_eq!(three, [0, 2, 4].map(|at| from * 10 + at));
        }
        // A communicator of one rank packs in that rank's own representation.
        let alone = rank.alone();
        let mut own = 0;
        let longs = rank.commit(&Datatype::long()).unwrap();
        let long = rank.architecture().leaf(shipable::Basic::Long.into()).unwrap().size;
        assert_eq!(alone.pack_size(3, &longs).unwrap(), 3 * u64::from(long));
        alone.pack(&[1u8], &mut [0], &mut own).unwrap();
        assert_eq!(own, 1);
    });
}

#[test]
fn external_representations_have_equal_bytes_on_every_rank() {
    everywhere(3, |rank| {
        let mut memory = rank.buffer::<Record>(1).unwrap();
        memory.set(0, RECORD).unwrap();
        let place = RECORD.place;
        for (datarep, length) in [("external32", 1 + 8 + 6 + 8), ("xdr", 4 + 8 + 12 + 8)] {
            let record = rank.type_of::<Record>().unwrap();
            assert_eq!(rank.pack_external_size(datarep, 1, &record).unwrap(), length);
            let (mut packed, mut position) = (vec![0; length as usize], 0);
            rank.pack_external(datarep, &memory, &mut packed, &mut position).unwrap();
            assert_eq!(position, length);
            let mut expected = Vec::new();
            match datarep {
                "xdr" => {
                    expected.extend(7u32.to_be_bytes());
                    expected.extend((-0.25f64).to_be_bytes());
                    expected.extend(place.iter().flat_map(|&n| i32::from(n).to_be_bytes()));
                }
                _ => {
                    expected.push(7);
                    expected.extend((-0.25f64).to_be_bytes());
                    expected.extend(place.iter().flat_map(|n| n.to_be_bytes()));
                }
            }
            expected.extend((1i64 << 40).to_be_bytes());
            assert_eq!(packed, expected, "{datarep}");
            let (mut back, mut position) = ([Record { key: 0, ..RECORD }], 0);
            rank.unpack_external(datarep, &packed, &mut position, &mut back).unwrap();
            assert_eq!(back, [RECORD]);
        }
        let refused = rank.pack_external("ieee", &[1u8], &mut [0], &mut 0).unwrap_err();
        assert_eq!(refused.class(), Class::UnsupportedDatarep, "{refused}");
    });
}

#[test]
fn pack_errors_name_the_bad_argument() {
    everywhere(1, |rank| {
        let world = rank.world();
        let expect = |error: longshore::Error, class, words: &[&str]| {
            assert_eq!(error.class(), class, "{error}");
            let text = error.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        };
        let (mut packed, mut position) = ([0; 10], 8);
        let full = world.pack(&[1i32], &mut packed, &mut position).unwrap_err();
        expect(full, Class::Truncate, &["pack at rank 0", "4 bytes at position 8", "10 has 2"]);
        let past = world.unpack(&packed, &mut 11, &mut [0u8]).unwrap_err();
        expect(past, Class::Arg, &["unpack at rank 0", "position 11", "10 bytes"]);
        let ints = rank.type_of::<i32>().unwrap();
        let negative = world.pack_size(-1, &ints).unwrap_err();
        expect(negative, Class::Count, &["pack_size", "-1"]);
        let short = Origin::typed(&[0u8; 7][..], 2, &ints);
        let short = world.pack(short, &mut packed, &mut 0).unwrap_err();
        expect(short, Class::Buffer, &["7"]);
        // Unpacking to overlapping bytes is refused.
        let twice = Datatype::hvector(2, 1, 0, &Datatype::byte()).unwrap();
        let twice = rank.commit(&twice).unwrap();
        let mut room = [0u8; 4];
        let twice = Destination::typed(&mut room[..], 1, &twice);
        assert!(world.unpack(&packed, &mut 0, twice).is_err());
        assert_eq!(position, 8);
    });
}

#[test]
fn a_message_may_end_inside_an_element() {
    everywhere(3, |rank| {
        let world = rank.world();
        let (next, before) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
        let members = [Datatype::int32(), Datatype::double()];
        let pair = rank.commit(&Datatype::simple_struct(&[1, 1], &members).unwrap()).unwrap();
        // An int, a double and an int: one and a half elements of the pair type.
        let three = Datatype::simple_struct(
            &[1, 1, 1],
            &[Datatype::int32(), Datatype::double(), Datatype::int32()],
        );
        let three = rank.commit(&three.unwrap()).unwrap();
        let extent = three.extent() as usize;
        let bytes = vec![0u8; extent];
        world.send(Origin::typed(&bytes[..], 1, &three), next, 0).unwrap();
        let mut room = vec![0xeeu8; 2 * pair.extent() as usize];
        let status = world.recv(Destination::typed(&mut room[..], 2, &pair), before, 0).unwrap();
        assert_eq!((status.count, status.elements), (UNDEFINED, 3));
        let half = pair.extent() as usize;
        assert_eq!(room[half..half + 4], [0; 4]);
        assert!(room[half + 4..].iter().all(|&byte| byte == 0xee));
        // A double first isn't a prefix of the pair's signature.
        world.send(&[0.5f64], next, 1).unwrap();
        let refused = world.recv(Destination::typed(&mut room[..], 2, &pair), before, 1);
        assert_eq!(refused.unwrap_err().class(), Class::Type);
        world.barrier().unwrap();
    });
}

#[test]
fn packed_messages_match_any_type() {
    everywhere(3, |rank| {
        let world = rank.world();
        let me = world.rank();
        let (next, before) = ((me + 1) % 3, (me + 2) % 3);
        let packed = rank.commit(&Datatype::packed()).unwrap();
        let (mut bytes, mut position) = ([0u8; 20], 0);
        world.pack(&[me, 7], &mut bytes, &mut position).unwrap();
        world.pack(&[me, me + 1], &mut bytes, &mut position).unwrap();
        world.send(Origin::typed(&bytes[..], position as i64, &packed), next, 0).unwrap();
        let mut ints = [0i32; 5];
        let status = world.recv(&mut ints, before, 0).unwrap();
        assert_eq!((status.count, status.elements), (4, 4));
        assert_eq!(ints, [before, 7, before, before + 1, 0]);
        // Data sent with a type are received as PACKED if they travel in the representation of
        // packed buffers, which is that of the ranks or, if theirs differ, aarch64's.
        world.send(&[me, 9], next, 1).unwrap();
        let room = Destination::typed(&mut bytes[..], 20, &packed);
        let received = world.recv(room, before, 1);
        let of = |member| world.representation(member).unwrap();
        let alike = (1..3).all(|member| of(member).same_representation(&of(0)));
        let buffers = if alike { of(0) } else { Architecture::AARCH64 };
        assert_eq!(received.is_ok(), of(before).same_representation(&buffers));
        match received {
            Ok(status) => {
                assert_eq!(status.count, 8);
                let mut ints = [0; 2];
                world.unpack(&bytes, &mut 0, &mut ints).unwrap();
                assert_eq!(ints, [before, 9]);
            }
            Err(error) => assert_eq!(error.class(), Class::Type, "{error}"),
        }
    });
}
