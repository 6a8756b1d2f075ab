//! Packed buffers in XDR: all items but single bytes lie at multiples of four (RFC 4506 section 3).
//!
//! Bytes of `MPI_BYTE` and `MPI_PACKED` are XDR's opaque data: they follow each other without gaps,
//! and padding fills the last unit of four before another item. So an item's offset depends only on
//! the signature and the position, and calls may unpack in other portions than they packed.
//!
//! A program's stream has no padding. A type of only one kind of item needs none. For other types,
//! [`Units`] walks the form and moves each stretch of items of one kind by itself.

use crate::arch::Architecture;
use crate::basic::{Basic, Leaf};
use crate::error::{Error, Result};
use crate::form::{Form, Node, layout};
use crate::memory::{View, ViewMut};
use crate::program::{Partial, Program};

/// The bytes of an XDR unit.
const UNIT: u64 = 4;

/// The kinds and sizes of the items of a form, from which padding is computed.
#[derive(Debug)]
pub(crate) struct Units {
    /// One entry for each node of the form.
    nodes: Vec<Items>,
}

/// The items of a node.
#[derive(Clone, Copy, Debug)]
struct Items {
    /// The kind of the node's items; `None` if they are mixed, or if there are none.
    only: Option<Kind>,
    /// The bytes of the items, without padding.
    size: u64,
    advance: Advance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Units,
}

/// The distance by which items move a position, for each remainder of the position modulo a unit.
/// `None` if it doesn't fit 64 bits.
#[derive(Clone, Copy, Debug)]
struct Advance([Option<u64>; UNIT as usize]);

impl Advance {
    const NONE: Advance = Advance([Some(0); UNIT as usize]);

    fn of(kind: Kind, size: u64) -> Advance {
        Advance([0, 1, 2, 3].map(|past| match kind {
            Kind::Bytes => Some(size),
            Kind::Units => Some(padding(past) + size),
        }))
    }

    fn from(&self, position: u64) -> Option<u64> {
        self.0[(position % UNIT) as usize]
    }

    fn then(&self, next: &Advance) -> Advance {
        Advance([0, 1, 2, 3].map(|past| {
            let first = self.from(past)?;
            first.checked_add(next.from(past + first % UNIT)?)
        }))
    }

    fn repeat(&self, mut count: u64) -> Advance {
        let (mut all, mut square) = (Advance::NONE, *self);
        while count > 0 {
            if count & 1 == 1 {
                all = all.then(&square);
            }
            square = square.then(&square);
            count >>= 1;
        }
        all
    }
}

impl Items {
    fn of_leaf(leaf: Leaf) -> Result<Items> {
        let kind = match leaf {
            Leaf::Basic(Basic::Byte | Basic::Packed) => Kind::Bytes,
            _ => Kind::Units,
        };
        let size = Architecture::XDR.leaf(leaf)?.size.into();
        let advance = if size == 0 { Advance::NONE } else { Advance::of(kind, size) };
        Ok(Items { only: (size > 0).then_some(kind), size, advance })
    }

    const NONE: Items = Items { only: None, size: 0, advance: Advance::NONE };

    fn then(self, next: Items) -> Items {
        let only = match (self.size, next.size) {
            (_, 0) => self.only,
            (0, _) => next.only,
            _ => self.only.filter(|_| self.only == next.only),
        };
        // Can't overflow: `layout::sizes` checked the form's sizes.
        let size = self.size.wrapping_add(next.size);
        Items { only, size, advance: self.advance.then(&next.advance) }
    }

    fn repeat(self, count: u64) -> Items {
        match count {
            0 => Items::NONE,
            _ => Items {
                size: self.size.wrapping_mul(count),
                advance: self.advance.repeat(count),
                ..self
            },
        }
    }
}

impl Units {
    pub(crate) fn new(form: &Form) -> Result<Units> {
        // Checks that all sizes fit 64 bits, and that the Fortran kinds exist.
        layout::sizes(form.nodes(), &Architecture::XDR)?;
        let mut nodes: Vec<Items> = Vec::with_capacity(form.nodes().len());
        for node in form.nodes() {
            let items = match node {
                Node::Leaf(leaf) => Items::of_leaf(*leaf)?,
                _ => node.parts().fold(Items::NONE, |sum, (child, copies)| {
                    sum.then(nodes[child as usize].repeat(count(copies)))
                }),
            };
            nodes.push(items);
        }
        Ok(Units { nodes })
    }

    fn root(&self) -> Items {
        self.nodes.last().copied().unwrap_or(Items::NONE)
    }

    /// The bytes that `count` elements take at a position, padding included.
    pub(crate) fn length(&self, position: u64, count: u64) -> Result<u64> {
        let length = self.root().advance.repeat(count).from(position);
        length.ok_or(Error::Overflow { what: "the packed size" })
    }

    /// The bytes of `count` elements with padding at both ends: enough at any position that such
    /// sizes add up to.
    pub(crate) fn size(&self, count: u64) -> Result<u64> {
        let size = self.length(0, count)?.checked_next_multiple_of(UNIT);
        size.ok_or(Error::Overflow { what: "the packed size" })
    }

    /// Packs to a buffer with at least [`length`](Units::length) bytes after the position.
    pub(crate) fn pack(
        &self,
        typed: (&Form, &Program),
        memory: View<'_>,
        count: u64,
        packed: &mut [u8],
        position: u64,
    ) -> Result<()> {
        let (form, program) = typed;
        self.stretches(form, count, position, |stretch| {
            let Stretch { dense, padding, start, end } = stretch;
            program.pack(count, memory, dense, &mut packed[start as usize..end as usize])?;
            packed[padding as usize..start as usize].fill(0);
            Ok(())
        })
    }

    /// Unpacks from a buffer with at least [`length`](Units::length) bytes after the position.
    pub(crate) fn unpack(
        &self,
        typed: (&Form, &Program),
        packed: &[u8],
        position: u64,
        mut memory: ViewMut<'_>,
        count: u64,
    ) -> Result<()> {
        let (form, program) = typed;
        self.stretches(form, count, position, |Stretch { dense, start, end, .. }| {
            let input = &packed[start as usize..end as usize];
            program.unpack(count, memory.reborrow(), dense, input, &mut Partial::default())
        })
    }

    /// Calls `each` with the stretches of `count` elements at a position, in order.
    fn stretches(
        &self,
        form: &Form,
        count: u64,
        position: u64,
        each: impl FnMut(Stretch) -> Result<()>,
    ) -> Result<()> {
        let (nodes, kind) = (&*self.nodes, Kind::Bytes);
        let mut walk = Walk { form, nodes, kind, length: 0, dense: 0, position, each };
        if let Some(root) = nodes.len().checked_sub(1) {
            walk.node(root, count)?;
        }
        walk.finish()
    }
}

/// A sequence of adjacent items of one kind.
struct Stretch {
    /// Its offset in the program's stream.
    dense: u64,
    /// The offset in the buffer of the padding before it.
    padding: u64,
    /// The range in the buffer.
    start: u64,
    end: u64,
}

/// A walk over the items of a form, which collects stretches.
struct Walk<'a, E> {
    form: &'a Form,
    nodes: &'a [Items],
    /// The kind of the current stretch.
    kind: Kind,
    length: u64,
    dense: u64,
    position: u64,
    each: E,
}

impl<E: FnMut(Stretch) -> Result<()>> Walk<'_, E> {
    fn node(&mut self, index: usize, times: u64) -> Result<()> {
        let items = &self.nodes[index];
        if items.size == 0 || times == 0 {
            return Ok(());
        }
        if let Some(kind) = items.only {
            if kind != self.kind {
                self.finish()?;
                self.kind = kind;
            }
            self.length += items.size * times;
            return Ok(());
        }
        let form = self.form;
        for _ in 0..times {
            for (child, copies) in form.nodes()[index].parts() {
                self.node(child as usize, count(copies))?;
            }
        }
        Ok(())
    }

    /// Ends the current stretch.
    fn finish(&mut self) -> Result<()> {
        if self.length == 0 {
            return Ok(());
        }
        let padding = self.position;
        let start = match self.kind {
            Kind::Bytes => padding,
            Kind::Units => padding + self::padding(padding),
        };
        let end = start + self.length;
        (self.each)(Stretch { dense: self.dense, padding, start, end })?;
        (self.dense, self.position, self.length) = (self.dense + self.length, end, 0);
        Ok(())
    }
}

/// The bytes from a position to the next unit.
fn padding(position: u64) -> u64 {
    position.wrapping_neg() % UNIT
}

/// The number of copies. It fits 64 bits if their sizes do.
fn count(copies: i128) -> u64 {
    u64::try_from(copies).unwrap_or(u64::MAX)
}
