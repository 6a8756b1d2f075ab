//! The datatypes of structs, from their fields.

use super::Element;
use crate::arch::Architecture;
use crate::bounds::StructLayout;
use crate::datatype::Datatype;

pub(super) const NESTING: &str = "Rust types that nest less than 256 deep";

/// A block of elements of one datatype.
#[derive(Clone, Debug)]
pub struct Block {
    pub(super) length: i64,
    pub(super) datatype: Datatype,
    pub(super) simple: Option<Datatype>,
}

/// The fields of a struct. Only this crate begins such a list, and only elements can join it. So
/// the compiler checks each field of a derived struct.
#[derive(Clone, Debug)]
pub struct Members(Vec<Member>);

#[derive(Clone, Debug)]
struct Member {
    offset: i64,
    block: Block,
    /// The names of the field's own fields.
    names: fn() -> String,
    /// The names of the field's items.
    items: fn() -> String,
}

impl Members {
    pub(super) fn new() -> Members {
        Members(Vec::new())
    }

    /// Adds a field of type `T` at an offset in bytes.
    #[must_use]
    pub fn field<T: Element>(mut self, offset: usize) -> Members {
        let (names, items) = (T::field_names, T::item_names);
        self.0.push(Member { offset: offset as i64, block: T::block(), names, items });
        self
    }

    /// The struct of these members at their offsets, with `size` as extent.
    pub(super) fn structure(&self, size: i64) -> Datatype {
        let lengths: Vec<_> = self.0.iter().map(|member| member.block.length).collect();
        let offsets: Vec<_> = self.0.iter().map(|member| member.offset).collect();
        let types: Vec<_> = self.0.iter().map(|member| member.block.datatype.clone()).collect();
        let datatype = Datatype::struct_(&lengths, &offsets, &types).expect(NESTING);
        // The extent of a packed or over-aligned struct differs from C's, and the first field of a
        // tuple may not be at offset 0.
        match datatype.bounds(&Architecture::NATIVE) {
            Ok(bounds) if (bounds.lb, bounds.extent()) == (0, size) => datatype,
            _ => Datatype::resized(0, size, &datatype).expect(NESTING),
        }
    }

    /// The names of the members, each with those of its own fields.
    pub(super) fn names(&self, names: &[&str]) -> String {
        let name = |(name, member): (&&str, &Member)| match (member.names)().as_str() {
            "" => (*name).to_owned(),
            inner => format!("{name}({inner})"),
        };
        names.iter().zip(&self.0).map(name).collect::<Vec<_>>().join(",")
    }

    /// The names of the members, each with those of its items.
    pub(super) fn item_names(&self, names: &[&str]) -> String {
        let members = names.iter().zip(&self.0);
        let members: Vec<_> =
            members.map(|(name, member)| format!("{name}{}", (member.items)())).collect();
        format!("({})", members.join(","))
    }

    /// The simple struct that C lays out at the offsets of these members, if there is one.
    pub(super) fn simple_structure(&self, size: i64) -> Option<Datatype> {
        let (mut lengths, mut types) = (Vec::new(), Vec::new());
        let mut layout = StructLayout::new();
        for Member { offset, block, .. } in &self.0 {
            let simple = block.simple.clone()?;
            let bounds = simple.bounds(&Architecture::NATIVE).ok()?;
            if layout.push(block.length, &bounds).ok()? != *offset {
                return None;
            }
            lengths.push(block.length);
            types.push(simple);
        }
        let same_size = layout.finish().ok()?.extent() == size;
        same_size.then(|| Datatype::simple_struct(&lengths, &types).expect(NESTING))
    }
}
