//! The agent of a host: what `longshore run` starts there, by ssh or another command, to start the ranks of that host.
//!
//! It listens to the launcher on its standard input, tells it on its standard output what happens, and decides nothing. When
//! either end of that goes, it ends the ranks, and then itself. A signal it passes on to them, and tells of their ends before its
//! own.

use std::collections::HashMap;
use std::io::{self, Stdin, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use longshore_transport::Note;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;

use super::guard::Control;
use super::local::{LocalRanks, LocalSource};
use super::message::{Command, Event, Inbox, Orders, Outbox};

/// How much of the ranks' output may be under way to the launcher; with more they wait.
const OUTPUT_WINDOW: usize = 256 << 10;
/// What the ranks get to end at a signal, and then the launcher to take what is left to be told.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves as the agent of a host, for the launcher at the other end of standard input and output, and gives back a status.
pub fn serve(control: &Control) -> u8 {
    match Agent::new().run(control) {
        Ok(status) => status,
        Err(error) => {
            // Of standard error nothing may be left either, and that is no reason to leave ranks' processes behind.
            let _ = writeln!(io::stderr(), "longshore: the agent of this host: {error}");
            1
        }
    }
}

struct Agent {
    stdin: Stdin,
    stdout: Stdout,
    inbox: Inbox,
    outbox: Outbox,
    /// Output that was sent and isn't taken yet.
    under_way: usize,
    /// What ranks noted when the launcher heard of it last.
    noted: HashMap<u32, Note>,
    /// When to look what they note.
    look: Option<Instant>,
    events: Vec<Event>,
    /// The first signal that came, and when to end for it though ranks live.
    signalled: Option<(Signal, Instant)>,
}

/// What a look found.
#[derive(Default)]
struct Found {
    /// What happened at the station.
    sources: Vec<LocalSource>,
    /// The first signal.
    signal: Option<Signal>,
    /// The launcher or the process in front is gone.
    ends: bool,
}

impl Found {
    /// Whether it is time to end, where there are no ranks.
    fn is_end(&self) -> bool {
        self.ends || self.signal.is_some()
    }
}

#[derive(Clone, Copy)]
enum AgentSource {
    Stdin,
    Stdout,
    Signals,
    Front,
    Local(LocalSource),
}

impl Agent {
    fn new() -> Agent {
        let mut outbox = Outbox::default();
        outbox.greet();
        Agent {
            stdin: io::stdin(),
            stdout: io::stdout(),
            inbox: Inbox::ungreeted(),
            outbox,
            under_way: 0,
            noted: HashMap::new(),
            look: None,
            events: Vec::new(),
            signalled: None,
        }
    }

    fn run(mut self, control: &Control) -> io::Result<u8> {
        let Some(orders) = self.await_orders(control)? else { return Ok(self.status()) };
        let mut local = match LocalRanks::start(&orders, true) {
            Ok(local) => local,
            Err(error) => {
                let (status, reason) = (error.status(), error.to_string());
                self.outbox.push(&Event::Refused { status, reason })?;
                while !self.outbox.is_empty() && !self.await_something(None, control)?.is_end() {}
                return Ok(self.status());
            }
        };
        self.look = orders.notes.and_then(|pause| Instant::now().checked_add(pause));
        loop {
            // Some may have come with the orders.
            while let Some(command) = self.next()? {
                match command {
                    Command::Taken(count) => {
                        self.under_way = self.under_way.saturating_sub(count as usize);
                    }
                    command => local.act(command),
                }
            }
            let found = self.await_something(Some(&local), control)?;
            if let Some(signal) = found.signal {
                local.act(Command::Signal(signal as i32));
            }
            for source in found.sources {
                local.handle(source, &mut self.events)?;
            }
            if self.look.is_some_and(|look| look <= Instant::now()) {
                self.note(&local);
                self.look = orders.notes.and_then(|pause| Instant::now().checked_add(pause));
            }
            for event in std::mem::take(&mut self.events) {
                if let Event::Output(_, _, bytes) = &event {
                    self.under_way += bytes.len();
                }
                self.outbox.push(&event)?;
            }
            let is_over = self.signalled.is_some_and(|(_, until)| {
                until <= Instant::now() || local.living().next().is_none()
            });
            if found.ends || is_over {
                drop(local); // no rank waits for last words
                self.send_rest();
                return Ok(self.status());
            }
        }
    }

    /// The exit status of an agent that ends well.
    fn status(&self) -> u8 {
        self.signalled.map_or(0, |(signal, _)| 128 + signal as u8)
    }

    /// Sends what is left to be told, as far as somebody takes it.
    fn send_rest(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        while !self.outbox.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let mut polled = [PollFd::new(self.stdout.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut polled, left) {
                Ok(1..) if self.outbox.write(&self.stdout).is_ok() => {}
                Err(Errno::EINTR) => {}
                _ => return,
            }
        }
    }

    fn await_orders(&mut self, control: &Control) -> io::Result<Option<Orders>> {
        loop {
            if self.await_something(None, control)?.is_end() {
                return Ok(None);
            }
            if let Some(orders) = self.next()? {
                return Ok(Some(orders));
            }
        }
    }

    fn next<T: serde::de::DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        self.inbox.next().map_err(io::Error::other)
    }

    /// Waits until something happened, reads and writes.
    fn await_something(
        &mut self,
        local: Option<&LocalRanks>,
        control: &Control,
    ) -> io::Result<Found> {
        let mut sources = Vec::new();
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        let mut watch = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::new(descriptor, events));
        };
        watch(AgentSource::Stdin, self.stdin.as_fd(), PollFlags::POLLIN);
        // Without anything to write it says whether the other end is there.
        let writable = match self.outbox.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::POLLOUT,
        };
        watch(AgentSource::Stdout, self.stdout.as_fd(), writable);
        if let Some(signals) = &control.signals {
            watch(AgentSource::Signals, signals.as_fd(), PollFlags::POLLIN);
        }
        if let Some(front) = &control.front {
            watch(AgentSource::Front, front.as_fd(), PollFlags::POLLIN);
        }
        if let Some(local) = local {
            local.watch(
                self.under_way < OUTPUT_WINDOW,
                |source, descriptor: BorrowedFd<'_>, events| {
                    watch(AgentSource::Local(source), descriptor, events);
                },
            );
        }
        let next = self.look.into_iter().chain(self.signalled.map(|(_, until)| until)).min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        let left = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut polled, left) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Found::default()),
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<_> = sources
            .into_iter()
            .zip(&polled)
            .filter_map(|(source, polled)| Some((source, polled.revents()?)))
            .filter(|(_, events)| !events.is_empty())
            .collect();
        let mut found = Found::default();
        for (source, events) in happened {
            match source {
                AgentSource::Stdin => found.ends |= !self.inbox.read(&self.stdin)?,
                AgentSource::Stdout if events.contains(PollFlags::POLLOUT) => {
                    found.ends |= self.outbox.write(&self.stdout).is_err();
                }
                // Nobody reads it any more, or whoever killed the process in front wants this one to end.
                AgentSource::Stdout | AgentSource::Front => found.ends = true,
                AgentSource::Signals => {
                    found.signal = control.signals.as_ref().map_or(Ok(None), first_signal)?;
                }
                AgentSource::Local(source) => found.sources.push(source),
            }
        }
        match (found.signal, self.signalled) {
            (Some(signal), None) => self.signalled = Some((signal, Instant::now() + LAST_WORDS)),
            // One intention, perhaps of several senders.
            (Some(_), Some(_)) => found.signal = None,
            (None, _) => {}
        }
        Ok(found)
    }

    /// Tells what the ranks note, where that is new.
    fn note(&mut self, local: &LocalRanks) {
        for rank in local.living() {
            let note = local.noted(rank);
            if self.noted.insert(rank, note) != Some(note) {
                self.events.push(Event::Noted(rank, note));
            }
        }
    }
}

/// The first of the signals that came.
fn first_signal(signals: &SignalFd) -> io::Result<Option<Signal>> {
    let mut first = None;
    while let Some(information) = signals.read_signal()? {
        first = first.or(Signal::try_from(information.ssi_signo as i32).ok());
    }
    Ok(first)
}
