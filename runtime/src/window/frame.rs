//! The quick way of an operation by message: one frame, written straight into the link.

use std::any::TypeId;
use std::cell::Cell;
use std::sync::Arc;

use longshore_transport::{Access, Place};
use shipable::Element;
use shipable::reduce::{Op, check_swap};

use super::api::{Called, Fetched};
use super::core::Core;
use super::operation::Call;
use super::remote::{DENSE, WHOLE};
use super::single::One;
use super::targets::Target;
use crate::engine::{Fetch, Keep, Measures, Operation};
use crate::memory::Span;
use crate::origin::What;
use crate::route::Route;
use crate::types::{Compiled, TargetType, Type};
use crate::wire::{Header, Kind};

/// What was found of an operation: of so many elements of a type, on a target. It depends on nothing else, so that the next one like
/// it needs to look only where its memory lies and where it reaches.
#[derive(Clone, Copy, Default)]
pub(super) struct Shape {
    target: i32,
    form: u64,
    elements: u64,
    signature: u128,
    /// The one run of its elements in this rank's memory.
    first: i64,
    len: u64,
    /// The bytes that it touches at the target, from its displacement on.
    reach: (i64, i64),
    /// Whether an answer has the bytes of this rank's memory.
    alike: bool,
}

/// The last shapes, each at a place of its target's and form's: a program puts to several neighbours by turns.
#[derive(Default)]
pub(super) struct Shapes([Cell<Shape>; SHAPES]);

const SHAPES: usize = 1 << 3;

impl Shapes {
    #[inline]
    fn place(&self, target: &Target, form: u64) -> &Cell<Shape> {
        // Neighbours on a grid are a power of two apart.
        let mixed = (target.rank as u64 ^ form << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.0[(mixed >> 61) as usize]
    }
}

/// An answer of so many bytes comes in one frame: no link has shorter ones.
const SHORT: u64 = 512;

/// So many operations on a target since all on it were done make a stream, and another is expected.
const STREAM: u64 = 4;

/// What is known of how an operation's neighbours follow it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Nothing else is under way to its target, nor did the last burst have many, so that nothing is gained by waiting.
    Alone,
    /// Others are on their way, or will be.
    Stream,
}

/// The peer to which operations last began while none was under way, and how many had been issued to it before.
#[derive(Clone, Copy, Default)]
pub(super) struct Burst {
    peer: u32,
    issued: u64,
}

/// An operation that may go as a frame.
struct Run<'a> {
    target: &'a Target,
    own: &'a Arc<Compiled>,
    shape: Shape,
    /// The bytes of the target's window.
    bytes: (i64, i64),
    header: Header,
}

impl Core {
    /// A put or get of elements of the target's type, as one run, for which a frame has room. Checks what the long way checks, and
    /// leaves to it whatever isn't so simple, errors too.
    pub(super) fn frame(&self, memory: Span, what: &What<'_>, call: &Call<'_>) -> Option<()> {
        let run = self.frame_of(memory, what, call)?;
        if run.target.route == Route::Rdma && run.shape.len >= DENSE {
            return self.access_run(&run, memory, call.kind);
        }
        let pace = self.pace(run.target);
        match call.kind {
            Kind::Put if pace == Pace::Alone && self.write_run(&run, memory) => Some(()),
            Kind::Put => self.send_run(run, memory, None, pace),
            _ => self.send_run(run, memory, Some(memory), pace),
        }
    }

    /// How operations on a target come. A stream's are held until there are many, which go together, or its rank looks what came.
    #[inline]
    fn pace(&self, target: &Target) -> Pace {
        if self.flight.ledger.outstanding(target.peer) > 0 {
            return Pace::Stream;
        }
        let begins = Burst { peer: target.peer, issued: self.flight.ledger.issued(target.peer) };
        let last = self.recent.burst.replace(begins);
        let many = self.flight.ledger.issued(last.peer).saturating_sub(last.issued);
        if many >= STREAM { Pace::Stream } else { Pace::Alone }
    }

    /// An accumulate, likewise, with room for what was there if it fetches.
    pub(super) fn frame_update(
        &self,
        (memory, what): (Span, &What<'_>),
        result: &Option<(Span, What<'_>)>,
        call: &Call<'_>,
        op: Op,
    ) -> Option<()> {
        let mut run = self.frame_of(memory, what, call)?;
        let room = match result {
            None => None,
            Some((room, what)) if what.is_plain(run.header.count, run.own) => Some(*room),
            Some(_) => return None,
        };
        let Shape { first, len, .. } = run.shape;
        let end = first.checked_add_unsigned(len)?;
        let fits = |room: Span| room.len() == len && room.covers(first, end);
        let leaf = run.own.single_leaf().filter(|_| op != Op::NoOp)?;
        if op.check(leaf).is_err() || !room.is_none_or(fits) {
            return None;
        }
        run.header.tag = op.wire();
        let pace = self.pace(run.target);
        self.send_run(run, memory, room, pace)
    }

    /// Checks an operation whose origin is a run.
    fn frame_of<'a>(&'a self, memory: Span, what: &What<'_>, call: &Call<'a>) -> Option<Run<'a>> {
        let TargetType::Own(own_type) = call.target_type else { return None };
        let target = self.frame_target(call.target)?;
        let own_rank = own_type.is_of(self.process.names());
        let own = own_type.compiled();
        let elements = u64::try_from(call.count).ok()?;
        if !what.is_plain(elements, own) || !own_rank {
            return None;
        }
        let shape = self.shape(target, own_type, elements)?;
        let Shape { first, len, .. } = shape;
        let end = first.checked_add_unsigned(len)?;
        // A struct that ends in padding has more memory than data.
        if len != memory.len() || !memory.covers(first, end) {
            return None;
        }
        let (bytes, header) = shape.place(target, call)?;
        let header = Header { context: self.window, ..header };
        Some(Run { target, own, shape, bytes, header })
    }

    /// A target that is reached by frames, and may be now.
    fn frame_target(&self, rank: i32) -> Option<&Target> {
        let target = self.targets.get(usize::try_from(rank).ok()?)?;
        let remote = target.route != Route::Direct && !self.process.me().emulated;
        let open = remote && !self.process.checks() && self.is_accessible(target);
        let room = open && self.flight.has_room(target.peer);
        (room && self.process.check_job().is_ok()).then_some(target)
    }

    /// What there is to find of so many elements of a type, on a target; none where they aren't one run. The last ones are kept.
    #[inline]
    fn shape(&self, target: &Target, own: &Type, elements: u64) -> Option<Shape> {
        let place = self.recent.shapes.place(target, own.compiled().id());
        let last = place.get();
        let wanted = (target.rank as i32, own.compiled().id(), elements);
        if (last.target, last.form, last.elements) == wanted && last.len > 0 {
            return Some(last);
        }
        let shape = self.find_shape(target, own, elements)?;
        place.set(shape);
        Some(shape)
    }

    #[cold]
    fn find_shape(&self, target: &Target, own: &Type, elements: u64) -> Option<Shape> {
        let (compiled, architecture) = (own.compiled(), &target.architecture);
        let program = compiled.native();
        let (first, len) = (program.contiguous(elements)?, program.stream_length(elements).ok()?);
        let bounds = TargetType::Own(own).bounds_on(architecture).ok()?;
        let last = bounds.extent().checked_mul(i64::try_from(elements).ok()?.checked_sub(1)?)?;
        let low = bounds.true_lb.checked_add(last.min(0))?;
        let high = bounds.true_ub.checked_add(last.max(0))?;
        // What reaches behind its displacement is within what the target's pointers reach, if it is within its memory.
        let is_simple = compiled.is_portable() && len > 0 && low >= 0;
        is_simple.then_some(Shape {
            target: target.rank as i32,
            form: compiled.id(),
            elements,
            signature: own.signature().repeat(elements)?.hash,
            first,
            len,
            reach: (low, high),
            alike: architecture.same_representation(&self.process.me().architecture),
        })
    }

    /// Sends it; what it fetches comes to `room`.
    fn send_run(&self, run: Run<'_>, memory: Span, room: Option<Span>, pace: Pace) -> Option<()> {
        let Run { target, own, shape, bytes, header } = run;
        let length = if header.kind == Kind::Get { 0 } else { shape.len };
        let mut engine = self.process.engine();
        let number = engine.send_frame(
            target.peer,
            &self.flight.ledger,
            Header { length, ..header },
            pace == Pace::Stream,
            |data: &mut [u8]| length == 0 || memory.read(shape.first, data),
        )?;
        if let Some(span) = room {
            let operation = Operation { target: target.peer, window: self.window, number };
            let fetch = shape.fetch(own, span, Keep::Lender, bytes);
            engine.state().expect(operation, fetch);
            self.flight.lend();
        } else {
            self.flight.ship();
        }
        self.used.set(true);
        Some(())
    }

    /// Writes a copy to the target's registered memory, while nothing else is under way there: the network itself answers, in a fifth
    /// less time than a frame and its answer take. Many at once are quicker as frames, which travel and are answered together. (2
    /// virtual cores, Zen 5: `longshore bench put_latency put_mr --hosts --size 8`.)
    fn write_run(&self, run: &Run<'_>, memory: Span) -> bool {
        let &Run { target, shape: Shape { first, len, .. }, .. } = run;
        let (Some((key, stretch)), Some(rdma)) = (run.registered(), self.process.rdma()) else {
            return false;
        };
        let mut data = vec![0; len as usize];
        let place = Place { peer: target.peer, key, stretches: &[stretch] };
        let account = (self.window, &*self.flight.ledger);
        let started = memory.read(first, &mut data)
            && self.process.engine().write(rdma, account, &place, data);
        if started {
            self.flight.ship();
            self.used.set(true);
        }
        started
    }

    /// Starts an access from or to where the data are.
    fn access_run(&self, run: &Run<'_>, memory: Span, kind: Kind) -> Option<()> {
        let &Run { target, shape: Shape { first, len, .. }, .. } = run;
        if len > WHOLE {
            return None;
        }
        let (key, stretch) = run.registered()?;
        let access = if kind == Kind::Put { Access::Write } else { Access::Read };
        let transfer = memory.transfer(self.process.rdma()?, first, len as usize)?;
        // Where it can't begin, the long way says why.
        let place = Place { peer: target.peer, key, stretches: &[stretch] };
        self.start_lent(transfer, access, &place).ok()?;
        self.used.set(true);
        Some(())
    }

    /// An operation on one element, likewise.
    pub(super) fn frame_one<T: Element>(
        &self,
        operands: &[T],
        rank: i32,
        displacement: i64,
        one: One,
    ) -> Option<Fetched<T>> {
        let target = self.frame_target(rank)?;
        let mut recent = self.recent.element.borrow_mut();
        if recent.as_ref().is_none_or(|(id, _)| *id != TypeId::of::<T>()) {
            // Of a rank that isn't emulated the window's elements are as Rust's.
            let datatype = self.process.elements().in_memory::<T>().ok()?;
            let element = is_element::<T>(&datatype).then_some((TypeId::of::<T>(), datatype));
            *recent = element;
        }
        let (_, datatype) = recent.as_ref()?;
        let own = datatype.compiled();
        let leaf = own.single_leaf()?;
        match one {
            One::Op(Op::NoOp) => return None,
            One::Op(op) => op.check(leaf).ok()?,
            One::Swap => check_swap(leaf).ok()?,
        }
        let call = one.call(rank, displacement, TargetType::Own(datatype));
        let shape = self.shape(target, datatype, 1)?;
        let (bytes, header) = shape.place(target, &call)?;
        let length = size_of_val(operands) as u64;
        let header = Header { context: self.window, tag: one.wire(), length, ..header };
        let mut engine = self.process.engine();
        let fill = |data: &mut [u8]| Span::with_slice(operands, |operands| operands.read(0, data));
        let may_wait = self.pace(target) == Pace::Stream;
        let number = engine.send_frame(target.peer, &self.flight.ledger, header, may_wait, fill)?;
        let operation = Operation { target: target.peer, window: self.window, number };
        let lane = self.lane();
        let ticket = lane.ticket();
        let keep = Keep::Waiter(ticket.clone());
        engine.state().expect(operation, shape.fetch(own, ticket.room().span::<T>(), keep, bytes));
        drop(engine);
        self.flight.lend();
        self.used.set(true);
        let call = Called {
            call: one.name(),
            target: rank,
            peer: target.peer,
            bytes: Some((bytes.0.into(), bytes.1.into())),
            epoch: self.epoch.get(),
        };
        Some(Fetched::coming(lane, call))
    }
}

impl Run<'_> {
    /// The key of the target's registered memory, and the stretch there that it touches, if it is one.
    fn registered(&self) -> Option<(u64, (u64, u64))> {
        let ((start, end), len) = (self.bytes, self.shape.len);
        let key = self.target.offset.filter(|_| self.target.route == Route::Rdma)?;
        let is_one = end.checked_sub_unsigned(len) == Some(start);
        Some((key, (u64::try_from(start).ok().filter(|_| is_one)?, len)))
    }
}

impl Shape {
    /// The bytes that a call touches of its target's window, and the header, but for the window; none where they aren't inside.
    #[inline]
    fn place(&self, target: &Target, call: &Call<'_>) -> Option<((i64, i64), Header)> {
        let Measures { size, unit } = target.measures;
        let base = call.displacement.checked_mul(unit.into()).filter(|base| *base >= 0)?;
        let (start, end) = (base.checked_add(self.reach.0)?, base.checked_add(self.reach.1)?);
        let header = Header {
            displacement: call.displacement,
            count: self.elements,
            form: self.form,
            signature: self.signature,
            ..Header::new(call.kind)
        };
        (end as u64 <= size).then_some(((start, end), header))
    }

    /// What waits for an answer.
    fn fetch(&self, own: &Arc<Compiled>, span: Span, keep: Keep, bytes: (i64, i64)) -> Fetch {
        Fetch {
            // What is as short comes in one frame.
            origin: (!self.alike || self.len > SHORT).then(|| own.clone()),
            count: self.elements,
            run: self.alike.then_some((self.first, self.len)),
            span,
            keep,
            bytes: (bytes.0.into(), bytes.1.into()),
        }
    }
}

/// Whether it is one item, as it lies in a slice, without padding.
pub(super) fn is_element<T: Element>(datatype: &Type) -> bool {
    let own = datatype.compiled();
    let is_one = |leaf| shipable::Signature::of_leaf(leaf) == own.signature();
    let len = size_of::<T>() as u64;
    own.is_portable()
        && own.single_leaf().is_some_and(is_one)
        && own.native().contiguous(1) == Some(0)
        && own.native().stream_length(1) == Ok(len)
}
