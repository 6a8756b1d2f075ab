//! The accessors of proposal 0 (docs/proposals.md): type_count and type_elements.
//!
//! They return the top-level entries of a type, that is, the arguments of its constructor. The
//! proposal's MPI_BASIC is [`Combiner::Named`], its MPI_CONTIG is [`Combiner::Contiguous`], and so
//! on. The first rows of the table are the proposal's. The rows below them cover the constructors
//! that MPI got later:
//!
//! | combiner | count | blocklengths | displacements | types |
//! |---|---|---|---|---|
//! | basic | 1 | - | - | the type itself |
//! | contiguous | 1 | the count | - | oldtype |
//! | vector, hvector | its count | blocklength | stride | oldtype |
//! | indexed, hindexed | number of blocks | all | all | oldtype |
//! | struct | number of members | all | all | all |
//! | **later constructors** | | | | |
//! | dup | 1 | 1 | 0 | oldtype |
//! | indexed_block, hindexed_block | number of blocks | the same for each | all | oldtype |
//! | simple_struct | number of members | all | -, it has none | all |
//! | resized | 3 | 1, 1, 1 | lb, 0, lb + extent | LB, oldtype, UB, as in MPI-1 |
//! | subarray | dimensions | subsizes | starts | oldtype |
//! | darray | dimensions | indices owned | first index owned | oldtype |
//! | f90 real, complex, integer | 1, combiner basic | - | - | the type itself |
//! | value_index | 2 | 1, 1 | -, C lays it out | value, index |
//!
//! MPI-1's constructors have the entries of their successors, with their own combiners. The sizes
//! and order of an array, and the precision and range of a Fortran kind, aren't entries: they are
//! in the [contents](super).
//!
//! The proposal contradicts itself on VECTOR. It defines the returned count as *how many elements
//! were actually filled in*, and also as the vector's count, although one element of each array is
//! filled. Here it is the vector's count, because no other result reports it. It is at most the
//! count that was passed in, because callers loop over arrays of that length. A caller that passes
//! the result of type_count gets the vector's count, and reads only the first entries.
//!
//! A loop that descends to the basic types always ends: each returned type is a part of the type
//! asked for, or a basic type with the combiner basic.

use crate::basic::{Basic, Leaf};
use crate::datatype::{Combiner, Datatype, Node};
use crate::error::{Class, Error, Result};

/// The result of [`type_elements`]. Each list holds the filled part of its array, from the start.
/// No list is longer than the count that was passed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    /// The returned count.
    pub count: i64,
    /// The type's combiner.
    pub combiner: Combiner,
    /// The filled part of `array_of_blocklengths`.
    pub blocklengths: Vec<i64>,
    /// The filled part of `array_of_displacements`.
    pub displacements: Vec<i64>,
    /// The filled part of `array_of_types`.
    pub types: Vec<Datatype>,
}

/// The number of entries of a type (MPI_Type_count of proposal 0): the array length that
/// [`type_elements`] needs.
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
        | Node::Subarray { starts: list, .. } => list.len() as i64,
        Node::Darray { gsizes, .. } => gsizes.len() as i64,
        Node::Resized { .. } => 3,
        Node::ValueIndex { .. } => 2,
    }
}

/// The first `count` entries of a type, or all if it has fewer (MPI_Type_elements of proposal 0).
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
/// COUNT for a negative count. With a count of 0, no array is touched.
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
        // The constructor checked that this sum fits 64 bits.
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
