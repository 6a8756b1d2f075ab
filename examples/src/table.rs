//! Reads shipments from CSV on rank 0, puts them into a table of records on rank 1, and copies the
//! table to rank 2, which writes the CSV again. Every rank may have another representation.
//!
//! Rank 0 has columns, rank 1 has records. The target datatype of a column selects one member of
//! every record, so it needs byte offsets that only rank 1 knows. Therefore rank 1 builds a type
//! for each column and sends it with `type_send`. Rank 2 gets whole records with a portable simple
//! struct.

use std::error::Error;
use std::path::Path;

use longshore::{Datatype, Info, Rank, Shipable, Window, c};

use crate::shipments::{PORT, Shipments};
use crate::show::Show;

/// The rank that reads the file.
const READER: i32 = 0;
/// The rank that keeps the table.
const TABLE: i32 = 1;
/// The rank that copies the table.
const COPIER: i32 = 2;

/// A shipment as a record of the table.
#[derive(Clone, Copy, Debug, Shipable)]
#[repr(C)]
struct Record {
    id: i32,
    containers: i16,
    port: [c::Char; PORT],
    tonnes: f64,
    value: i64,
}

/// The members of [`Record`] in their order.
fn members() -> [(i64, Datatype); 5] {
    [
        (1, Datatype::int32()),
        (1, Datatype::int16()),
        (PORT as i64, Datatype::char()),
        (1, Datatype::double()),
        (1, Datatype::int64()),
    ]
}

/// The byte offset of each member of a record, by the layout rules of this rank's architecture.
///
/// The simple struct of the members up to one ends where that member ends. Subtracting the member's
/// own size gives its offset.
fn offsets(rank: &Rank) -> Result<Vec<i64>, Box<dyn Error>> {
    let members = members();
    (0..members.len())
        .map(|at| {
            let (counts, types): (Vec<_>, Vec<_>) = members[..=at].iter().cloned().unzip();
            let upto = Datatype::simple_struct(&counts, &types)?.bounds(rank.architecture())?;
            let last = Datatype::contiguous(counts[at], &types[at])?.bounds(rank.architecture())?;
            Ok(upto.true_ub - last.true_ub)
        })
        .collect()
}

/// Runs the example on three or more ranks, with the CSV at `input`.
///
/// # Errors
/// An error of the file or the communication, or a copy that differs from the file in any byte.
pub fn run(rank: &Rank, input: &Path) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let me = world.rank();
    if world.size() < 3 {
        return Err("this example needs at least three ranks".into());
    }

    // 1. Rank 0 reads the file. All ranks learn the number of rows.
    let file = match me {
        READER => std::fs::read(input).map_err(|error| format!("{}: {error}", input.display()))?,
        _ => Vec::new(),
    };
    let shipments =
        if me == READER { Shipments::read(file.as_slice())? } else { Shipments::default() };
    let rows = world.allgather(&[shipments.rows() as i64])?[READER as usize];
    show.step(&format!(
        "Table: {rows} shipments, read as columns, kept as records, copied by rank {COPIER}"
    ))?;

    // 2. Rank 1 allocates the table and sends a type for each column: one member of every record.
    let record = rank.type_of::<Record>()?;
    let size = if me == TABLE { rows * record.extent() } else { 0 };
    let mut window = Window::allocate(world, size, 1, &Info::default())?;
    if me == TABLE {
        for ((count, member), offset) in members().into_iter().zip(offsets(rank)?) {
            let cell = Datatype::hindexed_block(count, &[offset], &member)?;
            let column = rank.commit(&Datatype::resized(0, record.extent(), &cell)?)?;
            world.type_send(&column, READER, 0)?;
        }
    }

    // 3. Rank 0 puts its columns.
    let ports: Vec<c::Char> = shipments.port.iter().flatten().map(|byte| c::Char(*byte)).collect();
    let mut columns = Vec::new();
    if me == READER {
        for _ in members() {
            columns.push(world.type_recv(TABLE, 0)?);
        }
    }
    window.fence(|epoch| {
        let [id, containers, port, tonnes, value] = columns.as_slice() else { return Ok(()) };
        epoch.put(&shipments.id, TABLE, 0, rows, id)?;
        epoch.put(&shipments.containers, TABLE, 0, rows, containers)?;
        epoch.put(&ports, TABLE, 0, rows, port)?;
        epoch.put(&shipments.tonnes, TABLE, 0, rows, tonnes)?;
        epoch.put(&shipments.value, TABLE, 0, rows, value)
    })?;
    show.wire(READER)?;
    if let Some(column) = columns.last() {
        show.say(&format!("the type of the last column, as rank {TABLE} sent it: {column}"))?;
    }

    // 4. Rank 2 gets all records. Its own type is portable: rank 1 computes the members' offsets by
    // its own layout rules.
    let blank = Record { id: 0, containers: 0, port: [c::Char(0); PORT], tonnes: 0.0, value: 0 };
    let mut records = vec![blank; if me == COPIER { rows as usize } else { 0 }];
    window.fence(|epoch| match me {
        COPIER => epoch.get(&mut records, TABLE, 0, rows, &record),
        _ => Ok(()),
    })?;
    window.free()?;

    // 5. Rank 2 writes the records as CSV and sends it to rank 0, which compares it with the file.
    let mut copy = Vec::new();
    if me == COPIER {
        let mut shipments = Shipments::default();
        for record in &records {
            shipments.id.push(record.id);
            shipments.containers.push(record.containers);
            shipments.port.push(record.port.map(|byte| byte.0));
            shipments.tonnes.push(record.tonnes);
            shipments.value.push(record.value);
        }
        shipments.write(&mut copy)?;
        world.send(&[copy.len() as u64], READER, 1)?;
        world.send(&copy, READER, 1)?;
    }
    if me == READER {
        let mut length = [0_u64];
        world.recv(&mut length, COPIER, 1)?;
        copy = vec![0; usize::try_from(length[0])?];
        world.recv(&mut copy, COPIER, 1)?;
    }
    let fact =
        format!("rank {COPIER}'s copy equals the file, byte for byte ({} bytes)", file.len());
    show.check(&fact, me != READER || copy == file)
}
