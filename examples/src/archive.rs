//! An archive that unlike ranks write together: a grid and a table of records in external32.
//! Another number of ranks, of any machines, reads a part of it.
//!
//! The bytes of the file depend neither on the machines nor on the number of ranks, so the archive
//! of one job is read by another: `archive write FILE`, and then `archive read FILE`.

use std::error::Error;
use std::ops::Range;
use std::path::PathBuf;

use longshore::{Communicator, Datatype, Order, Rank, Shipable, Type, c};
use longshore_file::{Amode, File, Info};

use crate::show::Show;

/// Planes, rows and columns of the grid.
const GRID: [i64; 3] = [12, 10, 8];

/// The number of records, which follow the grid in the file.
const RECORDS: i64 = 60;

/// The planes, rows and columns that are read back.
const PART: [Range<i64>; 3] = [3..9, 2..7, 1..5];

/// Takes 24 bytes in external32, and others in the memory of most machines.
#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Station {
    number: c::Long,
    height: f64,
    kind: i16,
}

fn station(number: i64) -> Station {
    let height = number as f64 / 8.0 - 2.5;
    Station { number: c::Long(number as _), height, kind: (number % 7) as i16 - 3 }
}

fn cell(at: [i64; 3]) -> f64 {
    (at[0] * 10_000 + at[1] * 100 + at[2]) as f64 / 3.0
}

/// Runs the example on any number of ranks: all write, and every other one reads. With `write` or
/// `read` and a file, does only this.
///
/// # Errors
/// An error of the file or the communication, or data that are read back changed.
pub fn run(rank: &Rank, arguments: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let show = Show::new(rank);
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let read_back = "what is read is what was written, at every rank that reads";
    match &words.iter().map(AsRef::as_ref).collect::<Vec<&str>>()[..] {
        [] => {}
        ["write", path] => return write(rank, &show, path),
        ["read", path] => return show.check(read_back, read(rank, rank.world(), path)?),
        _ => return Err("archive takes no arguments, or write or read and a file".into()),
    }
    // The process id of rank 0 tells apart jobs that run at the same time.
    let job = rank.world().allgather(&[std::process::id()])?[0];
    let path = std::env::temp_dir().join(format!("longshore-archive-{job}"));
    let name = path.to_str().ok_or("the temporary folder has a name that isn't UTF-8")?;
    let done = both(rank, &show, name).and_then(|is_right| show.check(read_back, is_right));
    if rank.world().rank() == 0 {
        // A missing file is no error: writing it may have failed.
        let _ = std::fs::remove_file(name);
    }
    done
}

/// Writes the archive by all ranks, and reads a part of it by every other one. Returns whether this
/// rank has read what was written.
fn both(rank: &Rank, show: &Show<'_>, path: &str) -> Result<bool, Box<dyn Error>> {
    write(rank, show, path)?;
    let world = rank.world();
    let readers = world.split((world.rank() % 2 == 0).then_some(0), world.rank())?;
    let Some(readers) = readers else { return Ok(true) };
    let is_right = read(rank, &readers, path)?;
    readers.free()?;
    Ok(is_right)
}

/// The planes of a rank among the planes of a range.
fn planes(comm: &Communicator, all: &Range<i64>) -> Range<i64> {
    let (me, size, count) = (i64::from(comm.rank()), i64::from(comm.size()), all.end - all.start);
    all.start + count * me / size..all.start + count * (me + 1) / size
}

/// Sets the view of a block of the grid. A rank without planes sees the grid as it is.
fn view_of_grid(rank: &Rank, file: &File, block: &[Range<i64>; 3]) -> Result<(), Box<dyn Error>> {
    let double = rank.type_of::<f64>()?;
    let counts = block.clone().map(|range| range.end - range.start);
    let starts = block.clone().map(|range| range.start);
    let filetype: Type = match counts[0] {
        0 => double.clone(),
        _ => {
            let item = Datatype::double();
            rank.commit(&Datatype::subarray(&GRID, &counts, &starts, Order::C, &item)?)?
        }
    };
    Ok(file.set_view(0, &double, &filetype, "external32", &Info::default())?)
}

/// The cells of a block, in the order of the file.
fn cells(block: &[Range<i64>; 3]) -> Vec<f64> {
    let [planes, rows, columns] = block.clone();
    let rows = planes.flat_map(|plane| rows.clone().map(move |row| (plane, row)));
    rows.flat_map(|(plane, row)| columns.clone().map(move |column| cell([plane, row, column])))
        .collect()
}

/// Sets the view of the records that a rank of `size` ranks has: one of each `size`.
fn view_of_records(
    rank: &Rank,
    comm: &Communicator,
    file: &File,
) -> Result<Vec<i64>, Box<dyn Error>> {
    let (me, size) = (i64::from(comm.rank()), i64::from(comm.size()));
    let record = rank.type_of::<Station>()?;
    let own = Datatype::subarray(&[size], &[1], &[me], Order::C, record.datatype())?;
    let own = rank.commit(&own)?;
    let after_grid = GRID.iter().product::<i64>() * 8;
    file.set_view(after_grid, &record, &own, "external32", &Info::default())?;
    Ok((me..RECORDS).step_by(size as usize).collect())
}

/// Writes the archive by all ranks.
fn write(rank: &Rank, show: &Show<'_>, path: &str) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    show.step("An archive: a grid and a table, written by all ranks together in external32")?;
    let file = File::open(world, path, Amode::CREATE | Amode::WRONLY, &Info::default())?;
    let block = [planes(world, &(0..GRID[0])), 0..GRID[1], 0..GRID[2]];
    view_of_grid(rank, &file, &block)?;
    file.write_all(&cells(&block))?;
    let numbers = view_of_records(rank, world, &file)?;
    let extents = world.allgather(&[rank.type_of::<Station>()?.extent()])?;
    show.say(&format!(
        "a record takes {extents:?} bytes in memory, and {} in the file",
        file.type_extent(rank.type_of::<Station>()?.datatype())?
    ))?;
    let records: Vec<Station> = numbers.into_iter().map(station).collect();
    file.write_all(&records)?;
    file.close()?;
    Ok(())
}

/// Reads a part of the archive by the ranks of a communicator, which may be others than have
/// written it. Returns whether the values are those that were written.
fn read(rank: &Rank, comm: &Communicator, path: &str) -> Result<bool, Box<dyn Error>> {
    let file = File::open(comm, path, Amode::RDONLY, &Info::default())?;
    let block = [planes(comm, &PART[0]), PART[1].clone(), PART[2].clone()];
    view_of_grid(rank, &file, &block)?;
    let expected = cells(&block);
    let mut found = vec![0.0; expected.len()];
    file.read_all(&mut found)?;
    let numbers = view_of_records(rank, comm, &file)?;
    let mut records = vec![station(-1); numbers.len()];
    file.read_all(&mut records)?;
    file.close()?;
    let are_right = records.iter().zip(numbers).all(|(record, number)| *record == station(number));
    Ok(are_right && found == expected)
}
