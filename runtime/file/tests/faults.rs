//! Faults: each has MPI's class and the values, at all ranks of a collective call.

use std::path::PathBuf;

use longshore::sim::{Options, run_shared};
use longshore::{Class, Datatype, Rank, c};
use longshore_file::{Amode, Error, File, Info, Whence};

fn path(name: &str) -> String {
    let name = format!("longshore-faults-{}-{name}", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    path.to_str().unwrap().to_owned()
}

/// The hints that make collective calls go by aggregators, or not.
fn buffering(on: bool) -> Info {
    let value = if on { "true" } else { "false" };
    Info::default().set("collective_buffering", value).unwrap()
}

fn ranks(count: u32, body: impl Fn(&Rank) + Sync) {
    run_shared(count, &Options::default(), |rank| {
        body(&rank);
        rank.finalize().unwrap();
    })
    .unwrap();
}

/// Opens a file that goes when it is closed.
fn scratch(rank: &Rank, path: &str, info: &Info) -> File {
    let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    File::open(rank.world(), path, amode, info).unwrap()
}

#[test]
fn a_full_disk_is_no_space_at_every_rank() {
    for by_aggregators in [false, true] {
        ranks(3, |rank| {
            let info = buffering(by_aggregators);
            let file = File::open(rank.world(), "/dev/full", Amode::WRONLY, &info).unwrap();
            // The last rank writes nothing, and learns of it all the same.
            let me = rank.world().rank();
            let data = vec![1u8; if me == 2 { 0 } else { 10 }];
            let error = file.write_at_all(i64::from(me) * 10, &data[..]).unwrap_err();
            assert_eq!(error.class(), Class::NoSpace, "{error}");
            let says = matches!(error, Error::Elsewhere { .. });
            assert!(says == (me == 2 || by_aggregators && me > 0), "{error}");
            assert!(error.to_string().contains("/dev/full"), "{error}");
            file.close().unwrap();
        });
    }
}

#[test]
fn a_value_that_does_not_fit_ends_the_writes_of_its_rank_only() {
    if size_of::<c::Long>() == 4 {
        // Every long of this machine fits.
        return;
    }
    for by_aggregators in [false, true] {
        let path = path(&format!("value-{by_aggregators}"));
        ranks(3, |rank| {
            let (world, me) = (rank.world(), i64::from(rank.world().rank()));
            let info = buffering(by_aggregators);
            let file = scratch(rank, &path, &info);
            let long = rank.commit(&Datatype::long()).unwrap();
            let every = Datatype::vector(1, 1, 1, &Datatype::long()).unwrap();
            let every = rank.commit(&Datatype::resized(0, 12, &every).unwrap()).unwrap();
            file.set_view(4 * me, &long, &every, "external32", &info).unwrap();
            let mut values = rank.buffer::<c::Long>(100).unwrap();
            for at in 0..100 {
                values.set(at, c::Long(at as i64 as _)).unwrap();
            }
            if me == 1 {
                values.set(60, c::Long((1i64 << 40) as _)).unwrap();
            }
            let error = file.write_all(&values).unwrap_err();
            assert_eq!(error.class(), Class::Conversion);
            assert!(error.to_string().contains("1099511627776"), "{error}");
            world.barrier().unwrap();
            let size = file.size().unwrap();
            assert_eq!(size, 4 * 300);
            // What others wrote is there. Of the rank's own there is what came before the value.
            let mut all = vec![0u8; size as usize];
            file.set_view(
                0,
                &rank.type_of::<u8>().unwrap(),
                &rank.type_of::<u8>().unwrap(),
                "native",
                &info,
            )
            .unwrap();
            file.read_at(0, &mut all[..]).unwrap();
            for (at, number) in all.chunks(4).enumerate() {
                let (item, of) = (at / 3, at % 3);
                let expected = if of == 1 && item >= 60 { 0 } else { item as u32 };
                assert_eq!(number, expected.to_be_bytes(), "item {item} of rank {of}");
            }
            file.close().unwrap();
        });
    }
}

#[test]
fn an_error_of_one_rank_is_one_of_all() {
    let path = path("one");
    ranks(3, |rank| {
        let me = rank.world().rank();
        let file = scratch(rank, &path, &Info::default());
        let offset = if me == 1 { -5 } else { 0 };
        let error = file.write_at_all(offset, &[1u8]).unwrap_err();
        assert_eq!(error.class(), Class::Arg);
        let words = if me == 1 { "the offset -5" } else { "rank 1 of the file has failed" };
        assert!(error.to_string().contains(words) && error.to_string().contains("-5"), "{error}");
        let byte = rank.type_of::<u8>().unwrap();
        let datarep = if me == 2 { "mine" } else { "native" };
        let error = file.set_view(0, &byte, &byte, datarep, &Info::default()).unwrap_err();
        assert_eq!(error.class(), Class::UnsupportedDatarep);
        let datarep = if me == 2 { "internal" } else { "native" };
        let error = file.set_view(0, &byte, &byte, datarep, &Info::default()).unwrap_err();
        assert_eq!(error.class(), Class::NotSame);
        let error = file.set_size(i64::from(me)).unwrap_err();
        assert!(error.class() == Class::NotSame && error.to_string().contains("from 0 to 2"));
        let error = file.seek_shared(i64::from(me), Whence::Set).unwrap_err();
        assert_eq!(error.class(), Class::NotSame);
        file.close().unwrap();
    });
}

#[test]
fn a_path_that_is_not_one_file_is_refused_at_all_ranks() {
    ranks(2, |rank| {
        let mine = path(&format!("own-{}", rank.world().rank()));
        std::fs::write(&mine, b"x").unwrap();
        rank.world().barrier().unwrap();
        let opened = File::open(rank.world(), &mine, Amode::RDONLY, &Info::default());
        let error = opened.err().unwrap();
        assert_eq!(error.class(), Class::NotSame);
        assert!(error.to_string().contains("inodes"), "{error}");
        std::fs::remove_file(&mine).unwrap();
    });
}

#[test]
fn an_open_that_fails_leaves_no_file() {
    let path = path("left");
    ranks(2, |rank| {
        // The second rank names a folder.
        let folder = std::env::temp_dir();
        let path = if rank.world().rank() == 1 { folder.to_str().unwrap() } else { &path };
        let amode = Amode::CREATE | Amode::RDWR;
        let error = File::open(rank.world(), path, amode, &Info::default()).err().unwrap();
        assert_eq!(error.class(), Class::BadFile, "{error}");
    });
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn a_read_past_the_end_says_how_much_there_was() {
    for by_aggregators in [false, true] {
        let path = path(&format!("end-{by_aggregators}"));
        ranks(3, |rank| {
            let me = i64::from(rank.world().rank());
            let info = buffering(by_aggregators);
            let file = scratch(rank, &path, &info);
            file.set_size(10).unwrap();
            let mut room = [7u8; 6];
            let status = file.read_at_all(4 * me, &mut room).unwrap();
            let expected = [6, 6, 2][me as usize];
            assert_eq!(status.bytes, expected);
            assert!(room[expected as usize..].iter().all(|byte| *byte == 7));
            file.close().unwrap();
        });
    }
}

#[test]
fn atomic_accesses_take_place_one_after_the_other() {
    let path = path("atomic");
    ranks(4, |rank| {
        let (world, me) = (rank.world(), rank.world().rank());
        let file = scratch(rank, &path, &Info::default());
        // An access is thousands of calls of the system, which are atomic only one by one.
        let byte = rank.type_of::<u8>().unwrap();
        let every = rank.commit(&Datatype::resized(0, 8, &Datatype::byte()).unwrap()).unwrap();
        let info = Info::default().set("romio_ds_read", "disable").unwrap();
        file.set_view(0, &byte, &every, "native", &info).unwrap();
        file.set_atomicity(true).unwrap();
        file.write_at_all(0, &vec![0u8; if me == 0 { 3000 } else { 0 }][..]).unwrap();
        for round in 0..10u8 {
            match me % 2 {
                0 => {
                    let data = vec![round * 4 + me as u8; 3000];
                    file.iwrite_at(0, data).unwrap().wait().unwrap();
                }
                _ => {
                    let mut data = vec![0u8; 3000];
                    file.read_at(0, &mut data[..]).unwrap();
                    assert!(data.iter().all(|byte| *byte == data[0]));
                }
            }
        }
        world.barrier().unwrap();
        file.close().unwrap();
    });
}
