//! The hosts of a job, with the ranks on each: what the supervisor watches, asks and commands. It
//! makes no decisions.

use std::io;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use longshore_transport::Note;
use nix::poll::PollFlags;

use super::LAST_WORDS;
use crate::local::{LocalRanks, LocalSource};
use crate::message::{Command, Event, Orders};
use crate::output::Queue;
use crate::process::Descriptors;
use crate::remote::{RemoteRanks, RemoteSource};
use crate::{Error, Placement};
use longshore_job::Hosts;

/// The time that a start command has until its agent sends the greeting.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The hosts of a job.
pub(super) struct Stations {
    /// By host number.
    all: Vec<Station>,
    /// The host number of each rank.
    hosts: Hosts,
    /// When the start commands were run.
    started: Instant,
}

/// The ranks of one host.
pub(super) enum Station {
    /// The launcher's own children, in a job without hosts.
    Local(LocalRanks),
    /// The ranks of an agent.
    Remote(Box<RemoteRanks>),
}

/// A descriptor of a host that poll(2) can report as ready.
#[derive(Clone, Copy)]
pub(super) enum StationSource {
    Local(LocalSource),
    Remote(RemoteSource),
}

impl Stations {
    /// Starts the ranks, or the agents that start them, by the orders for each host. Each agent is
    /// asked for its clock if the job `traces`. Returns the events of the start, too.
    pub(super) fn start(
        placement: &Placement,
        (hosts, size): (Hosts, u32),
        orders: impl Fn(u32) -> io::Result<Orders>,
        traces: bool,
    ) -> Result<(Stations, Vec<Event>), Error> {
        let (mut all, mut events) = (Vec::new(), Vec::new());
        if placement.hosts.is_empty() {
            let mut local = LocalRanks::start(&orders(0)?, false)?;
            events = local.take_started();
            all.push(Station::Local(local));
        } else {
            let descriptors = Descriptors::allow(placement.hosts.len())?;
            // The first rank of a host precedes those of later hosts, so the last hosts may have
            // none.
            let last = (0..size).map(|rank| hosts.of(rank)).max().unwrap_or(0);
            for (number, host) in (0..=last).zip(&placement.hosts) {
                let orders = orders(number)?;
                let mut remote = RemoteRanks::start(placement, host, &orders, descriptors)?;
                if traces {
                    remote.ask_for_clock();
                }
                all.push(Station::Remote(Box::new(remote)));
            }
        }
        Ok((Stations { all, hosts, started: Instant::now() }, events))
    }

    /// Calls `watch` for each descriptor to poll, with its host. Output is included only if
    /// `output`.
    pub(super) fn watch<'a>(
        &'a self,
        output: bool,
        mut watch: impl FnMut(usize, StationSource, BorrowedFd<'a>, PollFlags),
    ) {
        for (host, station) in self.all.iter().enumerate() {
            match station {
                Station::Local(local) => local.watch(output, |source, descriptor, events| {
                    watch(host, StationSource::Local(source), descriptor, events);
                }),
                Station::Remote(remote) => remote.watch(output, |source, descriptor, events| {
                    watch(host, StationSource::Remote(source), descriptor, events);
                }),
            }
        }
    }

    /// Handles the readiness of a host's `source` and appends the resulting events. Returns `Some`
    /// when the host's start command has ended.
    pub(super) fn handle(
        &mut self,
        host: usize,
        source: StationSource,
        queue: &mut Queue,
        events: &mut Vec<Event>,
    ) -> io::Result<Option<ExitStatus>> {
        match (&mut self.all[host], source) {
            (Station::Local(local), StationSource::Local(source)) => {
                local.handle(source, events).map(|()| None)
            }
            (Station::Remote(remote), StationSource::Remote(source)) => {
                remote.handle(source, queue, events)
            }
            _ => Ok(None), // a host has sources of one kind
        }
    }

    /// The number of a rank's host.
    pub(super) fn host_of(&self, rank: u32) -> u32 {
        self.hosts.of(rank)
    }

    fn of(&self, rank: u32) -> &Station {
        &self.all[self.hosts.of(rank) as usize]
    }

    /// The agent of a rank's host, if it has one.
    pub(super) fn remote_of(&self, rank: u32) -> Option<&RemoteRanks> {
        match self.of(rank) {
            Station::Local(_) => None,
            Station::Remote(remote) => Some(remote),
        }
    }

    /// The agent of a host, if it has one.
    pub(super) fn remote(&self, host: usize) -> Option<&RemoteRanks> {
        match &self.all[host] {
            Station::Local(_) => None,
            Station::Remote(remote) => Some(remote),
        }
    }

    /// All agents.
    pub(super) fn remotes(&mut self) -> impl Iterator<Item = &mut RemoteRanks> {
        self.all.iter_mut().filter_map(|station| match station {
            Station::Local(_) => None,
            Station::Remote(remote) => Some(&mut **remote),
        })
    }

    /// Whether commands can reach a rank's host.
    pub(super) fn has_started(&self, rank: u32) -> bool {
        self.remote_of(rank).is_none_or(RemoteRanks::has_greeted)
    }

    /// The current note of a rank, or the last one that its host reported.
    pub(super) fn noted(&self, rank: u32) -> Note {
        match self.of(rank) {
            Station::Local(local) => local.noted(rank),
            Station::Remote(remote) => remote.noted(rank),
        }
    }

    /// The remark of a rank on its note, or the last one that its host reported.
    pub(super) fn remarked(&self, rank: u32) -> Option<String> {
        match self.of(rank) {
            Station::Local(local) => local.remarked(rank),
            Station::Remote(remote) => remote.remarked(rank),
        }
    }

    /// The ranks of this host, in a job that has no other.
    pub(super) fn local(&mut self) -> Option<&mut LocalRanks> {
        match &mut self.all[..] {
            [Station::Local(local)] => Some(local),
            _ => None,
        }
    }

    /// Commands the host of a rank.
    pub(super) fn act(&mut self, rank: u32, command: Command) {
        match &mut self.all[self.hosts.of(rank) as usize] {
            Station::Local(local) => local.act(command),
            Station::Remote(remote) => remote.act(&command),
        }
    }

    /// Commands every host.
    pub(super) fn act_all(&mut self, command: &Command) {
        for station in &mut self.all {
            match station {
                Station::Local(local) => local.act(command.clone()),
                Station::Remote(remote) => remote.act(command),
            }
        }
    }

    /// The next time at which to give up a host that doesn't answer.
    pub(super) fn overdue(&self) -> Option<Instant> {
        let start = self.started + START_LIMIT;
        let remotes = (0..self.all.len()).filter_map(|host| self.remote(host));
        remotes.filter_map(|remote| remote.overdue(start, LAST_WORDS)).min()
    }

    /// Gives up the hosts that haven't answered in time.
    pub(super) fn give_up_overdue(&mut self, now: Instant) {
        let start = self.started + START_LIMIT;
        for remote in self.remotes() {
            if remote.overdue(start, LAST_WORDS).is_some_and(|due| due <= now) {
                remote.give_up("no message from its agent");
            }
        }
    }
}
