//! Addresses as numbers: MPI_Aint's arithmetic (MPI-5.0 section 5.1.6).

/// The address of something in this process's memory, for displacements between objects (`MPI_Get_address`).
///
/// ```
/// use shipable::{Datatype, address};
/// // Two variables as one type, displacements counted from the first.
/// let (a, b) = (1i32, 2.5f64);
/// let gap = address::difference(address::of(&b), address::of(&a));
/// let both = Datatype::struct_(&[1, 1], &[0, gap], &[Datatype::int32(), Datatype::double()])?;
/// # Ok::<(), shipable::Error>(())
/// ```
pub fn of<T: ?Sized>(location: &T) -> i64 {
    // The bits of a pointer of 64 bits, as MPI_Aint has them.
    std::ptr::from_ref(location).cast::<u8>() as usize as u64 as i64
}

/// The address so many bytes from another (`MPI_Aint_add`). Addresses wrap.
pub const fn sum(base: i64, displacement: i64) -> i64 {
    base.wrapping_add(displacement)
}

/// The displacement that leads from the second address to the first (`MPI_Aint_diff`). Addresses wrap.
pub const fn difference(first: i64, second: i64) -> i64 {
    first.wrapping_sub(second)
}
