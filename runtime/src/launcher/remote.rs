//! The launcher's end of another host's agent: the start command as a child, and messages over its pipes.

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
use super::{Error, Host, Job, SSH};

/// The agent of a host, and what is known of it.
pub(super) struct RemoteRanks {
    name: String,
    process: Option<Process>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// What the start command itself says, ssh perhaps.
    words: Lines,
    ranks: Vec<u32>,
    inbox: Inbox,
    outbox: Outbox,
    /// Output that came, and for which it hasn't been told that more is wanted.
    owed: usize,
    /// What its ranks noted when it told that last.
    notes: HashMap<u32, Note>,
    /// Why the ranks don't run there, or why it isn't listened to any more.
    trouble: Option<(u8, String)>,
    closed: Option<Instant>,
}

/// What can become ready.
#[derive(Clone, Copy)]
pub(super) enum RemoteSource {
    Stdin,
    Stdout,
    Stderr,
    End,
}

/// The word for a shell, as it is.
fn quoted(word: OsString) -> OsString {
    match shlex::bytes::try_quote(word.as_bytes()) {
        Ok(quoted) => OsString::from_vec(quoted.into_owned()),
        Err(_) => word,
    }
}

impl RemoteRanks {
    /// Runs the start command for a host, and sends the agent there its orders. What an agent has to know that nobody else may
    /// goes by its standard input.
    ///
    /// # Errors
    /// The start command can't be run.
    pub(super) fn start(
        job: &Job,
        host: &Host,
        orders: &Orders,
        descriptors: Descriptors,
    ) -> Result<RemoteRanks, Error> {
        let ssh: Vec<OsString> = SSH.split_whitespace().map(OsString::from).collect();
        let start = if job.start.is_empty() { &ssh } else { &job.start };
        let here = std::env::current_exe()?.into_os_string();
        // ssh has a shell read what it joined.
        let here = if *start == ssh { quoted(here) } else { here };
        let here = [here, "agent".into()];
        let agent = if job.agent.is_empty() { &here[..] } else { &job.agent };
        let (first, rest) = start.split_first().unwrap_or((&host.name, &[]));
        let mut program = Program::new(first);
        program.args(rest).arg(&host.name).args(agent);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a session of its own: what is typed at the terminal is for the ranks, to which it is relayed, and would end ssh.
        let started = Process::start(&mut program, &[], descriptors, Session::Own);
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
            trouble: None,
            closed: None,
        })
    }

    /// Adds what can happen to what is polled; what the start command says where `output` is wanted.
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

    /// Takes in what happened at `source`. `Some` is how the start command ended, and with it all on that host.
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
                    self.stdin = None; // its end says why
                }
            }
            RemoteSource::Stdout => self.read(events),
            RemoteSource::Stderr => self.hear(queue),
            RemoteSource::End => {
                let Some(process) = self.process.take() else { return Ok(None) };
                // What it said last is heard first; what it left behind may hold the other ends, and is not waited for.
                for _ in 0..LAST_READS {
                    let said = self.stdout.as_ref().is_some_and(is_readable);
                    let printed = self.stderr.as_ref().is_some_and(is_readable);
                    if said {
                        self.read(events);
                    }
                    if printed {
                        self.hear(queue);
                    }
                    if !(said || printed) {
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
                Ok(Some(Event::Noted(rank, note))) => drop(self.notes.insert(rank, note)),
                Ok(Some(event)) if event.rank().is_some_and(|rank| !self.ranks.contains(&rank)) => {
                    self.trouble.get_or_insert((1, "its agent speaks of a rank of another".into()));
                    return self.close();
                }
                Ok(Some(event)) => {
                    match &event {
                        Event::Output(_, _, bytes) => self.owed += bytes.len(),
                        Event::Ended(rank, _, note) => drop(self.notes.insert(*rank, *note)),
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

    /// Passes on what the start command itself says.
    fn hear(&mut self, queue: &mut Queue) {
        let Some(pipe) = &self.stderr else { return };
        let mut bytes = [0; 4096];
        match nix::unistd::read(pipe, &mut bytes) {
            Ok(0) | Err(_) => self.stderr = None,
            Ok(count) => self.words.take(&bytes[..count], queue),
        }
    }

    /// Wants something of the agent.
    pub(super) fn act(&mut self, command: &Command) {
        if self.stdin.is_some() {
            if let Err(error) = self.outbox.push(command) {
                self.trouble.get_or_insert((1, error.to_string()));
                self.close();
            }
        }
    }

    /// Asks for as much more output as came.
    pub(super) fn ask_for_output(&mut self) {
        match std::mem::take(&mut self.owed) {
            0 => {}
            count => self.act(&Command::Taken(count as u32)),
        }
    }

    /// Tells the agent to end, by ending what it listens to, and isn't interested in what it says. The start command ends with it.
    pub(super) fn close(&mut self) {
        (self.stdin, self.stdout) = (None, None);
        self.closed.get_or_insert(Instant::now());
    }

    /// When it is to be given up, unless something comes before: it has to greet by `start`, and to end within `last_words` of being
    /// closed.
    pub(super) fn overdue(&self, start: Instant, last_words: Duration) -> Option<Instant> {
        self.process.as_ref()?;
        match self.closed {
            Some(closed) => Some(closed + last_words),
            None => (!self.has_greeted()).then_some(start),
        }
    }

    /// Ends the start command, whatever it does. An agent there ends when it finds the connection gone.
    pub(super) fn give_up(&mut self, reason: &str) {
        self.trouble.get_or_insert_with(|| (1, format!("{reason}, the start command is given up")));
        if let Some(process) = &self.process {
            process.signal(Signal::SIGKILL);
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Whether its ranks ran, as far as is known.
    pub(super) fn has_run(&self) -> bool {
        self.has_greeted() && self.trouble.is_none()
    }

    pub(super) fn has_greeted(&self) -> bool {
        self.inbox.is_greeted()
    }

    /// What a rank there noted when the agent told that last.
    pub(super) fn noted(&self, rank: u32) -> Note {
        self.notes.get(&rank).copied().unwrap_or_default()
    }

    /// Why nothing runs there, now that the start command ended with `status`; and the status of a job for which that is the end.
    pub(super) fn describe_end(&self, status: ExitStatus) -> (u8, String) {
        let how = super::cause::describe(status);
        match &self.trouble {
            Some((code, reason)) => (*code, format!("host {}: {reason}", self.name)),
            None if self.has_greeted() => (
                1,
                format!(
                    "host {}: the connection to its agent is gone, the start command {how}",
                    self.name
                ),
            ),
            None => {
                let said = match self.inbox.chatter() {
                    said if said.is_empty() => String::new(),
                    said => format!(", having said {said:?}"),
                };
                let text = format!(
                    "host {}: no agent could be started, the start command {how}{said}",
                    self.name
                );
                (1, text)
            }
        }
    }
}

/// However it goes, the start command goes with it, and the agent finds its connection gone.
impl Drop for RemoteRanks {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal(Signal::SIGKILL);
            let _ = process.reap(); // nothing is left to do about it
        }
    }
}

fn is_readable(pipe: &impl AsFd) -> bool {
    super::local::is_readable(pipe.as_fd()).unwrap_or(false)
}
