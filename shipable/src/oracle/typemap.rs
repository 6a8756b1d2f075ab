//! Type maps, written out copy by copy.

use crate::arch::{Architecture, Scalar, StructRule};
use crate::basic::{Basic, Leaf, Makeup};
use crate::datatype::{Datatype, Distribution, Node, Order, Visited};
use crate::error::Result;

/// One scalar of a type map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The leaf that it belongs to.
    pub leaf: Leaf,
    /// Its index in the leaf's components.
    pub component: usize,
    /// Its representation.
    pub scalar: Scalar,
    /// Its displacement in bytes from the buffer's address.
    pub offset: i64,
}

/// Bounds by MPI's definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NaiveBounds {
    pub lb: i64,
    pub ub: i64,
    pub true_lb: i64,
    pub true_ub: i64,
    pub size: i64,
}

/// The scalars of `count` elements, in the order of the type map.
///
/// # Errors
/// The errors of [`Architecture::leaf`].
pub fn expand(datatype: &Datatype, architecture: &Architecture, count: u64) -> Result<Vec<Item>> {
    let one = Map::of(datatype, architecture)?;
    let extent = one.ub() - one.lb();
    let mut all = Map::default();
    if !one.items.is_empty() {
        (0..count as i64).for_each(|element| all.copy(&one, element * extent));
    }
    Ok(all.items)
}

/// An upper bound of the number of map entries that writing out one element creates, padding
/// excluded. A type without items may create many too.
pub fn effort(datatype: &Datatype) -> u64 {
    Efforts { known: Visited::new() }.of(datatype).work
}

/// A walk over a tree that visits each shared subtree once. [`Map::of`] visits it once for each
/// occurrence.
struct Efforts {
    known: Visited<Effort>,
}

#[derive(Clone, Copy)]
struct Effort {
    /// The entries of the map.
    entries: u64,
    /// The entries of the map, and of all maps that it is built from.
    work: u64,
}

impl Efforts {
    fn of(&mut self, datatype: &Datatype) -> Effort {
        if let Some(known) = self.known.get(datatype) {
            return known;
        }
        // A scalar's item and bounds.
        const LEAST: u64 = 4;
        let mut effort = Effort { entries: LEAST, work: LEAST };
        let node = datatype.node();
        for (n, child) in copies(node).into_iter().zip(node.children()) {
            let child = self.of(child);
            let copied = n.saturating_mul(child.entries);
            effort.entries = effort.entries.saturating_add(copied);
            effort.work = effort.work.saturating_add(copied).saturating_add(child.work);
        }
        self.known.insert(datatype, effort);
        effort
    }
}

/// The number of copies of each child.
fn copies(node: &Node) -> Vec<u64> {
    let lengths = |lengths: &[i64]| lengths.iter().map(|n| product(&[*n])).collect();
    match node {
        Node::Leaf(_) | Node::ValueIndex { .. } => vec![],
        Node::Dup { .. } | Node::Resized { .. } => vec![1],
        Node::Contiguous { count, .. } => vec![product(&[*count])],
        Node::Vector { count, blocklength, .. } | Node::Hvector { count, blocklength, .. } => {
            vec![product(&[*count, *blocklength])]
        }
        Node::Indexed { blocklengths, .. } | Node::Hindexed { blocklengths, .. } => {
            let lengths: Vec<_> = lengths(blocklengths);
            vec![lengths.into_iter().fold(0, u64::saturating_add)]
        }
        Node::IndexedBlock { blocklength, displacements, .. }
        | Node::HindexedBlock { blocklength, displacements, .. } => {
            vec![product(&[*blocklength, displacements.len() as i64])]
        }
        Node::Struct { blocklengths, .. } | Node::SimpleStruct { blocklengths, .. } => {
            lengths(blocklengths)
        }
        // The whole index range is searched, not only the owned part.
        Node::Subarray { sizes, .. } => vec![product(sizes)],
        Node::Darray { gsizes, .. } => vec![product(gsizes)],
    }
}

/// The product, with factors below 1 taken as 1.
fn product(factors: &[i64]) -> u64 {
    factors.iter().fold(1, |product, factor| product.saturating_mul(factor.unsigned_abs().max(1)))
}

/// The bounds and size of one element.
///
/// # Errors
/// The errors of [`Architecture::leaf`].
pub fn bounds(datatype: &Datatype, architecture: &Architecture) -> Result<NaiveBounds> {
    let map = Map::of(datatype, architecture)?;
    let ends = map.items.iter().map(|item| item.offset + i64::from(item.scalar.size));
    Ok(NaiveBounds {
        lb: map.lb(),
        ub: map.ub(),
        true_lb: map.items.iter().map(|item| item.offset).min().unwrap_or(0),
        true_ub: ends.max().unwrap_or(0),
        size: map.items.iter().map(|item| i64::from(item.scalar.size)).sum(),
    })
}

/// The signature of one element as a list. A pair counts as two items, a complex number as one.
pub fn flatten(datatype: &Datatype) -> Vec<Leaf> {
    // Signatures are equal on all architectures. external32 has a layout for every leaf.
    let map = Map::of(datatype, &Architecture::EXTERNAL32).unwrap_or_default();
    let mut leaves = Vec::new();
    for item in &map.items {
        match item.leaf {
            Leaf::Basic(basic) => match (basic.makeup(), item.component) {
                (Makeup::Single, _) | (Makeup::Complex(_), 0) => leaves.push(item.leaf),
                (Makeup::Complex(_), _) => {}
                (Makeup::Pair(value, _), 0) => leaves.push(value.into()),
                (Makeup::Pair(_, index), _) => leaves.push(index.into()),
            },
            _ if item.component == 0 => leaves.push(item.leaf),
            _ => {}
        }
    }
    leaves
}

/// Whether `count` elements cover a byte twice, so that the result of unpacking depends on the
/// order.
///
/// # Errors
/// The errors of [`Architecture::leaf`].
pub fn overlaps(datatype: &Datatype, architecture: &Architecture, count: u64) -> Result<bool> {
    let mut ranges: Vec<_> = expand(datatype, architecture, count)?
        .iter()
        .map(|item| (item.offset, item.offset + i64::from(item.scalar.size)))
        .collect();
    ranges.sort_unstable();
    Ok(ranges.windows(2).any(|pair| pair[0].1 > pair[1].0))
}

/// A type map, with all that its bounds depend on.
#[derive(Clone, Default)]
struct Map {
    items: Vec<Item>,
    /// The starts and ends of the children's elements: the bounds if there are no markers.
    lows: Vec<i64>,
    highs: Vec<i64>,
    lb_markers: Vec<i64>,
    ub_markers: Vec<i64>,
    align: i64,
    /// The alignment of a struct whose first member it is.
    leading: i64,
}

impl Map {
    fn of(datatype: &Datatype, architecture: &Architecture) -> Result<Map> {
        let mut map = Map { align: 1, leading: 1, ..Map::default() };
        let child = match datatype.node().children() {
            [child] => Map::of(child, architecture)?,
            _ => Map::default(),
        };
        let extent = child.ub() - child.lb();
        match datatype.node() {
            Node::Leaf(leaf) => return Map::of_leaf(*leaf, architecture),
            Node::Dup { .. } => map.copy(&child, 0),
            Node::Contiguous { count, .. } => map.block(&child, *count, &[0]),
            Node::Vector { count, blocklength, stride, .. } => {
                (0..*count).for_each(|n| map.block(&child, *blocklength, &[n, *stride, extent]));
            }
            Node::Hvector { count, blocklength, stride, .. } => {
                (0..*count).for_each(|n| map.block(&child, *blocklength, &[n, *stride]));
            }
            Node::Indexed { blocklengths, displacements, .. } => {
                let blocks = blocklengths.iter().zip(displacements);
                blocks.for_each(|(&n, &at)| map.block(&child, n, &[at, extent]));
            }
            Node::Hindexed { blocklengths, displacements, .. } => {
                let blocks = blocklengths.iter().zip(displacements);
                blocks.for_each(|(&n, &at)| map.block(&child, n, &[at]));
            }
            Node::IndexedBlock { blocklength, displacements, .. } => {
                displacements.iter().for_each(|&at| map.block(&child, *blocklength, &[at, extent]));
            }
            Node::HindexedBlock { blocklength, displacements, .. } => {
                displacements.iter().for_each(|&at| map.block(&child, *blocklength, &[at]));
            }
            Node::Struct { blocklengths, displacements, children, .. } => {
                let mut lowest = None;
                for ((&n, &at), child) in blocklengths.iter().zip(displacements).zip(children) {
                    let child = Map::of(child, architecture)?;
                    let mut block = Map::default();
                    block.block(&child, n, &[at]);
                    let low = block.items.iter().map(|item| item.offset).min();
                    if low.is_some() && (lowest.is_none() || low < lowest) {
                        (lowest, map.leading) = (low, child.leading);
                    }
                    map.copy_aligned(&block, 0);
                }
            }
            Node::SimpleStruct { blocklengths, children } => {
                let children: Result<Vec<_>> =
                    children.iter().map(|child| Map::of(child, architecture)).collect();
                map.members(blocklengths, &children?);
            }
            Node::ValueIndex { value, index } => {
                let value = Map::of_leaf((*value).into(), architecture)?;
                let index = Map::of_leaf((*index).into(), architecture)?;
                map.members(&[1, 1], &[value, index]);
            }
            Node::Subarray { sizes, subsizes, starts, order, .. } => {
                let owned = subsizes.iter().zip(starts).map(|(n, at)| (*at..at + n).collect());
                map.array(&child, sizes, &owned.collect::<Vec<_>>(), *order);
            }
            Node::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
                let (mut rest, mut processes) = (*rank, *size);
                let mut owned = Vec::new();
                for at in 0..gsizes.len() {
                    processes /= psizes[at];
                    let mine = rest / processes;
                    rest %= processes;
                    owned.push(
                        (0..gsizes[at])
                            .filter(|&index| {
                                owner(index, gsizes[at], distribs[at], dargs[at], psizes[at])
                                    == mine
                            })
                            .collect::<Vec<_>>(),
                    );
                }
                map.array(&child, gsizes, &owned, *order);
            }
            Node::Resized { lb, extent, .. } => {
                map.copy(&child, 0);
                (map.lb_markers, map.ub_markers) = (vec![*lb], vec![lb + extent]);
            }
        }
        if datatype.node().children().len() == 1
            && !matches!(datatype.node(), Node::Struct { .. } | Node::SimpleStruct { .. })
            && !map.lows.is_empty()
        {
            (map.align, map.leading) = (child.align.max(1), child.leading.max(1));
        }
        map.pad();
        Ok(map)
    }

    fn of_leaf(leaf: Leaf, architecture: &Architecture) -> Result<Map> {
        let mut map = Map { align: 1, leading: 1, ..Map::default() };
        match leaf {
            Leaf::Basic(Basic::Lb) => map.lb_markers.push(0),
            Leaf::Basic(Basic::Ub) => map.ub_markers.push(0),
            _ => {
                let layout = architecture.leaf(leaf)?;
                let components = layout.components.iter().enumerate();
                map.items = components
                    .map(|(component, c)| Item {
                        leaf,
                        component,
                        scalar: c.scalar,
                        offset: i64::from(c.offset),
                    })
                    .collect();
                (map.lows, map.highs) = (vec![0], vec![i64::from(layout.extent)]);
                (map.align, map.leading) = (layout.align.into(), layout.leading_align.into());
                debug_assert!(
                    architecture.struct_rule() == StructRule::Power || map.align == map.leading
                );
            }
        }
        Ok(map)
    }

    fn is_empty(&self) -> bool {
        self.lows.is_empty() && self.lb_markers.is_empty() && self.ub_markers.is_empty()
    }

    /// MPI's definition: the lowest marker if there is one, otherwise the start of the data.
    fn lb(&self) -> i64 {
        let natural = self.lows.iter().min().or(self.ub_markers.iter().max());
        *self.lb_markers.iter().min().or(natural).unwrap_or(&0)
    }

    fn ub(&self) -> i64 {
        let natural = self.highs.iter().max().or(self.lb_markers.iter().min());
        *self.ub_markers.iter().max().or(natural).unwrap_or(&0)
    }

    fn copy(&mut self, child: &Map, displacement: i64) {
        let moved = |item: &Item| Item { offset: item.offset + displacement, ..*item };
        self.items.extend(child.items.iter().map(moved));
        for (mine, theirs) in [
            (&mut self.lows, &child.lows),
            (&mut self.highs, &child.highs),
            (&mut self.lb_markers, &child.lb_markers),
            (&mut self.ub_markers, &child.ub_markers),
        ] {
            mine.extend(theirs.iter().map(|at| at + displacement));
        }
    }

    fn copy_aligned(&mut self, child: &Map, displacement: i64) {
        self.copy(child, displacement);
        self.align = self.align.max(child.align);
        self.leading = self.leading.max(self.align);
    }

    /// Adds `count` copies, one extent apart. The displacement of the first is the product of
    /// `factors`; a product with a factor 0 is 0, even if other factors would overflow.
    fn block(&mut self, child: &Map, count: i64, factors: &[i64]) {
        if count == 0 {
            return;
        }
        let displacement: i64 = if factors.contains(&0) { 0 } else { factors.iter().product() };
        let extent = child.ub() - child.lb();
        (0..count).for_each(|n| self.copy(child, displacement + n * extent));
        if self.align == 0 {
            (self.align, self.leading) = (child.align, child.leading);
        }
    }

    /// Pads the extent by MPI's epsilon.
    fn pad(&mut self) {
        if self.ub_markers.is_empty() && !self.highs.is_empty() {
            while (self.ub() - self.lb()) % self.leading != 0 {
                self.highs.push(self.ub() + 1);
            }
        }
    }

    /// Adds members one after the other, by C's rules for structs.
    fn members(&mut self, blocklengths: &[i64], children: &[Map]) {
        let mut end = 0;
        let mut first = true;
        for (&n, child) in blocklengths.iter().zip(children) {
            let mut block = Map::default();
            block.block(child, n, &[0]);
            if block.is_empty() {
                continue;
            }
            while end % block.align != 0 {
                end += 1;
            }
            let low = block.lb().min(block.ub());
            if first && !block.items.is_empty() {
                (first, self.leading) = (false, child.leading);
            }
            let length = block.lb().max(block.ub()) - low;
            self.copy_aligned(&block, end - low);
            end += length;
        }
        if !self.is_empty() {
            (self.lows, self.highs) = (vec![0], vec![end]);
            (self.lb_markers, self.ub_markers) = (vec![], vec![]);
        }
    }

    /// Adds the elements with these indices in each dimension, and sets the bounds of the whole
    /// array.
    fn array(&mut self, child: &Map, sizes: &[i64], owned: &[Vec<i64>], order: Order) {
        let extent = child.ub() - child.lb();
        let mut dimensions: Vec<_> = sizes.iter().zip(owned).collect();
        if order == Order::Fortran {
            dimensions.reverse();
        }
        // From the slowest dimension to the fastest.
        let mut elements = vec![0];
        for (size, owned) in dimensions {
            elements = elements
                .iter()
                .flat_map(|at| owned.iter().map(move |index| at * size + index))
                .collect();
        }
        elements.iter().for_each(|at| self.copy(child, at * extent));
        let all: i64 = sizes.iter().product();
        (self.lb_markers, self.ub_markers) = (vec![0], vec![all * extent]);
    }
}

/// The process of a dimension that owns an index.
fn owner(index: i64, gsize: i64, how: Distribution, darg: Option<i64>, psize: i64) -> i64 {
    match how {
        Distribution::Block => index / darg.unwrap_or((gsize - 1) / psize + 1),
        Distribution::Cyclic => index / darg.unwrap_or(1) % psize,
        Distribution::None => 0,
    }
}
