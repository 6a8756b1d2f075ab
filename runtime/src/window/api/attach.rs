//! Dynamic windows: memory comes and goes, and displacements are addresses (MPI-5.0 section 12.2.4).

use std::marker::PhantomData;
use std::sync::Arc;

use super::window::Window;
use crate::engine::Attachments;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::job::Activity;
use crate::memory::{Exposed, Memory};
use crate::route::Route;
use crate::window::core::Core;
use crate::window::create::{check_native, give_back, moved_within_reach};
use crate::window::directory::{Directory, Entry, Reading};
use crate::window::part::Part;
use crate::window::targets::{Reached, Target};

/// Memory that is attached to a dynamic window; [`Window::detach`] gives it back.
///
/// One that is dropped leaves its memory attached until the window is freed, and the memory goes with it then.
#[must_use = "the memory comes back from `detach`"]
pub struct Attached<M> {
    attachments: Arc<Attachments>,
    number: u64,
    address: i64,
    size: u64,
    memory: PhantomData<fn() -> M>,
}

impl<M> Attached<M> {
    /// Where it begins: the displacement of its first byte in operations on this rank. Those of others count bytes from there.
    ///
    /// It is where the memory lies; on a rank that emulates another architecture, where that machine might have put it.
    /// A rank tells it to its peers as an `i64`, whatever the size of its pointers.
    pub fn address(&self) -> i64 {
        self.address
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl<M> Window<M> {
    /// Attaches memory to a dynamic window: peers reach it from now on, by the addresses from
    /// [`Attached::address`] on (MPI-5.0 section 12.2.4). Not collective. This rank reaches it by [`local`](Window::local), whose
    /// displacements are addresses too.
    ///
    /// Where that lets like ranks reach them directly its bytes are moved to shared memory until it is detached, as
    /// [`Window::create`] does it; the addresses stay what they were. That holds for the first 510 attachments of a rank that there
    /// are at a time; what is attached beyond is reached by messages.
    ///
    /// ```
    /// # use longshore::{Info, Window};
    /// # let rank = longshore::init()?;
    /// let (world, long) = (rank.world(), rank.type_of::<i64>()?);
    /// let window = Window::create_dynamic(world, &Info::default())?;
    /// let attached = window.attach(vec![0i64; 10])?;
    /// assert_eq!(attached.size(), 80);
    /// // Everyone learns where everyone's memory lies.
    /// let places = world.allgather(&[attached.address()])?;
    /// window.lock_all(|epoch| epoch.put(&[7i64], 0, places[0] + 16, 1, &long))?;
    /// world.barrier()?;
    /// let memory = window.detach(attached)?;
    /// assert!(world.rank() != 0 || memory[2] == 7);
    /// window.free()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RMA_FLAVOR on another window (rule 16); RMA_ATTACH for memory that has no address, as on a rank that emulates pointers
    /// too short for it; BUFFER on a rank that emulates another architecture, for a `Vec` or `Box` of anything but bytes. The memory is
    /// lost then.
    pub fn attach<A: Memory>(&self, memory: A) -> Result<Attached<A>> {
        let attach = || -> Result<Attached<A>> {
            let attachments = self.core.attachments("attach")?;
            check_native::<A>(&self.core.process)?;
            let memory = Exposed::created(memory)?;
            let size = memory.span().len();
            let (number, address) = self.core.attach(memory, A::is_enclosed())?;
            let attachments = attachments.clone();
            Ok(Attached { attachments, number, address, size, memory: PhantomData })
        };
        attach().map_err(|error| self.core.failed(error, "attach", None))
    }

    /// Ends an attachment and gives its memory back (MPI-5.0 section 12.2.4). Not collective. Operations that reach this rank
    /// afterwards are refused; for those under way it waits.
    ///
    /// # Errors
    /// RMA_FLAVOR on a window that isn't dynamic (rule 16), RMA_ATTACH for what is attached to another (rule 15);
    /// PROC_ABORTED where the job is being ended. The memory is lost then.
    pub fn detach<A: Memory>(&self, attached: Attached<A>) -> Result<A> {
        let detach = || -> Result<A> {
            let attachments = self.core.attachments("detach")?;
            if !Arc::ptr_eq(attachments, &attached.attachments) {
                return Err(ErrorKind::Detached.into());
            }
            give_back(self.core.detach(attached.number)?)
        };
        detach().map_err(|error| self.core.failed(error, "detach", None))
    }
}

impl Core {
    /// What is attached (rule 16).
    pub(in crate::window) fn attachments(&self, call: &'static str) -> Result<&Arc<Attachments>> {
        self.process.ready()?;
        let (flavor, wanted) = (self.flavor, Flavor::Dynamic);
        let other = ErrorKind::Flavor { call, flavor, wanted };
        self.attachments.as_ref().ok_or_else(|| other.into())
    }

    /// Attaches memory, its bytes where like ranks reach them, if it is the window's alone meanwhile. Gives the attachment's number
    /// and its address.
    fn attach(&self, memory: Exposed, is_enclosed: bool) -> Result<(u64, i64)> {
        let attachments = self.attachments("attach")?;
        let directory = self.directory.as_ref().filter(|directory| directory.has_room());
        if !is_enclosed {
            self.point()?;
        }
        let segment = self.process.segment();
        let (memory, place) = match directory {
            Some(_) if is_enclosed => moved_within_reach(segment, memory, self.control.rank()),
            _ => (memory, None),
        };
        let len = memory.span().len();
        let attached = attachments.attach(Arc::new(memory), place.map(Part::range));
        match (directory, place, &attached) {
            (Some(directory), Some(Part { offset, .. }), &Ok((number, address))) => {
                directory.add(Entry { number, start: address as u64, len, offset });
            }
            (_, Some(place), Err(_)) => {
                // There is an error to return already.
                let _ = segment.free(place.range());
            }
            _ => {}
        }
        attached
    }

    /// Ends an attachment, once no operation holds its memory any more.
    pub(in crate::window) fn detach(&self, number: u64) -> Result<Exposed> {
        let detached = self.attachments("detach")?.detach(number);
        let (memory, place) = detached.ok_or(ErrorKind::Detached)?;
        let mut memory = Some(memory);
        let mut turns = match (&self.directory, place) {
            (Some(directory), Some(_)) => {
                directory.remove(number);
                self.turns()?
            }
            _ => Vec::new(),
        };
        let mut unhand = || {
            turns.retain(|(rank, directory, turn)| {
                directory.in_turn() == Some(*turn) && !self.control.is_dead(*rank)
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
        let wait = || self.process.wait(|_, _| unhand());
        let memory = self.process.during(Activity::Detach, self.window, wait)?.moved_back();
        place.map_or(Ok(()), |place| self.process.segment().free(place))?;
        Ok(memory)
    }

    /// The turns that other ranks are in: those with which they may reach what is no longer told.
    fn turns(&self) -> Result<Vec<(u32, Directory, u32)>> {
        let mut turns = Vec::new();
        for (rank, offset) in self.targets.places().filter(|(rank, _)| *rank != self.control.rank())
        {
            let directory = Directory::new(self.process.segment(), offset)?;
            if let Some(turn) = directory.in_turn() {
                turns.push((rank, directory, turn));
            }
        }
        Ok(turns)
    }

    /// The memory that a target has attached at an address, displacements being addresses, if this rank reaches it directly.
    pub(in crate::window) fn reach_attached(
        &self,
        target: &Target,
        address: i64,
    ) -> Option<Reached<'_>> {
        let directory = self.directory.as_ref()?;
        let reading = match (target.reading.get(), target.route, target.offset) {
            (Some(reading), ..) => reading,
            (None, Route::Direct, Some(offset)) => {
                // What can't be mapped is reached another way.
                let reading = Reading::new(self.process.segment(), offset).ok()?;
                target.reading.get_or_init(|| reading)
            }
            _ => return None,
        };
        let turn = directory.turn();
        let span = reading.find(&turn, u64::try_from(address).ok()?)?;
        Some(Reached { span, _turn: Some(turn) })
    }

    /// The same for an accumulate: none where an earlier one may be under way by message, since they are carried out in order. While its
    /// directory changes, and where memory isn't in it, a target is reached so.
    #[inline]
    pub(in crate::window) fn reach_in_order(
        &self,
        target: &Target,
        address: i64,
    ) -> Option<Reached<'_>> {
        if self.flight.is_shipped() && self.flight.ledger.outstanding(target.peer) > 0 {
            return None;
        }
        self.reach_attached(target, address)
    }
}
