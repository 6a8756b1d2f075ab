//! Datatypes: trees of constructor calls, as `MPI_Type_get_contents` gives them back.
//!
//! A tree is independent of any architecture, immutable, and never rewritten; subtrees are shared.
//! Left out: attributes, names and handles, which belong to the runtime.

mod arrays;
mod check;
mod constructors;
mod named;
mod node;

pub use arrays::{Distribution, Order, Share};
pub use named::TypeClass;
pub use node::{Combiner, Node};

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Class, Error, Result};
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
pub struct Datatype(Arc<Tree>);

struct Tree {
    node: Node,
    signature: Signature,
    depth: usize,
}

impl Datatype {
    /// The deepest nesting of constructors that is accepted, so that walks can recurse.
    pub const MAX_DEPTH: usize = 256;

    /// The constructor that made it, with its arguments.
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// Which constructor made it.
    pub fn combiner(&self) -> Combiner {
        self.0.node.combiner()
    }

    /// The type signature of one element, found at construction.
    pub fn signature(&self) -> Signature {
        self.0.signature
    }

    /// Whether both are the same object: what two handles being equal means in MPI.
    pub fn is(&self, other: &Datatype) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How deep constructors nest: 1 for a predefined type.
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// A value that is the same for clones of one object while it lives, and differs between
    /// objects: a key for tables that visit each shared subtree once.
    pub fn key(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }

    fn new(call: &'static str, node: Node) -> Result<Datatype> {
        let depth = 1 + node.children().iter().map(Datatype::depth).max().unwrap_or(0);
        if depth > Self::MAX_DEPTH {
            return Err(Error::Argument {
                call,
                class: Class::Type,
                problem: format!(
                    "the type would nest {depth} constructors, at most {} are supported: \
                     build it flatter",
                    Self::MAX_DEPTH
                ),
            });
        }
        let signature =
            node.signature().ok_or(Error::Overflow { what: "the number of basic items" })?;
        Ok(Datatype(Arc::new(Tree { node, signature, depth })))
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
