//! What ranks tell each other before they can speak: values that each publishes under a name, for all to read after a barrier.
//!
//! The launcher carries them, by PMI-1 or by PMIx.

use std::io;

use super::{pmi, pmix};

/// A launcher that carries values between the ranks of a job.
#[derive(Debug)]
pub(super) enum Exchange {
    /// One that speaks PMI-1 with this rank.
    Pmi(pmi::Client, u32),
    /// One that speaks PMIx.
    Pmix(pmix::Client),
}

impl Exchange {
    /// Publishes `value`, without blanks and up to 1024 bytes, as this rank's under `name`.
    pub(super) fn publish(&mut self, name: &str, value: &str) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, rank) => client.put(&key(name, *rank), value),
            Exchange::Pmix(client) => client.put(&key(name, client.rank()), value),
        }
    }

    /// What `rank` published under `name` before the last barrier.
    pub(super) fn get(&mut self, rank: u32, name: &str) -> io::Result<String> {
        let nothing = || io::Error::other(format!("rank {rank} published no {name}"));
        self.find(rank, name)?.ok_or_else(nothing)
    }

    /// Likewise, or nothing where it published none.
    pub(super) fn find(&mut self, rank: u32, name: &str) -> io::Result<Option<String>> {
        match self {
            Exchange::Pmi(client, _) => client.find(&key(name, rank)),
            Exchange::Pmix(client) => client.find(rank, &key(name, rank)),
        }
    }

    /// Waits until all ranks are here.
    pub(super) fn barrier(&mut self) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, _) => client.barrier(),
            Exchange::Pmix(client) => client.barrier(),
        }
    }

    /// Tells the launcher that this process may end now without being missed.
    pub(super) fn finalize(&mut self) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, _) => client.finalize(),
            Exchange::Pmix(client) => client.finalize(),
        }
    }

    /// Asks the launcher to end the whole job with status `code`. It answers by a signal.
    pub(super) fn abort(&mut self, code: i32) -> io::Result<()> {
        match self {
            Exchange::Pmi(client, _) => client.abort(code),
            Exchange::Pmix(client) => client.abort(code),
        }
    }

    /// Whether the launcher is gone. Doesn't block.
    pub(super) fn hung_up(&self) -> bool {
        match self {
            Exchange::Pmi(client, _) => client.hung_up(),
            Exchange::Pmix(client) => client.hung_up(),
        }
    }
}

/// PMI-1 has one space of keys for all ranks.
fn key(name: &str, rank: u32) -> String {
    format!("longshore-{name}-{rank}")
}
