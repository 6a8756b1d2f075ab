//! The rows of a table of types.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use shipable::Datatype;
use shipable::basic::Basic;
use shipable::datatype::Node;

use super::Handle;
use crate::object::Card;
use crate::types::{ForeignType, LeafKey, Type};

/// The type of a row. A clone is another reference to the same type. The datatype is the one by
/// which the table finds the rows of the type.
#[derive(Clone)]
pub(super) enum Named {
    Built(Datatype, Arc<Card>),
    Committed(Datatype, Type),
    Foreign(ForeignType),
}

#[derive(Default)]
pub(super) struct Table {
    /// The rows of handles that aren't freed, by handle.
    pub(super) rows: BTreeMap<u64, Named>,
    /// The last handle that was returned.
    pub(super) last: u64,
    /// The rows of types built here that aren't freed, by the address of the datatype tree, which
    /// the row keeps alive. No two types have the same tree.
    pub(super) by_tree: HashMap<usize, BTreeSet<u64>>,
    /// The predefined types that were used, compiled at their first use.
    pub(super) basics: HashMap<Basic, Type>,
    /// Fortran's parametrised types. There is one for each choice of parameters.
    pub(super) kinds: HashMap<LeafKey, Handle>,
}

impl Named {
    pub(super) fn card(&self) -> &Arc<Card> {
        match self {
            Named::Built(_, card) => card,
            Named::Committed(_, own) => own.shared_card(),
            Named::Foreign(foreign) => foreign.shared_card(),
        }
    }

    pub(super) fn datatype(&self) -> Option<&Datatype> {
        match self {
            Named::Built(datatype, _) | Named::Committed(datatype, _) => Some(datatype),
            Named::Foreign(_) => None,
        }
    }

    pub(super) fn is_predefined(&self) -> bool {
        self.datatype().is_some_and(|datatype| matches!(datatype.node(), Node::Leaf(_)))
    }

    /// Whether there is no reference to the type beside this one and that of its row.
    pub(super) fn is_last(&self) -> bool {
        Arc::strong_count(self.card()) <= 2
    }
}

impl Table {
    pub(super) fn push(&mut self, named: Named) -> Handle {
        self.last += 1;
        let handle = Handle(self.last);
        if let Some(datatype) = named.datatype() {
            self.by_tree.entry(datatype.key().addr()).or_default().insert(self.last);
        }
        self.rows.insert(self.last, named);
        handle
    }

    pub(super) fn push_committed(&mut self, own: Type) -> Handle {
        let datatype = self.tree_of(own.shared_card(), own.datatype().clone());
        self.push(Named::Committed(datatype, own))
    }

    /// The datatype for a new row of a type. It is the type's own, or a twin if another type has it
    /// in this table: rows are found by it.
    pub(super) fn tree_of(&self, card: &Arc<Card>, datatype: Datatype) -> Datatype {
        match self.oldest(&datatype) {
            Some(other) if !Arc::ptr_eq(other.card(), card) => {
                card.set_apart();
                card.datatype().cloned().unwrap_or(datatype)
            }
            _ => datatype,
        }
    }

    /// The oldest row with this datatype tree.
    pub(super) fn oldest(&self, datatype: &Datatype) -> Option<&Named> {
        let rows = self.by_tree.get(&datatype.key().addr())?;
        self.rows.get(rows.first()?)
    }

    /// Commits all rows of a type.
    pub(super) fn commit(&mut self, datatype: &Datatype, committed: &Type) {
        let same_tree = self.by_tree.get(&datatype.key().addr()).into_iter().flatten();
        for number in same_tree {
            if let Some(row @ Named::Built(..)) = self.rows.get_mut(number) {
                *row = Named::Committed(datatype.clone(), committed.clone());
            }
        }
    }

    pub(super) fn forget(&mut self, handle: Handle, datatype: &Datatype) {
        let key = datatype.key().addr();
        if let Some(rows) = self.by_tree.get_mut(&key) {
            rows.remove(&handle.0);
            if rows.is_empty() {
                self.by_tree.remove(&key);
            }
        }
    }
}
