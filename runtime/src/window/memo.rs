//! The memory of which operations are valid, and how each is carried out.
//!
//! A program repeats a few operations. Every rule but those about where memory begins and ends
//! depends only on a [`Key`]: the action, the class of the target, the types and the counts. So an
//! operation that was valid once is found here by its key, with all that was prepared for it, and
//! the next one like it checks only its memory and its bounds. Nothing here is ever invalid: the
//! numbers of types are never used again, and a window's targets and policy stay.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use shipable::program::Strided;
use shipable::reduce::{Combiner, Reduction, Swap};
use shipable::{Element, Leaf};

use super::operation::{Action, Operation, Side};
use super::peers::{DIRECT, OBSERVED, PRIVATE, Target};
use crate::object::Names;
use crate::origin::What;
use crate::types::{TargetType, Type};

/// The last valid operations of a window, each in the slot of its key.
pub(super) struct Memo {
    /// The types of which elements are copied directly, in one run: the scalars that the inlined
    /// attempt of a put or get needs.
    runs: [Cell<KnownRun>; SLOTS],
    /// The accumulates of elements of the target type itself, which the inlined attempt of a call
    /// by pointer needs.
    combines: [Cell<KnownCombine>; SLOTS],
    /// The types of compare_and_swaps, for calls by pointer.
    swaps: [Cell<KnownSwap>; SWAPS],
    /// The operations on elements of the target type itself that go by mailbox.
    letters: [Cell<KnownLetter>; SLOTS],
    prepared: Box<[RefCell<Prepared>; SLOTS + VALUES]>,
}

/// Operations in the loop of a program, as a rule: a halo exchange has eight.
const SLOTS: usize = 16;

/// Operations on values, which have slots of their own: fetch_and_op and compare_and_swap.
const VALUES: usize = 2;

/// Types of compare_and_swap in the loop of a program.
const SWAPS: usize = 4;

/// The bit in a known run's number that keeps observed operations off the inlined attempt. No type
/// has so large a number.
const OBSERVED_RUN: u64 = 1 << 63;

/// A type of which elements are copied directly, in one run that begins at displacement 0.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownRun {
    /// The type's number; 0 for none.
    datatype: u64,
    /// The bytes of one element.
    size: u64,
    /// Whether any number of elements is one run, instead of one element only.
    dense: bool,
}

/// An accumulate of elements that are one run from displacement 0 on, on a target that is reached
/// directly.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownCombine {
    /// The action with its operation; 0 for none.
    what: u64,
    /// The type's number.
    datatype: u64,
    /// The bytes of one element.
    size: u64,
    /// Whether any number of elements is one run, instead of one element only.
    dense: bool,
    pub combiner: Combiner,
}

/// A compare_and_swap on a target that is reached directly.
#[derive(Clone, Copy, Default)]
struct KnownSwap {
    /// The type's number.
    datatype: u64,
    swap: Option<Swap>,
}

/// An operation on elements that are one run from displacement 0 on, all of whose bytes are data,
/// which a mailbox has taken.
#[derive(Clone, Copy, Default)]
pub(super) struct KnownLetter {
    /// As in [`Key`]; 0 for none.
    what: u64,
    /// The type's number.
    datatype: u64,
    /// The number of elements.
    count: u64,
    /// The bytes of all elements.
    pub len: u64,
    /// The low half of the hash of their signature.
    pub signature: u64,
}

/// The facts on which the validity of an operation depends. All fields are scalars, since every
/// operation that isn't done by the inlined attempt compares them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// The action, its operation, and the target's class. A foreign type is valid at one process
    /// only, which stands for the class then.
    what: u64,
    /// The target type's number; 0 for the type of a Rust element.
    datatype: u64,
    /// The number of target elements; 0 where the elements on both sides are the same.
    count: u64,
    /// The elements that a put or get moves.
    near: Layout,
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
        let free = Key { what: 0, datatype: 0, count: 0, near: Layout::same() };
        let slot = |_| RefCell::new(Prepared { key: free, means: Means::Nothing });
        Memo {
            runs: Default::default(),
            combines: Default::default(),
            swaps: Default::default(),
            letters: Default::default(),
            prepared: Box::new(std::array::from_fn(slot)),
        }
    }
}

impl Memo {
    /// The run that elements of a type are, if they were copied directly before.
    #[inline(always)]
    pub(super) fn run(&self, own: &Type) -> Option<KnownRun> {
        let datatype = own.compiled().id();
        let known = self.runs[datatype as usize % SLOTS].get();
        (known.datatype == datatype).then_some(known)
    }

    /// The run that elements of a type are, for an operation that is observed.
    #[inline(always)]
    pub(super) fn observed_run(&self, own: &Type) -> Option<KnownRun> {
        let datatype = own.compiled().id();
        let known = self.runs[datatype as usize % SLOTS].get();
        (known.datatype == datatype | OBSERVED_RUN).then_some(known)
    }

    /// The accumulate of elements of the target type itself, if it was carried out directly before.
    #[inline(always)]
    pub(super) fn combine(&self, action: Action, own: &Type) -> Option<KnownCombine> {
        let (what, datatype) = (what(action, DIRECT), own.compiled().id());
        let known = self.combines[place(what, datatype)].get();
        (known.what == what && known.datatype == datatype).then_some(known)
    }

    /// The compare_and_swap of elements of the target type itself, if it was carried out directly
    /// before.
    #[inline(always)]
    pub(super) fn swap(&self, own: &Type) -> Option<Swap> {
        let datatype = own.compiled().id();
        let known = self.swaps[datatype as usize % SWAPS].get();
        if known.datatype == datatype { known.swap } else { None }
    }

    /// The slot of an operation on elements of the target type itself, on a target that is reached
    /// directly.
    #[inline(always)]
    pub(super) fn direct(&self, action: Action, own: &Type) -> &RefCell<Prepared> {
        self.typed(what(action, DIRECT), own.compiled().id())
    }

    /// The slot of an operation on one element, given by value.
    #[inline(always)]
    pub(super) fn value(&self, action: Action) -> &RefCell<Prepared> {
        let slot = usize::from(action == Action::CompareAndSwap);
        &self.prepared[SLOTS + slot]
    }

    /// The operation on elements of the target type itself by the mailbox of a target of a class,
    /// if a mailbox has taken one before.
    #[inline(always)]
    pub(super) fn letter(
        &self,
        action: Action,
        class: u64,
        own: &Type,
        count: u64,
    ) -> Option<KnownLetter> {
        let (what, datatype) = (what(action, class), own.compiled().id());
        let known = self.letters[place(what, datatype ^ count)].get();
        let is_it = (known.what, known.datatype, known.count) == (what, datatype, count);
        is_it.then_some(known)
    }

    #[inline(always)]
    fn typed(&self, what: u64, datatype: u64) -> &RefCell<Prepared> {
        &self.prepared[place(what, datatype)]
    }

    /// The slot of an operation with a key.
    #[inline]
    pub(super) fn of(&self, key: &Key, action: Action) -> &RefCell<Prepared> {
        match key.datatype {
            0 => self.value(action),
            datatype => self.typed(key.what, datatype),
        }
    }

    /// The predefined type of the items of an operation for which the rules about types and counts
    /// are known to hold; `None` where they aren't.
    pub(super) fn settled(&self, key: &Key, action: Action) -> Option<Option<Leaf>> {
        match self.of(key, action).borrow().if_key(key) {
            Some(&Means::Stream(leaf)) => Some(leaf),
            _ => None,
        }
    }

    /// Keeps how a valid operation is carried out.
    pub(super) fn keep(&self, key: Key, action: Action, means: Means) {
        let counted = matches!(
            means,
            Means::Strided(_) | Means::Mirror(_) | Means::Walk(_) | Means::Stream(_)
        );
        // These hold for one number of elements, which the key of a run doesn't have.
        if counted && key.count == 0 && key.datatype != 0 {
            return;
        }
        if let Means::Copy(Run { first: 0, size, dense }) = means {
            let at = key.datatype as usize % SLOTS;
            let is_observed = key.what == what(action, OBSERVED);
            let datatype = key.datatype | if is_observed { OBSERVED_RUN } else { 0 };
            self.runs[at].set(KnownRun { datatype, size, dense });
        }
        if key.what == what(action, DIRECT) && key.datatype != 0 && key.is_same() {
            self.keep_places(key, &means);
        }
        // A slot that is being read belongs to an operation within this one, which doesn't occur.
        if let Ok(mut slot) = self.of(&key, action).try_borrow_mut() {
            *slot = Prepared { key, means };
        }
    }

    /// Keeps an operation that a mailbox has taken, for the next one like it.
    #[inline(never)]
    pub(super) fn keep_letter(&self, Key { what, datatype, .. }: Key, frame: &Frame) {
        let &Frame { count, signature, first: 0, len, reach: (0, end), alike: true, .. } = frame
        else {
            return;
        };
        if end as u64 == len && datatype != 0 {
            let signature = signature as u64;
            let known = KnownLetter { what, datatype, count, len, signature };
            self.letters[place(what, datatype ^ count)].set(known);
        }
    }

    /// Keeps a direct operation on elements of the target type itself for calls by pointer.
    fn keep_places(&self, Key { what, datatype, .. }: Key, means: &Means) {
        match *means {
            Means::Combine(Run { first: 0, size, dense }, reduction) => {
                let Some(combiner) = reduction.combiner() else { return };
                let known = KnownCombine { what, datatype, size, dense, combiner };
                self.combines[place(what, datatype)].set(known);
            }
            Means::Swap(swap) => {
                let known = KnownSwap { datatype, swap: Some(swap) };
                self.swaps[datatype as usize % SWAPS].set(known);
            }
            _ => {}
        }
    }
}

/// The slot of an operation. The action, its operation, the target's class and the type each choose
/// another one.
#[inline(always)]
fn place(what: u64, datatype: u64) -> usize {
    (what ^ what >> 7 ^ what >> 16 ^ datatype) as usize % SLOTS
}

/// The action with its operation, and the target's class.
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
    pub(super) fn new(key: Key, means: Means) -> Prepared {
        Prepared { key, means }
    }

    /// How an operation on elements of the target type itself is carried out on a target that is
    /// reached directly, if this is it.
    #[inline(always)]
    pub(super) fn if_direct(&self, action: Action, own: &Type) -> Option<&Means> {
        // Every key of other elements has a count.
        let is_same = self.key.what == what(action, DIRECT)
            && self.key.datatype == own.compiled().id()
            && self.key.count == 0;
        is_same.then_some(&self.means)
    }

    /// How an operation on one element of type `T`, given by value, is carried out on a target that
    /// is reached directly, if this is it.
    #[inline(always)]
    pub(super) fn if_value<T: Element>(&self, action: Action) -> Option<&Means> {
        let is_value =
            self.key.what == what(action, DIRECT) && self.key.near.element == TypeId::of::<T>();
        is_value.then_some(&self.means)
    }

    /// How a compare_and_swap of one element of type `T`, given by value, is carried out. No other
    /// operation has its slot, and [`Means::Swap`] is for targets that are reached directly.
    #[inline(always)]
    pub(super) fn if_swap<T: Element>(&self) -> Option<&Means> {
        (self.key.near.element == TypeId::of::<T>()).then_some(&self.means)
    }

    /// How the operation with a key is carried out, if this is it.
    #[inline]
    pub(super) fn if_key(&self, key: &Key) -> Option<&Means> {
        (self.key == *key).then_some(&self.means)
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
        let (action, same) = (operation.action, Layout::same());
        let moves = matches!(action, Action::Put | Action::Get);
        if let Some(element) = operation.by_value.filter(|_| !moves) {
            let near = Layout { element, ..same };
            let what = what(action, target.class_at(operation.displacement));
            return Some(Key { what, datatype: 0, count: 0, near });
        }
        let count = u64::try_from(operation.count).ok()?;
        let near = if moves { operation.moved()? } else { operation.near()? };
        let (datatype, class) = match operation.target_type {
            TargetType::Own(own) if own.is_of(names) => {
                let compiled = own.compiled();
                let datatype = compiled.id();
                let is_same = |side: &Side<'_>| side.what.is_plain(count, compiled);
                let has_same_result = || operation.result.as_ref().is_none_or(is_same);
                // Only of a run any number is carried out by the same means.
                let is_run = || compiled.native().contiguous(count).is_some();
                if is_same(near) && (moves || has_same_result()) && is_run() {
                    let what = what(action, target.class_at(operation.displacement));
                    return Some(Key { what, datatype, count: 0, near: same });
                }
                (datatype, target.class_at(operation.displacement))
            }
            TargetType::Foreign(foreign) if foreign.is_of(names) => {
                (foreign.id(), 1 << 32 | u64::from(target.peer))
            }
            _ => return None,
        };
        // No elements have no layout to remember.
        let near = Layout::of(names, near)?;
        let key = Key { what: what(action, class), datatype, count, near };
        (moves && count > 0).then_some(key)
    }

    /// Whether it is of private memory that is attached to a dynamic window.
    pub(super) fn is_private(&self) -> bool {
        self.what >> 16 == PRIVATE
    }

    /// Whether the elements on both sides are of the target type itself.
    pub(super) fn is_same(&self) -> bool {
        self.count == 0
    }
}

impl Layout {
    /// The layout of elements that are the target's.
    #[inline(always)]
    fn same() -> Layout {
        Layout { count: 0, datatype: 0, element: TypeId::of::<()>() }
    }

    #[inline(always)]
    fn of(names: &Arc<Names>, side: &Side<'_>) -> Option<Layout> {
        match side.what {
            What::Slice { count, element } => {
                Some(Layout { count, datatype: 0, element: element.id })
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
    #[inline(always)]
    pub(super) fn len(&self, count: i64) -> Option<u64> {
        len_of(self.size, self.dense, count)
    }
}

impl KnownCombine {
    /// The bytes of this many elements, if they are one run.
    #[inline(always)]
    pub(super) fn len(&self, count: i64) -> Option<u64> {
        len_of(self.size, self.dense, count)
    }
}

impl KnownRun {
    /// The bytes of this many elements, if they are one run.
    #[inline(always)]
    pub(super) fn len(&self, count: i64) -> Option<u64> {
        len_of(self.size, self.dense, count)
    }
}

#[inline(always)]
fn len_of(size: u64, dense: bool, count: i64) -> Option<u64> {
    match (count, dense) {
        (1, _) => Some(size),
        (_, true) => size.checked_mul(u64::try_from(count).ok()?),
        (_, false) => None,
    }
}
