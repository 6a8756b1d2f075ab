//! All named datatypes of the bench, found by their names.

use crate::types::{self, Named};
use crate::{Failure, kernels};

/// The type with a name, out of those of [`types`] and [`kernels`].
///
/// # Errors
/// An unknown name. The message lists the known ones.
pub fn named(name: &str) -> Result<Named, Failure> {
    let mut all = types::all()?;
    all.extend(kernels::all()?);
    all.extend(types::many_blocks()?);
    let names: Vec<_> = all.iter().map(|named| named.name).collect();
    let unknown = format!("no type is named `{name}`; expected {}", names.join(", "));
    all.into_iter().find(|named| named.name == name).ok_or_else(|| unknown.into())
}
