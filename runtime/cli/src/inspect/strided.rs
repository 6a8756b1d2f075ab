//! StridedIndex of a type by their places in memory, and the arithmetic of copies at one stride.

use std::ops::Range;

/// A position in memory, relative to the buffer's address. Positions of items fit 64 bits, sums on the way to them may not.
pub type Address = i128;

/// The work that may still be done. Searches that run out of it fail.
pub struct Effort(u64);

impl Effort {
    /// What one picture may cost: well below a second.
    pub fn picture() -> Effort {
        Effort(4_000_000)
    }

    /// Spends some of it.
    pub fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps as u64)?;
        Some(())
    }
}

/// StridedIndex by their places in memory.
#[derive(PartialEq)]
pub struct StridedIndex {
    /// By the starts of their reaches.
    pub sorted: Vec<Strided>,
    /// The greatest end of a reach, of each part and all before it.
    ends: Vec<Address>,
}

/// Blocks of children, at one stride.
#[derive(PartialEq)]
pub struct Strided {
    /// The child's node.
    pub child: usize,
    /// Where the first block starts.
    pub displacement: Address,
    /// Children of a block.
    pub length: u64,
    /// From one of them to the next.
    pub extent: i128,
    /// Blocks.
    pub count: u64,
    /// From one of them to the next.
    pub stride: i128,
    /// The place of its first item in the node's.
    pub index: u128,
    /// The data of a block at 0.
    pub block: Range<Address>,
    /// The data of all blocks.
    pub reach: Range<Address>,
}

impl StridedIndex {
    /// Sorts them.
    pub fn new(mut sorted: Vec<Strided>) -> StridedIndex {
        sorted.sort_by_key(|part| part.reach.start);
        let mut end = Address::MIN;
        let ends = sorted.iter().map(|part| {
            end = end.max(part.reach.end);
            end
        });
        StridedIndex { ends: ends.collect(), sorted }
    }

    /// All of their data; empty where there is none.
    pub fn reach(&self) -> Range<Address> {
        match (self.sorted.first(), self.ends.last()) {
            (Some(first), Some(&end)) => first.reach.start..end,
            _ => 0..0,
        }
    }

    /// Those of which the reach meets a window.
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

    /// Where the next part starts.
    pub fn first_after(&self, at: Address) -> Option<Address> {
        let next = self.sorted.partition_point(|part| part.reach.start <= at);
        self.sorted.get(next).map(|part| part.reach.start)
    }

    /// The part whose reach holds `at`, if it is one alone, and how far about `at` no other reaches.
    #[allow(clippy::type_complexity)] // a failure of effort, an answer that there is none, an answer
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
    /// Blocks of `length` children one extent apart, `count` of them at one stride. Where its data lies is found by
    /// [`Strided::placed`].
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

    /// The part with its data's places, if it has data: that of a child lies at `reach`.
    pub fn placed(mut self, index: u128, reach: &Range<Address>) -> Option<Strided> {
        self.index = index;
        self.block = stretched(reach, self.length, self.extent);
        let all = stretched(&self.block, self.count, self.stride);
        self.reach = all.start + self.displacement..all.end + self.displacement;
        (!reach.is_empty() && self.length > 0 && self.count > 0).then_some(self)
    }

    /// Where a block starts.
    pub fn block_at(&self, block: u64) -> Address {
        self.displacement + i128::from(block) * self.stride
    }

    /// The blocks whose reach meets a window.
    pub fn blocks_in(&self, window: &Range<Address>) -> Range<u64> {
        let window = window.start - self.displacement..window.end - self.displacement;
        hits(self.count, self.stride, &self.block, &window)
    }

    /// The start of the first block's data behind `at`.
    pub fn next_block(&self, at: Address) -> Option<Address> {
        next_start(self.count, self.stride, &self.block, at - self.displacement)
            .map(|next| self.displacement + next)
    }
}

/// Which of `count` copies of a reach, `step` apart, meet a window.
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

/// The least start behind `at` of `count` copies of a reach, `step` apart.
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

/// A reach and its copies.
fn stretched(reach: &Range<Address>, count: u64, step: i128) -> Range<Address> {
    let last = i128::from(count.max(1) - 1) * step;
    reach.start + last.min(0)..reach.end + last.max(0)
}
