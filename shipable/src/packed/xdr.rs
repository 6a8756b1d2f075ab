//! XDR's units: all items but single bytes lie at multiples of four (RFC 4506 section 3).
//!
//! Bytes of MPI_BYTE and MPI_PACKED are XDR's opaque data: they follow each other, and are padded to four where something else
//! follows. So where an item lies depends on the signature and the position alone, and a buffer can be packed by some calls and
//! unpacked by others.
//!
//! A program's stream has no padding. Where the type has items of one kind alone there is none to be put in; otherwise
//! [`Units`] walks the form for the stretches of either kind, and moves them one by one.

use crate::arch::Architecture;
use crate::basic::{Basic, Leaf};
use crate::error::{Error, Result};
use crate::form::{Form, Node, layout};
use crate::memory::{View, ViewMut};
use crate::program::{Partial, Program};

/// The unit.
const UNIT: u64 = 4;

/// Which items of a type are bytes, and which fill units.
#[derive(Debug)]
pub(crate) struct Units {
    /// Of each node of the form.
    nodes: Vec<Items>,
}

/// What a node holds.
#[derive(Clone, Copy, Debug)]
struct Items {
    /// One kind of item alone, unless they are mixed. A node without items has either.
    only: Option<Kind>,
    /// Bytes without padding.
    size: u64,
    advance: Advance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Units,
}

/// By how much items move a position, which depends on how far past a unit it is; `None` where that leaves 64 bits.
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
        // The form's sizes were checked.
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
        // That sizes fit, and kinds exist.
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

    /// Bytes from the position on that `count` elements take there, padding included.
    pub(crate) fn length(&self, position: u64, count: u64) -> Result<u64> {
        let length = self.root().advance.repeat(count).from(position);
        length.ok_or(Error::Overflow { what: "the packed size" })
    }

    /// Bytes of `count` elements with padding on both sides: enough at any position that such sizes add up to.
    pub(crate) fn size(&self, count: u64) -> Result<u64> {
        let size = self.length(0, count)?.checked_next_multiple_of(UNIT);
        size.ok_or(Error::Overflow { what: "the packed size" })
    }

    /// Packs to where `length` says that there is room.
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

    /// Unpacks from where `length` says that there are so many bytes.
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

    /// Calls `each` with the stretches of items of one kind that `count` elements at a position are, in order.
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

/// Items of one kind, one after the other.
struct Stretch {
    /// Where they start in the program's stream.
    dense: u64,
    /// Where the padding before them starts in the buffer.
    padding: u64,
    /// Where they lie in the buffer.
    start: u64,
    end: u64,
}

/// A walk over the items of a form.
struct Walk<'a, E> {
    form: &'a Form,
    nodes: &'a [Items],
    /// The stretch that grows.
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

    /// Ends the stretch that grows.
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

/// Bytes from a position to the next unit.
fn padding(position: u64) -> u64 {
    position.wrapping_neg() % UNIT
}

/// How many copies there are, where their sizes fit 64 bits.
fn count(copies: i128) -> u64 {
    u64::try_from(copies).unwrap_or(u64::MAX)
}
