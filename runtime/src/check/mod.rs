//! The checks of `--check`: a rank records the accesses to its windows and reports violations of
//! rules 7, 8, 9, 14, 22, 23 and 30.
//!
//! - Conflicting accesses ([`history`]) are found at the target. The bytes of an access come from
//!   its form ([`footprint`]). Vector clocks ([`clock`]) decide whether one access is ordered
//!   before another. They travel with every operation by which MPI lets a program order accesses:
//!   messages, collective calls, posts and completes, locks, and accumulates whose result is
//!   fetched. Ordered accesses are therefore never reported, whatever the timing, and unordered
//!   ones are reported even if they did no harm in this run.
//! - Before a collective call, its ranks announce it to each other ([`order`]).
//! - The asserts of starts are compared with those of the matching posts.
//! - Items that aren't [aligned](alignment) to their type are reported at the origin.
//!
//! Under `--check` all operations travel by message, so the target sees them. Without it, the cost
//! is one test of an `Option`, in places that involve the engine anyway.
//!
//! There are limits for the accesses that a window remembers, the stretches of one access, the
//! steps of a comparison, and the reports. The summary counts what exceeded them. Beyond a limit a
//! conflict may go unseen, but no report is ever wrong.

pub(crate) mod alignment;
pub(crate) mod buffers;
pub(crate) mod circle;
pub(crate) mod clock;
pub(crate) mod footprint;
pub(crate) mod history;
pub(crate) mod loads;
pub(crate) mod messages;
pub(crate) mod note;
pub(crate) mod order;
pub(crate) mod report;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use longshore_transport::lock::Sharing;
use shipable::Architecture;

use buffers::{Buffers, Flight, IsActive, Use};
use clock::Clock;
use footprint::Footprint;
use history::{Access, Deed, History, Site};
use loads::{Loads, Run, Watch};
use messages::{Got, Messages, Room, Send, Told};
use report::{Reports, Tally};

use crate::error::Error;
use crate::job::{Topic, Topics};
pub(crate) use crate::program::Caller;
use crate::program::Line;

/// The source line of a call, as text.
pub(crate) fn site(line: Option<Line>) -> String {
    line.map_or_else(|| "an unknown place".to_owned(), |line| line.to_string())
}

/// The state of the checks at one rank.
pub(crate) struct Check {
    me: u32,
    clock: Clock,
    /// Grows whenever the clock does.
    version: u64,
    peers: Vec<Peer>,
    windows: HashMap<u32, Watched>,
    reports: Reports,
    /// A circle of waiting ranks that another rank found, with each rank's call number.
    circle: Option<(Vec<(u32, u32)>, String)>,
    /// Accesses that were missed in windows freed since.
    missed: u64,
    messages: Messages,
    buffers: Buffers,
    loads: Arc<Loads>,
    /// The source lines of code that loads and stores, by its address.
    places: HashMap<usize, Site>,
}

/// The checks' state about one peer.
#[derive(Clone, Default)]
struct Peer {
    /// The version of this rank's clock that the peer was sent last.
    told: u64,
    /// The peer's clock, as it sent it last.
    heard: Clock,
    /// The source location of the peer's next operation.
    calls: Option<Site>,
    /// The send of the peer's next message.
    sends: Option<Send>,
}

/// The checks' state about one window of this rank.
struct Watched {
    /// The members of the window, by rank in the job.
    members: Vec<u32>,
    history: History,
    /// This rank's memory, if the loads and stores there are known to be its own.
    memory: Option<Watch>,
    /// The joined clocks of past holders of its lock: of exclusive and of shared holders.
    alone: Clock,
    shared: Clock,
    /// The current exposure by this rank.
    post: Option<Posted>,
    /// The last posts of other ranks.
    posts: HashMap<u32, Posted>,
    /// The operations that raised each notification counter since this rank last read it, with the
    /// clocks of their origins.
    notified: HashMap<u16, Vec<Raised>>,
    /// For each target, the number up to which it knows this rank's operations to be settled.
    confirmed: HashMap<u32, u64>,
    /// Whether its accesses aren't compared, since its ranks no longer exchange their clocks.
    is_unordered: bool,
}

/// An operation that has raised a notification counter.
struct Raised {
    origin: u32,
    number: u64,
    known: Clock,
}

/// A post, as it was announced to the ranks of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    pub nocheck: bool,
    pub site: String,
    /// The group, by ranks in the job.
    pub group: Vec<u32>,
}

impl Check {
    pub(crate) fn new(me: u32, ranks: u32, topics: Topics, loads: Arc<Loads>) -> Check {
        let mut clock = Clock::new(ranks);
        // No other rank may know this number yet, so that unpublished accesses aren't ordered.
        clock.advance(me);
        Check {
            me,
            clock,
            version: 1,
            peers: vec![Peer::default(); ranks as usize],
            windows: HashMap::new(),
            reports: Reports::new(topics),
            circle: None,
            missed: 0,
            messages: Messages::default(),
            buffers: Buffers::new(loads.clone()),
            loads,
            places: HashMap::new(),
        }
    }

    /// Opens a window. `memory` is this rank's, if no other rank loads from it or stores to it.
    pub(crate) fn open_window(
        &mut self,
        window: u32,
        members: &[u32],
        same_op: bool,
        memory: Option<Range<usize>>,
    ) {
        let watched = Watched {
            members: members.to_vec(),
            history: History::new(same_op),
            memory: memory.map(|memory| self.loads.watch(memory)),
            alone: Clock::default(),
            shared: Clock::default(),
            post: None,
            posts: HashMap::new(),
            notified: HashMap::new(),
            confirmed: HashMap::new(),
            is_unordered: false,
        };
        self.windows.insert(window, watched);
    }

    /// A communicator of these members is revoked, so its ranks no longer exchange their clocks
    /// when they make calls on its windows. Accesses to windows of such members aren't compared any
    /// more.
    pub(crate) fn stop_comparing(&mut self, members: &[u32]) {
        for watched in self.windows.values_mut() {
            watched.is_unordered |= watched.members.iter().all(|member| members.contains(member));
        }
    }

    /// Changes the window's `accumulate_ops`.
    pub(crate) fn set_same_op(&mut self, window: u32, same_op: bool) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.history.same_op = same_op;
        }
    }

    pub(crate) fn close_window(&mut self, window: u32) {
        self.take_loads();
        self.buffers.close_window(window);
        if let Some(watched) = self.windows.remove(&window) {
            self.missed += watched.history.missed;
        }
    }

    /// This rank's own clock number. Accesses that it sees done now are known to all ranks that
    /// learn a later number.
    pub(crate) fn now(&self) -> u64 {
        self.clock.of(self.me)
    }

    /// This rank's clock, if the peer hasn't been sent it yet. Operations carry it to be compared
    /// with; the target doesn't adopt it.
    pub(crate) fn news_for(&mut self, peer: u32) -> Option<Vec<u64>> {
        self.take_loads();
        let told = &mut self.peers[peer as usize].told;
        (std::mem::replace(told, self.version) != self.version)
            .then(|| self.clock.numbers().to_vec())
    }

    /// Starts a new clock number, after the clock was sent: later accesses aren't covered by it.
    pub(crate) fn released(&mut self) {
        self.take_loads();
        self.clock.advance(self.me);
        self.version += 1;
    }

    /// The clock that a collective call sends to all ranks.
    pub(crate) fn release_to_all(&mut self) -> Vec<u64> {
        self.take_loads();
        let known = self.clock.numbers().to_vec();
        self.released();
        known
    }

    /// Adopts another rank's clock: its past is now known here.
    pub(crate) fn learn(&mut self, known: &Clock) {
        self.take_loads();
        self.version += u64::from(self.clock.join(known));
    }

    /// Stores the clock that a peer sent, without adopting it.
    pub(crate) fn hear(&mut self, peer: u32, known: Clock) {
        self.peers[peer as usize].heard = known;
    }

    /// The clock that a peer sent last.
    pub(crate) fn heard(&self, peer: u32) -> Clock {
        self.peers.get(peer as usize).map_or_else(Clock::default, |peer| peer.heard.clone())
    }

    /// Adopts the clock that the peer sent last.
    pub(crate) fn learn_from(&mut self, peer: u32) {
        let Some(known) = self.peers.get_mut(peer as usize) else { return };
        let heard = std::mem::take(&mut known.heard);
        self.learn(&heard);
        self.peers[peer as usize].heard = heard;
    }

    /// Adopts a clock that all these ranks adopt. Windows whose members are all among them can
    /// forget the accesses that it covers.
    pub(crate) fn learn_with(&mut self, ranks: &[u32], known: &Clock) {
        self.learn(known);
        for watched in self.windows.values_mut() {
            if watched.members.iter().all(|member| ranks.contains(member)) {
                watched.history.forget_known(known);
            }
        }
    }

    /// Stores the source location of a peer's next operation.
    pub(crate) fn hear_of_call(&mut self, peer: u32, site: String) {
        self.peers[peer as usize].calls = Some(site.into());
    }

    /// The source location of the peer's operation that has just arrived.
    pub(crate) fn take_call(&mut self, peer: u32) -> Site {
        let calls = self.peers[peer as usize].calls.take();
        calls.unwrap_or_else(|| Arc::from(site(None).as_str()))
    }

    /// Records a peer's access to a window of this rank. If the access fetches, returns the clock
    /// that the origin adopts.
    pub(crate) fn access(
        &mut self,
        window: u32,
        access: Access,
        fetches: bool,
    ) -> Option<Vec<u64>> {
        self.take_loads();
        let known = std::mem::take(&mut self.peers[access.origin as usize].heard);
        let granted = self.record(window, access.clone(), &known, fetches);
        self.peers[access.origin as usize].heard = known;
        granted.map(|granted| granted.numbers().to_vec())
    }

    fn record(
        &mut self,
        window: u32,
        access: Access,
        known: &Clock,
        fetches: bool,
    ) -> Option<Clock> {
        let watched = self.windows.get_mut(&window).filter(|watched| !watched.is_unordered)?;
        let bounds = access.footprint.bounds()?;
        let granted = fetches.then(|| watched.history.acquired(&bounds));
        if let Deed::Accumulate(..) = access.deed {
            watched.history.released(&bounds, known);
        }
        for conflict in watched.history.add(access.clone(), known) {
            let kind = report::kind(&access, &conflict);
            self.reports
                .tell(Topic::Races, kind, || report::describe(window, self.me, &access, &conflict));
        }
        granted
    }

    /// Records a load or store of this rank in its own window.
    pub(crate) fn touch(&mut self, window: u32, bytes: Range<i64>, stores: bool, site: Site) {
        if bytes.is_empty() {
            return;
        }
        if let (Some(watched), false) = (self.windows.get(&window), stores) {
            // A rank that polls a value learns the clocks of the accumulates to it.
            let acquired = watched.history.acquired(&bytes);
            self.learn(&acquired);
        }
        self.record_own(window, Footprint::run(bytes), stores, site);
    }

    /// Takes in the loads and stores that the program's compiler has reported so far. It is called
    /// before the clock changes, and before an operation of a peer is recorded.
    pub(crate) fn take_loads(&mut self) {
        let runs = self.loads.take();
        if runs.is_empty() {
            return;
        }
        let touched: Vec<(u32, &Run, Footprint)> =
            runs.iter().flat_map(|run| self.touched_by(run)).collect();
        // A rank that polls a value learns the clocks of the accumulates to it. The runs aren't in
        // the order of their accesses, so all loads learn first.
        for (window, _, footprint) in touched.iter().filter(|(_, run, _)| !run.stores) {
            if let (Some(watched), Some(bounds)) = (self.windows.get(window), footprint.bounds()) {
                let acquired = watched.history.acquired(&bounds);
                self.version += u64::from(self.clock.join(&acquired));
            }
        }
        for (window, run, footprint) in touched {
            let site = self.site_of(run);
            self.record_own(window, footprint, run.stores, site);
        }
        for run in &runs {
            let site = self.site_of(run);
            self.buffers.touched(self.me, run, &site, &mut self.reports);
        }
    }

    /// The source line of loads or stores.
    fn site_of(&mut self, run: &Run) -> Site {
        let line = || site(self.loads.line(run.place).map(Line::Program)).into();
        self.places.entry(run.place).or_insert_with(line).clone()
    }

    /// The windows of this rank that loads or stores touch, with the bytes there.
    fn touched_by<'a>(&self, run: &'a Run) -> Vec<(u32, &'a Run, Footprint)> {
        let bounds = run.bounds();
        let windows = self.windows.iter().filter_map(|(&window, watched)| {
            let memory = watched.memory.as_ref()?.bytes();
            let is_near = memory.start < bounds.end && bounds.start < memory.end;
            is_near.then(|| (window, run, run.footprint(memory.start)))
        });
        windows.collect()
    }

    /// Records a load or store of this rank.
    fn record_own(&mut self, window: u32, footprint: Footprint, stores: bool, site: Site) {
        let access = Access {
            origin: self.me,
            deed: if stores { Deed::Store } else { Deed::Load },
            site,
            footprint,
            number: 0,
            alone: false,
            settled: Some(self.now()),
            seen: None,
        };
        let known = self.clock.clone();
        self.record(window, access, &known, false);
    }

    /// Records that a peer's operation raises a notification counter of this rank.
    pub(crate) fn notified(&mut self, window: u32, counter: u16, origin: u32, number: u64) {
        let known = self.peers[origin as usize].heard.clone();
        if let Some(watched) = self.windows.get_mut(&window) {
            let raised = watched.notified.entry(counter).or_default();
            raised.push(Raised { origin, number, known });
        }
    }

    /// This rank has read a notification counter: its later accesses come after the operations that
    /// raised it, and after what their origins did before them.
    pub(crate) fn observe(&mut self, window: u32, counter: u16) {
        let Some(watched) = self.windows.get_mut(&window) else { return };
        let raised = watched.notified.remove(&counter).unwrap_or_default();
        let seen = (self.me, self.now());
        for Raised { origin, number, known } in raised {
            if let Some(watched) = self.windows.get_mut(&window) {
                watched.history.see(origin, number, seen);
            }
            self.learn(&known);
        }
    }

    /// Whether the target may not know yet that this rank's operations up to `issued` are done.
    pub(crate) fn is_unconfirmed(&self, window: u32, target: u32, issued: u64) -> bool {
        let Some(watched) = self.windows.get(&window) else { return false };
        watched.confirmed.get(&target).copied().unwrap_or(0) < issued
    }

    /// Records that the target knows this rank's operations to be done, up to this number.
    pub(crate) fn confirmed(&mut self, window: u32, target: u32, number: u64) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.confirmed.insert(target, number);
        }
    }

    /// Records that a peer has seen its operations done.
    pub(crate) fn settle(&mut self, window: u32, peer: u32, number: u64, alone: bool, clock: u64) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.history.settle(peer, number, alone, clock);
        }
    }

    /// The clock that a rank adopts when it gets a window's lock.
    pub(crate) fn lock_known(&self, window: u32, sharing: Sharing) -> Option<Clock> {
        let watched = self.windows.get(&window)?;
        let mut known = watched.alone.clone();
        if sharing == Sharing::Exclusive {
            known.join(&watched.shared);
        }
        Some(known)
    }

    /// This rank gets the lock of its own window.
    pub(crate) fn lock_own(&mut self, window: u32, sharing: Sharing) {
        if let Some(known) = self.lock_known(window, sharing) {
            self.learn(&known);
        }
    }

    /// A peer releases the lock of this rank's window.
    pub(crate) fn unlock(&mut self, window: u32, peer: u32, sharing: Sharing) {
        let known = self.peers[peer as usize].heard.clone();
        self.unlock_with(window, sharing, &known);
    }

    /// This rank releases the lock of its own window.
    pub(crate) fn unlock_own(&mut self, window: u32, sharing: Sharing) {
        self.take_loads();
        let known = self.clock.clone();
        self.unlock_with(window, sharing, &known);
        self.released();
    }

    fn unlock_with(&mut self, window: u32, sharing: Sharing, known: &Clock) {
        if let Some(watched) = self.windows.get_mut(&window) {
            match sharing {
                Sharing::Exclusive => watched.alone.join(known),
                Sharing::Shared => watched.shared.join(known),
            };
        }
    }

    /// Records that this rank exposes its window, or that the exposure ends.
    pub(crate) fn expose(&mut self, window: u32, post: Option<Posted>) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.post = post;
        }
    }

    /// Records a peer's post.
    pub(crate) fn hear_of_post(&mut self, window: u32, peer: u32, post: Posted) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.posts.insert(peer, post);
        }
    }

    /// The last post of a peer.
    pub(crate) fn post_of(&self, window: u32, peer: u32) -> Option<&Posted> {
        self.windows.get(&window)?.posts.get(&peer)
    }

    /// Checks rule 7 at the origin, for a start that matches a peer's post.
    pub(crate) fn started(&mut self, window: u32, peer: u32, nocheck: bool, site: &str) {
        let me = self.me;
        let Some(post) = self.post_of(window, peer).filter(|post| post.nocheck != nocheck) else {
            return;
        };
        let post = post.clone();
        self.differ(window, (me, nocheck, site), (peer, &post));
    }

    /// Checks rule 7 at the target, when a peer completes an access that it started with or without
    /// NOCHECK.
    pub(crate) fn completed(&mut self, window: u32, peer: u32, nocheck: bool, site: &str) {
        let me = self.me;
        let Some(watched) = self.windows.get(&window) else { return };
        let post = watched.post.clone().filter(|post| post.group.contains(&peer));
        match post {
            // The start has checked this case.
            Some(_) if !nocheck => {}
            Some(post) if post.nocheck => {}
            Some(post) => self.differ(window, (peer, nocheck, site), (me, &post)),
            None => self.reports.tell(Topic::Windows, format!("7 unposted {site}"), || {
                let had = watched.post.as_ref().map_or_else(
                    || "has exposed it to nobody".to_owned(),
                    |post| format!("has exposed it only to {}, at {}", ranks(&post.group), post.site),
                );
                format!(
                    "check: rule 7, window {window}: a start to rank {me}, which hasn't posted to its rank\n\
                     check:   start by rank {peer} at {site}\n\
                     check:   rank {me} {had}\n\
                     check:   a start with NOCHECK comes after the post; let their groups match\n"
                )
            }),
        }
    }

    fn differ(
        &mut self,
        window: u32,
        (origin, starts, site): (u32, bool, &str),
        (target, post): (u32, &Posted),
    ) {
        let with = |nocheck: bool| if nocheck { "with" } else { "without" };
        self.reports.tell(Topic::Windows, format!("7 nocheck {site} {}", post.site), || {
            format!(
                "check: rule 7, window {window}: NOCHECK on one side of a start and a post\n\
                 check:   start {} it by rank {origin} at {site}\n\
                 check:   post {} it by rank {target} at {}\n\
                 check:   give it on both sides, or on neither\n",
                with(starts),
                with(post.nocheck),
                post.site,
            )
        });
    }

    /// Stores the send of a peer's next message.
    pub(crate) fn hear_of_send(&mut self, peer: u32, site: String, is_first: bool) {
        self.peers[peer as usize].sends = Some(Send { site: site.into(), is_first });
    }

    /// What a peer has told of the message that has just arrived.
    pub(crate) fn take_told(&mut self, peer: u32) -> Told {
        let clock = self.heard(peer);
        let send = self.peers.get_mut(peer as usize).and_then(|peer| peer.sends.take());
        Told { clock, send }
    }

    /// An operation begins to use memory. It `stays` under way if its call doesn't wait for it.
    pub(crate) fn begin_use(&mut self, of: Use, stays: bool) {
        self.take_loads();
        self.buffers.begin(self.me, of, stays, &mut self.reports);
    }

    /// A one-sided operation on a window begins to use memory. It is under way until its rank has
    /// seen it complete, or the program has completed its request.
    pub(crate) fn begin_one_sided(&mut self, flight: Flight, of: Use, is_requested: bool) {
        self.take_loads();
        self.buffers.begin_one_sided(self.me, flight, (of, is_requested), &mut self.reports);
    }

    /// This rank has seen its operations on these targets of a window complete.
    pub(crate) fn end_one_sided(&mut self, window: u32, targets: &[u32]) {
        self.take_loads();
        self.buffers.end_one_sided(window, targets);
    }

    /// The operations that this thread has begun in the call at this line have a request.
    pub(crate) fn keep_uses(&mut self, line: Line, request: usize, is_active: IsActive) {
        self.buffers.keep(line, request, is_active);
    }

    /// A send to a peer starts. Returns what the peer hears of it.
    pub(crate) fn start_send(&mut self, peer: u32, line: Line, blocks: bool) -> Send {
        self.messages.start_send(peer, line, blocks, self.clock.of(self.me))
    }

    /// A receive starts.
    pub(crate) fn start_receive(&mut self, number: u64, room: Room) {
        self.messages.start_receive(number, room);
    }

    /// A receive ends with a message. `memory` is the representation of its data if only their
    /// length was compared.
    pub(crate) fn end_receive(
        &mut self,
        number: u64,
        got: Got,
        told: &Told,
        memory: Option<&Architecture>,
    ) {
        let now = (self.me, self.now());
        self.messages.end_receive(now, (number, got), told, memory, &mut self.reports);
        self.learn(&told.clock);
    }

    /// A receive ends with an error, which is reported if it is `told`.
    pub(crate) fn fail_receive(&mut self, number: u64, error: &Error, told: bool) {
        let reports = told.then_some(&mut self.reports);
        self.messages.fail_receive(self.me, number, error, reports);
    }

    /// Stores a circle that a peer has found.
    pub(crate) fn hear_of_circle(&mut self, calls: Vec<(u32, u32)>, text: String) {
        self.circle = Some((calls, text));
    }

    /// The circle that contains this rank's call with this number, if a peer found one.
    pub(crate) fn take_circle(&mut self, call: u32) -> Option<String> {
        let (calls, text) = self.circle.take()?;
        calls.contains(&(self.me, call)).then_some(text)
    }

    /// Reports a fault that was found outside this module.
    pub(crate) fn tell(&mut self, topic: Topic, kind: String, text: impl FnOnce() -> String) {
        self.reports.tell(topic, kind, text);
    }

    /// As [`Reports::remark`].
    pub(crate) fn remark(&mut self, topic: Topic, kind: String, text: impl FnOnce() -> String) {
        self.reports.remark(topic, kind, text);
    }

    /// What is reported.
    pub(crate) fn topics(&self) -> Topics {
        self.reports.topics()
    }

    /// The texts of all reports so far.
    pub(crate) fn texts(&self) -> &[String] {
        self.reports.texts()
    }

    pub(crate) fn tally(&self) -> Tally {
        let missed = self.windows.values().map(|watched| watched.history.missed).sum::<u64>();
        self.reports.tally(self.missed + missed + self.loads.missed())
    }
}

/// A list of ranks as text.
pub(crate) fn ranks(ranks: &[u32]) -> String {
    let names: Vec<_> = ranks.iter().take(16).map(u32::to_string).collect();
    let more = if ranks.len() > 16 { ", ..." } else { "" };
    match ranks {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        _ => format!("ranks {}{more}", names.join(", ")),
    }
}
