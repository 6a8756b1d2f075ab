//! The layout of a view in its file: where the bytes of the view's stream lie (MPI-5.0 section
//! 14.3).
//!
//! A view shows a file as a *stream*: the data of its filetype, repeated as tiles from the
//! displacement on, without the gaps. A position is the number of bytes of the stream before it.
//! Everything here is in the file's representation, and nothing is converted.

use std::fmt::Display;
use std::ops::Range;

use longshore::shipable::Committed;
use longshore::{Architecture, Class, Datatype};

use crate::error::{Error, Result};

/// Where the bytes of a stream lie in a file.
pub(crate) struct Layout {
    /// The first byte of the first tile, in bytes from the start of the file.
    disp: i64,
    /// The bytes of an etype.
    etype: u64,
    tile: Committed,
    /// The representation of the file.
    architecture: Architecture,
    /// Whether positions and offsets grow together, beyond the first tile too.
    ascends: bool,
    /// Whether a tile overlaps itself or the next one. Tiles that interleave meet others of them
    /// only far on, and a program may stop before.
    overlaps: bool,
}

impl Layout {
    /// The layout of a view of `filetype`, a sequence of etypes, from byte `disp` on.
    ///
    /// # Errors
    /// ARG for a negative displacement. TYPE for a filetype that isn't a sequence of etypes. IO for
    /// one whose displacements are negative or decrease.
    pub fn new(
        disp: i64,
        (etype, etype_name): (&Datatype, &dyn Display),
        (filetype, filetype_name): (&Datatype, &dyn Display),
        architecture: &Architecture,
    ) -> Result<Layout> {
        if disp < 0 {
            let problem = format!("the displacement of the view is {disp}: use 0 or more");
            return Err(Error::argument(Class::Arg, problem));
        }
        let wrong = |problem: String| Error::argument(Class::Type, problem);
        let etype_size = Committed::new(etype, architecture)?.native().stream_size();
        let tile = Committed::new(filetype, architecture)?;
        let program = tile.native();
        let size = program.stream_size();
        if etype_size == 0 {
            return Err(wrong(format!("the etype {etype_name} has no data")));
        }
        if size % etype_size != 0 {
            return Err(wrong(format!(
                "the filetype {filetype_name} has {size} bytes of data in the file, which are no whole \
                 number of etypes {etype_name} of {etype_size} bytes"
            )));
        }
        let (mut last, mut problem) = (None, None);
        program.runs_within(1, 0..size, |at, _| {
            problem = match last {
                _ if at < 0 => Some(format!(
                    "the filetype {filetype_name} has data at displacement {at}: views have none below 0"
                )),
                Some(last) if at < last => Some(format!(
                    "the filetype {filetype_name} has data at displacement {at} after some at {last}: \
                     displacements in filetypes must not decrease"
                )),
                _ => None,
            };
            last = Some(at);
            problem.is_none()
        })?;
        if let Some(problem) = problem {
            return Err(Error::argument(Class::Io, problem));
        }
        let reach = program.range(1)?;
        // A byte that is twice in a tile has two positions.
        let ascends =
            size > 0 && program.extent() >= reach.end - reach.start && !program.overlaps(1);
        if size > 0 && program.extent() < 0 {
            let problem = format!(
                "the filetype {filetype_name} has the extent {}: its tiles would go backwards",
                program.extent()
            );
            return Err(Error::argument(Class::Io, problem));
        }
        let overlaps = program.overlaps(1);
        let architecture = *architecture;
        Ok(Layout { disp, etype: etype_size, tile, architecture, ascends, overlaps })
    }

    /// The representation of the file.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The bytes of an etype in the file.
    pub fn etype_size(&self) -> u64 {
        self.etype
    }

    /// Whether positions and offsets grow together, so that a range of the file is a range of the
    /// stream.
    pub fn ascends(&self) -> bool {
        self.ascends
    }

    /// Whether a tile overlaps itself, so that writes would write bytes twice.
    pub fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// Whether the bytes of a part of the stream overlap in the file. Each tile may be disjoint and
    /// overlap the next one, as that of a view of which one tile is used.
    ///
    /// # Errors
    /// ARG for offsets beyond an `i64`.
    pub fn overlaps_in(&self, part: &Range<u64>) -> Result<bool> {
        if self.ascends || part.is_empty() {
            return Ok(self.overlaps);
        }
        let size = self.tile_size();
        let tiles = (part.end - 1) / size - part.start / size + 1;
        if tiles == 1 || !self.tile.native().overlaps(tiles) {
            return Ok(self.overlaps);
        }
        let mut runs = Vec::new();
        self.runs(part.clone(), |offset, len| {
            runs.push((offset, offset + len));
            true
        })?;
        runs.sort_unstable();
        Ok(runs.windows(2).any(|pair| pair[0].1 > pair[1].0))
    }

    fn tile_size(&self) -> u64 {
        self.tile.native().stream_size()
    }

    /// The position of an offset in etypes.
    ///
    /// # Errors
    /// ARG for a negative offset, and for one that is too large.
    pub fn position(&self, offset: i64) -> Result<u64> {
        let position = u64::try_from(offset).ok().and_then(|it| it.checked_mul(self.etype));
        position.filter(|position| i64::try_from(*position).is_ok()).ok_or_else(|| {
            let problem = match offset {
                ..0 => format!("the offset {offset} is negative"),
                _ => format!("the offset {offset} in etypes of {} bytes is too large", self.etype),
            };
            Error::argument(Class::Arg, problem)
        })
    }

    /// The number of tiles that hold the stream before a position.
    fn tiles(&self, end: u64) -> Result<u64> {
        match self.tile_size() {
            0 => {
                let problem = "the view's filetype has no data: nothing can be accessed by it";
                Err(Error::argument(Class::Type, problem))
            }
            size => Ok(end.div_ceil(size).max(1)),
        }
    }

    /// Calls `each` with the runs of the file that hold a part of the stream, in its order: an
    /// offset in bytes from the start of the file, and a length. `each` returns whether to go on.
    ///
    /// # Errors
    /// ARG for offsets beyond an `i64`.
    pub fn runs(&self, part: Range<u64>, mut each: impl FnMut(u64, u64) -> bool) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let tiles = self.tiles(part.end)?;
        let reach = self.tile.native().range(tiles)?;
        if reach.end.checked_add(self.disp).is_none() {
            let problem = format!(
                "the access ends at byte {} from the view's displacement {}: no file is as long",
                reach.end, self.disp
            );
            return Err(Error::argument(Class::Arg, problem));
        }
        // The displacements are 0 or more, so the sums are offsets.
        let offset = |at: i64| (self.disp + at) as u64;
        Ok(self.tile.native().runs_within(tiles, part, |at, len| each(offset(at), len))?)
    }

    /// The offset in the file of the byte at a position.
    pub fn offset(&self, position: u64) -> Result<u64> {
        let mut found = 0;
        self.runs(position..position + 1, |offset, _| {
            found = offset;
            false
        })?;
        Ok(found)
    }

    /// The first and past the last byte of the file of a part of the stream, which isn't empty.
    pub fn bounds(&self, part: Range<u64>) -> Result<Range<u64>> {
        if self.ascends {
            return Ok(self.offset(part.start)?..self.offset(part.end - 1)? + 1);
        }
        let (mut start, mut end) = (u64::MAX, 0);
        self.runs(part, |offset, len| {
            (start, end) = (start.min(offset), end.max(offset + len));
            true
        })?;
        Ok(start..end)
    }

    /// The number of bytes of the stream before an offset of the file. The layout must ascend.
    pub fn before(&self, offset: u64) -> Result<u64> {
        let program = self.tile.native();
        let Some(beyond) = offset.checked_sub(self.disp as u64) else { return Ok(0) };
        let reach = program.range(1)?;
        let (size, extent) = (self.tiles(0).map(|_| self.tile_size())?, program.extent() as u64);
        let Some(inside) = beyond.checked_sub(reach.start as u64) else { return Ok(0) };
        // No tile before this one has data at or past the offset.
        let tile = inside.checked_div(extent).unwrap_or(0);
        let target = beyond - tile * extent;
        // Within the tile: by the runs, halving the range.
        let (mut low, mut high) = (0, size);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut at = 0;
            program.runs_within(1, middle..middle + 1, |start, _| {
                at = start as u64;
                false
            })?;
            if at < target { low = middle + 1 } else { high = middle }
        }
        Ok(tile * size + low)
    }

    /// The number of etypes from the view's start to the first one that begins at or after an
    /// offset of the file.
    pub fn etypes_before(&self, offset: u64) -> Result<i64> {
        if self.ascends {
            return Ok(self.before(offset)?.div_ceil(self.etype) as i64);
        }
        // The tiles interleave. Offsets grow within a tile, and so do those of the last etypes from
        // tile to tile.
        let inside = self.tiles(0).map(|_| self.tile_size() / self.etype)?;
        let extent = self.tile.native().extent().max(1) as u64;
        let last = self.offset((inside - 1) * self.etype)?;
        let tile = offset.saturating_sub(last).div_ceil(extent).min(offset / extent + 1);
        let (mut low, mut high) = (tile * inside, (tile + 1) * inside);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.offset(middle * self.etype)? < offset {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(layout: &Layout, part: Range<u64>) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        layout
            .runs(part, |at, len| {
                found.push((at, len));
                true
            })
            .unwrap();
        found
    }

    fn layout(disp: i64, etype: &Datatype, filetype: &Datatype) -> Result<Layout> {
        Layout::new(disp, (etype, etype), (filetype, filetype), &Architecture::NATIVE)
    }

    #[test]
    fn a_stream_lies_in_tiles_from_the_displacement_on() {
        let int = Datatype::int();
        let pair = Datatype::resized(0, 24, &Datatype::contiguous(2, &int).unwrap()).unwrap();
        let layout = layout(100, &int, &pair).unwrap();
        assert_eq!(runs(&layout, 0..24), [(100, 8), (124, 8), (148, 8)]);
        assert_eq!(runs(&layout, 6..10), [(106, 2), (124, 2)]);
        assert_eq!(layout.offset(8).unwrap(), 124);
        assert_eq!(layout.bounds(4..20).unwrap(), 104..152);
        assert_eq!(layout.position(3).unwrap(), 12);
    }

    #[test]
    fn the_stream_before_an_offset_is_found_by_halving() {
        let int = Datatype::int();
        let column = Datatype::vector(3, 1, 4, &int).unwrap();
        let column = Datatype::resized(0, 64, &column).unwrap();
        let layout = layout(10, &int, &column).unwrap();
        for offset in 0..300 {
            let (mut expected, mut position) = (0, 0);
            while layout.offset(position).unwrap() < offset {
                position += 1;
                expected = position;
            }
            assert_eq!(layout.before(offset).unwrap(), expected, "{offset}");
            assert_eq!(layout.etypes_before(offset).unwrap(), expected.div_ceil(4) as i64);
        }
    }

    #[test]
    fn etypes_of_tiles_that_interleave_are_found_by_halving() {
        let int = Datatype::int();
        let column = Datatype::resized(0, 4, &Datatype::vector(3, 1, 5, &int).unwrap()).unwrap();
        let layout = layout(10, &int, &column).unwrap();
        assert!(!layout.ascends());
        for offset in 0..200 {
            let mut expected = 0;
            while layout.offset(expected * 4).unwrap() < offset {
                expected += 1;
            }
            assert_eq!(layout.etypes_before(offset).unwrap(), expected as i64, "{offset}");
        }
        // Far on, it takes no longer.
        assert!(layout.etypes_before(1 << 50).unwrap() > 1 << 49);
    }

    #[test]
    fn a_tile_with_a_byte_twice_does_not_ascend() {
        let byte = Datatype::byte();
        let twice = Datatype::hindexed(&[4196, 4096], &[0, 4000], &byte).unwrap();
        let twice = layout(0, &byte, &twice).unwrap();
        assert!(!twice.ascends() && twice.overlaps());
    }

    /// As libraries make for one variable of a file, whose bounds are those of its last member.
    #[test]
    fn tiles_that_overlap_each_other_serve_one_at_a_time() {
        let byte = Datatype::byte();
        let last = Datatype::resized(0, 8, &Datatype::contiguous(4, &byte).unwrap()).unwrap();
        let tile = Datatype::struct_(&[16, 1], &[0, 16], &[byte.clone(), last]).unwrap();
        let layout = layout(0, &byte, &tile).unwrap();
        assert!(!layout.ascends() && !layout.overlaps());
        let overlaps = |part| layout.overlaps_in(&part).unwrap();
        assert!(!overlaps(0..20) && !overlaps(20..40) && !overlaps(10..10));
        // The second tile begins at byte 8.
        assert!(overlaps(0..40) && overlaps(8..21) && !overlaps(16..28) && overlaps(16..29));
    }

    #[test]
    fn wrong_views_are_refused_with_their_values() {
        let (int, short) = (Datatype::int(), Datatype::short());
        let down = Datatype::vector(2, 1, -2, &int).unwrap();
        let before = Datatype::hindexed(&[1, 1], &[-4, 0], &int).unwrap();
        let backwards = Datatype::hindexed(&[1, 1], &[8, 0], &int).unwrap();
        let odd = Datatype::contiguous(3, &short).unwrap();
        for (disp, filetype, class, words) in [
            (-1, &int, Class::Arg, "-1"),
            (0, &odd, Class::Type, "6 bytes"),
            (0, &before, Class::Io, "displacement -4"),
            (0, &down, Class::Io, "displacement -8"),
            (0, &backwards, Class::Io, "displacement 0 after some at 8"),
        ] {
            let error = layout(disp, &int, filetype).err().unwrap();
            assert_eq!(error.class(), class, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn extents_follow_the_representation_of_the_file() {
        let long = Datatype::long();
        let every = Datatype::vector(2, 1, 2, &long).unwrap();
        let layout =
            Layout::new(0, (&long, &long), (&every, &every), &Architecture::EXTERNAL32).unwrap();
        assert_eq!(layout.etype_size(), 4);
        assert_eq!(runs(&layout, 0..8), [(0, 4), (8, 4)]);
    }
}
