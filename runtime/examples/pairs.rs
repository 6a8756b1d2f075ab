//! Puts between every ordered pair of ranks, for `ci/steps/kinds`, whose ranks are real processes
//! of different machines.
//!
//! Each rank puts values of portable types, and records of a simple struct, into a part of every
//! rank's window. The target compares the part byte by byte with what its own compiler makes of the
//! values: sizes, alignments and byte order are the compiler's, not Longshore's. Bytes that no put
//! may touch keep their filling. Rank 0 prints a table of the pairs.

use std::error::Error;
use std::ffi::c_long;
use std::fmt::Write as _;
use std::mem::offset_of;

use longshore::{Communicator, Datatype, Info, Rank, Shipable, Window, c};

/// The bytes of the window for each origin, and for each of its puts.
const PART: usize = 2048;
const ROOM: usize = 512;

/// What a byte of the window holds that no put has touched.
const FILLING: u8 = 0xa5;

const PUTS: [&str; 4] = ["vector of int16", "subarray of double", "long", "struct"];
const RECORDS: usize = 3;

#[derive(Clone, Copy, Debug, Shipable)]
#[repr(C)]
struct Limits {
    low: f64,
    tag: i8,
}

#[derive(Clone, Copy, Debug, Shipable)]
#[repr(C)]
struct Reading {
    valid: c::Bool,
    sensor: i16,
    time: u64,
    values: [f32; 3],
    limits: Limits,
    total: c::Long,
}

/// The twins of both structs in the types of this machine, for their layout.
#[repr(C)]
struct NativeLimits {
    low: f64,
    tag: i8,
}

#[repr(C)]
struct NativeReading {
    valid: bool,
    sensor: i16,
    time: u64,
    values: [f32; 3],
    limits: NativeLimits,
    total: c_long,
}

/// The values that an origin puts into a target's window.
struct Values {
    shorts: Vec<i16>,
    doubles: Vec<f64>,
    longs: Vec<c::Long>,
    readings: Vec<Reading>,
}

impl Values {
    fn of(origin: i32, target: i32) -> Values {
        let seed = 100 * origin + target + 1;
        let reading = |number: i32| Reading {
            valid: (number != 1).into(),
            sensor: (-seed * 3 + number) as i16,
            time: 0x0102_0304_0506_0708 * (number as u64 + 1) + seed as u64,
            values: [0.5, -1.5e-30, 3.0e30].map(|x| x * seed as f32),
            limits: Limits { low: f64::from(seed) / 3.0, tag: (number - seed) as i8 },
            total: c::Long((-70_000 * seed - number).into()),
        };
        Values {
            shorts: (0..8).map(|at| (257 * at - seed) as i16).collect(),
            doubles: (0..6).map(|at| f64::from(seed) / f64::from(at + 7)).collect(),
            longs: (0..5).map(|at| c::Long((-1_000_003 * at + seed).into())).collect(),
            readings: (0..RECORDS as i32).map(reading).collect(),
        }
    }

    /// The part of the target's window after the puts.
    fn expected(&self) -> Vec<u8> {
        let mut part = vec![FILLING; PART];
        // A vector of four blocks of two elements, whose starts are five elements apart.
        for (at, value) in self.shorts.iter().enumerate() {
            place(&mut part, 0, 2 * (at / 2 * 5 + at % 2), &value.to_ne_bytes());
        }
        // Rows 1 and 2, columns 2 to 4 of a matrix of four rows and six columns.
        for (at, value) in self.doubles.iter().enumerate() {
            place(&mut part, 1, 8 * ((at / 3 + 1) * 6 + at % 3 + 2), &value.to_ne_bytes());
        }
        for (at, &value) in self.longs.iter().enumerate() {
            let value = c_long::try_from(value.0).unwrap_or_default();
            place(&mut part, 2, at * size_of::<c_long>(), &value.to_ne_bytes());
        }
        for (at, reading) in self.readings.iter().enumerate() {
            let start = at * size_of::<NativeReading>();
            let mut field =
                |offset: usize, bytes: &[u8]| place(&mut part, 3, start + offset, bytes);
            field(offset_of!(NativeReading, valid), &[u8::from(bool::from(reading.valid))]);
            field(offset_of!(NativeReading, sensor), &reading.sensor.to_ne_bytes());
            field(offset_of!(NativeReading, time), &reading.time.to_ne_bytes());
            for (number, value) in reading.values.iter().enumerate() {
                field(offset_of!(NativeReading, values) + 4 * number, &value.to_ne_bytes());
            }
            let limits = offset_of!(NativeReading, limits);
            let low = reading.limits.low.to_ne_bytes();
            field(limits + offset_of!(NativeLimits, low), &low);
            field(limits + offset_of!(NativeLimits, tag), &reading.limits.tag.to_ne_bytes());
            let total = c_long::try_from(reading.total.0).unwrap_or_default();
            field(offset_of!(NativeReading, total), &total.to_ne_bytes());
        }
        part
    }
}

fn place(part: &mut [u8], put: usize, offset: usize, bytes: &[u8]) {
    let start = put * ROOM + offset;
    part[start..start + bytes.len()].copy_from_slice(bytes);
}

fn main() -> Result<(), Box<dyn Error>> {
    let rank = longshore::init()?;
    let differing = exchange(&rank)?;
    rank.finalize()?;
    match differing {
        0 => Ok(()),
        pairs => Err(format!("{pairs} pairs differ").into()),
    }
}

/// Returns the number of pairs whose bytes differ.
fn exchange(rank: &Rank) -> Result<usize, Box<dyn Error>> {
    let world = rank.world();
    let (me, size) = (world.rank(), world.size());
    let shorts = rank.commit(&Datatype::vector(4, 2, 5, &Datatype::int16())?)?;
    let rows =
        Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], longshore::Order::C, &Datatype::double())?;
    let matrix = rank.commit(&rows)?;
    let (long, reading) = (rank.type_of::<c::Long>()?, rank.type_of::<Reading>()?);

    let bytes = (size as usize * PART) as i64;
    let mut window = Window::allocate(world, bytes, 1, &Info::default())?;
    window.write(0, &vec![FILLING; bytes as usize])?;
    let all: Vec<Values> = (0..size).map(|target| Values::of(me, target)).collect();
    window.fence(|epoch| {
        for (target, values) in (0..).zip(&all) {
            let start = |put: usize| (me as usize * PART + put * ROOM) as i64;
            epoch.put(&values.shorts, target, start(0), 1, &shorts)?;
            epoch.put(&values.doubles, target, start(1), 1, &matrix)?;
            epoch.put(&values.longs, target, start(2), 5, &long)?;
            epoch.put(&values.readings, target, start(3), RECORDS as i64, &reading)?;
        }
        longshore::Result::Ok(())
    })?;

    let mut found = vec![0; bytes as usize];
    window.read(0, &mut found)?;
    let mut differs = Vec::new();
    for (origin, part) in found.chunks(PART).enumerate() {
        let expected = Values::of(origin as i32, me).expected();
        for (put, name) in PUTS.iter().enumerate() {
            let of = put * ROOM..(put + 1) * ROOM;
            let first = part[of.clone()].iter().zip(&expected[of]).position(|(a, b)| a != b);
            if let Some(at) = first {
                eprintln!("from rank {origin} to rank {me}, {name}: byte {at} differs");
            }
            differs.push(u8::from(first.is_some()));
        }
    }
    window.free()?;
    let all = world.allgather(&differs)?;
    let is_exact = |origin: usize, target: usize| {
        let start = (target * size as usize + origin) * PUTS.len();
        all[start..start + PUTS.len()].iter().all(|&differs| differs == 0)
    };
    let mut name = [b' '; NAME];
    name.iter_mut().zip(std::env::consts::ARCH.bytes()).for_each(|(to, byte)| *to = byte);
    let names = world.allgather(&name)?;
    if me == 0 {
        print!("{}", table(world, is_exact, &names));
    }
    let pairs = (0..size as usize).flat_map(|i| (0..size as usize).map(move |j| (i, j)));
    Ok(pairs.filter(|&(origin, target)| !is_exact(origin, target)).count())
}

/// The longest name of an architecture that the table shows whole.
const NAME: usize = 11;

fn table(world: &Communicator, is_exact: impl Fn(usize, usize) -> bool, names: &[u8]) -> String {
    // Rust's name of the architecture: machines of equal representation are several.
    let names: Vec<_> = names.chunks(NAME).map(|name| String::from_utf8_lossy(name)).collect();
    let mut text = format!("{:<NAME$}", "from, to");
    for name in &names {
        let _ = write!(text, " {:>NAME$}", name.trim_end());
    }
    for (origin, name) in names.iter().enumerate() {
        let _ = write!(text, "\n{name}");
        for target in 0..world.size() as usize {
            let outcome = if is_exact(origin, target) { "exact" } else { "DIFFERS" };
            let _ = write!(text, " {outcome:>NAME$}");
        }
    }
    text + "\n"
}
