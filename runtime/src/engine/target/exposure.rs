//! A window's memory at its owner, and the checks of a peer's operation before it touches a byte.

use std::borrow::Cow;
use std::sync::Arc;

use longshore_transport::lock::Briefly;
use serde::{Deserialize, Serialize};
use shipable::reduce::Op;
use shipable::{Architecture, Bounds, Tag};

use super::attachments::Attachments;
use super::forms::ReceivedForm;
use crate::control::{Control, Tally};
use crate::engine::Me;
use crate::error::{ErrorKind, Result, excerpt};
use crate::group::Group;
use crate::memory::{Exposed, Registered, Span};
use crate::numbers::Numbers;
use crate::pointer::address_space;
use crate::sequence::{Items, MATCH};
use crate::wire::{Header, Kind};

/// Which types may describe data in a target's window: the window's info key `target_types`, the
/// same at all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// Portable types, and foreign types that the target built. A rank needs `type_send` to itself
    /// even for its own window.
    #[default]
    Strict,
    /// Also locale-specific types of the origin, if the target's layout of the type is the same:
    /// all items lie at the same offsets in the memory of both. Items of another format or byte
    /// order are converted.
    SameLayout,
}

/// A window of this rank, as peers reach it.
pub(crate) struct Exposure {
    pub window: u32,
    /// The registration by which ranks of other hosts access the memory directly.
    pub _registered: Option<Registered>,
    pub opened: Opened,
    /// The displacement unit.
    pub unit: u32,
    pub policy: Policy,
    /// Whether all accumulates to one location use one operation, MPI_NO_OP excluded:
    /// `accumulate_ops=same_op`.
    pub same_op: bool,
    /// Whether other ranks load from the memory and store to it.
    pub is_shared: bool,
    /// The window's group. Errors name ranks in it.
    pub group: Group,
    /// The control blocks of the window's ranks.
    pub control: Arc<Control>,
}

/// The memory of a window.
pub(crate) enum Opened {
    /// One piece of memory.
    Whole(Arc<Exposed>),
    /// A dynamic window: the memory that is attached when an operation arrives. Displacements are
    /// addresses.
    Attached(Arc<Attachments>),
}

/// The bytes that an operation touches in a window, which are inside of it.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Bytes from the window's start to the operation's displacement 0.
    pub base: i64,
    /// The first byte that the operation touches and the one after the last, from the window's
    /// start.
    pub bytes: (i128, i128),
}

/// A window's size in bytes and displacement unit at a target. The origins know them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measures {
    pub size: u64,
    pub unit: u32,
}

/// Finds the bytes that `count` elements of these bounds touch at a displacement.
///
/// # Errors
/// The displacement is negative, the bytes aren't all in the window, or the target's pointers don't
/// reach them (rules 14 and 29).
pub(crate) fn reach(
    measures: Measures,
    displacement: i64,
    count: u64,
    bounds: &Bounds,
    target: &Architecture,
) -> Result<Reach> {
    let Measures { size, unit } = measures;
    let pointer = target.pointer().size;
    // On a 32-bit machine, an MPI_Aint of the upper half of memory is negative. Only a dynamic
    // window has all of memory.
    let round = address_space(4);
    let is_round = pointer == 4 && size == round;
    let displacement = match i32::try_from(displacement) {
        Ok(negative) if negative < 0 && is_round => displacement + round as i64,
        _ => displacement,
    };
    if displacement < 0 {
        return Err(ErrorKind::Displacement(displacement).into());
    }
    let base = i128::from(displacement) * i128::from(unit);
    let address = || ErrorKind::Address { displacement, unit, size, pointer };
    if base >> (8 * u32::from(pointer)).min(63) != 0 {
        return Err(address().into());
    }
    let base = i64::try_from(base).map_err(|_| address())?;
    if count == 0 || bounds.size == 0 {
        return Ok(Reach { base, bytes: (base.into(), base.into()) });
    }
    let last = i128::from(bounds.extent()) * i128::from(count - 1);
    let start = i128::from(base) + i128::from(bounds.true_lb) + last.min(0);
    let end = i128::from(base) + i128::from(bounds.true_ub) + last.max(0);
    // So are the displacements of a type with such addresses.
    let round = if is_round && start < 0 { round as i64 } else { 0 };
    let (base, start, end) = (base + round, start + i128::from(round), end + i128::from(round));
    if start < 0 || end > i128::from(size) {
        return Err(ErrorKind::Range { start, end, size, displacement, unit, own: false }.into());
    }
    Ok(Reach { base, bytes: (start, end) })
}

/// Finds the notification counter with an index, of `number` counters.
///
/// # Errors
/// There is none (rule 31).
pub(crate) fn check_counter(index: i32, number: u16) -> Result<u16> {
    let counter = u16::try_from(index).ok().filter(|counter| *counter < number);
    counter.ok_or_else(|| ErrorKind::Counter { index, number }.into())
}

impl Exposure {
    /// Takes the window's accumulate lock.
    pub(super) fn lock_accumulates(&self) -> Briefly<'_> {
        self.control.accumulate(self.control.rank())
    }

    /// Finds the bytes that a peer's operation touches.
    ///
    /// # Errors
    /// Those of the free function [`reach`].
    pub(in crate::engine) fn reach(
        &self,
        header: &Header,
        form: &ReceivedForm,
        architecture: &Architecture,
    ) -> Result<Reach> {
        let bounds = form.bounds(architecture)?;
        let size = match &self.opened {
            Opened::Whole(memory) => memory.span().len(),
            Opened::Attached(_) => address_space(architecture.pointer().size),
        };
        let measures = Measures { size, unit: self.unit };
        reach(measures, header.displacement, header.count, &bounds, architecture)
    }

    /// Whether a peer's operation changes the window although this rank promised that none does
    /// (rule 9).
    pub(in crate::engine) fn breaks_no_put(&self, header: &Header) -> bool {
        let no_op = header.kind == Kind::Fetch && header.tag == Op::NoOp.wire();
        header.kind != Kind::Get && !no_op && self.control.is_no_put()
    }

    /// Checks a peer's operation before it touches a byte: rules T1 to T6 by the form's tag, and
    /// rules 14, 15, 19, 27 and 29. Returns the memory from the operation's displacement on, and
    /// the owner that keeps it.
    pub(super) fn admit(
        &self,
        header: &Header,
        form: &ReceivedForm,
        me: &Me,
    ) -> Result<(Span, Cow<'_, Arc<Exposed>>)> {
        let architecture = &me.architecture;
        if form.form.tag() == Tag::Locale && form.builder != me.rank {
            // The origin has compared the layouts. What it says of them can't lead outside of the
            // window.
            if self.policy != Policy::SameLayout {
                return Err(ErrorKind::ForeignTarget {
                    datatype: excerpt(&form.form),
                    builder: form.builder,
                    target: me.rank,
                }
                .into());
            }
        }
        if !me.by_length && self.breaks_no_put(header) {
            return Err(ErrorKind::Epoch(NO_PUT).into());
        }
        if let Some(counter) = header.notify {
            check_counter(counter.into(), self.control.notifications())?;
        }
        let reach = self.reach(header, form, architecture)?;
        if !form.hash(header.count).is_some_and(|hash| header.is_signed(hash)) {
            let there = Items { count: header.count, form: &form.form, text: &form.form };
            return Err(ErrorKind::Signature {
                origin: "another sequence of basic types".to_owned(),
                target: there.to_string(),
                remedy: MATCH.to_owned(),
            }
            .into());
        }
        let (memory, start) = match &self.opened {
            Opened::Whole(memory) => (Cow::Borrowed(memory), 0),
            Opened::Attached(attachments) => {
                let (memory, start) = attachments.find(reach.bytes)?;
                (Cow::Owned(memory), start)
            }
        };
        let at = reach.base.checked_sub(start).and_then(|base| memory.span().shifted(base));
        let span = at.ok_or(ErrorKind::Displacement(header.displacement))?;
        Ok((span, memory))
    }
}

/// All windows of a rank, by number.
#[derive(Default)]
pub(in crate::engine) struct Exposures(Numbers<u32, Arc<Exposure>>);

impl Exposures {
    pub(super) fn insert(&mut self, exposure: Arc<Exposure>) {
        self.0.insert(exposure.window, exposure);
    }

    pub(super) fn remove(&mut self, window: u32) {
        self.0.remove(&window);
    }

    #[inline]
    pub(in crate::engine) fn get(&self, window: u32) -> Option<&Arc<Exposure>> {
        self.0.get(&window)
    }

    /// Raises a notification counter of this rank. A window that is freed has none.
    pub(in crate::engine) fn notify(&self, window: u32, counter: u16) {
        if let Some(exposure) = self.get(window) {
            exposure.control.notify(exposure.control.rank(), counter);
        }
    }

    /// Counts a peer's `Post` or `Complete` in the control block of a window. A window that is
    /// freed ignores it.
    pub(in crate::engine) fn handle_signal(&self, peer: u32, window: u32, tally: Tally) {
        let Some(exposure) = self.get(window) else { return };
        let control = &exposure.control;
        if let Some(rank) = control.group().rank_of(peer) {
            control.signal_here(tally, rank);
        }
    }
}

const NO_PUT: &str = "the target asserted NOPUT: no rank may put into its window in this epoch \
     (rule 9); leave out the assert";
