//! All counters of a job, for a serializer. docs/observing.md describes its members.

use longshore_job::journal::open::{Open, OpenCall};
use longshore_job::journal::snapshot::{
    CallCounts, KindCounts, OTHERS, PeerCounts, Row, Snapshot, TargetCounts, WindowCounts,
};
use longshore_job::journal::{KINDS, ROUTES, SIZES};
use serde::Serialize;

use super::counted::Counted;
use longshore_job::Activity;

/// The version of the layout. It rises when a member is renamed or removed.
const VERSION: u32 = 1;

/// The counters of a job. It has no other use than to be serialized.
#[derive(Serialize)]
pub struct Report<'a> {
    version: u32,
    ranks: Vec<RankReport<'a>>,
}

#[derive(Serialize)]
struct RankReport<'a> {
    rank: u32,
    /// False for a rank that left no counters, since it didn't join the job or ended at once.
    counted: bool,
    /// False for a rank that ended without finalize: these are its counters some time before.
    complete: bool,
    elapsed_ns: u64,
    calls: Vec<Call<'a>>,
    /// The calls in which the rank has ended.
    unfinished: Vec<Unfinished<'a>>,
    windows: Vec<Window<'a>>,
    /// Windows whose operations aren't told apart, or are missing, since there were too many.
    merged_windows: u64,
    peers: Vec<Peer>,
    kinds: Vec<Kinds<'a>>,
    sleeps: u64,
    sleep_ns: u64,
    retries: u64,
    forms_shipped: u64,
    form_bytes: u64,
}

#[derive(Serialize)]
struct Call<'a> {
    call: &'static str,
    window: Option<u32>,
    file: &'a str,
    line: u32,
    count: u64,
    time_ns: u64,
    longest_ns: u64,
    waited_for: Vec<WaitedFor>,
}

#[derive(Serialize)]
struct Unfinished<'a> {
    call: &'static str,
    window: Option<u32>,
    file: &'a str,
    line: u32,
    /// The time from its begin to the rank's end, if the begin is known.
    time_ns: Option<u64>,
    /// The rank for which it has waited longest.
    waited_for: Option<u32>,
}

#[derive(Serialize)]
struct WaitedFor {
    rank: u32,
    time_ns: u64,
}

#[derive(Serialize)]
struct Window<'a> {
    /// The window's number; `null` for several windows together.
    window: Option<u32>,
    name: &'a str,
    targets: Vec<Target>,
}

#[derive(Serialize)]
struct Target {
    rank: u32,
    operations: Vec<Operations>,
}

#[derive(Serialize)]
struct Operations {
    kind: &'static str,
    route: &'static str,
    /// The most bytes of an operation of this size class; `null` for the longest.
    at_most_bytes: Option<u64>,
    count: u64,
    bytes: u64,
    /// The time of the calls, for operations of 4 KiB and more.
    time_ns: Option<u64>,
}

#[derive(Serialize)]
struct Peer {
    rank: u32,
    sent_frames: u64,
    sent_bytes: u64,
    received_frames: u64,
    received_bytes: u64,
    converted_frames: u64,
    converted_bytes: u64,
}

#[derive(Serialize)]
struct Kinds<'a> {
    from: &'a str,
    /// `null` for collective calls.
    to: Option<&'a str>,
    copied_bytes: u64,
    converted_bytes: u64,
}

impl<'a> Report<'a> {
    pub(super) fn of(ranks: &'a [Counted]) -> Report<'a> {
        let ranks = (0..).zip(ranks).map(|(rank, counted)| RankReport::of(rank, counted));
        Report { version: VERSION, ranks: ranks.collect() }
    }
}

impl<'a> RankReport<'a> {
    fn of(rank: u32, Counted { snapshot, open }: &'a Counted) -> RankReport<'a> {
        let snapshot = snapshot.as_ref();
        let number = |get: fn(&Snapshot) -> u64| snapshot.map_or(0, get);
        RankReport {
            rank,
            counted: snapshot.is_some(),
            complete: snapshot.is_some_and(|it| it.complete),
            elapsed_ns: number(|it| it.elapsed),
            calls: snapshot.iter().flat_map(|it| &it.calls).map(Call::of).collect(),
            unfinished: open.calls.iter().map(|call| Unfinished::of(call, open)).collect(),
            windows: snapshot.iter().flat_map(|it| &it.windows).map(Window::of).collect(),
            merged_windows: number(|it| it.merged),
            peers: snapshot.iter().flat_map(|it| &it.peers).map(Peer::of).collect(),
            kinds: snapshot.iter().flat_map(|it| &it.kinds).map(Kinds::of).collect(),
            sleeps: number(|it| it.sleeps),
            sleep_ns: number(|it| it.slept),
            retries: number(|it| it.retries),
            forms_shipped: number(|it| it.forms),
            form_bytes: number(|it| it.form_bytes),
        }
    }
}

impl<'a> Call<'a> {
    fn of(calls: &'a CallCounts) -> Call<'a> {
        let waited_for = calls.waited_for.iter();
        Call {
            call: name(calls.activity),
            window: calls.window,
            file: &calls.file,
            line: calls.line,
            count: calls.count,
            time_ns: calls.nanos,
            longest_ns: calls.longest,
            waited_for: waited_for.map(|&(rank, time_ns)| WaitedFor { rank, time_ns }).collect(),
        }
    }
}

impl<'a> Unfinished<'a> {
    fn of(call: &'a OpenCall, open: &Open) -> Unfinished<'a> {
        Unfinished {
            call: name(call.activity),
            window: call.window,
            file: &call.file,
            line: call.line,
            time_ns: call.nanos(open.end),
            waited_for: call.awaited,
        }
    }
}

/// The name of an activity, by its code.
pub(super) fn name(code: u32) -> &'static str {
    Activity::from_code(code).map_or("unknown", Activity::name)
}

impl<'a> Window<'a> {
    fn of(window: &'a WindowCounts) -> Window<'a> {
        let targets = window.targets.iter();
        let target = |target: &TargetCounts| Target {
            rank: target.rank,
            operations: target.rows.iter().map(Operations::of).collect(),
        };
        let number = (window.id != OTHERS).then_some(window.id);
        Window { window: number, name: &window.name, targets: targets.map(target).collect() }
    }
}

impl Operations {
    fn of(row: &Row) -> Operations {
        Operations {
            kind: KINDS.get(usize::from(row.kind)).copied().unwrap_or("unknown"),
            route: ROUTES.get(usize::from(row.route)).copied().unwrap_or("unknown"),
            at_most_bytes: SIZES.get(usize::from(row.class)).copied(),
            count: row.count,
            bytes: row.bytes,
            time_ns: (row.nanos > 0).then_some(row.nanos),
        }
    }
}

impl<'a> Kinds<'a> {
    fn of(counts: &'a KindCounts) -> Kinds<'a> {
        Kinds {
            from: &counts.from,
            to: counts.to.as_deref(),
            copied_bytes: counts.copied,
            converted_bytes: counts.converted,
        }
    }
}

impl Peer {
    fn of(peer: &PeerCounts) -> Peer {
        Peer {
            rank: peer.rank,
            sent_frames: peer.sent,
            sent_bytes: peer.sent_bytes,
            received_frames: peer.received,
            received_bytes: peer.received_bytes,
            converted_frames: peer.converted,
            converted_bytes: peer.converted_bytes,
        }
    }
}
