//! The text form of a form, for people and tests.
//!
//! ```text
//! portable: 0 = d; 1 = 0 x 1 every 10 count 8
//! locale-specific: 0 = d; 1 = c; 2 = {0 @0, 1 @8}
//! ```
//!
//! Nodes are numbered. `n x LENGTH` is a block of LENGTH children `n`. `every STRIDE count COUNT`
//! repeats the block, and `at DISPLACEMENT` moves it. Commas separate vectors. Braces enclose the
//! members of a struct. Stated bounds follow in brackets, or in parentheses if they hide the
//! members' stated bounds.

use std::fmt::{Display, Formatter, Result};

use super::node::{Node, Span};
use super::vectors::Vector;
use super::{Form, Tag};

impl Display for Tag {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Tag::Portable => "portable",
            Tag::Locale => "locale-specific",
        })
    }
}

impl Display for Form {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}:", self.tag())?;
        for (index, node) in self.nodes().iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(f, "{separator} {index} = {node}")?;
        }
        Ok(())
    }
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Node::Leaf(leaf) => leaf.fmt(f),
            Node::Array { child, vectors, span } => {
                list(f, vectors, |f, vector| {
                    write!(f, "{child} x {}", vector.length)?;
                    vector.fmt(f)
                })?;
                if vectors.is_empty() {
                    write!(f, "{child} x 0")?;
                }
                span.fmt(f)
            }
            Node::Simple { members } => {
                f.write_str("{")?;
                list(f, members, |f, member| {
                    write!(f, "{}", member.child)?;
                    times(f, member.length)
                })?;
                f.write_str("}")
            }
            Node::Struct { members, span } => {
                f.write_str("{")?;
                list(f, members, |f, member| {
                    write!(f, "{}", member.child)?;
                    times(f, member.length)?;
                    write!(f, " @{}", member.displacement)
                })?;
                f.write_str("}")?;
                span.fmt(f)
            }
        }
    }
}

impl Display for Vector {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.count > 1 {
            write!(f, " every {} count {}", self.stride, self.count)?;
        }
        match self.displacement {
            0 => Ok(()),
            displacement => write!(f, " at {displacement}"),
        }
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Span::Natural => Ok(()),
            Span::Stated { lower, extent } => write!(f, " [{lower} extent {extent}]"),
            Span::Laid { lower, extent } => write!(f, " ({lower} extent {extent})"),
        }
    }
}

fn times(f: &mut Formatter<'_>, length: u64) -> Result {
    match length {
        1 => Ok(()),
        _ => write!(f, " x {length}"),
    }
}

fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Formatter<'_>, T) -> Result,
) -> Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}
