//! The ranks of another host, as the launcher drives them: its child is the start command, and its
//! messages to the host's agent go over that child's pipes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command as Program, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use longshore_transport::Note;
use nix::poll::PollFlags;
use nix::sys::signal::Signal;

use super::local::LAST_READS;
use super::message::{Command, Event, Inbox, Orders, Outbox};
use super::output::{Lines, OutputStream, Queue};
use super::process::{Descriptors, Process, Session};
use super::{Error, Host, Placement, SSH};
use crate::observe::{self, Clock, Clocks};

/// The ranks of another host and the connection to its agent.
pub(super) struct RemoteRanks {
    /// The host's name.
    name: String,
    /// The start command; `None` after it has been reaped.
    process: Option<Process>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// The standard error of the start command itself, for example of ssh.
    words: Lines,
    ranks: Vec<u32>,
    inbox: Inbox,
    outbox: Outbox,
    /// Bytes of output that arrived and that the agent hasn't been credited for.
    owed: usize,
    /// The last reported notes of the host's ranks.
    notes: HashMap<u32, Note>,
    /// The remarks on these notes.
    remarks: HashMap<u32, String>,
    /// What the host has answered about its clock.
    clocks: Clocks,
    /// The first reason why the ranks can't run, or why messages of the agent are ignored, with the
    /// job's status for it.
    trouble: Option<(u8, String)>,
    /// The time of the call to [`close`](RemoteRanks::close).
    closed: Option<Instant>,
}

/// A descriptor that poll(2) can report as ready.
#[derive(Clone, Copy)]
pub(super) enum RemoteSource {
    Stdin,
    Stdout,
    Stderr,
    End,
}

/// Quotes a word for a shell.
fn quoted(word: OsString) -> OsString {
    match shlex::bytes::try_quote(word.as_bytes()) {
        Ok(quoted) => OsString::from_vec(quoted.into_owned()),
        Err(_) => word,
    }
}

impl RemoteRanks {
    /// Runs the start command for a host and queues the orders for its agent.
    ///
    /// The orders go over standard input, because they include the secret: every user can read a
    /// command line.
    ///
    /// # Errors
    /// The start command can't be run.
    pub(super) fn start(
        placement: &Placement,
        host: &Host,
        orders: &Orders,
        descriptors: Descriptors,
    ) -> Result<RemoteRanks, Error> {
        let ssh: Vec<OsString> = SSH.split_whitespace().map(OsString::from).collect();
        let start = if placement.start.is_empty() { &ssh } else { &placement.start };
        let here = std::env::current_exe()?.into_os_string();
        // ssh joins the words, and a shell on the host splits them again.
        let here = if *start == ssh { quoted(here) } else { here };
        let here = [here, "agent".into()];
        let agent = if placement.agent.is_empty() { &here[..] } else { &placement.agent };
        let (first, rest) = start.split_first().unwrap_or((&host.name, &[]));
        let mut program = Program::new(first);
        program.args(rest).arg(&host.name).args(agent);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The launcher forwards the terminal's signals to the ranks. In the launcher's session they
        // would end ssh directly.
        let started = Process::start(&mut program, &[], descriptors, Session::Own, None, false);
        let name = host.name.to_string_lossy().into_owned();
        let mut process = started.map_err(|source| Error::StartHost {
            host: name.clone(),
            command: program.get_program().to_owned(),
            source,
        })?;
        let mut outbox = Outbox::default();
        outbox.push(orders)?;
        let child = process.child();
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(RemoteRanks {
            words: Lines::new(OutputStream::Stderr, format!("{name}: ")),
            ranks: orders.members.iter().map(|member| member.rank).collect(),
            name,
            process: Some(process),
            stdin,
            stdout,
            stderr,
            inbox: Inbox::default(),
            outbox,
            owed: 0,
            notes: HashMap::new(),
            remarks: HashMap::new(),
            clocks: Clocks::default(),
            trouble: None,
            closed: None,
        })
    }

    /// Calls `watch` for each descriptor to poll. The start command's standard error is included
    /// only if `output`.
    pub(super) fn watch<'a>(
        &'a self,
        output: bool,
        mut watch: impl FnMut(RemoteSource, BorrowedFd<'a>, PollFlags),
    ) {
        let Some(process) = &self.process else { return };
        if let Some(pipe) = self.stdin.as_ref().filter(|_| !self.outbox.is_empty()) {
            watch(RemoteSource::Stdin, pipe.as_fd(), PollFlags::POLLOUT);
        }
        if let Some(pipe) = &self.stdout {
            watch(RemoteSource::Stdout, pipe.as_fd(), PollFlags::POLLIN);
        }
        if let Some(pipe) = self.stderr.as_ref().filter(|_| output) {
            watch(RemoteSource::Stderr, pipe.as_fd(), PollFlags::POLLIN);
        }
        watch(RemoteSource::End, process.end().as_fd(), PollFlags::POLLIN);
    }

    /// Handles the readiness of `source` and appends the resulting events. Returns `Some` when the
    /// start command, and with it the connection to the host, has ended.
    pub(super) fn handle(
        &mut self,
        source: RemoteSource,
        queue: &mut Queue,
        events: &mut Vec<Event>,
    ) -> io::Result<Option<ExitStatus>> {
        match source {
            RemoteSource::Stdin => {
                let written = self.stdin.as_ref().map(|pipe| self.outbox.write(pipe));
                if written.is_some_and(|written| written.is_err()) {
                    self.stdin = None; // the end of the start command gives the reason
                }
            }
            RemoteSource::Stdout => self.read(events),
            RemoteSource::Stderr => self.forward_stderr(queue),
            RemoteSource::End => {
                let Some(process) = self.process.take() else { return Ok(None) };
                // Read its last messages before its end is handled. The number of reads is limited,
                // because a process that it left running may hold the pipes open.
                for _ in 0..LAST_READS {
                    let has_messages = self.stdout.as_ref().is_some_and(is_readable);
                    let has_errors = self.stderr.as_ref().is_some_and(is_readable);
                    if has_messages {
                        self.read(events);
                    }
                    if has_errors {
                        self.forward_stderr(queue);
                    }
                    if !(has_messages || has_errors) {
                        break;
                    }
                }
                self.words.flush(queue);
                (self.stdin, self.stdout, self.stderr) = (None, None, None);
                return process.reap().map(Some);
            }
        }
        Ok(None)
    }

    fn read(&mut self, events: &mut Vec<Event>) {
        let Some(pipe) = &self.stdout else { return };
        if !self.inbox.read(pipe).unwrap_or(false) {
            return self.close();
        }
        loop {
            match self.inbox.next() {
                Ok(Some(Event::Refused { status, reason })) => {
                    self.trouble.get_or_insert((status, reason));
                }
                Ok(Some(event)) if !event.is_of(&self.ranks) => {
                    self.trouble
                        .get_or_insert((1, "its agent reported a rank of another host".into()));
                    return self.close();
                }
                Ok(Some(Event::Noted(rank, note))) => {
                    let before = self.notes.insert(rank, note);
                    if before.is_none_or(|before| before.calls != note.calls) {
                        self.remarks.remove(&rank);
                    }
                }
                Ok(Some(Event::Clock(asked, told))) => {
                    self.clocks.hear(asked, told, observe::now());
                    if self.clocks.want_more() {
                        self.ask_for_clock();
                    }
                }
                Ok(Some(Event::Remarked(rank, text))) => drop(self.remarks.insert(rank, text)),
                Ok(Some(event)) => {
                    match &event {
                        Event::Output(_, _, bytes) => self.owed += bytes.len(),
                        Event::Ended { rank, note, .. } => drop(self.notes.insert(*rank, *note)),
                        _ => {}
                    }
                    events.push(event);
                }
                Ok(None) => return,
                Err(reason) => {
                    self.trouble.get_or_insert((1, reason));
                    return self.close();
                }
            }
        }
    }

    /// Forwards the standard error of the start command itself.
    fn forward_stderr(&mut self, queue: &mut Queue) {
        let Some(pipe) = &self.stderr else { return };
        let mut bytes = [0; 4096];
        match nix::unistd::read(pipe, &mut bytes) {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(count) => self.words.take(&bytes[..count], queue),
        }
    }

    /// Queues a command for the agent.
    pub(super) fn act(&mut self, command: &Command) {
        if self.stdin.is_some() {
            if let Err(error) = self.outbox.push(command) {
                self.trouble.get_or_insert((1, error.to_string()));
                self.close();
            }
        }
    }

    /// Asks the agent for its host's clock.
    pub(super) fn ask_for_clock(&mut self) {
        self.act(&Command::Clock(observe::now()));
    }

    /// The host's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The host's clock, as far as it is known.
    pub(super) fn clock(&self) -> Clock {
        self.clocks.best()
    }

    /// Credits the agent with the bytes of output that have arrived, so that it sends more.
    pub(super) fn ask_for_output(&mut self) {
        match std::mem::take(&mut self.owed) {
            0 => {}
            count => self.act(&Command::Taken(count as u32)),
        }
    }

    /// Closes the pipes to and from the agent. The agent ends when its standard input ends, and the
    /// start command ends with it.
    pub(super) fn close(&mut self) {
        (self.stdin, self.stdout) = (None, None);
        self.closed.get_or_insert(Instant::now());
    }

    /// The time at which to give up this host. A host must send its greeting by `start`. After
    /// [`close`](RemoteRanks::close), it must end within `last_words`.
    pub(super) fn overdue(&self, start: Instant, last_words: Duration) -> Option<Instant> {
        self.process.as_ref()?;
        match self.closed {
            Some(closed) => Some(closed + last_words),
            None => (!self.has_greeted()).then_some(start),
        }
    }

    /// Kills the start command. The agent ends when it notices the closed connection.
    pub(super) fn give_up(&mut self, reason: &str) {
        self.trouble.get_or_insert_with(|| {
            (1, format!("{reason}, the start command is given up: look whether the host answers"))
        });
        if let Some(process) = &self.process {
            process.signal(Signal::SIGKILL);
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether the host's ranks ran, as far as the launcher knows.
    pub(super) fn has_run(&self) -> bool {
        self.has_greeted() && self.trouble.is_none()
    }

    pub(super) fn has_greeted(&self) -> bool {
        self.inbox.is_greeted()
    }

    /// The last reported note of a rank of this host.
    pub(super) fn noted(&self, rank: u32) -> Note {
        self.notes.get(&rank).copied().unwrap_or_default()
    }

    /// The last reported remark on the note of a rank of this host.
    pub(super) fn remarked(&self, rank: u32) -> Option<String> {
        self.remarks.get(&rank).cloned()
    }

    /// The job's exit status and message for the end of this host, after the start command ended
    /// with `status`.
    pub(super) fn describe_end(&self, status: ExitStatus) -> (u8, String) {
        let how = super::cause::describe(status);
        match &self.trouble {
            Some((code, reason)) => (*code, format!("host {}: {reason}", self.name)),
            None if self.has_greeted() => (
                1,
                format!(
                    "host {}: the connection to its agent is gone, the start command {how}: look whether the host \
                     and its network are up",
                    self.name
                ),
            ),
            None => {
                let output = match self.inbox.chatter() {
                    output if output.is_empty() => String::new(),
                    output => format!(", and printed {output:?}"),
                };
                let text = format!(
                    "host {}: no agent could be started, the start command {how}{output}; it must run a program there without a password",
                    self.name
                );
                (1, text)
            }
        }
    }
}

/// Kills the start command, so that it doesn't outlive this value. The agent then notices the
/// closed connection.
impl Drop for RemoteRanks {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal(Signal::SIGKILL);
            let _ = process.reap(); // an error leaves nothing to do
        }
    }
}

fn is_readable(pipe: &impl AsFd) -> bool {
    super::local::is_readable(pipe.as_fd()).unwrap_or(false)
}
