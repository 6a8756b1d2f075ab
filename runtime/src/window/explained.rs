//! What a window has explained of the paths of its operations. `explain` has how.

use std::cell::RefCell;
use std::collections::HashSet;

/// What a window has explained so far.
#[derive(Default)]
pub(super) struct Explained(RefCell<HashSet<Told>>);

/// Operations that are explained together.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Told {
    /// The action's number.
    pub action: u8,
    pub target: i32,
    /// The target type's number.
    pub datatype: u64,
    /// The binary logarithm of the most bytes.
    pub size: u32,
    /// The path's index.
    pub path: usize,
}

impl Explained {
    /// Whether these operations are explained for the first time.
    pub(super) fn is_new(&self, told: Told) -> bool {
        self.0.borrow_mut().insert(told)
    }
}
