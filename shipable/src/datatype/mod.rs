//! Datatypes: trees of constructor calls with their arguments.
//!
//! A tree keeps each call exactly, so that `MPI_Type_get_contents` can return its arguments. It is
//! immutable and independent of any architecture, and subtrees are shared.
//!
//! Left out: attributes, names and handles, which belong to the runtime.

mod arrays;
mod check;
mod constructors;
mod distribution;
mod named;
mod node;
mod strided;
mod visited;

pub use distribution::{DISTRIBUTE_DFLT_DARG, Distribution, Order, Share};
pub use named::TypeClass;
pub use node::{Combiner, List, Node};
pub(crate) use visited::Visited;

use std::collections::HashSet;
use std::sync::OnceLock;

use triomphe::UniqueArc;

use crate::error::{Class, Error, Result};
use crate::limits;
use crate::shared::{Counted, place};
use crate::signature::Signature;

/// A datatype (MPI-5.0 chapter 5): a constructor with its arguments. Clones share it.
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

/// A pointer to the root of a tree. The predefined types are static, so they need no reference
/// count.
#[derive(Clone)]
enum Root {
    Named(&'static Tree),
    Made(Counted<Tree>),
}

struct Tree {
    node: Node,
    depth: usize,
    /// The number of basic items in one element.
    items: u64,
    /// Whether this constructor and all constructors below it are portable.
    portable: bool,
    /// The signature's hash, computed on first use.
    hash: OnceLock<u128>,
}

impl Datatype {
    /// The deepest nesting of constructors that is accepted. It bounds the recursion of tree walks.
    pub const MAX_DEPTH: usize = limits::MAX_DEPTH;

    /// The deepest nesting of dups: see [`Datatype::dup`].
    pub const MAX_DUPS: usize = 16;

    #[inline]
    fn tree(&self) -> &Tree {
        match &self.0 {
            Root::Named(tree) => tree,
            Root::Made(tree) => tree,
        }
    }

    /// The constructor that made this type, with its arguments.
    #[inline]
    pub fn node(&self) -> &Node {
        &self.tree().node
    }

    /// The name of the constructor that made this type.
    #[inline]
    pub fn combiner(&self) -> Combiner {
        self.tree().node.combiner()
    }

    /// The type signature of one element. Its hash is computed on first use.
    #[inline]
    pub fn signature(&self) -> Signature {
        let Tree { node, items, hash, .. } = self.tree();
        Signature { hash: *hash.get_or_init(|| node.hash()), count: *items }
    }

    /// The number of basic items in one element. A pair counts as two.
    #[inline]
    pub(crate) fn items(&self) -> u64 {
        self.tree().items
    }

    /// Whether the form is portable in every representation.
    #[inline]
    pub(crate) fn is_portable(&self) -> bool {
        self.tree().portable
    }

    /// Whether both are one object, as two equal handles in MPI are.
    #[inline]
    pub fn is(&self, other: &Datatype) -> bool {
        std::ptr::eq(self.tree(), other.tree())
    }

    /// The nesting depth of constructors: 1 for a predefined type.
    #[inline]
    pub fn depth(&self) -> usize {
        self.tree().depth
    }

    /// Whether this is a dup below which there are as many dups as may nest.
    fn is_deepest_dup(&self) -> bool {
        let mut datatype = self;
        for _ in 0..Datatype::MAX_DUPS {
            let Node::Dup { child } = datatype.node() else { return false };
            datatype = child;
        }
        true
    }

    /// The identity of this object, as a key for tables that visit each shared subtree once. Clones
    /// have equal keys, different objects have different ones; a key is valid while its object
    /// lives.
    #[inline]
    pub fn key(&self) -> *const () {
        std::ptr::from_ref(self.tree()).cast()
    }

    fn new(call: &'static str, node: Node) -> Result<Datatype> {
        let depth = 1 + node.children().iter().map(Datatype::depth).max().unwrap_or(0);
        let items = node.items();
        let portable = node.children().iter().all(Datatype::is_portable);
        Datatype::made(call, depth, items, portable, || node)
    }

    /// Makes a type whose constructor takes `copies` elements of one child. `copies` is `None` if
    /// their number doesn't fit 64 bits.
    #[inline(always)]
    fn of_one(
        call: &'static str,
        child: &Datatype,
        copies: Option<u64>,
        node: impl FnOnce() -> Node,
    ) -> Result<Datatype> {
        let items = copies.and_then(|copies| child.items().checked_mul(copies));
        Datatype::made(call, 1 + child.depth(), items, child.is_portable(), node)
    }

    /// Makes a struct, which takes a block of each of its children. No length of a block is
    /// negative. `node` returns the node without children, which are copied to where they stay.
    #[inline(always)]
    fn of_members(
        call: &'static str,
        blocklengths: &[i64],
        children: &[Datatype],
        node: impl FnOnce() -> Node,
    ) -> Result<Datatype> {
        let (mut depth, mut items, mut portable) = (0, Some(0u64), true);
        for (&length, child) in blocklengths.iter().zip(children) {
            let child = child.tree();
            depth = child.depth.max(depth);
            items = items.and_then(|n| n.checked_add(child.items.checked_mul(length as u64)?));
            portable &= child.portable;
        }
        let mut tree = Datatype::tree_of(call, 1 + depth, items, portable, node)?;
        if let Node::Struct { children: list, .. } | Node::SimpleStruct { children: list, .. } =
            &mut tree.node
        {
            list.extend(children.iter().cloned());
        }
        Ok(Datatype(Root::Made(tree.into())))
    }

    /// Makes a type, unless it is too deep or `items` is `None`. `portable`: all children are.
    #[inline(always)]
    fn made(
        call: &'static str,
        depth: usize,
        items: Option<u64>,
        portable: bool,
        node: impl FnOnce() -> Node,
    ) -> Result<Datatype> {
        let tree = Datatype::tree_of(call, depth, items, portable, node)?;
        Ok(Datatype(Root::Made(tree.into())))
    }

    /// Makes the tree of a type, unless it is too deep or `items` is `None`.
    ///
    /// Inlined, and the node is made last: otherwise it would be copied, and reading back bytes
    /// that were just written stalls (docs/tuning.md, "Building a datatype node").
    #[inline(always)]
    fn tree_of(
        call: &'static str,
        depth: usize,
        items: Option<u64>,
        portable: bool,
        node: impl FnOnce() -> Node,
    ) -> Result<UniqueArc<Tree>> {
        if depth > Self::MAX_DEPTH {
            return Err(too_deep(call, depth));
        }
        let items = items.ok_or_else(|| Error::overflow("the number of basic items"))?;
        let hash = OnceLock::new();
        let mut tree = place(|| Tree { node: node(), depth, items, portable, hash });
        tree.portable &= tree.node.is_portable();
        Ok(tree)
    }
}

impl Signature {
    /// The signature of one element of a type.
    pub fn of(datatype: &Datatype) -> Signature {
        datatype.signature()
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

/// Two trees are equal if they make equal constructor calls. Each pair of subtrees is compared
/// once, even if it is shared many times.
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
