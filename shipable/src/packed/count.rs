//! How many elements some packed bytes are.

use crate::arch::Architecture;
use crate::basic::{Basic, Leaf, Makeup};
use crate::committed::Committed;
use crate::error::Result;
use crate::form::{Node, layout};

impl Committed {
    /// How many of this type so many bytes of `representation` are; `None`, MPI_UNDEFINED, where they end within one
    /// (`MPI_Get_count`, MPI-5.0 section 3.2.5).
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchKind`](crate::Error::NoSuchKind) for a Fortran type that the representation lacks.
    pub fn count_in(&self, bytes: u64, representation: &Architecture) -> Result<Option<u64>> {
        let size = self.program(representation)?.stream_size();
        Ok(match (bytes, size) {
            (0, _) => Some(0),
            (_, 0) => None,
            _ => (bytes % size == 0).then_some(bytes / size),
        })
    }

    /// How many basic elements so many bytes of `representation` are, which may end within an element of this type; `None`,
    /// MPI_UNDEFINED, where they end within a basic one, or hold more than a type without data
    /// (`MPI_Get_elements`, MPI-5.0 section 5.1.11).
    ///
    /// A pair counts as its two members, a complex number as one element.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    /// let here = Architecture::X86_64;
    /// let record = Datatype::struct_(&[1, 2], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// let record = Committed::new(&record, &here)?;
    /// // Two records and the int of a third.
    /// assert_eq!(record.count_in(2 * 20 + 4, &here)?, None);
    /// assert_eq!(record.elements_in(2 * 20 + 4, &here)?, Some(7));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Committed::count_in`].
    pub fn elements_in(&self, bytes: u64, representation: &Architecture) -> Result<Option<u64>> {
        let nodes = self.form().nodes();
        let known = Known {
            nodes,
            sizes: layout::sizes(nodes, representation)?,
            counts: layout::counts(nodes)?,
            representation,
        };
        match nodes.len() {
            0 => Ok((bytes == 0).then_some(0)),
            count => known.elements(count - 1, bytes),
        }
    }
}

struct Known<'a> {
    nodes: &'a [Node],
    /// Bytes of each node, and basic elements.
    sizes: Vec<u64>,
    counts: Vec<u64>,
    representation: &'a Architecture,
}

impl Known<'_> {
    /// The basic elements in the first bytes of any number of a node, one after the other.
    fn elements(&self, mut index: usize, mut bytes: u64) -> Result<Option<u64>> {
        let mut elements = 0u64;
        // Down to the leaf that the bytes end in, or before.
        loop {
            let (size, count) = (self.sizes[index], self.counts[index]);
            if bytes == 0 {
                return Ok(Some(elements));
            }
            if size == 0 {
                return Ok(None);
            }
            let Some(whole) = (bytes / size).checked_mul(count) else { return Ok(None) };
            let Some(sum) = elements.checked_add(whole) else { return Ok(None) };
            (elements, bytes) = (sum, bytes % size);
            if bytes == 0 {
                return Ok(Some(elements));
            }
            let last = match &self.nodes[index] {
                Node::Leaf(leaf) => {
                    // The bytes of a pair's value alone are one element.
                    let value = match leaf {
                        Leaf::Basic(basic) => match basic.makeup() {
                            Makeup::Pair(value, _) => Some(value),
                            _ => None,
                        },
                        _ => None,
                    };
                    let value = value.map(|value| self.size_of(value)).transpose()?;
                    return Ok((value == Some(bytes)).then_some(elements + 1));
                }
                Node::Array { child, .. } => Some(*child),
                Node::Simple { members } => self.skip(
                    members.iter().map(|m| (m.child, m.length)),
                    &mut bytes,
                    &mut elements,
                ),
                Node::Struct { members, .. } => self.skip(
                    members.iter().map(|m| (m.child, m.length)),
                    &mut bytes,
                    &mut elements,
                ),
            };
            let Some(last) = last else { return Ok(Some(elements)) };
            index = last as usize;
        }
    }

    /// Takes whole members off the bytes; the member that they end in.
    fn skip(
        &self,
        members: impl Iterator<Item = (u32, u64)>,
        bytes: &mut u64,
        elements: &mut u64,
    ) -> Option<u32> {
        for (child, length) in members {
            // Less than the struct's size and count, which fit.
            let size = self.sizes[child as usize] * length;
            if *bytes < size {
                return Some(child);
            }
            *bytes -= size;
            *elements += self.counts[child as usize] * length;
        }
        None
    }

    fn size_of(&self, basic: Basic) -> Result<u64> {
        Ok(self.representation.leaf(basic.into())?.size.into())
    }
}
