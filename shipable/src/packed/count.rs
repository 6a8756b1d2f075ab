//! The number of elements in the bytes of a message.

use crate::arch::Architecture;
use crate::basic::{Leaf, Makeup};
use crate::committed::Committed;
use crate::error::Result;
use crate::form::{Node, layout};
use crate::signature::Signature;

impl Committed {
    /// The number of elements of this type in `bytes` bytes of a message in `representation`
    /// (`MPI_Get_count`, MPI-5.0 section 3.2.5). `None`, which is `MPI_UNDEFINED`, if the bytes end
    /// within an element.
    ///
    /// The items of a message have no padding between them. A packed buffer of
    /// [`Architecture::XDR`] may have padding: [`Committed::pack_size`] includes it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchKind`](crate::Error::NoSuchKind) for a Fortran type that the representation
    /// lacks.
    pub fn count_in(&self, bytes: u64, representation: &Architecture) -> Result<Option<u64>> {
        let size = self.program(representation)?.stream_size();
        Ok(match (bytes, size) {
            (0, _) => Some(0),
            (_, 0) => None,
            _ => (bytes % size == 0).then_some(bytes / size),
        })
    }

    /// The number of basic elements in `bytes` bytes of a message in `representation`
    /// (`MPI_Get_elements`, MPI-5.0 section 5.1.11).
    ///
    /// The bytes may end within an element of this type. The result is `None`, which is
    /// `MPI_UNDEFINED`, if they end within a basic element, or if there are bytes although the type
    /// has no data.
    ///
    /// As for [`Committed::count_in`], the items have no padding between them. A pair counts as its
    /// two members, a complex number as one element.
    ///
    /// ```
    /// use shipable::{Architecture, Committed, Datatype};
    /// let here = Architecture::X86_64;
    /// let record = Datatype::struct_(&[1, 2], &[0, 8], &[Datatype::int(), Datatype::double()])?;
    /// let record = Committed::new(&record, &here)?;
    /// // Two records, and the int of a third.
    /// assert_eq!(record.count_in(2 * 20 + 4, &here)?, None);
    /// assert_eq!(record.elements_in(2 * 20 + 4, &here)?, Some(7));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Committed::count_in`].
    pub fn elements_in(&self, bytes: u64, representation: &Architecture) -> Result<Option<u64>> {
        Ok(self.signature_in(bytes, representation)?.map(|signature| signature.count))
    }

    /// The signature of the basic elements in `bytes` bytes of a message, as
    /// [`Committed::elements_in`] counts them. A message of this length must match it.
    ///
    /// # Errors
    ///
    /// The errors of [`Committed::count_in`].
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

/// Sizes and signatures of the nodes of a form.
struct Known<'a> {
    nodes: &'a [Node],
    /// The bytes of each node.
    sizes: Vec<u64>,
    signatures: Vec<Signature>,
    representation: &'a Architecture,
}

impl Known<'_> {
    /// The signature of the first `bytes` bytes of a sequence of copies of the node `index`.
    fn prefix(&self, mut index: usize, mut bytes: u64) -> Result<Option<Signature>> {
        let mut prefix = Signature::empty();
        // Descends to the leaf that the bytes end in, or stops at a node that they end with.
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
            // Adds whole parts, up to the part that the bytes end in.
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

    /// The signature if the bytes end after a pair's value: the value is a whole item.
    fn half(&self, leaf: Leaf, bytes: u64, before: Signature) -> Result<Option<Signature>> {
        let Leaf::Basic(basic) = leaf else { return Ok(None) };
        let Makeup::Pair(value, _) = basic.makeup() else { return Ok(None) };
        let size = u64::from(self.representation.leaf(value.into())?.size);
        Ok((bytes == size).then(|| before.then(&Signature::of_leaf(value.into()))).flatten())
    }
}
