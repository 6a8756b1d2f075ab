//! Puts records whose members have explicit byte offsets into the memory of another rank.
//!
//! Byte offsets make a datatype locale-specific: they hold only in the memory of the rank that
//! built it. An origin that builds such a type itself may not use it as a target datatype.
//! Instead, the target builds the type and sends it with `type_send`. The origin receives a
//! foreign type, which may only be the target datatype of operations on the rank that built it.

use std::error::Error;

use longshore::{Class, Datatype, ForeignType, Info, Rank, Shipable, Type, Window, c};
use shipable::arch::ByteOrder;

use crate::show::{Show, blank, memory_of};

/// The rank that owns the records and builds the foreign types.
const OWNER: i32 = 1;
/// A rank that built none of the types.
const OTHER: i32 = 2;
const TAG: i32 = 1;

/// Extent of a record in the owner's memory, in bytes.
const EXTENT: i64 = 20;
const RECORDS: usize = 2;

/// The members of a record, as rank 0 keeps them. The compiler chooses their offsets here.
#[derive(Clone, Copy, Debug, Shipable)]
#[repr(C)]
struct Reading {
    id: c::Int,
    value: f64,
    quality: c::Short,
}

fn reading(number: usize) -> Reading {
    let number = number as i32;
    Reading {
        id: c::Int(7000 + number),
        value: 1.0 / f64::from(number + 3),
        quality: c::Short(-2 - number as i16),
    }
}

/// Runs the example on three or more ranks.
///
/// # Errors
/// An error of the communication, or a rule that isn't enforced.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let me = world.rank();
    if world.size() < 3 {
        return Err("this example needs at least three ranks".into());
    }

    let members = [Datatype::int(), Datatype::double(), Datatype::short()];
    let record = Datatype::struct_(&[1, 1, 1], &[0, 6, 16], &members)?;
    let record = rank.commit(&Datatype::resized(0, EXTENT, &record)?)?;
    let mut window = Window::allocate(world, RECORDS as i64 * EXTENT, 1, &Info::default())?;
    let readings: Vec<Reading> = (0..RECORDS).map(reading).collect();
    let empty = blank(&mut window)?;

    show.step(&format!("Foreign: rank 0 puts records with byte offsets to rank {OWNER}"))?;
    show.say(&format!("a record is {record}"))?;

    // 1. Put with a type that rank 0 built itself. Its offsets hold only in rank 0's memory.
    let refused = window.fence(|epoch| match me {
        0 => epoch.put(&readings, OWNER, 0, RECORDS as i64, &record),
        _ => Ok(()),
    });
    if let Err(error) = &refused {
        show.say(&format!("refused: {error}"))?;
    }
    show.check("the type that rank 0 built is refused with class TYPE", is_refused(me, &refused))?;
    show.check("nothing was written", memory_of(&window)? == empty)?;

    // 2. Put with the type that the owner built and sent to rank 0.
    let foreign = from_owner(rank, &record)?;
    window.fence(|epoch| match &foreign {
        Some(foreign) => epoch.put(&readings, OWNER, 0, RECORDS as i64, foreign),
        None => Ok(()),
    })?;
    show.wire(0)?;
    let mut origin = rank.buffer::<Reading>(RECORDS)?;
    origin.write(0, &readings)?;
    let now = memory_of(&window)?;
    show.memories((0, origin.bytes()), (OWNER, &empty, &now))?;
    let expected = expected(rank);
    show.check(
        "the type that rank 1 sent puts every member at rank 1's offset for it",
        if me == OWNER { now == expected } else { now == empty },
    )?;

    // 3. Put to another rank with the owner's type.
    let refused = window.fence(|epoch| match &foreign {
        Some(foreign) => epoch.put(&readings, OTHER, 0, RECORDS as i64, foreign),
        None => Ok(()),
    });
    if let Err(error) = &refused {
        show.say(&format!("refused: {error}"))?;
    }
    show.check(
        "the same type is refused for rank 2, which didn't build it",
        is_refused(me, &refused),
    )?;

    // 4. `type_send` makes even a portable type locale-specific, so it too serves only its builder.
    let every_other = rank.commit(&Datatype::vector(2, 1, 2, &Datatype::int())?)?;
    let sent = from_owner(rank, &every_other)?;
    let values = [c::Int(19), c::Int(96)];
    let put = |window: &mut Window, target: i32| {
        window.fence(|epoch| match &sent {
            Some(sent) => epoch.put(&values, target, 0, 1, sent),
            None => Ok(()),
        })
    };
    put(&mut window, OWNER)?;
    let arrived = [window.get::<c::Int>(0)?, window.get::<c::Int>(8)?];
    show.check("a portable type that rank 1 sent serves rank 1", me != OWNER || arrived == values)?;
    let refused = put(&mut window, OTHER);
    show.check("that type is refused for rank 2", is_refused(me, &refused))?;
    show.check("nothing was written at rank 2", me == OWNER || memory_of(&window)? == empty)?;
    window.free()?;
    Ok(())
}

/// Whether the outcome is as required: an error of class TYPE on rank 0, success elsewhere.
fn is_refused(me: i32, outcome: &longshore::Result<()>) -> bool {
    match outcome {
        Err(error) => me == 0 && error.class() == Class::Type,
        Ok(()) => me != 0,
    }
}

/// Sends the owner's type to rank 0. Returns the received type on rank 0, `None` elsewhere.
fn from_owner(rank: &Rank, datatype: &Type) -> longshore::Result<Option<ForeignType>> {
    let world = rank.world();
    match world.rank() {
        OWNER => world.type_send(datatype, 0, TAG).map(|()| None),
        0 => world.type_recv(OWNER, TAG).map(Some),
        _ => Ok(None),
    }
}

/// The expected contents of the owner's memory, laid out byte by byte without datatypes.
fn expected(rank: &Rank) -> Vec<u8> {
    let big = rank.architecture().order() == ByteOrder::Big;
    let mut memory = vec![0xcc; RECORDS * EXTENT as usize];
    for (number, record) in memory.chunks_mut(EXTENT as usize).enumerate() {
        let Reading { id, value, quality } = reading(number);
        let mut place = |at: usize, mut bytes: Vec<u8>| {
            if !big {
                bytes.reverse();
            }
            record[at..at + bytes.len()].copy_from_slice(&bytes);
        };
        place(0, id.0.to_be_bytes().to_vec());
        place(6, value.to_be_bytes().to_vec());
        place(16, quality.0.to_be_bytes().to_vec());
    }
    memory
}
