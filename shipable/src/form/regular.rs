//! Compilation of regular types: arrays of arrays of a scalar, and structs of scalars.
//!
//! Most types are regular. Their nodes can't be equal, their subtrees aren't shared, and a reader
//! of the form computes the bounds that the datatype has. So one walk over the arguments finds all
//! that a commit needs: the nodes of the form, the bounds, and the runs of the program. It needs
//! none of the tables of [`compile`](super::compile) and of lowering, and makes what they make
//! (docs/tuning.md, "Regular types").

use std::iter;

use smallvec::SmallVec;

use super::Nodes;
use super::node::{Field, Node, Placed, Span};
use super::vectors::{Vector, Vectors};
use crate::arch::Architecture;
use crate::basic::{Basic, Leaf};
use crate::bounds::{Bounds, Plain, PlainStruct};
use crate::datatype::{Datatype, Node as Constructor, Order};
use crate::dims::{self, Dim, Dims, Repeated};
use crate::shared::push_with;

/// The layout of a regular type in the memory of an architecture.
pub(crate) struct Regular {
    /// The first run of its scalars, in the order of the type map.
    pub(crate) first: Run,
    /// The dimensions in which an array repeats its run.
    pub(crate) dims: Dims,
    /// The other runs of a struct.
    pub(crate) later: SmallVec<[Run; 2]>,
}

/// A run of scalars that adjoin.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// The displacement of its first byte.
    pub(crate) start: i64,
    pub(crate) bytes: u64,
    /// The number of scalars.
    pub(crate) items: u64,
}

impl Run {
    const EMPTY: Run = Run { start: 0, bytes: 0, items: 0 };

    /// The displacement past its last byte.
    fn end(&self) -> i64 {
        self.start + self.bytes as i64
    }
}

impl Regular {
    /// The most runs. The program of a type with more has a table.
    pub(crate) const RUNS: usize = 7;

    /// The most scalars of a struct.
    const SCALARS: usize = 8;

    /// A type without data, to be filled by [`compile`].
    #[inline]
    pub(crate) fn empty() -> Regular {
        Regular { first: Run::EMPTY, dims: [Dim::ONE; 3], later: SmallVec::new() }
    }

    /// The displacement of the only run, if nothing repeats it.
    #[inline]
    pub(crate) fn single_run(&self) -> Option<i64> {
        (self.later.is_empty() && dims::runs(&self.dims) == 1).then_some(self.first.start)
    }

    /// Appends a run of a struct.
    #[inline]
    fn push(&mut self, run: Run) {
        match self.first.items {
            0 => self.first = run,
            _ => self.later.push(run),
        }
    }

    /// Repeats the run of an array `count` times, `stride` bytes apart. `None` if that takes more
    /// dimensions than there are.
    #[inline]
    fn repeat(&mut self, count: i64, stride: i64) -> Option<()> {
        if count == 1 {
            return Some(());
        }
        match dims::repeat(&mut self.dims, self.first.bytes, count as u64, stride) {
            Repeated::InDims => {}
            Repeated::InRun(count) => {
                self.first.bytes *= count;
                self.first.items *= count;
            }
            Repeated::No => return None,
        }
        Some(())
    }
}

/// Compiles a regular type. Appends the nodes of its form to `nodes`, sets `bounds`, and fills
/// `made`. These are empty before. `None` if a type isn't regular, if it is empty, or if a number
/// is large.
///
/// All are written where they stay (docs/tuning.md, "Building a committed datatype").
pub(crate) fn compile(
    datatype: &Datatype,
    architecture: &Architecture,
    nodes: &mut Nodes,
    bounds: &mut Bounds,
    made: &mut Regular,
) -> Option<()> {
    let portable = datatype.is_portable();
    let mut compiler = Compiler { architecture, portable, nodes, bounds, made };
    match datatype.node() {
        Constructor::Struct { blocklengths, displacements, children, .. } => {
            compiler.structure(blocklengths, displacements, children)
        }
        Constructor::SimpleStruct { blocklengths, children } => {
            compiler.simple(blocklengths, children)
        }
        _ => compiler.array(datatype),
    }
}

struct Compiler<'a> {
    architecture: &'a Architecture,
    portable: bool,
    nodes: &'a mut Nodes,
    /// The bounds of the last node.
    bounds: &'a mut Bounds,
    made: &'a mut Regular,
}

/// The unit of a constructor's displacements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Extents,
    Bytes,
}

impl Compiler<'_> {
    fn array(&mut self, datatype: &Datatype) -> Option<()> {
        let (child, unit, section) = match datatype.node() {
            Constructor::Dup { child } => return self.array(child),
            Constructor::Contiguous { count, child } => (child, Unit::Extents, [0, *count, 1, 0]),
            Constructor::Vector { count, blocklength, stride, child } => {
                (child, Unit::Extents, [0, *blocklength, *count, *stride])
            }
            Constructor::Hvector { count, blocklength, stride, child, .. } => {
                (child, Unit::Bytes, [0, *blocklength, *count, *stride])
            }
            Constructor::Subarray { sizes, subsizes, starts, order, child } => {
                self.nodes.reserve_exact(sizes.len() + 1);
                self.child(child)?;
                // From the fastest dimension to the slowest, each is an array of the one before.
                for step in 0..sizes.len() {
                    let dim = if *order == Order::C { sizes.len() - 1 - step } else { step };
                    let section = [starts[dim], subsizes[dim], 1, 0];
                    self.blocks(Unit::Extents, section, Some(sizes[dim]))?;
                }
                return Some(());
            }
            _ => return self.scalar(datatype),
        };
        self.child(child)?;
        self.blocks(unit, section, None)
    }

    /// Adds the child of an array. Most are predefined types, for which nothing recurs.
    #[inline]
    fn child(&mut self, child: &Datatype) -> Option<()> {
        match child.node() {
            Constructor::Leaf(_) => self.scalar(child),
            _ => self.array(child),
        }
    }

    #[inline]
    fn scalar(&mut self, datatype: &Datatype) -> Option<()> {
        let basic = datatype.as_basic()?;
        let scalar = self.architecture.scalar(basic)?;
        push_with(self.nodes, || Node::Leaf(Leaf::Basic(basic)));
        *self.bounds = Bounds::of_scalar(scalar);
        self.made.first = Run { start: 0, bytes: scalar.width.size.into(), items: 1 };
        Some(())
    }

    /// Adds an array of the last node: blocks from a displacement on, with a length, a count and a
    /// stride. If `stated`, its bounds go from 0 to that many units.
    #[inline(always)]
    fn blocks(
        &mut self,
        unit: Unit,
        [displacement, length, count, stride]: [i64; 4],
        stated: Option<i64>,
    ) -> Option<()> {
        /// Products of two such numbers and an extent are far below 2^63.
        const NEAR: i64 = 1 << 20;
        let near = |number: i64| (-NEAR..NEAR).contains(&number);
        let extent = self.bounds.extent();
        let stride = if count == 1 { 0 } else { stride };
        let filled = length > 0 && count > 0;
        if !filled || ![displacement, length, count, stride, extent].into_iter().all(near) {
            return None;
        }
        let scale = if unit == Unit::Extents { extent } else { 1 };
        let (first, step) = (displacement * scale, stride * scale);
        let (inner, outer) = ((length - 1) * extent, (count - 1) * step);
        let least = first + inner.min(0) + outer.min(0);
        self.bounds.spread(count * length, least, inner.abs() + outer.abs())?;
        let span = match stated {
            None if self.bounds.past_alignment() == 0 => Span::Natural,
            None => return None,
            Some(units) => {
                let whole = units.checked_mul(scale)?;
                *self.bounds = self.bounds.resized(0, whole).ok()?;
                Span::Stated { lower: 0, extent: if self.portable { units } else { whole } }
            }
        };
        self.made.first.start += first;
        self.made.repeat(length, extent)?;
        self.made.repeat(count, step)?;
        let (displacement, stride) =
            if self.portable { (displacement, stride) } else { (first, step) };
        let (length, count) = (length as u64, count as u64);
        let last = self.nodes.len() as u32 - 1;
        let vectors = || Vectors::one(Vector { displacement, length, count, stride });
        push_with(self.nodes, || Node::Array { child: last, vectors: vectors(), span });
        Some(())
    }

    fn structure(
        &mut self,
        blocklengths: &[i64],
        displacements: &[i64],
        children: &[Datatype],
    ) -> Option<()> {
        let mut members = Vec::with_capacity(children.len());
        let places = displacements.iter().map(|&displacement| Some(displacement));
        self.members(blocklengths, places, children, |child, length, place| {
            members.push(Placed { child, length, displacement: place });
        })?;
        let members = members.into_boxed_slice();
        push_with(self.nodes, || Node::Struct { members, span: Span::Natural });
        Some(())
    }

    fn simple(&mut self, blocklengths: &[i64], children: &[Datatype]) -> Option<()> {
        let mut members = Vec::with_capacity(children.len());
        let places = iter::repeat(None);
        self.members(blocklengths, places, children, |child, length, _| {
            members.push(Field { child, length });
        })?;
        let members = members.into_boxed_slice();
        push_with(self.nodes, || Node::Simple { members });
        Some(())
    }

    /// Makes the nodes of a struct's scalars, and passes each member to `push`: its node, its
    /// length and its displacement. A place of `None` is the one that C gives the member.
    #[inline]
    fn members(
        &mut self,
        blocklengths: &[i64],
        places: impl Iterator<Item = Option<i64>>,
        children: &[Datatype],
        mut push: impl FnMut(u32, u64, i64),
    ) -> Option<()> {
        if children.len() > Regular::SCALARS {
            return None;
        }
        // The distinct types of the members in the order of their nodes, and for each predefined
        // type its number among them, from 1 on.
        let (mut leaves, mut distinct) = ([Basic::Byte; Regular::SCALARS], 0);
        let mut numbers = [0u8; Basic::ALL.len()];
        let mut all = PlainStruct::new();
        let mut last: Option<Run> = None;
        for ((&length, place), child) in blocklengths.iter().zip(places).zip(children) {
            let basic = child.as_basic()?;
            let scalar = self.architecture.scalar(basic)?;
            let start = all.push(length, place, &Plain::of_scalar(scalar))?;
            let number = &mut numbers[basic.index()];
            if *number == 0 {
                leaves[distinct] = basic;
                distinct += 1;
                *number = distinct as u8;
            }
            let items = length as u64;
            push(u32::from(*number) - 1, items, start);
            let next = Run { start, bytes: items * u64::from(scalar.width.size), items };
            match &mut last {
                Some(last) if last.end() == start => {
                    last.bytes += next.bytes;
                    last.items += next.items;
                }
                last => {
                    if let Some(run) = last.replace(next) {
                        self.made.push(run);
                    }
                }
            }
        }
        self.made.push(last?);
        if self.made.later.len() >= Regular::RUNS {
            return None;
        }
        let leaves = leaves[..distinct].iter();
        // The root follows.
        self.nodes.reserve_exact(distinct + 1);
        self.nodes.extend(leaves.map(|&basic| Node::Leaf(Leaf::Basic(basic))));
        *self.bounds = all.padded()?;
        Some(())
    }
}
