//! Classes of equal subtrees of a type, computed by visiting each shared object once.

use std::collections::HashMap;

use super::pieces::pieces;
use crate::basic::Basic;
use crate::datatype::Datatype;

/// The classes of equal types: each class has one number.
pub(super) struct Classes {
    /// The classes of the visited objects, by their keys.
    known: HashMap<*const (), usize>,
    numbers: HashMap<Root, usize>,
    roots: Vec<Root>,
}

/// The root of a type with the classes of its children. Types of one class have equal roots.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Root {
    Basic(Basic),
    /// A constructor's own text, split at its children.
    Derived {
        pieces: Vec<String>,
        children: Vec<usize>,
    },
}

impl Classes {
    pub fn new() -> Classes {
        Classes { known: HashMap::new(), numbers: HashMap::new(), roots: Vec::new() }
    }

    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    pub fn of(&mut self, datatype: &Datatype) -> usize {
        if let Some(&class) = self.known.get(&datatype.key()) {
            return class;
        }
        let root = match datatype.as_basic() {
            Some(basic) => Root::Basic(basic),
            None => Root::Derived {
                pieces: pieces(datatype.node()),
                children: datatype.node().children().iter().map(|child| self.of(child)).collect(),
            },
        };
        let class = *self.numbers.entry(root).or_insert_with_key(|root| {
            self.roots.push(root.clone());
            self.roots.len() - 1
        });
        self.known.insert(datatype.key(), class);
        class
    }
}
