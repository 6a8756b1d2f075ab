//! Strided copies of a datatype's parts in memory, searched by address.

use std::ops::Range;

/// A position in memory, relative to the buffer's address. Positions of items fit 64 bits, but
/// intermediate sums may not.
pub type Address = i128;

/// The number of steps that searches may still take. A search that runs out of steps gives up.
pub struct Effort(u64);

impl Effort {
    /// The steps for one picture, which take well below a second.
    pub fn picture() -> Effort {
        Effort(4_000_000)
    }

    /// Takes `steps` steps, or returns `None` if fewer are left.
    pub fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps as u64)?;
        Some(())
    }
}

/// The parts of a node, sorted by address.
///
/// The *reach* of a part, a block or a node is the range from its first byte of data to the end of
/// its last one.
#[derive(PartialEq)]
pub struct StridedIndex {
    /// The parts, sorted by the starts of their reaches.
    pub sorted: Vec<Strided>,
    /// For each part, the greatest end of the reaches of it and of all parts before it.
    ends: Vec<Address>,
}

/// A part of a node: equally spaced blocks of copies of one child.
#[derive(PartialEq)]
pub struct Strided {
    /// The index of the child node.
    pub child: usize,
    /// The start of the first block.
    pub displacement: Address,
    /// The number of copies of the child in a block.
    pub length: u64,
    /// The distance between the copies of a block: the child's extent.
    pub extent: i128,
    /// The number of blocks.
    pub count: u64,
    /// The distance between blocks.
    pub stride: i128,
    /// The index of the part's first item among the items of its node.
    pub index: u128,
    /// The reach of a block that starts at address 0.
    pub block: Range<Address>,
    /// The reach of all blocks.
    pub reach: Range<Address>,
}

impl StridedIndex {
    /// Sorts the parts.
    pub fn new(mut sorted: Vec<Strided>) -> StridedIndex {
        sorted.sort_by_key(|part| part.reach.start);
        let mut end = Address::MIN;
        let ends = sorted.iter().map(|part| {
            end = end.max(part.reach.end);
            end
        });
        StridedIndex { ends: ends.collect(), sorted }
    }

    /// The reach of all parts; empty if they have no data.
    pub fn reach(&self) -> Range<Address> {
        match (self.sorted.first(), self.ends.last()) {
            (Some(first), Some(&end)) => first.reach.start..end,
            _ => 0..0,
        }
    }

    /// The parts whose reach overlaps a window; `None` if the search runs out of effort.
    pub fn meeting(&self, window: &Range<Address>, effort: &mut Effort) -> Option<Vec<&Strided>> {
        let below = self.sorted.partition_point(|part| part.reach.start < window.end);
        let mut met = Vec::new();
        for at in (0..below).rev() {
            if self.ends[at] <= window.start {
                break;
            }
            effort.spend(1)?;
            if self.sorted[at].reach.end > window.start {
                met.push(&self.sorted[at]);
            }
        }
        Some(met)
    }

    /// The first start of a part's reach after `at`.
    pub fn first_after(&self, at: Address) -> Option<Address> {
        let next = self.sorted.partition_point(|part| part.reach.start <= at);
        self.sorted.get(next).map(|part| part.reach.start)
    }

    /// The only part whose reach contains `at`, with the range around `at` that no other part
    /// reaches.
    ///
    /// The outer `None` means that the search ran out of effort. The inner `None` means that no
    /// part, or more than one, reaches `at`.
    #[allow(clippy::type_complexity)]
    pub fn only(
        &self,
        at: Address,
        effort: &mut Effort,
    ) -> Option<Option<(&Strided, Range<Address>)>> {
        let met = self.meeting(&(at..at + 1), effort)?;
        let [part] = met[..] else { return Some(None) };
        let below = self.sorted.partition_point(|other| other.reach.start <= at);
        let own = self.sorted.partition_point(|other| other.reach.start < part.reach.start);
        let mut low = if own > 0 { self.ends[own - 1] } else { Address::MIN };
        for other in &self.sorted[own..below] {
            effort.spend(1)?;
            if !std::ptr::eq(other, part) {
                low = low.max(other.reach.end);
            }
        }
        let high = self.sorted.get(below).map_or(Address::MAX, |next| next.reach.start);
        Some(Some((part, low..high)))
    }
}

impl Strided {
    /// A part of `count` blocks at one stride, each of `length` copies of the child at its extent.
    /// The reaches are set by [`Strided::placed`].
    pub fn new(
        child: usize,
        displacement: i64,
        (length, extent): (u64, i64),
        (count, stride): (u64, i64),
    ) -> Strided {
        let (displacement, extent, stride) = (displacement.into(), extent.into(), stride.into());
        Strided {
            child,
            displacement,
            length,
            extent,
            count,
            stride,
            index: 0,
            block: 0..0,
            reach: 0..0,
        }
    }

    /// Sets the part's index and reaches, given the `reach` of the child. Returns `None` if the
    /// part has no data.
    pub fn placed(mut self, index: u128, reach: &Range<Address>) -> Option<Strided> {
        self.index = index;
        self.block = stretched(reach, self.length, self.extent);
        let all = stretched(&self.block, self.count, self.stride);
        self.reach = all.start + self.displacement..all.end + self.displacement;
        (!reach.is_empty() && self.length > 0 && self.count > 0).then_some(self)
    }

    /// The start of a block.
    pub fn block_at(&self, block: u64) -> Address {
        self.displacement + i128::from(block) * self.stride
    }

    /// The blocks whose reach overlaps a window.
    pub fn blocks_in(&self, window: &Range<Address>) -> Range<u64> {
        let window = window.start - self.displacement..window.end - self.displacement;
        hits(self.count, self.stride, &self.block, &window)
    }

    /// The first start of a block's reach after `at`.
    pub fn next_block(&self, at: Address) -> Option<Address> {
        next_start(self.count, self.stride, &self.block, at - self.displacement)
            .map(|next| self.displacement + next)
    }
}

/// The copies of a reach that overlap a window, out of `count` copies at distance `step`.
pub fn hits(count: u64, step: i128, reach: &Range<Address>, window: &Range<Address>) -> Range<u64> {
    let (first, end) = match step {
        0 if reach.start < window.end && reach.end > window.start => (0, count.into()),
        0 => (0, 0),
        1.. => (
            (window.start - reach.end).div_euclid(step) + 1,
            -(reach.start - window.end).div_euclid(step),
        ),
        _ => (
            (reach.start - window.end).div_euclid(-step) + 1,
            -(window.start - reach.end).div_euclid(-step),
        ),
    };
    let bounded = |n: i128| n.clamp(0, count.into()) as u64;
    bounded(first)..bounded(end).max(bounded(first))
}

/// The first start after `at` of a copy of a reach, out of `count` copies at distance `step`.
pub fn next_start(count: u64, step: i128, reach: &Range<Address>, at: Address) -> Option<Address> {
    let last = i128::from(count.checked_sub(1)?) * step;
    let (first, last) = (reach.start + last.min(0), reach.start + last.max(0));
    match i128::try_from(step.unsigned_abs()).ok()? {
        _ if at < first => Some(first),
        0 => None,
        step => {
            Some(first + ((at - first).div_euclid(step) + 1) * step).filter(|next| *next <= last)
        }
    }
}

/// The reach of `count` copies of a reach at distance `step`.
fn stretched(reach: &Range<Address>, count: u64, step: i128) -> Range<Address> {
    let last = i128::from(count.max(1) - 1) * step;
    reach.start + last.min(0)..reach.end + last.max(0)
}
