//! Messages of collective calls on data: their encoding, and the blocks of data that they carry.
//!
//! Data travels packed in a representation that all ranks know (see [`Communicator::pack`]). A rank
//! that forwards values can therefore not damage values that its own types can't hold.
//!
//! If a rank fails, it sends its error in place of its data. The ranks that need the data return
//! that error, so no rank waits forever.

use std::ops::Range;

use super::Communicator;
use super::participants::told;
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::group::Group;
use crate::memory::Span;
use crate::origin::{Elementwise, What};
use crate::sequence::{Items, MATCH};

/// Bytes before the packed data: a 0, and the hash of the data's signature.
pub(super) const HEAD: usize = 17;
const FAILED: usize = 6;

/// The memory of one side of a call, and the elements there.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub what: What<'a>,
    pub span: Span,
}

impl Side<'_> {
    pub(super) fn is_in_place(&self) -> bool {
        matches!(self.what, What::InPlace)
    }

    pub(super) fn resolve(&self, communicator: &Communicator) -> Result<Elementwise> {
        self.what.resolve(communicator.process(), self.span)
    }
}

impl Communicator {
    /// All of a rank's data, packed into a message.
    pub(super) fn packed_whole(&self, data: Side<'_>) -> Result<Vec<u8>> {
        let all = data.resolve(self)?;
        self.pack_part(&all, 0, all.count)
    }

    /// Unpacks a message that fills the room.
    pub(super) fn unpack_whole(&self, room: Side<'_>, bytes: &[u8]) -> Result<()> {
        self.unpack_elements(room, None, bytes)
    }

    /// Unpacks a message into the first elements of the room.
    pub(super) fn unpack_first(&self, room: Side<'_>, elements: u64, bytes: &[u8]) -> Result<()> {
        self.unpack_elements(room, Some(elements), bytes)
    }

    /// Unpacks a message into so many elements of the room, or into all.
    fn unpack_elements(&self, room: Side<'_>, elements: Option<u64>, bytes: &[u8]) -> Result<()> {
        let all = room.resolve(self)?;
        all.check_disjoint()?;
        self.unpack_from(&all, 0, elements.unwrap_or(all.count), bytes)
    }

    /// This rank's packed data. If it is in place, it is the rank's block of the room.
    pub(super) fn packed_own(
        &self,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<u8>> {
        if !data.is_in_place() {
            return self.packed_whole(data);
        }
        let all = room.resolve(self)?;
        let own = self.blocks(all.count, ranges)?.swap_remove(self.rank() as usize);
        self.pack_part(&all, own.start, own.end - own.start)
    }

    /// One packed block for each rank.
    pub(super) fn pack_blocks(
        &self,
        data: Side<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<Vec<u8>>> {
        let all = data.resolve(self)?;
        let blocks = self.blocks(all.count, ranges)?.into_iter();
        blocks.map(|block| self.pack_part(&all, block.start, block.end - block.start)).collect()
    }

    /// The messages of packed blocks. If packing failed, each of them is the error.
    pub(super) fn seal_blocks(
        &self,
        packed: Result<Vec<Vec<u8>>>,
    ) -> (Vec<Vec<u8>>, Option<Error>) {
        match packed {
            Ok(blocks) => (blocks, None),
            Err(error) => {
                let (bytes, failed) = self.seal(Err(error));
                (vec![bytes; self.peers().size() as usize], failed)
            }
        }
    }

    /// Unpacks all blocks that can be unpacked. Returns the first error.
    pub(super) fn unpack_blocks(
        &self,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        blocks: &[Vec<u8>],
    ) -> Result<()> {
        let all = room.resolve(self)?;
        let places = self.blocks(all.count, ranges)?;
        // Elements between the ranges of a call may overlap those in them: a type of C often has an
        // extent below its true one, so that the blocks lie in each other's gaps.
        match ranges {
            None => all.check_disjoint()?,
            Some(_) => {
                let longest = places.iter().map(|place| place.end - place.start).max();
                all.check_disjoint_of(longest.unwrap_or(0))?;
            }
        }
        let unpack = |(place, bytes): (&Range<u64>, &Vec<u8>)| {
            self.unpack_from(&all, place.start, place.end - place.start, bytes)
        };
        let outcomes: Vec<_> = places.iter().zip(blocks).map(unpack).collect();
        outcomes.into_iter().collect()
    }

    /// Each rank's range of `count` elements: its element of `ranges`, or one of equal blocks.
    pub(super) fn blocks(
        &self,
        count: u64,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<Range<u64>>> {
        self.blocks_for(self.peers(), count, ranges)
    }

    /// The ranges of `count` elements for the ranks of a group.
    pub(super) fn blocks_for(
        &self,
        group: &Group,
        count: u64,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<Range<u64>>> {
        let size = group.size() as u64;
        let Some(ranges) = ranges else {
            let block = count / size;
            return match count % size {
                0 => Ok((0..size).map(|rank| rank * block..(rank + 1) * block).collect()),
                _ => Err(ErrorKind::Blocks { count, size }.into()),
            };
        };
        let wrong = |what: String| Error::from(ErrorKind::Ranges(what));
        if ranges.len() as u64 != size {
            return Err(wrong(format!("{} ranges for {size} ranks", ranges.len())));
        }
        let inside = |(rank, range): (usize, &Range<i64>)| {
            let ends = (u64::try_from(range.start), u64::try_from(range.end));
            match ends {
                (Ok(start), Ok(end)) if start <= end && end <= count => Ok(start..end),
                _ => Err(wrong(format!("{range:?} for rank {rank}, of {count} elements"))),
            }
        };
        ranges.iter().enumerate().map(inside).collect()
    }

    /// Packs `count` elements from `first` on, after the header.
    pub(super) fn pack_part(&self, all: &Elementwise, first: u64, count: u64) -> Result<Vec<u8>> {
        let (committed, representation) = (all.datatype.committed(), self.packed_representation());
        let size = self.packed_size(all, count)?;
        let mut bytes = room_for(size, HEAD)?;
        bytes.resize(HEAD + size as usize, 0);
        bytes[1..HEAD].copy_from_slice(&all.signature(count)?.to_le_bytes());
        let from = all.part(first)?;
        from.pack_to(committed, count, &mut bytes[HEAD..], &mut 0, representation)
            .map_err(conversion)?;
        Ok(bytes)
    }

    /// Bytes of `count` packed elements.
    fn packed_size(&self, all: &Elementwise, count: u64) -> Result<u64> {
        Ok(all.datatype.committed().pack_size(count, self.packed_representation())?)
    }

    /// Unpacks a message into `count` elements from `first` on.
    pub(super) fn unpack_from(
        &self,
        all: &Elementwise,
        first: u64,
        count: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let (found, data) = open(bytes)?;
        let same = found == all.signature(count)?
            || self.matches_by_length() && data.len() as u64 == self.packed_size(all, count)?;
        if !same {
            let datatype = &*all.datatype;
            return Err(ErrorKind::Signature {
                origin: format!("{} bytes of other types or another count", data.len()),
                target: Items { count, form: datatype.form(), text: datatype }.to_string(),
                remedy: MATCH.to_owned(),
            }
            .into());
        }
        let to = all.part(first)?;
        to.unpack_from(all.datatype.committed(), count, data, &mut 0, self.packed_representation())
            .map_err(conversion)
    }

    /// The message of an outcome, and this rank's error if it is one.
    pub(super) fn seal(&self, packed: Result<Vec<u8>>) -> (Vec<u8>, Option<Error>) {
        match packed {
            Ok(bytes) => (bytes, None),
            Err(error) => {
                let (class, text) = told(&error);
                let mut bytes = vec![1];
                bytes.extend(self.process().me().rank.to_le_bytes());
                bytes.push(class);
                bytes.extend(text.into_bytes());
                (bytes, Some(error))
            }
        }
    }
}

/// An empty vector for `size` bytes after a head.
///
/// # Errors
/// NO_MEM if there isn't enough memory.
pub(super) fn room_for(size: u64, head: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = usize::try_from(size).ok().and_then(|size| size.checked_add(head));
    let has_room = length.is_some_and(|length| bytes.try_reserve_exact(length).is_ok());
    if has_room { Ok(bytes) } else { Err(ErrorKind::NoMemory(size).into()) }
}

/// The signature hash and data of another rank's message, or its error.
pub(super) fn open(bytes: &[u8]) -> Result<(u128, &[u8])> {
    let malformed = || ErrorKind::Collective;
    match bytes.split_first() {
        Some((0, rest)) => {
            let (signature, data) = rest.split_first_chunk().ok_or_else(malformed)?;
            Ok((u128::from_le_bytes(*signature), data))
        }
        Some((1, _)) if bytes.len() >= FAILED => {
            let by = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
            let text = String::from_utf8_lossy(&bytes[FAILED..]).into_owned();
            Err(ErrorKind::elsewhere(by, bytes[5], text).into())
        }
        _ => Err(malformed().into()),
    }
}
