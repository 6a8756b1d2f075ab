//! What a rank records about itself for `longshore run --stats` and `--trace`.
//!
//! The `Observer` of a rank is the one place at which everything is recorded: operations, calls
//! that may wait, sleeps, frames. Counters become a `snapshot`, and traces become `events`
//! ([`longshore_job::journal`]); both go to the rank's journal, which the launcher reads after the
//! rank's end. So they are there after a crash too. Without an observer, the fast paths of
//! operations are the code of a job that isn't observed: the classes of targets keep observed
//! operations off them (`window::peers`).
//!
//! A *call* here is one that may wait: synchronisation, collective calls, messages, requests. Its
//! time is taken, and the part of it in which the rank slept is given to a rank: the one that all
//! the others wait for, directly or through others that wait, as far as the segment's notes say.
//!
//! Left out: ranks of other launchers and simulated ranks have no journal. A wait that ends without
//! a sleep is for no rank, unless its call addresses one.

mod counters;
mod frames;
mod kinds;
mod tracer;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_job::journal::EVENTS;
pub(crate) use longshore_job::journal::events::EpochKind;
use longshore_job::journal::events::{self, Event};
pub(crate) use longshore_job::journal::now;
use longshore_job::journal::open::{self, Entered};
use longshore_job::journal::snapshot::{CallCounts, OTHERS, Snapshot, WindowCounts};
use longshore_transport::{CallSlot, Journal, OpenCalls, Segment};

pub(crate) use counters::{Done, TIMED, WindowCounters};
pub(crate) use frames::{FrameObserver, Seen, Taken};
pub(crate) use kinds::Exchanged;

use crate::check::Caller;
use crate::job::Activity;
use crate::program::Line;
use kinds::Kinds;
use tracer::{Key, Tracer};

/// The first sleep of an observed wait. Each one is twice as long as the last, up to the longest of
/// all waits. After each the rank looks for whom it waits: when it falls asleep, the others that
/// wait in turn may not have said so yet.
pub(crate) const NAP: Duration = Duration::from_millis(1);

/// The least time between two snapshots, except the last one.
const PAUSE: u64 = 200_000_000;

/// The most windows whose counts are kept apart after their end.
const WINDOWS: usize = 256;

/// The most pairs of a kind of call and a source line.
const CALLS: usize = 4096;

/// The observer of a rank.
pub(crate) struct Observer {
    rank: u32,
    size: u32,
    segment: Segment,
    /// The time of its beginning.
    began: u64,
    traces: bool,
    open: Option<OpenCalls>,
    recorded: Mutex<Recorded>,
}

/// What was recorded, under one lock.
struct Recorded {
    journal: Journal,
    windows: Vec<Arc<WindowCounters>>,
    ended: Vec<WindowCounts>,
    merged: u64,
    kinds: Kinds,
    calls: HashMap<CallKey, Calls>,
    sleeps: u64,
    slept: u64,
    tracer: Tracer,
    published: u64,
}

/// The calls that are counted together: activity, window, and the address of the source place.
type CallKey = (Activity, Option<u32>, Option<usize>);

#[derive(Default)]
struct Calls {
    caller: Option<Line>,
    count: u64,
    nanos: u64,
    longest: u64,
    waited_for: HashMap<u32, u64>,
}

/// The place of a call: its window, its source place, and the rank of the job that it addresses.
#[derive(Clone, Copy, Default)]
pub(crate) struct At {
    pub window: Option<u32>,
    pub caller: Option<Line>,
    pub peer: Option<u32>,
}

impl At {
    /// A call at this source place.
    pub(crate) fn of(caller: Caller) -> At {
        At { caller: Some(Line::Rust(caller)), ..At::default() }
    }

    /// The place with the program's line. The call is under way in this thread.
    fn found(self) -> At {
        At { caller: self.caller.map(Line::found), ..self }
    }
}

/// The call that a thread is in.
struct Ongoing {
    activity: Activity,
    at: At,
    begin: u64,
    /// Calls within it, which are parts of it.
    depth: u32,
    /// The time slept for each rank.
    slept: Vec<(u32, u64)>,
    /// Where the launcher finds the call if it doesn't return.
    slot: Option<CallSlot>,
    /// The time at which it returned with the error of a job that is ending. If the thread makes no
    /// other call, this is the call in which the job has ended.
    over: Option<u64>,
}

thread_local! {
    /// The call that this thread is in. A thread serves one rank at a time.
    static ONGOING: RefCell<Option<Ongoing>> = const { RefCell::new(None) };
}

/// The rank for which a call has slept longest.
fn longest(slept: &[(u32, u64)]) -> Option<u32> {
    slept.iter().max_by_key(|(_, nanos)| *nanos).map(|(rank, _)| *rank)
}

/// The program's line of the call in which this thread is, if that is observed.
pub(crate) fn line_of_call() -> Option<Line> {
    ONGOING.with_borrow(|ongoing| ongoing.as_ref().filter(|it| it.over.is_none())?.at.caller)
}

impl Observer {
    /// The observer of a rank whose launcher asks for records, which it reads in the journal.
    pub(crate) fn new(rank: u32, segment: &Segment, journal: Journal) -> Observer {
        let (traces, room) = (journal.wants() & EVENTS != 0, journal.room());
        let recorded = Recorded {
            journal,
            windows: Vec::new(),
            ended: Vec::new(),
            merged: 0,
            kinds: Kinds::default(),
            calls: HashMap::new(),
            sleeps: 0,
            slept: 0,
            tracer: Tracer::new(room),
            published: now(),
        };
        let (size, segment) = (segment.size(), segment.clone());
        // Without memory for another mapping, calls that don't return aren't reported.
        let open = recorded.journal.open_calls().ok();
        let recorded = Mutex::new(recorded);
        Observer { rank, size, segment, began: now(), traces, open, recorded }
    }

    /// Whether events are recorded.
    #[inline]
    pub(crate) fn traces(&self) -> bool {
        self.traces
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of a new window.
    pub(crate) fn window(&self, id: u32, ranks: usize) -> Arc<WindowCounters> {
        let counters = Arc::new(WindowCounters::new(id, ranks));
        self.recorded().windows.push(counters.clone());
        counters
    }

    /// A window has ended. Its name is known until then.
    pub(crate) fn end_window(&self, counters: &Arc<WindowCounters>) {
        let mut recorded = self.recorded();
        recorded.windows.retain(|window| !Arc::ptr_eq(window, counters));
        let counts = counters.counts(true);
        if recorded.ended.len() < WINDOWS {
            recorded.ended.push(counts);
            return;
        }
        recorded.merged += 1;
        match recorded.ended.iter_mut().find(|window| window.id == OTHERS) {
            Some(others) => others.merge(counts),
            None => recorded.ended.push(WindowCounts { id: OTHERS, name: String::new(), ..counts }),
        }
    }

    /// A call begins that may wait. A call within another is a part of it.
    pub(crate) fn begin(&self, activity: Activity, at: At) {
        // The look may run code of the program, such as an interpreter's, which may call MPI. So
        // it comes before `ONGOING` is borrowed.
        let at = if line_of_call().is_some() { at } else { at.found() };
        ONGOING.with_borrow_mut(|ongoing| {
            if let Some(outer) = ongoing.as_mut().filter(|outer| outer.over.is_none()) {
                outer.depth += 1;
                let known = (outer.at.caller.is_some(), outer.at.window.is_some());
                outer.at.caller = outer.at.caller.or(at.caller);
                outer.at.window = outer.at.window.or(at.window);
                if known != (outer.at.caller.is_some(), outer.at.window.is_some()) {
                    self.note(outer);
                }
                return;
            }
            self.settle(ongoing);
            let (begin, depth, slept) = (now(), 0, Vec::new());
            let ongoing = ongoing.insert(Ongoing {
                activity,
                at,
                begin,
                depth,
                slept,
                slot: None,
                over: None,
            });
            self.note(ongoing);
        });
    }

    /// Counts the call of which another one shows that the job has gone on after it.
    fn settle(&self, ongoing: &mut Option<Ongoing>) {
        let Some(over) = ongoing.as_ref().and_then(|last| last.over) else { return };
        if let Some(last) = ongoing.take() {
            self.returned(over, last);
        }
    }

    /// Describes a call to the launcher, in case it doesn't return.
    fn note(&self, ongoing: &mut Ongoing) {
        let Some(open) = &self.open else { return };
        let thread = if self.traces { self.thread() } else { 0 };
        let mut bytes = [0; OpenCalls::ROOM];
        let &mut Ongoing { activity, at, begin, ref mut slot, .. } = ongoing;
        let (file, line) = at.caller.map_or(("", 0), |caller| (caller.file(), caller.line()));
        let (window, peer) = (at.window, at.peer);
        let entered = Entered { activity, window, peer, begin, file, line, thread };
        let len = entered.describe(&mut bytes);
        match slot {
            Some(slot) => open.describe(slot, &bytes[..len]),
            None => *slot = open.enter(&bytes[..len]),
        }
    }

    /// The number of this thread in the trace.
    #[cold]
    fn thread(&self) -> u8 {
        let mut recorded = self.recorded();
        let Recorded { tracer, journal, .. } = &mut *recorded;
        tracer.thread(journal)
    }

    /// The call that began last ends. If the job `is_ending`, it may have ended for that reason.
    /// Returns whether it is time for a snapshot.
    pub(crate) fn end(&self, is_ending: bool) -> bool {
        let ended = ONGOING.with_borrow_mut(|ongoing| match ongoing {
            Some(outer) if outer.depth > 0 => {
                outer.depth -= 1;
                None
            }
            Some(outer) if is_ending => {
                outer.over = Some(now());
                None
            }
            _ => ongoing.take(),
        });
        ended.is_some_and(|ended| self.returned(now(), ended))
    }

    /// Counts a call that has returned at a time. Returns whether it is time for a snapshot.
    fn returned(&self, end: u64, ended: Ongoing) -> bool {
        let Ongoing { activity, at, begin, slept, slot, .. } = ended;
        if let (Some(open), Some(slot)) = (&self.open, slot) {
            open.leave(slot);
        }
        let mut recorded = self.recorded();
        let nanos = end.saturating_sub(begin);
        let calls = recorded.calls(activity, at);
        calls.count += 1;
        calls.nanos += nanos;
        calls.longest = calls.longest.max(nanos);
        // What passed without a sleep was for the rank that the call addresses.
        let asleep = slept.iter().map(|(_, nanos)| nanos).sum();
        let awake = at.peer.map(|peer| (peer, nanos.saturating_sub(asleep)));
        for (rank, nanos) in slept.iter().copied().chain(awake) {
            *calls.waited_for.entry(rank).or_default() += nanos;
        }
        if self.traces {
            let awaited = longest(&slept);
            let Recorded { tracer, journal, .. } = &mut *recorded;
            let (thread, site) = (tracer.thread(journal), tracer.site(journal, at.caller));
            let (activity, window, peer) = (activity.code() as u8, at.window, at.peer);
            let call = events::Call { thread, activity, begin, end, window, site, peer, awaited };
            tracer.flush(journal);
            tracer.put(journal, &Event::Call(call));
        }
        end.saturating_sub(recorded.published) >= PAUSE
    }

    /// Counts calls whose time wasn't taken. Returns whether it is time for a snapshot.
    pub(crate) fn count(&self, activity: Activity, at: At, count: u64) -> bool {
        ONGOING.with_borrow_mut(|ongoing| self.settle(ongoing));
        let mut recorded = self.recorded();
        recorded.calls(activity, at).count += count;
        now().saturating_sub(recorded.published) >= PAUSE
    }

    /// This thread slept, while it waited for the rank that it had noted. `awaited` is what
    /// [`awaited`](Observer::awaited) returned before. A sleep of a whole `nap` was ended by
    /// nobody, and isn't counted as a wake-up. Returns whether it is time for a snapshot.
    pub(crate) fn slept(&self, begin: u64, awaited: Option<u32>, nap: Duration) -> bool {
        let end = now();
        let nanos = end.saturating_sub(begin);
        ONGOING.with_borrow_mut(|ongoing| {
            let Some(Ongoing { slept, slot, over: None, .. }) = ongoing else { return };
            let known = match awaited {
                Some(rank) => slept.iter().position(|(known, _)| *known == rank),
                // Most likely still the one for which it waited before.
                None => slept.len().checked_sub(1),
            };
            match (known, awaited) {
                (Some(at), _) => {
                    slept[at].1 += nanos;
                    let last = slept.len() - 1;
                    slept.swap(at, last);
                }
                (None, Some(rank)) => slept.push((rank, nanos)),
                (None, None) => {}
            }
            if let (Some(open), Some(slot)) = (&self.open, slot) {
                open.amend(slot, open::AWAITED, events::shifted(longest(slept)));
            }
        });
        let mut recorded = self.recorded();
        recorded.sleeps += u64::from(u128::from(nanos) < nap.as_nanos());
        recorded.slept += nanos;
        if self.traces {
            let Recorded { tracer, journal, .. } = &mut *recorded;
            let thread = tracer.thread(journal);
            tracer.put_many(journal, &Event::Sleep { thread, begin, end });
        }
        end.saturating_sub(recorded.published) >= PAUSE
    }

    /// The rank that lets this one wait: the rank that it has noted, or the rank for which that one
    /// waits in turn, and so on to a rank that doesn't wait. `None` where the last one is in a call
    /// too, and is about to say for whom it waits. The notes of other hosts aren't known here.
    pub(crate) fn awaited(&self) -> Option<u32> {
        let mut rank = self.segment.noted(self.rank).waits_for?;
        // A target answers within its own calls, whomever it waits for.
        let answers = [Activity::Flush, Activity::Request, Activity::Accumulate];
        let is_answer = |ongoing: &Ongoing| answers.contains(&ongoing.activity);
        if ONGOING.with_borrow(|ongoing| ongoing.as_ref().is_some_and(is_answer)) {
            return Some(rank);
        }
        for _ in 0..self.size {
            let note = self.segment.noted(rank);
            match note.waits_for {
                _ if note.code == Activity::Computing.code() => return Some(rank),
                Some(next) if next != self.rank => rank = next,
                _ => return None,
            }
        }
        None
    }

    /// Records operations of one call for the trace.
    pub(crate) fn operation(
        &self,
        at: At,
        done: Done,
        (begin, number): (u64, u64),
        datatype: (u64, &dyn std::fmt::Display),
    ) {
        let end = now();
        let mut recorded = self.recorded();
        let Recorded { tracer, journal, .. } = &mut *recorded;
        let site = tracer.site(journal, at.caller);
        let text = || crate::error::excerpt(datatype.1);
        let operation = events::Operation {
            thread: tracer.thread(journal),
            kind: done.kind,
            route: counters::number(done.route) as u8,
            target: at.peer.unwrap_or(self.rank),
            begin,
            end,
            bytes: done.bytes,
            window: at.window.unwrap_or(OTHERS),
            site,
            datatype: tracer.text(journal, Key::Datatype(datatype.0), text),
            count: 1,
            number,
        };
        tracer.operation(journal, operation);
    }

    /// Counts data that this rank exchanged with ranks of another kind.
    #[cold]
    pub(crate) fn exchanged(&self, data: &Exchanged) {
        self.recorded().kinds.add(data);
    }

    /// Records an epoch that has ended.
    pub(crate) fn epoch(&self, kind: u8, begin: u64, at: At) {
        let mut recorded = self.recorded();
        let Recorded { tracer, journal, .. } = &mut *recorded;
        let (end, site) = (now(), tracer.site(journal, at.caller));
        let (window, target) = (at.window.unwrap_or(OTHERS), at.peer);
        let epoch = events::Epoch { kind, begin, end, window, site, target };
        tracer.flush(journal);
        tracer.put(journal, &Event::Epoch(epoch));
    }

    /// Leaves a snapshot of all counters in the journal. `name` gives the names of windows.
    pub(crate) fn publish(
        &self,
        complete: bool,
        taken: Taken,
        name: impl Fn(u32) -> Option<String>,
    ) {
        let mut recorded = self.recorded();
        let windows = recorded.ended.iter().cloned();
        let open = recorded.windows.iter().map(|window| {
            if let Some(name) = name(window.id()) {
                window.set_name(name);
            }
            window.counts(false)
        });
        let mut windows: Vec<_> = windows.chain(open).collect();
        windows.sort_by_key(|window| window.id);
        let mut calls: Vec<_> =
            recorded.calls.iter().map(|(key, calls)| calls.counts(key)).collect();
        calls.sort_by_key(|calls| std::cmp::Reverse(calls.nanos));
        let Recorded { sleeps, slept, merged, .. } = *recorded;
        let Taken { peers, retries, forms, form_bytes, messages } = taken;
        let kinds = recorded.kinds.counts(messages);
        let elapsed = now().saturating_sub(self.began);
        let mut snapshot = Snapshot {
            elapsed,
            complete,
            windows,
            calls,
            peers,
            kinds,
            sleeps,
            slept,
            retries,
            forms,
            form_bytes,
            merged,
        };
        let Recorded { tracer, journal, published, .. } = &mut *recorded;
        tracer.flush(journal);
        *published = now();
        if !snapshot.encode().is_ok_and(|bytes| journal.publish(&bytes)) {
            // Thousands of targets in hundreds of windows: what is about waits has room.
            snapshot.merged += snapshot.windows.len() as u64;
            snapshot.windows.clear();
            let _ = snapshot.encode().map(|bytes| journal.publish(&bytes));
        }
    }
}

impl Recorded {
    /// The calls that are counted together with one of this kind and place.
    fn calls(&mut self, activity: Activity, at: At) -> &mut Calls {
        let key = (activity, at.window, at.caller.map(Line::key));
        let is_full = self.calls.len() >= CALLS && !self.calls.contains_key(&key);
        let key = if is_full { (activity, None, None) } else { key };
        let calls = self.calls.entry(key).or_default();
        calls.caller = if is_full { None } else { at.caller };
        calls
    }
}

impl Calls {
    fn counts(&self, &(activity, window, _): &CallKey) -> CallCounts {
        let mut waited_for: Vec<_> =
            self.waited_for.iter().map(|(&rank, &nanos)| (rank, nanos)).collect();
        waited_for.sort_by_key(|&(rank, nanos)| (std::cmp::Reverse(nanos), rank));
        CallCounts {
            activity: activity.code(),
            window,
            file: self.caller.map_or_else(String::new, |caller| caller.file().to_owned()),
            line: self.caller.map_or(0, |caller| caller.line()),
            count: self.count,
            nanos: self.nanos,
            longest: self.longest,
            waited_for,
        }
    }
}
