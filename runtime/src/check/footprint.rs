//! The bytes of a window that an access touches, and the question whether two accesses have a byte
//! in common.
//!
//! A footprint consists of the strided runs (*stretches*) of its form's program, so its size
//! doesn't depend on the number of bytes. Two stretches meet if a sum of strides, each taken a
//! bounded number of times, falls into an interval:
//!
//! 1. Dimensions of equal stride on both sides are combined: only the difference of their steps
//!    counts.
//! 2. From the longest stride to the shortest, only numbers of steps are tried from which the
//!    shorter strides can still reach the interval. None are tried if the interval contains no
//!    multiple of the strides' common divisor.
//!
//! Each level has fewer strides left than the one above. The steps tried in all levels together are
//! bounded by [`TRIES`]; beyond it, the question remains open.

use std::ops::Range;
use std::sync::Arc;

use shipable::{Program, Stretch};

/// The number of stretches that are kept of an access. The others aren't compared.
pub(crate) const STRETCHES: usize = 4096;

/// The number of steps after which the comparison of two accesses is given up.
const TRIES: u32 = 1 << 18;

/// The bytes that an access touches, relative to its displacement 0.
#[derive(Debug)]
pub(crate) struct StretchSet {
    /// The stretches, ordered by start.
    stretches: Box<[Stretch]>,
    /// For each stretch, the greatest end of it and those before it.
    ends: Box<[i64]>,
    /// Whether no stretch was left out.
    whole: bool,
}

/// The bytes that an access touches, at their position in a window.
#[derive(Clone, Debug)]
pub(crate) struct Footprint {
    shape: Arc<StretchSet>,
    base: i64,
}

/// The result of the comparison of two footprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    No,
    /// Both touch these bytes, and perhaps others.
    At(Range<i64>),
    /// The comparison was given up.
    Open,
}

impl StretchSet {
    pub(crate) fn new(program: &Program, count: u64) -> StretchSet {
        let (stretches, whole) = program.stretches(count, STRETCHES);
        StretchSet::of(stretches, whole)
    }

    fn of(mut stretches: Vec<Stretch>, whole: bool) -> StretchSet {
        stretches.sort_by_key(|stretch| stretch.start);
        let mut last = i64::MIN;
        let ends = stretches.iter().map(|stretch| {
            last = last.max(stretch.end());
            last
        });
        let ends = ends.collect();
        StretchSet { stretches: stretches.into(), ends, whole }
    }
}

impl Footprint {
    pub(crate) fn new(shape: Arc<StretchSet>, base: i64) -> Footprint {
        Footprint { shape, base }
    }

    /// The footprint of one run of bytes.
    pub(crate) fn run(bytes: Range<i64>) -> Footprint {
        let len = bytes.end.abs_diff(bytes.start);
        let run = Stretch { start: 0, len, dims: Vec::new() };
        Footprint { shape: Arc::new(StretchSet::of(vec![run], true)), base: bytes.start }
    }

    /// The footprint of `count` runs of `len` bytes each, `stride` bytes apart.
    pub(crate) fn strided(start: i64, len: u64, count: u64, stride: i64) -> Footprint {
        let dims = if count > 1 { vec![(count, stride)] } else { Vec::new() };
        let runs = Stretch { start: 0, len, dims };
        Footprint { shape: Arc::new(StretchSet::of(vec![runs], true)), base: start }
    }

    /// The range from the first byte to the last; `None` if the footprint is empty.
    pub(crate) fn bounds(&self) -> Option<Range<i64>> {
        let (first, end) = (self.shape.stretches.first()?, self.shape.ends.last()?);
        Some(first.start.saturating_add(self.base)..end.saturating_add(self.base))
    }

    /// Whether the footprint contains all bytes of the access.
    pub(crate) fn is_whole(&self) -> bool {
        self.shape.whole
    }

    /// The bytes, if they are one contiguous run.
    pub(crate) fn as_run(&self) -> Option<Range<i64>> {
        match &*self.shape.stretches {
            [run] if run.dims.is_empty() => self.bounds(),
            _ => None,
        }
    }

    /// Whether both footprints describe the same bytes in the same order.
    pub(crate) fn is(&self, other: &Footprint) -> bool {
        self.base == other.base
            && (Arc::ptr_eq(&self.shape, &other.shape)
                || self.shape.stretches == other.shape.stretches)
    }

    /// Compares two footprints.
    pub(crate) fn overlap(&self, other: &Footprint) -> Overlap {
        let apart = i128::from(self.base) - i128::from(other.base);
        let (ours, theirs) = (&self.shape, &other.shape);
        let (mut tries, mut open) = (TRIES, false);
        for one in &ours.stretches {
            let reach = i128::from(one.start) + apart..i128::from(one.end()) + apart;
            // The ends are monotonic, so a binary search finds the first stretch that can overlap.
            let first = theirs.ends.partition_point(|end| i128::from(*end) <= reach.start);
            let until = theirs.stretches.partition_point(|it| i128::from(it.start) < reach.end);
            for two in theirs.stretches.get(first..until).unwrap_or_default() {
                let Some(left) = tries.checked_sub(1) else { return Overlap::Open };
                tries = left;
                match meet(one, reach.start, two, &mut tries) {
                    Overlap::At(bytes) => {
                        let at = |byte: i64| byte.saturating_add(other.base);
                        return Overlap::At(at(bytes.start)..at(bytes.end));
                    }
                    Overlap::Open => open = true,
                    Overlap::No => {}
                }
            }
        }
        if open { Overlap::Open } else { Overlap::No }
    }
}

/// A stride that is common to both sides, and the range of the difference between their steps.
#[derive(Clone, Copy, Debug)]
struct Term {
    stride: i128,
    least: i128,
    most: i128,
    /// The greatest common divisor of this stride and all shorter ones.
    divisor: i128,
}

/// Compares two stretches. The first starts at `start`, in the displacements of the second.
fn meet(one: &Stretch, start: i128, two: &Stretch, tries: &mut u32) -> Overlap {
    let mut terms = terms(&one.dims, &two.dims);
    terms.sort_by_key(|term| -term.stride);
    let mut divisor = 0;
    for term in terms.iter_mut().rev() {
        divisor = gcd(divisor, term.stride);
        term.divisor = divisor;
    }
    // The stretches meet if the first starts within this interval from the second.
    let apart = start - i128::from(two.start);
    let wanted = 1 - i128::from(one.len) - apart..i128::from(two.len) - apart;
    let mut steps = vec![0; terms.len()];
    match solve(&terms, wanted, &mut steps, tries) {
        None => Overlap::Open,
        Some(false) => Overlap::No,
        Some(true) => {
            let (first, second) = places(&terms, &steps, start, two.start.into());
            let end = (first + i128::from(one.len)).min(second + i128::from(two.len));
            let clamp = |byte: i128| byte.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            Overlap::At(clamp(first.max(second))..clamp(end))
        }
    }
}

/// The terms of both sides. Steps of equal strides are combined, since the sum of two intervals is
/// an interval.
fn terms(ours: &[(u64, i64)], theirs: &[(u64, i64)]) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut add = |stride: i64, least: i128, most: i128| {
        let stride = i128::from(stride);
        match terms.iter_mut().find(|term| term.stride == stride) {
            Some(term) => {
                term.least += least;
                term.most += most;
            }
            None => terms.push(Term { stride, least, most, divisor: 0 }),
        }
    };
    ours.iter().for_each(|&(count, stride)| add(stride, 0, i128::from(count) - 1));
    theirs.iter().for_each(|&(count, stride)| add(stride, 1 - i128::from(count), 0));
    terms
}

/// Finds steps whose sum lies in `wanted`. Returns `None` if the tries run out.
fn solve(terms: &[Term], wanted: Range<i128>, steps: &mut [i128], tries: &mut u32) -> Option<bool> {
    let Some((term, rest)) = terms.split_first() else { return Some(wanted.contains(&0)) };
    let multiple = -(-wanted.start).div_euclid(term.divisor) * term.divisor;
    if multiple >= wanted.end {
        return Some(false);
    }
    let least: i128 = rest.iter().map(|term| term.stride * term.least).sum();
    let most: i128 = rest.iter().map(|term| term.stride * term.most).sum();
    // stride * step + (the sum of the shorter strides) must lie in the interval.
    let first = -(most - wanted.start).div_euclid(term.stride);
    let last = (wanted.end - 1 - least).div_euclid(term.stride);
    for step in first.max(term.least)..=last.min(term.most) {
        *tries = tries.checked_sub(1)?;
        let by = term.stride * step;
        steps[0] = step;
        if solve(rest, wanted.start - by..wanted.end - by, &mut steps[1..], tries)? {
            return Some(true);
        }
    }
    Some(false)
}

/// The starts of two runs whose steps differ by `steps`.
fn places(terms: &[Term], steps: &[i128], first: i128, second: i128) -> (i128, i128) {
    let (mut first, mut second) = (first, second);
    for (term, &step) in terms.iter().zip(steps) {
        // The fewest possible steps: positive ones are the first side's, negative the second's.
        first += term.stride * step.max(0);
        second += term.stride * (-step).max(0);
    }
    (first, second)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use shipable::oracle::{Random, cases};

    use super::*;

    /// All bytes, one by one.
    fn bytes(footprint: &Footprint) -> Vec<i64> {
        let mut all = Vec::new();
        for stretch in &footprint.shape.stretches {
            let mut starts = vec![stretch.start + footprint.base];
            for &(count, stride) in &stretch.dims {
                let steps = |&start: &i64| (0..count as i64).map(move |step| start + step * stride);
                starts = starts.iter().flat_map(steps).collect();
            }
            all.extend(starts.iter().flat_map(|&start| start..start + stretch.len as i64));
        }
        all
    }

    fn stretch(random: &mut Random) -> Stretch {
        let dims = (0..random.below(4)).map(|_| (2 + random.below(4), 1 + random.below(30) as i64));
        let dims = dims.collect();
        Stretch { start: random.below(100) as i64 - 50, len: 1 + random.below(6), dims }
    }

    fn footprint(random: &mut Random) -> Footprint {
        let stretches = (0..1 + random.below(3)).map(|_| stretch(random)).collect();
        let base = random.below(200) as i64;
        Footprint::new(Arc::new(StretchSet::of(stretches, true)), base)
    }

    #[test]
    fn footprints_meet_where_their_bytes_do() {
        let mut random = Random::new(7, Default::default());
        let mut met = 0;
        let cases = cases(20_000);
        for _ in 0..cases {
            let (one, two) = (footprint(&mut random), footprint(&mut random));
            let (first, second) = (bytes(&one), bytes(&two));
            let common = first.iter().any(|byte| second.contains(byte));
            match one.overlap(&two) {
                Overlap::No => assert!(!common, "{one:?} {two:?}"),
                Overlap::At(range) => {
                    met += 1;
                    assert!(!range.is_empty());
                    for byte in range.clone() {
                        let both = first.contains(&byte) && second.contains(&byte);
                        assert!(both, "{byte} of {range:?}: {one:?} {two:?}");
                    }
                }
                Overlap::Open => panic!("{one:?} {two:?}"),
            }
            let bounds = one.bounds().unwrap();
            assert_eq!(bounds.start, *first.iter().min().unwrap());
            assert_eq!(bounds.end, *first.iter().max().unwrap() + 1);
        }
        assert!(met >= cases / 50, "{met} of {cases}");
    }

    #[test]
    fn a_billion_elements_are_compared_at_once() {
        let column = |base, count| {
            let column = Stretch { start: 0, len: 8, dims: vec![(1_000_000_000, 80)] };
            let rows = Stretch { dims: vec![(count, 1 << 40), (1_000_000_000, 80)], ..column };
            Footprint::new(Arc::new(StretchSet::of(vec![rows], true)), base)
        };
        assert_eq!(column(0, 3).overlap(&column(8, 3)), Overlap::No);
        assert_eq!(column(8, 3).overlap(&column(0, 3)), Overlap::No);
        assert_eq!(column(4, 3).overlap(&column(0, 3)), Overlap::At(4..8));
        let (third, apart) = (Footprint::run(160..161), Footprint::run(168..240));
        assert_eq!(column(0, 1).overlap(&third), Overlap::At(160..161));
        assert_eq!(apart.overlap(&column(0, 1)), Overlap::No);
        // No multiple of 24 and none of 16 are 4 apart.
        let every = |base, stride| {
            let all = Stretch { start: 0, len: 4, dims: vec![(1 << 40, stride)] };
            Footprint::new(Arc::new(StretchSet::of(vec![all], true)), base)
        };
        assert_eq!(every(0, 24).overlap(&every(4, 16)), Overlap::No);
        assert_eq!(every(0, 24).overlap(&every(8, 16)), Overlap::At(24..28));
    }
}
