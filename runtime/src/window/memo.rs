//! The memory of which operations are valid, and how each is carried out.
//!
//! A program repeats a few operations. Every rule but those about where memory begins and ends
//! depends only on a [`Key`]: the action, the class of the target, the types and the counts. So an
//! operation that was valid once is found here by its key, with all that was prepared for it, and
//! the next one like it checks only its memory and its bounds. Nothing here is ever invalid: the
//! numbers of types are never used again, and a window's targets and policy stay.
//!
//! An attempt, which is in its caller's code, finds the few scalars that it needs in a [`Table`].
//! All else is [`Prepared`].

use std::any::TypeId;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use shipable::program::Strided;
use shipable::reduce::{Combiner, Reduction, Swap};
use shipable::{Element, Leaf};

use super::call::Action;
use super::near::Side;
use super::operation::Operation;
use super::peers::{Class, Target};
use crate::object::Names;
use crate::origin::What;
use crate::types::{TargetType, Type};

/// The last valid operations of a window, each in the slot of its key.
pub(super) struct Memo {
    uses: Uses,
    /// Whether accumulates on targets that this rank reaches directly may be in flight. Then it has
    /// none for attempts, which don't look for what is in flight.
    orders_accumulates: Cell<bool>,
    /// By the type: the puts and gets of elements of the target type itself that are copied.
    copied: Table<u64, Run>,
    /// By the action and the type: the accumulates of elements of the target type itself.
    combined: Table<(Action, u64), (Run, Combiner)>,
    /// By the type: the compare_and_swaps.
    swapped: Table<u64, Swap>,
    /// The operations on elements of the target type itself that a mailbox has taken.
    letters: Table<Letter, (u64, u64)>,
    /// The types of elements that are given by value.
    values: [OnceCell<(TypeId, Type)>; VALUES],
    prepared: Box<[RefCell<Prepared>; SLOTS]>,
}

/// What a window makes of its memo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Uses {
    /// Attempts, and prepared operations.
    All,
    /// Prepared operations only: whoever observes the window's operations sees them all.
    Prepared,
    /// Nothing: each operation is checked in full.
    Nothing,
}

/// Operations in the loop of a program, as a rule: a halo exchange has eight.
const SLOTS: usize = 16;

/// Types of elements that a program gives by value, as a rule.
const VALUES: usize = 4;

/// Values that are copied out without a borrow, each in the slot of its key.
struct Table<K, V>([Cell<(K, V)>; SLOTS]);

impl<K: Copy + PartialEq, V: Copy> Table<K, V> {
    /// A table whose slots have a key that nothing has.
    fn new(key: K, value: V) -> Table<K, V> {
        Table(std::array::from_fn(|_| Cell::new((key, value))))
    }

    /// The value of a slot, and whether it is the key's. An `Option` might be encoded in the value,
    /// and be looked for there.
    #[inline]
    fn get(&self, slot: usize, key: K) -> (bool, V) {
        let (known, value) = self.0[slot % SLOTS].get();
        (known == key, value)
    }

    fn set(&self, slot: usize, key: K, value: V) {
        self.0[slot % SLOTS].set((key, value));
    }

    /// Forgets all values: the slots have a key that nothing has.
    fn clear(&self, key: K) {
        for slot in &self.0 {
            slot.set((key, slot.get().1));
        }
    }
}

/// An operation on elements that are one run from displacement 0 on, all of whose bytes are data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Letter {
    pub action: Action,
    pub class: Class,
    /// The type's number.
    pub datatype: u64,
    /// The number of elements.
    pub count: i64,
}

/// The facts on which the validity of an operation depends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    action: Action,
    class: Class,
    /// The target type's number.
    datatype: u64,
    /// The number of target elements; 0 where the elements on both sides are the same.
    count: u64,
    /// The elements that a put or get moves, if they are others than the target's.
    near: Option<Layout>,
}

/// The elements of an operand that are others than the target's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Layout {
    count: u64,
    /// The number of an explicit type; 0 for the elements of a slice.
    datatype: u64,
    /// The Rust type of a slice's elements, or of the elements in which an explicit type picks
    /// bytes.
    element: TypeId,
}

/// A valid operation, and how it is carried out.
pub(super) struct Prepared {
    key: Option<Key>,
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
    /// By the first path that takes a frame: elements of the target type, which are one run.
    Frame(Frame),
    /// By messages of any length. The items of an accumulate have this predefined type.
    Stream(Option<Leaf>),
}

/// Elements of one type that are one run in memory.
#[derive(Clone, Copy, Default)]
pub(super) struct Run {
    /// The displacement of its first byte.
    pub first: i64,
    /// The bytes of one element.
    pub size: u64,
    /// The most elements that are one run: one, or any number.
    pub most: u64,
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

/// No type has this number.
const NO_TYPE: u64 = 0;

impl Memo {
    pub(super) fn new(uses: Uses) -> Memo {
        let slot = |_| RefCell::new(Prepared { key: None, means: Means::Nothing });
        let (action, class) = (Action::Put, Class::Direct);
        let letter = Letter { action, class, datatype: NO_TYPE, count: 0 };
        Memo {
            uses,
            orders_accumulates: Cell::new(false),
            copied: Table::new(NO_TYPE, Run::default()),
            combined: Table::new((action, NO_TYPE), Default::default()),
            swapped: Table::new(NO_TYPE, Swap::default()),
            letters: Table::new(letter, (0, 0)),
            values: Default::default(),
            prepared: Box::new(std::array::from_fn(slot)),
        }
    }

    /// Whether elements of a type were copied directly before, and the run that one is.
    #[inline]
    pub(super) fn copied(&self, own: &Type) -> (bool, Run) {
        let datatype = own.compiled().id();
        self.copied.get(datatype as usize, datatype)
    }

    /// Whether elements of a type were combined directly before, and how.
    #[inline(always)]
    pub(super) fn combined(&self, action: Action, own: &Type) -> (bool, (Run, Combiner)) {
        let datatype = own.compiled().id();
        self.combined.get(place(action, datatype), (action, datatype))
    }

    /// Whether an element of a type was compared and swapped directly before, and how.
    #[inline]
    pub(super) fn swapped(&self, own: &Type) -> (bool, Swap) {
        let datatype = own.compiled().id();
        self.swapped.get(datatype as usize, datatype)
    }

    /// The length and the low half of the signature of an operation that a mailbox has taken
    /// before.
    #[inline]
    pub(super) fn letter(&self, letter: Letter) -> Option<(u64, u64)> {
        let (is_known, value) = self.letters.get(letter.place(), letter);
        is_known.then_some(value)
    }

    /// The type of elements that are given by value, once it was asked for.
    #[inline]
    pub(super) fn value<T: Element>(&self) -> Option<&Type> {
        let known = self.values.iter().map_while(OnceCell::get);
        let mut of_element = known.filter(|(element, _)| *element == TypeId::of::<T>());
        of_element.next().map(|(_, datatype)| datatype)
    }

    /// Keeps the type of elements that are given by value, if there is a place for it.
    pub(super) fn keep_value<T: Element>(&self, datatype: &Type) {
        let free = self.values.iter().find(|slot| slot.get().is_none());
        if let (None, Some(free)) = (self.value::<T>(), free) {
            free.get_or_init(|| (TypeId::of::<T>(), datatype.clone()));
        }
    }

    /// The slot of an operation with a key.
    #[inline]
    pub(super) fn of(&self, key: &Key) -> &RefCell<Prepared> {
        &self.prepared[place(key.action, key.datatype) % SLOTS]
    }

    /// The predefined type of the items of an operation for which the rules about types and counts
    /// are known to hold; `None` where they aren't.
    pub(super) fn settled(&self, key: &Key) -> Option<Option<Leaf>> {
        match self.of(key).borrow().if_key(key) {
            Some(&Means::Stream(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// Keeps how a valid operation is carried out. Attempts learn of it if it `is_everywhere`: if
    /// each target that this rank reaches directly has it carried out so.
    pub(super) fn keep(&self, key: Key, means: Means, is_everywhere: bool) {
        let counted = matches!(
            means,
            Means::Strided(_) | Means::Mirror(_) | Means::Walk(_) | Means::Stream(_)
        );
        // These hold for one number of elements, which the key of a run doesn't have.
        if self.uses == Uses::Nothing || counted && key.is_same() {
            return;
        }
        if self.uses == Uses::All && is_everywhere && key.is_same() {
            self.keep_for_attempts(&key, &means);
        }
        // A slot that is being read belongs to an operation within this one, which doesn't occur.
        if let Ok(mut slot) = self.of(&key).try_borrow_mut() {
            *slot = Prepared::new(key, means);
        }
    }

    /// Whether accumulates on targets that this rank reaches directly may be in flight.
    #[inline]
    pub(super) fn orders_accumulates(&self) -> bool {
        self.orders_accumulates.get()
    }

    /// An accumulate on a target that this rank reaches directly goes by message. From now on all
    /// later ones ask whether it is in flight, so attempts make none.
    pub(super) fn order_accumulates(&self) {
        if !self.orders_accumulates.replace(true) {
            self.combined.clear((Action::Put, NO_TYPE));
            self.swapped.clear(NO_TYPE);
        }
    }

    /// Keeps a direct operation on elements of the target type itself for attempts.
    fn keep_for_attempts(&self, key: &Key, means: &Means) {
        let Key { action, datatype, .. } = *key;
        if self.orders_accumulates() && !action.moves() {
            return;
        }
        match *means {
            Means::Copy(run) if run.first == 0 => self.copied.set(datatype as usize, datatype, run),
            Means::Combine(run, reduction) if run.first == 0 => {
                let Some(combiner) = reduction.combiner() else { return };
                let known = (action, datatype);
                self.combined.set(place(action, datatype), known, (run, combiner));
            }
            Means::Swap(swap) => self.swapped.set(datatype as usize, datatype, swap),
            _ => {}
        }
    }

    /// Keeps an operation that a mailbox has taken, for the next one like it.
    #[inline(never)]
    pub(super) fn keep_letter(&self, key: Key, frame: &Frame) {
        let &Frame { count, signature, first: 0, len, reach: (0, end), alike: true, .. } = frame
        else {
            return;
        };
        if end as u64 == len && self.uses == Uses::All {
            let Key { action, class, datatype, .. } = key;
            let letter = Letter { action, class, datatype, count: count as i64 };
            self.letters.set(letter.place(), letter, (len, signature as u64));
        }
    }
}

/// The slot of an operation. The action, its operation and the type each choose another one.
#[inline]
fn place(action: Action, datatype: u64) -> usize {
    usize::from(action.number() ^ action.code() << 1) ^ datatype as usize
}

impl Letter {
    #[inline]
    fn place(&self) -> usize {
        place(self.action, self.datatype ^ self.count as u64)
    }
}

impl Prepared {
    pub(super) fn new(key: Key, means: Means) -> Prepared {
        Prepared { key: Some(key), means }
    }

    /// How the operation with a key is carried out, if this is it.
    #[inline]
    pub(super) fn if_key(&self, key: &Key) -> Option<&Means> {
        (self.key.as_ref() == Some(key)).then_some(&self.means)
    }
}

impl Key {
    /// The key of an operation. `None` where it is checked each time: it has a type of another
    /// rank, a number that is refused, or operands of an accumulate that aren't of the target type.
    #[inline(always)]
    pub(super) fn of(
        names: &Arc<Names>,
        target: &Target,
        operation: &Operation<'_>,
    ) -> Option<Key> {
        let call = &operation.call;
        let (action, moves) = (call.action, call.action.moves());
        let count = u64::try_from(call.count).ok()?;
        let near = if moves { operation.moved()? } else { operation.near()? };
        let (datatype, class) = match call.target_type {
            TargetType::Own(own) if own.is_of(names) => {
                let compiled = own.compiled();
                let (datatype, class) = (compiled.id(), target.class_at(call.at));
                let is_same = |side: &Side<'_>| side.what.is_plain(count, compiled);
                let has_same_result = || operation.sides.result.as_ref().is_none_or(is_same);
                // Only of a run any number is carried out by the same means.
                let is_run = || compiled.native().contiguous(count).is_some();
                if is_same(near) && (moves || has_same_result()) && is_run() {
                    return Some(Key { action, class, datatype, count: 0, near: None });
                }
                (datatype, class)
            }
            TargetType::Foreign(foreign) if foreign.is_of(names) => {
                (foreign.id(), Class::Builder(target.peer))
            }
            _ => return None,
        };
        // No elements have no layout to remember.
        let near = Some(Layout::of(names, near)?);
        (moves && count > 0).then_some(Key { action, class, datatype, count, near })
    }

    /// Whether it is of private memory that is attached to a dynamic window.
    pub(super) fn is_private(&self) -> bool {
        self.class.is_private()
    }

    /// Whether the elements on both sides are of the target type itself.
    pub(super) fn is_same(&self) -> bool {
        self.near.is_none()
    }
}

impl Layout {
    #[inline]
    fn of(names: &Arc<Names>, side: &Side<'_>) -> Option<Layout> {
        match side.what {
            What::Slice { count, element } => {
                Some(Layout { count, datatype: NO_TYPE, element: element.id })
            }
            What::Typed { count, datatype, native, .. } if datatype.is_of(names) => {
                let native = native.filter(|native| !native.is_byte());
                let element = native.map_or(TypeId::of::<()>(), |native| native.id());
                let count = u64::try_from(count).ok()?;
                Some(Layout { count, datatype: datatype.compiled().id(), element })
            }
            What::Typed { .. } | What::InPlace => None,
        }
    }
}

impl Run {
    /// The bytes of this many elements, if they are one run.
    #[inline]
    pub(super) fn len(&self, count: i64) -> Option<u64> {
        match count as u64 {
            1 => Some(self.size),
            // A negative number is above every limit.
            count if count <= self.most => self.size.checked_mul(count),
            _ => None,
        }
    }
}
