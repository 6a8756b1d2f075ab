//! The basic items of a datatype in memory, searched by address.
//!
//! A datatype can have more items than a machine can list, so this module never lists all of them.
//! It searches the form for the items between two addresses, for the next address with data, and
//! for the periods at which memory repeats. For regular types, the time depends on the result and
//! on the form, but not on the counts. Some types interleave so that the search must visit every
//! copy; then it gives up when it exceeds its [`Effort`].

use std::ops::Range;

use shipable::form::Node;
use shipable::{Architecture, Basic, Bounds, Error, Form, Leaf, Result};

use super::strided::{Address, Effort, Strided, StridedIndex, hits, next_start};

/// The items of `count` elements of a datatype in the memory of an architecture.
#[derive(PartialEq)]
pub struct Memory {
    /// The nodes of the form, children before parents, and a last node for the `count` elements.
    nodes: Vec<MemoryNode>,
    /// The bounds of one element.
    bounds: Bounds,
    /// The range from the least lower bound of all elements to their greatest upper bound.
    span: Range<Address>,
    unit: i64,
}

/// One basic item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The type. The two members of a pair are separate items.
    pub leaf: Leaf,
    /// The address of the first byte.
    pub at: Address,
    /// The number of bytes.
    pub size: u8,
    /// The index in the type map.
    pub index: u128,
}

/// A range of memory that repeats. Every item from `start` on has an equal item `period` bytes
/// later, if that one begins before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The start of the first period.
    pub start: Address,
    /// The end of the last item.
    pub end: Address,
    /// The period in bytes.
    pub period: i128,
}

/// The effort for each item found, which limits the memory for found items to a few megabytes.
const ITEM: usize = 16;

/// The memory of one copy of a node of the form.
#[derive(PartialEq)]
struct MemoryNode {
    contents: NodeContents,
    /// The range of the node's data; empty if it has none.
    reach: Range<Address>,
    /// The number of items.
    items: u128,
}

/// The items of a leaf, or the parts of any other node.
#[derive(PartialEq)]
enum NodeContents {
    Items(Vec<Item>),
    Children(StridedIndex),
}

impl Memory {
    /// Finds the layout of `count` elements. The time grows with the form, but not with its counts.
    ///
    /// # Errors
    /// The errors of [`Form::compile`]; addresses of the elements that don't fit 64 bits.
    pub fn new(form: &Form, architecture: &Architecture, count: u64) -> Result<Memory> {
        let form = form.to_locale(architecture)?;
        let bounds = form.node_bounds(architecture)?;
        let mut nodes: Vec<MemoryNode> = Vec::with_capacity(bounds.len() + 1);
        let mut unit = 0;
        for node in form.nodes() {
            let element = match node {
                Node::Leaf(leaf) => MemoryNode::of_leaf(*leaf, architecture)?,
                Node::Array { child, vectors, .. } => {
                    let child = *child as usize;
                    let extent = bounds[child].extent();
                    let parts = vectors.iter().map(|vector| {
                        Strided::new(
                            child,
                            vector.displacement,
                            (vector.length, extent),
                            (vector.count, vector.stride),
                        )
                    });
                    MemoryNode::of_children(parts, &nodes)
                }
                Node::Struct { members, .. } => {
                    let parts = members.iter().map(|member| {
                        let child = member.child as usize;
                        let extent = bounds[child].extent();
                        Strided::new(child, member.displacement, (member.length, extent), (1, 0))
                    });
                    MemoryNode::of_children(parts, &nodes)
                }
                Node::Simple { .. } => {
                    unreachable!("a locale-specific form has placed members only")
                }
            };
            unit = gcd(unit, element.unit());
            nodes.push(element);
        }
        let bounds = bounds.last().copied().unwrap_or(Bounds::EMPTY);
        let root = nodes.len().saturating_sub(1);
        let all = MemoryNode::of_children(
            std::iter::once(Strided::new(root, 0, (count, bounds.extent()), (1, 0))),
            &nodes,
        );
        let last = i128::from(count.max(1) - 1).saturating_mul(bounds.extent().into());
        let span = Address::from(bounds.lb) + last.min(0)..Address::from(bounds.ub) + last.max(0);
        let ends = [span.start, span.end, all.reach.start, all.reach.end];
        if ends.iter().any(|&end| i64::try_from(end).is_err()) {
            return Err(Error::Overflow { what: "the memory of so many elements" });
        }
        for number in [all.unit(), bounds.lb, bounds.ub] {
            unit = gcd(unit, number);
        }
        nodes.push(all);
        Ok(Memory { nodes, bounds, span, unit: unit.max(1) })
    }

    /// The bounds of one element.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// The range from the least lower bound of all elements to their greatest upper bound.
    pub fn span(&self) -> Range<Address> {
        self.span.clone()
    }

    /// The range from the first byte of data to the end of the last one; empty if there is none.
    pub fn reach(&self) -> Range<Address> {
        self.nodes.last().map_or(0..0, |all| all.reach.clone())
    }

    /// The number of items.
    pub fn items(&self) -> u128 {
        self.nodes.last().map_or(0, |all| all.items)
    }

    /// The greatest common divisor of all sizes, displacements and bounds in bytes.
    pub fn unit(&self) -> i64 {
        self.unit
    }

    /// The types of the items, with their sizes.
    pub fn leaves(&self) -> impl Iterator<Item = (Leaf, u8)> {
        let items = self.nodes.iter().filter_map(|node| match &node.contents {
            NodeContents::Items(items) => Some(items),
            NodeContents::Children(_) => None,
        });
        items.flatten().map(|item| (item.leaf, item.size))
    }

    /// The distances at which copies repeat, innermost first: of parts with several items, and of
    /// single items. They are good lengths for the rows of a picture.
    pub fn pitches(&self) -> (Vec<i64>, Vec<i64>) {
        const MOST: usize = 64;
        let (mut compound, mut simple) = (Vec::new(), Vec::new());
        for node in &self.nodes {
            let NodeContents::Children(parts) = &node.contents else { continue };
            for part in &parts.sorted {
                let inner = (part.length > 1).then_some(part.extent);
                let regular = part.count > 2 || (part.count > 1 && parts.sorted.len() == 1);
                let outer = regular.then_some(part.stride);
                let (pitches, distances) = match self.nodes[part.child].contents {
                    NodeContents::Items(_) => (&mut simple, [outer, None]),
                    NodeContents::Children(_) => (&mut compound, [inner, outer]),
                };
                for distance in distances.into_iter().flatten() {
                    let distance = i64::try_from(distance.unsigned_abs()).unwrap_or(0);
                    if distance > 0 && !pitches.contains(&distance) && pitches.len() < MOST {
                        pitches.push(distance);
                    }
                }
            }
        }
        (compound, simple)
    }

    /// The items that overlap `window`, in the order of the type map; `None` if the search runs out
    /// of effort.
    pub fn items_in(&self, window: Range<Address>, effort: &mut Effort) -> Option<Vec<Item>> {
        let mut found = Vec::new();
        if let Some(all) = self.nodes.last() {
            self.collect(all, 0, 0, &window, effort, &mut found)?;
        }
        found.sort_by_key(|item| item.index);
        Some(found)
    }

    fn collect(
        &self,
        node: &MemoryNode,
        base: Address,
        index: u128,
        window: &Range<Address>,
        effort: &mut Effort,
        found: &mut Vec<Item>,
    ) -> Option<()> {
        effort.spend(1)?;
        let parts = match &node.contents {
            NodeContents::Items(items) => {
                for item in items {
                    let at = base + item.at;
                    if at < window.end && at + i128::from(item.size) > window.start {
                        effort.spend(ITEM)?;
                        found.push(Item { at, index: index + item.index, ..*item });
                    }
                }
                return Some(());
            }
            NodeContents::Children(parts) => parts,
        };
        let within = window.start - base..window.end - base;
        for part in parts.meeting(&within, effort)? {
            let child = &self.nodes[part.child];
            for block in part.blocks_in(&within) {
                let start = part.block_at(block);
                let inner = within.start - start..within.end - start;
                for copy in hits(part.length, part.extent, &child.reach, &inner) {
                    let number = u128::from(block) * u128::from(part.length) + u128::from(copy);
                    let at = base + start + i128::from(copy) * part.extent;
                    let first = index + part.index + number * child.items;
                    self.collect(child, at, first, window, effort, found)?;
                }
            }
        }
        Some(())
    }

    /// The first address from `from` on that has data. The outer `None` means that the search ran
    /// out of effort, the inner `None` that no data follows.
    pub fn next(&self, from: Address, effort: &mut Effort) -> Option<Option<Address>> {
        match self.nodes.last() {
            Some(all) => self.next_in(all, 0, from, effort),
            None => Some(None),
        }
    }

    fn next_in(
        &self,
        node: &MemoryNode,
        base: Address,
        from: Address,
        effort: &mut Effort,
    ) -> Option<Option<Address>> {
        effort.spend(1)?;
        let parts = match &node.contents {
            NodeContents::Items(items) => {
                let ends = |item: &&Item| base + item.at + i128::from(item.size) > from;
                let rest = items.iter().filter(ends);
                return Some(rest.map(|item| from.max(base + item.at)).min());
            }
            NodeContents::Children(parts) => parts,
        };
        let mut nearest = parts.first_after(from - base).map(|start| base + start);
        let here = from - base..from - base + 1;
        for part in parts.meeting(&here, effort)? {
            let child = &self.nodes[part.child];
            let mut better = |address: Option<Address>| {
                nearest = [nearest, address].into_iter().flatten().min();
            };
            better(part.next_block(here.start).map(|start| base + start));
            for block in part.blocks_in(&here) {
                let start = part.block_at(block);
                let inner = here.start - start;
                let next = next_start(part.length, part.extent, &child.reach, inner);
                better(next.map(|next| base + start + next));
                for copy in hits(part.length, part.extent, &child.reach, &(inner..inner + 1)) {
                    let at = base + start + i128::from(copy) * part.extent;
                    better(self.next_in(child, at, from, effort)?);
                }
            }
        }
        Some(nearest)
    }

    /// The cycles that contain `at`, longest first; `None` if the search runs out of effort.
    pub fn cycles(&self, at: Address, effort: &mut Effort) -> Option<Vec<Cycle>> {
        let mut cycles = Vec::new();
        let mut node = self.nodes.last()?;
        let mut base = 0;
        // The range in which only this node has data.
        let mut exclusive = Address::MIN..Address::MAX;
        loop {
            effort.spend(1)?;
            let NodeContents::Children(parts) = &node.contents else { return Some(cycles) };
            let Some((part, room)) = parts.only(at - base, effort)? else { return Some(cycles) };
            let child = &self.nodes[part.child];
            exclusive = exclusive.start.max(room.start.saturating_add(base))
                ..exclusive.end.min(room.end.saturating_add(base));
            base += part.displacement;
            for (count, step, reach) in
                [(part.count, part.stride, &part.block), (part.length, part.extent, &child.reach)]
            {
                if count <= 1 {
                    continue;
                }
                let period = i128::try_from(step.unsigned_abs()).ok()?;
                if period < reach.end - reach.start {
                    return Some(cycles);
                }
                let last = i128::from(count - 1) * step;
                let (first, last) = (base + last.min(0), base + last.max(0));
                cycles.push(Cycle {
                    start: exclusive.start.max(first + reach.start),
                    end: exclusive.end.min(last + reach.end),
                    period,
                });
                // The copy that contains `at`, and the range up to its neighbours.
                let copy =
                    ((at - first - reach.start).div_euclid(period)).clamp(0, i128::from(count - 1));
                let start = first + copy * period;
                if !(start + reach.start..start + reach.end).contains(&at) {
                    return Some(cycles);
                }
                exclusive = exclusive.start.max(start - period + reach.end)
                    ..exclusive.end.min(start + period + reach.start);
                base = start;
            }
            node = child;
        }
    }
}

impl MemoryNode {
    fn of_leaf(leaf: Leaf, architecture: &Architecture) -> Result<MemoryNode> {
        let layout = architecture.leaf(leaf)?;
        let whole = |size: u32| Item { leaf, at: 0, size: size as u8, index: 0 };
        let items = match (leaf, &*layout.components) {
            (_, []) => Vec::new(),
            (Leaf::Basic(basic), [value, index]) if basic.is_pair() => {
                let (first, second) = basic.pair().unwrap_or((basic, basic));
                let part = |basic: Basic, component: &shipable::arch::Component, index| Item {
                    leaf: basic.into(),
                    at: component.offset.into(),
                    size: component.scalar.size,
                    index,
                };
                vec![part(first, value, 0), part(second, index, 1)]
            }
            _ => vec![whole(layout.size)],
        };
        let reach = items.iter().map(|item| item.at..item.at + i128::from(item.size)).reduce(union);
        Ok(MemoryNode {
            reach: reach.unwrap_or(0..0),
            items: items.len() as u128,
            contents: NodeContents::Items(items),
        })
    }

    fn of_children(parts: impl Iterator<Item = Strided>, nodes: &[MemoryNode]) -> MemoryNode {
        let mut items = 0;
        let placed = parts.filter_map(|part| {
            let (child, index) = (&nodes[part.child], items);
            items += u128::from(part.count) * u128::from(part.length) * child.items;
            part.placed(index, &child.reach)
        });
        let parts = StridedIndex::new(placed.collect());
        MemoryNode { reach: parts.reach(), items, contents: NodeContents::Children(parts) }
    }

    /// The greatest common divisor of the node's own sizes and distances.
    fn unit(&self) -> i64 {
        let mut unit = 0;
        match &self.contents {
            NodeContents::Items(items) => {
                for item in items {
                    unit = gcd(gcd(unit, item.size.into()), item.at as i64);
                }
            }
            NodeContents::Children(parts) => {
                for part in &parts.sorted {
                    let inner = if part.length > 1 { part.extent } else { 0 };
                    let outer = if part.count > 1 { part.stride } else { 0 };
                    for distance in [part.displacement, inner, outer] {
                        unit = gcd(unit, i64::try_from(distance).unwrap_or(1));
                    }
                }
            }
        }
        unit
    }
}

fn union(a: Range<Address>, b: Range<Address>) -> Range<Address> {
    a.start.min(b.start)..a.end.max(b.end)
}

/// The greatest common divisor of the magnitudes of two numbers. With 0, it is the other magnitude.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b > 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
