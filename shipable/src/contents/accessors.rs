//! The accessors that were proposed to the MPI Forum in 1995: type_count and type_elements.
//!
//! They return the top-level entries of a type: what its constructor was given, as the proposal prefers. Its MPI_BASIC is
//! [`Combiner::Named`] here, its MPI_CONTIG [`Combiner::Contiguous`], and so on. What each combiner has, where the
//! first block of rows is the proposal's and the second ours, for what came after it:
//!
//! | combiner | count | blocklengths | displacements | types |
//! |---|---|---|---|---|
//! | basic | 1 | - | - | the type itself |
//! | contiguous | 1 | the count | - | oldtype |
//! | vector, hvector | its count | blocklength | stride | oldtype |
//! | indexed, hindexed | number of blocks | all | all | oldtype |
//! | struct | number of members | all | all | all |
//! | **ours** | | | | |
//! | dup | 1 | 1 | 0 | oldtype |
//! | indexed_block, hindexed_block | number of blocks | the same for each | all | oldtype |
//! | simple_struct | number of members | all | -: it has none | all |
//! | resized | 3 | 1, 1, 1 | lb, 0, lb + extent | LB, oldtype, UB: what MPI-1 writes for it |
//! | subarray | dimensions | subsizes | starts | oldtype |
//! | darray | dimensions | indices owned | first index owned | oldtype |
//! | f90 real, complex, integer | 1, combiner basic | - | - | the type itself |
//! | value_index | 2 | 1, 1 | -: C lays it out | value, index |
//!
//! MPI-1's constructors have the entries of their successors, and their own combiner. Sizes and order of an array,
//! and a kind's precision and range, are [contents](super).
//!
//! The proposal contradicts itself on VECTOR: the count that is returned is *how many elements were actually filled
//! in*, and it is the vector's count, while one element of each array is filled. Here it is the vector's count, which
//! nothing else would tell; but never more than the count that was passed in, since a caller's loop over its arrays
//! relies on that. So a caller who passes what type_count returned gets the vector's count, and reads the first
//! entries only.
//!
//! A loop that descends until only basic types are left always ends: every type that is returned is a part of the
//! type that it was asked of, or a basic type that is returned with the combiner basic.

use crate::basic::{Basic, Leaf};
use crate::datatype::{Combiner, Datatype, Node};
use crate::error::{Class, Error, Result};

/// What [`type_elements`] returns. Each list holds what is filled in of its array, from its start; no list is longer
/// than the count that was passed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    /// The count on return.
    pub count: i64,
    /// The type's combiner.
    pub combiner: Combiner,
    /// Of `array_of_blocklengths`.
    pub blocklengths: Vec<i64>,
    /// Of `array_of_displacements`.
    pub displacements: Vec<i64>,
    /// Of `array_of_types`.
    pub types: Vec<Datatype>,
}

/// The number of entries of a type (MPI_Type_count of the proposal): how long arrays for [`type_elements`] have to be.
pub fn type_count(datatype: &Datatype) -> i64 {
    match datatype.node() {
        Node::Leaf(_) | Node::Dup { .. } | Node::Contiguous { .. } => 1,
        Node::Vector { count, .. } | Node::Hvector { count, .. } => *count,
        Node::Indexed { displacements: list, .. }
        | Node::Hindexed { displacements: list, .. }
        | Node::IndexedBlock { displacements: list, .. }
        | Node::HindexedBlock { displacements: list, .. }
        | Node::Struct { displacements: list, .. }
        | Node::SimpleStruct { blocklengths: list, .. }
        | Node::Subarray { starts: list, .. }
        | Node::Darray { gsizes: list, .. } => list.len() as i64,
        Node::Resized { .. } => 3,
        Node::ValueIndex { .. } => 2,
    }
}

/// At most the first `count` entries of a type (MPI_Type_elements of the proposal).
///
/// ```
/// use shipable::{Datatype, contents};
/// let record = Datatype::struct_(&[1, 2], &[0, 8], &[Datatype::int(), Datatype::double()])?;
/// let entries = contents::type_elements(&record, contents::type_count(&record))?;
/// assert_eq!((entries.blocklengths, entries.displacements), (vec![1, 2], vec![0, 8]));
/// # Ok::<(), shipable::Error>(())
/// ```
///
/// # Errors
/// COUNT for a count below zero. A count of zero touches no array.
pub fn type_elements(datatype: &Datatype, count: i64) -> Result<Elements> {
    if count < 0 {
        let problem = format!("count is {count}: counts are zero or greater");
        return Err(Error::Argument { call: "type_elements", class: Class::Count, problem });
    }
    let room = usize::try_from(count).unwrap_or(usize::MAX);
    let combiner = match datatype.node() {
        Node::Leaf(Leaf::F90Real { .. } | Leaf::F90Complex { .. } | Leaf::F90Integer { .. }) => {
            Combiner::Named
        }
        node => node.combiner(),
    };
    let first = |list: &[i64]| list.iter().copied().take(room).collect::<Vec<_>>();
    let (blocklengths, displacements) = match datatype.node() {
        Node::Leaf(_) => (vec![], vec![]),
        Node::Dup { .. } => (first(&[1]), first(&[0])),
        Node::Contiguous { count, .. } => (first(&[*count]), vec![]),
        Node::Vector { count, blocklength, stride, .. }
        | Node::Hvector { count, blocklength, stride, .. } => match count {
            0 => (vec![], vec![]),
            _ => (first(&[*blocklength]), first(&[*stride])),
        },
        Node::Indexed { blocklengths, displacements, .. }
        | Node::Hindexed { blocklengths, displacements, .. }
        | Node::Struct { blocklengths, displacements, .. } => {
            (first(blocklengths), first(displacements))
        }
        Node::IndexedBlock { blocklength, displacements, .. }
        | Node::HindexedBlock { blocklength, displacements, .. } => {
            let displacements = first(displacements);
            (vec![*blocklength; displacements.len()], displacements)
        }
        Node::SimpleStruct { blocklengths, .. } => (first(blocklengths), vec![]),
        Node::Subarray { subsizes, starts, .. } => (first(subsizes), first(starts)),
        Node::Darray { .. } => {
            let shares = datatype.node().shares().unwrap_or_default();
            let owned: Vec<_> = shares.iter().map(|share| share.count()).collect();
            let starts: Vec<_> = shares.iter().map(|share| share.first).collect();
            (first(&owned), first(&starts))
        }
        // A constructor checked that the sum fits.
        Node::Resized { lb, extent, .. } => (first(&[1, 1, 1]), first(&[*lb, 0, lb + extent])),
        Node::ValueIndex { .. } => (first(&[1, 1]), vec![]),
    };
    let mut types = match datatype.node() {
        Node::Leaf(_) => vec![datatype.clone()],
        Node::Resized { child, .. } => {
            vec![Basic::Lb.into(), child.clone(), Basic::Ub.into()]
        }
        Node::ValueIndex { value, index } => vec![(*value).into(), (*index).into()],
        node => node.children().iter().take(room).cloned().collect(),
    };
    let filled = type_count(datatype).min(count);
    types.truncate(usize::try_from(filled).unwrap_or(room));
    Ok(Elements { count: filled, combiner, blocklengths, displacements, types })
}
