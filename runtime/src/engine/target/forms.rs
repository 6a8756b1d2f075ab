//! The forms that a peer has shipped, by the ids that it gave them.
//!
//! A form that can't be used is stored as well, with the reason: the operation that names it fails,
//! not the peer.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use portable_atomic::AtomicU64;
use shipable::form::Limits;
use shipable::reduce::{Op, Reduction, Stage};
use shipable::{Architecture, Bounds, Form, Leaf, SharedProgram, Signature, Tag};

use crate::engine::peers::Me;
use crate::error::{ErrorKind, Result};
use crate::numbers::Numbers;
use crate::wire::tag_to_wire;

/// Bytes of the longest encoded form that this rank accepts.
pub(in crate::engine) const LONGEST: u64 = 16 << 20;

/// Bytes of encoded forms that this rank holds for a peer. Decoded forms take at most 16 times as
/// many.
const ROOM: u64 = 64 << 20;

/// Bytes that all programs of a peer's forms may take. `ROOM` doesn't bound them: a program may be
/// hundreds of times as large as its form. A process of 32 bits has room for a few peers that use
/// all of it.
const PROGRAMS: u64 = 256 << 20;

/// The bytes that programs of a peer may still take.
struct Left(AtomicU64);

impl Default for Left {
    fn default() -> Left {
        Left(AtomicU64::new(PROGRAMS))
    }
}

/// A form of a peer.
pub(in crate::engine) struct ReceivedForm {
    pub form: Form,
    /// The names of the fields, for errors; empty if there are none.
    names: Box<str>,
    signature: Signature,
    /// The process for which a locale-specific form is right.
    pub builder: u32,
    /// The bounds in this rank's memory.
    bounds: OnceLock<shipable::Result<Bounds>>,
    /// The program from the peer's stream to this rank's memory.
    incoming: OnceLock<shipable::Result<SharedProgram>>,
    /// The program from this rank's memory to its own stream.
    outgoing: OnceLock<shipable::Result<SharedProgram>>,
    /// The bytes that the peer's programs may still take.
    left: Arc<Left>,
    /// The bytes that the two programs of this form take.
    taken: Cell<u64>,
    /// The last count, and the signature's hash of that many elements.
    repeated: Cell<(u64, u128)>,
    /// Whether all items have the same bytes in the peer's representation as in this rank's.
    is_same: OnceLock<bool>,
    /// The predefined type of all items, if they have one type.
    leaf: OnceLock<Option<Leaf>>,
    /// The last reducer, and its operation.
    reducer: RefCell<Option<(Op, Arc<Reducer>)>>,
}

/// Combines operands of a peer with the items of a window.
pub(super) struct Reducer {
    pub reduction: Reduction,
    /// Converts the operands from the peer's representation.
    pub stage: Stage,
}

impl ReceivedForm {
    /// The form's bounds in this rank's memory.
    pub(super) fn bounds(&self, memory: &Architecture) -> Result<Bounds> {
        Ok(self.bounds.get_or_init(|| self.form.bounds(memory)).clone()?)
    }

    /// Whether all items have the same bytes in the peer's stream as in this rank's memory.
    pub(super) fn is_same(&self, memory: &Architecture, stream: &Architecture) -> bool {
        memory.same_representation(stream)
            || *self
                .is_same
                .get_or_init(|| self.form.has_same_items(memory, stream).unwrap_or_default())
    }

    /// The program from a stream in the peer's representation to this rank's memory.
    pub(super) fn unpacking(
        &self,
        memory: &Architecture,
        stream: &Architecture,
    ) -> Result<&SharedProgram> {
        let lowered = self.incoming.get_or_init(|| self.lower(memory, stream));
        Ok(lowered.as_ref().map_err(Clone::clone)?)
    }

    /// The program between this rank's memory and a stream in its own representation.
    pub(in crate::engine) fn packing(&self, memory: &Architecture) -> Result<&SharedProgram> {
        let lowered = self.outgoing.get_or_init(|| self.lower(memory, memory));
        Ok(lowered.as_ref().map_err(Clone::clone)?)
    }

    /// Lowers the form, and charges the program to the peer. The caller stores a refusal for good.
    /// The engine's lock excludes other changes of `left` meanwhile.
    fn lower(
        &self,
        memory: &Architecture,
        stream: &Architecture,
    ) -> shipable::Result<SharedProgram> {
        let before = self.left.0.load(Relaxed);
        let mut left = before;
        let program = self.form.lower_within(memory, stream, &mut left)?;
        self.left.0.store(left, Relaxed);
        self.taken.set(self.taken.get() + (before - left));
        Ok(match &*self.names {
            "" => program.into(),
            names => program.with_fields(names).into(),
        })
    }

    /// The predefined type of all items, if they have one type.
    pub(super) fn leaf(&self) -> Option<Leaf> {
        *self.leaf.get_or_init(|| self.form.single_leaf())
    }

    /// The reducer of operands in the peer's representation into items, all of which have the type
    /// `leaf`. Keeps the last one.
    pub(super) fn reducer(
        &self,
        op: Op,
        leaf: Leaf,
        stream: &Architecture,
        memory: &Architecture,
    ) -> Result<Arc<Reducer>> {
        let mut last = self.reducer.borrow_mut();
        if let Some((_, reducer)) = last.as_ref().filter(|(of, _)| *of == op) {
            return Ok(reducer.clone());
        }
        let reduction = Reduction::new(op, leaf, memory)?;
        let reducer = Arc::new(Reducer { reduction, stage: Stage::new(leaf, stream, memory)? });
        *last = Some((op, reducer.clone()));
        Ok(reducer)
    }

    /// The hash of the signature of `count` elements. Keeps the last one: this is slow
    /// beside the other checks of an operation (docs/tuning.md, "Signatures of repeated counts").
    pub(super) fn hash(&self, count: u64) -> Option<u128> {
        let (last, hash) = self.repeated.get();
        if last == count {
            return Some(hash);
        }
        let hash = self.signature.repeat(count)?.hash;
        self.repeated.set((count, hash));
        Some(hash)
    }
}

impl Drop for ReceivedForm {
    fn drop(&mut self) {
        self.left.0.fetch_add(self.taken.get(), Relaxed);
    }
}

/// The forms of one peer.
#[derive(Default)]
pub(super) struct ReceivedForms {
    /// By id; with each the bytes that it has encoded, if it is usable.
    known: Numbers<u64, (Entry, u64)>,
    /// The bytes of all usable forms, encoded.
    bytes: u64,
    left: Arc<Left>,
}

enum Entry {
    Good(Box<ReceivedForm>),
    /// The tag is unknown.
    Tag(u8),
    /// The form is unusable for this reason.
    Bad(String),
}

impl ReceivedForms {
    /// Stores a form, usable or not. The last `names` of its bytes name the fields.
    pub(super) fn define(
        &mut self,
        id: u64,
        tag: u8,
        builder: u32,
        bytes: &[u8],
        names: u64,
        me: &Me,
    ) {
        let length = bytes.len() as u64;
        let entry = if tag != tag_to_wire(Tag::Portable) && tag != tag_to_wire(Tag::Locale) {
            Entry::Tag(tag)
        } else if self.bytes + length > ROOM {
            Entry::Bad(format!(
                "the origin's forms take more than the {ROOM} bytes allowed: free types, and commit this one again"
            ))
        } else {
            Self::decode(tag, builder, bytes, names, &self.left, me)
        };
        let held = if matches!(entry, Entry::Good(_)) { length } else { 0 };
        self.bytes += held;
        if let Some((_, before)) = self.known.insert(id, (entry, held)) {
            self.bytes -= before;
        }
    }

    fn decode(tag: u8, builder: u32, bytes: &[u8], names: u64, left: &Arc<Left>, me: &Me) -> Entry {
        let Some((form, names)) = crate::wire::split_names(bytes, names) else {
            return Entry::Bad("its names are no text".to_owned());
        };
        let decoded =
            Form::decode(form, &Limits::default()).and_then(|form| Ok((form.signature()?, form)));
        match decoded {
            Err(error) => Entry::Bad(error.to_string()),
            Ok((_, form)) if tag_to_wire(form.tag()) != tag => {
                Entry::Bad("its tag says otherwise than the form".to_owned())
            }
            Ok((signature, form)) => Entry::Good(Box::new(ReceivedForm {
                repeated: Cell::new((1, signature.hash)),
                // The peer has found its displacements right in this rank's memory, where the
                // window allows it to use them.
                form: if builder == me.rank { form } else { form.at_home(&me.architecture) },
                names: names.into(),
                signature,
                builder,
                bounds: OnceLock::new(),
                incoming: OnceLock::new(),
                outgoing: OnceLock::new(),
                left: Arc::clone(left),
                taken: Cell::new(0),
                is_same: OnceLock::new(),
                leaf: OnceLock::new(),
                reducer: RefCell::new(None),
            })),
        }
    }

    /// Stores that a form was too long to accept.
    pub(super) fn too_long(&mut self, id: u64, length: u64) {
        let why = format!(
            "a form of {length} bytes, above the limit of {LONGEST}: build the type of fewer blocks"
        );
        self.known.insert(id, (Entry::Bad(why), 0));
    }

    /// Removes a form whose type is gone at the peer.
    pub(super) fn retire(&mut self, id: u64) {
        if let Some((_, held)) = self.known.remove(&id) {
            self.bytes -= held;
        }
    }

    /// The form of this id.
    ///
    /// # Errors
    /// The form was never defined, or it can't be used.
    pub(super) fn get(&self, id: u64, peer: u32) -> Result<&ReceivedForm> {
        let what = match self.known.get(&id) {
            Some((Entry::Good(received), _)) => return Ok(received),
            Some((Entry::Tag(tag), _)) => return Err(ErrorKind::UnknownTag(*tag).into()),
            Some((Entry::Bad(what), _)) => what.clone(),
            None => never_defined(id),
        };
        Err(ErrorKind::Form { peer, what }.into())
    }
}

pub(super) fn never_defined(id: u64) -> String {
    format!("form {id} was never defined")
}

#[cfg(test)]
mod tests {
    use shipable::Datatype;

    use super::*;

    #[test]
    fn programs_are_charged_until_their_forms_retire() {
        let native = Architecture::NATIVE;
        let survives = false;
        let (emulated, by_length, room) = (false, false, 0);
        let (size, first, count, architecture) = (2, 0, 2, native);
        let me =
            Me { rank: 1, size, first, count, architecture, emulated, by_length, room, survives };
        let places: Vec<i64> = (0..1000).map(|at| at * at).collect();
        let scattered = Datatype::indexed_block(1, &places, &Datatype::int()).unwrap();
        let bytes = Form::compile(&scattered, &native).unwrap().encode();
        let mut forms = ReceivedForms::default();
        let left = Arc::clone(&forms.left);
        let left = || left.0.load(Relaxed);
        forms.define(1, tag_to_wire(Tag::Portable), 0, &bytes, 0, &me);
        forms.get(1, 0).unwrap().packing(&native).unwrap();
        let taken = PROGRAMS - left();
        assert!((8000..20_000).contains(&taken), "{taken}");
        forms.get(1, 0).unwrap().packing(&native).unwrap();
        assert_eq!(PROGRAMS - left(), taken);
        forms.get(1, 0).unwrap().unpacking(&native, &native).unwrap();
        assert_eq!(PROGRAMS - left(), 2 * taken);
        forms.retire(1);
        assert_eq!(left(), PROGRAMS);
        forms.left.0.store(taken - 1, Relaxed);
        forms.define(2, tag_to_wire(Tag::Portable), 0, &bytes, 0, &me);
        let refused = forms.get(2, 0).unwrap().packing(&native).unwrap_err();
        assert!(refused.to_string().contains("left for its program"), "{refused}");
        assert_eq!(left(), taken - 1);
    }
}
