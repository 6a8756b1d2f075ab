//! Which subtrees of a type are equal, found in the time that its objects take and not its paths.

use std::collections::HashMap;

use super::print::pieces;
use crate::basic::Basic;
use crate::datatype::{Combiner, Datatype};

/// One class for each set of equal types.
pub(super) struct Classes {
    tell: Tell,
    /// Of the objects visited, by their keys.
    known: HashMap<*const (), usize>,
    numbers: HashMap<Shape, usize>,
    shapes: Vec<Shape>,
}

/// What is told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    /// All combiners.
    Combiners,
    /// All but those of MPI-1 from their successors, which have the same text.
    Successors,
}

/// What a type looks like, its children being of known classes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    Basic(Basic),
    /// Its own text, cut where the children's texts go.
    Derived {
        pieces: Vec<String>,
        children: Vec<usize>,
        /// Where the text doesn't tell it.
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
