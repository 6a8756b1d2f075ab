//! Datatypes: trees of constructor calls, as `MPI_Type_get_contents` gives them back.
//!
//! A tree is independent of any architecture, immutable, and never rewritten; subtrees are shared.
//! Left out: attributes, names and handles, which belong to the runtime.

mod arrays;
mod check;
mod constructors;
mod named;
mod node;
mod visited;

pub use arrays::{Distribution, Order, Share};
pub use named::TypeClass;
pub use node::{Combiner, Node};
pub(crate) use visited::Visited;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use crate::error::{Class, Error, Result};
use crate::limits;
use crate::signature::Signature;

/// A datatype (MPI-5.0 chapter 5): a constructor with its arguments. Cloning shares it.
///
/// ```
/// use shipable::{Architecture, Datatype};
/// // A column of a matrix of doubles with ten columns and eight rows.
/// let column = Datatype::vector(8, 1, 10, &Datatype::double())?;
/// assert_eq!(column.to_string(), "U1(V:d:8:1:10)");
/// assert_eq!(column.bounds(&Architecture::S390X)?.extent(), 8 * (7 * 10 + 1));
/// # Ok::<(), shipable::Error>(())
/// ```
#[derive(Clone)]
pub struct Datatype(Root);

/// Where a tree lies. The predefined types are there for good, and nobody counts their users.
#[derive(Clone)]
enum Root {
    Named(&'static Tree),
    Made(Arc<Tree>),
}

struct Tree {
    node: Node,
    depth: usize,
    /// Basic items, and the hash of their sequence once that was asked for.
    items: u64,
    hash: OnceLock<u128>,
}

impl Datatype {
    /// The deepest nesting of constructors that is accepted, so that walks can recurse.
    pub const MAX_DEPTH: usize = limits::MAX_DEPTH;

    #[inline]
    fn tree(&self) -> &Tree {
        match &self.0 {
            Root::Named(tree) => tree,
            Root::Made(tree) => tree,
        }
    }

    /// The constructor that made it, with its arguments.
    #[inline]
    pub fn node(&self) -> &Node {
        &self.tree().node
    }

    /// Which constructor made it.
    pub fn combiner(&self) -> Combiner {
        self.tree().node.combiner()
    }

    /// The type signature of one element, found when it is first asked for.
    pub fn signature(&self) -> Signature {
        let Tree { node, items, hash, .. } = self.tree();
        Signature { hash: *hash.get_or_init(|| node.hash()), count: *items }
    }

    /// Basic items of one element, a pair's being two.
    #[inline]
    pub(crate) fn items(&self) -> u64 {
        self.tree().items
    }

    /// Whether both are the same object: what two handles being equal means in MPI.
    pub fn is(&self, other: &Datatype) -> bool {
        std::ptr::eq(self.tree(), other.tree())
    }

    /// How deep constructors nest: 1 for a predefined type.
    #[inline]
    pub fn depth(&self) -> usize {
        self.tree().depth
    }

    /// A value that is the same for clones of one object while it lives, and differs between
    /// objects: a key for tables that visit each shared subtree once.
    pub fn key(&self) -> *const () {
        std::ptr::from_ref(self.tree()).cast()
    }

    fn new(call: &'static str, node: Node) -> Result<Datatype> {
        let depth = 1 + node.children().iter().map(Datatype::depth).max().unwrap_or(0);
        let items = node.items();
        Datatype::made(call, node, depth, items)
    }

    /// Of a constructor that takes one child so many times; none where that leaves 64 bits.
    #[inline(always)]
    fn of_one(
        call: &'static str,
        child: &Datatype,
        copies: Option<u64>,
        node: Node,
    ) -> Result<Datatype> {
        let items = copies.and_then(|copies| child.items().checked_mul(copies));
        Datatype::made(call, node, 1 + child.depth(), items)
    }

    /// In line, so that a node's few words are written where they stay: copies of what was only just written wait for it.
    #[inline(always)]
    fn made(call: &'static str, node: Node, depth: usize, items: Option<u64>) -> Result<Datatype> {
        if depth > Self::MAX_DEPTH {
            return Err(too_deep(call, depth));
        }
        let items = items.ok_or_else(|| Error::overflow("the number of basic items"))?;
        Ok(Datatype(Root::Made(Arc::new(Tree { node, depth, items, hash: OnceLock::new() }))))
    }
}

#[cold]
fn too_deep(call: &'static str, depth: usize) -> Error {
    Error::Argument {
        call,
        class: Class::Type,
        problem: format!(
            "the type would nest {depth} constructors, at most {} are supported: build it flatter",
            Datatype::MAX_DEPTH
        ),
    }
}

/// Equal trees of equal constructor calls, wherever they lie. Subtrees are compared once, however often they are shared.
impl PartialEq for Datatype {
    fn eq(&self, other: &Datatype) -> bool {
        let mut pending = vec![(self, other)];
        let mut compared = HashSet::new();
        while let Some((a, b)) = pending.pop() {
            if a.is(b) || !compared.insert((a.key(), b.key())) {
                continue;
            }
            let same = a.depth() == b.depth()
                && a.signature() == b.signature()
                && a.node().is_same_call(b.node());
            if !same {
                return false;
            }
            pending.extend(a.node().children().iter().zip(b.node().children()));
        }
        true
    }
}

impl Eq for Datatype {}

impl std::fmt::Debug for Datatype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Datatype({self})")
    }
}
