//! The launcher's loop: one poll over everything that can happen to a job.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use longshore_transport::{Cause as Death, RankState, Segment};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, send};

use super::cause::Cause;
use super::guard::{Control, to_forward};
use super::output::{Queue, Sink, Stream};
use super::process::{Descriptors, Process};
use super::server::{Answer, Server, Standing};
use super::watchdog::Watchdog;
use super::{Error, Job, Part, TIMED_OUT};
use crate::job::{Activity, OnDeath, Secret, env};

/// What the ranks get to end by themselves, between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(300);
/// A second SIGINT within this time is the first one's echo: several senders, one intention.
const ECHO: Duration = Duration::from_millis(100);
/// The longest line of PMI-1 that a rank may send.
const LINE_LIMIT: usize = 4096;
/// How much of a dead rank's output is forwarded before its death is told; more than a pipe holds.
const LAST_READS: usize = 64;

/// What a rank takes: its process, its connection, its two pipes.
const DESCRIPTORS: u32 = 4;
/// What the launcher has open besides, and while it starts a rank.
const SPARE_DESCRIPTORS: u32 = 64;

pub(super) struct Supervisor<'a> {
    job: &'a Job,
    control: &'a Control,
    segment: Segment,
    descriptors: Descriptors,
    server: Server,
    ranks: Vec<Rank>,
    queue: Queue,
    phase: Phase,
    /// The first failure's.
    status: Option<u8>,
    deadline: Option<Instant>,
    watchdog: Option<Watchdog>,
    /// When the watchdog looks next.
    look: Option<Instant>,
    interrupted: Option<(Signal, Instant)>,
}

struct Rank {
    part: usize,
    process: Option<Process>,
    connection: Option<Connection>,
    stdout: Option<Stream<ChildStdout>>,
    stderr: Option<Stream<ChildStderr>>,
    /// It exited with 0 and hadn't called init.
    absent: bool,
}

struct Connection {
    socket: UnixStream,
    input: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// All were asked to end; SIGKILL follows then.
    Ending(Instant),
    Killed,
    /// Likewise, and nobody waits for the rest of the output.
    Abandoned,
}

/// What can become ready, and for which rank.
#[derive(Clone, Copy)]
enum Source {
    Signals,
    Front,
    Sink,
    Stdout(u32),
    Stderr(u32),
    Connection(u32),
    End(u32),
}

impl<'a> Supervisor<'a> {
    /// Starts all ranks.
    pub(super) fn start(job: &'a Job, control: &'a Control) -> Result<Supervisor<'a>, Error> {
        let size = job.parts.iter().try_fold(0u32, |size, part| size.checked_add(part.ranks));
        let segment = match size {
            Some(0) => return Err(Error::Empty),
            size => Segment::create(size.unwrap_or(u32::MAX))?, // which knows the limit
        };
        let needed = segment.size() * DESCRIPTORS + SPARE_DESCRIPTORS;
        let parts = (0..)
            .zip(&job.parts)
            .flat_map(|(number, part)| std::iter::repeat_n(number, part.ranks as usize))
            .collect();
        let secret = Secret::generate()?;
        let now = Instant::now();
        let watchdog = job.watchdog.map(|patience| Watchdog::new(segment.size(), patience, now));
        let mut supervisor = Supervisor {
            job,
            control,
            descriptors: Descriptors::allow(needed)?,
            segment,
            server: Server::new(parts),
            ranks: Vec::new(),
            queue: Queue::default(),
            phase: Phase::Running,
            status: None,
            deadline: job.timeout.and_then(|timeout| now.checked_add(timeout)),
            look: watchdog.as_ref().and_then(|watchdog| watchdog.next(now)),
            watchdog,
            interrupted: None,
        };
        for (number, part) in job.parts.iter().enumerate() {
            for index in 0..part.ranks {
                let rank = supervisor.start_rank(number, index, &secret)?;
                supervisor.ranks.push(rank);
            }
        }
        Ok(supervisor)
    }

    fn start_rank(&self, number: usize, index: u32, secret: &Secret) -> Result<Rank, Error> {
        let part = &self.job.parts[number];
        let rank = self.ranks.len();
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&part.program);
        command
            .args(&part.arguments)
            .envs(part.environment.iter().map(|(name, value)| (name, value)))
            .env(env::PMI_FD, theirs.as_raw_fd().to_string())
            .env(env::PMI_RANK, rank.to_string())
            .env(env::PMI_SIZE, self.segment.size().to_string())
            .env(env::SEGMENT, self.segment.as_fd().as_raw_fd().to_string())
            .env(env::SECRET, secret.to_hex())
            .env(env::ROUTE, self.job.routes.to_string())
            .env(env::ON_DEATH, self.job.on_death.to_string())
            .env_remove(env::PMI_PORT)
            .env_remove(env::PMI_ID)
            .stdin(if rank == 0 { Stdio::inherit() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(seed) = self.job.adversary {
            command.env(env::ADVERSARY, seed.to_string());
        }
        if let Some(progress) = self.job.progress {
            command.env(env::PROGRESS, progress.to_string());
        }
        if let Some(check) = self.job.check {
            command.env(env::CHECK, check.to_string());
        }
        match arch(part, index) {
            Some(name) => command.env(env::ARCH, name),
            None => command.env_remove(env::ARCH),
        };
        let mut process =
            Process::start(&mut command, &[self.segment.as_fd(), theirs.as_fd()], self.descriptors)
                .map_err(|source| Error::Start {
                    part: number + 1,
                    program: part.program.clone(),
                    source,
                })?;
        let label = if self.job.label { format!("[{rank}] ") } else { String::new() };
        let child = process.child();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        Ok(Rank {
            part: number,
            process: Some(process),
            connection: Some(Connection { socket: ours, input: Vec::new() }),
            stdout: stdout.map(|pipe| Stream::new(pipe, Sink::Stdout, label.clone())),
            stderr: stderr.map(|pipe| Stream::new(pipe, Sink::Stderr, label)),
            absent: false,
        })
    }

    /// Stands by until all have ended and all that they printed is written.
    pub(super) fn supervise(mut self) -> Result<u8, Error> {
        while self.ranks.iter().any(|rank| rank.process.is_some()) {
            for source in self.wait(self.time_left())? {
                self.handle(source)?;
            }
            self.handle_time();
        }
        while self.phase != Phase::Abandoned && self.queue.next().is_some() {
            for source in self.wait(PollTimeout::NONE)? {
                match source {
                    Source::Signals => self.phase = Phase::Abandoned, // whoever should read doesn't
                    source => self.handle(source)?,
                }
            }
        }
        Ok(self.status.unwrap_or(0))
    }

    /// Waits until something happened.
    fn wait(&self, at_most: PollTimeout) -> io::Result<Vec<Source>> {
        let mut sources = Vec::new();
        let mut polled = Vec::new();
        let mut watch = |source, descriptor, events| {
            sources.push(source);
            polled.push(PollFd::new(descriptor, events));
        };
        let readable = PollFlags::POLLIN;
        if let Some(signals) = &self.control.signals {
            watch(Source::Signals, signals.as_fd(), readable);
        }
        match &self.control.front {
            Some(front) if self.phase != Phase::Abandoned => {
                watch(Source::Front, front.as_fd(), readable);
            }
            _ => {}
        }
        let (stdout, stderr) = (io::stdout(), io::stderr());
        match self.queue.next() {
            Some(Sink::Stdout) => watch(Source::Sink, stdout.as_fd(), PollFlags::POLLOUT),
            Some(Sink::Stderr) => watch(Source::Sink, stderr.as_fd(), PollFlags::POLLOUT),
            None => {}
        }
        for (number, rank) in (0..).zip(&self.ranks) {
            let Some(process) = &rank.process else { continue };
            // Output and connection before the end: what a rank said last is heard first.
            if !self.queue.is_full() {
                if let Some(stream) = &rank.stdout {
                    watch(Source::Stdout(number), stream.as_fd(), readable);
                }
                if let Some(stream) = &rank.stderr {
                    watch(Source::Stderr(number), stream.as_fd(), readable);
                }
            }
            if let Some(connection) = &rank.connection {
                watch(Source::Connection(number), connection.socket.as_fd(), readable);
            }
            watch(Source::End(number), process.end().as_fd(), readable);
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

    fn time_left(&self) -> PollTimeout {
        let next = match self.phase {
            Phase::Running => self.deadline.into_iter().chain(self.look).min(),
            Phase::Ending(kill) => Some(kill),
            Phase::Killed | Phase::Abandoned => None,
        };
        let Some(next) = next else { return PollTimeout::NONE };
        // Rounded up, lest the last millisecond be spent spinning.
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
                self.end();
            }
            Phase::Running if self.look.is_some_and(|look| look <= now) => self.watch(now),
            Phase::Ending(kill) if kill <= now => self.kill(),
            _ => {}
        }
    }

    /// Looks at what the ranks are doing, and says who waits for whom where that is worth a word.
    fn watch(&mut self, now: Instant) {
        let Some(watchdog) = &mut self.watchdog else { return };
        let notes: Vec<_> = (0..self.segment.size())
            .map(|rank| {
                let joined = self.server.standing(rank) == Standing::Joined;
                joined.then(|| self.segment.noted(rank))
            })
            .collect();
        self.look = watchdog.next(now);
        for line in watchdog.look(now, &notes) {
            self.say(&line);
        }
    }

    fn handle(&mut self, source: Source) -> io::Result<()> {
        match source {
            Source::Signals => self.handle_signals()?,
            Source::Front => {
                self.kill();
                self.phase = Phase::Abandoned;
            }
            Source::Sink => {
                if let Some((sink, error)) = self.queue.write() {
                    self.handle_closed(sink, &error);
                }
            }
            Source::Stdout(rank) => {
                forward(&mut self.ranks[rank as usize].stdout, &mut self.queue)?
            }
            Source::Stderr(rank) => {
                forward(&mut self.ranks[rank as usize].stderr, &mut self.queue)?
            }
            Source::Connection(rank) => self.handle_connection(rank),
            Source::End(rank) => self.handle_end(rank)?,
        }
        Ok(())
    }

    /// A sink takes nothing any more. Its writers learn of one that nobody reads as they would without a launcher; of
    /// another failure, a full disk perhaps, the user learns: output is lost.
    fn handle_closed(&mut self, sink: Sink, error: &io::Error) {
        match sink {
            Sink::Stdout => self.ranks.iter_mut().for_each(|rank| rank.stdout = None),
            Sink::Stderr => self.ranks.iter_mut().for_each(|rank| rank.stderr = None),
        }
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.status.get_or_insert(1);
            if sink == Sink::Stdout {
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
            if let Some(signal) = to_forward(&information) {
                self.signal(signal);
            }
        }
        Ok(())
    }

    /// Reads what `rank` asks, and answers.
    fn handle_connection(&mut self, rank: u32) {
        let Some(connection) = &mut self.ranks[rank as usize].connection else { return };
        let mut bytes = [0; LINE_LIMIT];
        match connection.socket.read(&mut bytes) {
            Ok(count @ 1..) => connection.input.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(0) | Err(_) => return self.ranks[rank as usize].connection = None,
        }
        while let Some(line) =
            self.ranks[rank as usize].connection.as_mut().and_then(Connection::line)
        {
            let answer = self.server.handle_line(rank, &line);
            self.answer(rank, answer);
        }
        self.look_for_absent();
    }

    fn answer(&mut self, rank: u32, answer: Answer) {
        match answer {
            Answer::Reply(line) => self.ranks[rank as usize].reply(&line),
            Answer::Wait => {}
            Answer::Release(ranks, line) => {
                ranks.into_iter().for_each(|rank| self.ranks[rank as usize].reply(&line));
            }
            Answer::Abort(code) => {
                self.segment.mark(rank, RankState::Dead(Death::Abort(code)));
                self.segment.abort(code);
                if self.phase == Phase::Running {
                    self.status = Some(code as u8);
                    let name = self.name(rank);
                    self.say(&format!("{name} aborted the job with code {code}"));
                    self.end();
                }
            }
            Answer::Nonsense => self.ranks[rank as usize].connection = None,
        }
    }

    /// A rank's process has ended.
    fn handle_end(&mut self, rank: u32) -> io::Result<()> {
        let ended = &mut self.ranks[rank as usize];
        let Some(process) = ended.process.take() else { return Ok(()) };
        let status = process.reap()?;
        ended.connection = None;
        drain(&mut ended.stdout, &mut self.queue)?;
        drain(&mut ended.stderr, &mut self.queue)?;
        let cause = Cause::new(status, self.server.standing(rank));
        match cause {
            Cause::Finished => {
                self.ranks[rank as usize].absent = self.server.standing(rank) == Standing::Outside;
                self.look_for_absent();
            }
            cause => self.handle_failure(rank, cause),
        }
        let answer = self.server.handle_death(rank);
        self.answer(rank, answer);
        Ok(())
    }

    /// Ranks that wait in init for one that won't come would wait for ever.
    fn look_for_absent(&mut self) {
        if self.server.find(Standing::Joined).is_none() {
            return;
        }
        if let Some(rank) = self.ranks.iter().position(|rank| rank.absent) {
            self.ranks[rank].absent = false;
            self.handle_failure(rank as u32, Cause::Absent);
        }
    }

    fn handle_failure(&mut self, rank: u32, cause: Cause) {
        let death = match cause {
            Cause::Killed(signal) => Death::Signal(signal),
            cause => Death::Exit(i32::from(cause.status())),
        };
        let during = self.describe_activity(rank);
        self.segment.mark(rank, RankState::Dead(death));
        self.status.get_or_insert(cause.status());
        if self.phase != Phase::Running {
            return; // one of those that are being ended
        }
        let what = match self.interrupted {
            Some((signal, _)) if cause == Cause::Killed(signal as i32) => {
                format!("ended by {signal}")
            }
            _ if cause == Cause::Absent => format!("{} {cause}", self.name(rank)),
            _ => format!("{} {cause}, {during}", self.name(rank)),
        };
        match (self.job.on_death, self.ranks.iter().filter(|rank| rank.process.is_some()).count()) {
            (OnDeath::End, 1) => self.say(&format!("{what}; ending the other rank")),
            (OnDeath::End, others @ 2..) => {
                self.say(&format!("{what}; ending the other {others} ranks"))
            }
            (OnDeath::Report, 1..) => self.say(&format!("{what}; the others go on")),
            (_, 0) => self.say(&what),
        }
        if self.job.on_death == OnDeath::End {
            self.end();
        }
    }

    /// Asks all to end, and sees to it that they do.
    fn end(&mut self) {
        self.segment.abort(i32::from(self.status.unwrap_or(1)));
        self.signal(Signal::SIGTERM);
        self.signal(Signal::SIGCONT); // a stopped one can't end
        self.phase = Phase::Ending(Instant::now() + GRACE);
    }

    fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.phase = Phase::Killed;
    }

    fn signal(&self, signal: Signal) {
        self.ranks
            .iter()
            .filter_map(|rank| rank.process.as_ref())
            .for_each(|each| each.signal(signal));
    }

    /// A line of the launcher's own, in order with what the ranks print.
    fn say(&mut self, line: &str) {
        self.queue.push(Sink::Stderr, format!("longshore: {line}\n").as_bytes());
    }

    fn name(&self, rank: u32) -> String {
        let program = &self.job.parts[self.ranks[rank as usize].part].program;
        format!("rank {rank} ({})", program.to_string_lossy())
    }

    fn describe_activity(&self, rank: u32) -> String {
        match self.server.standing(rank) {
            Standing::Outside | Standing::Dead => "before init".to_owned(),
            Standing::Finalized => "after finalize".to_owned(),
            Standing::Joined => {
                let noted = self.segment.noted(rank);
                let activity = Activity::from_code(noted.code).unwrap_or(Activity::Computing);
                format!("during {}", activity.describe(noted.detail))
            }
        }
    }

    /// The ranks still running and what they do, as far as a line holds them.
    fn describe_living(&self) -> String {
        const SHOWN: usize = 8;
        let living: Vec<_> = (0..)
            .zip(&self.ranks)
            .filter(|(_, rank)| rank.process.is_some())
            .map(|(rank, _)| rank)
            .collect();
        let mut described: Vec<_> = living
            .iter()
            .take(SHOWN)
            .map(|&rank| format!("rank {rank} ({})", self.describe_activity(rank)))
            .collect();
        if living.len() > SHOWN {
            described.push(format!("and {} more", living.len() - SHOWN));
        }
        described.join(", ")
    }
}

/// However the supervisor goes, by an error too, no rank outlives it.
impl Drop for Supervisor<'_> {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        for process in self.ranks.iter_mut().filter_map(|rank| rank.process.take()) {
            let _ = process.reap(); // nothing is left to do about it
        }
    }
}

impl Rank {
    /// Sends a line. A rank that doesn't read what it asked for loses its connection.
    fn reply(&mut self, line: &str) {
        let Some(connection) = &self.connection else { return };
        let line = format!("{line}\n");
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        match send(connection.socket.as_raw_fd(), line.as_bytes(), flags) {
            Ok(sent) if sent == line.len() => {}
            _ => self.connection = None,
        }
    }
}

impl Connection {
    /// The next whole line; an overlong one becomes an empty one, which is none of the protocol's.
    fn line(&mut self) -> Option<String> {
        let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
            return (self.input.len() > LINE_LIMIT).then(String::new);
        };
        let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
        self.input.drain(..=end);
        Some(line)
    }
}

/// The representation that a part's rank emulates, `index` from the part's first.
fn arch(part: &Part, index: u32) -> Option<&OsStr> {
    let name = part.archs.get(index as usize % part.archs.len().max(1))?;
    (name != "native").then(|| OsStr::new(name))
}

fn forward<R: Read + AsFd>(stream: &mut Option<Stream<R>>, queue: &mut Queue) -> io::Result<()> {
    if let Some(open) = stream {
        if !open.forward(queue)? {
            *stream = None;
        }
    }
    Ok(())
}

/// Forwards what a dead rank left in a pipe, and closes it: what it started may hold the other end.
fn drain<R: Read + AsFd>(stream: &mut Option<Stream<R>>, queue: &mut Queue) -> io::Result<()> {
    for _ in 0..LAST_READS {
        let Some(open) = stream else { return Ok(()) };
        if !is_readable(open.as_fd())? {
            break;
        }
        forward(stream, queue)?;
    }
    if let Some(mut open) = stream.take() {
        open.flush(queue);
    }
    Ok(())
}

fn is_readable(pipe: BorrowedFd<'_>) -> io::Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO)?;
    Ok(polled[0].any() == Some(true))
}
