//! Packs values with MPI_Pack in a communicator of unlike ranks, and unpacks them on every rank.
//!
//! Packed buffers have no header that could name a representation. If the ranks of a communicator
//! are unlike, all of them pack in one common representation. The same values are also packed in
//! external32 and XDR, representations for files, whose bytes are equal on every rank.

use std::error::Error;

use longshore::{Datatype, Origin, Rank, Shipable, c};

use crate::show::Show;

/// A header that describes the column packed after it.
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

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or values that are unpacked changed.
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
    show.check("every rank has unpacked the header and the column of every rank", right)?;

    for datarep in ["external32", "xdr"] {
        let room = rank.pack_external_size(datarep, 1, &record)?;
        let (mut image, mut position) = (vec![0u8; room as usize], 0);
        rank.pack_external(datarep, &[header(1)], &mut image, &mut position)?;
        let hex: Vec<_> = image.iter().map(|byte| format!("{byte:02x}")).collect();
        show.say(&format!("rank 1's header in {datarep}: {}", hex.join(" ")))?;
        let images = world.allgather(&image)?;
        let same = images.chunks(image.len()).all(|other| other == image);
        show.check(&format!("its {room} bytes in {datarep} are equal on all ranks"), same)?;
        let mut back = [header(-1)];
        rank.unpack_external(datarep, &image, &mut 0, &mut back)?;
        show.check("the header is unpacked unchanged", back == [header(1)])?;
    }
    Ok(())
}
