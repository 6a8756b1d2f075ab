//! The agent of a host: `longshore run` starts it there, by ssh or another start command, and the
//! agent starts the host's ranks.
//!
//! It takes the launcher's commands from its standard input, reports events on its standard output,
//! and makes no decisions. When the launcher closes either one, the agent kills the ranks and
//! exits. It forwards a signal to the ranks and reports their ends before it exits itself.

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
use crate::observe;

/// The most bytes of output on the way to the launcher. At this limit, the agent stops reading it.
const OUTPUT_WINDOW: usize = 256 << 10;
/// The time that the ranks have to end after a signal, and then the launcher to take the last
/// events.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves as the agent of this host, for the launcher at the other end of standard input and
/// output. Returns the exit status.
pub fn serve(control: &Control) -> u8 {
    match Agent::new().run(control) {
        Ok(status) => status,
        Err(error) => {
            // Not `eprintln!`: it panics if standard error is closed too, and the caller must still
            // kill the processes that the ranks left running.
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
    /// Bytes of output that were sent and that the launcher hasn't taken yet.
    under_way: usize,
    /// The notes of ranks that were last reported to the launcher.
    noted: HashMap<u32, Note>,
    /// The ranks' last remarks.
    remarked: HashMap<u32, String>,
    /// The time of the next look at the ranks' notes.
    look: Option<Instant>,
    events: Vec<Event>,
    /// The first signal that arrived, and the time to end for it even if ranks live.
    signalled: Option<(Signal, Instant)>,
}

/// The result of one poll.
#[derive(Default)]
struct Polled {
    /// The ready descriptors of the ranks.
    sources: Vec<LocalSource>,
    /// The first signal.
    signal: Option<Signal>,
    /// The launcher or the front process has ended.
    ends: bool,
}

impl Polled {
    /// Whether the agent has to end, given that it has no ranks.
    fn is_end(&self) -> bool {
        self.ends || self.signal.is_some()
    }
}

/// A descriptor that poll(2) can report as ready.
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
            remarked: HashMap::new(),
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
                while !self.outbox.is_empty() && !self.poll_descriptors(None, control)?.is_end() {}
                return Ok(self.status());
            }
        };
        for event in local.take_started() {
            self.outbox.push(&event)?;
        }
        self.look = orders.notes.and_then(|pause| Instant::now().checked_add(pause));
        loop {
            // Taken before the poll, because commands may have arrived together with the orders.
            while let Some(command) = self.next()? {
                match command {
                    Command::Taken(count) => {
                        self.under_way = self.under_way.saturating_sub(count as usize);
                    }
                    Command::Clock(asked) => {
                        self.outbox.push(&Event::Clock(asked, observe::now()))?;
                    }
                    command => local.act(command),
                }
            }
            let polled = self.poll_descriptors(Some(&local), control)?;
            if let Some(signal) = polled.signal {
                local.act(Command::Signal(signal as i32));
            }
            for source in polled.sources {
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
            if polled.ends || is_over {
                drop(local); // kills the ranks before the last events are sent
                self.send_rest();
                return Ok(self.status());
            }
        }
    }

    /// The exit status of an agent without an error.
    fn status(&self) -> u8 {
        self.signalled.map_or(0, |(signal, _)| 128 + signal as u8)
    }

    /// Sends the queued events, until the launcher takes no more or the time is over.
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
            if self.poll_descriptors(None, control)?.is_end() {
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

    /// Waits until a descriptor is ready or a time is due. Reads commands and writes events.
    fn poll_descriptors(
        &mut self,
        local: Option<&LocalRanks>,
        control: &Control,
    ) -> io::Result<Polled> {
        let mut sources = Vec::new();
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        let mut watch = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::new(descriptor, events));
        };
        watch(AgentSource::Stdin, self.stdin.as_fd(), PollFlags::POLLIN);
        // Polled without events, the descriptor still reports that its reader has gone.
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
            Err(Errno::EINTR) => return Ok(Polled::default()),
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<_> = sources
            .into_iter()
            .zip(&polled)
            .filter_map(|(source, polled)| Some((source, polled.revents()?)))
            .filter(|(_, events)| !events.is_empty())
            .collect();
        let mut result = Polled::default();
        for (source, events) in happened {
            match source {
                AgentSource::Stdin => result.ends |= !self.inbox.read(&self.stdin)?,
                AgentSource::Stdout if events.contains(PollFlags::POLLOUT) => {
                    result.ends |= self.outbox.write(&self.stdout).is_err();
                }
                // The launcher has closed the pipe, or the front process was killed: end the job.
                AgentSource::Stdout | AgentSource::Front => result.ends = true,
                AgentSource::Signals => {
                    result.signal = control.signals.as_ref().map_or(Ok(None), first_signal)?;
                }
                AgentSource::Local(source) => result.sources.push(source),
            }
        }
        match (result.signal, self.signalled) {
            (Some(signal), None) => self.signalled = Some((signal, Instant::now() + LAST_WORDS)),
            // Several senders may signal for the same reason, so only the first signal is
            // forwarded.
            (Some(_), Some(_)) => result.signal = None,
            (None, _) => {}
        }
        Ok(result)
    }

    /// Reports the notes of ranks that have changed.
    fn note(&mut self, local: &LocalRanks) {
        for rank in local.living() {
            let note = local.noted(rank);
            if self.noted.insert(rank, note) != Some(note) {
                self.events.push(Event::Noted(rank, note));
            }
            // Without a text there is nothing to replace: the launcher forgets it with its note.
            if let Some(text) = local.remarked(rank) {
                if self.remarked.insert(rank, text.clone()).as_ref() != Some(&text) {
                    self.events.push(Event::Remarked(rank, text));
                }
            }
        }
    }
}

/// Reads all pending signals and returns the first.
fn first_signal(signals: &SignalFd) -> io::Result<Option<Signal>> {
    let mut first = None;
    while let Some(information) = signals.read_signal()? {
        first = first.or(Signal::try_from(information.ssi_signo as i32).ok());
    }
    Ok(first)
}
