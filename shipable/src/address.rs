//! Addresses as integers, and the arithmetic of `MPI_Aint` (MPI-5.0 section 5.1.6).

/// The address of a value in this process's memory (`MPI_Get_address`), from which displacements
/// between objects are computed.
///
/// ```
/// use shipable::{Datatype, address};
/// // Two variables as one type, with displacements relative to the first.
/// let (a, b) = (1i32, 2.5f64);
/// let gap = address::difference(address::of(&b), address::of(&a));
/// let both = Datatype::struct_(&[1, 1], &[0, gap], &[Datatype::int32(), Datatype::double()])?;
/// # Ok::<(), shipable::Error>(())
/// ```
#[doc(alias = "MPI_Get_address")]
pub fn of<T: ?Sized>(location: &T) -> i64 {
    // `MPI_Aint` holds the bits of a 64-bit pointer.
    std::ptr::from_ref(location).cast::<u8>() as usize as u64 as i64
}

/// The address at a displacement in bytes from another (`MPI_Aint_add`). Addresses wrap.
#[doc(alias = "MPI_Aint_add")]
pub const fn sum(base: i64, displacement: i64) -> i64 {
    base.wrapping_add(displacement)
}

/// The displacement in bytes from the second address to the first (`MPI_Aint_diff`). Addresses
/// wrap.
#[doc(alias = "MPI_Aint_diff")]
pub const fn difference(first: i64, second: i64) -> i64 {
    first.wrapping_sub(second)
}
