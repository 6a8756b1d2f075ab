//! The functions that make datatypes, commit them and free them (MPI-5.0 section 5.1).

use std::ffi::c_int;

use longshore::{Class, Datatype, Distribution, Order, TypeClass};

use crate::datatype::{Type, Version, dup, foreign, freed, handle_of, made, permanent};
use crate::edge::arg::{List, Numbers, Width};
use crate::edge::fault::{Fault, Result};
use crate::edge::handle::{Handle, find, remove};
use crate::edge::{constants as c, state};
use crate::objects::keyval;
use crate::objects::object::Card;

/// The length of an array, by a count that was checked.
fn length(count: i64) -> Result<usize> {
    usize::try_from(count).map_err(|_| Fault::new(Class::Count, format!("the count is {count}")))
}

pub fn type_contiguous(width: Width, count: i64, old: &Type) -> Result<Handle> {
    made(Datatype::contiguous(count, old.datatype())?, Version::new(width, [old]))
}

pub fn type_vector(
    width: Width,
    count: i64,
    blocklength: i64,
    stride: i64,
    old: &Type,
) -> Result<Handle> {
    made(Datatype::vector(count, blocklength, stride, old.datatype())?, Version::new(width, [old]))
}

pub fn type_create_hvector(
    width: Width,
    count: i64,
    blocklength: i64,
    stride: i64,
    old: &Type,
) -> Result<Handle> {
    made(Datatype::hvector(count, blocklength, stride, old.datatype())?, Version::new(width, [old]))
}

pub fn type_indexed(
    width: Width,
    count: i64,
    blocklengths: Numbers,
    displacements: Numbers,
    old: &Type,
) -> Result<Handle> {
    let n = length(count)?;
    let blocklengths = blocklengths.to_vec(n, "array_of_blocklengths")?;
    let displacements = displacements.to_vec(n, "array_of_displacements")?;
    made(
        Datatype::indexed(&blocklengths, &displacements, old.datatype())?,
        Version::new(width, [old]),
    )
}

pub fn type_create_hindexed(
    width: Width,
    count: i64,
    blocklengths: Numbers,
    displacements: Numbers,
    old: &Type,
) -> Result<Handle> {
    let n = length(count)?;
    let blocklengths = blocklengths.to_vec(n, "array_of_blocklengths")?;
    let displacements = displacements.to_vec(n, "array_of_displacements")?;
    made(
        Datatype::hindexed(&blocklengths, &displacements, old.datatype())?,
        Version::new(width, [old]),
    )
}

pub fn type_create_indexed_block(
    width: Width,
    count: i64,
    blocklength: i64,
    displacements: Numbers,
    old: &Type,
) -> Result<Handle> {
    let displacements = displacements.to_vec(length(count)?, "array_of_displacements")?;
    made(
        Datatype::indexed_block(blocklength, &displacements, old.datatype())?,
        Version::new(width, [old]),
    )
}

pub fn type_create_hindexed_block(
    width: Width,
    count: i64,
    blocklength: i64,
    displacements: Numbers,
    old: &Type,
) -> Result<Handle> {
    let displacements = displacements.to_vec(length(count)?, "array_of_displacements")?;
    made(
        Datatype::hindexed_block(blocklength, &displacements, old.datatype())?,
        Version::new(width, [old]),
    )
}

pub fn type_create_struct(
    width: Width,
    count: i64,
    blocklengths: Numbers,
    displacements: Numbers,
    types: List<Handle>,
) -> Result<Handle> {
    let n = length(count)?;
    let blocklengths = blocklengths.to_vec(n, "array_of_blocklengths")?;
    let displacements = displacements.to_vec(n, "array_of_displacements")?;
    let members = types.slice(n, "array_of_types")?.iter();
    let members = members.map(|handle| find::<Type>(*handle)).collect::<Result<Vec<_>>>()?;
    let version = Version::new(width, members.iter().map(|member| &**member));
    let members: Vec<_> = members.iter().map(|member| member.datatype().clone()).collect();
    made(Datatype::struct_(&blocklengths, &displacements, &members)?, version)
}

pub fn type_create_resized(width: Width, old: &Type, lb: i64, extent: i64) -> Result<Handle> {
    made(Datatype::resized(lb, extent, old.datatype())?, Version::new(width, [old]))
}

fn order(order: c_int) -> Result<Order> {
    match order {
        c::ORDER_C => Ok(Order::C),
        c::ORDER_FORTRAN => Ok(Order::Fortran),
        _ => Err(Fault::argument(format_args!("the order is {order}"))),
    }
}

pub fn type_create_subarray(
    width: Width,
    ndims: usize,
    sizes: Numbers,
    subsizes: Numbers,
    starts: Numbers,
    order_: c_int,
    old: &Type,
) -> Result<Handle> {
    let sizes = sizes.to_vec(ndims, "array_of_sizes")?;
    let subsizes = subsizes.to_vec(ndims, "array_of_subsizes")?;
    let starts = starts.to_vec(ndims, "array_of_starts")?;
    made(
        Datatype::subarray(&sizes, &subsizes, &starts, order(order_)?, old.datatype())?,
        Version::new(width, [old]),
    )
}

#[allow(clippy::too_many_arguments)] // MPI's
pub fn type_create_darray(
    width: Width,
    size: c_int,
    rank: c_int,
    ndims: usize,
    gsizes: Numbers,
    distribs: List<c_int>,
    dargs: List<c_int>,
    psizes: List<c_int>,
    order_: c_int,
    old: &Type,
) -> Result<Handle> {
    let gsizes = gsizes.to_vec(ndims, "array_of_gsizes")?;
    let distribs = distribs.slice(ndims, "array_of_distribs")?.iter();
    let distribs = distribs.map(|distribution| match *distribution {
        c::DISTRIBUTE_BLOCK => Ok(Distribution::Block),
        c::DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic),
        c::DISTRIBUTE_NONE => Ok(Distribution::None),
        other => Err(Fault::argument(format_args!("a distribution is {other}"))),
    });
    let distribs = distribs.collect::<Result<Vec<_>>>()?;
    let dargs = dargs.slice(ndims, "array_of_dargs")?.iter();
    let dargs = dargs.map(|darg| (*darg != c::DISTRIBUTE_DFLT_DARG).then_some(i64::from(*darg)));
    let dargs: Vec<_> = dargs.collect();
    let psizes = psizes.slice(ndims, "array_of_psizes")?.iter();
    let psizes: Vec<i64> = psizes.map(|size| i64::from(*size)).collect();
    let (size, rank) = (i64::from(size), i64::from(rank));
    let (order, child) = (order(order_)?, old.datatype());
    made(
        Datatype::darray(size, rank, &gsizes, &distribs, &dargs, &psizes, order, child)?,
        Version::new(width, [old]),
    )
}

/// A parameter of a kind of Fortran, which may be undefined.
fn parameter(value: c_int) -> Result<Option<u32>> {
    match value {
        c::UNDEFINED => Ok(None),
        _ => match u32::try_from(value) {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Fault::argument(format_args!("a precision or range is {value}"))),
        },
    }
}

pub fn type_create_f90_real(precision: c_int, range: c_int) -> Result<Handle> {
    permanent(Datatype::f90_real(parameter(precision)?, parameter(range)?)?)
}

pub fn type_create_f90_complex(precision: c_int, range: c_int) -> Result<Handle> {
    permanent(Datatype::f90_complex(parameter(precision)?, parameter(range)?)?)
}

pub fn type_create_f90_integer(range: c_int) -> Result<Handle> {
    let Some(range) = parameter(range)? else {
        return Err(Fault::argument("the range is undefined"));
    };
    permanent(Datatype::f90_integer(range)?)
}

/// The pair of two types that MPI names; null if there is none (MPI-5.0 section 6.9.4).
///
/// MPI allows unnamed pairs of further types, which the Rust API has. Programs in C don't get them:
/// tools that take types apart, such as mpi4py's, don't know their combiner.
pub fn type_get_value_index(value: &Type, index: &Type) -> Result<Handle> {
    let pair = Datatype::value_index(value.datatype(), index.datatype());
    Ok(pair.ok().and_then(|pair| pair.as_basic()).map_or(c::DATATYPE_NULL, handle_of))
}

pub fn type_match_size(class: c_int, size: c_int) -> Result<Handle> {
    let class = match class {
        c::TYPECLASS_INTEGER => TypeClass::Integer,
        c::TYPECLASS_REAL => TypeClass::Real,
        c::TYPECLASS_COMPLEX => TypeClass::Complex,
        _ => return Err(Fault::argument(format_args!("there is no type class {class}"))),
    };
    let wrong = |_| Fault::argument(format_args!("the size is {size}"));
    let size = u64::try_from(size).map_err(wrong)?;
    let architecture = state::state()?.rank().architecture();
    permanent(Datatype::match_size(class, size, architecture)?)
}

/// The copy functions come first: one that fails leaves no new type.
pub fn type_dup(handle: Handle) -> Result<Handle> {
    let old = find::<Type>(handle)?;
    let card = Card::with_attributes(keyval::copy(&*old, handle)?);
    dup(&old, card)
}

pub fn type_commit(handle: &mut Handle) -> Result<()> {
    find::<Type>(*handle)?.commit().map(drop)
}

/// Attributes are deleted first. A delete function that fails leaves the type as it is. Then no
/// function of the program can refuse any more, and the handlers of freed types are called.
pub fn type_free(handle: &mut Handle) -> Result<()> {
    if foreign::is(*handle) {
        freed::announce(*handle);
        return foreign::free(handle);
    }
    let datatype = find::<Type>(*handle)?;
    if datatype.is_permanent() {
        let what = format!("{} is predefined: it can't be freed", datatype.datatype().calls());
        return Err(Fault::new(Class::Type, what));
    }
    keyval::clear(&*datatype, *handle)?;
    freed::announce(*handle);
    remove::<Type>(handle).map(drop)
}
