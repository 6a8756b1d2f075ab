//! Puts values of type `long` from a rank where it has 64 bits to a rank where it has 32.
//!
//! Values that fit are converted. A value that doesn't fit is refused: the error names it, and the
//! job goes on.
// `c::Long` holds an `i64` on some machines and an `i32` on others, so one needs the conversions.
#![allow(clippy::useless_conversion)]

use std::error::Error;

use longshore::{Class, Datatype, Info, Rank, Window, c};

use crate::show::{Show, blank, memory_of};

const VALUES: usize = 5;

/// Runs the example on two or more ranks. Rank 0, whose `long` must have 64 bits, puts to the first
/// rank whose `long` has 32. Without such ranks the example only prints what it needs.
///
/// # Errors
/// An error of the communication, or a value that is lost silently.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let me = world.rank();
    let long = rank.commit(&Datatype::long())?;
    let mut window =
        Window::allocate(world, VALUES as i64 * long.extent(), long.extent(), &Info::default())?;

    let widths = world.allgather(&[long.extent()])?;
    let narrow = (1_i32..).zip(&widths[1..]).find(|(_, width)| **width == 4).map(|(rank, _)| rank);
    let (Some(target), 8) = (narrow, widths[0]) else {
        show.say("this example needs 64-bit longs on rank 0 and 32-bit longs on another rank")?;
        window.free()?;
        return Ok(());
    };

    show.step(&format!(
        "Overflow: rank 0 puts longs of 64 bits to rank {target}, where they have 32"
    ))?;
    let values = [1, -2, 1_i64 << 40, 4, 5];
    show.say(&format!("the values are {values:?}"))?;
    let mut origin = rank.buffer::<c::Long>(VALUES)?;
    if me == 0 {
        for (at, value) in values.into_iter().enumerate() {
            origin.set(at, c::Long(value.try_into()?))?;
        }
    }
    let empty = blank(&mut window)?;
    let put = window.fence(|epoch| match me {
        0 => epoch.put(&origin, target, 0, VALUES as i64, &long),
        _ => Ok(()),
    });
    show.wire(0)?;
    show.memories((0, origin.bytes()), (target, &empty, &memory_of(&window)?))?;
    if let Err(error) = &put {
        show.say(&format!("refused: {error}"))?;
    }
    let refused_by_name = match &put {
        Err(error) => {
            me == 0
                && error.class() == Class::Conversion
                && error.to_string().contains("1099511627776")
        }
        Ok(()) => me != 0,
    };
    let refusal = "the value is refused with class CONVERSION, and the error names it";
    show.check(refusal, refused_by_name)?;

    let blank = i64::from(0xcccc_cccc_u32 as i32);
    let mut arrived = [c::Long(0); VALUES];
    let mut stored = |window: &Window| -> longshore::Result<_> {
        window.read(0, &mut arrived)?;
        Ok(arrived.map(|long| i64::from(long.0)))
    };
    show.check(
        "the values before it are written, that value and all later ones are not",
        me != target || stored(&window)? == [1, -2, blank, blank, blank],
    )?;

    origin.set(2, c::Long(3))?;
    window.fence(|epoch| match me {
        0 => epoch.put(&origin, target, 0, VALUES as i64, &long),
        _ => Ok(()),
    })?;
    show.check(
        "the job goes on: with 3 in place of that value, all values arrive",
        me != target || stored(&window)? == [1, -2, 3, 4, 5],
    )?;
    let intact = me == target || memory_of(&window)? == empty;
    show.check("the windows of the other ranks are unchanged", intact)?;
    window.free()?;
    Ok(())
}
