//! The exchange of values through the launcher, before the ranks have links to each other.
//!
//! Each rank publishes values under names, and after a barrier every rank can read them. The
//! protocol is PMI-1 or PMIx.

use std::io;

use super::joining::{Order, Started};
use super::{pmi, pmix};

/// The bytes of a value that are published by PMIx, which has no limit of its own.
const PMIX_ROOM: usize = 1024;

/// A connection to the launcher of the job.
#[derive(Debug)]
pub(super) enum Exchange {
    /// PMI-1, with this process's rank.
    Pmi(pmi::Client, u32),
    /// PMIx.
    Pmix(pmix::Client),
}

impl Exchange {
    /// The job's parts on this host, if the launcher is `longshore run`.
    pub(super) fn join(&mut self) -> io::Result<Option<pmi::Joined>> {
        match self {
            Exchange::Pmi(client, _) => client.join(),
            Exchange::Pmix(_) => Ok(None),
        }
    }

    /// The bytes of the longest value that can be published. It is the same at all ranks.
    pub(super) fn room(&self) -> usize {
        match self {
            Exchange::Pmi(client, _) => client.room(),
            Exchange::Pmix(_) => PMIX_ROOM,
        }
    }

    /// Publishes this rank's `value` under `name`. A value has no blanks and fits into
    /// [`room`](Exchange::room).
    pub(super) fn publish(&mut self, name: &str, value: &str) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, rank) => client.put(&key(name, *rank), value),
            Exchange::Pmix(client) => client.put(&key(name, client.rank()), value),
        }
    }

    /// The value that `rank` published under `name` before the last barrier; an error if there is
    /// none.
    pub(super) fn get(&mut self, rank: u32, name: &str) -> io::Result<String> {
        let nothing = || io::Error::other(format!("rank {rank} published no {name}"));
        self.find(rank, name)?.ok_or_else(nothing)
    }

    /// The value that `rank` published under `name` before the last barrier, if there is one.
    pub(super) fn find(&mut self, rank: u32, name: &str) -> io::Result<Option<String>> {
        match self {
            Exchange::Pmi(client, _) => client.find(&key(name, rank)),
            Exchange::Pmix(client) => client.find(rank, &key(name, rank)),
        }
    }

    /// Waits until all ranks have called it.
    pub(super) fn barrier(&mut self) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, _) => client.barrier(),
            Exchange::Pmix(client) => client.barrier(),
        }
    }

    /// Notifies the launcher that this process has finalized, so that its exit is no failure.
    pub(super) fn finalize(&mut self) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, _) => client.finalize(),
            Exchange::Pmix(client) => client.finalize(),
        }
    }

    /// The number of this process's program among those that were started together, if the
    /// launcher knows it.
    pub(super) fn program(&mut self) -> io::Result<Option<u32>> {
        match self {
            Exchange::Pmi(client, _) => client.program(),
            Exchange::Pmix(_) => Ok(None),
        }
    }

    /// Asks `longshore run` to start processes.
    pub(super) fn order(&mut self, order: &Order) -> io::Result<Started> {
        self.joining()?.order(order)
    }

    /// Has `longshore run` publish a port. Returns whether the name was free.
    pub(super) fn publish_port(&mut self, name: &str, port: &str) -> io::Result<bool> {
        self.joining()?.publish_port(name, port)
    }

    /// Has `longshore run` forget a name. Returns whether it knew the name.
    pub(super) fn unpublish_port(&mut self, name: &str) -> io::Result<bool> {
        self.joining()?.unpublish_port(name)
    }

    /// The port that is published under a name.
    pub(super) fn look_up_port(&mut self, name: &str) -> io::Result<Option<String>> {
        self.joining()?.look_up_port(name)
    }

    /// The client of a launcher that starts processes and keeps names.
    fn joining(&mut self) -> io::Result<&mut pmi::Client> {
        match self {
            Exchange::Pmi(client, _) if client.is_ours() => Ok(client),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this launcher neither starts processes for a rank nor keeps names of ports: start \
                 the job by `longshore run`, or by mpiexec of the same installation",
            )),
        }
    }

    /// Asks the launcher to end the whole job with status `code`. The launcher then sends signals.
    pub(super) fn abort(&mut self, code: i32) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, _) => client.abort(code),
            Exchange::Pmix(client) => client.abort(code),
        }
    }

    /// Whether the launcher has ended. Doesn't block.
    pub(super) fn hung_up(&self) -> bool {
        match self {
            Exchange::Pmi(client, _) => client.hung_up(),
            Exchange::Pmix(client) => client.hung_up(),
        }
    }
}

/// The key of a rank's value. It contains the rank, because in PMI-1 all ranks share one key space.
pub(super) fn key(name: &str, rank: u32) -> String {
    format!("longshore-{name}-{rank}")
}
