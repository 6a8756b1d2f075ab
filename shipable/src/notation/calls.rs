//! Datatypes on one line, as the MPI calls that make them.

use std::fmt::{Display, Formatter, Result};

use super::describe::call;
use crate::basic::Leaf;
use crate::datatype::{Datatype, Node};

/// A datatype as the MPI calls that make it, made by [`Datatype::calls`].
#[derive(Clone, Debug)]
pub struct Calls<'a>(&'a Datatype);

impl Datatype {
    /// The type as the MPI calls that make it, for texts that users of C read.
    ///
    /// ```
    /// use shipable::Datatype;
    /// let record = Datatype::struct_(&[1, 2], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// assert_eq!(
    ///     Datatype::vector(8, 1, 10, &record)?.calls().to_string(),
    ///     "MPI_Type_vector(8, 1, 10, \
    ///      MPI_Type_create_struct(2, {1, 2}, {0, 8}, {MPI_INT, MPI_DOUBLE}))"
    /// );
    /// assert_eq!(Datatype::long_long().calls().to_string(), "MPI_LONG_LONG_INT");
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn calls(&self) -> Calls<'_> {
        Calls(self)
    }
}

/// The values of an array.
struct Array<'a, T>(&'a [T]);

impl<T: Display> Display for Array<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (at, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if at == 0 { "{" } else { ", " })?;
        }
        f.write_str(if self.0.is_empty() { "{}" } else { "}" })
    }
}

/// The types of an array.
struct Types<'a>(&'a [Datatype]);

impl Display for Types<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (at, child) in self.0.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "{" } else { ", " }, child.calls())?;
        }
        f.write_str(if self.0.is_empty() { "{}" } else { "}" })
    }
}

impl Display for Calls<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(basic) = self.0.as_basic() {
            return f.write_str(basic.mpi_name());
        }
        write!(f, "{}(", call(self.0.combiner()))?;
        match self.0.node() {
            Node::Leaf(Leaf::F90Integer { range }) => write!(f, "{range}")?,
            Node::Leaf(leaf) => write!(f, "{leaf}")?,
            Node::Dup { child } => write!(f, "{}", child.calls())?,
            Node::Contiguous { count, child, .. } => write!(f, "{count}, {}", child.calls())?,
            Node::Vector { count, blocklength, stride, child, .. }
            | Node::Hvector { count, blocklength, stride, child, .. } => {
                write!(f, "{count}, {blocklength}, {stride}, {}", child.calls())?;
            }
            Node::Indexed { blocklengths, displacements, child, .. }
            | Node::Hindexed { blocklengths, displacements, child, .. } => {
                let (lengths, count) = (Array(blocklengths), blocklengths.len());
                write!(f, "{count}, {lengths}, {}, {}", Array(displacements), child.calls())?;
            }
            Node::IndexedBlock { blocklength, displacements, child, .. }
            | Node::HindexedBlock { blocklength, displacements, child, .. } => {
                let count = displacements.len();
                write!(f, "{count}, {blocklength}, {}, {}", Array(displacements), child.calls())?;
            }
            Node::Struct { blocklengths, displacements, children, .. } => {
                let (count, lengths) = (children.len(), Array(blocklengths));
                write!(f, "{count}, {lengths}, {}, {}", Array(displacements), Types(children))?;
            }
            Node::SimpleStruct { blocklengths, children } => {
                write!(f, "{}, {}, {}", children.len(), Array(blocklengths), Types(children))?;
            }
            Node::Subarray { sizes, subsizes, starts, child, .. } => {
                let (sizes, subsizes, starts) = (Array(sizes), Array(subsizes), Array(starts));
                write!(f, "{}, {sizes}, {subsizes}, {starts}, ", sizes.0.len())?;
                write!(f, "{}", child.calls())?;
            }
            Node::Darray { size, rank, gsizes, child, .. } => {
                write!(f, "{size}, {rank}, {}, {}, ..., ", gsizes.len(), Array(gsizes))?;
                write!(f, "{}", child.calls())?;
            }
            Node::Resized { lb, extent, child } => write!(f, "{}, {lb}, {extent}", child.calls())?,
            Node::ValueIndex { value, index } => write!(f, "{value}, {index}")?,
        }
        f.write_str(")")
    }
}
