//! Tables of the subtrees that a walk has met.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::Datatype;

/// What a walk knows of the subtrees that it has met: most trees have few, and a list of those is faster than a hash table.
#[derive(Debug)]
pub(crate) struct Visited<V> {
    few: SmallVec<[(*const (), V); FEW]>,
    many: HashMap<*const (), V>,
}

const FEW: usize = 8;

impl<V: Copy> Visited<V> {
    pub(crate) fn new() -> Visited<V> {
        Visited { few: SmallVec::new(), many: HashMap::new() }
    }

    /// What is known of a subtree, if it was met.
    pub(crate) fn get(&self, datatype: &Datatype) -> Option<V> {
        let key = datatype.key();
        let listed = self.few.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        if self.many.is_empty() { listed } else { listed.or_else(|| self.many.get(&key).copied()) }
    }

    /// Notes one that wasn't met before.
    pub(crate) fn insert(&mut self, datatype: &Datatype, value: V) {
        match self.few.len() {
            FEW => {
                self.many.insert(datatype.key(), value);
            }
            _ => self.few.push((datatype.key(), value)),
        }
    }
}
