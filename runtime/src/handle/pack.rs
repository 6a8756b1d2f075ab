//! MPI_Pack_size, MPI_Pack and MPI_Unpack by handle, of data, of datatypes and of communicators (seed 001).
//!
//! What is packed depends on which handles are null:
//!
//! | count | datatype | communicator | |
//! |---|---|---|---|
//! | any, 0 or more | valid | valid | data, as MPI-1 has it |
//! | 1 | valid | null | the datatype |
//! | 1 | null | valid | the communicator |
//! | another | one of them null | | an error |
//! | any | null | null | an error |
//!
//! To unpack an object is to give a place for its handle, which has to hold a null one, instead of the handle. A buffer is
//! needed for data alone, and only where they take any bytes.

use shipable::Class;

use super::{CommunicatorHandle, Communicators, Handle, Role, Types};
use crate::communicator::Communicator;
use crate::error::{ErrorKind, Result};
use crate::flat;
use crate::origin::{Destination, Origin, RankMemory, RankMemoryMut};
use crate::types::Type;

/// A handle given to [`unpack`].
#[derive(Debug)]
pub enum Argument<'a, H> {
    /// Of what is there.
    In(H),
    /// The place for the handle of what is unpacked.
    Out(&'a mut H),
}

/// What the null handles ask for.
enum Object {
    Data(Type, Communicator),
    Datatype(Handle),
    Communicator(CommunicatorHandle),
}

/// Reads the table above.
fn object(
    types: &Types,
    communicators: &Communicators,
    count: i64,
    datatype: Handle,
    communicator: CommunicatorHandle,
) -> Result<Object> {
    let one = |object| match count {
        1 => Ok(object),
        _ => Err(wrong(format!(
            "a count of {count} with a null handle: one datatype or communicator is packed at a time, give 1"
        ))),
    };
    match (datatype == Handle::NULL, communicator == CommunicatorHandle::NULL) {
        (false, false) => {
            Ok(Object::Data(types.as_own(datatype, Role::Pack)?, communicators.own(communicator)?))
        }
        (false, true) => one(Object::Datatype(datatype)),
        (true, false) => one(Object::Communicator(communicator)),
        (true, true) => Err(both_null()),
    }
}

/// The bytes that [`pack`] takes at most for the same arguments.
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::handle::{CommunicatorHandle, Communicators, Handle, Types, pack_size};
/// use longshore::shipable::Basic;
///
/// let (types, communicators) = (Types::new(&rank), Communicators::new(&rank));
/// let (double, world) = (Handle::predefined(Basic::Double), CommunicatorHandle::WORLD);
/// assert_eq!(pack_size(&types, &communicators, 3, double, world)?, 24);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// ARG for arguments that aren't in the table; TYPE, COMM for handles that can't be used so; as
/// [`Communicator::pack_size`].
pub fn pack_size(
    types: &Types,
    communicators: &Communicators,
    count: i64,
    datatype: Handle,
    communicator: CommunicatorHandle,
) -> Result<u64> {
    match object(types, communicators, count, datatype, communicator)? {
        Object::Data(datatype, communicator) => communicator.pack_size(count, &datatype),
        Object::Datatype(datatype) => Ok(types.flat(datatype)?.len() as u64),
        Object::Communicator(handle) => Ok(communicators.own(handle)?.flat()?.len() as u64),
    }
}

/// Packs data, a datatype or a communicator to `packed` from `position` on, and moves the position past it.
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::handle::{Argument, CommunicatorHandle, Communicators, Handle, Types, pack, unpack};
/// use longshore::shipable::Basic;
///
/// let (types, communicators) = (Types::new(&rank), Communicators::new(&rank));
/// let (tables, double) = ((&types, &communicators), Handle::predefined(Basic::Double));
/// let (world, none) = (CommunicatorHandle::WORLD, CommunicatorHandle::NULL);
/// let (values, mut packed, mut position) = ([1.5, 2.5], [0; 200], 0);
/// // The type of the data, and the data.
/// pack(tables, None::<&[f64]>, 1, double, &mut packed, &mut position, none)?;
/// pack(tables, Some(&values[..]), 2, double, &mut packed, &mut position, world)?;
///
/// let (mut datatype, mut got) = (Handle::NULL, [0.0; 2]);
/// position = 0;
/// let what = Argument::Out(&mut datatype);
/// unpack(tables, &packed, &mut position, None::<&mut [f64]>, 1, what, Argument::In(none))?;
/// let what = Argument::In(datatype);
/// unpack(tables, &packed, &mut position, Some(&mut got[..]), 2, what, Argument::In(world))?;
/// assert_eq!(got, values);
/// # rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
///
/// # Errors
/// As [`pack_size`] and [`Communicator::pack`]; BUFFER where data are to be packed and there is no buffer. Nothing is packed
/// then.
pub fn pack<'a, M: RankMemory<'a>>(
    (types, communicators): (&Types, &Communicators),
    buffer: Option<M>,
    count: i64,
    datatype: Handle,
    packed: &mut [u8],
    position: &mut u64,
    communicator: CommunicatorHandle,
) -> Result<()> {
    let text = match object(types, communicators, count, datatype, communicator)? {
        Object::Data(datatype, communicator) => {
            let data = match buffer {
                Some(buffer) => Origin::typed(buffer, count, &datatype),
                None => {
                    check_no_data(&communicator, count, &datatype)?;
                    Origin::typed(&[0u8; 0][..], count, &datatype)
                }
            };
            return communicator.pack(data, packed, position);
        }
        Object::Datatype(datatype) => types.flat(datatype)?,
        Object::Communicator(handle) => communicators.own(handle)?.flat()?,
    };
    let size = packed.len();
    let room = flat::start(*position, size).and_then(|start| {
        let room = &mut packed[start..];
        let left = room.len();
        Ok(room.get_mut(..text.len()).ok_or_else(|| shipable::Error::Argument {
            call: "pack",
            class: Class::Truncate,
            problem: format!(
                "the packed object takes {} bytes at position {position}, of which the buffer of {size} has {left}",
                text.len()
            ),
        })?)
    })?;
    room.copy_from_slice(text.as_bytes());
    *position += text.len() as u64;
    Ok(())
}

/// Unpacks data, a datatype or a communicator from `position` of `packed` on, and moves the position past it. A datatype is
/// committed; a communicator can be compared and freed, and nothing else.
///
/// # Errors
/// ARG for arguments that aren't in the table, and for a place that holds a handle already; TYPE, COMM for handles that can't
/// be used so; as [`Communicator::unpack`], [`Rank::unpack_type`](crate::Rank::unpack_type) and
/// [`Rank::unpack_communicator`](crate::Rank::unpack_communicator).
pub fn unpack<'a, M: RankMemoryMut<'a>>(
    (types, communicators): (&Types, &Communicators),
    packed: &[u8],
    position: &mut u64,
    buffer: Option<M>,
    count: i64,
    datatype: Argument<'_, Handle>,
    communicator: Argument<'_, CommunicatorHandle>,
) -> Result<()> {
    use Argument::{In, Out};
    let free = |null: bool| match null {
        true if count == 1 => Ok(()),
        true => Err(wrong(format!("a count of {count}: one object is unpacked at a time, give 1"))),
        false => {
            Err(wrong("the handle to be filled names something already: let it be null".into()))
        }
    };
    match (datatype, communicator) {
        (Out(place), In(CommunicatorHandle::NULL)) => {
            free(*place == Handle::NULL)?;
            *place = types.unpack(packed, position)?;
            Ok(())
        }
        (In(Handle::NULL), Out(place)) => {
            free(*place == CommunicatorHandle::NULL)?;
            let unpacked = flat::unpack_communicator(types.process(), packed, position)?;
            *place = communicators.insert_unpacked(unpacked);
            Ok(())
        }
        (Out(_), _) | (_, Out(_)) => Err(wrong(
            "a place for one handle and no null for the other: give a null beside what is unpacked"
                .into(),
        )),
        (In(Handle::NULL), In(CommunicatorHandle::NULL)) => Err(both_null()),
        (In(datatype), In(communicator)) => {
            let datatype = types.as_own(datatype, Role::Pack)?;
            let communicator = communicators.own(communicator)?;
            let room = match buffer {
                Some(buffer) => Destination::typed(buffer, count, &datatype),
                None => {
                    check_no_data(&communicator, count, &datatype)?;
                    Destination::typed(&mut [0u8; 0][..], count, &datatype)
                }
            };
            communicator.unpack(packed, position, room)
        }
    }
}

/// Data that take no bytes need no buffer.
fn check_no_data(communicator: &Communicator, count: i64, datatype: &Type) -> Result<()> {
    match communicator.pack_size(count, datatype)? {
        0 => Ok(()),
        _ => Err(ErrorKind::NoBuffer.into()),
    }
}

fn wrong(what: String) -> crate::Error {
    ErrorKind::PackArguments(what).into()
}

fn both_null() -> crate::Error {
    wrong("datatype and communicator are both null: one of them says what to pack or unpack".into())
}
