//! What the launcher and an agent hear, for a fuzz target. It is built only with `--cfg fuzzing`.

use super::message::{Command, Event, Inbox, Orders};
use super::server::{Answer, Lines, Server, Standing};
use longshore_job::Hosts;

/// A launcher of some ranks, half of which are an agent's, and such an agent. The caller plays the
/// ranks, the agent of the launcher, and the launcher of the agent.
pub struct Launcher {
    server: Server,
    lines: Vec<Lines>,
    agent: Inbox,
    /// The ranks of the agent.
    remote: Vec<u32>,
    orders: Inbox,
    has_orders: bool,
}

impl Launcher {
    /// A launcher of `2 * ranks` ranks. None of them has said anything.
    pub fn new(ranks: u32) -> Launcher {
        let size = 2 * ranks;
        let halves = (0..size).map(|rank| rank / ranks).collect();
        Launcher {
            server: Server::new(vec![0; size as usize], &Hosts::new(halves)),
            lines: (0..size).map(|_| Lines::default()).collect(),
            agent: Inbox::default(),
            remote: (ranks..size).collect(),
            orders: Inbox::ungreeted(),
            has_orders: false,
        }
    }

    /// The launcher receives bytes from a rank. Returns false if it hangs up, or ends the job.
    ///
    /// # Panics
    /// If there is no such rank, or the launcher answers nonsense.
    pub fn hear_rank(&mut self, rank: u32, bytes: &[u8]) -> bool {
        self.lines[rank as usize].push(bytes);
        while let Some(line) = self.lines[rank as usize].next() {
            let answer = self.server.handle_line(rank, &line);
            if !self.is_good(answer) {
                return false;
            }
        }
        true
    }

    /// A rank ends.
    ///
    /// # Panics
    /// If there is no such rank, or the launcher answers nonsense.
    pub fn lose_rank(&mut self, rank: u32) {
        let answer = self.server.handle_death(rank);
        self.is_good(answer);
    }

    /// The launcher receives bytes from the agent. Returns false if it gives up the agent's host.
    ///
    /// # Panics
    /// If the launcher answers nonsense.
    pub fn hear_agent(&mut self, bytes: &[u8]) -> bool {
        self.agent.push(bytes);
        loop {
            match self.agent.next::<Event>() {
                Ok(None) => return true,
                Ok(Some(event)) if !event.is_of(&self.remote) => return false,
                Ok(Some(Event::Line(rank, line))) => {
                    let answer = self.server.handle_line(rank, &line);
                    if !self.is_good(answer) {
                        return false;
                    }
                }
                Ok(Some(Event::Ended { rank, .. })) => self.lose_rank(rank),
                Ok(Some(Event::Refused { .. })) | Err(_) => return false,
                Ok(Some(_)) => {}
            }
        }
    }

    /// The agent receives bytes from the launcher: first its orders, then commands. Returns false
    /// if the agent gives up.
    pub fn hear_launcher(&mut self, bytes: &[u8]) -> bool {
        self.orders.push(bytes);
        if !self.has_orders {
            match self.orders.next::<Orders>() {
                Ok(None) => return true,
                Ok(Some(orders)) if orders.is_consistent() => self.has_orders = true,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
        loop {
            match self.orders.next::<Command>() {
                Ok(None) => return true,
                Ok(Some(_)) => {}
                Err(_) => return false,
            }
        }
    }

    /// Checks an answer. Returns false if it ends something.
    fn is_good(&self, answer: Answer) -> bool {
        let check = |line: &str| {
            assert!(line.starts_with("cmd=") && !line.contains('\n'), "{line:?}");
        };
        match answer {
            Answer::Reply(line) => check(&line),
            Answer::Release(ranks, line) => {
                check(&line);
                let is_dead = |&rank: &u32| self.server.standing(rank) == Standing::Dead;
                assert!(!ranks.is_empty() && !ranks.iter().any(is_dead), "{ranks:?}");
            }
            Answer::Wait | Answer::Start(_) => {}
            Answer::Abort(_) | Answer::Malformed => return false,
        }
        true
    }

    /// The greeting of an agent, and events of it: seeds for [`hear_agent`](Self::hear_agent).
    ///
    /// # Panics
    /// Never: every event has an encoding.
    pub fn agent_seed() -> Vec<u8> {
        use longshore_transport::Note;

        use super::message::Outbox;
        use super::output::OutputStream;
        let mut outbox = Outbox::default();
        outbox.greet();
        let (note, core) = (Note::default(), Some(String::new()));
        let ended = Event::Ended { rank: 3, status: 9, note, first_dead: Some(0), core };
        let events = [
            Event::Line(2, "cmd=init pmi_version=1 pmi_subversion=1".to_owned()),
            Event::Line(2, "cmd=put kvsname=longshore key=a value=b".to_owned()),
            Event::Line(3, "cmd=barrier_in".to_owned()),
            Event::Output(2, OutputStream::Stderr, b"text".to_vec()),
            Event::Noted(3, Note::default()),
            Event::Taken(7),
            Event::Stacks(2, "process 1".to_owned()),
            ended,
            Event::Refused { status: 2, reason: "no such program".to_owned() },
        ];
        events.iter().for_each(|event| outbox.push(event).expect("events have an encoding"));
        outbox.into_bytes()
    }

    /// Orders and commands: seeds for [`hear_launcher`](Self::hear_launcher).
    ///
    /// # Panics
    /// Never: every command has an encoding.
    pub fn launcher_seed() -> Vec<u8> {
        use super::message::{Member, Outbox, Program};
        use longshore_job::Secret;
        let member = |rank| Member { rank, part: 0, program: 0, arch: Some("s390x".to_owned()) };
        let (path, arguments) = ("true".into(), vec!["a".into()]);
        let program = Program { path, arguments, environment: vec![], folder: None };
        let orders = Orders {
            journal: None,
            size: 4,
            first: 0,
            room: 0,
            programs: vec![program],
            members: vec![member(2), member(3)],
            environment: vec![("A".into(), "b".into())],
            secret: Secret::generate().expect("the system has random numbers"),
            folder: None,
            binding: "0,2-3".parse().ok(),
            notes: None,
            stacks: true,
        };
        let mut outbox = Outbox::default();
        outbox.push(&orders).expect("orders have an encoding");
        let commands = [
            Command::Reply(2, "cmd=barrier_out rc=0".to_owned()),
            Command::Mark(1, longshore_transport::Cause::Signal(9)),
            Command::Finalized(0),
            Command::End { leavers: true },
            Command::Input(b"text".to_vec()),
            Command::Stacks { ranks: vec![2, 3], states: true },
            Command::EndStacks,
        ];
        commands.iter().for_each(|one| outbox.push(one).expect("commands have an encoding"));
        outbox.into_bytes()
    }
}
