//! Compilation of a datatype to a form.
//!
//! 1. Decide the tag: the culprit is the first constructor, depth first, that isn't portable.
//! 2. Walk the tree and turn every constructor into a node. Each shared subtree is walked once.
//!    Equal nodes become one node, so equal types have equal forms, however their constructors
//!    shared parts.
//! 3. Meanwhile, in a locale-specific form, convert displacements in extents to bytes. In a
//!    portable form, keep them.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use smallvec::SmallVec;

use super::node::{Field, Node, Placed, Span};
use super::vectors::{self, Vector, VectorCollector, Vectors};
use super::{Layouts, Limits, Nodes, layout};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::{Bounds, StructLayout};
use crate::datatype::{Datatype, Node as Constructor, Order, Visited};
use crate::error::{Error, Result};

/// Compiles a datatype, which needn't be regular. Appends the nodes of its form to `nodes`, which
/// is empty, and their bounds to `layouts`.
pub(super) fn compile(
    datatype: &Datatype,
    architecture: &Architecture,
    layouts: &mut Layouts,
    nodes: &mut Nodes,
) -> Result<()> {
    let mut compiler = Compiler {
        architecture,
        portable: datatype.is_portable(),
        nodes,
        layouts,
        seen: None,
        equal: None,
        // A tree of two levels has no shared inner subtree.
        known: (datatype.depth() > 2).then(Visited::new),
    };
    let root = compiler.datatype(datatype)?;
    compiler.nodes.truncate(root as usize + 1);
    compiler.layouts.truncate(root as usize + 1);
    if nodes.capacity() > 2 * nodes.len() {
        nodes.shrink_to_fit();
    }
    // A form isn't deeper than its nodes are many.
    match u32::try_from(nodes.len()) {
        Ok(..=Limits::DEPTH) => Ok(()),
        _ => check_depth(nodes),
    }
}

fn check_depth(nodes: &[Node]) -> Result<()> {
    let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let below = node.children().map(|child| depths[child as usize]).max();
        let depth = 1 + below.unwrap_or(0);
        if depth > Limits::DEPTH {
            return Err(Error::TooDeep { depth, most: Limits::DEPTH });
        }
        depths.push(depth);
    }
    Ok(())
}

/// The first part of a datatype, depth first, whose constructor isn't portable.
pub(crate) fn culprit(mut datatype: &Datatype) -> Option<&Datatype> {
    if datatype.is_portable() {
        return None;
    }
    while let Some(below) = datatype.node().children().iter().find(|child| !child.is_portable()) {
        datatype = below;
    }
    Some(datatype)
}

/// The unit of a constructor's displacements.
#[derive(Clone, Copy)]
enum Unit {
    Extents,
    Bytes,
}

/// The number of nodes that most forms don't exceed. Comparing a node with so few is faster than
/// hashing it.
const FEW: usize = 8;

/// The indices of nodes by their hash.
type Hashed = HashMap<u64, SmallVec<[u32; 1]>, BuildHasherDefault<Mixer>>;

struct Compiler<'a> {
    architecture: &'a Architecture,
    portable: bool,
    nodes: &'a mut Nodes,
    /// The bounds of the nodes as parts of the datatype.
    layouts: &'a mut Layouts,
    /// The bounds that a reader of the form computes, from the first node on at which they differ.
    /// They differ in alignment.
    seen: Option<Box<Layouts>>,
    /// Present if there are [`FEW`] nodes or more.
    equal: Option<Box<Hashed>>,
    /// The nodes of subtrees that were compiled already, if subtrees can be shared.
    known: Option<Visited<u32>>,
}

impl Compiler<'_> {
    fn datatype(&mut self, datatype: &Datatype) -> Result<u32> {
        if let Constructor::Leaf(leaf) = datatype.node() {
            return self.leaf(*leaf);
        }
        if let Some(index) = self.known.as_ref().and_then(|known| known.get(datatype)) {
            return Ok(index);
        }
        let index = self.constructor(datatype)?;
        if let Some(known) = &mut self.known {
            known.insert(datatype, index);
        }
        Ok(index)
    }

    fn constructor(&mut self, datatype: &Datatype) -> Result<u32> {
        let constructor = datatype.node();
        match constructor {
            Constructor::Leaf(leaf) => self.leaf(*leaf),
            Constructor::Dup { child } => self.datatype(child),
            Constructor::Contiguous { count, child } => {
                let child = self.datatype(child)?;
                self.array(child, Unit::Extents, &[vector(0, *count, 1, 0)], None)
            }
            Constructor::Vector { count, blocklength, stride, child } => {
                let child = self.datatype(child)?;
                let blocks = vector(0, *blocklength, *count, *stride);
                self.array(child, Unit::Extents, &[blocks], None)
            }
            Constructor::Hvector { count, blocklength, stride, child, .. } => {
                let child = self.datatype(child)?;
                let blocks = vector(0, *blocklength, *count, *stride);
                self.array(child, Unit::Bytes, &[blocks], None)
            }
            Constructor::Indexed { child, .. } | Constructor::IndexedBlock { child, .. } => {
                self.blocks(datatype, child, Unit::Extents)
            }
            Constructor::Hindexed { child, .. } | Constructor::HindexedBlock { child, .. } => {
                self.blocks(datatype, child, Unit::Bytes)
            }
            Constructor::Struct { blocklengths, displacements, children, .. } => {
                let mut members = Vec::with_capacity(children.len());
                for ((&length, &displacement), child) in
                    blocklengths.iter().zip(displacements).zip(children)
                {
                    members.extend(self.member(length, displacement, child)?);
                }
                self.add(Node::Struct { members: members.into(), span: Span::Natural })
            }
            Constructor::SimpleStruct { blocklengths, children } => {
                self.simple(blocklengths, children)
            }
            Constructor::Subarray { sizes, subsizes, starts, order, child } => {
                self.grid(child, *order, sizes, |dim| {
                    [vector(starts[dim], subsizes[dim], 1, 0), vector(0, 0, 0, 0)]
                })
            }
            Constructor::Darray { gsizes, order, child, .. } => {
                let shares = constructor.shares().unwrap_or_default();
                self.grid(child, *order, gsizes, |dim| {
                    let share = &shares[dim];
                    let runs = share.runs();
                    let last = share.first + (runs - 1).max(0) * share.period;
                    let whole = vector(share.first, share.block, (runs - 1).max(0), share.period);
                    [whole, vector(last, share.last_run(), 1, 0)]
                })
            }
            Constructor::Resized { lb, extent, child } => {
                let child = self.datatype(child)?;
                let span = Span::Stated { lower: *lb, extent: *extent };
                let vectors = Vectors::one(vector(0, 1, 1, 0));
                self.add(Node::Array { child, vectors, span })
            }
            Constructor::ValueIndex { value, index } => {
                let mut layout = StructLayout::new();
                let mut members = Vec::with_capacity(2);
                for &member in [value, index] {
                    let child = self.leaf(member.into())?;
                    let displacement = layout.push(1, &self.layouts[child as usize])?;
                    members.push(Placed { child, length: 1, displacement });
                }
                self.add(Node::Struct { members: members.into(), span: Span::Natural })
            }
        }
    }

    /// The factor from a unit to the units of the form.
    fn factor(&self, unit: Unit, child: u32) -> i64 {
        match unit {
            Unit::Extents if !self.portable => self.layouts[child as usize].extent(),
            _ => 1,
        }
    }

    /// Adds an array of the blocks of a constructor. Their displacements count `unit`s.
    fn blocks(&mut self, datatype: &Datatype, child: &Datatype, unit: Unit) -> Result<u32> {
        let child = self.datatype(child)?;
        let step = if self.portable { 1 } else { self.layouts[child as usize].extent() };
        let vectors = vectors::of_blocks(datatype, self.factor(unit, child), step)?;
        self.add(Node::Array { child, vectors, span: Span::Natural })
    }

    /// Adds an array of vectors. Their displacements count `unit`s. If `stated`, its bounds go from
    /// 0 to that many units.
    fn array(
        &mut self,
        child: u32,
        unit: Unit,
        vectors: &[Vector],
        stated: Option<i64>,
    ) -> Result<u32> {
        let unit = self.factor(unit, child);
        let scaled = |vector: &Vector| {
            // A vector without items has no meaningful displacement, so an overflow there is no
            // error.
            let unit = if vector.length > 0 && vector.count > 0 { unit } else { 0 };
            Ok::<_, Error>(Vector {
                displacement: vectors::scaled(vector.displacement, unit)?,
                stride: vectors::scaled(vector.stride, unit)?,
                ..*vector
            })
        };
        let vectors = match vectors {
            [vector] => Vectors::one(scaled(vector)?),
            _ => {
                let mut joined = VectorCollector::new();
                for vector in vectors {
                    joined.vector(scaled(vector)?);
                }
                joined.finish()
            }
        };
        let span = match stated {
            None => Span::Natural,
            Some(extent) => Span::Stated { lower: 0, extent: vectors::scaled(extent, unit)? },
        };
        self.add(Node::Array { child, vectors, span })
    }

    /// Adds a section of an array. `section` returns the indices of a dimension in the section, as
    /// vectors.
    fn grid(
        &mut self,
        child: &Datatype,
        order: Order,
        sizes: &[i64],
        section: impl Fn(usize) -> [Vector; 2],
    ) -> Result<u32> {
        let mut node = self.datatype(child)?;
        // From the fastest dimension to the slowest, each is an array of the one before.
        for step in 0..sizes.len() {
            let dim = if order == Order::C { sizes.len() - 1 - step } else { step };
            node = match section(dim) {
                [vector, Vector { count: 0, .. }] => {
                    self.array(node, Unit::Extents, &[vector], Some(sizes[dim]))?
                }
                both => self.array(node, Unit::Extents, &both, Some(sizes[dim]))?,
            };
        }
        Ok(node)
    }

    /// A member of a struct, at a displacement in bytes. `None` if it is empty.
    fn member(
        &mut self,
        length: i64,
        displacement: i64,
        child: &Datatype,
    ) -> Result<Option<Placed>> {
        Ok(match u64::try_from(length) {
            Ok(length) if length > 0 => {
                Some(Placed { child: self.datatype(child)?, length, displacement })
            }
            _ => None,
        })
    }

    fn simple(&mut self, blocklengths: &[i64], children: &[Datatype]) -> Result<u32> {
        let mut members = Vec::with_capacity(children.len());
        for (&length, child) in blocklengths.iter().zip(children) {
            if let Some(Placed { child, length, .. }) = self.member(length, 0, child)? {
                members.push(Field { child, length });
            }
        }
        if self.portable {
            return self.add(Node::Simple { members: members.into() });
        }
        let places = layout::places(&members, self.layouts)?;
        let placed = members
            .iter()
            .zip(places)
            .map(|(&Field { child, length }, displacement)| Placed { child, length, displacement });
        let placed = Node::Struct { members: placed.collect(), span: Span::Natural };
        let simple = Node::Simple { members: members.into() };
        let wanted = layout::layout(&simple, false, self.architecture, self.layouts)?;
        self.nodes.push(placed);
        // A reader of the form may compute other bounds for the struct.
        self.added(wanted, true)
    }

    /// The index of a leaf. Adds the leaf if it isn't there.
    fn leaf(&mut self, leaf: Leaf) -> Result<u32> {
        if self.equal.is_some() {
            return self.add(Node::Leaf(leaf));
        }
        let same = |node: &Node| matches!(node, Node::Leaf(known) if *known == leaf);
        if let Some(index) = self.nodes.iter().position(same) {
            return Ok(index as u32);
        }
        let bounds = Bounds::of_leaf(leaf, self.architecture)?;
        self.nodes.push(Node::Leaf(leaf));
        self.settle(bounds, None)
    }

    /// The index of a node. Adds the node if there is no equal one.
    #[inline]
    fn add(&mut self, node: Node) -> Result<u32> {
        // The node is written where it stays: a call would copy it.
        self.nodes.push(node);
        self.last()
    }

    /// The index of the node that was added last, or of an equal one.
    fn last(&mut self) -> Result<u32> {
        let Some(node) = self.nodes.last() else { return Ok(0) };
        let wanted = layout::layout(node, self.portable, self.architecture, self.layouts)?;
        self.added(wanted, false)
    }

    /// The index of the node that was added last, whose bounds are `wanted`. If there is an equal
    /// node, removes it and returns that one's. `stated`: a reader may compute other bounds.
    fn added(&mut self, wanted: Bounds, stated: bool) -> Result<u32> {
        let Some((node, before)) = self.nodes.split_last_mut() else { return Ok(0) };
        let seen = match &self.seen {
            None if !stated => None,
            seen => {
                let seen = seen.as_deref().unwrap_or(self.layouts);
                Some(layout::settle(node, &wanted, self.architecture, seen)?)
            }
        };
        // Two equal structs can differ in alignment if the members of only one were simple structs.
        let aligned = |bounds: &Bounds| (bounds.align, bounds.leading_align);
        let same = |&index: &u32| {
            let known = &self.layouts[index as usize];
            aligned(known) == aligned(&wanted) && before[index as usize] == *node
        };
        let known = match &self.equal {
            None => (0..before.len() as u32).find(same),
            Some(equal) => {
                let alike = equal.get(&hash(node));
                alike.and_then(|alike| alike.iter().copied().find(same))
            }
        };
        if let Some(index) = known {
            self.nodes.pop();
            return Ok(index);
        }
        self.settle(wanted, seen)
    }

    /// Records the bounds of the node that was added last: those `wanted` by the datatype, and
    /// those `seen` by a reader of the form if they may differ.
    #[inline]
    fn settle(&mut self, wanted: Bounds, seen: Option<Bounds>) -> Result<u32> {
        let index = u32::try_from(self.layouts.len())
            .map_err(|_| Error::Overflow { what: "the number of nodes" })?;
        if self.equal.is_some() || self.nodes.len() == FEW {
            self.record_hash(index);
        }
        match seen {
            Some(seen) if seen != wanted => {
                self.seen.get_or_insert_with(|| Box::new(self.layouts.clone())).push(seen);
            }
            _ => self.seen.iter_mut().for_each(|all| all.push(wanted)),
        }
        self.layouts.push(wanted);
        Ok(index)
    }

    /// Adds the node that was added last to the table of hashes. The table is made with the node
    /// before which there are [`FEW`] - 1.
    #[cold]
    fn record_hash(&mut self, index: u32) {
        let first = if self.equal.is_some() { index } else { 0 };
        let equal = self.equal.get_or_insert_default();
        for (node, index) in self.nodes[first as usize..].iter().zip(first..) {
            equal.entry(hash(node)).or_default().push(index);
        }
    }
}

fn hash(node: &Node) -> u64 {
    BuildHasherDefault::<Mixer>::default().hash_one(node)
}

/// A vector in the constructor's units. Constructors have refused negative counts.
fn vector(displacement: i64, length: i64, count: i64, stride: i64) -> Vector {
    let unsigned = |count: i64| u64::try_from(count).unwrap_or(0);
    let stride = if count == 1 { 0 } else { stride };
    Vector { displacement, length: unsigned(length), count: unsigned(count), stride }
}

/// A fast hash of a node's words. One that resists attacks would take most of the time of a commit
/// with a million blocks. The table holds only nodes of this process's own datatype.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Fields;
    use crate::form::{Form, Regular};
    use crate::program::{self, Program};

    /// Compiles and lowers without the short way of regular types.
    fn generally(datatype: &Datatype, architecture: &Architecture) -> (Form, Bounds, String) {
        let (mut form, mut layouts, mut program) = (
            Form::uncompiled(datatype, architecture),
            Layouts::new(),
            Program::empty(Fields::Unknown),
        );
        form.compile_any(&mut layouts).unwrap();
        let both = (architecture, architecture);
        program::lower(&form, &layouts, both.0, both.1, &mut u64::MAX.clone(), &mut program)
            .unwrap();
        (form, *layouts.last().unwrap(), format!("{program:#?}"))
    }

    #[test]
    fn regular_types_have_the_form_and_program_of_any_type() {
        let basics = [Datatype::char(), Datatype::double(), Datatype::int(), Datatype::short()];
        let mut types = Vec::new();
        for child in &basics {
            let inner = [
                child.clone(),
                Datatype::contiguous(3, child).unwrap(),
                Datatype::vector(3, 2, -4, child).unwrap(),
                Datatype::dup(&Datatype::hvector(2, 1, 64, child).unwrap()).unwrap(),
            ];
            for inner in inner {
                types.push(Datatype::vector(1, 5, 7, &inner).unwrap());
                types.push(Datatype::hvector(4, 2, -100, &inner).unwrap());
                types.push(Datatype::hvector(4, 2, 101, &inner).unwrap());
                for order in [Order::C, Order::Fortran] {
                    let (sizes, part, starts) = ([5, 6, 7], [2, 1, 3], [1, 5, 0]);
                    types.push(Datatype::subarray(&sizes, &part, &starts, order, &inner).unwrap());
                }
                types.push(inner);
            }
            let members = [child, &basics[1], child, &basics[0]].map(Datatype::clone);
            types.push(Datatype::struct_(&[1, 2, 3, 4], &[40, 0, -24, 64], &members).unwrap());
            types.push(Datatype::simple_struct(&[1, 2, 3, 4], &members).unwrap());
        }
        let mut fast = 0;
        for architecture in Architecture::all() {
            for datatype in &types {
                let mut form = Form::uncompiled(datatype, architecture);
                let mut bounds = Bounds::EMPTY;
                let made = &mut Regular::empty();
                if form.compile_regular(&mut bounds, made).is_some() {
                    fast += 1;
                    let mut program = Program::empty(Fields::Unknown);
                    program.fill(made, &bounds);
                    let found = (form, bounds, format!("{program:#?}"));
                    assert_eq!(found, generally(datatype, architecture), "{datatype}");
                }
            }
        }
        assert!(fast > 1000, "{fast}");
    }
}
