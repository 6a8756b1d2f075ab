//! The supervisor of a job: one poll loop over all descriptors and deadlines of the launcher.
//!
//! This module has the loop, the flow of output, input, signals and commands, and the answers of
//! the PMI-1 server. The module [`ends`] has the reactions to the end of ranks and hosts.

mod ends;

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use longshore_transport::segment::Geometry;
use longshore_transport::{Cause as Death, Note};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use super::guard::{Control, to_forward};
use super::local::{LocalRanks, LocalSource};
use super::mapping::place_ranks;
use super::message::{Command, Event, JournalOrder};
use super::output::{Lines, OutputStream, Queue};
use super::plan::orders;
use super::process::Descriptors;
use super::remote::{RemoteRanks, RemoteSource};
use super::server::{Answer, Server, Standing};
use super::watchdog::Watchdog;
use super::{Error, Job, TIMED_OUT};
use crate::hosts::Hosts;
use crate::job::Secret;
use crate::observe::Gatherer;
use ends::{Postponed, status_of};

/// The time that agents have to report that their ranks are killed, and again to end themselves.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The time that a start command has until its agent sends the greeting.
const START_LIMIT: Duration = Duration::from_secs(60);
/// A second SIGINT within this time has the same reason as the first and doesn't count: the
/// terminal and another process may both send one.
const ECHO: Duration = Duration::from_millis(100);
/// The most bytes of standard input on the way to rank 0 on another host.
const INPUT_WINDOW: usize = 64 << 10;
/// The time that debuggers have to read the ranks' stacks after a timeout.
const TRACING: Duration = Duration::from_secs(30);
/// The smallest ring size. A number of ranks that doesn't fit with it fits with none.
const RING: u32 = 4 << 10;

/// The state of the launcher while its job runs.
pub(super) struct Supervisor<'a> {
    job: &'a Job,
    control: &'a Control,
    /// By host number. Without [`Job::hosts`], only this host.
    hosts: Vec<HostRanks>,
    /// The host number of each rank.
    placement: Hosts,
    server: Server,
    ranks: Vec<Rank>,
    queue: Queue,
    /// Standard input, if the job has hosts: rank 0 can't inherit it there.
    input: Option<Input>,
    phase: Phase,
    /// Failures that may be effects of another rank's failure.
    postponed: Vec<Postponed>,
    /// The rest of the output is dropped.
    abandoned: bool,
    /// The exit status of the first failure.
    status: Option<u8>,
    started: Instant,
    deadline: Option<Instant>,
    watchdog: Option<Watchdog>,
    /// The time of the watchdog's next look.
    look: Option<Instant>,
    /// What the ranks have recorded.
    gatherer: Gatherer,
    /// The last signal that asks for an end, and its time.
    interrupted: Option<(Signal, Instant)>,
}

/// The ranks of one host.
enum HostRanks {
    /// The launcher's own children, in a job without hosts.
    Local(LocalRanks),
    /// The ranks of an agent.
    Remote(Box<RemoteRanks>),
}

struct Rank {
    part: usize,
    runs: bool,
    stdout: Lines,
    stderr: Lines,
    /// The rank exited with 0 and had not called init.
    absent: bool,
    /// Where its core file is, or why the kernel killed it.
    core: Option<String>,
    /// Its stacks were asked for, and aren't there yet.
    untraced: bool,
}

/// Standard input on its way to another host.
struct Input {
    stdin: io::Stdin,
    /// Bytes that rank 0 hasn't taken yet.
    under_way: usize,
}

/// The phase of the job's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The job has timed out, and ends when the stacks of its ranks are there, at this time at the
    /// latest.
    Tracing(Instant),
    /// SIGTERM was sent to the ranks that hadn't left the job. The others get it at this time.
    Leaving(Instant),
    /// SIGTERM was sent to all; SIGKILL follows at this time.
    Ending(Instant),
    /// SIGKILL was sent. At this time, hosts that haven't reported the ends of their ranks are
    /// given up.
    Killed(Instant),
    GivenUp,
}

/// A descriptor that poll(2) can report as ready, with its host's number.
#[derive(Clone, Copy)]
enum EventSource {
    Signals,
    Front,
    Output,
    Input,
    Local(usize, LocalSource),
    Remote(usize, RemoteSource),
}

impl<'a> Supervisor<'a> {
    /// Starts all ranks, or the agents that start them.
    pub(super) fn start(job: &'a Job, control: &'a Control) -> Result<Supervisor<'a>, Error> {
        let size = job.parts.iter().try_fold(0u32, |size, part| size.checked_add(part.ranks));
        let size = match size {
            Some(0) => return Err(Error::Empty),
            size => size.unwrap_or(u32::MAX), // refused by `Geometry::new`
        };
        Geometry::new(size, RING)?; // refuses a size before any list gets that long
        let placement = place_ranks(&job.hosts, job.mapping, size)?;
        let parts: Vec<u32> = (0..)
            .zip(&job.parts)
            .flat_map(|(number, part)| std::iter::repeat_n(number, part.ranks as usize))
            .collect();
        if let Some(path) = &job.output {
            fs::create_dir_all(path)
                .map_err(|source| Error::Output { path: path.clone(), source })?;
        }
        let lines = |stream, rank: u32| match &job.output {
            Some(folder) => Lines::to_file(stream, folder, rank),
            None if job.label => Ok(Lines::new(stream, format!("[{rank}] "))),
            None => Ok(Lines::new(stream, String::new())),
        };
        let rank = |(number, &part): (u32, &u32)| {
            Ok(Rank {
                part: part as usize,
                runs: true,
                stdout: lines(OutputStream::Stdout, number)?,
                stderr: lines(OutputStream::Stderr, number)?,
                absent: false,
                core: None,
                untraced: false,
            })
        };
        let ranks = (0..).zip(&parts).map(rank).collect::<Result<_, Error>>()?;
        let secret = Secret::generate()?;
        let gatherer = Gatherer::new(size, job.stats.as_ref(), job.trace.as_deref());
        let gatherer = gatherer.map_err(|(path, source)| Error::Observe { path, source })?;
        let journal = gatherer.wants().map(|(wants, events)| JournalOrder { wants, events });
        let orders = |host| orders(job, size, &placement, host, &secret, journal);
        let (mut hosts, mut started) = (Vec::new(), Vec::new());
        if job.hosts.is_empty() {
            let mut local = LocalRanks::start(&orders(0)?, false)?;
            started = local.take_started();
            hosts.push(HostRanks::Local(local));
        } else {
            let descriptors = Descriptors::allow(job.hosts.len())?;
            // The first rank of a host precedes those of later hosts, so the last hosts may have none.
            let last = (0..size).map(|rank| placement.of(rank)).max();
            for (number, host) in (0..=last.unwrap_or(0)).zip(&job.hosts) {
                let mut remote = RemoteRanks::start(job, host, &orders(number)?, descriptors)?;
                if gatherer.traces() {
                    remote.ask_for_clock();
                }
                hosts.push(HostRanks::Remote(Box::new(remote)));
            }
        }
        let now = Instant::now();
        let watchdog = job.watchdog.map(|patience| Watchdog::new(size, patience, now));
        let input = Input { stdin: io::stdin(), under_way: 0 };
        let mut supervisor = Supervisor {
            job,
            control,
            ranks,
            server: Server::new(parts, &placement),
            input: (!job.hosts.is_empty()).then_some(input),
            hosts,
            placement,
            queue: Queue::default(),
            phase: Phase::Running,
            postponed: Vec::new(),
            abandoned: false,
            status: None,
            started: now,
            deadline: job.timeout.and_then(|timeout| now.checked_add(timeout)),
            look: watchdog.as_ref().and_then(|watchdog| watchdog.next(now)),
            watchdog,
            gatherer,
            interrupted: None,
        };
        started.into_iter().for_each(|event| supervisor.handle_event(event));
        Ok(supervisor)
    }

    /// Runs the loop until all ranks have ended and all of their output is written. Returns the
    /// exit status of the job.
    pub(super) fn supervise(mut self) -> Result<u8, Error> {
        loop {
            if !self.is_any_running() {
                self.remotes().for_each(RemoteRanks::close);
                if !self.remotes().any(|remote| remote.is_running()) {
                    break;
                }
            }
            for source in self.wait(self.time_left())? {
                self.handle(source)?;
                self.handle_postponed();
            }
            self.handle_time();
            self.handle_postponed();
        }
        self.report();
        while !self.abandoned && self.queue.next().is_some() {
            for source in self.wait(PollTimeout::NONE)? {
                match source {
                    EventSource::Signals => self.abandoned = true, // the reader may never read
                    source => self.handle(source)?,
                }
            }
        }
        Ok(self.status.unwrap_or(0))
    }

    /// Writes what the ranks have recorded.
    fn report(&mut self) {
        let gatherer = std::mem::take(&mut self.gatherer);
        match gatherer.finish() {
            Ok(text) => self.queue.push(OutputStream::Stderr, text.as_bytes()),
            Err((path, source)) => {
                self.status.get_or_insert(1);
                self.say(&Error::Observe { path, source }.to_string());
            }
        }
    }

    /// Waits until a descriptor is ready, at most for `at_most`.
    fn wait(&self, at_most: PollTimeout) -> io::Result<Vec<EventSource>> {
        let mut sources = Vec::new();
        let mut polled = Vec::new();
        let mut watch = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::new(descriptor, events));
        };
        let readable = PollFlags::POLLIN;
        if let Some(signals) = &self.control.signals {
            watch(EventSource::Signals, signals.as_fd(), readable);
        }
        match &self.control.front {
            Some(front) if !self.abandoned => watch(EventSource::Front, front.as_fd(), readable),
            _ => {}
        }
        let (stdout, stderr) = (io::stdout(), io::stderr());
        match self.queue.next() {
            Some(OutputStream::Stdout) => {
                watch(EventSource::Output, stdout.as_fd(), PollFlags::POLLOUT)
            }
            Some(OutputStream::Stderr) => {
                watch(EventSource::Output, stderr.as_fd(), PollFlags::POLLOUT)
            }
            None => {}
        }
        if let Some(input) = &self.input {
            if input.under_way < INPUT_WINDOW && self.has_started(0) {
                watch(EventSource::Input, input.stdin.as_fd(), readable);
            }
        }
        let output = !self.queue.is_full();
        for (number, host) in self.hosts.iter().enumerate() {
            match host {
                HostRanks::Local(local) => {
                    local.watch(output, |source, descriptor: BorrowedFd<'_>, events| {
                        watch(EventSource::Local(number, source), descriptor, events);
                    })
                }
                HostRanks::Remote(remote) => {
                    remote.watch(output, |source, descriptor: BorrowedFd<'_>, events| {
                        watch(EventSource::Remote(number, source), descriptor, events);
                    })
                }
            }
        }
        match poll(&mut polled, at_most) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let happened = sources.into_iter().zip(&polled);
        Ok(happened
            .filter(|(_, polled)| polled.any() == Some(true))
            .map(|(source, _)| source)
            .collect())
    }

    /// Whether commands can reach a rank's host.
    fn has_started(&self, rank: u32) -> bool {
        match &self.hosts[self.placement.of(rank) as usize] {
            HostRanks::Local(_) => true,
            HostRanks::Remote(remote) => remote.has_greeted(),
        }
    }

    fn is_any_running(&self) -> bool {
        self.ranks.iter().any(|rank| rank.runs)
    }

    fn remotes(&mut self) -> impl Iterator<Item = &mut RemoteRanks> {
        self.hosts.iter_mut().filter_map(|host| match host {
            HostRanks::Local(_) => None,
            HostRanks::Remote(remote) => Some(&mut **remote),
        })
    }

    fn time_left(&self) -> PollTimeout {
        let next = match self.phase {
            Phase::Running => {
                let postponed = self.postponed.iter().map(|failure| failure.until);
                self.deadline.into_iter().chain(self.look).chain(postponed).min()
            }
            Phase::Tracing(at) | Phase::Leaving(at) | Phase::Ending(at) | Phase::Killed(at) => {
                Some(at)
            }
            Phase::GivenUp => None,
        };
        let overdue = self.hosts.iter().filter_map(|host| match host {
            HostRanks::Local(_) => None,
            HostRanks::Remote(remote) => remote.overdue(self.started + START_LIMIT, LAST_WORDS),
        });
        let Some(next) = next.into_iter().chain(overdue).min() else { return PollTimeout::NONE };
        // Rounded up: poll(2) counts in milliseconds, and a timeout of 0 would spin.
        let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    fn handle_time(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.status = Some(TIMED_OUT);
                let seconds = self.job.timeout.unwrap_or_default().as_secs_f64();
                let living = self.describe_living();
                self.say(&format!("the job took longer than {seconds} s; ending {living}"));
                match self.job.stacks {
                    true => {
                        self.ask_for_stacks();
                        self.phase = Phase::Tracing(now + TRACING);
                    }
                    false => self.end(),
                }
            }
            Phase::Tracing(until) if until <= now || self.untraced().next().is_none() => {
                self.name_untraced();
                self.end();
            }
            Phase::Running if self.look.is_some_and(|look| look <= now) => self.watch(now),
            Phase::Leaving(end) if end <= now => self.end_leavers(),
            Phase::Ending(kill) if kill <= now => self.kill(),
            Phase::Killed(give_up) if give_up <= now => {
                self.phase = Phase::GivenUp;
                self.remotes().for_each(|remote| remote.give_up("its agent doesn't answer"));
            }
            _ => {}
        }
        let start = self.started + START_LIMIT;
        for remote in self.remotes() {
            if remote.overdue(start, LAST_WORDS).is_some_and(|due| due <= now) {
                remote.give_up("no message from its agent");
            }
        }
    }

    /// Passes the notes of all ranks to the watchdog and prints its report.
    fn watch(&mut self, now: Instant) {
        let notes: Vec<_> = (0..self.ranks.len() as u32)
            .map(|rank| match self.server.standing(rank) {
                Standing::Outside => Some(Note::default()), // it computes, and may still call init
                Standing::Joined => Some(self.noted(rank)),
                Standing::Finalized | Standing::Dead => None,
            })
            .collect();
        let Some(watchdog) = &mut self.watchdog else { return };
        self.look = watchdog.next(now);
        let (hosts, placement) = (&self.hosts, &self.placement);
        let remarked = |rank| match &hosts[placement.of(rank) as usize] {
            HostRanks::Local(local) => local.remarked(rank),
            HostRanks::Remote(remote) => remote.remarked(rank),
        };
        let report = watchdog.look(now, &notes, remarked);
        report.iter().for_each(|line| self.say(line));
        if self.job.stacks && !report.is_empty() {
            self.ask_for_stacks();
        }
    }

    fn ask_for_stacks(&mut self) {
        for rank in &mut self.ranks {
            rank.untraced = rank.runs;
        }
        self.act_all(&Command::Stacks);
    }

    /// The running ranks whose stacks were asked for and aren't there yet.
    fn untraced(&self) -> impl Iterator<Item = u32> {
        let ranks = (0..).zip(&self.ranks);
        ranks.filter(|(_, rank)| rank.untraced && rank.runs).map(|(rank, _)| rank)
    }

    fn name_untraced(&mut self) {
        let names: Vec<_> = self.untraced().map(|rank| rank.to_string()).collect();
        if !names.is_empty() {
            let seconds = TRACING.as_secs();
            let names = names.join(", ");
            self.say(&format!("no stacks within {seconds} s of ranks: {names}"));
        }
    }

    fn handle(&mut self, source: EventSource) -> io::Result<()> {
        let mut events = Vec::new();
        match source {
            EventSource::Signals => self.handle_signals()?,
            EventSource::Front => {
                self.kill();
                self.abandoned = true;
            }
            EventSource::Output => {
                if let Some((stream, error)) = self.queue.write() {
                    self.handle_closed(stream, &error);
                }
            }
            EventSource::Input => self.handle_input(),
            EventSource::Local(host, source) => {
                if let HostRanks::Local(local) = &mut self.hosts[host] {
                    local.handle(source, &mut events)?;
                }
            }
            EventSource::Remote(host, source) => {
                if let HostRanks::Remote(remote) = &mut self.hosts[host] {
                    let ended = remote.handle(source, &mut self.queue, &mut events)?;
                    events.drain(..).for_each(|event| self.handle_event(event));
                    if let Some(status) = ended {
                        self.handle_lost(host, status);
                    }
                }
            }
        }
        events.into_iter().for_each(|event| self.handle_event(event));
        if !self.queue.is_full() {
            self.remotes().for_each(RemoteRanks::ask_for_output);
        }
        Ok(())
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Started(rank, processors) => {
                if self.job.verbose {
                    let number = self.placement.of(rank) as usize;
                    let host = match self.job.hosts.get(number) {
                        Some(host) => format!(" on host {}", host.name.to_string_lossy()),
                        None => String::new(),
                    };
                    self.say(&format!("rank {rank}{host} runs on processors {processors}"));
                }
            }
            Event::Output(rank, OutputStream::Stdout, bytes) => {
                self.ranks[rank as usize].stdout.take(&bytes, &mut self.queue);
            }
            Event::Output(rank, OutputStream::Stderr, bytes) => {
                self.ranks[rank as usize].stderr.take(&bytes, &mut self.queue);
            }
            Event::Line(rank, line) => {
                let answer = self.server.handle_line(rank, &line);
                self.answer(rank, answer);
                self.look_for_absent();
            }
            Event::Ended { rank, status, first_dead, core, .. } => {
                self.ranks[rank as usize].core = core;
                self.handle_end(rank, ExitStatus::from_raw(status), first_dead);
            }
            Event::Taken(count) => {
                if let Some(input) = &mut self.input {
                    input.under_way = input.under_way.saturating_sub(count as usize);
                }
            }
            Event::Stacks(rank, text) => {
                self.ranks[rank as usize].untraced = false;
                let mut lines = text.lines();
                let how = lines.next().unwrap_or_default();
                self.say(&format!("stacks of rank {rank}, {how}"));
                lines.for_each(|line| self.say(&format!("  {line}")));
            }
            // `RemoteRanks` handles these itself.
            Event::Refused { .. } | Event::Noted(..) | Event::Remarked(..) | Event::Clock(..) => {}
            Event::Recorded(rank, record) => {
                let host = match &self.hosts[self.placement.of(rank) as usize] {
                    HostRanks::Local(_) => None,
                    HostRanks::Remote(remote) => Some((remote.name(), remote.clock())),
                };
                if let Err(error) = self.gatherer.take(rank, record, host) {
                    self.status.get_or_insert(1);
                    self.say(&format!("writing the trace: {error}; the rest is lost"));
                }
            }
        }
    }

    /// Relays standard input to rank 0.
    fn handle_input(&mut self) {
        let Some(input) = &mut self.input else { return };
        let mut bytes = vec![0; 16 << 10];
        let count = match nix::unistd::read(&input.stdin, &mut bytes) {
            Ok(count) => count,
            Err(Errno::EINTR | Errno::EAGAIN) => return,
            Err(_) => 0, // closed, or the terminal of a foreground job: treated as the end
        };
        bytes.truncate(count);
        input.under_way += count;
        if count == 0 {
            self.input = None;
        }
        self.act(self.placement.of(0) as usize, Command::Input(bytes));
    }

    /// Handles a failed write to one of the launcher's own output streams.
    ///
    /// If the stream's reader has gone, the ranks get SIGPIPE as they would without a launcher. Any
    /// other failure, such as a full disk, is reported to the user, because output is lost.
    fn handle_closed(&mut self, stream: OutputStream, error: &io::Error) {
        self.act_all(&Command::Close(stream));
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.status.get_or_insert(1);
            if stream == OutputStream::Stdout {
                self.say(&format!("writing to standard output: {error}; the rest is lost"));
            }
        }
    }

    fn handle_signals(&mut self) -> io::Result<()> {
        while let Some(information) = self
            .control
            .signals
            .as_ref()
            .map(|signals| signals.read_signal())
            .transpose()?
            .flatten()
        {
            let Ok(signal) = Signal::try_from(information.ssi_signo as i32) else { continue };
            let now = Instant::now();
            match self.interrupted {
                Some((Signal::SIGINT, first)) if signal == Signal::SIGINT => {
                    if now > first + ECHO {
                        self.kill();
                    }
                    continue;
                }
                _ if !matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2) => {
                    self.interrupted = Some((signal, now));
                }
                _ => {}
            }
            match to_forward(&information) {
                Some(signal) => self.signal(signal),
                // The terminal has signalled the processes of this host, but not those of others.
                None => {
                    self.remotes().for_each(|remote| remote.act(&Command::Signal(signal as i32)))
                }
            }
        }
        Ok(())
    }

    /// The current note of a rank, or the last one that its host reported.
    fn noted(&self, rank: u32) -> Note {
        match &self.hosts[self.placement.of(rank) as usize] {
            HostRanks::Local(local) => local.noted(rank),
            HostRanks::Remote(remote) => remote.noted(rank),
        }
    }

    fn act(&mut self, host: usize, command: Command) {
        match &mut self.hosts[host] {
            HostRanks::Local(local) => local.act(command),
            HostRanks::Remote(remote) => remote.act(&command),
        }
    }

    fn act_all(&mut self, command: &Command) {
        for host in 0..self.hosts.len() {
            self.act(host, command.clone());
        }
    }

    /// Records a rank's death in the segment of every host.
    fn mark(&mut self, rank: u32, death: Death) {
        self.act_all(&Command::Mark(rank, death));
    }

    fn answer(&mut self, rank: u32, answer: Answer) {
        match answer {
            Answer::Reply(line) => self.reply(rank, line),
            Answer::Wait => {}
            Answer::Release(ranks, line) => {
                ranks.into_iter().for_each(|rank| self.reply(rank, line.clone()));
            }
            Answer::Abort(code) => {
                self.mark(rank, Death::Abort(code));
                self.act_all(&Command::Abort(code));
                if self.phase == Phase::Running {
                    self.status = Some(status_of(code));
                    let name = self.name(rank);
                    self.say(&format!("{name} aborted the job with code {code}"));
                    self.end();
                }
            }
            Answer::Malformed => self.act(self.placement.of(rank) as usize, Command::HangUp(rank)),
        }
    }

    fn reply(&mut self, rank: u32, line: String) {
        self.act(self.placement.of(rank) as usize, Command::Reply(rank, line));
    }

    fn signal(&mut self, signal: Signal) {
        self.act_all(&Command::Signal(signal as i32));
    }

    /// Queues a line of the launcher's own on standard error, in order with the ranks' output.
    fn say(&mut self, line: &str) {
        self.queue.push(OutputStream::Stderr, format!("longshore: {line}\n").as_bytes());
    }
}
