//! The parts of a window, on which checks, paths and synchronisation work together.

use std::cell::Cell;
use std::sync::Arc;

use super::access::Epochs;
use super::checking::Checking;
use super::explained::Explained;
use super::flight::Flight;
use super::info::Info;
use super::memo::{Memo, Uses};
use super::observed::Observed;
use super::own::OwnMemory;
use super::peers::Peers;
use super::readings::Readings;
use crate::engine::{Operation, Policy};
use crate::job::Ladder;
use crate::observe::At;
use crate::process::Process;

/// A window at one rank: each part owns its state. One thread uses it at a time.
pub(super) struct Parts {
    process: Arc<Process>,
    /// The window's number, the same at all its ranks.
    id: u32,
    info: Cell<Info>,
    peers: Peers,
    epochs: Epochs,
    memory: OwnMemory,
    flight: Flight,
    checking: Checking,
    memo: Memo,
    readings: Readings,
    observed: Option<Observed>,
    explained: Option<Explained>,
}

impl Parts {
    pub(super) fn new(
        process: &Arc<Process>,
        id: u32,
        info: Info,
        peers: Peers,
        epochs: Epochs,
        memory: OwnMemory,
        flight: Flight,
    ) -> Parts {
        let checking = Checking::new(process, id);
        let readings = Readings::new(info.max_num_notify);
        let observed = Observed::of_window(process, id, peers.len());
        let Ladder { fast, explain } = process.ladder();
        let memo = Memo::new(match fast {
            true if observed.is_none() && !explain => Uses::All,
            true => Uses::Prepared,
            false => Uses::Nothing,
        });
        let explained = explain.then(Explained::default);
        let (process, info) = (process.clone(), Cell::new(info));
        Parts {
            process,
            id,
            info,
            peers,
            epochs,
            memory,
            flight,
            checking,
            memo,
            readings,
            observed,
            explained,
        }
    }

    #[inline]
    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    #[inline]
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The hints in use.
    pub(super) fn info(&self) -> Info {
        self.info.get()
    }

    pub(super) fn set_info(&self, info: Info) {
        self.info.set(info);
    }

    /// The types that may describe data in a target's window.
    pub(super) fn policy(&self) -> Policy {
        self.info.get().target_types
    }

    /// Whether several threads may divide a copy to or from a target's memory.
    pub(super) fn may_divide(&self) -> bool {
        !self.info.get().no_threads
    }

    #[inline]
    pub(super) fn peers(&self) -> &Peers {
        &self.peers
    }

    #[inline]
    pub(super) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    #[inline]
    pub(super) fn memory(&self) -> &OwnMemory {
        &self.memory
    }

    #[inline]
    pub(super) fn flight(&self) -> &Flight {
        &self.flight
    }

    #[inline]
    pub(super) fn checking(&self) -> &Checking {
        &self.checking
    }

    #[inline]
    pub(super) fn memo(&self) -> &Memo {
        &self.memo
    }

    /// What this rank has read of its notification counters.
    pub(super) fn readings(&self) -> &Readings {
        &self.readings
    }

    /// What counts the operations on this window, if that is asked for.
    #[inline]
    pub(super) fn observed(&self) -> Option<&Observed> {
        self.observed.as_ref()
    }

    /// What was explained of the paths of operations, if that is asked for.
    #[inline]
    pub(super) fn explained(&self) -> Option<&Explained> {
        self.explained.as_ref()
    }

    /// The place of the call under way, for the observer.
    pub(super) fn at(&self) -> At {
        At { window: Some(self.id), caller: self.checking.caller(), peer: None }
    }

    /// The name by which the engine knows the operation with a number on a process.
    #[inline]
    pub(super) fn operation(&self, target: u32, number: u64) -> Operation {
        Operation { target, window: self.id, number }
    }

    /// Takes the window apart: no operation, call or peer uses it any more. Returns its memory.
    pub(super) fn dismantle(self) -> OwnMemory {
        self.memory
    }

    /// The memory of a window that isn't used yet.
    pub(super) fn memory_mut(&mut self) -> &mut OwnMemory {
        &mut self.memory
    }
}
