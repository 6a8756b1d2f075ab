//! The relation between a datatype in the memory of one architecture and the same datatype in the
//! memory of another: what a copy between the two, and a displacement in bytes, may take for
//! granted.
//!
//! x86-64 and aarch64, for example, differ in long double only. Whole architectures are compared by
//! [`Architecture::same_representation`], and a struct of doubles by its relation, which is equal.
//!
//! - The signs of `char` and `wchar_t` don't count. Conversions don't depend on them, and no
//!   operation but MPI_REPLACE and MPI_NO_OP takes such items
//!   ([`Op::check`](crate::reduce::Op::check)).
//! - Gaps don't count either. A struct with gaps is equal if its items are, and a copy must not
//!   write its gaps.
//!
//! **Displacements in bytes** are right in one memory. They are right in the other one, too, in two
//! cases. In the first, each basic type of the datatype has the same size and alignment in both. In
//! the second, all of them follow C's rule: each struct has its members at the displacements that C
//! gives them here in this order, and each resized extent is the one that C gives. Then C's rule
//! also gives those of the other memory, which are compared. All other displacements, such as
//! strides in bytes or packed structs, say nothing about the other memory.

use std::collections::HashMap;

use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::bounds::StructLayout;
use crate::datatype::{Datatype, Node};
use crate::error::Result;
use crate::form::{Form, Tag};

pub use crate::form::Difference;

/// The relation between the elements of a datatype in two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The same bytes at the same offsets, and the same extent: memory is copied.
    Equal,
    /// The same bytes at other offsets: packed data are copied.
    Moved,
    /// Other bytes: items are converted.
    Converted,
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Relation::Equal => "equal",
            Relation::Moved => "moved",
            Relation::Converted => "converted",
        })
    }
}

/// A datatype in two memories, compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Whether all items have the same bytes, wherever they lie.
    pub same_items: bool,
    /// The first difference between the two layouts; `None` if all items lie at the same offsets.
    pub difference: Option<Difference>,
}

impl Comparison {
    /// The relation between the elements in the two memories.
    pub fn relation(&self) -> Relation {
        match (self.same_items, self.difference) {
            (true, None) => Relation::Equal,
            (true, Some(_)) => Relation::Moved,
            (false, _) => Relation::Converted,
        }
    }

    /// Compares a datatype, with the form that it has in the memory of `here`.
    pub(crate) fn of(
        datatype: &Datatype,
        form: &Form,
        here: &Architecture,
        there: &Architecture,
    ) -> Result<Comparison> {
        if here.same_representation(there) || datatype.items() == 0 {
            return Ok(Comparison { same_items: true, difference: None });
        }
        let same_items = form.has_same_items(here, there)?;
        let difference = match form.tag() {
            Tag::Portable => form.difference(here, there)?,
            Tag::Locale => match form.misfit(here, there)? {
                None => None,
                unknown => match by_rule(datatype, here, &mut HashMap::new())? {
                    Some(portable) if has_same_bounds(datatype, &portable, here)? => {
                        Form::compile(&portable, here)?.difference(here, there)?
                    }
                    _ => unknown,
                },
            },
        };
        // A reader of the form computes the bounds of the other memory by the displacements as they
        // are, and the padding there.
        let difference = match (difference, form.tag()) {
            (None, Tag::Locale) => padding(datatype, here, there)?,
            (difference, _) => difference,
        };
        Ok(Comparison { same_items, difference })
    }
}

/// The difference between the extents of a datatype with these displacements in two memories.
fn padding(
    datatype: &Datatype,
    here: &Architecture,
    there: &Architecture,
) -> Result<Option<Difference>> {
    let extent = |at| -> Result<i64> { Ok(datatype.bounds(at)?.extent()) };
    let (here, there) = (extent(here)?, extent(there)?);
    Ok((here != there).then_some(Difference::Extent { here, there }))
}

/// The portable datatype of the same elements, if all displacements in bytes are those of C's rule
/// in the memory of an architecture.
///
/// Its bounds may be others than the datatype's, which a struct of resized members may leave
/// without its padding. `known` has the results for subtrees.
fn by_rule(
    datatype: &Datatype,
    here: &Architecture,
    known: &mut HashMap<*const (), Option<Datatype>>,
) -> Result<Option<Datatype>> {
    if datatype.is_portable() {
        return Ok(Some(datatype.clone()));
    }
    if let Some(portable) = known.get(&datatype.key()) {
        return Ok(portable.clone());
    }
    let portable = rewritten(datatype, here, known)?;
    known.insert(datatype.key(), portable.clone());
    Ok(portable)
}

fn rewritten(
    datatype: &Datatype,
    here: &Architecture,
    known: &mut HashMap<*const (), Option<Datatype>>,
) -> Result<Option<Datatype>> {
    let children = datatype.node().children();
    let mut portable = Vec::with_capacity(children.len());
    for child in children {
        let Some(child) = by_rule(child, here, known)? else { return Ok(None) };
        portable.push(child);
    }
    match (datatype.node(), children, &portable[..]) {
        (Node::Struct { blocklengths, displacements, .. }, ..) => {
            let mut layout = StructLayout::new();
            let places = blocklengths.iter().zip(displacements);
            for ((length, displacement), (child, made)) in
                places.zip(children.iter().zip(&portable))
            {
                let place = layout.push(*length, &made.bounds(here)?)?;
                // A member without elements has no place, and one element no extent.
                let is_placed = *length == 0 || child.items() == 0 || place == *displacement;
                if !is_placed || *length > 1 && !has_same_bounds(child, made, here)? {
                    return Ok(None);
                }
            }
            return Ok(Some(Datatype::simple_struct(blocklengths, &portable)?));
        }
        (Node::SimpleStruct { blocklengths, .. }, ..) => {
            // Its layout ignores the bounds that members set, but not their extents.
            for ((length, child), made) in blocklengths.iter().zip(children).zip(&portable) {
                if *length > 0 && !has_same_bounds(child, made, here)? {
                    return Ok(None);
                }
            }
            return Ok(Some(Datatype::simple_struct(blocklengths, &portable)?));
        }
        // The bounds that are stated are those of the type itself, which are compared where they
        // are used.
        (Node::Resized { lb, extent, .. }, _, [made]) => {
            let bounds = made.bounds(here)?;
            let is_rule = (bounds.lb, bounds.extent()) == (*lb, *extent);
            return Ok(is_rule.then(|| made.clone()));
        }
        (Node::Dup { .. }, _, [made]) => return Ok(Some(made.clone())),
        (Node::ValueIndex { value, index }, ..) => {
            let members = [(*value).into(), (*index).into()];
            return Ok(Some(Datatype::simple_struct(&[1, 1], &members)?));
        }
        (_, [child], [made]) if !has_same_bounds(child, made, here)? => return Ok(None),
        _ => {}
    }
    Ok(match (datatype.node(), &portable[..]) {
        (Node::Contiguous { count, .. }, [child]) => Some(Datatype::contiguous(*count, child)?),
        (Node::Vector { count, blocklength, stride, .. }, [child]) => {
            Some(Datatype::vector(*count, *blocklength, *stride, child)?)
        }
        (Node::Indexed { blocklengths, displacements, .. }, [child]) => {
            Some(Datatype::indexed(blocklengths, displacements, child)?)
        }
        (Node::IndexedBlock { blocklength, displacements, .. }, [child]) => {
            Some(Datatype::indexed_block(*blocklength, displacements, child)?)
        }
        (Node::Subarray { sizes, subsizes, starts, order, .. }, [child]) => {
            Some(Datatype::subarray(sizes, subsizes, starts, *order, child)?)
        }
        // Strides and displacements in bytes are the program's own. A distributed array of such
        // structs is rare.
        _ => None,
    })
}

/// Whether two datatypes have the same bounds.
fn has_same_bounds(one: &Datatype, other: &Datatype, here: &Architecture) -> Result<bool> {
    let (one, other) = (one.bounds(here)?, other.bounds(here)?);
    Ok((one.lb, one.ub) == (other.lb, other.ub))
}

impl Difference {
    /// The difference in words, with the names of the two architectures.
    ///
    /// ```
    /// use shipable::relation::Difference;
    /// use shipable::{Architecture, Basic, Committed, Datatype};
    /// let record = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// let record = Committed::new(&record, &Architecture::X86_64)?;
    /// let difference = record.comparison(&Architecture::I686)?.difference.unwrap();
    /// assert_eq!(
    ///     difference.text("x86-64", "i686"),
    ///     "member 1 (MPI_DOUBLE) lies at offset 8 on x86-64 and at offset 4 on i686"
    /// );
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn text(&self, here: &str, there: &str) -> String {
        let named = |leaf: &Leaf, member: &Option<u64>| match member {
            Some(member) => format!("member {member} ({})", leaf.mpi_name()),
            None => leaf.mpi_name(),
        };
        match self {
            Difference::Offset { member, leaf, here: near, there: far } => {
                let item = named(leaf, member);
                format!("{item} lies at offset {near} on {here} and at offset {far} on {there}")
            }
            Difference::Extent { here: near, there: far } => {
                format!("an element has {near} bytes on {here} and {far} on {there}")
            }
            Difference::Unknown { leaf, here: near, there: far } => {
                let of = |(size, align): &(u32, u32)| format!("{size} bytes aligned to {align}");
                format!(
                    "the displacements in bytes aren't those of a C struct, and {} has {} on {here} and {} on {there}",
                    leaf.mpi_name(),
                    of(near),
                    of(far)
                )
            }
        }
    }
}
