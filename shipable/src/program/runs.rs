//! Runs, and the lowering of regular types: arrays of arrays of a leaf, and structs of leaves.

use super::budget::Budget;
use super::op::{Block, Dim, Item, Op, Ops, push_block};
use super::tables::TABLE;
use crate::basic::{Leaf, Makeup};
use crate::bounds::Bounds;
use crate::convert::Conversion;
use crate::error::Result;
use crate::form::Node;
use crate::form::vectors::{Stored, scaled};

/// Lowers a form whose stream has the memory's representation, if its nodes are arrays of arrays of
/// a leaf, or a struct of leaves. `None`, and any operations, if they aren't, or if they make more
/// than blocks.
///
/// Most types are, and need none of the lists of [`lower`](super::lower()) (docs/tuning.md,
/// "Regular types").
pub(super) fn regular(
    nodes: &[Node],
    layouts: &[Bounds],
    portable: bool,
    ops: &mut Ops,
    budget: &mut Budget,
) -> Result<Option<()>> {
    let run = |index: usize| match &nodes[index] {
        Node::Leaf(leaf) => copied(*leaf, &layouts[index]),
        _ => None,
    };
    let member_run = |child: u32, length: u64| {
        let run = run(child as usize)?;
        let adjoin = length == 1 || run.adjoins(layouts[child as usize].extent());
        adjoin.then(|| run.times(length))
    };
    let are_leaves = |nodes: &[Node]| nodes.iter().all(|node| matches!(node, Node::Leaf(_)));
    let mut runs = Runs { ops, last: None };
    match nodes {
        [leaves @ .., Node::Struct { members, .. }] if are_leaves(leaves) => {
            for member in members {
                let Some(run) = member_run(member.child, member.length) else { return Ok(None) };
                runs.add(member.displacement, run);
            }
        }
        [leaves @ .., Node::Simple { members }] if are_leaves(leaves) => {
            let mut end = 0;
            for member in members {
                let layout = &layouts[member.child as usize];
                let run = member_run(member.child, member.length).filter(|_| layout.is_plain());
                let Some(run) = run else { return Ok(None) };
                let place = layout.place_after(end);
                end = run.end(place);
                runs.add(place, run);
            }
        }
        [Node::Leaf(_)] => {
            let Some(run) = run(0) else { return Ok(None) };
            run.push(runs.ops, 0, 1, 0);
        }
        [Node::Leaf(_), arrays @ ..] => {
            let Some(run) = run(0) else { return Ok(None) };
            let ops = &mut *runs.ops;
            for (index, node) in arrays.iter().enumerate() {
                let Node::Array { child, vectors, .. } = node else { return Ok(None) };
                let Stored::Vectors([vector]) = vectors.stored() else { return Ok(None) };
                if *child as usize != index {
                    return Ok(None);
                }
                let extent = layouts[index].extent();
                let unit = if portable { extent } else { 1 };
                let start = scaled(vector.displacement, unit)?;
                let stride = scaled(vector.stride, unit)?;
                if ops.is_empty() {
                    run.push(ops, start, vector.length, extent);
                }
                let Some(Op::Block(block)) = ops.first_mut() else { return Ok(None) };
                if index > 0 {
                    if vector.length != 1 && !block.repeat(vector.length, extent) {
                        return Ok(None);
                    }
                    block.start = block.start.wrapping_add(start);
                }
                if vector.count != 1 && !block.repeat(vector.count, stride) {
                    return Ok(None);
                }
            }
        }
        _ => return Ok(None),
    }
    runs.finish();
    // Long sequences of runs become a table.
    if runs.ops.len() >= TABLE {
        return Ok(None);
    }
    budget.take::<Op>(runs.ops.len())?;
    Ok(Some(()))
}

/// Adds runs to operations, and joins those that adjoin.
pub(super) struct Runs<'a> {
    pub(super) ops: &'a mut Ops,
    /// The run that the next one may continue, and its displacement.
    pub(super) last: Option<(i64, Run)>,
}

impl Runs<'_> {
    #[inline]
    pub(super) fn add(&mut self, start: i64, next: Run) {
        match &mut self.last {
            Some((from, run)) if run.item == next.item && run.end(*from) == start => {
                run.units += next.units;
                run.items += next.items;
            }
            _ => {
                self.finish();
                self.last = Some((start, next));
            }
        }
    }

    #[inline]
    pub(super) fn finish(&mut self) {
        if let Some((start, run)) = self.last.take() {
            run.push(self.ops, start, 1, 0);
        }
    }
}

/// A run of units of an item, which hold basic items.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) item: Item,
    units: u64,
    items: u64,
}

impl Run {
    /// Whether copies of the run that lie `extent` bytes apart adjoin.
    pub(super) fn adjoins(&self, extent: i64) -> bool {
        u64::try_from(extent) == Ok(self.units * self.item.memory())
    }

    /// Copies of the run that adjoin.
    pub(super) fn times(self, copies: u64) -> Run {
        Run { units: self.units * copies, items: self.items * copies, ..self }
    }

    /// The end of the run in memory. The bounds of its type fit an `i64`, but a summand may wrap.
    pub(super) fn end(&self, start: i64) -> i64 {
        start.wrapping_add((self.units * self.item.memory()) as i64)
    }

    /// Adds the block of `length` copies of the run, `extent` bytes apart, from `start` on.
    #[inline]
    pub(super) fn push<'a>(
        &self,
        ops: &'a mut Ops,
        start: i64,
        length: u64,
        extent: i64,
    ) -> &'a mut Block {
        let Run { item, units, items } = *self;
        if length == 1 || self.adjoins(extent) {
            return push_block(ops, start, item, units * length, items * length);
        }
        let block = push_block(ops, start, item, units, items);
        block.dims[2] = Dim { count: length, stride: extent };
        block
    }

    /// The block of `length` copies of the run, `extent` bytes apart, from `start` on.
    #[inline]
    pub(super) fn repeated(&self, start: i64, length: u64, extent: i64) -> Block {
        let Run { item, units, items } = *self;
        if length == 1 || self.adjoins(extent) {
            return Block::run(start, item, units * length, items * length);
        }
        let mut block = Block::run(start, item, units, items);
        block.dims[2] = Dim { count: length, stride: extent };
        block
    }
}

/// The run of a leaf that is copied. `None` if there are gaps between its scalars.
pub(super) fn copied(leaf: Leaf, layout: &Bounds) -> Option<Run> {
    let scalars = match leaf {
        Leaf::Basic(basic) if basic.makeup() == Makeup::Single => 1,
        Leaf::F90Real { .. } | Leaf::F90Integer { .. } => 1,
        Leaf::Basic(_) | Leaf::F90Complex { .. } => 2,
    };
    let Bounds { true_lb, true_ub, size, .. } = *layout;
    let item = Item { pack: Conversion::Copy, leaf: None };
    let whole = size > 0 && true_lb == 0 && true_ub == size;
    whole.then_some(Run { item, units: size as u64, items: scalars })
}
