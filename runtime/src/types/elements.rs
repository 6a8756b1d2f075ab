//! The types of a rank's elements, and its predefined types.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use shipable::datatype::Node;
use shipable::{Architecture, Datatype, Element, Leaf};

use super::{Compiled, RustType, Type};
use crate::error::{Result, locale_target};
use crate::object::{Card, Names};

/// A Rust type, not yet committed.
#[derive(Clone, Copy)]
pub struct ElementType {
    pub(crate) id: TypeId,
    commit: fn(&Elements) -> Result<&Type>,
    pub(crate) datatype: fn() -> Datatype,
}

impl ElementType {
    #[inline]
    pub(crate) fn of<T: Element>() -> ElementType {
        ElementType {
            id: TypeId::of::<T>(),
            commit: Elements::in_slices::<T>,
            datatype: T::datatype,
        }
    }

    /// The committed type that it has in slices.
    pub(crate) fn commit<'e>(&self, elements: &'e Elements) -> Result<&'e Type> {
        (self.commit)(elements)
    }
}

/// A leaf as the key of a table: its kind, then its basic type or its parameters.
///
/// A comparison of two leaves may load the parameters of a leaf that has none, which valgrind
/// reports. Here every field of every key has a value.
type LeafKey = (u8, i64, i64);

fn key_of(leaf: Leaf) -> LeafKey {
    let of = |parameter: Option<u32>| parameter.map_or(-1, i64::from);
    match leaf {
        Leaf::Basic(basic) => (0, basic.wire().into(), 0),
        Leaf::F90Real { precision, range } => (1, of(precision), of(range)),
        Leaf::F90Complex { precision, range } => (2, of(precision), of(range)),
        Leaf::F90Integer { range } => (3, range.into(), 0),
    }
}

/// The committed types of Rust's elements in the order of their first use. They are found without a
/// lock, and stay.
#[derive(Default)]
struct Known {
    types: [OnceLock<Both>; 16],
    more: OnceLock<Box<Known>>,
}

/// The type of an element in slices, and that in the rank's representation.
struct Both {
    element: TypeId,
    slices: Type,
    memory: Type,
}

impl Known {
    fn find(&self, element: TypeId) -> Option<&Both> {
        for place in &self.types {
            let both = place.get()?;
            if both.element == element {
                return Some(both);
            }
        }
        self.more.get()?.find(element)
    }

    /// Adds the types of an element. One thread at a time may add some.
    fn add(&self, both: Both) -> &Both {
        match self.types.iter().find(|place| place.get().is_none()) {
            Some(place) => place.get_or_init(|| both),
            None => self.more.get_or_init(Box::default).add(both),
        }
    }
}

/// The types of a rank: the committed types of Rust's elements, committed at their first use, and
/// the cards of predefined types.
pub(crate) struct Elements {
    names: Arc<Names>,
    architecture: Architecture,
    /// A predefined type is one object, however often it is committed.
    named: Mutex<HashMap<LeafKey, Arc<Card>>>,
    known: Known,
    /// Held by a thread that adds to them.
    adding: Mutex<()>,
    /// Types in the representations of other ranks, for shared memory.
    elsewhere: Mutex<HashMap<(TypeId, Architecture), Type>>,
}

impl Elements {
    pub(crate) fn new(names: Arc<Names>, architecture: Architecture) -> Elements {
        let (named, adding, elsewhere) = Default::default();
        Elements { names, architecture, named, known: Known::default(), adding, elsewhere }
    }

    /// Commits a datatype for the rank's memory.
    pub(crate) fn commit(&self, datatype: &Datatype) -> Result<Type> {
        self.commit_on(datatype, &self.architecture, None)
    }

    /// Commits a datatype for the memory of an architecture.
    pub(crate) fn commit_on(
        &self,
        datatype: &Datatype,
        architecture: &Architecture,
        element: Option<RustType>,
    ) -> Result<Type> {
        let compiled = Compiled::new(&self.names, datatype, architecture, element)?;
        Ok(Type::with_card(compiled, self.card(datatype)))
    }

    /// The card of a predefined type, otherwise a new one.
    fn card(&self, datatype: &Datatype) -> Arc<Card> {
        let new = || Arc::new(Card::of(&self.names, datatype));
        let Node::Leaf(leaf) = datatype.node() else { return new() };
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.entry(key_of(*leaf)).or_insert_with(new).clone()
    }

    /// The type of `T` in Rust's slices: in the machine's own representation.
    pub(crate) fn in_slices<T: Element>(&self) -> Result<&Type> {
        self.find::<T>().map(|both| &both.slices)
    }

    /// The type of `T` in the rank's representation.
    pub(crate) fn in_memory<T: Element>(&self) -> Result<&Type> {
        self.find::<T>().map(|both| &both.memory)
    }

    /// The type of `T` in the representation of `architecture`.
    pub(crate) fn on<T: Element>(&self, architecture: &Architecture) -> Result<Type> {
        if architecture.same_representation(&self.architecture) {
            return self.in_memory::<T>().cloned();
        }
        let slices = self.in_slices::<T>()?;
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (TypeId::of::<T>(), *architecture);
        if let Some(memory) = elsewhere.get(&key) {
            return Ok(memory.clone());
        }
        let memory = self.lay_out::<T>(slices, architecture)?;
        elsewhere.insert(key, memory.clone());
        Ok(memory)
    }

    #[inline]
    fn find<T: Element>(&self) -> Result<&Both> {
        self.known.find(TypeId::of::<T>()).map_or_else(|| self.find_first::<T>(), Ok)
    }

    #[cold]
    fn find_first<T: Element>(&self) -> Result<&Both> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(both) = self.known.find(TypeId::of::<T>()) {
            return Ok(both);
        }
        let element = Some(RustType::of::<T>());
        let slices = self.commit_on(&T::datatype(), &Architecture::NATIVE, element)?;
        let memory = self.lay_out::<T>(&slices, &self.architecture)?;
        Ok(self.known.add(Both { element: TypeId::of::<T>(), slices, memory }))
    }

    /// The type of `T` in a representation. The offsets of a struct are those of this machine. On
    /// another one they are known only if the struct follows C's layout rules.
    fn lay_out<T: Element>(&self, slices: &Type, architecture: &Architecture) -> Result<Type> {
        let native = architecture.same_representation(&Architecture::NATIVE);
        match T::simple() {
            Some(portable) => self.commit_on(&portable, architecture, Some(RustType::of::<T>())),
            None if native => Ok(slices.clone()),
            None => {
                let hint = "; only structs that follow C's layout rules have a place in another representation than the machine's";
                Err(locale_target(slices.datatype(), slices.form(), hint).into())
            }
        }
    }
}
