//! The blocks of an array node.
//!
//! Blocks that continue one another at one stride are one [`Vector`]. Where hardly any do, the node
//! shares the lists of the constructor that it was compiled from, and joins them when they are
//! read. So the form of a million irregular blocks takes no memory for them.

use std::hash::{Hash, Hasher};
use std::iter::FusedIterator;

use smallvec::SmallVec;

use crate::datatype::{Datatype, Node as Constructor};
use crate::error::{Error, Result};

/// The blocks of a vector type at a displacement: `count` blocks of `length` children each.
///
/// The first block lies at `displacement`, and each next block `stride` after the one before. The
/// children of a block lie one extent apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vector {
    /// The displacement of the first block.
    pub displacement: i64,
    /// The number of children in a block.
    pub length: u64,
    /// The number of blocks.
    pub count: u64,
    /// The distance from one block to the next. It must be 0 if there is one block.
    pub stride: i64,
}

impl Vector {
    fn block(displacement: i64, length: u64) -> Vector {
        Vector { displacement, length, count: 1, stride: 0 }
    }

    /// Appends a block if it continues this vector. Returns whether it does.
    fn join(&mut self, displacement: i64, length: u64) -> bool {
        if self.length != length {
            return false;
        }
        let step = displacement.checked_sub(self.displacement);
        let expected = self.stride.checked_mul(i64::try_from(self.count).unwrap_or(i64::MAX));
        match step {
            Some(step) if self.count == 1 => {
                (self.count, self.stride) = (2, step);
                true
            }
            Some(_) if step == expected => {
                self.count += 1;
                true
            }
            _ => false,
        }
    }
}

/// The vectors of an array node, in the order of the type map.
///
/// ```
/// use shipable::form::Node;
/// use shipable::{Architecture, Datatype, Form};
/// let blocks = Datatype::indexed(&[2, 2, 2, 1], &[0, 10, 20, 25], &Datatype::int())?;
/// let form = Form::compile(&blocks, &Architecture::X86_64)?;
/// let [_, Node::Array { vectors, .. }] = form.nodes() else { panic!("an array of ints") };
/// let vectors: Vec<_> = vectors.iter().map(|it| (it.displacement, it.count)).collect();
/// assert_eq!(vectors, [(0, 3), (25, 1)]);
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Vectors(List);

#[derive(Clone, Debug)]
enum List {
    One(Vector),
    Many(Box<[Vector]>),
    Shared(Box<Blocks>),
}

/// The two ways in which vectors are stored.
pub(crate) enum Stored<'a> {
    Vectors(&'a [Vector]),
    Blocks(&'a Blocks),
}

impl Vectors {
    /// One vector; none if it has no items.
    #[inline]
    pub(super) fn one(vector: Vector) -> Vectors {
        match vector.length > 0 && vector.count > 0 {
            true => Vectors(List::One(vector)),
            false => Vectors(List::Many(Box::default())),
        }
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        match &self.0 {
            List::One(_) => 1,
            List::Many(vectors) => vectors.len(),
            List::Shared(blocks) => blocks.vectors,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vectors.
    pub fn iter(&self) -> Iter<'_> {
        Iter(match self.stored() {
            Stored::Vectors(vectors) => Reading::Vectors(vectors.iter()),
            Stored::Blocks(blocks) => {
                Reading::Blocks { blocks: blocks.iter(), next: None, left: blocks.vectors }
            }
        })
    }

    #[inline]
    pub(crate) fn stored(&self) -> Stored<'_> {
        match &self.0 {
            List::One(vector) => Stored::Vectors(std::slice::from_ref(vector)),
            List::Many(vectors) => Stored::Vectors(vectors),
            List::Shared(blocks) => Stored::Blocks(blocks),
        }
    }

    /// The number of children in all vectors.
    pub(super) fn copies(&self) -> i128 {
        match self.stored() {
            Stored::Vectors(vectors) => copies(vectors),
            Stored::Blocks(blocks) => blocks.copies.into(),
        }
    }
}

impl From<Vec<Vector>> for Vectors {
    fn from(vectors: Vec<Vector>) -> Vectors {
        match vectors[..] {
            [vector] => Vectors(List::One(vector)),
            _ => Vectors(List::Many(vectors.into())),
        }
    }
}

impl PartialEq for Vectors {
    fn eq(&self, other: &Vectors) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Vectors {}

impl Hash for Vectors {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|vector| vector.hash(state));
    }
}

impl<'a> IntoIterator for &'a Vectors {
    type Item = Vector;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The iterator over [`Vectors`].
#[derive(Clone, Debug)]
pub struct Iter<'a>(Reading<'a>);

#[derive(Clone, Debug)]
enum Reading<'a> {
    Vectors(std::slice::Iter<'a, Vector>),
    Blocks {
        blocks: BlockIter<'a>,
        /// The vector that the next block may continue.
        next: Option<Vector>,
        /// The vectors that weren't returned yet.
        left: usize,
    },
}

impl Iterator for Iter<'_> {
    type Item = Vector;

    fn next(&mut self) -> Option<Vector> {
        match &mut self.0 {
            Reading::Vectors(vectors) => vectors.next().copied(),
            Reading::Blocks { blocks, next, left } => {
                for (displacement, length) in blocks {
                    let block = Vector::block(displacement, length);
                    if !next.as_mut().is_some_and(|next| next.join(displacement, length)) {
                        if let Some(vector) = next.replace(block) {
                            *left -= 1;
                            return Some(vector);
                        }
                    }
                }
                *left -= usize::from(next.is_some());
                next.take()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Reading::Vectors(vectors) => vectors.len(),
            Reading::Blocks { left, .. } => *left,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

/// Irregular blocks, which stay in the lists of their constructor.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// A type whose constructor is INDEXED, HINDEXED, INDEXED_BLOCK or HINDEXED_BLOCK.
    of: Datatype,
    /// The factor from the constructor's displacements to the node's.
    unit: i64,
    /// The number of vectors that the blocks make.
    vectors: usize,
    /// The number of children.
    copies: u64,
    /// The displacements of the first and of the last child, in the units of the node.
    reach: [i64; 2],
    /// The greatest common divisor of the blocks' lengths, if the children of each block adjoin, no
    /// block adjoins the one before, and the divisor is obvious.
    divisor: Option<u64>,
}

/// The lengths of blocks.
#[derive(Clone, Copy, Debug)]
enum Lengths<'a> {
    All(i64),
    Each(&'a [i64]),
}

impl Blocks {
    /// Blocks are shared if they make more vectors than this part of their number. Otherwise a list
    /// of vectors is smaller.
    pub(crate) const JOINED: usize = 4;

    /// The fewest blocks that are shared.
    const FEW: usize = 8;

    /// The blocks of a constructor with lists of blocks. `None` if they are few or regular, or if a
    /// block is empty or a number large.
    ///
    /// Displacements are multiplied by `unit`, and the children of a block lie `step` apart, in the
    /// units of the node.
    fn of(datatype: &Datatype, unit: i64, step: i64) -> Option<Blocks> {
        let (lengths, displacements) = lists(datatype)?;
        if displacements.len() < Blocks::FEW {
            return None;
        }
        let tally = match lengths {
            Lengths::All(length) => {
                tally(displacements, std::iter::repeat_n(length, displacements.len()), unit, step)?
            }
            Lengths::Each(lengths) => tally(displacements, lengths.iter().copied(), unit, step)?,
        };
        let Tally { vectors, copies, reach, divisor } = tally;
        let irregular = displacements.len() < Blocks::JOINED * vectors;
        irregular.then(|| Blocks { of: datatype.clone(), unit, vectors, copies, reach, divisor })
    }

    /// The number of children in all blocks.
    pub(crate) fn copies(&self) -> u64 {
        self.copies
    }

    /// The displacements of the first and of the last child, in the units of the node.
    pub(crate) fn reach(&self) -> [i64; 2] {
        self.reach
    }

    /// The greatest common divisor of the blocks' lengths. `None` if a block adjoins the one
    /// before, or if the divisor isn't obvious.
    pub(crate) fn divisor(&self) -> Option<u64> {
        self.divisor
    }

    /// The number of blocks.
    pub(crate) fn len(&self) -> usize {
        lists(&self.of).map_or(0, |(_, displacements)| displacements.len())
    }

    /// The displacement and the length of each block.
    #[inline]
    pub(crate) fn iter(&self) -> BlockIter<'_> {
        let (lengths, displacements) = lists(&self.of).unwrap_or((Lengths::All(0), &[]));
        let (lengths, all) = match lengths {
            Lengths::All(length) => (&[][..], length),
            Lengths::Each(lengths) => (lengths, 0),
        };
        BlockIter { displacements, lengths, all, unit: self.unit }
    }
}

/// The lists of a constructor of blocks.
#[inline]
fn lists(datatype: &Datatype) -> Option<(Lengths<'_>, &[i64])> {
    match datatype.node() {
        Constructor::Indexed { blocklengths, displacements, .. }
        | Constructor::Hindexed { blocklengths, displacements, .. } => {
            Some((Lengths::Each(blocklengths), displacements))
        }
        Constructor::IndexedBlock { blocklength, displacements, .. }
        | Constructor::HindexedBlock { blocklength, displacements, .. } => {
            Some((Lengths::All(*blocklength), displacements))
        }
        _ => None,
    }
}

/// The iterator over [`Blocks`].
#[derive(Clone, Debug)]
pub(crate) struct BlockIter<'a> {
    displacements: &'a [i64],
    /// The lengths of the blocks, or none if all have the length `all`.
    lengths: &'a [i64],
    all: i64,
    unit: i64,
}

impl Iterator for BlockIter<'_> {
    type Item = (i64, u64);

    #[inline]
    fn next(&mut self) -> Option<(i64, u64)> {
        let (&displacement, later) = self.displacements.split_first()?;
        self.displacements = later;
        let length = match self.lengths.split_first() {
            Some((&length, later)) => {
                self.lengths = later;
                length
            }
            None => self.all,
        };
        // The product fits: see `tally`.
        Some((displacement.wrapping_mul(self.unit), length as u64))
    }

    #[inline]
    fn fold<B, F: FnMut(B, (i64, u64)) -> B>(self, first: B, mut each: F) -> B {
        let BlockIter { displacements, lengths, all, unit } = self;
        let place = |at: i64| at.wrapping_mul(unit);
        match lengths {
            [] => displacements.iter().fold(first, |sum, &at| each(sum, (place(at), all as u64))),
            _ => {
                let blocks = displacements.iter().zip(lengths);
                blocks.fold(first, |sum, (&at, &length)| each(sum, (place(at), length as u64)))
            }
        }
    }
}

/// Totals over blocks.
struct Tally {
    vectors: usize,
    copies: u64,
    reach: [i64; 2],
    divisor: Option<u64>,
}

/// Totals over blocks of a displacement and a length. `None` if a block is empty, if children don't
/// lie in ascending order, or if a number is so large that a product could exceed 64 bits.
///
/// A branch that depends on the blocks would be predicted wrongly for each irregular one, so there
/// is none in the loops. Totals that don't need the order of the blocks have loops of their own,
/// which take vector instructions (docs/tuning.md, "Walks over blocks").
#[inline]
fn tally(
    displacements: &[i64],
    lengths: impl Iterator<Item = i64> + Clone,
    unit: i64,
    step: i64,
) -> Option<Tally> {
    /// Products of two such numbers, and sums of two products, fit 64 bits. So does a sum of as
    /// many lengths as there can be blocks.
    const NEAR: i64 = 1 << 30;
    let near = |number: i64| (-NEAR..NEAR).contains(&number);
    if !near(unit) || !(1..NEAR).contains(&step) || displacements.len() >= NEAR as usize {
        return None;
    }
    let places = displacements.iter().fold(0, |bits, at| bits | at.wrapping_add(NEAR) as u64);
    let sizes = lengths.clone().fold(0, |bits, length| bits | length as u64);
    let copies = lengths.clone().fold(0, |sum: u64, length| sum.wrapping_add(length as u64));
    let (shortest, longest) = lengths
        .clone()
        .fold((i64::MAX, 0), |(least, most), length| (length.min(least), length.max(most)));
    if places >= 2 * NEAR as u64 || sizes >= NEAR as u64 || shortest < 1 {
        return None;
    }
    let (mut vectors, mut adjoin) = (0, false);
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    // The block before: its place and its end, its distance to the one before it, and whether it
    // begins a vector.
    let (mut place, mut end, mut size, mut stride, mut begins) = (0, i64::MIN, -1, 0, false);
    for (at, length) in displacements.iter().zip(lengths) {
        let first = at * unit;
        adjoin |= end == first;
        end = first + length * step;
        (least, greatest) = (least.min(first), greatest.max(end));
        // The condition of `Vector::join`.
        let distance = first - place;
        let joins = (length == size) & (begins | (distance == stride));
        vectors += usize::from(!joins);
        (place, size, stride, begins) = (first, length, distance, !joins);
    }
    let divisor = (shortest == 1 || shortest == longest).then_some(shortest as u64);
    Some(Tally {
        vectors,
        copies,
        reach: [least, greatest - step],
        divisor: divisor.filter(|_| !adjoin),
    })
}

/// The number of children in `vectors`.
fn copies(vectors: &[Vector]) -> i128 {
    let few = vectors
        .iter()
        .try_fold(0u64, |sum, vector| sum.checked_add(vector.count.checked_mul(vector.length)?));
    // On overflow, count in 128 bits. Each product has two factors below 2^63, and there are at
    // most 2^32 products.
    few.map_or_else(
        || {
            vectors.iter().fold(0i128, |sum, vector| {
                sum.saturating_add(
                    i128::from(vector.count).saturating_mul(i128::from(vector.length)),
                )
            })
        },
        i128::from,
    )
}

/// The vectors of the blocks of a constructor, whose lists they share if they are irregular.
///
/// Displacements are multiplied by `unit`, and the children of a block lie `step` apart, in the
/// units of the node.
///
/// # Errors
/// [`Error::Overflow`] if a displacement doesn't fit 64 bits.
pub(super) fn of_blocks(datatype: &Datatype, unit: i64, step: i64) -> Result<Vectors> {
    if let Some(blocks) = Blocks::of(datatype, unit, step) {
        return Ok(Vectors(List::Shared(Box::new(blocks))));
    }
    let mut joined = VectorCollector::new();
    if let Some((lengths, displacements)) = lists(datatype) {
        for (index, &at) in displacements.iter().enumerate() {
            let length = match lengths {
                Lengths::All(length) => length,
                Lengths::Each(lengths) => lengths[index],
            };
            // An empty block has no meaningful displacement, so an overflow there is no error.
            if let Some(length) = u64::try_from(length).ok().filter(|&length| length > 0) {
                joined.block(scaled(at, unit)?, length);
            }
        }
    }
    Ok(joined.finish())
}

/// Converts a displacement to the units of a form, or to bytes.
pub(crate) fn scaled(displacement: i64, unit: i64) -> Result<i64> {
    displacement.checked_mul(unit).ok_or_else(|| Error::overflow("a displacement"))
}

/// Collects blocks as vectors: joins blocks that continue one another at one stride.
pub(super) struct VectorCollector(SmallVec<[Vector; 2]>);

impl VectorCollector {
    pub(super) fn new() -> VectorCollector {
        VectorCollector(SmallVec::new())
    }

    /// Adds one block, unless it is empty.
    fn block(&mut self, displacement: i64, length: u64) {
        let joins = |last: &mut Vector| last.join(displacement, length);
        if length > 0 && !self.0.last_mut().is_some_and(joins) {
            self.0.push(Vector::block(displacement, length));
        }
    }

    /// Adds a vector, unless it is empty.
    pub(super) fn vector(&mut self, vector: Vector) {
        match vector.count {
            1 => self.block(vector.displacement, vector.length),
            _ if vector.length > 0 && vector.count > 0 => self.0.push(vector),
            _ => {}
        }
    }

    pub(super) fn finish(self) -> Vectors {
        match self.0[..] {
            [vector] => Vectors(List::One(vector)),
            _ => Vectors(List::Many(self.0.into_boxed_slice())),
        }
    }
}
