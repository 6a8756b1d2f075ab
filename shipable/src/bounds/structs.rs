//! The bounds of structs, from those of their members.

use std::borrow::Borrow;

use super::Bounds;
use crate::error::{Error, Result};

/// The layout of a simple struct: members placed one after the other by C's rules.
///
/// The lower bound of a member's block lies at the first free address with the member's alignment.
/// Members with an empty type map take no space.
#[derive(Clone, Debug)]
pub struct StructLayout {
    end: i128,
    content: Bounds,
}

impl StructLayout {
    /// The layout of a struct without members.
    pub const fn new() -> StructLayout {
        StructLayout { end: 0, content: Bounds::EMPTY }
    }

    /// Adds a block of elements and returns its displacement.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the displacement or a bound doesn't fit 64 bits.
    pub fn push(&mut self, blocklength: i64, member: &Bounds) -> Result<i64> {
        let block = member.block(blocklength, 0)?;
        let low = i128::from(block.lb.min(block.ub));
        let high = i128::from(block.lb.max(block.ub));
        let align = if block.is_empty() { 1 } else { i128::from(block.align) };
        let start = self.end + (-self.end).rem_euclid(align);
        let displacement =
            i64::try_from(start - low).map_err(|_| Error::Overflow { what: "a displacement" })?;
        self.content = self.content.join(&block.block(1, displacement)?)?;
        self.end = start + (high - low);
        Ok(displacement)
    }

    /// The bounds of the struct, from 0 to its padded end. Bounds that members set are ignored.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the upper bound doesn't fit 64 bits.
    pub fn finish(self) -> Result<Bounds> {
        let content = self.content;
        if content.is_empty() {
            return Ok(content);
        }
        let ub = i64::try_from(self.end).map_err(|_| Error::Overflow { what: "a bound" })?;
        content.laid(0, ub)?.padded()
    }
}

impl Default for StructLayout {
    fn default() -> StructLayout {
        StructLayout::new()
    }
}

/// The bounds of a struct's members, before padding. Each member has a blocklength, a displacement,
/// and the bounds of one element.
pub(crate) fn structure(
    members: impl Iterator<Item = Result<(i64, i64, impl Borrow<Bounds>)>>,
) -> Result<Bounds> {
    let mut content = Bounds::EMPTY;
    for member in members {
        let (blocklength, displacement, member) = member?;
        let block = member.borrow().block(blocklength, displacement)?;
        // The member at the lowest address sets the leading alignment, independent of its index.
        let leads = block.has_data && block.true_lb < content.true_lb;
        content = match content.has_data && leads {
            true => block.join(&content)?,
            false => content.join(&block)?,
        };
    }
    Ok(content)
}
