//! Unlike ranks write one file together: its bytes don't depend on their machines.

use longshore::sim::{Options, run_shared};
use longshore::{Architecture, Datatype, Rank, c};
use longshore_file::{Amode, File, Info};

const KINDS: [Architecture; 5] = [
    Architecture::X86_64,
    Architecture::S390X,
    Architecture::I686,
    Architecture::AARCH64,
    Architecture::PPC,
];

/// The rows of a table, which the ranks have in turns.
const ROWS: usize = 40;

fn number(rank: i64, row: usize) -> i64 {
    if row % 2 == 0 { rank * 1000 + row as i64 } else { -rank * 1000 - row as i64 }
}

/// Each rank's rows: a table of longs, and after it one of doubles.
fn tables(rank: &Rank, file: &File, datarep: &str, mut access: impl FnMut(&File, Table<'_>)) {
    let (me, ranks) = (i64::from(rank.world().rank()), i64::from(rank.world().size()));
    let info = Info::default().set("romio_cb_write", "enable").unwrap();
    let mut disp = 0;
    for is_long in [true, false] {
        let item = if is_long { Datatype::long() } else { Datatype::double() };
        let etype = rank.commit(&item).unwrap();
        let own = Datatype::subarray(&[ranks], &[1], &[me], longshore::Order::C, &item).unwrap();
        let own = rank.commit(&own).unwrap();
        file.set_view(disp, &etype, &own, datarep, &info).unwrap();
        disp += ranks * ROWS as i64 * file.type_extent(etype.datatype()).unwrap();
        if is_long {
            let mut rows = rank.buffer::<c::Long>(ROWS).unwrap();
            for row in 0..ROWS {
                rows.set(row, c::Long(number(me, row) as _)).unwrap();
            }
            access(file, Table::Longs(&mut rows));
        } else {
            let rows: Vec<f64> = (0..ROWS).map(|row| number(me, row) as f64 / 8.0).collect();
            let mut rows = rank.buffer_from(&rows).unwrap();
            access(file, Table::Doubles(&mut rows));
        }
    }
}

enum Table<'t> {
    Longs(&'t mut longshore::Buffer<c::Long>),
    Doubles(&'t mut longshore::Buffer<f64>),
}

fn of_two(kinds: [Architecture; 2], body: impl Fn(&Rank) + Sync) {
    let options = Options { architectures: kinds.to_vec(), ..Options::default() };
    run_shared(2, &options, |rank| {
        body(&rank);
        rank.finalize().unwrap();
    })
    .unwrap();
}

#[test]
fn every_pair_of_machines_writes_the_same_bytes_and_reads_them() {
    for datarep in ["external32", "internal"] {
        let name = format!("longshore-unlike-{}-{datarep}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let place = path.to_str().unwrap();
        let mut first = None;
        for (one, other) in KINDS.iter().flat_map(|one| KINDS.iter().map(move |it| (*one, *it))) {
            of_two([one, other], |rank| {
                let amode = Amode::CREATE | Amode::WRONLY;
                let file = File::open(rank.world(), place, amode, &Info::default()).unwrap();
                tables(rank, &file, datarep, |file, table| {
                    match table {
                        Table::Longs(rows) => file.write_all(&*rows),
                        Table::Doubles(rows) => file.write_all(&*rows),
                    }
                    .unwrap();
                });
                file.close().unwrap();
            });
            let bytes = std::fs::read(&path).unwrap();
            let expected = first.get_or_insert_with(|| bytes.clone());
            assert!(bytes == *expected, "{one} and {other} write other bytes in {datarep}");
            // The ranks change places, so each reads what the other kind wrote.
            of_two([other, one], |rank| {
                let file =
                    File::open(rank.world(), place, Amode::RDONLY, &Info::default()).unwrap();
                tables(rank, &file, datarep, |file, table| match table {
                    Table::Longs(rows) => {
                        let expected = rows.to_vec().unwrap();
                        (0..ROWS).for_each(|row| rows.set(row, c::Long(-1)).unwrap());
                        file.read_all(&mut *rows).unwrap();
                        assert!(rows.to_vec().unwrap() == expected);
                    }
                    Table::Doubles(rows) => {
                        let expected = rows.to_vec().unwrap();
                        (0..ROWS).for_each(|row| rows.set(row, -1.0).unwrap());
                        file.read_all(&mut *rows).unwrap();
                        assert_eq!(rows.to_vec().unwrap(), expected);
                    }
                });
                file.close().unwrap();
            });
            std::fs::remove_file(&path).unwrap();
        }
        let bytes = first.unwrap();
        if datarep == "external32" {
            assert_eq!(bytes.len(), 2 * ROWS * 12);
            assert_eq!(bytes[12..16], (-1001i32).to_be_bytes());
        } else {
            assert_eq!(bytes.len(), 2 * ROWS * 16);
            assert_eq!(bytes[24..32], (-1001i64).to_le_bytes());
        }
    }
}
