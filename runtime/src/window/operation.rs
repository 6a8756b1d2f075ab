//! Put and get: what is checked before they go, and the ways that they take.

use std::panic::Location;
use std::sync::{Arc, MutexGuard};

use shipable::Tag;

use super::accumulate::Lent;
use super::core::{Core, Match};
use super::part::Part;
use super::targets::{Door, Held, Reached, Target};
use crate::engine::{
    BY_NUMBER, Engine, Fetch, Keep, Operation, Outgoing, Policy, Purpose, Source, Ticket, reach,
};
use crate::error::{ErrorKind, Result, conversion, excerpt, locale_target};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::{Span, Typed};
use crate::origin::{Elementwise, What};
use crate::route::{Plan, Route, plan};
use crate::sequence::{Items, differ};
use crate::types::TargetType;
use crate::wire::{Header, Kind};

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

/// Elements that are one run on both sides: where it lies in this rank's memory and in the target's, and its length.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub target: &'a Target,
    pub first: i64,
    pub far: i64,
    pub len: u64,
}

impl Run<'_> {
    /// Copies it, where both memories have it.
    #[inline(always)]
    fn copy(&self, kind: Kind, near: Span, far: Span) -> bool {
        match kind {
            Kind::Put => far.copy_run(self.far, near, self.first, self.len),
            _ => near.copy_run(self.first, far, self.far, self.len),
        }
    }
}

impl Core {
    /// Puts or gets; see [`Epoch::put`](super::Epoch::put). The lender of `memory` keeps it until the operation is done.
    ///
    /// The quickest way is in line: what it is given stays in registers. In a function of its own it would be read from the
    /// stack, and store forwarding fails there: what was written in words is read as a whole, for which the processor waits until
    /// the words have left its store buffer. That took a third of the time of 8 bytes.
    #[allow(clippy::too_many_arguments)] // MPI's
    #[inline(always)]
    #[track_caller]
    pub(super) fn transfer(
        &self,
        kind: Kind,
        memory: Span,
        what: What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Result<()> {
        let run = self.single_run(memory.len(), &what, target, displacement, count, target_type);
        if let Some(run) = run {
            // No closure: it would have what it captures in memory.
            if let Some(door) = run.target.door.get() {
                if run.copy(kind, memory, door.span) {
                    self.used.set(true);
                    return Ok(());
                }
            }
        }
        self.transfer_else(memory, what, Call::new(kind, target, displacement, count, target_type))
    }

    /// The other ways of a put or get, the quicker ones first.
    #[inline(never)]
    #[track_caller]
    fn transfer_else(&self, memory: Span, what: What<'_>, call: Call<'_>) -> Result<()> {
        let target = usize::try_from(call.target).ok().and_then(|rank| self.targets.get(rank));
        let done = match target.filter(|target| target.route == Route::Direct) {
            // Had it been a single run to memory behind a door, it would be done.
            Some(target) if target.door.get().is_some() => self.again(memory, &what, &call),
            Some(_) => {
                let run = self.attached_run(memory, &what, &call);
                run.or_else(|| self.again(memory, &what, &call))
            }
            None => self.frame(memory, &what, &call),
        };
        if done.is_some() {
            return Ok(());
        }
        self.operate(Lent { span: memory, what: &what, keep: Keep::Lender }, &call, None)
    }

    /// Elements of the target's type that are one run on both sides, of memory of `size` bytes and of memory that was reached directly
    /// before. Checks what the long way checks, and leaves to it whatever isn't so simple, errors too.
    #[inline(always)]
    pub(super) fn single_run(
        &self,
        size: u64,
        what: &What<'_>,
        target: i32,
        displacement: i64,
        count: i64,
        target_type: TargetType<'_>,
    ) -> Option<Run<'_>> {
        let TargetType::Own(own_type) = target_type else { return None };
        let target = self.targets.get(usize::try_from(target).ok()?)?;
        if !target.is_near() || !self.opens(target) {
            return None;
        }
        let own_rank = own_type.is_of(self.process.names());
        let own = own_type.compiled();
        let elements = u64::try_from(count).ok()?;
        if !what.is_plain(elements, own) || !own_rank || !own.is_portable() || displacement < 0 {
            return None;
        }
        let program = own.native();
        let first = program.contiguous(elements)?;
        let len = program.stream_length(elements).ok()?;
        // A struct that ends in padding has more memory than data: its tail isn't to be written.
        if len != size {
            return None;
        }
        let base = displacement.checked_mul(i64::from(target.measures.unit))?;
        Some(Run { target, first, far: base.checked_add(first)?, len })
    }

    /// The quick way to memory that the target attached.
    fn attached_run(&self, memory: Span, what: &What<'_>, call: &Call<'_>) -> Option<()> {
        let &Call { kind, target, displacement, count, target_type, .. } = call;
        let run = self.single_run(memory.len(), what, target, displacement, count, target_type)?;
        let reached = self.reach_attached(run.target, run.far)?;
        self.note_use(run.copy(kind, memory, reached.span)).then_some(())
    }

    /// An operation with all its checks.
    #[track_caller]
    pub(super) fn operate(
        &self,
        memory: Lent<'_>,
        call: &Call<'_>,
        ticket: Option<Arc<Ticket>>,
    ) -> Result<()> {
        let activity = if call.kind == Kind::Put { Activity::Put } else { Activity::Get };
        self.issued(call.name, call.target, activity, |bytes| {
            self.checked(memory, call, ticket, bytes)
        })
    }

    /// An operation on a target: notes that it is under way and where it was called, and gives what goes wrong its place, with the bytes
    /// of the target's window that `body` finds it to touch.
    #[track_caller]
    pub(super) fn issued<R>(
        &self,
        name: &'static str,
        target: i32,
        activity: Activity,
        body: impl FnOnce(&mut Option<(i128, i128)>) -> Result<R>,
    ) -> Result<R> {
        self.called(Location::caller());
        self.note_on(activity, target);
        let mut bytes = None;
        let outcome = body(&mut bytes);
        self.process.note(Activity::Computing, 0);
        outcome.map_err(|error| self.raise(error.at(|| self.place(name, Some(target), bytes))))
    }

    fn checked(
        &self,
        Lent { span, what, keep }: Lent<'_>,
        call: &Call<'_>,
        ticket: Option<Arc<Ticket>>,
        bytes: &mut Option<(i128, i128)>,
    ) -> Result<()> {
        self.process.ready()?;
        let Some(target) = self.target(call.target)? else { return self.check_epoch() };
        self.access(target)?;
        let count = u64::try_from(call.count).map_err(|_| ErrorKind::Count(call.count))?;
        self.check_type(call.target_type, target)?;
        let origin = what.resolve(&self.process, span)?;
        self.check_signatures(&origin, call.target_type, count)?;
        match call.kind {
            Kind::Get => origin.check_disjoint()?,
            _ if call.target_type.overlaps(count)? => {
                let datatype = excerpt(&call.target_type);
                return Err(ErrorKind::Overlap { count: call.count, datatype }.into());
            }
            _ => {}
        }
        let bounds = call.target_type.bounds_on(&target.architecture)?;
        let reach =
            reach(target.measures, call.displacement, count, &bounds, &target.architecture)?;
        *bytes = Some(reach.bytes);
        self.used.set(true);
        match self.reach_bytes(target, reach.bytes)? {
            Some(reached) => {
                self.direct(call, &reached, &origin, count, reach.base)?;
                self.remember(what, call);
                Ok(())
            }
            None => {
                // Only a ticket's operation has other memory than its lender's.
                if let (None, Keep::Lender) = (&ticket, &keep) {
                    if self.access_memory(call, target, &origin, count, reach.base)? {
                        return Ok(());
                    }
                }
                self.ship(call, target, (origin, keep), count, ticket, reach.bytes)
            }
        }
    }

    /// Rules T1, T2 and T4. (T3 is the type system's: no origin is a foreign type.)
    pub(super) fn check_type(&self, target_type: TargetType<'_>, target: &Target) -> Result<()> {
        target_type.check_rank(self.process.names())?;
        match target_type {
            TargetType::Foreign(foreign) if foreign.builder() != target.peer => {
                Err(ErrorKind::ForeignTarget {
                    datatype: excerpt(foreign),
                    builder: foreign.builder(),
                    target: target.peer,
                }
                .into())
            }
            TargetType::Own(own) if own.tag() == Tag::Locale => {
                let like = target.architecture.same_representation(&self.process.me().architecture);
                let hint = match (self.policy(), like) {
                    (Policy::SameLayout, true) => return Ok(()),
                    (Policy::SameLayout, false) => {
                        "; that the window allows same_layout doesn't help, the target's representation differs"
                    }
                    (Policy::Strict, true) => {
                        ", or create the window with target_types=same_layout, since the target's representation is the same"
                    }
                    (Policy::Strict, false) => "",
                };
                Err(locale_target(own.datatype(), own.form(), hint).into())
            }
            _ => Ok(()),
        }
    }

    /// Rule 19.
    pub(super) fn check_signatures(
        &self,
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
            let (count_here, datatype) = (origin.count, &*origin.datatype);
            let here = Items { count: count_here, form: datatype.form(), text: datatype };
            let there = Items { count, form: target_type.form(), text: &target_type };
            return Err(differ(&here, &there).into());
        }
        self.matched.set(Some(this));
        Ok(())
    }

    fn direct(
        &self,
        call: &Call<'_>,
        reached: &Reached<'_>,
        origin: &Elementwise,
        count: u64,
        base: i64,
    ) -> Result<()> {
        let window = reached.span.shifted(base);
        let window = window.ok_or(ErrorKind::Displacement(call.displacement))?;
        let near = origin.datatype.native();
        let len = near.stream_length(origin.count)?;
        call.target_type.with_native(&self.process.me().architecture, |far| {
            let plan = plan(len, near.contiguous(origin.count), far.contiguous(count));
            let (near, far) = (
                Typed { program: near, count: origin.count, span: origin.span },
                Typed { program: far, count, span: window },
            );
            let copied = match (plan, call.kind) {
                (Plan::Run { origin: from, target: to, len }, Kind::Put) => {
                    far.span.copy_run(to, near.span, from, len)
                }
                (Plan::Run { origin: to, target: from, len }, _) => {
                    near.span.copy_run(to, far.span, from, len)
                }
                (Plan::Walk, Kind::Put) => return Span::copy(near, far).map_err(conversion),
                (Plan::Walk, _) => return Span::copy(far, near).map_err(conversion),
                (Plan::Nothing, _) => true,
            };
            // The ranges were checked: but one of two spans might be shorter than said.
            match copied {
                true => Ok(()),
                false => Err(ErrorKind::Displacement(call.displacement).into()),
            }
        })
    }

    /// Does an accumulate to the memory of a target that is near, in which a byte of its window, or an address, lies at that displacement.
    /// In two places, as code: a span that is the one or the other lies in memory, where store forwarding fails (as in
    /// [`transfer`](Core::transfer)): 10 ns.
    #[inline(always)]
    pub(super) fn with_reach<R>(
        &self,
        target: &Target,
        at: i64,
        act: impl FnOnce(Span) -> R,
    ) -> Option<R> {
        match target.door.get() {
            Some(door) => Some(act(door.span)),
            None => self.with_attached(target, at, act),
        }
    }

    #[inline(never)]
    fn with_attached<R>(&self, target: &Target, at: i64, act: impl FnOnce(Span) -> R) -> Option<R> {
        let reached = self.reach_in_order(target, at)?;
        Some(act(reached.span))
    }

    /// The memory of these bytes of a target's window, if this rank reaches all of them directly.
    fn reach_bytes(&self, target: &Target, bytes: (i128, i128)) -> Result<Option<Reached<'_>>> {
        self.reach_all(target, bytes, Core::reach_attached)
    }

    /// The same for an accumulate, whose order counts.
    pub(super) fn reach_to_update(
        &self,
        target: &Target,
        bytes: (i128, i128),
    ) -> Result<Option<Reached<'_>>> {
        self.reach_all(target, bytes, Core::reach_in_order)
    }

    fn reach_all<'a>(
        &'a self,
        target: &Target,
        (start, end): (i128, i128),
        reach_attached: impl FnOnce(&'a Core, &Target, i64) -> Option<Reached<'a>>,
    ) -> Result<Option<Reached<'a>>> {
        match target.route {
            Route::Message | Route::Rdma => Ok(None),
            Route::Direct if self.flavor == Flavor::Dynamic => {
                let (Ok(start), Ok(end)) = (i64::try_from(start), i64::try_from(end)) else {
                    return Ok(None);
                };
                let reached = reach_attached(self, target, start);
                Ok(reached.filter(|reached| reached.span.covers(start, end)))
            }
            Route::Direct => Ok(Some(Reached { span: self.door(target)?, _turn: None })),
        }
    }

    /// A target's memory, mapped on first use.
    fn door(&self, target: &Target) -> Result<Span> {
        if let Some(door) = target.door.get() {
            return Ok(door.span);
        }
        let door = match target.offset {
            Some(_) if self.whole.is_some() => {
                let part = self.part(target)?;
                Door { span: part.span(), _memory: Held::Mapped { _mapping: part } }
            }
            Some(offset) if target.peer != self.process.me().rank => {
                let part = Part { offset, len: target.measures.size };
                let exposed = part.map(self.process.segment())?;
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
                state.expect(
                    operation,
                    Fetch { origin: Some(datatype), count, run: None, span, keep, bytes },
                );
                Outgoing::new(header, Source::Empty, Purpose::None)
            }
        };
        engine.send(rank, outgoing);
        Ok(())
    }

    /// Waits until one more operation on a process may be under way.
    pub(super) fn await_room(&self, peer: u32) -> Result<()> {
        let room = || self.flight.has_room(peer);
        match room() {
            true => Ok(()),
            false => self.await_access(peer, |_| room().then_some(Ok(()))),
        }
    }

    /// Makes room for an operation on a target, and its number and header; its target type is known there.
    pub(super) fn begin(
        &self,
        call: &Call<'_>,
        target: &Target,
        count: u64,
    ) -> Result<(MutexGuard<'_, Engine>, Header)> {
        let rank = target.peer;
        self.await_room(rank)?;
        let mut engine = self.process.engine();
        let state = engine.state();
        if let Some(gone) = state.gone(rank) {
            return Err(gone);
        }
        // Once the job ends, operations are given up and nobody waits for them.
        self.process.check_job()?;
        self.flight.lend();
        state.define(rank, call.target_type)?;
        state.note_call(rank, self.caller.get());
        let signature = call.target_type.signature().repeat(count);
        let number = self.flight.ledger.issue(rank);
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
