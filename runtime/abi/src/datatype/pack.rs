//! Packing (MPI-5.0 sections 5.2 and 5.3).

use longshore::Class;

use crate::communicator::Comm;
use crate::datatype::Type;
use crate::edge::arg::Buffer;
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Result};
use crate::edge::state;

/// The length of a packed buffer.
pub fn length(size: i64) -> Result<usize> {
    let wrong = |_| Fault::argument(format_args!("the packed buffer has {size} bytes"));
    usize::try_from(size).map_err(wrong)
}

/// Runs a call that moves a position, which stays where it is if the call fails.
pub fn moving(position: &mut i64, run: impl FnOnce(&mut u64) -> Result<()>) -> Result<()> {
    let wrong = |_| Fault::argument(format_args!("the position is {position}"));
    let mut at = u64::try_from(*position).map_err(wrong)?;
    run(&mut at)?;
    *position = at as i64;
    Ok(())
}

fn count(count: i64) -> Result<i64> {
    match count {
        0.. => Ok(count),
        _ => Err(Fault::new(Class::Count, format!("the count is {count}"))),
    }
}

pub fn pack(
    data: Elements<&Type>,
    to: Buffer,
    size: i64,
    position: &mut i64,
    comm: &Comm,
) -> Result<()> {
    let data = data.of(data.datatype.committed()?).origin()?;
    let packed = to.bytes_mut(length(size)?)?;
    moving(position, |at| Ok(comm.inner().pack(data, packed, at)?))
}

pub fn unpack(
    from: Buffer,
    size: i64,
    position: &mut i64,
    room: Elements<&Type>,
    comm: &Comm,
) -> Result<()> {
    count(room.count)?;
    let room = room.of(room.datatype.committed()?).destination()?;
    let packed = from.bytes(length(size)?)?;
    moving(position, |at| Ok(comm.inner().unpack(packed, at, room)?))
}

pub fn pack_size(count: i64, datatype: &Type, comm: &Comm) -> Result<i64> {
    Ok(comm.inner().pack_size(count, datatype.committed()?)? as i64)
}

pub fn pack_external(
    datarep: &str,
    data: Elements<&Type>,
    to: Buffer,
    size: i64,
    position: &mut i64,
) -> Result<()> {
    count(data.count)?;
    let data = data.of(data.datatype.committed()?).origin()?;
    let packed = to.bytes_mut(length(size)?)?;
    let rank = state::state()?.rank();
    moving(position, |at| Ok(rank.pack_external(datarep, data, packed, at)?))
}

pub fn unpack_external(
    datarep: &str,
    from: Buffer,
    size: i64,
    position: &mut i64,
    room: Elements<&Type>,
) -> Result<()> {
    count(room.count)?;
    let room = room.of(room.datatype.committed()?).destination()?;
    let packed = from.bytes(length(size)?)?;
    let rank = state::state()?.rank();
    moving(position, |at| Ok(rank.unpack_external(datarep, packed, at, room)?))
}

pub fn pack_external_size(datarep: &str, elements: i64, datatype: &Type) -> Result<i64> {
    let rank = state::state()?.rank();
    Ok(rank.pack_external_size(datarep, count(elements)?, datatype.committed()?)? as i64)
}
