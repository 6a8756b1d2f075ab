//! Runs: sequences of leaves that adjoin, before they become operations.

use super::op::{Block, Item, Ops, push_block};
use crate::basic::{Leaf, Makeup};
use crate::bounds::Bounds;
use crate::convert::Conversion;
use crate::dims::Dim;

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
