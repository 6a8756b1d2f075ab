//! Pack and unpack, scalar by scalar.

use super::typemap::{Item, expand};
use crate::arch::Architecture;
use crate::convert::{Conversion, ValueError};
use crate::datatype::Datatype;
use crate::error::Result;

/// A value that the destination's representation can't hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The index of the scalar in the type maps of all elements.
    pub item: usize,
    /// The value, and the reason.
    pub error: ValueError,
}

/// Packs `count` elements from memory. `origin` is the index of displacement 0.
///
/// Returns the packed bytes, and the value that ended the packing early, if there was one.
///
/// # Errors
/// The errors of [`Architecture::leaf`] and [`Conversion::between`].
///
/// # Panics
/// If the elements aren't inside the memory.
pub fn pack(
    datatype: &Datatype,
    count: u64,
    memory: (&Architecture, &[u8], usize),
    stream: &Architecture,
) -> Result<(Vec<u8>, Option<Refusal>)> {
    let (architecture, bytes, origin) = memory;
    let mut packed = Vec::new();
    for (item, (from, to)) in both(datatype, count, architecture, stream)?.iter().enumerate() {
        let conversion = Conversion::between(from.scalar, to.scalar)?;
        let source = &bytes[index(origin, from)..][..usize::from(from.scalar.size)];
        let mut target = vec![0; to.scalar.size.into()];
        if let Err(error) = whole(conversion, source, &mut target) {
            return Ok((packed, Some(Refusal { item, error })));
        }
        packed.extend(target);
    }
    Ok((packed, None))
}

/// Unpacks `count` elements into memory. `origin` is the index of displacement 0.
///
/// A value that the memory's representation can't hold ends the unpacking. It is returned, and
/// neither it nor any later value is written.
///
/// # Errors
/// The errors of [`Architecture::leaf`] and [`Conversion::between`].
///
/// # Panics
/// If the elements aren't inside the memory, or the stream is too short.
pub fn unpack(
    datatype: &Datatype,
    count: u64,
    memory: (&Architecture, &mut [u8], usize),
    stream: (&Architecture, &[u8]),
) -> Result<Option<Refusal>> {
    let (architecture, bytes, origin) = memory;
    let mut position = 0;
    for (item, (to, from)) in both(datatype, count, architecture, stream.0)?.iter().enumerate() {
        let conversion = Conversion::between(from.scalar, to.scalar)?;
        let source = &stream.1[position..][..usize::from(from.scalar.size)];
        let target = &mut bytes[index(origin, to)..][..usize::from(to.scalar.size)];
        if let Err(error) = whole(conversion, source, target) {
            return Ok(Some(Refusal { item, error }));
        }
        position += source.len();
    }
    Ok(None)
}

/// The representations of each scalar in memory and in the stream.
fn both(
    datatype: &Datatype,
    count: u64,
    memory: &Architecture,
    stream: &Architecture,
) -> Result<Vec<(Item, Item)>> {
    let items = expand(datatype, memory, count)?;
    items
        .into_iter()
        .map(|item| {
            let scalar = stream.leaf(item.leaf)?.components[item.component].scalar;
            Ok((item, Item { scalar, ..item }))
        })
        .collect()
}

fn index(origin: usize, item: &Item) -> usize {
    let index = i64::try_from(origin).ok().and_then(|origin| origin.checked_add(item.offset));
    index.and_then(|index| usize::try_from(index).ok()).expect("the memory holds every item")
}

/// Converts a scalar unit by unit.
fn whole(conversion: Conversion, from: &[u8], to: &mut [u8]) -> Result<(), ValueError> {
    let (unit_from, unit_to) = (conversion.from_size(), conversion.to_size());
    let units = from.chunks(unit_from.into()).zip(to.chunks_mut(unit_to.into()));
    for (from, to) in units {
        conversion.apply(from, to)?;
    }
    Ok(())
}
