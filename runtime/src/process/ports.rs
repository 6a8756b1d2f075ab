//! The ports that a rank has opened, and its questions to the launcher.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Process;
use crate::error::{ErrorKind, Result};
use crate::job::{self, Environment, Secret};
use crate::port::{Asked, Port};

/// The open ports of a rank.
#[derive(Default)]
pub(super) struct Ports(Mutex<Opened>);

#[derive(Default)]
struct Opened {
    /// The number of ports that were opened.
    count: u32,
    /// The keys of the open ones, by number.
    keys: HashMap<u32, u128>,
    /// The requests that wait for an accept, in their order.
    asked: VecDeque<Asked>,
}

impl Process {
    /// Opens a port of this rank.
    pub(crate) fn open_port(&self) -> Result<Port> {
        let none = |error| ErrorKind::Port(format!("the system has no random numbers: {error}"));
        let secret = Secret::generate().map_err(none)?;
        let key = secret.bytes().first_chunk().copied().map_or(0, u128::from_le_bytes);
        let segment = self.segment_number()?;
        let mut opened = self.opened();
        let number = opened.count;
        opened.count = number
            .checked_add(1)
            .filter(|next| *next <= i32::MAX as u32)
            .ok_or_else(|| ErrorKind::Port("this rank has opened all that it can".to_owned()))?;
        opened.keys.insert(number, key);
        Ok(Port { segment, process: self.me().rank, number, key })
    }

    /// Closes a port of this rank. False if it isn't open.
    pub(crate) fn close_port(&self, port: &Port) -> bool {
        let is_open = self.is_open(port);
        let mut opened = self.opened();
        is_open && opened.keys.remove(&port.number).is_some()
    }

    /// Whether this rank has opened a port and not closed it.
    pub(crate) fn is_open(&self, port: &Port) -> bool {
        let opened = self.opened();
        let is_own = port.process == self.me().rank
            && self.segment_number().is_ok_and(|number| number == port.segment);
        is_own && opened.keys.get(&port.number) == Some(&port.key)
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.books.ports.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request that has come. Threads that accept at its port look for it.
    pub(crate) fn add_asked(&self, asked: Asked) {
        self.opened().asked.push_back(asked);
        // A thread that looks before it sleeps has locked the engine.
        let _engine = self.engine();
        self.nudge();
    }

    /// Takes the next request at the port of this number.
    pub(crate) fn take_asked(&self, port: u32) -> Option<Asked> {
        let mut opened = self.opened();
        let at = opened.asked.iter().position(|asked| asked.port == port)?;
        opened.asked.remove(at)
    }

    /// Whether a request waits at the port of this number.
    pub(crate) fn has_asked(&self, port: u32) -> bool {
        self.opened().asked.iter().any(|asked| asked.port == port)
    }

    /// Keeps the requests for which `keep` is true. It gets whether the port is open with the
    /// request's key, and may use the engine: this rank waits with the engine locked for requests.
    pub(crate) fn retain_asked(&self, mut keep: impl FnMut(&Asked, bool) -> bool) {
        let mut all = std::mem::take(&mut self.opened().asked);
        let is_open = |asked: &Asked| self.opened().keys.get(&asked.port) == Some(&asked.key);
        all.retain(|asked| keep(asked, is_open(asked)));
        let mut opened = self.opened();
        // Other threads may have added later ones.
        all.append(&mut opened.asked);
        opened.asked = all;
    }

    /// The number of the segment of the job, or of the job itself if that has several.
    pub(crate) fn segment_number(&self) -> Result<u64> {
        match self.identity.hosts.is_one() {
            true => Ok(self.segment.number()?),
            false => Ok(self.engine().state().job() as u64),
        }
    }

    /// The number of processors that the ranks of this host may use together, if the launcher says
    /// so.
    pub(crate) fn processors(&self) -> Option<usize> {
        self.environment().as_ref().and_then(|environment| environment.processors)
    }

    /// The number of this rank's program among those that were started together.
    pub(crate) fn program_number(&self) -> Option<u32> {
        self.environment().as_ref().and_then(|environment| environment.start.program)
    }

    /// Asks the launcher for something.
    ///
    /// # Errors
    /// OTHER if no launcher started this rank, or if it can't be asked.
    pub(crate) fn ask_launcher<T>(
        &self,
        ask: impl FnOnce(&mut Environment) -> std::result::Result<T, job::Error>,
    ) -> Result<T> {
        match &mut *self.environment() {
            Some(environment) => Ok(ask(environment)?),
            None => Err(ErrorKind::NoLauncher.into()),
        }
    }
}
