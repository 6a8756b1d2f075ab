//! Operations that are counted, and traced, under `--stats` and `--trace`. No attempt knows an
//! operation of an observed window, so all of them pass the wrapper in `core::issue`.

use super::call::{Action, Call};
use super::observed::Observed;
use super::parts::Parts;
use super::path::Progress;
use super::peers::Target;
use crate::check::Caller;
use crate::observe::{self, At, Done, Exchanged, TIMED};
use crate::route::Route;
use crate::types::TargetType;

/// An operation that is about to be carried out.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    bytes: u64,
    /// The time, if it is taken.
    time: u64,
    /// The number of operations that were handed to the engine for the target.
    issued: u64,
}

impl Observed {
    /// The bytes of an operation.
    #[inline]
    fn bytes(&self, call: &Call<'_>) -> u64 {
        let target_type = call.target_type;
        let size = match self.last.get() {
            (id, size) if id == target_type.id() => size,
            _ => self.size(target_type),
        };
        size.wrapping_mul(u64::try_from(call.count).unwrap_or(0))
    }

    /// An operation is about to be carried out.
    #[inline]
    pub(super) fn begin(&self, parts: &Parts, call: &Call<'_>, caller: Caller) -> Begun {
        let bytes = self.bytes(call);
        if !self.traces {
            let time = if bytes >= TIMED { observe::now() } else { 0 };
            return Begun { bytes, time, issued: 0 };
        }
        parts.checking().called(caller);
        let peer = parts.peers().get(call.target).map(|target| target.peer);
        let issued = peer.map_or(0, |peer| parts.flight().ledger().issued(peer));
        Begun { bytes, time: observe::now(), issued }
    }

    /// An operation was carried out, or handed to the engine or the network. On PROC_NULL nothing
    /// was.
    #[inline]
    pub(super) fn end(
        &self,
        parts: &Parts,
        call: &Call<'_>,
        begun: Begun,
        progress: Option<Progress>,
    ) {
        let (Some(to), Some(progress)) = (parts.peers().get(call.target), progress) else {
            return;
        };
        let route = match progress {
            Progress::Done if to.route == Route::Direct => Route::Direct,
            Progress::Accessed => Route::Rdma,
            Progress::Copied => Route::Peer,
            _ => Route::Message,
        };
        let Begun { bytes, time, issued } = begun;
        let nanos = if bytes >= TIMED { observe::now().saturating_sub(time) } else { 0 };
        let done = Done { kind: call.action.number(), route, bytes, nanos };
        self.counters.count(to.rank, || to.peer, done);
        if !to.alike {
            self.exchanged(parts, call, to, bytes);
        }
        if self.traces {
            let now = parts.flight().ledger().issued(to.peer);
            let number = if route == Route::Message && now > issued { now } else { 0 };
            self.trace(parts, (time, number), done, to.peer, call.target_type);
        }
    }

    /// Counts the data of an operation on an unlike target. Whether they are converted depends on
    /// their type, not on the route.
    #[cold]
    fn exchanged(&self, parts: &Parts, call: &Call<'_>, to: &Target, bytes: u64) {
        let (own, other) = (parts.process().me().architecture, to.architecture);
        if own.same_representation(&other) {
            // Both emulate it.
            return;
        }
        let key = (call.target_type.id(), to.rank);
        let is_converted = match self.last_unlike.get() {
            (known, is_converted) if known == key => is_converted,
            _ => !call.target_type.form().has_same_items(&own, &other).unwrap_or(false),
        };
        self.last_unlike.set((key, is_converted));
        let [copied, converted] = if is_converted { [0, bytes] } else { [bytes, 0] };
        if !matches!(call.action, Action::Get) {
            self.observer.exchanged(&Exchanged { from: own, to: Some(other), copied, converted });
        }
        if call.action.fetches() {
            self.observer.exchanged(&Exchanged { from: other, to: Some(own), copied, converted });
        }
    }

    #[cold]
    fn trace(
        &self,
        parts: &Parts,
        begun: (u64, u64),
        done: Done,
        peer: u32,
        target_type: TargetType<'_>,
    ) {
        let at = At { peer: Some(peer), ..parts.at() };
        self.observer.operation(at, done, begun, (target_type.id(), &target_type));
    }
}
