//! The forms that a peer has shipped, by the ids that it gave them.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use shipable::form::Limits;
use shipable::{Architecture, Bounds, Form, Program, Signature, Tag};

use crate::error::{ErrorKind, Result};
use crate::numbers::Numbers;

/// The longest form that is taken, encoded.
pub(super) const LONGEST: u64 = 16 << 20;

/// Bytes of encoded forms that a peer may have at this rank at a time.
const ROOM: u64 = 64 << 20;

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
    /// The hash of so many of them.
    repeated: Cell<(u64, u128)>,
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
        let lowered = self.incoming.get_or_init(|| self.form.lower(memory, stream).map(Arc::new));
        Ok(lowered.as_ref().map_err(Clone::clone)?)
    }

    /// The program between this rank's memory and its own stream.
    pub(super) fn packing(&self, memory: &Architecture) -> Result<&Arc<Program>> {
        let lowered = self.outgoing.get_or_init(|| self.form.lower(memory, memory).map(Arc::new));
        Ok(lowered.as_ref().map_err(Clone::clone)?)
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

/// The forms of one peer.
#[derive(Default)]
pub(super) struct Forms {
    known: Numbers<u64, (Entry, u64)>,
    bytes: u64,
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
                "the origin's forms take more than the {ROOM} bytes allowed: free types"
            ))
        } else {
            Self::decode(tag, builder, bytes)
        };
        let held = if matches!(entry, Entry::Good(_)) { length } else { 0 };
        self.bytes += held;
        if let Some((_, before)) = self.known.insert(id, (entry, held)) {
            self.bytes -= before;
        }
    }

    fn decode(tag: u8, builder: u32, bytes: &[u8]) -> Entry {
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
