//! Put and get: what is checked before they go, and the ways that they take.

use std::panic::Location;
use std::sync::{Arc, MutexGuard};

use longshore_transport::{GRANULE, Range};
use shipable::{Datatype, Tag};

use super::accumulate::Lent;
use super::core::{Core, Match};
use super::targets::{Door, Held, Target};
use crate::engine::{
    BY_NUMBER, Engine, Fetch, Keep, Operation, Outgoing, Policy, Purpose, Source, Ticket, reach,
};
use crate::error::{ErrorKind, Result, conversion};
use crate::job::Activity;
use crate::memory::{Exposed, Span, Typed};
use crate::origin::{Elementwise, What};
use crate::route::{Plan, Route, plan};
use crate::types::TargetType;
use crate::wire::{Header, Kind};

/// Operations on one target that may be under way; the next one waits, and makes progress meanwhile.
const OUTSTANDING: u64 = 256;

/// An operation as it was called.
pub(super) struct Call<'a> {
    pub name: &'static str,
    pub kind: Kind,
    pub target: i32,
    pub displacement: i64,
    pub count: i64,
    pub target_type: TargetType<'a>,
}

impl<'a> Call<'a> {
    /// One that is called as its kind.
    #[inline]
    pub(super) fn new(
        kind: Kind,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'a>,
    ) -> Call<'a> {
        Call { name: kind.call(), kind, target, displacement, count, target_type }
    }

    /// The same with a request.
    pub(super) fn requested(&self) -> Call<'a> {
        let name = match self.kind {
            Kind::Put => "rput",
            Kind::Accumulate => "raccumulate",
            Kind::Fetch => "rget_accumulate",
            _ => "rget",
        };
        Call { name, ..*self }
    }
}

impl Core {
    /// Puts; see [`Epoch::put`](super::Epoch::put). The lender of `memory` keeps it until the operation is done.
    #[inline]
    #[track_caller]
    pub(super) fn put(
        &self,
        memory: Span,
        what: &What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let call = Call::new(Kind::Put, target, displacement, count, target_type);
        if self.run(memory, what, &call).is_some() {
            return Ok(());
        }
        self.operate(Lent { span: memory, what, keep: Keep::Lender }, &call, None)
    }

    /// Gets; see [`Epoch::get`](super::Epoch::get).
    #[inline]
    #[track_caller]
    pub(super) fn get(
        &self,
        memory: Span,
        what: &What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let call = Call::new(Kind::Get, target, displacement, count, target_type);
        if self.run(memory, what, &call).is_some() {
            return Ok(());
        }
        self.operate(Lent { span: memory, what, keep: Keep::Lender }, &call, None)
    }

    /// The quick way: elements of the target's type, as one run, to or from memory that is mapped. Checks what the long way checks,
    /// and leaves to it whatever isn't so simple, errors too.
    #[inline]
    fn run(&self, memory: Span, what: &What<'_>, call: &Call<'_>) -> Option<()> {
        let Call { kind, target, displacement, count, target_type, .. } = *call;
        let TargetType::Own(own_type) = target_type else { return None };
        let target = self.targets.get(usize::try_from(target).ok()?)?;
        let door = target.door.get()?;
        if !self.is_accessible(target) {
            return None;
        }
        let own_rank = own_type.is_of(self.process.names());
        let own = own_type.compiled();
        let elements = u64::try_from(count).ok()?;
        if !what.is_plain(elements, own) || !own_rank || !own.is_portable() || displacement < 0 {
            return None;
        }
        let first = own.native().contiguous(elements)?;
        let len = own.native().stream_length(elements).ok()?;
        // A struct that ends in padding has more memory than data: its tail isn't to be written.
        if len != memory.len() {
            return None;
        }
        let base = displacement.checked_mul(i64::from(target.measures.unit))?;
        let far = base.checked_add(first)?;
        let copied = match kind {
            Kind::Put => door.span.copy_run(far, memory, first, len),
            _ => memory.copy_run(first, door.span, far, len),
        };
        self.note_use(copied).then_some(())
    }

    /// An operation with all its checks.
    #[track_caller]
    pub(super) fn operate(
        &self,
        memory: Lent<'_>,
        call: &Call<'_>,
        ticket: Option<Arc<Ticket>>,
    ) -> Result<()> {
        self.called(Location::caller());
        let activity = if call.kind == Kind::Put { Activity::Put } else { Activity::Get };
        self.note_on(activity, call.target);
        let mut bytes = None;
        let outcome = self.checked(memory, call, ticket, &mut bytes);
        self.process.note(Activity::Computing, 0);
        outcome.map_err(|error| {
            self.raise(error.at(|| self.place(call.name, Some(call.target), bytes)))
        })
    }

    fn checked(
        &self,
        Lent { span, what, keep }: Lent<'_>,
        call: &Call<'_>,
        ticket: Option<Arc<Ticket>>,
        bytes: &mut Option<(i128, i128)>,
    ) -> Result<()> {
        self.process.ready()?;
        let Some(target) = self.target(call.target)? else { return self.in_epoch() };
        self.access(target)?;
        let count = u64::try_from(call.count).map_err(|_| ErrorKind::Count(call.count))?;
        self.check_type(call.target_type, target)?;
        let origin = what.resolve(&self.process, span)?;
        self.check_signatures(what, &origin, call.target_type, count)?;
        match call.kind {
            Kind::Get => origin.check_disjoint()?,
            _ if call.target_type.overlaps(count)? => {
                let datatype = call.target_type.to_string();
                return Err(ErrorKind::Overlap { count: call.count, datatype }.into());
            }
            _ => {}
        }
        let bounds = call.target_type.bounds_on(&target.architecture)?;
        let reach =
            reach(target.measures, call.displacement, count, &bounds, &target.architecture)?;
        *bytes = Some(reach.bytes);
        self.used.set(true);
        match target.route {
            Route::Direct => self.direct(call, target, &origin, count, reach.base),
            Route::Message => self.ship(call, target, (origin, keep), count, ticket, reach.bytes),
        }
    }

    /// Rules T1, T2 and T4. (T3 is the type system's: no origin is a foreign type.)
    pub(super) fn check_type(&self, target_type: TargetType<'_>, target: &Target) -> Result<()> {
        target_type.check_rank(self.process.names())?;
        match target_type {
            TargetType::Foreign(foreign) if foreign.builder() != target.peer => {
                Err(ErrorKind::ForeignTarget {
                    datatype: foreign.to_string(),
                    builder: foreign.builder(),
                    target: target.peer,
                }
                .into())
            }
            TargetType::Own(own) if own.tag() == Tag::Locale => {
                let like = target.architecture.same_representation(&self.process.me().architecture);
                let hint = match (self.policy, like) {
                    (Policy::SameLayout, true) => return Ok(()),
                    (Policy::SameLayout, false) => {
                        "; that the window allows same_layout doesn't help, the target's representation differs"
                    }
                    (Policy::Strict, true) => {
                        ", or create the window with target_types=same_layout, since the target's representation is the same"
                    }
                    (Policy::Strict, false) => "",
                };
                Err(ErrorKind::LocaleTarget {
                    datatype: own.to_string(),
                    culprit: own
                        .form()
                        .culprit()
                        .map_or("byte displacements".to_owned(), Datatype::to_string),
                    hint,
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Rule 19.
    pub(super) fn check_signatures(
        &self,
        what: &What<'_>,
        origin: &Elementwise,
        target_type: TargetType<'_>,
        count: u64,
    ) -> Result<()> {
        let this = Match {
            origin: (origin.datatype.id(), origin.count),
            target: (target_type.id(), count),
        };
        if self.matched.get() == Some(this) {
            return Ok(());
        }
        let here = origin.datatype.signature().repeat(origin.count);
        let there = target_type.signature().repeat(count);
        if here.is_none() || here != there {
            return Err(ErrorKind::Signature {
                origin: what.to_string(),
                target: format!("{count} of {target_type}"),
            }
            .into());
        }
        self.matched.set(Some(this));
        Ok(())
    }

    fn direct(
        &self,
        call: &Call<'_>,
        target: &Target,
        origin: &Elementwise,
        count: u64,
        base: i64,
    ) -> Result<()> {
        let window = self.door(target)?;
        let window = window.shifted(base).ok_or(ErrorKind::Displacement(call.displacement))?;
        let near = origin.datatype.native();
        let len = near.stream_length(origin.count)?;
        call.target_type.with_native(&self.process.me().architecture, |far| {
            let route =
                plan(Route::Direct, len, near.contiguous(origin.count), far.contiguous(count));
            let (near, far) = (
                Typed { program: near, count: origin.count, span: origin.span },
                Typed { program: far, count, span: window },
            );
            match (route, call.kind) {
                (Plan::Run { origin: from, target: to, len }, Kind::Put) => {
                    far.span.copy_run(to, near.span, from, len);
                }
                (Plan::Run { origin: to, target: from, len }, _) => {
                    near.span.copy_run(to, far.span, from, len);
                }
                (Plan::Walk, Kind::Put) => Span::copy(near, far).map_err(conversion)?,
                (Plan::Walk, _) => Span::copy(far, near).map_err(conversion)?,
                (Plan::Nothing | Plan::Ship, _) => {}
            }
            Ok(())
        })
    }

    /// A target's memory, mapped on first use.
    pub(super) fn door(&self, target: &Target) -> Result<Span> {
        if let Some(door) = target.door.get() {
            return Ok(door.span);
        }
        let door = match target.offset {
            Some(_) if self.whole.is_some() => {
                let part = self.part(target)?;
                Door { span: part.span(), _memory: Held::Mapped { _mapping: part } }
            }
            Some(offset) if target.peer != self.process.me().rank => {
                // As much as was allocated for it.
                let len = target.measures.size.max(1).checked_next_multiple_of(GRANULE);
                let range = Range { offset, len: len.unwrap_or(u64::MAX) };
                let mapping = self.process.segment().map(range)?;
                let exposed = Exposed::allocated(mapping, target.measures.size);
                Door { span: exposed.span(), _memory: Held::Mapped { _mapping: exposed } }
            }
            _ => Door {
                span: self.exposed.span(),
                _memory: Held::Own { _exposed: self.exposed.clone() },
            },
        };
        Ok(target.door.get_or_init(|| door).span)
    }

    /// Hands an operation to the engine.
    fn ship(
        &self,
        call: &Call<'_>,
        target: &Target,
        (origin, keep): (Elementwise, Keep),
        count: u64,
        ticket: Option<Arc<Ticket>>,
        bytes: (i128, i128),
    ) -> Result<()> {
        let (me, rank) = (self.process.me(), target.peer);
        let program = match call.kind {
            Kind::Put => origin.datatype.program(&me.architecture)?,
            _ => origin.datatype.program(&target.architecture)?,
        };
        let length = program.stream_length(origin.count)?;
        if length == 0 {
            return Ok(());
        }
        let (mut engine, header) = self.begin(call, target, count)?;
        let state = engine.state();
        let operation = Operation { target: rank, window: self.window, number: header.operation };
        // What fetches is answered by its number anyway.
        let tag = if ticket.is_some() && call.kind == Kind::Put { BY_NUMBER } else { 0 };
        if let Some(ticket) = ticket {
            state.ticket(operation, ticket);
        }
        let Elementwise { datatype, count, span } = origin;
        let outgoing = match call.kind {
            Kind::Put => Outgoing::new(
                Header { length, tag, ..header },
                Source::Typed { program, count, span, _keep: keep },
                Purpose::Operation(Kind::Put, operation),
            ),
            _ => {
                state.expect(operation, Fetch { origin: datatype, count, span, keep, bytes });
                Outgoing::new(header, Source::Empty, Purpose::None)
            }
        };
        state.push(rank, outgoing);
        engine.progress();
        Ok(())
    }
    /// Makes room for an operation on a target, and its number and header; its target type is known there.
    pub(super) fn begin(
        &self,
        call: &Call<'_>,
        target: &Target,
        count: u64,
    ) -> Result<(MutexGuard<'_, Engine>, Header)> {
        let rank = target.peer;
        if self.ledger.outstanding(rank) >= OUTSTANDING {
            let room = || self.ledger.outstanding(rank) < OUTSTANDING;
            self.process.wait(|_, _| room().then_some(Ok(())))?;
        }
        let mut engine = self.process.engine();
        let state = engine.state();
        if let Some(gone) = state.gone(rank) {
            return Err(gone);
        }
        // Once the job ends, operations are given up and nobody waits for them.
        self.process.check_job()?;
        self.shipped.set(true);
        state.define(rank, call.target_type)?;
        state.note_call(rank, self.caller.get());
        let signature = call.target_type.signature().repeat(count);
        let number = self.ledger.issue(rank);
        let header = Header {
            context: self.window,
            operation: number,
            displacement: call.displacement,
            count,
            form: call.target_type.id(),
            signature: signature.map_or(0, |signature| signature.hash),
            ..Header::new(call.kind)
        };
        Ok((engine, header))
    }
}
