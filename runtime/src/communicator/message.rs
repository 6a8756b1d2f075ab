//! Messages of collective calls on data: their encoding, and the blocks of data that they carry.
//!
//! Data travels packed. If the basic types have the same bytes at all ranks, the stream is a copy
//! of them; otherwise it has a representation that all ranks know (see [`Communicator::pack`]). A
//! rank that forwards values can therefore not damage values that its own types can't hold.
//! [`likeness`] has the rule, by which all ranks of a call decide alike.
//!
//! [`likeness`]: super::likeness
//!
//! If a rank fails, it sends its error in place of its data. The ranks that need the data return
//! that error, so no rank waits forever.

use std::ops::Range;

use shipable::{Partial, SharedProgram};

use super::Communicator;
use super::board::BESIDE;
use super::calls::{LONGEST_POSTED, Ongoing};
use super::participants::{Sent, told};
use super::places::announcement;
use super::shapes::HEAD;
use crate::bytes::Bytes;
use crate::engine::{Landing, Source};
use crate::error::{Error, ErrorKind, Result, conversion};
use crate::group::Group;
use crate::memory::{Lease, Span, Typed};
use crate::origin::{Elementwise, What};
use crate::sequence::{Items, MATCH};
use crate::types::Compiled;

const FAILED: usize = 6;

/// Bytes of the longest block that the messages of an algorithm carry. Longer blocks are announced
/// in them, and then go from memory to memory: an announcement costs a message, and a block on its
/// way through other ranks two copies for each of them (docs/tuning.md, "Long blocks of collective
/// calls").
const SHORT: u64 = 32 << 10;

/// Bytes of the longest block that messages among ranks of one host carry.
const SHORT_BESIDE: u64 = 4 << 10;

const _: () = assert!(HEAD + size_of::<u32>() <= BESIDE, "a board has room for short blocks");

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
    pub(super) fn packed_whole(&self, data: Side<'_>) -> Result<Bytes> {
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

    /// One packed block for each rank.
    pub(super) fn pack_blocks(
        &self,
        data: Side<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<Vec<Bytes>> {
        let all = data.resolve(self)?;
        let blocks = self.blocks(all.count, ranges)?.into_iter();
        blocks.map(|block| self.pack_part(&all, block.start, block.end - block.start)).collect()
    }

    /// The blocks of a side, one for each rank.
    pub(super) fn parts(&self, side: Side<'_>, ranges: Option<&[Range<i64>]>) -> Result<Blocks> {
        let all = side.resolve(self)?;
        let places = self.blocks(all.count, ranges)?;
        Ok(Blocks::Of(all, places))
    }

    /// The blocks of a room, one for each rank.
    ///
    /// # Errors
    /// Also if blocks overlap themselves.
    pub(super) fn rooms(&self, room: Side<'_>, ranges: Option<&[Range<i64>]>) -> Result<Blocks> {
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
        Ok(Blocks::Of(all, places))
    }

    /// The message of a block: its data, or its announcement if it has more bytes than `longest`,
    /// its elements are copied between all ranks, and `may_announce`. Such a block is returned as
    /// well.
    pub(super) fn block_message(
        &self,
        block: Block<'_>,
        longest: u64,
        may_announce: bool,
    ) -> Result<(Bytes, Option<Long>)> {
        let size = self.packed_size(block.all, block.count)?;
        let is_long = size > longest && may_announce && block.holds(size)?;
        if !is_long || !self.copies(&block.all.datatype) {
            return Ok((self.pack_sized(block, size)?, None));
        }
        let long = self.long(block)?;
        let message = announcement(block.all.signature(block.count)?, long.length);
        Ok((Bytes::copy_of(&message)?, Some(long)))
    }

    fn long(&self, block: Block<'_>) -> Result<Long> {
        let program = self.program(&block.all.datatype)?;
        let length = program.stream_length(block.count)?;
        self.count_exchanged(&block.all.datatype, length);
        Ok(Long { program, count: block.count, span: block.all.part(block.first)?, length })
    }

    /// The program for elements as they travel.
    fn program(&self, datatype: &Compiled) -> Result<SharedProgram> {
        match self.stream(datatype) {
            None => Ok(datatype.shared_native()),
            Some(stream) => datatype.program(stream),
        }
    }

    /// Bytes of the longest block that the messages of a call carry.
    ///
    /// # Errors
    /// Those of making a board.
    pub(super) fn longest_short(&self, at: Ongoing) -> Result<u64> {
        Ok(match self.participants(at).board()? {
            Some(board) => (board.longest_part() as u64).min(LONGEST_POSTED),
            None if self.group().is_on_one(self.process().hosts()) => SHORT_BESIDE,
            None => SHORT,
        })
    }

    /// Whether elements lie in memory as they travel, in one run.
    pub(super) fn is_run(&self, all: &Elementwise) -> bool {
        let program = self.program(&all.datatype);
        program.is_ok_and(|program| program.contiguous(all.count).is_some())
    }

    /// Some bytes of elements that lie in memory as they travel, in one run.
    ///
    /// # Errors
    /// They don't.
    pub(super) fn long_run(&self, all: &Elementwise, bytes: &Range<u64>) -> Result<Long> {
        let first = self.program(&all.datatype)?.contiguous(all.count);
        let start = first.and_then(|first| first.checked_add_unsigned(bytes.start));
        let span =
            start.and_then(|start| all.span.shifted(start)).ok_or_else(|| ErrorKind::Collective)?;
        self.count_exchanged(&all.datatype, bytes.end - bytes.start);
        self.long_of_bytes(span, bytes.end - bytes.start)
    }

    /// Some bytes of a packed stream, which is in memory. They are only read, and must stay there
    /// while the block is in use.
    ///
    /// # Errors
    /// The stream is shorter.
    pub(super) fn long_bytes(&self, stream: &[u8], bytes: &Range<u64>) -> Result<Long> {
        let some = stream.get(bytes.start as usize..bytes.end as usize);
        let some = some.ok_or_else(|| ErrorKind::Collective)?;
        let span = Span::around(some.as_ptr().cast_mut(), 0, some.len() as i64);
        self.long_of_bytes(span, some.len() as u64)
    }

    pub(super) fn long_of_bytes(&self, span: Span, length: u64) -> Result<Long> {
        let architecture = &self.process().me().architecture;
        let program = self.process().elements().in_memory::<u8>()?.program(architecture)?;
        Ok(Long { program, count: length, span, length })
    }

    /// The room for a block that was announced with this signature and length.
    pub(super) fn long_room(
        &self,
        room: Block<'_>,
        (signature, length): (u128, u64),
    ) -> Result<Long> {
        self.check_match(room.all, room.count, signature, length)?;
        self.long(room)
    }

    /// Copies an announced block from this rank's memory to this rank's memory.
    pub(super) fn copy_block(&self, from: Block<'_>, to: Block<'_>) -> Result<()> {
        let signature = from.all.signature(from.count)?;
        if signature != to.all.signature(to.count)? {
            // Of another type, if only the length has to match.
            let packed = self.pack_part(from.all, from.first, from.count)?;
            return self.unpack_block(to, &packed);
        }
        let (source, target) = (self.long(from)?, self.long(to)?);
        Span::copy(source.typed(), target.typed(), true).map_err(conversion)
    }

    /// The messages of packed blocks. If packing failed, each of them is the error.
    pub(super) fn seal_blocks(&self, packed: Result<Vec<Bytes>>) -> (Vec<Bytes>, Option<Error>) {
        match packed {
            Ok(blocks) => (blocks, None),
            Err(error) => {
                let size = self.peers().size() as usize;
                let (bytes, failed) = self.seal(Err(error));
                ((0..size).map(|_| bytes.to_vec().into()).collect(), failed)
            }
        }
    }

    /// Unpacks all blocks that can be unpacked. Returns the first error.
    pub(super) fn unpack_blocks(
        &self,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        blocks: &[Bytes],
    ) -> Result<()> {
        let rooms = self.rooms(room, ranges)?;
        let unpack = |(rank, bytes): (usize, &Bytes)| match rooms.at(rank) {
            Some(room) => self.unpack_block(room, bytes),
            None => Ok(()),
        };
        let outcomes: Vec<_> = blocks.iter().enumerate().map(unpack).collect();
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
    pub(super) fn pack_part(&self, all: &Elementwise, first: u64, count: u64) -> Result<Bytes> {
        let size = self.packed_size(all, count)?;
        self.pack_sized(Block { all, first, count }, size)
    }

    /// Packs a block of `size` bytes.
    fn pack_sized(&self, block: Block<'_>, size: u64) -> Result<Bytes> {
        let mut bytes = Bytes::stale(whole_length(size)?)?;
        bytes[0] = 0;
        bytes[1..HEAD].copy_from_slice(&block.all.signature(block.count)?.to_le_bytes());
        self.pack_into(block, &mut bytes[HEAD..])?;
        Ok(bytes)
    }

    /// Packs a block into bytes, as many as it has.
    fn pack_into(&self, Block { all, first, count }: Block<'_>, bytes: &mut [u8]) -> Result<()> {
        let (datatype, from) = (&all.datatype, all.part(first)?);
        self.count_exchanged(datatype, bytes.len() as u64);
        let packed = match self.stream(datatype) {
            None => from.pack(datatype.native(), count, 0, bytes).map(drop),
            Some(other) => from.pack_to(datatype.committed(), count, bytes, &mut 0, other),
        };
        packed.map_err(conversion)
    }

    /// Bytes of `count` packed elements.
    pub(super) fn packed_size(&self, all: &Elementwise, count: u64) -> Result<u64> {
        self.stream_length(&all.datatype, count)
    }

    /// Bytes of `count` packed elements of a type.
    pub(super) fn stream_length(&self, datatype: &Compiled, count: u64) -> Result<u64> {
        Ok(match self.stream(datatype) {
            None => datatype.native().stream_length(count)?,
            Some(other) => datatype.committed().pack_size(count, other)?,
        })
    }

    /// Packs a block without a header.
    pub(super) fn pack_bare(&self, block: Block<'_>) -> Result<Bytes> {
        let size = self.packed_size(block.all, block.count)?;
        let length = usize::try_from(size).map_err(|_| ErrorKind::NoMemory(size))?;
        let mut bytes = Bytes::stale(length)?;
        self.pack_into(block, &mut bytes)?;
        Ok(bytes)
    }

    /// Unpacks elements of this signature, which have no header, into a block.
    pub(super) fn unpack_bare(
        &self,
        Block { all, first, count }: Block<'_>,
        signature: u128,
        data: &[u8],
    ) -> Result<()> {
        self.check_match(all, count, signature, data.len() as u64)?;
        let (datatype, to) = (&all.datatype, all.part(first)?);
        self.count_exchanged(datatype, data.len() as u64);
        let unpacked = match self.stream(datatype) {
            None => to.unpack(datatype.native(), count, 0, data, &mut Partial::default()),
            Some(other) => to.unpack_from(datatype.committed(), count, data, &mut 0, other),
        };
        unpacked.map_err(conversion)
    }

    /// Unpacks a message into a block.
    pub(super) fn unpack_block(&self, room: Block<'_>, bytes: &[u8]) -> Result<()> {
        self.unpack_from(room.all, room.first, room.count, bytes)
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
        self.unpack_bare(Block { all, first, count }, found, data)
    }

    /// Checks that packed data of this signature and length match so many elements.
    pub(super) fn check_match(
        &self,
        all: &Elementwise,
        count: u64,
        signature: u128,
        length: u64,
    ) -> Result<()> {
        let has_length = length == self.packed_size(all, count)?;
        if has_length && (self.matches_by_length() || signature == all.signature(count)?) {
            return Ok(());
        }
        let datatype = &*all.datatype;
        Err(ErrorKind::Signature {
            origin: format!("{length} bytes of other types or another count"),
            target: Items { count, form: datatype.form(), text: datatype }.to_string(),
            remedy: MATCH.to_owned(),
        }
        .into())
    }

    /// The message of an outcome, and this rank's error if it is one.
    pub(super) fn seal(&self, packed: Result<Bytes>) -> (Bytes, Option<Error>) {
        match packed {
            Ok(bytes) => (bytes, None),
            Err(error) => {
                let (class, text) = told(&error);
                let mut bytes = vec![1];
                bytes.extend(self.process().me().rank.to_le_bytes());
                bytes.push(class);
                bytes.extend(text.into_bytes());
                (bytes.into(), Some(error))
            }
        }
    }
}

/// The blocks of one side of a call, one for each rank.
pub(super) enum Blocks {
    /// Ranges of elements in one memory.
    Of(Elementwise, Vec<Range<u64>>),
    /// Blocks that have a memory of their own; `None` for one that the call can't use.
    Each(Vec<Option<Elementwise>>),
}

impl Blocks {
    /// A rank's block.
    pub(super) fn at(&self, rank: usize) -> Option<Block<'_>> {
        match self {
            Blocks::Of(all, places) => {
                let place = places.get(rank)?;
                Some(Block { all, first: place.start, count: place.end - place.start })
            }
            Blocks::Each(each) => each.get(rank)?.as_ref().map(Block::of),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Blocks::Of(_, places) => places.len(),
            Blocks::Each(each) => each.len(),
        }
    }
}

/// Some of the elements of a memory.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    all: &'a Elementwise,
    first: u64,
    count: u64,
}

impl Block<'_> {
    /// Whether its memory has so many bytes. Elements that lie over each other may be more when
    /// packed, and more than any memory has.
    fn holds(&self, bytes: u64) -> Result<bool> {
        let range = self.all.datatype.native().range(self.count)?;
        Ok(range.end.abs_diff(range.start) >= bytes)
    }

    /// All elements of a memory.
    pub(super) fn of(all: &Elementwise) -> Block<'_> {
        Block { all, first: 0, count: all.count }
    }
}

/// A block that goes from memory to memory, as its sender or its receiver holds it.
pub(super) struct Long {
    program: SharedProgram,
    count: u64,
    span: Span,
    length: u64,
}

impl Long {
    /// The block as the data of a message to a process. Its memory is used until the message has
    /// gone.
    pub(super) fn sent_to(&self, to: u32) -> Sent {
        let Long { program, count, span, length } = self;
        let (program, lease) = (program.clone(), Lease::lent(*span));
        Sent { to, length: *length, source: Source::Typed { program, count: *count, lease } }
    }

    /// Reads the block.
    pub(super) fn read(&self, bytes: &mut [u8]) -> Result<()> {
        self.span.pack(&self.program, self.count, 0, bytes).map(drop).map_err(conversion)
    }

    /// Overwrites the block.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut partial = Partial::default();
        let Long { program, count, span, .. } = self;
        span.unpack(program, *count, 0, bytes, &mut partial).map(drop).map_err(conversion)
    }

    fn typed(&self) -> Typed<'_> {
        Typed { program: &self.program, count: self.count, span: self.span }
    }

    /// The room of the block. It is used until the message is here.
    pub(super) fn landing(&self) -> Landing {
        let (program, lease) = (self.program.clone(), Lease::lent(self.span));
        Landing::Agreed { program, count: self.count, lease }
    }
}

/// A value and no error, or an error and no value. A rank that fails goes on with its exchanges,
/// and returns its error then.
pub(super) fn parted<T>(outcome: Result<T>) -> (Option<T>, Option<Error>) {
    match outcome {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    }
}

/// The length of a message of `size` packed bytes.
///
/// # Errors
/// NO_MEM if no memory is that large.
pub(super) fn whole_length(size: u64) -> Result<usize> {
    let length = usize::try_from(size).ok().and_then(|size| size.checked_add(HEAD));
    Ok(length.ok_or_else(|| ErrorKind::NoMemory(size))?)
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
