//! An object in a file that describes itself: who wrote it, of which type it is, and the data, written by each rank in its own
//! representation and read by another one that knows nothing but the file.
//!
//! The communicator and the datatype are packed as MPI_Pack would pack them by the proposal of 1996: as lines of ASCII, before
//! the data.

use std::error::Error;
use std::path::{Path, PathBuf};

use longshore::{Comparison, Datatype, Destination, Origin, Rank};

use crate::show::Show;

const ROWS: usize = 5;
const COLUMNS: usize = 4;

fn entry(rank: i32, at: usize) -> f64 {
    f64::from(rank + 1) / 3.0 + at as f64
}

/// Two columns of a matrix of doubles, side by side.
fn columns() -> longshore::shipable::Result<Datatype> {
    Datatype::vector(ROWS as i64, 2, COLUMNS as i64, &Datatype::double())
}

/// Plays it on any number of ranks: each writes a file, the next one reads it.
///
/// # Errors
/// What files and communication meet, and an object that isn't read as it was written.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let before = (me + size - 1) % size;

    show.step(
        "An object in a file: communicator, datatype and data, read on another architecture",
    )?;
    let files = Files::new(rank)?;
    let datatype = write(rank, &files.path(me))?;
    show.say(&format!("rank 0 writes: its communicator, {datatype}, and 80 bytes of data"))?;
    world.barrier()?;

    let (memory, writer, descriptor) = read(rank, &std::fs::read(files.path(before))?)?;
    show.say(&format!("rank 0 reads data of an architecture with {descriptor}"))?;
    let wanted = |at: usize| match at % COLUMNS {
        0 | 1 => entry(before, at),
        _ => 0.0,
    };
    show.check("every rank has the columns of the one before it", {
        memory.iter().enumerate().all(|(at, value)| *value == wanted(at))
    })?;
    let due = if before == me { Comparison::Ident } else { Comparison::ArchEquiv };
    show.check(
        "and can tell that it was another one's, of an architecture that it knows",
        writer == due,
    )?;
    Ok(())
}

/// Packs the communicator of this rank alone, whose data are in the rank's own representation, then the type, then the data.
/// Gives the type as it was packed.
fn write(rank: &Rank, path: &Path) -> Result<String, Box<dyn Error>> {
    let mut matrix = rank.buffer::<f64>(ROWS * COLUMNS)?;
    let values: Vec<f64> = (0..ROWS * COLUMNS).map(|at| entry(rank.world().rank(), at)).collect();
    matrix.write(0, &values)?;

    let alone = rank.alone();
    let columns = rank.commit(&columns()?)?;
    let mut object = alone.flat()?.into_bytes();
    let datatype = columns.flat()?;
    object.extend(datatype.bytes());
    let mut position = object.len() as u64;
    object.resize(object.len() + alone.pack_size(1, &columns)? as usize, 0);
    alone.pack(Origin::typed(&matrix, 1, &columns), &mut object, &mut position)?;
    std::fs::write(path, &object)?;
    Ok(datatype)
}

/// Reads an object: the values, how its writer relates to this rank, and its architecture's descriptor.
fn read(rank: &Rank, object: &[u8]) -> Result<(Vec<f64>, Comparison, String), Box<dyn Error>> {
    let mut position = 0;
    let writer = rank.unpack_communicator(object, &mut position)?;
    let columns = rank.unpack_type(object, &mut position)?;
    let mut matrix = rank.buffer::<f64>(ROWS * COLUMNS)?;
    let room = Destination::typed(&mut matrix, 1, &columns);
    rank.unpack_of(&writer, object, &mut position, room)?;
    let descriptor = writer.architectures().map(|(descriptor, _)| descriptor).collect();
    Ok((matrix.to_vec()?, rank.alone().compare_unpacked(&writer)?, descriptor))
}

/// The files of a run, which go with it.
struct Files {
    run: u32,
    mine: i32,
}

impl Files {
    fn new(rank: &Rank) -> Result<Files, Box<dyn Error>> {
        let world = rank.world();
        let processes = world.allgather(&[std::process::id()])?;
        Ok(Files { run: processes[0], mine: world.rank() })
    }

    fn path(&self, rank: i32) -> PathBuf {
        std::env::temp_dir().join(format!("longshore-object-{}-{rank}", self.run))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // It was read, or reading it failed: nobody misses it.
        let _ = std::fs::remove_file(self.path(self.mine));
    }
}
