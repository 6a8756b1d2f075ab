//! A file that describes itself: a packed communicator, a packed datatype, and packed data. Each
//! rank writes one in its own representation. The next rank reads it, and knows nothing but the
//! file.
//!
//! The communicator records the representation of the writer. Communicator and datatype precede
//! the data as lines of ASCII, as in proposal 1 (docs/proposals.md).

use std::error::Error;
use std::path::{Path, PathBuf};

use longshore::{Comparison, Datatype, Destination, Origin, Rank};

use crate::show::Show;

const ROWS: usize = 5;
const COLUMNS: usize = 4;

/// The matrix of a rank, by index in row-major order.
fn entry(rank: i32, at: usize) -> f64 {
    f64::from(rank + 1) / 3.0 + at as f64
}

/// The first two columns of the matrix.
fn columns() -> longshore::shipable::Result<Datatype> {
    Datatype::vector(ROWS as i64, 2, COLUMNS as i64, &Datatype::double())
}

/// Runs the example on any number of ranks: each writes a file that the next rank reads.
///
/// # Errors
/// An error of the files or the communication, or an object that is read back changed.
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
    show.check("every rank has read the columns of the rank before it", {
        memory.iter().enumerate().all(|(at, value)| *value == wanted(at))
    })?;
    let expected = if before == me { Comparison::Ident } else { Comparison::ArchEquiv };
    show.check(
        "it recognises the writer as itself, or as another rank of a known architecture",
        writer == expected,
    )?;
    Ok(())
}

/// Writes the object. Packed data of a communicator of one rank are in that rank's own
/// representation. Returns the flat form of the datatype.
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

/// Reads an object. Returns the matrix, how its writer compares with this rank, and the descriptor
/// of the writer's architecture.
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

/// The names of this job's files. Dropping it removes the file of this rank.
struct Files {
    /// The process id of rank 0, which tells apart jobs that run at the same time.
    job: u32,
    rank: i32,
}

impl Files {
    fn new(rank: &Rank) -> Result<Files, Box<dyn Error>> {
        let world = rank.world();
        let processes = world.allgather(&[std::process::id()])?;
        Ok(Files { job: processes[0], rank: world.rank() })
    }

    fn path(&self, rank: i32) -> PathBuf {
        std::env::temp_dir().join(format!("longshore-object-{}-{rank}", self.job))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // A missing file is no error: writing it may have failed.
        let _ = std::fs::remove_file(self.path(self.rank));
    }
}
