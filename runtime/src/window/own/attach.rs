//! Attaching memory to a dynamic window, and detaching it (MPI-5.0 section 12.2.4).

use std::sync::Arc;

use super::OwnMemory;
use crate::engine::Attachments;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::Exposed;
use crate::observe::At;
use crate::process::Process;
use crate::window::directory::{Directory, Entry, PRIVATE};
use crate::window::part::Part;
use crate::window::peers::Peers;

/// The turn of an origin, in which it may reach an attachment that its directory lists no more.
struct OpenTurn {
    rank: u32,
    directory: Directory,
    turn: u32,
}

/// Memory that the program points to, and its part of the segment if the program allocated it
/// there. Other memory of the program's stays where it is.
pub(in crate::window) fn find_pointed(
    process: &Process,
    exposed: Exposed,
) -> (Exposed, Option<Part>) {
    let memory = exposed.span();
    match process.places().find(memory) {
        Some((allocation, offset)) => {
            let part = Part { offset, len: memory.len() };
            (exposed.placed_in(allocation), Some(part))
        }
        None => (exposed, None),
    }
}

impl OwnMemory {
    /// The attachments of a dynamic window.
    ///
    /// # Errors
    /// RMA_FLAVOR on any other window (rule 16).
    pub(in crate::window) fn attachable(&self, call: &'static str) -> Result<&Arc<Attachments>> {
        self.check_flavor(call, Flavor::Dynamic)?;
        let other = ErrorKind::Flavor { call, flavor: self.flavor, wanted: Flavor::Dynamic };
        self.attachments().ok_or_else(|| other.into())
    }

    fn directory(&self) -> Option<&Directory> {
        self.dynamic.as_ref()?.directory.as_ref()
    }

    /// Attaches memory. If only the window has a way to it, its bytes move into the segment, where
    /// related ranks reach them. Memory that the program points to stays where it is. Returns the
    /// attachment's number and its address.
    pub(in crate::window) fn attach(
        &self,
        process: &Process,
        memory: Exposed,
        is_enclosed: bool,
    ) -> Result<(u64, i64)> {
        let attachments = self.attachable("attach")?;
        let directory = self.directory().filter(|directory| directory.has_room());
        let (memory, part) = match directory {
            Some(_) if is_enclosed => Part::enclose(&self.segment, memory, self.rank),
            Some(_) => find_pointed(process, memory),
            None => (memory, None),
        };
        let len = memory.span().len();
        let own = part.filter(|_| is_enclosed);
        let attached = attachments.attach(Arc::new(memory), own.map(Part::range));
        match (directory, own, &attached) {
            (Some(directory), _, &Ok((number, address))) => {
                let offset = part.map_or(PRIVATE, |part| part.offset);
                directory.add(Entry { number, start: address as u64, len, offset });
            }
            (_, Some(part), Err(_)) => {
                // There is an error to return already.
                let _ = self.segment.free(part.range());
            }
            _ => {}
        }
        attached
    }

    /// Ends an attachment. Waits until no operation holds its memory any more.
    pub(in crate::window) fn detach(
        &self,
        process: &Process,
        peers: &Peers,
        window: u32,
        number: u64,
    ) -> Result<Exposed> {
        let detached = self.attachable("detach")?.detach(number);
        let (memory, range) = detached.ok_or(ErrorKind::Detached)?;
        // Waits for an operation on memory that the engine has found before; see `detach`.
        drop(process.engine());
        let mut memory = Some(memory);
        let mut turns = match self.directory() {
            Some(directory) if directory.remove(number) => self.open_turns(peers)?,
            _ => Vec::new(),
        };
        let mut release = || {
            turns.retain(|OpenTurn { rank, directory, turn }| {
                directory.in_turn() == Some(*turn) && !peers.control().is_dead(*rank)
            });
            if !turns.is_empty() {
                return None;
            }
            match Arc::try_unwrap(memory.take()?) {
                Ok(memory) => Some(Ok(memory)),
                Err(held) => {
                    memory = Some(held);
                    None
                }
            }
        };
        let wait = || process.wait(|_, _| release());
        let at = At { window: Some(window), ..At::default() };
        let memory = process.during(Activity::Detach, window, at, wait)?.moved_back();
        range.map_or(Ok(()), |range| self.segment.free(range))?;
        Ok(memory)
    }

    /// The turns that other ranks are in.
    fn open_turns(&self, peers: &Peers) -> Result<Vec<OpenTurn>> {
        let mut turns = Vec::new();
        for (rank, offset) in peers.direct_offsets() {
            let directory = Directory::new(&self.segment, offset)?;
            if let Some(turn) = directory.in_turn() {
                turns.push(OpenTurn { rank, directory, turn });
            }
        }
        Ok(turns)
    }
}
