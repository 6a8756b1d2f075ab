//! Collective calls that a rank can't carry out, or only in part.

use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Class, Datatype, Destination, Rank, c};
use longshore_file::{Amode, File, Info, Whence};

fn path(name: &str) -> String {
    let name = format!("longshore-partial-{}-{name}", std::process::id());
    std::env::temp_dir().join(name).to_str().unwrap().to_owned()
}

/// Runs ranks of x86-64. Their memory is `shared`, or they exchange messages.
fn ranks(count: u32, shared: bool, body: impl Fn(&Rank) + Sync) {
    let architectures = vec![Architecture::X86_64; count as usize];
    let options = Options { architectures, ..Options::default() };
    let body = |rank: Rank| {
        body(&rank);
        rank.finalize().unwrap();
    };
    match shared {
        true => run_shared(count, &options, body),
        false => run(count, &options, body),
    }
    .unwrap();
}

fn hints(pairs: &[(&str, &str)]) -> Info {
    pairs.iter().fold(Info::default(), |info, (key, value)| info.set(key, value).unwrap())
}

/// Opens a file that goes when it is closed.
fn scratch(rank: &Rank, path: &str, info: &Info) -> File {
    let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    File::open(rank.world(), path, amode, info).unwrap()
}

/// All bytes of the file.
fn bytes(rank: &Rank, file: &File) -> Vec<u8> {
    rank.world().barrier().unwrap();
    let byte = rank.type_of::<u8>().unwrap();
    file.set_view(0, &byte, &byte, "native", &Info::default()).unwrap();
    let mut all = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut all[..]).unwrap();
    all
}

#[test]
fn values_before_one_that_does_not_fit_are_written_and_none_after_it() {
    const ITEMS: usize = 9000;
    // The domains of two aggregators meet after 4500 items. Each has many rounds.
    for (bad, shared) in [(2000, true), (2000, false), (7000, true), (7000, false)] {
        let path = path(&format!("value-{bad}-{shared}"));
        ranks(3, shared, |rank| {
            let me = i64::from(rank.world().rank());
            let info = hints(&[
                ("romio_cb_write", "enable"),
                ("cb_nodes", "2"),
                ("cb_buffer_size", "4096"),
            ]);
            let file = scratch(rank, &path, &info);
            let long = rank.commit(&Datatype::long()).unwrap();
            let every = rank.commit(&Datatype::resized(0, 12, &Datatype::long()).unwrap()).unwrap();
            file.set_view(4 * me, &long, &every, "external32", &info).unwrap();
            let mut values = rank.buffer::<c::Long>(ITEMS).unwrap();
            for at in 0..ITEMS {
                let value = if me == 1 && at == bad { 1i64 << 40 } else { at as i64 + 1 };
                values.set(at, c::Long(value as _)).unwrap();
            }
            let error = file.write_all(&values).unwrap_err();
            assert_eq!(error.class(), Class::Conversion, "{error}");
            for (at, number) in bytes(rank, &file).chunks(4).enumerate() {
                let (item, of) = (at / 3, at % 3);
                let expected = if of == 1 && item >= bad { 0 } else { item as u32 + 1 };
                assert_eq!(number, expected.to_be_bytes(), "item {item} of rank {of}");
            }
            file.close().unwrap();
        });
    }
}

#[test]
fn pointers_stay_where_they_are_if_a_rank_refuses() {
    let path = path("pointer");
    ranks(3, true, |rank| {
        let me = rank.world().rank();
        let file = scratch(rank, &path, &Info::default());
        let int = rank.type_of::<i32>().unwrap();
        file.set_view(0, &int, &int, "native", &Info::default()).unwrap();
        file.seek(5, Whence::Set).unwrap();
        // The last rank writes no whole number of ints.
        let data = vec![1u8; if me == 2 { 7 } else { 8 }];
        let error = file.write_all(&data[..]).unwrap_err();
        assert_eq!((error.class(), file.position().unwrap()), (Class::Type, 5));
        assert_eq!(file.size().unwrap(), 0);
        file.write_all(&data[..4]).unwrap();
        assert_eq!(file.position().unwrap(), 6);
        file.close().unwrap();
    });
}

#[test]
fn a_read_that_ends_within_an_element_counts_the_items_before() {
    let path = path("items");
    for by_aggregators in ["enable", "disable"] {
        ranks(2, true, |rank| {
            let info = hints(&[("romio_cb_read", by_aggregators)]);
            let file = scratch(rank, &path, &info);
            let fields = [Datatype::long(), Datatype::int()];
            let record = Datatype::struct_(&[1, 1], &[0, 8], &fields).unwrap();
            let record = rank.commit(&record).unwrap();
            file.set_view(0, &record, &record, "external32", &info).unwrap();
            // In the file a record has 8 bytes of data, in memory it has 12.
            file.set_size(file.type_extent(record.datatype()).unwrap() + 4).unwrap();
            let mut room = [7u8; 32];
            let room = Destination::typed(&mut room[..], 2, &record);
            let status = file.read_at_all(0, room).unwrap();
            assert_eq!(status.bytes, 12 + 8);
            file.close().unwrap();
        });
    }
}

#[test]
fn calls_that_wait_for_accesses_fail_at_all_ranks() {
    let path = path("idle");
    ranks(3, true, |rank| {
        let me = rank.world().rank();
        let file = scratch(rank, &path, &Info::default());
        file.write_all_begin(&[1u8]).unwrap();
        if me != 1 {
            file.write_all_end().unwrap();
        }
        for error in [file.sync().unwrap_err(), file.may_close().unwrap_err()] {
            assert_eq!(error.class(), Class::Io);
            assert!(error.to_string().contains("write_all_begin has no end"), "{error}");
        }
        if me == 1 {
            file.write_all_end().unwrap();
        }
        file.sync().unwrap();
        file.close().unwrap();
    });
}

#[test]
fn the_extents_of_etypes_are_equal_at_all_ranks() {
    let path = path("extent");
    ranks(2, true, |rank| {
        let file = scratch(rank, &path, &Info::default());
        let (int, me) = (Datatype::int(), rank.world().rank());
        // The same data, and at one rank a gap.
        let wide = Datatype::resized(0, 8, &int).unwrap();
        let etype = rank.commit(if me == 0 { &int } else { &wide }).unwrap();
        let error = file.set_view(0, &etype, &etype, "native", &Info::default()).unwrap_err();
        assert_eq!(error.class(), Class::NotSame);
        assert!(error.to_string().contains("from 4 to 8"), "{error}");
        file.close().unwrap();
    });
}

#[test]
fn a_close_that_one_rank_refuses_fails_at_all() {
    let path = path("closed");
    ranks(2, true, |rank| {
        let file = scratch(rank, &path, &Info::default());
        if rank.world().rank() == 1 {
            file.write_at_all_begin(0, &[0u8; 0]).unwrap();
        } else {
            file.write_at_all(0, &[0u8; 0]).unwrap();
        }
        assert_eq!(file.close().unwrap_err().class(), Class::Io);
    });
    assert!(!std::path::Path::new(&path).exists());
}
