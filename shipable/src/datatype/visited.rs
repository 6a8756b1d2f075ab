//! Tables of the subtrees that a walk has visited.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::Datatype;

/// A table of the subtrees that a walk has visited, with a value for each.
///
/// Most trees have few subtrees: a list is faster for them than a hash table.
#[derive(Debug)]
pub(crate) struct Visited<V> {
    few: SmallVec<[(*const (), V); FEW]>,
    many: Option<HashMap<*const (), V>>,
}

const FEW: usize = 8;

impl<V: Copy> Visited<V> {
    pub(crate) fn new() -> Visited<V> {
        Visited { few: SmallVec::new(), many: None }
    }

    /// The value of a subtree; `None` if the walk hasn't visited it.
    pub(crate) fn get(&self, datatype: &Datatype) -> Option<V> {
        let key = datatype.key();
        let listed = self.few.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        listed.or_else(|| self.many.as_ref()?.get(&key).copied())
    }

    /// Adds a subtree that isn't in the table.
    pub(crate) fn insert(&mut self, datatype: &Datatype, value: V) {
        match self.few.len() {
            FEW => {
                self.many.get_or_insert_default().insert(datatype.key(), value);
            }
            _ => self.few.push((datatype.key(), value)),
        }
    }
}
