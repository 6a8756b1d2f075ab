//! The canonical printer.

use std::collections::HashMap;
use std::fmt::{Display, Formatter, Result, Write};

use super::classes::{Classes, Root};
use crate::datatype::Datatype;

impl Display for Datatype {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut classes = Classes::new();
        let class = classes.of(self);
        Printer { roots: classes.roots(), numbers: HashMap::new() }.typeref(class, f)
    }
}

struct Printer<'a> {
    roots: &'a [Root],
    /// The numbers of the classes printed so far.
    numbers: HashMap<usize, usize>,
}

impl Printer<'_> {
    fn typeref(&mut self, class: usize, text: &mut Formatter<'_>) -> Result {
        let (pieces, children) = match &self.roots[class] {
            Root::Basic(basic) => return text.write_str(basic.code()),
            Root::Derived { pieces, children, .. } => (pieces, children),
        };
        if let Some(number) = self.numbers.get(&class) {
            return write!(text, "U{number}");
        }
        let number = self.numbers.len() + 1;
        self.numbers.insert(class, number);
        write!(text, "U{number}(")?;
        // Pieces and children alternate.
        let mut children = children.iter();
        for piece in pieces {
            text.write_str(piece)?;
            if let Some(&child) = children.next() {
                self.typeref(child, text)?;
            }
        }
        text.write_char(')')
    }
}
