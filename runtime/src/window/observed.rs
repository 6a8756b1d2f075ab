//! The observer of a window: its counters, and the epochs that are open. `observing` has the
//! operations that come to it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::job::Activity;
use crate::observe::{self, At, EpochKind, Observer, WindowCounters};
use crate::process::Process;
use crate::program::Line;
use crate::types::TargetType;

/// The observer of a window.
pub(super) struct Observed {
    pub(super) observer: Arc<Observer>,
    /// Whether operations are traced too.
    pub(super) traces: bool,
    pub(super) counters: Arc<WindowCounters>,
    /// The size of the type that was counted last, by its number. Most operations have its type.
    pub(super) last: Cell<(u64, u64)>,
    /// The number of the type of the last operation on an unlike target, and the target. Whether
    /// its data are converted.
    pub(super) last_unlike: Cell<((u64, u32), bool)>,
    /// The epochs that are traced and haven't ended.
    open: RefCell<Vec<Open>>,
    glances: Cell<Glances>,
}

/// Calls of one kind at one source line that follow each other and whose wait a glance ended. They
/// are counted here, without the observer's lock and without their times, and told to it together.
#[derive(Clone, Copy)]
struct Glances {
    activity: Activity,
    caller: Option<Line>,
    count: u64,
}

impl Glances {
    /// The most calls of which the observer isn't told: as many a snapshot may lack.
    const MOST: u64 = 256;

    fn none() -> Glances {
        Glances { activity: Activity::Computing, caller: None, count: 0 }
    }

    /// Whether these are calls of this kind and place.
    fn are(&self, activity: Activity, caller: Option<Line>) -> bool {
        let place = |caller: Option<Line>| caller.map(Line::key);
        self.activity == activity && place(self.caller) == place(caller)
    }
}

/// An epoch that has begun.
struct Open {
    kind: EpochKind,
    /// The locked target, by its rank in the window.
    target: Option<i32>,
    begin: u64,
    caller: Option<Line>,
}

impl Observed {
    pub(super) fn of_window(process: &Process, id: u32, ranks: usize) -> Option<Observed> {
        let observer = process.observer()?.clone();
        let counters = observer.window(id, ranks);
        let traces = observer.traces();
        Some(Observed {
            observer,
            traces,
            counters,
            last: Cell::default(),
            last_unlike: Cell::default(),
            open: RefCell::default(),
            glances: Cell::new(Glances::none()),
        })
    }

    #[cold]
    pub(super) fn size(&self, target_type: TargetType<'_>) -> u64 {
        let bounds = target_type.bounds_on(&shipable::Architecture::NATIVE);
        let size = bounds.map_or(0, |bounds| u64::try_from(bounds.size).unwrap_or(0));
        self.last.set((target_type.id(), size));
        size
    }

    /// An epoch of a kind begins, of the locked target if it has one.
    pub(super) fn open(&self, kind: EpochKind, target: Option<i32>, caller: Option<Line>) {
        if self.traces {
            let begin = observe::now();
            self.open.borrow_mut().push(Open { kind, target, begin, caller });
        }
    }

    /// An epoch that began has ended. `peer` is the locked target's rank in the job.
    pub(super) fn close(&self, kind: EpochKind, target: Option<i32>, peer: Option<u32>) {
        let mut all = self.open.borrow_mut();
        let is_it = |open: &Open| open.kind == kind && open.target == target;
        let Some(at) = all.iter().position(is_it) else { return };
        let Open { begin, caller, .. } = all.swap_remove(at);
        let window = Some(self.counters.id());
        self.observer.epoch(kind as u8, begin, At { window, caller, peer });
    }

    /// Counts a call whose wait a glance ended.
    #[inline]
    pub(super) fn count_glance(&self, process: &Process, activity: Activity, at: At) {
        let glances = self.glances.get();
        if glances.are(activity, at.caller) && glances.count < Glances::MOST {
            self.glances.set(Glances { count: glances.count + 1, ..glances });
        } else {
            if self.tell_of_glances() {
                process.publish(false);
            }
            self.glances.set(Glances { activity, caller: at.caller, count: 1 });
        }
    }

    /// Tells the observer of the calls that were counted here. Returns whether it is time for a
    /// snapshot.
    #[cold]
    fn tell_of_glances(&self) -> bool {
        let Glances { activity, caller, count } = self.glances.replace(Glances::none());
        let at = At { window: Some(self.counters.id()), caller, peer: None };
        count > 0 && self.observer.count(activity, at, count)
    }

    /// The window is about to end. Its name is known until then.
    pub(super) fn name(&self, name: String) {
        self.counters.set_name(name);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.tell_of_glances();
        self.observer.end_window(&self.counters);
    }
}
