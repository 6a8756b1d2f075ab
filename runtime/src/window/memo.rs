//! The memory of which operations are valid, and how each is carried out.
//!
//! A program repeats a few operations. Every rule but those about where memory begins and ends
//! depends only on a [`Key`]: the action, the class of the target, the types and the counts. So an
//! operation that was valid once is found here by its key, with all that was prepared for it, and
//! the next one like it checks only its memory and its bounds. Nothing here is ever invalid: the
//! numbers of types are never used again, and a window's targets and policy stay.

use std::any::TypeId;
use std::cell::RefCell;
use std::sync::Arc;

use shipable::program::Strided;
use shipable::reduce::{Reduction, Swap};
use shipable::{Element, Leaf};

use super::operation::{Action, Operation};
use super::peers::Target;
use crate::object::Names;
use crate::origin::What;
use crate::types::{TargetType, Type};

/// The last valid operations of a window, each in the slot of its key.
pub(super) struct Memo(Box<[RefCell<Prepared>; SLOTS]>);

/// Operations in the loop of a program, as a rule: a halo exchange has eight.
const SLOTS: usize = 16;

/// The facts on which the validity of an operation depends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// The action with its operation, and the target's class. A foreign type is valid at one
    /// process only, which stands for the class then.
    what: u64,
    /// The target type's number; 0 for the type of a Rust element.
    datatype: u64,
    near: Near,
}

/// The elements in this rank's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Near {
    /// Elements of the target type itself, as many as at the target.
    Same,
    /// One element of a Rust type, given by value.
    Element(TypeId),
    /// Any others.
    Other { count: u64, origin: Layout, result: Layout },
}

/// The elements of an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Absent,
    Slice {
        count: u64,
        element: TypeId,
    },
    /// Of an explicit type, in elements of a Rust type unless they are bytes.
    Typed {
        count: u64,
        datatype: u64,
        native: Option<TypeId>,
    },
}

/// A valid operation, and how it is carried out.
pub(super) struct Prepared {
    key: Key,
    means: Means,
}

/// How a valid operation is carried out.
pub(super) enum Means {
    /// Unknown: the slot is free.
    Nothing,
    /// Directly: elements of the target type, which are one run, are copied.
    Copy(Run),
    /// Directly: elements of the target type, which are one run, are combined.
    Combine(Run, Reduction),
    /// Directly: one element is compared and swapped.
    Swap(Swap),
    /// Directly: data are copied by one call of a kernel.
    Strided(Strided),
    /// Directly: the layout is the same on both sides.
    Mirror(Moved),
    /// Directly: two programs are walked in step.
    Walk(Moved),
    /// By messages: elements of the target type, which are one run, go as a frame.
    Frame(Frame),
    /// By access to registered memory, or as a frame.
    Registered(Frame),
    /// By messages of any length. The items of an accumulate have this predefined type.
    Stream(Option<Leaf>),
}

/// Elements of one type that are one run in memory.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// The displacement of its first byte.
    pub first: i64,
    /// The bytes of one element.
    pub size: u64,
    /// Whether any number of elements is one run, instead of one element only.
    pub dense: bool,
}

/// Elements that are moved by programs.
pub(super) struct Moved {
    pub near_count: u64,
    pub far_count: u64,
    /// The elements of a slice, committed.
    pub slices: Option<Type>,
}

/// An operation that goes as one frame: the numbers in its header, and the run of its elements.
#[derive(Clone)]
pub(super) struct Frame {
    pub datatype: Type,
    pub count: u64,
    /// The hash of the elements' signature.
    pub signature: u128,
    /// The run in this rank's memory.
    pub first: i64,
    pub len: u64,
    /// The bytes that it touches at the target, from its displacement on.
    pub reach: (i64, i64),
    /// Whether an answer has the bytes of this rank's memory.
    pub alike: bool,
}

impl Default for Memo {
    fn default() -> Memo {
        let free = Key { what: 0, datatype: 0, near: Near::Same };
        let slot = |_| RefCell::new(Prepared { key: free, means: Means::Nothing });
        Memo(Box::new(std::array::from_fn(slot)))
    }
}

impl Memo {
    #[inline(always)]
    fn slot(&self, what: u64, datatype: u64) -> &RefCell<Prepared> {
        &self.0[(what ^ what >> 8 ^ datatype) as usize % SLOTS]
    }

    /// The slot of an operation on elements of the target type itself.
    #[inline(always)]
    pub(super) fn same(&self, key: SameKey) -> &RefCell<Prepared> {
        self.slot(key.what, key.datatype)
    }

    /// The slot of an operation on one element, given by value.
    #[inline(always)]
    pub(super) fn element(&self, action: Action, target: &Target) -> &RefCell<Prepared> {
        self.slot(what(action, target.class.into()), 0)
    }

    /// The slot of a key.
    #[inline]
    pub(super) fn of(&self, key: &Key) -> &RefCell<Prepared> {
        self.slot(key.what, key.datatype)
    }

    /// The predefined type of the items of an operation for which the rules about types and counts
    /// are known to hold; `None` where they aren't.
    pub(super) fn settled(&self, key: &Key) -> Option<Option<Leaf>> {
        match self.of(key).borrow().if_key(key) {
            Some(&Means::Stream(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// Keeps how a valid operation is carried out.
    pub(super) fn keep(&self, key: Key, means: Means) {
        // A slot that is being read belongs to an operation within this one, which doesn't occur.
        if let Ok(mut slot) = self.of(&key).try_borrow_mut() {
            *slot = Prepared { key, means };
        }
    }
}

/// The key of an operation on elements of the target type itself, as scalars.
#[derive(Clone, Copy)]
pub(super) struct SameKey {
    what: u64,
    datatype: u64,
}

impl SameKey {
    #[inline(always)]
    pub(super) fn new(action: Action, target: &Target, own: &Type) -> SameKey {
        SameKey { what: what(action, target.class.into()), datatype: own.compiled().id() }
    }
}

#[inline(always)]
fn what(action: Action, class: u64) -> u64 {
    let kind = match action {
        Action::Put => 1,
        Action::Get => 2,
        Action::Accumulate(_) => 3,
        Action::GetAccumulate(_) => 4,
        Action::FetchAndOp(_) => 5,
        Action::CompareAndSwap => 6,
    };
    kind | u64::from(action.code()) << 8 | class << 16
}

impl Prepared {
    /// How an operation on elements of the target type itself is carried out, if this is it.
    #[inline(always)]
    pub(super) fn if_same(&self, key: SameKey) -> Option<&Means> {
        let is_same = self.key.what == key.what
            && self.key.datatype == key.datatype
            && matches!(self.key.near, Near::Same);
        is_same.then_some(&self.means)
    }

    /// How an operation on one element of type `T`, given by value, is carried out, if this is it.
    #[inline(always)]
    pub(super) fn if_element<T: Element>(&self, action: Action, target: &Target) -> Option<&Means> {
        match self.key.near {
            Near::Element(element)
                if element == TypeId::of::<T>()
                    && self.key.what == what(action, target.class.into()) =>
            {
                Some(&self.means)
            }
            _ => None,
        }
    }

    /// How the operation with a key is carried out, if this is it.
    #[inline]
    pub(super) fn if_key(&self, key: &Key) -> Option<&Means> {
        (self.key == *key).then_some(&self.means)
    }

    /// As [`if_key`](Prepared::if_key), to be replaced.
    #[inline]
    pub(super) fn if_key_mut(&mut self, key: &Key) -> Option<&mut Means> {
        (self.key == *key).then_some(&mut self.means)
    }
}

impl Key {
    /// The key of an operation. `None` where it is checked each time: it has a type of another rank,
    /// or a number that is refused.
    #[inline]
    pub(super) fn of(
        names: &Arc<Names>,
        target: &Target,
        operation: &Operation<'_>,
    ) -> Option<Key> {
        let Operation { action, target_type, by_value, .. } = *operation;
        let count = u64::try_from(operation.count).ok()?;
        target_type.check_rank(names).ok()?;
        let (datatype, class) = match target_type {
            TargetType::Own(own) => (own.compiled().id(), u64::from(target.class)),
            TargetType::Foreign(foreign) => (foreign.id(), 1 << 32 | u64::from(target.peer)),
        };
        let what = what(action, class);
        if let Some(element) = by_value {
            return Some(Key { what, datatype: 0, near: Near::Element(element) });
        }
        // An atomic get ignores its origin.
        let origin = operation.origin.as_ref().filter(|_| !action.is_atomic_get());
        let result = operation.result.as_ref();
        let is_same = |what: &What<'_>| match target_type {
            TargetType::Own(own) => what.is_plain(count, own.compiled()),
            TargetType::Foreign(_) => false,
        };
        let sides = [origin, result].map(|side| side.map(|operand| &operand.what));
        if sides.iter().flatten().all(|what| is_same(what)) {
            return Some(Key { what, datatype, near: Near::Same });
        }
        let [origin, result] = sides.map(|what| Layout::of(names, what));
        Some(Key { what, datatype, near: Near::Other { count, origin: origin?, result: result? } })
    }

    /// Whether the elements on both sides are of the target type itself.
    pub(super) fn is_same(&self) -> bool {
        matches!(self.near, Near::Same | Near::Element(_))
    }
}

impl Layout {
    #[inline]
    fn of(names: &Arc<Names>, what: Option<&What<'_>>) -> Option<Layout> {
        match what {
            None => Some(Layout::Absent),
            Some(&What::Slice { count, element }) => {
                Some(Layout::Slice { count, element: element.id })
            }
            Some(&What::Typed { count, datatype, native, .. }) if datatype.is_of(names) => {
                let native = native.filter(|native| !native.is_byte()).map(|native| native.id());
                let count = u64::try_from(count).ok()?;
                Some(Layout::Typed { count, datatype: datatype.compiled().id(), native })
            }
            Some(What::Typed { .. } | What::InPlace) => None,
        }
    }
}

impl Run {
    /// The bytes of this many elements, if they are one run.
    #[inline(always)]
    pub(super) fn len(&self, count: i64) -> Option<u64> {
        if count == 1 {
            return Some(self.size);
        }
        if !self.dense {
            return None;
        }
        self.size.checked_mul(u64::try_from(count).ok()?)
    }
}
