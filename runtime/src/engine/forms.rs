//! The forms that a peer has shipped, by the ids that it gave them.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use shipable::form::Limits;
use shipable::reduce::{Op, Reduction, Stage};
use shipable::{Architecture, Bounds, Form, Leaf, Program, Signature, Tag};

use crate::error::{ErrorKind, Result};
use crate::numbers::Numbers;

/// The longest form that is taken, encoded.
pub(super) const LONGEST: u64 = 16 << 20;

/// Bytes of encoded forms that a peer may have at this rank at a time. Decoded they take 16 times as many at most.
const ROOM: u64 = 64 << 20;

/// Bytes that all programs of a peer's forms may take. What a form is lowered to may be hundreds of times as large as its bytes, so
/// these don't bound it; a process of 32 bits has room for a few peers that go so far.
const PROGRAMS: u64 = 256 << 20;

/// What is left of it.
struct Left(AtomicU64);

impl Default for Left {
    fn default() -> Left {
        Left(AtomicU64::new(PROGRAMS))
    }
}

/// A tag as it travels (rule T6).
pub(crate) fn tag_to_wire(tag: Tag) -> u8 {
    match tag {
        Tag::Portable => 1,
        Tag::Locale => 2,
    }
}

/// A form of a peer.
pub(super) struct Received {
    pub form: Form,
    signature: Signature,
    /// The process for which a locale-specific form is right.
    pub builder: u32,
    /// In this rank's memory.
    bounds: OnceLock<shipable::Result<Bounds>>,
    /// From the peer's stream to this rank's memory.
    incoming: OnceLock<shipable::Result<Arc<Program>>>,
    /// From this rank's memory to its own stream.
    outgoing: OnceLock<shipable::Result<Arc<Program>>>,
    /// What the peer's programs may take, and what these two do.
    left: Arc<Left>,
    taken: Cell<u64>,
    /// The hash of so many of them.
    repeated: Cell<(u64, u128)>,
    /// The predefined type of all items, if it is one.
    leaf: OnceLock<Option<Leaf>>,
    /// How the peer's last operands were combined with them.
    folding: RefCell<Option<(Op, Arc<Fold>)>>,
}

/// How operands of a peer are combined with what a window holds.
pub(super) struct Fold {
    pub reduction: Reduction,
    /// From the peer's representation.
    pub stage: Stage,
}

impl Received {
    /// Its bounds in this rank's memory.
    pub(super) fn bounds(&self, memory: &Architecture) -> Result<Bounds> {
        Ok(self.bounds.get_or_init(|| self.form.bounds(memory)).clone()?)
    }

    /// The program between this rank's memory and a stream in the peer's representation.
    pub(super) fn unpacking(
        &self,
        memory: &Architecture,
        stream: &Architecture,
    ) -> Result<&Arc<Program>> {
        let lowered = self.incoming.get_or_init(|| self.lower(memory, stream));
        Ok(lowered.as_ref().map_err(Clone::clone)?)
    }

    /// The program between this rank's memory and its own stream.
    pub(super) fn packing(&self, memory: &Architecture) -> Result<&Arc<Program>> {
        let lowered = self.outgoing.get_or_init(|| self.lower(memory, memory));
        Ok(lowered.as_ref().map_err(Clone::clone)?)
    }

    /// Lowers the form within what the peer has left: a refusal stays, as that of a bad form does. The engine is locked, so nobody
    /// else takes of it meanwhile.
    fn lower(
        &self,
        memory: &Architecture,
        stream: &Architecture,
    ) -> shipable::Result<Arc<Program>> {
        let before = self.left.0.load(Relaxed);
        let mut left = before;
        let program = self.form.lower_within(memory, stream, &mut left)?;
        self.left.0.store(left, Relaxed);
        self.taken.set(self.taken.get() + (before - left));
        Ok(Arc::new(program))
    }

    /// The predefined type of all items, if it is one.
    pub(super) fn leaf(&self) -> Option<Leaf> {
        *self.leaf.get_or_init(|| self.form.single_leaf())
    }

    /// How operands in the peer's representation are combined with items, all of which are of one type. The last is kept.
    pub(super) fn fold(
        &self,
        op: Op,
        leaf: Leaf,
        stream: &Architecture,
        memory: &Architecture,
    ) -> Result<Arc<Fold>> {
        let mut last = self.folding.borrow_mut();
        if let Some((_, fold)) = last.as_ref().filter(|(of, _)| *of == op) {
            return Ok(fold.clone());
        }
        let reduction = Reduction::new(op, leaf, memory)?;
        let fold = Arc::new(Fold { reduction, stage: Stage::new(leaf, stream, memory)? });
        *last = Some((op, fold.clone()));
        Ok(fold)
    }

    /// The hash of the signature of so many of them. The last is kept: to find it takes 50 ns.
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

impl Drop for Received {
    fn drop(&mut self) {
        self.left.0.fetch_add(self.taken.get(), Relaxed);
    }
}

/// The forms of one peer.
#[derive(Default)]
pub(super) struct Forms {
    known: Numbers<u64, (Entry, u64)>,
    bytes: u64,
    left: Arc<Left>,
}

enum Entry {
    Good(Box<Received>),
    /// What is wrong with it; the operations that name it are refused.
    Tag(u8),
    Bad(String),
}

impl Forms {
    /// Takes a form in. One that can't be used is remembered as such: the operation that names it is what fails.
    pub(super) fn define(&mut self, id: u64, tag: u8, builder: u32, bytes: &[u8]) {
        let length = bytes.len() as u64;
        let entry = if tag != tag_to_wire(Tag::Portable) && tag != tag_to_wire(Tag::Locale) {
            Entry::Tag(tag)
        } else if self.bytes + length > ROOM {
            Entry::Bad(format!(
                "the origin's forms take more than the {ROOM} bytes allowed: free types, and commit this one again"
            ))
        } else {
            Self::decode(tag, builder, bytes, &self.left)
        };
        let held = if matches!(entry, Entry::Good(_)) { length } else { 0 };
        self.bytes += held;
        if let Some((_, before)) = self.known.insert(id, (entry, held)) {
            self.bytes -= before;
        }
    }

    fn decode(tag: u8, builder: u32, bytes: &[u8], left: &Arc<Left>) -> Entry {
        let decoded =
            Form::decode(bytes, &Limits::default()).and_then(|form| Ok((form.signature()?, form)));
        match decoded {
            Err(error) => Entry::Bad(error.to_string()),
            Ok((_, form)) if tag_to_wire(form.tag()) != tag => {
                Entry::Bad("its tag says otherwise than the form".to_owned())
            }
            Ok((signature, form)) => Entry::Good(Box::new(Received {
                repeated: Cell::new((1, signature.hash)),
                form,
                signature,
                builder,
                bounds: OnceLock::new(),
                incoming: OnceLock::new(),
                outgoing: OnceLock::new(),
                left: Arc::clone(left),
                taken: Cell::new(0),
                leaf: OnceLock::new(),
                folding: RefCell::new(None),
            })),
        }
    }

    /// Remembers that a form was too long to take.
    pub(super) fn too_long(&mut self, id: u64, length: u64) {
        let why = format!(
            "a form of {length} bytes, above the limit of {LONGEST}: build the type of fewer blocks"
        );
        self.known.insert(id, (Entry::Bad(why), 0));
    }

    /// The peer's type is gone.
    pub(super) fn retire(&mut self, id: u64) {
        if let Some((_, held)) = self.known.remove(&id) {
            self.bytes -= held;
        }
    }

    /// The form that an operation names.
    pub(super) fn get(&self, id: u64, peer: u32) -> Result<&Received> {
        let what = match self.known.get(&id) {
            Some((Entry::Good(received), _)) => return Ok(received),
            Some((Entry::Tag(tag), _)) => return Err(ErrorKind::UnknownTag(*tag).into()),
            Some((Entry::Bad(what), _)) => what.clone(),
            None => format!("form {id} was never defined"),
        };
        Err(ErrorKind::Form { peer, what }.into())
    }
}

#[cfg(test)]
mod tests {
    use shipable::Datatype;

    use super::*;

    #[test]
    fn programs_are_charged_until_their_forms_retire() {
        let native = Architecture::NATIVE;
        let places: Vec<i64> = (0..1000).map(|at| at * at).collect();
        let scattered = Datatype::indexed_block(1, &places, &Datatype::int()).unwrap();
        let bytes = Form::compile(&scattered, &native).unwrap().encode();
        let mut forms = Forms::default();
        let left = Arc::clone(&forms.left);
        let left = || left.0.load(Relaxed);
        forms.define(1, tag_to_wire(Tag::Portable), 0, &bytes);
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
        forms.define(2, tag_to_wire(Tag::Portable), 0, &bytes);
        let refused = forms.get(2, 0).unwrap().packing(&native).unwrap_err();
        assert!(refused.to_string().contains("left for its program"), "{refused}");
        assert_eq!(left(), taken - 1);
    }
}
