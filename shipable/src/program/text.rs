//! The text form of a program, for people and tests.
//!
//! ```text
//! extent 640 { 8 x 80: 8 @0 }
//! ```
//!
//! A block is its dimensions, `COUNT x STRIDE` from the outermost to the innermost, then the units
//! of a run and its start. A conversion other than a copy stands before the units. `[...]` is a
//! table, and `COUNT x STRIDE @START { ... }` is a loop. The first loop over a shared body writes
//! it out as `#1{ ... }`, and the others refer to it as `#1`.

use std::collections::HashMap;
use std::fmt::{Debug, Display, Formatter, Result};

use super::Program;
use super::op::{Body, Item, Op, Table};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut printer = Printer::default();
        printer.count(&self.body);
        write!(f, "extent {} ", self.extent)?;
        printer.body(&self.body, f)
    }
}

/// Equal to the display form: the derived form would print a shared body once for each of its
/// loops.
impl Debug for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Program({self})")
    }
}

/// The state of printing one program. Bodies are identified by their addresses.
#[derive(Default)]
struct Printer {
    /// The number of loops that share a body.
    uses: HashMap<*const Body, u64>,
    /// The numbers of the shared bodies that are written out already.
    numbers: HashMap<*const Body, usize>,
}

impl Printer {
    /// Counts the uses of every body below this one.
    fn count(&mut self, body: &Body) {
        for op in &body.ops {
            if let Op::Loop(inner) = op {
                let uses = self.uses.entry(&*inner.body).or_default();
                *uses += 1;
                if *uses == 1 {
                    self.count(&inner.body);
                }
            }
        }
    }

    fn body(&mut self, body: &Body, f: &mut Formatter<'_>) -> Result {
        let key = std::ptr::from_ref(body);
        if let Some(number) = self.numbers.get(&key) {
            return write!(f, "#{number}");
        }
        if self.uses.get(&key).is_some_and(|&uses| uses > 1) {
            let number = self.numbers.len() + 1;
            self.numbers.insert(key, number);
            write!(f, "#{number}")?;
        }
        f.write_str("{")?;
        for (index, op) in body.ops.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { "; " })?;
            self.op(op, f)?;
        }
        f.write_str(" }")
    }

    fn op(&mut self, op: &Op, f: &mut Formatter<'_>) -> Result {
        match op {
            Op::Block(block) => {
                for dim in block.dims.iter().filter(|dim| dim.count > 1) {
                    write!(f, "{} x {}: ", dim.count, dim.stride)?;
                }
                write!(f, "{}{} @{}", block.item(), block.units, block.start)
            }
            Op::Gather(gather) => {
                write!(f, "{}[", gather.item())?;
                let uneven = matches!(gather.table, Table::Ragged { .. });
                for index in 0..gather.len() {
                    let (offset, run) = gather.run(index);
                    if uneven || index == 0 {
                        let units = (run.end - run.start) / gather.item().stream();
                        write!(f, "{}{units}", if index == 0 { "" } else { " " })?;
                    }
                    write!(f, " @{offset}")?;
                }
                f.write_str("]")
            }
            Op::Loop(inner) => {
                write!(f, "{} x {} @{} ", inner.count, inner.stride, inner.start)?;
                self.body(&inner.body, f)
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
