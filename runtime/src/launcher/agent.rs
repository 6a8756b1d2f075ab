//! The agent of a host: what `longshore run` starts there, by ssh or another command, to start the ranks of that host.
//!
//! It listens to the launcher on its standard input, tells it on its standard output what happens, and decides nothing. When
//! either end of that goes, it ends the ranks, and then itself.

use std::collections::HashMap;
use std::io::{self, Stdin, Stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use longshore_transport::Note;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::guard::Control;
use super::message::{Command, Event, Inbox, Orders, Outbox};
use super::station::{self, Station};

/// How much of the ranks' output may be under way to the launcher; with more they wait.
const OUTPUT_WINDOW: usize = 256 << 10;

/// Serves as the agent of a host, for the launcher at the other end of standard input and output, and gives back a status.
pub fn serve(control: &Control) -> u8 {
    match Agent::new().run(control) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("longshore: the agent of this host: {error}");
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
}

#[derive(Clone, Copy)]
enum Source {
    Stdin,
    Stdout,
    Signals,
    Front,
    Station(station::Source),
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
        }
    }

    fn run(mut self, control: &Control) -> io::Result<()> {
        let Some(orders) = self.await_orders(control)? else { return Ok(()) };
        let mut station = match Station::start(&orders, true) {
            Ok(station) => station,
            Err(error) => {
                let (status, reason) = (error.status(), error.to_string());
                self.outbox.push(&Event::Refused { status, reason })?;
                while !self.outbox.is_empty() && self.await_something(None, control)?.is_some() {}
                return Ok(());
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
                    command => station.act(command),
                }
            }
            let Some(sources) = self.await_something(Some(&station), control)? else {
                return Ok(());
            };
            for source in sources {
                station.handle(source, &mut self.events)?;
            }
            if self.look.is_some_and(|look| look <= Instant::now()) {
                self.note(&station);
                self.look = orders.notes.and_then(|pause| Instant::now().checked_add(pause));
            }
            for event in std::mem::take(&mut self.events) {
                if let Event::Output(_, _, bytes) = &event {
                    self.under_way += bytes.len();
                }
                self.outbox.push(&event)?;
            }
        }
    }

    fn await_orders(&mut self, control: &Control) -> io::Result<Option<Orders>> {
        loop {
            if self.await_something(None, control)?.is_none() {
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

    /// Waits until something happened, reads and writes, and gives back what happened at the station; nothing at all where it is
    /// time to end.
    fn await_something(
        &mut self,
        station: Option<&Station>,
        control: &Control,
    ) -> io::Result<Option<Vec<station::Source>>> {
        let mut sources = Vec::new();
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        let mut watch = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::new(descriptor, events));
        };
        watch(Source::Stdin, self.stdin.as_fd(), PollFlags::POLLIN);
        // Without anything to write it says whether the other end is there.
        let writable = match self.outbox.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::POLLOUT,
        };
        watch(Source::Stdout, self.stdout.as_fd(), writable);
        if let Some(signals) = &control.signals {
            watch(Source::Signals, signals.as_fd(), PollFlags::POLLIN);
        }
        if let Some(front) = &control.front {
            watch(Source::Front, front.as_fd(), PollFlags::POLLIN);
        }
        if let Some(station) = station {
            station.watch(
                self.under_way < OUTPUT_WINDOW,
                |source, descriptor: BorrowedFd<'_>, events| {
                    watch(Source::Station(source), descriptor, events);
                },
            );
        }
        let left = self.look.map(|look| look.saturating_duration_since(Instant::now()));
        let left = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut polled, left) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Some(Vec::new())),
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<_> = sources
            .into_iter()
            .zip(&polled)
            .filter_map(|(source, polled)| Some((source, polled.revents()?)))
            .filter(|(_, events)| !events.is_empty())
            .collect();
        let mut at_station = Vec::new();
        for (source, events) in happened {
            match source {
                Source::Stdin if !self.inbox.read(&self.stdin)? => return Ok(None),
                Source::Stdin => {}
                Source::Stdout if events.contains(PollFlags::POLLOUT) => {
                    self.outbox.write(&self.stdout)?;
                }
                // Nobody reads it any more, or somebody wants this process to end.
                Source::Stdout | Source::Front | Source::Signals => return Ok(None),
                Source::Station(source) => at_station.push(source),
            }
        }
        Ok(Some(at_station))
    }

    /// Tells what the ranks note, where that is new.
    fn note(&mut self, station: &Station) {
        for rank in station.living() {
            let note = station.noted(rank);
            if self.noted.insert(rank, note) != Some(note) {
                self.events.push(Event::Noted(rank, note));
            }
        }
    }
}
