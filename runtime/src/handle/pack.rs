//! MPI_Pack_size, MPI_Pack and MPI_Unpack by handle, of data, datatypes and communicators (proposal
//! 1 (docs/proposals.md)).
//!
//! The null handles decide which kind of object is packed:
//!
//! | count | datatype | communicator | |
//! |---|---|---|---|
//! | 0 or more | valid | valid | data, as in MPI-1 |
//! | 1 | valid | null | the datatype |
//! | 1 | null | valid | the communicator |
//! | not 1 | one of them null | | an error |
//! | any | null | null | an error |
//!
//! To unpack an object, pass a reference to a null handle in its place, which is then set. Only
//! data needs a buffer, and only if it takes any bytes.

use shipable::Class;

use super::{CommunicatorHandle, Communicators, Handle, Role, Types};
use crate::communicator::Communicator;
use crate::error::{ErrorKind, Result};
use crate::flat;
use crate::origin::{Destination, Origin, RankMemory, RankMemoryMut};
use crate::types::Type;

/// A handle that is passed to [`unpack`].
#[derive(Debug)]
pub enum Argument<'a, H> {
    /// The handle of an existing object.
    In(H),
    /// The null handle that is set to the unpacked object.
    Out(&'a mut H),
}

/// The kind of object that the handles select.
enum Object {
    Data(Type, Communicator),
    Datatype(Handle),
    Communicator(CommunicatorHandle),
}

/// Selects the kind of object by the table in the module's documentation.
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
            "a count of {count} with a null handle: one datatype or communicator is packed at a time, pass 1"
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

/// The greatest number of bytes that [`pack`] needs for these arguments.
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
/// ARG for arguments that aren't in the table above. TYPE or COMM for an unusable handle. Otherwise
/// the errors of [`Communicator::pack_size`].
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

/// Packs data, a datatype or a communicator into `packed` from `position` on, and advances the
/// position.
///
/// ```
/// # let rank = longshore::init()?;
/// use longshore::handle::{Argument, CommunicatorHandle, Communicators, Handle, Types};
/// use longshore::handle::{pack, unpack};
/// use longshore::shipable::Basic;
///
/// let (types, communicators) = (Types::new(&rank), Communicators::new(&rank));
/// let (tables, double) = ((&types, &communicators), Handle::predefined(Basic::Double));
/// let (world, none) = (CommunicatorHandle::WORLD, CommunicatorHandle::NULL);
/// let (values, mut packed, mut position) = ([1.5, 2.5], [0; 200], 0);
/// // Packs the type of the data, then the data.
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
/// Those of [`pack_size`] and [`Communicator::pack`]. BUFFER if there is data but no buffer.
/// Nothing is packed then.
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

/// Unpacks data, a datatype or a communicator from `position` of `packed` on, and advances the
/// position. An unpacked datatype is committed. An unpacked communicator can only be compared and
/// freed.
///
/// # Errors
/// ARG for arguments that aren't in the table above, and if a handle to be set isn't null. TYPE or
/// COMM for an unusable handle. Otherwise the errors of [`Communicator::unpack`],
/// [`Rank::unpack_type`](crate::Rank::unpack_type) and
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
        true => Err(wrong(format!("a count of {count}: one object is unpacked at a time, pass 1"))),
        false => Err(wrong("the handle to be set isn't null: set it to null first".into())),
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
            "one handle is to be set, but the other isn't null: pass a null handle beside the one to be set"
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

/// Refuses data without a buffer, unless it takes no bytes.
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
    wrong("datatype and communicator are both null: one of them must select the object to pack or unpack".into())
}
