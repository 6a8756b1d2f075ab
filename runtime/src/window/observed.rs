//! The observer of a window: its counters, and the epochs that are open. `observing` has the
//! operations that come to it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::check::Caller;
use crate::observe::{self, At, EpochKind, Observer, WindowCounters};
use crate::process::Process;
use crate::types::TargetType;

/// The observer of a window.
pub(super) struct Observed {
    pub(super) observer: Arc<Observer>,
    /// Whether operations are traced too.
    pub(super) traces: bool,
    pub(super) counters: Arc<WindowCounters>,
    /// The size of the type that was counted last, by its number. Most operations have its type.
    pub(super) last: Cell<(u64, u64)>,
    /// The epochs that are traced and haven't ended.
    open: RefCell<Vec<Open>>,
}

/// An epoch that has begun.
struct Open {
    kind: EpochKind,
    /// The locked target, by its rank in the window.
    target: Option<i32>,
    begin: u64,
    caller: Option<Caller>,
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
            open: RefCell::default(),
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
    pub(super) fn open(&self, kind: EpochKind, target: Option<i32>, caller: Option<Caller>) {
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

    /// The window is about to end. Its name is known until then.
    pub(super) fn name(&self, name: String) {
        self.counters.set_name(name);
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.observer.end_window(&self.counters);
    }
}
