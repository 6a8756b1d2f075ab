//! The properties of MPI libraries that the random types and the comparison take into account.

use shipable::{Basic, Leaf};

use crate::peer::Library;

pub const MPICH: &str = "MPICH Version: 5.0.2";
pub const OPEN_MPI: &str = "Open MPI v5.0.11";

/// The predefined types that a library lacks. MPI doesn't define the halves. The others are
/// optional (MPI-5.0 section 3.2.2), and need a Fortran compiler.
pub fn absent(library: &Library) -> Vec<Basic> {
    use Basic::*;
    match library.name.as_str() {
        OPEN_MPI => {
            vec![Integer16, Real2, Logical16, Complex4, Complex32, Float16, Bfloat16]
        }
        _ => vec![Float16, Bfloat16],
    }
}

/// Open MPI's `MPI_COMPLEX32` has a size of 0, but `MPI_Type_match_size` returns it for a size of
/// 32.
pub fn match_size_differs(library: &Library, key: &str) -> bool {
    (library.name.as_str(), key) == (OPEN_MPI, "COMPLEX*32")
}

/// Properties of a library that `random.rs` avoids.
#[derive(Clone, Copy, Default)]
pub struct Quirks {
    /// In a struct, a member's bounds don't override those of other members, even if they were set.
    pub markers_ignored: bool,
    /// A struct whose members have one type isn't padded.
    pub one_type_unpadded: bool,
    /// Only structs are padded, not blocks at displacements in bytes.
    pub blocks_unpadded: bool,
    /// Members and blocks are padded one by one.
    pub padded_by_and_by: bool,
    /// Bytes at a stride of -1 are packed in ascending order.
    pub bytes_upwards: bool,
    /// Elements of a negative extent are packed from wrong addresses.
    pub negative_extents: bool,
    /// The last 6 bytes of types that are [`moved_as_x87`] aren't compared.
    pub sixteen_bytes_as_x87: bool,
}

/// The properties of a library that `random.rs` avoids.
pub fn of(library: &Library) -> Quirks {
    Quirks {
        markers_ignored: library.name == MPICH,
        one_type_unpadded: library.name == MPICH,
        blocks_unpadded: library.name == MPICH,
        padded_by_and_by: library.name == OPEN_MPI,
        bytes_upwards: library.name == OPEN_MPI,
        negative_extents: library.name == MPICH,
        sixteen_bytes_as_x87: library.name == MPICH,
    }
}

/// Types of 16 bytes that MPICH sometimes moves as x87 numbers of 10 bytes.
pub fn moved_as_x87(leaf: Leaf) -> bool {
    use Basic::*;
    matches!(leaf, Leaf::Basic(Integer16 | Real16 | Logical16 | Complex32))
}
