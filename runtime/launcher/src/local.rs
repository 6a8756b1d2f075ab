//! The processes of the ranks on this host, for the launcher and for the agent of a host.
//!
//! [`LocalRanks::start`] starts the processes. [`LocalRanks::watch`] lists their descriptors for
//! poll(2), and [`LocalRanks::handle`] turns readiness into [`Event`]s. [`LocalRanks::act`]
//! executes a [`Command`]. The module makes no decisions: the launcher makes them from the events.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};

use longshore_transport::{JobState, Journal, Note, RankState, Segment};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, MsgFlags, recv, send, sendmsg};
use nix::unistd::{AccessFlags, access, pipe2};

use super::Error;
use super::binding::{Cores, Machine};
use super::core_file;
use super::limits;
use super::message::{Command, Event, Member, Orders, Program};
use super::output::{OutputStream, write_piece};
use super::process::{Descriptors, Process, Session};
use super::program::obstacle;
use super::server::{LINE_LIMIT, Lines};
use super::stacks::Stacks;
use crate::observe::Record;
use longshore_job::pmi::{JOIN, joined};
use longshore_job::{Secret, env};

/// The most reads from a pipe of a dead rank or agent before its death is reported. Together they
/// take more bytes than a pipe holds.
pub(super) const LAST_READS: usize = 64;

/// The ranks of one host.
pub(super) struct LocalRanks {
    share: Share,
    ranks: Vec<Rank>,
    /// The working directory with which they start.
    folder: PathBuf,
    /// [`Event::Started`] of each rank, until it is taken.
    started: Vec<Event>,
    input: Input,
    stacks: Stacks,
    /// The processes of the control group that the kernel had killed for its memory at the start.
    kills: u64,
}

/// What all ranks of the host are started with.
struct Place {
    is_agent: bool,
    descriptors: Descriptors,
    /// The number of processors that they may use together.
    processors: usize,
    /// The room for the events of each, in bytes.
    events: u32,
}

/// What every rank of the host gets when it joins the job.
struct Share {
    segment: Segment,
    secret: Secret,
}

struct Rank {
    rank: u32,
    /// `None` after the process has been reaped.
    process: Option<Process>,
    /// Whether [`Command::End`] has reached the rank.
    is_ended: bool,
    connection: Option<Connection>,
    /// The end of a pipe that the launcher alone holds: the rank dies when it closes.
    lifeline: Option<OwnedFd>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What the rank records.
    journal: Option<Journal>,
}

struct Connection {
    socket: UnixStream,
    input: Lines,
}

/// The pipe to rank 0's standard input, and the bytes that wait for it.
#[derive(Default)]
struct Input {
    pipe: Option<ChildStdin>,
    waiting: Vec<u8>,
    /// No bytes will follow `waiting`.
    ended: bool,
}

/// A descriptor that poll(2) can report as ready, with its rank's index in [`LocalRanks`].
#[derive(Clone, Copy)]
pub(super) enum LocalSource {
    Stdout(usize),
    Stderr(usize),
    Connection(usize),
    End(usize),
    Input,
    /// The debugger of a rank.
    Debugger(u32),
}

impl LocalRanks {
    /// Starts the ranks of this host. Rank 0 inherits this process's standard input. Under an agent
    /// it gets a pipe instead, which [`Command::Input`] fills.
    ///
    /// # Errors
    /// A program can't be started, or a system call fails. No rank is left running.
    pub(super) fn start(orders: &Orders, is_agent: bool) -> Result<LocalRanks, Error> {
        let folders = orders.folder.iter().chain(orders.programs.iter().flat_map(|it| &it.folder));
        folders.into_iter().try_for_each(check_folder)?;
        let segment = Segment::create_with_room(orders.size, orders.room)?;
        let mut station = LocalRanks {
            share: Share { segment, secret: orders.secret.clone() },
            ranks: Vec::new(),
            folder: match &orders.folder {
                Some(folder) => folder.into(),
                None => std::env::current_dir()?,
            },
            started: Vec::new(),
            input: Input::default(),
            stacks: Stacks::default(),
            kills: limits::kills(),
        };
        station.start_all(orders, is_agent)?;
        Ok(station)
    }

    /// The number of ranks that may still be started, and the number of those that were.
    pub(super) fn room(&self) -> (u32, u32) {
        let segment = &self.share.segment;
        (segment.size() - segment.started(), segment.started())
    }

    /// Starts more ranks, after all that were started.
    ///
    /// # Errors
    /// A program can't be started, or a system call fails. None of these ranks is left running.
    pub(super) fn add(&mut self, orders: &Orders) -> Result<Vec<Event>, Error> {
        let before = self.ranks.len();
        orders.programs.iter().flat_map(|it| &it.folder).try_for_each(check_folder)?;
        if let Err(error) = self.start_all(orders, false) {
            for process in self.ranks.drain(before..).filter_map(|rank| rank.process) {
                process.signal(Signal::SIGKILL);
                let _ = process.reap(); // an error leaves nothing to do
            }
            self.started.clear();
            return Err(error);
        }
        self.share.segment.start(orders.first + orders.size);
        Ok(self.take_started())
    }

    /// Starts the ranks of these orders. After an error, some of them may run.
    fn start_all(&mut self, orders: &Orders, is_agent: bool) -> Result<(), Error> {
        if !orders.is_consistent() {
            return Err(io::Error::other("the orders name ranks or programs out of range").into());
        }
        for like in orders.members.chunk_by(|a, b| a.program == b.program) {
            check_program(orders, &like[0])?;
        }
        let machine = Machine::read()?;
        let count = orders.members.len();
        let bound = machine.divide(orders.binding.as_ref(), count).map_err(Error::Binding)?;
        let asked = orders.journal.map_or(0, |order| order.events);
        let place = Place {
            is_agent,
            descriptors: Descriptors::allow(self.ranks.len() + count)?,
            processors: machine.processors(),
            events: limits::room_for_events(asked, count),
        };
        for (index, member) in orders.members.iter().enumerate() {
            let cores = bound.as_ref().map(|bound| bound[index]);
            let rank = self.start_rank(orders, member, &place, cores)?;
            self.ranks.push(rank);
            let cores = cores.unwrap_or_else(|| machine.all());
            self.started.push(Event::Started(member.rank, cores.to_string()));
        }
        Ok(())
    }

    fn start_rank(
        &mut self,
        orders: &Orders,
        member: &Member,
        place: &Place,
        cores: Option<Cores>,
    ) -> Result<Rank, Error> {
        let program = &orders.programs[member.program as usize];
        let journal = orders.journal.map(|order| Journal::create(order.wants, place.events));
        let journal = journal.transpose()?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = std::process::Command::new(&program.path);
        let stdin = match member.rank {
            0 if place.is_agent => Stdio::piped(),
            0 => Stdio::inherit(),
            _ => Stdio::null(),
        };
        let additions = program.environment.iter().map(|(name, value)| (name, value));
        command.args(&program.arguments).envs(additions).envs(library_path(program));
        for name in [env::PMI_PORT, env::PMI_ID, env::HOSTS, env::ARCH, env::PARENT] {
            command.env_remove(name);
        }
        command
            .envs(orders.environment.iter().map(|(name, value)| (name, value)))
            .env(env::PMI_FD, theirs.as_raw_fd().to_string())
            .env(env::PMI_RANK, (member.rank - orders.first).to_string())
            .env(env::FIRST, orders.first.to_string())
            .env(env::PMI_SIZE, orders.size.to_string())
            .env(env::LAUNCHER, "run")
            .env(env::PROCESSORS, place.processors.to_string())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(arch) = &member.arch {
            command.env(env::ARCH, arch);
        }
        if let Some(folder) = program.folder.as_ref().or(orders.folder.as_ref()) {
            command.current_dir(folder);
        }
        // An agent has no terminal that could signal the whole process group of a rank.
        let session = if place.is_agent { Session::OwnGroup } else { Session::Launcher };
        let inherited = [theirs.as_fd()];
        let mut process = Process::start(
            &mut command,
            &inherited,
            place.descriptors,
            session,
            cores,
            orders.stacks,
        )
        .map_err(|source| Error::Start {
            part: member.part as usize + 1,
            program: program.path.clone(),
            source: explained(source, &program.path),
        })?;
        let child = process.child();
        if let Some(pipe) = child.stdin.take() {
            self.input.pipe = Some(pipe);
        }
        Ok(Rank {
            rank: member.rank,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            process: Some(process),
            is_ended: false,
            connection: Some(Connection { socket: ours, input: Lines::default() }),
            lifeline: None,
            journal,
        })
    }

    /// Takes the events of the ranks' start.
    pub(super) fn take_started(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.started)
    }

    /// Calls `watch` for each descriptor to poll. The ranks' output is included only if `output`.
    pub(super) fn watch<'a>(
        &'a self,
        output: bool,
        mut watch: impl FnMut(LocalSource, BorrowedFd<'a>, PollFlags),
    ) {
        let readable = PollFlags::POLLIN;
        for (index, rank) in self.ranks.iter().enumerate() {
            let Some(process) = &rank.process else { continue };
            // The end of a process comes last, so that its output and its lines are handled first.
            if output {
                if let Some(pipe) = &rank.stdout {
                    watch(LocalSource::Stdout(index), pipe.as_fd(), readable);
                }
                if let Some(pipe) = &rank.stderr {
                    watch(LocalSource::Stderr(index), pipe.as_fd(), readable);
                }
            }
            if let Some(connection) = &rank.connection {
                watch(LocalSource::Connection(index), connection.socket.as_fd(), readable);
            }
            watch(LocalSource::End(index), process.end().as_fd(), readable);
        }
        match &self.input.pipe {
            Some(pipe) if !self.input.waiting.is_empty() => {
                watch(LocalSource::Input, pipe.as_fd(), PollFlags::POLLOUT);
            }
            _ => {}
        }
        for (rank, descriptor) in self.stacks.descriptors() {
            watch(LocalSource::Debugger(rank), descriptor, readable);
        }
    }

    /// Handles the readiness of `source` and appends the resulting events.
    pub(super) fn handle(
        &mut self,
        source: LocalSource,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        match source {
            LocalSource::Stdout(index) => {
                let rank = &mut self.ranks[index];
                forward(&mut rank.stdout, rank.rank, OutputStream::Stdout, events)
            }
            LocalSource::Stderr(index) => {
                let rank = &mut self.ranks[index];
                forward(&mut rank.stderr, rank.rank, OutputStream::Stderr, events)
            }
            LocalSource::Connection(index) => {
                self.ranks[index].listen(&self.share, events);
                Ok(())
            }
            LocalSource::End(index) => self.handle_end(index, events),
            LocalSource::Input => {
                self.feed(events);
                Ok(())
            }
            LocalSource::Debugger(rank) => {
                self.stacks.handle(rank, events);
                Ok(())
            }
        }
    }

    fn handle_end(&mut self, index: usize, events: &mut Vec<Event>) -> io::Result<()> {
        let Some(process) = self.ranks[index].process.take() else { return Ok(()) };
        let pid = process.pid();
        self.share.segment.retire(self.ranks[index].rank);
        let status = process.reap()?;
        // If another rank aborts the job, this rank may have ended for that reason. The abort may
        // have arrived after the poll that found this end, and it must be reported first.
        if let JobState::Aborting { by: Some(rank), .. } = self.share.segment.job_state() {
            if let Some(rank) = self.ranks.iter_mut().find(|each| each.rank == rank) {
                rank.listen(&self.share, events);
            }
        }
        let ended = &mut self.ranks[index];
        ended.listen(&self.share, events);
        ended.connection = None;
        drain(&mut ended.stdout, ended.rank, OutputStream::Stdout, events)?;
        drain(&mut ended.stderr, ended.rank, OutputStream::Stderr, events)?;
        let rank = ended.rank;
        if let Some(journal) = ended.journal.take() {
            let records = Record::read(&journal, self.share.segment.noted(rank));
            events.extend(records.map(|record| Event::Recorded(rank, record)));
        }
        events.push(Event::Ended {
            rank,
            status: status.into_raw(),
            note: self.share.segment.noted(rank),
            first_dead: self.share.segment.first_dead(),
            core: self.explain(pid, status),
        });
        Ok(())
    }

    /// What there is to know about a process's end by a signal: its core file, or the limit for
    /// which the kernel may have killed it.
    fn explain(&self, pid: u32, status: ExitStatus) -> Option<String> {
        let signal = status.signal()?;
        match status.core_dumped() {
            true => Some(core_file::describe(pid, signal, &self.folder)),
            false if signal == Signal::SIGKILL as i32 => limits::explain(self.kills),
            false => None,
        }
    }

    /// Writes waiting input to rank 0. If the write fails, the rest of the input is dropped.
    fn feed(&mut self, events: &mut Vec<Event>) {
        let Some(pipe) = &self.input.pipe else { return };
        let written = write_piece(pipe.as_fd(), &self.input.waiting);
        let count = written.as_ref().map_or(self.input.waiting.len(), |&count| count);
        self.input.waiting.drain(..count);
        events.push(Event::Taken(count as u32));
        if written.is_err() || self.input.ended && self.input.waiting.is_empty() {
            self.input.pipe = None;
        }
    }

    /// Executes a command. A command for a rank that has ended has no effect.
    pub(super) fn act(&mut self, command: Command) {
        match command {
            Command::Reply(rank, line) => {
                if let Some(rank) = self.find(rank) {
                    rank.reply(&line);
                }
            }
            Command::HangUp(rank) => {
                if let Some(rank) = self.find(rank) {
                    rank.connection = None;
                }
            }
            Command::Mark(rank, death) => {
                if rank < self.share.segment.size() {
                    self.share.segment.mark(rank, RankState::Dead(death));
                }
            }
            Command::Finalized(rank) => self.share.segment.mark(rank, RankState::Finalized),
            Command::Abort(code) => self.share.segment.abort(code),
            Command::Signal(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    let processes = self.ranks.iter().filter_map(|rank| rank.process.as_ref());
                    processes.for_each(|process| process.signal(signal));
                }
            }
            Command::End { leavers } => self.end(leavers),
            Command::Close(OutputStream::Stdout) => {
                self.ranks.iter_mut().for_each(|rank| rank.stdout = None);
            }
            Command::Close(OutputStream::Stderr) => {
                self.ranks.iter_mut().for_each(|rank| rank.stderr = None);
            }
            Command::Input(bytes) if bytes.is_empty() => {
                self.input.ended = true;
                if self.input.waiting.is_empty() {
                    self.input.pipe = None;
                }
            }
            Command::Input(bytes) => self.input.waiting.extend_from_slice(&bytes),
            Command::Taken(_) | Command::Clock(_) => {} // the agent's tasks
            Command::Stacks { ranks, states } => {
                let asked = self.ranks.iter().filter(|rank| ranks.contains(&rank.rank));
                let living =
                    asked.filter_map(|rank| Some((rank.rank, rank.process.as_ref()?.pid())));
                self.stacks.ask(living, states);
            }
            Command::EndStacks => self.stacks.end(),
        }
    }

    /// Ends ranks by SIGTERM. Without `leavers`, it spares ranks that left the job without
    /// finalize: they exit by themselves, and SIGTERM could cut the message that says why.
    fn end(&mut self, leavers: bool) {
        for rank in self.ranks.iter_mut().filter(|rank| !rank.is_ended) {
            let has_left = matches!(self.share.segment.rank_state(rank.rank), RankState::Dead(_));
            if let Some(process) = rank.process.as_ref().filter(|_| leavers || !has_left) {
                process.signal(Signal::SIGTERM);
                process.signal(Signal::SIGCONT); // a stopped process can't handle SIGTERM
                rank.is_ended = true;
            }
        }
    }

    /// The current note of a rank of this host.
    pub(super) fn noted(&self, rank: u32) -> Note {
        self.share.segment.noted(rank)
    }

    /// The remark that a rank of this host has added to its note.
    pub(super) fn remarked(&self, rank: u32) -> Option<String> {
        self.share.segment.remarked(rank)
    }

    /// The ranks that haven't ended.
    pub(super) fn living(&self) -> impl Iterator<Item = u32> {
        self.ranks.iter().filter(|rank| rank.process.is_some()).map(|rank| rank.rank)
    }

    fn find(&mut self, rank: u32) -> Option<&mut Rank> {
        self.ranks.iter_mut().find(|each| each.rank == rank)
    }
}

/// Refuses a working directory that ranks can't enter. Checked first, because spawn reports a
/// missing folder as a missing program.
fn check_folder(folder: &OsString) -> Result<(), Error> {
    // The final "." asks for the permission to enter the folder, not to list it.
    let entered = access(&Path::new(folder).join("."), AccessFlags::X_OK);
    entered.map_err(|errno| Error::Folder { folder: folder.clone(), source: errno.into() })
}

/// Refuses the program of a rank that the system would run through a shell, or not at all.
fn check_program(orders: &Orders, member: &Member) -> Result<(), Error> {
    let program = &orders.programs[member.program as usize];
    let own = program.environment.iter().rfind(|(name, _)| name == "PATH");
    let path = own.map(|(_, path)| path.clone()).or_else(|| std::env::var_os("PATH"));
    let folder = program.folder.as_ref().or(orders.folder.as_ref());
    match obstacle(&program.path, folder.map(OsString::as_os_str), path) {
        None => Ok(()),
        Some(obstacle) => Err(Error::Start {
            part: member.part as usize + 1,
            program: program.path.clone(),
            source: io::Error::new(io::ErrorKind::Unsupported, obstacle),
        }),
    }
}

/// The variable by which the loader finds the C interface of this installation, after the folders
/// that the program's environment names. The folder has no other library, since those of
/// PREFIX/lib, such as /usr/local/lib, may be others than the program found without it. `None` if
/// this command isn't installed.
fn library_path(program: &Program) -> Option<(&'static str, OsString)> {
    const VARIABLE: &str = "LD_LIBRARY_PATH";
    let command = std::env::current_exe().ok()?;
    let folder = command.parent()?.parent()?.join("lib/longshore");
    if !folder.join("libmpi_abi.so.1").exists() {
        return None;
    }
    let own = program.environment.iter().rfind(|(name, _)| name == VARIABLE);
    let before = own.map(|(_, path)| path.clone()).or_else(|| std::env::var_os(VARIABLE));
    let mut path = before.filter(|path| !path.is_empty()).unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(folder);
    Some((VARIABLE, path))
}

/// The error of a start, with a hint if a program without a path isn't found.
fn explained(error: io::Error, program: &OsStr) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound || program.as_bytes().contains(&b'/') {
        return error;
    }
    let name = program.to_string_lossy();
    let message = format!(
        "no folder of PATH has a program of this name; a program in the working directory is ./{name}"
    );
    io::Error::new(error.kind(), message)
}

/// Kills all ranks, so that none of them outlives this value, even after an error.
impl Drop for LocalRanks {
    fn drop(&mut self) {
        self.act(Command::Signal(Signal::SIGKILL as i32));
        for process in self.ranks.iter_mut().filter_map(|rank| rank.process.take()) {
            let _ = process.reap(); // an error leaves nothing to do
        }
    }
}

impl Rank {
    /// Reads once from the PMI-1 connection and appends the complete lines.
    fn listen(&mut self, share: &Share, events: &mut Vec<Event>) {
        let Some(connection) = &mut self.connection else { return };
        let mut bytes = [0; LINE_LIMIT];
        match recv(connection.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
            Ok(count @ 1..) => connection.input.push(&bytes[..count]),
            Err(Errno::EINTR | Errno::EAGAIN) => return,
            Ok(0) | Err(_) => return self.connection = None,
        }
        while let Some(line) = connection.input.next() {
            if line != JOIN {
                events.push(Event::Line(self.rank, line));
            } else if let Ok(lifeline) = connection.pass(share, self.journal.as_ref()) {
                self.lifeline = Some(lifeline);
            } else {
                return self.connection = None;
            }
        }
    }

    /// Sends a line. If the rank doesn't read its replies, it loses the connection.
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
    /// Passes the host's segment, the job's secret and the rank's journal to the rank. Returns the
    /// launcher's end of
    /// the rank's lifeline. The rank inherits none of them, so that its children can't either.
    fn pass(&self, share: &Share, journal: Option<&Journal>) -> io::Result<OwnedFd> {
        let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
        let line = joined(&share.secret);
        let journal = journal.map(|journal| journal.as_fd().as_raw_fd());
        let descriptors = [share.segment.as_fd().as_raw_fd(), theirs.as_raw_fd()];
        let descriptors: Vec<_> = descriptors.into_iter().chain(journal).collect();
        let sent = sendmsg::<()>(
            self.socket.as_raw_fd(),
            &[io::IoSlice::new(line.as_bytes())],
            &[ControlMessage::ScmRights(&descriptors)],
            MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        match sent == line.len() {
            true => Ok(ours),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

/// Reads once from a pipe that polls readable.
fn forward<R: Read>(
    pipe: &mut Option<R>,
    rank: u32,
    stream: OutputStream,
    events: &mut Vec<Event>,
) -> io::Result<()> {
    let Some(open) = pipe else { return Ok(()) };
    let mut bytes = [0; 16 << 10];
    match open.read(&mut bytes) {
        Ok(0) => *pipe = None,
        Ok(count) => events.push(Event::Output(rank, stream, bytes[..count].to_vec())),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Forwards the bytes that a dead rank left in a pipe, and closes the pipe.
///
/// It doesn't wait for the pipe's end, because processes that the rank started may hold the other
/// end open.
fn drain<R: Read + AsFd>(
    pipe: &mut Option<R>,
    rank: u32,
    stream: OutputStream,
    events: &mut Vec<Event>,
) -> io::Result<()> {
    for _ in 0..LAST_READS {
        let Some(open) = pipe else { return Ok(()) };
        if !is_readable(open.as_fd())? {
            break;
        }
        forward(pipe, rank, stream, events)?;
    }
    *pipe = None;
    Ok(())
}

pub(super) fn is_readable(pipe: BorrowedFd<'_>) -> io::Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::POLLIN)];
    poll(&mut polled, PollTimeout::ZERO)?;
    Ok(polled[0].any() == Some(true))
}
