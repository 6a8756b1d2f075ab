//! Puts records of a `#[derive(Shipable)]` struct into a table on a rank that lays the struct out
//! differently.
//!
//! The datatype of a struct with C's layout is a simple struct: a list of members without offsets.
//! It is portable, because each rank computes the offsets by its own layout rules.

use std::error::Error;

use longshore::{Info, Rank, Shipable, Window, c};

use crate::show::{Show, blank, memory_of};

/// Takes 40 bytes on x86-64 and s390x, where double aligns to 8. Takes 32 bytes on i686 and m68k,
/// where double aligns to 4 or 2 and `long` has 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Particle {
    species: i8,
    frozen: c::Bool,
    charge: i16,
    position: [f64; 3],
    seen: c::Long,
}

const RECORDS: usize = 3;

fn particle(maker: i32, number: usize) -> Particle {
    let number = number as i32;
    Particle {
        species: (maker - number) as i8,
        frozen: (number % 2 == 0).into(),
        charge: (-300 * (maker + 1) + number) as i16,
        position: [0.5, 1.0 / 3.0, -2.25e17].map(|x| x * f64::from(number + 1)),
        seen: c::Long((1_000_000 * maker + number).into()),
    }
}

/// Runs the example on any number of ranks: each fills the table of the next rank.
///
/// # Errors
/// An error of the communication, or a record that arrives changed.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let (before, next) = ((me + size - 1) % size, (me + 1) % size);

    let record = rank.type_of::<Particle>()?;
    let mut window = Window::allocate(
        world,
        RECORDS as i64 * record.extent(),
        record.extent(),
        &Info::default(),
    )?;
    let records: Vec<Particle> = (0..RECORDS).map(|number| particle(me, number)).collect();

    show.step(&format!(
        "Records: a table of {RECORDS} structs on each rank, filled by the rank before it"
    ))?;
    show.say(&format!("a record is {record}"))?;
    let extents = world.allgather(&[record.extent()])?;
    show.say(&format!("a record takes {extents:?} bytes on ranks 0 to {}", size - 1))?;
    let empty = blank(&mut window)?;
    window.fence(|epoch| epoch.put(&records, next, 0, RECORDS as i64, &record))?;
    show.wire(0)?;

    let mut mine = rank.buffer::<Particle>(RECORDS)?;
    mine.write(0, &records)?;
    show.memories((0, mine.bytes()), (next_of(0, size), &empty, &memory_of(&window)?))?;

    let mut arrived = vec![particle(-1, 0); RECORDS];
    window.read(0, &mut arrived)?;
    let expected: Vec<Particle> = (0..RECORDS).map(|number| particle(before, number)).collect();
    show.check("every record equals the record that the rank before put", arrived == expected)?;
    window.free()?;
    Ok(())
}

fn next_of(rank: i32, size: i32) -> i32 {
    (rank + 1) % size
}
