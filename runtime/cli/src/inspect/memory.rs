//! Which items lie where in memory, asked by address.
//!
//! The items of a datatype can be more than a machine could list, so nothing here lists them: a form is searched for what lies
//! between two addresses, for the next address that holds anything, and for the periods at which memory repeats. Regular
//! types answer in a time that depends on the answer and on the form, not on their counts. What interleaves in ways that have to
//! be searched copy by copy is given up when the work exceeds [`Effort`].

use std::ops::Range;

use shipable::form::Node;
use shipable::{Architecture, Basic, Bounds, Error, Form, Leaf, Result};

use super::parts::{Effort, Part, Parts, hits, next_start};

/// A position in memory, relative to the buffer's address. Positions of items fit 64 bits, sums on the way to them may not.
pub type Address = i128;

/// The items of `count` elements of a datatype in the memory of an architecture.
#[derive(PartialEq)]
pub struct Memory {
    /// Children before parents; the last one repeats the datatype.
    nodes: Vec<Element>,
    /// Of one element.
    bounds: Bounds,
    /// From the least lower bound of the elements to the greatest upper one.
    span: Range<Address>,
    unit: i64,
}

/// One basic item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is; the two of a pair are items of their own.
    pub leaf: Leaf,
    /// Its first byte.
    pub at: Address,
    /// Its bytes.
    pub size: u8,
    /// Its place in the type map.
    pub index: u128,
}

/// Memory that repeats: from `start` on, every item has another one `period` bytes behind it, as far as that begins before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Where the first period starts.
    pub start: Address,
    /// The end of the last item.
    pub end: Address,
    /// In bytes.
    pub period: i128,
}

/// What an item that is found costs: no more memory than a few megabytes are ever taken by them.
const ITEM: usize = 16;

/// A node of the form: what one of it holds.
#[derive(PartialEq)]
struct Element {
    shape: Shape,
    /// Where data lies; empty where there is none.
    reach: Range<Address>,
    items: u128,
}

#[derive(PartialEq)]
enum Shape {
    Leaf(Vec<Item>),
    Parts(Parts),
}

impl Memory {
    /// Finds the layout. The time that it takes grows with the form, not with its counts.
    ///
    /// # Errors
    /// As [`Form::compile`], and where `count` elements leave 64 bits.
    pub fn new(form: &Form, architecture: &Architecture, count: u64) -> Result<Memory> {
        let form = form.to_locale(architecture)?;
        let bounds = form.node_bounds(architecture)?;
        let mut nodes: Vec<Element> = Vec::with_capacity(bounds.len() + 1);
        let mut unit = 0;
        for node in form.nodes() {
            let element = match node {
                Node::Leaf(leaf) => Element::leaf(*leaf, architecture)?,
                Node::Array { child, vectors, .. } => {
                    let child = *child as usize;
                    let extent = bounds[child].extent();
                    let parts = vectors.iter().map(|vector| {
                        Part::new(
                            child,
                            vector.displacement,
                            (vector.length, extent),
                            (vector.count, vector.stride),
                        )
                    });
                    Element::parts(parts, &nodes)
                }
                Node::Struct { members, .. } => {
                    let parts = members.iter().map(|member| {
                        let child = member.child as usize;
                        let extent = bounds[child].extent();
                        Part::new(child, member.displacement, (member.length, extent), (1, 0))
                    });
                    Element::parts(parts, &nodes)
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
        let all = Element::parts(
            std::iter::once(Part::new(root, 0, (count, bounds.extent()), (1, 0))),
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

    /// Of one element.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// From the least lower bound of the elements to the greatest upper one.
    pub fn span(&self) -> Range<Address> {
        self.span.clone()
    }

    /// From the first byte of data to past the last; empty where there is none.
    pub fn reach(&self) -> Range<Address> {
        self.nodes.last().map_or(0..0, |all| all.reach.clone())
    }

    /// How many items there are.
    pub fn items(&self) -> u128 {
        self.nodes.last().map_or(0, |all| all.items)
    }

    /// The greatest number of bytes of which every size, displacement and bound is a multiple.
    pub fn unit(&self) -> i64 {
        self.unit
    }

    /// The types of the items, with their sizes.
    pub fn leaves(&self) -> impl Iterator<Item = (Leaf, u8)> {
        let items = self.nodes.iter().filter_map(|node| match &node.shape {
            Shape::Leaf(items) => Some(items),
            Shape::Parts(_) => None,
        });
        items.flatten().map(|item| (item.leaf, item.size))
    }

    /// Distances at which parts repeat, the innermost first: parts of several items, and single items. They are good lengths
    /// for a picture's rows.
    pub fn pitches(&self) -> (Vec<i64>, Vec<i64>) {
        const MOST: usize = 64;
        let (mut compound, mut simple) = (Vec::new(), Vec::new());
        for node in &self.nodes {
            let Shape::Parts(parts) = &node.shape else { continue };
            for part in &parts.sorted {
                let inner = (part.length > 1).then_some(part.extent);
                let regular = part.count > 2 || (part.count > 1 && parts.sorted.len() == 1);
                let outer = regular.then_some(part.stride);
                let (pitches, distances) = match self.nodes[part.child].shape {
                    Shape::Leaf(_) => (&mut simple, [outer, None]),
                    Shape::Parts(_) => (&mut compound, [inner, outer]),
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

    /// The items of which a byte lies in `window`, in the order of the type map; none where it takes too much effort.
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
        node: &Element,
        base: Address,
        index: u128,
        window: &Range<Address>,
        effort: &mut Effort,
        found: &mut Vec<Item>,
    ) -> Option<()> {
        effort.spend(1)?;
        let parts = match &node.shape {
            Shape::Leaf(items) => {
                for item in items {
                    let at = base + item.at;
                    if at < window.end && at + i128::from(item.size) > window.start {
                        effort.spend(ITEM)?;
                        found.push(Item { at, index: index + item.index, ..*item });
                    }
                }
                return Some(());
            }
            Shape::Parts(parts) => parts,
        };
        let asked = window.start - base..window.end - base;
        for part in parts.meeting(&asked, effort)? {
            let child = &self.nodes[part.child];
            for block in part.blocks_in(&asked) {
                let start = part.block_at(block);
                let inner = asked.start - start..asked.end - start;
                for place in hits(part.length, part.extent, &child.reach, &inner) {
                    let copy = u128::from(block) * u128::from(part.length) + u128::from(place);
                    let at = base + start + i128::from(place) * part.extent;
                    let first = index + part.index + copy * child.items;
                    self.collect(child, at, first, window, effort, found)?;
                }
            }
        }
        Some(())
    }

    /// The first address from `from` on that holds data; the inner `None` where no later one does.
    pub fn next(&self, from: Address, effort: &mut Effort) -> Option<Option<Address>> {
        match self.nodes.last() {
            Some(all) => self.next_in(all, 0, from, effort),
            None => Some(None),
        }
    }

    fn next_in(
        &self,
        node: &Element,
        base: Address,
        from: Address,
        effort: &mut Effort,
    ) -> Option<Option<Address>> {
        effort.spend(1)?;
        let parts = match &node.shape {
            Shape::Leaf(items) => {
                let ends = |item: &&Item| base + item.at + i128::from(item.size) > from;
                let rest = items.iter().filter(ends);
                return Some(rest.map(|item| from.max(base + item.at)).min());
            }
            Shape::Parts(parts) => parts,
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
                for place in hits(part.length, part.extent, &child.reach, &(inner..inner + 1)) {
                    let at = base + start + i128::from(place) * part.extent;
                    better(self.next_in(child, at, from, effort)?);
                }
            }
        }
        Some(nearest)
    }

    /// The cycles that `at` lies in, the longest first.
    pub fn cycles(&self, at: Address, effort: &mut Effort) -> Option<Vec<Cycle>> {
        let mut cycles = Vec::new();
        let mut node = self.nodes.last()?;
        let mut base = 0;
        // Where nothing but this node has data.
        let mut alone = Address::MIN..Address::MAX;
        loop {
            effort.spend(1)?;
            let Shape::Parts(parts) = &node.shape else { return Some(cycles) };
            let Some((part, room)) = parts.only(at - base, effort)? else { return Some(cycles) };
            let child = &self.nodes[part.child];
            alone = alone.start.max(room.start.saturating_add(base))
                ..alone.end.min(room.end.saturating_add(base));
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
                    start: alone.start.max(first + reach.start),
                    end: alone.end.min(last + reach.end),
                    period,
                });
                // The copy that `at` lies in, and its room up to its neighbours.
                let copy =
                    ((at - first - reach.start).div_euclid(period)).clamp(0, i128::from(count - 1));
                let place = first + copy * period;
                if !(place + reach.start..place + reach.end).contains(&at) {
                    return Some(cycles);
                }
                alone = alone.start.max(place - period + reach.end)
                    ..alone.end.min(place + period + reach.start);
                base = place;
            }
            node = child;
        }
    }
}

impl Element {
    fn leaf(leaf: Leaf, architecture: &Architecture) -> Result<Element> {
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
        Ok(Element {
            reach: reach.unwrap_or(0..0),
            items: items.len() as u128,
            shape: Shape::Leaf(items),
        })
    }

    fn parts(parts: impl Iterator<Item = Part>, nodes: &[Element]) -> Element {
        let mut items = 0;
        let placed = parts.filter_map(|part| {
            let (child, index) = (&nodes[part.child], items);
            items += u128::from(part.count) * u128::from(part.length) * child.items;
            part.placed(index, &child.reach)
        });
        let parts = Parts::new(placed.collect());
        Element { reach: parts.reach(), items, shape: Shape::Parts(parts) }
    }

    /// The greatest common divisor of its own distances.
    fn unit(&self) -> i64 {
        let mut unit = 0;
        match &self.shape {
            Shape::Leaf(items) => {
                for item in items {
                    unit = gcd(gcd(unit, item.size.into()), item.at as i64);
                }
            }
            Shape::Parts(parts) => {
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

/// Of magnitudes; 0 with anything is that.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b > 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
