//! Random access patterns of random ranks, compared with a model of the file.
//!
//! A tile of the file has slots, each of which belongs to one rank or to none. A rank's filetype is
//! its slots. Ranks write by random calls, read back by others, and the bytes of the file are
//! compared with those of the model.

use std::path::PathBuf;

use longshore::sim::{Options, run, run_shared};
use longshore::{Architecture, Datatype, Rank, Type};
use longshore_file::{Amode, File, Info, Whence};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// The number of cases, from LONGSHORE_TEST_CASES.
fn cases() -> u64 {
    std::env::var("LONGSHORE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(30)
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("longshore-random-{}-{name}", std::process::id()))
}

/// What a case does, which all ranks know.
#[derive(Clone, Debug)]
struct Case {
    ranks: u32,
    architectures: Vec<Architecture>,
    datarep: &'static str,
    /// The bytes of the file before the view.
    disp: i64,
    /// The owner of each slot of a tile.
    slots: Vec<Option<u32>>,
    /// The number of tiles that each rank accesses in a step.
    tiles: Vec<i64>,
    write: Call,
    read: Call,
    info: Info,
    memory: Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    At,
    AtAll,
    Pointer,
    All,
    Request,
    RequestAll,
    Split,
}

/// How the elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Slice,
    /// Every other element of a longer slice.
    Strided,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = SmallRng::seed_from_u64(seed);
        let ranks = random.random_range(1..5);
        let known = [
            Architecture::X86_64,
            Architecture::S390X,
            Architecture::I686,
            Architecture::AARCH64,
            Architecture::PPC,
        ];
        let unlike = random.random_bool(0.5);
        let architectures = match unlike {
            true => (0..ranks).map(|_| *known.choose(&mut random).unwrap()).collect(),
            false => Vec::new(),
        };
        let datareps: &[_] = if unlike {
            &["external32", "internal"]
        } else {
            &["native", "external32", "internal"]
        };
        let slots = random.random_range(1..40);
        let slots = (0..slots)
            .map(|_| Some(random.random_range(0..ranks + 1)).filter(|rank| *rank < ranks))
            .collect();
        let calls = [
            Call::At,
            Call::AtAll,
            Call::Pointer,
            Call::All,
            Call::Request,
            Call::RequestAll,
            Call::Split,
        ];
        let mut info = Info::default();
        for (key, values) in [
            ("romio_cb_write", ["enable", "disable", "automatic"]),
            ("romio_cb_read", ["enable", "disable", "automatic"]),
            ("romio_ds_read", ["enable", "disable", "automatic"]),
            ("cb_nodes", ["1", "2", "3"]),
            ("cb_buffer_size", ["4096", "8192", "1048576"]),
            ("ind_wr_buffer_size", ["24", "100", "1000000"]),
            ("ind_rd_buffer_size", ["24", "100", "1000000"]),
        ] {
            info = info.set(key, values.choose(&mut random).unwrap()).unwrap();
        }
        Case {
            ranks,
            architectures,
            datarep: datareps.choose(&mut random).unwrap(),
            disp: random.random_range(0..100),
            slots,
            tiles: (0..random.random_range(1..4)).map(|_| random.random_range(0..60)).collect(),
            write: *calls.choose(&mut random).unwrap(),
            read: *calls.choose(&mut random).unwrap(),
            info,
            memory: *[Memory::Slice, Memory::Strided].choose(&mut random).unwrap(),
        }
    }

    /// The number of slots of a rank in a tile.
    fn own(&self, rank: u32) -> i64 {
        self.slots.iter().filter(|owner| **owner == Some(rank)).count() as i64
    }

    /// The bytes of a value in the file.
    fn bytes(&self, value: f64) -> [u8; 8] {
        match (self.datarep, Architecture::NATIVE.name()) {
            ("external32", _) => value.to_be_bytes(),
            ("internal", _) => value.to_le_bytes(),
            _ => value.to_ne_bytes(),
        }
    }

    /// The bytes of the file after all steps.
    fn model(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for rank in 0..self.ranks {
            let slots = (0..).zip(&self.slots).filter(|(_, owner)| **owner == Some(rank));
            let slots: Vec<usize> = slots.map(|(slot, _)| slot).collect();
            let mut count = 0i64;
            for tile in 0..self.tiles.iter().sum::<i64>() as usize {
                for slot in &slots {
                    let at = self.disp as usize + (tile * self.slots.len() + slot) * 8;
                    file.resize(file.len().max(at + 8), 0u8);
                    file[at..at + 8].copy_from_slice(&self.bytes(value(rank, count)));
                    count += 1;
                }
            }
        }
        file
    }
}

/// The value of a rank's element.
fn value(rank: u32, element: i64) -> f64 {
    f64::from(rank + 1) * 1000.0 + element as f64 + 0.5
}

/// Memory of elements, and the type by which they are accessed.
struct Elements {
    memory: longshore::Buffer<f64>,
    datatype: Type,
    count: i64,
    step: usize,
}

impl Elements {
    fn new(rank: &Rank, how: Memory, count: i64, value: impl Fn(i64) -> f64) -> Elements {
        let step = if how == Memory::Slice { 1 } else { 2 };
        let double = Datatype::double();
        let datatype = match how {
            Memory::Slice => double,
            Memory::Strided => Datatype::resized(0, 16, &double).unwrap(),
        };
        let datatype = rank.commit(&datatype).unwrap();
        let mut memory = rank.buffer::<f64>(count as usize * step + 1).unwrap();
        (0..count).for_each(|at| memory.set(at as usize * step, value(at)).unwrap());
        Elements { memory, datatype, count, step }
    }

    fn origin(&self) -> longshore::Origin<'_> {
        longshore::Origin::typed(&self.memory, self.count, &self.datatype)
    }

    fn destination(&mut self) -> longshore::Destination<'_> {
        longshore::Destination::typed(&mut self.memory, self.count, &self.datatype)
    }

    fn get(&self, at: i64) -> f64 {
        self.memory.get(at as usize * self.step).unwrap()
    }
}

fn write(file: &File, call: Call, at: i64, data: Elements) {
    let bytes = 8 * data.count as u64;
    let given =
        |data: Elements| longshore::Given::typed(data.memory, data.count, &data.datatype, 0);
    let status = match call {
        Call::At => file.write_at(at, data.origin()).unwrap(),
        Call::AtAll => file.write_at_all(at, data.origin()).unwrap(),
        Call::Pointer => file.write(data.origin()).unwrap(),
        Call::All => file.write_all(data.origin()).unwrap(),
        Call::Request => file.iwrite_at(at, given(data)).unwrap().wait().unwrap().1,
        Call::RequestAll => file.iwrite_all(given(data)).unwrap().wait().unwrap().1,
        Call::Split => {
            file.write_all_begin(data.origin()).unwrap();
            file.write_all_end().unwrap()
        }
    };
    assert_eq!(status.bytes, bytes);
}

fn read(file: &File, call: Call, at: i64, mut data: Elements) -> Elements {
    let bytes = 8 * data.count as u64;
    let status = match call {
        Call::At => file.read_at(at, data.destination()).unwrap(),
        Call::AtAll => file.read_at_all(at, data.destination()).unwrap(),
        Call::Pointer => file.read(data.destination()).unwrap(),
        Call::All => file.read_all(data.destination()).unwrap(),
        Call::Request | Call::RequestAll => {
            let Elements { memory, datatype, count, step } = data;
            let room = longshore::Given::typed(memory, count, &datatype, 0);
            let request = match call {
                Call::Request => file.iread(room).unwrap(),
                _ => file.iread_at_all(at, room).unwrap(),
            };
            let (memory, status) = request.wait().unwrap();
            data = Elements { memory, datatype, count, step };
            status
        }
        Call::Split => {
            file.read_at_all_begin(at, data.destination()).unwrap();
            file.read_at_all_end().unwrap()
        }
    };
    assert_eq!(status.bytes, bytes);
    data
}

fn carry_out(rank: &Rank, case: &Case, path: &str) {
    let (world, me) = (rank.world(), rank.world().rank() as u32);
    let amode = Amode::CREATE | Amode::RDWR;
    let file = File::open(world, path, amode, &case.info).unwrap();
    let double = rank.commit(&Datatype::double()).unwrap();
    let filetype = |owner: u32| {
        let slots = (0..).zip(&case.slots).filter(|(_, it)| **it == Some(owner));
        let slots: Vec<i64> = slots.map(|(slot, _)| slot).collect();
        // Extents are those of the file: 8 bytes a double in all representations here.
        let tile = 8 * case.slots.len() as i64;
        let some = Datatype::indexed_block(1, &slots, &Datatype::double()).unwrap();
        rank.commit(&Datatype::resized(0, tile, &some).unwrap()).unwrap()
    };
    let own = case.own(me);
    let set_view = |owner: u32| {
        let filetype = if case.own(owner) == 0 { double.clone() } else { filetype(owner) };
        file.set_view(case.disp, &double, &filetype, case.datarep, &case.info).unwrap();
    };
    set_view(me);
    let mut done = 0;
    for tiles in &case.tiles {
        let count = tiles * own;
        let data = Elements::new(rank, case.memory, count, |at| value(me, done + at));
        file.seek(done, Whence::Set).unwrap();
        write(&file, case.write, done, data);
        done += count;
    }
    file.sync().unwrap();
    world.barrier().unwrap();
    // Each rank reads what the next one has written.
    let other = (me + 1) % case.ranks;
    set_view(other);
    let count = case.own(other) * case.tiles.iter().sum::<i64>();
    let data = read(&file, case.read, 0, Elements::new(rank, case.memory, count, |_| -1.0));
    for at in 0..count {
        assert_eq!(data.get(at), value(other, at), "element {at} of rank {other}");
    }
    file.close().unwrap();
    if me == 0 {
        let (found, model) = (std::fs::read(path).unwrap(), case.model());
        assert_eq!(found.len(), model.len());
        assert!(found == model, "the file differs from its model");
    }
}

fn check(seed: u64, simulated: bool) {
    let case = Case::new(seed);
    let path = path(&format!("{seed}-{simulated}"));
    let body = |rank: Rank| {
        carry_out(&rank, &case, path.to_str().unwrap());
        rank.finalize().unwrap();
    };
    let architectures = case.architectures.clone();
    let options = Options { seed, architectures, ..Options::default() };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        match simulated {
            true => run(case.ranks, &options, body),
            false => run_shared(case.ranks, &options, body),
        }
        .unwrap();
    }));
    let _ = std::fs::remove_file(&path);
    if let Err(panic) = outcome {
        eprintln!("seed {seed}: {case:?}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn random_accesses_leave_the_bytes_of_the_model() {
    (0..cases()).for_each(|seed| check(seed, false));
}

#[test]
fn simulated_ranks_leave_the_bytes_of_the_model() {
    (0..cases().min(60)).for_each(|seed| check(1 << 32 | seed, true));
}
