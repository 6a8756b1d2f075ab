//! How many elements the bytes of a message are.

use crate::arch::Architecture;
use crate::basic::{Leaf, Makeup};
use crate::committed::Committed;
use crate::error::Result;
use crate::form::{Node, layout};
use crate::signature::Signature;

impl Committed {
    /// How many of this type so many bytes of a message in `representation` are; `None`, MPI_UNDEFINED, where they end within
    /// one (`MPI_Get_count`, MPI-5.0 section 3.2.5).
    ///
    /// In a message items follow each other without padding, unlike in a packed buffer of [`Architecture::XDR`], whose bytes
    /// [`Committed::pack_size`] counts.
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

    /// How many basic elements so many bytes of a message in `representation` are, which may end within an element of this
    /// type; `None`, MPI_UNDEFINED, where they end within a basic one, or hold more than a type without data
    /// (`MPI_Get_elements`, MPI-5.0 section 5.1.11).
    ///
    /// Bytes are counted as by [`Committed::count_in`]. A pair counts as its two members, a complex number as one element.
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
        Ok(self.signature_in(bytes, representation)?.map(|signature| signature.count))
    }

    /// The signature of so many bytes of elements of this type, as [`Committed::elements_in`] counts them: what a message of
    /// that length has to match.
    ///
    /// # Errors
    ///
    /// As [`Committed::count_in`].
    pub fn signature_in(
        &self,
        bytes: u64,
        representation: &Architecture,
    ) -> Result<Option<Signature>> {
        let size = self.program(representation)?.stream_size();
        if bytes.checked_rem(size) == Some(0) {
            return Ok(self.signature().repeat(bytes / size));
        }
        let nodes = self.form().nodes();
        let known = Known {
            nodes,
            sizes: layout::sizes(nodes, representation)?,
            signatures: layout::signatures(nodes)?,
            representation,
        };
        match nodes.len() {
            0 => Ok((bytes == 0).then(Signature::empty)),
            count => known.prefix(count - 1, bytes),
        }
    }
}

/// What is known of nodes.
struct Known<'a> {
    nodes: &'a [Node],
    /// Bytes of each.
    sizes: Vec<u64>,
    signatures: Vec<Signature>,
    representation: &'a Architecture,
}

impl Known<'_> {
    /// The signature of the first bytes of any number of a node, one after the other.
    fn prefix(&self, mut index: usize, mut bytes: u64) -> Result<Option<Signature>> {
        let mut prefix = Signature::empty();
        // Down to the leaf that the bytes end in, or before.
        while bytes > 0 {
            let size = self.sizes[index];
            if size == 0 {
                return Ok(None);
            }
            let whole = self.signatures[index].repeat(bytes / size);
            let Some(sum) = whole.and_then(|whole| prefix.then(&whole)) else { return Ok(None) };
            (prefix, bytes) = (sum, bytes % size);
            if bytes == 0 {
                break;
            }
            let node = &self.nodes[index];
            if let Node::Leaf(leaf) = node {
                return self.half(*leaf, bytes, prefix);
            }
            // Whole parts, up to the one that the bytes end in.
            for (child, copies) in node.parts() {
                let child = child as usize;
                let copies = u64::try_from(copies).unwrap_or(u64::MAX);
                let size = self.sizes[child].saturating_mul(copies);
                index = child;
                if bytes < size {
                    break;
                }
                let whole = self.signatures[child].repeat(copies);
                let Some(sum) = whole.and_then(|whole| prefix.then(&whole)) else {
                    return Ok(None);
                };
                (prefix, bytes) = (sum, bytes - size);
            }
        }
        Ok(Some(prefix))
    }

    /// The bytes of a pair's value alone are an item.
    fn half(&self, leaf: Leaf, bytes: u64, before: Signature) -> Result<Option<Signature>> {
        let Leaf::Basic(basic) = leaf else { return Ok(None) };
        let Makeup::Pair(value, _) = basic.makeup() else { return Ok(None) };
        let size = u64::from(self.representation.leaf(value.into())?.size);
        Ok((bytes == size).then(|| before.then(&Signature::of_leaf(value.into()))).flatten())
    }
}
