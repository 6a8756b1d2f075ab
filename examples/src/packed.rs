//! Packed buffers: what each rank packs every other one unpacks, and an external32 image that is the same everywhere.
//!
//! MPI_Pack's buffers have no header. Where the ranks of a communicator are unlike, their bytes are in one representation that all
//! know; external32 and XDR are the ones that a file has.

use std::error::Error;

use longshore::{Datatype, Origin, Rank, Shipable, c};

use crate::show::Show;

/// A column of a matrix, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Header {
    kind: u8,
    scale: f64,
    shape: [i16; 3],
    seen: c::Long,
}

const ROWS: usize = 4;
const COLUMNS: usize = 3;

fn header(rank: i32) -> Header {
    Header { kind: b'm', scale: 0.5, shape: [rank as i16, -1, 7], seen: c::Long((-rank).into()) }
}

fn entry(rank: i32, row: usize, column: usize) -> f64 {
    f64::from(rank + 1) * (row as f64 + column as f64 / 8.0)
}

/// Plays it on any number of ranks.
///
/// # Errors
/// What the communication meets, and values that don't arrive as they were packed.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());

    show.step(
        "Packed buffers: a header and a matrix's column, packed by each rank, unpacked by all",
    )?;
    let mut matrix = rank.buffer::<f64>(ROWS * COLUMNS)?;
    for (at, (row, column)) in
        (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))).enumerate()
    {
        matrix.set(at, entry(me, row, column))?;
    }
    let column = Datatype::vector(ROWS as i64, 1, COLUMNS as i64, &Datatype::double())?;
    let column = rank.commit(&column)?;
    let record = rank.type_of::<Header>()?;
    let room = world.pack_size(1, &record)? + world.pack_size(1, &column)?;
    show.say(&format!("a header and a column take {room} bytes in this communicator"))?;
    let (mut packed, mut position) = (vec![0u8; room as usize], 0);
    world.pack(&[header(me)], &mut packed, &mut position)?;
    world.pack(Origin::typed(&matrix, 1, &column).at(8), &mut packed, &mut position)?;

    let all = world.allgather(&packed)?;
    let mut right = true;
    for (from, packed) in (0..size).zip(all.chunks(packed.len())) {
        let (mut head, mut values) = ([header(-1)], [0.0; ROWS]);
        position = 0;
        world.unpack(packed, &mut position, &mut head)?;
        world.unpack(packed, &mut position, &mut values)?;
        right &= head == [header(from)] && position == packed.len() as u64;
        right &= (0..ROWS).all(|row| values[row] == entry(from, row, 1));
    }
    show.check("every rank's header and column were unpacked by every other", right)?;

    for datarep in ["external32", "xdr"] {
        let room = rank.pack_external_size(datarep, 1, &record)?;
        let (mut image, mut position) = (vec![0u8; room as usize], 0);
        rank.pack_external(datarep, &[header(1)], &mut image, &mut position)?;
        let hex: Vec<_> = image.iter().map(|byte| format!("{byte:02x}")).collect();
        show.say(&format!("rank 1's header in {datarep}: {}", hex.join(" ")))?;
        let images = world.allgather(&image)?;
        let same = images.chunks(image.len()).all(|other| other == image);
        show.check(&format!("it has the same {room} bytes on every rank"), same)?;
        let mut back = [header(-1)];
        rank.unpack_external(datarep, &image, &mut 0, &mut back)?;
        show.check("they come back as they were", back == [header(1)])?;
    }
    Ok(())
}
