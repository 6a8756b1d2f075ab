//! The nodes of a type tree.

use smallvec::SmallVec;

use super::Datatype;
use super::distribution::{Distribution, Order};
use crate::basic::{Basic, Leaf};
use crate::signature::Signature;

/// A list of arguments. A short one lies in the node, which saves an allocation.
pub type List<T> = SmallVec<[T; 4]>;

/// A constructor with its arguments, in MPI's units.
///
/// Displacements and strides are in extents of the child. They are in bytes in structs, and where
/// the constructor's name starts with H.
///
/// `integer` marks a constructor of MPI-1, whose addresses are Fortran INTEGERs. It only changes
/// the combiner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Node {
    /// A predefined type, or one of Fortran's parametrised types.
    Leaf(Leaf),
    Dup {
        child: Datatype,
    },
    Contiguous {
        count: i64,
        child: Datatype,
    },
    Vector {
        count: i64,
        blocklength: i64,
        stride: i64,
        child: Datatype,
    },
    Hvector {
        count: i64,
        blocklength: i64,
        stride: i64,
        child: Datatype,
        integer: bool,
    },
    Indexed {
        blocklengths: List<i64>,
        displacements: List<i64>,
        child: Datatype,
    },
    Hindexed {
        blocklengths: List<i64>,
        displacements: List<i64>,
        child: Datatype,
        integer: bool,
    },
    IndexedBlock {
        blocklength: i64,
        displacements: List<i64>,
        child: Datatype,
    },
    HindexedBlock {
        blocklength: i64,
        displacements: List<i64>,
        child: Datatype,
    },
    Struct {
        blocklengths: List<i64>,
        displacements: List<i64>,
        children: List<Datatype>,
        integer: bool,
    },
    /// A struct with the displacements that C gives its members on each architecture.
    SimpleStruct {
        blocklengths: List<i64>,
        children: List<Datatype>,
    },
    Subarray {
        sizes: List<i64>,
        subsizes: List<i64>,
        starts: List<i64>,
        order: Order,
        child: Datatype,
    },
    Darray {
        size: i64,
        rank: i64,
        gsizes: Box<[i64]>,
        distribs: Box<[Distribution]>,
        /// `None` is `MPI_DISTRIBUTE_DFLT_DARG`.
        dargs: Box<[Option<i64>]>,
        psizes: Box<[i64]>,
        order: Order,
        child: Datatype,
    },
    Resized {
        lb: i64,
        extent: i64,
        child: Datatype,
    },
    /// The type of `MPI_Type_get_value_index` for a pair that MPI doesn't name.
    ValueIndex {
        value: Basic,
        index: Basic,
    },
}

/// The name of a constructor, as `MPI_Type_get_envelope` returns it (MPI-5.0 section 5.1.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Combiner {
    Named,
    Dup,
    Contiguous,
    Vector,
    HvectorInteger,
    Hvector,
    Indexed,
    HindexedInteger,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    StructInteger,
    Struct,
    /// A constructor of Longshore: MPI has no simple struct.
    SimpleStruct,
    Subarray,
    Darray,
    F90Real,
    F90Complex,
    F90Integer,
    Resized,
    ValueIndex,
}

impl Combiner {
    /// The constant's name, such as `MPI_COMBINER_HVECTOR`.
    pub const fn mpi_name(self) -> &'static str {
        match self {
            Combiner::Named => "MPI_COMBINER_NAMED",
            Combiner::Dup => "MPI_COMBINER_DUP",
            Combiner::Contiguous => "MPI_COMBINER_CONTIGUOUS",
            Combiner::Vector => "MPI_COMBINER_VECTOR",
            Combiner::HvectorInteger => "MPI_COMBINER_HVECTOR_INTEGER",
            Combiner::Hvector => "MPI_COMBINER_HVECTOR",
            Combiner::Indexed => "MPI_COMBINER_INDEXED",
            Combiner::HindexedInteger => "MPI_COMBINER_HINDEXED_INTEGER",
            Combiner::Hindexed => "MPI_COMBINER_HINDEXED",
            Combiner::IndexedBlock => "MPI_COMBINER_INDEXED_BLOCK",
            Combiner::HindexedBlock => "MPI_COMBINER_HINDEXED_BLOCK",
            Combiner::StructInteger => "MPI_COMBINER_STRUCT_INTEGER",
            Combiner::Struct => "MPI_COMBINER_STRUCT",
            Combiner::SimpleStruct => "LONGSHORE_COMBINER_SIMPLE_STRUCT",
            Combiner::Subarray => "MPI_COMBINER_SUBARRAY",
            Combiner::Darray => "MPI_COMBINER_DARRAY",
            Combiner::F90Real => "MPI_COMBINER_F90_REAL",
            Combiner::F90Complex => "MPI_COMBINER_F90_COMPLEX",
            Combiner::F90Integer => "MPI_COMBINER_F90_INTEGER",
            Combiner::Resized => "MPI_COMBINER_RESIZED",
            Combiner::ValueIndex => "MPI_COMBINER_VALUE_INDEX",
        }
    }
}

impl Node {
    /// The constructor's name.
    pub fn combiner(&self) -> Combiner {
        match self {
            Node::Leaf(Leaf::Basic(_)) => Combiner::Named,
            Node::Leaf(Leaf::F90Real { .. }) => Combiner::F90Real,
            Node::Leaf(Leaf::F90Complex { .. }) => Combiner::F90Complex,
            Node::Leaf(Leaf::F90Integer { .. }) => Combiner::F90Integer,
            Node::Dup { .. } => Combiner::Dup,
            Node::Contiguous { .. } => Combiner::Contiguous,
            Node::Vector { .. } => Combiner::Vector,
            Node::Hvector { integer: true, .. } => Combiner::HvectorInteger,
            Node::Hvector { .. } => Combiner::Hvector,
            Node::Indexed { .. } => Combiner::Indexed,
            Node::Hindexed { integer: true, .. } => Combiner::HindexedInteger,
            Node::Hindexed { .. } => Combiner::Hindexed,
            Node::IndexedBlock { .. } => Combiner::IndexedBlock,
            Node::HindexedBlock { .. } => Combiner::HindexedBlock,
            Node::Struct { integer: true, .. } => Combiner::StructInteger,
            Node::Struct { .. } => Combiner::Struct,
            Node::SimpleStruct { .. } => Combiner::SimpleStruct,
            Node::Subarray { .. } => Combiner::Subarray,
            Node::Darray { .. } => Combiner::Darray,
            Node::Resized { .. } => Combiner::Resized,
            Node::ValueIndex { .. } => Combiner::ValueIndex,
        }
    }

    /// The types that the constructor was given, in order.
    pub fn children(&self) -> &[Datatype] {
        match self {
            Node::Leaf(_) | Node::ValueIndex { .. } => &[],
            Node::Struct { children, .. } | Node::SimpleStruct { children, .. } => children,
            Node::Dup { child }
            | Node::Contiguous { child, .. }
            | Node::Vector { child, .. }
            | Node::Hvector { child, .. }
            | Node::Indexed { child, .. }
            | Node::Hindexed { child, .. }
            | Node::IndexedBlock { child, .. }
            | Node::HindexedBlock { child, .. }
            | Node::Subarray { child, .. }
            | Node::Darray { child, .. }
            | Node::Resized { child, .. } => std::slice::from_ref(child),
        }
    }

    /// Whether both are the same constructor with equal arguments. The children may differ.
    #[rustfmt::skip] // one row for each constructor
    pub(super) fn is_same_call(&self, other: &Node) -> bool {
        use Node::*;
        if self.combiner() != other.combiner() || self.children().len() != other.children().len() {
            return false;
        }
        match (self, other) {
            (Leaf(a), Leaf(b)) => a == b,
            (Dup { .. }, Dup { .. }) => true,
            (Contiguous { count: a, .. }, Contiguous { count: b, .. }) => a == b,
            (Vector { count: a, blocklength: b, stride: c, .. }, Vector { count: d, blocklength: e, stride: f, .. })
            | (Hvector { count: a, blocklength: b, stride: c, .. }, Hvector { count: d, blocklength: e, stride: f, .. }) =>
                (a, b, c) == (d, e, f),
            (Indexed { blocklengths: a, displacements: b, .. }, Indexed { blocklengths: c, displacements: d, .. })
            | (Hindexed { blocklengths: a, displacements: b, .. }, Hindexed { blocklengths: c, displacements: d, .. })
            | (Struct { blocklengths: a, displacements: b, .. }, Struct { blocklengths: c, displacements: d, .. }) =>
                (a, b) == (c, d),
            (IndexedBlock { blocklength: a, displacements: b, .. }, IndexedBlock { blocklength: c, displacements: d, .. })
            | (HindexedBlock { blocklength: a, displacements: b, .. }, HindexedBlock { blocklength: c, displacements: d, .. }) =>
                (a, b) == (c, d),
            (SimpleStruct { blocklengths: a, .. }, SimpleStruct { blocklengths: b, .. }) => a == b,
            (Subarray { sizes: a, subsizes: b, starts: c, order: d, .. }, Subarray { sizes: e, subsizes: f, starts: g, order: h, .. }) =>
                (a, b, c, d) == (e, f, g, h),
            (
                Darray { size: a, rank: b, gsizes: c, distribs: d, dargs: e, psizes: f, order: g, .. },
                Darray { size: h, rank: i, gsizes: j, distribs: k, dargs: l, psizes: m, order: n, .. },
            ) => (a, b, c, d, e, f, g) == (h, i, j, k, l, m, n),
            (Resized { lb: a, extent: b, .. }, Resized { lb: c, extent: d, .. }) => (a, b) == (c, d),
            (ValueIndex { value: a, index: b }, ValueIndex { value: c, index: d }) => (a, b) == (c, d),
            _ => false,
        }
    }

    /// Whether the constructor makes a portable type of portable types.
    pub(crate) fn is_portable(&self) -> bool {
        match self {
            Node::Leaf(_)
            | Node::Dup { .. }
            | Node::Contiguous { .. }
            | Node::Vector { .. }
            | Node::Indexed { .. }
            | Node::IndexedBlock { .. }
            | Node::Subarray { .. }
            | Node::Darray { .. }
            | Node::SimpleStruct { .. } => true,
            Node::Hvector { .. }
            | Node::Hindexed { .. }
            | Node::HindexedBlock { .. }
            | Node::Struct { .. }
            | Node::Resized { .. }
            | Node::ValueIndex { .. } => false,
        }
    }

    /// The number of basic items, computed from the children's. `None` if it doesn't fit 64 bits.
    pub(super) fn items(&self) -> Option<u64> {
        match self {
            Node::Leaf(leaf) => Some(Signature::of_leaf(*leaf).count),
            Node::ValueIndex { .. } => Some(2),
            Node::Struct { blocklengths, children, .. }
            | Node::SimpleStruct { blocklengths, children } => {
                let mut members = blocklengths.iter().zip(children);
                members.try_fold(0u64, |before, (&blocklength, child)| {
                    before.checked_add(child.items().checked_mul(unsigned(blocklength)?)?)
                })
            }
            _ => {
                let [child] = self.children() else { return None };
                child.items().checked_mul(self.copies()?)
            }
        }
    }

    /// The hash of the signature, computed from the children's. The number of items must fit 64
    /// bits.
    pub(super) fn hash(&self) -> u128 {
        let of = Datatype::signature;
        let signature = match self {
            Node::Leaf(leaf) => Some(Signature::of_leaf(*leaf)),
            Node::ValueIndex { value, index } => {
                Signature::of_leaf((*value).into()).then(&Signature::of_leaf((*index).into()))
            }
            Node::Struct { blocklengths, children, .. }
            | Node::SimpleStruct { blocklengths, children } => {
                let mut members = blocklengths.iter().zip(children);
                members.try_fold(Signature::empty(), |before, (&blocklength, child)| {
                    before.then(&of(child).repeat(unsigned(blocklength)?)?)
                })
            }
            _ => self
                .children()
                .first()
                .zip(self.copies())
                .and_then(|(child, n)| of(child).repeat(n)),
        };
        signature.map_or(0, |signature| signature.hash)
    }

    /// The number of elements of its only child that the constructor takes. `None` if it doesn't
    /// fit 64 bits, or if the constructor has no child or several.
    fn copies(&self) -> Option<u64> {
        match self {
            Node::Leaf(_)
            | Node::ValueIndex { .. }
            | Node::Struct { .. }
            | Node::SimpleStruct { .. } => None,
            Node::Dup { .. } | Node::Resized { .. } => Some(1),
            Node::Contiguous { count, .. } => unsigned(*count),
            Node::Vector { count, blocklength, .. } | Node::Hvector { count, blocklength, .. } => {
                unsigned(*count)?.checked_mul(unsigned(*blocklength)?)
            }
            Node::Indexed { blocklengths, .. } | Node::Hindexed { blocklengths, .. } => {
                sum(blocklengths)
            }
            Node::IndexedBlock { blocklength, displacements, .. }
            | Node::HindexedBlock { blocklength, displacements, .. } => {
                let blocks = u64::try_from(displacements.len()).ok()?;
                blocks.checked_mul(unsigned(*blocklength)?)
            }
            Node::Subarray { subsizes, .. } => {
                let mut sizes = subsizes.iter();
                sizes.try_fold(1u64, |items, &n| items.checked_mul(unsigned(n)?))
            }
            Node::Darray { .. } => {
                let shares = self.shares()?;
                let mut counts = shares.iter().map(|share| share.count());
                counts.try_fold(1u64, |items, n| items.checked_mul(unsigned(n)?))
            }
        }
    }
}

fn unsigned(n: i64) -> Option<u64> {
    u64::try_from(n).ok()
}

/// The sum of counts that aren't negative. `None` if it doesn't fit 64 bits.
fn sum(counts: &[i64]) -> Option<u64> {
    // Both loops take vector instructions. The sum of as many short counts fits.
    let bits = counts.iter().fold(0, |bits, n| bits | n.unsigned_abs());
    if bits < 1 << 32 && counts.len() < 1 << 31 {
        return Some(counts.iter().map(|n| n.unsigned_abs()).sum());
    }
    let sum: u128 = counts.iter().map(|n| u128::from(n.unsigned_abs())).sum();
    u64::try_from(sum).ok()
}
