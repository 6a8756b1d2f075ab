//! Classes of equal subtrees of a type, computed by visiting each shared object once.

use std::collections::HashMap;

use super::print::pieces;
use crate::basic::Basic;
use crate::datatype::{Combiner, Datatype};

/// The classes of equal types: each class has one number.
pub(super) struct Classes {
    tell: Tell,
    /// The classes of the visited objects, by their keys.
    known: HashMap<*const (), usize>,
    numbers: HashMap<Shape, usize>,
    shapes: Vec<Shape>,
}

/// The relation that makes two types members of one class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    /// Equal constructor calls.
    Combiners,
    /// Equal text. The text doesn't distinguish MPI-1's constructors from their successors.
    Successors,
}

/// The root of a type with the classes of its children. Types of one class have equal roots.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    Basic(Basic),
    /// A constructor's own text, split at its children.
    Derived {
        pieces: Vec<String>,
        children: Vec<usize>,
        /// The combiner, if the relation distinguishes more than the text.
        combiner: Option<Combiner>,
    },
}

impl Classes {
    pub fn new(tell: Tell) -> Classes {
        Classes { tell, known: HashMap::new(), numbers: HashMap::new(), shapes: Vec::new() }
    }

    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    pub fn of(&mut self, datatype: &Datatype) -> usize {
        if let Some(&class) = self.known.get(&datatype.key()) {
            return class;
        }
        let shape = match datatype.as_basic() {
            Some(basic) => Shape::Basic(basic),
            None => Shape::Derived {
                pieces: pieces(datatype.node()),
                children: datatype.node().children().iter().map(|child| self.of(child)).collect(),
                combiner: (self.tell == Tell::Combiners).then(|| datatype.combiner()),
            },
        };
        let class = *self.numbers.entry(shape).or_insert_with_key(|shape| {
            self.shapes.push(shape.clone());
            self.shapes.len() - 1
        });
        self.known.insert(datatype.key(), class);
        class
    }
}
