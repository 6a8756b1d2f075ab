//! What was found of pairs of layouts, so that an operation on them is checked once and done often.
//!
//! A program exchanges the same few layouts over and over. That they match, may be used at the target, and write no byte twice depends on
//! types, counts and target alone, so it needn't be found again; where the memories begin and end is looked at each time.

use std::any::TypeId;
use std::cell::{OnceCell, RefCell};

use shipable::Program;
use shipable::program::Strided;

use super::core::Core;
use super::operation::Call;
use super::targets::Target;
use crate::memory::{Span, Typed};
use crate::origin::What;
use crate::types::Type;
use crate::wire::Kind;

/// The pairs that were found right last, each at its target type's place. What was found is used where it lies: for a
/// copy store forwarding fails.
#[derive(Default)]
pub(super) struct Pairs(OnceCell<Box<[RefCell<Option<Found>>; PLACES]>>);

/// Layouts that one rank's halo has, as a rule.
const PLACES: usize = 8;

/// A pair, and how it is moved.
struct Found {
    pair: Pair,
    way: Way,
    /// A slice's elements, committed.
    slices: Option<Type>,
}

/// How data are moved.
enum Way {
    /// By one call of a kernel.
    Strided(Strided),
    /// Layouts are the same on both sides.
    Mirror,
    /// By two programs.
    Walk,
}

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
    /// In elements of that Rust type, unless they are bytes.
    Type(u64, Option<TypeId>),
}

impl Pair {
    /// What a put or get is between; none where it has to be looked at each time.
    #[inline(always)]
    fn new(core: &Core, what: &What<'_>, call: &Call<'_>) -> Option<Pair> {
        let names = core.process.names();
        let near = match *what {
            What::Slice { count, element } => (Near::Slice(element.id), count),
            What::Typed { count, datatype, native, .. } if datatype.is_of(names) => {
                let element = native.filter(|native| !native.is_byte()).map(|native| native.id());
                (Near::Type(datatype.compiled().id(), element), u64::try_from(count).ok()?)
            }
            What::Typed { .. } | What::InPlace => return None,
        };
        call.target_type.check_rank(names).ok()?;
        let far = (call.target_type.id(), u64::try_from(call.count).ok()?);
        Some(Pair { put: call.kind == Kind::Put, target: call.target, near, far })
    }
}

impl Pairs {
    /// What was found of those at a pair's place, if anything was.
    #[inline]
    fn at(&self, pair: &Pair) -> Option<&RefCell<Option<Found>>> {
        Some(&self.0.get()?[pair.far.0 as usize % PLACES])
    }

    fn note(&self, found: Found) {
        let places = self.0.get_or_init(Box::default);
        places[found.pair.far.0 as usize % PLACES].replace(Some(found));
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
        let found = self.pairs.at(&pair)?.borrow();
        let found = found.as_ref().filter(|found| found.pair == pair)?;
        let base = call.displacement.checked_mul(i64::from(target.measures.unit))?;
        let near = match *what {
            What::Typed { at, .. } => memory.shifted(at)?,
            What::Slice { .. } | What::InPlace => memory,
        };
        let moved = match target.door.get() {
            Some(door) => self.move_again(found, what, call, near, door.span.shifted(base)?),
            None => self.move_attached(found, what, call, near, (target, base)),
        };
        self.note_use(moved.is_some()).then_some(())
    }

    /// The same to memory that the target attached.
    #[inline(never)]
    fn move_attached(
        &self,
        found: &Found,
        what: &What<'_>,
        call: &Call<'_>,
        near: Span,
        (target, base): (&Target, i64),
    ) -> Option<()> {
        let reached = self.reach_attached(target, base)?;
        self.move_again(found, what, call, near, reached.span.shifted(base)?)
    }

    #[inline(always)]
    fn move_again(
        &self,
        found: &Found,
        what: &What<'_>,
        call: &Call<'_>,
        near: Span,
        far: Span,
    ) -> Option<()> {
        let put = found.pair.put;
        match &found.way {
            Way::Strided(strided) => {
                let (from, to) = if put { (near, far) } else { (far, near) };
                Span::copy_strided(strided, from, to).then_some(())
            }
            _ => self.walk_again(found, what, call, near, far),
        }
    }

    #[inline(never)]
    fn walk_again(
        &self,
        Found { pair, way, slices }: &Found,
        what: &What<'_>,
        call: &Call<'_>,
        near: Span,
        far: Span,
    ) -> Option<()> {
        let datatype = match *what {
            What::Slice { .. } => slices.as_ref()?,
            What::Typed { datatype, .. } => datatype,
            What::InPlace => return None,
        };
        let program = datatype.compiled().native();
        let ((_, near_count), (_, far_count)) = (pair.near, pair.far);
        let moved = match (way, pair.put) {
            (Way::Mirror, true) => Span::mirror(program, near_count, near, far),
            (Way::Mirror, false) => Span::mirror(program, near_count, far, near),
            (_, put) => {
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
    }

    /// Notes that an operation passed all checks and reached its target directly.
    pub(super) fn remember(&self, what: &What<'_>, call: &Call<'_>) {
        let Some(pair) = Pair::new(self, what, call) else { return };
        let is_pair = |found: &Found| found.pair == pair;
        if self.pairs.at(&pair).is_some_and(|place| place.borrow().as_ref().is_some_and(is_pair)) {
            return;
        }
        let committed;
        let (slices, datatype) = match *what {
            What::Slice { element, .. } => {
                let Ok(slices) = element.commit(self.process.elements()) else { return };
                committed = slices;
                (Some(committed.clone()), &committed)
            }
            // Of elements with padding a type may pick members alone, which depends on the memory's length.
            What::Typed { native: Some(native), .. }
                if !native.is_byte() && !native.is_dense(self.process.elements()) =>
            {
                return;
            }
            What::Typed { datatype, .. } => (None, datatype),
            What::InPlace => return,
        };
        let (near, architecture) = (datatype.compiled().native(), &self.process.me().architecture);
        let way = call.target_type.with_native(architecture, |far| Ok(Way::of(&pair, near, far)));
        if let Ok(way) = way {
            self.pairs.note(Found { pair, way, slices });
        }
    }
}

impl Way {
    fn of(pair: &Pair, near: &Program, far: &Program) -> Way {
        let ((_, near_count), (_, far_count)) = (pair.near, pair.far);
        let alike = near_count == far_count && near.is_like(far);
        let strided = match (alike, pair.put) {
            (true, _) => Strided::mirror(near, near_count),
            (false, true) => Strided::between(near, near_count, far, far_count),
            (false, false) => Strided::between(far, far_count, near, near_count),
        };
        match strided {
            Some(strided) => Way::Strided(strided),
            None if alike => Way::Mirror,
            None => Way::Walk,
        }
    }
}
