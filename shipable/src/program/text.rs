//! A program in text, for people and tests.
//!
//! ```text
//! extent 640 { 8 x 80: 8 @0 }
//! ```
//!
//! A block is its dimensions, `COUNT x STRIDE` from the outer to the inner one, then the units of a run and its start; a
//! conversion other than a copy stands before the units. `[...]` is a table, `COUNT x STRIDE @START { ... }` a loop.

use std::fmt::{Display, Formatter, Result};

use super::Program;
use super::op::{Body, Item, Op, Table};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "extent {} ", self.extent)?;
        self.body.fmt(f)
    }
}

impl Display for Body {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("{")?;
        for (index, op) in self.ops.iter().enumerate() {
            write!(f, "{}{op}", if index == 0 { " " } else { "; " })?;
        }
        f.write_str(" }")
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Op::Block(block) => {
                for dim in block.dims.iter().filter(|dim| dim.count > 1) {
                    write!(f, "{} x {}: ", dim.count, dim.stride)?;
                }
                write!(f, "{}{} @{}", block.item, block.units, block.start)
            }
            Op::Gather(gather) => {
                write!(f, "{}[", gather.item)?;
                let uneven = matches!(gather.table, Table::Ragged { .. });
                for index in 0..gather.len() {
                    let (offset, run) = gather.run(index);
                    if uneven || index == 0 {
                        let units = (run.end - run.start) / gather.item.stream();
                        write!(f, "{}{units}", if index == 0 { "" } else { " " })?;
                    }
                    write!(f, " @{offset}")?;
                }
                f.write_str("]")
            }
            Op::Loop(inner) => {
                write!(f, "{} x {} @{} {}", inner.count, inner.stride, inner.start, inner.body)
            }
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.is_copy() {
            true => Ok(()),
            false => write!(f, "{} ", self.pack),
        }
    }
}
