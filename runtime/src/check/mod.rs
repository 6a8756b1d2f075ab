//! `--check`: what a rank records of who reaches its windows, and what it makes of it (rules 7, 8, 9, 22 and 23).
//!
//! - Conflicting accesses ([`history`]) are found at the target, from the bytes that a form gives ([`footprint`]). What comes before
//!   what is told by vector clocks ([`clock`]), which travel with all that MPI lets a program order accesses by: messages,
//!   collective calls, posts and completes, locks, and accumulates that somebody fetches. So nothing is reported that is
//!   ordered, whatever the timing, and what isn't is reported even if it went well this time.
//! - Before a collective call all its ranks announce it to each other ([`order`]).
//! - What starts say is compared with what posts said.
//!
//! All operations go by message, so the target sees them. Without `--check` nothing of this exists but an `Option` that is
//! none, looked at where the engine or a wait is involved anyway.
//!
//! Bounded are the accesses that a window remembers, the stretches of one of them, the steps of a comparison and the reports; the
//! summary counts what was left out for it. What is left out is never reported: there may be conflicts that go unseen, and none are
//! made up.

pub(crate) mod circle;
pub(crate) mod clock;
pub(crate) mod footprint;
pub(crate) mod history;
pub(crate) mod note;
pub(crate) mod order;
pub(crate) mod report;

use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use longshore_transport::lock::Sharing;

use clock::Clock;
use history::{Access, Deed, History, Site};
use report::{Reports, Tally};

/// A call's place in the program.
pub(crate) type Caller = &'static Location<'static>;

/// Where a call stands, in words.
pub(crate) fn site(caller: Option<Caller>) -> String {
    caller.map_or_else(|| "an unknown place".to_owned(), Location::to_string)
}

/// What a rank knows and has recorded.
pub(crate) struct Check {
    me: u32,
    clock: Clock,
    /// Grows with the clock.
    version: u64,
    peers: Vec<Peer>,
    windows: HashMap<u32, Watched>,
    reports: Reports,
    /// A circle that another rank has found, with each rank's call.
    circle: Option<(Vec<(u32, u32)>, String)>,
    /// Accesses missed in windows that are gone.
    missed: u64,
}

/// What is known of and to a peer.
#[derive(Clone, Default)]
struct Peer {
    /// The version of this rank's clock that it was told last.
    told: u64,
    /// What it has said that it knows.
    heard: Clock,
    /// Where the call of its next operation stands.
    calls: Option<Site>,
}

/// A window of this rank's.
struct Watched {
    /// Its ranks in the job.
    members: Vec<u32>,
    history: History,
    /// What those knew who have given its lock back: who had it alone, and who shared it.
    alone: Clock,
    shared: Clock,
    /// This rank's exposure of it.
    post: Option<Posted>,
    /// The last posts of others.
    posts: HashMap<u32, Posted>,
    /// The numbers up to which this rank's operations on targets are known there to be settled.
    confirmed: HashMap<u32, u64>,
}

/// A post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    pub nocheck: bool,
    pub site: String,
    /// Ranks of the job.
    pub group: Vec<u32>,
}

impl Check {
    pub(crate) fn new(me: u32, ranks: u32) -> Check {
        let mut clock = Clock::new(ranks);
        // What nobody was told of has a number that nobody knows.
        clock.advance(me);
        Check {
            me,
            clock,
            version: 1,
            peers: vec![Peer::default(); ranks as usize],
            windows: HashMap::new(),
            reports: Reports::default(),
            circle: None,
            missed: 0,
        }
    }

    pub(crate) fn open_window(&mut self, window: u32, members: &[u32], same_op: bool) {
        let watched = Watched {
            members: members.to_vec(),
            history: History::new(same_op),
            alone: Clock::default(),
            shared: Clock::default(),
            post: None,
            posts: HashMap::new(),
            confirmed: HashMap::new(),
        };
        self.windows.insert(window, watched);
    }

    /// The window's `accumulate_ops` is another from now on.
    pub(crate) fn set_same_op(&mut self, window: u32, same_op: bool) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.history.same_op = same_op;
        }
    }

    pub(crate) fn close_window(&mut self, window: u32) {
        if let Some(watched) = self.windows.remove(&window) {
            self.missed += watched.history.missed;
        }
    }

    /// This rank's number: what it sees done now, is known to whoever hears of its past after this.
    pub(crate) fn now(&self) -> u64 {
        self.clock.of(self.me)
    }

    /// What this rank knows, if a peer hasn't been told. Operations carry it, to be compared; it isn't passed on.
    pub(crate) fn news_for(&mut self, peer: u32) -> Option<Vec<u64>> {
        let told = &mut self.peers[peer as usize].told;
        (std::mem::replace(told, self.version) != self.version)
            .then(|| self.clock.numbers().to_vec())
    }

    /// What this rank did is known to others from here on: what it does next isn't.
    pub(crate) fn released(&mut self) {
        self.clock.advance(self.me);
        self.version += 1;
    }

    /// What this rank knows, as a collective call tells all.
    pub(crate) fn release_to_all(&mut self) -> Vec<u64> {
        let known = self.clock.numbers().to_vec();
        self.released();
        known
    }

    /// This rank comes to know what another did.
    pub(crate) fn learn(&mut self, known: &Clock) {
        self.version += u64::from(self.clock.join(known));
    }

    /// What a peer says that it knows.
    pub(crate) fn hear(&mut self, peer: u32, known: Clock) {
        self.peers[peer as usize].heard = known;
    }

    /// This rank comes to know what a peer said that it knows.
    pub(crate) fn learn_from(&mut self, peer: u32) {
        let Some(known) = self.peers.get_mut(peer as usize) else { return };
        let heard = std::mem::take(&mut known.heard);
        self.learn(&heard);
        self.peers[peer as usize].heard = heard;
    }

    /// All of these ranks know so much: what is settled by it need not be remembered in windows that are theirs alone.
    pub(crate) fn learn_with(&mut self, ranks: &[u32], known: &Clock) {
        self.learn(known);
        for watched in self.windows.values_mut() {
            if watched.members.iter().all(|member| ranks.contains(member)) {
                watched.history.forget_known(known);
            }
        }
    }

    /// A peer's next operation is called here.
    pub(crate) fn hear_of_call(&mut self, peer: u32, site: String) {
        self.peers[peer as usize].calls = Some(site.into());
    }

    /// Where the call of the operation that has arrived stands.
    pub(crate) fn take_call(&mut self, peer: u32) -> Site {
        let calls = self.peers[peer as usize].calls.take();
        calls.unwrap_or_else(|| Arc::from(site(None).as_str()))
    }

    /// A peer's operation reaches a window of this rank. Gives what it comes to know, if it fetches.
    pub(crate) fn access(
        &mut self,
        window: u32,
        access: Access,
        fetches: bool,
    ) -> Option<Vec<u64>> {
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
        let watched = self.windows.get_mut(&window)?;
        let bounds = access.footprint.bounds()?;
        let granted = fetches.then(|| watched.history.acquired(&bounds));
        if let Deed::Accumulate(..) = access.deed {
            watched.history.released(&bounds, known);
        }
        for conflict in watched.history.add(access.clone(), known) {
            let kind = report::kind(&access, &conflict);
            self.reports.tell(kind, || report::describe(window, self.me, &access, &conflict));
        }
        granted
    }

    /// This rank loads from its own window, or stores to it.
    pub(crate) fn touch(&mut self, window: u32, bytes: Range<i64>, stores: bool, caller: Caller) {
        if bytes.is_empty() {
            return;
        }
        let deed = if stores { Deed::Store } else { Deed::Load };
        if let (Some(watched), false) = (self.windows.get(&window), stores) {
            // Whoever looks until a value changes, knows what its accumulates knew.
            let acquired = watched.history.acquired(&bytes);
            self.learn(&acquired);
        }
        let access = Access {
            origin: self.me,
            deed,
            site: caller.to_string().into(),
            footprint: footprint::Footprint::run(bytes),
            number: 0,
            alone: false,
            settled: Some(self.now()),
        };
        let known = self.clock.clone();
        self.record(window, access, &known, false);
    }

    /// Whether a target isn't known to know that this rank's operations up to a number are done.
    pub(crate) fn is_unconfirmed(&self, window: u32, target: u32, issued: u64) -> bool {
        let Some(watched) = self.windows.get(&window) else { return false };
        watched.confirmed.get(&target).copied().unwrap_or(0) < issued
    }

    /// They are, up to this number.
    pub(crate) fn confirmed(&mut self, window: u32, target: u32, number: u64) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.confirmed.insert(target, number);
        }
    }

    /// A peer has seen its operations done.
    pub(crate) fn settle(&mut self, window: u32, peer: u32, number: u64, alone: bool, clock: u64) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.history.settle(peer, number, alone, clock);
        }
    }

    /// What a rank knows that gets a window's lock.
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

    /// A peer gives a window's lock back.
    pub(crate) fn unlock(&mut self, window: u32, peer: u32, sharing: Sharing) {
        let known = self.peers[peer as usize].heard.clone();
        self.unlock_with(window, sharing, &known);
    }

    /// This rank gives the lock of its own window back.
    pub(crate) fn unlock_own(&mut self, window: u32, sharing: Sharing) {
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

    /// This rank exposes its window, or ends that.
    pub(crate) fn expose(&mut self, window: u32, post: Option<Posted>) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.post = post;
        }
    }

    /// A peer exposes its window to some ranks.
    pub(crate) fn hear_of_post(&mut self, window: u32, peer: u32, post: Posted) {
        if let Some(watched) = self.windows.get_mut(&window) {
            watched.posts.insert(peer, post);
        }
    }

    /// A peer's last post.
    pub(crate) fn post_of(&self, window: u32, peer: u32) -> Option<&Posted> {
        self.windows.get(&window)?.posts.get(&peer)
    }

    /// Rule 7 at the origin: this rank has started to a peer whose post it has heard.
    pub(crate) fn started(&mut self, window: u32, peer: u32, nocheck: bool, site: &str) {
        let me = self.me;
        let Some(post) = self.post_of(window, peer).filter(|post| post.nocheck != nocheck) else {
            return;
        };
        let post = post.clone();
        self.differ(window, (me, nocheck, site), (peer, &post));
    }

    /// Rule 7 at the target: a peer ends its access, which it began with or without NOCHECK.
    pub(crate) fn completed(&mut self, window: u32, peer: u32, nocheck: bool, site: &str) {
        let me = self.me;
        let Some(watched) = self.windows.get(&window) else { return };
        let post = watched.post.clone().filter(|post| post.group.contains(&peer));
        match post {
            // Its start has seen to it.
            Some(_) if !nocheck => {}
            Some(post) if post.nocheck => {}
            Some(post) => self.differ(window, (peer, nocheck, site), (me, &post)),
            None => self.reports.tell(format!("7 unposted {site}"), || {
                let had = watched.post.as_ref().map_or_else(
                    || "has exposed it to nobody".to_owned(),
                    |post| format!("has exposed it to {} alone, at {}", ranks(&post.group), post.site),
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
        self.reports.tell(format!("7 nocheck {site} {}", post.site), || {
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

    /// A peer has found a circle.
    pub(crate) fn hear_of_circle(&mut self, calls: Vec<(u32, u32)>, text: String) {
        self.circle = Some((calls, text));
    }

    /// The circle that this rank is in with its call of this number, if one was found.
    pub(crate) fn take_circle(&mut self, call: u32) -> Option<String> {
        let (calls, text) = self.circle.take()?;
        calls.contains(&(self.me, call)).then_some(text)
    }

    /// Tells of something that this rank found elsewhere.
    pub(crate) fn tell(&mut self, kind: String, text: impl FnOnce() -> String) {
        self.reports.tell(kind, text);
    }

    /// What was told so far.
    pub(crate) fn texts(&self) -> &[String] {
        self.reports.texts()
    }

    pub(crate) fn tally(&self) -> Tally {
        let missed = self.windows.values().map(|watched| watched.history.missed).sum::<u64>();
        self.reports.tally(self.missed + missed)
    }
}

/// Ranks in words.
pub(crate) fn ranks(ranks: &[u32]) -> String {
    let names: Vec<_> = ranks.iter().take(16).map(u32::to_string).collect();
    let more = if ranks.len() > 16 { ", ..." } else { "" };
    match ranks {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        _ => format!("ranks {}{more}", names.join(", ")),
    }
}
