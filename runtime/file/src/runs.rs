//! The runs of ranks in a piece of the file, as lists that ranks send, and as the bytes that they
//! cover together.

use std::ops::Range;

use longshore::Class;

use crate::error::{Error, Result};
use crate::transfer::Access;

/// Runs of one length, at equal distances. Numbers are bytes from the start of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    start: u32,
    len: u32,
    count: u32,
    stride: u32,
}

/// The runs of one rank in a piece of the file, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Vec<Group>);

impl Runs {
    /// The runs of a part of an access's stream, in the piece that begins at byte `from`.
    pub fn of(access: &Access, part: Range<u64>, from: u64) -> Result<Runs> {
        let mut runs = Runs::default();
        access.view.layout.runs(part, |offset, len| {
            runs.add((offset - from) as u32, len as u32);
            true
        })?;
        Ok(runs)
    }

    fn add(&mut self, start: u32, len: u32) {
        if let Some(last) = self.0.last_mut().filter(|last| last.len == len) {
            let distance = start - last.start;
            if last.count == 1 {
                (last.count, last.stride) = (2, distance);
                return;
            }
            if u64::from(distance) == u64::from(last.stride) * u64::from(last.count) {
                last.count += 1;
                return;
            }
        }
        self.0.push(Group { start, len, count: 1, stride: 0 });
    }

    /// Each run: its first byte and its length.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().flat_map(|group| {
            let at = |index| group.start as usize + group.stride as usize * index as usize;
            (0..group.count).map(move |index| (at(index), group.len as usize))
        })
    }

    /// Appends the runs to a message.
    pub fn put(&self, message: &mut Vec<u8>) {
        message.extend_from_slice(&(self.0.len() as u64).to_le_bytes());
        for Group { start, len, count, stride } in &self.0 {
            for number in [start, len, count, stride] {
                message.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    /// The runs at the start of a message, and what follows them.
    ///
    /// # Errors
    /// INTERN for runs outside of a piece of `piece` bytes.
    pub fn take(message: &[u8], piece: u64) -> Result<(Runs, &[u8])> {
        let garbled = || Error::argument(Class::Intern, "a rank has sent garbled runs");
        let (head, rest) = message.split_first_chunk::<8>().ok_or_else(garbled)?;
        let bytes = usize::try_from(u64::from_le_bytes(*head)).ok().and_then(|n| n.checked_mul(16));
        let (groups, rest) = bytes.and_then(|n| rest.split_at_checked(n)).ok_or_else(garbled)?;
        let group = |bytes: &[u8]| {
            let at = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            let [start, len, count, stride] = [0, 4, 8, 12].map(|it| u32::from_le_bytes(at(it)));
            Group { start, len, count, stride }
        };
        let inside = |group: &Group| {
            let last = u64::from(group.stride) * u64::from(group.count.saturating_sub(1));
            u64::from(group.start) + last + u64::from(group.len) <= piece
        };
        let runs = Runs(groups.chunks_exact(16).map(group).collect());
        if runs.0.iter().all(inside) { Ok((runs, rest)) } else { Err(garbled()) }
    }
}

/// The bytes of a piece that runs cover.
pub(crate) struct Coverage {
    /// A bit for each byte.
    words: Vec<u64>,
}

impl Coverage {
    /// No byte of a piece of `size` bytes.
    pub fn new(size: u64) -> Coverage {
        Coverage { words: vec![0; size.div_ceil(64) as usize] }
    }

    pub fn add(&mut self, runs: &Runs) {
        runs.iter().for_each(|(start, len)| self.add_run(start, len));
    }

    fn add_run(&mut self, start: usize, len: usize) {
        if len == 0 {
            return;
        }
        let (first, last) = (start / 64, (start + len - 1) / 64);
        let (low, high) = (u64::MAX << (start % 64), u64::MAX >> (63 - (start + len - 1) % 64));
        if first == last {
            self.words[first] |= low & high;
            return;
        }
        self.words[first] |= low;
        self.words[first + 1..last].fill(u64::MAX);
        self.words[last] |= high;
    }

    /// The covered bytes as ranges. Gaps of at most `gap` bytes are included.
    pub fn ranges(&self, gap: u64) -> Vec<Range<u64>> {
        let mut all: Vec<Range<u64>> = Vec::new();
        let mut push = |start: u64, end: u64| match all.last_mut() {
            Some(last) if start <= last.end + gap => last.end = end,
            _ => all.push(start..end),
        };
        for (index, &word) in self.words.iter().enumerate() {
            let at = index as u64 * 64;
            if word == u64::MAX {
                push(at, at + 64);
                continue;
            }
            let mut left = word;
            while left != 0 {
                let start = left.trailing_zeros();
                let len = (left >> start).trailing_ones();
                push(at + u64::from(start), at + u64::from(start + len));
                left &= !(((1u64 << len) - 1) << start);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(all: &[(u32, u32)]) -> Runs {
        let mut runs = Runs::default();
        all.iter().for_each(|(start, len)| runs.add(*start, *len));
        runs
    }

    #[test]
    fn equal_runs_at_equal_distances_are_one_group() {
        let all: Vec<(u32, u32)> = (0..1000).map(|at| (7 + 24 * at, 8)).collect();
        let strided = runs(&all);
        assert_eq!(strided.0.len(), 1);
        let back: Vec<(u32, u32)> =
            strided.iter().map(|(start, len)| (start as u32, len as u32)).collect();
        assert_eq!(back, all);
        let mixed = runs(&[(0, 4), (8, 4), (20, 4), (30, 2), (40, 2)]);
        assert_eq!(mixed.0.len(), 3);
        assert_eq!(mixed.iter().map(|run| run.0).collect::<Vec<_>>(), [0, 8, 20, 30, 40]);
    }

    #[test]
    fn runs_survive_their_encoding_and_garbled_ones_are_refused() {
        let mut message = Vec::new();
        let sent = runs(&[(0, 4), (8, 4), (96, 8)]);
        sent.put(&mut message);
        message.push(9);
        assert_eq!(Runs::take(&message, 104).unwrap(), (sent, &[9][..]));
        assert!(Runs::take(&message, 103).is_err(), "past the piece");
        assert!(Runs::take(&message[..30], 104).is_err(), "fewer than it says");
        assert!(Runs::take(&message[..7], 104).is_err());
    }

    #[test]
    fn covered_bytes_are_as_few_ranges_as_possible() {
        let size = 1000u32;
        for seed in 0..200u32 {
            let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
            let mut next = |below: u32| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) % below
            };
            let (mut coverage, mut model) = (Coverage::new(size.into()), vec![false; 1000]);
            for _ in 0..next(12) {
                let (start, len) = (next(900), next(100));
                coverage.add_run(start as usize, len as usize);
                model[start as usize..(start + len) as usize].fill(true);
            }
            let ranges = coverage.ranges(0);
            let mut again = vec![false; 1000];
            ranges.iter().for_each(|run| again[run.start as usize..run.end as usize].fill(true));
            assert_eq!(again, model, "{seed}");
            assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{seed}");
            let wide = coverage.ranges(20);
            assert!(wide.windows(2).all(|pair| pair[0].end + 20 < pair[1].start), "{seed}");
        }
    }
}
