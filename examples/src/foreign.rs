//! A record with explicit byte offsets: no good as a target type where it was written down, right where it is at home.
//!
//! The rank that owns the memory builds the type and sends it with Type_send. What arrives elsewhere is a foreign type,
//! which is good for one thing: as the target datatype of operations on its builder.

use std::error::Error;

use longshore::{Class, Datatype, ForeignType, Info, Rank, Shipable, Type, Window, c};
use shipable::arch::ByteOrder;

use crate::show::{Show, blank, memory_of};

/// The rank that owns the records, and one that doesn't.
const OWNER: i32 = 1;
const OTHER: i32 = 2;
const TAG: i32 = 1;

/// What lies in the owner's memory, by byte offsets that no compiler would choose.
const RECORD: i64 = 20;
const RECORDS: usize = 2;

/// The same members in a Rust struct, where rank 0 keeps them.
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

/// Plays it on three ranks or more.
///
/// # Errors
/// What the communication meets, and a rule that isn't enforced.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let me = world.rank();
    if world.size() < 3 {
        return Err("this takes three ranks or more".into());
    }

    let members = [Datatype::int(), Datatype::double(), Datatype::short()];
    let record = Datatype::struct_(&[1, 1, 1], &[0, 6, 16], &members)?;
    let record = rank.commit(&Datatype::resized(0, RECORD, &record)?)?;
    let mut window = Window::allocate(world, RECORDS as i64 * RECORD, 1, &Info::default())?;
    let readings: Vec<Reading> = (0..RECORDS).map(reading).collect();
    let empty = blank(&mut window)?;

    show.step(&format!("Foreign: rank 0 puts records with byte offsets to rank {OWNER}"))?;
    show.say(&format!("a record is {record}"))?;

    // 1. By a type that rank 0 built itself. Its offsets are right at rank 0 only.
    let refused = window.fence(|epoch| match me {
        0 => epoch.put(&readings, OWNER, 0, RECORDS as i64, &record),
        _ => Ok(()),
    });
    if let Err(error) = &refused {
        show.say(&format!("refused: {error}"))?;
    }
    show.check("the type that rank 0 built is refused with class TYPE", is_refused(me, &refused))?;
    show.check("nothing was written", memory_of(&window)? == empty)?;

    // 2. By the owner's, sent to rank 0.
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
        "the type that rank 1 sent puts every member where rank 1 wants it",
        if me == OWNER { now == expected } else { now == empty },
    )?;

    // 3. To somebody else.
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

    // 4. A portable type that is sent becomes locale-specific too, and is its builder's alone.
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
    show.check("it is refused for rank 2 all the same", is_refused(me, &refused))?;
    show.check("nothing was written there", me == OWNER || memory_of(&window)? == empty)?;
    window.free()?;
    Ok(())
}

/// Whether rank 0, and no other, was refused with class TYPE.
fn is_refused(me: i32, outcome: &longshore::Result<()>) -> bool {
    match outcome {
        Err(error) => me == 0 && error.class() == Class::Type,
        Ok(()) => me != 0,
    }
}

/// The owner's type as rank 0 receives it; none at the other ranks.
fn from_owner(rank: &Rank, datatype: &Type) -> longshore::Result<Option<ForeignType>> {
    let world = rank.world();
    match world.rank() {
        OWNER => world.type_send(datatype, 0, TAG).map(|()| None),
        0 => world.type_recv(OWNER, TAG).map(Some),
        _ => Ok(None),
    }
}

/// The owner's memory as it should be, written down byte by byte.
fn expected(rank: &Rank) -> Vec<u8> {
    let big = rank.architecture().order() == ByteOrder::Big;
    let mut memory = vec![0xcc; RECORDS * RECORD as usize];
    for (number, record) in memory.chunks_mut(RECORD as usize).enumerate() {
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
