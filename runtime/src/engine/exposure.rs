//! A window's memory as its peers reach it, and what is checked before they do.

use std::borrow::Cow;
use std::sync::Arc;

use longshore_transport::lock::Briefly;
use serde::{Deserialize, Serialize};
use shipable::reduce::Op;
use shipable::{Architecture, Bounds, Tag};

use super::attachments::Attachments;
use super::forms::Received;
use super::ticket::Ticket;
use crate::control::Control;
use crate::error::{ErrorKind, Result, excerpt};
use crate::group::Group;
use crate::memory::{Exposed, Registered, Span};
use crate::pointer::address_space;
use crate::sequence::{Items, MATCH};
use crate::wire::{Header, Kind};

/// Which types may describe data in a target's window: the window's info key `target_types`, the same at all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// Portable ones, and foreign ones that the target built. A rank reaches even itself by `type_send` to itself.
    #[default]
    Strict,
    /// Also locale-specific ones of the origin, where origin and target share one representation.
    SameLayout,
}

/// A window at its owner.
pub(crate) struct Exposure {
    pub window: u32,
    /// What ranks of other hosts access directly.
    pub _registered: Option<Registered>,
    pub opened: Opened,
    pub unit: u32,
    pub policy: Policy,
    /// Whether accumulates to one place are all of one operation, without MPI_NO_OP: `accumulate_ops=same_op`.
    pub same_op: bool,
    /// Whose window it is: errors name ranks of it.
    pub group: Group,
    /// The words that its ranks share.
    pub control: Arc<Control>,
}

/// The memory of a window.
pub(crate) enum Opened {
    /// All of it.
    Whole(Arc<Exposed>),
    /// What is attached when an operation comes: displacements are addresses.
    Attached(Arc<Attachments>),
}

/// What keeps memory that the engine reads or writes.
pub(crate) enum Keep {
    /// Its lender, who waits until the engine has let go of it.
    Lender,
    /// Whoever holds this, the engine included.
    Shared { _memory: Arc<Exposed> },
    /// Likewise, of an element.
    Room { _room: Arc<Ticket> },
    /// Likewise, and who waits for the element alone is told when it is there.
    Waiter(Arc<Ticket>),
}

/// Where an operation reaches in a window, checked.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Bytes from the window's start to the operation's displacement 0.
    pub base: i64,
    /// The bytes that it touches, from the window's start.
    pub bytes: (i128, i128),
}

/// A window's measures at a target, which its origins know too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measures {
    pub size: u64,
    pub unit: u32,
}

/// Rules 14 and 29: where `count` elements of these bounds lie at a displacement, if that is inside of the window.
pub(crate) fn reach(
    measures: Measures,
    displacement: i64,
    count: u64,
    bounds: &Bounds,
    target: &Architecture,
) -> Result<Reach> {
    let Measures { size, unit } = measures;
    if displacement < 0 {
        return Err(ErrorKind::Displacement(displacement).into());
    }
    let pointer = target.pointer().size;
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
    if start < 0 || end > i128::from(size) {
        return Err(ErrorKind::Range { start, end, size, displacement, unit, own: false }.into());
    }
    Ok(Reach { base, bytes: (start, end) })
}

impl Exposure {
    /// Takes the window's accumulate lock.
    pub(super) fn lock_accumulates(&self) -> Briefly<'_> {
        self.control.accumulate(self.control.rank())
    }

    /// Where an operation of a peer reaches.
    pub(super) fn reach(
        &self,
        header: &Header,
        form: &Received,
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

    /// Checks an operation of a peer before it touches a byte: rules T1 to T6 by the form's tag, 14, 15, 19, 27 and 29.
    /// Gives the memory, displacement 0 being where the operation's lies, and who keeps it.
    pub(super) fn admit(
        &self,
        header: &Header,
        form: &Received,
        me: u32,
        architecture: &Architecture,
    ) -> Result<(Span, Cow<'_, Arc<Exposed>>)> {
        if form.form.tag() == Tag::Locale && form.builder != me {
            let shared = form.form.builder_architecture();
            let same = shared.is_some_and(|built| built.same_representation(architecture));
            if self.policy != Policy::SameLayout || !same {
                return Err(ErrorKind::ForeignTarget {
                    datatype: excerpt(&form.form),
                    builder: form.builder,
                    target: me,
                }
                .into());
            }
        }
        let no_op = header.kind == Kind::Fetch && header.tag == Op::NoOp.wire();
        if header.kind != Kind::Get && !no_op && self.control.is_no_put() {
            return Err(ErrorKind::Epoch(NO_PUT).into());
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

const NO_PUT: &str = "the target said by NOPUT that nobody puts into its window in this epoch (rule 9): leave out the assert";
