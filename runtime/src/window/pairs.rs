//! What was found of pairs of layouts, so that an operation on them is checked once and done often.
//!
//! A program exchanges the same few layouts over and over. That they match, may be used at the target, and write no byte twice depends on
//! types, counts and target alone, so it needn't be found again; where the memories begin and end is looked at each time.

use std::any::TypeId;
use std::cell::Cell;

use super::core::Core;
use super::operation::Call;
use crate::memory::{Span, Typed};
use crate::origin::What;
use crate::wire::Kind;

/// The pairs that were found right last, each at its target type's place.
#[derive(Default)]
pub(super) struct Pairs([Cell<Option<(Pair, bool)>>; PLACES]);

/// Layouts that one rank's halo has, as a rule.
const PLACES: usize = 8;

/// Two layouts of an operation, and the target. A rank's types have numbers that are never used again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    put: bool,
    target: i32,
    near: (Near, u64),
    far: (u64, u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Near {
    Slice(TypeId),
    Type(u64),
}

impl Pair {
    /// What a put or get is between; none where it has to be looked at each time.
    fn new(core: &Core, what: &What<'_>, call: &Call<'_>) -> Option<Pair> {
        let names = core.process.names();
        let near = match *what {
            What::Slice { count, element } => (Near::Slice(element.id), count),
            // Of elements with padding a type may pick members alone, which depends on the memory's length.
            What::Typed { count, datatype, native, .. }
                if datatype.is_of(names) && native.is_none_or(|native| native.is_byte()) =>
            {
                (Near::Type(datatype.compiled().id()), u64::try_from(count).ok()?)
            }
            What::Typed { .. } | What::InPlace => return None,
        };
        call.target_type.check_rank(names).ok()?;
        let far = (call.target_type.id(), u64::try_from(call.count).ok()?);
        Some(Pair { put: call.kind == Kind::Put, target: call.target, near, far })
    }
}

impl Pairs {
    fn place(&self, pair: &Pair) -> &Cell<Option<(Pair, bool)>> {
        &self.0[pair.far.0 as usize % PLACES]
    }

    /// Whether the layouts are the same on both sides; none where nothing was found of them.
    fn get(&self, pair: &Pair) -> Option<bool> {
        self.place(pair).get().filter(|(known, _)| known == pair).map(|(_, alike)| alike)
    }
}

impl Core {
    /// The quick way of a put or get that moves no single run, if it was found right before. Leaves to the long way what wasn't, and what
    /// memory doesn't have.
    pub(super) fn again(&self, memory: Span, what: &What<'_>, call: &Call<'_>) -> Option<()> {
        let target = self.targets.get(usize::try_from(call.target).ok()?)?;
        if !target.is_near() || !self.opens(target) || call.displacement < 0 {
            return None;
        }
        let pair = Pair::new(self, what, call)?;
        let alike = self.pairs.get(&pair)?;
        let base = call.displacement.checked_mul(i64::from(target.measures.unit))?;
        let ((_, near_count), (_, far_count)) = (pair.near, pair.far);
        let slices;
        let (datatype, near) = match *what {
            What::Slice { element, .. } => {
                slices = element.commit(self.process.elements()).ok()?;
                (&slices, memory)
            }
            What::Typed { datatype, at, .. } => (datatype, memory.shifted(at)?),
            What::InPlace => return None,
        };
        let moved = self.with_reach(target, base, |span| {
            let far = span.shifted(base)?;
            let program = datatype.compiled().native();
            let moved = match (alike, pair.put) {
                (true, true) => Span::mirror(program, near_count, near, far),
                (true, false) => Span::mirror(program, near_count, far, near),
                (false, put) => {
                    let near = Typed { program, count: near_count, span: near };
                    let architecture = &self.process.me().architecture;
                    let copied = call.target_type.with_native(architecture, |program| {
                        let far = Typed { program, count: far_count, span: far };
                        Ok(if put { Span::copy(near, far) } else { Span::copy(far, near) })
                    });
                    copied.ok()?
                }
            };
            moved.ok()
        });
        self.note_use(moved.flatten().is_some()).then_some(())
    }

    /// Notes that an operation passed all checks and reached its target directly.
    pub(super) fn remember(&self, what: &What<'_>, call: &Call<'_>) {
        let Some(pair) = Pair::new(self, what, call) else { return };
        if self.pairs.get(&pair).is_some() {
            return;
        }
        let architecture = &self.process.me().architecture;
        let alike = match *what {
            What::Typed { datatype, .. } if pair.near.1 == pair.far.1 => {
                let near = datatype.compiled().native();
                call.target_type
                    .with_native(architecture, |far| Ok(near.is_like(far)))
                    .unwrap_or(false)
            }
            _ => false,
        };
        self.pairs.place(&pair).set(Some((pair, alike)));
    }
}
