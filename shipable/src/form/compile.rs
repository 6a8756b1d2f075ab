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

use smallvec::{SmallVec, smallvec};

use super::node::{Field, Node, Placed, Span, Vector, VectorCollector};
use super::{Form, Layouts, Limits, layout};
use crate::arch::Architecture;
use crate::bounds::{Bounds, StructLayout};
use crate::datatype::{Datatype, Node as Constructor, Order, Visited};
use crate::error::{Error, Result};

/// Compiles a datatype. Appends the bounds of the form's nodes to `layouts`.
pub(super) fn compile(
    datatype: &Datatype,
    architecture: &Architecture,
    layouts: &mut Layouts,
) -> Result<Form> {
    let culprit = culprit(datatype);
    let mut compiler = Compiler {
        architecture,
        portable: culprit.is_none(),
        nodes: SmallVec::new(),
        layouts,
        seen: None,
        depths: SmallVec::new(),
        equal: HashMap::default(),
        known: Visited::new(),
    };
    let root = compiler.datatype(datatype)?;
    compiler.nodes.truncate(root as usize + 1);
    compiler.layouts.truncate(root as usize + 1);
    let builder = culprit.is_some().then_some(*architecture);
    let mut nodes = Vec::with_capacity(compiler.nodes.len());
    nodes.extend(compiler.nodes.drain(..));
    Ok(Form::new(builder, nodes.into(), culprit.cloned()))
}

/// The first part of a datatype, depth first, whose constructor isn't portable.
pub(crate) fn culprit(datatype: &Datatype) -> Option<&Datatype> {
    Culprits { cleared: Visited::new() }.first(datatype)
}

/// A search for constructors that aren't portable.
struct Culprits {
    cleared: Visited<()>,
}

impl Culprits {
    /// The first one in a datatype, depth first.
    fn first<'t>(&mut self, datatype: &'t Datatype) -> Option<&'t Datatype> {
        let node = datatype.node();
        if matches!(node, Constructor::Leaf(_)) || self.cleared.get(datatype).is_some() {
            return None;
        }
        self.cleared.insert(datatype, ());
        let below = node.children().iter().find_map(|child| self.first(child));
        below.or_else(|| (!node.is_portable()).then_some(datatype))
    }
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

struct Compiler<'a> {
    architecture: &'a Architecture,
    portable: bool,
    nodes: SmallVec<[Node; FEW]>,
    /// The bounds of the nodes as parts of the datatype.
    layouts: &'a mut Layouts,
    /// The bounds that a reader of the form computes, from the first node on at which they differ.
    /// They differ in alignment.
    seen: Option<Layouts>,
    depths: SmallVec<[u32; FEW]>,
    /// The indices of nodes by their hash, if there are more than [`FEW`] nodes.
    equal: HashMap<u64, SmallVec<[u32; 1]>, BuildHasherDefault<Mixer>>,
    /// The nodes of subtrees that were compiled already.
    known: Visited<u32>,
}

impl Compiler<'_> {
    fn datatype(&mut self, datatype: &Datatype) -> Result<u32> {
        if let Some(index) = self.known.get(datatype) {
            return Ok(index);
        }
        let index = self.constructor(datatype.node())?;
        self.known.insert(datatype, index);
        Ok(index)
    }

    fn constructor(&mut self, constructor: &Constructor) -> Result<u32> {
        match constructor {
            Constructor::Leaf(leaf) => self.add(Node::Leaf(*leaf)),
            Constructor::Dup { child } => self.datatype(child),
            Constructor::Contiguous { count, child } => {
                self.array(child, Unit::Extents, [vector(0, *count, 1, 0)])
            }
            Constructor::Vector { count, blocklength, stride, child } => {
                self.array(child, Unit::Extents, [vector(0, *blocklength, *count, *stride)])
            }
            Constructor::Hvector { count, blocklength, stride, child, .. } => {
                self.array(child, Unit::Bytes, [vector(0, *blocklength, *count, *stride)])
            }
            Constructor::Indexed { blocklengths, displacements, child } => {
                self.array(child, Unit::Extents, indexed(blocklengths, displacements))
            }
            Constructor::Hindexed { blocklengths, displacements, child, .. } => {
                self.array(child, Unit::Bytes, indexed(blocklengths, displacements))
            }
            Constructor::IndexedBlock { blocklength, displacements, child } => {
                let vectors = displacements.iter().map(|&at| vector(at, *blocklength, 1, 0));
                self.array(child, Unit::Extents, vectors)
            }
            Constructor::HindexedBlock { blocklength, displacements, child } => {
                let vectors = displacements.iter().map(|&at| vector(at, *blocklength, 1, 0));
                self.array(child, Unit::Bytes, vectors)
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
                let dims = sizes.iter().zip(starts.iter().zip(subsizes));
                let dims = dims.map(|(&size, (&start, &subsize))| {
                    (size, smallvec![vector(start, subsize, 1, 0)])
                });
                self.grid(child, *order, dims.collect())
            }
            Constructor::Darray { gsizes, order, child, .. } => {
                let shares = constructor.shares().unwrap_or_default();
                let dims = gsizes.iter().zip(shares).map(|(&size, share)| {
                    let runs = share.runs();
                    let last = share.first + (runs - 1).max(0) * share.period;
                    let whole = vector(share.first, share.block, (runs - 1).max(0), share.period);
                    (size, smallvec![whole, vector(last, share.last_run(), 1, 0)])
                });
                let dims = dims.collect();
                self.grid(child, *order, dims)
            }
            Constructor::Resized { lb, extent, child } => {
                let child = self.datatype(child)?;
                let span = Span::Stated { lower: *lb, extent: *extent };
                self.add(Node::Array { child, vectors: [vector(0, 1, 1, 0)].into(), span })
            }
            Constructor::ValueIndex { value, index } => {
                let mut layout = StructLayout::new();
                let mut members = Vec::with_capacity(2);
                for &member in [value, index] {
                    let child = self.add(Node::Leaf(member.into()))?;
                    let displacement = layout.push(1, &self.layouts[child as usize])?;
                    members.push(Placed { child, length: 1, displacement });
                }
                self.add(Node::Struct { members: members.into(), span: Span::Natural })
            }
        }
    }

    /// Adds an array of vectors. Their displacements count `unit`s.
    fn array(
        &mut self,
        child: &Datatype,
        unit: Unit,
        vectors: impl IntoIterator<Item = Vector>,
    ) -> Result<u32> {
        let child = self.datatype(child)?;
        self.vectors(child, unit, vectors, None)
    }

    /// Adds an array of vectors. If `stated`, its bounds go from 0 to that many units.
    fn vectors(
        &mut self,
        child: u32,
        unit: Unit,
        vectors: impl IntoIterator<Item = Vector>,
        stated: Option<i64>,
    ) -> Result<u32> {
        let unit = match unit {
            Unit::Extents if !self.portable => self.layouts[child as usize].extent(),
            _ => 1,
        };
        let vectors = vectors.into_iter();
        let mut joined = VectorCollector::of(vectors.size_hint().0);
        // A vector without items has no meaningful displacement, so an overflow there is no error.
        for vector in vectors.filter(|vector| vector.length > 0 && vector.count > 0) {
            joined.vector(Vector {
                displacement: layout::scaled(vector.displacement, unit)?,
                stride: layout::scaled(vector.stride, unit)?,
                ..vector
            });
        }
        let span = match stated {
            None => Span::Natural,
            Some(extent) => Span::Stated { lower: 0, extent: layout::scaled(extent, unit)? },
        };
        self.add(Node::Array { child, vectors: joined.finish(), span })
    }

    /// Adds a section of an array. Each dimension has a size and the indices in the section, as
    /// vectors.
    fn grid(
        &mut self,
        child: &Datatype,
        order: Order,
        mut dims: SmallVec<[(i64, SmallVec<[Vector; 2]>); 3]>,
    ) -> Result<u32> {
        if order == Order::C {
            dims.reverse();
        }
        let mut node = self.datatype(child)?;
        // From the fastest dimension to the slowest, each is an array of the one before.
        for (size, vectors) in dims {
            node = self.vectors(node, Unit::Extents, vectors, Some(size))?;
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
        let seen = self.seen.as_ref().unwrap_or(self.layouts);
        let (placed, seen) = layout::settle(placed, &wanted, self.architecture, seen)?;
        self.add_as(placed, wanted, seen)
    }

    /// The index of a node. Adds the node if there is no equal one.
    fn add(&mut self, node: Node) -> Result<u32> {
        let wanted = layout::layout(&node, self.portable, self.architecture, self.layouts)?;
        let (node, seen) = match &self.seen {
            Some(seen) => layout::settle(node, &wanted, self.architecture, seen)?,
            None => (node, wanted),
        };
        self.add_as(node, wanted, seen)
    }

    /// The index of a node with known bounds: those `wanted` by the datatype, and those `seen` by a
    /// reader of the form.
    fn add_as(&mut self, node: Node, wanted: Bounds, seen: Bounds) -> Result<u32> {
        // Two equal structs can differ in alignment if the members of only one were simple structs.
        let aligned = |bounds: &Bounds| (bounds.align, bounds.leading_align);
        let same = |&index: &u32| {
            let known = &self.layouts[index as usize];
            aligned(known) == aligned(&wanted) && self.nodes[index as usize] == node
        };
        let of = |node: &Node| BuildHasherDefault::<Mixer>::default().hash_one(node);
        let hash = if self.nodes.len() < FEW { 0 } else { of(&node) };
        let known = match self.nodes.len() {
            count @ ..FEW => (0..count as u32).find(same),
            FEW if self.equal.is_empty() => {
                for (index, node) in self.nodes.iter().enumerate() {
                    self.equal.entry(of(node)).or_default().push(index as u32);
                }
                (0..FEW as u32).find(same)
            }
            _ => self.equal.get(&hash).and_then(|alike| alike.iter().copied().find(same)),
        };
        if let Some(index) = known {
            return Ok(index);
        }
        let below = node.children().map(|child| self.depths[child as usize]).max();
        let depth = 1 + below.unwrap_or(0);
        if depth > Limits::DEPTH {
            return Err(Error::TooDeep { depth, most: Limits::DEPTH });
        }
        let index = u32::try_from(self.nodes.len())
            .map_err(|_| Error::Overflow { what: "the number of nodes" })?;
        if self.nodes.len() >= FEW {
            self.equal.entry(hash).or_default().push(index);
        }
        self.nodes.push(node);
        if self.seen.is_none() && seen != wanted {
            self.seen = Some(self.layouts.clone());
        }
        self.seen.iter_mut().for_each(|all| all.push(seen));
        self.layouts.push(wanted);
        self.depths.push(depth);
        Ok(index)
    }
}

/// A vector in the constructor's units. Constructors have refused negative counts.
fn vector(displacement: i64, length: i64, count: i64, stride: i64) -> Vector {
    let unsigned = |count: i64| u64::try_from(count).unwrap_or(0);
    let stride = if count == 1 { 0 } else { stride };
    Vector { displacement, length: unsigned(length), count: unsigned(count), stride }
}

fn indexed<'a>(lengths: &'a [i64], displacements: &'a [i64]) -> impl Iterator<Item = Vector> + 'a {
    lengths.iter().zip(displacements).map(|(&length, &at)| vector(at, length, 1, 0))
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
