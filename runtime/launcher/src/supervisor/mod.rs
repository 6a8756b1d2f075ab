//! The supervisor of a job: one poll loop over all descriptors and deadlines of the launcher.
//!
//! This module has the loop, the flow of output, input, signals and commands, and the answers of
//! the PMI-1 server. [`start`] begins the job, [`stations`] has its hosts, [`hangs`] the deadlines
//! and the reports of a job that hangs, [`more`] the start of
//! ranks that other ranks ask for, and [`ends`] the reactions to the end of ranks and hosts.

mod ends;
mod hangs;
mod more;
mod start;
mod stations;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use longshore_transport::Cause as Death;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

use super::guard::{Control, to_forward};
use super::message::{Command, Event};
use super::output::{Lines, OutputStream, Queue};
use super::remote::RemoteRanks;
use super::server::{Answer, Server};
use super::{Error, Job};
use crate::observe::Gatherer;
use ends::{Postponed, status_of};
use hangs::Timers;
use longshore_job::Secret;
use stations::{StationSource, Stations};

/// The time that agents have to report that their ranks are killed, and again to end themselves.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// A second SIGINT within this time has the same reason as the first and doesn't count: the
/// terminal and another process may both send one.
const ECHO: Duration = Duration::from_millis(100);
/// The most bytes of standard input on the way to rank 0 on another host.
const INPUT_WINDOW: usize = 64 << 10;

/// The state of the launcher while its job runs.
pub(super) struct Supervisor<'a> {
    job: &'a Job,
    control: &'a Control,
    stations: Stations,
    server: Server,
    secret: Secret,
    ranks: Vec<Rank>,
    queue: Queue,
    /// Standard input, if the job has hosts: rank 0 can't inherit it there.
    input: Option<Input>,
    phase: Phase,
    /// Failures that may be effects of another rank's failure.
    postponed: Vec<Postponed>,
    /// The exit status of the first failure.
    status: Option<u8>,
    timers: Timers,
    /// What the ranks have recorded.
    gatherer: Gatherer,
    /// The last signal that asks for an end, and its time.
    interrupted: Option<(Signal, Instant)>,
}

struct Rank {
    /// The part whose environment it has.
    part: usize,
    program: OsString,
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

/// A descriptor that poll(2) can report as ready.
#[derive(Clone, Copy)]
enum EventSource {
    Signals,
    Front,
    Output,
    Input,
    /// A host's, with the host's number.
    Station(usize, StationSource),
}

impl Supervisor<'_> {
    /// Runs the loop until all ranks have ended and all of their output is written. Returns the
    /// exit status of the job.
    pub(super) fn supervise(mut self) -> Result<u8, Error> {
        loop {
            if !self.is_any_running() {
                self.stations.remotes().for_each(RemoteRanks::close);
                if !self.stations.remotes().any(|remote| remote.is_running()) {
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
        while !self.queue.is_abandoned() && self.queue.next().is_some() {
            for source in self.wait(PollTimeout::NONE)? {
                match source {
                    EventSource::Signals => self.queue.abandon(), // the reader may never read
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
            Some(front) if !self.queue.is_abandoned() => {
                watch(EventSource::Front, front.as_fd(), readable)
            }
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
            if input.under_way < INPUT_WINDOW && self.stations.has_started(0) {
                watch(EventSource::Input, input.stdin.as_fd(), readable);
            }
        }
        let output = !self.queue.is_full();
        self.stations.watch(output, |host, source, descriptor, events| {
            watch(EventSource::Station(host, source), descriptor, events);
        });
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

    fn is_any_running(&self) -> bool {
        self.ranks.iter().any(|rank| rank.runs)
    }

    fn handle(&mut self, source: EventSource) -> io::Result<()> {
        let mut events = Vec::new();
        match source {
            EventSource::Signals => self.handle_signals()?,
            EventSource::Front => {
                self.kill();
                self.queue.abandon();
            }
            EventSource::Output => {
                if let Some((stream, error)) = self.queue.write() {
                    self.handle_closed(stream, &error);
                }
            }
            EventSource::Input => self.handle_input(),
            EventSource::Station(host, source) => {
                let ended = self.stations.handle(host, source, &mut self.queue, &mut events)?;
                events.drain(..).for_each(|event| self.handle_event(event));
                if let Some(status) = ended {
                    self.handle_lost(host, status);
                }
            }
        }
        if !self.queue.is_full() {
            self.stations.remotes().for_each(RemoteRanks::ask_for_output);
        }
        Ok(())
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Started(rank, processors) => {
                if self.job.output.verbose {
                    let host = self.place_of(rank);
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
                let place = || longshore_job::listening(rank, &line);
                if let Some(place) = self.job.output.verbose.then(place).flatten() {
                    let host = self.place_of(rank);
                    self.say(&format!("rank {rank}{host} {place}"));
                }
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
            Event::Stacks(rank, text) => self.handle_stacks(rank, &text),
            // `RemoteRanks` handles these itself.
            Event::Refused { .. } | Event::Noted(..) | Event::Remarked(..) | Event::Clock(..) => {}
            Event::Recorded(rank, record) => {
                let remote = self.stations.remote_of(rank);
                let host = remote.map(|remote| (remote.name(), remote.clock()));
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
        self.stations.act(0, Command::Input(bytes));
    }

    /// Handles a failed write to one of the launcher's own output streams.
    ///
    /// If the stream's reader has gone, the ranks get SIGPIPE as they would without a launcher. Any
    /// other failure, such as a full disk, is reported to the user, because output is lost.
    fn handle_closed(&mut self, stream: OutputStream, error: &io::Error) {
        self.stations.act_all(&Command::Close(stream));
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
                None => self
                    .stations
                    .remotes()
                    .for_each(|remote| remote.act(&Command::Signal(signal as i32))),
            }
        }
        Ok(())
    }

    /// Records a rank's death in the segment of every host.
    fn mark(&mut self, rank: u32, death: Death) {
        self.stations.act_all(&Command::Mark(rank, death));
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
                self.stations.act_all(&Command::Abort(code));
                if self.phase == Phase::Running {
                    self.status = Some(status_of(code));
                    let name = self.name(rank);
                    self.say(&format!("{name} aborted the job with code {code}"));
                    self.end();
                }
            }
            Answer::Start(order) => {
                let started = self.start_more(rank, &order);
                self.reply(rank, started.to_line());
            }
            Answer::Malformed => self.stations.act(rank, Command::HangUp(rank)),
        }
    }

    fn reply(&mut self, rank: u32, line: String) {
        self.stations.act(rank, Command::Reply(rank, line));
    }

    fn signal(&mut self, signal: Signal) {
        self.stations.act_all(&Command::Signal(signal as i32));
    }

    /// Queues a line of the launcher's own on standard error, in order with the ranks' output.
    fn say(&mut self, line: &str) {
        self.queue.push(OutputStream::Stderr, format!("longshore: {line}\n").as_bytes());
    }
}
